"""Channels of HTTP exchanges: messages in bodies and event streams, each in the trace of its session."""

from __future__ import annotations

import re
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx2

from mcp_bindgen.http.client.endpoint import EVENTS, JSON, SESSION_ID
from mcp_bindgen.http.event_stream import EventDecoder
from mcp_bindgen.http.server.call import VERSION
from mcp_bindgen.runtime.protocol.transport import Oversized
from mcp_bindgen.spec import Store
from mcp_bindgen.testing.judge import Violation

from .recorder import Recorder
from .redaction import CREDENTIAL_NAMES, REDACTED, redacted_text
from .trace import MAX_MESSAGE_BYTES, Sender, Trace, TracedMessage, brief

Headers = Iterable[tuple[bytes, bytes]]

_MAX_SESSIONS = 10_000
_UNPACKED = ("gzip", "deflate")
_SECRET_HEADER = re.compile(rf"auth(?!enticate)|key|session|token|{CREDENTIAL_NAMES}", re.IGNORECASE)
_CHALLENGE = re.compile(r"(www|proxy)-authenticate", re.IGNORECASE)


@dataclass(frozen=True)
class Head:
    """Head of an HTTP request or response.

    Attributes:
        headers: Names in lower case, and values.
        line: Members for the recording: `method` and `target`, or `status`.
    """

    headers: Mapping[str, str]
    line: Mapping[str, Any]

    @property
    def media_type(self) -> str:
        """Media type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def document(self) -> dict[str, Any]:
        """Return the head as a JSON object without secrets."""
        return {**self.line, "headers": {name: _shown(name, value) for name, value in self.headers.items()}}


def head(headers: Headers, **line: Any) -> Head:
    """Return a head; headers of one name are joined."""
    return Head(dict(httpx2.Headers(list(headers), encoding="latin-1")), line)


def _shown(name: str, value: str) -> str:
    if _CHALLENGE.fullmatch(name):
        return value
    return REDACTED if _SECRET_HEADER.search(name) else redacted_text(value)


class Sessions:
    """Traces of the sessions behind one proxy; used in the thread of the recorder.

    Args:
        recorder: Counts and writes the messages.
        path: Path of the server; messages are also read at the endpoints that its streams name (HTTP+SSE).
    """

    def __init__(self, recorder: Recorder, path: str) -> None:
        self.recorder = recorder
        self._path = path
        self._revisions = frozenset(Store().pins)
        self._numbers = count(1)
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._extensions: frozenset[str] = frozenset()

    def exchange(self, method: str, target: str, headers: Headers) -> Request:
        """Return the channel for the next request."""
        return Request(self, next(self._numbers), head(headers, method=method, target=redacted_text(target)), target)

    def has_messages(self, target: str) -> bool:
        """Return whether bodies at a target are messages of the protocol."""
        return target.partition("?")[0] == self._path or brief(target) in self._traces

    def of(self, request: Request) -> Trace:
        """Return the trace of the session of a request; a new one if it has no session."""
        for name in map(brief, (request.head.headers.get(SESSION_ID, ""), request.target)):
            if name in self._traces:
                self._traces.move_to_end(name)
                return self._traces[name]
        stated = request.head.headers.get(VERSION.decode(), "")
        revision = stated if stated in self._revisions else ""
        return Trace(self.recorder.write, revision, self._extensions)

    def begin(self, name: str, trace: Trace) -> None:
        """Begin a session; the oldest one is forgotten above the limit."""
        self._traces[brief(name)] = trace
        if len(self._traces) > _MAX_SESSIONS:
            self._traces.popitem(last=False)

    def learn(self, trace: Trace) -> None:
        """Remember the extensions of a client without a session for its next requests."""
        self._extensions |= trace.extensions


class _Body:
    """Body with one JSON text or a stream of events; other bodies are skipped.

    Args:
        sender: The side that sent it.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender: Sender = sender
        self._size = 0
        self._text = bytearray()
        self._is_after_gap = self._is_seen = False
        self._events: EventDecoder | None = None
        self._unpacker: Any = None
        self._packing = ""

    def skip(self) -> None:
        """Go on with the next event; a body with a gap is not read."""
        self._is_after_gap = True
        self._text.clear()

    def _open(self, head: Head) -> None:
        self._events = EventDecoder(MAX_MESSAGE_BYTES) if head.media_type == EVENTS else None
        self._packing = head.headers.get("content-encoding", "identity").strip().lower()
        if self._packing in _UNPACKED:
            self._unpacker = zlib.decompressobj(32 + zlib.MAX_WBITS)

    def _note(self, request: Request, seconds: float, document: Mapping[str, Any], reason: str = "") -> None:
        """Write the head of a request or response without a message."""
        found = (Violation("", "HTTP", reason),) if reason else ()
        elapsed_ms = None if self is request else round((seconds - request.seconds) * 1000, 3)
        more = request.trace.revision, elapsed_ms, found, None, request.number, document
        request.sessions.recorder.write(
            TracedMessage(seconds, self._sender, self._size, "http", request.name, None, *more)
        )

    def _texts(self, data: bytes) -> Iterable[tuple[str, bytes | Oversized]]:
        """Yield type and data of the events that the next bytes complete; keep the bytes of another body."""
        self._size += len(data)
        if self._packing not in ("identity", *_UNPACKED):
            return
        while data:
            if self._events is None and (self._is_after_gap or len(self._text) > MAX_MESSAGE_BYTES):
                return  # the rest is not even unpacked
            if self._unpacker is None:
                part, data = data, b""
            else:
                try:
                    part = self._unpacker.decompress(data, MAX_MESSAGE_BYTES + 1 - len(self._text))
                except zlib.error:
                    self._packing = "damaged"
                    return
                data = self._unpacker.unconsumed_tail
            if self._events is None:
                self._text += part
                continue
            if self._is_after_gap:
                self._events.connect()
                _, mark, part = part.replace(b"\r\n", b"\n").partition(b"\n\n")
                self._is_after_gap = not mark
            yield from self._events.feed(part)


class Request(_Body):
    """Channel of the body of an HTTP request, and with it of its exchange.

    Attributes:
        number: Number of the exchange.
        head: Head of the request.
        target: Its target, with the query.
        seconds: Time of the request.
    """

    def __init__(self, sessions: Sessions, number: int, head: Head, target: str) -> None:
        super().__init__("client")
        self.number = number
        self.head = head
        self.target = target
        self.seconds = 0.0
        self.sessions = sessions
        self._trace: Trace | None = None

    @property
    def name(self) -> str:
        """Method and target of the request, without secrets."""
        return f"{self.head.line['method']} {self.head.line['target']}"

    @property
    def trace(self) -> Trace:
        """Trace of the session."""
        if self._trace is None:
            self._trace = self.sessions.of(self)
        return self._trace

    @property
    def has_message(self) -> bool:
        """True if the body is a message of the protocol."""
        is_json = self.head.line["method"] == "POST" and self.head.media_type == JSON
        return is_json and self.sessions.has_messages(self.target)

    def read(self, data: bytes, seconds: float) -> None:
        """Keep a part of the body."""
        if not self._is_seen:
            self._is_seen, self.seconds = True, seconds
            self._open(self.head)
        for _ in self._texts(data):
            pass

    def close(self, seconds: float) -> None:
        """Record the message, or the request without one."""
        if self.has_message and not self._is_after_gap and self._text:
            more: dict[str, Any] = {"stream": self.number, "http": self.head.document()}
            self.trace.record("client", bytes(self._text), self.seconds, **more)
        else:
            self._note(self, self.seconds, self.head.document())
        self._text.clear()


class Response(_Body):
    """Channel of the body of an HTTP response.

    Args:
        request: The channel of the request.
        head: Head of the response.
    """

    def __init__(self, request: Request, head: Head) -> None:
        super().__init__("server")
        self._request, self._head = request, head
        self._has_noted_head = False

    def read(self, data: bytes, seconds: float) -> None:
        """Record the messages of the events that the next bytes complete."""
        self._begin(seconds)
        for type_, text in self._texts(data):
            if type_ == "endpoint" and isinstance(text, bytes):
                self._request.sessions.begin(text.decode("latin-1"), self._request.trace)
            elif type_ == "message" and text:
                self._record(text, seconds)

    def close(self, seconds: float) -> None:
        """Record the message, or the response without one."""
        self._begin(seconds)
        request = self._request
        is_message = self._head.media_type == JSON and request.sessions.has_messages(request.target)
        if is_message and self._text:
            self._record(bytes(self._text), seconds)
        elif self._packing not in ("identity", *_UNPACKED) and self._size:
            self._plain(seconds, f"a body with the content encoding {self._packing[:40]} is not checked")
        elif not self._has_noted_head:
            self._plain(seconds)
        self._text.clear()

    def _begin(self, seconds: float) -> None:
        if self._is_seen:
            return
        self._is_seen = True
        self._open(self._head)
        trace, request = self._request.trace, self._request
        if (session := self._head.headers.get(SESSION_ID)) is not None:
            request.sessions.begin(session, trace)
        elif trace.extensions:
            request.sessions.learn(trace)
        if self._events is not None and not request.has_message:
            self._plain(seconds)  # the stream may stay silent

    def _record(self, text: bytes | Oversized, seconds: float) -> None:
        more: dict[str, Any] = {"stream": self._request.number}
        more["http"] = None if self._has_noted_head else self._head.document()
        self._has_noted_head = True
        if isinstance(text, Oversized):
            self._request.trace.oversized("server", seconds, **more)
            return
        is_repeated = "last-event-id" in self._request.head.headers
        self._request.trace.record("server", text, seconds, is_repeated=is_repeated, **more)

    def _plain(self, seconds: float, reason: str = "") -> None:
        request, head = self._request, self._head
        document = {"status": head.line["status"]} if self._has_noted_head else head.document()
        self._has_noted_head = True
        self._note(request, seconds, document, reason)
