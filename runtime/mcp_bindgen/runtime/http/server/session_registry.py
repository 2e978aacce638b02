"""Which sessions an endpoint has: how they begin, are found again, outlive their process, and end."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic_core import from_json, to_json

from ...core.errors import INVALID_REQUEST, ProtocolError
from ...endpoint.server import Service
from ...endpoint.session import Session
from .event_store.base import EventStore
from .session_transport import Room, SessionTransport
from .streams import STANDING

log = logging.getLogger("mcp_bindgen")

LATER = (b"retry-after", b"5")

_ID_BYTES = 32
_ID_LENGTH = len(secrets.token_urlsafe(_ID_BYTES))
_GRACE = 3.0  # seconds for sessions to end when the server does
_SWEEP = 60.0  # the longest that a session stays after it was idle for long enough


class Refusal(Exception):
    """Why a request is not served, in the words of HTTP and of JSON-RPC."""

    def __init__(self, status: int, reason: str | ProtocolError, *headers: tuple[bytes, bytes]) -> None:
        self.status = status
        self.error = ProtocolError(INVALID_REQUEST, reason) if isinstance(reason, str) else reason
        self.headers = headers


@dataclass(eq=False)
class OpenSession:
    """A session that is served.

    Attributes:
        id: What its client names it by.
        key: What the store knows it by: who reads the store does not learn ids.
        principal: Who began it.
        transport: Its streams.
        session: The session itself.
        saved: What the store has of it.
        visitors: How many requests are being answered.
        seen: When something was last said.
        ending: Whether it is over.
    """

    id: str
    key: str
    principal: str | None
    transport: SessionTransport
    session: Session
    saved: bytes = b""
    visitors: int = 0
    seen: float = field(default_factory=time.monotonic)
    ending: bool = False

    @contextmanager
    def visit(self) -> Generator[None]:
        """While the block runs, the session is not idle."""
        self.visitors += 1
        try:
            yield
        finally:
            self.visitors -= 1
            self.seen = time.monotonic()


class Registry:
    """The open sessions.

    Args:
        service: The servers.
        store: What outlives connections, and maybe the process.
        most: How many sessions there may be.
        room: For streams.
        limit: The bytes of messages of a session that may wait to be taken.
        idle: Seconds after which a session ends that nobody uses.
    """

    def __init__(
        self,
        service: Service,
        store: EventStore | None,
        *,
        most: int,
        room: Room,
        limit: int,
        idle: float,
    ) -> None:
        self._service = service
        self._store = store
        self._most = most
        self._room = room
        self._limit = limit
        self._idle = idle
        self._open: dict[str, OpenSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._changing = anyio.Lock(fast_acquire=True)
        self._variables = copy_context()  # what handlers see, instead of what the first request of a session had
        self._stopping = False

    # --- beginning --------------------------------------------------------------------------------------------

    def begin(self, principal: str | None) -> OpenSession:
        """Begins a session; raises `Refusal` when there are too many."""
        self._check_room()
        id_ = secrets.token_urlsafe(_ID_BYTES)
        key = _key(id_)
        transport = SessionTransport(key, self._limit, self._room, self._store)
        return self._start(OpenSession(id_, key, principal, transport, self._service.session(transport)))

    async def find(self, id_: str, principal: str | None) -> OpenSession:
        """The session with this id; it may have to be brought back from the store.

        Raises:
            Refusal: There is none, or it is somebody else's.
        """
        self._check_life()
        session = self._open.get(id_)
        if session is None and self._store is not None and len(id_) == _ID_LENGTH:
            session = await self._revive(id_, self._store, principal)
        if session is None or session.ending or session.principal != principal:
            raise Refusal(404, "there is no such session; a new one begins with initialize")
        return session

    async def _revive(self, id_: str, store: EventStore, principal: str | None) -> OpenSession | None:
        """Goes on with a session of another process."""
        async with self._changing:
            if id_ in self._open:
                return self._open[id_]
            key = _key(id_)
            kept = await store.load(key)
            if kept is None:
                return None
            record = from_json(kept.record)
            known = record["memory"]
            if record["principal"] != principal or known["revision"] not in self._service.dispatchers:
                return None
            self._check_room()
            last = kept.streams[STANDING].last if STANDING in kept.streams else 0
            transport = SessionTransport(key, self._limit, self._room, store, life=kept.life, last=last)
            transport.polls = self._service.dispatchers[known["revision"]].revision.stream_polling
            session = self._service.session(transport)
            self._service.restore(session, known, first_id=kept.life << 32)
            await transport.bury(kept.streams)
            return self._start(OpenSession(id_, key, principal, transport, session, kept.record))

    def _check_life(self) -> None:
        if self._stopping:
            raise Refusal(503, "the server is stopping", LATER)

    def _check_room(self) -> None:
        self._check_life()
        if len(self._open) >= self._most:
            raise Refusal(503, "too many sessions are open", LATER)

    def _start(self, session: OpenSession) -> OpenSession:
        self._open[session.id] = session
        session.transport.before_sending = lambda: self._remember(session)
        self._spawn(self._run(session))
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = self._spawn(self._sweep())
        return session

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, context=self._variables.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- living -----------------------------------------------------------------------------------------------

    async def _run(self, session: OpenSession) -> None:
        try:
            try:
                await self._service.run(session.session)
            except Exception:
                log.exception("a session failed")
            if session.ending or not self._stopping:
                await self.end(session)
                await session.transport.end("the session is over")
        except Exception:
            log.exception("a session could not be ended")
        finally:
            self._open.pop(session.id, None)

    async def _remember(self, session: OpenSession) -> None:
        """Keeps what the session needs in another life, if that has changed."""
        session.seen = time.monotonic()
        known = snapshot(session.session) if self._store is not None and not session.ending else None
        if self._store is None or known is None:
            return
        session.transport.polls = self._service.dispatchers[known["revision"]].revision.stream_polling
        record = to_json({"principal": session.principal, "memory": known})
        if record != session.saved:
            await self._store.save(session.key, record)
            session.saved = record
            await session.transport.standing.keep()

    # --- ending -----------------------------------------------------------------------------------------------

    async def end(self, session: OpenSession) -> None:
        """Ends a session: nobody finds it any longer, here or in the store; what is handled has a moment to finish."""
        if session.ending:
            return
        session.ending = True
        session.transport.finish()
        async with self._changing:
            self._open.pop(session.id, None)
            if self._store is not None:
                await self._store.forget(session.key)

    async def _sweep(self) -> None:
        """Ends idle sessions, for as long as there are any."""
        while self._open:
            try:
                for session in list(self._open.values()):
                    if not session.visitors and time.monotonic() - session.seen > self._idle:
                        await self.end(session)
                if self._store is not None:
                    await self._store.sweep([session.key for session in self._open.values()], self._idle)
            except Exception:
                log.exception("sessions could not be swept")
            await asyncio.sleep(min(_SWEEP, self._idle / 4))

    def leave(self) -> None:
        """Ends all sessions here, but not in the store, and lets none begin."""
        self._stopping = True
        for session in list(self._open.values()):
            session.transport.leave()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """The time in which sessions live."""
        self._stopping = False
        self._variables = copy_context()
        if self._store is not None:
            await self._store.sweep((), self._idle)
        try:
            yield
        finally:
            self.leave()
            if self._sweeper is not None:
                self._sweeper.cancel()
            with anyio.CancelScope(shield=True):
                if self._tasks:
                    await asyncio.wait(self._tasks, timeout=_GRACE)
                for task in self._tasks:
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)


def snapshot(session: Session) -> dict[str, Any] | None:
    """Return what a session must know to go on in another process; `None` before its client has said it."""
    return session.peer.dispatcher.revision.era.snapshot(session)


def _key(id_: str) -> str:
    return hashlib.sha256(id_.encode()).hexdigest()
