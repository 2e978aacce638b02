"""Tasks of MCP 2025-11-25, which has them in its core: the same tools, handlers and store."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.extensions.tasks import SqliteTaskStore, TaskLimits, task
from mcp_bindgen.runtime import Context, ProtocolError
from mcp_bindgen.runtime.session.endpoint import lifespans
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.session import Session
from mcp_bindgen.v2025_06_18 import Client as Older
from mcp_bindgen.v2025_11_25 import Client, methods
from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import types as newer
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.extensions.tasks.jobs import one_job, served
from tests.harness.checked_connections import connected, refused
from tests.harness.scripted_http_server import eventually

RELATED = "io.modelcontextprotocol/related-task"


class Asked(Client):
    """Client that answers questions, and records questions and status notifications."""

    def __init__(self, answer: Any = True) -> None:
        super().__init__()
        self.answer_with, self.asked, self.told = answer, list[mcp.ElicitRequestFormParams](), list[str]()

    def on_elicit(self, params: Any, ctx: Any) -> Any:
        self.asked.append(params)
        if isinstance(self.answer_with, Exception):
            raise self.answer_with
        return mcp.ElicitResult(action="accept", content={"answer": self.answer_with})

    async def on_task_status(self, params: mcp.TaskStatusNotificationParams, ctx: Any) -> None:
        # `async`, because handlers in threads would not keep the order
        self.told.append(params.status)

    async def begin(self, name: str, arguments: dict[str, Any] | None = None, ttl: int | None = None) -> mcp.Task:
        """Call a tool as a task."""
        params = mcp.CallToolRequestParams(name=name, arguments=arguments or {}, task=mcp.TaskMetadata(ttl=ttl))
        answer: Any = await self.request(methods.CALL_TOOL, params)
        assert isinstance(answer, mcp.CreateTaskResult)
        return answer.task

    async def text_of(self, id: str) -> str:
        """Return the text of a task's result."""
        result = (await self.get_task_payload(id)).model_dump()
        assert result["_meta"][RELATED] == {"taskId": id}
        found: str = result["content"][0]["text"]
        return found


class Lone(tasks.Server):
    """Server class of the revision with the extension, used alone."""

    info = newer.Implementation(name="lone", version="1")

    async def list_tools(self, params: newer.PaginatedRequestParams, ctx: Context) -> newer.ListToolsResult:
        tools = [newer.Tool(name=name, input_schema=newer.ToolInputSchema()) for name in ("count", "greet", "only")]
        return newer.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    @task(tools={"count": "optional", "only": "required"})
    async def call_tool(self, params: newer.CallToolRequestParams, ctx: Context) -> newer.CallToolResult:
        return newer.CallToolResult(content=[newer.TextContent(text=params.name)], structured_content=[1, 2])


async def report() -> str:
    return "done"


@pytest.fixture
def client(servers: list[Server]) -> AbstractAsyncContextManager[Any]:
    return served(Asked(), *servers)


async def test_task_support_is_listed_per_tool_and_declared_as_a_capability(client: Any) -> None:
    listed = {tool.name: tool.execution and tool.execution.task_support for tool in (await client.list_tools()).tools}
    assert listed["greet"] is None
    assert (listed["slow"], listed["fails"], listed["order"]) == ("optional", "required", "required")
    assert client.server_capabilities["tasks"] == {"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}}


@pytest.mark.parametrize("name", ["lone", "app"])
async def test_a_call_becomes_a_task_and_its_result_can_be_awaited(name: str, servers: list[Server]) -> None:
    async with served(Asked(), *([Lone()] if name == "lone" else servers)) as client:
        begun = await client.begin("count" if name == "lone" else "slow", {"seconds": 0.05}, ttl=5000)
        assert (begun.status, begun.ttl) == ("working", 5000)
        assert await client.text_of(begun.task_id) == ("count" if name == "lone" else "done")
        assert (await client.get_task(begun.task_id)).status == "completed"
        if name == "lone":  # unsupported content of this revision is converted, as for any call
            assert (await client.get_task_payload(begun.task_id)).model_dump()["structuredContent"] == {
                "result": [1, 2]
            }


async def test_a_call_without_task_metadata_creates_no_task(client: Any) -> None:
    assert (await client.call_tool("slow", {"seconds": 0})).content[0].text == "done"


async def test_calls_that_contradict_the_task_support_of_a_tool_are_refused(client: Any) -> None:
    for call in (client.begin("greet", {"name": "x"}), client.begin("nothing"), client.call_tool("fails")):
        assert (await refused(call)).code == -32601


async def test_tool_errors_and_protocol_errors_fail_the_task(client: Any) -> None:
    failed = await client.begin("fails")
    assert (await client.get_task_payload(failed.task_id)).model_dump()["isError"]
    refused = await client.begin("refuses")
    with pytest.raises(ProtocolError) as caught:
        await client.get_task_payload(refused.task_id)
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32000, "never", {"why": 1})
    for one in (failed, refused):
        assert (await client.get_task(one.task_id)).status == "failed"


@pytest.mark.parametrize(("tool", "question"), [("delete", "Delete x?"), ("order", "Who?")])
async def test_concurrent_waiters_cause_only_one_elicitation(client: Any, tool: str, question: str) -> None:
    begun = await client.begin(tool, {"name": "x"} if tool == "delete" else {})
    while (await client.get_task(begun.task_id)).status != "input_required":
        await anyio.sleep(0.01)
    async with anyio.create_task_group() as waiting:
        for _ in range(3):
            waiting.start_soon(client.text_of, begun.task_id)
    assert [one.message for one in client.asked] == [question]
    assert client.asked[0].model_dump()["_meta"][RELATED] == {"taskId": begun.task_id}
    assert await client.text_of(begun.task_id) in ("deleted", "for True")


async def test_a_waiter_asks_when_the_waiter_that_asked_is_cancelled(servers: list[Server]) -> None:
    class Interrupted(Asked):
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            if not self.asked:
                self.asked.append(params)
                await anyio.sleep_forever()
            return super().on_elicit(params, ctx)

    async with served(Interrupted(), *servers) as client:
        begun = await client.begin("delete", {"name": "x"})
        first = asyncio.ensure_future(client.text_of(begun.task_id))
        await eventually(lambda: client.asked)
        second = asyncio.ensure_future(client.text_of(begun.task_id))
        await client.ping()  # the server has the second request
        first.cancel()
        assert await second == "deleted"


async def test_a_failed_elicitation_fails_the_task(servers: list[Server]) -> None:
    async with served(Asked(ProtocolError(-32603, "nobody is here")), *servers) as client:
        begun = await client.begin("delete", {"name": "x"})
        await refused(client.get_task_payload(begun.task_id), match="nobody is here")
        assert (await client.get_task(begun.task_id)).status == "failed"


async def test_a_cancelled_task_has_no_result_and_cannot_be_cancelled_again(client: Any) -> None:
    begun = await client.begin("slow", {"seconds": 3600})
    assert (await client.cancel_task(begun.task_id)).status == "cancelled"
    for call in (client.cancel_task(begun.task_id), client.get_task_payload(begun.task_id)):
        await refused(call, match="cancelled")


async def test_a_client_without_a_principal_lists_the_tasks_of_its_connection(servers: list[Server]) -> None:
    async with lifespans(servers), connected(Asked(), *servers) as one, connected(Asked(), *servers) as other:
        made = [(await one.client.begin("slow", {"seconds": 0})).task_id for _ in range(3)]
        listed = await one.client.list_tasks()
        assert [each.task_id for each in listed.tasks] == made
        assert listed.next_cursor is None
        assert (await other.client.list_tasks()).tasks == []
        await refused(other.client.list_tasks(cursor=made[0]), match="cursor")
        await refused(one.client.get_task("another"), match="Unknown task")


async def test_status_notifications_of_a_task_reach_its_connection(client: Any) -> None:
    await client.text_of((await client.begin("delete", {"name": "x"})).task_id)
    await eventually(lambda: client.told[-1:] == ["completed"])
    await anyio.sleep(0.05)
    assert client.told[-1:] == ["completed"], client.told
    assert "input_required" in client.told


async def test_clients_of_revisions_without_tasks_see_no_tools_that_require_tasks() -> None:
    async with served(Older(), Lone()) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["count", "greet"]
        assert (await client.call_tool("count")).content[0].text == "count"
        assert "tasks" not in client.server_capabilities
        await refused(client.call_tool("only"))


@pytest.mark.parametrize("ttl", [10**30, 10**400, -1], ids=["long", "endless", "negative"])
async def test_a_client_may_request_any_time_to_live(ttl: int, tmp_path: Path) -> None:
    limits = TaskLimits(poll=0.02, max_ttl=None)
    servers = one_job(report, SqliteTaskStore(tmp_path / "tasks.db"), limits=limits, lease=0.2)
    async with served(Asked(), *servers) as client:
        made = await client.begin("report", ttl=ttl)
        with anyio.fail_after(30):
            while (await client.get_task(made.task_id)).status == "working":
                await anyio.sleep(0.02)


async def test_a_client_that_does_not_read_does_not_delay_other_notifications(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, original = list[Session](), Session.notify

    async def notify(self: Session, method: Any, params: Any, **more: Any) -> None:
        if method.name == "notifications/tasks/status" and (not stuck or self in stuck):
            stuck.append(self)
            await anyio.sleep_forever()
        await original(self, method, params, **more)

    monkeypatch.setattr(Session, "notify", notify)
    servers, reads = one_job(report), Asked()
    async with lifespans(servers), connected(Asked(), *servers) as first, connected(reads, *servers) as second:
        await first.client.begin("report")
        await eventually(lambda: stuck)
        await second.client.begin("report")
        await eventually(lambda: "completed" in reads.told)
