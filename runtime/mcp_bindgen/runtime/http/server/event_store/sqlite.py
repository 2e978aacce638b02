"""Store events in an SQLite file: sessions and their streams outlive the process."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from ....storage.sqlite import SqliteThread
from .base import STORE_LIMITS, Event, OpenStream, StoredSession, StoreLimits, page

_VERSION = 2
_SCHEMA = """
create table sessions (
    key text primary key, record blob not null, life integer not null default 0, seen real not null,
    events integer not null default 0, size integer not null default 0
) without rowid;
create table streams (
    session text not null references sessions on delete cascade, name text not null,
    last integer not null, pending blob, primary key (session, name)
) without rowid;
create table events (
    place integer primary key, session text not null, stream text not null, number integer not null, data blob not null,
    foreign key (session, stream) references streams on delete cascade
);
create unique index events_by_stream on events (session, stream, number);
create index events_by_session on events (session);
create table total (events integer not null, size integer not null);
insert into total values (0, 0);
create trigger come after insert on events begin
    update sessions set events = events + 1, size = size + length(new.data) where key = new.session;
    update total set events = events + 1, size = size + length(new.data);
end;
create trigger gone after delete on events begin
    update sessions set events = events - 1, size = size - length(old.data) where key = old.session;
    update total set events = events - 1, size = size - length(old.data);
    delete from streams where session = old.session and name = old.stream and pending is null
        and not exists (select 1 from events where session = old.session and stream = old.stream);
end;
"""

_UPSERT = """
insert into streams values (?, ?, ?, ?)
on conflict do update set last = max(last, excluded.last), pending = excluded.pending
"""
_DELETE_EMPTY = """
delete from streams where session = ?1 and name = ?2
    and not exists (select 1 from events where session = ?1 and stream = ?2)
"""


class SqliteEventStore:
    """Hold events in an SQLite file. One process at a time serves the sessions of a file, which is locked meanwhile.

    What was written survives the end of the process at any moment, a power cut up to the last moments. A thread does
    the work; what is asked for at the same time is committed together.

    Args:
        path: The file; it is made when it is not there, for its owner's eyes only.
        limits: How much it holds.
        wait: Seconds to wait for another process that is about to close the file.

    Raises:
        ValueError: The file is not ours, was written by another version, or is open already.
        sqlite3.Error: The file cannot be opened.
    """

    def __init__(self, path: str | Path, limits: StoreLimits = STORE_LIMITS, wait: float = 5.0) -> None:
        self._limits = limits
        Path(path).touch(0o600)
        self._db = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(path)
        except BaseException:
            self._db.close()
            raise
        self._thread = SqliteThread(self._db, "mcp-event-store")
        self._do = self._thread.do

    def _prepare(self, path: str | Path) -> None:
        db = self._db
        try:
            db.execute("pragma locking_mode = exclusive")
            db.executescript("begin exclusive; commit")  # takes the lock, which lasts until the file is closed
            (version,) = db.execute("pragma user_version").fetchone()
            (tables,) = db.execute("select count(*) from sqlite_master").fetchone()
            new = version == tables == 0
            if version != _VERSION and not new:
                raise ValueError(f"{path} is not an event store of this version; choose another file, or delete it")
            db.execute("pragma journal_mode = wal")
            db.execute("pragma synchronous = normal")
            db.execute("pragma foreign_keys = on")
            if new:
                db.executescript(f"begin immediate; {_SCHEMA} pragma user_version = {_VERSION}; commit;")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            reason = "is in use: only one process, or worker, can serve the sessions of a file; give each its own"
            raise ValueError(f"{path} {reason}") from None
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{path} is not an event store: {error}") from None

    def close(self) -> None:
        """Finish what was asked for and close the file; safe to call twice."""
        self._thread.close()

    # --- sessions ---------------------------------------------------------------------------------------------

    async def save(self, session: str, record: bytes) -> None:
        """Store the record of a session."""
        statement = "insert into sessions (key, record, seen) values (?, ?, ?) on conflict do update set record = ?"
        await self._do(lambda db: db.execute(statement, (session, record, time.time(), record)).rowcount)

    async def load(self, session: str) -> StoredSession | None:
        """Return a session."""

        def job(db: sqlite3.Connection) -> StoredSession | None:
            statement = "update sessions set life = life + 1, seen = ? where key = ? returning record, life"
            rows = db.execute(statement, (time.time(), session)).fetchall()
            open_ = "select name, last, pending from streams where session = ? and pending is not null"
            streams = {name: OpenStream(last, pending) for name, last, pending in db.execute(open_, (session,))}
            return StoredSession(rows[0][0], rows[0][1], streams) if rows else None

        return await self._do(job)

    async def forget(self, session: str) -> None:
        """Drop a session."""
        await self._do(lambda db: db.execute("delete from sessions where key = ?", (session,)).rowcount)

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Forget sessions that are no longer in use."""

        def job(db: sqlite3.Connection) -> None:
            now = time.time()
            db.executemany("update sessions set seen = ? where key = ?", [(now, session) for session in alive])
            db.execute("delete from sessions where seen < ?", (now - idle,))

        await self._do(job)

    # --- streams ----------------------------------------------------------------------------------------------

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """Add events to a stream."""

        def job(db: sqlite3.Connection) -> None:
            if not db.execute("update sessions set seen = ? where key = ?", (time.time(), session)).rowcount:
                return
            last = events[-1].number if events else 0
            db.execute(_UPSERT, (session, stream, last, pending))
            rows = [(session, stream, event.number, event.data) for event in events]
            db.executemany("insert into events (session, stream, number, data) values (?, ?, ?, ?)", rows)
            self._shrink(db, session)
            if pending is None and not events:
                db.execute(_DELETE_EMPTY, (session, stream))

        await self._do(job)

    def _shrink(self, db: sqlite3.Connection, session: str) -> None:
        """Drop the oldest events, until what is left is within the limits."""
        limits = self._limits
        ours = "select min(place) from events where session = ?"
        while _exceeds(db, "sessions where key = ?", limits.events, limits.size, session):
            db.execute(f"delete from events where place = ({ours})", (session,))  # noqa: S608
        while _exceeds(db, "total", limits.all_events, limits.all_size):
            db.execute("delete from events where place = (select min(place) from events)")

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return what is held of a stream."""

        oldest = "select min(number) from events where session = ?1 and stream = ?2"
        statement = f"select coalesce(({oldest}), last + 1), last from streams where session = ?1 and name = ?2"  # noqa: S608
        return await self._do(lambda db: db.execute(statement, (session, stream)).fetchone())

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """Return the next events of a stream."""

        statement = "select number, data from events where session = ? and stream = ? and number > ? order by number"
        place = (session, stream, after)
        return await self._do(lambda db: page(Event(*row) for row in db.execute(statement, place)))


def _exceeds(db: sqlite3.Connection, where: str, events: int, size: int, *values: str) -> bool:
    """Tell whether there are too many events, or bytes of them, and more than one."""
    held: tuple[int, int] = db.execute(f"select events, size from {where}", values).fetchone()  # noqa: S608
    return held[0] > 1 and (held[0] > events or held[1] > size)
