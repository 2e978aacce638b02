"""Steps of our clients with the reference servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.runtime import ProtocolError, RequestTimeout
from mcp_bindgen.runtime.protocol.capabilities import is_declared
from tests.harness.checked_connections import bindings
from tests.interop.ours import ROOTS, Seen, text
from tests.interop.processes import MODULES
from tests.interop.report import Report

EVERYTHING = str(MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")
FILESYSTEM = str(MODULES / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js")
DOCUMENT = "demo://resource/static/document/features.md"


async def everything(report: Report, asker: Any, received: list[Any]) -> None:
    """Try every feature of `server-everything`."""
    mcp = bindings(report.revision).types
    seen: Seen = asker.seen
    task = None

    with report.step("handshake"):
        assert (asker.server_info.name, asker.server_info.version) == ("mcp-servers/everything", "2.0.0")
        assert asker.instructions.startswith("#")
        assert is_declared(asker.server_capabilities, "resources", "subscribe")

    if report.transport != "http":
        with report.step("list changes"):  # the server adds tools after it has received the client's capabilities
            assert set(await seen.until("changed")) == {"tools"}

    if report.has("tasks"):
        task = await _begin_research(asker, bindings(report.revision))

    with report.step("ping"):
        await asker.ping()

    with report.step("tools"):
        tools = {tool.name: tool async for tool in asker.iter_tools()}
        assert len(tools) >= 15
        assert tools["echo"].input_schema.model_dump()["required"] == ["message"]
        assert text(await asker.call_tool("echo", {"message": "Grüße 🌍"})) == "Echo: Grüße 🌍"
        assert text(await asker.call_tool("get-sum", {"a": 2, "b": 3.5})) == "The sum of 2 and 3.5 is 5.5."

    with report.step("tool errors"):
        failed = await asker.call_tool("get-sum", {"a": "two"})
        assert failed.is_error is True
        assert "-32602" in failed.content[0].text
        unknown = await asker.call_tool("nothing")
        assert unknown.is_error is True

    if report.has("structured content"):
        with report.step("structured content"):
            weather = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
            found = await asker.call_tool("get-structured-content", {"location": "Chicago"})
            assert found.structured_content == weather
            assert set(tools["get-structured-content"].output_schema.model_dump()["properties"]) == set(weather)

    with report.step("content kinds"):
        blocks = (await asker.call_tool("get-tiny-image")).content
        assert [type(block) for block in blocks] == [mcp.TextContent, mcp.ImageContent, mcp.TextContent]
        noted = {"messageType": "error", "includeImage": True}
        first, second = (await asker.call_tool("get-annotated-message", noted)).content
        assert (first.annotations.priority, second.annotations.audience) == (1.0, ["user"])
        reference = await asker.call_tool("get-resource-reference", {"resourceType": "Blob", "resourceId": 3})
        assert reference.content[1].resource.uri == "demo://resource/dynamic/blob/3"
        if report.revision >= "2025-06-18":
            links = (await asker.call_tool("get-resource-links", {"count": 2})).content[1:]
            assert [type(link) for link in links] == [mcp.ResourceLink] * 2

    with report.step("resources"):
        assert DOCUMENT in {resource.uri async for resource in asker.iter_resources()}
        (contents,) = (await asker.read_resource(DOCUMENT)).contents
        assert contents.mime_type == "text/markdown"
        assert contents.text.startswith("#")
        with pytest.raises(ProtocolError):
            await asker.read_resource("demo://nothing")

    with report.step("templates"):
        templates = [template.uri_template async for template in asker.iter_resource_templates()]
        assert [template.rpartition("/")[0] for template in templates] == [
            "demo://resource/dynamic/text",
            "demo://resource/dynamic/blob",
        ]
        (contents,) = (await asker.read_resource("demo://resource/dynamic/text/7")).contents
        assert contents.text.startswith("Resource 7:")
        (blob,) = (await asker.read_resource("demo://resource/dynamic/blob/7")).contents
        assert isinstance(blob, mcp.BlobResourceContents)

    with report.step("logging"):
        await asker.set_level("debug")
        await asker.subscribe(DOCUMENT)
        while not any("Subscribe" in str(each.data) for each in await seen.until("log")):
            await anyio.sleep(0.01)
        assert {each.level for each in seen.all("log")} == {"info"}
        await asker.set_level("error")
        before = len(seen.all("log"))
        await asker.subscribe(DOCUMENT)
        await asker.ping()
        assert len(seen.all("log")) == before

    with report.step("subscriptions"):
        await asker.call_tool("toggle-subscriber-updates")
        assert (await seen.until("updated"))[0] == DOCUMENT
        await asker.unsubscribe(DOCUMENT)
        await asker.call_tool("toggle-subscriber-updates")

    with report.step("prompts"):
        prompts = {prompt.name: prompt async for prompt in asker.iter_prompts()}
        assert set(prompts) == {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"}
        assert [each.required for each in prompts["args-prompt"].arguments] == [True, False]
        (message,) = (await asker.get_prompt("args-prompt", {"city": "Oslo"})).messages
        assert message.content.text == "What's weather in Oslo?"
        arguments = {"resourceType": "Text", "resourceId": "2"}
        message = (await asker.get_prompt("resource-prompt", arguments)).messages[1]
        assert message.content.resource.uri == "demo://resource/dynamic/text/2"
        with pytest.raises(ProtocolError):
            await asker.get_prompt("args-prompt")

    with report.step("completion"):
        argument, prompt = mcp.CompleteRequestParamsArgument, mcp.PromptReference(name="completable-prompt")
        suggested = (await asker.complete(prompt, argument(name="department", value="S"))).completion
        assert (suggested.values, suggested.total) == (["Sales", "Support"], 2)
        reference = getattr(mcp, "ResourceTemplateReference", None) or mcp.ResourceReference
        template = reference(uri=templates[0])
        suggested = (await asker.complete(template, argument(name="resourceId", value="7"))).completion
        assert suggested.values == ["7"]
        if report.revision >= "2025-06-18":
            context = mcp.CompleteRequestParamsContext(arguments={"department": "Sales"})
            suggested = (await asker.complete(prompt, argument(name="name", value="D"), context=context)).completion
            assert suggested.values == ["David"]

    with report.step("progress"):
        steps: list[Any] = []
        working = asker.with_options(on_progress=steps.append)
        done = await working.call_tool("trigger-long-running-operation", {"duration": 0.2, "steps": 4})
        assert text(done).startswith("Long running operation completed")
        assert [(step.progress, step.total) for step in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]

    if report.has("resuming"):
        with report.step("resuming"):
            steps.clear()
            done = await working.call_tool("trigger-long-running-operation", {"duration": 0.6, "steps": 6})
            assert text(done).startswith("Long running operation completed")
            assert [step.progress for step in steps] == [1, 2, 3, 4, 5, 6]

    with report.step("cancellation"):  # the server never answers a cancelled request
        impatient = asker.with_options(total_timeout=0.3)
        with pytest.raises(RequestTimeout):
            await impatient.call_tool("trigger-long-running-operation", {"duration": 1.5, "steps": 1})
        await anyio.sleep(1.5)
        await asker.ping()
        answered = [message["id"] for message in received if "result" in message or "error" in message]
        assert sorted(answered) == [id_ for id_ in range(1, max(answered) + 1) if id_ in answered]
        assert len(set(range(1, max(answered) + 1)) - set(answered)) == 1

    with report.step("sampling"):
        found = text(await asker.call_tool("trigger-sampling-request", {"prompt": "Hello?", "maxTokens": 20}))
        assert "I heard: Resource trigger-sampling-request context: Hello?" in found
        (asked,) = seen.all("sampling")
        assert (asked.system_prompt, asked.max_tokens) == ("You are a helpful test server.", 20)

    with report.step("roots"):
        listed = text(await asker.call_tool("get-roots-list"))
        assert all(root in listed for root in ROOTS)
        await asker.notify_roots_list_changed()

    if report.has("elicitation"):
        await _elicit(report, asker)

    if report.has("url elicitation"):
        with report.step("url elicitation"):
            url = "https://example.com/pay"
            visit = {"url": url, "elicitationId": "e1"}
            assert "User completed" in text(await asker.call_tool("trigger-url-elicitation", visit))
            assert seen.all("elicitation")[-1].elicitation_id == "e1"
            with pytest.raises(ProtocolError) as caught:
                await asker.call_tool("trigger-url-elicitation", {**visit, "errorPath": True})
            assert caught.value.code == bindings(report.revision).errors.URL_ELICITATION_REQUIRED
            assert caught.value.data["elicitations"][0]["mode"] == "url"

    if task is not None:
        with report.step("tasks"):
            await _finish_research(asker, bindings(report.revision), task)

    _no_pages(report, received)
    if report.transport == "http":
        assert "get-roots-list" in tools
        assert not seen.all("changed")
        report.skip("list changes", "the server says so only before there is a stream to say it on")


async def _elicit(report: Report, asker: Any) -> None:
    seen: Seen = asker.seen
    if report.revision >= "2025-11-25":
        with report.step("elicitation"):
            assert "Name: Ada" in (await asker.call_tool("trigger-elicitation-request")).content[1].text
            fields = seen.all("elicitation")[-1].requested_schema.properties
            assert len(fields) == 13
            assert fields["titledMultipleSelectEnum"].items.any_of[0].title == "Tuna"
        return
    refused = await asker.call_tool("trigger-elicitation-request")
    assert refused.is_error is True
    assert "-32602" in refused.content[0].text
    assert not seen.all("elicitation")
    report.skip("elicitation", "the server asks for a list (`type: array`), which 2025-06-18 has not; it gets -32602")


async def _begin_research(asker: Any, package: Any) -> Any:
    mcp, methods = package.types, package.methods
    research = {"topic": "python", "ambiguous": False}
    params = mcp.CallToolRequestParams(
        name="simulate-research-query", arguments=research, task=mcp.TaskMetadata(ttl=60000)
    )
    created = await asker.request(methods.CALL_TOOL, params)
    assert isinstance(created, mcp.CreateTaskResult)
    return created.task


async def _finish_research(asker: Any, package: Any, task: Any) -> None:
    other = await _begin_research(asker, package)
    assert {each.task_id async for each in asker.iter_tasks()} == {task.task_id, other.task_id}
    assert (await asker.get_task(other.task_id)).status == "working"
    assert (await asker.cancel_task(other.task_id)).status == "cancelled"
    payload = await asker.get_task_payload(task.task_id)
    result = package.types.CallToolResult.model_validate_json(payload.model_dump_json())
    assert text(result).startswith("# Research Report: python")
    assert (await asker.get_task(task.task_id)).status == "completed"


async def filesystem(report: Report, asker: Any, received: list[Any], folder: Path) -> None:
    """Try every feature of `server-filesystem`, which takes its folder from the client's roots."""
    mcp = bindings(report.revision).types

    with report.step("handshake"):
        assert asker.server_info.name == "secure-filesystem-server"
        assert set(asker.server_capabilities) == {"tools"}

    with report.step("ping"):
        await asker.ping()

    with report.step("roots"):
        while str(folder) not in text(await asker.call_tool("list_allowed_directories")):
            await anyio.sleep(0.01)

    with report.step("tools"):
        tools = {tool.name: tool async for tool in asker.iter_tools()}
        assert {"read_text_file", "write_file", "edit_file", "directory_tree"} <= set(tools)
        file = str(folder / "poem.txt")
        poem = "Grüße 🌍\r\nand\ttabs\n" * 1000
        await asker.call_tool("write_file", {"path": file, "content": poem})
        assert (folder / "poem.txt").read_bytes().decode() == poem
        assert text(await asker.call_tool("read_text_file", {"path": file})) == poem
        assert text(await asker.call_tool("list_directory", {"path": str(folder)})) == "[FILE] poem.txt"

    with report.step("tool errors"):
        failed = await asker.call_tool("read_text_file", {"path": "/etc/passwd"})
        assert failed.is_error is True
        assert "Access denied" in failed.content[0].text

    if report.has("structured content"):
        with report.step("structured content"):
            head = await asker.call_tool("read_text_file", {"path": file, "head": 1})
            assert head.structured_content == {"content": "Grüße 🌍\r"}
            assert tools["read_text_file"].output_schema.model_dump()["required"] == ["content"]

    with report.step("content kinds"):
        (folder / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        (image,) = (await asker.call_tool("read_media_file", {"path": str(folder / "dot.png")})).content
        assert (type(image), image.mime_type) == (mcp.ImageContent, "image/png")
        if report.revision >= "2025-03-26":
            (folder / "tone.wav").write_bytes(b"RIFF")
            (sound,) = (await asker.call_tool("read_media_file", {"path": str(folder / "tone.wav")})).content
            assert (type(sound), sound.data) == (mcp.AudioContent, "UklGRg==")

    capabilities = {
        "resources": "resources",
        "templates": "resources",
        "subscriptions": "resources.subscribe",
        "prompts": "prompts",
        "completion": "completions",
        "logging": "logging",
        "tasks": "tasks",
    }
    for feature, path in capabilities.items():
        if not is_declared(asker.server_capabilities, *path.split(".")):
            report.skip(feature, f"the server declares no `{path}`")
    asked = {message["method"] for message in received if "method" in message}
    methods = {
        "sampling": "sampling/createMessage",
        "elicitation": "elicitation/create",
        "url elicitation": "elicitation/create",
        "list changes": "notifications/tools/list_changed",
        "progress": "notifications/progress",
    }
    for feature, method in methods.items():
        if method not in asked:
            report.skip(feature, f"the server never sends `{method}`")
    report.skip("cancellation", "no tool of the server takes long")
    _no_pages(report, received)


def _no_pages(report: Report, received: list[Any]) -> None:
    """Check that no list has a second page, and skip pagination."""
    assert not any("nextCursor" in message.get("result", {}) for message in received)
    report.skip("pagination", "no list of the server has a `nextCursor`")
