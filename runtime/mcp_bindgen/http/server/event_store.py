"""Protocol of stores for the events of streams (MCP, "Transports": Resumability and Redelivery).

A session has streams, and the events of a stream are numbered from 1. `sqlite_store` has two implementations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol, runtime_checkable

from mcp_bindgen.runtime.protocol.errors import StoreUnavailable as StoreUnavailable

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
        ...

    async def load(self, session: str) -> StoredSession | None:
        """Return a session to begin a new worker epoch of it; None for an unknown session."""
        ...

    async def forget(self, session: str) -> None:
        """Drop a session and all of its events."""
        ...

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Note the sessions in use; forget sessions that were unused for `idle` seconds."""
        ...

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """Add events to a stream, all or none of them; the first call begins the stream.

        Args:
            session: Key of the session.
            stream: Name of the stream.
            events: The events; their numbers continue the stream.
            pending: Ids of the requests that it still has to answer; None when the stream is closed.
        """
        ...

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest held event and of the last event; None if no event can be resumed after.

        If no event is held, the first number is the next event's.
        """
        ...

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
