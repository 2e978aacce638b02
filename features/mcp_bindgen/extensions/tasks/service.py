"""Service of tasks on JSON values, for all revisions: create, read, answer, cancel and run tasks."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import errors
from mcp_bindgen.runtime.protocol.errors import ProtocolError, StoreUnavailable
from mcp_bindgen.runtime.session.rounds import InputRequired, other_than_required
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.runtime.session.subscriptions import Subscription

from .record import TaskRecord, now
from .runners import LocalRunner, TaskRunner
from .sqlite_store import MemoryTaskStore
from .store import TaskLimits, TaskStore

T = TypeVar("T")

_RENEWALS_PER_LEASE = 4
_SWEEP_SECONDS = 30.0  # between two searches for removable tasks
_UNREADABLE_SECONDS = 3600.0  # until an unreadable task is looked at again
_REREAD_SECONDS = 5.0  # until a watched record is read again without a report of a change
_RETRY_SECONDS = 0.5  # until an unreachable store is asked again
_STOP_SECONDS = 5.0  # for a stopping server to give its tasks back
_REPORT_SECONDS = 1.0  # between two stored progress reports of a task


class UnknownTask(ProtocolError):
    """The task does not exist or belongs to a different principal; the error does not say which."""

    def __init__(self) -> None:
        super().__init__(errors.INVALID_PARAMS, "Unknown task: there is none with this id, or it has expired")


class RunningTask:
    """One run of a task.

    Args:
        service: The service of the task.
        record: The task as it began this run.

    Attributes:
        record: The task as this run has seen it last.
        scope: Cancels the handler.
    """

    def __init__(self, service: Tasks, record: TaskRecord) -> None:
        self.record: TaskRecord = record
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self._service = service
        self._next_report = 0.0

    async def ask(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the client all questions at the same time, and wait for all answers.

        Args:
            questions: Key -> request in wire form. The same key and question give the same answer when the handler
                runs again.

        Returns:
            Key -> answer in wire form.

        Raises:
            InputRequired: The timeout of the runner has passed; the handler runs again after the answers.
        """
        await anyio.lowlevel.checkpoint()  # a cancellation comes first
        await _retried(self.change, TaskRecord.asking, questions)
        timeout = self._service.runner.answer_timeout if self.record.reruns else None
        with anyio.move_on_after(timeout):
            async for record in self._service.versions(self.record.id):
                if record.is_over or record.runs != self.record.runs:
                    continue  # over or taken over by a different worker: this handler is about to be cancelled
                self.record, keys = record, record.keys_of(questions)
                if record.answers.keys() >= set(keys.values()):
                    return {key: record.answers[wire] for key, wire in keys.items()}
        if timeout is None:
            await anyio.sleep_forever()  # this handler is about to be cancelled
        raise InputRequired

    async def report(self, message: str) -> None:
        """Store a status message; drop it if the last one is too recent."""
        if time.monotonic() >= self._next_report:
            self._next_report = time.monotonic() + _REPORT_SECONDS
            with suppress(StoreUnavailable):
                await self.change(TaskRecord.reported, message)

    async def change(self, rule: Callable[..., TaskRecord], *arguments: object) -> None:
        """Change the task as `Tasks.change` does, unless a later run has begun."""
        record = await self._service.change(self.record, rule, *arguments, runs=self.record.runs)
        if record is not None and record.runs == self.record.runs:
            self.record = record


Handle: TypeAlias = Callable[[TaskRecord, RunningTask], Awaitable[Mapping[str, Any]]]
"""Runs the handler of a task; returns the result in wire form, or raises `ProtocolError`."""


class Tasks:
    """The tasks of a server: `Tasks(SqliteTaskStore("tasks.db"))`.

    Any number of processes may serve the tasks of one store. Each task runs in one of them, which has its lease.

    Args:
        store: Stores tasks; by default in memory until the process ends.
        runner: Runs tasks; by default in the event loop of the server.
        limits: Number, size and lifetime of tasks.
        lease: Seconds after which the tasks of a dead process are taken over.

    Attributes:
        store: The same.
        runner: The same.
        limits: The same.
        handlers: Revision -> handler of its tasks.
        observers: Called with the id of each task that changes in any process; `None` if any task may have changed.
    """

    def __init__(
        self,
        store: TaskStore | None = None,
        runner: TaskRunner | None = None,
        *,
        limits: TaskLimits | None = None,
        lease: float = 15.0,
    ) -> None:
        self.store: TaskStore = MemoryTaskStore() if store is None else store
        self.runner: TaskRunner = LocalRunner() if runner is None else runner
        self.limits: TaskLimits = limits or TaskLimits()
        self.handlers: dict[str, Handle] = {}
        self.observers: list[Callable[[str | None], None]] = []
        self._lease = lease
        self._worker = secrets.token_urlsafe(12)
        self._running: dict[str, RunningTask | None] = {}
        self._changes: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._serving = 0
        self._changing = anyio.Lock()
        self._background: asyncio.Task[None] | None = None
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Run the tasks of the store while the block lasts; several servers may share one object."""
        async with self._changing:
            if not self._serving:
                started = asyncio.get_running_loop().create_future()
                self._background = asyncio.create_task(self._serve(started))
                try:
                    await started
                except asyncio.CancelledError:
                    self._background.cancel()
                    raise
            self._serving += 1
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._changing:
                    self._serving -= 1
                    if not self._serving and self._background is not None:
                        self._background.cancel()
                        await asyncio.wait([self._background])

    async def _serve(self, started: asyncio.Future[None]) -> None:
        """Run tasks until cancelled, in a task of its own: the first of several servers may be the first to end."""
        while True:
            try:
                async with background_tasks() as self._group:
                    self._group.start_soon(self._watch)
                    async with self.runner.serving(self.run):
                        self._group.start_soon(self._supervise)
                        self._group.start_soon(self._sweep)
                        if not started.done():
                            started.set_result(None)
                        await anyio.sleep_forever()
            except Exception as error:
                if not started.done():
                    started.set_exception(error)
                    return
                log.exception("the service of tasks failed")
                if not self._serving:
                    return
            await anyio.sleep(_RETRY_SECONDS)

    def start_soon(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
        """Start a coroutine function beside the requests; do nothing while no server serves."""
        if self._group is not None and self._serving:
            self._group.start_soon(work, *arguments)

    # --- requests of clients ----------------------------------------------------------------------------------

    async def create(self, record: TaskRecord) -> TaskRecord:
        """Store a task and submit it to the runner; the task is durable when this returns.

        Raises:
            TooManyRequests: A limit of the store is reached.
            ProtocolError: The task is too large.
            RuntimeError: No server serves: the lifespans of the servers were not entered.
        """
        if not self._serving:
            raise RuntimeError("tasks run only while their server serves: enter mcp_bindgen.runtime.lifespans")
        if len(record.data) > self.limits.max_task_bytes:
            limit = f"over {self.limits.max_task_bytes} bytes"
            raise ProtocolError(errors.INVALID_PARAMS, f"the request is too large for a task: {limit}")
        await self.store.create(record, self.limits)
        await self._submit(record.id)
        return record

    async def read(self, id: str, principal: str) -> TaskRecord:
        """Return a task of a principal; raise `UnknownTask` if the principal has no such task."""
        record = await self.store.read(id)
        if record is None or record.principal != principal:
            raise UnknownTask
        return record

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return a page of the tasks of a principal, in the order of creation; raise `UnknownTask` as `read` does.

        Args:
            principal: The principal.
            after: Id of the last task of the previous page; `None` for the first page.
        """
        try:
            return await self.store.page(principal, after)
        except KeyError:
            raise UnknownTask from None

    async def update(self, id: str, principal: str, answers: Mapping[str, Any]) -> None:
        """Store answers to questions of a task; ignore all other answers.

        Raises:
            UnknownTask: The principal has no such task.
            ProtocolError: The answers are too large.
        """
        record = await self.read(id, principal)
        if record.is_over:
            return
        if not record.answered(now(), answers).open:
            await self.store.release(id, "")  # makes the task due first, in case this process dies before it submits
        answered = await self.change(record, TaskRecord.answered, answers)
        if answered is not None and not answered.is_over and not answered.open:
            await self._submit_answered(id)

    async def cancel(self, id: str, principal: str) -> TaskRecord:
        """Cancel a task that is not over, with its handler; return its current state. Raises `UnknownTask`."""
        record = await self.change(await self.read(id, principal), TaskRecord.cancelled)
        if record is None:
            raise UnknownTask
        try:
            await self.runner.cancel(id)
        except Exception:
            log.exception("the runner was not told of a cancelled task")
        return record

    async def versions(self, id: str) -> AsyncGenerator[TaskRecord]:
        """Yield a task, and again after each change, until it is over or removed."""
        version = 0
        while True:
            changed = self._changes.setdefault(id, asyncio.Event())  # before reading, so that no change is missed
            record = await _retried(self.store.read, id)
            if record is None:
                return
            if record.version > version:
                version = record.version
                yield record
            if record.is_over:
                return
            with anyio.move_on_after(_REREAD_SECONDS):
                await changed.wait()

    # --- changes ----------------------------------------------------------------------------------------------

    async def change(
        self, known: TaskRecord, rule: Callable[..., TaskRecord], *arguments: object, runs: int | None = None
    ) -> TaskRecord | None:
        """Change a task that is not over.

        Args:
            known: The task as it was read; it is read again if it has changed since.
            rule: Transition of `TaskRecord`. It returns its record if there is nothing to change.
            arguments: Arguments of the transition, after the time.
            runs: Number of the run that changes the task; a later run makes the change void. `None` for no such check.

        Returns:
            The task after the change, or the unchanged task; `None` if it was removed.

        Raises:
            ProtocolError: The change makes the task too large.
        """
        record: TaskRecord | None = known
        while record is not None and not record.is_over and runs in (None, record.runs):
            following = rule(record, now(), *arguments)
            if following is record:
                break
            if await self.store.swap(self._limited(record, following)):
                self._wake(known.id)
                return following
            record = await self.store.read(known.id)
        return record

    def _limited(self, record: TaskRecord, following: TaskRecord) -> TaskRecord:
        """Return the next version of a task, or its failure if the end of the task cannot be stored."""
        try:
            size = len(following.data)
        except ValueError:  # a value without JSON form
            if not following.is_over:
                raise
            log.exception("the result of a task has no JSON form")
            return record.failed(now(), errors.INTERNAL_ERROR, "Internal error")
        if size <= self.limits.max_task_bytes:
            return following
        if not following.is_over:
            message = f"the task would become too large: over {self.limits.max_task_bytes} bytes"
            raise ProtocolError(errors.INVALID_PARAMS, message)
        return record.failed(now(), errors.INTERNAL_ERROR, "the result is too large for a task")

    def _wake(self, id: str) -> None:
        """Let `versions` of a task read it again."""
        changed = self._changes.pop(id, None)
        if changed is not None:
            changed.set()

    async def _watch(self) -> None:
        """Report changes in the store, and end runs of tasks that are over."""
        while True:
            with suppress(StoreUnavailable):
                async with aclosing(self.store.watch()) as changes:
                    async for id in changes:
                        for one in list(self._changes) if id is None else {id}.intersection(self._changes):
                            self._wake(one)
                        for one in list(self._running) if id is None else self._running.keys() & {id}:
                            await self._check(one)
                        for observe in self.observers:
                            observe(id)
            await anyio.sleep(_RETRY_SECONDS)

    async def _check(self, id: str) -> None:
        """End the run of a task in this process if the task is over, removed or run by a different worker."""
        running = self._running.get(id)
        if running is not None:
            record = await _retried(self.store.read, id)
            if record is None or record.is_over or record.runs != running.record.runs:
                running.scope.cancel()

    # --- running ----------------------------------------------------------------------------------------------

    async def _submit(self, id: str) -> bool:
        try:
            await self.runner.submit(id)
        except Exception:
            log.exception("a task could not be submitted; it is tried again")
            return False
        return True

    async def _submit_answered(self, id: str) -> None:
        """Submit a task that has waited for its client; it is due, in case the queue loses its job."""
        await self.store.release(id, "")
        await self._submit(id)

    async def _resubmit(self, id: str) -> None:
        """Submit a task without a worker; it is not due for a while, so that its jobs do not pile up in a queue."""
        pause = self.runner.resubmit_seconds
        if pause:
            if not await self.store.lease(id, self._worker, self._lease):
                return
            await self.store.release(id, self._worker, now() + round(1000 * pause))
        if not await self._submit(id) and pause:
            await self.store.release(id, "")

    async def _supervise(self) -> None:
        """Renew leases, submit tasks without a worker, and end expired tasks."""
        while True:
            with suppress(StoreUnavailable):
                async with anyio.create_task_group() as group:  # concurrently: a store may join the requests
                    for running in filter(None, list(self._running.values())):
                        group.start_soon(self._renew, running.record)
                for id in await self.store.due():
                    if id not in self._running:
                        await self._resubmit(id)
            await anyio.sleep(self._lease / _RENEWALS_PER_LEASE)

    async def _sweep(self) -> None:
        """Remove tasks, apart from supervision: it may take long."""
        while True:
            with suppress(StoreUnavailable):
                while await self.store.sweep():
                    await anyio.lowlevel.checkpoint()
            await anyio.sleep(_SWEEP_SECONDS)

    async def _renew(self, record: TaskRecord) -> None:
        """Renew the lease of a task that runs in this process; end its run if the lease is lost or the task expired."""
        with suppress(StoreUnavailable):
            if not await self.store.lease(record.id, self._worker, self._lease):
                await self._check(record.id)
            if record.is_expired(now()):
                await self.change(record, TaskRecord.expired)

    async def run(self, id: str) -> None:
        """Run a task unless it is running: see `Run`."""
        if id in self._running:
            return
        self._running[id] = None
        try:
            try:
                running = self._running[id] = await self._begin(id)
                is_waiting = running is not None and await self._work(running)
            finally:
                del self._running[id]
            if running is not None and is_waiting:
                with anyio.move_on_after(_STOP_SECONDS, shield=True):
                    await _retried(self.store.release, id, self._worker, running.record.expires)
                    record = await _retried(self.store.read, id)
                    if record is not None and not record.is_over and not record.open:  # the answers arrived meanwhile
                        await _retried(self._submit_answered, id)
        except StoreUnavailable:
            log.warning("a task waits until the task store is reachable")
        except Exception:  # it must not end the other tasks of this process
            log.exception("a task could not be run; it is tried again")

    async def _begin(self, id: str) -> RunningTask | None:
        """Begin a run of a task; return `None` if this worker cannot run it."""
        record = await self.store.read(id)
        if record is None:
            await self.store.lease(id, self._worker, _UNREADABLE_SECONDS)  # no effect on a removed task
            return None
        is_known = record.revision in self.handlers
        if not is_known and not record.is_expired(now()):
            return None
        if not await self.store.lease(id, self._worker, self._lease):
            return None
        begun = await self.change(record, TaskRecord.begun if is_known else TaskRecord.expired)
        return RunningTask(self, begun) if is_known and begun is not None and not begun.is_over else None

    async def _work(self, running: RunningTask) -> bool:
        """Run the handler of a task and store its end; return True if the task waits for its client instead."""
        record = running.record
        rule: Callable[..., TaskRecord] | None = None
        values: tuple[object, ...] = ()
        try:
            with running.scope:
                values = (await self.handlers[record.revision](record, running),)
                rule = TaskRecord.completed
        except ProtocolError as error:
            rule, values = TaskRecord.failed, (error.code, error.message, error.data)
        except BaseException as error:
            other = other_than_required(error)
            if other is None:
                await _retried(running.change, TaskRecord.given_back)
                return True
            if isinstance(other, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt):
                with anyio.move_on_after(_STOP_SECONDS, shield=True), suppress(StoreUnavailable):
                    await running.change(TaskRecord.given_back)
                    await self.store.release(record.id, self._worker)
                raise
            log.exception("the handler of a task failed")
            rule, values = TaskRecord.failed, (errors.INTERNAL_ERROR, "Internal error")
        if rule is not None:  # else the run was cancelled: the task is over or runs elsewhere
            end = partial(self.change, running.record, rule, *values)
            try:
                await _retried(end)
            except asyncio.CancelledError:
                with anyio.move_on_after(_STOP_SECONDS, shield=True):
                    await _retried(end)
                raise
        return False


AnyLink = TypeVar("AnyLink", Session, Subscription)


class StatusSender(Generic[AnyLink]):
    """Sends changed tasks to clients, each at its own pace; only task ids wait in memory.

    Args:
        tasks: The service.
        send: Sends a task to a client; it returns when the client can take the next one.
    """

    def __init__(self, tasks: Tasks, send: Callable[[AnyLink, TaskRecord], Awaitable[None]]) -> None:
        self._tasks = tasks
        self._send: Callable[[AnyLink, TaskRecord], Awaitable[None]] = send
        self._waiting: dict[AnyLink, dict[str, None]] = {}

    def add(self, link: AnyLink, ids: Iterable[str]) -> None:
        """Send tasks to a client, each in its state at the time of sending."""
        new = dict.fromkeys(ids)
        if new and link in self._waiting:
            self._waiting[link].update(new)
        elif new:
            self._waiting[link] = new
            self._tasks.start_soon(self._send_all, link, new)

    async def _send_all(self, link: AnyLink, ids: dict[str, None]) -> None:
        try:
            while ids and link.ready:
                id = next(iter(ids))
                del ids[id]
                try:
                    await self._send(link, await self._tasks.read(id, link.origin.principal or ""))
                except (UnknownTask, StoreUnavailable, errors.ConnectionClosed):
                    log.debug("the change of a task is not sent")
                except Exception:
                    log.exception("the change of a task could not be sent")
        finally:
            del self._waiting[link]


async def _retried(ask: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Ask the store; retry while it is unreachable."""
    while True:
        try:
            return await ask(*arguments)
        except StoreUnavailable:
            await anyio.sleep(_RETRY_SECONDS)
