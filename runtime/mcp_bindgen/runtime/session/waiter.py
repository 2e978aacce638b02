"""Callers that wait for answers: their time limits, and the progress that they are told."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import deque
from contextvars import ContextVar
from typing import Any

import anyio

from ..logs import log
from ..protocol.events import Answered
from ..protocol.limits import Options
from ..protocol.transport import Outgoing

_MAX_UNREPORTED = 1000  # progress notifications of a request that wait for its callback

in_handler: ContextVar[bool] = ContextVar("in_handler", default=False)
"""True if a client's handler of a request runs in this context."""


class Waiter:
    """A caller that waits for an answer.

    Args:
        options: How the request is sent.
        message: The request as it was sent.
        is_nested: True if a handler that is at work sends it.

    Attributes:
        answered: Future of the answer.
        scope: Cancels the wait; its deadline is the time limit.
        deadline: When the total time is over, on the clock of the event loop.
    """

    _reporting: asyncio.Task[None] | None = None

    def __init__(self, options: Options, message: Outgoing, is_nested: bool) -> None:
        self.options, self.message, self.is_nested = options, message, is_nested
        self.answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self.scope: anyio.CancelScope = anyio.CancelScope()
        total = options.total_timeout
        self.deadline: float = math.inf if total is None else anyio.current_time() + total
        self._unreported: deque[Any] = deque(maxlen=_MAX_UNREPORTED)  # without the oldest

    @property
    def is_answered(self) -> bool:
        """True if the answer has come, although its progress callbacks may still run."""
        return self.answered.done() and not self.answered.cancelled()

    def extend(self, *, is_paused: bool) -> None:
        """Restart the time for a sign of life; while it is paused, only the total time counts."""
        timeout = None if is_paused else self.options.timeout
        self.scope.deadline = self.deadline if timeout is None else min(self.deadline, anyio.current_time() + timeout)

    async def answer(self) -> Answered:
        """Wait for the answer, then for the progress callbacks; cancel those of a request that failed."""
        answered = await self.answered
        if answered.error is not None:
            self.stop_reporting()
        elif self._reporting is not None:
            self.scope.deadline = self.deadline
            await self._reporting
        return answered

    def progressed(self, params: object) -> None:
        """Call the progress callback, or keep the progress until the callback has ended."""
        if self._reporting is not None and not self._reporting.done():
            self._unreported.append(params)
        elif self.options.on_progress is not None:
            told = self._told(params)
            if inspect.isawaitable(told):
                self._reporting = asyncio.create_task(self._report(told))

    def stop_reporting(self) -> None:
        """Cancel a progress callback that still runs."""
        if self._reporting is not None:
            self._reporting.cancel()

    async def _report(self, told: object) -> None:
        """Await the result of the progress callback, then call it for newer progress, in order."""
        task = asyncio.current_task()
        while told is not None or self._unreported:
            if inspect.isawaitable(told):
                try:
                    await told
                except (Exception, asyncio.CancelledError):
                    if task is not None and task.cancelling():
                        raise
                    self._log_failure()
            told = self._told(self._unreported.popleft()) if self._unreported else None

    def _told(self, params: object) -> object:
        """Call the progress callback; return its result, or None if it failed."""
        assert self.options.on_progress is not None
        try:
            return self.options.on_progress(params)
        except Exception:
            self._log_failure()
            return None

    def _log_failure(self) -> None:
        log.exception("the progress callback of %s failed", self.message.method.name if self.message.method else "")


def resolve(answered: Answered) -> None:
    """Pass an answer to the caller that waits for it."""
    waiter: Waiter | None = answered.pending.waiter
    if waiter is not None and not waiter.answered.done():
        waiter.answered.set_result(answered)
