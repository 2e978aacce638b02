"""Sessions of an endpoint, and HTTP requests to them (MCP 2025-03-26 to 2025-11-25, "Transports": Streamable HTTP).

A `SessionRegistry` begins, finds, restores and ends the sessions.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, runtime_checkable

import anyio
from pydantic_core import from_json, to_json

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.events import CancelRequested, Event, Notified, Rejected, Requested
from mcp_bindgen.runtime.protocol.transport import Outgoing
from mcp_bindgen.runtime.session.broadcasts import Workers
from mcp_bindgen.runtime.session.subscriptions import scheduled

from .access import HttpEndpoint
from .call import EVENTS, VERSION, EventWriter, HttpCall, check_version, within
from .errors import RETRY_SOON, STOPPING, HttpError, refused, too_many, unavailable
from .event_store import EventStore, StoredSession, StoreUnavailable
from .intake import Intake, begins_session
from .limits import Budget, Budgets, HttpLimits
from .open_session import HttpSession
from .streams import LISTEN_STREAM, Stream, parse_event_id, stream_events, unknown_event

_ID_BYTES = 32
_ID_LENGTH = len(secrets.token_urlsafe(_ID_BYTES))
_GRACE_SECONDS = 3.0  # for sessions to end when the server does
_MAX_SWEEP_SECONDS = 60.0  # that a session stays after it was idle for long enough
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, ProtocolError)
"""Errors of reading a record that another program has stored."""


class SessionStore:
    """Store of the sessions of an endpoint, here for a process that serves its sessions alone.

    `SharedSessions` are for several workers. Methods raise `StoreUnavailable` while the store is away.

    Args:
        events: Store of events and records, if any; after a restart, the process resumes the sessions in it.

    Attributes:
        events: See above.
        retry: Seconds after which clients reconnect to another worker; None unless this worker is stopping.
    """

    retry: float | None = None

    def __init__(self, events: EventStore | None) -> None:
        self.events: EventStore | None = events

    @asynccontextmanager
    async def running(self, registry: SessionRegistry) -> AsyncGenerator[None]:
        """Serve the sessions of a registry while the block runs."""
        if self.events is not None:
            await self.events.sweep((), registry.limits.idle)
        yield

    def leave(self, registry: SessionRegistry) -> None:
        """Send all clients away, because the process is about to stop; they may continue their sessions elsewhere."""
        registry.is_stopping = True
        for session in registry.sessions:
            session.leave()

    async def stop(self, registry: SessionRegistry) -> None:
        """End all sessions in this process, and refuse new requests."""
        self.leave(registry)

    async def begin(self, session: HttpSession) -> None:
        """Store a new session."""

    async def refresh(self, session: HttpSession, *, keep: bool = True) -> None:
        """Adopt the changes of other workers, or drop the session if it has ended there.

        Args:
            session: The session.
            keep: True if this counts as use of the session.
        """

    async def load(self, key: str) -> StoredSession | None:
        """Return a stored session, and begin a worker epoch of it; None if there is none."""
        return None if self.events is None else await self.events.load(key)

    async def resume(self, session: HttpSession, stored: StoredSession, record: Mapping[str, Any]) -> None:
        """Take part in a session that another process has begun, before it starts here."""
        await session.fail_unanswered(stored.streams)

    async def release(self, key: str, stored: StoredSession) -> None:
        """End the worker epoch of a session that was loaded, but is refused."""

    async def save(self, session: HttpSession) -> None:
        """Store the snapshot of a session."""
        if self.events is not None and not session.ending and (known := session.snapshot()) is not None:
            record = to_json({"principal": session.principal, "memory": known})
            await self.events.save(session.key, record, session.principal)
            session.standing.persisted = True  # its first event begins it in the store

    async def confirm(self, session: HttpSession) -> None:
        """Tell all workers that the client of a session is initialized, if it is."""

    async def forward(self, session: HttpSession, body: bytes, events: Sequence[Event]) -> None:
        """Pass on the messages of a POST that other workers wait for."""

    @asynccontextmanager
    async def reading(self, session: HttpSession, last_event_id: str | None) -> AsyncGenerator[tuple[Stream, int]]:
        """Find the stream that a GET reads while the block runs.

        Args:
            session: The session.
            last_event_id: The header `Last-Event-ID`; None opens the stream that belongs to no request. An older
                connection that reads it ends.

        Yields:
            The stream, and the number of the last event that the client has.

        Raises:
            HttpError: The event is unknown.
        """
        standing = session.standing
        if last_event_id is None:
            span = await self._span(session, LISTEN_STREAM) if standing.persisted else None
            after = standing.last_delivered_id
            yield standing, after if span is None else max(after, span[0] - 1)
            return
        name, number = parse_event_id(last_event_id) or ("", 0)
        span = await self._span(session, name)
        if span is None or not span[0] - 1 <= number <= span[1]:
            raise unknown_event()
        stream = standing if name == LISTEN_STREAM else session.streams.get(name)
        yield stream or Stream(session.key, name, (), self.events, last=span[1], state="done", persisted=True), number

    async def _span(self, session: HttpSession, stream: str) -> tuple[int, int] | None:
        found = None if self.events is None else await self.events.span(session.key, stream)
        has_begun = found is not None or stream != LISTEN_STREAM or not session.standing.persisted
        return found if has_begun else (1, 0)

    async def forget(self, session: HttpSession) -> None:
        """Delete a session, for all workers."""
        if self.events is not None:
            await self.events.forget(session.key)

    async def wind_up(self, registry: SessionRegistry, session: HttpSession) -> None:
        """Close a session that has ended in this process, unless another process may go on with it."""
        if session.state != "left":
            try:
                if registry.has(session):
                    await registry.end(session)
            finally:
                await session.end("the session is over")

    async def look_after(self, registry: SessionRegistry) -> None:
        """End overdue sessions and abandoned streams."""
        for session in registry.sessions:
            if session.is_overdue:
                await registry.end(session)
            for stream in session.abandoned:
                await session.abandon(stream)
        if self.events is not None:
            await self.events.sweep([session.key for session in registry.sessions], registry.limits.idle)


class SharedSessions(SessionStore, Workers):
    """Session store of several workers, which notify each other's clients, too."""


@runtime_checkable
class SharedByWorkers(Protocol):
    """Event store that several workers share."""

    def workers(self) -> SharedSessions:
        """Return the workers of one endpoint."""
        ...


class SessionRegistry:
    """Open sessions of an endpoint.

    Args:
        endpoint: The servers.
        store: Where the sessions are stored, and shared with other workers.
        limits: Limits of the endpoint.
        has_one_stream: See `HttpSession`.

    Attributes:
        endpoint: The servers.
        store: See above.
        limits: Limits of the endpoint.
        is_stopping: True if requests are refused, because the process is about to stop.
    """

    def __init__(
        self, endpoint: HttpEndpoint, store: SessionStore, limits: HttpLimits, *, has_one_stream: bool = False
    ) -> None:
        self.endpoint: HttpEndpoint = endpoint
        self.store: SessionStore = store
        self.limits: HttpLimits = limits
        self.is_stopping: bool = False
        self._has_one_stream = has_one_stream
        self._streams = Budgets(limits.streams, limits.streams_of_principal, "too many streams{} are open")
        self._queues = Budgets(limits.queued, limits.queued_of_principal, "too much{} waits to be read")
        self._open: dict[str, HttpSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._variables = copy_context()  # for handlers, instead of the context of the first request

    @property
    def sessions(self) -> list[HttpSession]:
        """The open sessions."""
        return list(self._open.values())

    # --- beginning --------------------------------------------------------------------------------------------

    def new(self, principal: str | None, id_: str | None = None, worker_epoch: int = 0, last: int = 0) -> HttpSession:
        """Return a session that has not begun: its peer reads the message that begins it; see `HttpSession`."""
        id_ = id_ or secrets.token_urlsafe(_ID_BYTES)
        reason = "too many streams are open in this session"
        budget = Budget(self.limits.streams_of_session, reason, self._streams.of(principal))
        queue, save = self._queues.of(principal), None if self._has_one_stream else self.store.save
        place = self.store.events, worker_epoch, last, principal, save, self._has_one_stream
        return HttpSession(self.endpoint, id_, key_of(id_), self.limits, budget, queue, *place)

    async def begin(self, session: HttpSession) -> None:
        """Begin a session; raises `HttpError` if there are too many, or the store cannot take it."""
        async with self._changing:
            await self._make_room(session.principal)
            self._start(session)
        try:
            await self.store.begin(session)
        except StoreUnavailable:
            self.drop(session)
            raise

    async def find(self, id_: str, principal: str | None) -> HttpSession:
        """Return the session with an id in its current state, restored from the store if need be.

        Raises:
            HttpError: There is none, or it belongs to another user.
        """
        if self.is_stopping:
            raise unavailable(STOPPING)
        session = self._open.get(id_)
        if session is not None and not session.ending:
            await self.store.refresh(session)
            session = self._open.get(id_)
        if session is None and len(id_) == _ID_LENGTH:
            try:
                session = await self._restored(id_, principal)
            except StoreUnavailable:
                raise
            except UNREADABLE as error:
                log.error("a stored session cannot be read, so its client begins a new session: %r", error)
        if session is None or session.ending or not session.belongs_to(principal):
            raise refused(404, "there is no such session; a new one begins with initialize")
        return session

    async def _restored(self, id_: str, principal: str | None) -> HttpSession | None:
        """Take part in a session of another process; return None if it is not served for this principal."""
        async with self._changing:
            if id_ in self._open or (stored := await self.store.load(key_of(id_))) is None:
                return self._open.get(id_)
            is_started = False
            try:
                record = from_json(stored.record)
                if record["principal"] != principal or record["memory"]["revision"] not in self.endpoint.dispatchers:
                    return None
                await self._make_room(principal)
                last = stored.streams[LISTEN_STREAM].last if LISTEN_STREAM in stored.streams else 0
                session = self.new(principal, id_, stored.worker_epoch, last)
                session.resume(record["memory"])
                await self.store.resume(session, stored, record)
                self._start(session)
                is_started = True
                return session
            finally:
                if not is_started:  # refused requests must leave nothing in the store
                    with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                        await self.store.release(key_of(id_), stored)

    async def _make_room(self, principal: str | None) -> None:
        """Make room for a new session, if need be by ending sessions that are not initialized. The lock is held."""
        while (oldest := self.evictable(principal)) is not None:
            await self.store.refresh(oldest, keep=False)  # its client may have been initialized at another worker
            if not oldest.ending and not oldest.kernel.ready:
                self.drop(oldest)
                await self.store.forget(oldest)

    def evictable(self, principal: str | None) -> HttpSession | None:
        """Return the session that has to end so that another session can begin; None if there is room.

        It is the oldest session without `notifications/initialized`: clients send that at once, so clients that only
        take up room lose their sessions first.

        Raises:
            HttpError: There are too many, and all are initialized.
        """
        if self.is_stopping:
            raise unavailable(STOPPING)
        sessions = [one for one in self._open.values() if not one.ending]
        own = [one for one in sessions if one.principal == principal] if principal is not None else []
        for open_, limit, reason in (
            (own, self.limits.sessions_of_principal, "too many sessions of this user are open"),
            (sessions, self.limits.sessions, "too many sessions are open"),
        ):
            if len(open_) >= limit:
                oldest = next((one for one in open_ if not one.kernel.ready), None)
                if oldest is None:
                    raise too_many(reason)
                return oldest
        return None

    def _start(self, session: HttpSession) -> None:
        self._open[session.id] = session
        self.spawn(self._run(session))
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = self.spawn(self._sweep())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task that belongs to no request; `running` waits for it at its end."""
        task = asyncio.get_running_loop().create_task(work, context=self._variables.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- living and ending ------------------------------------------------------------------------------------

    async def _run(self, session: HttpSession) -> None:
        try:
            try:
                await self.endpoint.run(session.kernel)
            except Exception:
                log.exception("a session failed")
            await self.store.wind_up(self, session)
        except Exception:
            log.exception("a session could not be ended")
        finally:
            self.drop(session)

    def drop(self, session: HttpSession) -> None:
        """End a session in this process only."""
        session.finish()
        if self.has(session):
            del self._open[session.id]

    def has(self, session: HttpSession) -> bool:
        """Return True if a session is open in this process."""
        return self._open.get(session.id) is session

    async def end(self, session: HttpSession) -> None:
        """End a session, here and in the store; running handlers have a moment to finish."""
        session.finish()
        async with self._changing:
            self.drop(session)
            await self.store.forget(session)

    async def _sweep(self) -> None:
        """End overdue sessions and abandoned streams, for as long as there are sessions."""
        limits = self.limits
        pause = min(_MAX_SWEEP_SECONDS, limits.idle / 4, limits.handshake / 2, limits.abandoned / 2)
        while self._open:
            try:
                await self.store.look_after(self)
            except (HttpError, StoreUnavailable) as error:
                log.warning("sessions could not be swept: %r", error)
            except Exception:
                log.exception("sessions could not be swept")
            await asyncio.sleep(pause)

    def leave(self) -> None:
        """Send all clients away in good order, as the process is about to stop."""
        self.store.leave(self)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve sessions while the block runs. Without it they end one by one."""
        self.is_stopping = False
        self._variables = copy_context()
        async with self.store.running(self):
            try:
                yield
            finally:
                await self.store.stop(self)
                if self._sweeper is not None:
                    self._sweeper.cancel()
                with anyio.CancelScope(shield=True):
                    if self._tasks:
                        await asyncio.wait(self._tasks, timeout=_GRACE_SECONDS)
                    for task in self._tasks:
                        task.cancel()
                    await asyncio.gather(*self._tasks, return_exceptions=True)


def key_of(id_: str) -> str:
    """Return the key of a session in the store."""
    return hashlib.sha256(id_.encode()).hexdigest()


SESSION = b"mcp-session-id"


class HttpSessions:
    """HTTP requests to the sessions of an endpoint.

    Args:
        registry: The sessions.
        intake: Reads and parses bodies.
        keep_alive: Seconds between comments on an idle stream; 0 sends none.
        quick: Seconds to wait for an answer that fits into a plain response, without a stream.
        retry: Seconds after which clients reconnect to a broken stream.
    """

    def __init__(
        self, registry: SessionRegistry, intake: Intake, keep_alive: float = 15, quick: float = 0.05, retry: float = 1.0
    ) -> None:
        self.registry: SessionRegistry = registry
        self._intake = intake
        self._limits, self._dispatchers = registry.limits, registry.endpoint.dispatchers
        self._keep_alive, self._quick, self._retry = keep_alive, quick, retry
        self._stateful = [name for name, one in self._dispatchers.items() if not one.revision.era.is_stateless]
        self._versions = {None, *(name.encode() for name in self._stateful)}

    async def find(self, call: HttpCall) -> HttpSession:
        """Return the session of a request.

        The session keeps the negotiated revision, also if the header names another served revision.

        Raises:
            HttpError: The request names no session, a session of another user, or a revision without sessions.
        """
        if call.headers.get(VERSION) not in self._versions:
            check_version(call, self._stateful)
        id_ = call.headers.get(SESSION)
        if id_ is None:
            raise refused(400, "the header Mcp-Session-Id is missing; a session begins with initialize")
        return await self.registry.find(id_.decode("latin-1").strip(" \t"), call.principal)

    async def delete(self, call: HttpCall) -> None:
        """Respond to a DELETE: end the session. Raises `HttpError`."""
        await self.registry.end(await self.find(call))
        await call.respond(204)

    # --- POST -------------------------------------------------------------------------------------------------

    async def post(self, call: HttpCall, body: bytes, session: HttpSession | None) -> None:
        """Respond to a POST: give its messages to the session, and send their answers. Raises `HttpError`.

        Args:
            call: The request; its body is JSON.
            body: Its body.
            session: Its session, which was found before the body was read; None if it names none.
        """
        is_new = session is None and begins_session(body)
        if is_new:
            check_version(call, self._dispatchers)
            session = self.registry.new(call.principal)
        elif session is None or session.ending:
            session = await self.find(call)
        connection = session.kernel.connection
        events = await self._intake.events(call, connection, body)
        if self.registry.endpoint.access_policy is not None:
            await self._intake.admit(call, connection, events)
        if is_new:
            if all(isinstance(one, Notified) for one in events):
                await self.find(call)  # refuses a notification of that name
            await self.registry.begin(session)
        session.requests += 1
        try:
            await self._answer(call, session, body, events, is_new)
        finally:
            session.requests -= 1
            session.seen = time.monotonic()
            if is_new and not session.is_negotiated:
                await self.registry.end(session)

    async def _answer(
        self, call: HttpCall, session: HttpSession, body: bytes, events: Sequence[Event], is_new: bool
    ) -> None:
        """Give the messages of a POST to the session, and send their answers."""
        ids = [one.id for one in events if isinstance(one, Requested | Rejected) and one.id is not None]
        stream: Stream | None = None
        try:
            try:
                stream = session.expect(ids) if ids else None
                await self.registry.store.forward(session, body, events)
                session.arrive(body, events, call.origin)
            except BaseException:
                session.kernel.connection.take_back(events)
                if stream is not None:
                    await session.settle(ids)
                raise
            await session.settle([one.id for one in events if isinstance(one, CancelRequested)])
            if stream is not None:
                await self._respond(call, session, stream, is_new)
                return
            await self.registry.store.confirm(session)
            await call.respond(202)
        finally:
            if stream is not None:
                stream.hang_up()
                if stream.pending and not stream.is_read and not stream.persisted:  # it cannot be resumed
                    await session.abandon(stream)

    async def _respond(self, call: HttpCall, session: HttpSession, stream: Stream, is_new: bool) -> None:
        """Respond to a POST with requests: with JSON if the answer comes at once, else with a stream."""
        headers = [(SESSION, session.id.encode())] if is_new else []
        answer = await stream.sole_answer(self._quick)
        if answer is None:
            await stream.persist()
            writer = EventWriter(call, self._limits.write_timeout, self._keep_alive, headers)
            with stream.reading():
                await self._stream(writer, session, stream, 0)
            await writer.end()
            return
        if is_new and not session.is_negotiated:
            headers = []
        status = 200
        if isinstance(answer, Outgoing) and answer.error is not None:
            status, headers = 429, [*headers, RETRY_SOON]
        with suppress(TimeoutError):
            await within(self._limits.write_timeout, call.respond(status, answer, headers=headers))

    async def _stream(self, writer: EventWriter, session: HttpSession, stream: Stream, after: int) -> None:
        await writer.open()
        retry = self._retry if stream.persisted and session.supports_stream_polling else None
        await stream_events(writer, stream, after, retry)

    # --- GET --------------------------------------------------------------------------------------------------

    async def get(self, call: HttpCall) -> None:
        """Respond to a GET: open the stream that belongs to no request, or resume a stream after `Last-Event-ID`.

        Raises:
            HttpError: The request is refused.
        """
        if not call.accepts(EVENTS):
            raise refused(406, "the answer is text/event-stream; the client must accept it")
        session = await self.find(call)
        async with self.registry.store.reading(session, call.header(b"last-event-id")) as (stream, after):
            session.budget.take()
            session.requests += 1
            try:
                writer = EventWriter(call, self._limits.write_timeout, self._keep_alive)
                with stream.reading(), scheduled(call.session_expires_at(), partial(stream.leave, None)):
                    if self.registry.store.retry is not None:
                        stream.leave(self.registry.store.retry)
                    await self._stream(writer, session, stream, after)
                await writer.end()
            finally:
                session.requests -= 1
                session.seen = time.monotonic()
                session.budget.add(-1)
