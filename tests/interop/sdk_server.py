"""The features of `full_server.py` on the official Python SDK's low-level server, except tasks, which the SDK lacks.

python sdk_server.py [--http HOST:PORT]
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import anyio
import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

Ctx = ServerRequestContext[Any]
Page = types.PaginatedRequestParams | None

Answer = TypeVar("Answer", bound=BaseModel)

STATELESS = "2026-07-28"
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
TOOLS = """
add(a: integer, b: integer); cancelled(); change(); count(steps: integer); echo(text: string); fail(); kinds();
elicit(question: string); interview(); listed(); pause(); ping(); roots(); route(region: string); wait();
sample(prompt: string); say(text: string); touch(uri: string); visit(url: string)"""
ARGUMENTS = {name: dict(re.findall(r"(\w+): (\w+)", each)) for name, each in re.findall(r"(\w+)\(([^)]*)\)", TOOLS)}
SINCE = {"elicit": "2025-06-18", "visit": "2025-11-25"} | dict.fromkeys(["interview", "listed", "route"], STATELESS)


class InputRequired(Exception):
    """Ends a tool that needs input from the client first; the argument has the requests by key."""


def page(items: Sequence[Any], params: Page, size: int) -> tuple[list[Any], str | None]:
    """Return the items from the cursor on, and the cursor of the next page."""
    start = int((params.cursor if params else None) or 0)
    following = start + size
    return list(items[start:following]), str(following) if following < len(items) else None


def text(value: object, **more: Any) -> types.CallToolResult:
    """Return the result of a tool."""
    words = value if isinstance(value, str) else json.dumps(value)
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


def elicitation(question: str) -> types.ElicitRequest:
    """Return a request to fill in the form."""
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=question, requested_schema=FORM))


def sampling(prompt: str) -> types.CreateMessageRequest:
    """Return a request to sample the model."""
    params = types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))],
        max_tokens=50,
        system_prompt="Be brief.",
        temperature=0.5,
        model_preferences=types.ModelPreferences(hints=[types.ModelHint(name="small")]),
    )
    return types.CreateMessageRequest(params=params)


def visit(url: str, id_: str | None = None) -> types.ElicitRequest:
    """Return a request to visit a page."""
    return types.ElicitRequest(params=types.ElicitRequestURLParams(message="Look", url=url, elicitation_id=id_))


async def ask(ctx: Ctx, key: str, request: Any, answer: type[Answer]) -> Answer:
    """Send a request to the client, or raise `InputRequired` in stateless revisions; return the response."""
    if ctx.protocol_version < STATELESS:
        metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
        return await ctx.session.send_request(request, answer, metadata=metadata)
    answers: Mapping[str, Any] = (ctx.params or {}).get("inputResponses") or {}
    if key not in answers:
        raise InputRequired({key: request})
    return answer.model_validate(answers[key])


class Tools:
    """Tools of one revision; each is a method.

    Args:
        bus: Sends notifications to listening clients.
    """

    def __init__(self, bus: InMemorySubscriptionBus) -> None:
        self.bus = bus
        self.subscriptions: set[str] = set()
        self.cancelled_calls = self.lists = 0
        self.level: types.LoggingLevel = "debug"

    async def add(self, ctx: Ctx, a: int, b: int) -> types.CallToolResult:
        more = {"structured_content": {"sum": a + b}} if ctx.protocol_version >= "2025-06-18" else {}
        return text({"sum": a + b}, **more)

    async def cancelled(self, ctx: Ctx) -> types.CallToolResult:
        return text(self.cancelled_calls)

    async def change(self, ctx: Ctx) -> types.CallToolResult:
        for event in (ToolsListChanged(), ResourcesListChanged(), PromptsListChanged()):
            await self.bus.publish(event)
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
        answer = await ask(ctx, "user", elicitation(question), types.ElicitResult)
        return text({"action": answer.action, "content": answer.content})

    async def fail(self, ctx: Ctx) -> types.CallToolResult:
        return text("it failed", is_error=True)

    async def interview(self, ctx: Ctx) -> types.CallToolResult:
        answers = (ctx.params or {}).get("inputResponses") or {}
        questions = {"user": elicitation("Who?"), "model": sampling("Hello?"), "roots": types.ListRootsRequest()}
        if (ctx.params or {}).get("requestState") != "known" and not questions.keys() <= answers.keys():
            raise InputRequired(questions)
        answer = await ask(ctx, "visit", visit("https://example.com"), types.ElicitResult)
        return text(answer.action)

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

    async def listed(self, ctx: Ctx) -> types.CallToolResult:
        return text(self.lists)

    async def pause(self, ctx: Ctx) -> types.CallToolResult:
        for words in ("before", "cut here", "meanwhile"):
            await ctx.session.send_log_message("info", words, None, ctx.request_id)
            await anyio.sleep(0.1)
        return text("resumed")

    async def ping(self, ctx: Ctx) -> types.CallToolResult:
        await ctx.session.send_ping()
        return text("pong")

    async def roots(self, ctx: Ctx) -> types.CallToolResult:
        answer = await ask(ctx, "roots", types.ListRootsRequest(), types.ListRootsResult)
        return text([str(root.uri) for root in answer.roots])

    async def route(self, ctx: Ctx, region: str) -> types.CallToolResult:
        return text(region)

    async def sample(self, ctx: Ctx, prompt: str) -> types.CallToolResult:
        answer = await ask(ctx, "model", sampling(prompt), types.CreateMessageResult)
        assert isinstance(answer.content, types.TextContent)
        return text({"model": answer.model, "text": answer.content.text})

    async def say(self, ctx: Ctx, text: str) -> types.CallToolResult:
        if self.level == "debug":
            await ctx.session.send_log_message("debug", {"text": text}, "fixture", ctx.request_id)
        await ctx.session.send_log_message("warning", text, "fixture", ctx.request_id)
        return await self.echo(ctx, text)

    async def touch(self, ctx: Ctx, uri: str) -> types.CallToolResult:
        await self.bus.publish(ResourceUpdated(uri=uri))
        if uri in self.subscriptions:
            await ctx.session.send_resource_updated(uri)
        return text("touched")

    async def visit(self, ctx: Ctx, url: str) -> types.CallToolResult:
        id_ = "v1" if ctx.protocol_version < STATELESS else None
        answer = await ask(ctx, "visit", visit(url, id_), types.ElicitResult)
        if id_ is not None:
            await ctx.session.send_elicit_complete(id_, ctx.request_id)
        return text(answer.action)

    async def wait(self, ctx: Ctx) -> types.CallToolResult:
        try:
            await anyio.sleep(60)
        except anyio.get_cancelled_exc_class():
            self.cancelled_calls += 1
            raise
        return text("waited")


class Fixture(Server[Any]):
    """Server that declares the `listChanged` capabilities."""

    def create_initialization_options(self, *arguments: Any, **named: Any) -> InitializationOptions:
        return super().create_initialization_options(NotificationOptions(True, True, True))


def server() -> Fixture:
    """Return the server, which supports every revision."""
    bus = InMemorySubscriptionBus()
    every_tools: defaultdict[str, Tools] = defaultdict(lambda: Tools(bus))

    async def list_tools(ctx: Ctx, params: Page) -> types.ListToolsResult:
        names = [name for name in ARGUMENTS if SINCE.get(name, "") <= ctx.protocol_version]
        every = [tool(name, ctx.protocol_version) for name in names]
        found, following = page(every, params, 10)
        return types.ListToolsResult(tools=found, next_cursor=following)

    def tool(name: str, revision: str) -> types.Tool:
        properties = {argument: {"type": kind} for argument, kind in ARGUMENTS[name].items()}
        if name == "route":
            properties["region"]["x-mcp-header"] = "Region"
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        found = types.Tool(name=name, description=f"Tries {name}.", input_schema=schema)
        if name == "add" and revision >= "2025-06-18":
            sum_ = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
            found.output_schema, found.title = sum_, "Addition"
        return found

    async def call_tool(
        ctx: Ctx, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in ARGUMENTS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        try:
            result = await getattr(every_tools[ctx.protocol_version], params.name)(ctx, **(params.arguments or {}))
        except InputRequired as required:
            (requests,) = required.args
            state = "known" if "visit" in requests else None
            return types.InputRequiredResult(input_requests=requests, request_state=state)
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
            code = RESOURCE_NOT_FOUND if ctx.protocol_version < STATELESS else types.INVALID_PARAMS
            raise MCPError(code, "Resource not found", {"uri": uri})
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(ctx: Ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
        every_tools[ctx.protocol_version].subscriptions.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(ctx: Ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        every_tools[ctx.protocol_version].subscriptions.discard(params.uri)
        return types.EmptyResult()

    async def list_prompts(ctx: Ctx, params: Page) -> types.ListPromptsResult:
        arguments = [types.PromptArgument(name="name", required=True), types.PromptArgument(name="tone")]
        every = [types.Prompt(name="greet", arguments=arguments, description="Says hello."), types.Prompt(name="show")]
        found, following = page(every, params, 1)
        every_tools[ctx.protocol_version].lists += 1
        return types.ListPromptsResult(prompts=found, next_cursor=following, ttl_ms=60_000)

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
        tones = [tone for tone in TONES if "Dr." not in known.get("name", "") or tone == "formal"]
        choices = [str(number) for number in range(1, 13)] if params.argument.name == "id" else tones
        values = [choice for choice in choices if choice.startswith(params.argument.value)]
        return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))

    async def set_level(ctx: Ctx, params: types.SetLevelRequestParams) -> types.EmptyResult:
        every_tools[ctx.protocol_version].level = params.level
        return types.EmptyResult()

    return Fixture(
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
        on_subscriptions_listen=ListenHandler(bus),
    )


class Events(EventStore):
    """Event store in memory that replays messages to reconnecting clients."""

    def __init__(self) -> None:
        self.events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = self.events[int(last_event_id) - 1][0]
        for number, (own, message) in list(enumerate(self.events, 1))[int(last_event_id) :]:
            if own == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


async def over_stdio() -> None:
    """Serve standard input and output."""
    offer = server()
    async with stdio_server() as (read, write):
        await offer.run(read, write, offer.create_initialization_options())


async def over_http(address: str) -> None:
    """Serve Streamable HTTP and HTTP+SSE."""
    host, port = address.split(":")
    offer = server()
    transport = SseServerTransport("/messages/")

    async def connect(request: Request) -> Response:
        send = request._send  # noqa: SLF001 - as the SDK shows it
        async with transport.connect_sse(request.scope, request.receive, send) as (read, write):
            await offer.run(read, write, offer.create_initialization_options())
        return Response()

    app = offer.streamable_http_app(
        event_store=Events(),
        retry_interval=50,
        custom_starlette_routes=[Route("/sse", connect), Mount("/messages/", transport.handle_post_message)],  # type: ignore[list-item]
    )
    config = uvicorn.Config(app, host, int(port), log_level="warning", timeout_keep_alive=60)
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", metavar="HOST:PORT")
    address = parser.parse_args().http
    anyio.run(over_http, address) if address else anyio.run(over_stdio)
