"""HTTP connections to one server, for a proxy: nothing is decoded, joined or added.

httpcore2 takes about five times the processor time of this module; httpx2 takes more, and would store cookies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import httptools

from mcp_bindgen.http.client.bounded import certificates

RawHeaders = list[tuple[bytes, bytes]]

_CONNECT_SECONDS = 30.0
_IDLE_SECONDS = 4.0  # that a connection is kept; many servers close it after 5
_MAX_IDLE = 256  # connections
_MAX_HEAD_BYTES = 256 * 1024
_CHUNK_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}


class UpstreamError(Exception):
    """The server cannot be reached, broke off, or sent no HTTP; the message is for people to read."""


class Reply(NamedTuple):
    """Response of a server.

    Attributes:
        status: The HTTP status.
        headers: Names and values as they came.
        parts: The body as it arrives; the iterator raises `UpstreamError` if the body breaks off.
    """

    status: int
    headers: RawHeaders
    parts: AsyncIterator[bytes]


Exchange: TypeAlias = Callable[[str, bytes, RawHeaders, AsyncIterable[bytes]], AbstractAsyncContextManager[Reply]]
"""Function that sends a request (method, target, headers and body) and returns the response; it may raise
`UpstreamError`. The end of the context releases the connection."""


class Connections:
    """Connections to the origin of a URL.

    Args:
        url: The URL.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._tls = certificates() if parts.scheme == "https" else None
        self._place = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        self._idle: list[_Connection] = []

    @asynccontextmanager
    async def send(
        self, method: str, target: bytes, headers: RawHeaders, body: AsyncIterable[bytes]
    ) -> AsyncGenerator[Reply]:
        """Send a request on an idle connection or a new one; the arguments are as for `Exchange`."""
        connection = self._reusable() or await self._connected()
        try:
            yield await connection.ask(method, target, headers, body)
        finally:
            if connection.is_idle and len(self._idle) < _MAX_IDLE:
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.append(connection)
            else:
                connection.abort()

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop().abort()

    def _reusable(self) -> _Connection | None:
        limit = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_idle and connection.idle_since > limit:
                return connection
            connection.abort()
        return None

    async def _connected(self) -> _Connection:
        host, port = self._place
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return _Connection(*await asyncio.open_connection(host, port, ssl=self._tls))
        except TimeoutError:
            raise UpstreamError(f"no connection within {_CONNECT_SECONDS:g} seconds") from None
        except OSError as error:
            raise UpstreamError(str(error)) from None


class _Connection:
    """Connection to a server, with the response to its current request.

    Attributes:
        idle_since: Time of the last response.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.idle_since = 0.0
        self._reader, self._writer = reader, writer
        self._reading = asyncio.ensure_future(self._received())
        self._parts: deque[bytes] = deque()
        self._has_head = self._is_complete = self._may_reuse = False

    @property
    def is_idle(self) -> bool:
        """True if the response was read to its end, and the server has sent nothing else and keeps the connection."""
        return self._is_complete and self._may_reuse and not self._parts and not self._reading.done()

    async def ask(self, method: str, target: bytes, headers: RawHeaders, body: AsyncIterable[bytes]) -> Reply:
        """Send a request, and wait for the head of the response; raise `UpstreamError`."""
        self._parser: Any = httptools.HttpResponseParser(self)
        self._method, self._status, self._headers, self._head_bytes = method, 0, RawHeaders(), 0
        self._has_head, self._is_complete, self._may_reuse = False, False, True
        head = [b"%b %b HTTP/1.1" % (method.encode("latin-1"), target)]
        head += [b"%b: %b" % header for header in headers]
        is_chunked = any(name == b"transfer-encoding" for name, _ in headers)
        data = b"\r\n".join([*head, b"", b""])
        async for part in body:
            self._writer.write(data + (b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part))
            data = b""
            with suppress(OSError):  # the server may have answered before it closed the connection
                await self._writer.drain()
            if self._reading.done():  # an early refusal
                self._may_reuse = False
                break
        else:
            self._writer.write(data + (b"0\r\n\r\n" if is_chunked else b""))
        while not self._has_head:
            await self._read()
        return Reply(self._status, self._headers, self._body())

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def _body(self) -> AsyncIterator[bytes]:
        while True:
            while self._parts:
                yield self._parts.popleft()
            if self._is_complete:
                return
            await self._read()

    async def _received(self) -> bytes | None:
        """Return the next bytes: none at the end, `None` if the connection broke."""
        try:
            return await self._reader.read(_CHUNK_BYTES)
        except OSError:
            return None

    async def _read(self) -> None:
        """Parse the next bytes of the response; raise `UpstreamError`; the end completes one without a length."""
        data = await self._reading
        self._reading = asyncio.ensure_future(self._received())
        if not data:
            names = {name.lower() for name, _ in self._headers}
            if data is None or not self._has_head or names & {b"content-length", b"transfer-encoding"}:
                raise UpstreamError("the server closed the connection")
            self._is_complete, self._may_reuse = True, False
            return
        self._head_bytes += 0 if self._has_head else len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            raise UpstreamError("the server sent no valid HTTP") from None
        except httptools.HttpParserUpgrade:
            raise UpstreamError("the server changed the protocol") from None
        if not self._has_head and self._head_bytes > _MAX_HEAD_BYTES:
            raise UpstreamError("the head of the response is too large")

    # --- callbacks of the parser ------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers are dropped."""
        if not self._has_head:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note the head; interim responses are dropped."""
        self._status = self._parser.get_status_code()
        if self._status < 200:
            return
        self._has_head = True
        if self._method == "HEAD":  # the parser would wait for a body
            self._is_complete, self._may_reuse = True, False

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """Note the end of the response."""
        if self._status < 200:
            self._headers.clear()
            return
        self._is_complete = True
        self._may_reuse = self._may_reuse and self._parser.should_keep_alive()
