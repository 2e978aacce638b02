"""Event store in an SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from mcp_bindgen.http.server.event_store import (
    STORE_LIMITS,
    OpenStream,
    StoredEvent,
    StoredSession,
    StoreLimits,
    account_of,
    page,
)

from .file import FileFormat, SqliteThread

_FORMAT = FileFormat(
    "an event store",
    version=4,
    table="accounts",
    schema=Path(__file__).with_name("events.sql"),
    settings=("journal_mode = wal", "synchronous = normal", "foreign_keys = on"),
    is_exclusive=True,
)
_UPSERT = """
insert into streams values (?, ?, ?, ?)
on conflict do update set last = max(last, excluded.last), pending = excluded.pending
"""
_INSERT = "insert into events (session, stream, number, data, account) values (?, ?, ?, ?, ?)"
_DELETE_EMPTY = """
delete from streams where session = ? and name = ?
    and not exists (select 1 from events where session = streams.session and stream = streams.name)
"""


class SqliteEventStore:
    """Event store in an SQLite file, which is locked: one process at a time serves its sessions.

    Data survive the end of the process at any moment. A power cut may lose the last moments. A thread runs the
    statements, and commits simultaneous calls together.

    Args:
        path: The file. A new file is readable by its owner only.
        limits: Limits of sessions, principals and the whole file.
        wait: Seconds to wait for another process that is about to close the file.

    Raises:
        ValueError: The file is no event store, has another version, or is in use.
        sqlite3.Error: The file cannot be opened.
    """

    def __init__(self, path: str | Path, limits: StoreLimits = STORE_LIMITS, wait: float = 5.0) -> None:
        self._thread = SqliteThread(_FORMAT.connect(path, wait), "mcp-event-store")
        self._do = self._thread.do
        self._limits = limits

    def close(self) -> None:
        """Finish the waiting calls and close the file; safe to call twice."""
        self._thread.close()

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store the record of a session."""
        statement = """
            insert into sessions (key, record, seen, account) values (?, ?, ?, ?)
            on conflict do update set record = excluded.record
        """
        row = (session, record, time.time(), account_of(principal))
        await self._do(lambda db: db.execute(statement, row).rowcount)

    async def load(self, session: str) -> StoredSession | None:
        """Return a session, or None."""

        def job(db: sqlite3.Connection) -> StoredSession | None:
            statement = "update sessions set epoch = epoch + 1, seen = ? where key = ? returning record, epoch"
            rows = db.execute(statement, (time.time(), session)).fetchall()
            open_ = "select name, last, pending from streams where session = ? and pending is not null"
            streams = {name: OpenStream(last, pending) for name, last, pending in db.execute(open_, (session,))}
            return StoredSession(rows[0][0], rows[0][1], streams) if rows else None

        return await self._do(job)

    async def forget(self, session: str) -> None:
        """Delete a session."""
        await self._do(lambda db: db.execute("delete from sessions where key = ?", (session,)).rowcount)

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Delete idle sessions."""

        def job(db: sqlite3.Connection) -> None:
            now = time.time()
            db.executemany("update sessions set seen = ? where key = ?", [(now, session) for session in alive])
            db.execute("delete from sessions where seen < ?", (now - idle,))

        await self._do(job)

    # --- streams ----------------------------------------------------------------------------------------------

    async def write(self, session: str, stream: str, events: Sequence[StoredEvent], pending: bytes | None) -> None:
        """Add events to a stream."""

        def job(db: sqlite3.Connection) -> None:
            statement = "update sessions set seen = ? where key = ? returning account"
            found = db.execute(statement, (time.time(), session)).fetchall()
            if not found:
                return
            account = str(found[0][0])
            db.execute(_UPSERT, (session, stream, events[-1].number if events else 0, pending))
            clipped = self._limits.clipped
            rows = [(session, stream, event.number, clipped(event.data), account) for event in events]
            db.executemany(_INSERT, rows)
            if rows:
                self._shrink(db, session, account)
            elif pending is None:
                db.execute(_DELETE_EMPTY, (session, stream))

        await self._do(job)

    def _shrink(self, db: sqlite3.Connection, session: str, account: str) -> None:
        """Drop the oldest events of a session, then of its principal, then of the largest principals."""

        def stored(where: str, *values: str) -> tuple[int, int]:
            found: tuple[int, int] = db.execute(f"select total(events), total(size) from {where}", values).fetchone()  # noqa: S608
            return found

        def drop(column: str, value: str) -> None:
            oldest = f"select min(place) from events where {column} = ?"  # noqa: S608
            db.execute(f"delete from events where place = ({oldest})", (value,))  # noqa: S608

        limits = self._limits
        while (own := stored("sessions where key = ?", session))[0] > 1 and (
            own[0] > limits.events or own[1] > limits.size
        ):
            drop("session", session)
        while stored("accounts where name = ?", account)[1] > limits.size_of_principal:
            drop("account", account)
        while (total := stored("accounts"))[0] > limits.all_events or total[1] > limits.all_size:
            by = "events" if total[0] > limits.all_events else "size"
            largest = f"select name from accounts order by {by} desc, name limit 1"  # noqa: S608
            drop("account", str(db.execute(largest).fetchone()[0]))

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest and the last event of a stream, or None."""
        oldest = "select min(number) from events where session = streams.session and stream = streams.name"
        statement = f"select coalesce(({oldest}), last + 1), last from streams where session = ? and name = ?"  # noqa: S608
        return await self._do(lambda db: db.execute(statement, (session, stream)).fetchone())

    async def read(self, session: str, stream: str, after: int) -> Sequence[StoredEvent]:
        """Return the next events of a stream."""
        statement = "select number, data from events where session = ? and stream = ? and number > ? order by number"
        return await self._do(
            lambda db: page(StoredEvent(*row) for row in db.execute(statement, (session, stream, after)))
        )
