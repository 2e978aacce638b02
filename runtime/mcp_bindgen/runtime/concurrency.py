"""Run coroutines by hand, in threads, and beside a block."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
import types
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Generator
from contextlib import asynccontextmanager, suppress
from contextvars import Context as Variables
from functools import partial
from typing import Any, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

from .logs import log

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


def first_step(work: Coroutine[Any, Any, T], variables: Variables | None = None) -> tuple[Any, Awaitable[T] | None]:
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


async def resolved(value: T | Awaitable[T]) -> T:
    """Return a value, or await it first if it is awaitable, as the result of a function that may be `async def`."""
    return cast(T, await value if inspect.isawaitable(value) else value)


def is_being_cancelled() -> bool:
    """Return whether this task is cancelled, and not only the future that it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


TURN_SECONDS = 0.005
"""Time that a task may use the event loop."""


# --- the end of the process ---------------------------------------------------------------------------------------

blocking: set[object] = set()
"""Threads of handlers that block; the interpreter would wait for them."""


def end_process(status: int = 0) -> None:
    """End the process if handlers still block in threads, because the interpreter would wait for them; else return.

    Args:
        status: The exit status of the process.
    """
    if blocking:
        log.warning("the process ends although handlers still block: %d", len(blocking))
        for end in (logging.shutdown, sys.stdout.flush, sys.stderr.flush):
            with suppress(OSError, ValueError):  # the reader is gone, or the stream closed
                end()
        os._exit(status)


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
