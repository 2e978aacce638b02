"""Lease of a worker, messages and broadcasts of the other workers, and cleanup after workers that died."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import anyio
from pydantic_core import to_json

from mcp_bindgen.http.server.event_store import StoreUnavailable
from mcp_bindgen.http.server.limits import Turn
from mcp_bindgen.http.server.open_session import HttpSession, unanswered
from mcp_bindgen.http.server.sessions import UNREADABLE
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import declared
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.methods import Notification
from mcp_bindgen.runtime.protocol.request_scope import LEVELS, Link, Negotiated, RequestScope
from mcp_bindgen.runtime.session.endpoint import Endpoint, original
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.runtime.session.subscriptions import Subscription

from .store import Broadcast, SharedStore, WorkerMessage

_RETRY_SECONDS = 0.2  # until the next attempt while the store is unavailable
_HEARTBEATS_PER_CHECK = 5
_DIED = "the worker that handled this request has died"


@dataclass(eq=False)
class Worker:
    """Membership of this process in the workers of an endpoint.

    Attributes:
        store: Store of the workers.
        on_message: Handles a message for this worker.
        on_broadcast: Handles a broadcast.
        on_lost: Called if the other workers took this worker for dead, or the store has lost its data: all sessions
            and subscriptions of this worker are over.
        on_check: Called with every fifth heartbeat.
        generation: Name of the store's data; None before the other workers know this worker.
        last_broadcast: Number of the last broadcast that this worker has received.
    """

    store: SharedStore
    on_message: Callable[[WorkerMessage], Awaitable[None]]
    on_broadcast: Callable[[Broadcast], Awaitable[None]]
    on_lost: Callable[[], None]
    on_check: Callable[[], Awaitable[None]]
    generation: str | None = field(default=None, init=False)
    last_broadcast: int = field(default=0, init=False)
    _heartbeats: int = field(default=0, init=False)

    def check(self) -> None:
        """Raise `StoreUnavailable` before the other workers know this worker."""
        if self.generation is None:
            raise StoreUnavailable

    async def begin(self) -> None:
        """Announce this worker, if the store is available."""
        try:
            await self._heartbeat()
        except StoreUnavailable:
            log.warning("the shared store is away; sessions cannot be served until it is there")

    async def live(self) -> None:
        """Renew the lease of this worker until cancelled."""
        while True:
            pause = self.store.heartbeat_interval
            try:
                await self._heartbeat()
            except StoreUnavailable:
                pause = _RETRY_SECONDS
            except Exception:
                log.exception("the lease of this worker could not be renewed")
            await asyncio.sleep(pause)

    async def _heartbeat(self) -> None:
        store = self.store
        found = await store.heartbeat()
        if self.generation is not None and (not found.is_known or found.generation != self.generation):
            log.error("this worker was taken for dead, or the store has lost its data: its sessions begin anew")
            self.generation = None
            self.on_lost()
            store.new_name()
            found = await store.heartbeat()
        if self.generation is None:
            store.receive_after(found.last_broadcast)
            self.generation, self.last_broadcast, self._heartbeats = found.generation, found.last_broadcast, 0
        if self._heartbeats % _HEARTBEATS_PER_CHECK == 0:
            await self.on_check()
        self._heartbeats += 1
        for dead in found.dead:
            await self._remove(dead)

    async def _remove(self, dead: str) -> None:
        """Fail the requests of a dead worker. Several workers may do so at the same time."""
        log.warning("a worker has died: its requests are answered with errors")
        for session, name, pending in await self.store.unfinished(dead):
            await self.store.fail(session, name, dead, unanswered(pending, _DIED))
        await self.store.remove_worker(dead)

    async def read(self) -> None:
        """Handle messages and broadcasts until cancelled."""
        while True:
            if self.generation is None:
                await asyncio.sleep(_RETRY_SECONDS / 4)
                continue
            try:
                messages, broadcasts = await self.store.receive()
            except Exception as error:
                if not isinstance(error, StoreUnavailable):
                    log.exception("messages of other workers could not be read")
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            for message in messages:
                await self._handle(self.on_message(message))
            for broadcast in broadcasts:
                self.last_broadcast = broadcast.number
                await self._handle(self.on_broadcast(broadcast))

    async def _handle(self, work: Awaitable[None]) -> None:
        try:
            await work
        except StoreUnavailable:
            log.warning("a message of another worker is lost: the store is away")
        except Exception:
            log.exception("a message of another worker is lost")


class Recorder(Link):
    """Link that records the notifications of a broadcast, to pass them on to other processes.

    Args:
        agreed: Agreement of any client of the revision; it is changed to want every notification.

    Attributes:
        told: Notifications and their params.
    """

    def __init__(self, agreed: Negotiated) -> None:
        agreed.log_level, agreed.subscriptions = LEVELS[0], None
        self.negotiated: Negotiated = agreed
        self.told: list[tuple[Notification[Any], Any]] = []

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuse: a broadcast has no client that could respond."""
        raise RuntimeError(f"{method.name}: a broadcast to several processes can only notify")

    async def notify(self, method: Notification[Any], params: object, *, related: RequestId | None = None) -> None:
        """Note a notification."""
        self.told.append((method, params))


async def recorded(
    endpoint: Endpoint, server: Server, tell: Callable[[Any], Awaitable[None]]
) -> list[tuple[str, Notification[Any], Any]]:
    """Return the notifications of a broadcast: the revision, the method and the params of each.

    Args:
        endpoint: Its endpoint.
        server: The server of the broadcast.
        tell: Notifies one client, given its context.
    """
    agreed = Negotiated(server.dispatcher.extended(type(server)))
    agreed.declared["server"] = declared(server, agreed.dispatcher)
    agreed.declared["client"] = {"extensions": {one.id: {} for one in server.extensions}}
    recorder = Recorder(agreed)
    await tell(server.context(RequestScope.of(recorder)))
    found: list[tuple[str, Notification[Any], Any]] = []
    for method, params in recorder.told:
        found.append((server.revision, method, params))
        for bridged in map(endpoint.served, endpoint.dispatchers):
            if bridged is None or isinstance(bridged, Server) or bridged.server is not server:
                continue
            converted = bridged.converted(method, params)
            found += [] if converted is None else [(bridged.dispatcher.revision.name, *converted)]
    return found


class ReadBroadcast(NamedTuple):
    """Broadcast in the types of its revision.

    Attributes:
        number: Number of the broadcast.
        data: The message.
        server: Server of the revision.
        method: The notification.
        params: Its params.
    """

    number: int
    data: bytes
    server: Server
    method: Notification[Any]
    params: Any

    async def notify(self, link: Link) -> None:
        """Send the notification, unless the connection is closed."""
        with suppress(ConnectionClosed):
            await self.server.context(RequestScope.of(link)).notify(self.method, self.params)


@dataclass(eq=False)
class Broadcasts:
    """Receivers of broadcasts at this worker, except shared sessions.

    A worker that ends a subscription in good order stores the number of its last broadcast for a minute. The next
    subscription of the same principal and client with the same filter, at any worker, begins with the broadcasts after
    that number.

    Attributes:
        endpoint: The servers.
        store: Store of the workers.
        worker: This worker.
        spawn: Runs a task beside the worker.
    """

    endpoint: Endpoint
    store: SharedStore
    worker: Worker
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    _is_loaded: bool = field(default=False, init=False)

    async def load(self) -> None:
        """Import the types of all revisions in a thread, because the first broadcast would stop the event loop."""
        if not self._is_loaded:
            dispatchers = self.endpoint.dispatchers.values()
            await asyncio.to_thread(lambda: [one.methods for one in dispatchers])
            self._is_loaded = True

    async def read(self, broadcast: Broadcast) -> ReadBroadcast | None:
        """Return a broadcast in the types of its revision; None if it is unreadable or its revision is not served."""
        await self.load()
        server = cast(Server | None, self.endpoint.served(broadcast.revision))  # a bridged one has its attributes
        method = None if server is None else self.endpoint.dispatchers[broadcast.revision].methods.get(broadcast.method)
        if server is not None and isinstance(method, Notification):
            with suppress(*UNREADABLE):
                params = jsonrpc.typed_params(method, broadcast.params)
                return ReadBroadcast(broadcast.number, broadcast.data, server, method, params)
        return None

    async def spread(self, found: ReadBroadcast) -> None:
        """Send a broadcast to the subscriptions and local connections of its revision."""
        self.endpoint.clients.broadcasts += 1
        turn = Turn()
        local: list[Link] = []
        for link in self.endpoint.links_of(original(found.server)):
            transport = link.transport if isinstance(link, Session) else None
            if isinstance(link, Subscription):
                if link.told < found.number and not link.is_ending:
                    await self._send(link, found)
                await turn.give_way()
            elif not (isinstance(transport, HttpSession) and transport.store is self.store):
                local.append(link)  # no session of the store; another endpoint of the server has its own
        if local:
            self.spawn(_notify_all(found, local))  # a slow connection delays no other client

    async def _send(self, subscription: Subscription, found: ReadBroadcast) -> None:
        if subscription.negotiated.dispatcher.revision.name == found.server.revision:
            subscription.told = found.number
            await found.notify(subscription)

    def end(self) -> None:
        """End all subscriptions in good order: clients subscribe again and get the broadcasts that they missed."""
        for link in self.endpoint.clients.links:
            link.leave()

    @asynccontextmanager
    async def continued(self, subscription: Subscription, wanted: Any) -> AsyncGenerator[None]:
        """Begin a subscription where the client's previous one ended, and hand it over at its end.

        Args:
            subscription: The subscription.
            wanted: Filter that the client sent.
        """
        name = self._name(subscription, wanted)
        try:
            await self._catch_up(subscription, await self.store.take_over(name))
        except StoreUnavailable:
            log.debug("a subscription begins anew: the store is away")
        subscription.told = max(subscription.told, self.worker.last_broadcast)
        yield
        try:
            await self.store.hand_over(name, subscription.told)
        except StoreUnavailable:
            log.debug("a subscription is not handed over: the store is away")

    async def _catch_up(self, subscription: Subscription, number: int | None) -> None:
        """Queue the broadcasts after a number, up to the last one that this worker has received."""
        if number is None:
            return
        subscription.told = number
        while True:
            known = self.worker.last_broadcast
            for broadcast in await self.store.broadcasts_after(subscription.told):
                found = await self.read(broadcast)
                if found is not None:
                    await self._send(subscription, found)
                subscription.told = broadcast.number
            if self.worker.last_broadcast <= max(known, subscription.told):
                return

    def _name(self, subscription: Subscription, wanted: Any) -> str:
        """Return the name for the handover of a subscription; numbers are valid within one generation only."""
        agreed = subscription.negotiated
        assert agreed is not None
        client = None if agreed.peer_info is None else jsonrpc.plain(agreed.peer_info)
        parts = [self.worker.generation, agreed.dispatcher.revision.name, subscription.origin.principal, client]
        return hashlib.sha256(to_json([*parts, jsonrpc.plain(wanted)])).hexdigest()


async def _notify_all(found: ReadBroadcast, links: list[Link]) -> None:
    """Send a broadcast to connections that belong to this worker alone."""
    async with anyio.create_task_group() as tasks:
        for link in links:
            if link.negotiated.dispatcher.revision.name == found.server.revision:
                tasks.start_soon(found.notify, link)
