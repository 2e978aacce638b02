"""Define what can happen on a connection, as a `Peer` sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .access import RequestOrigin
from .envelope import RequestId
from .errors import ProtocolError
from .methods import Request
from .revision import Dispatcher
from .routing import Route


@dataclass(slots=True)
class Requested:
    """The peer sent a request, in some revision: handle it, then call `Peer.respond` or `Peer.fail`.

    `origin` is that of this message; `None` stands for the transport's.
    """

    id: RequestId
    route: Route
    params: Any
    dispatcher: Dispatcher
    origin: RequestOrigin | None = None


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
    reason: str | None


@dataclass(slots=True)
class Rejected:
    """Something unusable came; `reply` is what to send back, possibly nothing, and `id` the request it answers."""

    error: ProtocolError
    reply: bytes
    id: RequestId | None = None


Event = Requested | Notified | Answered | Progressed | CancelRequested | Rejected


@dataclass(slots=True, eq=False)
class Pending:
    """A request of ours that waits for its answer. `waiter` belongs to whoever sent it."""

    id: int
    method: Request[Any, Any, Any]
    waiter: Any = None
