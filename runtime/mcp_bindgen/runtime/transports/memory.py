"""Two transports that are connected in memory: for tests, and for a server inside of its client's process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from ..protocol.errors import ConnectionClosed
from ..protocol.transport import Oversized, Transport

_MAX_WAITING = 64  # messages, or groups of messages that were sent together


class _Pipe:
    """One direction of a connection.

    Attributes:
        waiting: Messages that were sent and not received.
        changed: Set when the messages, or the state of an end, have changed.
        closed: Why nothing can be sent any more; empty while both ends are open.
    """

    def __init__(self) -> None:
        self.waiting: deque[Sequence[bytes]] = deque()
        self.changed: asyncio.Event = asyncio.Event()
        self.closed: str = ""

    def close(self, reason: str) -> None:
        self.closed = self.closed or reason
        self.changed.set()


class MemoryTransport(Transport):
    """One end of a connection in memory; `pair` makes both."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> Sequence[bytes | Oversized]:
        """Return the next messages; nothing when the other end was closed."""
        pipe = self._incoming
        while not pipe.waiting and not pipe.closed:
            pipe.changed.clear()
            await pipe.changed.wait()
        pipe.changed.set()
        return pipe.waiting.popleft() if pipe.waiting else ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over; wait while many wait. Raises `ConnectionClosed` when an end was closed."""
        pipe = self._outgoing
        while len(pipe.waiting) >= _MAX_WAITING and not pipe.closed:
            pipe.changed.clear()
            await pipe.changed.wait()
        if pipe.closed:
            raise ConnectionClosed(pipe.closed)
        pipe.waiting.append(messages)
        pipe.changed.set()

    async def close(self) -> None:
        """Close this end; a `send` that waits raises `ConnectionClosed`."""
        self._incoming.waiting.clear()
        self._incoming.close("the other side closed the connection")
        self._outgoing.close("the connection is closed")


def pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Return two connected ends."""
    left, right = _Pipe(), _Pipe()
    return MemoryTransport(left, right), MemoryTransport(right, left)
