"""Drive a `Peer` over a `Transport`: read, hand messages to handlers, write what they answer."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import Any, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from ..concurrency import Turn, begin
from ..era.lifecycle import SUBSCRIBE
from ..logs import log
from ..protocol import observation
from ..protocol.access import Identity, Operation
from ..protocol.batch import BatchReply
from ..protocol.envelope import RequestId
from ..protocol.errors import ConnectionClosed, NotInitialized, RequestTimeout, TooManyRequests
from ..protocol.events import Answered, CancelRequested, Event, Notified, Pending, Progressed, Rejected, Requested
from ..protocol.link import Link
from ..protocol.methods import Method, Notification, Request
from ..protocol.negotiated import Negotiated
from ..protocol.options import Limits, Options
from ..protocol.peer import Peer
from ..protocol.transitions import State
from ..protocol.transport import Lost, Outgoing, Oversized, Transport
from ..protocol.uris import canonical
from .execution import FindHandler, execute
from .observed import asked
from .sender import Sender
from .timeouts import Timeouts, Waiter, in_handler, resolve
from .workload import Workload

Params = TypeVar("Params")
Answer = TypeVar("Answer")

Access: TypeAlias = Callable[[Identity | None, str | None, Sequence[Operation]], bool]
"""Decides whether an identity may do some operations of a revision."""

_GRACE = 1.0  # seconds for handlers to finish when the other side has nothing more to say


class Session(Link):
    """A connection at work. It is the `Link` of contexts and clients.

    Requests are handled in the task that reads them, so that a handler that finishes at once costs no task. A handler
    that waits keeps that task and its cancel scope, and another one goes on reading.

    Args:
        peer: The protocol's state.
        transport: How messages travel.
        find: Finds the handler of a route of a revision.
        options: How requests are sent unless they say otherwise.
        limits: How much of the other side's is taken at once.

    Attributes:
        negotiated: What the two sides agreed on.
        meta: What requests say of this side in their `_meta` (stateless revisions).
        headers: Returns what a transport with headers repeats there of a message of ours.
        threads: Limit of threads that several connections share; by default each has its own.
        access: Decides whether an identity may do some operations of a revision; `None` where messages carry no
            tokens.
        endless: Ends of what would not end by itself; called when the other side has nothing more to say.
        introductions: How often this side has introduced itself again, because the other one forgot it.
        closed: Set when the connection is over.
    """

    def __init__(
        self,
        peer: Peer,
        transport: Transport,
        find: FindHandler,
        options: Options | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.peer = peer
        self.transport = transport
        self.options = options or Options()
        self.limits = limits or Limits()
        peer.max_batch_members = self.limits.batch_members
        self.negotiated: Negotiated = Negotiated(peer.dispatcher)
        self.meta: Mapping[str, Any] = {}
        self.headers: Callable[[Method, Any], Mapping[str, str]] | None = None
        self.origin = transport.origin
        self.access: Access | None = None
        self.threads: anyio.CapacityLimiter | None = None
        self.introductions = 0
        self.endless: set[Callable[[], object]] = set()
        self.closed = anyio.Event()
        self._find = find
        self._events: Iterator[Event] = iter(())
        self._backlog: deque[bytes | Oversized | Lost] = deque()
        self._message: bytes | Oversized | Lost = b""
        self._refusals = 0
        self._outgoing: list[Outgoing] = []
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._sender = Sender(transport, self._finish)
        self._tasks: TaskGroup | None = None
        self._work = Workload(self.limits, independent=self._sender.independent)
        self._timeouts = Timeouts(peer.pending, self._is_asked, self._expire, transport.pauses)

    def thread_limit(self) -> anyio.CapacityLimiter:
        """Return the limit of threads for blocking handlers."""
        if self.threads is None:
            self.threads = anyio.CapacityLimiter(self.limits.threads)
        return self.threads

    @property
    def ready(self) -> bool:
        """Whether the other side can be told something unasked now."""
        return self.peer.state is State.READY and not self.peer.dispatcher.revision.era.is_stateless

    def close_stream(self, related: RequestId | None, retry: int | None = None) -> bool:
        """Close the stream of a request; see `Transport.close_stream`."""
        return self.transport.close_stream(related, retry)

    def allows_resource(self, uri: str) -> bool:
        """Return whether the token of the newest message permits notifications about a resource."""
        revision = self.negotiated.dispatcher.revision.name
        return self.access is None or self.access(self.origin.identity, revision, [(SUBSCRIBE, canonical(uri))])

    def is_over(self, id_: RequestId) -> bool:
        """Tell whether a request of the other side was answered or cancelled, while the connection goes on."""
        is_cancelled = id_ in self._running and self._running[id_].cancel_called
        return (is_cancelled or id_ not in self.peer.handling) and not self.closed.is_set()

    # --- running ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the connection until either side ends it; then all that is pending fails, and nothing is left."""
        try:
            with observation.connected(self.peer.role, self):
                async with anyio.create_task_group() as tasks:
                    self._tasks = self._sender.tasks = tasks
                    tasks.start_soon(self._lead)
                    await self.closed.wait()
                    tasks.cancel_scope.cancel()
        finally:
            self._finish("the connection was closed")
            with anyio.CancelScope(shield=True):
                await self.transport.close()

    async def close(self, reason: str = "the connection was closed by this side") -> None:
        """End the connection."""
        self._finish(reason)
        await self.transport.close()

    def _finish(self, reason: str) -> None:
        for answered in self.peer.close(reason):
            resolve(answered)
        self._timeouts.stop()
        self.closed.set()

    async def _lead(self) -> None:
        """Read and handle until something waits (then another task leads) or the other side is gone.

        A request that waits takes over the cancel scope of the task: made for each request, it would cost those that
        finish at once, and made when one has to wait, it would come too late for the scopes that are open in it.
        """
        with anyio.CancelScope() as scope:
            await self._read(scope)
        await self._go_on()

    async def _read(self, scope: anyio.CancelScope) -> None:
        assert self._tasks is not None
        work = self._work
        turn = Turn()
        while not self.closed.is_set():
            while True:
                event = next(self._events, None)
                if event is None:
                    if not self._backlog:
                        break
                    message = self._message = self._backlog.popleft()
                    self._events = iter(self.peer.take(message))
                    continue
                if monotonic() > turn.end:
                    await turn.give_way()
                if (work.at_work or work.unread) and not work.is_free() and work.must_wait(event):
                    self._hold(event)
                elif isinstance(event, Requested | Notified):
                    rest = self._begin(event)
                    if rest is not None:
                        self._work.at_work += 1
                        self._tasks.start_soon(self._lead)
                        await self._complete(event, rest, scope)
                        return
                else:
                    self._take(event)
            if self._outgoing:
                _, rest = begin(self._answer())
                if rest is not None:  # if reading waited for writing, two sides with much to say would never go on
                    self._tasks.start_soon(self._lead)
                    await rest
                    return
            if work.unread and work.is_full and (reason := await work.settle(self._sender.turn)) is not None:
                log.warning("a connection is closed: %s", reason)
                self._finish(reason)
                return
            messages = await self.transport.receive()
            turn.begin()
            if not messages:
                await self._let_finish()
                self._finish("the other side closed the connection")
                return
            self._backlog.extend(messages)

    async def _answer(self) -> None:
        """Send the answers that are ready."""
        answers, self._outgoing = self._outgoing, []
        size = sum(map(len, answers))
        self._work.unread += size
        try:
            await self._sender.send(answers)
        finally:
            self._work.unread -= size
        if self._work:
            self._unhold()

    async def _let_finish(self) -> None:
        """Give handlers a moment, because a side with nothing more to say may still listen: `server < file`."""
        for end in self.endless:
            end()
        if self.peer.role == "server":
            with anyio.move_on_after(_GRACE):
                while (self._work.at_work or self._work or self._work.unread) and not self.closed.is_set():
                    await anyio.sleep(0.01)

    def _begin(self, event: Requested | Notified) -> Awaitable[Any] | None:
        """Start a handler; returns what is left to do if it has to wait, else its answer is ready to be sent."""
        self.origin = event.origin or self.origin
        answered, rest = begin(execute(self._find, self.peer, self, event), copy_context())
        if rest is None and answered[0]:
            self._reply(answered[0], event.id if isinstance(event, Requested) else None)
        return rest

    async def _complete(self, event: Requested | Notified, rest: Awaitable[Any], scope: anyio.CancelScope) -> None:
        """Wait for a handler; its answer is ready to be sent then, outside of the scope in which it is cancelled."""
        id_ = event.id if isinstance(event, Requested) else None
        data = b""
        if id_ is not None:
            self._running[id_] = scope
        try:
            data, _ = await rest
        except asyncio.CancelledError:
            if id_ is not None:
                data = self.peer.drop(id_)
            raise
        finally:
            self._work.at_work -= 1
            if id_ is not None:
                del self._running[id_]
                if self.peer.role == "client":
                    self._timeouts.handled()
            self._reply(data, id_)

    def _reply(self, data: bytes, id_: RequestId | None, *, refused: bool = False) -> None:
        """Queue an answer, if it is to be sent."""
        if data:
            message = Outgoing(data)
            message.related, message.refused = id_, refused
            if isinstance(data, BatchReply):
                message.batch_ids = data.ids
            self._outgoing.append(message)

    async def _go_on(self) -> None:
        """Send the answer of a handler that has waited, and begin what waits for its turn."""
        if self._outgoing:
            await self._answer()
        elif self._work:
            self._unhold()

    # --- what waits for its turn ------------------------------------------------------------------------------

    def _hold(self, event: Any) -> None:
        """Keep an event until there is room for it; refuse it if the other side reads, but asks too much."""
        if not self._work.is_full or self._work.is_unread:
            self._work.hold(event, len(self._message) if isinstance(self._message, bytes) else 0)
            self._message = b""  # the other events of a batch are of the same bytes
            return
        error = TooManyRequests(f"Too many requests at once: {len(self._work)} messages wait to be handled")
        log.log(logging.DEBUG if self._refusals else logging.WARNING, "%s: %s", event.route.method.name, error.message)
        self._refusals += 1
        observation.refused("too many messages of a connection wait")
        if isinstance(event, Requested):
            self._reply(self.peer.fail(event.id, error), event.id, refused=True)

    def _unhold(self) -> None:
        """Begin what waits for its turn, as far as there is room now; until it begins, it can be cancelled."""
        assert self._tasks is not None
        for _ in range(self._work.may_begin):
            self._work.at_work += 1
            self._tasks.start_soon(self._handle_held)

    async def _handle_held(self) -> None:
        with anyio.CancelScope() as scope:
            event, rest = self._work.taken(), None
            if isinstance(event, Rejected):
                self._take(event)
            elif event is not None:
                rest = self._begin(event)
            if rest is None:
                self._work.at_work -= 1
            else:
                assert isinstance(event, Requested | Notified)
                await self._complete(event, rest, scope)
        await self._go_on()

    def _take(self, event: Event) -> None:
        match event:
            case Answered():
                resolve(event)
            case Progressed(pending, params):
                self._timeouts.progressed(pending, params)
            case CancelRequested(id_):
                if id_ in self._running:
                    self._running[id_].cancel()
                elif self._work.drop(id_):
                    self._reply(self.peer.drop(id_), id_)
            case Rejected(error, reply, id_):
                is_known = isinstance(error, NotInitialized) or isinstance(reply, BatchReply)  # each part is logged
                log.log(logging.DEBUG if is_known else logging.WARNING, "%s", error)
                self._reply(reply, id_)
            case _:
                pass

    # --- calling ----------------------------------------------------------------------------------------------

    async def request(
        self,
        method: Request[Params, Any, Answer],
        params: Params,
        options: Options | None = None,
        *,
        related: RequestId | None = None,
        opened: Callable[[int], object] | None = None,
        begins_session: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Send a request and wait for its answer.

        Args:
            method: The method.
            params: Its params.
            options: How it is sent; by default as the session's are.
            related: The request of the other side that it belongs to.
            opened: Called with its id before it is sent.
            begins_session: Whether it begins a session, where a transport has such.
            meta: Members of its `_meta`, beside what its params say; an observer gives them.

        Raises:
            ProtocolError: The answer is an error.
            RequestTimeout: No answer came in time; the other side was told.
            ConnectionClosed: The connection ended first.
        """
        if observation.current is not None and meta is None:
            ask = partial(self.request, options=options, related=related, opened=opened, begins_session=begins_session)
            return await asked(observation.current, self, method, params, ask)
        chosen = options or self.options
        pending, data = self.peer.request(method, params, progress=chosen.on_progress is not None, meta=meta)
        message = self._outgoing_message(data, method, params, related)
        message.id = pending.id
        message.begins_session = begins_session
        future = asyncio.get_running_loop().create_future()
        waiter = pending.waiter = Waiter(future, chosen, message, in_handler.get())
        self._timeouts.start(waiter)
        if opened is not None:
            opened(pending.id)
        try:
            await self._sender.post(message, chosen, alone=len(self.peer.pending) == 1)
            answered = await waiter.answered
        except TimeoutError:
            self._expire(pending)
            answered = waiter.answered.result()
        except BaseException:
            self._give_up(pending, message, "the caller is gone")
            raise
        if waiter.reporting is not None:
            await waiter.reported(answered)
        if answered.error is not None:
            raise answered.error
        answer: Answer = answered.result
        return answer

    def _expire(self, pending: Pending) -> None:
        """Fail a request whose time is up, and tell the other side."""
        self._give_up(pending, pending.waiter.message, "timed out")
        resolve(Answered(pending, error=RequestTimeout(f"{pending.method.name} was not answered in time")))

    def _is_asked(self) -> bool:
        """Tell whether a client is at work on what the server asked."""
        return self.peer.role == "client" and bool(self._running)

    async def notify(
        self,
        method: Notification[Params],
        params: Params,
        *,
        related: RequestId | None = None,
        opens_stream: bool = False,
    ) -> None:
        """Send a notification.

        Args:
            method: The method.
            params: Its params.
            related: The request of the other side that it belongs to.
            opens_stream: Whether the other side may speak unasked from then on.

        Raises:
            ConnectionClosed: The connection is over.
        """
        message = self._outgoing_message(self.peer.notify(method, params), method, params, related)
        message.opens_stream = opens_stream
        if not await self._sender.send([message]):
            raise ConnectionClosed("the connection is closed")

    def metadata(self) -> Mapping[str, Any]:
        """Return what requests must say of this side; nothing in stateful revisions."""
        return self.meta

    def _outgoing_message(self, data: bytes, method: Method, params: Any, related: RequestId | None) -> Outgoing:
        message = Outgoing(data)
        message.method = method
        message.related = related
        message.self_contained = self.peer.dispatcher.revision.era.is_stateless
        if self.headers is not None:
            message.headers = self.headers(method, params)
        return message

    def _give_up(self, pending: Pending, message: Outgoing, reason: str) -> None:
        """Remove a request from the queue, or tell the other side that its answer is no longer wanted."""
        pending.waiter.stop_reporting()
        told = self.peer.cancel(pending, reason)
        cancelled = self.peer.dispatcher.revision.cancelled
        if not self._sender.withdraw(message) and told and cancelled is not None:
            cancellation = self._outgoing_message(told, cancelled, None, None)
            cancellation.cancels = pending.id
            self._sender.send_soon(cancellation)
