"""Run tasks with Procrastinate, a queue in PostgreSQL (extra `procrastinate`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from ..runner import Run
from .queue import QueueRunner, Work

try:
    from procrastinate import App, PsycopgConnector
except ModuleNotFoundError as error:
    if error.name != "procrastinate":
        raise
    raise ImportError("ProcrastinateRunner needs procrastinate: pip install 'mcp-bindgen[procrastinate]'") from None

_NAME = "mcp-bindgen.run"


class ProcrastinateRunner(QueueRunner):
    """Run tasks in all processes that have a runner of the same queue, on one machine or many.

    Args:
        conninfo: Where PostgreSQL is, as `postgresql://user@host/database` or in libpq's words.
        name: The name of the queue.
        concurrency: How many tasks this process runs at a time; none if it is 0, so that it only sends them.

    Raises:
        ValueError: `concurrency` is negative.
    """

    def __init__(self, conninfo: str, *, name: str = "mcp-tasks", concurrency: int = 10) -> None:
        super().__init__(concurrency)
        self._conninfo = conninfo
        self._name = name
        self._task: Any = None

    def _app(self) -> App:
        pool: dict[str, Any] = {"min_size": 1, "max_size": max(4, self.concurrency)}
        return App(connector=PsycopgConnector(conninfo=self._conninfo, **pool))

    async def prepare(self) -> None:
        """Make the tables of Procrastinate, once for a database; those that are there stay as they are."""
        async with self._app().open_async() as app:
            if not await app.check_connection_async():
                await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def opened(self, run: Run) -> AsyncGenerator[Work]:
        """Connect to PostgreSQL while a block lasts.

        Raises:
            RuntimeError: The database has no tables of Procrastinate.
        """

        async def job(id: str) -> None:
            await run(id)

        async with self._app().open_async() as app:
            if not await app.check_connection_async():
                raise RuntimeError("the database has no tables of Procrastinate: call `await runner.prepare()` once")
            self._task = app.task(name=_NAME, queue=self._name)(job)
            try:
                yield partial(
                    app.run_worker_async,
                    queues=[self._name],
                    concurrency=self.concurrency,
                    install_signal_handlers=False,
                    delete_jobs="always",
                )
            finally:
                self._task = None

    async def submit(self, id: str) -> None:
        """Put a job into the queue."""
        if self._task is not None:
            await self._task.defer_async(id=id)
