"""What was said on streams, kept for clients that were cut off (MCP, "Transports": Resumability and Redelivery).

A session has streams, and the events of a stream are numbered from 1. `MemoryEventStore` lasts as long as the process;
`SqliteEventStore` outlives it, and so do the sessions in it. Yours can be any `EventStore`.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

PAGE = 256 * 1024
"""The bytes that a store gives at once, or a single event that is larger."""


@dataclass(frozen=True, slots=True)
class Event:
    """A message on a stream.

    Attributes:
        number: Its place, from 1.
        data: The message.
    """

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A stream that was not over when its session was last served.

    Attributes:
        last: The number of its last event.
        owed: What was noted about it.
    """

    last: int
    owed: bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store knows of a session.

    Attributes:
        record: What was saved of it.
        life: How often it was loaded, this time included; a new session has none.
        streams: Its streams that are not over, by name.
    """

    record: bytes
    life: int
    streams: Mapping[str, Unfinished]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a store holds; the oldest events go first, only the newest of a session stays however large it is.

    Attributes:
        events: Events of one session.
        size: Their bytes.
        all_events: Events of all sessions.
        all_size: Their bytes.
    """

    events: int = 1000
    size: int = 8 * 1024 * 1024
    all_events: int = 100_000
    all_size: int = 256 * 1024 * 1024


LIMITS = Limits()
"""What a store holds unless it is told otherwise."""


class EventStore(Protocol):
    """Holds the events of sessions, each of which has a key that nobody can guess and that is not its id.

    What a method was asked to keep is kept, as well as the store can, once it returns. What is written to a session
    that was never saved, or is forgotten, is dropped.
    """

    async def save(self, session: str, record: bytes) -> None:
        """Keeps what another process would need to go on with a session, in place of what was saved before."""
        ...

    async def load(self, session: str) -> Kept | None:
        """What is known of a session, at the beginning of another life of it; `None` when it is not known."""
        ...

    async def forget(self, session: str) -> None:
        """Drops a session and all of its events."""
        ...

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Notes which sessions are in use; forgets those that were neither noted nor written to for `idle` seconds."""
        ...

    async def write(self, session: str, stream: str, events: Sequence[Event], owed: bytes | None) -> None:
        """Adds events to a stream, all or none of them; the first time begins the stream.

        Args:
            session: The key of the session.
            stream: The name of the stream.
            events: Their numbers go on where the stream ends.
            owed: To be noted until the next time; `None` when the stream is over now.
        """
        ...

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """The number of the oldest event that is still held, or would be if there were one more, and of the last.

        `None` when the stream is not known, or is over and nothing of it is held any longer.
        """
        ...

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """The next events of a stream after a number, oldest first, about a `PAGE` of them."""
        ...


@dataclass(slots=True, eq=False)
class _Stream:
    last: int = 0
    owed: bytes | None = b""
    events: deque[Event] = field(default_factory=deque[Event])


@dataclass(slots=True, eq=False)
class _Session:
    record: bytes
    seen: float
    life: int = 0
    size: int = 0
    streams: dict[str, _Stream] = field(default_factory=dict[str, _Stream])
    order: OrderedDict[int, str] = field(default_factory=OrderedDict[int, str])


class MemoryEventStore:
    """Holds events in memory.

    Args:
        limits: How much it holds.
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._sessions: dict[str, _Session] = {}
        self._order: OrderedDict[int, str] = OrderedDict()
        self._size = 0
        self._next = 0

    async def save(self, session: str, record: bytes) -> None:
        """Keeps a record of a session."""
        known = self._sessions.get(session)
        if known is None:
            self._sessions[session] = _Session(record, time.monotonic())
        else:
            known.record = record

    async def load(self, session: str) -> Kept | None:
        """What is known of a session."""
        known = self._sessions.get(session)
        if known is None:
            return None
        known.life += 1
        known.seen = time.monotonic()
        unfinished = {n: Unfinished(s.last, s.owed) for n, s in known.streams.items() if s.owed is not None}
        return Kept(known.record, known.life, unfinished)

    async def forget(self, session: str) -> None:
        """Drops a session."""
        known = self._sessions.pop(session, None)
        if known is not None:
            self._size -= known.size
            for place in known.order:
                del self._order[place]

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Forgets sessions that are no longer in use."""
        now = time.monotonic()
        for session in alive:
            if session in self._sessions:
                self._sessions[session].seen = now
        for session in [key for key, known in self._sessions.items() if now - known.seen > idle]:
            await self.forget(session)

    async def write(self, session: str, stream: str, events: Sequence[Event], owed: bytes | None) -> None:
        """Adds events to a stream."""
        known = self._sessions.get(session)
        if known is None:
            return
        known.seen = time.monotonic()
        log = known.streams.setdefault(stream, _Stream())
        log.owed = owed
        for event in events:
            log.last = event.number
            log.events.append(event)
            self._order[self._next] = session
            known.order[self._next] = stream
            self._next += 1
            known.size += len(event.data)
            self._size += len(event.data)
        limits = self._limits
        while len(known.order) > 1 and (len(known.order) > limits.events or known.size > limits.size):
            self._drop_oldest(known)
        while len(self._order) > 1 and (len(self._order) > limits.all_events or self._size > limits.all_size):
            self._drop_oldest(self._sessions[next(iter(self._order.values()))])
        if owed is None and not log.events:
            known.streams.pop(stream, None)

    def _drop_oldest(self, session: _Session) -> None:
        place, name = session.order.popitem(last=False)
        del self._order[place]
        stream = session.streams[name]
        size = len(stream.events.popleft().data)
        session.size -= size
        self._size -= size
        if stream.owed is None and not stream.events:
            del session.streams[name]

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """What is held of a stream."""
        known = self._sessions.get(session)
        log = known.streams.get(stream) if known is not None else None
        return None if log is None else (log.last + 1 - len(log.events), log.last)

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """The next events of a stream."""
        known = self._sessions.get(session)
        log = known.streams.get(stream) if known is not None else None
        found: list[Event] = []
        size = 0
        for event in log.events if log is not None else ():
            if event.number > after:
                size += len(event.data)
                if found and size > PAGE:
                    break
                found.append(event)
        return found
