"""Task stores: limits, interface, and the store in memory."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import ge
from typing import NamedTuple, Protocol

import anyio

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import TooManyRequests

from .record import TaskRecord

PAGE_SIZE = 100
"""Maximum number of tasks that one call of a store returns or removes."""

_MAX_WAITING_CHANGES = 10_000  # ids that wait for one watcher


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


@dataclass
class _Stored:
    record: TaskRecord
    worker: str = ""
    until: float = 0.0  # end of the lease, in seconds since 1970


@dataclass
class _Watcher:
    ids: dict[str | None, None] = field(default_factory=dict[str | None, None])
    arrived: anyio.Event = field(default_factory=anyio.Event)


class MemoryTaskStore:
    """Task store in memory, for one process."""

    def __init__(self) -> None:
        self._stored: dict[str, _Stored] = {}
        self._usage: dict[str | None, Usage] = {}  # of each principal, and of all
        self._watchers: list[_Watcher] = []

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task."""
        limits.check(self._usage.get(None, Usage()), self._usage.get(record.principal, Usage()))
        self._stored[record.id] = _Stored(record)
        self._count(record, 1, 1, len(record.data))

    def _count(self, record: TaskRecord, open: int, tasks: int, size: int) -> None:
        for key in (None, record.principal):
            used = self._usage.pop(key, Usage())
            if used.tasks + tasks:
                self._usage[key] = Usage(used.open + open, used.tasks + tasks, used.bytes + size)

    def _report(self, id: str) -> None:
        for watcher in self._watchers:
            watcher.ids[id if len(watcher.ids) < _MAX_WAITING_CHANGES else None] = None
            watcher.arrived.set()

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task."""
        stored = self._stored.get(id)
        return None if stored is None else stored.record

    async def swap(self, record: TaskRecord) -> bool:
        """Replace the previous version of a task."""
        stored = self._stored.get(record.id)
        if stored is None or stored.record.version != record.version - 1:
            return False
        self._count(record, -int(record.is_over), 0, len(record.data) - len(stored.record.data))
        stored.record = record
        self._report(record.id)
        return True

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take or renew the lease of a task."""
        now, stored = time.time(), self._stored.get(id)
        if stored is None or stored.record.is_over or (stored.worker not in ("", worker) and stored.until > now):
            return False
        stored.worker, stored.until = worker, now + seconds
        return True

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """End the lease of a worker."""
        stored = self._stored.get(id)
        if stored is not None and stored.worker == worker:
            stored.worker, stored.until = "", math.inf if until is None else until / 1000

    async def due(self) -> Sequence[str]:
        """Return ids of tasks that need a worker."""
        now = time.time()
        due = (id for id, one in self._stored.items() if one.until <= now and not one.record.is_over)
        return list(islice(due, PAGE_SIZE))

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal."""
        records = [one.record for one in self._stored.values() if one.record.principal == principal]
        ids = [None, *(record.id for record in records)]
        if after not in ids:
            raise KeyError(after)
        return records[ids.index(after) :][:PAGE_SIZE]

    async def sweep(self) -> int:
        """Remove tasks."""
        now = time.time() * 1000
        removable = (one.record for one in self._stored.values() if one.record.removable_at <= now)
        removed = list(islice(removable, PAGE_SIZE))
        for record in removed:
            self._count(record, 0, -1, -len(record.data))
            del self._stored[record.id]
        return len(removed)

    async def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change."""
        watcher = _Watcher()
        self._watchers.append(watcher)
        try:
            while True:
                await watcher.arrived.wait()
                ids, watcher.ids, watcher.arrived = watcher.ids, {}, anyio.Event()
                for id in ids:
                    yield id
        finally:
            self._watchers.remove(watcher)

    async def aclose(self) -> None:
        """Do nothing; the store has no resources."""
