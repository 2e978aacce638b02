"""HTTP with server-sent events as an ASGI application (MCP 2024-11-05, "Transports": HTTP with SSE).

A client opens a stream with GET, and its first event names the URL for messages. Answers are events of the stream.
Where tokens are verified, the stream ends when the last token of its client expires.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Unpack
from urllib.parse import parse_qs

import anyio

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.protocol.access import Identity, RequestOrigin
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.events import Event
from mcp_bindgen.runtime.protocol.transport import Lost, Outgoing, Parsed
from mcp_bindgen.runtime.session.endpoint import Provider
from mcp_bindgen.runtime.session.server import Server

from ..event_stream import encode
from .app import AppOptions, AsgiApp
from .call import TEXT, Call, EventWriter
from .errors import HttpError, too_many
from .open_session import MAX_POSTS, HttpSession
from .sessions import SessionRegistry
from .streams import stream_events

_MAX_SLEEP_SECONDS = 3600.0  # as timers have a largest time


@dataclass(eq=False, repr=False)
class SseSession(HttpSession):
    """Open session with one stream out, and no queue in: a POST waits until its message is taken.

    Attributes:
        turn: Lock of the POST that is being taken: messages keep their order, and only one is in memory.
        expires_at: Time when its last token expires, in seconds since 1970; None for never.
    """

    turn: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    expires_at: float | None = None

    async def receive(self) -> Sequence[Parsed | Lost]:
        """Return the next message; stop reading while the peer leaves responses unread (backpressure)."""
        await self.standing.wait_for_room()
        return await super().receive()

    async def _deliver(self, message: Outgoing) -> None:
        """Add a message to the stream; wait while it is full.

        A message that belongs to no request, such as a broadcast, waits a moment only; then a client that leaves a full
        stream unread is disconnected.
        """
        is_unasked = message.method is not None and message.related is None
        if not await self.standing.put(message, within=self.limits.unasked if is_unasked else None):
            raise ConnectionClosed("the client has disconnected")

    async def accept(self, body: bytes, events: Sequence[Event], origin: RequestOrigin) -> None:
        """Give messages to the session, and wait until they are taken; one call at a time. See `arrive`."""
        self._taken.clear()
        self.arrive(body, events, origin)
        if self.state == "open":
            await self._taken.wait()
        if self.state != "open":
            raise HttpError(404, "the session is over")

    def extend(self, identity: Identity | None) -> None:
        """Note the token of a message: the stream lasts as long as the token that lasts longest."""
        until = None if identity is None else identity.session_expires_at
        self.expires_at = None if self.expires_at is None or until is None else max(self.expires_at, until)

    async def expire(self) -> None:
        """End the stream when its last token expires; messages that were sent before still reach the client."""
        while self.expires_at is not None and (left := self.expires_at - time.time()) > 0:
            await asyncio.sleep(min(left, _MAX_SLEEP_SECONDS))
        if self.expires_at is not None:
            self.standing.leave(None)


class SseRegistry(SessionRegistry):
    """Open sessions of an endpoint, in memory."""

    kind: type[HttpSession] = SseSession


class SseApp(AsgiApp):
    """ASGI application that serves HTTP with server-sent events.

    Without `auth` it authenticates no client: put that in front of it.

    Args:
        servers: The servers, at most one for each revision.
        path: The path that opens streams.
        messages: The path for messages; only the principal that opened a stream may post to its session.
        options: See `AppOptions`.

    Raises:
        ValueError: See `AsgiApp`.
    """

    def __init__(
        self,
        *servers: Server | Provider,
        path: str = "/sse",
        messages: str = "/messages",
        **options: Unpack[AppOptions],
    ) -> None:
        super().__init__(servers, **options)
        self._path, self._messages = path, messages
        self._registry = SseRegistry(self.endpoint, None, self.limits)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which sessions run."""
        return self._registry.running()

    def end(self) -> None:
        """End all sessions, once their clients have read the messages."""
        self._registry.leave()
        super().end()

    async def handle(self, call: Call) -> None:
        """Open a stream, or take a message. Raises `HttpError`."""
        method, path = call.scope["method"], call.path
        if path not in (self._path, self._messages):
            raise HttpError(404, f"nothing is served here; this server answers at {call.url_path(self._path)}")
        await self.authenticate(call)
        if path == self._path and method in ("GET", "HEAD"):
            self.endpoint.authorize(call.identity, None, [(method, None)])
            writer = EventWriter(call, self.limits.write_timeout, self.keep_alive)
            if method == "GET":
                await self._serve(call, writer)
            else:
                self._registry.evictable(call.principal)
                await writer.open()
            await writer.end()
        elif path == self._messages and method == "POST":
            await self._post(call)
        else:
            allowed = b"POST" if path == self._messages else b"GET, HEAD"
            raise HttpError(405, f"use {allowed.decode()}", (b"allow", allowed))

    async def _serve(self, call: Call, writer: EventWriter) -> None:
        """Open a stream, and end its session with it."""
        session = self._registry.new(call.principal)
        assert isinstance(session, SseSession)
        await self._registry.begin(session)
        session.expires_at = call.session_expires_at()
        session.requests += 1
        endpoint = f"{call.url_path(self._messages)}?session_id={session.id}"
        try:
            with session.standing.reading():
                await writer.write(encode(endpoint.encode(), event="endpoint"))
                async with background_tasks() as tasks:
                    tasks.start_soon(session.expire)
                    await stream_events(writer, session.standing, 0)
        finally:
            with anyio.CancelScope(shield=True):
                await session.connection.close()
                await self._registry.end(session)

    async def _post(self, call: Call) -> None:
        """Take one message."""
        query = parse_qs(call.scope["query_string"].decode("latin-1"))
        session = await self._registry.find(query.get("session_id", [""])[0], call.principal)
        assert isinstance(session, SseSession)
        if session.turn.statistics().tasks_waiting >= MAX_POSTS:
            raise too_many("too many messages wait in this session")
        async with session.turn:
            body = await self.intake.read(call)
            peer = session.connection.peer
            events = list(peer.read(body))
            if self.auth is not None:
                await self.intake.admit(call, peer, events)
            session.extend(call.identity)
            await session.accept(body, events, call.origin)
        await call.respond(202, b"accepted", TEXT)
