"""Watch over the connections to a server: its messages, its stderr, other lines on stdout, the end of its process."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import Any, Literal, Self, TypeAlias

import anyio

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import harmless, log, servers
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.transport import Lost, Oversized, Transport
from mcp_bindgen.runtime.session.targets import Address, Opener
from mcp_bindgen.runtime.transports.stdio import StdioClientTransport

_MAX_BYTES = 16 * 1024
_CHUNK_BYTES = 64 * 1024
_LINES = 3

_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"^(?: *\| )?([^\s|+].*)$", re.MULTILINE)
"""The line of a traceback of Python that has the error; in groups of exceptions, lines begin with a bar."""
_NODE = re.compile(r"^Node\.js v\d", re.MULTILINE)
_THROWN = re.compile(r"^((?:Uncaught )?[\w.$]*(?:Error|Exception)\b.*)$", re.MULTILINE)
"""The first line of an error of Node."""
_NPM = re.compile(r"^npm (?:error|ERR!) (?!code |errno |syscall )(.*)$", re.MULTILINE)
_PLACE = re.compile(r'^[ \t|]*File "([^"\n]+)", line (\d+)', re.MULTILINE)


def last_words(stderr: str) -> str:
    """Return the end of the stderr of a server in one line: the error of a traceback if it ends with one."""
    if _TRACEBACK in stderr:
        trace = stderr.rpartition(_TRACEBACK)[2]
        error, places = _RAISED.search(trace), _PLACE.findall(trace)
        if error is not None:
            file, line = places[-1] if places else ("", "")
            return harmless(error[1] + (f" ({Path(file).name}, line {line})" if file else ""))
    elif (error := _NPM.search(stderr) or (_NODE.search(stderr) and _THROWN.search(stderr))) is not None:
        return harmless(error[1])
    lines = [line for part in stderr.split("\n") if (line := part.strip())]
    return " | ".join(harmless(line) for line, _ in groupby(lines[-_LINES:]))


class StderrTail:
    """Pipe for the stderr of a server, which is logged line by line; its end is kept.

    Args:
        name: The server's name, for the log.

    Attributes:
        writer: The file descriptor to give to the server.
    """

    writer: int

    def __init__(self, name: str) -> None:
        self._name = name
        self._end = b""
        self._rest = b""

    def __enter__(self) -> Self:
        """Open the pipe."""
        self._reader, self.writer = os.pipe()
        self._loop = asyncio.get_running_loop()
        self._is_watched = False
        with suppress(NotImplementedError):  # by loops without `add_reader`, such as the Proactor loop of Windows
            self._loop.add_reader(self._reader, self._read)
            os.set_blocking(self._reader, False)
            self._is_watched = True
        if not self._is_watched:
            Thread(target=self._read_all, args=(os.dup(self._reader),), daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the pipe."""
        if self._is_watched:
            self._loop.remove_reader(self._reader)
        os.close(self._reader)
        os.close(self.writer)

    def text(self) -> str:
        """Return the end of what the server has written."""
        if self._is_watched:
            self._read()
        return self._end.decode("utf-8", "replace")

    def _read(self) -> None:
        with suppress(OSError):
            self._keep(os.read(self._reader, _CHUNK_BYTES))

    def _read_all(self, copy: int) -> None:
        with open(copy, "rb", buffering=0) as source:
            while chunk := source.read(_CHUNK_BYTES):
                self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        self._end = (self._end + chunk)[-_MAX_BYTES:]
        *lines, self._rest = (self._rest + chunk)[-_CHUNK_BYTES:].split(b"\n")
        for line in lines:
            servers.info("%s: %s", self._name, line.decode("utf-8", "replace"))


Side: TypeAlias = Literal["client", "server"]

_REST_SECONDS = 0.5  # that the output of a failed process gets to arrive


@dataclass(eq=False)
class Watch:
    """Watch over the connections to one server.

    Attributes:
        name: The server's name, for the log.
        on_message: Called with the sender and the JSON text of each message.
        on_junk: Called with each line on stdout that is no message; by default it is logged.
        on_open: Called before each connection.
        exit: The way in which its process ended by itself, such as `exit code 3`; empty before that.
        ended: Set when a connection has ended.
    """

    name: str
    on_message: Callable[[Side, bytes], None] | None = None
    on_junk: Callable[[str], None] | None = None
    on_open: Callable[[], None] | None = None
    exit: str = ""
    ended: anyio.Event = field(default_factory=anyio.Event)

    def address(self, place: Address) -> Address:
        """Return an address whose connections are watched."""

        def watched(start: Opener | None) -> Opener | None:
            return None if start is None else partial(self._opened, start)

        return replace(place, open=watched(place.open), fallback=watched(place.fallback))

    def explained(self, error: object, stderr: str) -> str:
        """Return an error in one line, with the exit of the process and the end of its stderr."""
        reason = str(error)
        if self.exit and self.exit not in reason:
            reason = f"the server ended with {self.exit}"
        words = last_words(stderr)
        return f"{reason}; its stderr ends: {words}" if words else reason

    def junk(self, line: bytes) -> None:
        """Report a line on stdout that is no message."""
        text = harmless(line.decode("utf-8", "replace"))
        if self.on_junk is not None:
            self.on_junk(text)
        else:
            log.warning("MCP server %s: a line on stdout is no message; write it to stderr: %s", self.name, text)

    @asynccontextmanager
    async def _opened(self, start: Opener) -> AsyncGenerator[Transport]:
        self.exit, self.ended = "", anyio.Event()
        if self.on_open is not None:
            self.on_open()
        async with start() as inner, background_tasks() as tasks:
            transport = _Watched(inner, self)
            if isinstance(inner, StdioClientTransport):
                tasks.start_soon(_close_if_failed, inner)
            try:
                yield transport
            finally:
                if isinstance(inner, StdioClientTransport) and transport.is_over:
                    with anyio.CancelScope(shield=True):
                        self.exit = await inner.exit()
                self.ended.set()


async def _close_if_failed(transport: StdioClientTransport) -> None:
    """Close the connection if its process fails; a child of the process may hold its stdout open."""
    if await transport.process.wait() != 0:
        await anyio.sleep(_REST_SECONDS)
        await transport.close()


class _Watched(Transport):
    """Transport that reports its messages, and leaves out lines that are no messages.

    Attributes:
        inner: The transport below.
        is_over: True if the server closed its side.
    """

    def __init__(self, inner: Transport, watch: Watch) -> None:
        self.is_over = self._is_closed = False
        self.origin, self.independent = inner.origin, inner.independent
        self.mirror = inner.mirror
        self.inner = inner
        self._watch = watch
        self._has_lines = isinstance(inner, StdioClientTransport)

    @property
    def extensions(self) -> Mapping[str, Any]:  # type: ignore[override]  # they may change
        """Extensions of the protocol that authorization uses."""
        return self.inner.extensions

    async def receive(self) -> Sequence[bytes | Oversized | Lost]:
        """Return the next messages."""
        while True:
            received = await self.inner.receive()
            messages = [message for message in received if not self._is_junk(message)]
            for message in messages:
                if self._watch.on_message is not None and isinstance(message, bytes):
                    self._watch.on_message("server", message)
            if messages or not received:
                self.is_over = not (received or self._is_closed)
                return messages

    def _is_junk(self, message: bytes | Oversized | Lost) -> bool:
        if not self._has_lines or not isinstance(message, bytes) or message.lstrip()[:1] in (b"{", b"["):
            return False
        self._watch.junk(message)
        return True

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages."""
        if self._watch.on_message is not None:
            for message in messages:
                self._watch.on_message("client", bytes(message))
        try:
            await self.inner.send(messages)
        except ConnectionClosed:
            self.is_over = not self._is_closed
            raise

    async def end_reason(self) -> str:
        """Return the reason why the server is gone."""
        return await self.inner.end_reason()

    async def close(self) -> None:
        """Close the connection."""
        self._is_closed = True
        await self.inner.close()

    def close_stream(self, related: RequestId | None, retry: float | None = None) -> bool:
        """Close the stream of a request."""
        return self.inner.close_stream(related, retry)
