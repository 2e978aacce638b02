"""Store of events in memory: clients can resume their streams while the process lives."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from .base import STORE_LIMITS, Event, OpenStream, StoredSession, StoreLimits, account_of, page


@dataclass(slots=True, eq=False)
class _Stream:
    last: int = 0
    pending: bytes | None = b""
    events: deque[Event] = field(default_factory=deque[Event])


@dataclass(slots=True, eq=False)
class _Session:
    record: bytes
    seen: float
    account: str
    life: int = 0
    size: int = 0
    streams: dict[str, _Stream] = field(default_factory=dict[str, _Stream])
    order: OrderedDict[int, str] = field(default_factory=OrderedDict[int, str])


@dataclass(slots=True, eq=False)
class _Account:
    """Events of a principal: their bytes, and place -> session, the oldest first."""

    size: int = 0
    order: OrderedDict[int, _Session] = field(default_factory=OrderedDict[int, _Session])


class MemoryEventStore:
    """Store of events in memory; see `EventStore`.

    Args:
        limits: Its limits.
    """

    def __init__(self, limits: StoreLimits = STORE_LIMITS) -> None:
        self._limits = limits
        self._sessions: dict[str, _Session] = {}
        self._accounts: dict[str, _Account] = {}  # accounts with events
        self._count = self._size = 0
        self._next = 0

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store the record of a session."""
        known = self._sessions.get(session)
        if known is None:
            known = self._sessions[session] = _Session(record, time.monotonic(), account_of(principal))
        known.record = record

    async def load(self, session: str) -> StoredSession | None:
        """Return a session."""
        known = self._sessions.get(session)
        if known is None:
            return None
        known.life += 1
        known.seen = time.monotonic()
        unfinished = {n: OpenStream(s.last, s.pending) for n, s in known.streams.items() if s.pending is not None}
        return StoredSession(known.record, known.life, unfinished)

    async def forget(self, session: str) -> None:
        """Drop a session."""
        known = self._sessions.pop(session, None)
        while known is not None and known.order:
            self._drop_oldest(known)

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Forget unused sessions."""
        now = time.monotonic()
        for session in self._sessions.keys() & set(alive):
            self._sessions[session].seen = now
        for session in [key for key, known in self._sessions.items() if now - known.seen > idle]:
            await self.forget(session)

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """Add events to a stream."""
        known = self._sessions.get(session)
        if known is None:
            return
        known.seen = time.monotonic()
        log = known.streams.setdefault(stream, _Stream())
        log.pending = pending
        limits = self._limits
        account = self._accounts.setdefault(known.account, _Account()) if events else _Account()
        for event in events:
            log.last = event.number
            log.events.append(Event(event.number, limits.clipped(event.data)))
            known.order[self._next] = stream
            account.order[self._next] = known
            self._next += 1
            self._add(known, account, 1, len(log.events[-1].data))
        while len(known.order) > 1 and (len(known.order) > limits.events or known.size > limits.size):
            self._drop_oldest(known)
        while account.size > limits.size_of_principal:
            self._drop_oldest_of(account)
        while self._count > limits.all_events:
            self._drop_oldest_of(max(self._accounts.items(), key=lambda row: (len(row[1].order), row[0]))[1])
        while self._size > limits.all_size:
            self._drop_oldest_of(max(self._accounts.items(), key=lambda row: (row[1].size, row[0]))[1])
        if pending is None and not log.events:
            known.streams.pop(stream, None)

    def _add(self, session: _Session, account: _Account, count: int, size: int) -> None:
        session.size += size
        account.size += size
        self._size += size
        self._count += count

    def _drop_oldest_of(self, account: _Account) -> None:
        self._drop_oldest(next(iter(account.order.values())))

    def _drop_oldest(self, session: _Session) -> None:
        place, name = session.order.popitem(last=False)
        stream, account = session.streams[name], self._accounts[session.account]
        del account.order[place]
        self._add(session, account, -1, -len(stream.events.popleft().data))
        if not account.order:
            del self._accounts[session.account]
        if stream.pending is None and not stream.events:
            del session.streams[name]

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest and the last event of a stream."""
        log = self._stream(session, stream)
        return None if log is None else (log.last + 1 - len(log.events), log.last)

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """Return the next events of a stream."""
        log = self._stream(session, stream)
        return page(event for event in (log.events if log is not None else ()) if event.number > after)

    def _stream(self, session: str, stream: str) -> _Stream | None:
        known = self._sessions.get(session)
        return None if known is None else known.streams.get(stream)
