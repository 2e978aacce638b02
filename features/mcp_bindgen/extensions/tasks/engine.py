"""Make tasks of calls, answer what clients ask of them, and tell those who listen (extension "Tasks")."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter

from mcp_bindgen.bridging.server import BridgedDispatcher, BridgedEngine
from mcp_bindgen.runtime.era.lifecycle import LISTEN
from mcp_bindgen.runtime.era.operations import operations
from mcp_bindgen.runtime.era.sides import Handle, bound
from mcp_bindgen.runtime.era.stateless.input_required import Questions, asks_for_input
from mcp_bindgen.runtime.era.stateless.server import lacking
from mcp_bindgen.runtime.era.stateless.subscriptions import Subscription, audience
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity, Operation, RequestOrigin
from mcp_bindgen.runtime.protocol.capabilities import declared
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import (
    INTERNAL_ERROR,
    CapabilityMissing,
    ConnectionClosed,
    InvalidParams,
    ProtocolError,
    StoreUnavailable,
)
from mcp_bindgen.runtime.protocol.extension import Extension
from mcp_bindgen.runtime.protocol.link import Link
from mcp_bindgen.runtime.protocol.methods import Method, Notification, Request
from mcp_bindgen.runtime.protocol.negotiated import Negotiated
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.request_scope import RequestScope
from mcp_bindgen.runtime.session.server import Server

from . import wire
from .change_listeners import News
from .core_tasks import RESULT, CoreTasks, WithoutTasks
from .record import TaskRecord, new_id
from .running import RunningTask
from .service import Tasks, UnknownTask, now
from .tools import ToolTask, deferred, marked

CALL, GET, UPDATE, CANCEL, CHANGED = "tools/call", "tasks/get", "tasks/update", "tasks/cancel", "notifications/tasks"

_THREADS = 32  # threads for tasks of one principal whose handlers block


class ServerEngine(Server):
    """The base of generated servers that offer tasks.

    Attributes:
        own_tasks: Where tasks are held and run; by default in memory, in this process.
        tasks_extension: The generated facts of the extension.
    """

    own_tasks: Tasks | None = None
    tasks_extension: ClassVar[Extension]
    context: ClassVar[Any]  # generated classes have narrower ones

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "adds" in vars(cls):
            if ServerEngine in cls.__bases__:
                cls.tasks_extension = vars(cls)["adds"].extension
            return
        for name, own in _HANDLERS.items():
            generated = next(vars(kind)[name] for kind in cls.__mro__ if "adds" in vars(kind) and name in vars(kind))
            if getattr(cls, name) is generated:
                setattr(cls, name, own)

    def tasks_of(self, name: str) -> ToolTask | None:
        """Return how a tool runs as a task; `None` where it never does."""
        call = getattr(self, "call_tool")  # noqa: B009 - a generated stub
        return marked(call, name) or marked(call)

    def wants_tasks(self, params: Any, ctx: Context) -> bool:
        """Tell whether the client of a call has said that it understands tasks."""
        return ctx.extension(self.tasks_extension) is not None

    @asynccontextmanager
    async def extension_lifespan(self) -> AsyncGenerator[None]:
        """Run tasks while the server serves."""
        tasks = self.all_tasks()
        tasks.handlers[self.revision] = self._run
        tasks.changed.append(self._tell)
        try:
            async with super().extension_lifespan(), tasks.serving():
                yield
        finally:
            tasks.changed.remove(self._tell)

    def all_tasks(self) -> Tasks:
        """Return where tasks are held and run."""
        if self.own_tasks is None:
            self.own_tasks = Tasks()
        return self.own_tasks

    def bridged_engines(self, dispatcher: BridgedDispatcher) -> Sequence[BridgedEngine]:
        """Return what serves tasks in another revision: as its core has them, or none at all."""
        found = super().bridged_engines(dispatcher)
        own = self.dispatcher.extended(type(self))
        if not own.is_handled(own.routes[CALL], self):
            return found
        if RESULT not in dispatcher.revision.methods:
            return [*found, WithoutTasks(self, dispatcher)]
        made = CoreTasks(self, dispatcher)
        vars(self).setdefault("_in_core", []).append(made)
        return [*found, made]

    # --- a call becomes a task --------------------------------------------------------------------------------

    def around(self, method: Method, handler: Handle) -> Handle:
        """Return what takes calls: it makes tasks of those that shall be tasks."""
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
            return self.created(await self.begin_task(tool, params, ctx))

        return call

    def created(self, record: TaskRecord) -> Any:
        """Return the result that says that a task was created."""
        return self.tasks_extension.types.CreateTaskResult.model_validate(wire.created(record))

    async def begin_task(self, tool: ToolTask, params: Any, ctx: Context) -> TaskRecord:
        """Create a task for a call, and have it run; raises `TooManyRequests`."""
        limits, identity, made = self.all_tasks().limits, ctx.identity, now()
        info = ctx.peer_info
        record = TaskRecord(
            id=new_id(),
            principal=ctx.origin.principal or "",
            revision=self.revision,
            method=CALL,
            params=jsonrpc.plain(params),
            client={
                "capabilities": dict(ctx.peer_capabilities),
                "info": None if info is None else jsonrpc.plain(info),
            },
            identity=None if identity is None else _identity_out(identity),
            created=made,
            updated=made,
            ttl=limits.lifetime(limits.ttl if tool.ttl is None else tool.ttl),
            poll=max(1, round(1000 * (limits.poll if tool.poll is None else tool.poll))),
            reruns=tool.reruns,
            answers=dict(ctx.answered),
        )
        with _reachable():
            return await self.all_tasks().create(record)

    async def _run(self, record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        """Run the handler of a task: see `Handle`."""
        dispatcher = self.dispatcher.extended(type(self))
        revision = dispatcher.revision
        route = dispatcher.routes[record.method]
        method: Request[Any, Any, Any] = revision.request(record.method)
        call = bound(dispatcher, route, self)
        said = dict(record.params)
        said["_meta"] = {**said.get("_meta", {}), "progressToken": record.id}
        params = jsonrpc.typed_params(method, said)
        agreed = Negotiated(dispatcher)
        agreed.logs_by_default = False
        agreed.declared["client"] = record.client["capabilities"]
        agreed.declared["server"] = declared(self, dispatcher)
        info = record.client.get("info")
        agreed.peer_info = None if info is None else revision.types.Implementation.model_validate(info)
        link = TaskLink(running, record, agreed, self._threads_of(record.principal))
        try:
            while True:
                ctx = self.context(RequestScope(link, link.origin, record.id, agreed), params, TaskQuestions(running))
                answer = await call(params, ctx)
                jsonrpc.check_kind(method, answer, call)
                if not asks_for_input(type(answer)):
                    result: Mapping[str, Any] = jsonrpc.plain(answer)
                    return result
                responses = await running.ask(jsonrpc.plain(answer).get("inputRequests") or {})
                more = {"inputResponses": responses, "requestState": answer.request_state}
                params = jsonrpc.typed_params(method, {**said, **{k: v for k, v in more.items() if v is not None}})
        except CapabilityMissing as error:
            if error.owner != "client":
                raise
            raise lacking(revision, error.capability[1:]) from None

    def _threads_of(self, principal: str) -> CapacityLimiter:
        """Return the threads for tasks of a principal whose handlers block."""
        held: WeakValueDictionary[str, CapacityLimiter] = vars(self).setdefault("_threads", WeakValueDictionary())
        found = held.get(principal)
        if found is None:
            found = held[principal] = CapacityLimiter(_THREADS)
        return found

    # --- what clients ask of tasks ----------------------------------------------------------------------------

    async def find_task(self, id: str, ctx: Context) -> TaskRecord:
        """Return a task of whoever sends a request, if their token still allows what it does.

        Raises:
            UnknownTask: They have no such task.
            InsufficientScope: Their token lacks what the request of the task needs.
            ProtocolError: The store is away.
        """
        with _reachable():
            record = await self.all_tasks().read(id, ctx.origin.principal or "")
        if self.authorize is not None:
            self.authorize(ctx.identity, record.revision, self._operations(record))
        return record

    def may_see(self, record: TaskRecord, identity: Identity | None) -> bool:
        """Tell whether a token allows what a task does, so that its client may be told of it."""
        return self.allows is None or self.allows(identity, record.revision, self._operations(record))

    def _operations(self, record: TaskRecord) -> Sequence[Operation]:
        return operations(self.dispatcher.revision.request(record.method), record.params)

    def check_answers(self, record: TaskRecord, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers to what a task has asked; raises `InvalidParams` for one that is none to its question."""
        found: dict[str, Any] = {}
        for key, answer in answers.items():
            if key in record.asked and key not in record.answers:
                method = self.dispatcher.revision.request(record.asked[key]["method"])
                try:
                    found[key] = jsonrpc.plain(jsonrpc.typed_result(method, answer))
                except ProtocolError as error:
                    problem = {"path": f"params.inputResponses.{key}", "problem": error.message}
                    raise InvalidParams(UPDATE, [problem]) from None
        return found

    # --- who listens ------------------------------------------------------------------------------------------

    async def agree(self, wanted: Any, ctx: Context) -> Any:
        """Leave out of a subscription the tasks that whoever asks for it does not have."""
        found = super().agree(wanted, ctx)
        agreed = await found if inspect.isawaitable(found) else found
        ids = getattr(agreed, self._member, None)
        if not ids:
            return agreed
        most = self.all_tasks().limits.followed
        if len(ids) > most:
            problem = {
                "path": "params.notifications.taskIds",
                "problem": f"at most {most} tasks can be followed at once",
            }
            raise InvalidParams(LISTEN, [problem])
        mine = [id for id in dict.fromkeys(ids) if await self._has(id, ctx)]
        return agreed.model_copy(update={self._member: mine})

    async def _has(self, id: str, ctx: Context) -> bool:
        try:
            await self.find_task(id, ctx)
        except UnknownTask:
            return False
        return True

    @property
    def _member(self) -> str:
        """The member of a filter with the ids of tasks."""
        notification: Any = self.tasks_extension.methods[CHANGED]
        member: str = notification.filter.member
        return member

    async def _tell(self, id: str | None) -> None:
        """Tell those who listen to a task what it is now; `None` for all tasks that anybody listens to."""
        for link in [one for one in audience(self) if isinstance(one, Subscription) and one.ready]:
            if id is None:
                self._news.add(link, getattr(link.agreed, self._member, None) or ())
            elif link.follows(self._member, id):
                self._news.add(link, [id])
        in_core: Sequence[CoreTasks] = vars(self).get("_in_core", ())
        for made in in_core:
            await made.tell(id)

    def begin_subscription(self, link: Subscription) -> None:
        """Tell a client that begins to listen what its tasks are now, after the acknowledgement."""
        super().begin_subscription(link)
        self._news.add(link, getattr(link.agreed, self._member, None) or ())

    @property
    def _news(self) -> News:
        """What those who listen are to be told."""
        found: News = vars(self).setdefault("_untold", News(self.all_tasks().soon, self._tell_one))
        return found

    async def _tell_one(self, link: Subscription, id: str) -> None:
        notification: Notification[Any] = self.tasks_extension.methods[CHANGED]  # type: ignore[assignment]
        if not link.ready:
            return
        try:
            record = await self.all_tasks().read(id, link.origin.principal or "")
            told = _told(link)
            if told.get(id) != record.version:
                told[id] = record.version
                await link.notify(notification, jsonrpc.typed_params(notification, wire.detailed(record)))
                await link.drained()  # results may be large: one at a time
        except (UnknownTask, StoreUnavailable, ConnectionClosed):
            log.debug("a change of a task is not told")
        except Exception:
            log.exception("a change of a task could not be told")


def _told(link: Subscription) -> dict[str, int]:
    """Return the versions of tasks that a client who listens was told of."""
    found: dict[str, int] = vars(link).setdefault("tasks_told", {})
    return found


# --- handlers that take the place of generated stubs ----------------------------------------------------------


async def _get(self: ServerEngine, params: Any, ctx: Context) -> Any:
    """Return a task as it is now."""
    return wire.detailed(await self.find_task(params.task_id, ctx))


async def _update(self: ServerEngine, params: Any, ctx: Context) -> Any:
    """Take answers of the client to what a task has asked."""
    record = await self.find_task(params.task_id, ctx)
    answers = self.check_answers(record, jsonrpc.plain(params).get("inputResponses") or {})
    with _reachable():
        await self.all_tasks().update(record.id, record.principal, answers)
    return {}


async def _cancel(self: ServerEngine, params: Any, ctx: Context) -> Any:
    """End a task, unless it is over."""
    record = await self.find_task(params.task_id, ctx)
    with _reachable():
        await self.all_tasks().cancel(record.id, record.principal)
    return {}


_HANDLERS: Mapping[str, Callable[..., Any]] = {"get_task": _get, "update_task": _update, "cancel_task": _cancel}


# --- what the handler of a task has of its client -------------------------------------------------------------


class TaskLink(Link):
    """The way to the client of a task: it is told of progress in the status, and asked by way of the record.

    Args:
        running: The task.
        record: What is known of it.
        agreed: What its request may count on.
        threads: See below.

    Attributes:
        origin: Origin of the request for the task, as far as it was stored.
        negotiated: What its request may count on.
    """

    def __init__(self, running: RunningTask, record: TaskRecord, agreed: Negotiated, threads: CapacityLimiter) -> None:
        identity = None if record.identity is None else _identity_in(record.identity)
        self.origin = RequestOrigin(identity, record.principal or None)
        self.negotiated: Negotiated = agreed
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
        """Tell of progress in the status of the task; log messages and all else are not sent for tasks."""
        if method is self.negotiated.dispatcher.revision.progress:
            total = "" if params.total is None else f" of {params.total:g}"
            await self._running.tell(getattr(params, "message", None) or f"{params.progress:g}{total}")


class TaskQuestions(Questions):
    """The questions of a task while it runs.

    Args:
        running: The task.
    """

    def __init__(self, running: RunningTask) -> None:
        super().__init__({})
        self._running = running

    async def ask(self, key: str, method: Request[Any, Any, Any], params: Any) -> Any:
        """Return the answer to a question, once the client has given it."""
        question: dict[str, Any] = {"method": method.name}
        if params is not None:
            question["params"] = jsonrpc.plain(params)
        self.used |= await self._running.ask({key: question})
        return jsonrpc.typed_result(method, self.used[key])


@contextmanager
def _reachable() -> Generator[None]:
    """Tell a client that the store of tasks is away."""
    try:
        yield
    except StoreUnavailable:
        raise ProtocolError(INTERNAL_ERROR, "Tasks cannot be reached at the moment; try again later") from None


def _identity_out(identity: Identity) -> dict[str, Any]:
    """Return who somebody is, as JSON; the token is not part of it."""
    return {
        "issuer": identity.issuer,
        "subject": identity.subject,
        "client": identity.client,
        "scopes": sorted(identity.scopes),
        "claims": dict(identity.claims),
        "expires": identity.expires,
    }


def _identity_in(wire: Mapping[str, Any]) -> Identity:
    members: dict[str, Any] = {**wire, "scopes": frozenset(wire["scopes"])}
    return Identity(**members)
