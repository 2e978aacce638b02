"""Asynchronous access to an SQLite database, in a file or in memory."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

T = TypeVar("T")
Job: TypeAlias = Callable[[sqlite3.Connection], T]

MEMORY = ":memory:"
"""Path of a database that lasts as long as its connection."""

_STATE = """
select user_version, (select count(*) from sqlite_master), (select count(*) from sqlite_master where name = ?)
from pragma_user_version
"""
_Job = tuple[Job[Any], Future[Any]]


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Format of the files of a store.

    Attributes:
        kind: Name of the store in errors, with its article.
        version: Version of the tables.
        table: Name of one of the tables.
        schema: File with the statements that create the tables.
        settings: Settings (`pragma`) of a connection.
        is_exclusive: True if one connection locks the file until it is closed.
    """

    kind: str
    version: int
    table: str
    schema: Path
    settings: Sequence[str]
    is_exclusive: bool = False

    def connect(self, path: str | Path, wait: float) -> sqlite3.Connection:
        """Open a file, and create or check its tables. A new file is readable by its owner only.

        Args:
            path: The file, or `MEMORY`.
            wait: Seconds to wait for another connection that locks the file.

        Raises:
            ValueError: The file is no such store, has another version, or is in use.
            sqlite3.Error: The file cannot be opened.
        """
        if path != MEMORY:
            Path(path).touch(0o600)
        db = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(db, path)
        except BaseException as error:
            db.close()
            if not isinstance(error, sqlite3.DatabaseError):
                raise
            if not isinstance(error, sqlite3.OperationalError):
                raise ValueError(f"{path} is not {self.kind}: {error}") from None
            if not self.is_exclusive or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            reason = "is in use: only one process, or worker, can serve the sessions of a file; give each its own"
            raise ValueError(f"{path} {reason}") from None
        return db

    def _prepare(self, db: sqlite3.Connection, path: str | Path) -> None:
        if self.is_exclusive:
            db.execute("pragma locking_mode = exclusive")
            db.executescript("begin exclusive; commit")  # takes the lock, which lasts until the file is closed
        version, tables, is_ours = db.execute(_STATE, (self.table,)).fetchone()
        is_new = version == tables == 0
        if not is_new and not (version == self.version and is_ours):
            raise ValueError(f"{path} is not {self.kind} of this version; choose another file, or delete it")
        for setting in self.settings:
            db.execute(f"pragma {setting}")
        if is_new:
            db.executescript(
                f"begin immediate; {self.schema.read_text('utf-8')} pragma user_version = {self.version}; commit;"
            )


@contextmanager
def transaction(db: sqlite3.Connection) -> Generator[None]:
    """Commit the changes of the block; roll them back if it raises an exception."""
    db.execute("begin immediate")
    with db:
        yield


class SqliteMemory:
    """Database in memory, which lasts as long as this object.

    Args:
        format: Its format.

    Attributes:
        db: The connection.
    """

    def __init__(self, format: FileFormat) -> None:
        self.db: sqlite3.Connection = format.connect(MEMORY, 0.0)
        weakref.finalize(self, self.db.close)

    async def do(self, job: Job[T]) -> T:
        """Return the result of a job after its commit; an exception of the job rolls its changes back."""
        with transaction(self.db):
            return job(self.db)


class SqliteThread:
    """Thread that runs jobs on a connection, and commits simultaneous jobs together.

    No other code may use the connection from then on.

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

    async def do(self, job: Job[T]) -> T:
        """Return the result of a job after its commit; an exception of the job rolls its changes back.

        Raises:
            StoreUnavailable: SQLite fails, for example because the disk is full.
            ValueError: The store is closed.
        """
        if self._closed:
            raise ValueError("the store is closed")
        future: Future[T] = Future()
        self._jobs.put((job, future))
        try:
            return await asyncio.wrap_future(future)
        except sqlite3.DatabaseError as error:
            log.error("a store failed: %s", error)
            raise StoreUnavailable from error

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
        with transaction(self._db):
            results = [job(self._db) for job, _ in jobs]
        for (_, future), result in zip(jobs, results, strict=True):
            future.set_result(result)
