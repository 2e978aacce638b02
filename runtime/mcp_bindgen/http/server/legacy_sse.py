"""HTTP with server-sent events as an ASGI application (MCP 2024-11-05, "Transports": HTTP with SSE).

A client opens a stream with GET, and its first event names the URL for messages. Answers are events of the stream.
Where tokens are verified, the stream ends when the last token of its client expires.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack
from urllib.parse import parse_qs, quote

import anyio

from mcp_bindgen.runtime.protocol.access import Identity, RequestOrigin
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.transport import Outgoing, Transport, incoming
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.session import Session

from ..event_stream import encode
from .asgi_app import AppOptions, AsgiApp
from .call import TEXT, Call, EventWriter
from .errors import STOPPING, HttpError, too_many, unavailable
from .intake import ParsedBody, parse_body
from .limits import LIMITS, Budget, Budgets, find_evictable, is_own
from .streams import LISTEN_STREAM, Stream, stream_events

_MAX_POSTS = 64  # messages of a session that wait for their turn
_GRACE_SECONDS = 5.0  # for the last messages of a closed session
_MAX_SLEEP_SECONDS = 3600.0  # as timers have a largest time


class SseServerTransport(Transport):
    """Server end of one stream: a bounded queue of messages out, and no queue in: a POST waits until it is taken.

    Args:
        principal: The principal that opened the stream, if known.
        unasked: See `HttpLimits`.
        queue: Limit for the buffered bytes.

    Attributes:
        independent: True: the answer to one request does not wait for another answer.
        origin: Origin of the stream.
        stream: Messages to the client.
        turn: Lock of the POST that is being taken: messages keep their order, and only one is in memory.
    """

    independent = True

    def __init__(
        self, principal: str | None = None, unasked: float = LIMITS.unasked, queue: Budget | None = None
    ) -> None:
        self.origin = RequestOrigin(principal=principal, network="tcp")
        self._unasked = unasked
        self._arriving, self._incoming = anyio.create_memory_object_stream[bytes](0)
        self.stream = Stream("", LISTEN_STREAM, queue=queue)
        self.turn = anyio.Lock(fast_acquire=True)

    async def receive(self) -> Sequence[bytes]:
        """Return the next message; stop reading while the peer leaves responses unread (backpressure)."""
        await self.stream.wait_for_room()
        try:
            return [await self._incoming.receive()]
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Queue messages; wait while the queue is full. Raises `ConnectionClosed`.

        A message that belongs to no request, such as a broadcast, waits a moment only; then a client that leaves a full
        queue unread is disconnected.
        """
        for message in messages:
            is_unasked = isinstance(message, Outgoing) and message.method is not None and message.related is None
            if not await self.stream.put(message, within=self._unasked if is_unasked else None):
                raise ConnectionClosed("the client has disconnected")

    async def close(self) -> None:
        """End the session; messages that were sent before still reach the client."""
        self._arriving.close()
        self._incoming.close()
        self.stream.close()

    async def arrive(self, message: bytes) -> bool:
        """Give a message to the session as soon as it takes one; return False if the session is over."""
        try:
            await self._arriving.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True


@dataclass(slots=True, eq=False)
class _OpenSession:
    id: str
    principal: str | None
    transport: SseServerTransport
    session: Session
    expires_at: float | None

    def extend(self, identity: Identity | None) -> None:
        """Note the token of a message: the stream lasts as long as the token that lasts longest."""
        until = None if identity is None else identity.session_expires_at
        self.expires_at = None if self.expires_at is None or until is None else max(self.expires_at, until)

    async def expire(self) -> None:
        """End the stream when its last token expires; messages that were sent before still reach the client."""
        while self.expires_at is not None and (left := self.expires_at - time.time()) > 0:
            await asyncio.sleep(min(left, _MAX_SLEEP_SECONDS))
        if self.expires_at is not None:
            self.transport.stream.leave(None)


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
        self, *servers: Server, path: str = "/sse", messages: str = "/messages", **options: Unpack[AppOptions]
    ) -> None:
        super().__init__(servers, **options)
        self._path, self._messages = path, messages
        self._open: dict[str, _OpenSession] = {}
        self._queues = Budgets(self.limits.queued, self.limits.queued_of_principal, "too much{} waits to be read")

    def end(self) -> None:
        """End all sessions, once their clients have read the messages."""
        for session in self._open.values():
            session.transport.stream.leave(None)

    async def handle(self, call: Call) -> None:
        """Open a stream, or take a message. Raises `HttpError`."""
        method, path = call.scope["method"], call.path
        if path not in (self._path, self._messages):
            raise HttpError(404, "nothing is served here")
        await self.authenticate(call)
        if path == self._path and method in ("GET", "HEAD"):
            self.service.authorize(call.identity, None, [(method, None)])
            if self.is_leaving:
                raise unavailable(STOPPING)
            oldest = find_evictable(call.principal, self._open.values(), self.limits)
            writer = EventWriter(call, self.limits.unread, self.keep_alive)
            if method == "GET":
                if oldest is not None:
                    oldest.transport.stream.disconnect()
                    del self._open[oldest.id]
                await self._serve(call, writer)
            else:
                await writer.open()
            await writer.end()
        elif path == self._messages and method == "POST":
            await self._post(call)
        else:
            allowed = b"POST" if path == self._messages else b"GET, HEAD"
            raise HttpError(405, f"use {allowed.decode()}", (b"allow", allowed))

    async def _serve(self, call: Call, writer: EventWriter) -> None:
        """Open a stream and serve the session on it."""
        id_ = secrets.token_urlsafe(32)
        transport = SseServerTransport(call.principal, self.limits.unasked, self._queues.of(call.principal))
        session = self.service.session(transport)
        opened = self._open[id_] = _OpenSession(id_, call.principal, transport, session, call.session_expires_at())
        stream = transport.stream
        prefix = quote(call.scope.get("root_path", "").rstrip("/"))
        endpoint = f"{prefix}{self._messages}?session_id={id_}"

        async def run() -> None:
            await self.service.run(session)
            await transport.close()
            await anyio.sleep(_GRACE_SECONDS)
            tasks.cancel_scope.cancel()

        async def expect_handshake() -> None:
            await anyio.sleep(self.limits.handshake)
            if not session.ready:
                tasks.cancel_scope.cancel()

        try:
            with stream.reading():
                await writer.write(encode(endpoint.encode(), event="endpoint"))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(run)
                    tasks.start_soon(expect_handshake)
                    tasks.start_soon(opened.expire)
                    await stream_events(writer, stream, 0)
                    tasks.cancel_scope.cancel()
        finally:
            self._open.pop(id_, None)
            await transport.close()
            stream.drop()

    async def _post(self, call: Call) -> None:
        """Take one message."""
        query = parse_qs(call.scope["query_string"].decode("latin-1"))
        call.scope["query_string"] = b""  # access logs are written later, and show it
        session = self._open.get(query.get("session_id", [""])[0])
        if session is None or not is_own(session, call.principal):
            raise HttpError(404, "no such session")
        transport = session.transport
        if transport.turn.statistics().tasks_waiting >= _MAX_POSTS:
            raise too_many("too many messages wait in this session")
        async with transport.turn:
            body = await self.intake.read(call)
            if self.auth is not None:
                revision = session.session.negotiated.dispatcher.revision.name
                await self.intake.authorize(call, self._parsed(body), revision)
            session.extend(call.identity)
            if not await transport.arrive(incoming(body, call.origin)):
                raise HttpError(404, "the session is over")
        await call.respond(202, b"accepted", TEXT)

    def _parsed(self, body: bytes) -> ParsedBody:
        """Parse a body; the session answers a malformed message, so it counts as an answer here."""
        try:
            return parse_body(body, self.service.limits.batch_members)
        except ProtocolError:
            return ParsedBody(body, (), False)
