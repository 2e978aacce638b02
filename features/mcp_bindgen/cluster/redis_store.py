"""Share sessions, their streams and broadcasts in Redis, or in what speaks its protocol, such as Valkey."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from pydantic_core import from_json
from redis.asyncio import Redis

from mcp_bindgen.http.server.event_store.base import (
    PAGE,
    STORE_LIMITS,
    Event,
    OpenStream,
    StoredSession,
    StoreLimits,
    StoreUnavailable,
    account_of,
)
from mcp_bindgen.http.server.limits import HttpLimits
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.errors import StoreFull
from mcp_bindgen.runtime.session.server import Service

from . import scripts
from .script_parts import script
from .session_registry import SharedRegistry
from .storage.redis import RedisConnection
from .store import Beat, Current, Mail, News, Position, Shared, Told

log = logging.getLogger("mcp_bindgen")

T = TypeVar("T")

FORMAT = 1
"""The format of the records that this program writes, and the newest that it reads."""

_MINUTE = 60 * 1000  # milliseconds for which a subscription that was ended waits for its client
_SETTLE = 5.0  # seconds until all workers know a new key
_TOO_MUCH = "too much is kept for this user"
_NAMES = 200_000
_NAMES_OF_OWNER = 50_000  # of these by one owner


class RedisStore:
    """Hold sessions, their streams and broadcasts in Redis 7 or newer, for all workers of an endpoint.

    It costs one round trip for each request of a session, and one for each event that clients may come back for. Redis
    Cluster is not supported, Sentinel is: pass its client.

    Args:
        url: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and number of the database; or a client.
        prefix: How all keys begin; applications that share a database have different ones.
        limits: How much it holds of a session, of a principal and in all; `maxmemory` of Redis has to be above that.
        lease: Seconds after which a worker that was not heard of counts as dead.
        timeout: Seconds to wait for Redis.
        patience: Seconds for which the events of running requests wait until Redis is back.
        connections: The most connections.
        rotate: Seconds for which a key seals the state of requests.

    Raises:
        ValueError: The URL is none of Redis.
    """

    def __init__(
        self,
        url: str | Redis,
        *,
        prefix: str = "mcp-bindgen:",
        limits: StoreLimits = STORE_LIMITS,
        lease: float = 5.0,
        timeout: float = 2.0,
        patience: float = 10.0,
        connections: int = 64,
        rotate: float = 24 * 3600.0,
    ) -> None:
        self.worker = _name()
        self.pulse = lease / 5
        self._prefix, self._limits, self._lease = prefix, limits, lease
        self._timeout, self._patience, self._rotate = timeout, patience, rotate
        self._idle = 1800.0
        self._is_new = True
        self._mail_id: bytes = b"0"
        self._news_id: bytes = b"0"
        self._is_warned = False
        texts = {name: script(body, limits) for name, body in vars(scripts).items() if name.isupper()}
        self._connection = RedisConnection(url, texts, timeout=timeout, connections=connections)
        self._redis, self._try, self.ready = self._connection.redis, self._connection.attempt, self._connection.ready

    def registry(self, service: Service, limits: HttpLimits) -> SharedRegistry:
        """Return the registry of the sessions that the workers share."""
        return SharedRegistry(service, self, limits)

    # --- asking -----------------------------------------------------------------------------------------------

    async def _run(self, name: str, session: str, *arguments: Any) -> Any:
        return await self._connection.run(name, self._prefix, self.worker, session, *arguments)

    async def _insist(self, name: str, session: str, *arguments: Any) -> Any:
        """Run a script that may be run twice; wait for a while if the store is away."""
        given = (self._prefix, self.worker, session, *arguments)
        return await self._connection.insist(self._patience, name, *given)

    # --- sessions ---------------------------------------------------------------------------------------------

    async def create(self, session: str, idle: float, principal: str | None = None, most: int = 0) -> int:
        """Begin a new session."""
        news = int(await self._run("CREATE", session, FORMAT, _ms(idle), account_of(principal), most))
        if news < 0:
            raise StoreFull("too many sessions of this user are open")
        return news

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store the record of a session."""
        if not await self._run("SAVE", session, FORMAT, _ms(self._idle), record, account_of(principal)):
            raise StoreFull(_TOO_MUCH)

    async def load(self, session: str) -> StoredSession | None:
        """Return a session."""
        found = await self.open(session)
        return None if found is None else StoredSession(found.record, found.life, found.streams)

    async def open(self, session: str) -> Shared | None:
        """Begin a life of this worker in a session; raises `StoreUnavailable` where a newer program has written it."""
        found = await self._run("OPEN", session, FORMAT)
        if found is None:
            return None
        if found[0] < 0:
            log.error("a session was written by a newer version of this program, which has to serve it")
            raise StoreUnavailable()
        life, record, version, told, *streams = found
        rows = zip(streams[::3], streams[1::3], streams[2::3], strict=True)
        return Shared(record, life, {name.decode(): OpenStream(last, ids) for name, last, ids in rows}, version, told)

    async def enter(self, session: str, version: int, *, keep: bool = True) -> Current | None:
        """Find a session."""
        return _current(await self._run("ENTER", session, version, int(keep)))

    async def update(self, session: str, record: bytes, version: int, *, ready: bool = False) -> Current | None:
        """Store the record of a session."""
        found = await self._insist("UPDATE", session, version, record, int(ready))
        if found == [-1]:
            raise StoreFull(_TOO_MUCH)
        return _current(found)

    async def close(self, session: str, life: int) -> None:
        """End a life of this worker in a session."""
        await self._run("CLOSE", session, life)

    async def forget(self, session: str) -> None:
        """Drop a session; the workers that take part in it are told."""
        await self._run("FORGET", session)

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Keep sessions from expiring; those that are idle expire by themselves."""
        self._idle = idle
        for session in alive:
            await self.enter(session, 0)

    # --- streams ----------------------------------------------------------------------------------------------

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """Add events to a stream of this worker; one that others have taken for dead begins none."""
        parts: list[Any] = []
        for event in events:
            parts += [event.number, self._limits.clipped(event.data)]
        found = await self._insist("WRITE", session, stream, int(pending is None), pending or b"", *parts)
        if found == -2:
            raise StoreUnavailable
        if found == -3:
            raise StoreFull(_TOO_MUCH)

    async def add(self, session: str, stream: str, data: bytes) -> int:
        """Add an event to a stream that all workers write."""
        return int(await self._insist("ADD", session, _name(), self._limits.clipped(data)))

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return what is held of a stream."""
        found = await self._run("SPAN", session, stream)
        return None if found is None else (found[0], found[1])

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """Return the next events of a stream."""
        found = await self._insist("READ", session, stream, after, PAGE)
        return [Event(number, data) for number, data in zip(found[::2], found[1::2], strict=True)]

    async def attach(self, session: str, stream: str, token: str, after: int | None, force: bool) -> Position | None:
        """Become the reader of a stream."""
        found = await self._run("ATTACH", session, stream, token, "" if after is None else after, int(force))
        return None if found is None else Position(found[0], found[1], bool(found[2]), found[3])

    async def detach(self, session: str, stream: str, token: str, given: int) -> None:
        """Note that a reader is gone."""
        await self._run("DETACH", session, stream, token, given)

    async def look(self, streams: Sequence[tuple[str, str]]) -> Sequence[Position | None]:
        """Return where streams stand."""
        raw = await self._pipelined([("LOOK", session, (name,)) for session, name in streams])
        return [None if one is None else Position(0, one[0], bool(one[1]), one[2]) for one in raw]

    async def _pipelined(self, calls: Sequence[tuple[str, str, tuple[Any, ...]]]) -> list[Any]:
        rows = [(name, (self._prefix, self.worker, session, *more)) for name, session, more in calls]
        return await self._connection.run_all(rows)

    # --- workers ----------------------------------------------------------------------------------------------

    async def route(self, session: str, lives: Collection[int] | None, body: bytes) -> None:
        """Pass on what was posted to other workers."""
        if (lives is None or lives) and not await self._run("ROUTE", session, body, *(lives or ())):
            raise StoreFull("too many messages of this user wait")

    async def beat(self) -> Beat:
        """Renew the lease of this worker."""
        life = "new" if self._is_new else "old"
        generation = _name()  # for a store that has none; data that were lost do not get their name back
        found = await self._run("BEAT", "", _ms(self._lease), generation, life)
        known, current, news, *dead = found
        is_known = bool(known) or self._is_new
        self._is_new = False
        names = [name.decode() for name in dead]
        return Beat(
            is_known, current.decode(errors="backslashreplace"), news, [name for name in names if name != self.worker]
        )

    def begin_anew(self) -> None:
        """Take another name."""
        self.worker, self._is_new = _name(), True

    async def resign(self) -> None:
        """Give up the lease, and all connections."""
        try:
            await self.bury(self.worker)
        except StoreUnavailable:
            log.debug("Redis is away at the end")
        self.begin_anew()
        await self._connection.close()

    async def unfinished(self, worker: str) -> Sequence[tuple[str, str, bytes]]:
        """Return the streams that a worker has to finish."""
        found = await self._run("UNFINISHED", "", worker)
        rows = zip(found[::3], found[1::3], found[2::3], strict=True)
        return [(session.decode(), name.decode(), pending) for session, name, pending in rows]

    async def fail(self, session: str, stream: str, worker: str, data: bytes) -> None:
        """End a stream of a worker with an event."""
        await self._run("FAIL", session, stream, worker, data)

    async def bury(self, worker: str) -> None:
        """Forget a worker that has no unfinished streams."""
        await self._run("BURY", "", worker)

    def listen(self, news: int) -> None:
        """Begin to read mail, and the broadcasts after a number."""
        self._mail_id, self._news_id = b"0", b"%d" % news

    async def mail(self) -> tuple[Sequence[Mail], Sequence[News]]:
        """Wait a moment for mail and broadcasts."""
        box, topic = f"{self._prefix}m:{self.worker}".encode(), f"{self._prefix}topic".encode()
        streams: dict[Any, Any] = {box: self._mail_id, topic: self._news_id}
        block = int(min(self._timeout / 2, 1.0) * 1000)
        found: Any = await self._try(partial(self._redis.xread, streams, count=1000, block=block), waits=True)
        rows: dict[bytes, Any] = _by_stream(found)
        received, published = rows.get(box, ()), rows.get(topic, ())
        if received:
            self._mail_id = received[-1][0]
            with suppress(StoreUnavailable):  # the next time removes them as well
                await self._run("RECEIVED", "", self._mail_id)
        if published:
            self._news_id = published[-1][0]
        return self._readable(_letter, received), self._readable(_news, published)

    def _readable(self, read: Callable[[bytes, Mapping[bytes, bytes]], T], rows: Any) -> list[T]:
        """Return the messages in rows of a stream; rows that cannot be read are skipped, which is logged once."""
        found: list[T] = []
        for place, fields in rows:
            try:
                found.append(read(place, fields))
            except (KeyError, ValueError):
                if not self._is_warned:
                    log.error("Redis holds messages that cannot be read: something else writes there; they are skipped")
                self._is_warned = True
        return found

    # --- broadcasts -------------------------------------------------------------------------------------------

    async def publish(self, revision: str, method: str, data: bytes) -> None:
        """Add a broadcast."""
        await self._insist("PUBLISH", "", _name(), revision, method, data)

    async def missed(self, told: int) -> Sequence[News]:
        """Return the broadcasts after a number."""
        topic = f"{self._prefix}topic"
        found: Any = await self._try(partial(self._redis.xrange, topic, f"{told + 1}-0"))
        return self._readable(_news, found)

    async def tell_all(self, sessions: Sequence[tuple[str, int, bytes]], before: int, number: int) -> Sequence[Told]:
        """Tell sessions of a broadcast, each of them once."""
        clipped = self._limits.clipped
        rows = [("TELL", session, (version, before, number, clipped(data))) for session, version, data in sessions]
        return [_told(one) for one in await self._pipelined(rows)]

    async def hand_over(self, subscription: str, told: int) -> None:
        """Note which broadcast was the last one of a subscription that a worker has ended."""
        await self._run("HAND_OVER", "", subscription, told, _MINUTE)

    async def take_over(self, subscription: str) -> int | None:
        """Return what was noted first of such a subscription, and forget it."""
        found = await self._run("TAKE_OVER", "", subscription)
        return None if found is None else int(found)

    async def claim(self, name: str, owner: str, seconds: float) -> bool:
        """Take a name for a time by the clock of Redis; return whether it was free.

        Raises:
            StoreFull: Its owner has too many names.
        """
        found = int(await self._run("CLAIM", name, owner, _ms(seconds), _NAMES_OF_OWNER, _NAMES))
        if found < 0:
            raise StoreFull("too many proofs at once")
        return bool(found)

    # --- keys -------------------------------------------------------------------------------------------------

    async def keys(self, lifetime: float) -> Sequence[bytes]:
        """Return the keys that seal the state of requests."""
        fresh = secrets.token_hex(32)
        found = await self._run("KEYS", "", fresh, _ms(self._rotate), _ms(lifetime), _ms(_SETTLE))
        return [bytes.fromhex(key.decode()) for key in found]


class RedisReplayCache:
    """Remember in Redis which proofs of possession were seen, for all workers: pass it as `ResourceServer(replay=...)`.

    Args:
        store: The store of the sessions.
    """

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
        """Note a proof; return whether it was not seen before; raise `StoreUnavailable` where that cannot be said."""
        return await self._store.claim(proof.hex(), owner, seconds)


def _name() -> str:
    return secrets.token_urlsafe(12)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _current(found: Any) -> Current | None:
    return None if found is None else Current(found[0], found[1] if len(found) > 1 else None)


def _told(found: Any) -> Told:
    kind, *more = cast("list[Any]", found)
    if kind == -1:
        return Told(gone=True)
    if kind == -2:
        return Told(behind=more[0])
    if kind == -3:
        return Told(current=Current(more[0], more[1]))
    return Told(kind)


def _by_stream(found: Any) -> dict[bytes, Any]:
    """Return what XREAD gives, by stream, whichever version of the protocol it came by."""
    pages: Any = cast("Any", found).items() if isinstance(found, dict) else found or ()
    return {key: _flat(rows) for key, rows in pages}


def _flat(rows: Any) -> Any:
    return [row for page in rows for row in page] if rows and isinstance(rows[0], list) else rows


def _text_keys(fields: Mapping[bytes, bytes]) -> dict[str, bytes]:
    return {key.decode(): value for key, value in fields.items()}


def _letter(place: bytes, fields: Mapping[bytes, bytes]) -> Mail:
    return Mail(fields[b"kind"].decode(), fields[b"session"].decode(), _text_keys(fields))


def _news(place: bytes, fields: Mapping[bytes, bytes]) -> News:
    number = int(place.partition(b"-")[0])
    revision, method = fields[b"revision"].decode(), fields[b"method"].decode()
    if not is_object(from_json(fields[b"data"])):
        raise ValueError(method)
    return News(number, revision, method, fields[b"data"], int(fields[b"before"]))
