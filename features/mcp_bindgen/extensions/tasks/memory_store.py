"""Task store in memory; tasks last as long as the process."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import anyio

from .record import TaskRecord
from .store import PAGE_SIZE, TaskLimits, Usage

_MAX_WAITING_CHANGES = 10_000  # ids that wait for one watcher


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
        self._tasks: dict[str, dict[str, _Stored]] = {}
        self._stored: dict[str, _Stored] = {}
        self._usage: dict[str | None, Usage] = {}
        self._watchers: list[_Watcher] = []

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task."""
        limits.check(self._usage.get(None, Usage()), self._usage.get(record.principal, Usage()))
        self._stored[record.id] = self._tasks.setdefault(record.principal, {})[record.id] = _Stored(record)
        self._count(record, 1)
        self._report(record.id)

    def _count(self, record: TaskRecord, sign: int) -> None:
        for key in (None, record.principal):
            used = self._usage.pop(key, Usage())
            if used.tasks + sign:
                size = used.bytes + sign * len(record.data)
                self._usage[key] = Usage(used.open + sign * (not record.is_over), used.tasks + sign, size)

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
        self._count(record, 1)
        self._count(stored.record, -1)
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
        tasks = self._tasks.get(principal, {})
        if after is not None and after not in tasks:
            raise KeyError(after)
        first = 0 if after is None else list(tasks).index(after) + 1
        return [one.record for one in islice(tasks.values(), first, first + PAGE_SIZE)]

    async def sweep(self) -> int:
        """Remove tasks."""
        now = time.time() * 1000
        removable = (one.record for one in self._stored.values() if one.record.removable_at <= now)
        removed = list(islice(removable, PAGE_SIZE))
        for record in removed:
            self._count(record, -1)
            del self._stored[record.id], self._tasks[record.principal][record.id]
            if not self._tasks[record.principal]:
                del self._tasks[record.principal]
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
