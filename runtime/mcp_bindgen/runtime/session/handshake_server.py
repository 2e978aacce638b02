"""Servers in the era of the handshake (MCP, "Lifecycle")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

from ..protocol.access import check_followed
from ..protocol.capabilities import declared
from ..protocol.errors import (
    INVALID_PARAMS,
    MethodNotFound,
    ProtocolError,
)
from ..protocol.methods import INITIALIZE, PING, SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE
from ..protocol.request_scope import Handler
from ..protocol.revision import Dispatcher
from ..protocol.routing import Route
from ..protocol.transitions import State
from ..protocol.uris import followed_key
from .handlers import bind_handler, empty_list, introduction

_MAX_INTRODUCTION_BYTES = 256 * 1024  # clientInfo and capabilities, which stay with a session


def handler(server: Any, dispatcher: Dispatcher, route: Route, supported: Sequence[str]) -> Handler:
    """Return what answers the messages of a route: the server's own handler, else the runtime's.

    Raises:
        MethodNotFound: There is neither.
    """
    name = route.method.name
    if not dispatcher.is_handled(route, server):
        default = _DEFAULTS.get(name)
        if default is None and route.method.kind == "request":
            nothing = empty_list(dispatcher, route, server)
            if nothing is None:
                raise MethodNotFound(name)
            return lambda scope, params: nothing()
        return lambda scope, params: (default or _nothing)(server, scope.link, params)
    work, context = bind_handler(dispatcher, route, server), server.context
    if name == INITIALIZE:
        return lambda scope, params: _initialize_by(work, scope.link, params, context(scope, params))
    if name in _NOTED:
        return lambda scope, params: _note(name, work, scope.link, params, context(scope, params))
    return lambda scope, params: work(params, context(scope, params))


def snapshot(session: Any) -> dict[str, Any] | None:
    """Return what a session must know to go on in another process; `None` before the client has said it."""
    agreed = session.negotiated
    if session.peer.state not in (State.NEGOTIATED, State.READY):
        return None
    return {
        "revision": agreed.dispatcher.revision.name,
        "clientInfo": agreed.peer_info.model_dump(),
        "capabilities": agreed.declared["client"],
        "logLevel": agreed.log_level,
        "subscriptions": sorted(agreed.subscriptions or ()),
    }


def restore(session: Any, snapshot: Mapping[str, Any], offers: Mapping[str, Any], first_id: int) -> None:
    """Make a new session go on where another one was.

    Args:
        session: The session, to which nothing was said yet.
        snapshot: What `snapshot` gave.
        offers: What the server declares.
        first_id: The first id of the server's own requests: late answers to those of the former process mean
            nothing.
    """
    session.peer.resume(snapshot["revision"], first_id)
    agreed = session.negotiated
    agreed.dispatcher = session.peer.dispatcher
    agreed.peer_info = agreed.dispatcher.revision.types.Implementation.model_validate(snapshot["clientInfo"])
    agreed.declared["client"] = snapshot["capabilities"]
    agreed.declared["server"] = offers
    update(session, snapshot)


def update(session: Any, snapshot: Mapping[str, Any]) -> None:
    """Take over what the client has said since: its log level, and what it follows."""
    agreed = session.negotiated
    agreed.log_level = snapshot["logLevel"]
    agreed.subscriptions = set(snapshot.get("subscriptions", ()))  # records of older versions have none


def _initialize(server: Any, session: Any, params: Any) -> Any:
    _introduced(session, params)
    dispatcher: Dispatcher = session.negotiated.dispatcher
    offers = session.negotiated.declared["server"] = declared(server, dispatcher)
    wire = {
        "protocolVersion": dispatcher.revision.name,
        "capabilities": offers,
        "serverInfo": introduction(server, dispatcher.revision),
    }
    if server.instructions is not None:
        wire["instructions"] = server.instructions
    session.peer.negotiated()
    return dispatcher.revision.request(INITIALIZE).result.model_validate(wire)


async def _initialize_by(work: Callable[..., Any], session: Any, params: Any, context: Any) -> Any:
    """Let a server answer `initialize` itself."""
    _introduced(session, params)
    answer = await work(params, context)
    session.negotiated.declared["server"] = answer.capabilities.model_dump()
    session.peer.negotiated()
    return answer


def _introduced(session: Any, params: Any) -> None:
    """Take note of what a client says of itself; raise `ProtocolError` if that is too much to be kept."""
    capabilities = params.capabilities.model_dump()
    if len(to_json([capabilities, params.client_info.model_dump()])) > _MAX_INTRODUCTION_BYTES:
        raise ProtocolError(INVALID_PARAMS, "clientInfo and capabilities are too large")
    session.negotiated.dispatcher = session.peer.dispatcher
    session.negotiated.declared["client"] = capabilities
    session.negotiated.peer_info = params.client_info


def _set_level(server: Any, session: Any, params: Any) -> Any:
    session.negotiated.log_level = params.level
    return {}


async def _note(name: str, work: Callable[..., Awaitable[Any]], session: Any, params: Any, context: Any) -> Any:
    """Let a server answer a client that subscribes or unsubscribes, and note what that one follows now.

    Raises:
        ProtocolError: It follows too much already.
    """
    followed: set[str] = session.negotiated.subscriptions
    key = followed_key(params.uri)
    if name == SUBSCRIBE:
        check_followed({*followed, key})
    answer = await work(params, context)
    getattr(followed, _NOTED[name])(key)
    return answer


def _nothing(server: Any, session: Any, params: Any) -> Any:
    return {}


_DEFAULTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    INITIALIZE: _initialize,
    PING: _nothing,
    SET_LEVEL: _set_level,
}
"""What the runtime answers for servers that do not."""


def needs_session(server: Any, dispatcher: Dispatcher, route: Route) -> bool:
    """Tell whether a request asks a server to remember something: whom to tell of changes, or which logs to send."""
    method = route.method
    subscribes = method.kind == "request" and method.capabilities.get("client") in dispatcher.revision.flags
    return subscribes or (method.name == SET_LEVEL and not dispatcher.is_handled(route, server))


_NOTED = {SUBSCRIBE: "add", UNSUBSCRIBE: "discard"}
"""Method -> what becomes of its URI in the set of what a client follows."""
