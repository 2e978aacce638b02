"""Connections of a gateway to its server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType
from typing import Any, TypedDict

import anyio
from anyio.abc import TaskGroup, TaskStatus
from pydantic import BaseModel

from mcp_bindgen.app.overrides import Overrides
from mcp_bindgen.host.watch import Watch
from mcp_bindgen.runtime import connect
from mcp_bindgen.runtime.connecting import TIMEOUT
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import optional
from mcp_bindgen.runtime.protocol import errors, jsonrpc, methods
from mcp_bindgen.runtime.protocol.capabilities import is_declared, is_offered
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.limits import Options
from mcp_bindgen.runtime.protocol.methods import Method, Notification, RequestMethod, filtered
from mcp_bindgen.runtime.protocol.request_scope import Link, RequestScope
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session.client import Client
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.runtime.session.subscriptions import Subscription
from mcp_bindgen.runtime.session.targets import Address, Auth

from .calls import Question, RelayContext, RelayedCall

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds before connecting again

_EXIT_SECONDS = 2.0  # for the exit code of a process that closed its stdout

UNREACHABLE = (ConnectionClosed, errors.RequestTimeout, AuthorizationError, errors.UnsupportedRevision, OSError)
"""Errors of a server that cannot be reached, or that ended."""


@dataclass(frozen=True)
class Offer:
    """Offer of the server behind a gateway.

    Attributes:
        bindings: Bindings of the revision that it speaks.
        capabilities: Its capabilities, in wire form.
        info: Its `Implementation`, in wire form.
        instructions: Its advice to models.
    """

    bindings: ModuleType
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any]
    instructions: str | None


@dataclass(frozen=True)
class Sender:
    """Client on whose behalf a gateway connects.

    Attributes:
        principal: The principal of its requests; `None` without token.
        capabilities: Its capabilities, in wire form.
        info: Its `Implementation` in the server's revision, or `None`.
    """

    principal: str | None
    capabilities: Mapping[str, Any]
    info: object


class Upstream:
    """Connection to the server for one client at a time. It begins when it is needed, and again if it was lost.

    Args:
        place: Address of the server.
        offer: The offer of the server.
        sender: The client.
        tasks: Task group for the connection.
        timeout: Seconds that connecting may take.

    Attributes:
        calls: The client's requests that the server works on, the newest last.
        link: Link to the client, for notifications that belong to no request; `None` if it has none.
        context: Class of the contexts of that link.
    """

    def __init__(self, place: Address, offer: Offer, sender: Sender, tasks: TaskGroup, timeout: float) -> None:
        self.calls: dict[RelayedCall, None] = {}
        self.link: Link | None = None
        self.context: type[RelayContext] | None = None
        self.sender = sender
        self._watch = Watch("behind the gateway")
        self._place = self._watch.address(place)
        self._offer, self._tasks, self._timeout = offer, tasks, timeout
        self._connecting = anyio.Lock()
        self._scope = anyio.CancelScope()
        self._client: _Client | None = None
        self._level: str | None = None
        self._uris: dict[str, None] = {}
        self._filter: Mapping[str, Any] = {}
        self._listening = anyio.CancelScope()
        self._replacing = anyio.Lock()
        self._listens: anyio.Event | None = None

    # --- the connection ---------------------------------------------------------------------------------------

    async def client(self) -> _Client:
        """Return a connected client of the server's revision.

        Raises:
            ProtocolError: The server cannot be reached; the log has the details.
        """
        if self._open is not None:
            return self._open
        async with self._connecting:
            if self._open is not None:
                return self._open
            is_lost = self._client is not None
            if is_lost:
                log.warning("gateway: %s; connecting again, without the state of the session", self._reason())
            try:
                found: _Client = await self._tasks.start(self._connected)
            except UNREACHABLE as error:
                raise await self.failure(error) from None
            self._client = found
            if is_lost:
                await self._restore()
            return found

    async def _connected(self, *, task_status: TaskStatus[_Client]) -> None:
        is_started = False
        kind = _client_class(self._offer.bindings, _messages(self._offer.bindings, self.sender.capabilities))
        client = kind()
        client.upstream, client.options = self, Options(timeout=None)
        if self.sender.info is not None:
            client.info = self.sender.info
        try:
            async with connect(self._place, client, exactly=True, timeout=self._timeout):
                is_started = True
                task_status.started(client)
                with self._scope:
                    await client.link.closed.wait()
        except Exception as error:
            if not is_started:
                raise
            log.warning("gateway: the connection to the server failed: %s", error)
        if self._keeps_open and not self._scope.cancel_called:
            self._tasks.start_soon(self._reconnect)

    async def _reconnect(self) -> None:
        """Connect again, because the client waits for notifications; pause longer after each failure."""
        pause = _SHORTEST_PAUSE
        while not self._scope.cancel_called:
            await anyio.sleep(pause)
            try:
                await self.client()
                return
            except ProtocolError:
                pause = min(2 * pause, _LONGEST_PAUSE)

    @property
    def _keeps_open(self) -> bool:
        return bool(self._filter or self._uris) or isinstance(self.link, Subscription)

    def stop(self) -> None:
        """End the connection."""
        self._scope.cancel()
        self._listening.cancel()
        for call in self.calls:
            call.cancel()

    @property
    def _open(self) -> _Client | None:
        """The client, if its connection is open."""
        return None if self._client is None or self._client.link.closed.is_set() else self._client

    @property
    def is_alive(self) -> bool:
        """True if the connection is open."""
        return self._open is not None

    def _reason(self) -> str:
        return f"the server ended with {self._watch.exit}" if self._watch.exit else "the server closed the connection"

    async def failure(self, error: BaseException) -> ProtocolError:
        """Return the error for the client; the log has the details."""
        if self._client is not None and not self.is_alive:
            with anyio.move_on_after(_EXIT_SECONDS):
                await self._watch.ended.wait()
        log.warning("gateway: %s", self._watch.explained(error, ""))
        if isinstance(error, AuthorizationError):
            reason = "the server refuses the credentials of the gateway"
        elif isinstance(error, errors.RequestTimeout):
            reason = "the server did not answer in time"
        else:
            reason = self._reason() if self._client is not None else "the server cannot be reached"
        return ProtocolError(errors.INTERNAL_ERROR, f"Gateway: {reason}")

    async def _restore(self) -> None:
        """Send log level and subscriptions again after the connection was lost."""
        level, self._level = self._level, None
        if level is not None:
            await self.ensure_level(level)
        for uri in list(self._uris):
            await self._send(methods.SUBSCRIBE, {"uri": uri})
        if self._filter or (self._uris and self._revision.era.is_stateless):
            await self._listen_if_possible()  # before the next response: later changes are reported

    # --- from the client to the server ------------------------------------------------------------------------

    @property
    def _revision(self) -> Any:
        return self._offer.bindings.REVISION

    async def request(
        self, method: RequestMethod[Any, Any, Any], params: object, call: RelayedCall, ctx: RelayContext
    ) -> Any:
        """Send a request of a client and return the result, of whatever type.

        Raises:
            ProtocolError: The server answered with an error, or cannot be reached.
        """
        self.calls[call] = None
        try:
            client = await self.client()
            if self._listens is not None:
                await self._listens.wait()  # changes after the response are reported
            meta, token = self._meta(ctx, client), ctx.meta.get("progressToken")
            level = ctx.agreed.log_level
            if level is not None:
                await self.ensure_level(level)
            if token is not None:
                client = client.with_options(on_progress=partial(self._progressed, call, token))
            if meta or token is not None:
                params = _with_meta(method, params, meta)
            return await client.request(method, params)
        except UNREACHABLE as error:
            raise await self.failure(error) from None
        finally:
            self.calls.pop(call, None)

    def _meta(self, ctx: RelayContext, client: _Client) -> dict[str, Any]:
        """Return the `_meta` of a request for the server: that of the client, and the members of this connection."""
        keys = self._revision.meta_keys
        own = {key: value for key, value in ctx.meta.items() if key not in keys.values() and key != "progressToken"}
        level = ctx.agreed.log_level
        named = {keys["log_level"]: level} if level is not None and "log_level" in keys else {}
        return {**own, **client.link.meta, **named}

    async def _progressed(self, call: RelayedCall, token: RequestId, progress: BaseModel) -> None:
        if call.ctx is not None:
            with suppress(ConnectionClosed):
                forwarded = progress.model_copy(update={"progress_token": token})
                await call.ctx.notify(self._revision.progress, forwarded)

    async def ensure_level(self, level: str) -> None:
        """Set the log level of a stateful server, unless it is set already."""
        method = self._revision.methods.get(methods.SET_LEVEL)
        if method is None or level == self._level or not is_declared(self._offer.capabilities, "logging"):
            return
        self._level = level
        await self._send(methods.SET_LEVEL, {"level": level})

    async def notify(self, method: Notification[Any], params: object) -> None:
        """Pass a notification of the client on, if the server is connected."""
        if self._open is not None:
            with suppress(ConnectionClosed):
                await self._open.notify(method, params)

    async def _send(self, name: str, wire: Mapping[str, Any]) -> None:
        """Send a request of the gateway's own; a refusal is logged."""
        method: Method | None = self._revision.methods.get(name)
        if isinstance(method, RequestMethod) and self._client is not None:
            try:
                await self._client.request(method, jsonrpc.typed_params(method, dict(wire)))
            except (ProtocolError, *UNREACHABLE) as error:
                log.info("gateway: the server refuses %s: %s", name, error)

    # --- subscriptions ----------------------------------------------------------------------------------------

    async def follow(self, uri: str) -> None:
        """Subscribe to a resource; raise `ProtocolError` if the server refuses or is away."""
        client = await self.client()
        is_new = uri not in self._uris
        self._uris[uri] = None
        try:
            if self._revision.era.is_stateless:
                await self._listen()
            else:
                method = self._revision.request(methods.SUBSCRIBE)
                await client.request(method, jsonrpc.typed_params(method, {"uri": uri}))
        except BaseException as error:
            if is_new:
                self._uris.pop(uri, None)
            if isinstance(error, UNREACHABLE):
                raise await self.failure(error) from None
            raise

    async def leave(self, uri: str) -> None:
        """End the subscription to a resource."""
        self._uris.pop(uri, None)
        if not self.is_alive:
            return
        if self._revision.era.is_stateless:
            self._tasks.start_soon(self._listen_if_possible)
        else:
            await self._send(methods.UNSUBSCRIBE, {"uri": uri})

    async def listen(self, wanted: Mapping[str, Any]) -> Any:
        """Listen to a stateless server, given a filter by field; return the filter that it agrees to, if it does."""
        self._filter = wanted
        try:
            return await self._listen_if_possible() if wanted else None
        finally:
            if self._listens is not None:
                self._listens.set()

    def listen_to_all(self) -> None:
        """Listen to the changes of all lists of a stateless server; a stateful server announces them anyway."""
        found, capabilities = filtered(self._revision.methods), self._offer.capabilities
        self._listens = anyio.Event()
        lists = [(method, filter.member) for method, filter in found if filter.compares is None]
        self._tasks.start_soon(self.listen, {member: True for one, member in lists if is_offered(one, capabilities)})

    async def _listen_if_possible(self) -> Any:
        try:
            return await self._listen()
        except Exception as error:
            log.info("gateway: the server sends no change notifications: %s", error)
            return None

    async def _listen(self) -> Any:
        """Replace the subscription at a stateless server by one with the current filter.

        The former one goes on until the server has acknowledged the new one, and if the server refuses that.
        """
        async with self._replacing:
            resources = [one.member for _, one in filtered(self._revision.methods) if one.compares is not None]
            uris = {member: [*self._uris] for member in resources} if self._uris else {}
            return await self._tasks.start(self._subscribed, {**self._filter, **uris})

    async def _subscribed(self, wanted: Mapping[str, Any], *, task_status: TaskStatus[Any]) -> None:
        client = (await self.client()).with_options(timeout=self._timeout)
        is_acknowledged = False
        with anyio.CancelScope() as scope:
            try:
                async with client.subscribed(self._revision.subscription_filter(**wanted)) as agreed:
                    is_acknowledged = True
                    self._listening.cancel()
                    self._listening = scope
                    task_status.started(agreed)
                    await client.link.closed.wait()
            except Exception as error:
                if not is_acknowledged:
                    raise
                log.info("gateway: the server sends no change notifications: %s", error)

    # --- from the server to the client ------------------------------------------------------------------------

    def _base_context(self) -> RelayContext | None:
        """Return the context of messages that belong to no request; `None` if the client cannot get them."""
        if self.link is None or self.context is None:
            return None
        return self.context(RequestScope.of(self.link))

    async def told(self, method: Notification[Any], params: object) -> None:
        """Pass a notification of the server on."""
        is_change = method.name == methods.UPDATED or method.capabilities.get("server", ()) in self._revision.flags
        newest = None if is_change else next((one.ctx for one in reversed(self.calls) if one.ctx is not None), None)
        ctx = newest or self._base_context()
        if ctx is not None:
            with suppress(ConnectionClosed):
                await ctx.notify(method, params)

    async def asked(self, method: RequestMethod[Any, Any, Any], params: object) -> Any:
        """Pass a question of the server on and return the answer.

        Raises:
            ProtocolError: The client answered with an error, or cannot be asked now.
        """
        call = next((one for one in reversed(self.calls) if one.may_ask), None)
        if call is not None:
            question = Question(method, params)
            call.ask(question)
            return await question.answer
        ctx = self._base_context()
        if ctx is None or not isinstance(self.link, Session):
            reason = "Gateway: the client can only be asked while it waits for a result"
            raise ProtocolError(errors.INTERNAL_ERROR, reason)
        return await ctx.put("", method, params)


def _with_meta(method: RequestMethod[Any, Any, Any], params: object, meta: dict[str, Any]) -> Any:
    """Return typed params with another `_meta`."""
    if isinstance(params, BaseModel) and optional(params, "meta") is not None:
        params = params.model_copy(update={"meta": None})
    wire: dict[str, Any] = {} if params is None else jsonrpc.plain(params)
    return None if method.params is None else jsonrpc.typed_params(method, {**wire, "_meta": meta})


# --- clients --------------------------------------------------------------------------------------------------


class _Client(Client):
    """Base of the clients of a gateway; it precedes the generated `Client` of the revision."""

    upstream: Upstream

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities of the client on whose behalf this one connects."""
        return self.upstream.sender.capabilities


def _messages(bindings: ModuleType, capabilities: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the messages that a server may send to a client with these capabilities."""
    revision, routes = bindings.REVISION, bindings.dispatcher.CLIENT.routes
    own = {methods.PING, methods.ACKNOWLEDGED, revision.cancelled_name, revision.progress_name}
    needed = {name: route.method.capabilities.get("server", ()) for name, route in routes.items() if name not in own}
    allowed = [name for name, path in needed.items() if path[:1] != ("client",) or is_declared(capabilities, *path[1:])]
    return tuple(name for name in allowed if needed[name] or routes[name].method.kind == "notification")


@cache
def _client_class(bindings: ModuleType, messages: tuple[str, ...]) -> type[_Client]:
    """Return the class of clients that pass on messages of a server.

    Args:
        bindings: The bindings of the revision.
        messages: The names of the messages.
    """
    routes: Mapping[str, Route] = bindings.dispatcher.CLIENT.routes

    members: dict[str, Any] = {routes[name].handler: _passing(routes[name].method) for name in messages}
    return type("Client", (_Client, bindings.Client), {**members, "announces": ()})


def _passing(method: Method) -> Callable[..., Awaitable[Any]]:
    """Return a handler that passes a message on."""

    async def handler(self: _Client, *arguments: Any) -> Any:
        *params, _ = arguments  # without params if the method has none
        typed = params[0] if params else None
        if isinstance(method, RequestMethod):
            return await self.upstream.asked(method, typed)
        return await self.upstream.told(method, typed)

    return handler


class GatewayOptions(TypedDict, total=False):
    """Options of a gateway.

    Attributes:
        headers: HTTP headers for a server at a URL.
        auth: Authorizes requests to a URL. Tokens of clients are never passed on.
        timeout: Seconds that connecting to the server may take, 60 by default.
        max_connections: Maximum number of connections to the server, 100 by default; of one principal with a token a
            quarter of it.
        idle_seconds: Seconds after which a connection for requests without a session ends, 300 by default.
        isolated: True to use a connection for one request only, if the request has no session. By default later
            requests of the same principal use it, too; requests without token count as one principal.
        tools: Name of a tool -> its changes for clients, as for `App.mount`; by default those in the entry of a file.
    """

    headers: Mapping[str, str]
    auth: Auth | None
    timeout: float
    max_connections: int
    idle_seconds: float
    isolated: bool
    tools: Overrides


_SWEEP_SECONDS = 15.0
_PARTS = 4
"""Parts of the connections, of which a principal has one."""


@dataclass(eq=False)
class Connections:
    """The connections to the server, each for one client at a time.

    A session, a connection over stdio and a subscription have a connection of their own. Requests of stateless clients
    over HTTP borrow a connection that only earlier requests of the same principal have used. A principal with a token
    has at most a quarter of the connections, so none can use up all of them.

    Attributes:
        place: Address of the server.
        offer: The offer of the server.
        options: Options of the gateway.
        tasks: Task group for the connections.
    """

    place: Address
    offer: Offer
    options: GatewayOptions
    tasks: TaskGroup

    def __post_init__(self) -> None:
        self._limit = self.options.get("max_connections", 100)
        self._idle_seconds = self.options.get("idle_seconds", 300.0)
        self._of_links: dict[int, Upstream] = {}
        self._borrowed: set[Upstream] = set()
        self._idle: dict[Upstream, tuple[str, float]] = {}

    def _open(self, sender: Sender) -> Upstream:
        return Upstream(self.place, self.offer, sender, self.tasks, self.options.get("timeout", TIMEOUT))

    def of_link(self, link: object) -> Upstream | None:
        """Return the connection of a session or subscription, or None."""
        return self._of_links.get(id(link))

    def begin(self, link: object, sender: Sender) -> Upstream:
        """Make the connection of a session or subscription; raise `TooManyRequests` if there are too many."""
        self._make_room(sender.principal)
        made = self._of_links[id(link)] = self._open(sender)
        return made

    def end(self, link: object) -> None:
        """End the connection of a session or subscription."""
        found = self._of_links.pop(id(link), None)
        if found is not None:
            found.stop()

    def borrow(self, sender: Sender) -> Upstream:
        """Return a connection for one request; raise `TooManyRequests` if there are too many.

        It is an idle one of the same principal with the same capabilities, if there is one.
        """
        key = _key(sender)
        found = next((one for one, (owner, _) in reversed(self._idle.items()) if owner == key), None)
        if found is None:
            self._make_room(sender.principal)
            found = self._open(sender)
        self._idle.pop(found, None)
        self._borrowed.add(found)
        return found

    def give_back(self, upstream: Upstream) -> None:
        """Keep a borrowed connection for later requests of its principal."""
        self._borrowed.discard(upstream)
        if self.options.get("isolated") or not upstream.is_alive:
            upstream.stop()
        else:
            self._idle[upstream] = _key(upstream.sender), anyio.current_time()

    def _make_room(self, principal: str | None) -> None:
        """End the oldest idle connection if there are too many, or too many of a principal."""
        used = [*self._of_links.values(), *self._borrowed, *self._idle]
        own = [one for one in used if one.sender.principal == principal]
        is_over = principal is not None and len(own) >= max(1, self._limit // _PARTS)
        if not is_over and len(used) < self._limit:
            return
        oldest = next((one for one in self._idle if not is_over or one in own), None)
        if oldest is None:
            count, whose = (len(own), " of this user") if is_over else (self._limit, "")
            raise errors.TooManyRequests(f"Gateway: {count} connections{whose} to the server are in use")
        del self._idle[oldest]
        oldest.stop()

    async def sweep(self, also: Callable[[], None]) -> None:
        """End unused connections from time to time, and call `also`."""
        while True:
            await anyio.sleep(min(_SWEEP_SECONDS, self._idle_seconds))
            also()
            limit = anyio.current_time() - self._idle_seconds
            for one in [one for one, (_, since) in self._idle.items() if since < limit]:
                del self._idle[one]
                one.stop()

    def stop(self) -> None:
        """End all connections."""
        for one in (*self._of_links.values(), *self._borrowed, *self._idle):
            one.stop()


def _key(sender: Sender) -> str:
    capabilities: Mapping[str, Any] = sender.capabilities
    return json.dumps([sender.principal, capabilities], sort_keys=True)
