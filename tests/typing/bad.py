"""Mistakes that users make; both type checkers report each of them, on its line and nowhere else. Nothing here runs."""

from __future__ import annotations

from typing import assert_never

from typing_extensions import override

from mcp_bindgen import runtime
from mcp_bindgen.v2024_11_05 import Context as OldContext
from mcp_bindgen.v2024_11_05 import types as old
from mcp_bindgen.v2025_11_25 import Client, Context, Server, methods
from mcp_bindgen.v2025_11_25 import types as mcp


class WrongParams(Server):
    async def list_tools(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.ListToolsResult:  # error: params
        raise NotImplementedError


class WrongResult(Server):
    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.Tool:  # error: result
        raise NotImplementedError


class WrongPlainResult(Server):
    def ping(self, params: mcp.RequestParams, ctx: Context) -> str:  # error: result of a plain handler
        return "pong"


class WrongStatement(Server):
    async def ping(self, params: mcp.RequestParams, ctx: Context) -> mcp.EmptyResult:
        return "pong"  # error: the result


class NoContext(Server):
    async def list_tools(self, params: mcp.PaginatedRequestParams) -> mcp.ListToolsResult:  # error: ctx is missing
        raise NotImplementedError


class WrongContext(Server):
    async def ping(self, params: mcp.RequestParams, ctx: OldContext) -> mcp.EmptyResult:  # error: ctx
        raise NotImplementedError


class WrongRevision(Server):
    def on_progress(self, params: old.ProgressNotificationParams, ctx: Context) -> None:  # error: revision
        raise NotImplementedError


class Misspelt(Server):
    @override
    def list_tool(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:  # error: no such stub
        raise NotImplementedError


class NotificationAnswers(Server):
    def on_initialized(self, params: mcp.NotificationParams, ctx: Context) -> mcp.EmptyResult:  # error: no answer
        raise NotImplementedError


class WrongClientResult(Client):
    async def on_list_roots(self, params: mcp.RequestParams, ctx: runtime.Context) -> list[mcp.Root]:  # error: result
        raise NotImplementedError


class WrongInfo(Server):
    info = "weather"  # error: not an Implementation


def construct() -> None:
    mcp.Tool(name="echo")  # error: input_schema is missing
    mcp.TextContent(text=1)  # error: text is no number
    mcp.TextContent(text=None)  # error: text is not optional
    mcp.TextContent(text="hi", colour="red")  # error: no such field
    mcp.TextContent("hi")  # error: fields are keywords
    mcp.TextContent(text="hi", type="image")  # error: another constant
    mcp.Tool(name="echo", inputSchema=mcp.ToolInputSchema())  # error: the wire name
    mcp.TextContent(text="hi", _meta={})  # error: the wire name
    mcp.SamplingMessage(role="system", content=mcp.TextContent(text="hi"))  # error: no such role
    mcp.CallToolResult(content=[mcp.Tool(name="echo", input_schema=mcp.ToolInputSchema())])  # error: not content
    mcp.CancelTaskResult(created_at="", last_updated_at="", status="failed", task_id="", ttl=1, a=1)  # error: no field
    mcp.Task(created_at="", last_updated_at="", status="working", task_id="1")  # error: ttl may be null, not absent


def read(block: mcp.ContentBlock, tool: mcp.Tool, result: mcp.ListToolsResult) -> str:
    print(block.text)  # error: not every block has text
    print(tool.inputSchema)  # error: the wire name
    print(result.next_cursor.upper())  # error: absent on the last page
    tool.name = 1  # error: a name is text
    match block:
        case mcp.TextContent():
            return block.text
        case mcp.ImageContent() | mcp.AudioContent() | mcp.ResourceLink():
            return block.type
        case _:
            assert_never(block)  # error: embedded resources are forgotten


async def call(client: Client, ctx: Context) -> None:
    await client.call_tool()  # error: the name is missing
    await client.call_tool(7)  # error: a name is text
    await client.call_tool("echo", ["hi"])  # error: arguments have names
    await client.call_tool("echo", {}, mcp.TaskMetadata())  # error: task is a keyword
    await client.call_tool("echo", argumenst={})  # error: no such argument
    print((await client.call_tool("echo", task=mcp.TaskMetadata())).content)  # error: it may be a task instead
    await client.set_level("loud")  # error: no such level
    await client.create_message([], 1)  # error: a request of servers
    await ctx.list_tools()  # error: a request of clients
    text: str = await client.list_tools()  # error: not text
    print(text, client.list_tools().tools)  # error: not awaited


async def send(client: Client, params: mcp.CallToolRequestParams) -> None:
    await client.request(methods.CALL_TOOL, mcp.PaginatedRequestParams())  # error: the params of another method
    await client.request(methods.CALL_TOOL, {"name": "echo"})  # error: params are typed
    await client.call(methods.LIST_TOOLS, params)  # error: the params of another method
    await client.request("tools/call", params)  # error: not of the method table
    await client.notify(methods.CALL_TOOL, params)  # error: a request is no notification
    await client.notify(methods.INITIALIZED, mcp.CancelledNotificationParams())  # error: the params of another method
    print((await client.request(methods.CALL_TOOL, params)).content)  # error: it may be a task instead
    await client.request(methods.CALL_TOOL, old.CallToolRequestParams(name="echo"))  # error: revision
