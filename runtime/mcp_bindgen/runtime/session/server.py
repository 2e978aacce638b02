"""Base of generated servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet, finalize

from ..protocol.access import Identity
from ..protocol.capabilities import Side
from ..protocol.errors import SessionRequired
from ..protocol.extension import definers
from ..protocol.limits import Limits, Options
from ..protocol.methods import Method
from ..protocol.request_scope import Endpoint, Link
from ..protocol.routing import Returns, UserHandler
from .context import Context

if TYPE_CHECKING:
    from .rounds import RequestStateSigner


class Server(Side):
    """Base of generated servers: override the methods that you offer; all others are answered with -32601.

    Attributes:
        context: Generated class of the contexts; where extensions have contexts, a class that joins them.
        instructions: Advice to models, sent to every client.
        options: Options of the server's own requests.
        limits: Limits of one client's connection.
        request_state_signer: Signs the state that a client carries between rounds of a request (stateless revisions);
            by default the signer of this process, or of all processes that share a store.
    """

    context: ClassVar[type[Context]]
    instructions: str | None = None
    options: Options = Options(timeout=None)
    limits: Limits = Limits()
    request_state_signer: RequestStateSigner | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if hasattr(cls, "context"):
            contexts = tuple(one.context for one in definers(cls, "adds", "context"))
            if not all(issubclass(cls.context, one) for one in contexts):
                cls.context = type("Context", contexts, {"__doc__": Context.__doc__, "__module__": cls.__module__})

    @property
    def has_sessions(self) -> bool:
        """True if clients can be asked and notified; False if all endpoints are of `HttpApp(..., sessions=False)`."""
        found = serving(self)
        return not found or self.dispatcher.revision.era.is_stateless or any(one.has_sessions for one in found)

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

    def hides(self, identity: Identity | None, method: str, name: str | None) -> bool:
        """Return True if the target of a method does not exist for a caller, who gets no notifications about it.

        Args:
            identity: The caller's verified token; `None` if another process knows it.
            method: The method.
            name: Its target; see `required_scopes`.
        """
        return False

    def around(self, method: Method, handler: UserHandler) -> UserHandler:
        """Return the handler of a method, given the server's handler: by default the same.

        An extension that takes part in other methods overrides this, and begins with `super().around`. Its own results
        are for clients that declare it.

        Args:
            method: The method.
            handler: Takes params and context, and returns the result.
        """
        return handler

    def bridged_engines(self, bridge: Any) -> Sequence[Any]:
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

    def arrived(self, link: Link) -> None:
        """Called when a client begins to get broadcasts: a connection, or a subscription."""

    def left(self, link: Link) -> None:
        """Called when a client that has `arrived` gets no more broadcasts."""

    @property
    def audience(self) -> list[Link]:
        """Links to the clients that can be notified: connections and subscriptions."""
        return [link for endpoint in serving(self) for link in endpoint.links_of(self)]

    @property
    def connections(self) -> list[Context]:
        """Context for each client that can be notified now: connected clients, and clients that listen.

        Where several processes share a store, these are the clients of this process: use `broadcast`.
        """
        return [context for endpoint in serving(self) for context in endpoint.connections(self)]

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
        from .broadcasts import broadcast  # few servers broadcast at the start

        await broadcast(list(serving(self)), self, tell)


_serving: dict[int, WeakSet[Endpoint]] = {}


def serving(server: Server) -> WeakSet[Endpoint]:
    """Return the endpoints that serve a server, to whose clients it broadcasts."""
    found = _serving.get(id(server))
    if found is None:
        found = _serving[id(server)] = WeakSet()
        finalize(server, _serving.pop, id(server), None)
    return found
