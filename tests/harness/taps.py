"""Taps over HTTP: in a separate process, or as an application in front of a scripted server."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from mcp_bindgen.tap import Recorder, TracedMessage
from mcp_bindgen.tap.http import HttpTap
from mcp_bindgen.tap.upstream import RawHeaders
from tests.harness.commands import COMMAND

URL = "http://server.example:8000/mcp"
JSON = {"content-type": "application/json"}


@asynccontextmanager
async def tapped(url: str, out: Path, *, lines: list[str] | None = None) -> AsyncGenerator[str]:
    """Run `mcp-bindgen tap` in front of a server and yield its URL; after SIGTERM, append its output to `lines`."""
    command = [str(COMMAND), "tap", "--listen", "127.0.0.1:0", "--out", str(out), url]
    process: Process = await anyio.open_process(command, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    stderr = BufferedByteReceiveStream(process.stderr)
    with anyio.fail_after(60):
        first = (await stderr.receive_until(b"\n", 1000)).decode()
    found = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+/\S*)", first)
    assert found is not None, first
    async with anyio.create_task_group() as tasks:

        async def drain() -> None:
            text = b"".join([part async for part in stderr]).decode()
            if lines is not None:
                lines.extend(text.splitlines())

        tasks.start_soon(drain)
        try:
            yield found[1]
        finally:
            process.send_signal(signal.SIGTERM)
            with anyio.CancelScope(shield=True):
                await process.wait()
    await process.aclose()


def traced(out: Path) -> list[dict[str, Any]]:
    """Return the lines of a recording."""
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


class Sent(NamedTuple):
    """A request that has reached the server."""

    target: bytes
    headers: Mapping[str, str]
    body: bytes


class Replied:
    """Response of a scripted server."""

    def __init__(self, status: int, headers: RawHeaders, parts: Sequence[bytes]) -> None:
        self.status, self.headers, self._parts = status, headers, parts

    async def parts(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part

    def close(self) -> None:
        """Do nothing; there is no connection to close."""


class Scripted:
    """Server in memory that records requests.

    Args:
        answer: Function from a request to the status, headers and body chunks of the response.
    """

    def __init__(self, answer: Callable[[Sent], tuple[int, Any, Sequence[bytes]]]) -> None:
        self.requests: list[Sent] = []
        self._answer = answer

    async def send(self, method: str, target: bytes, headers: RawHeaders, body: AsyncIterable[bytes]) -> Replied:
        named = {name.decode(): value.decode() for name, value in headers}
        sent = Sent(target, named, b"".join([part async for part in body]))
        self.requests.append(sent)
        status, found, parts = self._answer(sent)
        pairs = found.items() if isinstance(found, Mapping) else found
        return Replied(status, [(name.encode(), value.encode()) for name, value in pairs], parts)

    def close(self) -> None:
        """Do nothing; there is no connection to close."""


@asynccontextmanager
async def in_memory(upstream: Scripted) -> AsyncGenerator[tuple[httpx2.AsyncClient, list[TracedMessage]]]:
    """Yield a client of a tap in front of a server in memory, and its trace, which is complete after the block."""
    seen = list[TracedMessage]()
    with Recorder(seen.append) as recorder:
        tap = HttpTap(URL, recorder, upstream)
        transport = httpx2.ASGITransport(app=tap)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8001") as client:
            yield client, seen


def event(message: Any) -> bytes:
    """Return a message as a server-sent event."""
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


def violations(seen: Sequence[TracedMessage]) -> Iterator[str]:
    """Yield the violations of a trace as text."""
    yield from (str(one) for message in seen for one in message.violations)
