"""Servers in the era of the handshake (MCP, "Lifecycle")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from pydantic_core import to_json

from ..protocol.access import check_followed
from ..protocol.capabilities import declared
from ..protocol.connection import Connection
from ..protocol.errors import INVALID_PARAMS, ProtocolError
from ..protocol.methods import INITIALIZE, PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE
from ..protocol.request_scope import Handler, Link, Negotiated
from ..protocol.revision import Dispatcher
from ..protocol.routing import Route
from .execution import empty_list, introduction
from .server import Server

_MAX_CLIENT_BYTES = 256 * 1024  # of clientInfo and capabilities, which stay with a session


class Conversation(Link, Protocol):
    """A link that remembers the handshake."""

    connection: Connection
    negotiated: Negotiated


_Default: TypeAlias = Callable[[Server, Any, Any], Any]
_Work: TypeAlias = Callable[[], Awaitable[Any]]
_Around: TypeAlias = Callable[[Any, Any, _Work], Awaitable[Any]]


def handler(server: Server, dispatcher: Dispatcher, route: Route) -> Handler:
    """Return the handler of a route: the server's own, else the runtime's.

    Raises:
        MethodNotFound: There is neither.
    """
    name = route.method.name
    if not dispatcher.is_handled(route, server):
        default = _DEFAULTS.get(name)
        if default is None and route.method.kind == "request":
            nothing = empty_list(dispatcher, route, server)
            return lambda scope, params: nothing(params, scope)
        return lambda scope, params: (default or _nothing)(server, scope.link, params)
    work, context = dispatcher.bound(route, server), server.context
    around = _AROUND.get(name)
    if around is None:
        return lambda scope, params: work(params, context(scope, params))
    return lambda scope, params: around(scope.link, params, lambda: work(params, context(scope, params)))


def _initialize(server: Server, link: Conversation, params: object) -> Any:
    _introduced(link, params)
    revision = link.negotiated.dispatcher.revision
    offers = link.negotiated.declared["server"] = declared(server, link.negotiated.dispatcher)
    wire = {"protocolVersion": revision.name, "capabilities": offers, "serverInfo": introduction(server, revision)}
    if server.instructions is not None:
        wire["instructions"] = server.instructions
    link.connection.negotiated()
    return revision.request(INITIALIZE).result.model_validate(wire)


async def _initialize_by(link: Conversation, params: object, work: _Work) -> Any:
    """Let the server's own handler answer `initialize`."""
    _introduced(link, params)
    answer = await work()
    link.negotiated.declared["server"] = answer.capabilities.model_dump()
    link.connection.negotiated()
    return answer


def _introduced(link: Conversation, params: Any) -> None:
    """Remember the client's introduction; raise `ProtocolError` if it is too large."""
    capabilities = params.capabilities.model_dump()
    if len(to_json([capabilities, params.client_info.model_dump()])) > _MAX_CLIENT_BYTES:
        raise ProtocolError(INVALID_PARAMS, "clientInfo and capabilities are too large")
    link.negotiated.dispatcher = link.connection.dispatcher
    link.negotiated.declared["client"] = capabilities
    link.negotiated.peer_info = params.client_info


def _set_level(server: Server, link: Conversation, params: Any) -> Any:
    link.negotiated.log_level = params.level
    return {}


async def _subscribe(link: Conversation, params: Any, work: _Work) -> Any:
    """Remember a subscription that the server's handler accepts; raise `ProtocolError` if there are too many."""
    from ..protocol.uris import followed_key  # few servers have subscriptions

    followed, key = link.negotiated.subscriptions or set[str](), followed_key(params.uri)
    check_followed({*followed, key})
    answer = await work()
    if link.negotiated.subscriptions is not None:
        link.negotiated.subscriptions.add(key)
    return answer


async def _unsubscribe(link: Conversation, params: Any, work: _Work) -> Any:
    from ..protocol.uris import followed_key

    answer = await work()
    (link.negotiated.subscriptions or set[str]()).discard(followed_key(params.uri))
    return answer


def _nothing(server: Server, link: object, params: object) -> Any:
    return {}


_DEFAULTS: dict[str, _Default] = {INITIALIZE: _initialize, PING: _nothing, SET_LEVEL: _set_level}
"""Handlers of the runtime for methods that a server does not handle."""

_AROUND: dict[str, _Around] = {INITIALIZE: _initialize_by, SUBSCRIBE: _subscribe, UNSUBSCRIBE: _unsubscribe}
"""Work of the runtime around handlers of a server."""
