"""Service of servers over transports: one server for each revision, and conversion for further revisions."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Protocol, cast
from weakref import WeakValueDictionary

import anyio

from ..logs import log
from ..protocol.limits import Limits
from ..protocol.peer import Peer
from ..protocol.request_scope import Handler
from ..protocol.revision import Dispatcher
from ..protocol.routing import Route
from ..protocol.transport import Transport
from .execution import FindHandler
from .server import Server, attached
from .session import Session

if TYPE_CHECKING:
    from ..protocol.bridging import BridgedServer


class Served(Protocol):
    """Provider of servers, such as an `App`."""

    def servers(self) -> Sequence[Server]:
        """Return a server for each revision."""
        ...


def all_servers(served: Iterable[Server | Served]) -> list[Server]:
    """Return the servers themselves, and those of providers."""
    return [server for one in served for server in ([one] if isinstance(one, Server) else one.servers())]


class Service:
    """Servers that are served together, at most one for each revision, and bridges to further revisions.

    Args:
        servers: The servers.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.

    Attributes:
        servers: The servers, the best revision last.
        limits: Limits of one connection: those for the best revision's server.
        find: Returns the handler of a route.

    Raises:
        ValueError: There is no server, there are two for one revision, or a revision cannot be served.
    """

    def __init__(self, servers: Sequence[Server], revisions: Sequence[str] | None = None) -> None:
        self.servers: list[Server] = sorted(servers, key=lambda server: server.dispatcher.revision.rank)
        if not servers or len({server.revision for server in servers}) < len(servers):
            raise ValueError("serving needs servers, at most one for each revision")
        for server in self.servers:
            server.dispatcher.revision.check_connectable()
            server.session_modes[self] = True
        self._wanted = wanted = None if revisions is None else frozenset(revisions)
        self._own = {one.revision: one for one in self.servers if wanted is None or one.revision in wanted}
        is_complete = bool(self._own) and self._own.keys() == wanted
        self._served: Mapping[str, Server | BridgedServer] | None = self._own if is_complete else None
        self.limits: Limits = self.servers[-1].limits
        self._handlers: dict[Route, Handler] = {}
        self._threads: WeakValueDictionary[str, anyio.CapacityLimiter] = WeakValueDictionary()
        self.find: FindHandler = self.handler
        if (wanted is not None and not is_complete) or log.isEnabledFor(logging.INFO):
            self._all_served()  # raises ValueError, and logs the losses of each revision

    def _all_served(self) -> Mapping[str, Server | BridgedServer]:
        """Return revision -> server of all that can be served, the best revision last."""
        if self._served is None:
            from ..protocol.bridging import BRIDGING, MISSING  # few servers convert

            bridges = BRIDGING.only()
            if bridges is not None:
                self._served = bridges.served(self.servers, self._wanted)
            elif self._wanted is None:
                self._served = self._own
            else:
                unknown = ", ".join(sorted(self._wanted - self._own.keys())) or "none"
                own = ", ".join(server.revision for server in self.servers)
                raise ValueError(f"revisions: {unknown} cannot be served; {MISSING}; there are {own}")
        return self._served

    def served(self, revision: str | None) -> Server | BridgedServer | None:
        """Return the server of a revision, or None; conversion is looked up for a revision that is no server's own."""
        return None if revision is None else self._own.get(revision) or self._all_served().get(revision)

    @cached_property
    def dispatchers(self) -> dict[str, Dispatcher]:
        """Revision -> routes, for all revisions that are served, the best revision last."""
        return _dispatchers(self._all_served())

    @property
    def supported(self) -> list[str]:
        """The revisions, the best first."""
        return list(reversed(self.dispatchers))

    def handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler of a route; raises `MethodNotFound` if there is none."""
        found = self._handlers.get(route)
        if found is None:
            revision = dispatcher.revision
            server = self.server(dispatcher)
            if revision.era.is_stateless:
                from . import stateless_server  # a server of one era does not load the other era

                found = stateless_server.handler(server, dispatcher, route, lambda: self.supported)
            else:
                from . import handshake_server

                found = handshake_server.handler(server, dispatcher, route)
            update_wrapper(found, getattr(type(original(server)), route.handler, found), assigned=(), updated=())
            self._handlers[route] = found
        return found

    def server(self, dispatcher: Dispatcher) -> Server:
        """Return the server of a revision."""
        return cast(Server, self.served(dispatcher.revision.name))  # a bridged one has the attributes of a server

    def is_handled(self, dispatcher: Dispatcher, route: Route) -> bool:
        """Return True if a server has a handler of its own for a route."""
        return dispatcher.is_handled(route, self.served(dispatcher.revision.name))

    def session(self, transport: Transport) -> Session:
        """Return a session for a new connection."""
        if self._served is None:
            peer = Peer("server", _dispatchers(self._own), complete=lambda: self.dispatchers)
        else:
            peer = Peer("server", self.dispatchers)
        session = Session(peer, transport, self.find, self.limits, self.servers[-1].options)
        if session.origin.principal is not None:
            session.threads = self.threads_of(session.origin.principal)
        return session

    def threads_of(self, principal: str) -> anyio.CapacityLimiter:
        """Return the limit of threads for a principal, over all of its connections."""
        found = self._threads.get(principal)
        if found is None:
            found = self._threads[principal] = anyio.CapacityLimiter(self.limits.threads)
        return found

    async def run(self, session: Session) -> None:
        """Serve a connection until either side ends it."""
        async with AsyncExitStack() as stack:
            for server in self.servers:
                stack.enter_context(attached(server, session))
            await session.run()


def original(server: Server | BridgedServer) -> Server:
    """Return the server that the user wrote behind a server, which may be bridged."""
    return server if isinstance(server, Server) else cast(Server, server.server)


def _dispatchers(servers: Mapping[str, Server | BridgedServer]) -> dict[str, Dispatcher]:
    return {name: server.dispatcher.extended(type(server)) for name, server in servers.items()}


async def serve(transport: Transport, *servers: Server | Served, revisions: Sequence[str] | None = None) -> None:
    """Serve one connection until either side ends it.

    Args:
        transport: How messages travel.
        servers: Servers or their providers, at most one for each revision. A request that names a stateless revision
            is answered in it; else the client's wish at the handshake decides, or the newest revision that has one.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
    """
    service = Service(all_servers(servers), revisions)
    await service.run(service.session(transport))


@asynccontextmanager
async def lifespans(servers: Sequence[Server]) -> AsyncGenerator[None]:
    """Enter the lifespans of all servers, then those for extensions, and leave them in reverse."""
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server.lifespan())
        for server in servers:
            await stack.enter_async_context(server.extension_lifespan())
        yield
