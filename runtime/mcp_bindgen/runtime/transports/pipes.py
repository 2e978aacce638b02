"""Lines of messages over a pair of file descriptors, without blocking and with as few system calls as possible."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import anyio
import anyio.to_thread

from ..protocol.errors import ConnectionClosed
from ..protocol.transport import MAX_MESSAGE, Oversized, Transport
from .lines import Lines

CHUNK = 256 * 1024


class Pipes(Transport):
    """A transport over two file descriptors, which it owns.

    Args:
        source: Where messages come from.
        sink: Where they go.
        limit: The largest message, in bytes.

    Attributes:
        has_heard: Whether the other side has said anything.
    """

    def __init__(self, source: int, sink: int, limit: int = MAX_MESSAGE) -> None:
        self.has_heard = False
        self._lines = Lines(limit)
        self._source = source
        self._sink = sink
        self._reader = _reader(source)
        if can_poll(sink):
            os.set_blocking(sink, False)
        self._rest = b""
        self._open = True

    async def receive(self) -> Sequence[bytes | Oversized]:
        """Return the next messages; nothing when the other side is gone."""
        while self._open:
            try:
                chunk = await self._reader.read()
            except OSError:  # a socket may end with an error
                return ()
            if not chunk:
                return ()
            self.has_heard = True
            messages = self._lines.feed(chunk)
            if messages:
                return messages
        return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Write messages; wait while the pipe is full. Raises `ConnectionClosed` when nobody reads it any more.

        Who cancels this may leave a message that is written in part; the next call writes the rest of it first.
        """
        begun, self._rest = self._rest, b""
        data = begun + b"\n".join([*messages, b""])
        view = memoryview(data)
        try:
            while view:
                if not self._open:
                    raise ConnectionClosed("the connection is closed")
                try:
                    view = view[os.write(self._sink, view) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._sink)
        except (OSError, anyio.ClosedResourceError):
            raise ConnectionClosed("the other side is gone") from None
        except BaseException:
            written = len(data) - len(view)
            self._rest = _line(data, written) if written else begun
            raise

    async def close(self) -> None:
        """Close both descriptors; the other side sees the end of its input."""
        if self._open:
            self._open = False
            self._reader.close()
            if can_poll(self._sink):
                os.set_blocking(self._sink, True)  # the pipe may be shared with others
            anyio.notify_closing(self._sink)
            os.close(self._sink)
            os.close(self._source)


def _line(data: bytes, written: int) -> bytes:
    """Return the rest of the line in which writing stopped."""
    return b"" if data[written - 1] == ord("\n") else data[written : data.index(b"\n", written) + 1]


def can_poll(descriptor: int) -> bool:
    """Tell whether the event loop can wait for it: a pipe or a socket, not a file or a terminal."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class _Reader(Protocol):
    """A source of chunks; an empty one is the end."""

    async def read(self) -> bytes: ...

    def close(self) -> None: ...


def _reader(descriptor: int) -> _Reader:
    """Return the best way to read `descriptor` without blocking."""
    if not can_poll(descriptor) and not os.isatty(descriptor):
        return _Threaded(descriptor)
    try:
        return _Watched(descriptor, asyncio.get_running_loop())
    except RuntimeError:
        return _Polled(descriptor)


class _Threaded:
    """A file: the event loop cannot wait for it, a thread can."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def read(self) -> bytes:
        return await anyio.to_thread.run_sync(os.read, self._descriptor, CHUNK, abandon_on_cancel=True)

    def close(self) -> None:
        """Do nothing: there is nothing to restore."""


class _Polled(_Threaded):
    """A pipe or a terminal, on any event loop."""

    async def read(self) -> bytes:
        await anyio.wait_readable(self._descriptor)
        return os.read(self._descriptor, CHUNK)


class _Watched:
    """A pipe, on asyncio: it is registered once and not for each read, which halves the time of a lone request."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        self._watching = False
        self._closed = False
        os.set_blocking(descriptor, False)

    def _wake(self) -> None:
        if self._waiter is None:  # no reader waits, and the pipe stays readable: stop watching until the next read
            self._loop.remove_reader(self._descriptor)
            self._watching = False
        elif not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        while not self._closed:
            await self._wait()  # also when there is more to read: who sends without a pause must not starve others
            if not self._closed:  # what is closed may block again
                with suppress(BlockingIOError):
                    return os.read(self._descriptor, CHUNK)
        return b""

    async def _wait(self) -> None:
        if not self._watching:
            self._loop.add_reader(self._descriptor, self._wake)
            self._watching = True
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def close(self) -> None:
        self._closed = True
        self._loop.remove_reader(self._descriptor)
        os.set_blocking(self._descriptor, True)  # the pipe may be shared with others
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
