"""Drive a `Peer` over a `Transport`: read, hand messages to handlers, write what they answer."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from ..core.envelope import RequestId
from ..core.errors import ConnectionClosed, RequestTimeout
from ..core.events import Answered, CancelRequested, Event, Notified, Pending, Progressed, Rejected, Requested
from ..core.methods import Method, Notification, Request
from ..core.negotiated import Negotiated
from ..core.options import Options, Progress
from ..core.peer import Peer
from ..core.revision import Revision
from ..core.transitions import State
from ..core.transport import Lost, Outgoing, Oversized, Transport
from ..tasks import resume, within
from ._timeouts import Timeouts, Waiter, in_handler
from .execution import FindHandler, execute

log = logging.getLogger("mcp_bindgen")

Params = TypeVar("Params")
Answer = TypeVar("Answer")

_MOST_UNREAD = 1024 * 1024  # bytes of answers that wait to be read by the other side
_GRACE = 1.0  # seconds for handlers to finish when the other side has nothing more to say


class Session:
    """A connection at work. It is the `Link` of contexts and clients.

    Requests are handled in the task that reads them, so that a handler that finishes at once costs no task. A handler
    that waits keeps that task, and another one goes on reading.

    Args:
        peer: The protocol's state.
        transport: How messages travel.
        find: Finds the handler of a route of a revision.
        options: How requests are sent unless they say otherwise.

    Attributes:
        negotiated: What the two sides agreed on.
        meta: What requests say of this side in their `_meta` (stateless revisions).
        headers: Returns what a transport with headers repeats there of a message of ours.
        transport_mirror: Makes what keeps track of such headers; `None` where the transport has none.
        principal: Who is on the other side, if the transport knows.
        endless: Ends of what would not end by itself; called when the other side has nothing more to say.
        introductions: How often this side has introduced itself again, because the other one forgot it.
        closed: Set when the connection is over.
    """

    def __init__(self, peer: Peer, transport: Transport, find: FindHandler, options: Options | None = None) -> None:
        self.peer = peer
        self.transport = transport
        self.options = options or Options()
        self.negotiated = Negotiated(peer.dispatcher)
        self.meta: Mapping[str, Any] = {}
        self.headers: Callable[[Method, Any], Mapping[str, str]] | None = None
        self.transport_mirror: Callable[[Revision], Any] | None = getattr(transport, "mirror", None)
        self.principal: str | None = getattr(transport, "principal", None)
        self.introductions = 0
        self.endless: set[Callable[[], object]] = set()
        self.closed = anyio.Event()
        self._find = find
        self._events: deque[Event] = deque()
        self._backlog: deque[bytes | Oversized | Lost] = deque()
        self._outgoing: list[Outgoing] = []
        self._unread = 0
        self._queue: list[Outgoing] = []
        self._running: dict[RequestId, asyncio.Task[Any]] = {}
        self._cancelled: set[RequestId] = set()
        self._sending = asyncio.Lock()
        self._tasks: TaskGroup | None = None
        self._independent: bool = getattr(transport, "independent", False)
        self._timeouts = Timeouts(peer.pending, self._is_asked, self._expire)

    @property
    def ready(self) -> bool:
        """Whether the other side can be told something unasked now."""
        return self.peer.state is State.READY and not self.peer.dispatcher.revision.era.stands_alone

    # --- running ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve the connection until either side ends it; then all that is pending fails, and nothing is left."""
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
        """End the connection."""
        self._finish(reason)
        await self.transport.close()

    def _finish(self, reason: str) -> None:
        for answered in self.peer.close(reason):
            self._resolve(answered)
        self._timeouts.stop()
        self.closed.set()

    async def _lead(self) -> None:
        """Read and handle until something waits (then another task leads) or the other side is gone."""
        while not self.closed.is_set():
            while self._events or self._backlog:
                if not self._events:
                    events = self._understand(self._backlog.popleft())
                    if len(events) != 1:
                        self._events.extend(events)
                        continue
                    event = events[0]
                else:
                    event = self._events.popleft()
                if isinstance(event, Requested | Notified):
                    if await self._handle(event):
                        return
                else:
                    self._take(event)
            if self._outgoing and await self._flush():
                return
            while self._unread > _MOST_UNREAD and not self._independent:  # backpressure: answers are left unread
                async with self._sending:
                    pass
            messages = await self.transport.receive()
            if not messages:
                await self._let_finish()
                self._finish("the other side closed the connection")
                return
            self._backlog.extend(messages)

    async def _flush(self) -> bool:
        """Send answers; returns whether that had to wait, in which case another task has taken the lead.

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
        """Give handlers a moment, because a side with nothing more to say may still listen: `server < file`."""
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
        """Run a handler; returns whether it had to wait, in which case another task has taken the lead."""
        id_ = event.id if isinstance(event, Requested) else None
        variables = copy_context()
        work = execute(self._find, self.peer, self, event)
        try:
            trap = variables.run(work.send, None)
        except StopIteration as done:
            if done.value[0]:
                self._outgoing.append(_answering(done.value[0], id_))
            return False
        assert self._tasks is not None
        self._tasks.start_soon(self._lead)
        task = asyncio.current_task()
        assert task is not None
        if id_ is not None:
            self._running[id_] = task
        try:
            data, _ = await resume(work, trap, variables)
        except asyncio.CancelledError:
            if id_ not in self._cancelled or task.uncancel():  # somebody else cancels this task, too
                raise
            assert id_ is not None
            data = self.peer.drop(id_)
        else:
            if id_ in self._cancelled:  # it finished all the same
                task.uncancel()
        finally:
            if id_ is not None:
                del self._running[id_]
                self._cancelled.discard(id_)
                if self.peer.role == "client":
                    self._timeouts.handled()
        if data:
            await self._answer([_answering(data, id_)])
        return True

    def _take(self, event: Event) -> None:
        match event:
            case Answered():
                self._resolve(event)
            case Progressed(pending, params):
                self._progress(pending, params)
            case CancelRequested(id_):
                task = self._running.get(id_)
                if task is not None and id_ not in self._cancelled:
                    self._cancelled.add(id_)
                    task.cancel()
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
        begins_session: bool = False,
    ) -> Answer:
        """Send a request and wait for its answer.

        Args:
            method: The method.
            params: Its params.
            options: How it is sent; by default as the session's are.
            related: The request of the other side that it belongs to.
            opened: Called with its id before it is sent.
            begins_session: Whether it begins a session, where a transport has such.

        Raises:
            ProtocolError: The answer is an error.
            RequestTimeout: No answer came in time; the other side was told.
            ConnectionClosed: The connection ended first.
        """
        chosen = options or self.options
        pending, data = self.peer.request(method, params, progress=chosen.on_progress is not None)
        message = self._outgoing_message(data, method, params, related)
        message.id = pending.id
        message.begins_session = begins_session
        future = asyncio.get_running_loop().create_future()
        waiter = pending.waiter = Waiter(future, chosen, message, in_handler.get())
        self._timeouts.start(waiter)
        if opened is not None:
            opened(pending.id)
        try:
            await self._post(message, chosen)
            answered = await waiter.answered
        except TimeoutError:
            self._expire(pending)
            answered = waiter.answered.result()
        except BaseException:
            self._give_up(pending, message, "the caller is gone")
            raise
        if answered.error is not None:
            raise answered.error
        answer: Answer = answered.result
        return answer

    async def _post(self, message: Outgoing, options: Options) -> None:
        """Send a request; requests that are made at the same time leave together. Raises `TimeoutError`."""
        alone = len(self.peer.pending) == 1 and not self._queue and not self._sending.locked()
        if not alone and self._tasks is not None:
            self._send_soon(message)
            return
        limits = [limit for limit in (options.timeout, options.total_timeout) if limit is not None]
        await (within(min(limits), self._send([message])) if limits else self._send([message]))

    def _expire(self, pending: Pending) -> None:
        """Fail a request whose time is up, and tell the other side."""
        waiter: Waiter = pending.waiter
        self._give_up(pending, waiter.message, "timed out")
        self._resolve(Answered(pending, error=RequestTimeout(f"{pending.method.name} was not answered in time")))

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
        if not await self._send([message]):
            raise ConnectionClosed("the connection is closed")

    def metadata(self) -> Mapping[str, Any]:
        """Return what requests must say of this side; nothing in stateful revisions."""
        return self.meta

    def _outgoing_message(self, data: bytes, method: Method, params: Any, related: RequestId | None) -> Outgoing:
        message = Outgoing(data)
        message.method = method
        message.related = related
        message.self_contained = self.peer.dispatcher.revision.era.stands_alone
        if self.headers is not None:
            message.headers = self.headers(method, params)
        return message

    def _give_up(self, pending: Pending, message: Outgoing, reason: str) -> None:
        """Remove a request from the queue, or tell the other side that its answer is no longer wanted."""
        told = self.peer.cancel(pending, reason)
        cancelled = self.peer.dispatcher.revision.cancelled
        if message in self._queue:
            self._queue.remove(message)
        elif told and cancelled is not None:
            cancellation = self._outgoing_message(told, cancelled, None, None)
            cancellation.cancels = pending.id
            self._send_soon(cancellation)

    def _resolve(self, answered: Answered) -> None:
        waiter: Waiter | None = answered.pending.waiter
        if waiter is not None and not waiter.answered.done():
            waiter.answered.set_result(answered)

    def _progress(self, pending: Pending, params: Any) -> None:
        waiter: Waiter | None = pending.waiter
        if waiter is None:
            return
        self._timeouts.extend(waiter)
        if waiter.options.on_progress is not None:
            try:
                waiter.options.on_progress(params)
            except Exception:
                log.exception("the progress callback of %s failed", pending.method.name)

    def _send_soon(self, message: Outgoing) -> None:
        """Queue a message without waiting for a slow reader; messages queued at the same time are sent together."""
        self._queue.append(message)
        if len(self._queue) == 1 and self._tasks is not None:
            self._tasks.start_soon(self._send)

    async def _send(self, messages: Sequence[Outgoing] | None = None) -> bool:
        """Send messages, or else the queue, one sender at a time; returns whether the other side was still there."""
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
