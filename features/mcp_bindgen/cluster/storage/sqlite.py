"""Ask an SQLite file from the event loop: one thread works, and commits together what is asked at the same time."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Job = Callable[[sqlite3.Connection], Any]


class SqliteThread:
    """The thread that works on a connection, which must not be used elsewhere from then on.

    Args:
        db: The connection, in autocommit mode.
        name: The name of the thread.
    """

    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        self._db = db
        self._jobs: SimpleQueue[tuple[_Job, Future[Any]] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish what was asked for and close the connection; safe to call twice."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    async def do(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Return what a job returns, once it is committed; what it raises undoes it.

        Raises:
            ValueError: The store is closed.
        """
        if self._closed:
            raise ValueError("the store is closed")
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        open_ = True
        while open_:
            batch = [self._jobs.get()]
            while not self._jobs.empty():  # nobody else takes any
                batch.append(self._jobs.get())
            open_ = None not in batch
            jobs = [job for job in batch if job is not None and job[1].set_running_or_notify_cancel()]
            try:
                self._commit(jobs)
            except Exception:
                for job in jobs:  # each for itself, so that only those fail which must
                    try:
                        self._commit([job])
                    except Exception as error:
                        job[1].set_exception(error)
        self._db.close()

    def _commit(self, jobs: Sequence[tuple[_Job, Future[Any]]]) -> None:
        db = self._db
        db.execute("begin immediate")
        with db:  # commits, or rolls back
            results = [job(db) for job, _ in jobs]
        for (_, future), result in zip(jobs, results, strict=True):
            future.set_result(result)
