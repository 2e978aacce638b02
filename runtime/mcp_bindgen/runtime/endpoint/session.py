"""Drives a `Peer` over a `Transport`: reads, hands messages to handlers, writes what they answer."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from ..core.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    CapabilityMissing,
    ConnectionClosed,
    ProtocolError,
    RequestTimeout,
)
from ..core.events import Answered, CancelRequested, Event, Notified, Pending, Progressed, Rejected, Requested, State
from ..core.jsonrpc import RequestId
from ..core.methods import Method, Notification, Request
from ..core.negotiated import Terms
from ..core.peer import Peer
from ..core.revision import CANCELLED, INITIALIZE, INITIALIZED, Vocabulary
from ..core.routing import Route
from ..core.transport import Lost, Outgoing, Oversized, Transport
from .coroutines import is_being_cancelled, resume
from .handlers import Handler

log = logging.getLogger("mcp_bindgen")

Params = TypeVar("Params")
Answer = TypeVar("Answer")
Progress = Callable[[Any], object]

_MOST_UNREAD = 1024 * 1024  # bytes of answers that wait to be read by the other side
_GRACE = 1.0  # seconds for handlers to finish when the other side has nothing more to say


@dataclass(frozen=True)
class Options:
    """How a request is sent.

    Attributes:
        timeout: Seconds to wait for an answer or for progress; `None` waits for ever.
        total_timeout: Seconds to wait in all, however much progress there is.
        on_progress: Called with the params of each progress notification; asking for progress is implied.
    """

    timeout: float | None = None
    total_timeout: float | None = None
    on_progress: Progress | None = None


@dataclass(eq=False)
class _Waiter:
    """Somebody who waits for an answer."""

    event: anyio.Event
    on_progress: Progress | None
    scope: anyio.CancelScope | None = None
    timeout: float | None = None
    result: Any = None
    error: Exception | None = None


class Session:
    """A connection at work. It is the `Link` of contexts and clients.

    Requests are handled in the task that reads them, so that a handler that finishes at once costs no task. A handler
    that waits keeps that task, and another one goes on reading.

    Args:
        peer: The protocol's state.
        transport: How messages travel.
        bind: Gives the handler of a route of a revision.
        options: How requests are sent unless they say otherwise.

    Attributes:
        terms: What the two sides agreed on.
        meta: What requests say of this side in their `_meta` (stateless revisions).
        headers: Says what a transport with headers repeats there of a message of ours.
        principal: Who is on the other side, if the transport knows.
        endless: Ends of what would not end by itself; called when the other side has nothing more to say.
        introductions: How often this side has introduced itself again, because the other one forgot it.
        closed: Set when the connection is over.
    """

    def __init__(
        self,
        peer: Peer,
        transport: Transport,
        bind: Callable[[Vocabulary, Route[Any]], Handler],
        options: Options | None = None,
    ) -> None:
        self.peer = peer
        self.transport = transport
        self.options = options or Options()
        self.terms = Terms(peer.vocabulary)
        self.meta: Mapping[str, Any] = {}
        self.headers: Callable[[Method, Any], Mapping[str, str]] | None = None
        self.principal: str | None = getattr(transport, "principal", None)
        self.introductions = 0
        self._bind = bind
        self._events: deque[Event] = deque()
        self._backlog: deque[bytes | Oversized | Lost] = deque()
        self._outgoing: list[Outgoing] = []
        self._unread = 0
        self._queue: list[Outgoing] = []
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._sending = anyio.Lock(fast_acquire=True)
        self.endless: set[Callable[[], object]] = set()
        self._tasks: TaskGroup | None = None
        self._independent: bool = getattr(transport, "independent", False)
        self.closed = anyio.Event()

    @property
    def ready(self) -> bool:
        """Whether the handshake is over and the connection lives; without one, nobody may be told anything unasked."""
        return self.peer.state is State.READY and not self.peer.vocabulary.stateless

    # --- running ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serves the connection until either side ends it; then all that is pending fails, and nothing is left."""
        try:
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
        """Ends the connection."""
        self._finish(reason)
        await self.transport.close()

    def _finish(self, reason: str) -> None:
        for answered in self.peer.close(reason):
            self._resolve(answered)
        self.closed.set()

    async def _lead(self) -> None:
        """Reads and handles until something waits (then another task leads) or the other side is gone."""
        while not self.closed.is_set():
            while self._events or self._backlog:
                if not self._events:
                    self._events.extend(self._understand(self._backlog.popleft()))
                    continue
                event = self._events.popleft()
                if isinstance(event, Requested | Notified):
                    if await self._handle(event):
                        return
                else:
                    self._take(event)
            if self._outgoing and await self._flush():
                return
            while self._unread > _MOST_UNREAD:  # who does not read is not read either
                async with self._sending:
                    pass
            messages = await self.transport.receive()
            if not messages:
                await self._let_finish()
                self._finish("the other side closed the connection")
                return
            self._backlog.extend(messages)

    async def _flush(self) -> bool:
        """Sends answers; says whether that had to wait, in which case another task has taken the lead.

        If reading waited for writing, two sides that both have much to say would wait for each other.
        """
        answers, self._outgoing = self._outgoing, []
        work = self._answer(answers)
        try:
            trap = work.send(None)
        except StopIteration:
            return False
        assert self._tasks is not None
        self._tasks.start_soon(self._lead)
        await resume(work, trap, copy_context())
        return True

    async def _answer(self, answers: list[Outgoing]) -> None:
        size = sum(map(len, answers))
        self._unread += size
        try:
            await self._send(answers)
        finally:
            self._unread -= size

    async def _let_finish(self) -> None:
        """Gives handlers a moment, because who has nothing more to say may still listen: `server < file`."""
        for end in self.endless:
            end()
        if self.peer.role == "server":
            with anyio.move_on_after(_GRACE):
                while (self._running or self._unread) and not self.closed.is_set():
                    await anyio.sleep(0.01)

    def _understand(self, message: bytes | Oversized | Lost) -> list[Event]:
        if isinstance(message, Oversized):
            return self.peer.receive_oversized(message.limit, message.head)
        if isinstance(message, Lost):
            return self.peer.lose(message.id, message.error)
        return self.peer.receive(message)

    async def _handle(self, event: Requested | Notified) -> bool:
        """Runs a handler; says whether it had to wait, in which case another task has taken the lead."""
        id_ = event.id if isinstance(event, Requested) else None
        data = b""
        variables = copy_context()
        work = self._work(id_, event)
        with anyio.CancelScope() as scope:
            if id_ is not None:
                self._running[id_] = scope
            try:
                trap = variables.run(work.send, None)
            except StopIteration as done:
                self._forget(id_)
                if done.value:
                    self._outgoing.append(_answering(done.value, id_))
                return False
            assert self._tasks is not None
            self._tasks.start_soon(self._lead)
            try:
                data = await resume(work, trap, variables)
            finally:
                self._forget(id_)
        if scope.cancelled_caught and id_ is not None:
            data = self.peer.drop(id_)
        if data:
            await self._answer([_answering(data, id_)])
        return True

    def _forget(self, id_: RequestId | None) -> None:
        if id_ is not None:
            self._running.pop(id_, None)

    async def _work(self, id_: RequestId | None, event: Requested | Notified) -> bytes:
        """Calls a handler and gives the bytes that answer its request."""
        name = event.route.method.name
        try:
            answer = self._bind(event.vocabulary, event.route)(self, id_, event.params)
            if inspect.isawaitable(answer):
                answer = await answer
            if id_ is None:
                return b""
            if answer is None and event.vocabulary.methods.get(name) is event.route.method:
                raise TypeError(f"the handler of {name} returned nothing")
            return self.peer.respond(id_, answer)
        except ProtocolError as error:
            return self._refuse(id_, name, error)
        except CapabilityMissing as error:
            return self._refuse(id_, name, ProtocolError(INVALID_REQUEST, str(error)))
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            log.exception("what the handler of %s was waiting for is cancelled", name)
        except Exception:
            log.exception("the handler of %s failed", name)
        return self._refuse(id_, name, ProtocolError(INTERNAL_ERROR, "Internal error"))

    def _refuse(self, id_: RequestId | None, name: str, error: ProtocolError) -> bytes:
        if id_ is None:
            return b""
        try:
            return self.peer.fail(id_, error)
        except ValueError:
            log.exception("the error that the handler of %s raised cannot be written", name)
            return self.peer.fail(id_, ProtocolError(INTERNAL_ERROR, "Internal error"))

    def _take(self, event: Event) -> None:
        match event:
            case Answered():
                self._resolve(event)
            case Progressed(pending, params):
                self._progress(pending, params)
            case CancelRequested(id_):
                scope = self._running.get(id_)
                if scope is not None:
                    scope.cancel()
            case Rejected(error, reply, id_):
                log.warning("%s", error)
                if reply:
                    self._outgoing.append(_answering(reply, id_))
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
    ) -> Answer:
        """Sends a request and waits for its answer; `opened` is told its id before it is sent.

        Raises:
            ProtocolError: The answer is an error.
            RequestTimeout: No answer came in time; the other side was told.
            ConnectionClosed: The connection ended first.
        """
        chosen = options or self.options
        pending, data = self.peer.request(method, params, progress=chosen.on_progress is not None)
        message = self._outgoing_message(data, method, params, related)
        message.id = pending.id
        waiter = _Waiter(anyio.Event(), chosen.on_progress, timeout=chosen.timeout)
        pending.waiter = waiter
        if opened is not None:
            opened(pending.id)
        try:
            if chosen.timeout is None and chosen.total_timeout is None:
                await self._exchange(message, waiter)
            else:
                with anyio.move_on_after(chosen.total_timeout), anyio.move_on_after(chosen.timeout) as scope:
                    waiter.scope = scope
                    await self._exchange(message, waiter)
        except BaseException:
            self._give_up(pending, message, "the caller is gone")
            raise
        if not waiter.event.is_set():
            self._give_up(pending, message, "timed out")
            raise RequestTimeout(f"{method.name} was not answered in time")
        if waiter.error is not None:
            raise waiter.error
        answer: Answer = waiter.result
        return answer

    async def _exchange(self, message: Outgoing, waiter: _Waiter) -> None:
        """Sends a request and waits for its answer; requests that are made at the same time leave together."""
        alone = len(self.peer.pending) == 1 and not self._queue and not self._sending.locked()
        if alone or self._tasks is None:
            await self._send([message])
        else:
            self._send_soon(message)
        await waiter.event.wait()

    async def notify(self, method: Notification[Params], params: Params, *, related: RequestId | None = None) -> None:
        """Sends a notification.

        Raises:
            ConnectionClosed: The connection is over.
        """
        message = self._outgoing_message(self.peer.notify(method, params), method, params, related)
        if not await self._send([message]):
            raise ConnectionClosed("the connection is closed")

    def metadata(self) -> Mapping[str, Any]:
        """What requests must say of this side; nothing in stateful revisions."""
        return self.meta

    def _outgoing_message(self, data: bytes, method: Method, params: Any, related: RequestId | None) -> Outgoing:
        message = Outgoing(data)
        message.method = method
        message.related = related
        message.self_contained = self.peer.vocabulary.stateless
        message.begins_session = method.name == INITIALIZE
        message.opens_stream = method.name == INITIALIZED
        if self.headers is not None:
            message.headers = self.headers(method, params)
        return message

    def _give_up(self, pending: Pending, message: Outgoing, reason: str) -> None:
        """Takes a request back, or tells the other side that an answer is not wanted any longer."""
        told = self.peer.cancel(pending, reason)
        if message in self._queue:
            self._queue.remove(message)
        elif told:
            cancellation = self._outgoing_message(told, self.peer.vocabulary.methods[CANCELLED], None, None)
            cancellation.cancels = pending.id
            self._send_soon(cancellation)

    def _resolve(self, answered: Answered) -> None:
        waiter: _Waiter | None = answered.pending.waiter
        if waiter is not None:
            waiter.result, waiter.error = answered.result, answered.error
            waiter.event.set()

    def _progress(self, pending: Pending, params: Any) -> None:
        waiter: _Waiter | None = pending.waiter
        if waiter is None:
            return
        if waiter.scope is not None and waiter.timeout is not None:
            waiter.scope.deadline = anyio.current_time() + waiter.timeout
        if waiter.on_progress is not None:
            try:
                waiter.on_progress(params)
            except Exception:
                log.exception("the progress callback of %s failed", pending.method.name)

    def _send_soon(self, message: Outgoing) -> None:
        """Queues a message: what is said at the same time leaves together, and nobody waits for a slow reader."""
        self._queue.append(message)
        if len(self._queue) == 1 and self._tasks is not None:
            self._tasks.start_soon(self._send)

    async def _send(self, messages: Sequence[Outgoing] | None = None) -> bool:
        """Sends messages, or else the queue, one sender at a time; says whether the other side was still there."""
        try:
            if self._independent and messages:
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


def _answering(data: bytes, id_: RequestId | None) -> Outgoing:
    message = Outgoing(data)
    message.related = id_
    return message


__all__ = ["Options", "Progress", "Session"]
