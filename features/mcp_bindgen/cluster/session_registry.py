"""Sessions that several workers serve at the same time, and streams that several workers write."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import anyio
from pydantic_core import from_json, to_json

from mcp_bindgen.http.server.errors import STOPPING, refused
from mcp_bindgen.http.server.event_store import StoredSession, StoreUnavailable
from mcp_bindgen.http.server.open_session import HttpSession, unanswered
from mcp_bindgen.http.server.sessions import UNREADABLE, SessionRegistry, SharedSessions
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
        """Read a stream, which any worker may write, while the block runs; see `SessionStore.reading`."""
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

    def leave(self, retry: float) -> None:
        """Tell all clients to reconnect in so many seconds."""
        for stream, _ in list(self._open.values()):
            stream.leave(retry)


_DELIVERY_BATCH = 100  # sessions that get a broadcast in one round trip
_DRAIN_SECONDS = 7.0  # for requests to finish when the process stops; less than `serve.GRACE_SECONDS`
_RECONNECT_SECONDS = 0.5  # until clients of a stopping worker reconnect


@dataclass(eq=False)
class Member:
    """Part of this worker in a session.

    Attributes:
        session: The session.
        version: Version of the record that this worker knows.
        base: That record.
        saved: Its JSON text.
        is_confirmed: True if the client is initialized.
        saving: Held while the record is stored or replaced.
    """

    session: HttpSession
    version: int = 0
    base: Mapping[str, Any] = field(default_factory=dict[str, Any])
    saved: bytes = b""
    is_confirmed: bool = False
    saving: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))

    def record(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record that other workers need. It keeps the members that a newer program has added."""
        ready = self.is_confirmed or self.session.kernel.ready
        memory = {**self.base.get("memory", {}), **known}
        return {**self.base, "principal": self.session.principal, "memory": memory, "ready": ready}

    def take_over(self, version: int, stored: bytes) -> None:
        """Adopt a record that another worker has stored; changes that were made here remain.

        Args:
            version: Version of the record.
            stored: The record; empty before the first one is stored.
        """
        known = self.session.snapshot()
        theirs: dict[str, Any] = from_json(stored) if stored else dict(self.base)
        if stored and known is not None:
            memory = merged(self.base.get("memory", {}), self.record(known)["memory"], theirs["memory"])
            if theirs["ready"] and not self.session.kernel.ready:
                self.session.kernel.connection.move("confirmed")
            self.is_confirmed = self.is_confirmed or bool(theirs["ready"])
            self.session.update(memory)
        self.version, self.base, self.saved = version, theirs, stored

    def wants(self, method: Notification[Any], params: Any) -> bool:
        """Return True if the client asked for a notification."""
        connection = self.session.kernel
        agreed = connection.negotiated
        is_wanted_here = connection.ready and is_wanted(connection, agreed, method, params)
        return is_wanted_here and (method is not self.session.revision.log or agreed.wants(params.level))


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


class SharedWorkers(SharedSessions):
    """Workers that serve the clients of an endpoint together, seen from this worker.

    Args:
        store: Their store.

    Attributes:
        worker: This worker.
    """

    def __init__(self, store: SharedStore) -> None:
        super().__init__(store)
        self._store = store
        self._signing_keys = list(RequestStateSigner().keys)
        self._signer = RequestStateSigner(self._signing_keys)
        self.worker: Worker = Worker(store, self._handle, self._spread, self._lose_all, self._renew_keys)
        self._members: dict[str, Member] = {}
        self._readers = StreamReaders(store)
        self._closing = asyncio.Event()
        self._drained: asyncio.Task[None] | None = None
        self._served: tuple[SessionRegistry, Broadcasts] | None = None  # while they run

    @property
    def signer(self) -> RequestStateSigner:
        """Signer of all workers for the state of requests."""
        return self._signer

    # --- sessions ---------------------------------------------------------------------------------------------

    async def begin(self, session: HttpSession) -> None:
        """Store a new session."""
        self.worker.check()
        self._members[session.key] = Member(session)
        most = 0 if session.principal is None else session.limits.sessions_of_principal
        await self._store.create(session.key, session.limits.idle, session.principal, most)

    async def refresh(self, session: HttpSession, *, keep: bool = True) -> None:
        """Adopt the changes of other workers, or drop the session if it has ended there."""
        self.worker.check()
        member = self._members.get(session.key)
        if member is not None:
            await self._catch_up(member, await self._store.refresh(session.key, member.version, keep=keep))

    async def load(self, key: str) -> StoredSession | None:
        """Return the state of a session, and begin a worker epoch of it."""
        self.worker.check()
        return await self._store.load(key)

    async def resume(self, session: HttpSession, stored: StoredSession, record: Mapping[str, Any]) -> None:
        """Take part in a session; requests are left to the workers that handle them."""
        assert isinstance(stored, SharedRecord)
        member = Member(session, stored.version, record, stored.record, bool(record["ready"]))
        self._members[session.key] = member
        await self._deliver_missed(member, stored.last_broadcast)

    async def release(self, key: str, stored: StoredSession) -> None:
        """End the worker epoch of a session."""
        self._members.pop(key, None)
        await self._store.close(key, stored.worker_epoch)

    async def save(self, session: HttpSession) -> None:
        """Store the record of a session if it has changed, merged with the changes of other workers."""
        member, known = self._members.get(session.key), session.snapshot()
        if member is None or known is None or session.ending or to_json(member.record(known)) == member.saved:
            return
        async with member.saving:
            while (data := to_json(record := member.record(session.snapshot() or {}))) != member.saved:
                current = await self._store.update(session.key, data, member.version, ready=record["ready"])
                if current is None:
                    self._drop(session)
                    return
                if current.record is None:
                    member.version, member.base, member.saved = current.version, record, data
                else:
                    member.take_over(current.version, current.record)
        await session.standing.persist()

    async def _catch_up(self, member: Member, current: SessionVersion | None) -> None:
        """Adopt the current record of a session."""
        if current is None:
            self._drop(member.session)
        elif current.record is not None:
            async with member.saving:
                if current.version > member.version:
                    try:
                        member.take_over(current.version, current.record)
                    except UNREADABLE as error:
                        log.error("a session ends here, as its record cannot be read: %r", error)
                        self._drop(member.session)

    async def confirm(self, session: HttpSession) -> None:
        """Tell all workers that the client is initialized, before the client gets the response."""
        member = self._members.get(session.key)
        if member is not None and session.kernel.ready and not member.is_confirmed:
            await self.save(session)
            member.is_confirmed = True

    # --- messages between workers -----------------------------------------------------------------------------

    async def forward(self, session: HttpSession, body: bytes, events: Sequence[Event]) -> None:
        """Forward the messages of a POST that other workers wait for."""
        if body.lstrip()[:1] != b"[" and any(isinstance(one, _LOCAL) for one in events):
            return
        found = for_other_workers(body)
        epochs = found.epochs - {session.worker_epoch}
        to_all = any(not session.is_pending(id_) for id_ in found.cancelled)
        if epochs or to_all:
            await self._store.route(session.key, None if to_all else epochs, found.body)

    @asynccontextmanager
    async def reading(self, session: HttpSession, last_event_id: str | None) -> AsyncGenerator[tuple[Stream, int]]:
        """Find the stream that a GET reads while the block runs, whichever worker writes it."""
        async with self._readers.reading(session, last_event_id) as found:
            yield found

    async def _handle(self, message: WorkerMessage) -> None:
        member, fields = self._members.get(message.session), message.fields
        if member is None:
            return
        session, name = member.session, fields.get("stream", b"").decode()
        key = (session.key, name)
        match message.kind:
            case "event":
                self._readers.advance(key, int(fields["number"]), fields["data"] or None, fields["over"] == b"1")
            case "hangup":
                token = fields["token"].decode()
                stream = self._readers.find(key, token) if token else session.streams.get(name)
                if stream is not None:
                    stream.disconnect()
            case "post":
                events = list(session.kernel.connection.read(fields["body"]))
                session.take(parsed(fields["body"], events))
                await session.settle([one.id for one in events if isinstance(one, CancelRequested)])
            case "end":
                self._drop(member.session)
            case _:
                log.debug("a message of a newer program is ignored: %s", message.kind)

    # --- broadcasts -------------------------------------------------------------------------------------------

    def continued(self, link: Any, wanted: object) -> AbstractAsyncContextManager[None]:
        """Return the context of a subscription, which goes on where the client's previous one ended."""
        return nullcontext() if self._served is None else self._served[1].continued(link, wanted)

    @property
    def shared(self) -> object:
        """The store, which gets a broadcast once for all endpoints that share it."""
        return self._store

    async def publish(self, server: Server, tell: Callable[[Any], Awaitable[None]]) -> bool:
        """Notify the clients of all workers; return False outside of the lifespan of the endpoint."""
        if self._served is None:
            return False
        registry, broadcasts = self._served
        await broadcasts.load()
        for revision, method, params in await recorded(registry.endpoint, server, tell):
            self.worker.check()
            await self._store.publish(revision, method.name, jsonrpc.notification(method, params))
        return True

    async def _spread(self, broadcast: Broadcast) -> None:
        """Deliver a broadcast to the clients of this worker."""
        if self._served is None or (found := await self._served[1].read(broadcast)) is None:
            return
        await self._served[1].spread(found)
        members = [one for one in self._members.values() if self._is_for(one.session, broadcast)]
        for begin in range(0, len(members), _DELIVERY_BATCH):
            await self._deliver(members[begin : begin + _DELIVERY_BATCH], found, broadcast.previous)

    def _is_for(self, session: HttpSession, broadcast: Broadcast) -> bool:
        is_served = not session.ending and session.is_negotiated
        return is_served and session.revision.name == broadcast.revision

    async def _deliver(self, members: list[Member], found: ReadBroadcast, previous: int) -> None:
        rows = [
            (one.session.key, one.version, found.data if one.wants(found.method, found.params) else b"")
            for one in members
        ]
        deliveries = await self._store.deliver(rows, previous, found.number)
        for member, delivery in zip(members, deliveries, strict=True):
            match delivery:
                case Delivery("gone"):
                    self._drop(member.session)
                case Delivery("missed", last):
                    await self._deliver_missed(member, last)
                case Delivery("outdated", version, record):
                    await self._catch_up(member, SessionVersion(version, record))
                    if not member.session.ending:
                        await self._deliver([member], found, previous)
                case Delivery(_, event) if event:
                    member.session.standing.advance(event, found.data)
                case _:  # the client does not want the broadcast, or another worker has delivered it
                    pass

    async def _deliver_missed(self, member: Member, last: int) -> None:
        """Deliver the broadcasts after a number, which no worker of the session has received."""
        for broadcast in await self._store.broadcasts_after(last):
            is_for = self._served is not None and self._is_for(member.session, broadcast)
            found = await self._served[1].read(broadcast) if self._served is not None and is_for else None
            if found is not None:
                await self._deliver([member], found, last)
                last = broadcast.number

    async def _renew_keys(self) -> None:
        """Adopt the keys of all workers for the state of requests; keep one own key until it is unused."""
        servers = () if self._served is None else self._served[0].endpoint.servers
        lifetime = max((one.request_state_signer or RequestStateSigner()).lifetime for one in servers)
        keys = list(await self._store.signing_keys(lifetime))
        own = [key for key in self._signing_keys if key not in keys]
        self._signing_keys[:] = [*keys, *own[:1]]

    # --- ending -----------------------------------------------------------------------------------------------

    def _drop(self, session: HttpSession) -> None:
        """End a session at this worker only: it is over, or continues at other workers."""
        member = self._members.get(session.key)
        if member is not None and member.session is session:
            del self._members[session.key]
        session.finish()
        if self._served is not None:
            self._served[0].drop(session)

    def _lose_all(self) -> None:
        if self._served is not None:
            self._served[1].end()
        for member in list(self._members.values()):
            self._drop(member.session)

    async def forget(self, session: HttpSession) -> None:
        """Delete a session, for all workers."""
        self._drop(session)
        await self._store.forget(session.key)

    async def wind_up(self, registry: SessionRegistry, session: HttpSession) -> None:
        """Close a session that has ended at this worker."""
        self._drop(session)
        await session.end("the session is over, or the store that it needs is away")
        self._readers.end(session.key)
        await self._store.close(session.key, session.worker_epoch)

    async def look_after(self, registry: SessionRegistry) -> None:
        """End overdue sessions, abandoned streams, and requests that ended while the store was away."""
        store = self._store
        self.worker.check()
        sessions = registry.sessions
        for session in sessions:
            for stream in session.abandoned:
                (found,) = await store.positions([(session.key, stream.name)])
                if found is not None and found.busy_until:
                    stream.disconnected_at = time.monotonic()  # the client reads the stream at another worker
                else:
                    await session.abandon(stream)
            if session.is_overdue and not session.streams:
                await self.refresh(session, keep=False)
                if session.kernel.ready or session.ending:
                    self._drop(session)
                else:
                    await registry.end(session)
        used = [one for one in sessions if not one.ending and (one.requests or one.streams)]
        positions = await store.positions([(one.key, LISTEN_STREAM) for one in used])
        for session, found in zip(used, positions, strict=True):
            if found is None:
                self._drop(session)
        await self._readers.refresh()
        for key, name, pending in await store.unfinished(store.worker):  # of sessions that ended during an outage
            owner = self._members.get(key)
            if owner is None or name not in owner.session.streams:
                reason = "the store was away when this request ended"
                await store.fail(key, name, store.worker, unanswered(pending, reason))

    # --- running ----------------------------------------------------------------------------------------------

    def leave(self, registry: SessionRegistry) -> None:
        """Finish running requests and later ones on open connections; send readers to other workers."""
        if self._drained is None:
            self._drained = registry.spawn(self._drain(registry))

    async def stop(self, registry: SessionRegistry) -> None:
        """End all sessions at this worker, once their requests are answered."""
        self._closing.set()
        self.leave(registry)
        if self._drained is not None:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._drained])

    async def _drain(self, registry: SessionRegistry) -> None:
        self.retry = _RECONNECT_SECONDS
        self._readers.leave(_RECONNECT_SECONDS)
        with anyio.move_on_after(_DRAIN_SECONDS):
            await self._closing.wait()
            while any(stream.pending for one in registry.sessions for stream in one.streams.values()):
                await asyncio.sleep(0.02)
        registry.is_stopping = True
        sessions = registry.sessions
        await asyncio.gather(*(session.end(STOPPING) for session in sessions))
        for session in sessions:
            self._drop(session)

    @asynccontextmanager
    async def running(self, registry: SessionRegistry) -> AsyncGenerator[None]:
        """Take part in the sessions of the workers while the block runs."""
        self._served = registry, Broadcasts(registry.endpoint, self._store, self.worker, registry.spawn)
        self._drained, self.retry = None, None
        self._closing.clear()
        await self.worker.begin()
        tasks = [asyncio.create_task(self.worker.live()), asyncio.create_task(self.worker.read())]
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                while left := [task for task in tasks if not task.done()]:
                    for task in left:
                        task.cancel()
                    await asyncio.wait(left, timeout=0.1)  # a call that waits for the store may swallow a cancellation
                await self._store.resign()
            self._served = None


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
