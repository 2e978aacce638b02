"""Define transports. Ours are `memory`, `stdio`, `sse` and `http`; yours can be anything that moves messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .access import Identity
from .envelope import RequestId
from .methods import Method

MAX_MESSAGE = 64 * 1024 * 1024
"""The largest message, in bytes, that a transport lets through unless it is told otherwise."""


class Oversized:
    """Stands in for a message that was larger than the limit; its bytes are gone, the connection lives on.

    Args:
        limit: The limit, in bytes.
        head: How the message began, if that is still known; it may show whom to tell.
    """

    def __init__(self, limit: int, head: bytes = b"") -> None:
        self.limit = limit
        self.head = head


class Incoming(bytes):
    """A message that came with a token: its JSON text, and whose token it was."""

    identity: Identity


def incoming(message: bytes, identity: Identity | None) -> bytes:
    """Return a message with the identity that it came with, if it did."""
    if identity is None:
        return message
    marked = Incoming(message)
    marked.identity = identity
    return marked


class Outgoing(bytes):
    """A message on its way out: its JSON text, and what a transport with several streams or with headers wants to know.

    Attributes:
        id: The id of the request that it is; `None` for other messages.
        method: The method that it names; `None` for answers.
        related: The id of the other side's request that it answers or belongs to, if any.
        batch_ids: The ids of the other side's requests that it answers, if it is a batch of answers.
        headers: What a transport with headers repeats there.
        cancels: The id of our own request that it takes back.
        begins_session: Whether it is the request that begins a session.
        opens_stream: Whether the other side may speak unasked once it has taken this.
        refused: Whether it answers a request that was not even begun, because too much was going on.
        self_contained: Whether its answer depends on nothing else that was said, so that hanging up cancels it
            (stateless revisions).
    """

    id: int | None = None
    method: Method | None = None
    related: RequestId | None = None
    batch_ids: Collection[RequestId] = ()
    headers: Mapping[str, str] = {}
    cancels: int | None = None
    begins_session: bool = False
    opens_stream: bool = False
    refused: bool = False
    self_contained: bool = False


@dataclass(frozen=True, eq=False)
class Lost:
    """Stands in for the answer to a request of ours that will not come, while the connection lives on.

    Attributes:
        id: The id of the request.
        error: What its caller is told.
    """

    id: int
    error: Exception


class Transport(Protocol):
    """Moves whole messages between two sides; it knows neither revisions nor what messages mean.

    It may have more: `mirror`, which makes from a `Revision` what keeps track of headers, if it sends any;
    `principal`, who is on the other side; `pauses`, which stop the clocks while somebody is asked for authorization,
    and `extensions`, those of the protocol that authorization uses;
    `independent`, true if sending waits for the reader of one stream only, so that messages need not wait for each
    other; `network`, by what messages travel: `pipe` or `tcp`; `close_stream`, see `Context.close_stream`.
    """

    async def receive(self) -> Sequence[bytes | Oversized | Lost]:
        """Return the next messages, at least one, in order; an empty sequence when the other side is gone."""
        ...

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order and return once they are on their way; wait while the other side is slow.

        Those that a session sends are `Outgoing`.

        Raises:
            ConnectionClosed: The other side is gone.
        """
        ...

    async def close(self) -> None:
        """Close the connection and free what it holds; safe to call twice."""
        ...
