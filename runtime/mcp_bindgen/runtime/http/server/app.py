"""The MCP endpoint as an ASGI application: one address for clients of all revisions that are served.

MCP, "Transports": Streamable HTTP, of every revision that has it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.types import Receive, Scope, Send

from ...core.envelope import read_envelopes
from ...core.errors import PARSE_ERROR, ProtocolError
from ...core.transport import MAX_MESSAGE
from ...endpoint.server import Server, Service, lifespans
from ...eras.stateless.request_meta import may_state_version, stated_version
from ...eras.stateless.subscriptions import Subscription, audience
from .call import TEXT, Call, Gone, Unusable
from .event_store.base import EventStore, MemoryEventStore
from .exchange import VERSION, Exchanges
from .origin_policy import LOOPBACK, Guard
from .sessions import HttpSessions

log = logging.getLogger("mcp_bindgen")

_SESSION = b"mcp-session-id"
_MOST_HEADERS = 64 * 1024  # bytes


def authenticated_user(scope: Scope) -> str | None:
    """Who sends a request, as Starlette's `AuthenticationMiddleware` leaves it in the scope; `None` for nobody."""
    user: Any = scope.get("user")
    if user is None or not getattr(user, "is_authenticated", False):
        return None
    try:
        return str(user.identity)
    except (AttributeError, NotImplementedError):  # Starlette's own simple users have none
        return str(user.display_name)


class HttpApp:
    """An ASGI application that serves Streamable HTTP. It authenticates nobody: put that in front of it.

    Mounted in another application, its lifespan is for that one to enter, as frameworks do not by themselves:
    `Starlette(routes=[Mount("/mcp", app)], lifespan=app.lifespan)`.

    Args:
        servers: One for each revision to offer.
        path: Where it serves; below a mount point, whatever path is left over is served too.
        allowed_hosts: The hosts that it may be called by, HOST or HOST:PORT, or `*`; by default this machine only.
        allowed_origins: The web pages that may call it, HOST, HOST:PORT or http[s]://HOST[:PORT], or `*`; by default
            those of this machine.
        store: Keeps events of stateful revisions, so that clients can come back for what they missed; by default in
            memory, within bounds.
        limit: The largest message, in bytes.
        keep_alive: Seconds between comments that keep an idle stream open; 0 sends none.
        max_sessions: How many sessions of stateful revisions may be open at once.
        max_streams: How many streams of theirs there may be, of all sessions together.
        idle: Seconds without traffic after which a session ends.
        max_requests: How many stateless requests may be at work at once, subscriptions included.
        principal: Tells who sends a request. Sessions and the state of requests are bound to that.

    Raises:
        ValueError: There is no server, or there are two for a revision.
    """

    def __init__(
        self,
        *servers: Server,
        path: str = "/mcp",
        allowed_hosts: Collection[str] | None = None,
        allowed_origins: Collection[str] | None = None,
        store: EventStore | None = None,
        limit: int = MAX_MESSAGE,
        keep_alive: float = 15.0,
        max_sessions: int = 1000,
        max_streams: int = 10_000,
        idle: float = 1800.0,
        max_requests: int = 10_000,
        principal: Callable[[Scope], str | None] = authenticated_user,
    ) -> None:
        self._servers = servers
        self._path = path
        self._limit = limit
        self._principal = principal
        self._guard = Guard(
            LOOPBACK if allowed_hosts is None else allowed_hosts,
            LOOPBACK if allowed_origins is None else allowed_origins,
        )
        service = Service(servers)
        revisions = [dispatcher.revision for dispatcher in service.dispatchers.values()]
        self._stateless = {revision.name: revision for revision in revisions if revision.era.stands_alone}
        self._exchanges = Exchanges(service, keep_alive)
        self._most, self._busy = max_requests, 0
        self._sessions: HttpSessions | None = None
        if len(self._stateless) < len(revisions):
            self._sessions = HttpSessions(
                service,
                store=store or MemoryEventStore(),
                max_sessions=max_sessions,
                max_streams=max_streams,
                idle=idle,
                keep_alive=keep_alive,
                limit=limit,
            )

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Enters the lifespans of the servers; when it ends, so does everything that is still open."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(lifespans(self._servers))
            if self._sessions is not None:
                await stack.enter_async_context(self._sessions.running())
            stack.callback(self.leave)
            yield

    def leave(self) -> None:
        """Ends what clients listen to, in good order; call it when the process is about to stop.

        Servers of ASGI wait for open responses before they end the lifespan, and these would stay open.
        """
        if self._sessions is not None:
            self._sessions.leave()
        for server in self._servers:
            for link in audience(server):
                if isinstance(link, Subscription):
                    link.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as ASGI wants it."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        call = Call(scope, receive, send, {}, self._principal(scope))
        try:
            call.headers = _headers(scope["headers"])
            await self._answer(call)
        except Unusable as error:
            await call.respond(error.status, str(error).encode(), TEXT)
        except Gone:
            return

    async def _answer(self, call: Call) -> None:
        scope = call.scope
        refusal = self._guard.refusal(scope["headers"])
        if refusal is not None:
            raise Unusable(*refusal)
        place = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/")) or "/"
        if place != self._path and not (scope.get("root_path") and place == "/"):
            raise Unusable(404, "nothing is served here")
        method = scope["method"]
        if method == "POST":
            await self._post(call)
        elif method == "GET" and self._sessions is not None:
            await self._sessions.get(call)
        elif method == "DELETE" and self._sessions is not None:
            await self._sessions.delete(call)
        else:
            allowed = b"POST" if self._sessions is None else b"POST, GET, DELETE"
            await call.respond(405, b"use " + allowed, TEXT, [(b"allow", allowed)])

    async def _post(self, call: Call) -> None:
        if (call.header(b"content-type") or "").partition(";")[0].strip().lower() != "application/json":
            raise Unusable(415, "a message is application/json")
        body = await call.body(self._limit)
        if self._sessions is not None and not self._is_stateless(call, body):
            await self._sessions.post(call, body)
            return
        if self._busy >= self._most:
            await call.respond(503, b"too many requests at once", TEXT, [(b"retry-after", b"1")])
            return
        self._busy += 1
        try:
            await self._exchanges.post(call, body)
        finally:
            self._busy -= 1

    def _is_stateless(self, call: Call, body: bytes) -> bool:
        """Whether a message stands for itself: it says so, or its header does, and it is no part of a session."""
        if not self._stateless:
            return False
        alone = _SESSION not in call.headers
        if alone and call.header(VERSION) in self._stateless:
            return True
        revision = next(iter(self._stateless.values()))
        if not may_state_version(revision, body):
            return False
        try:
            envelopes, is_batch = read_envelopes(body)
        except ProtocolError as error:
            return alone and error.code == PARSE_ERROR
        return not is_batch and stated_version(revision, envelopes[0]) is not None

    async def _live(self, receive: Receive, send: Send) -> None:
        """The lifespan protocol of ASGI."""
        await receive()
        phase = "startup"
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as error:
            log.exception("%s failed", phase)
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    size = 0
    for name, value in raw:
        size += len(name) + len(value)
        between = b"\n" if name.startswith(b"mcp-") else b", "
        found[name] = found[name] + between + value if name in found else value
    if size > _MOST_HEADERS:
        raise Unusable(431, "the headers are too large")
    return found
