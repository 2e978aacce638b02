"""Steps of our clients with a server that has the features of `full_server.py`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio
import jsonschema_rs
import pytest

from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.runtime import ProtocolError, RequestTimeout
from mcp_bindgen.runtime.protocol.capabilities import is_declared
from tests.harness.checked_connections import bindings
from tests.harness.meta_keys import LOG_LEVEL
from tests.interop.report import Report

TOOLS = {"add", "cancelled", "change", "count", "echo", "fail", "kinds", "pause", "roots", "sample", "say", "touch"}
ROOTS = ("file:///projects/one", "file:///projects/two")


class Seen:
    """Requests and notifications that a client received, by the name of the handler."""

    def __init__(self) -> None:
        self.log: list[tuple[str, Any]] = []
        self._changed = anyio.Event()

    def add(self, name: str, what: Any) -> None:
        """Record an entry."""
        self.log.append((name, what))
        self._changed.set()
        self._changed = anyio.Event()

    def all(self, name: str) -> list[Any]:
        """Return the entries of a name so far."""
        return [what for each, what in self.log if each == name]

    async def until(self, name: str, count: int = 1) -> list[Any]:
        """Wait for `count` entries of a name; return them."""
        while len(found := self.all(name)) < count:
            await self._changed.wait()
        return found


def client(revision: str, roots: Sequence[str]) -> Any:
    """Return a client with these roots and a user that accepts every request."""
    package: Any = bindings(revision)
    mcp = package.types

    class Agreeable(package.Client):  # type: ignore[misc]
        """Client that accepts every request of a server."""

        info = mcp.Implementation(name="interop", version="1.0")
        cache = ResultCache()

        def __init__(self) -> None:
            self.seen = Seen()

        def extra_capabilities(self) -> dict[str, Any]:
            return {"elicitation": {"form": {}, "url": {}}} if revision >= "2025-11-25" else {}

        async def on_create_message(self, params: Any, ctx: Any) -> Any:
            self.seen.add("sampling", params)
            words = params.messages[-1].content.text
            content = mcp.TextContent(text=f"I heard: {words}")
            return mcp.CreateMessageResult(content=content, model="fake", role="assistant", stop_reason="endTurn")

        async def on_list_roots(self, *arguments: Any) -> Any:
            return mcp.ListRootsResult(roots=[mcp.Root(uri=uri, name=uri[8:]) for uri in roots])

        async def on_logging_message(self, params: Any, ctx: Any) -> None:
            self.seen.add("log", params)

        async def on_resource_updated(self, params: Any, ctx: Any) -> None:
            self.seen.add("updated", params.uri)

        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            self.seen.add("changed", "tools")

        async def on_resource_list_changed(self, params: Any, ctx: Any) -> None:
            self.seen.add("changed", "resources")

        async def on_prompt_list_changed(self, params: Any, ctx: Any) -> None:
            self.seen.add("changed", "prompts")

        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            self.seen.add("elicitation", params)
            if getattr(params, "mode", None) == "url":
                return mcp.ElicitResult(action="accept")
            return mcp.ElicitResult(action="accept", content={"name": "Ada", "age": 36, "sure": True})

        async def on_elicitation_complete(self, params: Any, ctx: Any) -> None:
            self.seen.add("complete", params.elicitation_id)

    return Agreeable()


def text(result: Any) -> str:
    """Return the text of a tool's result."""
    assert not result.is_error, result
    words: str = result.content[0].text
    return words


async def cancelled_by(give_up: Callable[[float], Awaitable[None]], cancelled: Callable[[], Awaitable[str]]) -> None:
    """Cancel calls until the server has cancelled a running call.

    Args:
        give_up: Calls a tool that waits, and cancels the call after some seconds. The time doubles with each attempt,
            because the server counts only calls that have reached it.
        cancelled: Returns the number of cancelled calls from the server.
    """
    before, seconds = await cancelled(), 0.1
    while await cancelled() == before:
        await give_up(seconds)
        seconds *= 2


async def converse(report: Report, asker: Any) -> None:
    """Try every feature of a server like `full_server.py`."""
    mcp = bindings(report.revision).types
    seen: Seen = asker.seen
    stateful = not report.stateless

    with report.step("handshake"):
        assert (asker.server_info.name, asker.server_info.version) == ("fixture", "1.0")
        assert asker.instructions == "Try everything."
        for path in ("tools", "prompts", "resources.subscribe", "resources.listChanged", *["logging"] * stateful):
            assert is_declared(asker.server_capabilities, *path.split(".")), path

    if report.has("ping"):
        with report.step("ping"):
            await asker.ping()
            assert text(await asker.call_tool("ping")) == "pong"

    with report.step("pagination"):
        pages = [page async for page in asker.pages(asker.list_tools)]
        assert [len(page.tools) > 9 for page in pages] == [True, False]
        assert {tool.name async for tool in asker.iter_tools()} >= TOOLS
        assert [each.name async for each in asker.iter_resources()] == ["a", "b", "c"]
        assert [each.name async for each in asker.iter_prompts()] == ["greet", "show"]

    with report.step("tools"):
        first = (await asker.list_tools()).tools[0]
        assert first.name == "add"
        assert first.input_schema.model_dump()["properties"]["a"] == {"type": "integer"}
        assert text(await asker.call_tool("echo", {"text": "Grüße 🌍\n\u2028"})) == "Grüße 🌍\n\u2028"
        assert len(text(await asker.call_tool("echo", {"text": "x" * 1_000_000}))) == 1_000_000
        answers: list[str] = []
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(_echo, asker, str(number), answers)
        assert sorted(answers, key=int) == [str(number) for number in range(20)]

    with report.step("tool errors"):
        failed = await asker.call_tool("fail")
        assert failed.is_error is True
        assert failed.content[0].text == "it failed"
        with pytest.raises(ProtocolError) as caught:
            await asker.call_tool("nothing")
        assert caught.value.code == -32602

    if report.has("structured content"):
        with report.step("structured content"):
            tool = (await asker.list_tools()).tools[0]
            assert tool.title == "Addition"
            found = await asker.call_tool("add", {"a": 2, "b": 3})
            assert found.structured_content == {"sum": 5}
            assert jsonschema_rs.is_valid(tool.output_schema.model_dump(), found.structured_content)

    if report.has("content kinds"):
        with report.step("content kinds"):
            blocks = (await asker.call_tool("kinds")).content
            kinds = [mcp.TextContent, mcp.ImageContent, mcp.EmbeddedResource]
            kinds += [getattr(mcp, name) for name in ("AudioContent", "ResourceLink") if hasattr(mcp, name)]
            assert [type(block) for block in blocks] == kinds
            assert blocks[1].mime_type == "image/png"
            assert blocks[2].resource.text == "alpha"

    with report.step("resources"):
        (contents,) = (await asker.read_resource("test://a")).contents
        assert (contents.text, contents.mime_type) == ("alpha", "text/plain")
        (blob,) = (await asker.read_resource("test://c")).contents
        assert blob.blob == "AAEC"
        with pytest.raises(ProtocolError) as caught:
            await asker.read_resource("test://nothing")
        assert caught.value.code in {-32602, *[-32002] * stateful}  # the TypeScript SDK 2 has only the new code
        assert caught.value.data == {"uri": "test://nothing"}

    with report.step("templates"):
        templates = [each.uri_template async for each in asker.iter_resource_templates()]
        assert templates == ["test://item/{id}", "test://square/{n}"]
        assert (await asker.read_resource("test://item/7")).contents[0].text == "item 7"

    with report.step("subscriptions"):
        async with following(asker, "test://a"):
            await asker.call_tool("touch", {"uri": "test://b"})
            await asker.call_tool("touch", {"uri": "test://a"})
            assert await seen.until("updated") == ["test://a"]
        await asker.call_tool("touch", {"uri": "test://a"})
        assert seen.all("updated") == ["test://a"]

    with report.step("list changes"):
        async with nullcontext() if stateful else asker.subscribed(every_change(mcp)) as agreed:
            assert stateful or agreed == every_change(mcp)
            await asker.call_tool("change")
            assert sorted(await seen.until("changed", 3)) == ["prompts", "resources", "tools"]

    with report.step("prompts"):
        greet = (await asker.list_prompts()).prompts[0]
        assert [(each.name, each.required) for each in greet.arguments] == [("name", True), ("tone", None)]
        (message,) = (await asker.get_prompt("greet", {"name": "Ada"})).messages
        assert (message.role, message.content.text) == ("user", "Greet Ada.")
        (message,) = (await asker.get_prompt("show")).messages
        assert message.content.resource.text == "alpha"
        with pytest.raises(ProtocolError):
            await asker.get_prompt("greet")

    if report.has("completion"):
        with report.step("completion"):
            await _complete(asker, mcp, report)

    with report.step("logging"):
        every, some = ({}, {}) if stateful else ({"meta": {LOG_LEVEL: "debug"}}, {"meta": {LOG_LEVEL: "warning"}})
        await asker.call_tool("say", {"text": "one"}, **every)
        first, second = await seen.until("log", 2)
        assert (first.level, first.data, first.logger) == ("debug", {"text": "one"}, "fixture")
        assert (second.level, second.data) == ("warning", "one")
        if stateful:
            await asker.set_level("warning")
        else:
            await asker.call_tool("say", {"text": "nobody listens"})
        await asker.call_tool("say", {"text": "two"}, **some)
        assert [each.data for each in (await seen.until("log", 3))[2:]] == ["two"]

    if report.has("progress"):
        with report.step("progress"):
            steps: list[Any] = []
            counting = asker.with_options(on_progress=steps.append)
            assert text(await counting.call_tool("count", {"steps": 3})) == "counted"
            assert [(step.progress, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]
            if report.revision >= "2025-03-26":
                assert steps[0].message == "step 1"

    with report.step("cancellation"):

        async def cancelled() -> str:
            return text(await asker.call_tool("cancelled"))

        async def time_out(seconds: float) -> None:
            with pytest.raises(RequestTimeout):
                await asker.with_options(total_timeout=seconds).call_tool("wait")

        async def cancel(seconds: float) -> None:
            with anyio.move_on_after(seconds):
                await asker.call_tool("wait")

        await cancelled_by(time_out, cancelled)
        await cancelled_by(cancel, cancelled)

    with report.step("sampling"):
        answer = json.loads(text(await asker.call_tool("sample", {"prompt": "Hello?"})))
        assert answer == {"model": "fake", "text": "I heard: Hello?"}
        (asked,) = seen.all("sampling")
        assert (asked.system_prompt, asked.max_tokens, asked.temperature) == ("Be brief.", 50, 0.5)

    with report.step("roots"):
        assert json.loads(text(await asker.call_tool("roots"))) == list(ROOTS)
        if stateful:
            await asker.notify_roots_list_changed()

    if report.has("elicitation"):
        with report.step("elicitation"):
            answer = json.loads(text(await asker.call_tool("elicit", {"question": "Who?"})))
            assert answer == {"action": "accept", "content": {"name": "Ada", "age": 36, "sure": True}}
            asked = seen.all("elicitation")[-1]
            assert asked.message == "Who?"
            assert set(asked.requested_schema.properties) == {"name", "age", "sure", "colour"}

    if report.has("url elicitation"):
        with report.step("url elicitation"):
            page = "https://example.com/pay"
            assert text(await asker.call_tool("visit", {"url": page})) == "accept"
            assert seen.all("elicitation")[-1].url == page
            assert not stateful or await seen.until("complete") == ["v1"]

    if report.has("rounds"):
        with report.step("rounds"):  # three requests at once, then a fourth
            before = len(seen.log)
            assert text(await asker.call_tool("interview")) == "accept"
            assert [name for name, _ in seen.log[before:]] in (
                ["elicitation", "sampling", "elicitation"],
                ["sampling", "elicitation", "elicitation"],
            )

    if report.has("caching"):
        with report.step("caching"):
            await asker.list_prompts()
            count = text(await asker.call_tool("listed"))
            await asker.list_prompts()
            assert text(await asker.call_tool("listed")) == count
            await asker.with_options(fresh=True).list_prompts()
            assert int(text(await asker.call_tool("listed"))) == int(count) + 1

    if report.has("mirrored arguments"):
        with report.step("mirrored arguments"):
            for region in ("eu-west", "Grüße 🌍", " padded "):
                assert text(await asker.call_tool("route", {"region": region})) == region

    if report.has("resuming"):
        with report.step("resuming"):  # no message is lost or duplicated
            await asker.set_level("debug")
            before = len(seen.all("log"))
            assert text(await asker.call_tool("pause")) == "resumed"
            assert [each.data for each in seen.all("log")[before:]] == ["before", "cut here", "meanwhile"]

    if report.has("tasks"):
        if not is_declared(asker.server_capabilities, "tasks"):
            report.skip("tasks", "the server declares no `tasks`")
        else:
            with report.step("tasks"):
                await _tasks(asker, bindings(report.revision))


def every_change(mcp: Any) -> Any:
    """Return a filter that subscribes to changes of all lists."""
    return mcp.SubscriptionFilter(prompts_list_changed=True, resources_list_changed=True, tools_list_changed=True)


@asynccontextmanager
async def following(asker: Any, uri: str) -> AsyncGenerator[None]:
    """Subscribe to changes of a resource with the method of the revision."""
    mcp = bindings(asker.revision).types
    if hasattr(mcp, "SubscriptionFilter"):
        async with asker.subscribed(mcp.SubscriptionFilter(resource_subscriptions=[uri])):
            yield
    else:
        await asker.subscribe(uri)
        yield
        await asker.unsubscribe(uri)


async def _echo(asker: Any, words: str, answers: list[str]) -> None:
    answers.append(text(await asker.call_tool("echo", {"text": words})))


async def _complete(asker: Any, mcp: Any, report: Report) -> None:
    greet = mcp.PromptReference(name="greet")
    argument: Callable[..., Any] = mcp.CompleteRequestParamsArgument
    suggested = (await asker.complete(greet, argument(name="tone", value="f"))).completion
    assert (suggested.values, suggested.total, suggested.has_more) == (["formal", "friendly"], 2, False)
    reference = getattr(mcp, "ResourceTemplateReference", None) or mcp.ResourceReference
    item = reference(uri="test://item/{id}")
    assert (await asker.complete(item, argument(name="id", value="1"))).completion.values == ["1", "10", "11", "12"]
    if report.revision >= "2025-06-18":
        context = mcp.CompleteRequestParamsContext(arguments={"name": "Dr. X"})
        suggested = await asker.complete(greet, argument(name="tone", value="f"), context=context)
        assert suggested.completion.values == ["formal"]


async def _tasks(asker: Any, package: Any) -> None:
    mcp, methods = package.types, package.methods

    async def begin(name: str, **arguments: Any) -> Any:
        task = mcp.TaskMetadata(ttl=60000)
        params = mcp.CallToolRequestParams(name=name, arguments=arguments, task=task)
        created = await asker.request(methods.CALL_TOOL, params)
        assert isinstance(created, mcp.CreateTaskResult)
        return created.task

    task = await begin("echo", text="later")
    payload = await asker.get_task_payload(task.task_id)
    result = mcp.CallToolResult.model_validate_json(payload.model_dump_json())
    assert text(result) == "later"
    assert (await asker.get_task(task.task_id)).status == "completed"
    waiting = await begin("wait")
    assert waiting.status == "working"
    assert [each.task_id async for each in asker.iter_tasks()] == [task.task_id, waiting.task_id]
    assert (await asker.cancel_task(waiting.task_id)).status == "cancelled"
    with pytest.raises(ProtocolError):
        await asker.cancel_task(waiting.task_id)
