"""HTTP protocols of uvicorn with limits for each connection.

uvicorn by itself has no limit for the bytes outside of bodies: request lines, header fields, trailers, chunk sizes,
chunk extensions, blank lines and pipelined requests. With httptools it also appends trailers to `scope["headers"]`,
where a proxy that decides by the header fields has never seen them.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD_TIMEOUT = 30.0  # seconds for the head of a request; twice that at least for a response to be read
_MAX_BYTES_OUTSIDE = 256 * 1024  # bytes outside of bodies between two responses
_MAX_FIELDS = 1000  # header fields of a request; each costs far more memory than its bytes
_MAX_PIPELINED = 16  # requests that wait for the response to an earlier one


class _BoundedConnection(asyncio.Protocol):
    """Limits for the time and the bytes that a connection takes outside of bodies.

    Bytes count from one response to the next, pipelined requests with their bodies. Beyond the limit the connection is
    closed. A connection whose client does not read a response is aborted.
    """

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    flow: Any
    cycle: Any
    _alarm: asyncio.TimerHandle
    _waiting_since = 0.0
    _paused_since = math.inf
    _bytes_outside = 0
    _is_cut = False

    @property
    def answering(self) -> Any:
        """The request that is being answered or was answered last; None before the first request."""
        return self.cycle

    @property
    def has_pipelined(self) -> bool:
        """True if a request waits for the response to an earlier one."""
        raise NotImplementedError

    @property
    def is_idle(self) -> bool:
        """True if no response is outstanding on the connection."""
        return self.answering is None or self.answering.response_complete or self.transport.is_closing()

    @property
    def may_be_reused(self) -> bool:
        """True if the client has not been told of an end of the connection, and cannot be told by this response."""
        return self.is_idle or self.cycle.response_started

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self._alarm = self.loop.call_later(_HEAD_TIMEOUT, self._check_progress)

    def connection_lost(self, exc: Exception | None) -> None:
        self._alarm.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._bytes_outside += len(data)
        super().data_received(data)
        if self._bytes_outside > _MAX_BYTES_OUTSIDE:
            self.transport.close()
        elif self.answering is not None and not self.answering.more_body and not self.transport.is_closing():
            self.flow.resume_reading()  # uvicorn stops at pipelined requests, and would not see the client hang up

    def pause_writing(self) -> None:
        self._paused_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._paused_since = math.inf
        super().resume_writing()

    def body_received(self, size: int) -> None:
        """Count the bytes of a body no longer as outside of bodies."""
        self._bytes_outside = max(0, self._bytes_outside - size)

    def response_completed(self) -> None:
        """Count from zero, unless pipelined requests still wait."""
        self._waiting_since = self.loop.time()
        if not self.has_pipelined:
            self._bytes_outside = 0

    def _check_progress(self) -> None:
        if self.transport.get_protocol() is not self:
            return  # the connection is a WebSocket now
        pause = _HEAD_TIMEOUT
        if self._is_cut or self.loop.time() - self._paused_since >= 2 * _HEAD_TIMEOUT:
            self.transport.abort()
        elif self.is_idle:
            left = self._waiting_since + _HEAD_TIMEOUT - self.loop.time()
            if left > 0:
                pause = left
            else:
                self._is_cut = True
                self.transport.close()
        self._alarm = self.loop.call_later(pause, self._check_progress)


class BoundedH11Protocol(_BoundedConnection, H11Protocol):
    """uvicorn's protocol on h11, with limits. h11 limits trailers by itself, and uvicorn drops them.

    A request with both Content-Length and Transfer-Encoding is refused, as httptools does by itself.
    """

    @property
    def has_pipelined(self) -> bool:
        """True if bytes of a later request wait to be parsed."""
        return bool(self.conn.trailing_data[0])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Watch the events of the parser: it has no callback for the bytes of a body."""
        super().connection_made(transport)
        next_event = self.conn.next_event

        def watched() -> Any:
            event = next_event()
            if isinstance(event, h11.Data):
                self.body_received(len(event.data))
            elif (
                isinstance(event, h11.Request)
                and {b"content-length", b"transfer-encoding"} <= dict(event.headers).keys()
            ):
                raise h11.RemoteProtocolError("two lengths of one body")  # a proxy may have followed the other one
            return event

        vars(self.conn)["next_event"] = watched

    def on_response_complete(self) -> None:
        """Count again before the next request is parsed."""
        self.response_completed()
        super().on_response_complete()


try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    HttpProtocol: Any = BoundedH11Protocol
else:

    class BoundedHttpToolsProtocol(_BoundedConnection, HttpToolsProtocol):
        """uvicorn's protocol on httptools, with limits. Trailers are dropped."""

        _is_head = False
        _answering: Any = None

        @property
        def answering(self) -> Any:
            """The request that is being answered: `cycle` is the newest one that has arrived."""
            return self._answering

        @property
        def has_pipelined(self) -> bool:
            """True if a request waits for the response to an earlier one."""
            return bool(self.pipeline)

        def connection_lost(self, exc: Exception | None) -> None:
            """Tell the request that is being answered, too: uvicorn tells the newest one only."""
            super().connection_lost(exc)
            self.pipeline.clear()
            if self._answering is not None and not self._answering.response_complete:
                self._answering.disconnected = True
                self._answering.message_event.set()

        def on_message_begin(self) -> None:
            """Stop the parser when too many requests wait; uvicorn answers 400 then and closes the connection."""
            if len(self.pipeline) >= _MAX_PIPELINED:
                raise ValueError("too many pipelined requests")
            self._is_head = True
            super().on_message_begin()

        def on_header(self, name: bytes, value: bytes) -> None:
            """Take a header field; drop it if it is a trailer. Too many fields stop the parser."""
            if not self._is_head:
                return
            if len(self.headers) >= _MAX_FIELDS:
                raise ValueError("too many header fields")
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            """Note that the fields that follow are trailers."""
            self._is_head = False
            super().on_headers_complete()
            if not self.pipeline:
                self._answering = self.cycle

        def on_body(self, body: bytes) -> None:
            """Count the bytes of a body apart, unless its request is pipelined."""
            if not self.pipeline:
                self.body_received(len(body))
            super().on_body(body)

        def on_response_complete(self) -> None:
            """Go on with the next pipelined request."""
            if self.pipeline:
                self._answering = self.pipeline[-1][0]
            super().on_response_complete()
            self.response_completed()

    HttpProtocol = BoundedHttpToolsProtocol
"""The protocol of `serve_http`, for `uvicorn.run(app, http=HttpProtocol)`; on httptools where that is installed."""
