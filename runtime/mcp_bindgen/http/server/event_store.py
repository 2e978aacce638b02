"""Stores for the events of streams: their protocol, and a store in memory.

MCP, "Transports": Resumability and Redelivery. A session has streams, whose events are numbered from 1.
"""

from __future__ import annotations

import heapq
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from typing import Protocol, runtime_checkable
from weakref import WeakValueDictionary

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable as StoreUnavailable

PAGE = 256 * 1024
"""Bytes that a store returns at once; a single event may be larger."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
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

    async def write(self, session: str, stream: str, events: Sequence[StoredEvent], pending: bytes | None) -> None:
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

    async def read(self, session: str, stream: str, after: int) -> Sequence[StoredEvent]:
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


def page(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """Return the first events, at least one if there is any, up to the size of a `PAGE` and up to a gap."""
    found: list[StoredEvent] = []
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


@dataclass(slots=True)
class _Stream:
    """Stream in memory, with the data of its held events by number."""

    last: int = 0
    pending: bytes | None = None
    held: OrderedDict[int, bytes] = field(default_factory=OrderedDict[int, bytes])


@dataclass(slots=True, eq=False)
class _Session:
    """Session in memory, with its held events, oldest first: number in the store, stream and number there."""

    account: _Account
    seen: float
    record: bytes = b""
    worker_epoch: int = 0
    streams: dict[str, _Stream] = field(default_factory=dict[str, _Stream])
    held: deque[tuple[int, str, int]] = field(default_factory=deque[tuple[int, str, int]])
    size: int = 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class _Account:
    """Held events of a principal: the session of each, oldest first, by number in the store."""

    name: str
    held: OrderedDict[int, _Session] = field(default_factory=OrderedDict[int, _Session])
    size: int = 0

    @property
    def measures(self) -> tuple[int, int]:
        return len(self.held), self.size


class MemoryEventStore:
    """Event store in memory, which lasts as long as the process.

    Each call takes constant time for each event, or logarithmic time in the number of principals once a limit of all
    sessions is reached.

    Args:
        limits: Limits of sessions, principals and the whole store.
    """

    def __init__(self, limits: StoreLimits = STORE_LIMITS) -> None:
        self._limits = limits
        self._sessions: OrderedDict[str, _Session] = OrderedDict()  # the session that is unused for longest is first
        self._accounts: WeakValueDictionary[str, _Account] = WeakValueDictionary()
        self._places = count()
        self._events = self._size = 0
        self._rankings: tuple[list[tuple[int, str]], ...] = [], []  # heaps of accounts by `measures`; see `_largest`

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store the record of a session."""
        name = account_of(principal)
        account = self._accounts.setdefault(name, _Account(name))
        self._sessions.setdefault(session, _Session(account, time.monotonic())).record = record

    async def load(self, session: str) -> StoredSession | None:
        """Return a session, or None."""
        found = self._use(session)
        if found is None:
            return None
        found.worker_epoch += 1
        streams = found.streams.items()
        open_ = {name: OpenStream(one.last, one.pending) for name, one in streams if one.pending is not None}
        return StoredSession(found.record, found.worker_epoch, open_)

    async def forget(self, session: str) -> None:
        """Drop a session."""
        found = self._sessions.pop(session, None)
        while found is not None and found.held:
            self._drop(found)

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Drop idle sessions."""
        before = time.monotonic() - idle
        for session in alive:
            self._use(session)
        while self._sessions and self._sessions[oldest := next(iter(self._sessions))].seen < before:
            await self.forget(oldest)

    def _use(self, session: str) -> _Session | None:
        """Return a session that is used now, or None."""
        found = self._sessions.get(session)
        if found is not None:
            found.seen = time.monotonic()
            self._sessions.move_to_end(session)
        return found

    # --- streams ----------------------------------------------------------------------------------------------

    async def write(self, session: str, stream: str, events: Sequence[StoredEvent], pending: bytes | None) -> None:
        """Add events to a stream."""
        found = self._use(session)
        if found is None:
            return
        target = found.streams.setdefault(stream, _Stream())
        if events and events[0].number <= target.last:
            log.error("a store failed: the numbers of events do not continue their stream")
            raise StoreUnavailable
        target.pending = pending
        for event in events:
            place, data = next(self._places), self._limits.clipped(event.data)
            target.last, target.held[event.number] = event.number, data
            found.held.append((place, stream, event.number))
            found.account.held[place] = found
            self._count(found, 1, len(data))
        if events:
            self._shrink(found)
        elif pending is None and not target.held:
            del found.streams[stream]

    def _shrink(self, session: _Session) -> None:
        """Drop the oldest events of a session, then of its principal, then of the largest principals."""
        limits, account = self._limits, session.account
        while len(session.held) > 1 and (len(session.held) > limits.events or session.size > limits.size):
            self._drop(session)
        while account.size > limits.size_of_principal:
            self._drop(next(iter(account.held.values())))
        while (are_many := self._events > limits.all_events) or self._size > limits.all_size:
            self._drop(next(iter(self._largest(0 if are_many else 1).held.values())))

    def _drop(self, session: _Session) -> None:
        """Drop the oldest event of a session."""
        place, name, number = session.held.popleft()
        stream = session.streams[name]
        del session.account.held[place]
        self._count(session, -1, -len(stream.held.pop(number)))
        if stream.pending is None and not stream.held:
            del session.streams[name]

    def _count(self, session: _Session, events: int, size: int) -> None:
        """Count an event that was added or dropped."""
        account = session.account
        self._events += events
        self._size += size
        session.size += size
        account.size += size
        for by, ranking in enumerate(self._rankings):
            if ranking:
                heapq.heappush(ranking, (-account.measures[by], account.name))
                if len(ranking) > 2 * len(self._accounts) + 16:
                    ranking.clear()

    def _largest(self, by: int) -> _Account:
        """Return the account with most events (0) or bytes (1).

        A ranking has the present measure of each account, and former ones. It is made here when it is needed, and
        dropped when most of it is outdated.
        """
        ranking = self._rankings[by]
        if not ranking:
            ranking += [(-account.measures[by], name) for name, account in self._accounts.items()]
            heapq.heapify(ranking)
        while (account := self._accounts.get(ranking[0][1])) is None or -account.measures[by] != ranking[0][0]:
            heapq.heappop(ranking)
        return account

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest and the last event of a stream, or None."""
        found = self._find(session, stream)
        return None if found is None else (next(iter(found.held), found.last + 1), found.last)

    async def read(self, session: str, stream: str, after: int) -> Sequence[StoredEvent]:
        """Return the next events of a stream."""
        found = self._find(session, stream) or _Stream()
        numbers = range(max(after + 1, next(iter(found.held), 0)), found.last + 1)
        return page(StoredEvent(number, found.held.get(number, b"")) for number in numbers)

    def _find(self, session: str, stream: str) -> _Stream | None:
        found = self._sessions.get(session)
        return None if found is None else found.streams.get(stream)
