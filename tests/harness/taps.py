"""Taps over HTTP: in a separate process, or as an application in front of a scripted server."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from mcp_bindgen.tap import Recorder, TracedMessage
from mcp_bindgen.tap.http import HttpTap
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


class _Parts(httpx2.AsyncByteStream):
    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


class Scripted(httpx2.AsyncBaseTransport):
    """Server in memory that records requests.

    Args:
        answer: Function from a request to the status, headers and body chunks of the response.
    """

    def __init__(self, answer: Callable[[Sent], tuple[int, Any, Sequence[bytes]]]) -> None:
        self.requests: list[Sent] = []
        self._answer = answer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Record a request, and return the response."""
        sent = Sent(request.extensions["target"], dict(request.headers), await request.aread())
        self.requests.append(sent)
        status, found, parts = self._answer(sent)
        return httpx2.Response(status, headers=found, stream=_Parts(parts))


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
