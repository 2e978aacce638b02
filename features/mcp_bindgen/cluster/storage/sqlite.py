"""Asynchronous access to an SQLite file: one thread runs the jobs, and commits simultaneous jobs together."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Job = tuple[Callable[[sqlite3.Connection], Any], Future[Any]]


class SqliteThread:
    """Thread that runs jobs on a connection. No other code may use the connection from then on.

    Args:
        db: Connection in autocommit mode.
        name: Name of the thread.
    """

    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        self._db = db
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish the waiting jobs and close the connection; safe to call twice."""
        self._closed = True
        self._jobs.put(None)
        self._thread.join()

    async def do(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of a job after its commit; an exception of the job rolls its changes back.

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
            while not self._jobs.empty():  # no other thread takes jobs
                batch.append(self._jobs.get())
            open_ = None not in batch
            jobs = [job for job in batch if job is not None and job[1].set_running_or_notify_cancel()]
            try:
                self._commit(jobs)
            except Exception:
                for job in jobs:  # one by one, so that only the failing jobs fail
                    try:
                        self._commit([job])
                    except Exception as error:
                        job[1].set_exception(error)
        self._db.close()

    def _commit(self, jobs: Sequence[_Job]) -> None:
        db = self._db
        db.execute("begin immediate")
        with db:  # commits, or rolls back
            results = [job(db) for job, _ in jobs]
        for (_, future), result in zip(jobs, results, strict=True):
            future.set_result(result)
