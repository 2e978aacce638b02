"""Set how many tasks there may be, how large and for how long (MCP, "Tasks": Security Considerations)."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_bindgen.runtime.protocol.errors import TooManyRequests


@dataclass(frozen=True, kw_only=True)
class TaskLimits:
    """How much a server takes on. Where nobody is told apart, all clients are one principal.

    Attributes:
        open: Tasks that are not over, in all.
        open_each: Those of one principal.
        kept: Tasks that are held, those that are over included.
        kept_each: Those of one principal.
        bytes: The bytes that a new task may find held, in all.
        bytes_each: Those of one principal.
        size: The bytes of one task: its params, questions, answers and result.
        followed: Tasks that one subscription follows.
        ttl: Seconds that a task is kept from its creation, where its tool does not say.
        longest: The most seconds that a task may be kept; `None` for no limit, so that a task may be kept for ever.
        poll: Seconds between two looks of a client at a task, where its tool does not say.
    """

    open: int = 1000
    open_each: int = 100
    kept: int = 10_000
    kept_each: int = 1000
    bytes: int = 256 * 1024 * 1024
    bytes_each: int = 64 * 1024 * 1024
    size: int = 1024 * 1024
    followed: int = 1000
    ttl: float = 3600.0
    longest: float | None = 24 * 3600.0
    poll: float = 1.0

    def lifetime(self, seconds: float | None) -> int | None:
        """Return the milliseconds for which a task is kept that asks for so many seconds; `None` asks for ever."""
        if seconds is None or (self.longest is not None and seconds > self.longest):
            seconds = self.longest
        return None if seconds is None else max(1, round(seconds * 1000))

    def check(self, all_: Held, own: Held) -> None:
        """Check that there is room for another task.

        Args:
            all_: What is held in all.
            own: What is held of its principal.

        Raises:
            TooManyRequests: There is none.
        """
        if own.open >= self.open_each or own.kept >= self.kept_each or own.bytes >= self.bytes_each:
            raise TooManyRequests("there are too many tasks of this client; wait until some are over or have expired")
        if all_.open >= self.open or all_.kept >= self.kept or all_.bytes >= self.bytes:
            raise TooManyRequests("there are too many tasks on this server; try again later")


@dataclass(frozen=True, slots=True)
class Held:
    """What a store holds.

    Attributes:
        open: Tasks that are not over.
        kept: All tasks.
        bytes: Their bytes.
    """

    open: int
    kept: int
    bytes: int
