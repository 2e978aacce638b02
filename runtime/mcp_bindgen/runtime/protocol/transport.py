"""Transports: the messages that they deliver and send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .access import UNKNOWN_ORIGIN, RequestOrigin
from .envelope import RequestId
from .errors import ProtocolError
from .methods import Method

if TYPE_CHECKING:
    from .events import Event

MAX_MESSAGE = 64 * 1024 * 1024
"""The largest message, in bytes, that a transport lets through unless it is told otherwise."""


LogIn: TypeAlias = Callable[[], Awaitable[bool]]
"""Function that has a user log in, which takes minutes. It returns False if there is no reason to send again."""

AskUser: TypeAlias = Callable[[LogIn], Awaitable[bool]]
"""Function that runs a login outside of time limits and returns its result."""


class Oversized:
    """Stands in for a message that was larger than the limit; its bytes are gone, the connection lives on.

    Args:
        limit: The limit, in bytes.
        head: Beginning of the message, if still known; it may hold the id for a response.
    """

    def __init__(self, limit: int, head: bytes = b"") -> None:
        self.limit = limit
        self.head = head


class Parsed(bytes):
    """JSON text of a message, with the events that the peer of the session has read in it."""

    events: Sequence[Event]


def parsed(message: bytes, events: Sequence[Event]) -> Parsed:
    """Return a message with its events."""
    marked = Parsed(message)
    marked.events = events
    return marked


class Outgoing(bytes):
    """An outgoing message: its JSON text, and facts for transports with several streams or with headers.

    Attributes:
        id: The id of the request that it is; `None` for other messages.
        method: The method that it names; `None` for answers.
        related: The id of the other side's request that it answers or belongs to, if any.
        batch_ids: The ids of the other side's requests that it answers, if it is a batch of answers.
        headers: HTTP headers of the message.
        cancels: The id of our own request that it takes back.
        begins_session: True if it is the request that begins a session.
        opens_stream: True if the other side may speak unasked once it has taken this.
        error: Error of a request that it refuses before its handler began, as too much was going on; else None.
        self_contained: True if its answer depends on nothing else that was said, so that hanging up cancels it
            (stateless revisions).
        ask_user: Runs a login that the message needs; `None` to run it at once.
    """

    id: int | None = None
    method: Method | None = None
    related: RequestId | None = None
    batch_ids: Collection[RequestId] = ()
    headers: Mapping[str, str] = {}
    cancels: int | None = None
    begins_session: bool = False
    opens_stream: bool = False
    error: ProtocolError | None = None
    self_contained: bool = False
    ask_user: AskUser | None = None


@dataclass(frozen=True, eq=False)
class Lost:
    """Stands in for the answer to a request of ours that will not come, while the connection lives on.

    Attributes:
        id: The id of the request; 0 for notifications that may be lost, such as those of changes.
        error: Error for its caller.
    """

    id: int
    error: Exception


class Transport(Protocol):
    """Carrier of whole messages between two sides. Inherit from it: only the first three methods are required.

    Attributes:
        origin: Origin of all messages that are no `Parsed`.
        independent: True if `send` waits only for the reader of one stream, so that messages never wait for each other.
        extensions: Extensions of the protocol that authorization uses: id -> settings.
        mirror: Makes from a `Revision` the object that copies parts of messages into headers; `None` without headers.
    """

    origin: RequestOrigin = UNKNOWN_ORIGIN
    independent: bool = False
    extensions: Mapping[str, Any] = {}
    mirror: Callable[[Any], Any] | None = None

    async def receive(self) -> Sequence[bytes | Oversized | Lost]:
        """Return the next messages, at least one, in order; an empty sequence when the other side is gone."""
        ...

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order and return once they are on their way; wait while the other side is slow.

        Messages of a session are `Outgoing`.

        Raises:
            ConnectionClosed: The other side is gone.
        """

    async def end_reason(self) -> str:
        """Return the reason why the other side is gone, for the errors of pending requests."""
        return "the other side closed the connection"

    async def close(self) -> None:
        """Close the connection and free its resources; safe to call twice."""

    def close_stream(self, related: RequestId | None, retry: float | None = None) -> bool:
        """Close the stream of a request; its client reconnects after `retry` seconds. Return False if it cannot."""
        return False
