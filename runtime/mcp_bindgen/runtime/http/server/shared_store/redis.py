"""Share sessions, their streams and broadcasts in Redis, or in what speaks its protocol, such as Valkey."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, cast

from redis.asyncio import Redis

from ....storage.redis import RedisConnection
from ..event_store.base import PAGE, STORE_LIMITS, Event, OpenStream, StoredSession, StoreLimits, StoreUnavailable
from . import _scripts as scripts
from .base import Beat, Current, Mail, News, Position, Shared, Told

log = logging.getLogger("mcp_bindgen")

FORMAT = 1
"""The format of the records that this program writes, and the newest that it reads."""

_DAY = 24 * 3600 * 1000  # milliseconds for which what belongs to no session stays without workers
_SETTLE = 5.0  # seconds until all workers know a new key


class RedisStore:
    """Hold sessions, their streams and broadcasts in Redis 7 or newer, for all workers of an endpoint.

    It costs one round trip for each request of a session, and one for each event that clients may come back for. Redis
    Cluster is not supported, Sentinel is: pass its client.

    Args:
        url: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and number of the database; or a client.
        prefix: How all keys begin; applications that share a database have different ones.
        limits: How much it holds of a session; `maxmemory` of Redis limits the whole.
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
        self._generation = _name()
        self._mail_id, self._news = b"0", 0
        texts = {
            name: scripts.script(body)
            for name, body in vars(scripts).items()
            if name.isupper() and not name.startswith("_")
        }
        self._connection = RedisConnection(url, texts, timeout=timeout, connections=connections)
        self._redis, self._try, self.ready = self._connection.redis, self._connection.attempt, self._connection.ready

    # --- asking -----------------------------------------------------------------------------------------------

    async def _run(self, name: str, session: str, *arguments: Any) -> Any:
        return await self._connection.run(name, self._prefix, self.worker, session, *arguments)

    async def _insist(self, name: str, session: str, *arguments: Any) -> Any:
        """Run a script that may be run twice; wait for a while if the store is away."""
        given = (self._prefix, self.worker, session, *arguments)
        return await self._connection.insist(self._patience, name, *given)

    # --- sessions ---------------------------------------------------------------------------------------------

    async def create(self, session: str, idle: float) -> int:
        """Make room for a new session."""
        return int(await self._run("CREATE", session, FORMAT, _ms(idle)))

    async def save(self, session: str, record: bytes) -> None:
        """Store the record of a session."""
        await self._run("SAVE", session, FORMAT, _ms(self._idle), record)

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

    async def update(self, session: str, record: bytes, version: int) -> Current | None:
        """Store the record of a session."""
        return _current(await self._insist("UPDATE", session, version, record))

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
            parts += [event.number, event.data]
        limits = self._limits
        rest = (limits.events, limits.size, int(pending is None), pending or b"", *parts)
        if await self._insist("WRITE", session, stream, *rest) == -2:
            raise StoreUnavailable

    async def add(self, session: str, stream: str, data: bytes) -> int:
        """Add an event to a stream that all workers write."""
        limits = self._limits
        return int(await self._insist("ADD", session, stream, limits.events, limits.size, _name(), data))

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
        if lives is None or lives:
            await self._run("ROUTE", session, body, *(lives or ()))

    async def beat(self) -> Beat:
        """Renew the lease of this worker."""
        life = "new" if self._is_new else "old"
        found = await self._run("BEAT", "", _ms(self._lease), self._generation, life, _DAY)
        known, generation, news, *dead = found
        is_known = bool(known) or self._is_new
        self._is_new = False
        names = [name.decode() for name in dead]
        return Beat(is_known, generation.decode(), news, [name for name in names if name != self.worker])

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
        await self._run("FAIL", session, stream, worker, data, self._limits.events, self._limits.size)

    async def bury(self, worker: str) -> None:
        """Forget a worker that has no unfinished streams."""
        await self._run("BURY", "", worker)

    def listen(self, news: int) -> None:
        """Begin to read mail, and the broadcasts after a number."""
        self._mail_id, self._news = b"0", news

    async def mail(self) -> tuple[Sequence[Mail], Sequence[News]]:
        """Wait a moment for mail and broadcasts."""
        box, topic = f"{self._prefix}m:{self.worker}".encode(), f"{self._prefix}topic".encode()
        streams: dict[Any, Any] = {box: self._mail_id, topic: f"{self._news}-0"}
        block = int(min(self._timeout / 2, 1.0) * 1000)
        found: Any = await self._try(partial(self._redis.xread, streams, count=1000, block=block), waits=True)
        rows: dict[bytes, Any] = _by_stream(found)
        letters: list[Mail] = []
        for place, fields in rows.get(box, ()):
            self._mail_id = place
            letters.append(Mail(fields[b"kind"].decode(), fields[b"session"].decode(), _text_keys(fields)))
        news = [_news(place, fields) for place, fields in rows.get(topic, ())]
        if news:
            self._news = news[-1].number
        if letters:
            await self._try(partial(self._redis.xtrim, box, minid=self._mail_id, approximate=True))
        return letters, news

    # --- broadcasts -------------------------------------------------------------------------------------------

    async def publish(self, revision: str, method: str, data: bytes) -> None:
        """Add a broadcast."""
        await self._insist("PUBLISH", "", _name(), revision, method, data)

    async def missed(self, told: int) -> Sequence[News]:
        """Return the broadcasts after a number."""
        topic = f"{self._prefix}topic"
        found: Any = await self._try(partial(self._redis.xrange, topic, f"{told + 1}-0"))
        return [_news(place, fields) for place, fields in found]

    async def tell_all(self, sessions: Sequence[tuple[str, int, bytes]], before: int, number: int) -> Sequence[Told]:
        """Tell sessions of a broadcast, each of them once."""
        limits = self._limits
        found = await self._pipelined(
            [
                ("TELL", session, (limits.events, limits.size, version, before, number, data))
                for session, version, data in sessions
            ]
        )
        return [_told(one) for one in found]

    async def claim(self, name: str, until: float) -> bool:
        """Take a name until a time, in seconds since 1970; return whether nobody had taken it."""
        options = {"nx": True, "pxat": max(int(until * 1000), 1)}
        return bool(await self._try(partial(self._redis.set, f"{self._prefix}once:{name}", 1, **options)))

    # --- keys -------------------------------------------------------------------------------------------------

    async def keys(self, lifetime: float) -> Sequence[bytes]:
        """Return the keys that seal the state of requests."""
        fresh = secrets.token_hex(32)
        found = await self._run("KEYS", "", fresh, _ms(self._rotate), _ms(lifetime), _ms(_SETTLE), _DAY)
        return [bytes.fromhex(key.decode()) for key in found]


class RedisReplayCache:
    """Remember in Redis which proofs of possession were seen, for all workers: pass it as `ResourceServer(replay=...)`.

    Args:
        store: The store of the sessions.
    """

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def add(self, proof: bytes, owner: str, until: float) -> bool:
        """Note a proof; return whether it was not seen before; raise `StoreUnavailable` where that cannot be said."""
        return await self._store.claim(f"dpop:{proof.hex()}", until)


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


def _news(place: bytes, fields: Mapping[bytes, bytes]) -> News:
    number = int(place.partition(b"-")[0])
    revision, method = fields[b"revision"].decode(), fields[b"method"].decode()
    return News(number, revision, method, fields[b"data"], int(fields[b"before"]))
