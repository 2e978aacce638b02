"""Threads for handlers that block, within limits."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from .concurrency import T, blocking

_MAX_THREADS = 120  # threads of the process for handlers that block

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("thread_limiter")


def thread_limiter() -> anyio.CapacityLimiter:
    """Return the limit of threads for blocking handlers, in this event loop: set its `total_tokens`."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_MAX_THREADS)
        _limiter.set(limiter)
    return limiter


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
        except KeyboardInterrupt as error:  # no signal, which the main thread gets; it would end the event loop
            raise RuntimeError("the handler raised KeyboardInterrupt") from error
        finally:
            blocking.discard(thread)
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(release)

    try:
        for limiter in limiters:
            await limiter.acquire_on_behalf_of(thread)
        blocking.add(thread)
        return await to_thread.run_sync(counted, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(math.inf))
    finally:
        with starting:
            given_up = True
        if not begun:
            blocking.discard(thread)
            release()
