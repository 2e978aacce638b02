"""Count what one connection takes at once, and keep what has to wait for its turn."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from ..protocol.envelope import RequestId
from ..protocol.events import Event, Notified, Rejected, Requested
from ..protocol.options import Limits

Work = Requested | Notified | Rejected
"""What makes work, or at least an answer."""


class Workload:
    """What a connection is at work on, and what waits.

    Args:
        limits: The limits.
        independent: Whether answers wait for none but their own reader, so that nobody needs to count them.

    Attributes:
        at_work: How many handlers wait for something.
        unread: The size of answers that the other side has not read yet, in bytes.
    """

    def __init__(self, limits: Limits, *, independent: bool) -> None:
        self.at_work = 0
        self.unread = 0
        self._limits = limits
        self._most_unread = math.inf if independent else limits.unread
        self._held: OrderedDict[object, tuple[Work, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def is_unread(self) -> bool:
        """Whether the other side leaves too many answers unread."""
        return self.unread > self._most_unread

    @property
    def is_full(self) -> bool:
        """Whether too much waits already."""
        return len(self._held) >= self._limits.waiting or self._bytes >= self._limits.waiting_bytes

    def has_room(self) -> bool:
        """Tell whether another handler may begin."""
        return self.at_work < self._limits.at_work and self.unread <= self._most_unread

    def is_free(self) -> bool:
        """Tell whether nothing waits, and another handler may begin."""
        return not self._held and self.has_room()

    def must_wait(self, event: Event) -> bool:
        """Tell whether an event has to wait for its turn.

        What makes no work never has to. A side that reads what we send is told of its mistakes at once, and that we are
        still there.
        """
        if isinstance(event, Rejected):
            return self.is_unread and bool(event.reply)
        if not isinstance(event, Requested | Notified):
            return False
        return self.is_unread or event.route.method is not event.dispatcher.revision.ping

    async def settle(self, turn: Callable[[], Awaitable[None]]) -> str | None:
        """Wait while the other side leaves too many answers unread and too much waits (backpressure).

        Args:
            turn: Waits until some of the answers were read.

        Returns:
            Why the connection has to be closed; `None` where it goes on.
        """
        try:
            async with asyncio.timeout(self._limits.patience):
                while self.is_unread and self.is_full:
                    await turn()
        except TimeoutError:
            return f"the other side does not read: {self.unread} bytes of answers wait"
        return None

    def hold(self, event: Work, size: int) -> None:
        """Keep an event, of a message of `size` bytes, until it is `taken`."""
        self._held[event.id if isinstance(event, Requested) else object()] = event, size
        self._bytes += size

    @property
    def may_begin(self) -> int:
        """How many of those that wait may begin now."""
        return min(len(self._held), self._limits.at_work - self.at_work) if self.has_room() else 0

    def taken(self) -> Work | None:
        """Take the first event that waits, if there still is one."""
        if not self._held:
            return None
        _, (event, size) = self._held.popitem(last=False)
        self._bytes -= size
        return event

    def drop(self, id_: RequestId) -> bool:
        """Drop the request with an id, if it waits."""
        _, size = self._held.pop(id_, (None, None))
        self._bytes -= size or 0
        return size is not None
