"""Tasks over a connection, from the view of clients and servers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest

from mcp_bindgen.app import App
from mcp_bindgen.extensions.tasks import TaskCancelled, TaskLimits, Tasks, ToolTask, task
from mcp_bindgen.runtime import ProtocolError, RequestTimeout
from mcp_bindgen.runtime.protocol.errors import TooManyRequests
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.v2026_07_28 import Client as Plain
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.extensions.tasks.jobs import QUICK, one_job, served, statuses, text
from tests.harness.checked_connections import refused
from tests.harness.scripted_http_server import eventually


class Asked(tasks.Client):
    """Client that answers questions."""

    info = mcp.Implementation(name="asked", version="1")

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.told = list[str](), list[Any]()

    def on_elicit(self, params: Any, ctx: Any) -> Any:
        self.asked.append(params.message)
        return mcp.ElicitResult(action="accept", content={"answer": True})

    def on_task_status(self, params: Any, ctx: Any) -> None:
        self.told.append(params)


@pytest.fixture
def client(servers: list[Server]) -> AbstractAsyncContextManager[Any]:
    return served(Asked(), *servers)


async def test_a_tool_without_task_support_returns_its_result_directly(client: Any) -> None:
    assert text(await client.call_tool("greet", {"name": "World"})) == "Hello, World!"
    handle = await client.start_tool("greet", {"name": "World"})
    assert handle.id == ""
    assert text(await handle.result()) == "Hello, World!"


async def test_calling_a_task_tool_waits_for_the_result(client: Any) -> None:
    assert text(await client.call_tool("slow", {"seconds": 0.05})) == "done"
    failed = await client.call_tool("fails")
    assert failed.is_error
    assert "no" in text(failed)
    with pytest.raises(ProtocolError, match="never") as refused:
        await client.call_tool("refuses")
    assert (refused.value.code, refused.value.data) == (-32000, {"why": 1})


async def test_a_poll_that_a_busy_server_refuses_is_sent_again(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals, find_task = [TooManyRequests("busy")], tasks.Server.find_task

    async def busy(self: tasks.Server, id: str, ctx: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return await find_task(self, id, ctx)

    monkeypatch.setattr(tasks.Server, "find_task", busy)
    assert text(await client.call_tool("slow", {"seconds": 0})) == "done"
    assert not refusals


async def test_tasks_run_until_the_last_connection_to_their_app_ends(servers: list[Server]) -> None:
    first_began, second_began, first_ended = anyio.Event(), anyio.Event(), anyio.Event()

    async def first() -> None:
        async with served(Asked(), *servers):
            first_began.set()
            await second_began.wait()
        first_ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await first_began.wait()
        async with served(Asked(), *servers) as client:
            handle = await client.start_tool("delete", {"name": "x"})
            second_began.set()
            await first_ended.wait()
            assert text(await handle.result()) == "deleted"
            assert text(await client.call_tool("slow", {"seconds": 0})) == "done"


async def test_a_handle_reports_the_status_updates_of_a_task(client: Any) -> None:
    handle = await client.start_tool("slow", {"seconds": 0.1})
    assert len(handle.id) == 43
    seen = [now async for now in handle.updates()]
    assert ([now.status for now in seen][-1], {now.status for now in seen[:-1]}) == ("completed", {"working"})
    assert "half" in {now.status_message for now in seen}
    assert (seen[0].ttl_ms, seen[0].poll_interval_ms) == (3_600_000, 20)
    assert text(await client.task(handle.id).result()) == "done"


async def test_input_requests_of_a_task_reach_the_client_handler_once(client: Any) -> None:
    assert (text(await client.call_tool("delete", {"name": "a"})), client.asked) == ("deleted", ["Delete a?"])


async def test_a_tool_may_request_input_before_it_becomes_a_task(client: Any) -> None:
    handle = await client.start_tool("order")
    assert handle.id
    assert client.asked == ["Who?"]
    assert (text(await handle.result()), client.asked) == ("for True", ["Who?"])
    assert not (await client.start_tool("cached", {"known": True})).id
    assert (await client.start_tool("cached", {"known": False})).id


async def test_a_client_without_task_support_waits_or_is_refused(servers: list[Server]) -> None:
    class Old(Plain):
        def on_elicit(self, params: Any, ctx: Any) -> Any:
            return mcp.ElicitResult(action="accept", content={"answer": True})

    async with served(Old(), *servers) as client:
        assert text(await client.call_tool("slow", {"seconds": 0.01})) == "done"
        assert text(await client.call_tool("delete", {"name": "a"})) == "deleted"
        for required in ("fails", "order"):
            with pytest.raises(ProtocolError) as refused:
                await client.call_tool(required)
            assert refused.value.code == -32021
            wanted: Any = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            assert refused.value.data == {"requiredCapabilities": wanted}


async def test_the_result_of_a_cancelled_handle_raises_task_cancelled(client: Any) -> None:
    handle = await client.start_tool("slow", {"seconds": 60})
    await handle.cancel()
    await refused(handle.result(), TaskCancelled)
    await handle.cancel()
    assert (await refused(client.task("nobody knows this").result())).code == -32602


async def test_a_client_that_stops_waiting_cancels_the_task(client: Any, servers: list[Server]) -> None:
    await refused(client.with_options(total_timeout=0.5).call_tool("slow", {"seconds": 60}), RequestTimeout)
    with anyio.move_on_after(0.5):
        await client.call_tool("slow", {"seconds": 60})
    assert await statuses(servers[-1]) == ["cancelled", "cancelled"]


async def test_unknown_input_responses_are_ignored_and_invalid_ones_are_refused(client: Any) -> None:
    handle = await client.start_tool("delete", {"name": "a"})
    while (now := await handle.status()).status != "input_required":
        await anyio.sleep(0.01)
    assert list(now.input_requests) == ["Delete a?"]
    await handle.answer({"never": {"ignored": True}})
    assert (await refused(handle.answer({"Delete a?": {"ignored": True}}), match="Delete a")).code == -32602
    assert (await handle.status()).status == "input_required"
    await handle.answer({"Delete a?": mcp.ElicitResult(action="decline")})
    assert text(await handle.result()) == "kept"


async def test_a_subscription_notifies_the_client_of_its_own_tasks(servers: list[Server]) -> None:
    client = Asked()
    async with served(client, *servers) as connection:
        handle = await connection.start_tool("slow", {"seconds": 0.2})
        wanted = tasks.types.TaskSubscriptionNotifications(task_ids=[handle.id, "not mine"])
        async with connection.subscribed(wanted) as agreed:
            assert agreed.task_ids == [handle.id]
            assert text(await handle.result()) == "done"
            await eventually(lambda: client.told and client.told[-1].status == "completed")
    assert {told.task_id for told in client.told} == {handle.id}
    assert client.told[-1].result["content"][0]["text"] == "done"


class Bare(tasks.Server):
    """Server with handwritten handlers."""

    info = mcp.Implementation(name="bare", version="1")

    def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[], ttl_ms=0, cache_scope="private")


async def test_a_server_class_declares_task_support_per_tool() -> None:
    class Some(Bare):
        own_tasks = Tasks(limits=QUICK)

        @task(tools={"twice": "optional", "asks": ToolTask(support="required")})
        async def call_tool(self, params: Any, ctx: Any) -> mcp.CallToolResult | mcp.InputRequiredResult:
            if params.name == "asks" and "a" not in (params.input_responses or {}):
                form = {"message": "?", "mode": "form", "requestedSchema": {"type": "object", "properties": {}}}
                asked = {"a": {"method": "elicitation/create", "params": form}}
                wire = {"resultType": "input_required", "inputRequests": asked, "requestState": "mine"}
                return mcp.InputRequiredResult.model_validate(wire)
            state = params.request_state or ""
            return mcp.CallToolResult(content=[mcp.TextContent(text=f"{params.name}{state}")])

    async with served(Asked(), Some()) as client:
        assert (await client.start_tool("twice")).id
        assert not (await client.start_tool("once")).id
        assert (text(await client.call_tool("twice")), text(await client.call_tool("asks"))) == ("twice", "asksmine")
        assert client.asked == ["?"]


async def test_a_server_class_declares_task_support_for_all_tools() -> None:
    class All(Bare):
        @task("optional")
        def call_tool(self, params: Any, ctx: Any) -> mcp.CallToolResult:
            return mcp.CallToolResult(content=[mcp.TextContent(text="in a thread")])

    async with served(Asked(), All()) as client:
        handle = await client.start_tool("any")
        assert handle.id
        assert text(await handle.result()) == "in a thread"


async def test_a_failing_elicitation_handler_cancels_the_task(servers: list[Server]) -> None:
    class Fails(tasks.Client):
        def on_elicit(self, params: Any, ctx: Any) -> Any:
            raise KeyError("nobody is here")

    async with served(Fails(), *servers) as client:
        await refused(client.call_tool("delete", {"name": "a"}), KeyError)
        assert await statuses(servers[-1]) == ["cancelled"]


async def test_a_subscription_to_too_many_tasks_is_refused(client: Any) -> None:
    wanted = tasks.types.TaskSubscriptionNotifications(task_ids=[str(number) for number in range(1001)])
    with pytest.raises(ProtocolError, match="at most 1000"):
        async with client.subscribed(wanted):
            pass


async def test_too_many_tasks_are_refused() -> None:
    async with served(Asked(), *one_job(anyio.sleep_forever, limits=TaskLimits(max_open_per_principal=1))) as client:
        await client.start_tool("sleep_forever")
        with pytest.raises(ProtocolError) as refused:
            await client.start_tool("sleep_forever")
        assert refused.value.code == -32000


def test_an_invalid_value_of_task_support_is_refused() -> None:
    with pytest.raises(ValueError, match="'optional', 'required'"):
        App("wrong").tool(task="sometimes")(text)  # type: ignore[call-overload]
