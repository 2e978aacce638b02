"""Runners decide where tasks run: in the event loop of the server, or as jobs of a queue.

Queues are Docket in Redis or Valkey, and Procrastinate in PostgreSQL (extras of the same names).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import anyio

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.logs import log

if TYPE_CHECKING:
    from procrastinate import App


Run: TypeAlias = Callable[[str], Coroutine[Any, Any, None]]
"""Runs the task with an id until the task is over or waits long for its client.

Any process that serves the same tools from the same store may call it, any number of times: only the worker with the
lease of the task runs it. Errors of the handler are written to the task; the call raises nothing.
"""


class TaskRunner:
    """Base of runners. A runner gets the ids of tasks; everything else is in the store.

    The engine submits a task after its creation, after its client has answered all questions, and whenever a task has
    no worker. `submit` must accept the same id twice.

    Attributes:
        answer_timeout: Seconds for which a handler may wait for an answer. Then the engine ends the handler, and runs
            it again after the answer; only tasks that may run again are ended. `None` for no limit.
        resubmit_seconds: Seconds after which a task that still has no worker is submitted again.
    """

    answer_timeout: float | None = None
    resubmit_seconds: float = 60.0

    def serving(self, run: Run) -> AbstractAsyncContextManager[None]:
        """Run tasks while the block lasts, which is as long as the server serves."""
        raise NotImplementedError

    async def submit(self, id: str) -> None:
        """Schedule a task that is in the store."""
        raise NotImplementedError

    async def cancel(self, id: str) -> None:
        """Drop a cancelled task that has not begun; the engine ends running ones. By default do nothing."""


class LocalRunner(TaskRunner):
    """Run tasks in the event loop of the server.

    When the server stops, running tasks are cancelled. Tasks that may run again begin anew with the next server.
    """

    resubmit_seconds: float = 0.0

    def __init__(self) -> None:
        self._start: Callable[[str], object] | None = None

    @asynccontextmanager
    async def serving(self, run: Run) -> AsyncGenerator[None]:
        """Run tasks while the block lasts."""
        async with background_tasks() as group:
            self._start = lambda id: group.start_soon(run, id)
            try:
                yield
            finally:
                self._start = None

    async def submit(self, id: str) -> None:
        """Run a task at once; do nothing while no server serves."""
        if self._start is not None:
            self._start(id)


_NAME = "mcp-bindgen.run"  # of jobs
_RESTART_SECONDS = 1.0  # pause before a failed queue worker starts again
_REDELIVERY = timedelta(seconds=30)  # after which jobs of a dead worker are delivered again
_STOP_SECONDS = 5.0  # time for running tasks to be given back when the server stops


class Queue(NamedTuple):
    """Connection to a queue.

    Attributes:
        send: Sends a task id.
        work: Runs the jobs of the queue until cancelled.
    """

    send: Callable[[str], Awaitable[object]]
    work: Callable[[], Awaitable[None]]


class QueueRunner(TaskRunner):
    """Base of runners that send tasks to a queue, and run the jobs of that queue in all processes that have a runner.

    A job is a task id. A queue may lose a job or deliver it twice: each task has a lease, and the engine submits a task
    without a worker again.

    Args:
        address: Address of the server of the queue.
        name: Name of the queue.
        concurrency: Number of tasks that this process runs at a time; 0 to send tasks only.

    Attributes:
        concurrency: The same.
        extra: Extra of this program that installs the library of the queue, and the import name of the library.

    Raises:
        ValueError: `concurrency` is negative.
        NotInstalled: The library is not installed.
    """

    answer_timeout: float | None = 5.0
    extra: str

    def __init__(self, address: str, *, name: str = "mcp-tasks", concurrency: int = 10) -> None:
        require(type(self).__name__, self.extra, extra=self.extra)
        if concurrency < 0:
            raise ValueError(f"concurrency is the number of tasks that run at a time, or 0, and not {concurrency}")
        self.concurrency = concurrency
        self._address, self._name = address, name
        self._queue: Queue | None = None

    def connected(self, job: Run) -> AbstractAsyncContextManager[Queue]:
        """Connect to the queue while the block lasts.

        Args:
            job: Runs a job, given its task id.
        """
        raise NotImplementedError

    async def submit(self, id: str) -> None:
        """Send a task to the queue; do nothing while no server serves."""
        if self._queue is not None:
            await self._queue.send(id)

    @asynccontextmanager
    async def serving(self, run: Run) -> AsyncGenerator[None]:
        """Run jobs while the block lasts; cancel running tasks at its end, because queues wait for their jobs."""
        scopes = set[anyio.CancelScope]()
        is_stopping = False

        async def job(id: str) -> None:
            if not is_stopping:  # else a different process runs the task
                with anyio.CancelScope() as scope:
                    scopes.add(scope)
                    try:
                        await run(id)
                    finally:
                        scopes.discard(scope)

        async with self.connected(job) as self._queue, background_tasks() as group:
            if self.concurrency:
                group.start_soon(_restarted, self._queue.work)
            try:
                yield
            finally:
                self._queue, is_stopping = None, True
                with anyio.move_on_after(_STOP_SECONDS, shield=True):
                    while scopes:
                        for scope in list(scopes):
                            scope.cancel()
                        await anyio.sleep(0.01)


async def _restarted(work: Callable[[], Awaitable[None]]) -> None:
    """Start the worker of a queue again whenever it ends."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("the worker of a queue failed and starts again")
        await anyio.sleep(_RESTART_SECONDS)


class DocketRunner(QueueRunner):
    """Runner with a queue of Docket; its address is a URL of Redis or Valkey (`redis`, `rediss` or `unix`).

    Docket stores the arguments of jobs as pickles: a client that may write to its Redis can run code in the workers.
    """

    extra: str = "docket"

    @asynccontextmanager
    async def connected(self, job: Run) -> AsyncGenerator[Queue]:
        """Connect to Redis while the block lasts."""
        from docket import Docket, Worker

        async with Docket(name=self._name, url=self._address) as docket:
            docket.register(job, names=[_NAME])
            async with Worker(
                docket,
                concurrency=max(self.concurrency, 1),
                redelivery_timeout=_REDELIVERY,
                minimum_check_interval=timedelta(milliseconds=50),
                reconnection_delay=timedelta(seconds=1),
                schedule_automatic_tasks=False,
            ) as worker:

                async def send(id: str) -> None:
                    await docket.add(_NAME, key=f"{id}:{token_hex(8)}")(id)

                yield Queue(send, worker.run_forever)


class ProcrastinateRunner(QueueRunner):
    """Runner with a queue of Procrastinate; its address is a connection string of PostgreSQL.

    It is written as `postgresql://user@host/database` or in the syntax of libpq.
    """

    extra: str = "procrastinate"

    def _app(self) -> App:
        from procrastinate import App, PsycopgConnector

        return App(connector=PsycopgConnector(conninfo=self._address, min_size=1, max_size=max(4, self.concurrency)))

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
