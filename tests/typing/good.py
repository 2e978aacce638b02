"""User code in the intended style; both type checkers accept all of it. Nothing here runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, assert_never, assert_type

import mcp_bindgen.app as app
from mcp_bindgen import runtime
from mcp_bindgen.runtime import InvalidParams, Json
from mcp_bindgen.v2024_11_05 import types as oldest
from mcp_bindgen.v2025_11_25 import REVISION, Client, Context, Server, dispatcher, errors, methods
from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import Client as StatelessClient
from mcp_bindgen.v2026_07_28 import methods as stateless_methods
from mcp_bindgen.v2026_07_28 import types as stateless
from mcp_bindgen.v2026_07_28.extensions import apps, tasks


class Weather(Server):
    """Server with handlers that are coroutines and plain functions, with contexts of both types."""

    info = mcp.Implementation(name="weather", version="1.0.0")

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: runtime.Context) -> mcp.ListToolsResult:
        schema = mcp.ToolInputSchema(properties={"city": {"type": "string"}}, required=["city"])
        return mcp.ListToolsResult(tools=[mcp.Tool(name="forecast", input_schema=schema, title=params.cursor)])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        city = (params.arguments or {}).get("city")
        if not isinstance(city, str):
            raise InvalidParams(methods.CALL_TOOL.name, [{"path": "params.arguments.city", "problem": "is no text"}])
        await ctx.progress(0.5, total=1)
        await ctx.notify_logging_message("debug", {"city": city}, logger="weather")
        said = await ctx.create_message([mcp.SamplingMessage(role="user", content=mcp.TextContent(text=city))], 100)
        assert_type(said, mcp.CreateMessageResult)
        answer = mcp.TextContent(text=said.model, annotations=mcp.Annotations(audience=["user"], priority=1))
        return mcp.CallToolResult(content=[answer], structured_content={"city": city, "degrees": 21.5})

    def ping(self, params: mcp.RequestParams, ctx: Context) -> mcp.EmptyResult:
        return mcp.Result()

    def set_level(self, params: mcp.SetLevelRequestParams, ctx: runtime.Context) -> runtime.Returns[mcp.EmptyResult]:
        assert_type(params.level, mcp.LoggingLevel)
        return mcp.Result(meta={"level": params.level})

    def on_cancelled(self, params: mcp.CancelledNotificationParams, ctx: Context) -> None:
        assert_type(params.reason, str | None)

    async def on_progress(self, params: mcp.ProgressNotificationParams, ctx: Context) -> None:
        assert_type(params.progress, int | float)


class Completes(app.Contract):
    """Contract with its own completion, with the context of its revision."""

    async def complete(self, asked: app.Completion, ctx: Context) -> list[str]:
        await ctx.notify_logging_message("debug", asked.value)
        return [asked.value]


def desk() -> app.App:
    """App with a completion that takes the context, and entries for some callers."""
    desk = app.App("desk", page_size=100, hide_forbidden=True)

    @desk.prompt(scopes=["x"], tags={"admin"})
    def ask(topic: str) -> str:
        return topic

    @desk.completion("ask", "topic")
    async def topics(asked: app.Completion, ctx: app.Context[str]) -> list[str]:
        return [ctx.state, asked.value]

    @desk.completion("ask", "topic")
    def fewer(asked: app.Completion) -> tuple[str, ...]:
        return (asked.value,)

    assert_type(fewer(app.Completion("prompt", "ask", "topic", "t", {})), tuple[str, ...])
    desk.visible(lambda identity: identity.has("x") and "role" in identity.claims, "ask", tags={"admin"})
    return desk


class Later(Server):
    """Server that answers with a task."""

    info = mcp.Implementation(name="later", version="1")

    def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CreateTaskResult:
        now = "2025-11-25T00:00:00Z"
        task = mcp.Task(created_at=now, last_updated_at=now, status="working", task_id="1", ttl=None)
        return mcp.CreateTaskResult(task=task)


class Extended(tasks.Server, apps.Server):
    """Server with two extensions; its handlers may return results of the extensions."""

    info = stateless.Implementation(name="extended", version="1")

    def list_tools(self, params: stateless.PaginatedRequestParams, ctx: runtime.Context) -> stateless.ListToolsResult:
        written = stateless.ToolInputSchema(properties={"text": {"type": "string"}}, required=["text"], minProperties=1)
        read = stateless.ToolOutputSchema(**stateless.Icon.model_json_schema())
        tool = stateless.Tool(name="board", input_schema=written, output_schema=read)
        shown = apps.meta.TOOL_UI.put(tool, apps.types.McpUiToolMeta(resource_uri="ui://board", visibility=["model"]))
        assert_type(shown, stateless.Tool)
        assert_type(apps.meta.TOOL_UI.read(shown), apps.types.McpUiToolMeta | None)
        return stateless.ListToolsResult(tools=[shown])

    async def call_tool(
        self, params: stateless.CallToolRequestParams, ctx: runtime.Context
    ) -> stateless.CallToolResult | stateless.InputRequiredResult | tasks.types.CreateTaskResult:
        if ctx.extension(tasks.EXTENSION) is None:
            return stateless.CallToolResult(content=[])
        now = "2026-07-28T00:00:00Z"
        return tasks.types.CreateTaskResult(
            created_at=now, last_updated_at=now, status="working", task_id=params.name, ttl_ms=None
        )

    async def cancel_task(
        self, params: tasks.types.CancelTaskRequestParams, ctx: tasks.Context
    ) -> tasks.types.CancelTaskResult:
        assert_type(params.task_id, str)
        return tasks.types.CancelTaskResult()


class Patient(apps.Client, tasks.Client):
    """Client of two extensions."""

    info = stateless.Implementation(name="patient", version="1")

    def on_task_status(self, params: tasks.types.TaskStatusNotificationParams, ctx: runtime.Context) -> None:
        assert_type(params.task_id, str)


async def extended(client: Patient, params: stateless.CallToolRequestParams) -> None:
    answer = await client.request(tasks.methods.CALL_TOOL, params)
    assert_type(answer, stateless.CallToolResult | stateless.InputRequiredResult | tasks.types.CreateTaskResult)
    assert_type(await client.cancel_task("1"), tasks.types.CancelTaskResult)
    assert_type(await client.get_task("1"), tasks.types.GetTaskResult)


class Assistant(Client):
    """Client with a model that servers may sample."""

    info = mcp.Implementation(name="assistant", version="1.0.0")

    async def on_create_message(
        self, params: mcp.CreateMessageRequestParams, ctx: runtime.Context
    ) -> mcp.CreateMessageResult:
        assert_type(params.max_tokens, int)
        return mcp.CreateMessageResult(model="echo", role="assistant", content=params.messages[-1].content)

    def on_list_roots(self, params: mcp.RequestParams, ctx: runtime.Context) -> mcp.ListRootsResult:
        return mcp.ListRootsResult(roots=[mcp.Root(uri="file:///home", name="home")])


def text_of(block: mcp.ContentBlock) -> str:
    """Narrow a union by class, with all members covered."""
    match block:
        case mcp.TextContent(text=text):
            return assert_type(text, str)
        case mcp.ImageContent() | mcp.AudioContent():
            return block.mime_type
        case mcp.ResourceLink(uri=uri):
            return uri
        case mcp.EmbeddedResource(resource=mcp.TextResourceContents() as contents):
            return contents.text
        case mcp.EmbeddedResource():
            return block.resource.uri
        case _:
            assert_never(block)


def kind_of(block: mcp.ContentBlock) -> str:
    """Narrow a union by its constant."""
    if block.type == "text":
        return block.text
    return block.type


async def use(client: Client) -> list[str]:
    """Call a server."""
    result = await client.call_tool("echo", {"message": "hi", "deep": [1, 2.5, None, {"a": True}]})
    assert_type(result, mcp.CallToolResult)
    assert_type(result.is_error, bool | None)
    page = await client.list_tools()
    while page.next_cursor is not None:
        page = await client.list_tools(page.next_cursor)
    assert_type((await client.ping()).meta, dict[str, Any] | None)
    await client.set_level("info")
    await client.complete(
        mcp.PromptReference(name="forecast"), mcp.CompleteRequestParamsArgument(name="city", value="Ber")
    )
    await client.notify_roots_list_changed()
    return [text_of(block) for block in result.content]


async def use_table(client: Client) -> mcp.CallToolResult:
    """Send any request of the method table; tell alternative results apart by class."""
    params = mcp.CallToolRequestParams(name="echo", arguments={"message": "hi"}, task=mcp.TaskMetadata(ttl=60_000))
    answer = await client.request(methods.CALL_TOOL, params)
    assert_type(answer, mcp.CallToolResult | mcp.CreateTaskResult)
    assert_type(await client.call(methods.CALL_TOOL, params), mcp.CallToolResult)
    assert_type(await client.request(methods.LIST_TOOLS, mcp.PaginatedRequestParams()), mcp.ListToolsResult)
    await client.notify(methods.PROGRESS, mcp.ProgressNotificationParams(progress=1, progress_token=7))
    assert_type(await client.call_tool("echo", task=mcp.TaskMetadata()), mcp.CallToolResult | mcp.CreateTaskResult)
    if isinstance(answer, mcp.CreateTaskResult):
        assert_type(answer.task.ttl, int | None)
        return await client.call(methods.CALL_TOOL, mcp.CallToolRequestParams(name="echo"))
    return answer


async def use_stateless(client: StatelessClient, meta: Mapping[str, Json]) -> str | None:
    """Call a server of the newest revision, with metadata on each request and results that ask for input."""
    metadata = client.metadata(stateless.RequestMetaObject, meta)
    params = stateless.CallToolRequestParams(name="echo", meta=metadata)
    answer = await client.request(stateless_methods.CALL_TOOL, params)
    if isinstance(answer, stateless.InputRequiredResult):
        return answer.request_state
    assert_type(answer, stateless.CallToolResult)
    again = await client.call_tool("echo", {"message": "hi"}, meta=meta)
    return again.result_type


def facts(server: Server) -> bool:
    """Look at the facts of a revision, and at the methods that a server handles in it."""
    assert_type(errors.PARSE_ERROR, Literal[-32700])
    assert_type(REVISION.name, str)
    return methods.PING.name in dispatcher.SERVER.offered(server)


def older() -> oldest.Annotated:
    """Return a definition whose name is also a name of Python's `typing`."""
    return oldest.Annotated(annotations=oldest.Annotations(priority=0.5))
