"""Send messages over a transport: one sender at a time, and what is queued at the same time together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from anyio.abc import TaskGroup

from ..concurrency import within
from ..protocol.errors import ConnectionClosed
from ..protocol.options import Options
from ..protocol.transport import Outgoing, Transport


class Sender:
    """Sends the messages of a session.

    Args:
        transport: How they travel.
        lost: Called with the reason when the other side turns out to be gone.

    Attributes:
        tasks: Where the queue is sent; nothing is queued before there is such a place.
        independent: Whether messages need not wait for each other.
    """

    def __init__(self, transport: Transport, lost: Callable[[str], object]) -> None:
        self.tasks: TaskGroup | None = None
        self.independent = transport.independent
        self._transport = transport
        self._lost = lost
        self._queue: list[Outgoing] = []
        self._sending = asyncio.Lock()

    async def send(self, messages: Sequence[Outgoing] | None = None) -> bool:
        """Send messages, or else the queue; returns whether the other side was still there."""
        try:
            if self.independent and messages:
                await self._transport.send(messages)
                return True
            async with self._sending:
                if messages is None:
                    messages, self._queue = self._queue, []
                if messages:
                    await self._transport.send(messages)
        except ConnectionClosed as error:
            self._lost(str(error))
            return False
        return True

    async def post(self, message: Outgoing, options: Options, *, alone: bool) -> None:
        """Send a request in time, at once if it is alone; those that are made at the same time leave together.

        Raises:
            TimeoutError: The other side does not read.
        """
        if self.tasks is not None and (not alone or self._queue or self._sending.locked()):
            self.send_soon(message)
            return
        limits = [limit for limit in (options.timeout, options.total_timeout) if limit is not None]
        await (within(min(limits), self.send([message])) if limits else self.send([message]))

    def send_soon(self, message: Outgoing) -> None:
        """Queue a message without waiting for a slow reader; messages queued at the same time are sent together."""
        self._queue.append(message)
        if len(self._queue) == 1 and self.tasks is not None:
            self.tasks.start_soon(self.send)

    def withdraw(self, message: Outgoing) -> bool:
        """Remove a message from the queue; returns whether it was still there."""
        if message not in self._queue:
            return False
        self._queue.remove(message)
        return True

    async def turn(self) -> None:
        """Wait until what is being sent now has been sent."""
        async with self._sending:
            pass
