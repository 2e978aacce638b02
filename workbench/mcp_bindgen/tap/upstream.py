"""HTTP connections to one server, for a proxy: nothing is decoded, joined or added.

httpx2 takes about three times the processor time of the rest of the proxy, and would store cookies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Protocol
from urllib.parse import urlsplit

import httptools

from mcp_bindgen.http.client.bounded import certificates

RawHeaders = list[tuple[bytes, bytes]]

_CONNECT_SECONDS = 30.0
_IDLE_SECONDS = 4.0  # that a connection is kept; many servers close it after 5
_MAX_IDLE = 256  # connections
_MAX_HEAD_BYTES = 256 * 1024
_MAX_BUFFERED_BYTES = 256 * 1024  # of a body that the client does not read
_PORTS = {"http": 80, "https": 443}


class UpstreamError(Exception):
    """The server cannot be reached, broke off, or sent no HTTP; the message is for people to read."""


class Reply(Protocol):
    """Response of a server, whose body is yet to be read.

    Attributes:
        status: The HTTP status.
        headers: Names and values as they came.
    """

    status: int
    headers: RawHeaders

    def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raise `UpstreamError` if it breaks off."""
        ...

    def close(self) -> None:
        """Give the connection back, or close it if the body was not read to its end."""
        ...


class Upstream(Protocol):
    """Server that a proxy forwards to."""

    async def send(self, method: str, target: bytes, headers: RawHeaders, body: AsyncIterable[bytes]) -> Reply:
        """Send a request and return the response; raise `UpstreamError`."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


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

    async def send(self, method: str, target: bytes, headers: RawHeaders, body: AsyncIterable[bytes]) -> Reply:
        """Send a request on an idle connection or a new one."""
        connection = self._reusable() or await self._connected()
        try:
            await connection.ask(method, target, headers, body)
        except BaseException:
            connection.abort()
            raise
        return connection

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop().abort()

    def give_back(self, connection: _Connection) -> None:
        """Keep a connection for the next request."""
        if len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.abort()

    def forget(self, connection: _Connection) -> None:
        """Drop a connection that the server has closed."""
        if connection in self._idle:
            self._idle.remove(connection)

    def _reusable(self) -> _Connection | None:
        limit = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle:
            if (connection := self._idle.pop()).idle_since > limit:
                return connection
            connection.abort()
        return None

    async def _connected(self) -> _Connection:
        host, port = self._place
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self), host, port, ssl=self._tls
                )
        except TimeoutError:
            raise UpstreamError(f"no connection within {_CONNECT_SECONDS:g} seconds") from None
        except OSError as error:
            raise UpstreamError(str(error)) from None
        return connection


class _Connection(asyncio.Protocol):
    """Connection to a server, which is also the response to its current request.

    Attributes:
        status: Status of the response.
        headers: Headers of the response.
        idle_since: Time of the last response.
    """

    def __init__(self, owner: Connections) -> None:
        self.status = 0
        self.headers: RawHeaders = []
        self.idle_since = 0.0
        self._owner = owner
        self._transport: Any = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._changed = asyncio.Event()
        self._parts: deque[bytes] = deque()
        self._buffered = self._head_bytes = 0
        self._error = ""
        self._method = ""
        self._parser: Any = None
        self._has_head = self._is_complete = self._may_reuse = self._is_lost = False

    # --- requests ---------------------------------------------------------------------------------------------

    async def ask(self, method: str, target: bytes, headers: RawHeaders, body: AsyncIterable[bytes]) -> None:
        """Send a request, and wait for the head of the response; raise `UpstreamError`."""
        self._method = method
        self._parser = httptools.HttpResponseParser(self)
        self.status, self.headers = 0, []
        self._head_bytes = 0
        self._has_head = self._is_complete = False
        self._may_reuse = True
        head = [b"%b %b HTTP/1.1" % (method.encode("latin-1"), target)]
        head += [b"%b: %b" % header for header in headers]
        is_chunked = any(name == b"transfer-encoding" for name, _ in headers)
        data = b"\r\n".join([*head, b"", b""])
        async for part in body:
            data += b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part
            self._transport.write(data)
            data = b""
            await self._may_write.wait()
            if self._has_head or self._is_lost:  # an early refusal
                self._may_reuse = False
                break
        else:
            if is_chunked:
                data += b"0\r\n\r\n"
        if data:
            self._transport.write(data)
        while not self._has_head:
            await self._wait()

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        while True:
            while self._parts:
                part = self._parts.popleft()
                self._buffered -= len(part)
                if self._buffered <= _MAX_BUFFERED_BYTES and not self._is_lost:
                    self._transport.resume_reading()
                yield part
            if self._is_complete:
                return
            await self._wait()

    def close(self) -> None:
        """Give the connection back if the response was read to its end."""
        if self._is_complete and self._may_reuse and not self._parts and not self._is_lost:
            self.idle_since = asyncio.get_running_loop().time()
            self._owner.give_back(self)
        else:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        if self._error:
            raise UpstreamError(self._error)
        self._changed.clear()
        await self._changed.wait()

    def _fail(self, reason: str) -> None:
        self._error = self._error or reason
        self.abort()
        self._may_reuse = False
        self._changed.set()
        self._may_write.set()

    # --- callbacks of the connection --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse bytes of the server; bytes without a request end the connection."""
        if self._is_complete or self._parser is None:
            self._owner.forget(self)
            self.abort()
            return
        if not self._has_head:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("the server sent no valid HTTP")
        except httptools.HttpParserUpgrade:
            self._fail("the server changed the protocol")
        if not self._has_head and self._head_bytes > _MAX_HEAD_BYTES:
            self._fail("the head of the response is too large")
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """End a response without a length; others are broken off."""
        self._is_lost = True
        self._owner.forget(self)
        names = {name.lower() for name, _ in self.headers}
        if self._has_head and exc is None and not names & {b"content-length", b"transfer-encoding"}:
            self._is_complete = True
        self._fail("the server closed the connection")  # which matters to an incomplete response only

    def pause_writing(self) -> None:
        """Wait with the rest of the request."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Go on with the request."""
        self._may_write.set()

    # --- callbacks of the parser ------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers are dropped."""
        if not self._has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note the head; interim responses are dropped."""
        self.status = self._parser.get_status_code()
        if self.status < 200:
            return
        self._has_head = True
        if self._method == "HEAD":  # the parser would wait for a body
            self._is_complete, self._may_reuse = True, False

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body; stop reading while too much waits."""
        self._parts.append(body)
        self._buffered += len(body)
        if self._buffered > _MAX_BUFFERED_BYTES:
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """Note the end of the response."""
        if self.status < 200:
            self.headers = []
            return
        self._is_complete = True
        self._may_reuse = self._may_reuse and self._parser.should_keep_alive()
