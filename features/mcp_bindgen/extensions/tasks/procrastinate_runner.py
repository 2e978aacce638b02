"""Runner for Procrastinate, a queue in PostgreSQL (extra `procrastinate`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from .runners import Queue, QueueRunner, Run

try:
    from procrastinate import App, PsycopgConnector
except ModuleNotFoundError as error:
    if error.name != "procrastinate":
        raise
    raise ImportError("ProcrastinateRunner needs procrastinate: pip install 'mcp-bindgen[procrastinate]'") from None

_NAME = "mcp-bindgen.run"


class ProcrastinateRunner(QueueRunner):
    """Run tasks in all processes that have a runner for the same queue, on any number of machines.

    Args:
        conninfo: Connection string of PostgreSQL, as `postgresql://user@host/database` or in the syntax of libpq.
        name: Name of the queue.
        concurrency: Number of tasks that this process runs at a time; 0 to send tasks only.

    Raises:
        ValueError: `concurrency` is negative.
    """

    def __init__(self, conninfo: str, *, name: str = "mcp-tasks", concurrency: int = 10) -> None:
        super().__init__(concurrency)
        self._conninfo = conninfo
        self._name = name

    def _app(self) -> App:
        return App(connector=PsycopgConnector(conninfo=self._conninfo, min_size=1, max_size=max(4, self.concurrency)))

    async def prepare(self) -> None:
        """Create the tables of Procrastinate, once for a database; keep existing ones."""
        async with self._app().open_async() as app:
            if not await app.check_connection_async():
                await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def connected(self, job: Run) -> AsyncGenerator[Queue]:
        """Connect to PostgreSQL while the block lasts.

        Raises:
            RuntimeError: The database has no tables of Procrastinate.
        """
        async with self._app().open_async() as app:
            if not await app.check_connection_async():
                raise RuntimeError("the database has no tables of Procrastinate: call `await runner.prepare()` once")
            task: Any = app.task(name=_NAME, queue=self._name)(job)  # untyped: it takes the arguments of the job
            work = partial(
                app.run_worker_async,
                queues=[self._name],
                concurrency=self.concurrency,
                install_signal_handlers=False,
                delete_jobs="always",
            )

            async def send(id: str) -> None:
                await task.defer_async(id=id)

            yield Queue(send, work)
