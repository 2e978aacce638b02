"""Endpoints of servers: one server for each revision, conversion for further revisions, and the clients."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, NoReturn, cast
from weakref import WeakValueDictionary

import anyio

from ..logs import log
from ..protocol import request_scope
from ..protocol.connection import Connection
from ..protocol.errors import MethodNotFound
from ..protocol.request_scope import Handler, Link, RequestScope, Step
from ..protocol.revision import Dispatcher, Dispatchers, KnownRevision, facts_of
from ..protocol.routing import Route
from ..protocol.transport import Transport
from .context import Context
from .server import Server, serving
from .session import Session

if TYPE_CHECKING:
    from ..protocol.bridging import BridgedServer
    from .broadcasts import Workers
    from .rounds import RequestStateSigner
    from .targets import Provider, Served, WebRoute


class Servers:
    """Servers that exist already, for one endpoint.

    Args:
        servers: The servers.

    Attributes:
        routes: They have none.
    """

    routes: Sequence[WebRoute] = ()

    def __init__(self, *servers: Server) -> None:
        self._servers = servers

    def served(self) -> Served:
        """Return this object."""
        return self

    def revisions(self) -> Sequence[KnownRevision]:
        """Return the revisions of the servers."""
        return [facts_of(one.dispatcher.revision) for one in self._servers]

    def server(self, revision: str) -> Server:
        """Return the server of a revision."""
        return next(one for one in self._servers if one.revision == revision)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Enter the lifespans of all servers, then those for extensions, and leave them in reverse."""
        async with AsyncExitStack() as stack:
            for server in self._servers:
                await stack.enter_async_context(server.lifespan())
            for server in self._servers:
                await stack.enter_async_context(server.extension_lifespan())
            yield


def all_served(given: Iterable[Server | Provider]) -> list[Served]:
    """Return what one endpoint serves."""
    given = list(given)
    own = [one for one in given if isinstance(one, Server)]
    return [*([Servers(*own)] if own else []), *(one.served() for one in given if not isinstance(one, Server))]


def all_servers(given: Iterable[Server | Provider]) -> list[Server]:
    """Return the servers themselves, and those of providers."""
    return [one.server(revision.name) for one in all_served(given) for revision in one.revisions()]


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
        given: The servers, or their providers.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        has_sessions: False if stateful clients are served without sessions, so that they can only be answered.
        workers: The processes that serve the same clients, if there are several.
        steps: Work around each handler, the outermost first.

    Attributes:
        clients: The clients that can be notified.
        limits: Limits of one connection: those for the best revision's server that exists already.
        options: Options of requests to clients: those of the same server.

    Raises:
        ValueError: There is no server, there are two for one revision, or a revision cannot be served.
    """

    given: Sequence[Server | Provider]
    revisions: Sequence[str] | None = None
    has_sessions: bool = True
    workers: Workers | None = None
    steps: Sequence[Step] = ()
    clients: Clients = field(default_factory=lambda: Clients(), init=False)
    _homes: dict[str, Server] = field(default_factory=dict[str, Server], init=False)
    _bridged: dict[str, BridgedServer] = field(default_factory=dict[str, Any], init=False)
    _handlers: dict[Route, Handler] = field(default_factory=dict[Route, Handler], init=False)

    def __post_init__(self) -> None:
        """Check the revisions; servers that exist already can broadcast from now on."""
        object.__setattr__(self, "given", all_served(self.given))
        if not self._sources or len(self._sources) < sum(len(one.revisions()) for one in all_served(self.given)):
            raise ValueError("serving needs servers, at most one for each revision")
        for name, (_, source) in self._sources.items():
            if isinstance(source, Servers):
                best = self._home(name)
                object.__setattr__(self, "limits", best.limits)
                object.__setattr__(self, "options", best.options)
        if not self._is_complete and (self.revisions is not None or log.isEnabledFor(logging.INFO)):
            _ = self._plan  # raises ValueError
        if log.isEnabledFor(logging.INFO):
            from ..protocol.bridging import log_losses

            log_losses([self.served(name) for name in self._plan])

    # --- servers ----------------------------------------------------------------------------------------------

    @cached_property
    def _sources(self) -> dict[str, tuple[KnownRevision, Served]]:
        """Revision -> its facts, and where its server comes from; the best last."""
        rows = [(facts, one) for one in all_served(self.given) for facts in one.revisions()]
        return {row[0].name: row for row in sorted(rows, key=lambda row: row[0].rank)}

    @cached_property
    def _own(self) -> dict[str, KnownRevision]:
        """The revisions that need no conversion."""
        found = {name: facts for name, (facts, _) in self._sources.items()}
        return {name: one for name, one in found.items() if self.revisions is None or name in self.revisions}

    @property
    def _is_complete(self) -> bool:
        """True if nothing is converted."""
        return bool(self._own) and self.revisions is not None and self._own.keys() == set(self.revisions)

    @cached_property
    def _plan(self) -> Mapping[str, tuple[KnownRevision, str]]:
        """Revision -> its facts, and the revision of the server that serves it; the best last."""
        if self._is_complete:
            return {name: (facts, name) for name, facts in self._own.items()}
        from ..protocol.bridging import plan  # few servers convert

        return plan([facts for facts, _ in self._sources.values()], self.revisions)

    @property
    def servers(self) -> list[Server]:
        """All servers, the best revision last."""
        return [self._home(name) for name in self._sources]

    def _home(self, revision: str) -> Server:
        """Return the server of a revision that needs no conversion."""
        found = self._homes.get(revision)
        if found is None:
            found = self._sources[revision][1].server(revision)
            found.dispatcher.revision.check_connectable()
            self._homes[revision] = found
            serving(found).add(self)
            for link in self.clients.links:
                found.arrived(link)
        return found

    def served(self, revision: str) -> Server | BridgedServer | None:
        """Return the server of a revision, or None; conversion is looked up for a revision that is no server's own."""
        if revision in self._own:
            return self._home(revision)
        if revision not in self._bridged:
            facts, home = self._plan.get(revision, (None, ""))
            if facts is None:
                return None
            from ..protocol.bridging import bridged

            self._bridged[revision] = bridged(self._home(home), facts)
        return self._bridged[revision]

    @cached_property
    def dispatchers(self) -> Dispatchers:
        """Revision -> routes, for all revisions that are served, the best revision last."""
        own = {name: facts.is_stateless for name, facts in self._own.items()}

        def every() -> dict[str, bool]:
            return {name: facts.is_stateless for name, (facts, _) in self._plan.items()}

        return Dispatchers(own, self._dispatcher, every)

    def _dispatcher(self, revision: str) -> Dispatcher:
        server = cast(Server, self.served(revision))
        return server.dispatcher.extended(type(server))

    def server(self, dispatcher: Dispatcher) -> Server:
        """Return the server of a revision."""
        return cast(Server, self.served(dispatcher.revision.name))  # a bridged one has the attributes of a server

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

            found = stateless_server.handler(server, dispatcher, route, self.dispatchers, self.signer(server))
        else:
            from . import handshake_server

            found = handshake_server.handler(server, dispatcher, route)
        update_wrapper(found, getattr(type(original(server)), route.handler, found), assigned=(), updated=())
        return found

    def is_handled(self, dispatcher: Dispatcher, route: Route) -> bool:
        """Return True if a server has a handler of its own for a route."""
        return dispatcher.is_handled(route, self.server(dispatcher))

    @cached_property
    def _threads(self) -> WeakValueDictionary[str, anyio.CapacityLimiter]:
        return WeakValueDictionary()

    def thread_limit(self, principal: str) -> anyio.CapacityLimiter:
        """Return the limit of threads for a principal, over all of its connections."""
        return self._threads.setdefault(principal, anyio.CapacityLimiter(self.limits.threads))

    # --- clients ----------------------------------------------------------------------------------------------

    def session(self, transport: Transport) -> Session:
        """Return a session for a new connection."""
        return Session(Connection("server", self.dispatchers), transport, self)

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
        for server in list(self._homes.values()):
            server.arrived(link)
        try:
            yield
        finally:
            del self.clients.links[link]
            for server in list(self._homes.values()):
                server.left(link)

    def around_subscription(self, link: Link, wanted: object) -> AbstractAsyncContextManager[None]:
        """Return the context of a subscription, given the filter of its client."""
        return (
            super().around_subscription(link, wanted) if self.workers is None else self.workers.continued(link, wanted)
        )

    async def publish(self, server: Server, tell: Callable[[Any], Awaitable[None]], told: list[object]) -> bool:
        """Notify the clients of all processes; return False if only those of this process can be notified.

        Args:
            server: The server that broadcasts.
            tell: Notifies one client, given its context.
            told: The stores that have the broadcast already; this one is added.
        """
        self.clients.broadcasts += 1
        if self.workers is None or any(self.workers.shared is one for one in told):
            return self.workers is not None
        told.append(self.workers.shared)
        return await self.workers.publish(server, tell)

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


async def serve(transport: Transport, *servers: Server | Provider, revisions: Sequence[str] | None = None) -> None:
    """Serve one connection until either side ends it.

    Args:
        transport: How messages travel.
        servers: Servers or their providers, at most one for each revision. A request that names a stateless revision
            is answered in it; else the client's wish at the handshake decides, or the newest revision that has one.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
    """
    endpoint = Endpoint(servers, revisions)
    await endpoint.run(endpoint.session(transport))


@asynccontextmanager
async def lifespans(servers: Iterable[Server | Provider]) -> AsyncGenerator[None]:
    """Enter the lifespans of servers, and leave them in reverse.

    To `serve` the same, pass `served = app.served()` to both: each call with the `App` itself makes servers of its own.
    """
    async with AsyncExitStack() as stack:
        for one in all_served(servers):
            await stack.enter_async_context(one.lifespan())
        yield
