"""Hold tasks in an SQLite file: they outlive the process, and processes of one machine may share them."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio

from mcp_bindgen.cluster.storage.sqlite import SqliteThread
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

from ..limits import Held, TaskLimits
from ..record import TaskRecord
from .base import MOST, cache_until, loaded

log = logging.getLogger("mcp_bindgen")

T = TypeVar("T")

_VERSION = 1
_POLL = 0.2  # seconds until a change in another process is noticed
_BLINK = 0.01  # seconds that the event loop waits for another process at most
_SCHEMA = """
create table tasks (
    place integer primary key autoincrement, id text not null unique, principal text not null,
    version integer not null, record blob not null, open integer not null, kept real not null,
    owner text not null default '', until real not null default 0, change integer not null
);
create index tasks_of on tasks (principal, place);
create index tasks_due on tasks (until) where open;
create index tasks_over on tasks (kept) where not open;
create index tasks_changed on tasks (change);
create table changes (number integer not null);
insert into changes values (0);
create table held (principal text primary key, open integer not null, kept integer not null, bytes integer not null);
create trigger come after insert on tasks begin
    insert into held values (new.principal, new.open, 1, length(new.record)) on conflict do update
        set open = open + excluded.open, kept = kept + 1, bytes = bytes + excluded.bytes;
end;
create trigger differ after update of record on tasks begin
    update held set open = open + new.open - old.open, bytes = bytes + length(new.record) - length(old.record)
        where principal = new.principal;
end;
create trigger gone after delete on tasks begin
    update held set open = open - old.open, kept = kept - 1, bytes = bytes - length(old.record)
        where principal = old.principal;
    delete from held where principal = old.principal and kept = 0;
end;
"""
_OURS = "select 1 from sqlite_master where name = 'held'"
_HELD = "select coalesce(sum(open), 0), coalesce(sum(kept), 0), coalesce(sum(bytes), 0) from held"


class SqliteTaskStore:
    """Hold tasks in an SQLite file, for the processes of one machine.

    What was written survives the end of the process and of the machine, because each commit waits for the disk.

    Args:
        path: The file; it is made when it is not there, for its owner's eyes only.
        wait: Seconds to wait for another process that writes.

    Raises:
        ValueError: The file is not ours, or was written by another version.
        sqlite3.Error: The file cannot be opened.
    """

    def __init__(self, path: str | Path, wait: float = 5.0) -> None:
        self._path = path
        self._changed = anyio.Event()
        Path(path).touch(0o600)
        db = self._connect(wait)
        try:
            self._prepare(db)
        except BaseException:
            db.close()
            raise
        self._thread = SqliteThread(db, "mcp-task-store")

    def _connect(self, wait: float) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=wait, isolation_level=None, check_same_thread=False)

    def _prepare(self, db: sqlite3.Connection) -> None:
        try:
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = full")
            db.execute("begin immediate")
            with db:
                (version,) = db.execute("pragma user_version").fetchone()
                (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
                if version == tables == 0:
                    for statement in _statements(_SCHEMA):
                        db.execute(statement)
                    db.execute(f"pragma user_version = {_VERSION}")
                elif version != _VERSION or not db.execute(_OURS).fetchone():
                    reason = "is not a task store of this version; choose another file, or delete it"
                    raise ValueError(f"{self._path} {reason}")
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self._path} is not a task store: {error}") from None

    async def aclose(self) -> None:
        """Finish what was asked for and close the file."""
        self._thread.close()

    async def _do(self, job: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._thread.do(job)
        except sqlite3.OperationalError as error:
            log.error("the store of tasks refuses: %s", error)
            raise StoreUnavailable() from error

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task."""

        def job(db: sqlite3.Connection) -> None:
            own = f"{_HELD} where principal = ?"
            limits.check(Held(*db.execute(_HELD).fetchone()), Held(*db.execute(own, (record.principal,)).fetchone()))
            columns = "insert into tasks (id, principal, version, record, open, kept, change)"
            row = (record.id, record.principal, record.version, record.dump(), cache_until(record), _change(db))
            db.execute(f"{columns} values (?, ?, ?, ?, 1, ?, ?)", row)

        await self._do(job)
        self._tell()

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task."""
        return await self._do(lambda db: _first(db.execute("select record from tasks where id = ?", (id,))))

    async def swap(self, record: TaskRecord) -> bool:
        """Replace a task by its next version."""

        def job(db: sqlite3.Connection) -> bool:
            statement = "update tasks set version = ?, record = ?, open = ?, kept = ? where id = ? and version = ?"
            values = (record.version, record.dump(), not record.is_over, cache_until(record), record.id)
            done = db.execute(statement, (*values, record.version - 1)).rowcount == 1
            if done:
                db.execute("update tasks set change = ? where id = ?", (_change(db), record.id))
            return done

        done = await self._do(job)
        if done:
            self._tell()
        return done

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take the lease of a task, or renew it."""
        statement = (
            "update tasks set owner = ?1, until = ?2 where id = ?3 and open and (owner in ('', ?1) or until <= ?4)"
        )
        now = _now()
        values = (worker, now + seconds * 1000, id, now)
        return await self._do(lambda db: db.execute(statement, values).rowcount == 1)

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """Give up a lease."""
        statement = "update tasks set owner = '', until = ? where id = ? and open and owner = ?"
        values = (float("inf") if until is None else until, id, worker)
        await self._do(lambda db: db.execute(statement, values).rowcount)

    async def due(self) -> Sequence[str]:
        """Return tasks that no worker has a lease of."""
        statement = "select id from tasks where open and until <= ? order by until limit ?"
        return await self._do(lambda db: [id for (id,) in db.execute(statement, (_now(), MOST))])

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal."""

        def job(db: sqlite3.Connection) -> list[TaskRecord]:
            place = (0,)
            if after is not None:
                statement = "select place from tasks where id = ? and principal = ?"
                place = db.execute(statement, (after, principal)).fetchone()
                if place is None:
                    raise KeyError(after)
            statement = "select record from tasks where principal = ? and place > ? order by place limit ?"
            rows = db.execute(statement, (principal, *place, MOST))
            return [record for (data,) in rows if (record := loaded(data)) is not None]

        return await self._do(job)

    async def sweep(self) -> int:
        """Drop tasks whose time is over."""
        gone = "select place from tasks where not open and kept <= ? limit ?"
        statement = f"delete from tasks where place in ({gone})"  # noqa: S608
        return await self._do(lambda db: db.execute(statement, (_now(), MOST)).rowcount)

    async def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change, in whichever process."""
        db = self._connect(_BLINK)  # one that only reads, in the event loop
        news = "select id, change from tasks where change > ? order by change"
        try:
            last = await self._do(lambda db: int(db.execute("select number from changes").fetchone()[0]))
            seen = None
            while True:
                changed, rows = self._changed, list[tuple[str, int]]()
                with suppress(sqlite3.OperationalError):  # another process has it for itself: look again
                    version = db.execute("pragma data_version").fetchone()
                    rows = db.execute(news, (last,)).fetchall() if version != seen else []
                    seen = version
                for id, last in rows:  # noqa: B007
                    yield id
                with anyio.move_on_after(_POLL):
                    await changed.wait()
        finally:
            db.close()


def _now() -> float:
    return time.time() * 1000


def _first(rows: sqlite3.Cursor) -> TaskRecord | None:
    row = rows.fetchone()
    return None if row is None else loaded(row[0])


def _change(db: sqlite3.Connection) -> int:
    """Return the number of the next change."""
    number: int = db.execute("update changes set number = number + 1 returning number").fetchone()[0]
    return number


def _statements(script: str) -> list[str]:
    """Return the statements of a script; triggers have some of their own."""
    found, rest = [""], script.split(";\n")
    for part in rest:
        found[-1] += f"{part};\n"
        if sqlite3.complete_statement(found[-1]):
            found.append("")
    return [one for one in found if one.strip(" ;\n")]
