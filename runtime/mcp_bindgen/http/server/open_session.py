"""Open session of an endpoint, and the transport of its messages: many streams out, one queue in."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json

from mcp_bindgen.runtime.logs import audit, log
from mcp_bindgen.runtime.protocol import connection, jsonrpc
from mcp_bindgen.runtime.protocol.access import RequestOrigin
from mcp_bindgen.runtime.protocol.capabilities import declared
from mcp_bindgen.runtime.protocol.envelope import RequestId, invalid
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.protocol.events import CancelRequested, Event, Notified, Requested
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.transport import Lost, Outgoing, Parsed, Transport, parsed
from mcp_bindgen.runtime.session.endpoint import Endpoint
from mcp_bindgen.runtime.session.session import Session, resolve_all

from . import event_store
from .errors import HttpError, StoreFull, refused, too_many
from .event_store import EventStore, OpenStream
from .limits import Budget, HttpLimits
from .streams import LISTEN_STREAM, Stream

State: TypeAlias = Literal["open", "leaving", "ending", "left", "over"]
"""Another process may go on with a session in `leaving` and `left`; requests find no session in `ending` and `over`."""

TRANSITIONS: Mapping[str, Mapping[State, State]] = {
    "leave": {"open": "leaving"},
    "finish": {"open": "ending", "leaving": "ending"},
    "close": {"open": "over", "ending": "over", "leaving": "left"},
}
"""Trigger -> state -> next state; other states stay. Only an open session reads on."""

GONE = ("ending", "over")
"""States of sessions that requests do not find any more."""

MAX_POSTS = 64
"""Messages of a session that wait for their turn."""

_MAX_ID_CHARACTERS = 64 * 1024  # of the requests in a POST, which are kept with its stream


@dataclass(eq=False, repr=False)
class HttpSession(Transport):
    """Open session, which is the transport of its messages.

    A message that answers or belongs to a request goes to the stream of its POST, any other to the stream of GET.

    Args:
        endpoint: The servers.
        id: Its id for the client.
        key: Its key in the store; a reader of the store does not learn ids.
        limits: Limits of the endpoint.
        budget: Limit for the number of its streams.
        queue: Limit for the buffered bytes of its streams.
        store: Store of its events, if any.
        worker_epoch: Number of times that the session was revived, this time included.
        last: Number of the last event of the stream of GET.
        principal: The principal that began the session, if known.
        save: Stores its snapshot; awaited before messages are sent, if the snapshot may have changed.
        has_one_stream: True if all messages go to the stream of GET, and one POST at a time waits for the session.

    Attributes:
        independent: True: a stream does not wait for the reader of another stream.
        listen_stream: Class of the stream of GET.
        origin: Origin of the session.
        kernel: The session of the kernel, which handles the messages.
        worker_epoch: See above; it is part of the names of streams.
        state: State of the session.
        requests: HTTP requests in flight.
        seen: Time of its last traffic, on the clock of `time.monotonic`.
        standing: The stream that belongs to no request.
        streams: Streams of requests that are open, or still read; by name.
    """

    independent = True

    endpoint: Endpoint
    id: str
    key: str
    limits: HttpLimits
    budget: Budget
    queue: Budget | None = None
    store: EventStore | None = None
    worker_epoch: int = 0
    last: int = 0
    principal: str | None = None
    save: Callable[[HttpSession], Awaitable[None]] | None = None
    has_one_stream: bool = False

    def __post_init__(self) -> None:
        self.origin: RequestOrigin = RequestOrigin(principal=self.principal, network="tcp")
        self.streams: dict[str, Stream] = {}
        is_stored = self.store is not None and self.worker_epoch > 0
        self.standing: Stream = Stream(
            self.key, LISTEN_STREAM, (), self.store, last=self.last, persisted=is_stored, queue=self.queue
        )
        self.requests = 0
        self.seen: float = time.monotonic()
        self._begun = self.seen
        self._saved_state: object = None
        self._count = 0
        self._routes: dict[RequestId, Stream] = {}
        self._inbox: deque[Parsed | Lost] = deque()
        self._inbox_bytes = 0
        self._arrived, self._taken = asyncio.Event(), asyncio.Event()
        self.state: State = "open"
        self.kernel: Session = self.endpoint.session(self)

    # --- its state --------------------------------------------------------------------------------------------

    @property
    def ending(self) -> bool:
        """True if requests do not find it any more."""
        return self.state in GONE or self.kernel.closed.is_set()

    @property
    def supports_stream_polling(self) -> bool:
        """True if the client reconnects after its stream was closed."""
        return self.is_negotiated and self.revision.stream_polling

    @property
    def is_negotiated(self) -> bool:
        """True from the answer to `initialize` until the session is closed."""
        return self.kernel.ready or self.kernel.connection.state is connection.State.NEGOTIATED

    @property
    def is_overdue(self) -> bool:
        """True if it was idle for too long, or its client never sent `notifications/initialized`."""
        now = time.monotonic()
        if not self.kernel.ready and now - self._begun > self.limits.handshake:
            return True
        return not self.requests and now - self.seen > self.limits.idle

    def belongs_to(self, principal: str | None) -> bool:
        """Return True if it belongs to a principal; a refusal is written to the audit log."""
        if self.principal == principal:
            return True
        reason = "a session of another user"
        fields = {"reason": reason, "principal": principal}
        audit.warning("refused: %s; principal=%s", reason, principal, extra={"fields": fields})
        return False

    @property
    def revision(self) -> Revision:
        """The negotiated revision."""
        return self.kernel.negotiated.dispatcher.revision

    def snapshot(self) -> dict[str, Any] | None:
        """Return the state with which another process can resume the session, as JSON; None before `initialize`."""
        agreed = self.kernel.negotiated
        if not self.is_negotiated:
            return None
        return {
            "revision": agreed.dispatcher.revision.name,
            "clientInfo": agreed.peer_info.model_dump(),
            "capabilities": agreed.declared["client"],
            "logLevel": agreed.log_level,
            "subscriptions": sorted(agreed.subscriptions or ()),
        }

    @property
    def _changing_state(self) -> object:
        """The part of the snapshot that may change, in a form that is cheap to make; None before `initialize`."""
        agreed = self.kernel.negotiated
        return (agreed.log_level, *(agreed.subscriptions or ())) if self.is_negotiated else None

    def resume(self, snapshot: Mapping[str, Any]) -> None:
        """Resume a session of another process; late responses to requests of that process are ignored.

        Args:
            snapshot: The result of `snapshot` there; its revision is served.
        """
        agreed, end = self.kernel.negotiated, self.kernel.connection
        end.resume(snapshot["revision"], self.worker_epoch << 32)
        agreed.dispatcher = end.dispatcher
        agreed.peer_info = self.revision.types.Implementation.model_validate(snapshot["clientInfo"])
        agreed.declared["client"] = snapshot["capabilities"]
        agreed.declared["server"] = declared(self.endpoint.server(agreed.dispatcher), agreed.dispatcher)
        self.update(snapshot)
        self._saved_state = self._changing_state

    def update(self, snapshot: Mapping[str, Any]) -> None:
        """Take over the log level and the subscriptions that another process has received meanwhile."""
        agreed = self.kernel.negotiated
        agreed.log_level = snapshot["logLevel"]
        agreed.subscriptions = set(snapshot.get("subscriptions", ()))  # records of older versions have none

    # --- the session's side -----------------------------------------------------------------------------------

    async def receive(self) -> Sequence[Parsed | Lost]:
        """Return the messages that have arrived; nothing once the session shall end."""
        if self.has_one_stream:  # stop reading while the peer leaves responses unread (backpressure)
            await self.standing.wait_for_room()
        while not self._inbox:
            if self.state != "open":
                return ()
            self._arrived.clear()
            await self._arrived.wait()
        messages = list(self._inbox)
        self._inbox.clear()
        self._inbox_bytes = 0
        self._taken.set()
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Add messages to their streams; wait while a client is slow to read. Raises `ConnectionClosed`."""
        if self.state in ("left", "over"):
            raise ConnectionClosed("the session is over")
        try:
            self.seen = time.monotonic()
            if self.save is not None and (known := self._changing_state) not in (None, self._saved_state):
                await self.save(self)
                self._saved_state = known
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
        if self.has_one_stream:
            is_unasked = message.method is not None and message.related is None  # such as a broadcast
            if not await self.standing.put(message, within=self.limits.unasked if is_unasked else None):
                raise ConnectionClosed("the client has disconnected")
            return
        stream = None
        for id_ in message.batch_ids or (message.related,):  # other requests of a batch may be cancelled
            if id_ is not None and id_ in self._routes:
                stream = self._routes[id_]
                break
        if message.method is not None:
            within = self.limits.unasked if stream is None else None
            if not await (stream or self.standing).put(message, within=within):
                log.debug("a message is dropped: the client cannot get it")
                if message.id is not None:
                    self.take(Lost(message.id, ConnectionClosed("the client is not there to be asked")))
        elif stream is None:
            log.debug("an answer is dropped: its request was cancelled, or had no id")
        else:
            ids = set(stream.pending) if message.batch_ids or message.related is None else {message.related}
            for id_ in ids:
                self._routes.pop(id_, None)
            if not await stream.put(message, ids):
                log.debug("an answer is dropped: the client disconnected, and cannot resume the stream")

    async def close(self) -> None:
        """End it: no message is taken or sent any more; answers that have arrived still reach their callers."""
        for one in self._inbox:
            resolve_all(one)
        self._inbox.clear()
        self._move("close")

    def close_stream(self, related: RequestId | None, retry: float | None = None) -> bool:
        """End the connection, not the stream, on which a client waits for a response; the client reconnects.

        Args:
            related: Id of the request; None for the stream of GET.
            retry: Seconds after which the client reconnects.

        Returns:
            True if the client can resume the stream; if not, the connection stays.
        """
        stream = self.standing if related is None else self._routes.get(related)
        if stream is None or self.store is None or not self.supports_stream_polling:
            return False
        stream.leave(retry)
        return True

    # --- the side of HTTP -------------------------------------------------------------------------------------

    def expect(self, ids: Collection[RequestId]) -> Stream:
        """Begin the stream of a POST with requests, which reads it.

        Raises:
            HttpError: An id is in use, the ids are too long, or there are too many streams.
        """
        if len(repr(ids)) > _MAX_ID_CHARACTERS:
            raise HttpError(413, invalid(f"the ids are longer than {_MAX_ID_CHARACTERS} characters; use shorter ones"))
        for id_ in ids:
            if id_ in self._routes:
                raise HttpError(400, invalid(f"the id {id_!r} is in use"))
        self.budget.take()
        self._count += 1
        name = f"{self.worker_epoch:x}.{self._count:x}"
        stream = Stream(self.key, name, ids, self.store, state="read", queue=self.queue, on_done=self._done)
        self.streams[name] = stream
        self._routes.update(dict.fromkeys(ids, stream))
        return stream

    def _done(self, stream: Stream) -> None:
        if self.streams.pop(stream.name, None) is not None:
            self.budget.add(-1)

    def arrive(self, body: bytes, events: Sequence[Event], origin: RequestOrigin) -> None:
        """Take the messages of a POST; raises `HttpError` when too many messages wait.

        Args:
            body: Its body.
            events: The messages in it, which the peer of the connection has read.
            origin: Their origin.
        """
        if len(self._inbox) >= MAX_POSTS or (self._inbox and self._inbox_bytes + len(body) > self.limits.message):
            self.kernel.connection.take_back(events)
            raise too_many("too many messages wait in this session")
        if self.ending:
            self.kernel.connection.take_back(events)
            raise refused(404, "the session is over")
        for event in events:
            if isinstance(event, Requested | Notified):
                event.origin = origin
        self._inbox_bytes += len(body)
        self.take(parsed(body, events))

    async def taken(self) -> None:
        """Wait until the session has taken all messages; one call at a time. Raises `HttpError` if it is over."""
        while self._inbox and self.state == "open":
            self._taken.clear()
            await self._taken.wait()
        if self.state != "open":
            raise HttpError(404, "the session is over")

    def take(self, message: Parsed | Lost) -> None:
        """Take a message without a limit: a failure, or a message that another worker has accepted."""
        self._inbox.append(message)
        self._arrived.set()

    def is_pending(self, id_: RequestId) -> bool:
        """Return True if a request is to be answered here."""
        return id_ in self._routes

    async def settle(self, ids: Collection[RequestId]) -> None:
        """Close the streams of requests that the client cancelled, or that the session never got."""
        for id_ in ids:
            stream = self._routes.pop(id_, None)
            if stream is not None:
                await stream.settle([id_])

    @property
    def abandoned(self) -> list[Stream]:
        """The streams that were without a connection for too long."""
        before, streams = time.monotonic() - self.limits.abandoned, self.streams.values()
        return [one for one in streams if one.disconnected_at is not None and one.disconnected_at < before]

    async def abandon(self, stream: Stream) -> None:
        """Cancel the requests of a stream, as its client is away."""
        ids = set(stream.pending)
        for id_ in ids:
            self._routes.pop(id_, None)
        if ids:
            await stream.put(failure(ids, "the client hung up and did not come back"), ids)
        self.take(parsed(b"", [CancelRequested(id_) for id_ in ids]))

    # --- the end ----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Disconnect the client, which may come back to the same session elsewhere; end the session here."""
        self._move("leave")
        for stream in [*self.streams.values(), self.standing]:
            stream.leave(None)

    def finish(self) -> None:
        """Let the session end; requests do not find it any more."""
        self._move("finish")

    def _move(self, trigger: str) -> None:
        self.state = TRANSITIONS[trigger].get(self.state, self.state)
        self._arrived.set()
        self._taken.set()

    async def end(self, reason: str) -> None:
        """Close all streams, with an error for each pending request unless the store is away."""
        self._routes.clear()
        puts = [one.put(failure(one.pending, reason), one.pending) for one in self.streams.values() if one.pending]
        for found in await asyncio.gather(*puts, return_exceptions=True) if puts else ():  # each may wait for the store
            if isinstance(found, Exception):
                log.warning("the end of a session is not stored: %s", found)
        for stream in list(self.streams.values()):
            stream.close()
        self.standing.close()
        self.standing.drop()

    async def fail_unanswered(self, streams: Mapping[str, OpenStream]) -> None:
        """Fail requests left unanswered by the previous process."""
        assert self.store is not None
        for name, stream in streams.items():
            if name != LISTEN_STREAM:
                error = unanswered(stream.pending, "the server was restarted while it handled this request")
                await self.store.write(self.key, name, [event_store.StoredEvent(stream.last + 1, error)], None)


def unanswered(pending: bytes, reason: str) -> bytes:
    """Return an error for the requests of a stored stream; without an id if there is none.

    Args:
        pending: The stored ids, as a JSON array.
        reason: The reason of the error.
    """
    try:
        ids = [id_ for id_ in from_json(pending) if isinstance(id_, str | int)]
    except (ValueError, TypeError):
        ids = []
    return failure(ids, reason) if ids else jsonrpc.failure(None, ProtocolError(INTERNAL_ERROR, reason))


def failure(ids: Collection[RequestId], reason: str) -> bytes:
    """Return the error that answers requests: one message, or a batch."""
    error = ProtocolError(INTERNAL_ERROR, f"Internal error: {reason}")
    errors = [jsonrpc.failure(id_, error) for id_ in ids]
    return errors[0] if len(errors) == 1 else b"[" + b",".join(errors) + b"]"
