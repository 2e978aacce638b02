"""Proxy between an HTTP client and server that records messages, and breaks connections after certain data."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import zip_longest

import anyio
from anyio.abc import ByteStream, SocketAttribute

CUT = re.compile(rb'cut here|"progress":2,"total":6')
"""Data from the server after which the proxy breaks the connection."""

SESSION = re.compile(rb"(?:session_id=|^mcp-session-id: *)([\w-]+)", re.MULTILINE | re.IGNORECASE)
EVENT = re.compile(rb"^data: ([\[{].*[\]}])\r?$", re.MULTILINE)
LENGTH = re.compile(rb"^content-length: *(\d+)\r?$", re.MULTILINE | re.IGNORECASE)
CHUNKED = re.compile(rb"^transfer-encoding: *chunked\r?$", re.MULTILINE | re.IGNORECASE)
GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass
class Overheard:
    """Messages of one session, or of one stateless request: `asked` by the client, `said` by the server."""

    asked: list[bytes] = field(default_factory=list)
    said: list[bytes] = field(default_factory=list)


class Eavesdropper:
    """TCP proxy that records the data of both directions.

    Args:
        server: The server's port.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._connections: list[tuple[bytearray, bytearray]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int]:
        """Listen for the duration of the block; yield the port."""
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, self._pass_on)
            yield listener.extra(SocketAttribute.local_port)
            tasks.cancel_scope.cancel()

    def conversations(self) -> list[Overheard]:
        """Return the recorded conversations."""
        found: dict[object, Overheard] = {}
        for asked, answered in self._connections:
            for (head, body), (status, said) in zip_longest(_parts(asked), _parts(answered), fillvalue=(b"", b"")):
                session = SESSION.search(status) or SESSION.search(head) or SESSION.search(said)
                conversation = found.setdefault(session[1] if session else object(), Overheard())
                if head.startswith(b"POST "):
                    conversation.asked.append(body)
                conversation.said += [said] if said.startswith((b"{", b"[")) else EVENT.findall(said)
        return list(found.values())

    async def _pass_on(self, near: ByteStream) -> None:
        asked, answered = bytearray(), bytearray()
        self._connections.append((asked, answered))
        async with near, await anyio.connect_tcp("127.0.0.1", self._server) as far, anyio.create_task_group() as tasks:

            async def copy(source: ByteStream, sink: ByteStream, log: bytearray) -> None:
                try:
                    while True:
                        data = await source.receive()
                        log.extend(data)
                        await sink.send(data)
                        if log is answered and CUT.search(data):
                            break
                except GONE:
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(copy, near, far, asked)
            tasks.start_soon(copy, far, near, answered)


def _parts(stream: bytearray) -> Iterator[tuple[bytes, bytes]]:
    """Yield head and body of each request or response on a connection; the last body may be incomplete."""
    rest = bytes(stream)
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if CHUNKED.search(head):
            body, rest = _chunks(rest)
        else:
            size = int(length[1]) if length else 0
            body, rest = rest[:size], rest[size:]
        yield head, body


def _chunks(rest: bytes) -> tuple[bytes, bytes]:
    """Return a chunked body and the data after it."""
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
        if size == b"0":
            break
    return body, rest
