"""Servers of one revision as servers of another: the routes and lifecycle of that, the handlers of the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from importlib import import_module
from typing import Any, ClassVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic_core import to_json

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import Model, fields_of, optional, wire_name
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.model.scalars import Json
from mcp_bindgen.runtime.model.validation import problems
from mcp_bindgen.runtime.protocol import jsonrpc, methods
from mcp_bindgen.runtime.protocol.access import Operation
from mcp_bindgen.runtime.protocol.bridging import BridgedEngine
from mcp_bindgen.runtime.protocol.capabilities import declare, declared, is_declared, merge, missing, tree_of
from mcp_bindgen.runtime.protocol.envelope import parse
from mcp_bindgen.runtime.protocol.errors import CapabilityMissing, InvalidParams, ProtocolError
from mcp_bindgen.runtime.protocol.methods import Method, Notification, RequestMethod
from mcp_bindgen.runtime.protocol.request_scope import Link, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route, UserHandler, message_reader
from mcp_bindgen.runtime.protocol.stateless import ROUND
from mcp_bindgen.runtime.session import subscriptions
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.rounds import asks_for_input, settle_rounds
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.runtime.session.subscriptions import Subscription

from .chain import LossReport, NotConvertible
from .converter import Bridge, implementation, plain
from .era_adapter import following, sender_meta, with_sender, without_rounds


class KeepsHandlers:
    """Mixin of servers whose handlers go on where they asked, although the client answers in another request."""


class BridgedContext(Context):
    """Mixin before the generated context of a server's revision.

    The handler sees everything in its own revision, and its messages are converted.

    Attributes:
        bridge: The bridge between the two revisions.
        server: The server that the user wrote.
    """

    bridge: ClassVar[Bridge]
    server: ClassVar[Server]

    @property
    def _handler_revision(self) -> Revision:
        return self.bridge.home.revision

    @property
    def _losses(self) -> LossReport:
        return self.bridge.losses(self.link)

    @property
    def session(self) -> Session:
        """The connection, or the subscription in its place for stateless clients."""
        return cast(Session, self.link) if isinstance(self.link, Subscription) else super().session

    @property
    def peer_info(self) -> Any:
        """The `Implementation` with which the client introduced itself, or None."""
        return implementation(self.bridge.wire, self._handler_revision, super().peer_info)

    def check(self, method: Method, params: object) -> None:
        """Raise `CapabilityMissing` if a method, or these params of it, need a capability that is not declared."""
        agreed = self.negotiated
        if agreed is not None:
            capability = missing(method, self._handler_revision, agreed.dispatcher.role, agreed.declared, params)
            if capability is not None:
                raise agreed.missing_capability_error(method.name, capability)

    async def _ask(self, key: str | None, method: RequestMethod[Any, Any, Any], params: object) -> Any:
        bridge, losses = self.bridge, self._losses
        theirs = bridge.outgoing.counterpart(method)
        if theirs is method:
            return await super()._ask(key, method, params)
        assert isinstance(theirs, RequestMethod)
        if theirs.carrier == "embedded":
            if self._questions is None:
                raise NotConvertible(method.name, "the handler cannot ask: its request cannot be answered in rounds")
            if not self._handler_revision.era.is_stateless and not isinstance(self.server, KeepsHandlers):
                reason = "a handler that asks runs again from its beginning when it is answered"
                bridge.losses().record(type(self.server).__name__, reason)
        try:
            answer = await super()._ask(key, theirs, bridge.outgoing.params(theirs, plain(params), losses))
        except NotConvertible as error:
            if error.capability is not None:
                raise CapabilityMissing(method.name, error.capability.split(".")) from error
            raise
        except ProtocolError as error:
            raise bridge.incoming.error(method.name, error) from error.__cause__
        return bridge.incoming.result(method, plain(answer), losses, params)

    async def notify(self, method: Notification[Any], params: object) -> None:
        """Send a notification like `Context.notify`; leave it out if the client's revision cannot express it."""
        try:
            self.bridge.outgoing.counterpart(method)
        except NotConvertible as error:
            self._losses.record(error.place, error.reason)
        else:
            await super().notify(method, params)

    async def _tell(self, method: Notification[Any], params: object) -> None:
        try:
            theirs, converted = self.bridge.outgoing.notification(method, params, self._losses)
        except NotConvertible as error:
            self._losses.record(error.place, error.reason)
            return
        if theirs is method or theirs.filter is None or isinstance(self.link, Subscription):
            await super()._tell(theirs, converted)
            return
        for link in self.server.audience:  # a client that asks and listens does so in two requests
            if isinstance(link, Subscription) and self._is_same_client(link):
                await link.notify(theirs, converted)

    def _is_same_client(self, link: Subscription) -> bool:
        """Return True if a subscription is of the principal that sent this request."""
        is_bridged = link.negotiated.dispatcher.revision is self.bridge.wire
        return is_bridged and self.origin.principal == link.origin.principal


@cache
def asking(home: Revision, wire: Revision) -> type[BridgedContext]:
    """Return the class of contexts that ask a client of `wire` in the types of `home`."""
    dispatcher: Dispatcher = import_module(f"{home.package}.dispatcher").SERVER
    members = {"bridge": Bridge(dispatcher, wire), "server": KeepsHandlers()}  # its author knows the revision
    return type("Context", (BridgedContext,), members)


_ERA_FIELDS = ("meta", *ROUND)  # of params: the metadata of a request, and the state of its rounds


@dataclass(frozen=True, eq=False, kw_only=True)
class BridgedRoute(Route):
    """Route of a request of the wire revision to the handler of another revision.

    Attributes:
        kind: The type that params are read with; see `params_kind`.
        bridge: The bridge between the two revisions.
    """

    kind: type[BaseModel]
    bridge: Bridge

    @cached_property
    def read_message(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Read a whole message in one pass, or return None if its params may need conversion."""
        if self.keeps_params:
            return self._native.read_message
        read = message_reader(self.method, self.kind)
        conversion = self.bridge.incoming.chain.params(self.method.name)
        if conversion is None:
            return read
        return lambda data: None if conversion.may_apply_to_any(data) else read(data)

    @cached_property
    def _reader(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.kind)

    @cached_property
    def keeps_params(self) -> bool:
        """True if the handler converts the params: the conversion of its result reads them as the client sent them."""
        results = self.bridge.outgoing.chain.results(self.method.name)
        return results is not None and results.reads_params

    @cached_property
    def _native(self) -> Route:
        return Route(self.method, self.handler)

    @cached_property
    def _era_members(self) -> list[str]:
        """The members that belong to the era of the wire revision, and are not converted."""
        known: Mapping[str, object] = {} if self.bridge.same_era else fields_of(self.method.params)
        return [wire_name(name) for name in _ERA_FIELDS if name in known]

    def read(self, data: bytes | str | None) -> Any:
        """Read the typed params of a message. Errors of the wire revision come first.

        Raises:
            InvalidParams: They are not valid.
            NotConvertible: The server's revision cannot express them.
        """
        native = self._native.read(data)
        if self.keeps_params:
            return native
        wire: Any = {} if data is None else parse(data if isinstance(data, bytes) else data.encode())
        kept = {name: wire.pop(name) for name in self._era_members if name in wire}
        incoming, name = self.bridge.incoming, self.method.name
        converted = incoming.convert("params", name, wire, self.bridge.losses())
        return incoming.read("params", name, converted, lambda wire: self._read({**wire, **kept}))

    def _read(self, wire: dict[str, Any]) -> Any:
        data = to_json(wire)
        try:
            return self._reader.validate_json(data)
        except ValidationError as error:
            raise InvalidParams(self.method.name, problems(error, "params", data)) from None


@cache
def params_kind(ours: object, theirs: object, *, same_era: bool) -> type[BaseModel] | None:
    """Return the type that params of the wire revision are read with; None if they are no objects with fields.

    Across eras, `_meta` and the members of rounds belong to the wire revision.

    Args:
        ours: The type of the params in the server's revision.
        theirs: Their type in the wire revision.
        same_era: True if both revisions are of the same era.
    """
    if not isinstance(ours, type) or not issubclass(ours, Model):
        return None
    if not isinstance(theirs, type) or not issubclass(theirs, Model):
        return None
    if same_era:
        return ours
    fields: dict[str, Any] = {"meta": (dict[str, Json] | None, None)}
    for name in _ERA_FIELDS:
        if name in theirs.model_fields:
            field = copy(theirs.model_fields[name])
            fields[name] = (field.annotation, field)
    return create_model(ours.__name__, __base__=ours, __module__=ours.__module__, **fields)


_URL_REQUIRED = "URL_ELICITATION_REQUIRED"
_UNSUBSCRIBE_SECONDS = 5.0


class BridgedServer:
    """Server of another revision, made of a server; the eras and the service use it like any server.

    Args:
        server: The server.
        wire: The revision that it serves in addition.

    Attributes:
        server: The server.
        revision: The name of the additional revision.
        bridge: The bridge between the two revisions.
        dispatcher: The routes of the additional revision.
    """

    def __init__(self, server: Server, wire: Revision) -> None:
        self.server = server
        self.revision: str = wire.name
        self.bridge: Bridge = Bridge(server.dispatcher.extended(type(server)), wire)
        self.dispatcher: BridgedDispatcher = BridgedDispatcher(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)  # instructions, options, limits, the audience, the signer of request states

    @cached_property
    def context(self) -> type[BridgedContext]:
        """The class of the contexts of the server's handlers for clients of this revision."""
        own: Any = self.server.context
        members = {"bridge": self.bridge, "server": self.server, "__doc__": own.__doc__}
        return cast("type[BridgedContext]", type(own.__name__, (BridgedContext, own), members))

    @property
    def info(self) -> Any:
        """The `Implementation` of the server in the types of this revision, or None."""
        return implementation(self.bridge.home.revision, self.bridge.wire, self.server.info)

    def agree(self, wanted: object, ctx: Context) -> Any:
        """Return the filter of a client unchanged: the server does not know filters of this revision."""
        return wanted

    def begin_subscription(self, link: Link) -> None:
        """Do nothing: extensions of the server do not apply in this revision."""

    def operations(self, asked: Sequence[Operation]) -> Sequence[Operation]:
        """Return operations, with `subscriptions/listen` if a client of a stateless server subscribes."""
        name = self.bridge.incoming.name
        asked = list(dict.fromkeys([*asked, *((name(method), target) for method, target in asked)]))
        listens = self.bridge.home.revision.era.is_stateless and any(method == methods.SUBSCRIBE for method, _ in asked)
        return [*asked, (methods.LISTEN, None)] if listens and (methods.LISTEN, None) not in asked else asked

    def converted(self, method: Notification[Any], params: Any) -> tuple[Notification[Any], Any] | None:
        """Return a notification of the server in this revision, or None if it cannot be expressed."""
        try:
            return self.bridge.outgoing.notification(method, params, self.bridge.losses())
        except NotConvertible as error:
            log.debug("not sent in %s: %s", self.revision, error)
            return None

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return the capabilities that do not follow from the handlers.

        Capabilities that only the server's revision knows are left out. Flags that both revisions know, and that the
        server does not declare, are `false`: in this revision they would follow from the handlers.
        """
        ours, wire = self.bridge.home.revision, self.bridge.wire
        foreign = fields_of(ours.types.ServerCapabilities).keys() - fields_of(wire.types.ServerCapabilities)
        merged = {name: value for name, value in self.server.extra_capabilities().items() if name not in foreign}
        offers = declared(self.server, self.bridge.home)
        found = declare("server", wire, self.dispatcher.offered(self), self.server.announces)
        for _, *flag in sorted(wire.flags & ours.flags):
            if is_declared(found, *flag) and not is_declared(offers, *flag):
                merged = merge(merged, tree_of(flag, False))
        for engine in self.dispatcher.engines:
            merged = merge(merged, engine.capabilities)
        return merged


class BridgedDispatcher(Dispatcher):
    """Routes of a revision to the handlers of a server of another revision, made on first use.

    Args:
        bridged: The server in the wire revision.
    """

    def __init__(self, bridged: BridgedServer) -> None:
        super().__init__(bridged.bridge.wire, "server")
        self._bridged = bridged
        self._bridge = bridged.bridge
        self._home = bridged.bridge.home
        self._server = bridged.server
        self._adds_sender = self._home.revision.era.is_stateless and not self.revision.era.is_stateless

    @cached_property
    def _native(self) -> Dispatcher:
        found: Dispatcher = import_module(f"{self.revision.package}.dispatcher").SERVER
        return found

    @cached_property
    def routes(self) -> dict[str, Route]:
        """Method name -> route, for messages."""
        own = {name: replace(route) for name, route in self._home.routes.items() if route.is_custom}
        return {**{name: self._route(route) for name, route in self._native.routes.items()}, **own}

    def _route(self, route: Route) -> Route:
        name = route.method.name
        ours = self._home.routes.get(name) and self._home_route(name)  # other names are looked up when they are used
        if ours is None or name in self._other_handlers or not isinstance(route.method, RequestMethod):
            return route
        kind = params_kind(ours.method.params, route.method.params, same_era=self._bridge.same_era)
        if kind is None or name == methods.INITIALIZE or not self.is_handled(route, self._server):
            return route
        return BridgedRoute(route.method, route.handler, kind=kind, bridge=self._bridge)

    def _home_route(self, name: str) -> Route | None:
        """Return the server's route of a core method; methods of extensions have no counterpart."""
        found = self._home.routes.get(self._bridge.incoming.name(name))
        return None if found is None or found.method.extension is not None else found

    @cached_property
    def engines(self) -> Sequence[BridgedEngine]:
        """The engines of the server's extensions that answer requests of this revision."""
        return self._server.bridged_engines(self)

    @cached_property
    def _other_handlers(self) -> dict[str, UserHandler]:
        """Method name -> handler, of extensions, and of subscriptions for a server of the other era."""
        found = {name: handle for engine in self.engines for name, handle in engine.handlers.items()}
        subscribe = self.revision.methods.get(methods.SUBSCRIBE) or self._home.revision.methods.get(methods.SUBSCRIBE)
        needed = ("",) if subscribe is None else subscribe.capabilities.get("client", ("", ""))[1:]
        if self._bridge.same_era or not is_declared(declared(self._server, self._home), *needed):
            return found
        if self.revision.era.is_stateless:
            return {methods.LISTEN: self._listen, **found}
        return {methods.SUBSCRIBE: _accept, methods.UNSUBSCRIBE: _accept, **found}

    def extended(self, kind: type) -> Dispatcher:
        """Return this dispatcher: it has the server's own methods already."""
        return self

    def is_handled(self, route: Route, target: object) -> bool:
        """Return True if the server, an extension or the runtime handles the method of a route."""
        ours = self._home_route(route.method.name)
        if ours is None or ours.method.kind != route.method.kind:
            return route.is_custom or route.method.name in self._other_handlers
        return route.is_custom or self._home.is_handled(ours, self._server)

    def handler(self, route: Route, target: object) -> UserHandler:
        """Return the handler of a route, with conversions; raise `MethodNotFound` if the server does not handle it."""
        if route.method.name in self._other_handlers:
            return self._other_handlers[route.method.name]
        return self._home.handler(route, self._server) if route.is_custom else self._converting(route)

    def _converting(self, route: Route) -> UserHandler:
        """Return the server's handler of a route of the wire revision, with conversions."""
        method, ours = route.method, self._home_route(route.method.name) or route
        work = self._home.bound(ours, self._server)
        if method.name == methods.INITIALIZE:
            return partial(self._initialize, work)
        if not isinstance(method, RequestMethod):
            handle: UserHandler = partial(self._take, work, ours)
        else:
            assert isinstance(ours.method, RequestMethod)
            if _asks(ours.method) and not _asks(method):
                work = partial(self._settled, work, ours.method)
            if not isinstance(route, BridgedRoute) or route.keeps_params:
                work = partial(self._with_converted_params, work, method.name)
            elif self._adds_sender:
                work = with_sender(work, self._home.revision, ours.method)
            handle = self._with_converted_results(work, method, ours.method, ours.handler)
        return handle if method.params is not None else partial(handle, None)

    # --- for engines of extensions ----------------------------------------------------------------------------

    def plain(self, name: str) -> UserHandler:
        """Return the server's handler of a request, for params and results of this revision."""
        return self._converting(self._native.routes[name])

    def to_server(self, name: str, params: object, ctx: Context) -> Any:
        """Return params of this revision in the types of the server's revision.

        Raises:
            NotConvertible: The server's revision cannot express them.
            InvalidParams: They are not valid there.
        """
        method, wire = self._home.routes[self._bridge.incoming.name(name)].method, plain(params)
        if self._adds_sender and ctx.negotiated is not None:
            wire = without_rounds(wire)
            wire["_meta"] = sender_meta(self._home.revision, ctx.negotiated, wire.get("_meta", {}))
        return self._bridge.incoming.params(method, wire, self._bridge.losses(ctx.link))

    def to_wire(self, name: str, work: UserHandler) -> UserHandler:
        """Convert the results of a handler to this revision."""
        ours = self._home.routes[self._bridge.incoming.name(name)]
        assert isinstance(ours.method, RequestMethod)
        return self._with_converted_results(work, self.revision.request(name), ours.method, ours.handler)

    # --- from the wire to the handler -------------------------------------------------------------------------

    async def _take(self, work: UserHandler, ours: Route, params: object, ctx: Context) -> None:
        """Handle a notification; leave it out if the server's revision cannot express it."""
        try:
            typed = self._bridge.incoming.params(ours.method, plain(params), self._bridge.losses(ctx.link))
        except ProtocolError as error:
            log.debug("%s is left out: %s", ours.method.name, error)
            return
        await work(typed, ctx)

    async def _with_converted_params(self, work: UserHandler, name: str, params: object, ctx: Context) -> Any:
        return await work(self.to_server(name, params, ctx), ctx)

    async def _settled(
        self, work: UserHandler, ours: RequestMethod[Any, Any, Any], params: object, ctx: Context
    ) -> Any:
        """Send the questions of a result as requests: results of the wire revision have no questions."""

        async def ask(questions: Mapping[str, Any]) -> dict[str, Any]:
            request = self._home.revision.request
            params = {key: optional(one, "params") for key, one in questions.items()}
            return {key: await ctx.request(request(one.method), params[key]) for key, one in questions.items()}

        async def again(params: Any) -> Any:
            return await work(params, ctx)

        return await settle_rounds(ours, params, await work(params, ctx), ask, again)

    async def _initialize(self, work: UserHandler, params: object, ctx: Context) -> Any:
        """Let the server answer `initialize` itself, in the revision of the connection."""
        method = self._home.revision.request(methods.INITIALIZE)
        typed = self._bridge.incoming.params(method, plain(params), self._bridge.losses(ctx.link))
        answer = {**plain(await work(typed, ctx)), "protocolVersion": self.revision.name}
        return jsonrpc.typed_result(self.revision.request(methods.INITIALIZE), answer)

    # --- from the handler to the wire -------------------------------------------------------------------------

    def _with_converted_results(
        self, work: UserHandler, method: RequestMethod[Any, Any, Any], ours: RequestMethod[Any, Any, Any], name: str
    ) -> UserHandler:
        """Return a handler whose results and errors are of the wire revision.

        Args:
            work: The handler.
            method: The method of the wire revision.
            ours: The method of the server's revision.
            name: The name of the server's handler, for errors.
        """
        outgoing = self._bridge.outgoing
        write = outgoing.result_writer(method, ours, self._bridge.losses)
        handler: Any = getattr(self._server.__class__, name)
        in_rounds = _asks(method)
        is_tool = "is_error" in fields_of(method.result)
        url_required = self._home.revision.errors.get(_URL_REQUIRED)

        async def answer(params: object, ctx: Context) -> Any:
            try:
                result = await work(params, ctx)
                if result.__class__ is not ours.result and result is not None:
                    jsonrpc.check_kind(ours, result, handler)
                if in_rounds and asks_for_input(type(result)):
                    return jsonrpc.typed_result(method, plain(write(result, ctx.link, params)))
                return write(result, ctx.link, params)
            except NotConvertible as error:
                if not is_tool:
                    raise
                return failed_result(method, error)
            except ProtocolError as error:
                if in_rounds and error.code == url_required:
                    await self._ask_to_visit(ctx, error)
                raise outgoing.error(method.name, error) from error.__cause__

        return answer

    async def _ask_to_visit(self, ctx: Context, error: ProtocolError) -> None:
        """Ask the user to visit the pages that an error names; a second error after the visit is sent to the client."""
        method = self._home.revision.request(methods.ELICIT)
        pages = error.data.get("elicitations") if is_object(error.data) else None
        for number, page in enumerate(pages if is_array(pages) else ()):
            await ctx.ask_by(f"{_URL_REQUIRED}#{number}", method, jsonrpc.typed_params(method, page))

    # --- subscriptions of stateless clients to a stateful server ----------------------------------------------

    async def _listen(self, params: object, ctx: Context) -> Any:
        """Serve a subscription, and subscribe to its resources with the server's own handlers."""
        server = cast(Server, self._bridged)  # it has the attributes of a server
        return await subscriptions.listen(server, declared(server, self), params, ctx, self._follow)

    def _follow(self, subscription: Subscription, uris: list[str]) -> AbstractAsyncContextManager[list[str]]:
        subscribe = partial(self._call, methods.SUBSCRIBE, subscription)
        unsubscribe = partial(self._call, methods.UNSUBSCRIBE, subscription)
        return following(uris, subscribe, unsubscribe, _UNSUBSCRIBE_SECONDS)

    async def _call(self, name: str, subscription: Subscription, uri: str) -> bool:
        """Call the server's handler of (un)subscriptions; return True if it succeeds, or there is none."""
        route = self._home.routes[name]
        if not self._home.is_handled(route, self._server):
            return True
        params = jsonrpc.typed_params(route.method, {"uri": uri})
        context = self._bridged.context(RequestScope.of(subscription), params)
        try:
            await self._home.bound(route, self._server)(params, context)
        except ProtocolError as error:
            log.info("%s %s: %s", name, uri, error)
            return False
        except Exception:
            log.exception("the handler of %s failed", name)
            return False
        return True


def failed_result(method: RequestMethod[Any, Any, Any], error: ProtocolError) -> Any:
    """Return the smallest result of a method that the types of its revision allow, with `isError` and the message.

    Raises:
        ProtocolError: The error itself, if no text is required in such a result.
    """
    schema = TypeAdapter(method.result).json_schema()
    with suppress(ProtocolError, RecursionError):
        wire, empty = (_sample(schema, schema.get("$defs", {}), text) for text in (error.message, ""))
        if wire != empty:
            return jsonrpc.typed_result(method, {**wire, **jsonrpc.filled_in(method.result), "isError": True})
    raise error


def _sample(schema: Any, definitions: Mapping[str, Any], text: str) -> Any:
    """Return a value with the required members of a schema, with `text` in strings and one item in arrays."""
    match schema:
        case {"$ref": reference}:
            return _sample(definitions[reference.rpartition("/")[2]], definitions, text)
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]}:
            return _sample(first, definitions, text)
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"type": "object"}:
            names = schema.get("required", ())
            return {name: _sample(schema["properties"][name], definitions, text) for name in names}
        case {"type": "array", "items": items}:
            return [_sample(items, definitions, text)]
        case _:
            return {"string": text, "boolean": False}.get(schema.get("type", "object"), 0)


async def _accept(params: object, ctx: Context) -> Any:
    """Accept a subscription, which the era records; a stateless server needs no notice of it."""
    return {}


def _asks(method: RequestMethod[Any, Any, Any]) -> bool:
    return any(asks_for_input(kind) for kind in method.alternatives)
