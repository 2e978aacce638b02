"""Clients of one revision that speak another: a wire client of that revision speaks for the client.

The wire client negotiates, caches, mirrors headers and answers rounds of questions like every client of its revision.
Messages between the two clients are converted.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel
from pydantic_core import from_json

from mcp_bindgen.runtime.bindings import NAMESPACE, imported
from mcp_bindgen.runtime.concurrency import resolved
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import declared, merge, tree_of
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.limits import Options
from mcp_bindgen.runtime.protocol.methods import Method, Notification, RequestMethod
from mcp_bindgen.runtime.protocol.request_scope import Negotiated, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route, custom_routes
from mcp_bindgen.runtime.session.client import Client, client_meta
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.user_bindings import install

from .chain import NotConvertible, chain, package_name, packages
from .converter import Bridge, implementation, plain
from .era_adapter import EraAdapter, era_adapter


class ClientBridges:
    """Bridges from clients to the revisions that they do not speak.

    Args:
        clients: The clients; a server gets the client with the fewest steps, and of these the newest.

    Attributes:
        revisions: The revisions that bridges lead to.
    """

    def __init__(self, clients: Sequence[Client]) -> None:
        own = {client.revision for client in clients}
        self._clients = sorted(clients, key=lambda client: client.dispatcher.revision.rank, reverse=True)
        self._open: dict[Client, ClientBridge] = {}
        install()
        known = packages()
        is_bridged = any(package_name(revision) in known for revision in own)
        found: Iterator[Revision] = imported((f"{NAMESPACE}.{one}" for one in known if is_bridged), "REVISION")
        self.revisions: list[Revision] = [one for one in found if one.name not in own]

    def wire_client(self, revision: Revision) -> Client:
        """Return a client of a revision that speaks for the nearest of the clients."""
        steps = {client: chain(client.revision, revision.name) for client in self._clients}
        home = min(self._clients, key=lambda client: len(found.steps) if (found := steps[client]) else math.inf)
        bridge = ClientBridge(home, import_module(revision.package))
        self._open[bridge.wire_client] = bridge
        return bridge.wire_client

    def begin(self, wire_client: Client, session: Session, tasks: TaskGroup) -> Client:
        """Return the client that a wire client speaks for, now that it is connected; any other client unchanged."""
        bridge = self._open.get(wire_client)
        return wire_client if bridge is None else bridge.begin(session, tasks)


class ClientBridge:
    """Bridge between a client and its wire client, and the link of the client.

    Args:
        home: The client.
        bindings: The bindings of the wire revision.

    Attributes:
        home: The client.
        wire_client: The client that speaks for it.
        session: The connection.
        negotiated: The agreement of both sides, in the client's revision.
    """

    session: Session
    negotiated: Negotiated
    _adapter: EraAdapter

    def __init__(self, home: Client, bindings: ModuleType) -> None:
        self.home = home
        self._bridge = Bridge(home.dispatcher.extended(type(home)), bindings.REVISION)
        self.wire_client: Client = _wire_client_class(self, bindings.Client, self._bridge.incoming.name)()
        self.wire_client.options, self.wire_client.limits = home.options, home.limits
        self.wire_client.cache = home.cache
        if home.info is not None:
            self.wire_client.info = implementation(home.dispatcher.revision, bindings.REVISION, home.info)
        self._begun = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    def begin(self, session: Session, tasks: TaskGroup) -> Client:
        """Make the client ready after the handshake or discovery of its wire client; return it.

        Args:
            session: The connection.
            tasks: The task group of subscriptions.
        """
        home, wire_client, dispatcher = self.home, self.wire_client, self._bridge.home
        self.session = session
        agreed = self.negotiated = Negotiated(dispatcher)
        agreed.declared["client"] = declared(home, dispatcher)
        self.meta: dict[str, Any] = client_meta(home, dispatcher.revision, agreed.declared["client"])
        """Metadata of requests; the wire client replaces it."""
        offers = {name: one for name, one in wire_client.server_capabilities.items() if name != "extensions"}
        agreed.declared["server"] = merge(_unstated(dispatcher.revision, self._bridge.wire), offers)
        agreed.peer_info = implementation(self._bridge.wire, dispatcher.revision, wire_client.server_info)
        self._adapter = era_adapter(dispatcher.revision, wire_client, tasks)
        home.attach_bridged(self)
        home.server_info = agreed.peer_info
        home.server_capabilities = wire_client.server_capabilities
        home.instructions = wire_client.instructions
        log.info("the server speaks %s, the client %s", wire_client.revision, home.revision)
        self._adapter.start()
        self._begun.set()
        return home

    # --- from the client to the server ------------------------------------------------------------------------

    async def request(
        self,
        method: RequestMethod[Any, Any, Any],
        params: object,
        options: Options | None = None,
        *,
        related: RequestId | None = None,
        fresh: bool = False,
    ) -> Any:
        """Send a request of the client's revision and return its usual result, in the client's types.

        Raises:
            NotConvertible: The revision of the server cannot express it.
            ProtocolError: The server answered with an error.
        """
        outgoing, incoming, losses = self._bridge.outgoing, self._bridge.incoming, self._bridge.losses(self.session)
        wire: dict[str, Any] = {} if params is None else from_json(jsonrpc.write_params(method, params))
        options = options or self.home.options
        on_progress = options.on_progress and self._converted_progress(options.on_progress)
        client = self.wire_client.with_options(
            timeout=options.timeout, total_timeout=options.total_timeout, on_progress=on_progress, fresh=fresh
        )
        adapted = self._adapter.answers.get(method.name)
        if adapted is not None:
            return jsonrpc.typed_result(method, await adapted(wire, client))
        theirs = outgoing.counterpart(method)
        given = wire.pop("_meta", None)
        meta = await self._adapter.adapt(given if is_object(given) else {})
        if theirs is not method:
            wire = outgoing.convert("params", method.name, wire, losses)
        if meta:
            wire["_meta"] = meta
        assert isinstance(theirs, RequestMethod)
        if theirs is method:
            return await client.call(method if params is None and not meta else _untyped_params(method), wire)
        try:
            answer = await client.call(theirs, outgoing.typed_params(theirs, wire))
        except ProtocolError as error:
            raise incoming.error(method.name, error) from error.__cause__
        return incoming.result(method, plain(answer), losses, params)

    async def notify(self, method: Notification[Any], params: object, *, related: RequestId | None = None) -> None:
        """Send a notification of the client's revision, unless the server's revision cannot express it."""
        try:
            sent = self._bridge.outgoing.notification(method, params, self._bridge.losses(self.session))
        except NotConvertible as error:
            log.debug("not sent: %s", error)
        else:
            await self.session.notify(*sent, related=related)

    def subscribed(self, wanted: BaseModel) -> AbstractAsyncContextManager[Any]:
        """Subscribe as clients of stateless revisions do; see `Client.subscribed`."""
        return self._adapter.subscribed(wanted)

    def _converted_progress(self, on_progress: Callable[[Any], object]) -> Callable[[Any], object]:
        ours = self._bridge.home.revision.progress
        if ours is None:
            return on_progress
        return lambda params: on_progress(self._bridge.incoming.typed_params(ours, plain(params)))

    # --- from the server to the client ------------------------------------------------------------------------

    async def take(self, ours: Route, theirs: Method, params: object, request_id: RequestId | None) -> Any:
        """Return the answer of the client's handler to a message of the server, in the types of the server."""
        await self._begun.wait()  # servers may send messages as soon as the handshake ends
        losses, wire = self._bridge.losses(self.session), plain(params)
        if not self._adapter.is_wanted(theirs, wire):
            return {}
        typed = self._bridge.incoming.params(ours.method, wire, losses)
        scope = RequestScope(self.home.link, self.session.origin, request_id, self.negotiated)
        answer = await resolved(self.home.handler(self._bridge.home, ours)(scope, typed))
        if not isinstance(theirs, RequestMethod):
            return {}
        return answer if ours.is_custom else self._bridge.outgoing.result(theirs, plain(answer), losses, params)


@cache
def _untyped_params(method: RequestMethod[Any, Any, Any]) -> RequestMethod[Any, Any, Any]:
    """Return a method whose params are any JSON object; the same object each time."""
    kind: Any = dict[str, Any]
    return replace(method, params=kind)


def _unstated(ours: Revision, theirs: Revision) -> dict[str, Any]:
    """Return the capabilities that our revision needs for methods for which theirs needs none."""
    found: dict[str, Any] = {}
    for method in ours.methods.values():
        path = method.capabilities.get("client", ("",))
        known = theirs.methods.get(method.name)
        if path[0] == "server" and known is not None and "client" not in known.capabilities:
            found = merge(found, tree_of(path[1:], {}))
    return found


def _wire_client_class(bridge: ClientBridge, native: type[Client], home_name: Callable[[str], str]) -> type[Client]:
    """Make the class of a wire client: it handles the same messages as its client."""
    home, ours, dispatcher = bridge.home, bridge.home.dispatcher.extended(type(bridge.home)), native.dispatcher

    needs = (need for method in dispatcher.revision.methods.values() for need in method.needs)
    with_modes = {need.capability[1] for need in needs if need.is_mode}

    def extra_capabilities(self: Client) -> Mapping[str, Any]:
        modes = {name: one for name, one in declared(home, ours).items() if name in with_modes}
        return {**home.extra_capabilities(), **modes}

    guard = property(lambda _: home.guard)  # it compares entries as the server sends them
    members: dict[str, Any] = {"extra_capabilities": extra_capabilities, "guard": guard}
    for route in [*dispatcher.routes.values(), *dispatcher.embedded.values()]:
        name = home_name(route.method.name)
        found = ours.routes.get(name) or ours.embedded.get(name)
        if found is not None and _is_for(home, ours, found):
            members[route.handler] = _forward(bridge, found, route.method)
    for name, route in custom_routes(type(home)).items():
        handler: Any = _forward(bridge, route, route.method)
        handler.__mcp_method__ = route.method
        members[f"_own_{name}"] = handler
    return type(native.__name__, (native,), members)


def _is_for(home: Client, ours: Dispatcher, route: Route) -> bool:
    """Return True if a client handles a message, or counts changes by it."""
    method = route.method
    needed = {path[0] for path in method.capabilities.values()}
    return ours.is_handled(route, home) or (method.kind == "notification" and "client" not in needed)


def _forward(bridge: ClientBridge, ours: Route, theirs: Method) -> Callable[..., Awaitable[Any]]:
    """Return a handler that lets the client's handler answer."""

    async def handler(self: Client, *arguments: Any) -> Any:
        *params, ctx = arguments  # handlers of messages without params get the context alone
        return await bridge.take(ours, theirs, params[0] if params else None, ctx.request_id)

    return handler
