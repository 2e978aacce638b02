"""Sessions: drive a `Connection` over a `Transport`, within limits."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup

from .. import concurrency
from ..concurrency import first_step
from ..logs import log
from ..protocol import errors, observation
from ..protocol.access import RequestOrigin
from ..protocol.connection import Connection, State
from ..protocol.envelope import BatchReply, RequestId
from ..protocol.errors import ConnectionClosed, NotInitialized, RequestTimeout, TooManyRequests
from ..protocol.events import (
    Answered,
    CancelRequested,
    Event,
    Notified,
    Pending,
    Progressed,
    Rejected,
    Requested,
    resolve,
)
from ..protocol.limits import Limits, Options
from ..protocol.methods import INITIALIZE, INITIALIZED, Method, Notification, Params, RequestMethod
from ..protocol.request_scope import Answer, Endpoint, Link, Negotiated
from ..protocol.transport import AskUser, LogIn, Lost, Outgoing, Oversized, Parsed, Transport
from .execution import handle

if TYPE_CHECKING:
    from .waiter import Waiter

in_handler: ContextVar[bool] = ContextVar("in_handler", default=False)
"""True if a client's handler of a request runs in this context."""


def resolve_all(message: object) -> None:
    """Pass the answers in a message that will not be handled to the callers that wait for them."""
    for event in message.events if isinstance(message, Parsed) else ():
        if isinstance(event, Answered):
            resolve(event)


Work = Requested | Notified | Rejected
"""An event that starts work, or at least needs a response."""


class Workload:
    """Work of a connection: running handlers, unread responses, and events that wait.

    Args:
        limits: The limits.
        independent: True if responses wait only for their own reader, so they need not be counted.

    Attributes:
        in_flight: How many handlers wait for something.
        unread: Bytes of responses that the peer has not read yet.
        held: Events that wait, with the bytes of their messages.
    """

    def __init__(self, limits: Limits, *, independent: bool) -> None:
        self.in_flight = 0
        self.unread = 0
        self._limits = limits
        self._most_unread = math.inf if independent else limits.max_unsent_bytes
        self.held: OrderedDict[object, tuple[Work, int]] = OrderedDict()
        self._bytes = 0

    @property
    def is_unread(self) -> bool:
        """True if the other side leaves too many answers unread."""
        return self.unread > self._most_unread

    @property
    def is_full(self) -> bool:
        """True if too much waits already."""
        return len(self.held) >= self._limits.waiting or self._bytes >= self._limits.waiting_bytes

    def has_room(self) -> bool:
        """Return whether another handler may begin."""
        return self.in_flight < self._limits.in_flight and self.unread <= self._most_unread

    def must_wait(self, event: Event) -> bool:
        """Return whether an event has to wait for its turn.

        Events without work never wait. A peer that reads its responses gets errors and pings at once.
        """
        if isinstance(event, Rejected):
            return self.is_unread and bool(event.reply)
        if not isinstance(event, Requested | Notified) or (not self.held and self.has_room()):
            return False
        return self.is_unread or event.route.method is not event.dispatcher.revision.ping

    async def settle(self, turn: Callable[[], Awaitable[None]]) -> str | None:
        """Wait while the other side leaves too many answers unread and too much waits (backpressure).

        Args:
            turn: Waits until some of the answers were read.

        Returns:
            Why the connection has to be closed; `None` where it goes on.
        """
        with anyio.move_on_after(self._limits.write_timeout):
            while self.is_unread and self.is_full:
                await turn()
            return None
        return f"the other side does not read: {self.unread} bytes of answers wait"

    def hold(self, event: Work, size: int) -> None:
        """Keep an event, of a message of `size` bytes, until it is `taken`."""
        self.held[event.id if isinstance(event, Requested) else object()] = event, size
        self._bytes += size

    @property
    def may_begin(self) -> int:
        """Number of waiting events that may begin now."""
        return min(len(self.held), self._limits.in_flight - self.in_flight) if self.has_room() else 0

    def taken(self) -> Work | None:
        """Take the first event that waits, if there still is one."""
        if not self.held:
            return None
        _, (event, size) = self.held.popitem(last=False)
        self._bytes -= size
        return event

    def drop(self, id_: RequestId) -> bool:
        """Drop the request with an id, if it waits."""
        _, size = self.held.pop(id_, (None, None))
        self._bytes -= size or 0
        return size is not None


_GRACE = 1.0  # seconds for handlers to finish when the other side has nothing more to say


class Session(Link):
    """A connection at work. It is the `Link` of contexts and clients.

    Requests are handled in the task that reads them, so a handler that finishes at once costs no task. A handler
    that waits keeps this task and its cancel scope, and another task goes on reading.

    Args:
        peer: The protocol's state.
        transport: How messages travel.
        endpoint: This side.

    Attributes:
        headers: Returns the HTTP headers of a message; `None` if it needs none.
        introductions: How often this side has introduced itself again, because the other one forgot it.
        ask_user: Runs the logins that messages need; by default without time limits of requests meanwhile.
        lasting: Key -> request that the other side answered, with its params, whose effect ends with the HTTP session.
        closed: Set when the connection is over.
    """

    def __init__(self, connection: Connection, transport: Transport, endpoint: Endpoint) -> None:
        self.connection: Connection = connection
        self.transport = transport
        self.endpoint = endpoint
        self.options: Options = endpoint.options
        self.limits: Limits = endpoint.limits
        connection.max_batch_members = self.limits.batch_members
        self.headers: Callable[[Method, Any], Mapping[str, str]] | None = None
        self.origin: RequestOrigin = transport.origin
        self._threads: anyio.CapacityLimiter | None = None
        self.introductions = 0
        self.lasting: dict[str, tuple[RequestMethod[Any, Any], Any]] = {}
        self._endless: set[Callable[[], object]] = set()
        self.closed: anyio.Event = anyio.Event()
        self._events: Iterator[Event] = iter(())
        self._backlog: deque[bytes | Oversized | Lost] = deque()
        self._message: bytes | Oversized | Lost = b""
        self._refusals = 0
        self._outgoing: list[Outgoing] = []
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._queue: list[Outgoing] = []
        self._sending = asyncio.Lock()
        self._tasks: TaskGroup | None = None
        self._work = Workload(self.limits, independent=transport.independent)
        self.ask_user: AskUser | None = None
        self._logins = 0

    @cached_property
    def negotiated(self) -> Negotiated:
        """Agreement of both sides."""
        return Negotiated(self.connection.dispatcher)

    def thread_limit(self) -> anyio.CapacityLimiter:
        """Return the limit of threads for blocking handlers."""
        if self._threads is None:
            self._threads = super().thread_limit() or anyio.CapacityLimiter(self.limits.threads)
        return self._threads

    @property
    def ready(self) -> bool:
        """True if the other side can be told something unasked now."""
        return self.connection.state is State.READY and not self.connection.dispatcher.revision.era.is_stateless

    def close_stream(self, related: RequestId | None, retry: float | None = None) -> bool:
        """Close the stream of a request; see `Transport.close_stream`."""
        return self.transport.close_stream(related, retry)

    @contextmanager
    def ending(self, end: Callable[[], object]) -> Generator[None]:
        """Call `end` if the peer's input ends while a block runs that would never end by itself."""
        self._endless.add(end)
        try:
            yield
        finally:
            self._endless.discard(end)

    def is_over(self, id_: RequestId) -> bool:
        """Return whether a request of the other side was answered or cancelled, while the connection goes on."""
        is_cancelled = id_ in self._running and self._running[id_].cancel_called
        return (is_cancelled or id_ not in self.connection.handling) and not self.closed.is_set()

    # --- running ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the connection until either side ends it; then all that is pending fails, and nothing is left."""
        try:
            with observation.connected(self.connection.role, self):
                async with anyio.create_task_group() as tasks:
                    self._tasks = tasks
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
        for answered in self.connection.close(reason):
            resolve(answered)
        for message in self._backlog:
            resolve_all(message)
        self.closed.set()

    async def _lead(self) -> None:
        """Read and handle until something waits (then another task leads) or the other side is gone.

        A request that waits takes over the cancel scope of the task: made for each request, it would cost those that
        finish at once, and made when one has to wait, it would come too late for the scopes that are open in it.
        """
        assert self._tasks is not None
        work, end = self._work, monotonic() + concurrency.TURN_SECONDS
        with anyio.CancelScope() as scope:
            while not self.connection.is_closed:
                event = next(self._events, None)
                if event is not None:
                    if monotonic() > end:
                        await asyncio.sleep(0)
                        end = monotonic() + concurrency.TURN_SECONDS
                    if isinstance(event, Answered):
                        resolve(event)
                    elif (work.in_flight or work.unread) and work.must_wait(event):
                        self._hold(event)
                    elif not isinstance(event, Requested | Notified):
                        self._take(event)
                    elif (rest := self._begin(event)) is not None:
                        work.in_flight += 1
                        self._tasks.start_soon(self._lead)
                        await self._complete(event, rest, scope)
                        break
                elif self._backlog:
                    self._message = self._backlog.popleft()
                    self._events = iter(self.connection.read(self._message))
                elif self._outgoing:
                    _, rest = first_step(self._answer())
                    if rest is not None:  # if reading waited for writing, two sides with much to say would never go on
                        self._tasks.start_soon(self._lead)
                        await rest
                        break
                elif work.unread and work.is_full and (reason := await work.settle(self._sent)) is not None:
                    log.warning("a connection is closed: %s", reason)
                    self._finish(reason)
                elif messages := await self.transport.receive():
                    self._backlog.extend(messages)
                    end = monotonic() + concurrency.TURN_SECONDS
                else:
                    await self._let_finish()
                    self._finish(await self.transport.end_reason())
        await self._go_on()

    async def _answer(self) -> None:
        """Send the answers that are ready."""
        answers, self._outgoing = self._outgoing, []
        size = sum(map(len, answers))
        self._work.unread += size
        try:
            await self._send(answers)
        finally:
            self._work.unread -= size
        if self._work.held:
            self._unhold()

    async def _let_finish(self) -> None:
        """Give handlers a moment, because a side with nothing more to say may still listen: `server < file`."""
        for end in self._endless:
            end()
        if self.connection.role == "server":
            with anyio.move_on_after(_GRACE):
                while (self._work.in_flight or self._work.held or self._work.unread) and not self.closed.is_set():
                    await anyio.sleep(0.01)

    def _begin(self, event: Requested | Notified) -> Awaitable[Any] | None:
        """Start a handler; return the rest of its work if it has to wait, else queue its response."""
        self.origin = event.origin or self.origin
        answered, rest = first_step(handle(self, event), copy_context())
        if rest is None and answered[0]:
            self._reply(answered[0], event.id if isinstance(event, Requested) else None)
        return rest

    async def _complete(self, event: Requested | Notified, rest: Awaitable[Any], scope: anyio.CancelScope) -> None:
        """Wait for a handler; its answer is ready to be sent then, outside of the scope in which it is cancelled."""
        id_ = event.id if isinstance(event, Requested) else None
        data = b""
        if id_ is not None:
            self._running[id_] = scope
            self._extend_all()
        try:
            data, _ = await rest
        except asyncio.CancelledError:
            if anyio.current_effective_deadline() == -math.inf:  # the request is cancelled, or the session ends
                if id_ is not None:
                    data = self.connection.drop(id_)
                raise
            log.exception("the handler of %s cancelled its own task", event.route.method.name)
            if id_ is not None:
                data = self.connection.fail(id_, errors.ProtocolError(errors.INTERNAL_ERROR, "Internal error"))
        finally:
            self._work.in_flight -= 1
            if id_ is not None:
                del self._running[id_]
                self._extend_all()
            self._reply(data, id_)

    def _reply(self, data: bytes, id_: RequestId | None, error: errors.ProtocolError | None = None) -> None:
        """Queue an answer, if it is to be sent; `error` refuses a request whose handler has not begun."""
        if data:
            message = Outgoing(data)
            message.related, message.error = id_, error
            if self.connection.role == "client":
                message.ask_user = self._log_in
            if isinstance(data, BatchReply):
                message.batch_ids = data.ids
            self._outgoing.append(message)

    async def _go_on(self) -> None:
        """Send the response of a handler that has waited, and begin waiting events."""
        if self._outgoing:
            await self._answer()
        elif self._work.held:
            self._unhold()

    # --- sending ----------------------------------------------------------------------------------------------

    async def _send(self, messages: Sequence[Outgoing] | None = None) -> bool:
        """Send messages, or else the queue; return True if the peer was still there."""
        try:
            if self.transport.independent and messages:
                await self.transport.send(messages)
                return True
            async with self._sending:
                if messages is None:
                    messages, self._queue = self._queue, []
                if messages:
                    await self.transport.send(messages)
        except ConnectionClosed as error:
            self._finish(str(error))
            return False
        return True

    def _send_soon(self, message: Outgoing) -> None:
        """Queue a message without waiting for a slow reader; messages queued at the same time are sent together."""
        self._queue.append(message)
        if len(self._queue) == 1 and self._tasks is not None:
            self._tasks.start_soon(self._send)

    async def _sent(self) -> None:
        """Wait until the current send is over."""
        async with self._sending:
            pass

    # --- waiting events -------------------------------------------------------------------------------------------

    def _hold(self, event: Any) -> None:
        """Keep an event until there is room for it; refuse it if the other side reads, but asks too much."""
        if not self._work.is_full or self._work.is_unread:
            self._work.hold(event, len(self._message) if isinstance(self._message, bytes) else 0)
            self._message = b""  # the other events of a batch are of the same bytes
            return
        error = TooManyRequests(f"Too many requests at once: {len(self._work.held)} messages wait to be handled")
        log.log(logging.DEBUG if self._refusals else logging.WARNING, "%s: %s", event.route.method.name, error.message)
        self._refusals += 1
        observation.refused("too many messages of a connection wait")
        if isinstance(event, Requested):
            self._reply(self.connection.fail(event.id, error), event.id, error)

    def _unhold(self) -> None:
        """Begin waiting events as far as there is room; until an event begins, it can be cancelled."""
        assert self._tasks is not None
        for _ in range(self._work.may_begin):
            self._work.in_flight += 1
            self._tasks.start_soon(self._handle_held)

    async def _handle_held(self) -> None:
        with anyio.CancelScope() as scope:
            event, rest = self._work.taken(), None
            if isinstance(event, Rejected):
                self._take(event)
            elif event is not None:
                rest = self._begin(event)
            if rest is None:
                self._work.in_flight -= 1
            else:
                assert isinstance(event, Requested | Notified)
                await self._complete(event, rest, scope)
        await self._go_on()

    def _take(self, event: Event) -> None:
        match event:
            case Progressed(pending, params):
                if pending.waiter is not None:
                    self._extend(pending.waiter)
                    pending.waiter.progressed(params)
            case CancelRequested(id_):
                if id_ in self._running:
                    self._running[id_].cancel()
                elif self._work.drop(id_):
                    self._reply(self.connection.drop(id_), id_)
            case Rejected(error, reply, id_):
                is_known = isinstance(error, NotInitialized) or isinstance(reply, BatchReply)  # each part is logged
                log.log(logging.DEBUG if is_known else logging.WARNING, "%s", error)
                self._reply(reply, id_)
            case _:
                pass

    # --- calling ----------------------------------------------------------------------------------------------

    async def request(
        self,
        method: RequestMethod[Params, Any, Answer],
        params: Params,
        options: Options | None = None,
        *,
        related: RequestId | None = None,
        opened: Callable[[int], object] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Send a request and wait for its answer.

        Args:
            method: The method.
            params: Its params.
            options: How it is sent; by default as the session's are.
            related: The request of the other side that it belongs to.
            opened: Called with its id before it is sent.
            meta: Members of its `_meta`, beside those of its params; an observer adds them.

        Raises:
            ProtocolError: The answer is an error.
            RequestTimeout: No answer came in time; the other side was told.
            ConnectionClosed: The connection ended first.
        """
        if observation.current is not None and meta is None:
            role, revision = self.connection.role, self.connection.dispatcher.revision
            with observation.current.asking(role, self, revision, method, params) as seen:
                response = await self.request(method, params, options, related=related, opened=opened, meta=seen.meta)
                seen.answered(response)
                return response
        chosen = options or self.options
        pending, data = self.connection.request(method, params, progress=chosen.on_progress is not None, meta=meta)
        message = self._outgoing_message(data, method, params, related)
        message.id = pending.id
        message.begins_session = method.name == INITIALIZE
        from .waiter import Waiter  # few servers send requests

        waiter = pending.waiter = Waiter(chosen, message, in_handler.get())
        if opened is not None:
            opened(pending.id)
        answered: Answered | None = None
        try:
            self._extend(waiter)
            with waiter.scope:
                if self._tasks is not None and (
                    len(self.connection.pending) > 1 or self._queue or self._sending.locked()
                ):
                    self._send_soon(message)  # requests of the same moment leave together
                else:
                    await self._send([message])
                answered = await waiter.answered
                if answered.error is not None:
                    raise answered.error
                if chosen.on_progress is not None:
                    await waiter.report_all()
        except BaseException:
            self._give_up(pending, message, "the caller is gone")
            raise
        if answered is None:
            self._give_up(pending, message, "timed out")
            raise RequestTimeout(f"{method.name} was not answered in time")
        if waiter.scope.cancelled_caught:
            log.warning("the progress callback of %s has not ended within total_timeout", method.name)
        answer: Answer = answered.result
        return answer

    def _extend(self, waiter: Waiter) -> None:
        """Restart the time limit of a request; it stops while a person is asked, also by a handler of a client."""
        is_asked = self._running and self.connection.role == "client" and not waiter.is_nested
        timeout = math.inf if is_asked or self._logins or waiter.options.timeout is None else waiter.options.timeout
        waiter.scope.deadline = min(waiter.deadline, anyio.current_time() + timeout)

    def _extend_all(self) -> None:
        """Restart the time limits of all requests, because a question to a person begins or ends."""
        for pending in self.connection.pending.values():
            if pending.waiter is not None:
                self._extend(pending.waiter)

    async def _log_in(self, log_in: LogIn) -> bool:
        """Run a login, without time limits of requests meanwhile."""
        self._logins += 1
        self._extend_all()
        try:
            return await log_in()
        finally:
            self._logins -= 1
            self._extend_all()

    async def notify(self, method: Notification[Params], params: Params, *, related: RequestId | None = None) -> None:
        """Send a notification.

        Args:
            method: The method.
            params: Its params.
            related: The request of the other side that it belongs to.

        Raises:
            ConnectionClosed: The connection is over.
        """
        message = self._outgoing_message(self.connection.notify(method, params), method, params, related)
        message.opens_stream = method.name == INITIALIZED
        if not await self._send([message]):
            raise ConnectionClosed("the connection is closed")

    def _outgoing_message(self, data: bytes, method: Method, params: object, related: RequestId | None) -> Outgoing:
        message = Outgoing(data)
        message.method = method
        message.related = related
        message.ask_user = self.ask_user or self._log_in
        message.self_contained = self.connection.dispatcher.revision.era.is_stateless
        if self.headers is not None:
            message.headers = self.headers(method, params)
        return message

    def _give_up(self, pending: Pending, message: Outgoing, reason: str) -> None:
        """Remove a request from the queue, or tell the other side that its answer is no longer wanted."""
        pending.waiter.stop_reporting()
        cancelled_params = self.connection.cancel(pending, reason)
        cancelled = self.connection.dispatcher.revision.cancelled
        if message in self._queue:
            self._queue.remove(message)
        elif cancelled_params and cancelled is not None:
            cancellation = self._outgoing_message(cancelled_params, cancelled, None, None)
            cancellation.cancels = pending.id
            self._send_soon(cancellation)
