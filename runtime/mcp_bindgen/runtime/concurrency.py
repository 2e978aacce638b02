"""Run coroutines by hand, in threads, beside a block and within limits that may pause. Imports nothing of ours."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import os
import sys
import time
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context as Variables
from functools import partial
from threading import Lock
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from anyio.lowlevel import RunVar

log = logging.getLogger("mcp_bindgen")

T = TypeVar("T")


@types.coroutine
def resume(work: Coroutine[Any, Any, T], trap: object, variables: Variables | None = None) -> Generator[Any, Any, T]:
    """Go on with a coroutine that was started by hand and waits for `trap`, with variables of its own or ours."""
    while True:
        try:
            value = yield trap
        except BaseException as error:  # cancellation is delivered to the coroutine like anything else
            step = partial(work.throw, error)
        else:
            step = partial(work.send, value)
        try:
            trap = step() if variables is None else variables.run(step)
        except StopIteration as done:
            result: T = done.value
            return result


def begin(work: Coroutine[Any, Any, T], variables: Variables | None = None) -> tuple[Any, Awaitable[T] | None]:
    """Run a coroutine until it finishes or has to wait, in the task that calls this.

    Args:
        work: The coroutine.
        variables: The context variables that it sees; by default those of the task.

    Returns:
        Its result and `None`, or else `None` and the awaitable of its result, for the same task.
    """
    try:
        trap = work.send(None) if variables is None else variables.run(work.send, None)
    except StopIteration as done:
        return done.value, None
    return None, resume(work, trap, variables)


async def within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    """Await with a timeout; make no timer if it completes at once.

    Raises:
        TimeoutError: It takes longer.
    """
    try:
        trap = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await resume(work, trap)


def is_being_cancelled() -> bool:
    """Return whether this task is cancelled, and not only the future that it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


_TURN = 0.005  # seconds


class Turn:
    """Time that a task may use the event loop before it lets other tasks run.

    Attributes:
        end: When the turn is over, on the clock of `time.monotonic`.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a turn."""
        self.end = time.monotonic() + _TURN

    async def give_way(self) -> None:
        """Let other tasks run if the turn is over, and begin the next turn."""
        if time.monotonic() > self.end:
            await asyncio.sleep(0)
            self.begin()


_FAR = 30 * 24 * 3600.0  # seconds beyond which a timer is pointless


@contextmanager
def scheduled(when: float | None, call: Callable[[], object]) -> Generator[None]:
    """Call something at a time unless a block ends before.

    Args:
        when: The time, in seconds since 1970; `None` for never.
        call: Function to call, in the event loop.
    """
    pause = math.inf if when is None else when - time.time()
    timer = asyncio.get_running_loop().call_later(max(pause, 0.0), call) if pause < _FAR else None
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


# --- threads --------------------------------------------------------------------------------------------------

_MAX_THREADS = 120  # threads of the process for handlers that block

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("thread_limiter")
_unlimited: RunVar[anyio.CapacityLimiter] = RunVar("unlimited")
_at_work: set[object] = set()


def thread_limiter() -> anyio.CapacityLimiter:
    """Return the limit of threads for blocking handlers, in this event loop: set its `total_tokens`."""
    return _of_this_loop(_limiter, _MAX_THREADS)


def leave(status: int = 0) -> None:
    """End the process if handlers still block in threads, because the interpreter would wait for them; else return.

    Args:
        status: The exit status of the process.
    """
    if _at_work:
        log.warning("the process ends although handlers still block: %d", len(_at_work))
        for end in (logging.shutdown, sys.stdout.flush, sys.stderr.flush):
            with suppress(OSError, ValueError):  # the reader is gone, or the stream closed
                end()
        os._exit(status)


def in_thread(handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Make a coroutine function of a handler that blocks: it runs in a thread.

    Its last argument is the context of the request, whose `threads` limit the threads of one connection.
    """

    async def run(*arguments: Any) -> Any:
        answer = await _run_in_thread(partial(handler, *arguments), getattr(arguments[-1], "threads", None))
        return await answer if inspect.isawaitable(answer) else answer

    return run


async def _run_in_thread(work: Callable[[], T], own: anyio.CapacityLimiter | None) -> T:
    """Run `work` in a thread; a cancelled caller does not wait for it, but it counts until it ends."""
    limiters = [limiter for limiter in (own, thread_limiter()) if limiter is not None]
    loop, thread, starting = asyncio.get_running_loop(), object(), Lock()
    given_up = begun = False

    def release() -> None:
        for limiter in limiters:
            with suppress(RuntimeError):  # it was not even acquired
                limiter.release_on_behalf_of(thread)

    def counted() -> T:
        nonlocal begun
        with starting:
            if given_up:
                raise RuntimeError("the handler was cancelled before its thread began")
            begun = True
        try:
            return work()
        finally:
            _at_work.discard(thread)
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(release)

    try:
        for limiter in limiters:
            await limiter.acquire_on_behalf_of(thread)
        _at_work.add(thread)
        return await to_thread.run_sync(counted, abandon_on_cancel=True, limiter=_of_this_loop(_unlimited, math.inf))
    finally:
        with starting:
            given_up = True
        if not begun:
            _at_work.discard(thread)
            release()


def _of_this_loop(variable: RunVar[anyio.CapacityLimiter], tokens: float) -> anyio.CapacityLimiter:
    limiter = variable.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(tokens)
        variable.set(limiter)
    return limiter


# --- beside a block -------------------------------------------------------------------------------------------


@asynccontextmanager
async def background_tasks() -> AsyncGenerator[TaskGroup]:
    """Open a group of tasks that are cancelled when the block ends; a lone error comes out of it as it is."""
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error = _single(group)
        raise error from error.__cause__


def _single(group: BaseExceptionGroup[Any]) -> BaseException:
    """Return the only exception of a group, so that callers can catch it by its type; else the group."""
    if len(group.exceptions) != 1:
        return group
    only: Any = group.exceptions[0]
    return _single(cast(Any, only)) if isinstance(only, BaseExceptionGroup) else only


class Pauses:
    """Time limits that stop while a user is asked, as a login takes minutes.

    Attributes:
        is_paused: True while a user is asked.
        ended: Called after the user's answer.
    """

    def __init__(self) -> None:
        self.ended: set[Callable[[], object]] = set()
        self._asked = 0
        self._left: dict[anyio.CancelScope, float] = {}

    @property
    def is_paused(self) -> bool:
        """True while a user is asked."""
        return self._asked > 0

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let no time pass for the limits that were set here."""
        self._asked += 1
        if self._asked == 1:
            now = anyio.current_time()
            for scope in self._left:
                self._left[scope], scope.deadline = scope.deadline - now, math.inf
        try:
            yield
        finally:
            self._asked -= 1
            if not self._asked:
                now = anyio.current_time()
                for scope, left in self._left.items():
                    scope.deadline = now + left
                for call in list(self.ended):
                    call()

    @contextmanager
    def move_on_after(self, seconds: float | None) -> Generator[anyio.CancelScope]:
        """Cancel the block after so many seconds, not counting questions to users; `None` for never."""
        with anyio.CancelScope() as scope:
            if seconds is not None:
                self._left[scope] = seconds
                if not self._asked:
                    scope.deadline = anyio.current_time() + seconds
            try:
                yield scope
            finally:
                self._left.pop(scope, None)

    def stop(self, scope: anyio.CancelScope) -> None:
        """Let a block go on for ever."""
        self._left.pop(scope, None)
        scope.deadline = math.inf

    @contextmanager
    def fail_after(self, seconds: float | None) -> Generator[anyio.CancelScope]:
        """Cancel the block as `move_on_after` does; raise `TimeoutError` then."""
        with self.move_on_after(seconds) as scope:
            yield scope
        if scope.cancelled_caught:
            raise TimeoutError
