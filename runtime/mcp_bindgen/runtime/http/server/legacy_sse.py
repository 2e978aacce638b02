"""The server's side of HTTP with server-sent events (MCP 2024-11-05, "Transports": HTTP with SSE).

A client opens a stream with GET and learns from its first event where to POST its messages; answers come as events.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...core.errors import ConnectionClosed
from ...core.transport import MAX_MESSAGE, Oversized
from ...endpoint.server import Server, lifespans, serve
from .origin_policy import LOOPBACK, Guard

_EVENTS = 8  # that wait for a client which is slow to read
_AHEAD = 256 * 1024  # bytes that are taken from such a client, or else neither side might get on
_POSTS = 64  # of a session that wait for their turn
_PATIENCE = 30.0  # seconds without a byte of a message that was begun
_GRACE = 5  # seconds for what a closed session still has to say

logging.getLogger("sse_starlette").setLevel(logging.INFO)  # its DEBUG shows whatever is sent, session ids included


class SseServerTransport:
    """The server's end of one stream. Nothing piles up in it: whoever sends, on either side, waits for the other.

    Args:
        endpoint: Where the client shall POST to.

    Attributes:
        events: What to write to the stream.
        turn: Held by the POST that is being taken, so that messages keep their order and only one is in memory.
    """

    def __init__(self, endpoint: str) -> None:
        self._arriving, self._incoming = anyio.create_memory_object_stream[bytes](0)
        self._outgoing, self.events = anyio.create_memory_object_stream[bytes](_EVENTS)
        self._outgoing.send_nowait(_event(b"endpoint", endpoint.encode()))
        self._writing = anyio.Lock(fast_acquire=True)
        self._ahead = _AHEAD
        self.turn = anyio.Lock(fast_acquire=True)

    async def receive(self) -> Sequence[bytes | Oversized]:
        """The next message; few are taken while the client leaves unread what it was sent."""
        if self._ahead <= 0:
            async with self._writing:
                pass
        try:
            message = await self._incoming.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ()
        if self._writing.locked():
            self._ahead -= len(message) + _AHEAD // 16
        return [message]

    async def send(self, messages: Sequence[bytes]) -> None:
        """Sends messages, each as an event."""
        try:
            async with self._writing:
                await self._outgoing.send(b"".join([_event(b"message", message) for message in messages]))
                self._ahead = _AHEAD
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionClosed("the client is gone") from None

    async def close(self) -> None:
        """Ends the session; what was sent before still reaches the client."""
        self._incoming.close()
        self._outgoing.close()

    async def arrive(self, message: bytes) -> bool:
        """Hands a message to the session, as soon as it takes one; says whether there still was a session."""
        try:
            await self._arriving.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    async def end(self) -> None:
        """The stream is over: nobody waits for it any longer."""
        await self.close()
        self._arriving.close()
        self.events.close()


def _event(kind: bytes, data: bytes) -> bytes:
    return b"event: %b\r\ndata: %b\r\n\r\n" % (kind, b"\r\ndata: ".join(data.splitlines()))


@dataclass(eq=False)
class _Sessions:
    """The open streams. As an ASGI application it opens one more; `post` takes the messages of all."""

    servers: Sequence[Server]
    messages: str
    limit: int
    keep_alive: float
    most: int
    open: dict[str, SseServerTransport] = field(default_factory=dict[str, SseServerTransport])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(self.open) >= self.most:
            await PlainTextResponse("too many sessions", 503)(scope, receive, send)
            return
        id_ = secrets.token_urlsafe(32)
        prefix = quote(scope.get("root_path", "").rstrip("/"))
        transport = self.open[id_] = SseServerTransport(f"{prefix}{self.messages}?session_id={id_}")

        leaving = anyio.Event()

        async def leave() -> None:
            await leaving.wait()
            await transport.close()

        async def work() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(leave)
                await serve(transport, *self.servers)
                await anyio.sleep(_GRACE)
                stream.cancel()

        response = EventSourceResponse(
            transport.events,
            ping=self.keep_alive,
            ping_message_factory=lambda: ServerSentEvent(comment="keep-alive"),
            data_sender_callable=work,
            shutdown_event=leaving,
            shutdown_grace_period=_GRACE / 2,
        )
        try:
            with anyio.CancelScope() as stream:
                await response(scope, receive, send)
        finally:
            del self.open[id_]
            await transport.end()

    async def post(self, request: Request) -> Response:
        """Takes one message."""
        transport = self.open.get(request.query_params.get("session_id", ""))
        request.scope["query_string"] = b""  # access logs are written later, and show it
        if transport is None:
            return PlainTextResponse("no such session", 404)
        if transport.turn.statistics().tasks_waiting >= _POSTS:
            return PlainTextResponse("too many messages at once", 503)
        async with transport.turn:
            try:
                body = await _body(request, self.limit)
            except (TimeoutError, ClientDisconnect):
                return PlainTextResponse("the message did not arrive", 408)
            if body is None:
                return PlainTextResponse(f"a message has at most {self.limit} bytes", 413)
            there = await transport.arrive(body)
        return PlainTextResponse("accepted", 202) if there else PlainTextResponse("the session is over", 404)


async def _body(request: Request, limit: int) -> bytes | None:
    """The body of a request; `None` when it is too large."""
    if int(request.headers.get("content-length", 0)) > limit:
        return None
    parts: list[bytes] = []
    with anyio.fail_after(_PATIENCE) as patience:
        async for part in request.stream():
            patience.deadline = anyio.current_time() + _PATIENCE
            limit -= len(part)
            if limit < 0:
                return None
            parts.append(part)
    return b"".join(parts)


class _Guarded:
    """Lets through what its guard does."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._guard.refusal(scope["headers"]) if scope["type"] == "http" else None
        app = self._app if refusal is None else PlainTextResponse(refusal[1], refusal[0])
        await app(scope, receive, send)


def sse_app(
    *servers: Server,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    limit: int = MAX_MESSAGE,
    keep_alive: float = 15.0,
    max_sessions: int = 1000,
    path: str = "/sse",
    messages: str = "/messages",
) -> Starlette:
    """An ASGI application that serves HTTP with server-sent events. It authenticates nobody: put that in front of it.

    Mounted in another application, its lifespan is for that one to enter, as Starlette does not by itself:
    `Starlette(routes=[Mount("/mcp", app)], lifespan=app.router.lifespan_context)`.

    Args:
        servers: One for each revision to offer.
        allowed_hosts: The hosts that it may be called by, HOST or HOST:PORT, or `*`; by default this machine only.
        allowed_origins: The web pages that may call it, HOST, HOST:PORT or http[s]://HOST[:PORT], or `*`; by default
            those of this machine.
        limit: The largest message, in bytes.
        keep_alive: Seconds between comments that keep an idle stream open; 0 sends none.
        max_sessions: How many streams may be open at once.
        path: Where streams are opened.
        messages: Where messages are posted to.
    """
    sessions = _Sessions(servers, messages, limit, keep_alive, max_sessions)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with lifespans(servers):
            yield

    guard = Guard(
        LOOPBACK if allowed_hosts is None else allowed_hosts, LOOPBACK if allowed_origins is None else allowed_origins
    )
    return Starlette(
        routes=[Route(path, sessions, methods=["GET"]), Route(messages, sessions.post, methods=["POST"])],
        middleware=[Middleware(_Guarded, guard=guard)],
        lifespan=lifespan,
    )


async def serve_sse(*servers: Server, address: str) -> None:
    """Serves HTTP with server-sent events until the process is told to stop (SIGINT, SIGTERM).

    Args:
        servers: One for each revision to offer.
        address: HOST:PORT. On a loopback address only this machine is served; on any other, everybody who can reach it.

    Raises:
        ValueError: The address is not HOST:PORT.
    """
    from .serve import hosts_for, parse_address, serve_app

    app = sse_app(*servers, allowed_hosts=hosts_for(parse_address(address)[0]))
    await serve_app(app, address, "/sse")
