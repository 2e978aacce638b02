"""Runner for Docket, a queue in Redis or Valkey (extra `docket`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from secrets import token_hex

from .runners import Queue, QueueRunner, Run

try:
    from docket import Docket, Worker
except ModuleNotFoundError as error:
    if error.name != "docket":
        raise
    raise ImportError("DocketRunner needs pydocket: pip install 'mcp-bindgen[docket]'") from None

_NAME = "mcp-bindgen.run"


class DocketRunner(QueueRunner):
    """Run tasks in all processes that have a runner for the same queue, on any number of machines.

    Docket stores the arguments of jobs as pickles: a client that may write to its Redis can run code in the workers.

    Args:
        url: URL of Redis or Valkey with the scheme `redis`, `rediss` or `unix`.
        name: Name of the queue.
        concurrency: Number of tasks that this process runs at a time; 0 to send tasks only.
        lost_after: Seconds after which jobs of a dead worker are delivered again.

    Raises:
        ValueError: `concurrency` is negative.
    """

    def __init__(self, url: str, *, name: str = "mcp-tasks", concurrency: int = 10, lost_after: float = 30.0) -> None:
        super().__init__(concurrency)
        self._url = url
        self._name = name
        self._lost_after = timedelta(seconds=lost_after)

    @asynccontextmanager
    async def connected(self, job: Run) -> AsyncGenerator[Queue]:
        """Connect to Redis while the block lasts."""
        async with Docket(name=self._name, url=self._url) as docket:
            docket.register(job, names=[_NAME])
            async with Worker(
                docket,
                concurrency=max(self.concurrency, 1),
                redelivery_timeout=self._lost_after,
                minimum_check_interval=timedelta(milliseconds=50),
                reconnection_delay=timedelta(seconds=1),
                schedule_automatic_tasks=False,
            ) as worker:

                async def send(id: str) -> None:
                    await docket.add(_NAME, key=f"{id}:{token_hex(8)}")(id)

                yield Queue(send, worker.run_forever)
