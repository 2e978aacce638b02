"""What `full_server.py` offers, on the official Python SDK's low-level server; tasks excepted, which it does not have.

python sdk_server.py [--sse HOST:PORT]
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

Ctx = ServerRequestContext[Any]
Page = types.PaginatedRequestParams | None

RESOURCE_NOT_FOUND = -32002
PIXEL = "iVBORw0KGgo="
TEXTS = {"test://a": "alpha", "test://b": "beta"}
BLOB = ("test://c", "AAEC")
TONES = ("formal", "friendly")
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1},
        "age": {"type": "integer", "minimum": 0},
        "sure": {"type": "boolean", "default": True},
        "colour": {"type": "string", "enum": ["red", "blue"]},
    },
    "required": ["name"],
}
ARGUMENTS = {
    "add": {"a": "integer", "b": "integer"},
    "cancelled": {},
    "change": {},
    "count": {"steps": "integer"},
    "echo": {"text": "string"},
    "elicit": {"question": "string"},
    "fail": {},
    "kinds": {},
    "ping": {},
    "roots": {},
    "sample": {"prompt": "string"},
    "say": {"text": "string"},
    "touch": {"uri": "string"},
    "visit": {"url": "string"},
    "wait": {},
}


def page(items: Sequence[Any], params: Page, size: int) -> tuple[list[Any], str | None]:
    """The items from the cursor on, and the cursor of those that follow."""
    start = int((params.cursor if params else None) or 0)
    following = start + size
    return list(items[start:following]), str(following) if following < len(items) else None


def text(value: object, **more: Any) -> types.CallToolResult:
    """The result of a tool."""
    words = value if isinstance(value, str) else json.dumps(value)
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


class Tools:
    """The tools; each is a method."""

    def __init__(self) -> None:
        self.subscriptions: set[str] = set()
        self.cancelled_calls = 0
        self.level: types.LoggingLevel = "debug"

    async def add(self, ctx: Ctx, a: int, b: int) -> types.CallToolResult:
        more = {"structured_content": {"sum": a + b}} if ctx.protocol_version >= "2025-06-18" else {}
        return text({"sum": a + b}, **more)

    async def cancelled(self, ctx: Ctx) -> types.CallToolResult:
        return text(self.cancelled_calls)

    async def change(self, ctx: Ctx) -> types.CallToolResult:
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_list_changed()
        await ctx.session.send_prompt_list_changed()
        return text("changed")

    async def count(self, ctx: Ctx, steps: int) -> types.CallToolResult:
        for step in range(1, steps + 1):
            message = f"step {step}" if ctx.protocol_version >= "2025-03-26" else None
            await ctx.session.report_progress(step, steps, message)
        return text("counted")

    async def echo(self, ctx: Ctx, text: str) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    async def elicit(self, ctx: Ctx, question: str) -> types.CallToolResult:
        answer = await ctx.session.elicit_form(question, FORM, ctx.request_id)
        return text({"action": answer.action, "content": answer.content})

    async def fail(self, ctx: Ctx) -> types.CallToolResult:
        return text("it failed", is_error=True)

    async def kinds(self, ctx: Ctx) -> types.CallToolResult:
        contents = types.TextResourceContents(uri="test://a", text="alpha")
        blocks: list[types.ContentBlock] = [
            types.TextContent(type="text", text="words"),
            types.ImageContent(type="image", data=PIXEL, mime_type="image/png"),
            types.EmbeddedResource(type="resource", resource=contents),
        ]
        if ctx.protocol_version >= "2025-03-26":
            blocks.append(types.AudioContent(type="audio", data="UklGRg==", mime_type="audio/wav"))
        if ctx.protocol_version >= "2025-06-18":
            blocks.append(types.ResourceLink(type="resource_link", uri="test://b", name="b"))
        return types.CallToolResult(content=blocks)

    async def ping(self, ctx: Ctx) -> types.CallToolResult:
        await ctx.session.send_ping()
        return text("pong")

    async def roots(self, ctx: Ctx) -> types.CallToolResult:
        answer = await ctx.session.list_roots()
        return text([str(root.uri) for root in answer.roots])

    async def sample(self, ctx: Ctx, prompt: str) -> types.CallToolResult:
        answer = await ctx.session.create_message(
            [types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))],
            max_tokens=50,
            system_prompt="Be brief.",
            temperature=0.5,
            model_preferences=types.ModelPreferences(hints=[types.ModelHint(name="small")]),
            related_request_id=ctx.request_id,
        )
        assert isinstance(answer.content, types.TextContent)
        return text({"model": answer.model, "text": answer.content.text})

    async def say(self, ctx: Ctx, text: str) -> types.CallToolResult:
        if self.level == "debug":
            await ctx.session.send_log_message("debug", {"text": text}, "fixture", ctx.request_id)
        await ctx.session.send_log_message("warning", text, "fixture", ctx.request_id)
        return await self.echo(ctx, text)

    async def touch(self, ctx: Ctx, uri: str) -> types.CallToolResult:
        told = uri in self.subscriptions
        if told:
            await ctx.session.send_resource_updated(uri)
        return text(int(told))

    async def visit(self, ctx: Ctx, url: str) -> types.CallToolResult:
        answer = await ctx.session.elicit_url("Look", url, "v1", ctx.request_id)
        await ctx.session.send_elicit_complete("v1", ctx.request_id)
        return text(answer.action)

    async def wait(self, ctx: Ctx) -> types.CallToolResult:
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            self.cancelled_calls += 1
            raise
        return text("waited")


def server() -> Server[Any]:
    """The server; it speaks every stateful revision."""
    tools = Tools()

    async def list_tools(ctx: Ctx, params: Page) -> types.ListToolsResult:
        since = {"elicit": "2025-06-18", "visit": "2025-11-25"}
        names = [name for name in ARGUMENTS if since.get(name, "") <= ctx.protocol_version]
        every = [tool(name, ctx.protocol_version) for name in names]
        found, following = page(every, params, 10)
        return types.ListToolsResult(tools=found, next_cursor=following)

    def tool(name: str, revision: str) -> types.Tool:
        properties = {argument: {"type": kind} for argument, kind in ARGUMENTS[name].items()}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        found = types.Tool(name=name, description=f"Tries {name}.", input_schema=schema)
        if name == "add" and revision >= "2025-06-18":
            sum_ = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
            found.output_schema, found.title = sum_, "Addition"
        return found

    async def call_tool(ctx: Ctx, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in ARGUMENTS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        result = await getattr(tools, params.name)(ctx, **(params.arguments or {}))
        assert isinstance(result, types.CallToolResult)
        return result

    async def list_resources(ctx: Ctx, params: Page) -> types.ListResourcesResult:
        every = [types.Resource(uri=uri, name=uri[-1], mime_type="text/plain") for uri in TEXTS]
        every.append(types.Resource(uri=BLOB[0], name="c", mime_type="application/octet-stream"))
        found, following = page(every, params, 2)
        return types.ListResourcesResult(resources=found, next_cursor=following)

    async def list_templates(ctx: Ctx, params: Page) -> types.ListResourceTemplatesResult:
        every = [
            types.ResourceTemplate(uri_template="test://item/{id}", name="item"),
            types.ResourceTemplate(uri_template="test://square/{n}", name="square"),
        ]
        found, following = page(every, params, 1)
        return types.ListResourceTemplatesResult(resource_templates=found, next_cursor=following)

    async def read_resource(ctx: Ctx, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = params.uri
        contents: types.TextResourceContents | types.BlobResourceContents
        if uri == BLOB[0]:
            contents = types.BlobResourceContents(uri=uri, blob=BLOB[1], mime_type="application/octet-stream")
        elif uri in TEXTS:
            contents = types.TextResourceContents(uri=uri, text=TEXTS[uri], mime_type="text/plain")
        elif uri.startswith("test://item/"):
            contents = types.TextResourceContents(uri=uri, text=f"item {uri.rpartition('/')[2]}")
        else:
            raise MCPError(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(ctx: Ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
        tools.subscriptions.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(ctx: Ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        tools.subscriptions.discard(params.uri)
        return types.EmptyResult()

    async def list_prompts(ctx: Ctx, params: Page) -> types.ListPromptsResult:
        arguments = [types.PromptArgument(name="name", required=True), types.PromptArgument(name="tone")]
        every = [types.Prompt(name="greet", arguments=arguments, description="Says hello."), types.Prompt(name="show")]
        found, following = page(every, params, 1)
        return types.ListPromptsResult(prompts=found, next_cursor=following)

    async def get_prompt(ctx: Ctx, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        content: types.ContentBlock
        if params.name == "show":
            contents = types.TextResourceContents(uri="test://a", text="alpha")
            content = types.EmbeddedResource(type="resource", resource=contents)
        elif params.name == "greet" and params.arguments and "name" in params.arguments:
            content = types.TextContent(type="text", text=f"Greet {params.arguments['name']}.")
        else:
            raise MCPError(types.INVALID_PARAMS, "Unknown prompt, or no name")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def complete(ctx: Ctx, params: types.CompleteRequestParams) -> types.CompleteResult:
        known = (params.context.arguments if params.context else None) or {}
        if params.argument.name == "id":
            choices = [str(number) for number in range(1, 13)]
        else:
            choices = [tone for tone in TONES if "Dr." not in known.get("name", "") or tone == "formal"]
        values = [choice for choice in choices if choice.startswith(params.argument.value)]
        return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))

    async def set_level(ctx: Ctx, params: types.SetLevelRequestParams) -> types.EmptyResult:
        tools.level = params.level
        return types.EmptyResult()

    return Server(
        "fixture",
        version="1.0",
        instructions="Try everything.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )


def options(offer: Server[Any]) -> InitializationOptions:
    """What it says of itself."""
    return offer.create_initialization_options(NotificationOptions(True, True, True))


async def over_stdio() -> None:
    """Serves standard input and output."""
    offer = server()
    async with stdio_server() as (read, write):
        await offer.run(read, write, options(offer))


async def over_sse(address: str) -> None:
    """Serves HTTP with server-sent events."""
    host, port = address.split(":")
    transport = SseServerTransport("/messages/")

    async def connect(request: Request) -> Response:
        offer = server()
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await offer.run(read, write, options(offer))
        return Response()

    routes = [Route("/sse", connect), Mount("/messages/", transport.handle_post_message)]
    config = uvicorn.Config(Starlette(routes=routes), host, int(port), log_level="warning")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    parser = argparse.ArgumentParser()
    parser.add_argument("--sse", metavar="HOST:PORT")
    address = parser.parse_args().sse
    anyio.run(over_sse, address) if address else anyio.run(over_stdio)
