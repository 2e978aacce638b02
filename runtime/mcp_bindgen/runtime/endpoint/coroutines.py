"""Coroutines that are run by hand, in threads, or not any longer."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context as Variables
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread

T = TypeVar("T")


@types.coroutine
def resume(work: Coroutine[Any, Any, T], trap: Any, variables: Variables | None = None) -> Generator[Any, Any, T]:
    """Goes on with a coroutine that was started by hand and waits for `trap`, with variables of its own or ours."""
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
    """What a coroutine gives. If it is there at once, as most things are, no timer is made.

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
    """Whether somebody cancels this task, and not only what it was waiting for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def in_thread(handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """A handler that blocks, as one that does not."""

    async def run(*arguments: Any) -> Any:
        answer = await anyio.to_thread.run_sync(partial(handler, *arguments), abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer

    return run
