"""HTTP protocol of uvicorn on httptools, with limits for each connection.

uvicorn by itself has no limit for the bytes outside of bodies: request lines, header fields, trailers, chunk sizes,
chunk extensions, blank lines and pipelined requests. It also appends trailers to `scope["headers"]`, after a proxy has
decided by the header fields.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD_TIMEOUT = 30.0  # seconds for the head of a request; a client has at least twice that to read a response
_MAX_BYTES_OUTSIDE = 256 * 1024  # bytes outside of bodies between two responses
_MAX_FIELDS = 1000  # header fields of a request; each costs far more memory than its bytes
_MAX_PIPELINED = 16  # requests that wait for the response to an earlier one
IDLE_SECONDS = 15
"""Seconds for which an idle connection stays open. Clients such as httpx2 use a connection again for 5 seconds; a
request that meets a closing connection is lost.
"""


class ResponseWriter(asyncio.Transport):
    """Transport of the responses of a connection: sends the head of a response with the beginning of its body.

    A send costs a third of a call. The head of a stream waits for an event that is written at the same moment only.

    Args:
        protocol: The protocol of the connection.
    """

    def __init__(self, protocol: HttpProtocol) -> None:
        self._protocol = protocol
        self._begun: Any = None
        self._head = b""

    def write(self, data: Any) -> None:
        """Send a part of the response that is being written, or keep its head for the next part."""
        cycle = self._protocol.answering
        if cycle is not self._begun and cycle.response_started:
            self._begun, self._head = cycle, data
            if not cycle.expected_content_length or cycle.scope["method"] == "HEAD":
                self._protocol.loop.call_soon(self.write, b"")
        elif self._head or data:
            head, self._head = self._head, b""
            self._protocol.transport.write(head + data)

    def close(self) -> None:
        """Close the connection after all that was written."""
        self.write(b"")
        self._protocol.transport.close()

    def is_closing(self) -> bool:
        """Return True if the connection is closed or about to be."""
        return self._protocol.transport.is_closing()


class HttpProtocol(HttpToolsProtocol):
    """Protocol of `serve_http`, for `uvicorn.run(app, http=HttpProtocol)`. Trailers are dropped.

    Bytes outside of bodies count from one response to the next, pipelined requests with their bodies. Beyond the limit
    the connection is closed. A connection is aborted if its client does not read a response.

    Attributes:
        answering: The request that is being answered or was answered last; None before the first request. uvicorn's
            `cycle` is the newest request that has arrived.
    """

    answering: Any = None
    timeout_keep_alive: int
    _writer: ResponseWriter
    _alarm: asyncio.TimerHandle
    _waiting_since = 0.0
    _paused_since = math.inf
    _bytes_outside = 0
    _max_idle_seconds = math.inf  # since the last response
    _is_cut = False

    @property
    def is_idle(self) -> bool:
        """True if no response is outstanding on the connection."""
        return self.answering is None or self.answering.response_complete or self.transport.is_closing()

    @property
    def may_be_reused(self) -> bool:
        """True if the client has not been told of an end of the connection, and cannot be told by this response."""
        return self.is_idle or self.cycle.response_started

    def connection_made(self, transport: Any) -> None:
        """Begin to watch the progress of the client."""
        super().connection_made(transport)
        self.timeout_keep_alive = max(self.timeout_keep_alive, IDLE_SECONDS)
        self._writer = ResponseWriter(self)
        self._waiting_since = self.loop.time()
        self._alarm = self.loop.call_later(0.0, self._check_progress)

    def connection_lost(self, exc: Exception | None) -> None:
        """Disconnect the request that is being answered, too: uvicorn disconnects the newest one only."""
        self._alarm.cancel()
        super().connection_lost(exc)
        self.pipeline.clear()
        if self.answering is not None and not self.answering.response_complete:
            self.answering.disconnected = True
            self.answering.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Parse bytes; close the connection beyond the limit of bytes outside of bodies."""
        self._bytes_outside += len(data)
        self._max_idle_seconds = math.inf
        super().data_received(data)
        if self._bytes_outside > _MAX_BYTES_OUTSIDE:
            self.transport.close()
        elif self.flow.read_paused and not (self.answering.more_body or self.transport.is_closing()):
            self.flow.resume_reading()  # uvicorn stops at pipelined requests, and would not notice a disconnect

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        self._paused_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        self._paused_since = math.inf
        super().resume_writing()

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
        self.cycle.transport = self._writer
        if not self.pipeline:
            self.answering = self.cycle

    def on_body(self, body: bytes) -> None:
        """Count the bytes of a body no longer as outside of bodies, unless its request is pipelined."""
        if not self.pipeline:
            self._bytes_outside = max(0, self._bytes_outside - len(body))
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Go on with the next pipelined request; count from zero if there is none."""
        self._waiting_since = self.loop.time()
        if self.pipeline:
            self.answering = self.pipeline[-1][0]
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self._bytes_outside = 0
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self._max_idle_seconds = self.timeout_keep_alive  # uvicorn would make a timer for each response

    def _check_progress(self) -> None:
        if self.transport.get_protocol() is not self:
            return  # the connection is a WebSocket now
        now, pause = self.loop.time(), min(self.timeout_keep_alive, _HEAD_TIMEOUT)  # a response may end meanwhile
        if self._is_cut or now - self._paused_since >= 2 * _HEAD_TIMEOUT:
            self.transport.abort()
        elif self.is_idle:
            waited = now - self._waiting_since
            left = min(self._max_idle_seconds, _HEAD_TIMEOUT) - waited
            if left > 0:
                pause = min(pause, left)
            else:
                self.transport.close()
            if waited >= _HEAD_TIMEOUT:
                self._is_cut, pause = True, _HEAD_TIMEOUT
        self._alarm = self.loop.call_later(pause, self._check_progress)


def local_config(app: Any, **options: Any) -> uvicorn.Config:
    """Return the configuration of a server for programs of this machine: it logs nothing, and stops within a second."""
    quiet: dict[str, Any] = {"ws": "none", "log_config": None, "access_log": False, "timeout_graceful_shutdown": 1}
    return uvicorn.Config(app, http=HttpProtocol, **quiet, **options)
