"""Encode and decode server-sent events (WHATWG HTML, "Server-sent events": Interpreting an event stream)."""

from __future__ import annotations

from ..core.transport import Oversized
from .headers import is_plain

PAUSE = 1.0
"""Seconds before a stream that ended is asked for again, unless its server names another time."""

_LONGEST_PAUSE = 30.0
_HEAD = 256
_LONGEST_ID = 1024
_FIELD = 64  # bytes of a line beside its value
_BOM = b"\xef\xbb\xbf"


KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which clients skip and which keeps an idle connection open."""


def encode(
    data: bytes | None = None, id: str | None = None, event: str | None = None, retry: int | None = None
) -> bytes:
    """Encode an event; fields that are `None` are left out.

    A line end in `data` arrives as LF, whichever it was: in JSON text all of them are white space.

    Args:
        data: What it carries. Without any it is no event to clients, but `id` and `retry` count.
        id: After which event the stream is resumed; without line ends and NUL.
        event: Its type, without line ends; clients take `message` when it is left out.
        retry: Milliseconds after which a client shall reconnect.
    """
    head = "" if event is None else f"event: {event}\n"
    if id is not None:
        head += f"id: {id}\n"
    if retry is not None:
        head += f"retry: {retry}\n"
    if data is None:
        return head.encode() + b"\n"
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return b"%bdata: %b\n\n" % (head.encode(), data.replace(b"\n", b"\ndata: "))


class EventStream:
    """One stream of a server, however many connections it takes to hear it to its end.

    Args:
        limit: The largest message, in bytes; a larger one is skipped and `Oversized` stands in for it.

    Attributes:
        last_id: The id of the last event, if the stream can be resumed after it.
        retry: Seconds to wait before asking for the stream again.
        heard: Bytes so far.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.last_id: str | None = None
        self.retry = PAUSE
        self.heard = 0
        self.begin()

    def begin(self) -> None:
        """A new connection begins: an event that was not complete is forgotten."""
        self._fresh = True
        self._return = False  # the last byte was CR, of which the next one may be the other half
        self._parts: list[bytes] = []  # of a line that is not complete
        self._pending = 0  # bytes of that line
        self._forget()

    def _forget(self) -> None:
        self._data: list[bytes] = []
        self._size = -1  # bytes of the data, and the line ends between them
        self._oversized: Oversized | None = None
        self._kind = b""
        self._id: bytes | None = None

    def pause(self, failures: int) -> float:
        """Seconds to wait before asking again: what the server wants, and longer after failures in a row."""
        return min(self.retry * (1 << min(failures, 10)), max(self.retry, _LONGEST_PAUSE))

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """The messages that `chunk` completes."""
        found: list[bytes | Oversized] = []
        self.heard += len(chunk)
        if self._fresh and chunk:
            self._fresh = False
            chunk = chunk.removeprefix(_BOM)
        if self._return and chunk:
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return found
        self._return = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        for line in lines:
            if self._parts:
                self._add(line)
                line = b"".join(self._parts)
                self._parts = []
            self._take(line, found)
            self._pending = 0
        if rest:
            self._add(rest)
        return found

    def _add(self, part: bytes) -> None:
        """Keeps a part of a line; of a line that is too long, the beginning."""
        before, self._pending = self._pending, self._pending + len(part)
        if self._pending <= self.limit + _FIELD:
            self._parts.append(part)
        elif before <= self.limit + _FIELD:
            self._parts = [b"".join([*self._parts, part[:_HEAD]])[:_HEAD]]

    def _take(self, line: bytes, found: list[bytes | Oversized]) -> None:
        if not line:
            self._dispatch(found)
            return
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        lost = max(0, self._pending - len(line))
        if name == b"data":
            self._size += 1 + len(value) + lost
            if self._size <= self.limit:
                self._data.append(value)
            elif self._oversized is None:
                self._oversized = Oversized(self.limit, b"\n".join([*self._data, value])[:_HEAD])
                self._data.clear()
        elif name == b"event":
            self._kind = value
        elif name == b"id" and b"\0" not in value:
            self._id = value if len(value) + lost <= _LONGEST_ID else b""
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = int(value) / 1000

    def _dispatch(self, found: list[bytes | Oversized]) -> None:
        if self._id is not None:
            id_ = self._id.decode("latin-1")
            self.last_id = id_ if id_ and is_plain(id_) else None
        if self._size > 0 and self._kind in (b"", b"message"):
            found.append(self._oversized or b"\n".join(self._data))
        self._forget()
