"""Server engine of tasks: turns calls into tasks, answers requests about tasks and notifies subscribers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from anyio import CapacityLimiter, Lock

from mcp_bindgen.extension_abi import Extension, ExtensionRoutes
from mcp_bindgen.http.server.access import operations
from mcp_bindgen.runtime.concurrency import background_tasks, resolved
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import optional
from mcp_bindgen.runtime.protocol import errors, jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity, Operation, RequestOrigin
from mcp_bindgen.runtime.protocol.bridging import BridgedEngine
from mcp_bindgen.runtime.protocol.capabilities import declared
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import CapabilityMissing, InvalidParams, ProtocolError
from mcp_bindgen.runtime.protocol.methods import LISTEN, Method, Notification, RequestMethod
from mcp_bindgen.runtime.protocol.request_scope import Link, Negotiated, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher
from mcp_bindgen.runtime.protocol.routing import UserHandler
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.rounds import Questions, settle_rounds
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.runtime.session.stateless_server import missing_client_capability
from mcp_bindgen.runtime.session.subscriptions import Subscription

from .record import TaskClient, TaskRecord, new_id, now
from .service import RunningTask, StatusSender, Tasks, UnknownTask
from .store import PAGE_SIZE
from .tools import ToolTask, deferred, marked

if TYPE_CHECKING:
    from mcp_bindgen.bridging.server import BridgedDispatcher

CALL, LIST_TOOLS = "tools/call", "tools/list"
GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
RESULT, LIST = "tasks/result", "tasks/list"  # in the core of MCP 2025-11-25
CHANGED, STATUS = "notifications/tasks", "notifications/tasks/status"  # of the extension, and of that core
RELATED = "io.modelcontextprotocol/related-task"

_MAX_TTL_MS = 10**15
_MAX_OWN_TASKS = 1000  # newest tasks of a session that it is notified of

_THREADS_PER_PRINCIPAL = 32  # for handlers of tasks that block


def _session_of(ctx: Context) -> str | None:
    """Return the hash of the id of an HTTP session, which any worker may serve; `None` without one."""
    id = ctx.origin.headers.get("mcp-session-id") if isinstance(ctx.link, Session) else None
    return None if id is None else sha256(id.strip().encode()).hexdigest()


class TaskParams(Protocol):
    """Params of a request about a task."""

    task_id: str


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

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if ServerEngine in cls.__bases__:  # the generated class
            cls.tasks_extension = cls.adds.extension
            cls._stubs = {name: getattr(cls, name) for name in _HANDLERS}
            return
        for name, handler in _HANDLERS.items():
            if getattr(cls, name) is cls._stubs[name]:
                setattr(cls, name, handler)

    def tasks_of(self, name: str, ctx: Context) -> ToolTask | None:
        """Return the task options of a tool; `None` if it never runs as a task, or not for the sender of a request."""
        call = getattr(self, "call_tool")  # noqa: B009 - a generated stub
        return marked(call, name) or marked(call)

    @asynccontextmanager
    async def extension_lifespan(self) -> AsyncGenerator[None]:
        """Run tasks while the server serves."""
        tasks = self.all_tasks
        former = tasks.handlers.get(self.revision)
        tasks.handlers[self.revision] = self._run
        try:
            async with super().extension_lifespan(), tasks.serving():
                yield
        finally:
            if former is not None and tasks.handlers[self.revision] == self._run:
                tasks.handlers[self.revision] = former

    @cached_property
    def all_tasks(self) -> Tasks:
        """The tasks of the server, for all revisions and principals."""
        self.own_tasks = self.own_tasks or Tasks()
        return self.own_tasks

    def bridged_engines(self, bridge: BridgedDispatcher) -> Sequence[BridgedEngine]:
        """Return the handlers of tasks for another revision: tasks of its core, or none."""
        found = super().bridged_engines(bridge)
        if not self._dispatcher.is_handled(self._dispatcher.routes[CALL], self):
            return found
        if RESULT not in bridge.revision.methods:
            return [*found, BridgedEngine({LIST_TOOLS: _tool_list(bridge, self, _unless_required)})]
        return [*found, CoreTasks(self, bridge)]

    # --- creation ---------------------------------------------------------------------------------------------

    def around(self, method: Method, handler: UserHandler) -> UserHandler:
        """Return the handler of calls, which creates a task for a tool with task options."""
        work = super().around(method, handler)
        if method.name != CALL:
            return work

        async def call(params: Any, ctx: Context) -> Any:
            tool = None if isinstance(ctx.link, TaskLink) else self.tasks_of(params.name, ctx)
            if tool is None:
                return await work(params, ctx)
            if ctx.extension(self.tasks_extension) is None:
                if tool.support == "required":
                    ctx.require_extension(self.tasks_extension)
                return await work(params, ctx)
            if tool.late:
                outcome = await deferred(work(params, ctx))
                if outcome is not None:
                    return outcome
            return (await self.begin_task(tool, params, ctx)).wire(resultType="task")

        return call

    async def begin_task(self, tool: ToolTask, params: object, ctx: Context) -> TaskRecord:
        """Create a task for a call, and submit it; raises `TooManyRequests`."""
        limits, time, info, agreed = self.all_tasks.limits, now(), ctx.peer_info, ctx.agreed
        record = TaskRecord(
            id=new_id(),
            revision=self.revision,
            method=CALL,
            params=jsonrpc.plain(params),
            origin=replace(ctx.origin, headers={}),
            client=TaskClient(None if info is None else info.model_dump(), dict(agreed.declared["client"])),
            session=_session_of(ctx),
            created=time,
            updated=time,
            ttl=limits.ttl_ms(limits.ttl if tool.ttl is None else tool.ttl),
            poll=max(1, round(1000 * (limits.poll if tool.poll is None else tool.poll))),
            reruns=tool.reruns,
            answers=dict(ctx.answered),
        )
        return await self.all_tasks.create(record)

    # --- running ----------------------------------------------------------------------------------------------

    @cached_property
    def _dispatcher(self) -> Dispatcher:
        return self.dispatcher.extended(type(self))

    @cached_property
    def _call(self) -> UserHandler:
        return self._dispatcher.bound(self._dispatcher.routes[CALL], self)

    @cached_property
    def _capabilities(self) -> Mapping[str, Any]:
        return declared(self, self._dispatcher)

    @cached_property
    def _threads(self) -> WeakValueDictionary[str, CapacityLimiter]:
        return WeakValueDictionary()

    async def _run(self, record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        """Run the handler of a task: see `service.UserHandler`."""
        revision = self._dispatcher.revision
        method = revision.request(record.method)
        wire = {**record.params, "_meta": {**record.params.get("_meta", {}), "progressToken": record.id}}
        agreed = Negotiated(self._dispatcher)
        agreed.logs_by_default = False
        agreed.declared = {"client": record.client.capabilities, "server": self._capabilities}
        if record.client.info is not None:
            agreed.peer_info = revision.types.Implementation.model_validate(record.client.info)
        threads = self._threads.setdefault(record.principal, CapacityLimiter(_THREADS_PER_PRINCIPAL))
        link = TaskLink(running, agreed, threads)

        async def run(params: Any) -> Any:
            ctx = self.context(RequestScope(link, link.origin, record.id, agreed), params, TaskQuestions(running))
            answer = await self._call(params, ctx)
            jsonrpc.check_kind(method, answer, self._call)
            return answer

        async def ask(questions: Mapping[str, Any]) -> dict[str, Any]:
            found = await running.ask({key: jsonrpc.plain(one) for key, one in questions.items()})
            return {key: jsonrpc.typed_result(revision.request(questions[key].method), found[key]) for key in found}

        try:
            params = jsonrpc.typed_params(method, wire)
            result: dict[str, Any] = jsonrpc.plain(await settle_rounds(method, params, await run(params), ask, run))
            return result
        except CapabilityMissing as error:
            if error.owner != "client":
                raise
            raise missing_client_capability(revision, error.capability[1:]) from None

    # --- requests about tasks ---------------------------------------------------------------------------------

    async def find_task(self, id: str, ctx: Context) -> TaskRecord:
        """Return a task of the client that sends a request.

        Raises:
            UnknownTask: The client has no such task.
            InsufficientScope: The token lacks a scope that the request of the task needs.
            StoreUnavailable: The task store is unreachable.
        """
        record = await self.all_tasks.read(id, ctx.origin.principal or "")
        ctx.link.endpoint.authorize(ctx.identity, record.revision, self._operations(record))
        if not self.may_see(record, ctx.link, ctx.identity):  # the server hides the tool from the token
            raise UnknownTask
        return record

    def may_see(self, record: TaskRecord, link: Link, identity: Identity | None) -> bool:
        """Return True if an identity has the scopes that the endpoint of a link asks for the request of a task."""
        return link.endpoint.allows(identity, record.revision, self._operations(record))

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
        """Return the filter of a subscription without the tasks that its client does not have.

        Raises:
            InvalidParams: It names more tasks than `TaskLimits.max_followed`.
        """
        agreed = await resolved(super().agree(wanted, ctx))
        ids = _followed(agreed)
        if not ids:
            return agreed
        limit = self.all_tasks.limits.max_followed
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
        """Notify subscribers that a task has changed; `None` stands for all tasks."""
        for link in self.audience:
            if isinstance(link, Subscription) and (ids := _followed(link.agreed)):
                self._subscribers.add(link, ids if id is None else [id] if link.follows(_FILTER, id) else ())

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

        self.all_tasks.observers.append(self._notify)
        return StatusSender(self.all_tasks, send)


_FILTER = "task_ids"
"""Field of a subscription filter with the ids of tasks; only revisions with the extension have it."""


def _followed(agreed: object) -> Sequence[str]:
    """Return the ids of the tasks in a subscription filter."""
    return optional(agreed, _FILTER) or ()


# --- handlers that replace generated stubs --------------------------------------------------------------------


async def _get(self: ServerEngine, params: TaskParams, ctx: Context) -> Any:
    """Return the current state of a task."""
    return (await self.find_task(params.task_id, ctx)).detailed()


async def _update(self: ServerEngine, params: TaskParams, ctx: Context) -> Any:
    """Store answers of the client."""
    record = await self.find_task(params.task_id, ctx)
    answers = self.check_answers(record, jsonrpc.plain(params).get("inputResponses") or {})
    await self.all_tasks.update(record.id, record.principal, answers)
    return {}


async def _cancel(self: ServerEngine, params: TaskParams, ctx: Context) -> Any:
    """Cancel a task that is not over."""
    record = await self.find_task(params.task_id, ctx)
    await self.all_tasks.cancel(record.id, record.principal)
    return {}


_HANDLERS: Mapping[str, Callable[..., Any]] = {"get_task": _get, "update_task": _update, "cancel_task": _cancel}


# --- other revisions ------------------------------------------------------------------------------------------


def _tool_list(
    adapter: BridgedDispatcher, server: ServerEngine, shown: Callable[[dict[str, Any], ToolTask], dict[str, Any] | None]
) -> UserHandler:
    """Return the handler of `tools/list`; `shown` changes or hides the entry of a tool with task options."""
    own = cache(lambda: adapter.plain(LIST_TOOLS))  # not before the routes of the adapter exist

    async def list_tools(params: Any, ctx: Context) -> Any:
        listed = jsonrpc.plain(await own()(params, ctx))
        found = [(tool, server.tasks_of(tool["name"], ctx)) for tool in listed["tools"]]
        entries = (tool if options is None else shown(tool, options) for tool, options in found)
        tools = [tool for tool in entries if tool is not None]
        return jsonrpc.typed_result(adapter.revision.request(LIST_TOOLS), {**listed, "tools": tools})

    return list_tools


def task(record: TaskRecord) -> dict[str, Any]:
    """Return a task in wire form; the status of a result with `isError` is `failed` in this revision."""
    wire = record.wire()
    wire["ttl"], wire["pollInterval"] = wire.pop("ttlMs"), wire.pop("pollIntervalMs")
    if record.result is not None and record.result.get("isError"):
        wire = {"statusMessage": "the tool failed", **wire, "status": "failed"}
    return wire


class CoreTasks(BridgedEngine):
    """The tasks of a server for clients of a revision that has tasks in its core (MCP 2025-11-25, "Tasks").

    There the client decides which calls become tasks, and it is asked questions while it waits for a result.

    Args:
        server: The server.
        adapter: Conversion between that revision and the server's.
    """

    def __init__(self, server: ServerEngine, adapter: BridgedDispatcher) -> None:
        self._server, self._adapter = server, adapter
        self._revision = adapter.revision
        self._home = server.dispatcher.revision
        self._own: WeakKeyDictionary[Session, dict[str, None]] = WeakKeyDictionary()  # session -> ids of its tasks
        self._asking: WeakValueDictionary[tuple[str, str], Lock] = WeakValueDictionary()  # task and key of a question
        self._sessions = StatusSender(server.all_tasks, self._send)
        handlers: Mapping[str, UserHandler] = {
            CALL: self.call_tool,
            LIST_TOOLS: _tool_list(adapter, server, _with_support),
            GET: self.get_task,
            RESULT: self.result_of,
            LIST: self.list_tasks,
            CANCEL: self.cancel_task,
        }
        server.all_tasks.observers.append(self.notify)
        super().__init__(handlers, {"tasks": {"requests": {"tools": {"call": {}}}}})

    @cached_property
    def _call(self) -> UserHandler:
        return self._adapter.plain(CALL)

    @cached_property
    def _outcome(self) -> UserHandler:
        return self._adapter.to_wire(CALL, self._read_outcome)

    def _typed(self, name: str, wire: Mapping[str, Any]) -> Any:
        return jsonrpc.typed_result(self._revision.request(name), wire)

    # --- calls ------------------------------------------------------------------------------------------------

    async def call_tool(self, params: Any, ctx: Context) -> Any:
        """Call a tool, or create a task for the call.

        Raises:
            ProtocolError: -32601, the tool runs only as a task, or never.
        """
        tool, wanted = self._server.tasks_of(params.name, ctx), params.task
        if wanted is None:
            if tool is not None and tool.support == "required":
                raise ProtocolError(errors.METHOD_NOT_FOUND, f"the tool {params.name!r} runs only as a task")
            return await self._call(params, ctx)
        if tool is None:
            raise ProtocolError(errors.METHOD_NOT_FOUND, f"the tool {params.name!r} does not run as a task")
        if wanted.ttl is not None:
            tool = replace(tool, ttl=min(wanted.ttl, _MAX_TTL_MS) / 1000)
        converted = self._adapter.to_server(CALL, params.model_copy(update={"task": None}), ctx)
        record = await self._server.begin_task(tool, converted, ctx)
        if isinstance(ctx.link, Session):
            own = self._own.setdefault(ctx.link, {})
            own[record.id] = None
            if len(own) > _MAX_OWN_TASKS:
                del own[next(iter(own))]
        return self._revision.types.CreateTaskResult.model_validate({"task": task(record)})

    # --- requests about tasks ---------------------------------------------------------------------------------

    async def get_task(self, params: TaskParams, ctx: Context) -> Any:
        """Return the current state of a task."""
        return self._typed(GET, task(await self._server.find_task(params.task_id, ctx)))

    async def list_tasks(self, params: Any, ctx: Context) -> Any:
        """List the tasks of a principal that its token allows; without tokens, the tasks of this session."""
        try:
            found = await self._page(ctx, None if params is None else params.cursor)
        except UnknownTask:
            raise ProtocolError(errors.INVALID_PARAMS, "unknown cursor") from None
        more = {"nextCursor": found[-1].id} if len(found) == PAGE_SIZE else {}
        return self._typed(LIST, {"tasks": list(map(task, found)), **more})

    async def _page(self, ctx: Context, cursor: str | None) -> list[TaskRecord]:
        """Return the next tasks that a client may list, at most `PAGE_SIZE`; raise `UnknownTask` for other cursors."""
        principal, tasks, identity = ctx.origin.principal or "", self._server.all_tasks, ctx.identity
        own = self._own.get(ctx.link, {}) if isinstance(ctx.link, Session) else {}
        session = _session_of(ctx) or ""

        def is_own(record: TaskRecord) -> bool:
            return identity is not None or record.id in own or record.session == session

        if cursor is not None and not is_own(await tasks.read(cursor, principal)):
            raise UnknownTask
        allowed: list[TaskRecord] = []
        while len(allowed) < PAGE_SIZE and (found := await tasks.page(principal, cursor)):
            allowed += (one for one in filter(is_own, found) if self._server.may_see(one, ctx.link, identity))
            cursor = found[-1].id
        return allowed[:PAGE_SIZE]

    async def cancel_task(self, params: TaskParams, ctx: Context) -> Any:
        """Cancel a task; raise `ProtocolError` (-32602) if it is over."""
        record = await self._server.find_task(params.task_id, ctx)
        ended = record if record.is_over else await self._server.all_tasks.cancel(record.id, record.principal)
        if record.is_over or ended.status != "cancelled":
            raise ProtocolError(errors.INVALID_PARAMS, f"the task is over: {task(ended)['status']}")
        return self._typed(CANCEL, task(ended))

    # --- results ----------------------------------------------------------------------------------------------

    async def result_of(self, params: TaskParams, ctx: Context) -> Any:
        """Wait until a task is over, ask the client its questions meanwhile, and return its result."""
        record = await self._server.find_task(params.task_id, ctx)
        asked = set[str]()
        async with background_tasks() as group, aclosing(self._server.all_tasks.versions(record.id)) as versions:
            async for record in versions:
                for key in set(record.open) - asked:
                    asked.add(key)
                    group.start_soon(self._ask, record, key, ctx)
        if not record.is_over:
            raise UnknownTask
        wire = jsonrpc.plain(await self._outcome(record, ctx))
        return self._typed(RESULT, _related(wire, record))

    async def _read_outcome(self, record: TaskRecord, ctx: Context) -> Any:
        """Return the result of a task that is over, in the server's revision; raise its error as `ProtocolError`."""
        if record.error is not None:
            raise ProtocolError(record.error["code"], record.error["message"], record.error.get("data"))
        if record.result is None:
            raise ProtocolError(errors.INTERNAL_ERROR, "The task was cancelled")
        return jsonrpc.typed_result(self._home.request(record.method), record.result)

    async def _ask(self, record: TaskRecord, key: str, ctx: Context) -> None:
        """Ask the client a question of a task, once at a time; the task fails if the client does not answer."""
        tasks, question = self._server.all_tasks, record.asked[key]
        method = self._home.request(question["method"])
        try:
            async with self._asking.setdefault((record.id, key), Lock()):
                if key not in (await tasks.read(record.id, record.principal)).open:  # answered in the meantime
                    return
                params = jsonrpc.typed_params(method, _related(question.get("params", {}), record))
                answer = await ctx.request(method, params)
                await tasks.update(record.id, record.principal, {key: jsonrpc.plain(answer)})
        except (errors.ConnectionClosed, errors.SessionRequired, errors.StoreUnavailable):
            raise
        except (CapabilityMissing, ProtocolError, errors.UnexpectedAnswer) as error:
            log.info("a question of a task was not answered: %s", error)
            code = error.code if isinstance(error, ProtocolError) else errors.INTERNAL_ERROR
            message = f"the client did not answer {method.name}: {error}"
            await tasks.change(record, TaskRecord.failed, code, message)

    # --- notifications ----------------------------------------------------------------------------------------

    def notify(self, id: str | None) -> None:
        """Notify the sessions that have created a task of its change; `None` stands for all tasks."""
        for session, own in self._own.items():
            self._sessions.add(session, own if id is None else [id] if id in own else ())

    async def _send(self, session: Session, record: TaskRecord) -> None:
        method: Notification[Any] = self._revision.methods[STATUS]  # type: ignore[assignment]
        if self._server.may_see(record, session, session.origin.identity):
            await session.notify(method, jsonrpc.typed_params(method, task(record)))


def _unless_required(tool: dict[str, Any], options: ToolTask) -> dict[str, Any] | None:
    """Return the entry of a tool in a revision without tasks; None if the tool runs only as a task."""
    return None if options.support == "required" else tool


def _with_support(tool: dict[str, Any], options: ToolTask) -> dict[str, Any]:
    return {**tool, "execution": {**tool.get("execution", {}), "taskSupport": options.support}}


def _related(wire: Mapping[str, Any], record: TaskRecord) -> dict[str, Any]:
    """Return params or a result with the id of the task in its `_meta`."""
    return {**wire, "_meta": {**wire.get("_meta", {}), RELATED: {"taskId": record.id}}}


# --- the client, as the handler of a task sees it -------------------------------------------------------------


class TaskLink(Link):
    """Link from the handler of a task to its client: questions and progress go through the record.

    Args:
        running: The run.
        negotiated: What the request may rely on.
        threads: Limits the threads for blocking handlers of the principal.
    """

    def __init__(self, running: RunningTask, negotiated: Negotiated, threads: CapacityLimiter) -> None:
        self.origin: RequestOrigin = running.record.origin
        self.negotiated = negotiated
        self._progress = negotiated.dispatcher.revision.progress
        self._threads, self._running = threads, running

    def thread_limit(self) -> CapacityLimiter:
        """Return the limit of threads for blocking handlers of the principal."""
        return self._threads

    @cached_property
    def _questions(self) -> TaskQuestions:
        return TaskQuestions(self._running)

    async def request(
        self, method: RequestMethod[Any, Any, Any], params: object, *, related: RequestId | None = None
    ) -> Any:
        """Ask the client, and wait for the answer."""
        return await self._questions.ask(self._questions.next_key(method.name), method, params)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Store progress as the status message of the task; drop all other notifications."""
        if method is self._progress:
            total = "" if params.total is None else f" of {params.total:g}"
            await self._running.report(params.message or f"{params.progress:g}{total}")


class TaskQuestions(Questions):
    """Questions of a handler that runs as a task; the handler waits for each answer.

    Args:
        running: The run.
    """

    def __init__(self, running: RunningTask) -> None:
        super().__init__({}, round=running.record.runs)
        self._running = running

    async def ask(self, key: str, method: RequestMethod[Any, Any, Any], params: object) -> Any:
        """Return the answer of the client to a question."""
        question = {"method": method.name} | ({} if params is None else {"params": jsonrpc.plain(params)})
        self.used.update(await self._running.ask({key: question}))
        return jsonrpc.typed_result(method, self.used[key])
