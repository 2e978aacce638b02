"""Task stores in SQLite: in a file, which the processes of one machine can share, and in memory."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from mcp_bindgen.sqlite.file import FileFormat, SqliteMemory, SqliteThread

from .record import TaskRecord
from .store import PAGE_SIZE, TaskLimits, Usage, load

_POLL_SECONDS = 0.2  # until a change of another process is noticed
_READ_TIMEOUT_SECONDS = 0.01  # the event loop waits for another process
_FORMAT = FileFormat(
    "a task store",
    version=1,
    table="usage",
    schema=Path(__file__).with_name("tasks.sql"),
    settings=("journal_mode = wal", "synchronous = full"),
)
_LAST_CHANGE = "select number from changes"
_CHANGES = "select id, change from tasks where change > ? order by change"
_USAGE = "select coalesce(sum(open), 0), coalesce(sum(tasks), 0), coalesce(sum(bytes), 0) from usage"


class _TaskStore:
    """Task store in an SQLite database; see `TaskStore`.

    Args:
        database: The database.
    """

    def __init__(self, database: SqliteMemory | SqliteThread) -> None:
        self._do = database.do
        self._changed = anyio.Event()

    async def _change(self, statement: str, *values: object) -> int:
        """Execute a statement that changes tasks; return the number of changed rows."""
        return await self._do(lambda db: db.execute(statement, values).rowcount)

    def _wake_watchers(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task."""

        def job(db: sqlite3.Connection) -> None:
            own = db.execute(f"{_USAGE} where principal = ?", (record.principal,)).fetchone()
            limits.check(Usage(*db.execute(_USAGE).fetchone()), Usage(*own))
            columns = "insert into tasks (id, principal, version, record, open, removable_at)"
            row = (record.id, record.principal, record.version, record.data, not record.is_over, record.removable_at)
            db.execute(f"{columns} values (?, ?, ?, ?, ?, ?)", row)

        await self._do(job)
        self._wake_watchers()

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task."""
        row = await self._do(lambda db: db.execute("select record from tasks where id = ?", (id,)).fetchone())
        return row and load(row[0])

    async def swap(self, record: TaskRecord) -> bool:
        """Replace the previous version of a task."""
        statement = "update tasks set version = ?, record = ?, open = ?, removable_at = ? where id = ? and version = ?"
        state = (record.version, record.data, not record.is_over, record.removable_at)
        is_swapped = await self._change(statement, *state, record.id, record.version - 1) == 1
        if is_swapped:
            self._wake_watchers()
        return is_swapped

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take or renew the lease of a task."""
        free = "id = ? and open and (worker in ('', ?) or until <= ?)"
        statement = f"update tasks set worker = ?, until = ? where {free}"  # noqa: S608
        return await self._change(statement, worker, _now() + seconds * 1000, id, worker, _now()) == 1

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """End the lease of a worker."""
        statement = "update tasks set worker = '', until = ? where id = ? and open and worker = ?"
        await self._change(statement, float("inf") if until is None else until, id, worker)

    async def due(self) -> Sequence[str]:
        """Return ids of tasks that need a worker."""
        statement = "select id from tasks where open and until <= ? order by until limit ?"
        return await self._do(lambda db: [id for (id,) in db.execute(statement, (_now(), PAGE_SIZE))])

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal."""

        def job(db: sqlite3.Connection) -> list[tuple[bytes]]:
            place = (0,)
            if after is not None:
                statement = "select place from tasks where id = ? and principal = ?"
                place = db.execute(statement, (after, principal)).fetchone()
                if place is None:
                    raise KeyError(after)
            statement = "select record from tasks where principal = ? and place > ? order by place limit ?"
            return db.execute(statement, (principal, *place, PAGE_SIZE)).fetchall()

        return [record for (data,) in await self._do(job) if (record := load(data)) is not None]

    async def sweep(self) -> int:
        """Remove tasks."""
        removable = "select place from tasks where not open and removable_at <= ? limit ?"
        return await self._change(f"delete from tasks where place in ({removable})", _now(), PAGE_SIZE)  # noqa: S608


class SqliteTaskStore(_TaskStore):
    """Task store in an SQLite file, for the processes of one machine.

    Each commit waits for the disk, so a stored task survives the end of the process and of the machine.

    Args:
        path: The file. A new file is readable by its owner only.
        wait: Seconds to wait for another process that writes.

    Raises:
        ValueError: The file is not a task store, or has a different version.
        sqlite3.Error: The file cannot be opened.
    """

    def __init__(self, path: str | Path, wait: float = 5.0) -> None:
        self._path = path
        self._thread = SqliteThread(_FORMAT.connect(path, wait), "mcp-task-store")
        super().__init__(self._thread)

    async def aclose(self) -> None:
        """Finish pending jobs and close the file."""
        self._thread.close()

    async def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change in any process."""
        db = sqlite3.connect(self._path, timeout=_READ_TIMEOUT_SECONDS, isolation_level=None)  # reads only
        try:
            last = await self._do(lambda db: int(db.execute(_LAST_CHANGE).fetchone()[0]))
            seen = None
            while True:
                changed, rows = self._changed, list[tuple[str, int]]()
                with suppress(sqlite3.OperationalError):  # locked by another process: retry after the pause
                    version = db.execute("pragma data_version").fetchone()
                    rows = db.execute(_CHANGES, (last,)).fetchall() if version != seen else []
                    seen = version
                for id, last in rows:  # noqa: B007
                    yield id
                with anyio.move_on_after(_POLL_SECONDS):
                    await changed.wait()
        finally:
            db.close()


class MemoryTaskStore(_TaskStore):
    """Task store in memory, for one process."""

    def __init__(self) -> None:
        self._database = SqliteMemory(_FORMAT)
        super().__init__(self._database)

    async def aclose(self) -> None:
        """Do nothing; the tasks remain until the store is gone."""

    async def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change."""
        db = self._database.db
        (last,) = db.execute(_LAST_CHANGE).fetchone()
        while True:
            changed, rows = self._changed, db.execute(_CHANGES, (last,)).fetchall()
            for id, last in rows:  # noqa: B007
                yield id
            await changed.wait()


def _now() -> float:
    return time.time() * 1000
