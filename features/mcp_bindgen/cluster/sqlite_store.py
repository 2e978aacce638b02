"""Store events in an SQLite file: sessions and their streams outlive the process."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from mcp_bindgen.http.server.event_store.base import (
    STORE_LIMITS,
    Event,
    OpenStream,
    StoredSession,
    StoreLimits,
    account_of,
    page,
)

from .storage.sqlite import SqliteThread

_VERSION = 3
_SCHEMA = """
create table sessions (
    key text primary key, record blob not null, life integer not null default 0, seen real not null,
    events integer not null default 0, size integer not null default 0, account text not null
) without rowid;
create table streams (
    session text not null references sessions on delete cascade, name text not null,
    last integer not null, pending blob, primary key (session, name)
) without rowid;
create table events (
    place integer primary key, session text not null, stream text not null, number integer not null, data blob not null,
    account text not null,
    foreign key (session, stream) references streams on delete cascade
);
create unique index events_by_stream on events (session, stream, number);
create index events_by_session on events (session);
create index events_by_account on events (account);
create table accounts (name text primary key, events integer not null, size integer not null) without rowid;
create trigger come after insert on events begin
    update sessions set events = events + 1, size = size + length(new.data) where key = new.session;
    insert into accounts values (new.account, 1, length(new.data)) on conflict do update
        set events = events + 1, size = size + excluded.size;
end;
create trigger gone after delete on events begin
    update sessions set events = events - 1, size = size - length(old.data) where key = old.session;
    update accounts set events = events - 1, size = size - length(old.data) where name = old.account;
    delete from accounts where name = old.account and events = 0;
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

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store the record of a session."""
        statement = "insert into sessions (key, record, seen, account) values (?, ?, ?, ?)"
        row = (session, record, time.time(), account_of(principal))
        replace = f"{statement} on conflict do update set record = excluded.record"
        await self._do(lambda db: db.execute(replace, row).rowcount)

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
            statement = "update sessions set seen = ? where key = ? returning account"
            found = db.execute(statement, (time.time(), session)).fetchall()
            if not found:
                return
            account = str(found[0][0])
            last = events[-1].number if events else 0
            db.execute(_UPSERT, (session, stream, last, pending))
            clipped = self._limits.clipped
            rows = [(session, stream, event.number, clipped(event.data), account) for event in events]
            insert = "insert into events (session, stream, number, data, account) values (?, ?, ?, ?, ?)"
            db.executemany(insert, rows)
            if rows:
                self._shrink(db, session, account)
            if pending is None and not events:
                db.execute(_DELETE_EMPTY, (session, stream))

        await self._do(job)

    def _shrink(self, db: sqlite3.Connection, session: str, account: str) -> None:
        """Drop the oldest events of a session, then of its principal, then of the largest principals."""

        def held(where: str, *values: str) -> tuple[int, int]:
            rows = db.execute(f"select total(events), total(size) from {where}", values)  # noqa: S608
            found: tuple[int, int] = rows.fetchone()
            return found

        def drop(column: str, value: str) -> None:
            oldest = f"select min(place) from events where {column} = ?"  # noqa: S608
            db.execute(f"delete from events where place = ({oldest})", (value,))  # noqa: S608

        def largest(by: str) -> str:
            statement = f"select name from accounts order by {by} desc, name desc limit 1"  # noqa: S608
            return str(db.execute(statement).fetchone()[0])

        limits = self._limits
        while (own := held("sessions where key = ?", session))[0] > 1 and (
            own[0] > limits.events or own[1] > limits.size
        ):
            drop("session", session)
        while held("accounts where name = ?", account)[1] > limits.size_of_principal:
            drop("account", account)
        while (all_ := held("accounts"))[0] > limits.all_events or all_[1] > limits.all_size:
            drop("account", largest("events" if all_[0] > limits.all_events else "size"))

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
