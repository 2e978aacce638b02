"""The transport of one session: many streams out, one queue in."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import anyio
from pydantic_core import from_json

from ...core import jsonrpc
from ...core.envelope import RequestId, invalid
from ...core.errors import INTERNAL_ERROR, ConnectionClosed, ProtocolError
from ...core.transport import Lost, Outgoing, Oversized
from .event_store.base import Event, EventStore, Unfinished
from .streams import STANDING, Stream

log = logging.getLogger("mcp_bindgen")

_POSTS = 64  # messages that wait for the session to take them


@dataclass(slots=True, eq=False)
class Room:
    """How many streams there may still be, of all sessions.

    Attributes:
        free: So many.
    """

    free: int


class SessionTransport:
    """What a session reads from and writes to.

    Every message goes to one stream: that of the POST whose request it answers or belongs to, else the standing one.

    Args:
        key: The session's key in the store.
        limit: The bytes of messages that may wait for the session to take them.
        room: Room for streams.
        store: Where events are kept.
        life: How often the session was revived.
        last: The number of the last event of its standing stream.

    Attributes:
        independent: Who sends on one stream does not wait for another one.
        standing: The stream that belongs to no request.
        streams: The streams of requests that are not over, or are still read; by name.
        polls: Whether the client comes back to a stream whose connection was closed.
        before_sending: Awaited before anything is sent.
    """

    independent = True

    def __init__(
        self, key: str, limit: int, room: Room, store: EventStore | None = None, *, life: int = 0, last: int = 0
    ) -> None:
        self.streams: dict[str, Stream] = {}
        self.standing = Stream(key, STANDING, store=store, last=last, kept=store is not None and life > 0)
        self.polls = False
        self.before_sending: Callable[[], Awaitable[None]] = _nothing
        self._key = key
        self._limit = limit
        self._room = room
        self._store = store
        self._life = life
        self._count = 0
        self._routes: dict[RequestId, Stream] = {}
        self._inbox: deque[bytes | Lost] = deque()
        self._size = 0
        self._arrived = anyio.Event()
        self._over = False
        self._closed = False

    # --- the session's side -----------------------------------------------------------------------------------

    async def receive(self) -> Sequence[bytes | Oversized | Lost]:
        """What was posted; nothing once the session shall end."""
        while not self._inbox:
            if self._over:
                return ()
            await self._arrived.wait()
        messages = list(self._inbox)
        self._inbox.clear()
        self._size = 0
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Adds messages to their streams; waits while a client is slow to read. Raises `ConnectionClosed`."""
        if self._closed:
            raise ConnectionClosed("the session is over")
        try:
            await self.before_sending()
            for message in messages:
                await self._deliver(message if isinstance(message, Outgoing) else Outgoing(message))
        except ConnectionClosed:
            raise
        except Exception as error:
            log.exception("the event store failed, and a session ends")
            raise ConnectionClosed("the event store failed") from error

    async def _deliver(self, message: Outgoing) -> None:
        stream = self._routes.get(message.related) if message.related is not None else None
        if message.method is not None:
            stream = stream or self.standing
            if not await stream.put(message):
                self._lose(message)
        elif stream is None or message.related is None:
            log.debug("an answer is dropped: its request was taken back, or had no id")
        else:
            ids = set(stream.owed) if message.lstrip()[:1] == b"[" else {message.related}
            self._unroute(ids)
            if not await stream.put(message, ids):
                log.debug("an answer is dropped: the client hung up, and cannot come back for it")

    def _lose(self, message: Outgoing) -> None:
        log.debug("a message is dropped: nobody is there to read it")
        if message.id is not None:
            self._put(Lost(message.id, ConnectionClosed("the client is not there to be asked")))

    async def close(self) -> None:
        """Ends it: the session takes and says no more."""
        self._closed = self._over = True
        self._inbox.clear()
        self._arrived.set()

    def close_stream(self, related: RequestId | None, retry: int | None = None) -> bool:
        """Ends the connection, not the stream, on which a client waits for an answer: it shall come back for the rest.

        Args:
            related: The id of the request; `None` for the standing stream.
            retry: In how many milliseconds.

        Returns:
            Whether the client can come back; if not, the connection stays.
        """
        stream = self.standing if related is None else self._routes.get(related)
        if stream is None or self._store is None or not self.polls:
            return False
        stream.leave(retry)
        return True

    # --- the side of HTTP -------------------------------------------------------------------------------------

    def expect(self, ids: Collection[RequestId]) -> Stream | None:
        """Begins the stream of a POST that holds requests; `None` when there are too many streams.

        Raises:
            ProtocolError: One of the ids belongs to a request that is not answered yet.
        """
        for id_ in ids:
            if id_ in self._routes:
                raise invalid(f"the id {id_!r} is in use")
        if self._room.free <= 0:
            return None
        self._room.free -= 1
        self._count += 1
        stream = Stream(self._key, f"{self._life:x}.{self._count:x}", ids, self._store)
        stream.done = self._done
        self.streams[stream.name] = stream
        self._routes.update(dict.fromkeys(ids, stream))
        return stream

    def _done(self, stream: Stream) -> None:
        if self.streams.pop(stream.name, None) is not None:
            self._room.free += 1

    def _unroute(self, ids: Collection[RequestId]) -> None:
        for id_ in ids:
            self._routes.pop(id_, None)

    def arrive(self, body: bytes) -> bool:
        """Takes what was posted; says no when too much waits already."""
        if len(self._inbox) >= _POSTS or (self._inbox and self._size + len(body) > self._limit):
            return False
        self._size += len(body)
        self._put(body)
        return True

    def _put(self, message: bytes | Lost) -> None:
        self._inbox.append(message)
        self._arrived.set()
        self._arrived = anyio.Event()

    async def settle(self, ids: Collection[RequestId]) -> None:
        """Ends the streams of requests that the client took back, or that the session never got."""
        for id_ in ids:
            stream = self._routes.pop(id_, None)
            if stream is not None:
                await stream.settle([id_])

    # --- the end ----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Hangs up on the client, who may come back to the same session elsewhere; the session ends here."""
        self.finish()
        for stream in [*self.streams.values(), self.standing]:
            stream.leave(None)

    def finish(self) -> None:
        """Tells the session that it shall end."""
        self._over = True
        self._arrived.set()

    async def end(self, reason: str) -> None:
        """Ends all streams; who waits for an answer is told why there is none."""
        for stream in list(self.streams.values()):
            ids = set(stream.owed)
            self._unroute(ids)
            if ids:
                await stream.put(failure(ids, reason), ids)
            stream.end()
        self.standing.end()

    async def bury(self, streams: Mapping[str, Unfinished]) -> None:
        """Ends the streams of a former life: what was handled then is lost, and this answers its requests."""
        assert self._store is not None
        for name, stream in streams.items():
            if name != STANDING:
                words = failure(from_json(stream.owed), "the server was restarted while it handled this request")
                await self._store.write(self._key, name, [Event(stream.last + 1, words)], None)


async def _nothing() -> None:
    pass


def failure(ids: Collection[RequestId], reason: str) -> bytes:
    """The error that answers requests: one message, or a batch."""
    error = ProtocolError(INTERNAL_ERROR, f"Internal error: {reason}")
    errors = [jsonrpc.failure(id_, error) for id_ in ids]
    return errors[0] if len(errors) == 1 else b"[" + b",".join(errors) + b"]"
