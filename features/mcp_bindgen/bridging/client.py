"""Make a client of one revision speak another one: a client of that one, its carrier, does it for the other.

The carrier negotiates, caches, mirrors headers and answers rounds of questions as every client of its revision does;
what passes between the two clients is converted.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import anyio
from anyio.abc import TaskGroup
from pydantic_core import to_json

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import declared, merge, tree_of
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.limits import Options
from mcp_bindgen.runtime.protocol.methods import Method, Notification, Request
from mcp_bindgen.runtime.protocol.request_scope import Negotiated, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route, custom_routes
from mcp_bindgen.runtime.session.client import Client
from mcp_bindgen.runtime.session.negotiation import said
from mcp_bindgen.runtime.session.session import Session

from .chain import Chain, chain, package_name, packages
from .context import implementation
from .era_adapter import Crossing, crossing
from .field_collisions import without_claims
from .step import Conversion, NotConvertible, Notes

_NAMESPACE = __name__.partition(".")[0]


class Bridges:
    """The bridges from clients to all revisions that they do not speak themselves.

    Args:
        clients: The clients; a server gets the one that the fewest steps lead to, of several the newest.

    Attributes:
        revisions: The revisions that bridges lead to.
    """

    def __init__(self, clients: Sequence[Client]) -> None:
        own = {client.revision for client in clients}
        self._clients = sorted(clients, key=lambda client: client.dispatcher.revision.rank, reverse=True)
        self._open: dict[Client, ClientBridge] = {}
        self._bindings: dict[str, ModuleType] = {}
        self.revisions: list[Revision] = []
        known = packages()
        bridged = [client for client in self._clients if package_name(client.revision) in known]
        for package in known if bridged else ():
            bindings = import_module(f"{_NAMESPACE}.{package}")
            revision: Revision = bindings.REVISION
            if revision.name not in own:
                self._bindings[revision.name] = bindings
                self.revisions.append(revision)

    def carrier(self, revision: Revision) -> Client:
        """Return a client of a revision, which speaks for the nearest of the clients."""
        steps = {client: chain(client.revision, revision.name) for client in self._clients}
        home = min(self._clients, key=lambda client: len(found.steps) if (found := steps[client]) else math.inf)
        bridge = ClientBridge(home, self._bindings[revision.name])
        self._open[bridge.carrier] = bridge
        return bridge.carrier

    def begin(self, client: Client, session: Session, tasks: TaskGroup) -> Client:
        """Return the client that the user talks to, given the one that knows the server now."""
        bridge = self._open.get(client)
        return client if bridge is None else bridge.begin(session, tasks)


class ClientBridge:
    """Connect a client with its carrier.

    Args:
        home: The client.
        bindings: The bindings of the revision to speak.

    Attributes:
        home: The client.
        carrier: The client that speaks for it.

    Raises:
        ValueError: No bridge leads from the one revision to the other.
    """

    def __init__(self, home: Client, bindings: ModuleType) -> None:
        there = chain(home.revision, bindings.REVISION.name)
        back = chain(bindings.REVISION.name, home.revision)
        if there is None or back is None:
            raise ValueError(f"no bridge leads from {home.revision} to {bindings.REVISION.name}")
        self.home = home
        self._ours = home.dispatcher.extended(type(home))
        self._there: Chain = there
        self._back: Chain = back
        self._notes = Notes(_tell)
        self.carrier: Client = _carrier_class(self, bindings)()
        for name in ("options", "limits", "cache"):
            setattr(self.carrier, name, getattr(home, name))
        if getattr(home, "info", None) is not None:
            self.carrier.info = implementation(bindings.REVISION, jsonrpc.plain(home.info))
        self._revision: Revision = bindings.REVISION
        self._crossing: Crossing | None = None
        self._agreed: Negotiated | None = None
        self._begun = anyio.Event()

    def begin(self, session: Session, tasks: TaskGroup) -> Client:
        """Make the client ready, now that its carrier and the server know each other; return it.

        Args:
            session: The connection.
            tasks: Where subscriptions run.
        """
        home, carrier = self.home, self.carrier
        agreed = self._agreed = Negotiated(self._ours)
        agreed.declared["client"] = declared(home, self._ours)
        offers = {name: one for name, one in carrier.server_capabilities.items() if name != "extensions"}
        agreed.declared["server"] = merge(_unstated(self._ours.revision, self._revision), offers)
        if carrier.server_info is not None:
            agreed.peer_info = implementation(self._ours.revision, jsonrpc.plain(carrier.server_info))
        self._crossing = crossing(self._ours.revision, carrier, tasks)
        home.attach_bridged(BridgedLink(self, session, agreed), self)
        home.server_info = agreed.peer_info
        home.server_capabilities = carrier.server_capabilities
        home.instructions = carrier.instructions
        log.info("the server speaks %s, the client %s", carrier.revision, home.revision)
        self._crossing.start()
        self._begun.set()
        return home

    async def resume(self) -> None:
        """Say again what the server has forgotten with the session."""
        if self._crossing is not None:
            await self._crossing.resume()

    # --- from the client to the server ------------------------------------------------------------------------

    async def request(self, method: Request[Any, Any, Any], params: Any, options: Options, *, fresh: bool) -> Any:
        """Send a request of the client's revision and return its usual result, in the client's types.

        Raises:
            NotConvertible: The revision of the server has no words for it.
            ProtocolError: The server answered with an error.
        """
        assert self._crossing is not None
        wire = _plain(params)
        carrier = self.carrier.with_options(
            timeout=options.timeout,
            total_timeout=options.total_timeout,
            on_progress=options.on_progress and self._converted_progress(options.on_progress),
            fresh=fresh,
        )
        special = self._crossing.answers.get(method.name)
        if special is not None:
            return jsonrpc.typed_result(method, await special(wire, carrier))
        theirs = self._counterpart(method)
        told_meta = wire.pop("_meta", None)
        meta = await self._crossing.adapt(told_meta if is_object(told_meta) else {})
        if theirs is None:
            told: Any = {**wire, "_meta": meta} if meta else wire
            return await carrier.call(method if params is None and not meta else _as_json(method), told)
        assert isinstance(theirs, Request)
        wire = _converted(self._there.params(method.name), wire, self._notes)
        if meta:
            wire["_meta"] = meta
        try:
            answer = await carrier.call(theirs, _typed_params(theirs, wire, self._there))
        except ProtocolError as error:
            code = self._back.error(method.name, error.code)
            if code == error.code:
                raise
            raise ProtocolError(code, error.message, error.data) from error
        back = _converted(self._back.results(method.name), jsonrpc.plain(answer), self._notes)
        claims = self._back.claims("results", method.name)
        return without_claims(lambda wire: jsonrpc.typed_result(method, wire), back, claims)

    async def notify(self, method: Notification[Any], params: Any, related: RequestId | None) -> None:
        """Send a notification of the client's revision, if the server's has such."""
        session: Session = self.carrier.link
        try:
            theirs = self._counterpart(method)
            if theirs is not None:
                wire = _converted(self._there.params(method.name), _plain(params), self._notes)
                params = _typed_params(theirs, wire, self._there)
        except NotConvertible as error:
            log.debug("not sent: %s", error)
            return
        told: Any = theirs or method
        await session.notify(told, params, related=related)

    def subscribed(self, wanted: Any) -> AbstractAsyncContextManager[Any]:
        """Subscribe as clients of stateless revisions do; see `Client.subscribed`."""
        assert self._crossing is not None
        return self._crossing.subscribed(wanted)

    def metadata(self) -> Mapping[str, Any]:
        """Return what the `_meta` of a request of the client's revision must say; the carrier says it anew."""
        return said(self.home, self._ours.revision, self._agreed.declared["client"] if self._agreed else {})

    def _counterpart(self, method: Method) -> Method | None:
        """Return the method of the same name in the server's revision; `None` for one that no revision has.

        Raises:
            NotConvertible: The client's revision has it, the server's has not.
        """
        theirs = self._revision.methods.get(method.name)
        if theirs is not None and theirs.kind == method.kind:
            return theirs
        if method.extension is None and method.name not in self._ours.revision.methods:
            return None
        reason = self._there.absent(method.name) or "there is no such method"
        raise NotConvertible(method.name, f"{reason} (the server speaks {self._revision.name})")

    def _converted_progress(self, on_progress: Callable[[Any], object]) -> Callable[[Any], object]:
        ours = self._ours.revision.progress

        def told(params: Any) -> object:
            return on_progress(params if ours is None else _typed_params(ours, jsonrpc.plain(params), self._back))

        return told

    # --- from the server to the client ------------------------------------------------------------------------

    async def take(self, ours: Route, theirs: Method, params: Any, request_id: RequestId | None) -> Any:
        """Have the client's handler take a message of the server, and return its answer for the server."""
        if not self._begun.is_set():  # servers may speak as soon as the handshake ends
            await self._begun.wait()
        assert self._crossing is not None
        wire = _plain(params)
        if not self._crossing.is_wanted(theirs, wire):
            return {}
        converted = _converted(self._back.params(theirs.name), wire, self._notes)
        claims = self._back.claims("params", theirs.name)
        typed = without_claims(lambda wire: ours.read(to_json(wire)), converted, claims)
        answer = self.home.handler(self._ours, ours)(
            RequestScope(self.home.link, self.home.link.origin, request_id, self.home.link.negotiated), typed
        )
        if inspect.isawaitable(answer):
            answer = await answer
        if not isinstance(theirs, Request):
            return {}
        if ours.is_custom:
            return answer
        result = _converted(self._there.results(theirs.name), jsonrpc.plain(answer), self._notes)
        claims = self._there.claims("results", theirs.name)
        return without_claims(lambda wire: jsonrpc.typed_result(theirs, wire), result, claims)


class BridgedLink:
    """The connection as the client sees it: of the carrier's, with messages of its own revision.

    Args:
        bridge: What is between the client and its carrier.
        session: The connection.
        negotiated: What both sides agreed on, in the words of the client's revision.
    """

    def __init__(self, bridge: ClientBridge, session: Session, negotiated: Negotiated) -> None:
        self.session = session
        self.negotiated = negotiated
        self._bridge = bridge

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    @property
    def wire_revision(self) -> str:
        """The revision of the connection."""
        return self._bridge.carrier.revision

    async def request(
        self,
        method: Request[Any, Any, Any],
        params: Any,
        options: Options | None = None,
        *,
        related: RequestId | None = None,
    ) -> Any:
        """Send a request; see `ClientBridge.request`."""
        return await self._bridge.request(method, params, options or self._bridge.home.options, fresh=False)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Send a notification; see `ClientBridge.notify`."""
        await self._bridge.notify(method, params, related)

    def metadata(self) -> Mapping[str, Any]:
        """Return what requests of the client's revision must say of it."""
        return self._bridge.metadata()


def _plain(params: Any) -> dict[str, Any]:
    """Return params in wire form; those that are not there are empty."""
    wire: dict[str, Any] = {} if params is None else jsonrpc.plain(params)
    return wire


@cache
def _as_json(method: Request[Any, Any, Any]) -> Request[Any, Any, Any]:
    """Return a method of somebody's own, whose params are taken as they are; the same each time."""
    kind: Any = dict[str, Any]
    return replace(method, params=kind)


def _tell(place: str, reason: str) -> None:
    log.warning("%s: %s", place, reason)


def _converted(conversion: Conversion | None, wire: Any, notes: Notes) -> Any:
    return wire if conversion is None else conversion.convert(wire, notes)


def _typed_params(method: Method, wire: dict[str, Any], there: Chain) -> Any:
    if method.params is None:
        return None
    route = Route(method, "")
    return without_claims(lambda wire: route.read(to_json(wire)), wire, there.claims("params", method.name))


def _unstated(ours: Revision, theirs: Revision) -> dict[str, Any]:
    """Return capabilities that clients of our revision need for methods for which theirs need none."""
    found: dict[str, Any] = {}
    for method in ours.methods.values():
        path = method.capabilities.get("client", ("",))
        known = theirs.methods.get(method.name)
        if path[0] == "server" and known is not None and "client" not in known.capabilities:
            found = merge(found, tree_of(path[1:], {}))
    return found


def _carrier_class(bridge: ClientBridge, bindings: ModuleType) -> type[Client]:
    """Make the class of a carrier: it handles what its client handles."""
    native: type[Client] = bindings.Client
    dispatcher, ours = native.dispatcher, bridge.home.dispatcher.extended(type(bridge.home))
    handlers: dict[str, Any] = {}
    for route in [*dispatcher.routes.values(), *dispatcher.embedded.values()]:
        found = ours.routes.get(route.method.name) or ours.embedded.get(route.method.name)
        if found is not None and _is_for(bridge.home, ours, found):
            handlers[route.handler] = _forward(bridge, found, route.method)
    for name, route in custom_routes(type(bridge.home)).items():
        handler = _forward(bridge, route, route.method)
        handler.__mcp_method__ = route.method  # type: ignore[attr-defined]
        handlers[f"_own_{name}"] = handler
    handlers["extra_capabilities"] = _extra_capabilities(bridge.home)
    handlers["_resume"] = _resume(bridge)
    return type(native.__name__, (native,), handlers)


def _extra_capabilities(home: Client) -> Callable[[Any], Mapping[str, Any]]:
    def extra_capabilities(self: Any) -> Mapping[str, Any]:
        return home.extra_capabilities()

    return extra_capabilities


def _resume(bridge: ClientBridge) -> Callable[[Any], Awaitable[None]]:
    async def resume(self: Any) -> None:
        await bridge.resume()

    return resume


def _is_for(home: Client, ours: Dispatcher, route: Route) -> bool:
    """Tell whether a client takes a message: it handles it, or counts changes by it."""
    method = route.method
    needed = {path[0] for path in method.capabilities.values()}
    return ours.is_handled(route, home) or (method.kind == "notification" and "client" not in needed)


def _forward(bridge: ClientBridge, ours: Route, theirs: Method) -> Callable[..., Awaitable[Any]]:
    """Return a handler that lets the client's handler answer."""
    if theirs.params is None:

        async def without_params(self: Any, ctx: Any) -> Any:
            return await bridge.take(ours, theirs, None, ctx.request_id)

        return without_params

    async def handler(self: Any, params: Any, ctx: Any) -> Any:
        return await bridge.take(ours, theirs, params, ctx.request_id)

    return handler
