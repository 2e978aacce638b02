"""Carry the messages of one session: many streams out, one queue in."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

import anyio
from pydantic_core import from_json, to_json

from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import RequestOrigin
from mcp_bindgen.runtime.protocol.envelope import RequestId, invalid
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ConnectionClosed, ProtocolError, StoreFull
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.transport import Lost, Outgoing, Oversized, Transport

from .byte_budget import Budget
from .call import HttpError, too_many
from .event_store.base import Event, EventStore, OpenStream
from .limits import HttpLimits
from .streams import LISTEN_STREAM, Stream

log = logging.getLogger("mcp_bindgen")

_POSTS = 64  # messages that wait for the session to take them
_ID_BYTES = 64 * 1024  # of the ids of the requests in a POST, which are kept with its stream


class SessionTransport(Transport):
    """The transport of a session.

    Every message goes to one stream: that of the POST whose request it answers or belongs to, else the standing one.

    Args:
        key: The session's key in the store.
        limits: How much it takes.
        budget: Limits its streams.
        queue: Limits the bytes that wait for their readers.
        store: Where events are kept.
        life: How often the session was revived.
        last: The number of the last event of its standing stream.
        principal: Who began the session, if that is known.

    Attributes:
        independent: Who sends on one stream does not wait for another one.
        principal: Who began the session.
        key: The session's key in the store.
        life: How often the session was revived, this time included; part of the names of streams.
        budget: Limits its streams.
        standing: The stream that belongs to no request.
        streams: The streams of requests that are not over, or are still read; by name.
        supports_stream_polling: Whether the client comes back to a stream whose connection was closed.
        before_sending: Awaited before anything is sent.
    """

    independent = True

    def __init__(
        self,
        key: str,
        limits: HttpLimits,
        budget: Budget,
        queue: Budget | None = None,
        store: EventStore | None = None,
        life: int = 0,
        last: int = 0,
        principal: str | None = None,
    ) -> None:
        self.origin = RequestOrigin(principal=principal, network="tcp")
        self.budget = budget
        self._queue = queue
        self.streams: dict[str, Stream] = {}
        self.standing = Stream(
            key, LISTEN_STREAM, store=store, last=last, kept=store is not None and life > 0, queue=queue
        )
        self.supports_stream_polling = False
        self.before_sending: Callable[[], Awaitable[None]] = _nothing
        self.key, self._limits, self._store, self.life = key, limits, store, life
        self._count = 0
        self._routes: dict[RequestId, Stream] = {}
        self._inbox: deque[bytes | Lost] = deque()
        self._size = 0
        self._arrived = anyio.Event()
        self._over = self._closed = False

    # --- the session's side -----------------------------------------------------------------------------------

    async def receive(self) -> Sequence[bytes | Oversized | Lost]:
        """Return what was posted; nothing once the session shall end."""
        while not self._inbox:
            if self._over:
                return ()
            await self._arrived.wait()
        messages = list(self._inbox)
        self._inbox.clear()
        self._size = 0
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Add messages to their streams; wait while a client is slow to read. Raises `ConnectionClosed`."""
        if self._closed:
            raise ConnectionClosed("the session is over")
        try:
            await self.before_sending()
            for message in messages:
                await self._deliver(message if isinstance(message, Outgoing) else Outgoing(message))
        except ConnectionClosed:
            raise
        except StoreFull as error:
            log.warning("a session ends: %s", error)
            raise ConnectionClosed(str(error)) from error
        except Exception as error:
            log.exception("the event store failed, and a session ends")
            raise ConnectionClosed("the event store failed") from error

    async def _deliver(self, message: Outgoing) -> None:
        stream = self._stream_of(message.batch_ids or [message.related])
        if message.method is not None:
            within = self._limits.unasked if stream is None else None
            if not await (stream or self.standing).put(message, within=within):
                log.debug("a message is dropped: nobody is there to read it")
                if message.id is not None:
                    self._put(Lost(message.id, ConnectionClosed("the client is not there to be asked")))
        elif stream is None:
            log.debug("an answer is dropped: its request was taken back, or had no id")
        else:
            ids = set(stream.pending) if message.batch_ids or message.related is None else {message.related}
            self._unroute(ids)
            if not await stream.put(message, ids):
                log.debug("an answer is dropped: the client hung up, and cannot come back for it")

    def _stream_of(self, ids: Iterable[RequestId | None]) -> Stream | None:
        """Return the stream of the first request that still has one: others of a batch may have been taken back."""
        return next((self._routes[id_] for id_ in ids if id_ is not None and id_ in self._routes), None)

    async def close(self) -> None:
        """End it: the session takes and says no more."""
        self._closed = True
        self._inbox.clear()
        self.finish()

    def close_stream(self, related: RequestId | None, retry: int | None = None) -> bool:
        """End the connection, not the stream, on which a client waits for an answer: it shall come back for the rest.

        Args:
            related: The id of the request; `None` for the standing stream.
            retry: In how many milliseconds.

        Returns:
            Whether the client can come back; if not, the connection stays.
        """
        stream = self.standing if related is None else self._routes.get(related)
        if stream is None or self._store is None or not self.supports_stream_polling:
            return False
        stream.leave(retry)
        return True

    # --- the side of HTTP -------------------------------------------------------------------------------------

    def expect(self, ids: Collection[RequestId]) -> Stream:
        """Begin the stream of a POST that holds requests.

        Raises:
            HttpError: One of the ids belongs to a request that is not answered yet, they are too long to be kept until
                then, or there are too many streams.
        """
        if len(to_json(list(ids))) > _ID_BYTES:
            raise HttpError(413, invalid(f"the ids are longer than {_ID_BYTES} bytes; use shorter ones"))
        for id_ in ids:
            if id_ in self._routes:
                raise HttpError(400, invalid(f"the id {id_!r} is in use"))
        self.budget.take()
        self._count += 1
        stream = Stream(self.key, f"{self.life:x}.{self._count:x}", ids, self._store, queue=self._queue)
        stream.done = self._done
        self.streams[stream.name] = stream
        self._routes.update(dict.fromkeys(ids, stream))
        return stream

    def _done(self, stream: Stream) -> None:
        if self.streams.pop(stream.name, None) is not None:
            self.budget.give_back()

    def _unroute(self, ids: Collection[RequestId]) -> None:
        for id_ in ids:
            self._routes.pop(id_, None)

    def arrive(self, body: bytes) -> None:
        """Take what was posted; raises `HttpError` when too much waits already."""
        if len(self._inbox) >= _POSTS or (self._inbox and self._size + len(body) > self._limits.message):
            raise too_many("too many messages wait in this session")
        self._size += len(body)
        self._put(body)

    def is_at_work_on(self, id_: RequestId) -> bool:
        """Tell whether a request is to be answered here."""
        return id_ in self._routes

    def take(self, body: bytes) -> None:
        """Take what was posted to another worker, which has accepted it."""
        self._put(body)

    def _put(self, message: bytes | Lost) -> None:
        self._inbox.append(message)
        self._arrived.set()
        self._arrived = anyio.Event()

    async def settle(self, ids: Collection[RequestId]) -> None:
        """End the streams of requests that the client took back, or that the session never got."""
        for id_ in ids:
            stream = self._routes.pop(id_, None)
            if stream is not None:
                await stream.settle([id_])

    def abandoned(self, seconds: float) -> list[Stream]:
        """Return the streams whose client has been away for longer than that."""
        now = time.monotonic()
        return [stream for stream in self.streams.values() if stream.left is not None and now - stream.left > seconds]

    async def abandon(self, stream: Stream, revision: Revision) -> None:
        """Cancel the requests of a stream whose client is not there for the answer."""
        ids = set(stream.pending)
        self._unroute(ids)
        if ids:
            await stream.put(failure(ids, "the client hung up and did not come back"), ids)
        if revision.cancelled is not None:
            for id_ in ids:
                params = jsonrpc.typed_params(revision.cancelled, {"requestId": id_})
                self._put(jsonrpc.notification(revision.cancelled, params))

    # --- the end ----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Hang up on the client, who may come back to the same session elsewhere; the session ends here."""
        self.finish()
        for stream in [*self.streams.values(), self.standing]:
            stream.leave(None)

    def finish(self) -> None:
        """Tell the session that it shall end."""
        self._over = True
        self._arrived.set()

    async def end(self, reason: str) -> None:
        """End all streams; who waits for an answer is told why there is none, unless the store is away."""
        ending = [(stream, set(stream.pending)) for stream in self.streams.values()]
        for _, ids in ending:
            self._unroute(ids)
        puts = (stream.put(failure(ids, reason), ids) for stream, ids in ending if ids)
        for found in await asyncio.gather(*puts, return_exceptions=True):  # at once: each may wait for the store
            if isinstance(found, Exception):
                log.warning("the end of a session is not stored: %s", str(found) or type(found).__name__)
        for stream, _ in ending:
            stream.end()
        self.standing.end()
        self.standing.drop()

    async def fail_unanswered(self, streams: Mapping[str, OpenStream]) -> None:
        """Fail requests left unanswered by the previous process."""
        assert self._store is not None
        for name, stream in streams.items():
            if name != LISTEN_STREAM:
                error = unanswered(stream.pending, "the server was restarted while it handled this request")
                await self._store.write(self.key, name, [Event(stream.last + 1, error)], None)


def unanswered(pending: bytes, reason: str) -> bytes:
    """Answer the requests of a stream with an error, by their ids as they were stored; without ids if there are none.

    Args:
        pending: The ids, as a JSON array.
        reason: Why there is no answer.
    """
    try:
        ids = [id_ for id_ in from_json(pending) if isinstance(id_, str | int)]
    except (ValueError, TypeError):
        ids = []
    return failure(ids, reason) if ids else jsonrpc.failure(None, ProtocolError(INTERNAL_ERROR, reason))


async def _nothing() -> None:
    pass


def failure(ids: Collection[RequestId], reason: str) -> bytes:
    """Answer requests with an error: one message, or a batch."""
    error = ProtocolError(INTERNAL_ERROR, f"Internal error: {reason}")
    errors = [jsonrpc.failure(id_, error) for id_ in ids]
    return errors[0] if len(errors) == 1 else b"[" + b",".join(errors) + b"]"
