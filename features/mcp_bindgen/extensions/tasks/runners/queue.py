"""Run tasks as jobs of a queue: what all queues have in common."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import anyio

from mcp_bindgen.runtime.concurrency import background_tasks

from ..runner import Run

log = logging.getLogger("mcp_bindgen")

Work: TypeAlias = Callable[[], Awaitable[None]]
"""Takes jobs from a queue and does them, for ever."""

_PAUSE = 1.0  # seconds until a worker starts again that could go on no longer
_GRACE = 5.0  # seconds for tasks to take note that the server ends


class QueueRunner:
    """Send tasks to a queue, and run what comes from it: the base of runners.

    A job is an id and nothing else; what it stands for is in the store. A queue may lose a job, or have it done twice:
    the engine has a lease for each task, and sends it again where nobody runs it.

    Args:
        concurrency: How many tasks this process runs at a time; none if it is 0, so that it only sends them.

    Attributes:
        concurrency: The same.
        patience: Seconds for which a task that may run again keeps its place while it waits for its client.

    Raises:
        ValueError: `concurrency` is negative.
    """

    patience: float | None = 5.0

    def __init__(self, concurrency: int) -> None:
        if concurrency < 0:
            raise ValueError(f"concurrency is how many tasks run at a time, or 0, and not {concurrency}")
        self.concurrency = concurrency

    def opened(self, run: Run) -> AbstractAsyncContextManager[Work]:
        """Connect to the queue while a block lasts; gives what does its jobs, each by `run` with an id."""
        raise NotImplementedError

    async def submit(self, id: str) -> None:
        """Put a job into the queue; a task may be there twice, as when it was answered before it rested."""
        raise NotImplementedError

    @asynccontextmanager
    async def serving(self, run: Run) -> AsyncGenerator[None]:
        """Run tasks while a block lasts. Those that are not over at its end are cancelled, as the engine expects."""
        jobs = _Jobs(run)
        async with self.opened(jobs.do) as work, background_tasks() as group:
            if self.concurrency:
                group.start_soon(_kept, work)
            try:
                yield
            finally:
                await jobs.end()

    async def cancel(self, id: str) -> None:
        """Do nothing: the job finds in the store that the task is over, and the engine ends what runs."""


class _Jobs:
    """What a worker does at the moment. Queues wait for their jobs, however long: these end with the server."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._scopes = set[anyio.CancelScope]()
        self._ends = False

    async def do(self, id: str) -> None:
        """Run a task, unless the server ends; then somebody else will."""
        if self._ends:
            return
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                await self._run(id)
            finally:
                self._scopes.discard(scope)

    async def end(self) -> None:
        """Cancel what runs, and wait until it has said so to the store."""
        self._ends = True
        with anyio.move_on_after(_GRACE, shield=True):
            while self._scopes:
                for scope in list(self._scopes):
                    scope.cancel()
                await anyio.sleep(0.01)


async def _kept(work: Work) -> None:
    """Keep a worker at work, whatever becomes of its queue."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("the worker of a queue failed, and starts again")
        await anyio.sleep(_PAUSE)
