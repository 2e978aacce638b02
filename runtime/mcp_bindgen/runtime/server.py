"""The base of generated servers, and serving them over a transport."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ClassVar

from .capabilities import declare, merge
from .context import Context
from .coroutines import in_thread
from .dispatcher import Route
from .errors import MethodNotFound
from .events import State
from .jsonrpc import RequestId
from .peer import Peer
from .session import Options, Session
from .transport import Transport
from .vocabulary import CANCELLED, INITIALIZE, INITIALIZED, PING, PROGRESS, SET_LEVEL, module, vocabulary


class Server:
    """The base of generated servers: override what you offer; what is not overridden is answered with -32601.

    Attributes:
        bindings: The package of the generated base class.
        revision: The revision it speaks.
        instructions: How a model should use the server, told to every client.
        options: How the server's own requests are sent.
    """

    bindings: ClassVar[str]
    revision: ClassVar[str]
    info: Any
    instructions: str | None = None
    options: Options = Options()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start-up and shut-down of what the server owns: override it, and `yield` while it serves."""
        yield

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Capabilities to declare beside those that follow from the handlers, in wire form."""
        return {}

    @property
    def connections(self) -> list[Context]:
        """A context for each client that is connected now, for what is sent outside of a request."""
        return [
            _context(self, session, None, None)
            for session in _sessions(self)
            if session.peer.state is State.READY and session.peer.vocabulary.revision == self.revision
        ]


async def serve(transport: Transport, *servers: Server) -> None:
    """Serves one connection until either side ends it.

    Args:
        transport: How messages travel.
        servers: One for each revision that is offered; the client's wish decides, else the newest.
    """
    ordered = sorted(servers, key=lambda server: server.revision)
    peer = Peer("server", {server.revision: vocabulary(server, server.bindings, "server") for server in ordered})
    by_revision = {server.revision: server for server in ordered}

    def bind(session: Session, route: Route[Any]) -> Callable[[RequestId | None, Any], Any]:
        return _bind(by_revision[session.peer.vocabulary.revision], session, route)

    session = Session(peer, transport, bind, ordered[-1].options)
    for server in ordered:
        _sessions(server).append(session)
    try:
        await session.run()
    finally:
        for server in ordered:
            _sessions(server).remove(session)


@asynccontextmanager
async def lifespans(servers: Sequence[Server]) -> AsyncGenerator[None]:
    """Enters the lifespans of all servers, and leaves them in reverse."""
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server.lifespan())
        yield


def introduction(info: Any, implementation: type[Any]) -> Any:
    """How a side introduces itself; a side that says nothing of itself is named after us."""
    return info if info is not None else implementation(name="mcp-bindgen", version="0")


def _sessions(server: Server) -> list[Session]:
    found: list[Session] = server.__dict__.setdefault("_sessions", [])
    return found


def _context(server: Server, session: Session, id_: RequestId | None, params: Any) -> Context:
    kind: type[Context] = module(server.bindings, "server").Context
    return kind(session, id_, params)


def _bind(server: Server, session: Session, route: Route[Any]) -> Callable[[RequestId | None, Any], Any]:
    """The handler of `route`: the server's own, else ours."""
    name = route.method.name
    if not is_handled(route, server):
        ours = _OURS.get(name)
        if ours is None:
            raise MethodNotFound(name)
        return lambda id_, params: ours(server, session, params)
    handler = bound(route, server)
    context: type[Context] = module(server.bindings, "server").Context
    if name == INITIALIZE:
        return lambda id_, params: _initialize_by(handler, session, params, context(session, id_, params))
    if route.method.params is None:
        return lambda id_, params: handler(context(session, id_, params))
    return lambda id_, params: handler(params, context(session, id_, params))


def is_handled(route: Route[Any], target: object) -> bool:
    """Whether `target` overrides the stub of a route, or brought the route itself."""
    return hasattr(route.handler, "__mcp_method__") or route.handled_by(target)


def bound(route: Route[Any], target: object) -> Callable[..., Any]:
    """The handler of `route`, bound to `target`; one that blocks runs in a thread."""
    handler = getattr(target, route.handler.__name__)
    return handler if inspect.iscoroutinefunction(handler) else in_thread(handler)


def _initialize(server: Server, session: Session, params: Any) -> Any:
    _introduce(session, params)
    peer = session.peer
    words = peer.vocabulary
    offered = [name for name, route in words.routes.items() if is_handled(route, server)]
    session.declared["server"] = merge(declare("server", words, offered), server.extra_capabilities())
    method: Any = words.methods[INITIALIZE]
    wire = {
        "protocolVersion": words.revision,
        "capabilities": session.declared["server"],
        "serverInfo": introduction(getattr(server, "info", None), module(server.bindings, "types").Implementation),
    }
    if server.instructions is not None:
        wire["instructions"] = server.instructions
    peer.negotiated()
    return method.result.model_validate(wire)


async def _initialize_by(handler: Callable[..., Any], session: Session, params: Any, context: Context) -> Any:
    """A server that answers `initialize` itself."""
    _introduce(session, params)
    answer = await handler(params, context)
    session.declared["server"] = answer.capabilities.model_dump()
    session.peer.negotiated()
    return answer


def _introduce(session: Session, params: Any) -> None:
    session.declared["client"] = params.capabilities.model_dump()
    session.peer_info = params.client_info


def _set_level(server: Server, session: Session, params: Any) -> Any:
    session.log_level = params.level
    return {}


def _nothing(server: Server, session: Session, params: Any) -> Any:
    return {}


_OURS: dict[str, Callable[[Server, Session, Any], Any]] = {
    INITIALIZE: _initialize,
    INITIALIZED: _nothing,
    PING: _nothing,
    CANCELLED: _nothing,
    PROGRESS: _nothing,
    SET_LEVEL: _set_level,
}
