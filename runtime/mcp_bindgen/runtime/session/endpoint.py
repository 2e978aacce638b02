"""Endpoints of servers: one server for each revision, conversion for further revisions, and the clients."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast
from weakref import WeakValueDictionary

import anyio

from ..logs import log
from ..protocol import request_scope
from ..protocol.errors import MethodNotFound
from ..protocol.limits import Limits, Options
from ..protocol.peer import Peer
from ..protocol.request_scope import Handler, Link, RequestScope, Step
from ..protocol.revision import Dispatcher, Dispatchers
from ..protocol.routing import Route
from ..protocol.transport import Transport
from .context import Context
from .server import Server, serving
from .session import Session

if TYPE_CHECKING:
    from ..protocol.bridging import BridgedServer
    from .rounds import RequestStateSigner


class Served(Protocol):
    """Provider of servers, such as an `App`."""

    def servers(self) -> Sequence[Server]:
        """Return a server for each revision."""
        ...


def all_servers(served: Iterable[Server | Served]) -> list[Server]:
    """Return the servers themselves, and those of providers."""
    return [server for one in served for server in ([one] if isinstance(one, Server) else one.servers())]


class Workers(Protocol):
    """Processes that serve the same clients; a shared store brings them."""

    @property
    def signer(self) -> RequestStateSigner:
        """The signer of all processes for the state of requests."""
        ...

    def continued(self, link: Any, wanted: object) -> AbstractAsyncContextManager[None]:
        """Return the context of a subscription, which goes on where the client's previous one ended."""
        ...

    async def publish(self, server: Server, tell: Callable[[Any], Awaitable[None]]) -> bool:
        """Notify the clients of all processes; return False where only those of this process can be notified."""
        ...


@dataclass(eq=False)
class Clients:
    """Clients of an endpoint that can be notified: connections and subscriptions.

    Attributes:
        links: The clients.
        broadcasts: Number of broadcasts so far; lists may have changed since the last one.
        are_leaving: True if a subscription that begins now ends at once.
    """

    links: dict[Link, None] = field(default_factory=dict[Link, None])
    broadcasts: int = 0
    are_leaving: bool = False

    def leave(self) -> None:
        """End all subscriptions in good order, including those that begin later."""
        self.are_leaving = True
        for link in self.links:
            link.leave()


@dataclass(frozen=True, eq=False)
class Endpoint(request_scope.Endpoint):
    """Servers that are served together, at most one for each revision, and bridges to further revisions.

    Args:
        servers: The servers.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        has_sessions: False if stateful clients are served without sessions, so that they can only be answered.
        workers: The processes that serve the same clients, if there are several.
        steps: Work around each handler, the outermost first.

    Attributes:
        clients: The clients that can be notified.

    Raises:
        ValueError: There is no server, there are two for one revision, or a revision cannot be served.
    """

    servers: Sequence[Server]
    revisions: Sequence[str] | None = None
    has_sessions: bool = True
    workers: Workers | None = None
    steps: Sequence[Step] = ()
    clients: Clients = field(default_factory=lambda: Clients(), init=False)
    _handlers: dict[Route, Handler] = field(default_factory=dict[Route, Handler], init=False)

    def __post_init__(self) -> None:
        """Check the servers, and let them find this endpoint for their broadcasts."""
        ranked = sorted(self.servers, key=lambda server: server.dispatcher.revision.rank)
        object.__setattr__(self, "servers", tuple(ranked))
        if not ranked or len({server.revision for server in ranked}) < len(ranked):
            raise ValueError("serving needs servers, at most one for each revision")
        for server in ranked:
            server.dispatcher.revision.check_connectable()
            serving(server).add(self)
        if not self._is_complete and (self.revisions is not None or log.isEnabledFor(logging.INFO)):
            _ = self._served  # raises ValueError, and logs the losses of each revision

    # --- servers ----------------------------------------------------------------------------------------------

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """Limits of one connection: those for the best revision's server."""
        return self.servers[-1].limits

    @property
    def options(self) -> Options:  # type: ignore[override]
        """Options of requests to clients: those of the best revision's server."""
        return self.servers[-1].options

    @cached_property
    def _own(self) -> dict[str, Server]:
        return {one.revision: one for one in self.servers if self.revisions is None or one.revision in self.revisions}

    @property
    def _is_complete(self) -> bool:
        """True if nothing is converted."""
        return bool(self._own) and self.revisions is not None and self._own.keys() == set(self.revisions)

    @cached_property
    def _served(self) -> Mapping[str, Server | BridgedServer]:
        """Revision -> server of all that can be served, the best revision last."""
        if self._is_complete:
            return self._own
        from ..protocol.bridging import BRIDGING, MISSING  # few servers convert

        bridges = BRIDGING.only()
        if bridges is not None:
            return bridges.served(self.servers, self.revisions)
        if self.revisions is None:
            return self._own
        unknown = ", ".join(sorted(set(self.revisions) - self._own.keys())) or "none"
        own = ", ".join(server.revision for server in self.servers)
        raise ValueError(f"revisions: {unknown} cannot be served; {MISSING}; there are {own}")

    def served(self, revision: str | None) -> Server | BridgedServer | None:
        """Return the server of a revision, or None; conversion is looked up for a revision that is no server's own."""
        return None if revision is None else self._own.get(revision) or self._served.get(revision)

    @cached_property
    def dispatchers(self) -> Dispatchers:
        """Revision -> routes, for all revisions that are served, the best revision last."""
        more = None if self._is_complete else lambda: _eras(self._served)
        return Dispatchers(_eras(self._own), self._dispatcher, more)

    def _dispatcher(self, revision: str) -> Dispatcher:
        server = self._own.get(revision) or self._served[revision]
        return server.dispatcher.extended(type(server))

    def server(self, dispatcher: Dispatcher) -> Server:
        """Return the server of a revision."""
        return cast(Server, self.served(dispatcher.revision.name))  # a bridged one has the attributes of a server

    def bridged(self, server: Server) -> list[BridgedServer]:
        """Return the servers of other revisions that are made of a server."""
        return [one for one in self._served.values() if not isinstance(one, Server) and one.server is server]

    def signer(self, server: Server) -> RequestStateSigner:
        """Return the signer of the state that clients of a server carry: its own, or that of all processes."""
        from .rounds import PROCESS_SIGNER

        return server.request_state_signer or (PROCESS_SIGNER if self.workers is None else self.workers.signer)

    # --- handlers ---------------------------------------------------------------------------------------------

    def handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler of a route, with all steps around it; it raises `MethodNotFound` if there is none."""
        found = self._handlers.get(route)
        if found is None:
            try:
                found = inner = self.unchecked_handler(dispatcher, route)
            except MethodNotFound as error:
                found = inner = raising(error)
            for step in reversed(self.steps):
                found = step(self, dispatcher, route, found)
            if found is not inner:
                update_wrapper(found, inner, assigned=(), updated=())
            self._handlers[route] = found
        return found

    def unchecked_handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler of a route without these steps, for the runtime's own use."""
        server = self.server(dispatcher)
        if dispatcher.revision.era.is_stateless:
            from . import stateless_server  # a server of one era does not load the other era

            found = stateless_server.handler(self, server, dispatcher, route)
        else:
            from . import handshake_server

            found = handshake_server.handler(server, dispatcher, route)
        update_wrapper(found, getattr(type(original(server)), route.handler, found), assigned=(), updated=())
        return found

    def is_handled(self, dispatcher: Dispatcher, route: Route) -> bool:
        """Return True if a server has a handler of its own for a route."""
        return dispatcher.is_handled(route, self.served(dispatcher.revision.name))

    @cached_property
    def _threads(self) -> WeakValueDictionary[str, anyio.CapacityLimiter]:
        return WeakValueDictionary()

    def thread_limit(self, principal: str) -> anyio.CapacityLimiter:
        """Return the limit of threads for a principal, over all of its connections."""
        found = self._threads.get(principal)
        if found is None:
            found = self._threads[principal] = anyio.CapacityLimiter(self.limits.threads)
        return found

    # --- clients ----------------------------------------------------------------------------------------------

    def session(self, transport: Transport) -> Session:
        """Return a session for a new connection."""
        return Session(Peer("server", self.dispatchers), transport, self)

    async def run(self, session: Session) -> None:
        """Serve a connection until either side ends it."""
        with self.joined(session):
            await session.run()

    @contextmanager
    def joined(self, link: Link) -> Generator[None]:
        """Notify a client of broadcasts while a block lasts."""
        self.clients.links[link] = None
        if self.clients.are_leaving:
            link.leave()
        for server in self.servers:
            server.arrived(link)
        try:
            yield
        finally:
            del self.clients.links[link]
            for server in self.servers:
                server.left(link)

    def around_subscription(self, link: Any, wanted: object) -> AbstractAsyncContextManager[None]:
        """Return the context of a subscription, given the filter of its client."""
        return (
            super().around_subscription(link, wanted) if self.workers is None else self.workers.continued(link, wanted)
        )

    async def publish(self, server: Any, tell: Callable[[Any], Awaitable[None]]) -> bool:
        """Notify the clients of all processes; return False if only those of this process can be notified."""
        self.clients.broadcasts += 1
        return self.workers is not None and await self.workers.publish(server, tell)

    def links_of(self, server: object) -> list[Link]:
        """Return the clients of a server that can be notified, bridged ones included."""
        ready = [link for link in self.clients.links if link.ready]
        return [link for link in ready if original(self.server(link.negotiated.dispatcher)) is server]

    def connections(self, server: object) -> list[Context]:
        """Return a context for each client of a server that can be notified now."""
        return [self.server(one.negotiated.dispatcher).context(RequestScope.of(one)) for one in self.links_of(server)]


def raising(error: Exception) -> Handler:
    """Return a handler that raises an error."""

    def refuse(scope: RequestScope, params: object) -> NoReturn:
        raise error

    return refuse


def original(server: Server | BridgedServer) -> Server:
    """Return the server that the user wrote behind a server, which may be bridged."""
    return server if isinstance(server, Server) else cast(Server, server.server)


def _eras(servers: Mapping[str, Server | BridgedServer]) -> dict[str, bool]:
    return {name: server.dispatcher.revision.era.is_stateless for name, server in servers.items()}


async def serve(transport: Transport, *servers: Server | Served, revisions: Sequence[str] | None = None) -> None:
    """Serve one connection until either side ends it.

    Args:
        transport: How messages travel.
        servers: Servers or their providers, at most one for each revision. A request that names a stateless revision
            is answered in it; else the client's wish at the handshake decides, or the newest revision that has one.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
    """
    endpoint = Endpoint(all_servers(servers), revisions)
    await endpoint.run(endpoint.session(transport))


@asynccontextmanager
async def lifespans(servers: Sequence[Server]) -> AsyncGenerator[None]:
    """Enter the lifespans of all servers, then those for extensions, and leave them in reverse."""
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server.lifespan())
        for server in servers:
            await stack.enter_async_context(server.extension_lifespan())
        yield
