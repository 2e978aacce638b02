"""Define what workers share so that any of them can take any request of any session.

A worker takes part in a session under a number of its own, its *life* in that session. Streams are named and the
server's requests numbered by it, so what a client says about them names the worker that waits for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mcp_bindgen.http.server.event_store.base import EventStore, StoredSession
from mcp_bindgen.http.server.limits import HttpLimits
from mcp_bindgen.http.server.session_registry import SessionRegistry
from mcp_bindgen.runtime.session.server import Service


@dataclass(frozen=True, slots=True)
class Shared(StoredSession):
    """A session that is opened by a worker.

    Attributes:
        version: The version of its record.
        told: The number of the last broadcast that it was told.
    """

    version: int = 0
    told: int = 0


@dataclass(frozen=True, slots=True)
class Current:
    """A session that exists.

    Attributes:
        version: The version of its record.
        record: The record, if the version is another one than what the worker knows.
    """

    version: int
    record: bytes | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """A stream as its reader finds it.

    Attributes:
        after: The number of the event after which it is read on.
        last: The number of its last event.
        over: Whether nothing will be added.
        busy: When the lease ends of the worker whose connection reads it, and keeps it; 0 where none does.
    """

    after: int
    last: int
    over: bool
    busy: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome for one session of a broadcast.

    Attributes:
        number: The number of its event on the standing stream; 0 when it was told before, or need not be told.
        current: The session's record where the worker's is out of date: look again whether it wants to be told.
        behind: The number that the session was told last, where it has missed some before this one.
        gone: Whether the session is over.
    """

    number: int = 0
    current: Current | None = None
    behind: int | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """A broadcast.

    Attributes:
        number: Its number.
        revision: The revision whose clients it is for.
        method: The notification's method.
        data: The message.
        before: The number of the broadcast before for the same revision.
    """

    number: int
    revision: str
    method: str
    data: bytes
    before: int


@dataclass(frozen=True, slots=True)
class Mail:
    """A message for one worker.

    Attributes:
        kind: What it is about: `post` (`body`), `event` (`stream`, `number`, `data`, `over`), `hangup` (`stream`,
            `token`), `end`. Others come from newer programs and are left alone.
        session: The key of the session.
        fields: What else it says.
    """

    kind: str
    session: str
    fields: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Beat:
    """The state of the workers, as one of them finds it.

    Attributes:
        known: Whether this worker is known; if not, others have taken it for dead, or the store has lost its data.
        generation: The name of the store's data; another one after they were lost.
        news: The number of the last broadcast.
        dead: Workers whose lease has run out.
    """

    known: bool
    generation: str
    news: int
    dead: Sequence[str]


@runtime_checkable
class SharedStore(EventStore, Protocol):
    """An event store that several workers use at once. Its methods raise `StoreUnavailable` while it is away.

    It counts for each principal, whichever workers it uses; methods that add something raise `StoreFull` where it has
    too much.

    Attributes:
        worker: The name of this worker; another one after `begin_anew`.
        pulse: Seconds between two calls of `beat`.
    """

    worker: str
    pulse: float

    def registry(self, service: Service, limits: HttpLimits) -> SessionRegistry:
        """Return the registry of an endpoint: a `SharedRegistry` on this store."""
        ...

    # --- sessions ---------------------------------------------------------------------------------------------

    async def create(self, session: str, idle: float, principal: str | None, most: int) -> int:
        """Begin a new session, if need be at the cost of the oldest of its principal that is not initialized.

        Args:
            session: The key of the session.
            idle: Seconds without use after which it ends.
            principal: Who begins it, if that is known.
            most: How many sessions this principal may have; 0 for any number.

        Returns:
            The number of the last broadcast, which the session need not be told.

        Raises:
            StoreFull: The principal has as much as it may.
        """
        ...

    async def open(self, session: str) -> Shared | None:
        """Begin a life of this worker in a session; `None` when it is not known."""
        ...

    async def enter(self, session: str, version: int, *, keep: bool = True) -> Current | None:
        """Find a session; `None` when it is over.

        Args:
            session: The key of the session.
            version: The version of the record that this worker knows.
            keep: Whether to keep it from expiring.
        """
        ...

    async def update(self, session: str, record: bytes, version: int, *, ready: bool) -> Current | None:
        """Store the record of a session that has the given version, else return what it has; `None` when it is over.

        Args:
            session: The key of the session.
            record: The record.
            version: The version of the record that it is made of.
            ready: Whether the client has said that it is initialized.
        """
        ...

    async def close(self, session: str, life: int) -> None:
        """End a life of this worker in a session, which goes on."""
        ...

    # --- streams ----------------------------------------------------------------------------------------------

    async def add(self, session: str, stream: str, data: bytes) -> int:
        """Add an event to a stream that all workers write; returns its number, 0 when the session is over."""
        ...

    async def attach(self, session: str, stream: str, token: str, after: int | None, force: bool) -> Position | None:
        """Become the reader of a stream: its events come as mail from now on. Who read it is told to hang up.

        Args:
            session: The key of the session.
            stream: The name of the stream.
            token: A name for this reader.
            after: The number of the last event that the client has; `None` for the last one that any reader was given.
            force: Whether to take the stream over from another reader.

        Returns:
            Where it stands; `None` when there is no such stream or what comes after the event is no longer held.
        """
        ...

    async def detach(self, session: str, stream: str, token: str, given: int) -> None:
        """Note that a reader is gone, and the number of the last event that it was given."""
        ...

    async def look(self, streams: Sequence[tuple[str, str]]) -> Sequence[Position | None]:
        """Return where streams, each by session and name, stand; `busy` says whether somebody reads."""
        ...

    # --- workers ----------------------------------------------------------------------------------------------

    async def route(self, session: str, lives: Collection[int] | None, body: bytes) -> None:
        """Pass on what was posted to the workers of some lives in a session, or to all others in it."""
        ...

    async def beat(self) -> Beat:
        """Renew the lease of this worker and see how the others are."""
        ...

    def begin_anew(self) -> None:
        """Take another name."""
        ...

    async def resign(self) -> None:
        """Give up the lease, and all connections."""
        ...

    async def unfinished(self, worker: str) -> Sequence[tuple[str, str, bytes]]:
        """Return the streams that a worker has to finish: session, name, and the ids that it has to answer."""
        ...

    async def fail(self, session: str, stream: str, worker: str, data: bytes) -> None:
        """End a stream of a worker with an event, unless it is over."""
        ...

    async def bury(self, worker: str) -> None:
        """Forget a worker that has no unfinished streams."""
        ...

    async def mail(self) -> tuple[Sequence[Mail], Sequence[News]]:
        """Wait a moment for mail and broadcasts, and return them in order."""
        ...

    def listen(self, news: int) -> None:
        """Begin to read mail, and the broadcasts after a number."""
        ...

    # --- broadcasts -------------------------------------------------------------------------------------------

    async def publish(self, revision: str, method: str, data: bytes) -> None:
        """Add a broadcast."""
        ...

    async def missed(self, told: int) -> Sequence[News]:
        """Return the broadcasts after a number, as far as they are held."""
        ...

    async def tell_all(self, sessions: Sequence[tuple[str, int, bytes]], before: int, number: int) -> Sequence[Told]:
        """Tell sessions of a broadcast, each of them once.

        Args:
            sessions: For each its key, the version of the record by which it was decided whether it wants to be told,
                and the message, which is empty where it need not be told.
            before: The number of the broadcast before, for sessions of this kind.
            number: The number of the broadcast.
        """
        ...

    async def hand_over(self, subscription: str, told: int) -> None:
        """Note for a minute which broadcast was the last one of a subscription that a worker has ended.

        Args:
            subscription: The same for all subscriptions of a principal and client with the same filter.
            told: The number of the broadcast.
        """
        ...

    async def take_over(self, subscription: str) -> int | None:
        """Return what was noted first of such a subscription, and forget it; `None` where nothing was."""
        ...

    # --- keys -------------------------------------------------------------------------------------------------

    async def keys(self, lifetime: float) -> Sequence[bytes]:
        """Return the keys that seal the state of requests, the one to use first, and replace them in time.

        Args:
            lifetime: Seconds for which what was sealed is good.
        """
        ...
