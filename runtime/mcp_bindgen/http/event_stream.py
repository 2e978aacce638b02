"""Server-sent events: encoder and bounded decoder (WHATWG HTML, "Server-sent events")."""

from __future__ import annotations

from typing import NamedTuple

from mcp_bindgen.runtime.protocol.transport import Oversized

from .headers import is_plain

KEEP_ALIVE = b": keep-alive\n\n"
"""Comment that keeps an idle connection open; clients skip it."""

MIN_RETRY = 0.1
"""Least seconds before a client connects again, whatever the server asks for."""

_RETRY = 1.0  # seconds, unless the server names a time
_MAX_RETRY = 30.0
_MAX_ID = 1024  # bytes
_HEAD = 256  # bytes that are kept of an event that is too large
_FIELD = 64  # bytes of a line beside its value
_BOM = b"\xef\xbb\xbf"


def encode(data: bytes | None = None, id: str | None = None, event: str = "", retry: float | None = None) -> bytes:
    """Encode an event; fields that are None are left out.

    Each line end in `data` arrives as LF. In JSON text all line ends are white space.

    Args:
        data: Data of the event. Clients ignore an event without data, except for its `id` and `retry`.
        id: Id of the event, without line ends and NUL; a client resumes the stream after it.
        event: Type of the event, without line ends; `message` by default.
        retry: Seconds after which a client reconnects.
    """
    head = f"event: {event}\n" if event else ""
    if id is not None:
        head += f"id: {id}\n"
    if retry is not None:
        head += f"retry: {round(retry * 1000)}\n"
    if data is None:
        return head.encode() + b"\n"
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return b"%bdata: %b\n\n" % (head.encode(), data.replace(b"\n", b"\ndata: "))


class ServerSentEvent(NamedTuple):
    """Event of a stream: its type and its data."""

    type: str
    data: bytes | Oversized


class EventDecoder:
    """Decoder of a stream of events over any number of connections.

    The decoder of httpx2 fails at an event that is too large, and copies each event into text. This decoder skips such
    an event and goes on.

    Args:
        limit: Largest data of an event, in bytes; larger data is skipped and replaced by `Oversized`.
        min_retry: Least seconds before connecting again.

    Attributes:
        last_id: Id of the last event; None if the stream cannot be resumed after it.
        retry: Seconds to wait before connecting again, as the server asks.
        received: Bytes so far.
        progress: Events so far with data or a new id, and pauses that the server asks for between two polls.
    """

    def __init__(self, limit: int, min_retry: float = MIN_RETRY) -> None:
        self.limit = limit
        self.progress: int = 0
        self._min_retry = min_retry
        self.last_id: str | None = None
        self.retry: float = _RETRY
        self.received: int = 0
        self.connect()

    def connect(self) -> None:
        """Begin with a new connection; forget an incomplete event."""
        self._first = True
        self._after_cr = False
        self._line = bytearray()  # incomplete
        self._skipped = 0  # bytes of that line
        self._reset()

    def _reset(self) -> None:
        self._type = b""
        self._id: bytes | None = None
        self._data = bytearray()  # one object, as short lines in a list take far more memory than their bytes
        self._size = 0  # of the data, each line with its end
        self._oversized: Oversized | None = None

    def retry_after(self, failures: int) -> float:
        """Return the seconds to wait before connecting again; failures in a row make them longer."""
        retry = max(self.retry, self._min_retry)
        return min(retry * (1 << min(failures, 10)), max(retry, _MAX_RETRY))

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Decode a part of the stream; return the events that it completes."""
        events: list[ServerSentEvent] = []
        if not chunk:
            return events
        self.received += len(chunk)
        after_cr, self._after_cr = self._after_cr, chunk.endswith(b"\r")
        if after_cr:
            chunk = chunk.removeprefix(b"\n")
        lines = chunk.splitlines()
        rest = lines.pop() if lines and not chunk.endswith((b"\r", b"\n")) else b""
        for line in lines:
            if self._line:
                self._keep(line)
                line = bytes(self._line)
            self._read(line, events)
            self._line.clear()
            self._skipped = 0
        if rest:
            self._keep(rest)
        return events

    def _keep(self, part: bytes) -> None:
        """Add to the incomplete line; keep only the beginning of a line that is too long."""
        self._line += part
        if len(self._line) > self.limit + _FIELD + _HEAD:
            self._skipped += len(self._line) - _FIELD - _HEAD
            del self._line[_FIELD + _HEAD :]

    def _read(self, line: bytes, events: list[ServerSentEvent]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + self._skipped + 1
            if self._size <= self.limit + 1:
                self._data += value + b"\n"
            elif self._oversized is None:
                self._oversized = Oversized(self.limit, bytes(self._data[:_HEAD] + value)[:_HEAD])
                self._data.clear()
        elif name == b"event":
            self._type = value
        elif name == b"id" and b"\0" not in value:
            self._id = value if len(value) + self._skipped <= _MAX_ID else b""
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = int(value) / 1000
            self.progress += self.retry > self._min_retry

    def _dispatch(self, events: list[ServerSentEvent]) -> None:
        last_id = self.last_id
        if self._id is not None:
            id_ = self._id.decode("latin-1")
            self.last_id = id_ if id_ and is_plain(id_) else None
        self.progress += self._size > 1 or self.last_id != last_id
        if self._size:
            type_ = self._type.decode("utf-8", "replace") or "message"
            events.append(ServerSentEvent(type_, self._oversized or bytes(memoryview(self._data)[:-1])))
        self._reset()
