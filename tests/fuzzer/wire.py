"""HTTP/1.1 client that can send any bytes; h11 parses the responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import h11

from .mutations import Headers

CHUNK = 1 << 16


class Gone(Exception):
    """The server closed the connection before its response was complete."""


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b": ")
    return name, value


class Response:
    """Response, as far as it has arrived.

    Attributes:
        status: Its status.
        headers: Its headers, names in lower case.
    """

    def __init__(self, wire: Wire, head: h11.Response) -> None:
        self.status = head.status_code
        self.headers = {bytes(name): bytes(value) for name, value in head.headers}
        self._wire = wire

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield parts of the body as they arrive. Raises `Gone`."""
        while True:
            event = await self._wire.event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return

    async def events(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield the type and the data of each server-sent event that has data. Raises `Gone`."""
        rest = b""
        async for part in self.parts():
            *complete, rest = (rest + part).split(b"\n\n")
            for block in complete:
                fields = [_field(line) for line in block.split(b"\n")]
                data = b"\n".join(value for name, value in fields if name == b"data")
                if data:
                    yield dict(fields).get(b"event", b"message"), data

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the messages of the response, a JSON document or an event stream. Raises `Gone`."""
        if self.headers.get(b"content-type") == b"text/event-stream":
            async for _, data in self.events():
                yield data
        else:
            body = b"".join([part async for part in self.parts()])
            if body:
                yield body


class Wire:
    """Connection to an HTTP server, opened on demand.

    Args:
        port: The server's port.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._parser = h11.Connection(h11.CLIENT)

    async def send(self, request: bytes, *, last: bool = False) -> Response:
        """Send a request, valid or not, and return the response. Raises `Gone`.

        Args:
            request: The request.
            last: Whether to close the sending side of the connection.
        """
        await self.write(request, last=last)
        while True:
            event = await self.event()
            if isinstance(event, h11.Response):
                return Response(self, event)

    async def write(self, request: bytes, *, last: bool = False) -> None:
        """Send a request, or a part of one."""
        if self._streams is not None and self._parser.our_state is h11.DONE is self._parser.their_state:
            self._parser.start_next_cycle()
        else:
            self.close()
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            self._parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        self._parser.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
        self._parser.send(h11.EndOfMessage())
        with suppress(OSError):  # the server may have closed the connection after an early response
            self._streams[1].write(request)
            if last:
                self._streams[1].write_eof()
            await self._streams[1].drain()

    async def event(self) -> h11.Event | type[h11.PAUSED]:
        """Return the next event of h11. Raises `Gone`."""
        assert self._streams is not None
        while True:
            try:
                event = self._parser.next_event()
            except h11.RemoteProtocolError as error:
                self.close()
                raise Gone(str(error)) from None
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]
            try:
                self._parser.receive_data(await self._streams[0].read(CHUNK))
            except OSError:
                self._parser.receive_data(b"")

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def encode(method: bytes, target: bytes, headers: Headers, body: bytes = b"") -> bytes:
    """Return the bytes of a request."""
    lines = [b"%b %b HTTP/1.1" % (method, target), *(b"%b: %b" % header for header in headers)]
    return b"\r\n".join([*lines, b"content-length: %d" % len(body)]) + b"\r\n\r\n" + body
