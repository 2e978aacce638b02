"""Generated server with every feature of MCP, for tests with other implementations.

    python full_server.py REVISION [--http HOST:PORT]

`all` stands for every revision. `sdk_server.py` and `node_server.mjs` offer the same features with official SDKs.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcp_bindgen.http.server import uvicorn_protocol
from mcp_bindgen.runtime import ConnectionClosed, ProtocolError, Server, run
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
FRESH = 60_000
"""TTL of the prompt list in milliseconds."""

PIXEL = "iVBORw0KGgo="  # the signature of a PNG file
TEXTS = {"test://a": "alpha", "test://b": "beta"}
BLOB = ("test://c", "AAEC")
TONES = ("formal", "friendly")
NAMES = """
add(a: integer, b: integer); cancelled(); change(); count(steps: integer); echo(text: string); fail(); kinds();
elicit(question: string); interview(); listed(); misfit(); pause(); ping(); roots(); route(region: string); wait();
sample(prompt: string); say(text: string); touch(uri: string); visit(url: string)"""
TOOLS = {name: dict(re.findall(r"(\w+): (\w+)", each)) for name, each in re.findall(r"(\w+)\(([^)]*)\)", NAMES)}
RELATED_TASK = "io.modelcontextprotocol/related-task"


def server(revision: str) -> Server:
    """Return the server of a revision, with all features of that revision."""
    bindings: Any = import_module(f"mcp_bindgen.v{revision.replace('-', '_')}")
    mcp = bindings.types
    has_audio = revision >= "2025-03-26"
    has_structure = has_elicitation = has_links = revision >= "2025-06-18"
    has_visits = revision >= "2025-11-25"
    has_tasks = revision == "2025-11-25"
    stateless = revision >= "2026-07-28"
    not_found = INVALID_PARAMS if stateless else -32002
    fresh = {"ttl_ms": FRESH} if stateless else {}

    def text(value: object, **more: Any) -> Any:
        """Return the result of a tool."""
        words = value if isinstance(value, str) else json.dumps(value)
        return mcp.CallToolResult(content=[mcp.TextContent(text=words)], **more)

    class Background:
        """Tool that runs as a task."""

        def __init__(self, id_: str, ttl: int | None) -> None:
            self.id, self.ttl, self.status = id_, ttl, "working"
            self.began = self.changed = now()
            self.scope = anyio.CancelScope()
            self.over = anyio.Event()
            self.result: Any = None

        def state(self) -> dict[str, Any]:
            return {
                "task_id": self.id,
                "status": self.status,
                "created_at": self.began,
                "last_updated_at": self.changed,
                "ttl": self.ttl,
                "poll_interval": 50,
            }

        def become(self, status: str) -> None:
            self.status, self.changed = status, now()

    class Full(bindings.Server):  # type: ignore[misc]
        """Server with every feature, for tests with other implementations."""

        info = mcp.Implementation(name="fixture", version="1.0")
        instructions = "Try everything."

        def __init__(self) -> None:
            self.subscriptions: set[tuple[Any, str]] = set()
            self.cancelled = self.listed = 0
            self.tasks: dict[str, Background] = {}
            self.background: TaskGroup | None = None

        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            async with anyio.create_task_group() as self.background:
                yield
                self.background.cancel_scope.cancel()

        def extra_capabilities(self) -> dict[str, Any]:
            return {"tasks": {"requests": {"tools": {"call": {}}}}} if has_tasks else {}

        # --- tools ------------------------------------------------------------------------------------------------

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            tools = [tool(name, **arguments) for name, arguments in TOOLS.items()]
            tools = [each for each in tools if hasattr(self, f"tool_{each.name}")]
            if has_structure:
                sum_ = {"properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
                for each in tools:
                    if each.name in ("add", "misfit"):
                        each.output_schema = mcp.ToolOutputSchema(**sum_)
                tools[0].title = "Addition"
            if has_tasks:
                for each in tools:
                    each.execution = mcp.ToolExecution(task_support="optional")
            if stateless:
                region = next(each for each in tools if each.name == "route").input_schema.properties["region"]
                region["x-mcp-header"] = "Region"
            found, following = page(tools, params.cursor, 10)
            return mcp.ListToolsResult(tools=found, next_cursor=following)

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            run_tool = getattr(self, f"tool_{params.name}", None)
            if run_tool is None:
                raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {params.name}")
            arguments = params.arguments or {}
            if has_tasks and params.task is not None:
                return self.begin(params, ctx, run_tool, arguments)
            return await run_tool(ctx, **arguments)

        async def tool_add(self, ctx: Any, a: int, b: int) -> Any:
            return text({"sum": a + b}, **({"structured_content": {"sum": a + b}} if has_structure else {}))

        async def tool_cancelled(self, ctx: Any) -> Any:
            return text(self.cancelled)

        async def tool_change(self, ctx: Any) -> Any:
            await self.broadcast(lambda client: client.notify_tool_list_changed())
            await self.broadcast(lambda client: client.notify_resource_list_changed())
            await self.broadcast(lambda client: client.notify_prompt_list_changed())
            return text("changed")

        async def tool_count(self, ctx: Any, steps: int) -> Any:
            for step in range(1, steps + 1):
                await ctx.progress(step, steps, *([f"step {step}"] if has_audio else []))
            # The TypeScript SDK loses progress that comes together with the result.
            await (ctx.ping() if hasattr(ctx, "ping") else anyio.sleep(0.1))
            return text("counted")

        async def tool_echo(self, ctx: Any, text: str) -> Any:
            return mcp.CallToolResult(content=[mcp.TextContent(text=text)])

        async def tool_elicit(self, ctx: Any, question: str) -> Any:
            schema = {
                "properties": {
                    "name": {"type": "string", "title": "Name", "minLength": 1},
                    "age": {"type": "integer", "minimum": 0},
                    "sure": {"type": "boolean", "default": True},
                    "colour": {"type": "string", "enum": ["red", "blue"]},
                },
                "required": ["name"],
            }
            if has_visits:
                form = mcp.ElicitRequestFormParamsRequestedSchema.model_validate({"type": "object", **schema})
                asked = mcp.ElicitRequestFormParams(message=question, requested_schema=form)
            else:
                form = mcp.ElicitRequestParamsRequestedSchema.model_validate({"type": "object", **schema})
                asked = mcp.ElicitRequestParams(message=question, requested_schema=form)
            answer = await ctx.ask_params("user", asked)
            return text({"action": answer.action, "content": answer.content})

        async def tool_fail(self, ctx: Any) -> Any:
            return text("it failed", is_error=True)

        async def tool_interview(self, ctx: Any) -> Any:
            async with anyio.create_task_group() as tasks:  # three requests at once
                for ask in (self.tool_elicit(ctx, "Who?"), self.tool_sample(ctx, "Hello?"), self.tool_roots(ctx)):
                    tasks.start_soon(awaiting, ask)
            answer = await ctx.ask_params(
                "visit", mcp.ElicitRequestURLParams(message="Look", url="https://example.com")
            )
            return text(answer.action)

        async def tool_kinds(self, ctx: Any) -> Any:
            blocks = [
                mcp.TextContent(text="words"),
                mcp.ImageContent(data=PIXEL, mime_type="image/png"),
                mcp.EmbeddedResource(resource=mcp.TextResourceContents(uri="test://a", text="alpha")),
            ]
            if has_audio:
                blocks.append(mcp.AudioContent(data="UklGRg==", mime_type="audio/wav"))
            if has_links:
                blocks.append(mcp.ResourceLink(uri="test://b", name="b"))
            return mcp.CallToolResult(content=blocks)

        async def tool_listed(self, ctx: Any) -> Any:
            return text(self.listed)

        async def tool_misfit(self, ctx: Any) -> Any:
            return text("five", structured_content={"sum": "five"})

        async def tool_pause(self, ctx: Any) -> Any:
            for words in ("before", "cut here", "meanwhile"):
                await ctx.log("info", words)
                await anyio.sleep(0.1)
            return text("resumed")

        async def tool_ping(self, ctx: Any) -> Any:
            await ctx.ping()
            return text("pong")

        async def tool_roots(self, ctx: Any) -> Any:
            answer = await ctx.ask_params("roots", getattr(mcp, "ListRootsRequestParams", mcp.RequestParams)())
            return text([root.uri for root in answer.roots])

        async def tool_route(self, ctx: Any, region: str) -> Any:
            return text(region)

        async def tool_sample(self, ctx: Any, prompt: str) -> Any:
            asked = mcp.CreateMessageRequestParams(
                max_tokens=50,
                messages=[mcp.SamplingMessage(role="user", content=mcp.TextContent(text=prompt))],
                system_prompt="Be brief.",
                temperature=0.5,
                model_preferences=mcp.ModelPreferences(hints=[mcp.ModelHint(name="small")]),
            )
            answer = await ctx.ask_params("model", asked)
            return text({"model": answer.model, "text": answer.content.text})

        async def tool_say(self, ctx: Any, text: str) -> Any:
            await ctx.log("debug", {"text": text}, "fixture")
            await ctx.log("warning", text, "fixture")
            return await self.tool_echo(ctx, text)

        async def tool_touch(self, ctx: Any, uri: str) -> Any:
            told = [each for each in self.connections if stateless or (each.session, uri) in self.subscriptions]
            for each in told:
                await each.notify_resource_updated(uri)
            return text(len(told))

        async def tool_visit(self, ctx: Any, url: str) -> Any:
            named = {} if stateless else {"elicitation_id": "v1"}
            answer = await ctx.ask_params("visit", mcp.ElicitRequestURLParams(message="Look", url=url, **named))
            if named:
                await ctx.notify_elicitation_complete("v1")
            return text(answer.action)

        async def tool_wait(self, ctx: Any) -> Any:
            try:
                await anyio.sleep(60)
            except anyio.get_cancelled_exc_class():
                self.cancelled += 1
                raise
            return text("waited")

        # --- resources --------------------------------------------------------------------------------------------

        async def list_resources(self, params: Any, ctx: Any) -> Any:
            every = [mcp.Resource(uri=uri, name=uri[-1], mime_type="text/plain") for uri in TEXTS]
            every.append(mcp.Resource(uri=BLOB[0], name="c", mime_type="application/octet-stream"))
            found, following = page(every, params.cursor, 2)
            return mcp.ListResourcesResult(resources=found, next_cursor=following)

        async def list_resource_templates(self, params: Any, ctx: Any) -> Any:
            every = [
                mcp.ResourceTemplate(uri_template="test://item/{id}", name="item"),
                mcp.ResourceTemplate(uri_template="test://square/{n}", name="square"),
            ]
            found, following = page(every, params.cursor, 1)
            return mcp.ListResourceTemplatesResult(resource_templates=found, next_cursor=following)

        async def read_resource(self, params: Any, ctx: Any) -> Any:
            uri = params.uri
            if uri == BLOB[0]:
                contents = mcp.BlobResourceContents(uri=uri, blob=BLOB[1], mime_type="application/octet-stream")
            elif uri in TEXTS:
                contents = mcp.TextResourceContents(uri=uri, text=TEXTS[uri], mime_type="text/plain")
            elif uri.startswith("test://item/"):
                contents = mcp.TextResourceContents(uri=uri, text=f"item {uri.rpartition('/')[2]}")
            else:
                raise ProtocolError(not_found, "Resource not found", {"uri": uri})
            return mcp.ReadResourceResult(contents=[contents])

        async def _subscribe(self, params: Any, ctx: Any) -> Any:
            self.subscriptions.add((ctx.session, params.uri))
            return mcp.Result()

        async def _unsubscribe(self, params: Any, ctx: Any) -> Any:
            self.subscriptions.discard((ctx.session, params.uri))
            return mcp.Result()

        if not stateless:  # clients of stateless revisions use `subscriptions/listen`
            subscribe, unsubscribe = _subscribe, _unsubscribe

        # --- prompts and completion -------------------------------------------------------------------------------

        async def list_prompts(self, params: Any, ctx: Any) -> Any:
            arguments = [mcp.PromptArgument(name="name", required=True), mcp.PromptArgument(name="tone")]
            every = [mcp.Prompt(name="greet", arguments=arguments, description="Says hello."), mcp.Prompt(name="show")]
            found, following = page(every, params.cursor, 1)
            self.listed += 1
            return mcp.ListPromptsResult(prompts=found, next_cursor=following, **fresh)

        async def get_prompt(self, params: Any, ctx: Any) -> Any:
            if params.name == "show":
                contents = mcp.TextResourceContents(uri="test://a", text="alpha")
                content = mcp.EmbeddedResource(resource=contents)
            elif params.name == "greet" and "name" in (params.arguments or {}):
                content = mcp.TextContent(text=f"Greet {params.arguments['name']}.")
            else:
                raise ProtocolError(INVALID_PARAMS, "Unknown prompt, or no name")
            return mcp.GetPromptResult(messages=[mcp.PromptMessage(role="user", content=content)])

        async def complete(self, params: Any, ctx: Any) -> Any:
            known = getattr(getattr(params, "context", None), "arguments", None) or {}
            if params.argument.name == "id":
                choices = [str(number) for number in range(1, 13)]
            else:
                choices = [tone for tone in TONES if "Dr." not in known.get("name", "") or tone == "formal"]
            values = [choice for choice in choices if choice.startswith(params.argument.value)]
            completion = mcp.CompleteResultCompletion(values=values, total=len(values), has_more=False)
            return mcp.CompleteResult(completion=completion)

        # --- tasks ------------------------------------------------------------------------------------------------

        def begin(self, params: Any, ctx: Any, run_tool: Any, arguments: dict[str, Any]) -> Any:
            task = Background(f"task-{len(self.tasks) + 1}", params.task.ttl)
            self.tasks[task.id] = task

            async def work() -> None:
                with task.scope:
                    task.result = await run_tool(ctx, **arguments)
                    task.become("completed")
                    with suppress(ConnectionClosed):
                        await ctx.notify_task_status(**task.state())
                task.over.set()

            assert self.background is not None
            self.background.start_soon(work)
            return mcp.CreateTaskResult(task=mcp.Task(**task.state()))

        def task(self, id_: str) -> Background:
            if id_ not in self.tasks:
                raise ProtocolError(INVALID_PARAMS, f"Unknown task: {id_}")
            return self.tasks[id_]

        async def _get_task(self, params: Any, ctx: Any) -> Any:
            return mcp.GetTaskResult(**self.task(params.task_id).state())

        async def _get_task_payload(self, params: Any, ctx: Any) -> Any:
            task = self.task(params.task_id)
            await task.over.wait()
            if task.status == "cancelled":
                raise ProtocolError(INVALID_PARAMS, f"The task was cancelled: {task.id}")
            wire = {**task.result.model_dump(), "_meta": {RELATED_TASK: {"taskId": task.id}}}
            return mcp.GetTaskPayloadResult.model_validate(wire)

        async def _list_tasks(self, params: Any, ctx: Any) -> Any:
            every = [mcp.Task(**task.state()) for task in self.tasks.values()]
            found, following = page(every, params.cursor, 2)
            return mcp.ListTasksResult(tasks=found, next_cursor=following)

        async def _cancel_task(self, params: Any, ctx: Any) -> Any:
            task = self.task(params.task_id)
            if task.status != "working":
                raise ProtocolError(INVALID_PARAMS, f"The task is over: {task.id}")
            task.become("cancelled")
            task.scope.cancel()
            return mcp.CancelTaskResult(**task.state())

        if has_tasks:
            get_task, get_task_payload = _get_task, _get_task_payload
            list_tasks, cancel_task = _list_tasks, _cancel_task

    def tool(name: str, **arguments: str) -> Any:
        properties = {argument: {"type": kind} for argument, kind in arguments.items()}
        schema = mcp.ToolInputSchema(properties=properties, required=list(arguments))
        return mcp.Tool(name=name, description=f"Tries {name}.", input_schema=schema)

    absent = {"elicit": not has_elicitation, "misfit": not has_structure, "visit": not has_visits, "ping": stateless}
    absent |= dict.fromkeys(["interview", "listed", "route"], not stateless)
    for name in [name for name, lacks in absent.items() if lacks]:
        delattr(Full, f"tool_{name}")
    found: Server = Full()
    return found


async def awaiting(work: Awaitable[object]) -> None:
    """Wait for an awaitable."""
    await work


def page(items: Sequence[Any], cursor: str | None, size: int) -> tuple[Sequence[Any], str | None]:
    """Return the items from `cursor` on, and the cursor of the next page."""
    if cursor is not None and not cursor.isdecimal():
        raise ProtocolError(INVALID_PARAMS, f"Invalid cursor: {cursor}")
    start = int(cursor or 0)
    following = start + size
    return items[start:following], str(following) if following < len(items) else None


def now() -> str:
    """Return the current time in the format of MCP."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    wanted = sys.argv.pop(1)
    uvicorn_protocol.IDLE_SECONDS = 60  # longer than a busy client takes to notice a response, and reuses a connection
    served = REVISIONS if wanted == "all" else (wanted,)
    run(*map(server, served), revisions=served)
