"""Know an HTTP request and write its response, straight on ASGI."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from mcp_bindgen.runtime.protocol import jsonrpc, observation
from mcp_bindgen.runtime.protocol.access import Identity, RequestOrigin
from mcp_bindgen.runtime.protocol.errors import (
    INVALID_REQUEST,
    ProtocolError,
    ServerUnavailable,
    StoreFull,
    StoreUnavailable,
    TooManyRequests,
)

from ..event_stream import encode
from .request_log import RequestRecord

JSON = b"application/json"
EVENTS = b"text/event-stream"
TEXT = b"text/plain; charset=utf-8"
VERSION = b"mcp-protocol-version"
NOT_STORED = "sessions cannot be stored or read at the moment"
STOPPING = "the server is stopping"


class ClientDisconnected(Exception):
    """The client hung up."""


class HttpError(Exception):
    """Refuse a request; what handles it raises this, and it becomes the response.

    Args:
        status: The HTTP status.
        reason: The body: text, or the error of a JSON-RPC response without an id.
        headers: Headers of the response.
    """

    def __init__(self, status: int, reason: str | ProtocolError, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(str(reason))
        self.status, self.reason, self.headers = status, reason, headers


def refused(status: int, reason: str) -> HttpError:
    """Make the error for a request that is not as it has to be."""
    return HttpError(status, ProtocolError(INVALID_REQUEST, reason))


RETRY_SOON = (b"retry-after", b"1")
"""The header of refusals that may be over in a moment."""


def unavailable(reason: str) -> HttpError:
    """Make the error that tells a client that this server cannot serve anybody at the moment."""
    error = ServerUnavailable(reason)
    return HttpError(503, error, (b"retry-after", b"%d" % error.retry_after))


def too_many(reason: str) -> HttpError:
    """Make the error that tells a client that too much is going on at once: nothing was done, and it may try again."""
    observation.refused(reason)
    return HttpError(429, TooManyRequests(reason), RETRY_SOON)


def not_stored(error: StoreUnavailable) -> HttpError:
    """Make the error that tells a client that a store cannot take or give something."""
    return too_many(str(error)) if isinstance(error, StoreFull) else unavailable(NOT_STORED)


class PublicHeaders(Mapping[str, str]):
    """View of HTTP headers without those that hold credentials."""

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        key = name.lower().encode("latin-1", "replace")
        if key in _CREDENTIALS:
            raise KeyError(name)
        return self._headers[key].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._headers if name not in _CREDENTIALS)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_CREDENTIALS = frozenset((b"authorization", b"proxy-authorization", b"dpop", b"cookie"))


@dataclass(slots=True, eq=False)
class Call:
    """An HTTP request, and the way to respond to it.

    Attributes:
        scope: Its ASGI scope.
        receive: Gives its body, and then says when the client has hung up.
        send: Takes the response.
        headers: Its headers, names in lower case; what was sent twice is joined by commas (RFC 9110, section 5.3).
            Those of MCP are no lists: joined by line breaks, they say nothing that could be right.
        principal: Who sent it, if that is known.
        identity: Whose token came with it, where tokens are verified.
        begun: Whether its response has begun.
        held: The bytes of its body that count against the limits of bodies.
        share: What they count against.
        record: The record of this request, if requests are logged.
    """

    scope: Scope
    receive: Receive
    send: Send
    headers: dict[bytes, bytes]
    principal: str | None = None
    identity: Identity | None = None
    begun: bool = False
    held: int = 0
    share: Any = None
    record: RequestRecord | None = None

    @property
    def origin(self) -> RequestOrigin:
        """Origin of the messages in its body."""
        client = self.scope.get("client")
        address = None if client is None else client[0]
        return RequestOrigin(self.identity, self.principal, PublicHeaders(self.headers), address, "tcp")

    @property
    def path(self) -> str:
        """Its path below the place where the application is mounted."""
        return self.scope["path"].removeprefix(self.scope.get("root_path", "").rstrip("/")) or "/"

    def header(self, name: bytes) -> str | None:
        """Return a header by its name in lower case, without blanks around it; `None` when it was not sent."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip(" \t")

    def accepts(self, kind: bytes) -> bool:
        """Tell whether the client takes this kind of answer (RFC 9110, section 12.5.1); it must say so."""
        wanted = {"*/*", kind.decode(), kind.decode().partition("/")[0] + "/*"}
        for part in (self.header(b"accept") or "").lower().split(","):
            name, *parameters = [word.strip() for word in part.split(";")]
            if name in wanted and not any(word.replace(" ", "") in ("q=0", "q=0.0", "q=0.00") for word in parameters):
                return True
        return False

    async def hung_up(self) -> None:
        """Wait until the client has hung up; the body must have been read."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self, status: int, body: bytes = b"", kind: bytes = JSON, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
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

    async def open_stream(self, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Begin a response of server-sent events, which proxies shall pass on as they come."""
        sent = [(b"content-type", EVENTS), (b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no")]
        self.begun = True
        await self.send({"type": "http.response.start", "status": 200, "headers": [*sent, *headers]})

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Send a part of a stream; wait while the client is slow."""
        await self.send({"type": "http.response.body", "body": data, "more_body": more})


def check_version(call: Call, supported: Collection[str]) -> None:
    """Check that a request names a revision that is served, if it names one; raises `HttpError`."""
    revision = call.header(VERSION)
    if revision is not None and revision not in supported:
        reason = f"MCP-Protocol-Version: this revision is not served; supported are {', '.join(supported)}"
        raise HttpError(400, ProtocolError(INVALID_REQUEST, reason, {"supported": list(supported)}))


def event(data: bytes, id: str | None = None) -> bytes:
    """Encode a message as a server-sent event."""
    return encode(data, id, "message")
