"""Callers that wait for an answer, and the progress that they are told of meanwhile."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import deque
from typing import Any

import anyio

from ..concurrency import is_being_cancelled
from ..logs import log
from ..protocol.events import Answered
from ..protocol.limits import Options
from ..protocol.transport import Outgoing

_MAX_UNREPORTED = 1000  # progress notifications of a request that wait for its callback


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
        self.options: Options = options
        self.message: Outgoing = message
        self.is_nested: bool = is_nested
        self.answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self.scope: anyio.CancelScope = anyio.CancelScope()
        total = options.total_timeout
        self.deadline: float = math.inf if total is None else anyio.current_time() + total
        self._unreported: deque[Any] = deque(maxlen=_MAX_UNREPORTED)  # without the oldest

    async def report_all(self) -> None:
        """Wait for the progress callbacks, for as long as the total time allows."""
        if self._reporting is not None:
            self.scope.deadline = self.deadline
            await self._reporting

    def progressed(self, params: object) -> None:
        """Call the progress callback, or keep the progress until the callback has ended."""
        if self._reporting is not None and not self._reporting.done():
            self._unreported.append(params)
        elif self.options.on_progress is not None:
            reported = self._told(params)
            if inspect.isawaitable(reported):
                self._reporting = asyncio.create_task(self._report(reported))

    def stop_reporting(self) -> None:
        """Cancel a progress callback that still runs."""
        if self._reporting is not None:
            self._reporting.cancel()

    async def _report(self, reported: object) -> None:
        """Await the result of the progress callback, then call it for newer progress, in order."""
        while reported is not None or self._unreported:
            if inspect.isawaitable(reported):
                try:
                    await reported
                except (Exception, asyncio.CancelledError):
                    if is_being_cancelled():
                        raise
                    self._log_failure()
            reported = self._told(self._unreported.popleft()) if self._unreported else None

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
