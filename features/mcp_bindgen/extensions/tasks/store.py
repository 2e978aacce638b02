"""Limits and interface of task stores."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from operator import ge
from typing import NamedTuple, Protocol

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import TooManyRequests

from .record import TaskRecord

PAGE_SIZE = 100
"""Maximum number of tasks that one call of a store returns or removes."""


class Usage(NamedTuple):
    """Number of open tasks, number of all tasks, and total size of the records in bytes."""

    open: int = 0
    tasks: int = 0
    bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class TaskLimits:
    """Limits of a server's tasks (MCP, "Tasks": Security Considerations). Without tokens all clients are one principal.

    Attributes:
        max_open: Tasks that are not over.
        max_open_per_principal: The same for one principal.
        max_tasks: All stored tasks.
        max_tasks_per_principal: The same for one principal.
        max_bytes: Stored bytes beyond which no task is created.
        max_bytes_per_principal: The same for one principal.
        max_task_bytes: Size of one task: params, questions, answers and result.
        max_followed: Tasks that one subscription follows.
        ttl: Default time to live in seconds, from the creation of a task; `None` for no expiry.
        max_ttl: Maximum time to live in seconds; `None` for no limit, which allows tasks without expiry.
        poll: Default poll interval of clients in seconds.
    """

    max_open: int = 1000
    max_open_per_principal: int = 100
    max_tasks: int = 10_000
    max_tasks_per_principal: int = 1000
    max_bytes: int = 256 * 1024 * 1024
    max_bytes_per_principal: int = 64 * 1024 * 1024
    max_task_bytes: int = 1024 * 1024
    max_followed: int = 1000
    ttl: float | None = 3600.0
    max_ttl: float | None = 24 * 3600.0
    poll: float = 1.0

    def ttl_ms(self, seconds: float | None) -> int | None:
        """Return the time to live in milliseconds for a wish in seconds; `None` stands for no expiry."""
        if seconds is None or (self.max_ttl is not None and seconds > self.max_ttl):
            seconds = self.max_ttl
        return None if seconds is None else max(1, round(seconds * 1000))

    def check(self, usage: Usage, own: Usage) -> None:
        """Raise `TooManyRequests` unless another task fits.

        Args:
            usage: The usage of all principals.
            own: The usage of the task's principal.
        """
        limits = (self.max_open_per_principal, self.max_tasks_per_principal, self.max_bytes_per_principal)
        if any(map(ge, own, limits)):
            raise TooManyRequests("there are too many tasks of this client; wait until some are over or have expired")
        if any(map(ge, usage, (self.max_open, self.max_tasks, self.max_bytes))):
            raise TooManyRequests("there are too many tasks on this server; try again later")


class TaskStore(Protocol):
    """Storage of task records. A change is as durable as the store can make it when a method returns.

    A task that is not over may have a lease: one worker runs it until a point in time. All methods raise
    `StoreUnavailable` while the store is unreachable.
    """

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task without a lease; raise `TooManyRequests` if it exceeds the limits."""

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task; `None` if it is absent or unreadable."""

    async def swap(self, record: TaskRecord) -> bool:
        """Replace the previous version of a task; return False if the stored version is a different one.

        A task that is over loses its lease.
        """
        ...

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take or renew the lease of a task; return True if the worker has it.

        Return False if the lease of a different worker is valid, or the task is over or absent.
        """
        ...

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """End the lease of a worker; do nothing if a different worker has taken the lease.

        Args:
            id: The task.
            worker: The worker that had the lease.
            until: Time until which the task needs no worker, in milliseconds since 1970; `None` for no end.
        """

    async def due(self) -> Sequence[str]:
        """Return ids of tasks that are not over and have no lease, at most `PAGE_SIZE`."""
        ...

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal in the order of creation, at most `PAGE_SIZE`.

        Args:
            principal: The principal.
            after: Id of the last task of the previous page; `None` for the first page.

        Raises:
            KeyError: The principal has no task with this id.
        """
        ...

    async def sweep(self) -> int:
        """Remove tasks whose `TaskRecord.removable_at` has passed, at most `PAGE_SIZE`; return their number."""
        ...

    def watch(self) -> AsyncGenerator[str | None]:
        """Yield the id of each task that changes in any process; `None` if changes may have been missed.

        A new task need not be reported: nobody knows its id yet.
        """
        ...

    async def aclose(self) -> None:
        """Release the resources of the store; safe to call twice."""


def load(data: bytes | None) -> TaskRecord | None:
    """Return the record of stored JSON text; `None` if it is absent or unreadable."""
    try:
        return None if data is None else TaskRecord.load(data)
    except ValueError as error:
        log.error("a stored task is ignored because its record is unreadable: %r", error)
        return None
