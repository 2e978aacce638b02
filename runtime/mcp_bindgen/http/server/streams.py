"""Deliver the messages of a stream: an ordered log, which connections come and go to read.

Live delivery and replay are one thing: whoever reads says which event it had last and gets the next ones, from memory
or from the event store.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
from pydantic_core import to_json

from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import INVALID_REQUEST, ProtocolError

from ..event_stream import KEEP_ALIVE, encode
from .byte_budget import Budget
from .call import Call, HttpError, event
from .event_store.base import Event, EventStore

T = TypeVar("T")

log = logging.getLogger("mcp_bindgen")

LISTEN_STREAM = "0"
"""The name of the stream that belongs to no request: what GET opens."""

_AHEAD = 1024 * 1024  # bytes of messages that wait for a reader
_MANY = 1024  # messages that do
_FAREWELL = 1.0  # seconds to tell a client that was slow, or is gone, that a response is over


class Stream:
    """A log of messages, at most one connection that reads it, and what waits for that one.

    Args:
        session: The session's key in the store.
        name: The stream's name, which no other stream of the session ever has.
        pending: The ids of the requests that it has to answer before it is over.
        store: Where its events are kept.
        last: The number of its last event.
        over: Whether nothing will be added.
        kept: Whether the store has it.
        queue: Limits the bytes that wait, here and on other streams.

    Attributes:
        given: The number of the last event that a connection was given.
        left: When the last connection ended; `None` while there is one.
        done: Called once it is over and nobody reads it.
    """

    def __init__(
        self,
        session: str,
        name: str,
        pending: Collection[RequestId] = (),
        store: EventStore | None = None,
        *,
        last: int = 0,
        over: bool = False,
        kept: bool = False,
        queue: Budget | None = None,
    ) -> None:
        self.name = name
        self._queue = queue or Budget(_AHEAD, "")
        self.last = self.given = last
        self.over, self.kept = over, kept
        self.pending = set(pending)
        self.leaving = False
        self._farewell = 0  # the number of the last event that a connection which is leaving still gets
        self.left: float | None = None
        self.retry: int | None = None
        self.done: Callable[[Stream], None] = lambda stream: None
        self._session, self._store = session, store
        self._reader: anyio.CancelScope | None = None
        self._ahead: deque[Event] = deque()
        self._size = 0
        self._turn = anyio.Lock(fast_acquire=True)
        self._changed = anyio.Event()

    # --- writing ----------------------------------------------------------------------------------------------

    async def put(self, message: bytes, answered: Collection[RequestId] = (), within: float | None = None) -> bool:
        """Add a message; wait while its reader is slow. Returns whether somebody has got it, or still can.

        Args:
            message: The message.
            answered: The ids that it answers; the last pending one ends the stream.
            within: Seconds to wait before the reader is cut off; by default it is waited for as long as it reads.
        """
        if self.is_full:
            with anyio.move_on_after(within) as patience:
                await self.room()
            if patience.cancelled_caught:
                log.debug("a client is cut off: it does not read")
                self.hang_up()
        return await self._finish(self._add(message, answered))

    async def settle(self, ids: Collection[RequestId]) -> None:
        """Note that requests will not be answered; the last pending one ends the stream."""
        await self._finish(self._add(None, ids))

    async def _add(self, message: bytes | None, answered: Collection[RequestId]) -> bool:
        async with self._turn:
            if self.over:
                return False
            left = self.pending.difference(answered)
            over = bool(self.pending) and not left
            resumable = self.kept if self.name != LISTEN_STREAM else self.last - self.given < _MANY and not self.is_full
            reachable = message is not None and (self._reader is not None or resumable)
            events = [Event(self.last + 1, message)] if message is not None and reachable else []
            if self._store is not None and self.kept and (events or over):
                await self._write(self._store, events, left, over)
            self.last += len(events)
            if self._reader is not None or not self.kept:
                self._append(events)
            self.pending = left
            self._settle(over)
        return reachable

    def _append(self, events: Sequence[Event]) -> None:
        self._ahead.extend(events)
        size = sum(len(event.data) for event in events)
        self._size += size
        self._queue.add(size)

    def end(self) -> None:
        """End it here; what the store has of it stays as it is."""
        self._settle(True)

    def _settle(self, over: bool) -> None:
        self.over = self.over or over
        self._wake()
        if self.over and self._reader is None:
            self.done(self)

    async def keep(self) -> None:
        """Have it kept by the store, if there is one, from now on, and with all that was not read yet."""
        if self._store is not None and not self.kept:
            await self._finish(self._keep(self._store))

    async def _keep(self, store: EventStore) -> None:
        async with self._turn:
            if not self.kept:
                await self._write(store, list(self._ahead), self.pending, self.over)
                self.kept = True

    async def _write(self, store: EventStore, events: list[Event], pending: set[RequestId], over: bool) -> None:
        await store.write(self._session, self.name, events, None if over else to_json(list(pending)))

    async def _finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish even if the caller is cancelled, in whichever way, so that no event is written by half."""
        if self._store is None:
            return await work
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
        """Whether as much waits for a reader as may; one message always may, however much waits elsewhere."""
        return self._size >= _AHEAD or len(self._ahead) >= _MANY or (self._size > 0 and self._queue.is_full)

    async def room(self) -> None:
        """Wait while it is full, until its reader takes something or leaves."""
        while self._reader is not None and self.is_full and not self.over:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def advance(self, number: int, data: bytes | None = None, over: bool = False) -> None:
        """Take note of an event that is in the store already, written here or by another worker.

        Args:
            number: Its number, or that of the last one.
            data: What it is, if that is at hand; else a reader finds it in the store.
            over: Whether nothing will be added.
        """
        if number > self.last:
            if self.is_full:
                self._clear()
            elif data is not None and self._reader is not None and self._follows(number):
                self._append([Event(number, data)])
            self.last = number
        self._settle(over)

    def _follows(self, number: int) -> bool:
        """Tell whether an event is the next one, and so is what waits: a gap there would never be filled."""
        return number == self.last + 1 and (not self._ahead or self._ahead[-1].number == self.last)

    # --- reading ----------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether a connection is there to read it."""
        return self._reader is not None

    @contextmanager
    def reading(self) -> Generator[None]:
        """Read in a block, which is cancelled when somebody else begins to read: the newest connection counts."""
        with anyio.CancelScope() as scope:
            self.hang_up()
            self._begin(scope)
            try:
                yield
            finally:
                if self._reader is scope:
                    self._begin(None)
                    if self.over:
                        self.done(self)

    def hang_up(self) -> None:
        """Cancel the connection that reads."""
        if self._reader is not None:
            self._reader.cancel()

    def _begin(self, reader: anyio.CancelScope | None) -> None:
        self._reader = reader
        self.left = time.monotonic() if reader is None else None
        self.leaving, self.retry = False, None
        if self.kept or (reader is None and (self.name != LISTEN_STREAM or self.over)):
            self._clear()
        self._wake()

    def drop(self) -> None:
        """Drop what waits, unless somebody still reads it; nobody will."""
        if self._reader is None:
            self._clear()

    def _clear(self) -> None:
        self._ahead.clear()
        self._queue.give_back(self._size)
        self._size = 0

    async def first(self) -> None:
        """Wait for the first message, or for the end."""
        while not (self.last or self.over or self.leaving):
            await self._changed.wait()

    def sole_answer(self) -> bytes | None:
        """Return the only message of a stream that is over."""
        return self._ahead[0].data if self.over and len(self._ahead) == self.last == 1 else None

    async def read(self, after: int) -> Sequence[Event]:
        """Return the events after a number, as soon as there are some.

        None when the stream is over, or when the connection shall end. The first one has a higher number than the next
        when the store has dropped what is between.
        """
        while True:
            if self.leaving and after >= self._farewell:
                return ()
            if self.last > after:
                if self._ahead and self._ahead[0].number <= after + 1:
                    events = [event for event in self._ahead if event.number > after]
                    self._clear()
                    self._wake()
                    return events
                if self._store is not None:
                    return await self._store.read(self._session, self.name, after)
                after = self.last  # nobody has it any longer
            if self.over or self.leaving:
                return ()
            await self._changed.wait()

    def leave(self, retry: int | None) -> None:
        """End the connection that reads, once it has read everything that is there by now, but not the stream.

        Args:
            retry: In how many milliseconds the client shall come back.
        """
        if self._reader is not None:
            self.leaving, self.retry, self._farewell = True, retry, self.last
            self._wake()

    def id_of(self, number: int) -> str | None:
        """Return what a client shall name to resume after an event; `None` when it cannot."""
        return f"{self.name}-{number}" if self.kept else None


def taken() -> HttpError:
    """Make the error for a client that already has a standing stream."""
    reason = "the session has a standing stream already; Last-Event-ID takes it over"
    return HttpError(409, ProtocolError(INVALID_REQUEST, reason))


def parse_event_id(id_: str) -> tuple[str, int] | None:
    """Return the name of a stream and a number of an event on it; `None` when `id_` is not of ours."""
    name, dash, number = id_.rpartition("-")
    return (name, int(number)) if dash and number.isascii() and number.isdecimal() and len(number) < 19 else None


async def pour(
    call: Call, stream: Stream, after: int, *, retry: int | None = None, keep_alive: float, patience: float
) -> None:
    """Write what comes after an event to a response that has begun, until the stream ends or the client has gone.

    Call it in `Stream.reading`.

    Args:
        call: The request.
        stream: The stream.
        after: The number of the last event that the client has.
        retry: Milliseconds after which the client shall come back, said in a first event without data.
        keep_alive: Seconds between comments on an idle stream; 0 sends none.
        patience: Seconds that a client may take for what it is sent, before it is given up.
    """

    async def watch() -> None:
        await call.hung_up()
        tasks.cancel_scope.cancel()

    async def write(data: bytes) -> None:
        with anyio.fail_after(patience):
            await call.write(data)

    async def work(after: int) -> None:
        if retry is not None:
            await write(encode(b"", stream.id_of(after), retry=retry))
        while True:
            events: Sequence[Event] | None = None
            with anyio.move_on_after(keep_alive or None):
                events = await stream.read(after)
            if events is None:
                await write(KEEP_ALIVE)
                continue
            if not events:
                break
            if events[0].number != after + 1 and stream.kept:
                log.warning("a client is cut off: the event store has dropped what it should have been sent")
                break
            after = events[-1].number
            stream.given = max(stream.given, after)
            await write(b"".join([event(one.data, stream.id_of(one.number)) for one in events]))
        if stream.leaving and stream.retry is not None and not stream.over:
            await write(encode(retry=stream.retry))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            await work(after)
        except (OSError, HttpError) as error:
            log.debug("a client is cut off: %s", error or "it does not read")
        tasks.cancel_scope.cancel()


async def finish(call: Call) -> None:
    """End a response that has begun."""
    with anyio.move_on_after(_FAREWELL, shield=True):
        await call.write(b"", more=False)
