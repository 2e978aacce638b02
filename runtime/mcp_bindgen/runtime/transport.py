"""What a transport is. Ours are `memory`, `stdio` and `sse`; yours can be anything that moves messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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


class Transport(Protocol):
    """Moves whole messages between two sides; it knows neither revisions nor what messages mean."""

    async def receive(self) -> Sequence[bytes | Oversized]:
        """The next messages, at least one, in order; an empty sequence when the other side is gone."""
        ...

    async def send(self, messages: Sequence[bytes]) -> None:
        """Sends messages in order and returns once they are on their way; waits while the other side is slow.

        Raises:
            ConnectionClosed: The other side is gone.
        """
        ...

    async def close(self) -> None:
        """Ends the connection and frees what it holds; safe to call twice."""
        ...
