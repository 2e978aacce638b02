"""Decide where tasks run: here, in the event loop of the server, or wherever a `TaskRunner` of yours sends them."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias

from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

log = logging.getLogger("mcp_bindgen")

Run: TypeAlias = Callable[[str], Coroutine[Any, Any, None]]
"""Runs the task with an id until it is over, waits for its client for long, or is in other hands.

It may be called for any task, in any process that serves the same tools from the same store, and as often as one
likes: who has the lease of the task runs it, all others return at once. What goes wrong in a handler is written to the
task; only `StoreUnavailable` comes out.
"""


class TaskRunner(Protocol):
    """Runs tasks. It is told ids; everything else stands in the store.

    The engine submits a task when it was created, when its client has answered all that it waited for, and again
    whenever it finds that nobody runs it: `submit` must take the same id twice.

    A runner whose workers should not wait for clients has `patience: float`: the seconds after which a handler that
    waits for an answer is ended, to run again when the answer has come. Only tools that may run again are ended.
    """

    def serving(self, run: Run) -> AbstractAsyncContextManager[None]:
        """Run tasks while a block lasts, which is as long as the server serves."""
        ...

    async def submit(self, id: str) -> None:
        """Have a task run, soon; it is in the store already."""
        ...

    async def cancel(self, id: str) -> None:
        """Learn that nobody needs a task any more, which the store says, too; it may be ended before it begins."""
        ...


class LocalRunner:
    """Run tasks beside the requests of the server, in its event loop.

    When the server stops, tasks that run are cancelled: those that may run again begin anew with the next server.
    """

    def __init__(self) -> None:
        self._run: Run | None = None
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def serving(self, run: Run) -> AsyncGenerator[None]:
        """Run tasks while a block lasts."""
        async with background_tasks() as group:
            self._group, self._run = group, run
            try:
                yield
            finally:
                self._group = None

    async def submit(self, id: str) -> None:
        """Run a task at once; where nothing is served it waits in the store."""
        if self._group is not None and self._run is not None:
            self._group.start_soon(self._one, self._run, id)

    async def _one(self, run: Run, id: str) -> None:
        try:
            await run(id)
        except StoreUnavailable:
            log.warning("a task waits until the store of tasks is back")
        except Exception:
            log.exception("a task could not be run; it is tried again")

    async def cancel(self, id: str) -> None:
        """Do nothing: the engine ends what runs here."""
