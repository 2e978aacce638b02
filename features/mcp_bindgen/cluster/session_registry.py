"""Sessions that several workers serve at the same time, and streams that several workers write."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import anyio
from pydantic_core import from_json, to_json

from mcp_bindgen.http.server.access import HttpEndpoint
from mcp_bindgen.http.server.errors import STOPPING, refused
from mcp_bindgen.http.server.event_store import StoredSession, StoreUnavailable
from mcp_bindgen.http.server.limits import HttpLimits
from mcp_bindgen.http.server.open_session import HttpSession, unanswered
from mcp_bindgen.http.server.sessions import UNREADABLE, SessionRegistry, key_of
from mcp_bindgen.http.server.streams import LISTEN_STREAM, Stream, parse_event_id, unknown_event
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.envelope import RequestId, own_id, read_envelopes, request_id
from mcp_bindgen.runtime.protocol.events import Answered, CancelRequested, Event, Progressed, Requested
from mcp_bindgen.runtime.protocol.methods import CANCELLED, PROGRESS, Notification
from mcp_bindgen.runtime.protocol.request_scope import is_wanted
from mcp_bindgen.runtime.protocol.transport import parsed
from mcp_bindgen.runtime.session.rounds import RequestStateSigner
from mcp_bindgen.runtime.session.server import Server

from .store import Broadcast, Delivery, SessionVersion, SharedRecord, SharedStore, StreamPosition, WorkerMessage
from .worker import Broadcasts, ReadBroadcast, Worker, recorded

StreamKey = tuple[str, str]
"""Key of a session, and name of a stream."""


class SharedListenStream(Stream):
    """Listen stream of a session, to which every worker adds events; the store numbers them."""

    async def _add(self, message: bytes | None, answered: Collection[RequestId]) -> bool:
        if message is None or not self.persisted:
            return await super()._add(message, answered)
        assert isinstance(self.store, SharedStore)
        number = await self.store.add(self.session, message)
        if number:
            self.advance(number, message)
        return number > 0


_TAKEOVER_WAIT_SECONDS = 0.05  # for the previous reader of a stream to detach
_TAKEOVER_WAITS = 20


class StreamReaders:
    """Streams that clients read at this worker, after a GET.

    Args:
        store: Store of the workers.
    """

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._open: dict[StreamKey, tuple[Stream, str]] = {}

    @asynccontextmanager
    async def reading(self, session: HttpSession, last_event_id: str | None) -> AsyncGenerator[tuple[Stream, int]]:
        """Read a stream, which any worker may write, while the block runs; see `SessionRegistry.reading`."""
        if last_event_id is None:
            session.standing.disconnect()
        name, after = (LISTEN_STREAM, None) if last_event_id is None else parse_event_id(last_event_id) or ("", 0)
        key, token = (session.key, name), secrets.token_urlsafe(9)
        before = self._open.get(key)
        own = session.standing if name == LISTEN_STREAM else session.streams.get(name)
        stream = own or (before and before[0]) or Stream(session.key, name, (), self._store, persisted=True)
        self._open[key] = stream, token
        position: StreamPosition | None = None
        try:
            position = await self._attach(key, token, after)
            if position is None:
                raise unknown_event()
            stream.last_delivered_id = position.after
            stream.advance(position.last, closes=position.is_closed)
            yield stream, position.after
        finally:
            if self.find(key, token) is not None:
                del self._open[key]
                if position is None and before is not None:
                    self._open[key] = before
            if position is not None:
                with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                    await self._store.detach(*key, token, stream.last_delivered_id)

    async def _attach(self, key: StreamKey, token: str, after: int | None) -> StreamPosition | None:
        """Become the reader of a stream; the previous reader has a moment to store the last event that it got."""
        waits = 0 if after is not None else _TAKEOVER_WAITS
        while (position := await self._store.attach(*key, token, after, not waits)) and position.busy_until:
            await asyncio.sleep(_TAKEOVER_WAIT_SECONDS)
            waits -= 1
            if self.find(key, token) is None:
                raise refused(409, "a newer GET reads the stream")
        return position

    def find(self, key: StreamKey, token: str) -> Stream | None:
        """Return a stream if the reader with this token still reads it."""
        stream, known = self._open.get(key, (None, ""))
        return stream if known == token else None

    def advance(self, key: StreamKey, number: int, data: bytes | None, over: bool) -> None:
        """Note an event of a stream; see `Stream.advance`."""
        stream, _ = self._open.get(key, (None, ""))
        if stream is not None:
            stream.advance(number, data, over)

    async def refresh(self) -> None:
        """Ask the store for events whose messages were lost."""
        keys = list(self._open)
        for key, found in zip(keys, await self._store.positions(keys), strict=True):
            if found is not None:
                self.advance(key, found.last, None, found.is_closed)

    def end(self, session: str) -> None:
        """End the streams of a session that is over."""
        for (key, _), (stream, _) in list(self._open.items()):
            if key == session:
                stream.close()

    def leave(self, retry: int) -> None:
        """Tell all clients to reconnect in so many milliseconds."""
        for stream, _ in list(self._open.values()):
            stream.leave(retry)


_DELIVERY_BATCH = 100  # sessions that get a broadcast in one round trip
_DRAIN_SECONDS = 7.0  # for requests to finish when the process stops; less than `serve.GRACE_SECONDS`
_RECONNECT_MS = 500  # until clients of a stopping worker reconnect


@dataclass(eq=False, repr=False)
class SharedSession(HttpSession):
    """Session that this worker takes part in.

    Attributes:
        version: Version of the record that this worker knows.
        base: That record.
        is_confirmed: True if the client is initialized.
        saving: Held while the record is stored or replaced.
    """

    listen_stream: ClassVar[type[Stream]] = SharedListenStream

    version: int = 0
    base: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_confirmed: bool = False
    saving: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))

    def record(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record that other workers need. It keeps the members that a newer program has added."""
        ready = self.is_confirmed or self.connection.ready
        memory = {**self.base.get("memory", {}), **known}
        return {**self.base, "principal": self.principal, "memory": memory, "ready": ready}

    def take_over(self, version: int, stored: bytes) -> None:
        """Adopt a record that another worker has stored; changes that were made here remain.

        Args:
            version: Version of the record.
            stored: The record; empty before the first one is stored.
        """
        known = self.snapshot()
        theirs: dict[str, Any] = from_json(stored) if stored else dict(self.base)
        if stored and known is not None:
            memory = merged(self.base.get("memory", {}), self.record(known)["memory"], theirs["memory"])
            if theirs["ready"] and not self.connection.ready:
                self.connection.peer.move("confirmed")
            self.is_confirmed = self.is_confirmed or bool(theirs["ready"])
            self.update(memory)
        self.version, self.base = version, theirs
        self.saved = stored


def merged(base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the changes of two workers; our change of a member prevails over theirs.

    Lists count as sets: the result has the additions of both workers, and lacks the removals of both.

    Args:
        base: Record that both workers began with.
        ours: Record of this worker.
        theirs: Record of the other worker.
    """
    found = dict(theirs)
    for name, value in ours.items():
        before, other = base.get(name), theirs.get(name)
        if value == before:
            continue
        if is_array(value) and is_array(other):
            known = before if is_array(before) else []
            added = [item for item in value if item not in known and item not in other]
            value = [item for item in other if item in value or item not in known] + added
        found[name] = value
    return found


_LOCAL = (Requested, Answered, Progressed, CancelRequested)
"""Events that concern this worker alone."""


class Forwarded(NamedTuple):
    """Part of a body that other workers may wait for: answers, progress and cancellations.

    Attributes:
        body: The messages.
        epochs: Epochs of the workers whose requests are answered, or make progress.
        cancelled: Ids of the requests that are cancelled.
    """

    body: bytes
    epochs: set[int]
    cancelled: list[RequestId]


def for_other_workers(body: bytes) -> Forwarded:
    """Return the part of a well-formed body that other workers may wait for."""
    envelopes, is_batch = read_envelopes(body)
    kept: list[Any] = []
    epochs: set[int] = set()
    cancelled: list[RequestId] = []
    for one in envelopes:
        params: dict[str, Any] = one.params if is_object(one.params) else {}
        if not one.is_answer and one.method not in (CANCELLED, PROGRESS):
            continue
        kept.append(one.message)
        if one.method == CANCELLED:
            id_ = request_id({"id": params.get("requestId")})
            cancelled += [] if id_ is None else [id_]
        elif number := own_id(one.id if one.is_answer else params.get("progressToken")):
            epochs.add(number >> 32)
    return Forwarded(jsonrpc.write_result(kept) if is_batch else body, epochs, cancelled)


class SharedRegistry(SessionRegistry):
    """Sessions that this worker takes part in.

    Args:
        endpoint: The servers.
        store: Store of the workers.
        limits: Limits of sessions.
    """

    kind: type[HttpSession] = SharedSession

    def __init__(self, endpoint: HttpEndpoint, store: SharedStore, limits: HttpLimits) -> None:
        super().__init__(endpoint, store, limits)
        self._shared = store
        self._by_key: dict[str, SharedSession] = {}
        self.readers: StreamReaders = StreamReaders(store)
        self._closing = asyncio.Event()
        self._drained: asyncio.Task[None] | None = None
        self._signing_keys = list(RequestStateSigner().keys)
        self.worker: Worker = Worker(store, self._handle, self._spread, self._lose_all, self._renew_keys)
        self.broadcasts: Broadcasts = Broadcasts(endpoint, store, self.worker, self._spawn)
        self.signer: RequestStateSigner = RequestStateSigner(self._signing_keys)
        self.is_running = False

    # --- beginning and finding --------------------------------------------------------------------------------

    async def begin(self, session: HttpSession) -> None:
        """Begin a session; raises `HttpError` if there are too many, or the store cannot take it."""
        self.worker.check()
        await super().begin(session)
        try:
            most = 0 if session.principal is None else self.limits.sessions_of_principal
            await self._shared.create(session.key, self.limits.idle, session.principal, most)
        except StoreUnavailable:
            self._drop(session)
            raise

    async def find(self, id_: str, principal: str | None) -> HttpSession:
        """Return the session with an id in its current state; raises `HttpError` if it has ended."""
        self.worker.check()
        known = self._open.get(id_)
        if isinstance(known, SharedSession) and not known.ending:
            await self._catch_up(known, await self._shared.refresh(known.key, known.version))
        return await super().find(id_, principal)

    async def _take_part(self, id_: str, stored: StoredSession, principal: str | None) -> HttpSession | None:
        """Take part in a session that another worker has begun."""
        session = None
        try:
            session = await super()._take_part(id_, stored, principal)
        finally:
            if session is None:  # refused requests must leave nothing in the store
                with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                    await self._shared.close(key_of(id_), stored.worker_epoch)
        if isinstance(session, SharedSession) and isinstance(stored, SharedRecord):
            await self._deliver_missed(session, stored.last_broadcast)
        return session

    def _revived(self, id_: str, principal: str | None, stored: StoredSession, record: dict[str, Any]) -> HttpSession:
        session = super()._revived(id_, principal, stored, record)
        assert isinstance(session, SharedSession)
        assert isinstance(stored, SharedRecord)
        session.base, session.version, session.is_confirmed = record, stored.version, bool(record["ready"])
        return session

    async def _settle(self, session: HttpSession, stored: StoredSession) -> None:
        """Leave requests to the workers that handle them."""

    async def _make_room(self, principal: str | None) -> None:
        """Make room for another session; the client of the oldest may have been initialized at another worker."""
        while (oldest := self.evictable(principal)) is not None:
            assert isinstance(oldest, SharedSession)
            await self._catch_up(oldest, await self._shared.refresh(oldest.key, oldest.version, keep=False))
            if not oldest.ending and not oldest.connection.ready:
                oldest.finish()
                await self._forget(oldest)

    def _start(self, session: HttpSession) -> HttpSession:
        assert isinstance(session, SharedSession)
        self._by_key[session.key] = session
        return super()._start(session)

    # --- records ----------------------------------------------------------------------------------------------

    async def _save(self, session: HttpSession) -> None:
        session.seen = time.monotonic()
        assert isinstance(session, SharedSession)
        if not session.ending:
            await self._share(session)

    async def _share(self, session: SharedSession) -> None:
        """Store the record of a session if it has changed, merged with the changes of other workers."""
        known = session.snapshot()
        if known is None or to_json(session.record(known)) == session.saved:
            return
        async with session.saving:
            while (data := to_json(record := session.record(session.snapshot() or {}))) != session.saved:
                current = await self._shared.update(session.key, data, session.version, ready=record["ready"])
                if current is None:
                    self._drop(session)
                    return
                if current.record is None:
                    session.version, session.base, session.saved = current.version, record, data
                else:
                    session.take_over(current.version, current.record)
        await session.standing.persist()

    async def _catch_up(self, session: SharedSession, current: SessionVersion | None) -> None:
        """Adopt the current record of a session."""
        if current is None:
            self._drop(session)
        elif current.record is not None:
            async with session.saving:
                if current.version > session.version:
                    try:
                        session.take_over(current.version, current.record)
                    except UNREADABLE as error:
                        log.error("a session ends here, as its record cannot be read: %r", error)
                        self._drop(session)

    async def confirm(self, session: HttpSession) -> None:
        """Tell all workers that the client is initialized, before the client gets the response."""
        assert isinstance(session, SharedSession)
        session.is_confirmed = True
        await self._share(session)

    # --- messages between workers -----------------------------------------------------------------------------

    async def forward(self, session: HttpSession, body: bytes, events: Sequence[Event]) -> None:
        """Forward the messages of a POST that other workers wait for."""
        if body.lstrip()[:1] != b"[" and any(isinstance(one, _LOCAL) for one in events):
            return
        found = for_other_workers(body)
        epochs = found.epochs - {session.worker_epoch}
        to_all = any(not session.is_pending(id_) for id_ in found.cancelled)
        if epochs or to_all:
            await self._shared.route(session.key, None if to_all else epochs, found.body)

    @asynccontextmanager
    async def reading(self, session: HttpSession, last_event_id: str | None) -> AsyncGenerator[tuple[Stream, int]]:
        """Find the stream that a GET reads while the block runs, whichever worker writes it; see `SessionRegistry`."""
        async with self.readers.reading(session, last_event_id) as found:
            yield found

    async def _handle(self, message: WorkerMessage) -> None:
        session, fields = self._by_key.get(message.session), message.fields
        if session is None:
            return
        name = fields.get("stream", b"").decode()
        key = (session.key, name)
        match message.kind:
            case "event":
                self.readers.advance(key, int(fields["number"]), fields["data"] or None, fields["over"] == b"1")
            case "hangup":
                token = fields["token"].decode()
                stream = self.readers.find(key, token) if token else session.streams.get(name)
                if stream is not None:
                    stream.disconnect()
            case "post":
                events = list(session.connection.peer.read(fields["body"]))
                session.take(parsed(fields["body"], events))
                await session.settle([one.id for one in events if isinstance(one, CancelRequested)])
            case "end":
                self._drop(session)
            case _:
                log.debug("a message of a newer program is ignored: %s", message.kind)

    # --- broadcasts -------------------------------------------------------------------------------------------

    async def publish(self, server: Server, tell: Callable[[Any], Awaitable[None]]) -> None:
        """Notify the clients of all workers."""
        await self.broadcasts.load()
        for revision, method, params in await recorded(self.endpoint, server, tell):
            self.worker.check()
            await self._shared.publish(revision, method.name, jsonrpc.notification(method, params))

    async def _spread(self, broadcast: Broadcast) -> None:
        """Deliver a broadcast to the clients of this worker."""
        found = await self.broadcasts.read(broadcast)
        if found is None:
            return
        await self.broadcasts.spread(found)
        sessions = [one for one in self._by_key.values() if self._is_for(one, broadcast)]
        for begin in range(0, len(sessions), _DELIVERY_BATCH):
            await self._deliver(sessions[begin : begin + _DELIVERY_BATCH], found, broadcast.previous)

    def _is_for(self, session: SharedSession, broadcast: Broadcast) -> bool:
        is_served = not session.ending and session.is_negotiated
        return is_served and session.revision.name == broadcast.revision

    async def _deliver(self, sessions: list[SharedSession], found: ReadBroadcast, previous: int) -> None:
        data = [found.data if _wants(session, found.method, found.params) else b"" for session in sessions]
        rows = [(session.key, session.version, one) for session, one in zip(sessions, data, strict=True)]
        deliveries = await self._shared.deliver(rows, previous, found.number)
        for session, delivery in zip(sessions, deliveries, strict=True):
            match delivery:
                case Delivery("gone"):
                    self._drop(session)
                case Delivery("missed", last):
                    await self._deliver_missed(session, last)
                case Delivery("outdated", version, record):
                    await self._catch_up(session, SessionVersion(version, record))
                    if not session.ending:
                        await self._deliver([session], found, previous)
                case Delivery(_, event) if event:
                    session.standing.advance(event, found.data)
                case _:  # the client does not want the broadcast, or another worker has delivered it
                    pass

    async def _deliver_missed(self, session: SharedSession, last: int) -> None:
        """Deliver the broadcasts after a number, which no worker of the session has received."""
        for broadcast in await self._shared.broadcasts_after(last):
            found = await self.broadcasts.read(broadcast) if self._is_for(session, broadcast) else None
            if found is not None:
                await self._deliver([session], found, last)
                last = broadcast.number

    async def _renew_keys(self) -> None:
        """Adopt the keys of all workers for the state of requests; keep one own key until it is unused."""
        lifetime = max((one.request_state_signer or RequestStateSigner()).lifetime for one in self.endpoint.servers)
        keys = list(await self._shared.signing_keys(lifetime))
        own = [key for key in self._signing_keys if key not in keys]
        self._signing_keys[:] = [*keys, *own[:1]]

    # --- ending -----------------------------------------------------------------------------------------------

    def _drop(self, session: HttpSession) -> None:
        """End a session at this worker only: it is over, or continues at other workers."""
        session.finish()
        self._remove(session)

    def _remove(self, session: HttpSession) -> None:
        if self._open.get(session.id) is session:
            del self._open[session.id]
        if self._by_key.get(session.key) is session:
            del self._by_key[session.key]

    def _lose_all(self) -> None:
        self.broadcasts.end()
        for session in list(self._by_key.values()):
            self._drop(session)

    async def _forget(self, session: HttpSession) -> None:
        self._remove(session)
        await self._shared.forget(session.key)

    async def _wind_up(self, session: HttpSession) -> None:
        self._drop(session)
        await session.end("the session is over, or the store that it needs is away")
        self.readers.end(session.key)
        await self._shared.close(session.key, session.worker_epoch)

    async def _look_after_all(self) -> None:
        shared = self._shared
        self.worker.check()
        sessions = list(self._by_key.values())
        for session in sessions:
            for stream in session.abandoned:
                (found,) = await shared.positions([(session.key, stream.name)])
                if found is not None and found.busy_until:
                    stream.disconnected_at = time.monotonic()  # the client reads the stream at another worker
                else:
                    await session.abandon(stream)
            if session.is_overdue and not session.streams:
                await self._catch_up(session, await shared.refresh(session.key, session.version, keep=False))
                if session.connection.ready or session.ending:
                    self._drop(session)
                else:
                    await self.end(session)
        used = [one for one in sessions if not one.ending and (one.requests or one.streams)]
        positions = await shared.positions([(one.key, LISTEN_STREAM) for one in used])
        for session, found in zip(used, positions, strict=True):
            if found is None:
                self._drop(session)
        await self.readers.refresh()
        for key, name, pending in await shared.unfinished(shared.worker):  # of sessions that ended during an outage
            owner = self._by_key.get(key)
            if owner is None or name not in owner.streams:
                reason = "the store was away when this request ended"
                await shared.fail(key, name, shared.worker, unanswered(pending, reason))

    # --- running ----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Finish running requests and later ones on open connections; send readers to other workers."""
        if self._drained is None:
            self._drained = self._spawn(self._drain())

    async def _drain(self) -> None:
        self.retry = _RECONNECT_MS
        self.readers.leave(_RECONNECT_MS)
        with anyio.move_on_after(_DRAIN_SECONDS):
            await self._closing.wait()
            while any(stream.pending for one in self._by_key.values() for stream in one.streams.values()):
                await asyncio.sleep(0.02)
        self._stopping = True
        sessions = list(self._by_key.values())
        await asyncio.gather(*(session.end(STOPPING) for session in sessions))
        for session in sessions:
            self._drop(session)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Take part in the sessions of the workers while the block runs."""
        self.is_running = True
        self._stopping, self._drained, self.retry = False, None, None
        self._closing.clear()
        await self.worker.begin()
        tasks = [asyncio.create_task(self.worker.live()), asyncio.create_task(self.worker.read())]
        try:
            async with super().running():
                try:
                    yield
                finally:
                    self._closing.set()
                    self.leave()
                    if self._drained is not None:
                        with anyio.CancelScope(shield=True):
                            await asyncio.wait([self._drained])
        finally:
            with anyio.CancelScope(shield=True):
                while left := [task for task in tasks if not task.done()]:
                    for task in left:
                        task.cancel()
                    await asyncio.wait(left, timeout=0.1)  # a call that waits for the store may swallow a cancellation
                await self._shared.resign()
            self.is_running = False


def _wants(session: SharedSession, method: Notification[Any], params: Any) -> bool:
    """Return True if the client of a session asked for a notification."""
    agreed = session.connection.negotiated
    is_wanted_here = session.connection.ready and is_wanted(session.connection, agreed, method, params)
    return is_wanted_here and (method is not session.revision.log or agreed.wants(params.level))


class SharedWorkers:
    """Workers that serve the clients of an endpoint together.

    Args:
        store: Their store.
    """

    _registry: SharedRegistry

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def registry(self, endpoint: HttpEndpoint, limits: HttpLimits) -> SharedRegistry:
        """Return the registry of the sessions that the workers share."""
        self._registry = SharedRegistry(endpoint, self._store, limits)
        return self._registry

    @property
    def signer(self) -> RequestStateSigner:
        """The signer of all workers for the state of requests."""
        return self._registry.signer

    def continued(self, link: Any, wanted: object) -> AbstractAsyncContextManager[None]:
        """Return the context of a subscription, which goes on where the client's previous one ended."""
        return self._registry.broadcasts.continued(link, wanted)

    async def publish(self, server: Server, tell: Callable[[Any], Awaitable[None]]) -> bool:
        """Notify the clients of all workers; return False outside of the lifespan of the endpoint."""
        if self._registry.is_running:
            await self._registry.publish(server, tell)
        return self._registry.is_running


class RedisStore(SharedStore):
    """Store of sessions and events in Redis 7 or newer for all workers of an endpoint: `HttpApp(store=...)`.

    Each request of a session costs one round trip, and so does each event of a resumable stream. While Redis is
    unavailable, requests of sessions get 503. Redis Cluster is not supported. Sentinel is: pass its client.

    Args:
        url: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and number of the database; or a client.
        prefix: Prefix of all keys; applications that share a database need different prefixes.
        limits: Limits for a session, a principal and all sessions; `maxmemory` of Redis must be larger.
        lease: Seconds after which a silent worker counts as dead.
        timeout: Seconds to wait for Redis.
        patience: Seconds for which events of running requests wait while Redis is unavailable.
        connections: Maximum number of connections.
        rotate: Seconds after which a new key signs the state of requests.

    Raises:
        ValueError: The URL has another scheme, or the client decodes responses.
    """

    def workers(self) -> SharedWorkers:
        """Return the workers of one endpoint."""
        return SharedWorkers(self)


class RedisReplayCache:
    """Cache of proofs of possession in Redis for all workers: `ResourceServer(replay=RedisReplayCache(store))`.

    Args:
        store: Store of the sessions.
    """

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
        """Store a proof; return False if it was seen before.

        Raises:
            StoreUnavailable: Redis cannot answer, or the owner has too many proofs.
        """
        return await self._store.claim(proof.hex(), owner, seconds)
