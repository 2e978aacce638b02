"""Runners decide where tasks run: in the event loop of the server, or as the jobs of a queue (`queue_runners`)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

Run: TypeAlias = Callable[[str], Coroutine[Any, Any, None]]
"""Runs the task with an id until the task is over or waits long for its client.

Any process that serves the same tools from the same store may call it, any number of times: only the worker with the
lease of the task runs it. Errors of the handler are written to the task; the call raises `StoreUnavailable` only.
"""


class TaskRunner:
    """Base of runners. A runner gets the ids of tasks; everything else is in the store.

    The engine submits a task after its creation, after its client has answered all questions, and whenever a task has
    no worker. `submit` must accept the same id twice.

    Attributes:
        answer_timeout: Seconds for which a handler may wait for an answer. Then the engine ends the handler, and runs
            it again after the answer; only tasks that may run again are ended. `None` for no limit.
    """

    answer_timeout: float | None = None

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

    def __init__(self) -> None:
        self._run: Run | None = None
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def serving(self, run: Run) -> AsyncGenerator[None]:
        """Run tasks while the block lasts."""
        async with background_tasks() as group:
            self._group, self._run = group, run
            try:
                yield
            finally:
                self._group = None

    async def submit(self, id: str) -> None:
        """Run a task at once; do nothing while no server serves."""
        if self._group is not None and self._run is not None:
            self._group.start_soon(_run_logged, self._run, id)


async def _run_logged(run: Run, id: str) -> None:
    try:
        await run(id)
    except StoreUnavailable:
        log.warning("a task waits until the task store is reachable")
    except Exception:
        log.exception("a task could not be run; it is tried again")
