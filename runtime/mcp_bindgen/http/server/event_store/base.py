"""Store the events of streams, so that clients can resume them (MCP, "Transports": Resumability and Redelivery).

A session has streams, and the events of a stream are numbered from 1. `MemoryEventStore` lasts as long as the process;
`SqliteEventStore` outlives it, and so do the sessions in it. Yours can be any `EventStore`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

from mcp_bindgen.runtime.protocol.errors import StoreUnavailable as StoreUnavailable

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
class OpenStream:
    """A stream that was not over when its session was last served.

    Attributes:
        last: The number of its last event.
        pending: The ids of the requests that it has to answer, as they were written.
    """

    last: int
    pending: bytes


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The state of a session in a store.

    Attributes:
        record: What was saved of it.
        life: How often it was loaded, this time included; a new session has none.
        streams: Its streams that are not over, by name.
    """

    record: bytes
    life: int
    streams: Mapping[str, OpenStream]


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The limits of a store; the oldest events go first.

    Clients whose principal is not known are one principal. Where a limit of all sessions is reached, the oldest event
    goes of the principal that has most, so that no principal pushes out the events of another one.

    Attributes:
        events: Events of one session.
        size: Their bytes; the newest event of a session may be larger.
        all_events: Events of all sessions.
        all_size: Their bytes.
        size_of_principal: The bytes of one principal. In a store that workers share, records of sessions count as well.
        mail_of_principal: The bytes of one principal that wait for one worker, in a store that workers share.
    """

    events: int = 1000
    size: int = 8 * 1024 * 1024
    all_events: int = 100_000
    all_size: int = 256 * 1024 * 1024
    size_of_principal: int = 32 * 1024 * 1024
    mail_of_principal: int = 8 * 1024 * 1024

    def clipped(self, data: bytes) -> bytes:
        """Return the data of an event as a store keeps it: nothing where it is larger than all that may be kept."""
        return data if len(data) <= min(self.size_of_principal, self.all_size) else b""


STORE_LIMITS = StoreLimits()
"""What a store holds unless it is told otherwise."""


class EventStore(Protocol):
    """Hold the events of sessions, each of which has a key that nobody can guess and that is not its id.

    What a method was asked to keep is kept, as well as the store can, once it returns. What is written to a session
    that was never saved, or is forgotten, is dropped.

    A store that can be away may have `async def ready(self) -> bool`, which tells whether it can be reached: `/readyz`
    says so.
    """

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store what another process would need to go on with a session, in place of what was saved before.

        Args:
            session: The key of the session.
            record: Its record.
            principal: The principal that the events of the session count for; it never changes.
        """
        ...

    async def load(self, session: str) -> StoredSession | None:
        """Return a session to begin another life of it; `None` when it is not known."""
        ...

    async def forget(self, session: str) -> None:
        """Drop a session and all of its events."""
        ...

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Note which sessions are in use; forget those that were neither noted nor written to for `idle` seconds."""
        ...

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """Add events to a stream, all or none of them; the first time begins the stream.

        Args:
            session: The key of the session.
            stream: The name of the stream.
            events: Their numbers go on where the stream ends.
            pending: The ids of the requests that it still has to answer; `None` when the stream is over now.
        """
        ...

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest event that is still held, or would be if there were one more, and the last.

        `None` when the stream is not known, or is over and nothing of it is held any longer.
        """
        ...

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """Return the next events of a stream after a number, oldest first, about a `PAGE` of them.

        They follow each other; the first has a higher number than the next one where an event was dropped.
        """
        ...


def page(events: Iterable[Event]) -> list[Event]:
    """Take the first events, at least one if there is any, up to the size of a `PAGE` and up to a gap."""
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
