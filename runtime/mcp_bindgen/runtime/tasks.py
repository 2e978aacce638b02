"""Run coroutines by hand, in threads and beside a block. Imports nothing of ours, so that every layer may use it."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from contextvars import Context as Variables
from functools import partial
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

T = TypeVar("T")


@types.coroutine
def resume(work: Coroutine[Any, Any, T], trap: Any, variables: Variables | None = None) -> Generator[Any, Any, T]:
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


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
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
    """Tell whether somebody cancels this task, and not only what it was waiting for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def in_thread(handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Make a coroutine function of a handler that blocks: it runs in a thread."""

    async def run(*arguments: Any) -> Any:
        answer = await anyio.to_thread.run_sync(partial(handler, *arguments), abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer

    return run


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
    """Return the only exception of a group, so that callers can catch what they expect; else the group."""
    if len(group.exceptions) != 1:
        return group
    only: Any = group.exceptions[0]
    return _single(cast(Any, only)) if isinstance(only, BaseExceptionGroup) else only
