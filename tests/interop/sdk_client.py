"""Steps of the official Python SDK's client with `full_server.py`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    Subscription,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from tests.interop.ours import ROOTS, TOOLS, Seen, cancelled_by
from tests.interop.report import Report

Streams = AbstractAsyncContextManager[tuple[Any, Any]]

INFO = types.Implementation(name="interop", version="1.0")
LOG_LEVEL = types.LOG_LEVEL_META_KEY
CAPABILITIES = types.ClientCapabilities(
    sampling=types.SamplingCapability(),
    elicitation=types.ElicitationCapability(
        form=types.FormElicitationCapability(), url=types.UrlElicitationCapability()
    ),
    roots=types.RootsCapability(list_changed=True),
)


@asynccontextmanager
async def connected(
    report: Report, transport: Streams, *, ask: bool
) -> AsyncGenerator[tuple[ClientSession, ClientSession | Client, Seen]]:
    """Yield a connected session, the object that makes calls over it, and the received requests.

    A `Client` makes the calls in stateless revisions, as it answers input requests; otherwise the session does.

    Args:
        report: The report with the revision.
        transport: The transport to the server.
        ask: Whether to request the revision; otherwise the session requests its newest and accepts the server's choice.
    """
    seen = Seen()

    async def sample(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        seen.add("sampling", params)
        (block,) = params.messages[-1].content_as_list
        assert isinstance(block, types.TextContent)
        content = types.TextContent(type="text", text=f"I heard: {block.text}")
        return types.CreateMessageResult(content=content, model="fake", role="assistant", stop_reason="endTurn")

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        seen.add("elicitation", params)
        if params.mode == "url":
            return types.ElicitResult(action="accept")
        return types.ElicitResult(action="accept", content={"name": "Ada", "age": 36, "sure": True})

    async def roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": uri}) for uri in ROOTS])

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        seen.add("log", params)

    async def message(message: Any) -> None:
        seen.add(getattr(message, "method", "error"), message)

    handlers: dict[str, Any] = {
        "sampling_callback": sample,
        "elicitation_callback": elicit,
        "list_roots_callback": roots,
        "logging_callback": log,
        "message_handler": message,
        "client_info": INFO,
    }
    if report.stateless:
        async with Client(transport, **handlers) as client:  # detects the server's era
            yield client.session, client, seen
        return
    async with transport as (read, write), ClientSession(read, write, **handlers) as session:
        if ask:
            params = types.InitializeRequestParams(
                protocol_version=report.revision, capabilities=CAPABILITIES, client_info=INFO
            )
            session.adopt(await session.send_request(types.InitializeRequest(params=params), types.InitializeResult))
            await session.send_notification(types.InitializedNotification())
        else:
            await session.initialize()
        yield session, session, seen


def text(result: types.CallToolResult) -> str:
    """Return the text of a tool's result."""
    assert not result.is_error, result
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


def after(cursor: str | None) -> types.PaginatedRequestParams | None:
    """Return the params that request the next page."""
    return None if cursor is None else types.PaginatedRequestParams(cursor=cursor)


async def converse(report: Report, session: ClientSession, client: ClientSession | Client, seen: Seen) -> None:
    """Try every feature of the server."""
    stateful = not report.stateless

    with report.step("handshake"):
        assert session.protocol_version == report.revision
        assert session.server_info is not None
        assert (session.server_info.name, session.server_info.version) == ("fixture", "1.0")
        assert session.instructions == "Try everything."
        declared = session.server_capabilities
        assert declared is not None
        assert declared.tools
        assert declared.prompts
        assert declared.logging or not stateful
        assert declared.resources
        assert declared.resources.subscribe is declared.resources.list_changed is True
        assert (declared.completions is not None) == (report.revision >= "2025-03-26")

    if report.has("ping"):
        with report.step("ping"):
            await session.send_ping()
            assert text(await client.call_tool("ping")) == "pong"

    with report.step("pagination"):
        tools = await session.list_tools()
        rest = await session.list_tools(params=after(tools.next_cursor))
        assert (len(tools.tools), rest.next_cursor) == (10, None)
        assert {tool.name for tool in tools.tools + rest.tools} >= TOOLS
        resources = await session.list_resources()
        more = await session.list_resources(params=after(resources.next_cursor))
        assert [each.name for each in resources.resources + more.resources] == ["a", "b", "c"]
        prompts = await session.list_prompts()
        others = await session.list_prompts(params=after(prompts.next_cursor))
        assert [each.name for each in prompts.prompts + others.prompts] == ["greet", "show"]
        with pytest.raises(MCPError) as caught:
            await session.list_tools(params=after("nonsense"))
        assert caught.value.code == types.INVALID_PARAMS

    with report.step("tools"):
        assert tools.tools[0].name == "add"
        assert tools.tools[0].input_schema["properties"]["a"] == {"type": "integer"}
        assert text(await client.call_tool("echo", {"text": "Grüße 🌍\n\u2028"})) == "Grüße 🌍\n\u2028"
        assert len(text(await client.call_tool("echo", {"text": "x" * 1_000_000}))) == 1_000_000
        answers: list[str] = []
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(_echo, client, str(number), answers)
        assert sorted(answers, key=int) == [str(number) for number in range(20)]

    with report.step("tool errors"):
        failed = await client.call_tool("fail")
        assert failed.is_error is True
        with pytest.raises(MCPError) as caught:
            await client.call_tool("nothing")
        assert caught.value.code == types.INVALID_PARAMS

    if report.has("structured content"):
        with report.step("structured content"):
            assert tools.tools[0].title == "Addition"
            assert tools.tools[0].output_schema is not None
            assert (await client.call_tool("add", {"a": 2, "b": 3})).structured_content == {"sum": 5}
            with pytest.raises(RuntimeError, match="'five' is not of type 'integer'"):
                await client.call_tool("misfit")

    with report.step("content kinds"):
        blocks = (await client.call_tool("kinds")).content
        kinds = ["text", "image", "resource", "audio", "resource_link"]
        since = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
        expected = [kind for kind in kinds if since.get(kind, "") <= report.revision]
        assert [block.type for block in blocks] == expected

    with report.step("resources"):
        (contents,) = (await session.read_resource("test://a")).contents
        assert isinstance(contents, types.TextResourceContents)
        assert (contents.text, contents.mime_type) == ("alpha", "text/plain")
        (blob,) = (await session.read_resource("test://c")).contents
        assert isinstance(blob, types.BlobResourceContents)
        assert blob.blob == "AAEC"
        with pytest.raises(MCPError) as caught:
            await session.read_resource("test://nothing")
        assert (caught.value.code, caught.value.data) == (-32002 if stateful else -32602, {"uri": "test://nothing"})

    with report.step("templates"):
        first = await session.list_resource_templates()
        second = await session.list_resource_templates(params=after(first.next_cursor))
        templates = first.resource_templates + second.resource_templates
        assert [each.uri_template for each in templates] == ["test://item/{id}", "test://square/{n}"]
        (contents,) = (await session.read_resource("test://item/7")).contents
        assert isinstance(contents, types.TextResourceContents)
        assert contents.text == "item 7"

    with report.step("subscriptions"):
        async with following(client, "test://a", seen):
            assert text(await client.call_tool("touch", {"uri": "test://a"})) == "1"
            (updated,) = await seen.until("updated")
            assert updated == "test://a"
        while text(await client.call_tool("touch", {"uri": "test://a"})) != "0":
            await anyio.sleep(0.01)

    with report.step("list changes"):
        if isinstance(client, Client):
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                await client.call_tool("change")
                told = {type(await anext(changes)) for _ in range(3)}
            assert told == {ToolsListChanged, PromptsListChanged, ResourcesListChanged}
        else:
            await client.call_tool("change")
        for what in ("tools", "resources", "prompts"):
            await seen.until(f"notifications/{what}/list_changed")

    with report.step("prompts"):
        arguments = prompts.prompts[0].arguments or []
        assert [(each.name, each.required) for each in arguments] == [("name", True), ("tone", None)]
        (message,) = (await session.get_prompt("greet", {"name": "Ada"})).messages
        assert isinstance(message.content, types.TextContent)
        assert (message.role, message.content.text) == ("user", "Greet Ada.")
        (message,) = (await session.get_prompt("show")).messages
        assert isinstance(message.content, types.EmbeddedResource)
        with pytest.raises(MCPError):
            await session.get_prompt("greet")

    with report.step("completion"):
        greet = types.PromptReference(type="ref/prompt", name="greet")
        completion = (await session.complete(greet, {"name": "tone", "value": "f"})).completion
        assert (completion.values, completion.total, completion.has_more) == (["formal", "friendly"], 2, False)
        item = types.ResourceTemplateReference(type="ref/resource", uri="test://item/{id}")
        assert (await session.complete(item, {"name": "id", "value": "12"})).completion.values == ["12"]
        if report.revision >= "2025-06-18":
            completion = (await session.complete(greet, {"name": "tone", "value": "f"}, {"name": "Dr. X"})).completion
            assert completion.values == ["formal"]

    with report.step("logging"):
        wanted: list[Any] = [None if stateful else {LOG_LEVEL: level} for level in ("debug", "warning")]
        await client.call_tool("say", {"text": "one"}, meta=wanted[0])
        debug, warning = await seen.until("log", 2)
        assert (debug.level, debug.data, debug.logger) == ("debug", {"text": "one"}, "fixture")
        assert (warning.level, warning.data) == ("warning", "one")
        if stateful:
            await session.set_logging_level("warning")
        else:
            await client.call_tool("say", {"text": "nobody listens"})
        await client.call_tool("say", {"text": "two"}, meta=wanted[1])
        assert [each.data for each in (await seen.until("log", 3))[2:]] == ["two"]

    with report.step("progress"):
        steps: list[tuple[float, float | None, str | None]] = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total, message))

        assert text(await client.call_tool("count", {"steps": 3}, progress_callback=on_progress)) == "counted"
        while len(steps) < 3:
            await anyio.sleep(0.01)
        assert [step[:2] for step in steps] == [(1, 3), (2, 3), (3, 3)]
        assert steps[0][2] == ("step 1" if report.revision >= "2025-03-26" else None)

    with report.step("cancellation"):

        async def cancelled() -> str:
            return text(await client.call_tool("cancelled"))

        async def time_out(seconds: float) -> None:
            with pytest.raises(MCPError):
                await client.call_tool("wait", read_timeout_seconds=seconds)

        async def cancel(seconds: float) -> None:
            with anyio.move_on_after(seconds):
                await client.call_tool("wait")

        await cancelled_by(time_out, cancelled)
        await cancelled_by(cancel, cancelled)

    with report.step("sampling"):
        heard = json.loads(text(await client.call_tool("sample", {"prompt": "Hello?"})))
        assert heard == {"model": "fake", "text": "I heard: Hello?"}
        (asked,) = seen.all("sampling")
        assert (asked.system_prompt, asked.max_tokens, asked.temperature) == ("Be brief.", 50, 0.5)
        assert asked.model_preferences.hints[0].name == "small"

    with report.step("roots"):
        assert json.loads(text(await client.call_tool("roots"))) == list(ROOTS)
        if stateful:
            await session.send_roots_list_changed()

    if report.has("elicitation"):
        with report.step("elicitation"):
            found = json.loads(text(await client.call_tool("elicit", {"question": "Who?"})))
            assert found == {"action": "accept", "content": {"name": "Ada", "age": 36, "sure": True}}
            assert seen.all("elicitation")[-1].message == "Who?"

    if report.has("url elicitation"):
        with report.step("url elicitation"):
            page = "https://example.com/pay"
            assert text(await client.call_tool("visit", {"url": page})) == "accept"
            assert seen.all("elicitation")[-1].url == page
            if stateful:
                (complete,) = await seen.until("notifications/elicitation/complete")
                assert complete.params.elicitation_id == "v1"

    if report.has("rounds"):
        with report.step("rounds"):  # three requests at once, then a fourth
            before = len(seen.all("elicitation"))
            assert text(await client.call_tool("interview")) == "accept"
            assert [asked.mode for asked in seen.all("elicitation")[before:]] == ["form", "url"]
            assert len(seen.all("sampling")) == 2

    if report.has("caching"):
        with report.step("caching"):
            assert isinstance(client, Client)
            await client.list_prompts()
            count = text(await client.call_tool("listed"))
            await client.list_prompts()
            assert text(await client.call_tool("listed")) == count

    if report.has("mirrored arguments"):
        with report.step("mirrored arguments"):
            for region in ("eu-west", "Grüße 🌍", " padded "):
                assert text(await client.call_tool("route", {"region": region})) == region

    if report.has("resuming"):
        with report.step("resuming"):  # no message is lost or duplicated
            await session.set_logging_level("debug")
            before = len(seen.all("log"))
            assert text(await client.call_tool("pause")) == "resumed"
            assert [each.data for each in seen.all("log")[before:]] == ["before", "cut here", "meanwhile"]

    if report.has("tasks"):
        params = types.CallToolRequestParams(name="echo", arguments={"text": "x"}, task=types.TaskMetadata(ttl=60000))
        with pytest.raises(ValidationError):
            await session.send_request(types.CallToolRequest(params=params), types.CreateTaskResult)
        await session.send_ping()
        report.skip("tasks", "the SDK has no tasks: it refuses a `CreateTaskResult` as the answer to `tools/call`")


@asynccontextmanager
async def following(client: ClientSession | Client, uri: str, seen: Seen) -> AsyncGenerator[None]:
    """Subscribe to changes of a resource with the method of the era."""
    if isinstance(client, Client):
        async with client.listen(resource_subscriptions=[uri]) as changes, anyio.create_task_group() as tasks:
            tasks.start_soon(_pass_on, changes, seen)
            yield
            tasks.cancel_scope.cancel()
    else:
        await client.subscribe_resource(uri)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_await_update, seen)
            yield
        await client.unsubscribe_resource(uri)


async def _pass_on(changes: Subscription, seen: Seen) -> None:
    async for change in changes:
        assert isinstance(change, ResourceUpdated)
        seen.add("updated", change.uri)


async def _await_update(seen: Seen) -> None:
    (told,) = await seen.until("notifications/resources/updated")
    seen.add("updated", told.params.uri)


async def _echo(client: ClientSession | Client, words: str, answers: list[str]) -> None:
    answers.append(text(await client.call_tool("echo", {"text": words})))
