"""Base of generated servers, and their service over transports."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cached_property, update_wrapper, wraps
from types import MappingProxyType
from typing import Any, ClassVar, cast
from weakref import WeakValueDictionary

import anyio
from anyio.lowlevel import checkpoint

from ..concurrency import Turn
from ..era.stateless import ParamsWithMeta
from ..logs import log
from ..protocol.access import Access, AccessPolicy, Identity, Operation, check, operations
from ..protocol.bridging import MISSING, BridgedEngine, BridgedServer, RevisionBridge, bridging
from ..protocol.capabilities import declared
from ..protocol.envelope import RequestId
from ..protocol.errors import ConnectionClosed, SessionRequired
from ..protocol.extension import Extension
from ..protocol.limits import Limits, Options
from ..protocol.methods import Method, Notification
from ..protocol.peer import Peer
from ..protocol.request_scope import LEVELS, Handler, Link, Negotiated, RequestScope
from ..protocol.revision import Dispatcher
from ..protocol.routing import Returns, Route
from ..protocol.transport import Transport
from . import handshake_server, stateless_server
from .context import Context
from .handlers import Handle, extensions_of
from .rounds import RequestStateSigner
from .session import Session
from .subscriptions import Subscription, attached


class Recorder(Link):
    """Link that records the notifications of a broadcast, to pass them on to other processes.

    Args:
        agreed: Agreement of any client of the revision; it is changed to want every notification.

    Attributes:
        told: Notifications and their params.
    """

    def __init__(self, agreed: Negotiated) -> None:
        agreed.log_level, agreed.subscriptions = LEVELS[0], None
        self.negotiated: Negotiated = agreed
        self.told: list[tuple[Notification[Any], Any]] = []

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuse: a broadcast has no client that could respond."""
        raise RuntimeError(f"{method.name}: a broadcast to several processes can only notify")

    async def notify(self, method: Notification[Any], params: object, *, related: RequestId | None = None) -> None:
        """Note a notification."""
        self.told.append((method, params))


Publish = Callable[[str, Notification[Any], Any], Awaitable[None]]
"""Notifies the clients of all processes, given a revision."""

_MAX_TOLD_AT_ONCE = 100  # clients of a broadcast
_MAX_CHECKED_AT_ONCE = 10  # operations of a request


class Server:
    """Base of generated servers: override the methods that you offer; all others are answered with -32601.

    Attributes:
        dispatcher: Generated routes to its handlers.
        context: Generated class of the contexts; where extensions have contexts, a class that joins them.
        revision: The revision it speaks.
        announces: Notifications about changes that it may send, by their methods, and so declares; `None` for all
            that concern its features.
        instructions: Advice to models, sent to every client.
        options: Options of the server's own requests.
        limits: Limits of one client's connection.
        has_sessions: True if clients can be asked and notified; False where `HttpApp(..., sessions=False)` serves a
            stateful revision.
        request_state_signer: Signs the state that a client carries between rounds of a request (stateless revisions).
            Processes that serve the same clients need the same keys; a shared store provides them.
        publish: Sends notifications to the clients of all processes; set by the endpoint that shares a store.
        extensions: Extensions among its bases; it declares them to every client of its revision.
        extension_settings: Id of an extension -> its settings, typed or in wire form.
        authorize: Checks the scopes of operations, as `Service.authorize` does; set by an endpoint that verifies
            tokens.
        allows: Returns whether an identity has these scopes, as `Service.allows` does; set likewise.
        bridged: Revision -> server, of the other revisions in which this server was served so far.
    """

    dispatcher: ClassVar[Dispatcher]
    context: ClassVar[type[Context]]
    revision: ClassVar[str]
    extensions: ClassVar[tuple[Extension, ...]] = ()
    extension_settings: Mapping[str, Any] = {}
    info: Any = None
    announces: Collection[str] | None = None
    instructions: str | None = None
    options: Options = Options(timeout=None)
    limits: Limits = Limits()
    has_sessions: bool = True
    request_state_signer: RequestStateSigner = RequestStateSigner()
    publish: Publish | None = None
    authorize: Callable[[Identity | None, str | None, Sequence[Operation]], None] | None = None
    allows: Access | None = None
    _audience: list[Link] | None = None
    bridged: Mapping[str, BridgedServer] = MappingProxyType({})

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "dispatcher" in vars(cls):
            cls.revision = cls.dispatcher.revision.name
        elif hasattr(cls, "dispatcher"):
            cls.extensions = extensions_of(cls, cls.dispatcher)
            contexts = tuple(vars(one)["context"] for one in cls.__mro__ if {"adds", "context"} <= vars(one).keys())
            if not all(issubclass(cls.context, one) for one in contexts):
                cls.context = type("Context", contexts, {"__doc__": Context.__doc__, "__module__": cls.__module__})

    @property
    def audience(self) -> list[Link]:
        """Links to its clients: connections and subscriptions."""
        if self._audience is None:
            self._audience = []
        return self._audience

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start and stop the server's resources: override it, and `yield` while it serves."""
        yield

    @asynccontextmanager
    async def extension_lifespan(self) -> AsyncGenerator[None]:
        """Run the background work of an extension; entered after the lifespans of all servers.

        An extension with background work overrides this, and enters `super().extension_lifespan()` around it.
        """
        yield

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return capabilities to declare beside those of the handlers, in wire form."""
        return {}

    def required_scopes(self, method: str, name: str | None) -> Collection[str]:
        """Return the scopes that the token of a request needs, beside those of the endpoint.

        A server that overrides this can be served over HTTP only where tokens are verified.

        Args:
            method: The method of a message.
            name: Target of the method: the name of a tool or prompt, the URI of a resource; `None` for neither. A URI
                is in its canonical form (RFC 3986, section 6.2.2), with scheme and host in lower case. A URI
                in another form is passed in both forms; the scopes of both are needed.
        """
        return ()

    def around(self, method: Method, handler: Handle) -> Handle:
        """Return the handler of a method, given the server's handler: by default the same.

        An extension that takes part in other methods overrides this, and begins with `super().around`.

        Args:
            method: The method.
            handler: Takes params and context, and returns the result.
        """
        return handler

    def bridged_engines(self, bridge: RevisionBridge) -> Sequence[BridgedEngine]:
        """Return the engines of extensions that answer requests of another revision themselves.

        An engine that does so adds itself to the result of `super().bridged_engines`.

        Args:
            bridge: The path from that revision to the server's handlers.
        """
        return ()

    def agree(self, wanted: object, ctx: Context) -> Returns[Any]:
        """Return the part of a filter that a client gets: by default all of it (stateless revisions).

        Args:
            wanted: The filter, without features that the server does not offer; with the members of its extensions.
            ctx: The request.
        """
        return wanted

    def begin_subscription(self, link: Any) -> None:
        """Called when a client begins to listen and gets broadcasts (stateless revisions)."""

    @property
    def connections(self) -> list[Context]:
        """Context for each client that can be notified now: connected clients, and clients that listen.

        Where several processes share a store, these are the clients of this process: use `broadcast`.
        """
        links: list[Any] = [link for link in self.audience if isinstance(link, Session | Subscription) and link.ready]
        found = [(self._context_in(link.negotiated.dispatcher), link) for link in links]
        return [context(RequestScope.of(link)) for context, link in found if context is not None]

    def _context_in(self, dispatcher: Dispatcher) -> type[Context] | None:
        """Return the context of this server's handlers for clients of a revision; `None` where another serves it."""
        if dispatcher.revision.name == self.revision:
            return self.context
        bridged = self.bridged.get(dispatcher.revision.name)
        return bridged.context if bridged is not None and bridged.dispatcher is dispatcher else None

    async def broadcast(self, tell: Callable[[Any], Awaitable[None]]) -> None:
        """Notify all clients: `await server.broadcast(lambda client: client.notify_tool_list_changed())`.

        All clients are notified at the same time; a slow client delays no other, and a lost client is left out.
        Updates of a resource are sent to its followers only.

        Where several processes share a store, `tell` is called once, with a context that notifies the clients of all
        processes and can do nothing else.

        Args:
            tell: Notifies one client, given its context.

        Raises:
            SessionRequired: No client can be notified, because stateful clients are served without sessions.
        """
        if not self.has_sessions and not self.connections:
            raise SessionRequired("broadcast")
        if self.publish is not None:
            agreed = Negotiated(self.dispatcher.extended(type(self)))
            agreed.declared["server"] = declared(self, agreed.dispatcher)
            agreed.declared["client"] = {"extensions": {one.id: {} for one in self.extensions}}
            recorder = Recorder(agreed)
            await tell(self.context(RequestScope.of(recorder)))
            for method, params in recorder.told:
                await self.publish(self.revision, method, params)
                for revision, bridged in self.bridged.items():
                    converted = bridged.converted(method, params)
                    if converted is not None:
                        await self.publish(revision, *converted)
            return

        async def one(context: Context) -> None:
            with suppress(ConnectionClosed):
                await tell(context)

        async with anyio.create_task_group() as tasks:
            for number, context in enumerate(self.connections, 1):
                tasks.start_soon(one, context)
                if number % _MAX_TOLD_AT_ONCE == 0:  # requests are handled in between
                    await checkpoint()


class Service:
    """Servers that are served together, at most one for each revision, and bridges to further revisions.

    Args:
        servers: The servers.
        access_policy: Returns the scopes of operations; `None` where messages carry no tokens.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.

    Attributes:
        servers: The servers, the best revision last.
        limits: Limits of one connection: those for the best revision's server.
        find: Returns the handler of a route: `handler` or `guarded`.

    Raises:
        ValueError: There is no server, there are two for one revision, or a revision cannot be served.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        access_policy: AccessPolicy | None = None,
        revisions: Sequence[str] | None = None,
    ) -> None:
        self.servers = sorted(servers, key=lambda server: server.dispatcher.revision.rank)
        if not servers or len({server.revision for server in servers}) < len(servers):
            raise ValueError("serving needs servers, at most one for each revision")
        for server in self.servers:
            server.dispatcher.revision.check_connectable()
        self._wanted = None if revisions is None else frozenset(revisions)
        own = {server.revision: server for server in self.servers}
        self._own = own if self._wanted is None else {name: own[name] for name in own if name in self._wanted}
        needs_bridges = self._wanted is not None and (self._own.keys() != self._wanted or not self._own)
        is_complete = self._wanted is not None and not needs_bridges
        self._served: Mapping[str, Server | BridgedServer] | None = self._own if is_complete else None
        self.limits = self.servers[-1].limits
        self._handlers: dict[Route, Handler] = {}
        self._threads: WeakValueDictionary[str, anyio.CapacityLimiter] = WeakValueDictionary()
        self._access_policy = access_policy
        if access_policy is not None:
            for server in self.servers:
                server.authorize, server.allows = self.authorize, self.allows
        self.find = self.handler if access_policy is None else self.guarded
        if needs_bridges or log.isEnabledFor(logging.INFO):
            self._all_served()  # raises ValueError, and logs the losses of each revision

    def _all_served(self) -> Mapping[str, Server | BridgedServer]:
        """Return revision -> server of all that can be served, the best revision last."""
        if self._served is None:
            bridges = bridging()
            if bridges is not None:
                self._served = bridges.served(self.servers, self._wanted)
            elif self._wanted is None:
                self._served = self._own
            else:
                unknown = ", ".join(sorted(self._wanted - self._own.keys())) or "none"
                own = ", ".join(server.revision for server in self.servers)
                raise ValueError(f"revisions: {unknown} cannot be served; {MISSING}; there are {own}")
        return self._served

    def _server(self, revision: str | None) -> Server | BridgedServer | None:
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
                found = stateless_server.handler(server, dispatcher, route, lambda: self.supported)
            else:
                found = handshake_server.handler(server, dispatcher, route)
            update_wrapper(found, getattr(type(_original(server)), route.handler, found), assigned=(), updated=())
            self._handlers[route] = found
        return found

    def guarded(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler of a route, after a check of the request's scopes."""
        handler = self.handler(dispatcher, route)

        async def checked_in_turns(scope: RequestScope, params: object, asked: Sequence[Operation]) -> Any:
            await self.authorize_all(scope.origin.identity, dispatcher.revision.name, asked)
            answer = handler(scope, params)
            return await answer if inspect.isawaitable(answer) else answer

        @wraps(handler)
        def checked(scope: RequestScope, params: object) -> Any:
            asked = operations(route.method, params.params if isinstance(params, ParamsWithMeta) else params)
            if len(asked) > _MAX_CHECKED_AT_ONCE:
                return checked_in_turns(scope, params, asked)
            self.authorize(scope.origin.identity, dispatcher.revision.name, asked)
            return handler(scope, params)

        return checked

    def needed_scopes(self, revision: str | None, operations: Sequence[Operation]) -> frozenset[str]:
        """Return the scopes that operations need together.

        Args:
            revision: Their revision, if known.
            operations: Operations, at least one.
        """
        if self._access_policy is None:
            return frozenset()
        served = self._server(revision)
        if served is not None and not isinstance(served, Server):
            operations = served.operations(operations)
        needed = self._access_policy.needed(operations[0])
        for one in operations[1:]:
            needed |= self._access_policy.needed(one)
        server = _original(served)
        if server is not None and type(server).required_scopes is not Server.required_scopes:
            needed = needed.union(*(server.required_scopes(method, name) for method, name in operations))
        return needed

    def authorize(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> None:
        """Check that an identity has the needed scopes.

        Raises:
            InsufficientScope: A scope is missing; the error lists all needed scopes.
        """
        if self._access_policy is not None:
            check(identity, self.needed_scopes(revision, operations), operations)

    def allows(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> bool:
        """Return whether an identity has the needed scopes."""
        needed = self.needed_scopes(revision, operations)
        return not needed or (identity is not None and identity.has(*needed))

    async def authorize_all(
        self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]
    ) -> None:
        """Check the operations of a message or batch as `authorize` does; other tasks run in between."""
        if self._access_policy is None:
            return
        needed: frozenset[str] = frozenset()
        turn = Turn()
        for one in operations:
            await turn.give_way()
            needed |= self.needed_scopes(revision, [one])
        check(identity, needed, operations)

    def server(self, dispatcher: Dispatcher) -> Server:
        """Return the server of a revision."""
        return cast(Server, self._server(dispatcher.revision.name))  # a bridged one has the attributes of a server

    def server_of(self, revision: str) -> Server | None:
        """Return the server of a revision by name; `None` if the revision is not served."""
        return cast(Server | None, self._server(revision))

    def is_handled(self, dispatcher: Dispatcher, route: Route) -> bool:
        """Return whether a server has a handler of its own for a route."""
        return dispatcher.is_handled(route, self._server(dispatcher.revision.name))

    def session(self, transport: Transport) -> Session:
        """Return a session for a new connection."""
        if self._served is None:
            peer = Peer("server", _dispatchers(self._own), complete=lambda: self.dispatchers)
        else:
            peer = Peer("server", self.dispatchers)
        session = Session(peer, transport, self.find, self.servers[-1].options, self.limits)
        if session.origin.principal is not None:
            session.threads = self.threads_of(session.origin.principal)
        if self._access_policy is not None:
            session.access = self.allows
        return session

    def threads_of(self, principal: str) -> anyio.CapacityLimiter:
        """Return the limit of threads for a principal, over all of its connections."""
        found = self._threads.get(principal)
        if found is None:
            found = self._threads[principal] = anyio.CapacityLimiter(self.limits.threads)
        return found

    def restore(self, session: Session, snapshot: Mapping[str, Any], first_id: int) -> None:
        """Resume a session of another process; see `handshake_server.restore`; raises `KeyError`."""
        dispatcher = self.dispatchers[snapshot["revision"]]
        server = self.server(dispatcher)
        handshake_server.restore(session, snapshot, declared(server, dispatcher), first_id)

    async def run(self, session: Session) -> None:
        """Serve a connection until either side ends it."""
        async with AsyncExitStack() as stack:
            for server in self.servers:
                stack.enter_context(attached(server, session))
            await session.run()


def _original(server: Server | BridgedServer | None) -> Server | None:
    """Return the user's server behind a server, which may be bridged."""
    return server if server is None or isinstance(server, Server) else cast(Server, server.server)


def _dispatchers(servers: Mapping[str, Server | BridgedServer]) -> dict[str, Dispatcher]:
    return {name: server.dispatcher.extended(type(server)) for name, server in servers.items()}


async def serve(transport: Transport, *servers: Server, revisions: Sequence[str] | None = None) -> None:
    """Serve one connection until either side ends it.

    Args:
        transport: How messages travel.
        servers: The servers, at most one for each revision. A request that names a stateless revision is answered in
            it; else the client's wish at the handshake decides, or the newest revision that has one.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
    """
    service = Service(servers, revisions=revisions)
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
