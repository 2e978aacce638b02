"""HTTP protocols of uvicorn with limits for each connection.

uvicorn by itself has no limit for the bytes outside of bodies: request lines, header fields, trailers, chunk sizes,
chunk extensions, blank lines and pipelined requests. With httptools it also appends trailers to `scope["headers"]`,
after a proxy has decided by the header fields.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_HEAD_TIMEOUT = 30.0  # seconds for the head of a request; a client has at least twice that to read a response
_MAX_BYTES_OUTSIDE = 256 * 1024  # bytes outside of bodies between two responses
_MAX_FIELDS = 1000  # header fields of a request; each costs far more memory than its bytes
_MAX_H11_HEAD = 16 * 1024  # bytes, unless uvicorn's configuration says otherwise
_MAX_PIPELINED = 16  # requests that wait for the response to an earlier one


class _BoundedConnection(asyncio.Protocol):
    """Limits for the time and the bytes that a connection takes outside of bodies.

    Bytes count from one response to the next, pipelined requests with their bodies. Beyond the limit the connection is
    closed. A connection is aborted if its client does not read a response.
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
    def is_idle(self) -> bool:
        """True if no response is outstanding on the connection."""
        answering = self.answering
        return answering is None or answering.response_complete or self.transport.is_closing()

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
            return
        answering = self.answering
        if answering is not None and not answering.more_body and not self.transport.is_closing():
            self.flow.resume_reading()  # uvicorn stops at pipelined requests, and would not notice a disconnect

    def pause_writing(self) -> None:
        self._paused_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._paused_since = math.inf
        super().resume_writing()

    def _body_received(self, size: int) -> None:
        """Count the bytes of a body no longer as outside of bodies."""
        self._bytes_outside = max(0, self._bytes_outside - size)

    def _response_completed(self, *, has_pipelined: bool) -> None:
        """Count from zero, unless bytes of pipelined requests have arrived."""
        self._waiting_since = self.loop.time()
        if not has_pipelined:
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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Replace the parser by one that counts the bytes of bodies: it has no callback for them."""
        super().connection_made(transport)
        self.conn = _CountingConnection(self._body_received, self.config.h11_max_incomplete_event_size)

    def on_response_complete(self) -> None:
        """Count again before the next request is parsed."""
        self._response_completed(has_pipelined=bool(self.conn.trailing_data[0]))
        super().on_response_complete()


class _CountingConnection(h11.Connection):
    """Parser that counts the bytes of bodies, and refuses two lengths of one body."""

    def __init__(self, body_received: Callable[[int], None], max_head_bytes: int | None) -> None:
        super().__init__(h11.SERVER, max_head_bytes or _MAX_H11_HEAD)
        self._body_received = body_received

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._body_received(len(event.data))
        elif isinstance(event, h11.Request) and {b"content-length", b"transfer-encoding"} <= dict(event.headers).keys():
            raise h11.RemoteProtocolError("two lengths of one body")  # a proxy may have followed the other length
        return event


try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:
    HttpProtocol: Any = BoundedH11Protocol
else:

    class BoundedHttpToolsProtocol(_BoundedConnection, HttpToolsProtocol):
        """uvicorn's protocol on httptools, with limits. Trailers are dropped."""

        answering: Any = None  # uvicorn's `cycle` is the newest request that has arrived

        def connection_lost(self, exc: Exception | None) -> None:
            """Disconnect the request that is being answered, too: uvicorn disconnects the newest one only."""
            super().connection_lost(exc)
            self.pipeline.clear()
            if self.answering is not None and not self.answering.response_complete:
                self.answering.disconnected = True
                self.answering.message_event.set()

        def on_message_begin(self) -> None:
            """Stop the parser when too many requests wait; uvicorn answers 400 then and closes the connection."""
            if len(self.pipeline) >= _MAX_PIPELINED:
                raise ValueError("too many pipelined requests")
            super().on_message_begin()
            self.headers: Any = deque(maxlen=_MAX_FIELDS + 1)

        def on_headers_complete(self) -> None:
            """Give the request its header fields; later fields are trailers. Too many fields stop the parser."""
            if len(self.headers) > _MAX_FIELDS:
                raise ValueError("too many header fields")
            self.scope["headers"] = list(self.headers)
            super().on_headers_complete()
            if not self.pipeline:
                self.answering = self.cycle

        def on_body(self, body: bytes) -> None:
            """Count the bytes of a body apart, unless its request is pipelined."""
            if not self.pipeline:
                self._body_received(len(body))
            super().on_body(body)

        def on_response_complete(self) -> None:
            """Go on with the next pipelined request."""
            if self.pipeline:
                self.answering = self.pipeline[-1][0]
            super().on_response_complete()
            self._response_completed(has_pipelined=bool(self.pipeline))

    HttpProtocol = BoundedHttpToolsProtocol
"""The protocol of `serve_http`, for `uvicorn.run(app, http=HttpProtocol)`; on httptools where that is installed."""
