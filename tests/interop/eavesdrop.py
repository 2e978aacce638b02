"""Listens in between a client and a server that talk HTTP with server-sent events."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import ByteStream, SocketAttribute

SESSION = re.compile(rb"session_id=([\w-]+)")
EVENT = re.compile(rb"^data: (\{.*\})\r?$", re.MULTILINE)
LENGTH = re.compile(rb"^content-length: *(\d+)\r$", re.MULTILINE | re.IGNORECASE)
GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@dataclass
class Overheard:
    """What was said in one session: the client's messages, then the server's."""

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

    def sessions(self) -> list[Overheard]:
        """What was said."""
        found: dict[bytes, Overheard] = {}
        for asked, answered in self._connections:
            for session, message in _posted(bytes(asked)):
                found.setdefault(session, Overheard()).asked.append(message)
            if b"text/event-stream" in answered:
                own = SESSION.search(answered)
                assert own is not None
                found.setdefault(own[1], Overheard()).said += EVENT.findall(answered)
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
                except GONE:
                    tasks.cancel_scope.cancel()

            tasks.start_soon(copy, near, far, asked)
            tasks.start_soon(copy, far, near, answered)


def _posted(requests: bytes) -> list[tuple[bytes, bytes]]:
    """The sessions and bodies of the POST requests on a connection."""
    found: list[tuple[bytes, bytes]] = []
    while requests:
        head, _, rest = requests.partition(b"\r\n\r\n")
        length = LENGTH.search(head + b"\r\n")
        size = int(length[1]) if length else 0
        session = SESSION.search(head)
        if head.startswith(b"POST ") and session is not None:
            found.append((session[1], rest[:size]))
        requests = rest[size:]
    return found
