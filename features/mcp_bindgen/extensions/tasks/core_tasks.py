"""Tasks for clients of a revision that has tasks in its core (MCP 2025-11-25, "Tasks").

There the client decides which calls become tasks, and it is asked questions while it waits for a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.era.sides import Handle
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CapabilityMissing,
    ConnectionClosed,
    ProtocolError,
    SessionRequired,
    UnexpectedAnswer,
)
from mcp_bindgen.runtime.protocol.methods import Notification
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.session import Session

from .record import TaskRecord
from .service import StatusSender, Tasks, UnknownTask
from .store import PAGE_SIZE
from .tools import ToolTask

CALL, LIST_TOOLS = "tools/call", "tools/list"
GET, RESULT, LIST, CANCEL = "tasks/get", "tasks/result", "tasks/list", "tasks/cancel"
STATUS = "notifications/tasks/status"
RELATED = "io.modelcontextprotocol/related-task"

_MAX_TTL_MS = 10**15
_MAX_OWN_TASKS = 1000  # newest tasks of a session that it may list and is notified of


class TaskServer(Protocol):
    """A server that offers tasks; `ServerEngine` is one."""

    dispatcher: ClassVar[Dispatcher]

    def all_tasks(self) -> Tasks:
        """Return the tasks of the server, for all revisions and principals."""
        ...

    def tasks_of(self, name: str) -> ToolTask | None:
        """Return the task options of a tool; `None` if the tool never runs as a task."""
        ...

    async def begin_task(self, tool: ToolTask, params: Any, ctx: Context) -> TaskRecord:
        """Create a task for a call, and submit it."""
        ...

    async def find_task(self, id: str, ctx: Context) -> TaskRecord:
        """Return a task of the client that sends a request; raises `UnknownTask`."""
        ...

    def may_see(self, record: TaskRecord, identity: Identity | None) -> bool:
        """Return True if an identity has the scopes that the request of a task needs."""
        ...


class RevisionAdapter(Protocol):
    """Conversion between a revision on the wire and the revision of a server; `BridgedDispatcher` is one."""

    revision: Revision

    def plain(self, name: str) -> Handle:
        """Return the server's handler of a request, for params and results of the revision on the wire."""
        ...

    def raised(self, name: str, params: Any, ctx: Any) -> Any:
        """Convert params to the server's revision."""
        ...

    def lowered(self, name: str, work: Handle) -> Handle:
        """Convert the results of a handler to the revision on the wire."""
        ...


class ForeignTasks(Protocol):
    """Handlers of tasks for a revision without the extension.

    Attributes:
        handlers: Method name -> handler, for params and results of that revision.
        capabilities: Capabilities beside those that follow from the handlers.
    """

    handlers: Mapping[str, Handle]
    capabilities: Mapping[str, Any]


@dataclass
class _Handlers:
    handlers: Mapping[str, Handle]
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])


def hidden_tools(server: TaskServer, adapter: RevisionAdapter) -> ForeignTasks:
    """Return the handlers for a revision without tasks; they hide the tools that run only as tasks."""

    def shown(tool: dict[str, Any], options: ToolTask) -> dict[str, Any] | None:
        return None if options.support == "required" else tool

    return _Handlers({LIST_TOOLS: _tool_list(adapter, server, shown)})


def _tool_list(
    adapter: RevisionAdapter, server: TaskServer, shown: Callable[[dict[str, Any], ToolTask], dict[str, Any] | None]
) -> Handle:
    """Return the handler of `tools/list`; `shown` changes or hides the entry of a tool with task options."""
    own = cache(lambda: adapter.plain(LIST_TOOLS))  # not before the routes of the adapter exist

    async def list_tools(params: Any, ctx: Context) -> Any:
        listed = jsonrpc.plain(await own()(params, ctx))
        found = [(tool, server.tasks_of(tool["name"])) for tool in listed["tools"]]
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


class CoreTasks:
    """The tasks of a server for clients of another revision: see `ForeignTasks`.

    Args:
        server: The server.
        adapter: Conversion between that revision and the server's.
    """

    def __init__(self, server: TaskServer, adapter: RevisionAdapter) -> None:
        self._server = server
        self._adapter = adapter
        self._revision = adapter.revision
        self._home = server.dispatcher.revision
        self._own: WeakKeyDictionary[Session, dict[str, None]] = WeakKeyDictionary()  # session -> ids of its tasks
        self._asking = set[tuple[str, str]]()
        self._sessions = StatusSender(server.all_tasks(), self._send)
        self.capabilities: Mapping[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}}
        self.handlers: Mapping[str, Handle] = {
            CALL: self.call_tool,
            LIST_TOOLS: _tool_list(adapter, server, _with_support),
            GET: self.get_task,
            RESULT: self.result_of,
            LIST: self.list_tasks,
            CANCEL: self.cancel_task,
        }

    @cached_property
    def _call(self) -> Handle:
        return self._adapter.plain(CALL)

    @cached_property
    def _outcome(self) -> Handle:
        return self._adapter.lowered(CALL, self._read_outcome)

    def _typed(self, name: str, wire: Mapping[str, Any]) -> Any:
        return jsonrpc.typed_result(self._revision.request(name), wire)

    # --- calls ------------------------------------------------------------------------------------------------

    async def call_tool(self, params: Any, ctx: Context) -> Any:
        """Call a tool, or create a task for the call.

        Raises:
            ProtocolError: -32601, the tool runs only as a task, or never.
        """
        tool, wanted = self._server.tasks_of(params.name), params.task
        if wanted is None:
            if tool is not None and tool.support == "required":
                raise ProtocolError(METHOD_NOT_FOUND, f"the tool {params.name!r} runs only as a task")
            return await self._call(params, ctx)
        if tool is None:
            raise ProtocolError(METHOD_NOT_FOUND, f"the tool {params.name!r} does not run as a task")
        if wanted.ttl is not None:
            tool = replace(tool, ttl=min(wanted.ttl, _MAX_TTL_MS) / 1000)
        converted = self._adapter.raised(CALL, params.model_copy(update={"task": None}), ctx)
        record = await self._server.begin_task(tool, converted, ctx)
        if isinstance(ctx.link, Session):
            own = self._own.setdefault(ctx.link, {})
            own[record.id] = None
            if len(own) > _MAX_OWN_TASKS:
                del own[next(iter(own))]
        return self._revision.types.CreateTaskResult.model_validate({"task": task(record)})

    # --- requests about tasks ---------------------------------------------------------------------------------

    async def get_task(self, params: Any, ctx: Context) -> Any:
        """Return the current state of a task."""
        return self._typed(GET, task(await self._server.find_task(params.task_id, ctx)))

    async def list_tasks(self, params: Any, ctx: Context) -> Any:
        """List the tasks of a principal that its token allows; without tokens, the tasks of this connection."""
        cursor = None if params is None else params.cursor
        try:
            found = await (self._page(ctx.identity, cursor) if ctx.identity else self._own_page(ctx, cursor))
        except UnknownTask:
            raise ProtocolError(INVALID_PARAMS, "unknown cursor") from None
        more = {"nextCursor": found[-1].id} if len(found) == PAGE_SIZE else {}
        return self._typed(LIST, {"tasks": list(map(task, found)), **more})

    async def _page(self, identity: Identity, cursor: str | None) -> list[TaskRecord]:
        """Return the next `PAGE_SIZE` tasks that a token allows, or fewer at the end of the list."""
        allowed: list[TaskRecord] = []
        while len(allowed) < PAGE_SIZE and (found := await self._server.all_tasks().page(identity.principal, cursor)):
            allowed += (record for record in found if self._server.may_see(record, identity))
            cursor = found[-1].id
        return allowed[:PAGE_SIZE]

    async def _own_page(self, ctx: Context, cursor: str | None) -> list[TaskRecord]:
        """Return the next `PAGE_SIZE` tasks of a connection; raise `UnknownTask` for an unknown cursor."""
        ids = list(self._own.get(ctx.link, {})) if isinstance(ctx.link, Session) else []
        if cursor is not None and cursor not in ids:
            raise UnknownTask
        found: list[TaskRecord] = []
        for id in ids[0 if cursor is None else ids.index(cursor) + 1 :]:
            with suppress(UnknownTask):
                found.append(await self._server.find_task(id, ctx))
            if len(found) == PAGE_SIZE:
                break
        return found

    async def cancel_task(self, params: Any, ctx: Context) -> Any:
        """Cancel a task; raise `ProtocolError` (-32602) if it is over."""
        record = await self._server.find_task(params.task_id, ctx)
        ended = record if record.is_over else await self._server.all_tasks().cancel(record.id, record.principal)
        if record.is_over or ended.status != "cancelled":
            raise ProtocolError(INVALID_PARAMS, f"the task is over: {task(ended)['status']}")
        return self._typed(CANCEL, task(ended))

    # --- results ----------------------------------------------------------------------------------------------

    async def result_of(self, params: Any, ctx: Context) -> Any:
        """Wait until a task is over, ask the client its questions meanwhile, and return its result."""
        record = await self._server.find_task(params.task_id, ctx)
        asked = set[str]()
        async with background_tasks() as group, aclosing(self._server.all_tasks().versions(record.id)) as versions:
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
            raise ProtocolError(INTERNAL_ERROR, "The task was cancelled")
        return jsonrpc.typed_result(self._home.request(record.method), record.result)

    async def _ask(self, record: TaskRecord, key: str, ctx: Context) -> None:
        """Ask the client a question of a task, once at a time; the task fails if the client does not answer."""
        if (record.id, key) in self._asking:
            return
        self._asking.add((record.id, key))
        tasks, question = self._server.all_tasks(), record.asked[key]
        method = self._home.request(question["method"])
        try:
            if key not in (await tasks.read(record.id, record.principal)).open:  # answered in the meantime
                return
            params = jsonrpc.typed_params(method, _related(question.get("params", {}), record))
            answer = await ctx.request(method, params)
            await tasks.update(record.id, record.principal, {key: jsonrpc.plain(answer)})
        except (ConnectionClosed, SessionRequired):
            raise
        except (CapabilityMissing, ProtocolError, UnexpectedAnswer) as error:
            log.info("a question of a task was not answered: %s", error)
            code = error.code if isinstance(error, ProtocolError) else INTERNAL_ERROR
            message = f"the client did not answer {method.name}: {error}"
            await tasks.change(record, TaskRecord.failed, code, message)
        finally:
            self._asking.discard((record.id, key))

    # --- notifications ----------------------------------------------------------------------------------------

    def notify(self, id: str | None) -> None:
        """Notify the sessions that have created a task of its change; `None` stands for all tasks."""
        for session, own in self._own.items():
            self._sessions.add(session, own if id is None else [id] if id in own else ())

    async def _send(self, session: Session, record: TaskRecord) -> None:
        method: Notification[Any] = self._revision.methods[STATUS]  # type: ignore[assignment]
        if self._server.may_see(record, session.origin.identity):
            await session.notify(method, jsonrpc.typed_params(method, task(record)))


def _with_support(tool: dict[str, Any], options: ToolTask) -> dict[str, Any]:
    return {**tool, "execution": {**tool.get("execution", {}), "taskSupport": options.support}}


def _related(wire: Mapping[str, Any], record: TaskRecord) -> dict[str, Any]:
    """Return params or a result with the id of the task in its `_meta`."""
    return {**wire, "_meta": {**wire.get("_meta", {}), RELATED: {"taskId": record.id}}}
