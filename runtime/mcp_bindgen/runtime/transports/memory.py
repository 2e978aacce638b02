"""Two transports that are connected in memory: for tests, and for a server inside of its client's process."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ..protocol.errors import ConnectionClosed
from ..protocol.transport import Oversized, Transport

_WAITING = 64


class MemoryTransport(Transport):
    """One end of a connection in memory; `pair` makes both."""

    def __init__(
        self,
        incoming: MemoryObjectReceiveStream[Sequence[bytes]],
        outgoing: MemoryObjectSendStream[Sequence[bytes]],
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._waiting = anyio.CancelScope()

    async def receive(self) -> Sequence[bytes | Oversized]:
        """Return the next messages; nothing when the other end was closed."""
        try:
            return await self._incoming.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over; wait while many wait. Raises `ConnectionClosed` when the other end was closed."""
        try:
            try:
                self._outgoing.send_nowait(messages)
            except anyio.WouldBlock:
                with anyio.CancelScope() as self._waiting:
                    await self._outgoing.send(messages)
                if self._waiting.cancelled_caught:
                    raise ConnectionClosed("the connection is closed") from None
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionClosed("the other side closed the connection") from None

    async def close(self) -> None:
        """Close this end; a `send` that waits raises `ConnectionClosed`."""
        self._incoming.close()
        self._outgoing.close()
        self._waiting.cancel()


def pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Return two connected ends."""
    to_left, from_right = anyio.create_memory_object_stream[Sequence[bytes]](_WAITING)
    to_right, from_left = anyio.create_memory_object_stream[Sequence[bytes]](_WAITING)
    return MemoryTransport(from_right, to_right), MemoryTransport(from_left, to_left)
