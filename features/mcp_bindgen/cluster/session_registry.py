"""Serve sessions that other workers serve at the same time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from pydantic_core import from_json, to_json

from mcp_bindgen.http.server.call import STOPPING
from mcp_bindgen.http.server.envelope import Posted, for_others, read_posted
from mcp_bindgen.http.server.event_store.base import EventStore, StoredSession, StoreUnavailable
from mcp_bindgen.http.server.limits import HttpLimits
from mcp_bindgen.http.server.session_registry import UNREADABLE, OpenSession, SessionRegistry, key_of
from mcp_bindgen.http.server.session_transport import SessionTransport, unanswered
from mcp_bindgen.http.server.streams import LISTEN_STREAM, Stream, parse_event_id, taken
from mcp_bindgen.runtime.era.stateless.request_state import RequestStateSigner
from mcp_bindgen.runtime.era.stateless.subscriptions import Subscription, audience
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import missing
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.methods import Notification
from mcp_bindgen.runtime.session.server import Server, Service
from mcp_bindgen.runtime.session.session import Session

from .readers import Readers
from .session_record import SharedSession
from .store import Current, Mail, News, Shared, SharedStore
from .streams import SharedStanding
from .subscriptions import SharedSubscriptions
from .worker import Worker

log = logging.getLogger("mcp_bindgen")

_MOST_AT_ONCE = 100  # sessions that are told of a broadcast in one go
_DRAIN = 7.0  # seconds for requests to finish when the process stops; less than `serve._GRACE`
_RETRY = 500  # milliseconds after which a client shall come back to another worker


class SharedRegistry(SessionRegistry):
    """The sessions that this worker takes part in.

    Args:
        service: The servers.
        store: What the workers share.
        limits: How many there may be, and how much each of them takes.
    """

    kind = SharedSession

    def __init__(self, service: Service, store: SharedStore, limits: HttpLimits) -> None:
        super().__init__(service, store, limits)
        self._shared = store
        self._by_key: dict[str, SharedSession] = {}
        self.readers = Readers(store)
        self._opening: dict[str, asyncio.Lock] = {}
        self._closing = asyncio.Event()
        self._drained: asyncio.Task[None] | None = None
        self._seal_keys = list(RequestStateSigner().keys)
        self.worker = Worker(store, self._take, self._spread, self._lose_all, self._renew_keys)
        self.subscriptions = SharedSubscriptions(service, store, self.worker)
        self.around_subscription = self.subscriptions.continued

    # --- beginning and finding --------------------------------------------------------------------------------

    async def begin(self, principal: str | None) -> OpenSession:
        """Begin a session; raises `HttpError` when there are too many, or the store cannot take it."""
        self.worker.check()
        session = await super().begin(principal)
        try:
            most = 0 if principal is None else self.limits.sessions_of_principal
            await self._shared.create(session.key, self.limits.idle, principal, most)
        except StoreUnavailable:
            self._drop(session)
            raise
        return session

    async def find(self, id_: str, principal: str | None) -> OpenSession:
        """Return the session with an id, as it is now for all workers; raises `HttpError` where it is over."""
        self.worker.check()
        known = self._open.get(id_)
        if isinstance(known, SharedSession) and not known.ending:
            await self._catch_up(known, await self._shared.enter(known.key, known.version))
        return await super().find(id_, principal)

    async def _restore(self, id_: str, store: EventStore, principal: str | None) -> OpenSession | None:
        """Take part in a session that another worker has begun."""
        key = key_of(id_)
        lock = self._opening.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                if id_ in self._open:
                    return self._open[id_]
                stored = await self._shared.open(key)
                if stored is None:
                    return None
                taken = False
                try:
                    record = from_json(stored.record)
                    if not self._may_serve(record, principal):
                        return None
                    await self._make_room(principal)
                    session = self._start(self._revived(id_, principal, stored, record["memory"]))
                    taken = True
                finally:
                    if not taken:  # who is refused again and again shall leave nothing in the store
                        with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                            await self._shared.close(key, stored.life)
        finally:
            if not lock.locked():
                self._opening.pop(key, None)
        await self._tell_missed(session, stored.told)
        return session

    async def _make_room(self, principal: str | None) -> None:
        """Make room for another session; a client may have said to another worker that it is initialized."""
        while (oldest := self._in_the_way(principal)) is not None:
            assert isinstance(oldest, SharedSession)
            await self._catch_up(oldest, await self._shared.enter(oldest.key, oldest.version, keep=False))
            if not oldest.ending and not oldest.session.ready:
                oldest.finish()
                await self._forget(oldest)

    def _made(self, id_: str, principal: str | None) -> SharedSession:
        session = super()._made(id_, principal)
        assert isinstance(session, SharedSession)
        session.transport.standing = SharedStanding(session.key, self._shared, queue=self._queues.of(principal))
        return session

    def _revived(self, id_: str, principal: str | None, stored: StoredSession, known: dict[str, Any]) -> SharedSession:
        session = super()._revived(id_, principal, stored, known)
        assert isinstance(session, SharedSession)
        assert isinstance(stored, Shared)
        last = session.transport.standing.last
        queue = self._queues.of(principal)
        session.transport.standing = SharedStanding(session.key, self._shared, last=last, kept=True, queue=queue)
        session.base, session.version = from_json(stored.record), stored.version
        session.confirmed = bool(session.base["ready"])
        return session

    def _start(self, session: OpenSession) -> OpenSession:
        assert isinstance(session, SharedSession)
        self._by_key[session.key] = session
        return super()._start(session)

    # --- what a session is told -------------------------------------------------------------------------------

    async def _save(self, session: OpenSession) -> None:
        session.seen = time.monotonic()
        assert isinstance(session, SharedSession)
        if not session.ending:
            await self._share(session)

    async def _share(self, session: SharedSession) -> None:
        """Store what other workers need, if it has changed; what they have changed meanwhile counts as well."""
        known = session.snapshot()
        if known is None or to_json(session.record(known)) == session.saved:
            return
        async with session.saving:
            while (record := session.record(session.snapshot() or {})) and to_json(record) != session.saved:
                ready, version = record["ready"], session.version
                current = await self._shared.update(session.key, to_json(record), version, ready=ready)
                if current is None:
                    self._drop(session)
                    return
                if current.record is None:
                    self._note_polling(session, record["memory"])
                    session.version, session.base, session.saved = current.version, record, to_json(record)
                else:
                    session.take_over(current.version, current.record)
        await session.transport.standing.keep()

    async def _catch_up(self, session: SharedSession, current: Current | None) -> None:
        """Take over what has become of a session elsewhere."""
        if current is None:
            self._drop(session)
        elif current.record is not None and current.version > session.version:
            async with session.saving:
                if current.version > session.version:
                    try:
                        session.take_over(current.version, current.record)
                    except UNREADABLE as error:
                        log.error("a session ends here, as its record cannot be read: %r", error)
                        self._drop(session)

    async def confirm(self, session: OpenSession) -> None:
        """Let all workers know that the client is initialized, before it is told that we know."""
        assert isinstance(session, SharedSession)
        session.confirmed = True
        await self._share(session)

    # --- what is posted ---------------------------------------------------------------------------------------

    async def forward(self, session: OpenSession, said: Posted, body: bytes) -> None:
        """Pass on to other workers what is for them: answers to their questions, progress of those, cancellations."""
        lives = {number >> 32 for number in said.answered} - {session.transport.life}
        everywhere = any(not session.transport.is_at_work_on(id_) for id_ in said.cancelled)
        if lives or everywhere:
            await self._shared.route(session.key, None if everywhere else lives, for_others(body))

    @asynccontextmanager
    async def reading(self, session: OpenSession, last_event_id: str | None) -> AsyncGenerator[tuple[Stream, int]]:
        """Find the stream that a GET reads while the block runs, whichever worker writes it; see `SessionRegistry`."""
        if last_event_id is None and session.transport.standing.is_read:
            raise taken()
        name, number = (LISTEN_STREAM, None) if last_event_id is None else parse_event_id(last_event_id) or ("", 0)
        async with self.readers.reading(session, name, number) as found:
            yield found

    # --- mail and broadcasts ----------------------------------------------------------------------------------

    async def _take(self, letter: Mail) -> None:
        session = self._by_key.get(letter.session)
        if session is None:
            return
        name, streams = letter.fields.get("stream", b"").decode(), session.transport.streams
        match letter.kind:
            case "event":
                over, data = letter.fields["over"] == b"1", letter.fields["data"] or None
                self.readers.advance((letter.session, name), int(letter.fields["number"]), data, over)
            case "hangup":
                token = letter.fields["token"].decode()
                found = self.readers.find((letter.session, name), token) if token else streams.get(name)
                if found is not None:
                    found.hang_up()
            case "post":
                body = letter.fields["body"]
                session.transport.take(body)
                await session.transport.settle(read_posted(body).cancelled)
            case "end":
                self._drop(session)
            case _:
                log.debug("mail from a newer program is left alone: %s", letter.kind)

    async def publish(self, revision: str, method: Notification[Any], params: Any) -> None:
        """Tell the clients of all workers something; see `Server.publish`."""
        self.worker.check()
        await self._shared.publish(revision, method.name, jsonrpc.notification(method, params))

    async def _spread(self, news: News) -> None:
        """Tell the clients of this worker of a broadcast."""
        server, found = self.service.server_of(news.revision), self.subscriptions.read(news)
        await self.subscriptions.tell(news, found)
        if server is None or found is None:
            return
        method, params = found
        links = [link for link in audience(server) if not _is_shared(link) and not isinstance(link, Subscription)]
        if links:
            self._spawn(_tell(server, links, method, params))
        sessions = [one for one in self._by_key.values() if self._is_for(one, news)]
        for begin in range(0, len(sessions), _MOST_AT_ONCE):
            await self._tell(sessions[begin : begin + _MOST_AT_ONCE], news, news.before, method, params)

    def _is_for(self, session: SharedSession, news: News) -> bool:
        return not session.ending and session.snapshot() is not None and session.revision.name == news.revision

    async def _tell(
        self, sessions: list[SharedSession], news: News, before: int, method: Notification[Any], params: Any
    ) -> None:
        wanted = [news.data if _wants(one, method, params) else b"" for one in sessions]
        rows = [(one.key, one.version, data) for one, data in zip(sessions, wanted, strict=True)]
        told = await self._shared.tell_all(rows, before, news.number)
        for session, data, found in zip(sessions, wanted, told, strict=True):
            if found.gone:
                self._drop(session)
            elif found.behind is not None:
                await self._tell_missed(session, found.behind)
            elif found.current is not None:
                await self._catch_up(session, found.current)
                if not session.ending:
                    await self._tell([session], news, before, method, params)
            elif found.number:
                session.transport.standing.advance(found.number, data)

    async def _tell_missed(self, session: OpenSession, told: int) -> None:
        """Tell a session of broadcasts for which no worker that took part in it was there."""
        assert isinstance(session, SharedSession)
        for news in await self._shared.missed(told):
            found = self.subscriptions.read(news) if self._is_for(session, news) else None
            if found is not None:
                await self._tell([session], news, told, *found)
                told = news.number

    async def _renew_keys(self) -> None:
        """Use the keys of request state that all workers use."""
        lifetime = max(server.request_state_signer.lifetime for server in self.service.servers)
        keys = list(await self._shared.keys(lifetime))
        self._seal_keys[:] = [*keys, *(key for key in self._seal_keys if key not in keys)][: len(keys) + 1]

    # --- ending -----------------------------------------------------------------------------------------------

    def _drop(self, session: OpenSession) -> None:
        """End a session here and nowhere else: it is over, or goes on without this worker."""
        assert isinstance(session, SharedSession)
        session.left = True
        session.finish()
        self._remove(session)

    def _remove(self, session: OpenSession) -> None:
        if self._open.get(session.id) is session:
            del self._open[session.id]
        if self._by_key.get(session.key) is session:
            del self._by_key[session.key]

    def _lose_all(self) -> None:
        self.subscriptions.end()
        for session in list(self._by_key.values()):
            self._drop(session)

    async def _forget(self, session: OpenSession) -> None:
        self._remove(session)
        await self._shared.forget(session.key)

    async def _wind_up(self, session: OpenSession) -> None:
        assert isinstance(session, SharedSession)
        self._drop(session)
        await session.transport.end("the session is over, or the store that it needs is away")
        self.readers.end(session.key)
        await self._shared.close(session.key, session.transport.life)

    async def _look_after_all(self) -> None:
        shared, limits = self._shared, self.limits
        self.worker.check()
        sessions = list(self._by_key.values())
        for session in sessions:
            for stream in session.transport.abandoned(limits.abandoned):
                (found,) = await shared.look([(session.key, stream.name)])
                if found is not None and found.busy:
                    stream.left = time.monotonic()  # its client reads it elsewhere
                else:
                    await session.transport.abandon(stream, session.revision)
            if session.is_overdue(limits) and not session.transport.streams:
                await self._catch_up(session, await shared.enter(session.key, session.version, keep=False))
                if session.session.ready or session.ending:
                    self._drop(session)
                else:
                    await self.end(session)
        used = [one for one in sessions if not one.ending and (one.requests or one.transport.streams)]
        for session, found in zip(used, await shared.look([(one.key, LISTEN_STREAM) for one in used]), strict=True):
            if found is None:
                self._drop(session)
        await self.readers.look()
        await self._finish_orphans()

    async def _finish_orphans(self) -> None:
        """Fail the requests of this worker whose sessions have ended here while the store was away."""
        shared = self._shared
        for key, name, pending in await shared.unfinished(shared.worker):
            session = self._by_key.get(key)
            if session is None or name not in session.transport.streams:
                reason = "the store was away when this request ended"
                await shared.fail(key, name, shared.worker, unanswered(pending, reason))

    # --- living -----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Finish the requests that are there and that still come on open connections; send readers to other workers."""
        if self._drained is None:
            self._drained = self._spawn(self._drain())

    async def _drain(self) -> None:
        self.retry = _RETRY
        self.readers.leave(_RETRY)
        with anyio.move_on_after(_DRAIN):
            await self._closing.wait()
            while any(stream.pending for one in self._by_key.values() for stream in one.transport.streams.values()):
                await asyncio.sleep(0.02)
        self._stopping = True
        sessions = list(self._by_key.values())
        await asyncio.gather(*(session.transport.end(STOPPING) for session in sessions))
        for session in sessions:
            self._drop(session)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Take part in the sessions of the workers while the block runs."""
        servers = self.service.servers
        seal = RequestStateSigner(self._seal_keys)
        for server in servers:
            server.publish = self.publish
            if server.request_state_signer is Server.request_state_signer:
                server.request_state_signer = seal
        self._stopping, self._drained, self.retry = False, None, None
        self._closing.clear()
        await self.worker.begin()
        beside = [asyncio.create_task(self.worker.live()), asyncio.create_task(self.worker.read())]
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
                while left := [task for task in beside if not task.done()]:
                    for task in left:
                        task.cancel()
                    await asyncio.wait(left, timeout=0.1)  # what waits for the store may swallow a cancellation
                await self._shared.resign()
            for server in servers:
                server.publish = None
                if server.request_state_signer is seal:
                    del server.request_state_signer


def _is_shared(link: Any) -> bool:
    """Tell whether a link is a session that all workers know."""
    return isinstance(link, Session) and isinstance(link.transport, SessionTransport)


def _wants(session: SharedSession, method: Notification[Any], params: Any) -> bool:
    """Tell whether the client of a session wants to be told."""
    agreed = session.session.negotiated
    if not session.session.ready or not session.revision.era.is_followed(agreed, method, params):
        return False
    if method.extension is not None and missing(method, session.revision, "server", agreed.declared) is not None:
        return False
    return method is not session.revision.log or agreed.wants(params.level)


async def _tell(server: Server, links: list[Any], method: Notification[Any], params: Any) -> None:
    """Tell those who listen, and connections that are this worker's alone."""

    async def one(link: Any) -> None:
        with suppress(ConnectionClosed):
            await server.context(link).notify(method, params)

    known = [context.link for context in server.connections if type(context) is server.context]
    async with anyio.create_task_group() as tasks:
        for link in links:
            if link in known:
                tasks.start_soon(one, link)
