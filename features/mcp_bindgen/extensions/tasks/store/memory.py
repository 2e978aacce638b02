"""Hold tasks in memory: they last as long as the process."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Sequence
from itertools import islice

import anyio

from ..limits import Held, TaskLimits
from ..record import TaskRecord
from .base import MOST, cache_until

_MOST_NEWS = 10_000


class MemoryTaskStore:
    """Hold tasks in memory, for one process."""

    def __init__(self) -> None:
        self._records: dict[str, TaskRecord] = {}
        self._of: dict[str, dict[str, int]] = {}
        self._counts: dict[str, Sequence[int]] = {}
        self._open: dict[str, tuple[str, float]] = {}
        self._watchers: list[_News] = []

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task."""
        limits.check(self._held(""), self._held(f"of {record.principal}"))
        self._open[record.id] = ("", 0.0)
        self._count(record, 1, 1, 0)
        self._of.setdefault(record.principal, {})[record.id] = 0
        self._put(record)

    def _held(self, whose: str) -> Held:
        return Held(*self._counts.get(whose, (0, 0, 0)))

    def _count(self, record: TaskRecord, *more: int) -> None:
        """Count tasks that are open, kept, and their bytes: all, and those of a principal."""
        for whose in ("", f"of {record.principal}"):
            found = [a + b for a, b in zip(self._counts.get(whose, (0, 0, 0)), more, strict=True)]
            self._counts[whose] = found
            if not found[1]:
                del self._counts[whose]

    def _put(self, record: TaskRecord) -> None:
        sizes, size = self._of[record.principal], len(record.dump())
        self._count(record, 0, 0, size - sizes[record.id])
        self._records[record.id], sizes[record.id] = record, size
        for news in self._watchers:
            news.ids[record.id if len(news.ids) < _MOST_NEWS else None] = None
            news.arrived.set()

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task."""
        return self._records.get(id)

    async def swap(self, record: TaskRecord) -> bool:
        """Replace a task by its next version."""
        held = self._records.get(record.id)
        if held is None or held.version != record.version - 1:
            return False
        if record.is_over and self._open.pop(record.id, None) is not None:
            self._count(record, -1, 0, 0)
        self._put(record)
        return True

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take the lease of a task, or renew it."""
        now = time.time()
        owner, until = self._open.get(id, ("", math.inf))
        if id not in self._open or (owner not in ("", worker) and until > now):
            return False
        self._open[id] = (worker, now + seconds)
        return True

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """Give up a lease."""
        if id in self._open and self._open[id][0] == worker:
            self._open[id] = ("", math.inf if until is None else until / 1000)

    async def due(self) -> Sequence[str]:
        """Return tasks that no worker has a lease of."""
        now = time.time()
        return list(islice((id for id, (_, until) in self._open.items() if until <= now), MOST))

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal."""
        ids = list(self._of.get(principal, {}))
        if after is not None and after not in ids:
            raise KeyError(after)
        first = 0 if after is None else ids.index(after) + 1
        return [self._records[id] for id in ids[first : first + MOST]]

    async def sweep(self) -> int:
        """Drop tasks whose time is over."""
        now = time.time() * 1000
        gone = list(islice((one for one in self._records.values() if cache_until(one) <= now), MOST))
        for record in gone:
            del self._records[record.id]
            self._count(record, 0, -1, -self._of[record.principal].pop(record.id))
            if not self._of[record.principal]:
                del self._of[record.principal]
        return len(gone)

    async def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change."""
        news = _News()
        self._watchers.append(news)
        try:
            while True:
                await news.arrived.wait()
                news.arrived = anyio.Event()
                ids, news.ids = news.ids, {}
                for id in ids:
                    yield id
        finally:
            self._watchers.remove(news)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to let go of."""


class _News:
    def __init__(self) -> None:
        self.ids: dict[str | None, None] = {}
        self.arrived = anyio.Event()
