"""Run tasks with Docket, a queue in Redis or Valkey (extra `docket`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from secrets import token_hex

from ..runner import Run
from .queue import QueueRunner, Work

try:
    from docket import Docket, Worker
except ModuleNotFoundError as error:
    if error.name != "docket":
        raise
    raise ImportError("DocketRunner needs pydocket: pip install 'mcp-bindgen[docket]'") from None

_NAME = "mcp-bindgen.run"


class DocketRunner(QueueRunner):
    """Run tasks in all processes that have a runner of the same queue, on one machine or many.

    Docket keeps the arguments of its jobs as pickles, which here are ids of tasks: who may write to that Redis may run
    code in its workers.

    Args:
        url: Where Redis or Valkey is, as `redis://`, `rediss://` or `unix://`.
        name: The name of the queue.
        concurrency: How many tasks this process runs at a time; none if it is 0, so that it only sends them.
        lost_after: Seconds after which the jobs of a worker that died are given to another one.

    Raises:
        ValueError: `concurrency` is negative.
    """

    def __init__(self, url: str, *, name: str = "mcp-tasks", concurrency: int = 10, lost_after: float = 30.0) -> None:
        super().__init__(concurrency)
        self._url = url
        self._name = name
        self._lost_after = timedelta(seconds=lost_after)
        self._docket: Docket | None = None

    @asynccontextmanager
    async def opened(self, run: Run) -> AsyncGenerator[Work]:
        """Connect to Redis while a block lasts."""

        async def job(id: str) -> None:
            await run(id)

        async with Docket(name=self._name, url=self._url) as docket:
            docket.register(job, names=[_NAME])
            self._docket = docket
            try:
                async with Worker(
                    docket,
                    concurrency=max(self.concurrency, 1),
                    redelivery_timeout=self._lost_after,
                    minimum_check_interval=timedelta(milliseconds=50),
                    reconnection_delay=timedelta(seconds=1),
                    schedule_automatic_tasks=False,
                ) as worker:
                    yield worker.run_forever
            finally:
                self._docket = None

    async def submit(self, id: str) -> None:
        """Put a job into the queue."""
        if self._docket is not None:
            await self._docket.add(_NAME, key=f"{id}:{token_hex(8)}")(id)
