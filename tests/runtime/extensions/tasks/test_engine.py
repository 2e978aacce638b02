"""Tasks as clients and servers see them: by one word, over a connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_bindgen.app import App
from mcp_bindgen.extensions.tasks import TaskCancelled, TaskLimits, Tasks, ToolTask, background, task
from mcp_bindgen.runtime import Context, ProtocolError, RequestTimeout
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.service import lifespans
from mcp_bindgen.v2026_07_28 import Client as Plain
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.support.checked_connections import connected

pytestmark = pytest.mark.anyio

QUICK = TaskLimits(poll=0.02)


class Asked(tasks.Client):
    """A client that answers questions."""

    info = mcp.Implementation(name="asked", version="1")

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.told: list[Any] = []

    def on_elicit(self, params: Any, ctx: Any) -> Any:
        self.asked.append(params.message)
        return mcp.ElicitResult(action="accept", content={"answer": True})

    def on_task_status(self, params: Any, ctx: Any) -> None:
        self.told.append(params)


def jobs(**options: Any) -> App:
    app = App("jobs", tasks=Tasks(limits=QUICK, lease=0.4), **options)

    @app.tool
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @app.tool(task="optional")
    async def slow(seconds: float, ctx: Context) -> str:
        await ctx.progress(1, 2, "half")
        await anyio.sleep(seconds)
        return "done"

    @app.tool(task="required")
    async def fails() -> str:
        raise ValueError("no")

    @app.tool(task="optional")
    async def refuses() -> str:
        raise ProtocolError(-32602, "never", {"why": 1})

    @app.tool(task="optional")
    async def delete(name: str, ctx: Context) -> str:
        return "deleted" if await ctx.ask(f"Delete {name}?", bool) else "kept"

    @app.tool(task=ToolTask(support="required", late=True))
    async def order(ctx: Context) -> str:
        name = await ctx.ask("Who?", bool)
        await background(ctx)
        return f"for {name}"

    @app.tool(task=ToolTask(late=True))
    async def cached(known: bool, ctx: Context) -> str:
        if not known:
            await background(ctx)
        return "value"

    return app


@asynccontextmanager
async def served(client: Any, *servers: Server) -> AsyncGenerator[Any]:
    async with lifespans(servers), connected(client, *servers) as connection:
        yield connection.client


def text(result: Any) -> str:
    found: str = result.content[0].text
    return found


@pytest.fixture
def servers() -> list[Server]:
    return jobs().servers()


async def test_a_tool_that_is_no_task_answers_at_once(servers: list[Server]) -> None:
    async with served(Asked(), *servers) as client:
        assert text(await client.call_tool("greet", {"name": "World"})) == "Hello, World!"
        handle = await client.start_tool("greet", {"name": "World"})
        assert handle.id == ""
        assert text(await handle.result()) == "Hello, World!"


async def test_calling_a_task_waits_for_its_result(servers: list[Server]) -> None:
    async with served(Asked(), *servers) as client:
        assert text(await client.call_tool("slow", {"seconds": 0.05})) == "done"
        failed = await client.call_tool("fails")
        assert failed.is_error
        assert "no" in text(failed)
        with pytest.raises(ProtocolError, match="never") as refused:
            await client.call_tool("refuses")
        assert (refused.value.code, refused.value.data) == (-32602, {"why": 1})


async def test_a_handle_tells_how_far_a_task_is(servers: list[Server]) -> None:
    async with served(Asked(), *servers) as client:
        handle = await client.start_tool("slow", {"seconds": 0.1})
        assert len(handle.id) == 43
        seen = [now async for now in handle.updates()]
        assert [now.status for now in seen][-1] == "completed"
        assert {now.status for now in seen[:-1]} == {"working"}
        assert "half" in {now.status_message for now in seen}
        assert (seen[0].ttl_ms, seen[0].poll_interval_ms) == (3_600_000, 20)
        assert text(await client.task(handle.id).result()) == "done"


async def test_questions_of_a_task_reach_the_clients_handlers_once(servers: list[Server]) -> None:
    client = Asked()
    async with served(client, *servers) as connection:
        assert text(await connection.call_tool("delete", {"name": "a"})) == "deleted"
    assert client.asked == ["Delete a?"]


async def test_a_tool_may_ask_before_it_becomes_a_task(servers: list[Server]) -> None:
    client = Asked()
    async with served(client, *servers) as connection:
        handle = await connection.start_tool("order")
        assert handle.id
        assert client.asked == ["Who?"]
        assert text(await handle.result()) == "for True"
        assert client.asked == ["Who?"]
        assert not (await connection.start_tool("cached", {"known": True})).id
        assert (await connection.start_tool("cached", {"known": False})).id


async def test_a_client_that_does_not_know_tasks_waits_or_is_refused(servers: list[Server]) -> None:
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


async def test_a_handle_cancels_and_its_result_says_so(servers: list[Server]) -> None:
    async with served(Asked(), *servers) as client:
        handle = await client.start_tool("slow", {"seconds": 60})
        await handle.cancel()
        with pytest.raises(TaskCancelled):
            await handle.result()
        await handle.cancel()
        with pytest.raises(ProtocolError) as unknown:
            await client.task("nobody knows this").result()
        assert unknown.value.code == -32602


async def test_who_stops_waiting_cancels_the_task(servers: list[Server]) -> None:
    async with served(Asked(), *servers) as client:
        with pytest.raises(RequestTimeout):
            await client.with_options(total_timeout=0.1).call_tool("slow", {"seconds": 60})
        with anyio.move_on_after(0.1):
            await client.call_tool("slow", {"seconds": 60})
        held: Any = servers[-1]
        statuses = [record.status for record in await held.own_tasks.page("")]
        assert statuses == ["cancelled", "cancelled"]


async def test_answers_are_partial_and_others_are_left_aside(servers: list[Server]) -> None:
    async with served(Asked(), *servers) as client:
        handle = await client.start_tool("delete", {"name": "a"})
        while (now := await handle.status()).status != "input_required":
            await anyio.sleep(0.01)
        assert list(now.input_requests) == ["Delete a?"]
        await handle.answer({"never": {"ignored": True}})
        with pytest.raises(ProtocolError, match="Delete a") as invalid:
            await handle.answer({"Delete a?": {"ignored": True}})
        assert invalid.value.code == -32602
        assert (await handle.status()).status == "input_required"
        await handle.answer({"Delete a?": mcp.ElicitResult(action="decline")})
        assert text(await handle.result()) == "kept"


async def test_those_who_listen_are_told_of_their_tasks(servers: list[Server]) -> None:
    client = Asked()
    async with served(client, *servers) as connection:
        handle = await connection.start_tool("slow", {"seconds": 0.2})
        wanted = tasks.types.TaskSubscriptionNotifications(task_ids=[handle.id, "not mine"])
        async with connection.subscribed(wanted) as agreed:
            assert agreed.task_ids == [handle.id]
            assert text(await handle.result()) == "done"
            with anyio.fail_after(3):
                while not client.told or client.told[-1].status != "completed":
                    await anyio.sleep(0.01)
    assert {told.task_id for told in client.told} == {handle.id}
    assert client.told[-1].result["content"][0]["text"] == "done"


async def test_a_bare_server_says_which_of_its_tools_are_tasks() -> None:
    class Bare(tasks.Server):
        info = mcp.Implementation(name="bare", version="1")
        own_tasks = Tasks(limits=QUICK)

        def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
            return mcp.ListToolsResult(tools=[], ttl_ms=0, cache_scope="private")

        @task(tools={"twice": "optional", "asks": ToolTask(support="required")})
        async def call_tool(self, params: Any, ctx: Any) -> mcp.CallToolResult | mcp.InputRequiredResult:
            given = params.input_responses or {}
            if params.name == "asks" and "a" not in given:
                form = {"message": "?", "mode": "form", "requestedSchema": {"type": "object", "properties": {}}}
                asked = {"a": {"method": "elicitation/create", "params": form}}
                wire = {"resultType": "input_required", "inputRequests": asked, "requestState": "mine"}
                return mcp.InputRequiredResult.model_validate(wire)
            state = params.request_state or ""
            return mcp.CallToolResult(content=[mcp.TextContent(text=f"{params.name}{state}")])

    client = Asked()
    async with served(client, Bare()) as connection:
        assert (await connection.start_tool("twice")).id
        assert not (await connection.start_tool("once")).id
        assert text(await connection.call_tool("twice")) == "twice"
        assert text(await connection.call_tool("asks")) == "asksmine"
        assert client.asked == ["?"]


async def test_a_word_for_all_tools_of_a_bare_server() -> None:
    class Bare(tasks.Server):
        info = mcp.Implementation(name="bare", version="1")

        def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
            return mcp.ListToolsResult(tools=[], ttl_ms=0, cache_scope="private")

        @task("optional")
        def call_tool(self, params: Any, ctx: Any) -> mcp.CallToolResult:
            return mcp.CallToolResult(content=[mcp.TextContent(text="in a thread")])

    async with served(Asked(), Bare()) as connection:
        handle = await connection.start_tool("any")
        assert handle.id
        assert text(await handle.result()) == "in a thread"


async def test_a_client_that_cannot_answer_cancels_the_task(servers: list[Server]) -> None:
    class Fails(tasks.Client):
        def on_elicit(self, params: Any, ctx: Any) -> Any:
            raise KeyError("nobody is here")

    async with served(Fails(), *servers) as client:
        with pytest.raises(KeyError):
            await client.call_tool("delete", {"name": "a"})
        held: Any = servers[-1]
        assert [record.status for record in await held.own_tasks.page("")] == ["cancelled"]


async def test_a_subscription_follows_so_many_tasks_only(servers: list[Server]) -> None:
    async with served(Asked(), *servers) as client:
        wanted = tasks.types.TaskSubscriptionNotifications(task_ids=[str(number) for number in range(1001)])
        with pytest.raises(ProtocolError, match="at most 1000"):
            async with client.subscribed(wanted):
                pass


async def test_too_many_tasks_are_refused() -> None:
    app = App("few", tasks=Tasks(limits=TaskLimits(max_open_per_principal=1)))

    @app.tool(task="optional")
    async def wait() -> str:
        await anyio.sleep_forever()
        return ""

    async with served(Asked(), *app.servers()) as client:
        await client.start_tool("wait")
        with pytest.raises(ProtocolError) as refused:
            await client.start_tool("wait")
        assert refused.value.code == -32000


def waits() -> None: ...


async def test_one_word_is_checked() -> None:
    app = App("wrong")
    with pytest.raises(ValueError, match="'optional', 'required'"):
        app.tool(task="sometimes")(waits)  # type: ignore[call-overload]


def served_by(app: App) -> Any:
    """A client of an app that says yes."""
    return served(Asked(), *app.servers())
