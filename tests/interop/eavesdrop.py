"""Listens in between a client and a server that talk HTTP, and breaks a connection when it hears the word."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import zip_longest

import anyio
from anyio.abc import ByteStream, SocketAttribute

CUT = re.compile(rb'cut here|"progress":2,"total":6')
"""Once the server has said one of these, the connection breaks."""

SESSION = re.compile(rb"(?:session_id=|^mcp-session-id: *)([\w-]+)", re.MULTILINE | re.IGNORECASE)
EVENT = re.compile(rb"^data: ([\[{].*[\]}])\r?$", re.MULTILINE)
LENGTH = re.compile(rb"^content-length: *(\d+)\r?$", re.MULTILINE | re.IGNORECASE)
CHUNKED = re.compile(rb"^transfer-encoding: *chunked\r?$", re.MULTILINE | re.IGNORECASE)
GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass
class Overheard:
    """What was said in one session, or about one request that needs none: the client's messages, then the server's."""

    asked: list[bytes] = field(default_factory=list)
    said: list[bytes] = field(default_factory=list)


class Eavesdropper:
    """Passes on what comes over TCP, and keeps it.

    Args:
        server: The server's port.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._connections: list[tuple[bytearray, bytearray]] = []

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[int]:
        """Listens for as long as the block lasts; gives the port."""
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, self._pass_on)
            yield listener.extra(SocketAttribute.local_port)
            tasks.cancel_scope.cancel()

    def conversations(self) -> list[Overheard]:
        """What was said."""
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
    """The heads and bodies of the requests or responses on a connection; the last one may have been broken off."""
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
    """A body that came in chunks, and what follows it."""
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
        if size == b"0":
            break
    return body, rest
