"""Serve tasks, in the terms of JSON: create, read, answer, cancel and run them, whatever revision they belong to."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError, StoreUnavailable
from mcp_bindgen.runtime.session.rounds import other_than_required

from .limits import TaskLimits
from .record import TaskRecord
from .runner import LocalRunner, TaskRunner
from .running import Handle, Rule, RunningTask
from .store.base import TaskStore
from .store.memory import MemoryTaskStore

log = logging.getLogger("mcp_bindgen")

_PULSES = 4  # how often a lease is renewed before it would run out
_SWEEP = 30.0  # seconds between two looks for tasks whose time is over
_UNREADABLE = 3600.0  # seconds until a task whose record cannot be read is looked at again
_LOOK = 5.0  # seconds after which a record is read again although nobody has told of a change
_PAUSE = 0.5  # seconds before a store that is away is asked again
_LAST = 5.0  # seconds in which a server that stops gives its tasks back


class UnknownTask(ProtocolError):
    """There is no such task, or it is somebody else's: nobody is told which."""

    def __init__(self) -> None:
        super().__init__(INVALID_PARAMS, "Unknown task: there is none of this id, or it has expired")


class Tasks:
    """The tasks of a server: `Tasks(SqliteTaskStore("tasks.db"))`.

    Any number of processes may serve the tasks of one store; each task runs in one of them, which has its lease.

    Args:
        store: Holds them; by default memory, which forgets them when the process ends.
        runner: Decides where they run; by default in the event loop of the server.
        limits: How many there may be, how large and for how long.
        lease: Seconds after which a process that was not heard of counts as dead.

    Attributes:
        store: The same.
        runner: The same.
        limits: The same.
        handlers: Revision -> what runs the handlers of its tasks.
        changed: Called with the id of each task that changes, in whichever process; `None` where any may have changed.
    """

    def __init__(
        self,
        store: TaskStore | None = None,
        runner: TaskRunner | None = None,
        *,
        limits: TaskLimits | None = None,
        lease: float = 15.0,
    ) -> None:
        self.store = MemoryTaskStore() if store is None else store
        self.runner = LocalRunner() if runner is None else runner
        self.limits = limits or TaskLimits()
        self.handlers: dict[str, Handle] = {}
        self.changed: list[Callable[[str | None], Awaitable[None]]] = []
        self._lease = lease
        self._worker = secrets.token_urlsafe(12)
        self._running: dict[str, RunningTask] = {}
        self._news: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._serving = 0
        self._group: TaskGroup | None = None

    @property
    def patience(self) -> float | None:
        """Seconds for which a handler waits for an answer before it is ended, to run again when that has come.

        `None` is for ever; so waits one that may not run twice.
        """
        found: float | None = getattr(self.runner, "patience", None)
        return found

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Look after the tasks of the store while a block lasts; several servers may share one object."""
        self._serving += 1
        try:
            if self._serving > 1:
                yield
                return
            async with background_tasks() as tasks:
                self._group = tasks
                tasks.start_soon(self._listen)
                async with self.runner.serving(self.run):
                    tasks.start_soon(self._look_after)
                    tasks.start_soon(self._sweep)
                    yield
        finally:
            self._serving -= 1

    def soon(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Tell somebody of tasks beside whoever asks for that; while nothing is served, nobody is told."""
        if self._group is not None and self._serving:
            self._group.start_soon(_awaited, tell)

    # --- what clients ask for ---------------------------------------------------------------------------------

    async def create(self, record: TaskRecord) -> TaskRecord:
        """Create a task, and have it run; it is durable when this returns.

        Raises:
            TooManyRequests: There are too many.
            ProtocolError: It is too large.
        """
        if not self._serving:
            raise RuntimeError("tasks run only while their server serves: see lifespans()")
        if len(record.dump()) > self.limits.size:
            raise ProtocolError(INVALID_PARAMS, f"the request is too large for a task: over {self.limits.size} bytes")
        await self.store.create(record, self.limits)
        await self._submit(record.id)
        return record

    async def read(self, id: str, principal: str) -> TaskRecord:
        """Return a task of a principal; raises `UnknownTask`."""
        record = await self.store.read(id)
        if record is None or record.principal != principal:
            raise UnknownTask
        return record

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal in the order of their creation, those after one of them; raises `UnknownTask`."""
        try:
            return await self.store.page(principal, after)
        except KeyError:
            raise UnknownTask from None

    async def update(self, id: str, principal: str, answers: Mapping[str, Any]) -> None:
        """Take answers to what a task has asked; those to anything else are left aside.

        Raises:
            UnknownTask: The principal has no such task.
            ProtocolError: The answers are too large.
        """
        record = await self.read(id, principal)
        if not record.answered(now(), answers).open:
            await self.store.release(id, "")  # before it is answered: who looks after tasks finds it, whoever dies now
        answered = await self.change(id, lambda record, now: record.answered(now, answers))
        if answered is not None and not answered.is_over and not answered.open:
            await self._submit(id)

    async def cancel(self, id: str, principal: str) -> TaskRecord:
        """End a task, unless it is over; return what it is now. Its handler is cancelled; raises `UnknownTask`."""
        await self.read(id, principal)
        record = await self.change(id, lambda record, now: record.cancelled(now))
        if record is None:
            raise UnknownTask
        try:
            await self.runner.cancel(id)
        except Exception:
            log.exception("the runner of tasks was not told that a task is cancelled")
        return record

    async def versions(self, id: str, principal: str | None = None) -> AsyncGenerator[TaskRecord]:
        """Yield a task, and again each time that it has changed, until it is over or gone.

        Args:
            id: The task.
            principal: Whose it must be; `None` if that is known.

        Raises:
            UnknownTask: The principal has no such task.
        """
        version = 0
        while True:
            arrived = self._news.setdefault(id, asyncio.Event())  # noted before reading, so that nothing is missed
            record = await self._patiently(id)
            if principal is not None and (record is None or record.principal != principal):
                raise UnknownTask
            if record is None:
                return
            if record.version > version:
                version = record.version
                yield record
            if record.is_over:
                return
            with anyio.move_on_after(_LOOK):
                await arrived.wait()

    async def _patiently(self, id: str) -> TaskRecord | None:
        while True:
            try:
                return await self.store.read(id)
            except StoreUnavailable:
                await anyio.sleep(_PAUSE)

    # --- changes ----------------------------------------------------------------------------------------------

    async def change(self, id: str, rule: Rule, runs: int | None = None) -> TaskRecord | None:
        """Change a task that is not over.

        Args:
            id: The task.
            rule: Says how; it is asked again when somebody else was quicker.
            runs: Which of its runs wants to change it, if only that one may.

        Returns:
            What it is now: unchanged if it was over already; `None` if it is gone.

        Raises:
            ProtocolError: It would become too large.
        """
        while True:
            record = await self.store.read(id)
            if record is None or record.is_over or (runs is not None and record.runs != runs):
                return record
            following = rule(record, now())
            if following is record:
                return record
            try:
                size = len(following.dump())
            except ValueError:  # as text that is no Unicode
                if not following.is_over:
                    raise
                log.exception("the end of a task cannot be written in JSON")
                following, size = record.failed(now(), INTERNAL_ERROR, "Internal error"), 0
            if size > self.limits.size:
                if not following.is_over:
                    raise ProtocolError(INVALID_PARAMS, f"this is too large for a task: over {self.limits.size} bytes")
                following = record.failed(now(), INTERNAL_ERROR, "the result is too large for a task")
            if await self.store.swap(following):
                self._tell(id)
                return following

    async def insist(self, id: str, rule: Rule, runs: int | None = None) -> TaskRecord | None:
        """Change a task as `change` does, and wait for the store while it is away."""
        while True:
            try:
                return await self.change(id, rule, runs)
            except StoreUnavailable:
                await anyio.sleep(_PAUSE)

    def _tell(self, id: str) -> None:
        news = self._news.pop(id, None)
        if news is not None:
            news.set()

    async def _listen(self) -> None:
        """Pass on what changes in the store, and end what runs here for a task that is over."""
        while True:
            with suppress(StoreUnavailable):
                async with aclosing(self.store.watch()) as changes:
                    async for id in changes:
                        for one in list(self._news) if id is None else [id]:
                            self._tell(one)
                        for one in list(self._running) if id is None else [id] if id in self._running else []:
                            await self._check(one)
                        for tell in self.changed:
                            await tell(id)
            await anyio.sleep(_PAUSE)

    async def _check(self, id: str) -> None:
        """End what runs here for a task that is over, gone, or run by somebody else."""
        running = self._running.get(id)
        record = await self._patiently(id)
        if running is not None and running.runs and (record is None or record.is_over or record.runs != running.runs):
            running.scope.cancel()

    # --- running ----------------------------------------------------------------------------------------------

    async def _submit(self, id: str) -> None:
        try:
            await self.runner.submit(id)
        except Exception:
            log.exception("a task could not be submitted; it is tried again")

    async def _look_after(self) -> None:
        """Renew leases, submit what nobody runs, and end what has expired."""
        while True:
            with suppress(StoreUnavailable):
                async with anyio.create_task_group() as group:  # at the same time: a store may do them together
                    for running in list(self._running.values()):
                        group.start_soon(self._keep, running)
                for id in await self.store.due():
                    if id not in self._running:
                        await self._submit(id)
            await anyio.sleep(self._lease / _PULSES)

    async def _sweep(self) -> None:
        """Drop what is over for long, beside all else: with many tasks it takes a while."""
        while True:
            with suppress(StoreUnavailable):
                while await self.store.sweep():
                    await anyio.lowlevel.checkpoint()
            await anyio.sleep(_SWEEP)

    async def _keep(self, running: RunningTask) -> None:
        """Renew the lease of a task that runs here; end what runs for one that is lost or has expired."""
        with suppress(StoreUnavailable):
            if not await self.store.lease(running.id, self._worker, self._lease):
                await self._check(running.id)
            if running.expires is not None and running.expires <= now():
                await self.change(running.id, _expired)

    async def run(self, id: str) -> None:
        """Run a task, if nobody else does: see `Run`."""
        if id in self._running:
            return
        running = self._running[id] = RunningTask(self, id)
        try:
            held = await self.store.read(id)
            if held is None:
                await self.store.lease(id, self._worker, _UNREADABLE)  # does nothing where there is no task
                return
            handle = self.handlers.get(held.revision)  # who has none may end it when its time is over
            due = handle is not None or _expired(held, now()) is not held
            if not due or not await self.store.lease(id, self._worker, self._lease):
                return
            record = await self.change(id, lambda record, time: _expired(record, time, record.begun(time)))
            if record is None or record.is_over or handle is None:
                return
            running.runs, running.expires = record.runs, record.expires
            waits = await self._work(handle, record, running)
        finally:
            del self._running[id]
        if waits:
            await self.store.release(id, self._worker, record.expires)
            left = await self.store.read(id)
            if left is not None and not left.is_over and not left.open:  # the answers came meanwhile
                await self._submit(id)

    async def _work(self, handle: Handle, record: TaskRecord, running: RunningTask) -> bool:
        """Run the handler of a task and write down how it ends; return whether it waits for its client instead."""
        end: Rule | None = None
        try:
            with running.scope:
                result = await handle(record, running)
                end = lambda record, now: record.completed(now, result)  # noqa: E731
        except ProtocolError as error:
            code, message, data = error.code, error.message, error.data
            end = lambda record, now: record.failed(now, code, message, data)  # noqa: E731
        except asyncio.CancelledError:
            await self._give_back(record.id, running.runs)
            raise
        except BaseException as error:
            other = other_than_required(error)
            if other is None:
                await self.insist(record.id, lambda record, now: record.given_back(now), running.runs)
                return True
            if not isinstance(other, Exception):
                await self._give_back(record.id, running.runs)
                raise
            log.exception("the handler of a task failed")
            end = lambda record, now: record.failed(now, INTERNAL_ERROR, "Internal error")  # noqa: E731
        if end is not None:  # else it was cancelled, because it is over or runs elsewhere
            try:
                await self.insist(record.id, end)
            except asyncio.CancelledError:
                with anyio.move_on_after(_LAST, shield=True):
                    await self.insist(record.id, end)
                raise
        return False

    async def _give_back(self, id: str, runs: int) -> None:
        """Let another process go on with a task because this one stops."""
        with anyio.move_on_after(_LAST, shield=True), suppress(StoreUnavailable):
            await self.change(id, lambda record, now: record.given_back(now), runs)
            await self.store.release(id, self._worker)


async def _awaited(tell: Callable[[], Awaitable[None]]) -> None:
    await tell()


def now() -> int:
    """Return the time, in milliseconds since 1970."""
    return round(time.time() * 1000)


def _expired(record: TaskRecord, time: int, following: TaskRecord | None = None) -> TaskRecord:
    """Return a task as failed if its time is over, else what follows."""
    if record.expires is None or record.expires > time:
        return following or record
    return record.failed(time, INTERNAL_ERROR, "the task was not done before its time to live was over")
