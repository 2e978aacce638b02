"""One HTTP request and the way to respond to it, straight on ASGI."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Collection, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import anyio
from starlette.types import Receive, Scope, Send

from mcp_bindgen.runtime.concurrency import T, first_step
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity, RequestOrigin
from mcp_bindgen.runtime.protocol.errors import INVALID_REQUEST, ConnectionClosed, ProtocolError

from ..event_stream import KEEP_ALIVE, encode
from .errors import HttpError, RawHeaders
from .limits import Budget
from .request_log import RequestRecord

JSON = b"application/json"
EVENTS = b"text/event-stream"
TEXT = b"text/plain; charset=utf-8"
VERSION = b"mcp-protocol-version"

_CREDENTIALS = frozenset((b"authorization", b"proxy-authorization", b"dpop", b"cookie"))
_FAREWELL_SECONDS = 1.0  # to end the response of a client that was slow, or has disconnected
_HEADERS = ((b"content-type", EVENTS), (b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no"))
"""Headers of streams."""


async def within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    """Await with a timeout; make no timer if it completes at once.

    This is the way to limit a coroutine that was begun by hand: a scope of anyio must not close around open ones.

    Raises:
        TimeoutError: It takes longer.
    """
    result, rest = first_step(work)
    if rest is not None:
        async with asyncio.timeout(seconds):
            result = await rest
    return result  # type: ignore[no-any-return]


@dataclass(slots=True, eq=False, repr=False)
class PublicHeaders(Mapping[str, str]):
    """View of HTTP headers without credentials."""

    raw: Mapping[bytes, bytes]
    """The headers with credentials, names in lower case."""

    def __getitem__(self, name: str) -> str:
        key = name.lower().encode("latin-1", "replace")
        if key in _CREDENTIALS:
            raise KeyError(name)
        return self.raw[key].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self.raw if name not in _CREDENTIALS)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def header_text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """Return a header by its name in lower case, without blanks around it; None if it was not sent."""
    value = headers.get(name)
    return None if value is None else value.decode("latin-1").strip(" \t")


@dataclass(slots=True, eq=False)
class HttpCall:
    """HTTP request, and the way to respond to it.

    Attributes:
        scope: Its ASGI scope.
        receive: Returns its body, and then the disconnect of the client.
        send: Takes the response.
        headers: Its headers, names in lower case; repeated headers are joined by commas (RFC 9110, section 5.3).
            Headers of MCP are no lists: joined by line breaks, they match nothing.
        principal: Its sender, if known.
        identity: The identity of its token, where tokens are verified.
        begun: True if its response has begun.
        counted_bytes: Bytes of its body that count against the limits of bodies.
        byte_budget: The budget that they count against.
        record: The log record of this request, if requests are logged.
    """

    scope: Scope
    receive: Receive
    send: Send
    headers: dict[bytes, bytes]
    principal: str | None = None
    identity: Identity | None = None
    begun: bool = False
    counted_bytes: int = 0
    byte_budget: Budget | None = None
    record: RequestRecord | None = None

    @property
    def origin(self) -> RequestOrigin:
        """Origin of the messages in its body."""
        client = self.scope.get("client")
        address = None if client is None else client[0]
        return RequestOrigin(self.identity, self.principal, PublicHeaders(self.headers), address, "tcp")

    @property
    def path(self) -> str:
        """Its path below the mount point of the application."""
        return self.scope["path"].removeprefix(self.scope.get("root_path", "").rstrip("/")) or "/"

    def url_path(self, path: str) -> str:
        """Return a path below the mount point as clients write it."""
        return quote(self.scope.get("root_path", "").rstrip("/")) + path

    def header(self, name: bytes) -> str | None:
        """Return a header by its name in lower case, without blanks around it; None if it was not sent."""
        return header_text(self.headers, name)

    def accepts(self, *kinds: bytes) -> bool:
        """Return True if the client accepts all media types (RFC 9110, section 12.5.1); it must send `Accept`."""
        return _accepts(self.headers.get(b"accept", b""), *kinds)

    def session_expires_at(self) -> float | None:
        """Return the time when the token of the request expires, in epoch seconds; None without a limit."""
        return None if self.identity is None else self.identity.session_expires_at

    async def respond(self, status: int, body: bytes = b"", kind: bytes = JSON, headers: RawHeaders = ()) -> None:
        """Send a whole response."""
        sent = [(b"content-length", b"%d" % len(body)), *headers]
        if body:
            sent.append((b"content-type", kind))
        self.begun = True
        await self.send({"type": "http.response.start", "status": status, "headers": sent})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, error: HttpError) -> None:
        """Send an error as the response."""
        if isinstance(error.reason, str):
            await self.respond(error.status, error.reason.encode(), TEXT, error.headers)
        else:
            await self.respond(error.status, jsonrpc.failure(None, error.reason), headers=error.headers)

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Send a part of a stream; wait while the client is slow."""
        await self.send({"type": "http.response.body", "body": data, "more_body": more})


class EventWriter:
    """Writer of one response of server-sent events; the first write begins it.

    Args:
        call: The request.
        write_timeout: Seconds for the client to read an event.
        keep_alive: Seconds between comments on an idle stream; 0 sends none.
        headers: Headers of the response.

    Attributes:
        is_streaming: True if the response has begun as a stream.
        has_ended: True if the response has ended, or the client does not read.
    """

    is_streaming: bool = False
    has_ended: bool = False
    _written_at = 0.0
    _turn: asyncio.Lock | None = None

    def __init__(self, call: HttpCall, write_timeout: float, keep_alive: float = 0.0, headers: RawHeaders = ()) -> None:
        self._call = call
        self._write_timeout = write_timeout
        self._keep_alive = keep_alive
        self._headers = headers

    async def open(self) -> None:
        """Begin the response."""
        self.is_streaming = self._call.begun = True
        headers = [*_HEADERS, *self._headers]
        await self._call.send({"type": "http.response.start", "status": 200, "headers": headers})

    async def write(self, data: bytes) -> None:
        """Send a part of the stream; raises `ConnectionClosed` if the response is over or the client does not read."""
        if self.has_ended:
            raise ConnectionClosed("the request is answered")
        try:
            await within(self._write_timeout, self._write(data))
        except (TimeoutError, OSError):
            self.has_ended = True
            raise ConnectionClosed("the client does not read") from None

    async def _write(self, data: bytes) -> None:
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            self._written_at = time.monotonic()
            if not self.is_streaming:
                await self.open()
            await self._call.write(data)

    async def end(self) -> None:
        """End the stream, if the client still reads it."""
        self.has_ended = True
        with anyio.move_on_after(_FAREWELL_SECONDS, shield=True):
            await self._call.write(b"", more=False)

    async def while_connected(self, work: Awaitable[T]) -> T | None:
        """Await work, and keep an idle stream alive; cancel the work, and return None, when the client disconnects."""
        task = asyncio.current_task()
        assert task is not None
        is_gone = False

        async def watch() -> None:
            nonlocal is_gone
            pause = self._keep_alive
            with suppress(ConnectionClosed):
                while not await self._is_disconnected(pause):
                    pause = self._keep_alive
                    if pause and self.is_streaming:
                        pause -= time.monotonic() - self._written_at
                        if pause <= 0:
                            pause = self._keep_alive
                            await self.write(KEEP_ALIVE)
            is_gone = True
            task.cancel()

        watching = asyncio.create_task(watch())
        try:
            result = await work
            if is_gone:
                task.uncancel()  # the work has finished all the same
            return result
        except asyncio.CancelledError:
            if not is_gone or task.uncancel():  # the task is cancelled for another reason, too
                raise
            return None
        finally:
            watching.cancel()

    async def _is_disconnected(self, seconds: float) -> bool:
        """Return True once the client disconnects, False after some seconds, if any; the body must have been read."""
        try:
            async with asyncio.timeout(seconds or None):
                while (await self._call.receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True


def check_version(call: HttpCall, supported: Collection[str]) -> None:
    """Check that a request names a supported revision, if it names one; raises `HttpError`."""
    revision = call.header(VERSION)
    if revision is not None and revision not in supported:
        reason = f"MCP-Protocol-Version: this revision is not served; supported are {', '.join(supported)}"
        raise HttpError(400, ProtocolError(INVALID_REQUEST, reason, {"supported": list(supported)}))


def event(data: bytes, id: str | None = None) -> bytes:
    """Encode a message as a server-sent event."""
    return encode(data, id, "message")


@lru_cache(maxsize=64)
def _accepts(header: bytes, *kinds: bytes) -> bool:
    accepted: set[str] = set()
    for part in header.decode("latin-1").lower().split(","):
        name, *parameters = [word.strip() for word in part.split(";")]
        if not any(word.replace(" ", "") in ("q=0", "q=0.0", "q=0.00") for word in parameters):
            accepted.add(name)
    ranges = ({"*/*", kind.decode(), kind.decode().partition("/")[0] + "/*"} for kind in kinds)
    return not any(map(accepted.isdisjoint, ranges))
