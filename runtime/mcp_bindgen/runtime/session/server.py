"""The base of generated servers, and serving them over a transport."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import update_wrapper, wraps
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import anyio
from anyio.lowlevel import checkpoint

from mcp_bindgen.bridging.offer import converted_for_all, served, tell_what_is_missed
from mcp_bindgen.bridging.server import BridgedDispatcher, BridgedEngine, BridgedServer

from ..concurrency import Turn
from ..era.operations import operations
from ..era.sides import Handle, extensions_of
from ..era.stateless.request_meta import ParamsWithMeta
from ..era.stateless.request_state import RequestStateSigner
from ..era.stateless.subscriptions import Subscription, attached, audience
from ..protocol.access import AccessPolicy, Identity, Operation, check
from ..protocol.capabilities import declared
from ..protocol.errors import ConnectionClosed, SessionRequired
from ..protocol.extension import Extension
from ..protocol.methods import Method, Notification
from ..protocol.negotiated import Negotiated
from ..protocol.options import Limits, Options
from ..protocol.peer import Peer
from ..protocol.revision import Dispatcher, Handler
from ..protocol.routing import Returns, Route
from ..protocol.transport import Transport
from .context import Context
from .recorder import Recorder
from .request_scope import RequestScope
from .session import Session

Publish = Callable[[str, Notification[Any], Any], Awaitable[None]]
"""Tells the clients of all processes something, given the revision that they speak."""

_MAX_TOLD_AT_ONCE = 100  # clients of a broadcast
_MAX_CHECKED_AT_ONCE = 10  # operations of a request


class Server:
    """The base of generated servers: override what you offer; what is not overridden is answered with -32601.

    Attributes:
        dispatcher: The generated routes to its handlers.
        context: The generated class of what its handlers know of their requests; where several extensions have one
            each, a class of all of them.
        revision: The revision it speaks.
        announces: The notifications about changes that it may send, by their methods, and so declares; `None` for all
            that are about what it offers.
        instructions: How a model should use the server, told to every client.
        options: How the server's own requests are sent.
        limits: How much of one client's is taken at once.
        has_sessions: Whether clients are remembered, so that they can be asked and told something; not where
            `HttpApp(..., sessions=False)` serves a stateful revision.
        request_state_signer: Protects the state that a client carries between rounds of a request (stateless eras).
            Processes that serve the same clients need one with the same keys; a shared store gives them such keys.
        publish: Tells the clients of all processes, where there are several; set by what serves them.
        extensions: The extensions among its bases; it declares them to every client of its revision.
        extension_settings: Id of an extension -> the settings that stand beside it, typed or in wire form.
        authorize: Checks that an identity has the scopes that operations need, as `Service.authorize` does; set by what
            serves them, where tokens are verified.
        allows: Tells whether an identity has them, as `Service.allows` does; set likewise.
    """

    dispatcher: ClassVar[Dispatcher]
    context: ClassVar[type[Context]]
    revision: ClassVar[str]
    extensions: ClassVar[tuple[Extension, ...]] = ()
    extension_settings: Mapping[str, Any] = {}
    info: Any
    announces: Collection[str] | None = None
    instructions: str | None = None
    options: Options = Options(timeout=None)
    limits: Limits = Limits()
    has_sessions: bool = True
    request_state_signer: RequestStateSigner = RequestStateSigner()
    publish: Publish | None = None
    authorize: Callable[[Identity | None, str | None, Sequence[Operation]], None] | None = None
    allows: Callable[[Identity | None, str | None, Sequence[Operation]], bool] | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "dispatcher" in vars(cls):
            cls.revision = cls.dispatcher.revision.name
        elif hasattr(cls, "dispatcher"):
            cls.extensions = extensions_of(cls, cls.dispatcher)
            contexts = tuple(vars(one)["context"] for one in cls.__mro__ if {"adds", "context"} <= vars(one).keys())
            if not all(issubclass(cls.context, one) for one in contexts):
                cls.context = type("Context", contexts, {"__doc__": Context.__doc__, "__module__": cls.__module__})

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start and stop what the server owns: override it, and `yield` while it serves."""
        yield

    @asynccontextmanager
    async def extension_lifespan(self) -> AsyncGenerator[None]:
        """Run what an extension of the server does beside requests; entered after the lifespans of all servers.

        An extension whose engine does something overrides this, and enters `super().extension_lifespan()` around it.
        """
        yield

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return capabilities to declare beside those that follow from the handlers, in wire form."""
        return {}

    def required_scopes(self, method: str, name: str | None) -> Collection[str]:
        """Return the scopes that the token of a request needs, beside those that the endpoint asks for.

        A server that overrides this can be served over HTTP only where tokens are verified.

        Args:
            method: The method of a message.
            name: What it is called on: the name of a tool or prompt, the URI of a resource; `None` for neither. A URI
                is in its canonical form (RFC 3986, section 6.2.2), with scheme and host in lower case. One that was
                sent in another form is asked for in both, and the scopes of both are needed.
        """
        return ()

    def around(self, method: Method, handler: Handle) -> Handle:
        """Return what takes the messages of a method, given the server's handler: by default the handler itself.

        An extension whose engine has a part in what others handle overrides this, and begins with `super().around`.

        Args:
            method: The method.
            handler: Takes params and context, and returns the result.
        """
        return handler

    def bridged_engines(self, dispatcher: BridgedDispatcher) -> Sequence[BridgedEngine]:
        """Return what the engines of extensions answer themselves in another revision that the server serves.

        An engine of which that revision has something adds to what `super().bridged_engines` returns.

        Args:
            dispatcher: The way from that revision to the server's handlers.
        """
        return ()

    def agree(self, wanted: Any, ctx: Context) -> Returns[Any]:
        """Return what a client that listens will hear of, of what it wants: by default all of it (stateless revisions).

        Args:
            wanted: The filter, without what the server does not offer; with the members of its extensions.
            ctx: The request.
        """
        return wanted

    def begin_subscription(self, link: Any) -> None:
        """React to a client that begins to listen, once broadcasts reach it (stateless revisions)."""

    @property
    def connections(self) -> list[Context]:
        """A context for each client that can be told something now: those that are connected, or that listen.

        Where several processes share a store, these are the clients of this one: use `broadcast`.
        """
        links: list[Any] = [link for link in audience(self) if isinstance(link, Session | Subscription) and link.ready]
        found = [(self._context_in(link.negotiated.dispatcher), link) for link in links]
        return [context(RequestScope.of(link)) for context, link in found if context is not None]

    def _context_in(self, dispatcher: Dispatcher) -> type[Context] | None:
        """Return the context of this server's handlers for clients of a revision; `None` where another serves it."""
        if isinstance(dispatcher, BridgedDispatcher):
            return dispatcher.bridged.context if dispatcher.bridged.server is self else None
        return self.context if dispatcher.revision.name == self.revision else None

    async def broadcast(self, tell: Callable[[Any], Awaitable[None]]) -> None:
        """Tell all clients something: `await server.broadcast(lambda client: client.notify_tool_list_changed())`.

        They are told at the same time; who is slow delays nobody, and who is gone is left out. Only those are told of a
        resource who follow it.

        Where several processes share a store, the clients of all are told: `tell` is called once, with a context that
        stands for all of them and can only notify.

        Args:
            tell: Tells one client, given its context.

        Raises:
            SessionRequired: Nobody can be told, because stateful clients are served without sessions.
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
                for other, *told in converted_for_all(self, method, params):
                    await self.publish(other, *told)
            return

        async def one(context: Context) -> None:
            with suppress(ConnectionClosed):
                await tell(context)

        async with anyio.create_task_group() as tasks:
            for number, context in enumerate(self.connections, 1):
                tasks.start_soon(one, context)
                if number % _MAX_TOLD_AT_ONCE == 0:  # so that requests are handled in between
                    await checkpoint()


class Service:
    """Servers that are served together, at most one for each revision, and what serves other revisions by them.

    Args:
        servers: The servers.
        access_policy: Says which scopes messages need, where they come with tokens.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.

    Attributes:
        servers: The servers, the best revision last.
        dispatchers: Revision -> what is taken in it.
        limits: How much of one client's is taken at once: as the best revision's server says.
        find: Finds the handler of a route, as `handler` or `guarded` does.

    Raises:
        ValueError: There is none, or there are two for a revision, or a revision is wanted that cannot be served.
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
        self._by_revision = served(self.servers, revisions)
        tell_what_is_missed(self._by_revision)
        self.dispatchers: dict[str, Dispatcher] = {
            name: server.dispatcher.extended(type(server)) for name, server in self._by_revision.items()
        }
        self.limits = self.servers[-1].limits
        self._handlers: dict[Route, Handler] = {}
        self._threads: WeakValueDictionary[str, anyio.CapacityLimiter] = WeakValueDictionary()
        self._access_policy = access_policy
        if access_policy is not None:
            for server in self.servers:
                server.authorize, server.allows = self.authorize, self.allows
        self.find = self.handler if access_policy is None else self.guarded
        self._scoped = {
            name: server
            for name, server in self._by_revision.items()
            if type(_original(server)).required_scopes is not Server.required_scopes
        }

    @property
    def supported(self) -> list[str]:
        """The revisions, the best first."""
        return list(reversed(self.dispatchers))

    def handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return what takes the messages of a route; raises `MethodNotFound` where nothing does."""
        found = self._handlers.get(route)
        if found is None:
            revision = dispatcher.revision
            server = self._by_revision[revision.name]
            found = revision.era.handler(server, dispatcher, route, self.supported)
            update_wrapper(found, getattr(type(_original(server)), route.handler, found), assigned=(), updated=())
            self._handlers[route] = found
        return found

    def guarded(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the same as `handler`, which first checks the scopes of the link's identity."""
        handler = self.handler(dispatcher, route)

        async def checked_in_turns(scope: RequestScope, params: Any, asked: Sequence[Operation]) -> Any:
            await self.authorize_all(scope.origin.identity, dispatcher.revision.name, asked)
            answer = handler(scope, params)
            return await answer if inspect.isawaitable(answer) else answer

        @wraps(handler)
        def checked(scope: RequestScope, params: Any) -> Any:
            asked = operations(route.method, params.params if isinstance(params, ParamsWithMeta) else params)
            if len(asked) > _MAX_CHECKED_AT_ONCE:
                return checked_in_turns(scope, params, asked)
            self.authorize(scope.origin.identity, dispatcher.revision.name, asked)
            return handler(scope, params)

        return checked

    def needed_scopes(self, revision: str | None, operations: Sequence[Operation]) -> frozenset[str]:
        """Return the scopes that operations need together.

        Args:
            revision: The revision that they are in, if that is known.
            operations: What is asked for, at least one.
        """
        if self._access_policy is None:
            return frozenset()
        served = self._by_revision.get(revision or "")
        if isinstance(served, BridgedServer):
            operations = served.operations(operations)
        needed = self._access_policy.needed(operations[0])
        for one in operations[1:]:
            needed |= self._access_policy.needed(one)
        server = self._scoped.get(revision or "")
        if server is not None:
            needed = needed.union(*(server.required_scopes(method, name) for method, name in operations))
        return needed

    def authorize(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> None:
        """Check that an identity has all that `needed_scopes` says.

        Raises:
            InsufficientScope: It lacks one; with all that is needed.
        """
        if self._access_policy is not None:
            check(identity, self.needed_scopes(revision, operations), operations)

    def allows(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> bool:
        """Tell whether an identity has all that `needed_scopes` says."""
        needed = self.needed_scopes(revision, operations)
        return not needed or (identity is not None and identity.has(*needed))

    async def authorize_all(
        self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]
    ) -> None:
        """Check the operations of a message or batch as `authorize` does, and let other tasks run meanwhile."""
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
        found: Server = self._by_revision[dispatcher.revision.name]
        return found

    def server_of(self, revision: str) -> Server | None:
        """Return the server of a revision by its name; `None` where that is not served."""
        return self._by_revision.get(revision)

    def is_handled(self, dispatcher: Dispatcher, route: Route) -> bool:
        """Tell whether a server has a handler of its own for a route."""
        return dispatcher.is_handled(route, self._by_revision[dispatcher.revision.name])

    def session(self, transport: Transport) -> Session:
        """Return a session for a new connection."""
        peer = Peer("server", self.dispatchers)
        session = Session(peer, transport, self.find, self.servers[-1].options, self.limits)
        if session.origin.principal is not None:
            session.threads = self.threads_of(session.origin.principal)
        if self._access_policy is not None:
            session.access = self.allows
        return session

    def threads_of(self, principal: str) -> anyio.CapacityLimiter:
        """Return the threads for handlers that block of a principal, however many connections it has."""
        found = self._threads.get(principal)
        if found is None:
            found = self._threads[principal] = anyio.CapacityLimiter(self.limits.threads)
        return found

    def restore(self, session: Session, snapshot: Mapping[str, Any], first_id: int) -> None:
        """Make a new session go on where another one was: see `Era.restore`; raises `KeyError`."""
        server = self._by_revision[snapshot["revision"]]
        dispatcher = self.dispatchers[server.revision]
        dispatcher.revision.era.restore(session, snapshot, declared(server, dispatcher), first_id)

    async def run(self, session: Session) -> None:
        """Serve a connection until either side ends it."""
        async with AsyncExitStack() as stack:
            for server in self.servers:
                stack.enter_context(attached(server, session))
            await session.run()


def _original(server: Server | BridgedServer) -> Server:
    """Return the server that a user wrote behind one that may be made of it."""
    found: Server = server.server if isinstance(server, BridgedServer) else server
    return found


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
    """Enter the lifespans of all servers, then those of their extensions, and leave them in reverse."""
    async with AsyncExitStack() as stack:
        for server in servers:
            await stack.enter_async_context(server.lifespan())
        for server in servers:
            await stack.enter_async_context(server.extension_lifespan())
        yield
