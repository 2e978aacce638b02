"""Adapters between the stateful and the stateless era, for methods that only one of the eras has.

Steps convert the methods of both eras. Adapters replace liveness checks, log levels and subscriptions (MCP 2026-07-28,
"Subscriptions"; MCP 2025-11-25, "Resources": Subscriptions, "Logging").
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from anyio.abc import TaskGroup, TaskStatus
from pydantic import BaseModel, ValidationError

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import fields_of, optional, wire_name
from mcp_bindgen.runtime.protocol import errors, jsonrpc, methods
from mcp_bindgen.runtime.protocol.capabilities import is_declared, is_offered
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.methods import Method, Notification, RequestMethod, filtered
from mcp_bindgen.runtime.protocol.request_scope import LEVELS, Negotiated
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.routing import UserHandler
from mcp_bindgen.runtime.protocol.stateless import ROUND
from mcp_bindgen.runtime.protocol.uris import followed_key
from mcp_bindgen.runtime.session.client import Client

from .converter import implementation, plain

StandIn = Callable[[dict[str, Any], Client], Awaitable[dict[str, Any]]]
"""Answers a request, given its params in wire form and the wire client with its options; returns the wire form."""

_UNSUBSCRIBE_SECONDS = 1.0


@asynccontextmanager
async def following(
    uris: Iterable[str],
    subscribe: Callable[[str], Awaitable[bool]],
    unsubscribe: Callable[[str], Awaitable[object]],
    unsubscribe_seconds: float,
    changing: anyio.Lock | None = None,
) -> AsyncGenerator[list[str]]:
    """Subscribe to resources while the block lasts; yield those for which `subscribe` returns True.

    `subscribe` holds the lock, and may have succeeded although it is cancelled.
    """
    followed: list[str] = []
    try:
        for uri in dict.fromkeys(uris):
            async with changing or anyio.Lock():
                followed.append(uri)
                if not await subscribe(uri):
                    followed.remove(uri)
        yield followed
    finally:
        with anyio.move_on_after(unsubscribe_seconds, shield=True):
            for uri in followed:
                await unsubscribe(uri)


# --- clients --------------------------------------------------------------------------------------------------


class EraAdapter:
    """Adapter of a client to the era of its connection; this class is for two revisions of the same era.

    Args:
        home: The client's revision.
        wire_client: The client of the wire revision that speaks for it.

    Attributes:
        answers: Method -> function that answers it instead of the server.
    """

    def __init__(self, home: Revision, wire_client: Client) -> None:
        self.answers: Mapping[str, StandIn] = {}
        self._home, self._wire_client = home, wire_client
        self._wire = wire_client.dispatcher.revision
        self._changing = anyio.Lock()

    def start(self) -> None:
        """Begin after the handshake or discovery."""

    async def adapt(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Return the `_meta` of a request as the wire revision needs it."""
        return {**meta, **self._wire_client.link.meta}

    def is_wanted(self, method: Method, wire: dict[str, Any]) -> bool:
        """Return True if the client wants a notification: by default, all that its connection receives."""
        return True

    @asynccontextmanager
    async def subscribed(self, wanted: BaseModel) -> AsyncGenerator[BaseModel]:
        """Subscribe as the client's era does; raise `MethodNotFound` if it has no subscriptions."""
        self._home.request(methods.LISTEN)
        async with self._wire_client.subscribed(self._wire.subscription_filter.model_validate(plain(wanted))) as agreed:
            yield self._home.subscription_filter.model_validate(plain(agreed))


class StatefulClient(EraAdapter):
    """Adapter of a stateful client to a stateless server: it listens all the time, with one subscription.

    Args:
        home: The client's revision.
        wire_client: The client of the wire revision that speaks for it.
        tasks: The task group of the subscription.
    """

    def __init__(self, home: Revision, wire_client: Client, tasks: TaskGroup) -> None:
        super().__init__(home, wire_client)
        self._tasks = tasks
        self._uris: dict[str, str] = {}  # canonical form -> form of the first request
        self._scope: anyio.CancelScope | None = None
        self._ended = anyio.Event()
        self.answers: Mapping[str, StandIn] = {
            methods.PING: self._ping,
            methods.SET_LEVEL: self._set_level,
            methods.SUBSCRIBE: self._subscribe,
            methods.UNSUBSCRIBE: self._unsubscribe,
        }

    def start(self) -> None:
        """Request all log messages and list changes: a stateful server sends them to every client."""
        log_message = self._wire.log
        if log_message and log_message.name in self._wire_client.dispatcher.offered(self._wire_client):
            self._set_log_level(LEVELS[0])
        if self._wanted():
            self._tasks.start_soon(self._start)

    async def _start(self) -> None:
        try:
            async with self._changing:
                if self._scope is None:  # the client has not subscribed to a resource meanwhile
                    await self._replace_subscription()
        except (ProtocolError, ConnectionClosed, errors.RequestTimeout, errors.AuthorizationError) as error:
            log.info("the server sends no change notifications: %s", error)

    async def _ping(self, wire: dict[str, Any], client: Client) -> dict[str, Any]:
        """Send `server/discover`, the simplest request of the stateless era."""
        method = self._wire.request(methods.DISCOVER)
        params = jsonrpc.typed_params(method, {"_meta": dict(client.link.meta)})
        await client.with_options(fresh=True).call(method, params)
        return {}

    async def _set_level(self, wire: dict[str, Any], client: Client) -> dict[str, Any]:
        self._set_log_level(wire["level"])
        return {}

    def _set_log_level(self, level: str) -> None:
        """Name the level in each request from now on."""
        link = self._wire_client.link
        link.meta = {**link.meta, self._wire.meta_keys["log_level"]: level}

    async def _subscribe(self, wire: dict[str, Any], client: Client) -> dict[str, Any]:
        key = followed_key(wire["uri"])
        async with self._changing:
            is_known = key in self._uris
            self._uris.setdefault(key, wire["uri"])
            try:
                agreed = await self._replace_subscription()
            except BaseException:
                if not is_known:
                    del self._uris[key]
                raise
            if key not in map(followed_key, agreed or ()):
                del self._uris[key]
                problem = {"path": "params.uri", "problem": "the server does not agree to it"}
                raise errors.InvalidParams(methods.SUBSCRIBE, [problem])
        return {}

    async def _unsubscribe(self, wire: dict[str, Any], client: Client) -> dict[str, Any]:
        async with self._changing:
            if self._uris.pop(followed_key(wire["uri"]), None):
                await self._replace_subscription()
        return {}

    def _wanted(self) -> dict[str, Any]:
        """Return the filter of the subscription, by field."""
        wanted: dict[str, Any] = {}
        for method, filter in filtered(self._wire.methods):
            if method.name in self._home.methods and is_offered(method, self._wire_client.server_capabilities):
                value = True if filter.compares is None else list(self._uris.values())
                if value:
                    wanted[filter.member] = value
        return wanted

    async def _replace_subscription(self) -> list[str] | None:
        """Replace the subscription by one with the current filter; return the resources that the server agreed to."""
        former, ended, agreed = self._scope, self._ended, None
        wanted = self._wanted()
        self._scope, self._ended = None, anyio.Event()
        if wanted:
            self._scope = anyio.CancelScope()
            kind = self._wire.subscription_filter
            try:
                agreed = await self._tasks.start(self._listen, kind(**wanted), self._scope, self._ended)
            except BaseException:
                self._scope, self._ended = former, ended
                raise
        if former is not None:  # this order loses no notification
            former.cancel()
            await ended.wait()
        resources: list[str] | None = optional(agreed, self._wire.resources_member)
        return resources

    async def _listen(
        self, wanted: BaseModel, scope: anyio.CancelScope, ended: anyio.Event, *, task_status: TaskStatus[Any]
    ) -> None:
        is_started = False
        try:
            with scope:
                async with self._wire_client.subscribed(wanted) as agreed:
                    is_started = True
                    task_status.started(agreed)
                    await anyio.sleep_forever()
        except errors.AuthorizationError as error:
            if not is_started:
                raise
            log.warning("the server sends no change notifications any more: %s", error)
        finally:
            ended.set()


class StatelessClient(EraAdapter):
    """Adapter of a stateless client to a stateful server: notifications without a subscription are dropped.

    Args:
        home: The client's revision.
        wire_client: The client of the wire revision that speaks for it.
    """

    def __init__(self, home: Revision, wire_client: Client) -> None:
        super().__init__(home, wire_client)
        self._open: list[dict[str, bool | frozenset[str]]] = []
        self._uris: dict[str, list[str]] = {}  # canonical form -> forms of the subscriptions
        self._level: str | None = None

    async def adapt(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Return the `_meta` without members that belong to the connection; send the log level if it changed."""
        level = meta.get(self._home.meta_keys.get("log_level", ""))
        if level is not None and level != self._level and methods.SET_LEVEL in self._wire.methods:
            method = self._wire.request(methods.SET_LEVEL)
            if is_declared(self._wire_client.server_capabilities, *method.capabilities["client"][1:]):
                await self._send_level(level)
        keys = self._home.meta_keys.values()
        return {key: value for key, value in meta.items() if key not in keys}

    def is_wanted(self, method: Method, wire: dict[str, Any]) -> bool:
        """Return True if a subscription asks for a notification."""
        ours = self._home.methods.get(method.name)
        if not isinstance(ours, Notification) or ours.filter is None:
            return True
        params = None if ours.filter.compares is None else jsonrpc.typed_params(ours, wire)
        return any(ours.filter.asks_for(one[ours.filter.member], params) for one in self._open)

    @asynccontextmanager
    async def subscribed(self, wanted: BaseModel) -> AsyncGenerator[BaseModel]:
        """Subscribe to each resource, and let through the list changes that the server sends to every client."""
        agreed: dict[str, Any] = {}
        for method, filter in filtered(self._home.methods):
            value = getattr(wanted, filter.member)
            known = self._wire.methods.get(method.name)
            if value and known is not None and is_offered(known, self._wire_client.server_capabilities):
                agreed[filter.member] = value
        uris = agreed.get(self._home.resources_member, ())
        async with following(uris, self._follow, self._leave, _UNSUBSCRIBE_SECONDS, self._changing) as followed:
            if uris:
                agreed[self._home.resources_member] = followed
            understood = type(wanted)(**agreed)
            index = {filter.member: filter.index(understood) for _, filter in filtered(self._home.methods)}
            self._open.append(index)
            try:
                yield understood
            finally:
                self._open = [one for one in self._open if one is not index]

    async def _send_level(self, level: str) -> None:
        """Send the log level to the server; a level that it refuses is not sent again."""
        method = self._wire.request(methods.SET_LEVEL)
        self._level = level
        try:
            await self._wire_client.call(method, jsonrpc.typed_params(method, {"level": level}))
        except ProtocolError as error:
            log.info("the server refuses the log level: %s", error)
        except BaseException:
            self._level = None
            raise

    async def _follow(self, uri: str) -> bool:
        """Subscribe to a resource, unless the client follows it already; return True if the server agrees."""
        key = followed_key(uri)
        forms = self._uris.setdefault(key, [])
        forms.append(uri)
        if len(forms) == 1 and not await self._send(methods.SUBSCRIBE, uri):
            del self._uris[key]
            return False
        return True

    async def _leave(self, uri: str) -> None:
        """Unsubscribe from a resource with the last subscription to it."""
        key = followed_key(uri)
        async with self._changing:
            first = self._uris[key].pop()  # the form of the first request, if this is the last one
            if not self._uris[key]:
                del self._uris[key]
                if not self._wire_client.link.closed.is_set():
                    with suppress(ConnectionClosed, errors.RequestTimeout):
                        await self._send(methods.UNSUBSCRIBE, first)

    async def _send(self, name: str, uri: str) -> bool:
        method = self._wire.request(name)
        try:
            await self._wire_client.call(method, jsonrpc.typed_params(method, {"uri": uri}))
        except ProtocolError as error:
            log.info("%s %s: %s", name, uri, error)
            return False
        return True


def era_adapter(home: Revision, wire_client: Client, tasks: TaskGroup) -> EraAdapter:
    """Return the adapter between the eras of a client and its connection.

    Args:
        home: The client's revision.
        wire_client: The client of the wire revision that speaks for it.
        tasks: The task group of subscriptions, which lasts as long as the connection.
    """
    if home.era.is_stateless == wire_client.dispatcher.revision.era.is_stateless:
        return EraAdapter(home, wire_client)
    return StatelessClient(home, wire_client) if home.era.is_stateless else StatefulClient(home, wire_client, tasks)


# --- stateless servers behind stateful connections ------------------------------------------------------------


def with_sender(work: UserHandler, revision: Revision, method: RequestMethod[Any, Any, Any]) -> UserHandler:
    """Return a handler for requests of the stateful era, given one of the stateless era.

    The `_meta` describes the client as the connection knows it. Members of rounds are dropped: a stateful client that
    sends them would forge the state that the server signed.

    Args:
        work: The handler.
        revision: The revision of the handler.
        method: The method of the handler.
    """
    kind: Any = fields_of(method.params)["meta"].annotation
    known: WeakKeyDictionary[Negotiated, tuple[str | None, Any]] = WeakKeyDictionary()

    async def handle(params: Any, ctx: Any) -> Any:
        for name in ROUND:
            if optional(params, name) is not None:
                setattr(params, name, None)
        agreed = ctx.negotiated
        level, meta = known.get(agreed, (None, None))
        if params.meta is not None:
            meta = _fitting(kind, sender_meta(revision, agreed, plain(params.meta)))
        elif meta is None or level != agreed.log_level:
            meta = _fitting(kind, sender_meta(revision, agreed, {}))
            known[agreed] = agreed.log_level, meta
        params.__dict__["meta"] = meta  # without pydantic's detour
        params.model_fields_set.add("meta")
        return await work(params, ctx)

    return handle


def without_rounds(wire: dict[str, Any]) -> dict[str, Any]:
    """Return params in wire form without the members of rounds."""
    members = set(map(wire_name, ROUND))
    return {name: value for name, value in wire.items() if name not in members}


def sender_meta(revision: Revision, agreed: Negotiated, meta: dict[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of a stateless request: the `_meta` of a stateful request with the facts of its connection.

    Args:
        revision: The stateless revision.
        agreed: The facts of the connection.
        meta: The `_meta` of the stateful request.
    """
    capabilities = revision.types.ClientCapabilities
    client = implementation(agreed.dispatcher.revision, revision, agreed.peer_info)
    declared = agreed.declared["client"].items()
    known = {name: value for name, value in declared if _fits(capabilities, {name: value})}
    facts = {"protocol_version": revision.name, "client_info": client and plain(client), "client_capabilities": known}
    facts["log_level"] = agreed.log_level
    keys = revision.meta_keys
    own = {name: value for name, value in meta.items() if name not in keys.values()}
    return own | {keys[name]: value for name, value in facts.items() if name in keys and value is not None}


def _fitting(kind: type[BaseModel], wire: dict[str, Any]) -> BaseModel:
    """Return a `_meta` without the members that have another type in the revision."""
    try:
        return kind.model_validate(wire)
    except ValidationError as error:
        invalid = {one["loc"][0] for one in error.errors()}
        return kind.model_validate({name: value for name, value in wire.items() if name not in invalid})


def _fits(kind: type[BaseModel], wire: dict[str, Any]) -> bool:
    try:
        kind.model_validate(wire)
    except ValueError:
        return False
    return True
