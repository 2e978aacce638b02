"""Scope of a request: its link, its origin and the agreement of both sides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, get_args

from anyio import CapacityLimiter

from .access import UNKNOWN_ORIGIN, Identity, Operation, RequestOrigin
from .capabilities import is_declared
from .envelope import RequestId
from .errors import CapabilityMissing, MethodNotFound
from .limits import Limits, Options
from .methods import SUBSCRIBE, UPDATED, Method, Notification, Params, Path, RequestMethod, Role
from .revision import Dispatcher
from .routing import Route

Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""A severity of log messages (RFC 5424)."""

LEVELS: tuple[Level, ...] = get_args(Level)
"""The severities, the mildest first."""


class Negotiated:
    """The agreement of the two sides: for a whole connection, or for a single request (stateless revisions).

    Attributes:
        dispatcher: Dispatcher of this side in the spoken revision.
        peer_info: How the other side introduced itself: an `Implementation`, or `None`.
        log_level: The least severe log messages that the client wants; `None` if it did not say.
        subscriptions: The `followed_key` of the resources that the client follows (stateful revisions);
            `None` for all.
        logs_by_default: True if a client that did not say wants all of them, or none.
    """

    logs_by_default = True
    peer_info: Any = None
    log_level: str | None = None
    subscriptions: set[str] | None = None

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.subscriptions = set()

    @cached_property
    def declared(self) -> dict[Role, Mapping[str, Any]]:
        """Side -> its capabilities, in wire form."""
        return {"client": {}, "server": {}}

    def missing_capability_error(self, method: str, capability: Path) -> Exception:
        """Make the error for a message that needs a capability which was not declared."""
        return CapabilityMissing(method, capability)

    def wants(self, level: str) -> bool:
        """Return whether the client wants log messages of this severity."""
        least = self.log_level
        return self.logs_by_default if least is None else LEVELS.index(level) >= LEVELS.index(least)


Answer = TypeVar("Answer")


class Endpoint:
    """This side of connections: what handles their messages, and within which limits. Its attributes never change.

    By default it handles nothing, and allows everything.

    Attributes:
        limits: Limits of each connection.
        options: Options of requests to the other side.
        has_sessions: False if stateful clients are served without sessions, so that they can only be answered.
        checks_scopes: True if messages carry tokens.
    """

    limits: Limits = Limits()
    options: Options = Options(timeout=None)
    has_sessions: bool = True
    checks_scopes: bool = False

    def handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler of a route of a revision; raises `MethodNotFound` if there is none."""
        raise MethodNotFound(route.method.name)

    def authorize(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> None:
        """Check that an identity has the scopes of operations; raises `InsufficientScope`."""

    def allows(self, identity: Identity | None, revision: str | None, operations: Sequence[Operation]) -> bool:
        """Return True if an identity has the scopes of operations, and their targets exist for it."""
        return True

    def thread_limit(self, principal: str) -> CapacityLimiter | None:
        """Return the limit of threads for blocking handlers of a principal; `None` for no limit of its own."""
        return None

    def around_subscription(self, link: Link, wanted: object) -> AbstractAsyncContextManager[None]:
        """Return the context of a subscription, given the filter of its client."""
        return nullcontext()

    def joined(self, link: Link) -> AbstractContextManager[None]:
        """Notify a client of broadcasts while a block lasts."""
        return nullcontext()

    def links_of(self, server: object) -> Sequence[Link]:
        """Return the clients of a server that can be notified."""
        return ()

    def connections(self, server: object) -> Sequence[Any]:
        """Return a context for each of these clients."""
        return ()

    async def publish(self, server: Any, tell: Callable[[Any], Awaitable[None]], told: list[object]) -> bool:
        """Notify the clients of all processes; return False if only those of this process can be notified."""
        return False


class Link(Protocol):
    """The way to the other side. Inherit from it: only `notify` is required.

    `related` is the id of the peer's request that a message belongs to.

    Attributes:
        origin: Origin of the newest message.
        negotiated: Agreement of both sides, a `Negotiated`; `None` if each request makes its own.
        meta: Members of the `_meta` of every request to the other side (stateless revisions).
        endpoint: This side.
        connection: The state of the protocol, which writes answers.
    """

    connection: Any = None
    endpoint: Endpoint = Endpoint()
    origin: RequestOrigin = UNKNOWN_ORIGIN
    negotiated: Any = None
    meta: Mapping[str, Any] = {}

    @property
    def ready(self) -> bool:
        """True if the peer can get notifications that belong to no request now."""
        return False

    def leave(self) -> None:
        """End a subscription in good order; do nothing for any other link."""
        return None  # noqa: RET501

    def ending(self, end: Callable[[], object]) -> AbstractContextManager[None]:
        """Call `end` if the peer's input ends while a block runs that would never end by itself."""
        return nullcontext()

    async def request(
        self, method: RequestMethod[Params, Any, Answer], params: Params, *, related: RequestId | None = None
    ) -> Answer:
        """Send a request and wait for its answer; raises `ProtocolError` when the answer is an error.

        By default no request can be sent, as by stateless servers: it raises `MethodNotFound`.
        """
        raise MethodNotFound(method.name)

    async def notify(self, method: Notification[Params], params: Params, *, related: RequestId | None = None) -> None:
        """Send a notification."""

    def thread_limit(self) -> CapacityLimiter | None:
        """Return the limit of threads for blocking handlers; `None` for the process's limit only."""
        return None if self.origin.principal is None else self.endpoint.thread_limit(self.origin.principal)

    def is_over(self, id_: RequestId) -> bool:
        """Return whether a request of the peer was answered or cancelled while the connection goes on."""
        return False

    def close_stream(self, related: RequestId | None, retry: float | None = None) -> bool:
        """Close the stream of a request; see `Transport.close_stream`."""
        return False

    def allows_resource(self, uri: str) -> bool:
        """Return whether the token of the newest message permits notifications about a resource."""
        if not self.endpoint.checks_scopes:
            return True
        from .uris import canonical  # only for servers with tokens

        revision = self.negotiated.dispatcher.revision.name
        return self.endpoint.allows(self.origin.identity, revision, [(SUBSCRIBE, canonical(uri))])


class RequestScope(NamedTuple):
    """Scope of a request or notification. Made from the message and the origin of its transport.

    Attributes:
        link: Way to the sender.
        origin: Origin of this message.
        request_id: Id of the request; `None` for a notification.
        negotiated: Revision, capabilities and peer that this request counts on; `None` if unknown.
        meta: Typed `_meta` of the request (stateless revisions); `None` where the params hold it.
    """

    link: Link
    origin: RequestOrigin
    request_id: RequestId | None = None
    negotiated: Negotiated | None = None
    meta: Any = None

    @classmethod
    def of(cls, link: Link) -> RequestScope:
        """Return the scope of messages that belong to no request."""
        return cls(link, link.origin, None, link.negotiated)

    @property
    def is_over(self) -> bool:
        """True if the request was answered or cancelled while the connection goes on."""
        return self.request_id is not None and self.link.is_over(self.request_id)


def is_wanted(link: Link, agreed: Negotiated, method: Method, params: Any) -> bool:
    """Return whether the peer of a link wants a notification that belongs to no request.

    It has declared the extension of the notification, and has subscribed to the notification where the revision has
    clients subscribe by requests.

    Args:
        link: The link.
        agreed: Agreement of both sides.
        method: Method of the notification.
        params: Its typed params.
    """
    must_declare = method.extension if method.declared_by != "server" else None
    if must_declare is not None and not is_declared(agreed.declared["client"], "extensions", must_declare):
        return False
    followed = None if agreed.dispatcher.revision.era.is_stateless else agreed.subscriptions
    if method.name != UPDATED or followed is None:
        return True
    from .uris import followed_key, lineage  # few servers have subscriptions

    # A session of another process has no token before its next message; the token was checked when it followed this.
    is_checked = link.origin.identity is None and followed_key(params.uri) in followed
    return is_checked or (not followed.isdisjoint(lineage(params.uri)) and link.allows_resource(params.uri))


Handler: TypeAlias = Callable[[RequestScope, Any], Any]
"""Takes the scope of a message and its params; returns the result or an awaitable."""

Step: TypeAlias = Callable[[Any, Dispatcher, Route, Handler], Handler]
"""Returns what an `Endpoint` does around a handler of a route, or the handler itself where it has nothing to do."""
