"""Server engine of tasks: turns calls into tasks, answers requests about tasks and notifies subscribers."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from anyio import CapacityLimiter

from mcp_bindgen.runtime.era.lifecycle import LISTEN
from mcp_bindgen.runtime.era.operations import operations
from mcp_bindgen.runtime.era.sides import Handle, bound
from mcp_bindgen.runtime.era.stateless.input_required import Questions, asks_for_input
from mcp_bindgen.runtime.era.stateless.server import lacking
from mcp_bindgen.runtime.era.stateless.subscriptions import Subscription, audience
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity, Operation
from mcp_bindgen.runtime.protocol.capabilities import declared
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import (
    INTERNAL_ERROR,
    CapabilityMissing,
    InvalidParams,
    ProtocolError,
    StoreUnavailable,
)
from mcp_bindgen.runtime.protocol.extension import Extension, ExtensionRoutes
from mcp_bindgen.runtime.protocol.link import Link
from mcp_bindgen.runtime.protocol.methods import Method, Notification, Request
from mcp_bindgen.runtime.protocol.negotiated import Negotiated
from mcp_bindgen.runtime.protocol.revision import Dispatcher
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.request_scope import RequestScope
from mcp_bindgen.runtime.session.server import Server

from .core_tasks import CoreTasks, ForeignTasks, RevisionAdapter, hidden_tools
from .record import TaskClient, TaskRecord, new_id, now
from .service import RunningTask, StatusSender, Tasks, UnknownTask
from .tools import ToolTask, deferred, marked

CALL, UPDATE, CHANGED = "tools/call", "tasks/update", "notifications/tasks"

_THREADS_PER_PRINCIPAL = 32  # for handlers of tasks that block


class ServerEngine(Server):
    """Base of generated servers that offer tasks.

    Attributes:
        own_tasks: The tasks of the server; by default in memory of this process.
        tasks_extension: Generated facts of the extension.
    """

    own_tasks: Tasks | None = None
    tasks_extension: ClassVar[Extension]
    adds: ClassVar[ExtensionRoutes]
    context: ClassVar[Any]  # generated classes have narrower types
    _stubs: ClassVar[Mapping[str, object]]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if ServerEngine in cls.__bases__:  # the generated class
            cls.tasks_extension = cls.adds.extension
            cls._stubs = {name: getattr(cls, name) for name in _HANDLERS}
            return
        for name, handler in _HANDLERS.items():
            if getattr(cls, name) is cls._stubs[name]:
                setattr(cls, name, handler)

    def tasks_of(self, name: str) -> ToolTask | None:
        """Return the task options of a tool; `None` if the tool never runs as a task."""
        call = getattr(self, "call_tool")  # noqa: B009 - a generated stub
        return marked(call, name) or marked(call)

    def wants_tasks(self, params: Any, ctx: Context) -> bool:
        """Return True if the client of a call has declared the extension."""
        return ctx.extension(self.tasks_extension) is not None

    @asynccontextmanager
    async def extension_lifespan(self) -> AsyncGenerator[None]:
        """Run tasks while the server serves."""
        tasks = self.all_tasks()
        tasks.handlers[self.revision] = self._run
        tasks.observers.append(self._notify)
        try:
            async with super().extension_lifespan(), tasks.serving():
                yield
        finally:
            tasks.observers.remove(self._notify)

    def all_tasks(self) -> Tasks:
        """Return the tasks of the server, for all revisions and principals."""
        if self.own_tasks is None:
            self.own_tasks = Tasks()
        return self.own_tasks

    @cached_property
    def _core_tasks(self) -> list[CoreTasks]:
        return []

    def bridged_engines(self, dispatcher: RevisionAdapter) -> Sequence[ForeignTasks]:
        """Return the handlers of tasks for another revision: tasks of its core, or none."""
        found = super().bridged_engines(dispatcher)  # type: ignore[arg-type]
        if not self._dispatcher.is_handled(self._dispatcher.routes[CALL], self):
            return found
        if "tasks/result" not in dispatcher.revision.methods:
            return [*found, hidden_tools(self, dispatcher)]
        self._core_tasks.append(CoreTasks(self, dispatcher))
        return [*found, self._core_tasks[-1]]

    # --- creation ---------------------------------------------------------------------------------------------

    def around(self, method: Method, handler: Handle) -> Handle:
        """Return the handler of calls, which creates a task for a tool with task options."""
        work = super().around(method, handler)
        if method.name != CALL:
            return work

        async def call(params: Any, ctx: Context) -> Any:
            tool = None if isinstance(ctx.link, TaskLink) else self.tasks_of(params.name)
            if tool is None:
                return await work(params, ctx)
            if not self.wants_tasks(params, ctx):
                if tool.support == "required":
                    ctx.require_extension(self.tasks_extension)
                return await work(params, ctx)
            if tool.late:
                outcome = await deferred(work(params, ctx))
                if outcome is not None:
                    return outcome
            return (await self.begin_task(tool, params, ctx)).wire(resultType="task")

        return call

    async def begin_task(self, tool: ToolTask, params: Any, ctx: Context) -> TaskRecord:
        """Create a task for a call, and submit it; raises `TooManyRequests`."""
        limits, time, info = self.all_tasks().limits, now(), ctx.peer_info
        record = TaskRecord(
            id=new_id(),
            revision=self.revision,
            method=CALL,
            params=jsonrpc.plain(params),
            origin=replace(ctx.origin, headers={}),
            client=TaskClient(None if info is None else jsonrpc.plain(info), dict(ctx.peer_capabilities)),
            created=time,
            updated=time,
            ttl=limits.ttl_ms(limits.ttl if tool.ttl is None else tool.ttl),
            poll=max(1, round(1000 * (limits.poll if tool.poll is None else tool.poll))),
            reruns=tool.reruns,
            answers=dict(ctx.answered),
        )
        with _reachable():
            return await self.all_tasks().create(record)

    # --- running ----------------------------------------------------------------------------------------------

    @cached_property
    def _dispatcher(self) -> Dispatcher:
        return self.dispatcher.extended(type(self))

    @cached_property
    def _call(self) -> Handle:
        return bound(self._dispatcher, self._dispatcher.routes[CALL], self)

    @cached_property
    def _capabilities(self) -> Mapping[str, Any]:
        return declared(self, self._dispatcher)

    @cached_property
    def _threads(self) -> WeakValueDictionary[str, CapacityLimiter]:
        return WeakValueDictionary()

    async def _run(self, record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        """Run the handler of a task: see `service.Handle`."""
        revision = self._dispatcher.revision
        method = revision.request(record.method)
        wire = {**record.params, "_meta": {**record.params.get("_meta", {}), "progressToken": record.id}}
        params = jsonrpc.typed_params(method, wire)
        agreed = Negotiated(self._dispatcher)
        agreed.logs_by_default = False
        agreed.declared.update({"client": record.client.capabilities, "server": self._capabilities})
        if record.client.info is not None:
            agreed.peer_info = revision.types.Implementation.model_validate(record.client.info)
        threads = self._threads.get(record.principal) or CapacityLimiter(_THREADS_PER_PRINCIPAL)
        self._threads[record.principal] = threads
        link = TaskLink(running, agreed, threads)
        try:
            while True:
                ctx = self.context(RequestScope(link, link.origin, record.id, agreed), params, TaskQuestions(running))
                answer = await self._call(params, ctx)
                jsonrpc.check_kind(method, answer, self._call)
                result: dict[str, Any] = jsonrpc.plain(answer)
                if not asks_for_input(type(answer)):
                    return result
                more = {"inputResponses": await running.ask(result.get("inputRequests") or {})}
                if answer.request_state is not None:
                    more["requestState"] = answer.request_state
                params = jsonrpc.typed_params(method, {**wire, **more})
        except CapabilityMissing as error:
            if error.owner != "client":
                raise
            raise lacking(revision, error.capability[1:]) from None

    # --- requests about tasks ---------------------------------------------------------------------------------

    async def find_task(self, id: str, ctx: Context) -> TaskRecord:
        """Return a task of the client that sends a request.

        Raises:
            UnknownTask: The client has no such task.
            InsufficientScope: The token lacks a scope that the request of the task needs.
            ProtocolError: The task store is unreachable.
        """
        with _reachable():
            record = await self.all_tasks().read(id, ctx.origin.principal or "")
        if self.authorize is not None:
            self.authorize(ctx.identity, record.revision, self._operations(record))
        return record

    def may_see(self, record: TaskRecord, identity: Identity | None) -> bool:
        """Return True if an identity has the scopes that the request of a task needs."""
        return self.allows is None or self.allows(identity, record.revision, self._operations(record))

    def _operations(self, record: TaskRecord) -> Sequence[Operation]:
        return operations(self.dispatcher.revision.request(record.method), record.params)

    def check_answers(self, record: TaskRecord, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers to questions of a task; raise `InvalidParams` for an answer of the wrong type."""
        found: dict[str, Any] = {}
        for key in [key for key in answers if key in record.asked and key not in record.answers]:
            method = self.dispatcher.revision.request(record.asked[key]["method"])
            try:
                found[key] = jsonrpc.plain(jsonrpc.typed_result(method, answers[key]))
            except ProtocolError as error:
                problem = {"path": f"params.inputResponses.{key}", "problem": error.message}
                raise InvalidParams(UPDATE, [problem]) from None
        return found

    # --- subscriptions ----------------------------------------------------------------------------------------

    async def agree(self, wanted: Any, ctx: Context) -> Any:
        """Return the filter of a subscription without the tasks that its client does not have."""
        found = super().agree(wanted, ctx)
        agreed = await found if inspect.isawaitable(found) else found
        ids = _followed(agreed)
        if not ids:
            return agreed
        limit = self.all_tasks().limits.max_followed
        if len(ids) > limit:
            problem = {"path": "params.notifications.taskIds", "problem": f"at most {limit} tasks can be followed"}
            raise InvalidParams(LISTEN, [problem])
        own = list[str]()
        for id in dict.fromkeys(ids):
            with suppress(UnknownTask):
                own.append((await self.find_task(id, ctx)).id)
        return agreed.model_copy(update={_FILTER: own})

    def begin_subscription(self, link: Subscription) -> None:
        """Send a new subscription the current state of its tasks, after the acknowledgement."""
        super().begin_subscription(link)
        self._subscribers.add(link, _followed(link.agreed))

    def _notify(self, id: str | None) -> None:
        """Notify clients that a task has changed; `None` stands for all tasks."""
        for link in audience(self):
            if isinstance(link, Subscription) and link.ready and (ids := _followed(link.agreed)):
                self._subscribers.add(link, ids if id is None else [id] if link.follows(_FILTER, id) else ())
        for engine in self._core_tasks:
            engine.notify(id)

    @cached_property
    def _subscribers(self) -> StatusSender[Subscription]:
        notification: Notification[Any] = self.tasks_extension.methods[CHANGED]  # type: ignore[assignment]
        sent = WeakKeyDictionary[Subscription, dict[str, int]]()  # subscription -> task id -> version

        async def send(link: Subscription, record: TaskRecord) -> None:
            versions = sent.setdefault(link, {})
            if versions.get(record.id) != record.version:
                versions[record.id] = record.version
                await link.notify(notification, jsonrpc.typed_params(notification, record.detailed()))
                await link.drained()  # one at a time: results may be large

        return StatusSender(self.all_tasks(), send)


_FILTER = "task_ids"
"""Field of a subscription filter with the ids of tasks; only revisions with the extension have it."""


def _followed(agreed: object) -> Sequence[str]:
    """Return the ids of the tasks in a subscription filter."""
    return getattr(agreed, _FILTER, None) or ()


# --- handlers that replace generated stubs --------------------------------------------------------------------


async def _get(self: ServerEngine, params: Any, ctx: Context) -> Any:
    """Return the current state of a task."""
    return (await self.find_task(params.task_id, ctx)).detailed()


async def _update(self: ServerEngine, params: Any, ctx: Context) -> Any:
    """Store answers of the client."""
    record = await self.find_task(params.task_id, ctx)
    answers = self.check_answers(record, jsonrpc.plain(params).get("inputResponses") or {})
    with _reachable():
        await self.all_tasks().update(record.id, record.principal, answers)
    return {}


async def _cancel(self: ServerEngine, params: Any, ctx: Context) -> Any:
    """Cancel a task that is not over."""
    record = await self.find_task(params.task_id, ctx)
    with _reachable():
        await self.all_tasks().cancel(record.id, record.principal)
    return {}


_HANDLERS: Mapping[str, Callable[..., Any]] = {"get_task": _get, "update_task": _update, "cancel_task": _cancel}


# --- the client, as the handler of a task sees it -------------------------------------------------------------


class TaskLink(Link):
    """Link from the handler of a task to its client: questions and progress go through the record.

    Args:
        running: The run.
        negotiated: What the request may rely on.
        threads: Limits the threads for blocking handlers of the principal.
    """

    def __init__(self, running: RunningTask, negotiated: Negotiated, threads: CapacityLimiter) -> None:
        self.origin = running.record.origin
        self.negotiated: Negotiated = negotiated
        self._threads = threads
        self._running = running
        self._questions = TaskQuestions(running)

    def thread_limit(self) -> CapacityLimiter:
        """Return the limit of threads for blocking handlers of the principal."""
        return self._threads

    async def request(self, method: Request[Any, Any, Any], params: Any, *, related: RequestId | None = None) -> Any:
        """Ask the client, and wait for the answer."""
        return await self._questions.ask(self._questions.next_key(method.name), method, params)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Store progress as the status message of the task; drop all other notifications."""
        if method is self.negotiated.dispatcher.revision.progress:
            total = "" if params.total is None else f" of {params.total:g}"
            await self._running.report(params.message or f"{params.progress:g}{total}")


class TaskQuestions(Questions):
    """Questions of a handler that runs as a task; the handler waits for each answer.

    Args:
        running: The run.
    """

    def __init__(self, running: RunningTask) -> None:
        super().__init__({})
        self._running = running

    async def ask(self, key: str, method: Request[Any, Any, Any], params: Any) -> Any:
        """Return the answer of the client to a question."""
        question = {"method": method.name} | ({} if params is None else {"params": jsonrpc.plain(params)})
        self.used |= await self._running.ask({key: question})
        return jsonrpc.typed_result(method, self.used[key])


@contextmanager
def _reachable() -> Generator[None]:
    """Raise `ProtocolError` while the task store is unreachable."""
    try:
        yield
    except StoreUnavailable:
        raise ProtocolError(INTERNAL_ERROR, "Tasks cannot be reached at the moment; try again later") from None
