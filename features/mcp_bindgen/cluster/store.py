"""Sessions, streams, messages and broadcasts that several workers share in Redis.

Each worker takes part in a session under a number of its own, its worker epoch in that session. Names of streams and
ids of the server's requests contain the epoch, so a message of a client tells which worker waits for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic_core import from_json
from redis.asyncio import Redis

from mcp_bindgen.http.server import event_store
from mcp_bindgen.http.server.errors import StoreFull
from mcp_bindgen.http.server.event_store import StoredEvent, StoredSession, StoreUnavailable
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_object

from .redis_connection import Argument, RedisConnection, read_scripts

T = TypeVar("T")

FORMAT = 1
"""Format of the records that this program writes, and the newest format that it reads."""

SESSION_BYTES = 1024
"""Bytes that an account is charged for the keys and counters of a session."""

MESSAGE_BYTES = 256
"""Bytes that an account is charged for the keys and counters of a message for a worker."""

_HANDOVER_SECONDS = 60.0  # for which the end of a subscription waits for the client
_HANDOVER_PATIENCE = 2.0  # for the store to be there again at a handover: without it the client misses broadcasts
_KEY_DELAY_SECONDS = 5.0  # until all workers know a new key
_MAX_PROOFS = 200_000
_MAX_PROOFS_OF_OWNER = 50_000
_TOO_MUCH = "too much is kept for this user"


@dataclass(frozen=True, slots=True)
class SharedRecord(StoredSession):
    """State of a session as a worker opens it.

    Attributes:
        version: Version of the record.
        last_broadcast: Number of the last broadcast that was delivered to the session.
    """

    version: int = 0
    last_broadcast: int = 0


class SessionVersion(NamedTuple):
    """Version of a session's record.

    Attributes:
        version: The version.
        record: The record; None if the worker knows this version.
    """

    version: int
    record: bytes | None = None


class StreamPosition(NamedTuple):
    """Position of a stream.

    Attributes:
        after: Number of the event after which the reader continues.
        last: Number of the last event.
        is_closed: True if no event will be added.
        busy_until: End of the lease of the worker whose connection reads the stream, in milliseconds; 0 without one.
    """

    after: int
    last: int
    is_closed: bool
    busy_until: int = 0


class Delivery(NamedTuple):
    """Outcome of a broadcast for one session.

    Attributes:
        outcome: `delivered`, `missed` (the session lacks earlier broadcasts), `outdated` (the worker knows an old
            record of the session, and must decide again) or `gone` (the session has ended).
        number: Number of the event on the listen stream, 0 if none was added; of the last broadcast that was delivered;
            or version of the record.
        record: Current record, if the worker's record is outdated.
    """

    outcome: str
    number: int = 0
    record: bytes = b""


class Broadcast(NamedTuple):
    """Notification for the clients of all workers.

    Attributes:
        number: Number of the broadcast.
        revision: Revision of the clients.
        method: Method of the notification.
        data: The message.
        params: Its params.
        previous: Number of the previous broadcast for the same revision.
    """

    number: int
    revision: str
    method: str
    data: bytes
    params: Any
    previous: int


class WorkerMessage(NamedTuple):
    """Message for one worker.

    Attributes:
        kind: `post` (with `body`), `event` (`stream`, `number`, `data`, `over`), `hangup` (`stream`, `token`) or `end`.
            Workers ignore other kinds, which newer programs may send.
        session: Key of the session.
        fields: Further members.
    """

    kind: str
    session: str
    fields: Mapping[str, bytes]


class Heartbeat(NamedTuple):
    """State of the workers.

    Attributes:
        is_known: False if the other workers took this worker for dead, or the store has lost its data.
        generation: Name of the store's data, which changes after a loss of data.
        last_broadcast: Number of the last broadcast.
        dead: Workers whose lease has expired.
    """

    is_known: bool
    generation: str
    last_broadcast: int
    dead: Sequence[str]


class SharedStore:
    """Base of `RedisStore`, which describes the arguments.

    All methods raise `StoreUnavailable` while Redis is unavailable. Limits count for each principal, across workers;
    methods that add data raise `StoreFull` beyond them.

    Attributes:
        worker: Name of this worker.
        heartbeat_interval: Seconds between two calls of `heartbeat`.
    """

    def __init__(
        self,
        url: str | Redis,
        *,
        prefix: str = "mcp-bindgen:",
        limits: event_store.StoreLimits = event_store.STORE_LIMITS,
        lease: float = 5.0,
        timeout: float = 2.0,
        patience: float = 10.0,
        connections: int = 64,
        rotate: float = 24 * 3600.0,
    ) -> None:
        self.worker: str = _name()
        self.heartbeat_interval: float = lease / 5
        self._prefix, self._limits, self._lease, self._rotate = prefix, limits, lease, rotate
        self._block_ms = _ms(min(timeout / 2, 1.0))
        self._idle = 1800.0
        self._is_new = True
        self._message_id = self._broadcast_id = b"0"
        self._is_warned = False
        constants = {name.upper(): limit for name, limit in asdict(limits).items()}
        constants |= {"SESSION_BYTES": SESSION_BYTES, "MESSAGE_BYTES": MESSAGE_BYTES}
        scripts = read_scripts(Path(__file__).with_name("scripts"), constants)
        self._connection = RedisConnection(url, scripts, timeout=timeout, connections=connections)
        self._redis, self._try = self._connection.redis, self._connection.attempt
        self.ready: Callable[[], Awaitable[bool]] = self._connection.ready
        self._insist = partial(self._run, patience=patience)  # for scripts that may run twice

    async def _run(self, name: str, session: str, *arguments: Argument, patience: float = 0.0) -> Any:
        return await self._connection.run(name, self._prefix, self.worker, session, *arguments, patience=patience)

    async def _run_all(self, name: str, calls: Iterable[tuple[Argument, ...]]) -> list[Any]:
        return await self._connection.run_all(name, [(self._prefix, self.worker, *call) for call in calls])

    # --- sessions ---------------------------------------------------------------------------------------------

    async def create(self, session: str, idle: float, principal: str | None = None, max_sessions: int = 0) -> int:
        """Create a session, unless it exists.

        At the limit, it replaces the principal's oldest session that is not initialized.

        Args:
            session: Key of the session.
            idle: Seconds without use after which the session expires.
            principal: Principal of the session, if known.
            max_sessions: Maximum number of sessions of the principal; 0 for no limit.

        Returns:
            Number of the last broadcast; the session gets later ones only.

        Raises:
            StoreFull: The principal has reached a limit.
        """
        account = event_store.account_of(principal)
        found = int(await self._run("create", session, FORMAT, _ms(idle), account, max_sessions))
        if found < 0:
            raise StoreFull("too many sessions of this user are open")
        return found

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """Store the record of a session; see `EventStore`."""
        current = await self.refresh(session, 0)
        if current is None:
            await self.create(session, self._idle, principal)
        await self.update(session, record, 0 if current is None else current.version, ready=True)

    async def load(self, session: str) -> SharedRecord | None:
        """Begin a worker epoch in a session, and return its state; None if the session is unknown.

        Raises:
            StoreUnavailable: A newer program wrote the session.
        """
        found = await self._run("open", session, FORMAT)
        if found is None:
            return None
        if found[0] < 0:
            log.error("a newer version of this program wrote a session; only that version can serve it")
            raise StoreUnavailable()
        epoch, record, version, last_broadcast, *streams = found
        open_streams = {name.decode(): event_store.OpenStream(last, ids) for name, last, ids in _triples(streams)}
        return SharedRecord(record, epoch, open_streams, version, last_broadcast)

    async def refresh(self, session: str, version: int, *, keep: bool = True) -> SessionVersion | None:
        """Return the version of a session, and its record if that is newer; None if the session has ended.

        Args:
            session: Key of the session.
            version: Version of the record that this worker knows.
            keep: Whether the call counts as use, which delays the expiry.
        """
        found = await self._run("enter", session, version, int(keep))
        return None if found is None else SessionVersion(*found)

    async def update(self, session: str, record: bytes, version: int, *, ready: bool = False) -> SessionVersion | None:
        """Store the record of a session if its version is unchanged, else return the stored record.

        Args:
            session: Key of the session.
            record: The new record.
            version: Version of the record that the new one is based on.
            ready: True if the client is initialized.

        Returns:
            The version, with the stored record if that prevailed; None if the session has ended.
        """
        found = await self._insist("update", session, version, record, int(ready))
        if found == [-1]:
            raise StoreFull(_TOO_MUCH)
        return None if found is None else SessionVersion(*found)

    async def close(self, session: str, epoch: int) -> None:
        """End an epoch of this worker in a session. The session continues."""
        await self._try(partial(self._redis.hdel, f"{self._prefix}s:{session}", f"w:{epoch}"))

    async def forget(self, session: str) -> None:
        """Delete a session, and notify its workers."""
        await self._run("forget", session)

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Keep sessions from expiring; Redis itself deletes idle sessions."""
        self._idle = idle
        for session in alive:
            await self.refresh(session, 0)

    # --- streams ----------------------------------------------------------------------------------------------

    async def write(self, session: str, stream: str, events: Sequence[StoredEvent], pending: bytes | None) -> None:
        """Add events to a stream of this worker; see `EventStore`. A worker that counts as dead begins no stream."""
        parts: list[Argument] = []
        for event in events:
            parts += [event.number, self._limits.clipped(event.data)]
        found = await self._insist("write", session, stream, int(pending is None), pending or b"", *parts)
        if found == -2:
            raise StoreUnavailable
        if found == -3:
            raise StoreFull(_TOO_MUCH)

    async def add(self, session: str, data: bytes) -> int:
        """Add an event to the listen stream, which all workers write; return its number, 0 if the session has ended."""
        return int(await self._insist("add", session, _name(), self._limits.clipped(data)))

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the numbers of the oldest and the last event of a stream; see `EventStore`."""
        (found,) = await self.positions([(session, stream)])
        return None if found is None else (found.after + 1, found.last)

    async def read(self, session: str, stream: str, after: int) -> Sequence[StoredEvent]:
        """Return the next events of a stream; see `EventStore`."""
        found = await self._insist("read", session, stream, after, event_store.PAGE)
        return event_store.page(StoredEvent(number, data) for number, data in zip(found[::2], found[1::2], strict=True))

    async def attach(
        self, session: str, stream: str, token: str, after: int | None, force: bool
    ) -> StreamPosition | None:
        """Become the reader of a stream: this worker gets a message for each event. The previous reader hangs up.

        Args:
            session: Key of the session.
            stream: Name of the stream.
            token: Name of the reader.
            after: Number of the last event that the client has; None for the last event that any reader got.
            force: Whether to replace a reader whose worker is alive, before it has detached.

        Returns:
            The position; None if the stream is unknown or the events after `after` were dropped.
        """
        return _position(await self._run("attach", session, stream, token, "" if after is None else after, int(force)))

    async def detach(self, session: str, stream: str, token: str, last_delivered: int) -> None:
        """Note that a reader is gone, and the number of the last event that it got."""
        await self._run("detach", session, stream, token, last_delivered)

    async def positions(self, streams: Sequence[tuple[str, str]]) -> Sequence[StreamPosition | None]:
        """Return the positions of streams, each named by session and stream; `busy_until` is 1 if it has a reader."""
        return [_position(one) for one in await self._run_all("look", streams)]

    # --- workers ----------------------------------------------------------------------------------------------

    async def route(self, session: str, epochs: Collection[int] | None, body: bytes) -> None:
        """Forward the body of a POST to the workers of some epochs in a session, or to all other workers (None)."""
        if (epochs is None or epochs) and not await self._run("route", session, body, *(epochs or ())):
            raise StoreFull("too many messages of this user wait")

    async def heartbeat(self) -> Heartbeat:
        """Renew the lease of this worker, and return the state of all workers."""
        generation = _name()  # for a store without one; lost data do not get their name back
        found = await self._run("heartbeat", "", _ms(self._lease), generation, int(self._is_new))
        known, current, last_broadcast, *dead = found
        is_known, self._is_new = bool(known) or self._is_new, False
        names = [name.decode() for name in dead if name != self.worker.encode()]
        return Heartbeat(is_known, current.decode(errors="backslashreplace"), last_broadcast, names)

    def new_name(self) -> None:
        """Give this worker a new name."""
        self.worker, self._is_new = _name(), True

    async def resign(self) -> None:
        """Give up the lease, and close all connections."""
        try:
            await self.remove_worker(self.worker)
        except StoreUnavailable:
            log.debug("Redis is away at the end")
        self.new_name()
        await self._connection.close()

    async def unfinished(self, worker: str) -> Sequence[tuple[str, str, bytes]]:
        """Return the open streams of a worker: session, name, and the ids of the unanswered requests."""
        found = await self._run("unfinished", "", worker)
        return [(session.decode(), name.decode(), pending) for session, name, pending in _triples(found)]

    async def fail(self, session: str, stream: str, worker: str, data: bytes) -> None:
        """End an open stream of a worker with an event."""
        await self._run("fail", session, stream, worker, data)

    async def remove_worker(self, worker: str) -> None:
        """Remove a worker without open streams."""
        await self._run("remove_worker", "", worker)

    def receive_after(self, broadcast: int) -> None:
        """Let `receive` begin with the first message, and with the broadcast after a number."""
        self._message_id, self._broadcast_id = b"0", b"%d" % broadcast

    async def receive(self) -> tuple[Sequence[WorkerMessage], Sequence[Broadcast]]:
        """Wait up to a second for messages and broadcasts, and return them in order."""
        box, topic = f"{self._prefix}m:{self.worker}".encode(), f"{self._prefix}topic".encode()
        streams = {box: self._message_id, topic: self._broadcast_id}
        read = partial(self._redis.xread, streams, count=1000, block=self._block_ms)
        found: dict[bytes, Any] = dict(await self._try(read, waits=True) or ())
        messages, broadcasts = _flat(found.get(box)), _flat(found.get(topic))
        if messages:
            self._message_id = messages[-1][0]
            with suppress(StoreUnavailable):  # the next call removes them
                await self._run("received", "", self._message_id)
        if broadcasts:
            self._broadcast_id = broadcasts[-1][0]
        return self._decoded(_message, messages), self._decoded(_broadcast, broadcasts)

    def _decoded(self, decode: Callable[[bytes, dict[bytes, bytes]], T], rows: list[Any]) -> list[T]:
        """Return the messages in rows of a Redis stream; skip unreadable rows, and log that once."""
        found: list[T] = []
        for row_id, fields in rows:
            try:
                found.append(decode(row_id, fields))
            except (KeyError, ValueError):
                if not self._is_warned:
                    log.error("Redis holds messages that cannot be read: something else writes there; they are skipped")
                self._is_warned = True
        return found

    # --- broadcasts -------------------------------------------------------------------------------------------

    async def publish(self, revision: str, method: str, data: bytes) -> None:
        """Add a broadcast."""
        await self._insist("publish", "", _name(), revision, method, data)

    async def broadcasts_after(self, number: int) -> Sequence[Broadcast]:
        """Return the stored broadcasts after a number."""
        found = await self._try(partial(self._redis.xrange, f"{self._prefix}topic", f"{number + 1}-0"))
        return self._decoded(_broadcast, found)

    async def deliver(
        self, sessions: Iterable[tuple[str, int, bytes]], previous: int, number: int
    ) -> Sequence[Delivery]:
        """Deliver a broadcast to sessions, once to each, although every worker calls this.

        Args:
            sessions: Key of each session, version of the record that the decision is based on, and the message, which
                is empty if the client does not want it.
            previous: Number of the previous broadcast for such sessions.
            number: Number of the broadcast.
        """
        clipped = self._limits.clipped
        calls = [(session, version, previous, number, clipped(data)) for session, version, data in sessions]
        return [Delivery(outcome.decode(), *more) for outcome, *more in await self._run_all("tell", calls)]

    async def hand_over(self, subscription: str, last_broadcast: int) -> None:
        """Note for a minute the last broadcast of a subscription that this worker ends.

        Args:
            subscription: Name that all subscriptions of a principal and client with one filter share.
            last_broadcast: Number of the broadcast.
        """
        waits = _ms(_HANDOVER_SECONDS)
        await self._run("hand_over", "", subscription, last_broadcast, waits, patience=_HANDOVER_PATIENCE)

    async def take_over(self, subscription: str) -> int | None:
        """Return and remove the oldest number that `hand_over` noted for a subscription, or None."""
        found = await self._run("take_over", "", subscription, patience=_HANDOVER_PATIENCE)
        return None if found is None else int(found)

    # --- secrets ----------------------------------------------------------------------------------------------

    async def claim(self, name: str, owner: str, seconds: float) -> bool:
        """Take a name for some seconds by the clock of Redis; return False if it is taken.

        Raises:
            StoreFull: The owner has too many names.
        """
        found = int(await self._run("claim", name, owner, _ms(seconds), _MAX_PROOFS_OF_OWNER, _MAX_PROOFS))
        if found < 0:
            raise StoreFull("too many proofs at once")
        return bool(found)

    async def signing_keys(self, lifetime: float) -> Sequence[bytes]:
        """Return the keys that sign the state of requests, the current key first; replace them in time.

        Args:
            lifetime: Seconds for which a signature is valid.
        """
        fresh = secrets.token_hex(32)
        found = await self._run("keys", "", fresh, _ms(self._rotate), _ms(lifetime), _ms(_KEY_DELAY_SECONDS))
        return [bytes.fromhex(key.decode()) for key in dict.fromkeys(found)]


def _name() -> str:
    return secrets.token_urlsafe(12)


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _triples(found: Sequence[Any]) -> Iterable[tuple[Any, Any, Any]]:
    return zip(found[::3], found[1::3], found[2::3], strict=True)


def _flat(rows: list[Any] | None) -> list[Any]:
    """Return the rows of a Redis stream, which are tuples; version 3 of the protocol puts them into one more list."""
    return rows[0] if rows and not isinstance(rows[0], tuple) else rows or []


def _position(found: list[Any] | None) -> StreamPosition | None:
    return None if found is None else StreamPosition(found[0], found[1], bool(found[2]), found[3])


def _message(row_id: bytes, fields: dict[bytes, bytes]) -> WorkerMessage:
    named = {key.decode(): value for key, value in fields.items()}
    return WorkerMessage(named["kind"].decode(), named["session"].decode(), named)


def _broadcast(row_id: bytes, fields: dict[bytes, bytes]) -> Broadcast:
    number = int(row_id.partition(b"-")[0])
    revision, method, data = fields[b"revision"].decode(), fields[b"method"].decode(), fields[b"data"]
    message = from_json(data)
    if not is_object(message):
        raise ValueError(method)
    return Broadcast(number, revision, method, data, message.get("params"), int(fields[b"before"]))
