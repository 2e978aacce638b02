"""Stores for the events of streams: their protocol, and SQLite in a file or in memory.

MCP, "Transports": Resumability and Redelivery. A session has streams, whose events are numbered from 1.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol, runtime_checkable

from mcp_bindgen.runtime.protocol.errors import StoreUnavailable as StoreUnavailable

from .sqlite_file import FileFormat, Jobs, SqliteMemory, SqliteThread

PAGE = 256 * 1024
"""Bytes that a store returns at once; a single event may be larger."""


@dataclass(frozen=True, slots=True)
class Event:
    """Message on a stream.

    Attributes:
        number: Its number, from 1.
        data: The message.
    """

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Stream that was open when its session was last served.

    Attributes:
        last: Number of its last event.
        pending: Ids of the requests that it has to answer, as they were written.
    """

    last: int
    pending: bytes


@dataclass(frozen=True, slots=True)
class StoredSession:
    """State of a session in a store.

    Attributes:
        record: Its saved record.
        worker_epoch: Number of times that it was loaded, this time included; 0 for a new session.
        streams: Its open streams, by name.
    """

    record: bytes
    worker_epoch: int
    streams: Mapping[str, OpenStream]


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits of a store; the oldest events are dropped first.

    Clients without a known principal count as one principal. Where a limit of all sessions is reached, the store drops
    the oldest event of the principal with most events, so that no principal displaces the events of another principal.

    Attributes:
        events: Events of one session.
        size: Their bytes; the newest event of a session may be larger.
        all_events: Events of all sessions.
        all_size: Their bytes.
        size_of_principal: Bytes of one principal. In a store that workers share, records of sessions count as well.
        messages_of_principal: Bytes of one principal that wait for one worker, in a store that workers share.
    """

    events: int = 1000
    size: int = 8 * 1024 * 1024
    all_events: int = 100_000
    all_size: int = 256 * 1024 * 1024
    size_of_principal: int = 32 * 1024 * 1024
    messages_of_principal: int = 8 * 1024 * 1024

    def clipped(self, data: bytes) -> bytes:
        """Return the data of an event as a store keeps it: empty where it is larger than the limits."""
        return data if len(data) <= min(self.size_of_principal, self.all_size) else b""


STORE_LIMITS = StoreLimits()
"""Default limits of a store."""


class EventStore(Protocol):
    """Store of the events of sessions. A session has an unguessable key, which differs from its id.

    A method returns once its data is kept, as durably as the store can. Events of a session that was never saved, or is
    forgotten, are dropped. All methods raise `StoreUnavailable` when the store fails, and log the cause.
    """

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store the state that another process needs to go on with a session; it replaces the record before.

        Args:
            session: Key of the session.
            record: Its record.
            principal: The principal that the events of the session count for; it never changes.
        """

    async def load(self, session: str) -> StoredSession | None:
        """Return a session to begin a new worker epoch of it; None for an unknown session."""

    async def forget(self, session: str) -> None:
        """Drop a session and all of its events."""

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Note the sessions in use; forget sessions that were unused for `idle` seconds."""

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """Add events to a stream, all or none of them; the first call begins the stream.

        Args:
            session: Key of the session.
            stream: Name of the stream.
            events: The events; their numbers continue the stream.
            pending: Ids of the requests that it still has to answer; None when the stream is closed.
        """

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest held event and of the last event; None if no event can be resumed after.

        If no event is held, the first number is the next event's.
        """

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """Return the next events of a stream after a number, oldest first, about a `PAGE` of them.

        Their numbers are consecutive; the first has a higher number than the next if an event was dropped.
        """
        ...


@runtime_checkable
class RemoteStore(Protocol):
    """Event store that can be away; `/readyz` fails then."""

    async def ready(self) -> bool:
        """Return True if the store can be reached."""
        ...


def page(events: Iterable[Event]) -> list[Event]:
    """Return the first events, at least one if there is any, up to the size of a `PAGE` and up to a gap."""
    found: list[Event] = []
    size = 0
    for event in events:
        size += len(event.data)
        if found and (size > PAGE or not event.data or event.number != found[-1].number + 1):
            break
        if event.data:
            found.append(event)
    return found


def account_of(principal: str | None) -> str:
    """Return the name of the account that the sessions of a principal count for."""
    return "-" if principal is None else sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()[:32]


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


class _EventStore:
    """Event store in an SQLite database; see `EventStore`.

    Args:
        jobs: The database.
        limits: Limits of sessions, principals and the whole store.
    """

    def __init__(self, jobs: Jobs, limits: StoreLimits) -> None:
        self._do = jobs.do
        self._limits = limits

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

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
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
            largest = f"select name from accounts order by {by} desc, name desc limit 1"  # noqa: S608
            drop("account", str(db.execute(largest).fetchone()[0]))

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest and the last event of a stream, or None."""
        oldest = "select min(number) from events where session = streams.session and stream = streams.name"
        statement = f"select coalesce(({oldest}), last + 1), last from streams where session = ? and name = ?"  # noqa: S608
        return await self._do(lambda db: db.execute(statement, (session, stream)).fetchone())

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """Return the next events of a stream."""
        statement = "select number, data from events where session = ? and stream = ? and number > ? order by number"
        return await self._do(lambda db: page(Event(*row) for row in db.execute(statement, (session, stream, after))))


class SqliteEventStore(_EventStore):
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
        super().__init__(self._thread, limits)

    def close(self) -> None:
        """Finish the waiting calls and close the file; safe to call twice."""
        self._thread.close()


class MemoryEventStore(_EventStore):
    """Event store in memory, which lasts as long as the process.

    Args:
        limits: Limits of sessions, principals and the whole store.
    """

    def __init__(self, limits: StoreLimits = STORE_LIMITS) -> None:
        super().__init__(SqliteMemory(_FORMAT), limits)
