"""Fail requests that are not answered in time, with one timer for all requests of a connection."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ..concurrency import Pauses
from ..logs import log
from ..protocol.events import Answered, Pending
from ..protocol.limits import Options
from ..protocol.transport import Outgoing

_RESOLUTION = 0.01  # seconds at least between two looks at all requests

_MAX_UNREPORTED = 1000  # progress notifications of a request that wait for its callback
_FAILED = "the progress callback of %s failed"

in_handler: ContextVar[bool] = ContextVar("in_handler", default=False)
"""True if a client's handler of a request runs in this context."""


@dataclass(slots=True, eq=False)
class Waiter:
    """A caller that waits for an answer.

    Attributes:
        answered: Where the answer comes.
        options: How the request is sent.
        message: The request as it was sent.
        is_nested: True if a handler that is at work sends it.
        reporting: Awaits progress callbacks, if they have to be awaited.
        unreported: The progress that came while a callback ran; the oldest is dropped beyond `_MAX_UNREPORTED`.
        due: When its time is up, on the clock of the loop, unless there is progress.
        deadline: When its time is up in any case.
    """

    answered: asyncio.Future[Answered]
    options: Options
    message: Outgoing
    is_nested: bool
    reporting: asyncio.Task[None] | None = None
    unreported: deque[Any] | None = None
    due: float = math.inf
    deadline: float = math.inf

    def stop_reporting(self) -> None:
        """Cancel a progress callback that still runs."""
        if self.reporting is not None:
            self.reporting.cancel()

    async def reported(self, answered: Answered) -> None:
        """Wait for the progress callbacks of a request that succeeded; cancel those for a request that failed.

        Callbacks that run at the deadline are cancelled, too.
        """
        if answered.error is not None:
            self.stop_reporting()
        elif self.reporting is not None:
            left = None if self.deadline == math.inf else self.deadline - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self.reporting, left)
            except TimeoutError:
                log.warning(
                    "the progress callback of %s has not ended within total_timeout", answered.pending.method.name
                )


async def _report(pending: Pending, told: object) -> None:
    """Await the result of a progress callback, then call it for newer progress, in order."""
    unreported: deque[Any] = pending.waiter.unreported
    task = asyncio.current_task()
    while told is not None or unreported:
        if inspect.isawaitable(told):
            try:
                await told
            except (Exception, asyncio.CancelledError):
                if task is not None and task.cancelling():
                    raise
                log.exception(_FAILED, pending.method.name)
        told = _told(pending, unreported.popleft()) if unreported else None


def _told(pending: Pending, params: object) -> object:
    """Call the progress callback of a request; return its result, or None if it failed."""
    try:
        return pending.waiter.options.on_progress(params)
    except Exception:
        log.exception(_FAILED, pending.method.name)
        return None


def resolve(answered: Answered) -> None:
    """Pass an answer to the caller that waits for it."""
    waiter: Waiter | None = answered.pending.waiter
    if waiter is not None and not waiter.answered.done():
        waiter.answered.set_result(answered)


class Timeouts:
    """The time limits of the requests of a connection.

    The timer is left where it is when an answer comes, so a request that is answered in time costs next to nothing.

    Args:
        pending: The requests that wait, by id.
        is_at_work: Returns whether a handler of a request of the peer runs. Meanwhile `Options.timeout` does
            not run, because a person may be answering; it does run for requests of this handler.
        expired: Called with a request at its time limit.
        pauses: Tells while a person is asked for authorization; meanwhile it does not run either.
    """

    def __init__(
        self,
        pending: Mapping[int, Pending],
        is_at_work: Callable[[], bool],
        expired: Callable[[Pending], object],
        pauses: Pauses | None = None,
    ) -> None:
        self._pending = pending
        self._is_at_work = is_at_work
        self._expired = expired
        self._pauses = pauses or Pauses()
        self._pauses.ended.add(self.handled)
        self._next = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def start(self, waiter: Waiter) -> None:
        """Begin to limit the time of a request."""
        if waiter.options.total_timeout is not None:
            waiter.deadline = asyncio.get_running_loop().time() + waiter.options.total_timeout
        self.extend(waiter)

    def extend(self, waiter: Waiter) -> None:
        """Wait as long again as for the first sign of life, but not beyond the total."""
        waiter.due = waiter.deadline
        if waiter.options.timeout is not None:
            waiter.due = min(waiter.due, asyncio.get_running_loop().time() + waiter.options.timeout)
        self._wake_at(waiter.due)

    def progressed(self, pending: Pending, params: object) -> None:
        """Pass on a sign of life, and wait longer because of it."""
        waiter: Waiter | None = pending.waiter
        if waiter is None:
            return
        self.extend(waiter)
        if waiter.unreported is not None and waiter.reporting is not None and not waiter.reporting.done():
            waiter.unreported.append(params)
        elif waiter.options.on_progress is not None:
            told = _told(pending, params)
            if inspect.isawaitable(told):
                waiter.unreported = deque(maxlen=_MAX_UNREPORTED)
                waiter.reporting = asyncio.create_task(_report(pending, told))

    def handled(self) -> None:
        """Extend all requests, because the other side has been waiting for one of our handlers."""
        for pending in self._pending.values():
            if pending.waiter is not None:
                self.extend(pending.waiter)

    def stop(self) -> None:
        """Cancel the timer."""
        self._pauses.ended.discard(self.handled)
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wake_at(self, when: float) -> None:
        if when < self._next:
            self._cancel()
            self._next = when
            self._timer = asyncio.get_running_loop().call_at(when, self._check)

    def _check(self) -> None:
        now = asyncio.get_running_loop().time()
        is_at_work = self._is_at_work()
        self._next = math.inf
        for pending in list(self._pending.values()):
            waiter: Waiter | None = pending.waiter
            if waiter is None:
                continue
            waits = self._pauses.is_paused or (is_at_work and not waiter.is_nested)
            due = waiter.deadline if waits else waiter.due
            if due <= now:
                self._expired(pending)
            else:
                self._wake_at(max(due, now + _RESOLUTION))
