"""Newline-delimited messages over file descriptors (MCP, "Transports": stdio), without blocking the event loop.

`StdioServerTransport` takes over the streams of the process. Pipes and sockets are watched by the event loop (asyncio,
uvloop). Files, and event loops without `add_reader` such as the Proactor loop of Windows, are served by threads.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

import anyio

from ..protocol.access import RequestOrigin
from ..protocol.errors import ConnectionClosed
from ..protocol.transport import MAX_MESSAGE, Oversized, Transport

T = TypeVar("T")

_CHUNK_BYTES = 256 * 1024
_HEAD_BYTES = 256  # kept of an oversized line


class Lines:
    """Splitter of chunks into lines.

    Args:
        limit: The largest line in bytes; a larger line is skipped and `Oversized` stands in for it.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping: Oversized | None = None

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Return the lines that `chunk` completes, without their line ends and without blank lines."""
        *complete, rest = chunk.split(b"\n")
        if complete and not self._size and len(chunk) <= self.limit:  # nothing to join, nothing too large
            if rest:
                self._add(rest)
            return [line for line in complete if line and not line.isspace()]
        found: list[bytes | Oversized] = []
        for line in complete:
            self._add(line)
            message = self._skipping or b"".join(self._parts)
            self._parts, self._size, self._skipping = [], 0, None
            if isinstance(message, Oversized) or message.strip():
                found.append(message)
        self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._skipping is None and part:
            self._parts.append(part)
            if self._size > self.limit:
                head = b"".join(part[:_HEAD_BYTES] for part in self._parts[:_HEAD_BYTES])[:_HEAD_BYTES]
                self._skipping = Oversized(self.limit, head)
                self._parts.clear()


class _Watched:
    """Reader of a descriptor that the event loop watches; a registration for each read would cost time."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        self._watching = False
        self._closed = False
        os.set_blocking(descriptor, False)

    def _wake(self) -> None:
        if self._waiter is None:  # nothing reads now: stop watching until the next read
            self._loop.remove_reader(self._descriptor)
            self._watching = False
        elif not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        """Return the next chunk; an empty one at the end, or after `close`."""
        while not self._closed:
            if not self._watching:
                self._loop.add_reader(self._descriptor, self._wake)
                self._watching = True
            self._waiter = self._loop.create_future()
            try:
                await self._waiter  # even if there is more to read: a busy peer must not starve other tasks
            finally:
                self._waiter = None
            if not self._closed:  # a closed descriptor may block again
                with suppress(BlockingIOError):
                    return os.read(self._descriptor, _CHUNK_BYTES)
        return b""

    def close(self) -> None:
        """Stop reading."""
        self._closed = True
        self._loop.remove_reader(self._descriptor)
        os.set_blocking(self._descriptor, True)  # another process may share the pipe
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Threaded:
    """Reader of a descriptor by threads; a cancelled read leaves its chunk to the next one."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._chunk: asyncio.Future[bytes] | None = None

    async def read(self) -> bytes:
        """Return the next chunk; an empty one at the end, or after `close`."""
        if self._chunk is None:
            self._chunk = on_thread(partial(_read_once, os.dup(self._descriptor)))
        chunk = await asyncio.shield(self._chunk)
        self._chunk = None
        return chunk

    def close(self) -> None:
        """Stop reading; the descriptor may be closed although a thread still reads its copy."""
        if self._chunk is not None and not self._chunk.done():
            self._chunk.set_result(b"")


def _read_once(copy: int) -> bytes:
    """Read from a copy of a descriptor, and close the copy."""
    with open(copy, "rb", buffering=0) as source:
        return source.read(_CHUNK_BYTES)


def _can_watch(descriptor: int, *, terminals: bool = False) -> bool:
    """Return whether the event loop can wait for a descriptor: pipes, sockets and perhaps terminals, but no files."""
    mode = os.fstat(descriptor).st_mode
    with suppress(NotImplementedError):  # by loops without `add_reader`, such as the Proactor loop of Windows
        asyncio.get_running_loop().remove_reader(descriptor)
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (terminals and os.isatty(descriptor))
    return False


def on_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run blocking work in a daemon thread: the end of the process does not wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())  # an error need not be awaited

    def run() -> None:
        try:
            settle = partial(future.set_result, work())
        except OSError as error:
            settle = partial(future.set_exception, error)
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(lambda: future.done() or settle())

    Thread(target=run, daemon=True).start()
    return future


def reader_of(descriptor: int) -> _Watched | _Threaded:
    """Return a reader that does not block the event loop."""
    if _can_watch(descriptor, terminals=True):
        return _Watched(descriptor, asyncio.get_running_loop())
    return _Threaded(descriptor)


class Pipes(Transport):
    """Transport over two file descriptors, which it owns.

    Args:
        source: The descriptor that messages are read from.
        sink: The descriptor that messages are written to.
        limit: The largest message, in bytes.

    Attributes:
        has_heard: True if the other side has sent anything.
    """

    origin: RequestOrigin = RequestOrigin(network="pipe")

    def __init__(self, source: int, sink: int, limit: int = MAX_MESSAGE) -> None:
        self.has_heard: bool = False
        self._lines = Lines(limit)
        self._source = source
        self._sink = sink
        self._reader = reader_of(source)
        self._watches_sink = _can_watch(sink)
        if self._watches_sink:
            os.set_blocking(sink, False)
        self._writing: asyncio.Future[None] | None = None
        self._rest = b""
        self._open = True

    async def receive(self) -> Sequence[bytes | Oversized]:
        """Return the next messages; none when the other side has ended."""
        with suppress(OSError):  # a socket may end with an error
            while self._open and (chunk := await self._reader.read()):
                self.has_heard = True
                if messages := self._lines.feed(chunk):
                    return messages
        return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Write messages; wait while the pipe is full.

        A cancelled call may leave a partly written message; the next call writes the rest of it first.

        Raises:
            ConnectionClosed: The other side reads no more, or this side is closed.
        """
        begun, self._rest = self._rest, b""
        data = begun + b"\n".join([*messages, b""])
        view = memoryview(data)
        try:
            while view:
                if not self._open:
                    raise ConnectionClosed("the connection is closed")
                if not self._watches_sink:
                    await self._written()
                    self._writing, view = on_thread(partial(_write, self._sink, view)), view[:0]
                    await self._written()
                    break
                try:
                    view = view[os.write(self._sink, view) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._sink)
        except (OSError, anyio.ClosedResourceError):
            raise ConnectionClosed(await self.end_reason()) from None
        except BaseException:
            written = len(data) - len(view)
            self._rest = _line(data, written) if written else begun
            raise

    async def _written(self) -> None:
        """Wait for the thread that writes, if there is one; it goes on if this is cancelled."""
        if self._writing is not None:
            await asyncio.shield(self._writing)

    async def close(self) -> None:
        """Close both descriptors; the other side sees the end of its input."""
        if self._open:
            self._close_sink()
            self._reader.close()
            os.close(self._source)

    def _close_sink(self) -> None:
        self._open = False
        if self._watches_sink:
            os.set_blocking(self._sink, True)  # another process may share the pipe
        anyio.notify_closing(self._sink)
        if self._writing is None or self._writing.done():
            os.close(self._sink)
        else:  # closing would block while a thread writes
            self._writing.add_done_callback(lambda done: os.close(self._sink))


def _write(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]


def _line(data: bytes, written: int) -> bytes:
    """Return the rest of the line in which writing stopped."""
    return b"" if data[written - 1] == ord("\n") else data[written : data.index(b"\n", written) + 1]


class StdioServerTransport(Pipes):
    """The server's end. While it is open, `print` goes to stderr, and stdin reads nothing.

    Args:
        limit: The largest message, in bytes.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        sys.stdout.flush()
        super().__init__(os.dup(0), os.dup(1), limit)
        self._saved = os.dup(0), os.dup(1), sys.stdout
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    async def close(self) -> None:
        """Restore the streams of the process."""
        if self._open:
            source, sink, sys.stdout = self._saved
            for saved, number in ((source, 0), (sink, 1)):
                os.dup2(saved, number)
                os.close(saved)
        await super().close()
