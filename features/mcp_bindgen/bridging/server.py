"""Make a server of one revision serve another one, with the lifecycle of that one and the handlers of the first."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Protocol, cast

import anyio

from mcp_bindgen.runtime.era.stateless import ROUND
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Operation
from mcp_bindgen.runtime.protocol.capabilities import declare, declared, is_declared, merge, tree_of
from mcp_bindgen.runtime.protocol.errors import ProtocolError, UnexpectedAnswer
from mcp_bindgen.runtime.protocol.methods import ELICIT, INITIALIZE, LISTEN, SUBSCRIBE, UNSUBSCRIBE, Request
from mcp_bindgen.runtime.protocol.request_scope import RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session import subscriptions
from mcp_bindgen.runtime.session.handlers import Handle, bind_handler
from mcp_bindgen.runtime.session.rounds import asks_for_input

from . import sender
from .bridge import ServerBridge
from .context import BridgedContext, implementation
from .reading import BridgedRoute, params_kind
from .step import NotConvertible

URL_REQUIRED = "URL_ELICITATION_REQUIRED"

_MOST_ROUNDS = 32
_PAUSE = 0.1  # seconds before a handler runs again that asks for nothing
_GRACE = 5.0  # seconds for a server to unsubscribe a client that is gone


class BridgedServer:
    """A server of one revision as a server of another one; the eras and the service see a server like any other.

    Args:
        server: The server.
        wire: The revision that it serves in addition.

    Attributes:
        revision: The name of that revision.
        dispatcher: What is taken in it.
    """

    def __init__(self, server: Any, wire: Revision) -> None:
        self.server = server
        self.revision = wire.name
        self.bridge = ServerBridge(server, server.dispatcher.extended(type(server)), wire)
        self.dispatcher = BridgedDispatcher(self)
        self.audience = server.audience

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)  # instructions, options, limits, the seal of states

    @cached_property
    def context(self) -> type[BridgedContext]:
        """The context of the server's handlers for clients of this revision."""
        own: Any = self.server.context
        made: Any = type(own.__name__, (BridgedContext, own), {"bridge": self.bridge, "__doc__": own.__doc__})
        return cast("type[BridgedContext]", made)

    @property
    def connections(self) -> list[Any]:
        """A context for each client of this revision that can be told something now."""
        return [one for one in self.server.connections if isinstance(one, self.context)]

    @property
    def info(self) -> Any:
        """The introduction of the server, in the types of this revision; `None` where it does not say."""
        own = getattr(self.server, "info", None)
        return own and implementation(self.bridge.wire, jsonrpc.plain(own))

    def agree(self, wanted: Any, ctx: Any) -> Any:
        """Return what a client that listens wants: this revision's filter is no matter of the server's."""
        return wanted

    def begin_subscription(self, link: Any) -> None:
        """Do nothing: extensions of the server are not told of in this revision."""

    def operations(self, asked: Sequence[Operation]) -> Sequence[Operation]:
        """Return what is asked for, and what that is in the server's era: who subscribes to a resource, listens."""
        listens = self.bridge.is_stateless and any(method == SUBSCRIBE for method, _ in asked)
        return [*asked, (LISTEN, None)] if listens and (LISTEN, None) not in asked else asked

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return what the server declares beside its handlers, and what it does not tell of.

        What its revision can declare and this one cannot is left out. What its revision can declare too, and it does
        not, is declared as `false`: here it would follow from the handlers alone.
        """
        ours, wire = self.bridge.ours.revision, self.bridge.wire
        known = [set(one.types.ServerCapabilities.model_fields) for one in (ours, wire)]
        more = self.server.extra_capabilities()
        told = {name: value for name, value in more.items() if name not in known[0] - known[1]}
        offers = declared(self.server, self.bridge.ours)
        found = declare("server", wire, self.dispatcher.offered(self), self.server.announces)
        for _, *flag in sorted(wire.flags & ours.flags):
            if is_declared(found, *flag) and not is_declared(offers, *flag):
                told = merge(told, tree_of(flag, False))
        for engine in self.dispatcher.engines:
            told = merge(told, engine.capabilities)
        return told


class BridgedEngine(Protocol):
    """The part of an extension's engine that serves clients of another revision, in which there is no such extension.

    Attributes:
        handlers: Method name -> handler, for params and results of that revision.
        capabilities: What is declared there, beside what follows from these handlers.
    """

    handlers: Mapping[str, Handle]
    capabilities: Mapping[str, Any]


class BridgedDispatcher(Dispatcher):
    """The routes of a revision to the handlers of a server of another one; they are made when they are first used.

    Args:
        bridged: The server of the one made of that of the other.
    """

    def __init__(self, bridged: BridgedServer) -> None:
        super().__init__(bridged.bridge.wire, "server")
        self.bridged = bridged
        self._bridge = bridged.bridge
        self._ours = bridged.bridge.ours

    @cached_property
    def routes(self) -> dict[str, Route]:
        """Method name -> route, for messages."""
        native: Dispatcher = import_module(f"{self.revision.package}.dispatcher").SERVER
        own = {name: route for name, route in self._ours.routes.items() if route.is_custom}
        return {**{name: self._bridged(route) for name, route in native.routes.items()}, **own}

    def _bridged(self, route: Route) -> Route:
        name = route.method.name
        ours = self._home(name)
        if ours is None or name in self._taken or not isinstance(route.method, Request):
            return route
        if not self.is_handled(route, self.bridged.server):
            return route
        same_era = self.revision.era is self._ours.revision.era
        kind = params_kind(ours.method.params, route.method.params, same_era=same_era)
        if kind is None or route.method.name == INITIALIZE:
            return route
        return BridgedRoute(route.method, route.handler, ours=ours, kind=kind, bridge=self._bridge)

    def _home(self, name: str) -> Route | None:
        """Return the server's route of a method of core; what its extensions add has no counterpart elsewhere."""
        found = self._ours.routes.get(name)
        return None if found is None or found.method.extension is not None else found

    @cached_property
    def engines(self) -> Sequence[BridgedEngine]:
        """What the server's extensions have to say in this revision."""
        found: Sequence[BridgedEngine] = self._bridge.server.bridged_engines(self)
        return found

    @cached_property
    def _taken(self) -> dict[str, Handle]:
        """The handlers of these, by method name."""
        return {name: handle for engine in self.engines for name, handle in engine.handlers.items()}

    @cached_property
    def _crossing(self) -> dict[str, Handle]:
        """The handlers of messages of this era for a server of the other one, by method name."""
        offers = declared(self._bridge.server, self._ours)
        subscribe = self.revision.methods.get(SUBSCRIBE) or self._ours.revision.methods.get(SUBSCRIBE)
        needed = ("",) if subscribe is None else subscribe.capabilities.get("client", ("", ""))[1:]
        if self.revision.era is self._ours.revision.era or not is_declared(offers, *needed):
            return {}
        if self.revision.era.is_stateless:
            return {LISTEN: self._listen}
        return {SUBSCRIBE: self._subscribe, UNSUBSCRIBE: self._unsubscribe}

    def extended(self, kind: type) -> Dispatcher:
        """Return this dispatcher, which has the server's own methods already."""
        return self

    def is_handled(self, route: Route, target: object) -> bool:
        """Tell whether the server handles the method of a route, or the runtime does for it."""
        name = route.method.name
        ours = self._home(name)
        if route.is_custom or name in self._crossing:
            return True
        if ours is None or ours.method.kind != route.method.kind:
            return name in self._taken
        return self._ours.is_handled(ours, self._bridge.server)

    def handler(self, route: Route, target: object) -> Handle:
        """Return the handler of the server for a route, with conversions.

        Raises:
            MethodNotFound: The server does not handle it.
        """
        name = route.method.name
        if name in self._crossing:
            return self._crossing[name]
        if name in self._taken:
            return self._taken[name]
        server = self._bridge.server
        if route.is_custom:
            return self._ours.handler(route, server)
        return self._converting(route)

    def _converting(self, route: Route) -> Handle:
        """Return the handler of the server for a route of a revision, with conversions."""
        name, server = route.method.name, self._bridge.server
        ours = self._home(name) or route
        work = bind_handler(self._ours, ours, server)
        if name == INITIALIZE:
            return partial(self._initialize, work, ours)
        if not isinstance(route.method, Request):
            handle: Handle = partial(self._take, work, ours)
        else:
            work = self._settled(work, route.method, ours.method)
            typed = isinstance(route, BridgedRoute)
            if not typed:
                work = partial(self._converted, work, ours)
            elif self._speaks_for_itself:
                work = sender.stated(work, self._ours.revision, ours.method)
            handle = self._answered(work, route.method, ours)
        return handle if route.method.params is not None else partial(handle, None)

    # --- for engines of extensions, which answer in this revision themselves ------------------------------------

    def plain(self, name: str) -> Handle:
        """Return the server's handler of a request, for params and results of this revision."""
        native: Dispatcher = import_module(f"{self.revision.package}.dispatcher").SERVER
        return self._converting(native.routes[name])

    def lowered(self, name: str, work: Handle) -> Handle:
        """Return a handler that gives results of the server's revision as one that gives those of this revision."""
        return self._answered(work, self.revision.request(name), self._ours.routes[name])

    # --- from the wire to the handler -------------------------------------------------------------------------

    def raised(self, name: str, params: Any, ctx: Any) -> Any:
        """Return params of this revision as those of the server's, of the same request.

        Raises:
            NotConvertible: The server's revision has no words for them.
            InvalidParams: They are not valid there.
        """
        wire: dict[str, Any] = {} if params is None else jsonrpc.plain(params)
        if self._speaks_for_itself:
            rounds = set(map(wire_name, ROUND))
            wire = {name: value for name, value in wire.items() if name not in rounds}
            wire["_meta"] = sender.meta(self._ours.revision, ctx.negotiated, wire.get("_meta", {}))
        return self._bridge.params_up(self._ours.routes[name], wire, ctx.link)

    async def _take(self, work: Handle, ours: Route, params: Any, ctx: Any) -> None:
        """Have a notification handled; one that the server's revision has no words for is left out."""
        wire: dict[str, Any] = {} if params is None else jsonrpc.plain(params)
        try:
            typed = self._bridge.params_up(ours, wire, ctx.link)
        except ProtocolError as error:
            log.debug("%s is left out: %s", ours.method.name, error)
            return
        await work(typed, ctx)

    async def _converted(self, work: Handle, ours: Route, params: Any, ctx: Any) -> Any:
        """Have a request handled whose params were read with the types of the wire's revision."""
        return await work(self.raised(ours.method.name, params, ctx), ctx)

    @property
    def _speaks_for_itself(self) -> bool:
        """Whether the server wants requests that speak for themselves, and gets others."""
        return self._bridge.is_stateless and not self.revision.era.is_stateless

    # --- from the handler to the wire -------------------------------------------------------------------------

    def _answered(self, work: Handle, method: Request[Any, Any, Any], route: Route) -> Handle:
        """Return a handler whose results and errors are those of the wire's revision."""
        bridge, ours = self._bridge, self._ours.routes[method.name].method
        assert isinstance(ours, Request)
        written = bridge.writer(method, ours)
        handler: Any = getattr(bridge.server.__class__, route.handler)
        in_rounds = _asks(method)
        is_tool = "is_error" in getattr(ours.result, "model_fields", {})
        url_required = self._ours.revision.errors.get(URL_REQUIRED)

        async def answered(params: Any, ctx: Any) -> Any:
            try:
                result = await work(params, ctx)
                if result.__class__ is not ours.result and result is not None:
                    jsonrpc.check_kind(ours, result, handler)
                if in_rounds and asks_for_input(type(result)):
                    return jsonrpc.typed_result(method, jsonrpc.plain(written(result, ctx.link)))
                return written(result, ctx.link)
            except NotConvertible as error:
                if not is_tool:
                    raise
                failed = jsonrpc.typed_result(ours, _failed_tool(error))
                return written(failed, ctx.link)
            except ProtocolError as error:
                if in_rounds and error.code == url_required:
                    await self._visit(ctx, error)
                raise bridge.error(bridge.down, method.name, error) from error.__cause__

        return answered

    def _settled(self, work: Handle, method: Request[Any, Any, Any], ours: Any) -> Handle:
        """Return a handler that asks in its results as one for a revision in which it has to send requests.

        It runs again with the answers until it asks no more; where it does not stop, that is an `UnexpectedAnswer`.
        """
        if _asks(method) or not _asks(ours):
            return work

        async def settled(params: Any, ctx: Any) -> Any:
            result = await work(params, ctx)
            for _ in range(_MOST_ROUNDS):
                if not asks_for_input(type(result)):
                    return result
                questions: dict[str, Any] = result.input_requests or {}
                if not questions:
                    await anyio.sleep(_PAUSE)
                answers: dict[str, Any] = {}
                for key, one in questions.items():
                    asked = self._ours.revision.request(one.method)
                    answers[key] = await ctx.request(asked, getattr(one, "params", None))
                more = {"input_responses": answers or None, "request_state": result.request_state}
                result = await work(params.model_copy(update=more), ctx)
            raise UnexpectedAnswer(ours.name, result)

        return settled

    async def _visit(self, ctx: Any, error: ProtocolError) -> None:
        """Ask the user to visit the pages that an error names, as results do where no error does.

        Who did so once and finds the same error is told of it.
        """
        asked = self._ours.revision.request(ELICIT)
        pages = error.data.get("elicitations") if is_object(error.data) else None
        for number, page in enumerate(pages if is_array(pages) else ()):
            await ctx.ask_by(f"{URL_REQUIRED}#{number}", asked, jsonrpc.typed_params(asked, page))

    async def _initialize(self, work: Handle, ours: Route, params: Any, ctx: Any) -> Any:
        """Let a server answer `initialize` itself; the revision is that of the connection all the same."""
        typed = self._bridge.params_up(ours, jsonrpc.plain(params), ctx.link)
        answer = {**jsonrpc.plain(await work(typed, ctx)), "protocolVersion": self.revision.name}
        return jsonrpc.typed_result(self.revision.request(INITIALIZE), answer)

    # --- subscriptions ----------------------------------------------------------------------------------------

    async def _subscribe(self, params: Any, ctx: Any) -> Any:
        """Let a client hear of a resource, which its era notes: in the server's revision, nobody else need know."""
        return {}

    async def _unsubscribe(self, params: Any, ctx: Any) -> Any:
        return {}

    async def _listen(self, params: Any, ctx: Any) -> Any:
        """Serve a subscription, and subscribe to its resources as clients of the server's revision do."""
        bridged: Any = self.bridged
        offers = declared(bridged, self)
        return await subscriptions.listen(bridged, self.revision, offers, params, ctx, self._follow)

    @asynccontextmanager
    async def _follow(self, subscription: Any, uris: list[str]) -> AsyncGenerator[list[str]]:
        followed: list[str] = []
        try:
            for uri in dict.fromkeys(uris):
                if await self._tell(SUBSCRIBE, uri, subscription):
                    followed.append(uri)
            yield followed
        finally:
            with anyio.move_on_after(_GRACE, shield=True):
                for uri in followed:
                    await self._tell(UNSUBSCRIBE, uri, subscription)

    async def _tell(self, name: str, uri: str, subscription: Any) -> bool:
        """Have the server subscribe a client to a resource, or unsubscribe it; return whether it did."""
        route = self._ours.routes[name]
        if not self._ours.is_handled(route, self._bridge.server):
            return True
        params = jsonrpc.typed_params(route.method, {"uri": uri})
        try:
            await bind_handler(self._ours, route, self._bridge.server)(
                params, self.bridged.context(RequestScope.of(subscription), params)
            )
        except ProtocolError as error:
            log.info("%s %s: %s", name, uri, error)
            return False
        except Exception:
            log.exception("the handler of %s failed", name)
            return False
        return True


def _asks(method: Request[Any, Any, Any]) -> bool:
    return any(asks_for_input(kind) for kind in method.alternatives)


def _failed_tool(error: NotConvertible) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": error.message}], "isError": True}
