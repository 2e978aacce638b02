"""Events of a connection, from the view of a `Connection`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .access import RequestOrigin
from .envelope import RequestId
from .errors import ProtocolError
from .methods import RequestMethod
from .revision import Dispatcher
from .routing import Route


@dataclass(slots=True)
class Requested:
    """The peer sent a request, in some revision: handle it, then call `Connection.respond` or `Connection.fail`.

    `origin` is the origin of this message; `None` stands for the transport's. `meta` is the typed `_meta` of a
    stateless request whose params have no place for it, as those of a method of one's own.
    """

    id: RequestId
    route: Route
    params: Any
    dispatcher: Dispatcher
    origin: RequestOrigin | None = None
    meta: Any = None


@dataclass(slots=True)
class Notified:
    """The other side sent a notification, in some revision."""

    route: Route
    params: Any
    dispatcher: Dispatcher
    origin: RequestOrigin | None = None


@dataclass(slots=True)
class Answered:
    """A request of ours is answered, by `result` or by `error`."""

    pending: Pending
    result: Any = None
    error: Exception | None = None


@dataclass(slots=True)
class Progressed:
    """A request of ours makes progress."""

    pending: Pending
    params: Any


@dataclass(slots=True)
class CancelRequested:
    """The other side no longer wants an answer to the request with this id."""

    id: RequestId
    reason: str | None = None


@dataclass(slots=True)
class Rejected:
    """An unusable message; `reply` is the response to send, possibly empty, and `id` that of the request."""

    error: ProtocolError
    reply: bytes
    id: RequestId | None = None


Event = Requested | Notified | Answered | Progressed | CancelRequested | Rejected


@dataclass(slots=True, eq=False)
class Pending:
    """A request of this side that waits for its response. `waiter` belongs to its sender."""

    id: int
    method: RequestMethod[Any, Any]
    waiter: Any = None


def resolve(answered: Answered) -> None:
    """Pass an answer to the caller that waits for it."""
    waiter = answered.pending.waiter
    if waiter is not None and not waiter.answered.done():
        waiter.answered.set_result(answered)
