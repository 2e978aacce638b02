"""Serve tasks to clients of a revision that has them in its core (MCP 2025-11-25, "Tasks").

There the client says of which calls it wants tasks, and waits for their results, which is also when it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import cached_property, partial
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
    StoreUnavailable,
    UnexpectedAnswer,
)
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision

from .change_listeners import News
from .record import TaskRecord
from .service import Tasks, UnknownTask
from .store.base import MOST
from .tools import ToolTask
from .wire import time_of

CALL, LIST_TOOLS = "tools/call", "tools/list"
GET, RESULT, LIST, CANCEL = "tasks/get", "tasks/result", "tasks/list", "tasks/cancel"
STATUS = "notifications/tasks/status"
RELATED = "io.modelcontextprotocol/related-task"

_FOR_EVER = 10**15  # milliseconds
_MOST_REMEMBERED = 1000  # tasks of a session that it is told of, the newest


class Offering(Protocol):
    """A server that offers tasks; `ServerEngine` is one."""

    dispatcher: ClassVar[Dispatcher]

    def all_tasks(self) -> Tasks:
        """Return its tasks, and those of all others."""
        ...

    def tasks_of(self, name: str) -> ToolTask | None:
        """Return how a tool runs as a task; `None` where it never does."""
        ...

    async def begin_task(self, tool: ToolTask, params: Any, ctx: Any) -> TaskRecord:
        """Create a task for a call, and have it run."""
        ...

    async def find_task(self, id: str, ctx: Any) -> TaskRecord:
        """Return a task of whoever sends a request; raises `UnknownTask`."""
        ...

    def may_see(self, record: TaskRecord, identity: Identity | None) -> bool:
        """Tell whether a token allows what a task does, so that its client may be told of it."""
        ...


class Crossing(Protocol):
    """The way from a revision to the handlers of a server of another one; `BridgedDispatcher` is one."""

    revision: Revision

    def plain(self, name: str) -> Handle:
        """Return the server's handler of a request, for params and results of this revision."""
        ...

    def raised(self, name: str, params: Any, ctx: Any) -> Any:
        """Return params of this revision as those of the server's."""
        ...

    def lowered(self, name: str, work: Handle) -> Handle:
        """Return what gives results of the server's revision as what gives those of this one."""
        ...


def task(record: TaskRecord) -> dict[str, Any]:
    """Return a task in wire form. A result that tells of an error is a failure here."""
    failed = record.status == "completed" and bool((record.result or {}).get("isError"))
    message = record.message or ("the tool failed" if failed else None)
    return {
        "taskId": record.id,
        "status": "failed" if failed else record.status,
        **({} if message is None else {"statusMessage": message}),
        "createdAt": time_of(record.created),
        "lastUpdatedAt": time_of(record.updated),
        "ttl": record.ttl,
        "pollInterval": record.poll,
    }


class CoreTasks:
    """The tasks of a server for the clients of another revision.

    Args:
        server: The server.
        crossing: The way from that revision to its handlers.

    Attributes:
        handlers: Method name -> handler, for params and results of that revision.
        capabilities: What is declared for it, beside what follows from these handlers.
    """

    def __init__(self, server: Offering, crossing: Crossing) -> None:
        self._server = server
        self._crossing = crossing
        self._revision = crossing.revision
        self._home = server.dispatcher.revision
        self._made: WeakKeyDictionary[Any, dict[str, None]] = WeakKeyDictionary()
        self._asking = set[tuple[str, str]]()
        self._news = News(lambda tell: server.all_tasks().soon(tell), self._tell_one)
        self.capabilities: Mapping[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}}
        self.handlers: Mapping[str, Handle] = {
            CALL: self.call_tool,
            LIST_TOOLS: self.list_tools,
            GET: self.get_task,
            RESULT: self.result_of,
            LIST: self.list_tasks,
            CANCEL: self.cancel_task,
        }

    @cached_property
    def _call(self) -> Handle:
        return self._crossing.plain(CALL)

    @cached_property
    def _list(self) -> Handle:
        return self._crossing.plain(LIST_TOOLS)

    @cached_property
    def _outcome(self) -> Handle:
        return self._crossing.lowered(CALL, self._read_outcome)

    def _typed(self, name: str, wire: Mapping[str, Any]) -> Any:
        return jsonrpc.typed_result(self._revision.request(name), wire)

    # --- calls ------------------------------------------------------------------------------------------------

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        """List the tools, and say which of them run as tasks."""
        listed = jsonrpc.plain(await self._list(params, ctx))
        for tool in listed["tools"]:
            known = self._server.tasks_of(tool["name"])
            if known is not None:
                tool["execution"] = {**tool.get("execution", {}), "taskSupport": known.support}
        return self._typed(LIST_TOOLS, listed)

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        """Call a tool, or create a task that does.

        Raises:
            ProtocolError: -32601, the tool runs only as a task, or never as one.
        """
        tool, wanted = self._server.tasks_of(params.name), params.task
        if wanted is None:
            if tool is not None and tool.support == "required":
                raise ProtocolError(METHOD_NOT_FOUND, f"the tool {params.name!r} runs only as a task")
            return await self._call(params, ctx)
        if tool is None:
            raise ProtocolError(METHOD_NOT_FOUND, f"the tool {params.name!r} does not run as a task")
        if wanted.ttl is not None:
            tool = replace(tool, ttl=min(wanted.ttl, _FOR_EVER) / 1000)
        given = self._crossing.raised(CALL, params.model_copy(update={"task": None}), ctx)
        record = await self._server.begin_task(tool, given, ctx)
        mine = self._made.setdefault(ctx.link, {})
        mine[record.id] = None
        if len(mine) > _MOST_REMEMBERED:
            del mine[next(iter(mine))]
        return self._revision.types.CreateTaskResult.model_validate({"task": task(record)})

    # --- what clients ask of tasks ----------------------------------------------------------------------------

    async def get_task(self, params: Any, ctx: Any) -> Any:
        """Return a task as it is now."""
        return self._typed(GET, task(await self._server.find_task(params.task_id, ctx)))

    async def list_tasks(self, params: Any, ctx: Any) -> Any:
        """List the tasks of a principal that the token allows; without tokens, those created over this connection."""
        identity: Identity | None = ctx.identity
        cursor = None if params is None else params.cursor
        found = await (self._own(ctx, cursor) if identity is None else self._page(identity, cursor))
        more = {"nextCursor": found[-1].id} if len(found) == MOST else {}
        return self._typed(LIST, {"tasks": list(map(task, found)), **more})

    async def _page(self, identity: Identity, cursor: str | None) -> list[TaskRecord]:
        """Return the next `MOST` tasks that the token allows, fewer at the end of the list only."""
        shown: list[TaskRecord] = []
        while len(shown) < MOST:
            try:
                found = await self._server.all_tasks().page(identity.principal, cursor)
            except UnknownTask:
                raise _bad_cursor() from None
            if not found:
                break
            shown += (record for record in found if self._server.may_see(record, identity))
            cursor = found[-1].id
        return shown[:MOST]

    async def _own(self, ctx: Any, cursor: str | None) -> list[TaskRecord]:
        ids = list(self._made.get(ctx.link, {}))
        if cursor is not None and cursor not in ids:
            raise _bad_cursor()
        found: list[TaskRecord] = []
        first = 0 if cursor is None else ids.index(cursor) + 1
        for id in ids[first:]:
            with suppress(UnknownTask):
                found.append(await self._server.find_task(id, ctx))
            if len(found) == MOST:
                break
        return found

    async def cancel_task(self, params: Any, ctx: Any) -> Any:
        """End a task; raises `ProtocolError` (-32602) where it is over already."""
        record = await self._server.find_task(params.task_id, ctx)
        ended = record if record.is_over else await self._server.all_tasks().cancel(record.id, record.principal)
        if record.is_over or ended.status != "cancelled":
            raise ProtocolError(INVALID_PARAMS, f"the task is over: {task(ended)['status']}")
        return self._typed(CANCEL, task(ended))

    # --- results ----------------------------------------------------------------------------------------------

    async def result_of(self, params: Any, ctx: Any) -> Any:
        """Wait until a task is over, ask the client what it wants to know meanwhile, and return its result."""
        record = await self._server.find_task(params.task_id, ctx)
        asked = set[str]()
        async with background_tasks() as tasks, aclosing(self._server.all_tasks().versions(record.id)) as versions:
            async for record in versions:
                for key in set(record.open) - asked:
                    asked.add(key)
                    tasks.start_soon(self._ask, record, key, ctx)
        if not record.is_over:
            raise UnknownTask
        wire = jsonrpc.plain(await self._outcome(record, ctx))
        return self._typed(RESULT, {**wire, "_meta": {**wire.get("_meta", {}), RELATED: {"taskId": record.id}}})

    async def _read_outcome(self, record: TaskRecord, ctx: Any) -> Any:
        """Return the result of a task that is over, in the server's revision; raises `ProtocolError` for its error."""
        if record.error is not None:
            raise ProtocolError(record.error["code"], record.error["message"], record.error.get("data"))
        if record.result is None:
            raise ProtocolError(INTERNAL_ERROR, "The task was cancelled")
        return jsonrpc.typed_result(self._home.request(record.method), record.result)

    async def _ask(self, record: TaskRecord, key: str, ctx: Any) -> None:
        """Ask the client what a task wants to know, unless it is being asked.

        A task whose client does not answer fails: it would wait for ever.
        """
        if (record.id, key) in self._asking:
            return
        self._asking.add((record.id, key))
        question = record.asked[key]
        method = self._home.request(question["method"])
        said = {**question.get("params", {})}
        said["_meta"] = {**said.get("_meta", {}), RELATED: {"taskId": record.id}}
        try:
            current = await self._server.all_tasks().read(record.id, record.principal)
            if key not in current.open:  # somebody else was asked meanwhile
                return
            answer = await ctx.request(method, jsonrpc.typed_params(method, said))
            await self._server.all_tasks().update(record.id, record.principal, {key: jsonrpc.plain(answer)})
        except (ConnectionClosed, SessionRequired):
            raise
        except (CapabilityMissing, ProtocolError, UnexpectedAnswer) as error:
            log.info("a question of a task was not answered: %s", error)
            code = error.code if isinstance(error, ProtocolError) else INTERNAL_ERROR
            unanswered = partial(_unanswered, code=code, message=f"the client did not answer {method.name}: {error}")
            await self._server.all_tasks().change(record.id, unanswered)
        finally:
            self._asking.discard((record.id, key))

    # --- statuses ---------------------------------------------------------------------------------------------

    async def tell(self, id: str | None) -> None:
        """Tell the sessions that have created a task what it is now; `None` for all of their tasks."""
        for session, mine in self._made.items():
            self._news.add(session, mine if id is None else [id] if id in mine else ())

    async def _tell_one(self, session: Any, id: str) -> None:
        method: Any = self._revision.methods[STATUS]
        try:
            record = await self._server.all_tasks().read(id, session.origin.principal or "")
            if self._server.may_see(record, session.origin.identity):
                await session.notify(method, jsonrpc.typed_params(method, task(record)))
        except (UnknownTask, StoreUnavailable, ConnectionClosed):
            log.debug("a change of a task is not told")
        except Exception:
            log.exception("a change of a task could not be told")


class WithoutTasks:
    """Hide the tools that run only as tasks from the clients of a revision that has none.

    Args:
        server: The server.
        crossing: The way from that revision to its handlers.

    Attributes:
        handlers: Method name -> handler, for params and results of that revision.
        capabilities: Nothing.
    """

    def __init__(self, server: Offering, crossing: Crossing) -> None:
        self._server = server
        self._crossing = crossing
        self.capabilities: Mapping[str, Any] = {}
        self.handlers: Mapping[str, Handle] = {LIST_TOOLS: self.list_tools}

    @cached_property
    def _list(self) -> Handle:
        return self._crossing.plain(LIST_TOOLS)

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        """List the tools that are of use."""
        listed = jsonrpc.plain(await self._list(params, ctx))
        listed["tools"] = [tool for tool in listed["tools"] if not self._is_hidden(tool["name"])]
        return jsonrpc.typed_result(self._crossing.revision.request(LIST_TOOLS), listed)

    def _is_hidden(self, name: str) -> bool:
        known = self._server.tasks_of(name)
        return known is not None and known.support == "required"


def _unanswered(record: TaskRecord, time: int, *, code: int, message: str) -> TaskRecord:
    return record.failed(time, code, message)


def _bad_cursor() -> ProtocolError:
    return ProtocolError(INVALID_PARAMS, "unknown cursor")
