"""Define what holds tasks, so that they outlive the process and several workers can serve them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from ..limits import TaskLimits
from ..record import TaskRecord

log = logging.getLogger("mcp_bindgen")

LINGER = 60_000
"""Milliseconds for which a task that ended late is still there, so that its client learns how it ended."""

MOST = 100
"""The most tasks that are looked at in one go."""


class TaskStore(Protocol):
    """Hold tasks. What a method was asked to keep is durable, as well as the store can, once it returns.

    A task that is not over may have a lease: the worker that runs it, until a time. The methods raise
    `StoreUnavailable` while the store is away.
    """

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task, without a lease; raises `TooManyRequests` where that is beyond the limits."""
        ...

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task; `None` where there is none that can be read."""
        ...

    async def swap(self, record: TaskRecord) -> bool:
        """Replace a task by its next version; return whether the one that is held was the version before.

        The lease of a task that is over now is gone.
        """
        ...

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take the lease of a task, or renew it; return whether this worker has it.

        It has not where another worker's lease has not run out, where the task is over, or where there is none.
        """
        ...

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """Give up a lease, unless another worker has taken it meanwhile.

        Args:
            id: The task.
            worker: The worker that had the lease.
            until: Until when nobody needs to look after the task, in milliseconds since 1970; `None` for ever.
        """
        ...

    async def due(self) -> Sequence[str]:
        """Return tasks that are not over and that no worker has a lease of, at most `MOST`."""
        ...

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal in the order of their creation, at most `MOST`.

        Args:
            principal: Whose.
            after: The id of the last task of the page before; `None` for the first page.

        Raises:
            KeyError: There is no such task of this principal.
        """
        ...

    async def sweep(self) -> int:
        """Drop tasks that are over and whose time is over, at most `MOST`; return how many.

        Each stays until `expires` and until `LINGER` after it ended, whichever is later.
        """
        ...

    def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change, in whichever process; `None` where changes may have been missed."""
        ...

    async def aclose(self) -> None:
        """Let go of what the store has opened; safe to call twice."""
        ...


def loaded(data: bytes | None) -> TaskRecord | None:
    """Return a task as it was stored; `None` where there is none, or its record cannot be read."""
    try:
        return None if data is None else TaskRecord.load(data)
    except (ValueError, TypeError, AttributeError) as error:
        log.error("the record of a task cannot be read, so the task is left alone: %r", error)
        return None


def cache_until(record: TaskRecord) -> float:
    """Return when a task may be dropped, in milliseconds since 1970: infinite before it is over, or for ever."""
    if not record.is_over or record.expires is None:
        return float("inf")
    return float(max(record.expires, record.updated + LINGER))
