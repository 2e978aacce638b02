"""Serve HTTP with server-sent events (MCP 2024-11-05, "Transports": HTTP with SSE).

A client opens a stream with GET and learns from its first event where to POST its messages; answers come as events.
Where tokens are verified, the stream ends with the last token that came for it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote

import anyio
from starlette.types import Scope

from mcp_bindgen.runtime.protocol.access import AccessPolicy, Identity, Operation, RequestOrigin, operations_named
from mcp_bindgen.runtime.protocol.envelope import read_envelopes
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.transport import Transport, incoming
from mcp_bindgen.runtime.session.server import Server, Service
from mcp_bindgen.runtime.session.session import Session

from ..event_stream import encode
from .asgi_app import AsgiApp, authenticated_user
from .byte_budget import Budget, Budgets
from .call import STOPPING, TEXT, Call, HttpError, too_many, unavailable
from .eviction import is_own, room_for
from .limits import LIMITS, HttpLimits
from .origin_policy import OriginPolicy
from .streams import LISTEN_STREAM, Stream, finish, pour

_POSTS = 64  # messages of a session that wait for their turn
_GRACE = 5.0  # seconds for what a closed session still has to say
_NAP = 3600.0  # seconds to sleep at most: timers cannot be set for any time


class SseServerTransport(Transport):
    """The server's end of one stream: a bounded queue of messages out, and none in: a POST waits until it is taken.

    Args:
        principal: Who opened the stream, if that is known.
        unasked: See `HttpLimits`.
        queue: Limits the bytes that wait to be read.

    Attributes:
        independent: Who answers one request does not wait for another one.
        origin: Origin of the stream.
        stream: What is sent to the client.
        turn: Held by the POST that is being taken, so that messages keep their order and only one is in memory.
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
        await self.stream.room()
        try:
            return [await self._incoming.receive()]
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Queue messages; wait while the queue is full. Raises `ConnectionClosed`.

        What belongs to no request, such as a broadcast, does not wait for long: who leaves a full queue unread is
        cut off.
        """
        for message in messages:
            if not await self.stream.put(message, within=self._unasked if _is_unasked(message) else None):
                raise ConnectionClosed("the client is gone")

    async def close(self) -> None:
        """End the session; what was sent before still reaches the client."""
        self._arriving.close()
        self._incoming.close()
        self.stream.end()

    async def arrive(self, message: bytes) -> bool:
        """Hand a message to the session, as soon as it takes one; returns whether there still was a session."""
        try:
            await self._arriving.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True


def _is_unasked(message: Any) -> bool:
    """Tell whether a message neither answers a request of the client nor belongs to one."""
    return getattr(message, "method", None) is not None and message.related is None


@dataclass(slots=True, eq=False)
class _OpenSession:
    id: str
    principal: str | None
    transport: SseServerTransport
    session: Session
    session_expires_at: float | None

    def extend(self, identity: Identity | None) -> None:
        """Take note of the token of a message: the stream lasts as long as the one that lasts longest."""
        until = None if identity is None else identity.session_expires_at
        self.session_expires_at = (
            None if self.session_expires_at is None or until is None else max(self.session_expires_at, until)
        )

    async def lapse(self) -> None:
        """End the stream when its last token has expired; what was sent before still reaches the client."""
        while self.session_expires_at is not None and (left := self.session_expires_at - time.time()) > 0:
            await anyio.sleep(min(left, _NAP))
        if self.session_expires_at is not None:
            self.transport.stream.leave(None)


@dataclass(eq=False)
class SseApp(AsgiApp):
    """An ASGI application that serves HTTP with server-sent events; `sse_app` makes one, and explains its options."""

    path: str = "/sse"
    messages: str = "/messages"
    keep_alive: float = 15.0
    revisions: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._service = Service(self.servers, self.auth, self.revisions)
        self._open: dict[str, _OpenSession] = {}
        self._queues = Budgets(self.limits.queued, self.limits.queued_of_principal, "too much{} waits to be read")

    def end(self) -> None:
        """End all sessions, once their clients have read what was sent."""
        for session in self._open.values():
            session.transport.stream.leave(None)

    async def handle(self, call: Call) -> None:
        """Open a stream, or take a message. Raises `HttpError`."""
        method, path = call.scope["method"], call.path
        if path not in (self.path, self.messages):
            raise HttpError(404, "nothing is served here")
        await self.admit(call)
        if path == self.path and method in ("GET", "HEAD"):
            self._service.authorize(call.identity, None, [(method, None)])
            if self.is_leaving:
                raise unavailable(STOPPING)
            oldest = room_for(call.principal, self._open.values(), self.limits)
            if method == "GET":
                if oldest is not None:
                    oldest.transport.stream.hang_up()
                    del self._open[oldest.id]
                await self._serve(call)
            else:
                await call.open_stream()
                await finish(call)
        elif path == self.messages and method == "POST":
            await self._post(call)
        else:
            allowed = b"POST" if path == self.messages else b"GET, HEAD"
            raise HttpError(405, f"use {allowed.decode()}", (b"allow", allowed))

    async def _serve(self, call: Call) -> None:
        """Open a stream and serve the session on it."""
        id_ = secrets.token_urlsafe(32)
        transport = SseServerTransport(call.principal, self.limits.unasked, self._queues.of(call.principal))
        session = self._service.session(transport)
        session_expires_at = None if call.identity is None else call.identity.session_expires_at
        opened = self._open[id_] = _OpenSession(id_, call.principal, transport, session, session_expires_at)
        stream = transport.stream
        prefix = quote(call.scope.get("root_path", "").rstrip("/"))
        endpoint = f"{prefix}{self.messages}?session_id={id_}"

        async def run() -> None:
            await self._service.run(session)
            await transport.close()
            await anyio.sleep(_GRACE)
            tasks.cancel_scope.cancel()

        async def expect_handshake() -> None:
            await anyio.sleep(self.limits.handshake)
            if not session.ready:
                tasks.cancel_scope.cancel()

        try:
            with stream.reading():
                await call.open_stream()
                await call.write(encode(endpoint.encode(), event="endpoint"))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(run)
                    tasks.start_soon(expect_handshake)
                    tasks.start_soon(opened.lapse)
                    await pour(call, stream, 0, keep_alive=self.keep_alive, patience=self.limits.unread)
                    tasks.cancel_scope.cancel()
            await finish(call)
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
        if transport.turn.statistics().tasks_waiting >= _POSTS:
            raise too_many("too many messages wait in this session")
        async with transport.turn:
            body = await self.bodies.read(call)
            if self.auth is not None:
                negotiated = session.session.negotiated
                await self._service.authorize_all(
                    call.identity, negotiated.dispatcher.revision.name, _asked(body, self._service.limits.batch_members)
                )
            session.extend(call.identity)
            if not await transport.arrive(incoming(body, call.origin)):
                raise HttpError(404, "the session is over")
        await call.respond(202, b"accepted", TEXT)


def sse_app(
    *servers: Server,
    revisions: Sequence[str] | None = None,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    limits: HttpLimits = LIMITS,
    keep_alive: float = 15.0,
    path: str = "/sse",
    messages: str = "/messages",
    principal: Callable[[Scope], str | None] = authenticated_user,
    auth: AccessPolicy | None = None,
) -> SseApp:
    """Make an ASGI application that serves HTTP with server-sent events.

    Without `auth` it authenticates nobody: put that in front of it. Mounted in another application, its lifespan is for
    that one to enter: `Starlette(routes=[Mount("/mcp", app)], lifespan=app.lifespan)`.

    Args:
        servers: The servers, at most one for each revision.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        allowed_hosts: The hosts that it may be called by: HOST, HOST:PORT, `*.DOMAIN`, an address or network, or `*`.
            By default those in the environment variable `ALLOWED_HOSTS`, and without it this machine only.
        allowed_origins: The web pages that may call it: the same, or http[s]://HOST[:PORT]. By default those in
            `ALLOWED_ORIGINS`, and without it those of this machine and of the single hosts that are allowed.
        limits: How much it takes of its clients.
        keep_alive: Seconds between comments that keep an idle stream open; 0 sends none.
        path: Where streams are opened.
        messages: Where messages are posted to.
        principal: Tells who sends a request, where there is no `auth`. Only who opened a session's stream may post to
            it.
        auth: Verifies the token of each request, and says what it allows; see `HttpApp`.

    Raises:
        ValueError: There is no server, or there are two for a revision, or one needs scopes and there is no `auth`, or
            a revision cannot be served.
    """
    policy = OriginPolicy(allowed_hosts, allowed_origins)
    return SseApp(servers, policy, principal, limits, auth, path, messages, keep_alive, revisions)


def _asked(body: bytes, max_members: int) -> list[Operation]:
    """Return what a body asks for; one that is no message is left to the session, which says so."""
    try:
        envelopes, _ = read_envelopes(body, max_members)
        asked = [found for one in envelopes if not one.is_answer for found in operations_named(one.method, one.params)]
    except ProtocolError:
        asked = []
    return asked or [("an answer", None)]
