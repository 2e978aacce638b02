"""Streams of a session: ordered logs of messages, each read by one connection at a time.

Live delivery and replay are the same: a reader names the event that its client has, and gets the next events, from
the buffer or from the event store. `TRANSITIONS` has the states of a stream.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import anyio

from mcp_bindgen.runtime.concurrency import T
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed

from ..event_stream import encode
from .call import EventWriter, event
from .errors import HttpError, refused
from .event_store import EventStore, StoredEvent, StoreUnavailable
from .limits import Budget

LISTEN_STREAM = "0"
"""Name of the stream that belongs to no request; a GET opens it."""

State: TypeAlias = Literal["open", "read", "leaving", "ending", "done"]
"""`open` and `read` take messages; a connection reads in `read`, `leaving` and `ending`; `done` is final.

A connection that leaves ends after the events that exist now, and the stream goes on. No event is added in `ending`
and `done`.
"""

TRANSITIONS: Mapping[str, Mapping[State, State]] = {
    "attach": {"open": "read", "leaving": "read", "done": "ending"},
    "detach": {"read": "open", "leaving": "open", "ending": "done"},
    "leave": {"read": "leaving"},
    "close": {"open": "done", "read": "ending", "leaving": "ending"},
}
"""Trigger -> state -> next state; other states stay."""

CLOSED = ("ending", "done")

_MAX_BUFFERED_BYTES = 1024 * 1024
_MAX_BUFFERED = 1024  # messages
_TURNS = 2  # of the event loop, in which a handler that does not wait answers; a timer would cost more


@runtime_checkable
class SharedLog(Protocol):
    """Event store in which several workers add events to the stream of GET; the store numbers them."""

    async def add(self, session: str, data: bytes) -> int:
        """Add an event to the stream of GET, and return its number; 0 if the session has ended."""
        ...


@dataclass(eq=False, repr=False)
class Stream:
    """Log of messages with a bounded buffer for the connection that reads it.

    Args:
        session: Key of the session in the store.
        name: Name of the stream, unique in the session.
        pending: Ids of the requests that it has to answer; the last answer closes it.
        store: Store of its events, if any.
        last: Number of its last event.
        state: `done` for a stream that is only replayed, `read` for a POST that waits for `sole_answer`.
        persisted: True if the store has it.
        queue: Limit for the buffered bytes of several streams.

    Attributes:
        state: Its state.
        last_delivered_id: Number of the last event that a connection has got.
        disconnected_at: Time when the last connection ended, on the clock of `time.monotonic`; None while there is one.
        retry: Seconds after which the client of a connection that leaves reconnects.
        on_done: Called in the state `done`.
    """

    session: str
    name: str
    pending: Collection[RequestId] = ()
    store: EventStore | None = None
    _: KW_ONLY
    last: int = 0
    state: State = "open"
    persisted: bool = False
    queue: Budget | None = None
    on_done: Callable[[Stream], None] = lambda stream: None

    def __post_init__(self) -> None:
        self.last_delivered_id: int = self.last
        self.disconnected_at: float | None = None
        self.retry: float | None = None
        self._last_leaving = 0  # number of the last event for a connection that is leaving
        self._queue = self.queue or Budget(_MAX_BUFFERED_BYTES, "")
        self._reader: anyio.CancelScope | None = None
        self._buffer: deque[StoredEvent] = deque()
        self._buffered_bytes = 0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    # --- writing ----------------------------------------------------------------------------------------------

    async def put(self, message: bytes, answered: Collection[RequestId] = (), within: float | None = None) -> bool:
        """Add a message; wait while its reader is slow. Return True if a client has got it, or still can.

        Args:
            message: The message.
            answered: Ids that it answers; the last pending id closes the stream.
            within: Seconds to wait before the reader is disconnected; by default as long as it reads.
        """
        if self._buffer and self.is_full:
            with anyio.move_on_after(within) as patience:
                await self.wait_for_room()
            if patience.cancelled_caught:
                log.debug("a client is disconnected: it does not read")
                self.disconnect()
        work = self._add(message, answered)
        return await (self._finish(work) if self.persisted or self._turn.locked() else work)

    async def settle(self, ids: Collection[RequestId]) -> None:
        """Note that requests will not be answered; the last pending id closes the stream."""
        await self._finish(self._add(None, ids))

    async def _add(self, message: bytes | None, answered: Collection[RequestId]) -> bool:
        if message is not None and self.name == LISTEN_STREAM and isinstance(self.store, SharedLog):
            number = await self.store.add(self.session, message)
            if number:
                self.advance(number, message)
            return number > 0
        async with self._turn:
            if self.state in CLOSED:
                return False
            left = [id_ for id_ in self.pending if id_ not in answered]
            closes = bool(self.pending) and not left
            is_kept = message is not None and (self.is_read or self._is_resumable())
            events = [StoredEvent(self.last + 1, message)] if message is not None and is_kept else []
            if self.store is not None and self.persisted and (events or closes):
                await self._write(self.store, events, left, closes)
            self.last += len(events)
            if self.is_read or not self.persisted:
                self._append(events)
            self.pending = left
            self._move("close" if closes else None)
        return is_kept

    def _is_resumable(self) -> bool:
        if self.name == LISTEN_STREAM:
            return self.last - self.last_delivered_id < _MAX_BUFFERED and not self.is_full
        return self.persisted

    def _append(self, events: Sequence[StoredEvent]) -> None:
        size = 0
        for one in events:
            self._buffer.append(one)
            size += len(one.data)
        self._buffered_bytes += size
        self._queue.add(size)

    def close(self) -> None:
        """Close it here; its events in the store stay."""
        self._move("close")

    def _move(self, trigger: str | None) -> None:
        """Change the state, and wake the reader and the writers; without trigger, wake them only."""
        if trigger is not None:
            self.state = TRANSITIONS[trigger].get(self.state, self.state)
        self._changed.set()
        if self.state == "done":
            self.on_done(self)

    async def persist(self) -> None:
        """Keep all events in the store from now on, with unread events, if there is a store."""
        if self.store is not None and not self.persisted:
            await self._finish(self._persist(self.store))

    async def _persist(self, store: EventStore) -> None:
        async with self._turn:
            if not self.persisted:
                await self._write(store, list(self._buffer), self.pending, self.state in CLOSED)
                self.persisted = True

    async def _write(
        self, store: EventStore, events: list[StoredEvent], owed: Collection[RequestId], closes: bool
    ) -> None:
        await store.write(self.session, self.name, events, None if closes else jsonrpc.write_result(list(owed)))

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish work even if the caller is cancelled, so that no event is written by half."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
            if not task.cancelled():
                task.exception()
            raise

    @property
    def is_full(self) -> bool:
        """True if the buffer takes nothing more; an empty buffer always takes one message."""
        size = self._buffered_bytes
        return size >= _MAX_BUFFERED_BYTES or len(self._buffer) >= _MAX_BUFFERED or (size > 0 and self._queue.is_full)

    async def wait_for_room(self) -> None:
        """Wait while the buffer is full, until its reader takes something or leaves."""
        while self.is_read and self.is_full and self.state not in CLOSED:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def advance(self, number: int, data: bytes | None = None, closes: bool = False) -> None:
        """Note an event that is in the store already, written here or by another worker.

        Args:
            number: Its number.
            data: The message, if known; a reader takes it from the store otherwise.
            closes: True if no event will be added.
        """
        if number > self.last:
            if self.is_full:
                self._clear()
            elif data is not None and self.is_read and self._follows(number):
                self._append([StoredEvent(number, data)])
            self.last = number
        self._move("close" if closes else None)

    def _follows(self, number: int) -> bool:
        """Return True if the buffer has no gap before an event; such a gap would never be filled."""
        return number == self.last + 1 and (not self._buffer or self._buffer[-1].number == self.last)

    # --- reading ----------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """True if a connection reads it."""
        return self.state in ("read", "leaving", "ending")

    @contextmanager
    def reading(self) -> Generator[None]:
        """Read in a block, which a newer reader cancels."""
        with anyio.CancelScope() as scope:
            if self._reader is not None:
                self._reader.cancel()
            if self._reader is not None or not self.is_read:
                self._begin("attach")
            self._reader = scope
            try:
                yield
            finally:
                if self._reader is scope:
                    self._reader = None
                    self._begin("detach")

    def disconnect(self) -> None:
        """Cancel the connection that reads it."""
        if self._reader is not None:
            self._reader.cancel()

    def hang_up(self) -> None:
        """End the reading of the POST that began the stream, unless it has gone on with `reading`."""
        if self._reader is None and self.is_read:
            self._begin("detach")

    def _begin(self, trigger: Literal["attach", "detach"]) -> None:
        is_left = trigger == "detach"
        self.disconnected_at = time.monotonic() if is_left else None
        self.retry = None
        self._move(trigger)
        is_useless = is_left and (self.name != LISTEN_STREAM or self.state == "done")
        if self._buffer and (self.persisted or is_useless):
            self._clear()

    def drop(self) -> None:
        """Drop the buffer, unless a connection still reads it."""
        if not self.is_read:
            self._clear()

    def _clear(self) -> None:
        self._buffer.clear()
        self._queue.add(-self._buffered_bytes)
        self._buffered_bytes = 0

    async def sole_answer(self, within: float) -> bytes | None:
        """Return the first message if it closes the stream; None if not, or if there is none in so many seconds.

        The caller is the first reader: `hang_up` ends its reading, unless it goes on with `reading`.
        """
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        if not self.last and self.state == "read":
            with anyio.move_on_after(within):
                while not self.last and self.state == "read":
                    await self._change()
        return self._buffer[0].data if self.state in CLOSED and len(self._buffer) == self.last == 1 else None

    async def read(self, after: int) -> Sequence[StoredEvent]:
        """Return the events after a number as soon as there are any.

        The result is empty when the stream is closed or the connection shall end. The first event has a higher number
        than the next if the store has dropped events.
        """
        while True:
            if self.state == "leaving" and after >= self._last_leaving:
                return ()
            if self.last > after:
                if self._buffer and self._buffer[0].number <= after + 1:
                    events = [event for event in self._buffer if event.number > after]
                    self._clear()
                    self._changed.set()
                    return events
                if self.store is not None:
                    return await self.store.read(self.session, self.name, after)
                after = self.last  # the events are lost
            if self.state != "read":
                return ()
            await self._change()

    def leave(self, retry: float | None) -> None:
        """End the connection that reads it, but not the stream, after the events that exist now.

        Args:
            retry: Seconds after which the client reconnects.
        """
        if self.is_read:
            self.retry, self._last_leaving = retry, self.last
            self._move("leave")

    def id_of(self, number: int) -> str | None:
        """Return the id of an event; None if the stream cannot be resumed after it."""
        return f"{self.name}-{number}" if self.persisted else None


def unknown_event() -> HttpError:
    """Return the error for a `Last-Event-ID` that no stream can be resumed after."""
    return refused(400, "Last-Event-ID: this event is not known, or what came after it is no longer held")


def parse_event_id(id_: str) -> tuple[str, int] | None:
    """Return the name of a stream and the number of an event; None for a malformed id."""
    name, dash, number = id_.rpartition("-")
    return (name, int(number)) if dash and number.isascii() and number.isdecimal() and len(number) < 19 else None


async def stream_events(writer: EventWriter, stream: Stream, after: int, retry: float | None = None) -> None:
    """Write the events after a number to a response, until the stream ends or the client disconnects.

    Call it in `Stream.reading`.

    Args:
        writer: The response.
        stream: The stream.
        after: Number of the last event that the client has.
        retry: Seconds after which the client reconnects, sent in a first event without data.
    """

    async def work(after: int) -> None:
        if retry is not None:
            await writer.write(encode(b"", stream.id_of(after), retry=retry))
        while events := await stream.read(after):
            if events[0].number != after + 1 and stream.persisted:
                log.warning("a client is disconnected: the event store has dropped its next events")
                break
            after = events[-1].number
            stream.last_delivered_id = max(stream.last_delivered_id, after)
            await writer.write(b"".join([event(one.data, stream.id_of(one.number)) for one in events]))
        if stream.state == "leaving" and stream.retry is not None:
            await writer.write(encode(retry=stream.retry))

    try:
        await writer.while_connected(work(after))
    except (ConnectionClosed, StoreUnavailable) as error:
        log.debug("a client is disconnected: %r", error)
