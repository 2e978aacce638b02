"""Gateways: servers in front of another server, in its revision, which pass everything on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, ClassVar, Protocol, Unpack, cast

import anyio
from anyio.abc import TaskGroup

from mcp_bindgen.app.optional_features import Addressed
from mcp_bindgen.app.overrides import HasOverrides, OverriddenTools, read_overrides
from mcp_bindgen.app.proxies import check_shared
from mcp_bindgen.app.serving import InProcess
from mcp_bindgen.bridging import missed
from mcp_bindgen.bridging.server import BridgedDispatcher, KeepsHandlers
from mcp_bindgen.extension_abi import extension_of
from mcp_bindgen.host.watch import Watch
from mcp_bindgen.runtime import connect
from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.connecting import TIMEOUT
from mcp_bindgen.runtime.connecting import address as address_of
from mcp_bindgen.runtime.model.base import Model, optional
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import errors, jsonrpc, methods
from mcp_bindgen.runtime.protocol.bridging import BridgedEngine
from mcp_bindgen.runtime.protocol.capabilities import is_declared
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.methods import Method, Notification, RequestMethod
from mcp_bindgen.runtime.protocol.request_scope import Link, Negotiated
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.endpoint import Endpoint, Servers
from mcp_bindgen.runtime.session.rounds import InputRequired, asks_for_input
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.subscriptions import Subscription
from mcp_bindgen.runtime.session.targets import Address, Served, Target

from .calls import ParkedCalls, RelayContext, RelayedCall
from .upstream import Connections, GatewayOptions, Offer, Sender, Upstream

_OWN = frozenset({methods.INITIALIZE, methods.DISCOVER, methods.LISTEN, methods.PING})
"""Requests that the runtime answers."""


class _LevelParams(Protocol):
    level: str


class Relay(KeepsHandlers, Server):
    """Base of the servers of a gateway; it precedes the generated `Server` of the revision.

    Attributes:
        offer: The offer of the server behind the gateway.
        connect: Makes the connections, given their task group.
        upstreams: The connections to the server.
        parked: Calls that wait for an answer of their client.
        max_parked: Maximum number of parked calls.
        parked_seconds: Seconds that a parked call waits.
        tools: The changed tools of the server; `None` if none is changed.
    """

    offer: Offer
    connect: Callable[[TaskGroup], Connections]
    max_parked: ClassVar[int] = 100
    parked_seconds: ClassVar[float] = 600.0
    upstreams: Connections
    parked: ParkedCalls
    tools: OverriddenTools | None = None
    _tasks: TaskGroup

    @cached_property
    def _attached(self) -> set[Link]:
        return set()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Connect to the server while clients are served."""
        self.parked = ParkedCalls(self.max_parked, self.parked_seconds)
        async with background_tasks() as self._tasks:
            self.upstreams = self.connect(self._tasks)
            self._tasks.start_soon(self.upstreams.sweep, self.parked.expire)
            try:
                yield
            finally:
                self.upstreams.stop()

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities of the server, without extensions that need more than the core's messages."""
        return _passed(self.offer.bindings, self.offer.capabilities)

    # --- clients ----------------------------------------------------------------------------------------------

    def arrived(self, link: Link) -> None:
        """Listen before a subscription is acknowledged; a session gets its connection with its first request."""
        self._attached.add(link)
        if isinstance(link, Subscription) and not self._end_if_empty(link):
            upstream = self._of_subscription(link)
            if self.offer.bindings.REVISION.era.is_stateless:
                link.before = partial(self._listen, upstream, link)
            else:
                link.before = partial(self._connected, upstream)

    def _of_subscription(self, link: Subscription) -> Upstream:
        """Return the connection of a subscription, which may follow resources before it begins."""
        found = self.upstreams.of_link(link)
        if found is None:
            found = self.upstreams.begin(link, self._sender(link.negotiated, link.origin.principal))
            server = cast(Endpoint, link.endpoint).server(link.negotiated.dispatcher)
            found.link, found.context = link, cast("type[RelayContext]", server.context)
        return found

    async def _listen(self, upstream: Upstream, link: Subscription) -> None:
        """Listen for a subscription, which gets the filter that the server agrees to."""
        agreed = await upstream.listen({name: value for name, value in link.agreed if value})
        if agreed is not None:
            former: Model = link.agreed
            link.agree(former.model_validate(jsonrpc.plain(agreed)))
            self._end_if_empty(link)

    def _end_if_empty(self, link: Subscription) -> bool:
        """End the connection of a subscription if the server refuses all that its client wants; return whether."""
        is_empty = not any(value for _, value in link.agreed)
        if is_empty:
            self.upstreams.end(link)
        return is_empty

    async def _connected(self, upstream: Upstream) -> None:
        with suppress(ProtocolError):  # it is in the log
            await upstream.client()

    def _sender(self, agreed: Negotiated, principal: str | None, info: object = None) -> Sender:
        return Sender(principal, _passed(self.offer.bindings, agreed.declared["client"]), info)

    def left(self, link: Link) -> None:
        """End the connection of a client."""
        self._attached.discard(link)
        self.upstreams.end(link)

    def upstream_of(self, ctx: RelayContext) -> Upstream | None:
        """Return the connection of the session of a request; `None` for a request without a session."""
        link = ctx.link
        if isinstance(link, Subscription):
            return self._of_subscription(link)
        if link not in self._attached:
            return None
        known = self.upstreams.of_link(link)
        if known is not None:
            return known
        made = self.upstreams.begin(link, self._sender(ctx.agreed, ctx.origin.principal, ctx.peer_info))
        if not ctx.agreed.dispatcher.revision.era.is_stateless:
            made.link, made.context = link, type(ctx)
            made.listen_to_all()
        return made

    # --- from the client to the server ------------------------------------------------------------------------

    async def pass_on(self, method: RequestMethod[Any, Any, Any], params: object, ctx: RelayContext) -> Any:
        """Return the answer of the server to a request."""
        may_ask = not self.offer.bindings.REVISION.era.is_stateless and _can_be_asked(ctx, method.name)
        owner = (ctx.origin.principal, method.name, _target(params)) if may_ask else ()
        call = self.parked.take(ctx.answered_keys(), owner) if may_ask else None
        if call is not None:
            call.ctx = ctx
            return await self._answered(call, ctx, owner)
        own = self.upstream_of(ctx)
        upstream = own or self.upstreams.borrow(self._sender(ctx.agreed, ctx.origin.principal, ctx.peer_info))

        def release() -> None:
            if own is None:
                self.upstreams.give_back(upstream)

        call = RelayedCall(ctx, lambda call: upstream.request(method, params, call, ctx), release)
        if not may_ask or not upstream.sender.capabilities:
            return await call.directly()
        call.may_ask = True
        self._tasks.start_soon(call.run)
        return await self._answered(call, ctx, owner)

    async def _answered(self, call: RelayedCall, ctx: RelayContext, owner: tuple[Any, ...]) -> Any:
        """Pass questions of the server on until it has answered."""
        is_parked = False
        try:
            while (question := await call.next_question()) is not None:
                try:
                    question.settle(await ctx.put(question.key, question.method, question.params))
                except (ProtocolError, errors.CapabilityMissing, errors.NotAnswered) as error:
                    refusal = error if isinstance(error, ProtocolError) else ProtocolError(-32600, str(error))
                    question.settle(error=refusal)
                except Exception as error:
                    question.settle(error=error)
                    raise
                except InputRequired:
                    self.parked.park(question.key, call, owner)
                    is_parked = True
                    raise
            return call.result()
        except BaseException:
            if not is_parked:
                call.cancel()
            raise

    async def follow(self, params: Addressed, ctx: RelayContext) -> Mapping[str, object]:
        """Subscribe to a resource; raise `SessionRequired` for a request without a session."""
        upstream = self.upstream_of(ctx)
        if upstream is None:
            raise errors.SessionRequired(methods.SUBSCRIBE)
        try:
            await upstream.follow(params.uri)
        except anyio.get_cancelled_exc_class():  # the client has disconnected
            self._release(ctx.link)
            raise
        return {}

    async def leave(self, params: Addressed, ctx: RelayContext) -> Mapping[str, object]:
        """End the subscription to a resource, and the connection of a subscription that is over."""
        upstream = self.upstreams.of_link(ctx.link)
        if upstream is not None:
            await upstream.leave(params.uri)
            self._release(ctx.link)
        return {}

    def _release(self, link: Link) -> None:
        """End the connection of a subscription that has not begun, or is over."""
        if isinstance(link, Subscription) and link not in self._attached:
            self.upstreams.end(link)

    async def tell(self, method: Notification[Any], params: object, ctx: RelayContext) -> None:
        """Pass a notification of a client on."""
        upstream = self.upstream_of(ctx)
        if upstream is None:
            return
        if method.name == methods.INITIALIZED:
            self._tasks.start_soon(self._connected, upstream)
        else:
            await upstream.notify(method, params)

    def bridged_engines(self, bridge: BridgedDispatcher) -> Sequence[BridgedEngine]:
        """Return the handlers of subscriptions of stateful clients to a stateless server."""
        found = super().bridged_engines(bridge)
        is_stateless = self.offer.bindings.REVISION.era.is_stateless
        if not is_stateless or bridge.revision.era.is_stateless or methods.SUBSCRIBE not in bridge.revision.methods:
            return found
        if not is_declared(self.offer.capabilities, "resources", "subscribe"):
            return found
        return [*found, BridgedEngine({methods.SUBSCRIBE: self.follow, methods.UNSUBSCRIBE: self.leave})]


def _target(params: object) -> Any:
    """Return the params of a request that are equal in all of its rounds."""
    return [optional(params, name) for name in ("name", "uri", "arguments")]


def _can_be_asked(ctx: Context, name: str) -> bool:
    """Return True if the client answers questions during a request: in rounds, or by requests."""
    revision = ctx.agreed.dispatcher.revision
    return not revision.era.is_stateless or any(map(asks_for_input, revision.request(name).alternatives))


def _passed(bindings: ModuleType, capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the capabilities of a side without extensions whose messages do not pass."""
    declared = capabilities.get("extensions")
    if not is_object(declared):
        return capabilities
    passive = _passive_extensions(bindings)
    kept = {name: settings for name, settings in declared.items() if name in passive}
    rest = {name: value for name, value in capabilities.items() if name != "extensions"}
    return {**rest, "extensions": kept} if kept else rest


@cache
def _passive_extensions(bindings: ModuleType) -> frozenset[str]:
    """Return the ids of the installed extensions of a revision that add neither requests nor results."""
    folder = Path(str(bindings.__file__)).with_name("extensions")
    names = [module.name for module in iter_modules([str(folder)])]
    found = [module for name in names if (module := extension_of(bindings, name)) is not None]
    silent = (one.EXTENSION for one in found if not one.EXTENSION.methods)
    return frozenset(one.id for one in silent if not any(map(one.answering, bindings.REVISION.methods)))


# --- classes --------------------------------------------------------------------------------------------------


@cache
def _class(bindings: ModuleType, handled: tuple[str, ...], announced: tuple[str, ...]) -> type[Relay]:
    """Return the class of relays in a revision.

    Args:
        bindings: The bindings of the revision.
        handled: The methods to pass on.
        announced: The notifications that the server may send.
    """
    members: dict[str, Any] = {"__doc__": "Pass everything on to the server behind this gateway."}
    members["announces"] = announced
    for name in handled:
        route = bindings.dispatcher.SERVER.routes[name]
        members[route.handler] = _HANDLERS.get(name) or _passing(route.method)
    kind: type[Any] = type("Gateway", (Relay, bindings.Server), members)
    kind.context = type("Context", (RelayContext, bindings.Server.context), {"__doc__": Context.__doc__})
    return kind


def relay(offer: Offer) -> Relay:
    """Return a server that offers the same as the server behind a gateway, in its revision."""
    revision, routes = offer.bindings.REVISION, offer.bindings.dispatcher.SERVER.routes
    own = {*_OWN, revision.cancelled_name, revision.progress_name}
    allowed = (name for name, route in routes.items() if _is_allowed(route.method, "client", offer.capabilities))
    handled = tuple(name for name in allowed if name not in own)
    announced = tuple(name for name, one in revision.methods.items() if _is_allowed(one, "server", offer.capabilities))
    found = _class(offer.bindings, handled, announced)()
    found.offer = offer
    return found


def _is_allowed(method: Method, sender: str, capabilities: Mapping[str, Any]) -> bool:
    """Return whether the server declares the capability that a method needs, if it needs one of a server."""
    path = method.capabilities.get(sender, ())
    return path[:1] != ("server",) or is_declared(capabilities, *path[1:])


def _passing(method: Method) -> Callable[..., Awaitable[Any]]:
    """Return a handler that passes a message on."""

    async def handler(self: Relay, *arguments: Any) -> Any:
        *params, ctx = arguments  # without params if the method has none
        typed = params[0] if params else None
        if isinstance(method, RequestMethod):
            if self.tools is None:
                return await self.pass_on(method, typed, ctx)
            in_results = self.offer.bindings.REVISION.argument_errors_in_results
            send = partial(self.pass_on, method, ctx=ctx)
            return await self.tools.passed(method, typed, send, errors_in_results=in_results)
        return await self.tell(method, typed, ctx)

    return handler


async def _set_level(self: Relay, params: _LevelParams, ctx: RelayContext) -> Mapping[str, object]:
    ctx.link.negotiated.log_level = params.level
    upstream = self.upstream_of(ctx)
    if upstream is not None:
        await upstream.client()
        await upstream.ensure_level(params.level)
    return {}


_HANDLERS: Mapping[str, Callable[..., Awaitable[Any]]] = {
    methods.SET_LEVEL: _set_level,
    methods.SUBSCRIBE: Relay.follow,
    methods.UNSUBSCRIBE: Relay.leave,
}
"""Requests that leave state in the connection."""


class Gateway(InProcess):
    """Server of all revisions in front of any server: `run(Gateway("npx -y @example/server"))`.

    Requests, notifications and errors of both sides are passed on; the bridges convert between revisions. Each session
    has a connection of its own to the server. A lost connection begins again with the next request.

    Args:
        target: A URL, a command line, its words, an entry of an `mcpServers` file or an app.
        options: See `GatewayOptions`.

    Raises:
        BadOverride: A change of a tool is malformed.

    Attributes:
        offer: The offer of the server; `None` before `probe`.
    """

    def __init__(self, target: Target, **options: Unpack[GatewayOptions]) -> None:
        self._place: Address = address_of(target, options.get("headers"), None, options.get("auth"))
        self._target, self._options = target, options
        changes = options.get("tools") or (target.tools if isinstance(target, HasOverrides) else {})
        self._tools = OverriddenTools(read_overrides(changes)) if changes else None
        self.offer: Offer | None = None

    async def probe(self) -> Offer:
        """Connect once to learn the revision and the offer of the server, and return them.

        Raises:
            ConnectionClosed: The server cannot be reached.
            ProtocolError: The server refuses.
            AuthorizationError: The server requires authorization that is not available.
            UnsupportedRevision: The server speaks no known revision.
            BadOverride: A change does not fit the tools of the server.
            ValueError: The server is an app that depends on the tokens of its callers.
        """
        if self.offer is None:
            check_shared(self._target)
            watch = Watch("behind the gateway")
            try:
                async with connect(watch.address(self._place), timeout=self._options.get("timeout", TIMEOUT)) as client:
                    bindings = import_module(client.dispatcher.revision.package)
                    info: dict[str, Any] = {} if client.server_info is None else client.server_info.model_dump()
                    if self._tools is not None:
                        lister: Any = client if is_declared(client.server_capabilities, "tools") else None
                        listed = [jsonrpc.plain(one) async for one in lister.iter_tools()] if lister else []
                        self._tools.all_listed(listed)
                    self.offer = Offer(bindings, client.server_capabilities, info, client.instructions)
            except ConnectionClosed as error:
                raise ConnectionClosed(watch.explained(error, "")) from error
        return self.offer

    def served(self) -> Served:
        """Return the server in the revision of the server behind it; all other revisions are conversions.

        Raises:
            RuntimeError: An event loop runs, and `probe` was not called before.
        """
        offer = self.offer or anyio.run(self.probe)
        found = relay(offer)
        found.info = offer.bindings.types.Implementation.model_validate(offer.info) if offer.info else None
        found.instructions, found.tools = offer.instructions, self._tools
        found.connect = partial(Connections, self._place, offer, self._options)
        return Servers(found)

    def losses(self, revisions: Sequence[str] | None = None) -> Mapping[str, Sequence[str]]:
        """Return revision -> losses of its clients, one sentence for each reason.

        Args:
            revisions: The revisions to serve; by default all.

        Raises:
            ValueError: A revision cannot be served.
        """
        served = self.served()
        server = served.server(served.revisions()[0].name)
        home = server.dispatcher.extended(type(server))
        endpoint = Endpoint([server], revisions)
        offered, own = home.offered(server), server.revision
        return {name: [] if name == own else missed(own, name, offered) for name in endpoint.dispatchers.supported}

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Transport]:
        await self.probe()
        async with super()._connection() as transport:
            yield transport
