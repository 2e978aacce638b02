"""Messages over standard input and output, one a line (MCP, "Transports": stdio).

`StdioServerTransport` takes the process's own streams for itself, so that nothing else can get between the messages.
`stdio` starts a server as a child process and connects to it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

import anyio
import anyio.to_thread
from anyio.abc import Process

from .errors import ConnectionClosed
from .lines import Lines
from .transport import MAX_MESSAGE, Oversized

log = logging.getLogger("mcp_bindgen")

CHUNK = 256 * 1024

INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "USER",
    "SYSTEMROOT",
    "APPDATA",
    "TEMP",
)
"""What a child sees of our environment unless it is told otherwise; secrets do not travel by accident."""


class StdioServerTransport:
    """The server's end. While it is open, `print` goes to stderr and nobody else reads stdin.

    Args:
        limit: The largest message, in bytes.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self._lines = Lines(limit)
        self._saved = sys.stdout
        sys.stdout.flush()
        self._input, self._output = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        self._source = _source(self._input)
        self._polls_output = _can_poll(self._output)
        if self._polls_output:
            os.set_blocking(self._output, False)
        self._open = True

    async def receive(self) -> Sequence[bytes | Oversized]:
        while self._open:
            chunk = await self._source.read()
            if not chunk:
                return ()
            messages = self._lines.feed(chunk)
            if messages:
                return messages
        return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        view = memoryview(b"\n".join([*messages, b""]))
        try:
            while view:
                try:
                    view = view[os.write(self._output, view) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._output)
        except (BrokenPipeError, OSError):
            raise ConnectionClosed("the client is gone") from None

    async def close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._source.close()
        if self._polls_output:
            os.set_blocking(self._output, True)
        os.dup2(self._input, 0)
        os.dup2(self._output, 1)
        os.close(self._input)
        os.close(self._output)
        sys.stdout = self._saved


class _Source(Protocol):
    """Where chunks come from; an empty one is the end."""

    async def read(self) -> bytes: ...

    def close(self) -> None: ...


def _source(descriptor: int) -> _Source:
    """The best way to read `descriptor` without blocking."""
    if not _can_poll(descriptor):
        return _Threaded(descriptor)
    return _Watched(descriptor) if _on_asyncio() else _Polled(descriptor)


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Threaded:
    """A file or a terminal: the event loop cannot wait for it, a thread can."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def read(self) -> bytes:
        return await anyio.to_thread.run_sync(os.read, self._descriptor, CHUNK, abandon_on_cancel=True)

    def close(self) -> None:
        """There is nothing to give back."""


class _Polled(_Threaded):
    """A pipe, on any event loop."""

    async def read(self) -> bytes:
        await anyio.wait_readable(self._descriptor)
        return os.read(self._descriptor, CHUNK)


class _Watched:
    """A pipe, on asyncio: it is registered once and not for each read, which halves the time of a lone request."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._ready = False
        self._loop.add_reader(descriptor, self._wake)

    def _wake(self) -> None:
        if self._waiter is None:  # nobody reads, and the pipe stays readable: look away until somebody does
            self._ready = True
            self._loop.remove_reader(self._descriptor)
        elif not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        if self._ready:
            self._ready = False
            self._loop.add_reader(self._descriptor, self._wake)
        else:
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return os.read(self._descriptor, CHUNK)

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)


def _can_poll(descriptor: int) -> bool:
    """Whether the event loop can wait for it: a pipe or a socket, not a file or a terminal."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class StdioClientTransport:
    """The client's end: a child process.

    Attributes:
        process: The child.
    """

    def __init__(self, process: Process, limit: int) -> None:
        self.process = process
        self._lines = Lines(limit)

    async def receive(self) -> Sequence[bytes | Oversized]:
        assert self.process.stdout is not None
        while True:
            try:
                chunk = await self.process.stdout.receive(CHUNK)
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                return ()
            messages = self._lines.feed(chunk)
            if messages:
                return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        assert self.process.stdin is not None
        try:
            await self.process.stdin.send(b"\n".join([*messages, b""]))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            raise ConnectionClosed("the server process is gone") from None

    async def close(self) -> None:
        if self.process.stdin is not None:
            with suppress(anyio.BrokenResourceError, OSError):
                await self.process.stdin.aclose()


@asynccontextmanager
async def stdio(
    command: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | Path | None = None,
    stderr: int | IO[Any] | None = None,
    limit: int = MAX_MESSAGE,
    grace: float = 2.0,
) -> AsyncGenerator[StdioClientTransport]:
    """Starts a server and connects to it; afterwards the server and all that it started are gone.

    Args:
        command: The program.
        arguments: Its arguments.
        env: Environment variables for it, beside the few that `INHERITED` names.
        inherit_env: Pass on the whole environment.
        cwd: The folder to run it in.
        stderr: Where its error output goes; by default to ours.
        limit: The largest message, in bytes.
        grace: Seconds to wait after closing its input, and again after asking it to terminate.

    Raises:
        ConnectionClosed: The program cannot be started.
    """
    known = os.environ if inherit_env else {name: os.environ[name] for name in INHERITED if name in os.environ}
    try:
        process = await anyio.open_process(
            [command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=cwd,
            env={**known, **(env or {})},
            start_new_session=True,
        )
    except OSError as error:
        raise ConnectionClosed(f"{command} cannot be started: {error.strerror}") from None
    transport = StdioClientTransport(process, limit)
    try:
        yield transport
    finally:
        with anyio.CancelScope(shield=True):
            await transport.close()
            await _stop(process, grace)
            await process.aclose()


async def _stop(process: Process, grace: float) -> None:
    """Waits for the child to end by itself, then insists; its own children, in its group, go with it."""
    for insist in (None, signal.SIGTERM, signal.SIGKILL):
        if insist is not None:
            _signal(process.pid, insist)
        with anyio.move_on_after(grace):
            await process.wait()
            break
    _signal(process.pid, signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
