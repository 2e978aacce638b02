"""Drives a `Peer` over a `Transport`: reads, hands messages to handlers, writes what they answer."""

from __future__ import annotations

import asyncio
import inspect
import logging
import types
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import Context as Variables
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from .capabilities import missing
from .dispatcher import Route
from .errors import INTERNAL_ERROR, CapabilityMissing, ConnectionClosed, ProtocolError, RequestTimeout
from .events import Answered, CancelRequested, Event, Notified, Pending, Progressed, Rejected, Requested
from .jsonrpc import RequestId, failure, invalid
from .methods import Method, Notification, Request
from .peer import Peer
from .transport import Oversized, Transport
from .vocabulary import Role

log = logging.getLogger("mcp_bindgen")

Params = TypeVar("Params")
Answer = TypeVar("Answer")
Progress = Callable[[Any], object]

_PATIENCE = 1.0  # seconds for the news that an answer is not wanted any longer


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
        bind: Gives the handler of a route for the connection's revision, and the context of a request.
        options: How requests are sent unless they say otherwise.
    """

    def __init__(
        self,
        peer: Peer,
        transport: Transport,
        bind: Callable[[Session, Route[Any]], Callable[[RequestId | None, Any], Any]],
        options: Options | None = None,
    ) -> None:
        self.peer = peer
        self.transport = transport
        self.options = options or Options()
        self.declared: dict[Role, Mapping[str, Any]] = {"client": {}, "server": {}}
        self.peer_info: Any = None
        self.log_level: str | None = None
        self._bind = bind
        self._handlers: dict[str, Callable[[RequestId | None, Any], Any]] = {}
        self._events: deque[Event] = deque()
        self._backlog: deque[bytes | Oversized] = deque()
        self._outgoing: list[bytes] = []
        self._running: dict[RequestId, anyio.CancelScope] = {}
        self._sending = anyio.Lock(fast_acquire=True)
        self._tasks: TaskGroup | None = None
        self.closed = anyio.Event()

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
        """Reads and handles until a handler waits (then another task leads) or the other side is gone."""
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
            await self._flush()
            if self.closed.is_set():
                return
            messages = await self.transport.receive()
            if not messages:
                self._finish("the other side closed the connection")
                return
            self._backlog.extend(messages)

    def _understand(self, message: bytes | Oversized) -> list[Event]:
        if isinstance(message, Oversized):
            error = invalid(f"the message is larger than {message.limit} bytes")
            return [Rejected(error, failure(None, error))]
        return self.peer.receive(message)

    async def _handle(self, event: Requested | Notified) -> bool:
        """Runs a handler; says whether it had to wait, in which case another task has taken the lead."""
        id_ = event.id if isinstance(event, Requested) else None
        data = b""
        variables = copy_context()
        work = self._work(id_, event.route, event.params)
        with anyio.CancelScope() as scope:
            if id_ is not None:
                self._running[id_] = scope
            try:
                trap = variables.run(work.send, None)
            except StopIteration as done:
                self._forget(id_)
                if done.value:
                    self._outgoing.append(done.value)
                return False
            assert self._tasks is not None
            self._tasks.start_soon(self._lead)
            try:
                data = await _resume(work, trap, variables)
            finally:
                self._forget(id_)
        if scope.cancelled_caught and id_ is not None:
            data = self.peer.drop(id_)
        if data:
            await self._send([data])
        return True

    def _forget(self, id_: RequestId | None) -> None:
        if id_ is not None:
            self._running.pop(id_, None)

    async def _work(self, id_: RequestId | None, route: Route[Any], params: Any) -> bytes:
        """Calls a handler and gives the bytes that answer its request."""
        name = route.method.name
        try:
            handler = self._handlers.get(name)
            if handler is None:
                handler = self._handlers[name] = self._bind(self, route)
            answer = handler(id_, params)
            if inspect.isawaitable(answer):
                answer = await answer
            if id_ is None:
                return b""
            if answer is None and self.peer.vocabulary.methods.get(name) is route.method:
                raise TypeError(f"the handler of {name} returned nothing")
            return self.peer.respond(id_, answer)
        except ProtocolError as error:
            return self._refuse(id_, name, error)
        except asyncio.CancelledError:
            if _is_being_cancelled():
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
            case Rejected(error, reply):
                log.warning("%s", error)
                if reply:
                    self._outgoing.append(reply)
            case _:
                pass

    # --- calling ----------------------------------------------------------------------------------------------

    async def request(
        self, method: Request[Params, Any, Answer], params: Params, options: Options | None = None
    ) -> Answer:
        """Sends a request and waits for its answer.

        Raises:
            CapabilityMissing: The other side did not declare what this needs; nothing was sent.
            ProtocolError: The answer is an error.
            RequestTimeout: No answer came in time; the other side was told.
            ConnectionClosed: The connection ended first.
        """
        chosen = options or self.options
        self._check(method)
        pending, data = self.peer.request(method, params, progress=chosen.on_progress is not None)
        waiter = _Waiter(anyio.Event(), chosen.on_progress, timeout=chosen.timeout)
        pending.waiter = waiter
        try:
            if chosen.timeout is None and chosen.total_timeout is None:
                await self._exchange(data, waiter)
            else:
                with anyio.move_on_after(chosen.total_timeout), anyio.move_on_after(chosen.timeout) as scope:
                    waiter.scope = scope
                    await self._exchange(data, waiter)
        except BaseException:
            await self._give_up(pending, "the caller is gone")
            raise
        if not waiter.event.is_set():
            await self._give_up(pending, "timed out")
            raise RequestTimeout(f"{method.name} was not answered in time")
        if waiter.error is not None:
            raise waiter.error
        answer: Answer = waiter.result
        return answer

    async def _exchange(self, data: bytes, waiter: _Waiter) -> None:
        """Sends a request and waits for its answer; requests that are made at the same time leave together."""
        if len(self.peer.pending) == 1 or self._tasks is None:
            await self._send([data])
        else:
            self._outgoing.append(data)
            if len(self._outgoing) == 1:
                self._tasks.start_soon(self._flush)
        await waiter.event.wait()

    async def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if outgoing:
            await self._send(outgoing)

    async def notify(self, method: Notification[Params], params: Params) -> None:
        """Sends a notification.

        Raises:
            CapabilityMissing: It needs a capability that was not declared.
            ConnectionClosed: The connection is over.
        """
        self._check(method)
        if not await self._send([self.peer.notify(method, params)]):
            raise ConnectionClosed("the connection is closed")

    def metadata(self) -> Mapping[str, Any]:
        """What requests must say of this side; nothing in stateful revisions."""
        return {}

    def _check(self, method: Method) -> None:
        capability = missing(method, self.peer.role, self.declared)
        if capability is not None:
            raise CapabilityMissing(method.name, capability)

    async def _give_up(self, pending: Pending, reason: str) -> None:
        """Tells the other side that an answer is not wanted any longer, unless it does not even read that."""
        data = self.peer.cancel(pending, reason)
        if data:
            with anyio.move_on_after(_PATIENCE, shield=True):
                await self._send([data])

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

    async def _send(self, messages: Sequence[bytes]) -> bool:
        """Sends, one sender at a time; says whether the other side was still there."""
        try:
            async with self._sending:
                await self.transport.send(messages)
        except ConnectionClosed as error:
            self._finish(str(error))
            return False
        return True


@types.coroutine
def _resume(work: Coroutine[Any, Any, bytes], trap: Any, variables: Variables) -> Generator[Any, Any, bytes]:
    """Goes on with a coroutine that was started by hand and is waiting for `trap`."""
    while True:
        try:
            value = yield trap
        except BaseException as error:  # cancellation is delivered to the coroutine like anything else
            step = partial(work.throw, error)
        else:
            step = partial(work.send, value)
        try:
            trap = variables.run(step)
        except StopIteration as done:
            return bytes(done.value)


def _is_being_cancelled() -> bool:
    """Whether somebody cancels this task, and not only what it was waiting for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def in_thread(handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A handler that blocks, as one that does not."""

    async def run(*arguments: Any) -> Any:
        answer = await anyio.to_thread.run_sync(partial(handler, *arguments), abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer

    return run


__all__ = ["Options", "Progress", "Session", "in_thread"]
