"""HTTP with server-sent events as an ASGI application (MCP 2024-11-05, "Transports": HTTP with SSE).

A client opens a stream with GET, and its first event names the URL for messages. Answers are events of the stream.
Where tokens are verified, the stream ends when the last token of its client expires.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Unpack
from urllib.parse import parse_qs

import anyio

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.targets import Provider

from ..event_stream import encode
from .app import AppOptions, AsgiApp
from .call import TEXT, EventWriter, HttpCall
from .errors import HttpError, too_many
from .open_session import MAX_POSTS, HttpSession
from .sessions import SessionRegistry, SessionStore
from .streams import stream_events

_MAX_SLEEP_SECONDS = 3600.0  # as timers have a largest time


@dataclass(eq=False)
class _Client:
    """Client with an open stream.

    Attributes:
        session: Its session.
        expires_at: Time when its last token expires, in seconds since 1970; None for never.
        turn: Lock of the POST that is being taken: messages keep their order, and only one is in memory.
    """

    session: HttpSession
    expires_at: float | None
    turn: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))

    def extend(self, identity: Identity | None) -> None:
        """Note the token of a message: the stream lasts as long as the token that lasts longest."""
        until = None if identity is None else identity.session_expires_at
        self.expires_at = None if self.expires_at is None or until is None else max(self.expires_at, until)

    async def expire(self) -> None:
        """End the stream when its last token expires; messages that were sent before still reach the client."""
        while self.expires_at is not None and (left := self.expires_at - time.time()) > 0:
            await asyncio.sleep(min(left, _MAX_SLEEP_SECONDS))
        if self.expires_at is not None:
            self.session.standing.leave(None)


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
        super().__init__(servers, [path, messages], **options)
        self._path, self._messages = path, messages
        self._sessions = SessionRegistry(self.endpoint, SessionStore(None), self.limits, has_one_stream=True)
        self._registry = self._sessions
        self._clients: dict[str, _Client] = {}

    async def handle(self, call: HttpCall) -> None:
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
                self._sessions.evictable(call.principal)
                await writer.open()
            await writer.end()
        elif path == self._messages and method == "POST":
            await self._post(call)
        else:
            allowed = b"POST" if path == self._messages else b"GET, HEAD"
            raise HttpError(405, f"use {allowed.decode()}", (b"allow", allowed))

    async def _serve(self, call: HttpCall, writer: EventWriter) -> None:
        """Open a stream, and end its session with it."""
        session = self._sessions.new(call.principal)
        await self._sessions.begin(session)
        client = self._clients[session.id] = _Client(session, call.session_expires_at())
        session.requests += 1
        endpoint = f"{call.url_path(self._messages)}?session_id={session.id}"
        try:
            with session.standing.reading():
                await writer.write(encode(endpoint.encode(), event="endpoint"))
                async with background_tasks() as tasks:
                    tasks.start_soon(client.expire)
                    await stream_events(writer, session.standing, 0)
        finally:
            with anyio.CancelScope(shield=True):
                await session.kernel.close()
                await self._sessions.end(session)
            del self._clients[session.id]

    async def _post(self, call: HttpCall) -> None:
        """Take one message."""
        query = parse_qs(call.scope["query_string"].decode("latin-1"))
        session = await self._sessions.find(query.get("session_id", [""])[0], call.principal)
        client = self._clients[session.id]
        if client.turn.statistics().tasks_waiting >= MAX_POSTS:
            raise too_many("too many messages wait in this session")
        async with client.turn:
            body = await self.intake.read(call)
            peer = session.kernel.connection
            events = list(peer.read(body))
            if self.auth is not None:
                await self.intake.admit(call, peer, events)
            client.extend(call.identity)
            session.arrive(body, events, call.origin)
            await session.taken()
        await call.respond(202, b"accepted", TEXT)
