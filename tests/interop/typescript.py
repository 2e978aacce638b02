"""Clients of the TypeScript SDKs: run `node_client.mjs` with `full_server.py` and check its results."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import anyio

from tests.interop.ours import ROOTS, TOOLS
from tests.interop.processes import HERE, node
from tests.interop.report import Report

PACKAGES = {"sdk": "@modelcontextprotocol/sdk", "client": "@modelcontextprotocol/client"}


async def look(package: str, revision: str, *target: str) -> dict[str, Any]:
    """Run `node_client.mjs`; return its results by feature."""
    command = [node(), str(HERE / "node_client.mjs"), package, revision, *target]
    done = await anyio.run_process(command, stderr=sys.stderr.fileno(), stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, f"the client ended with {done.returncode}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def judge(report: Report, package: str, saw: dict[str, Any]) -> None:
    """Check the results of a client; record them in the report."""
    since_march, since_june = report.revision >= "2025-03-26", report.revision >= "2025-06-18"

    def seen(feature: str) -> Any:
        found = saw[feature]
        assert not (isinstance(found, dict) and "thrown" in found), found["thrown"]
        return found

    if report.stateless and package == "sdk":
        assert "thrown" in saw["handshake"] or saw["handshake"]["version"] < report.revision
        report.skip_all("the SDK has only revisions with a handshake: all it does is to send `initialize`")
        return

    with report.step("handshake"):
        found = seen("handshake")
        assert found["version"] == report.revision
        assert found["server"] == {"name": "fixture", "version": "1.0"}
        assert found["instructions"] == "Try everything."
        assert found["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
        assert found["capabilities"]["tools"] == found["capabilities"]["prompts"] == {"listChanged": True}
        assert ("completions" in found["capabilities"]) == since_march

    if report.has("ping"):
        with report.step("ping"):
            assert seen("ping") == [{}, "pong"]

    with report.step("pagination"):
        found = seen("pagination")
        assert set(found["tools"]["items"]) >= TOOLS
        assert [found[key]["count"] for key in ("tools", "resources", "templates", "prompts")] == [2, 2, 2, 2]
        assert found["resources"]["items"] == ["a", "b", "c"]
        assert found["templates"]["items"] == ["item", "square"]
        assert found["prompts"]["items"] == ["greet", "show"]
        assert found["invalid"]["code"] == -32602

    with report.step("tools"):
        found = seen("tools")
        assert found["add"]["inputSchema"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}
        assert (found["same"], found["long"]) == (True, 1_000_000)
        assert found["parallel"] == [str(number) for number in range(20)]

    with report.step("tool errors"):
        found = seen("tool errors")
        assert (found["fail"]["content"], found["fail"]["isError"]) == ([{"type": "text", "text": "it failed"}], True)
        assert found["unknown"]["code"] == -32602

    if report.has("structured content"):
        with report.step("structured content"):
            assert seen("structured content") == {"add": {"sum": 5}, "misfit": True}

    with report.step("content kinds"):
        kinds = ["text", "image", "resource", *["audio"] * since_march, *["resource_link"] * since_june]
        assert seen("content kinds") == kinds

    with report.step("resources"):
        found = seen("resources")
        assert found["text"] == [{"uri": "test://a", "mimeType": "text/plain", "text": "alpha"}]
        assert found["blob"] == [{"uri": "test://c", "mimeType": "application/octet-stream", "blob": "AAEC"}]
        code = -32002 if package == "sdk" else -32602  # SDK 2 converts the code to the code of 2026-07-28
        assert found["unknown"] == {"code": code, "data": {"uri": "test://nothing"}}

    with report.step("templates"):
        assert seen("templates")["templates"][0] == "test://item/{id}"
        assert seen("templates")["item"] == "item 7"

    with report.step("subscriptions"):
        assert seen("subscriptions") == {"subscribed": "1", "updated": ["test://a"]}

    with report.step("list changes"):
        assert seen("list changes") == [
            f"notifications/{key}/list_changed" for key in ("prompts", "resources", "tools")
        ]

    with report.step("prompts"):
        found = seen("prompts")
        assert found["arguments"] == [{"name": "name", "required": True}, {"name": "tone"}]
        assert found["greet"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ada."}}]
        assert found["show"] == "resource"
        assert found["invalid"]["code"] == -32602

    with report.step("completion"):
        found = seen("completion")
        assert found["tone"] == {"values": ["formal", "friendly"], "total": 2, "hasMore": False}
        assert found["item"] == ["12"]
        assert found["doctor"] == (["formal"] if since_june else ["formal", "friendly"])

    with report.step("logging"):
        assert [(each["level"], each["data"]) for each in seen("logging")] == [
            ("debug", {"text": "one"}),
            ("warning", "one"),
            ("warning", "two"),
        ]

    with report.step("progress"):
        found = seen("progress")
        assert found["result"] == "counted"
        steps = [(step["progress"], step["total"], step.get("message")) for step in found["steps"]]
        expected = [(step, 3, f"step {step}" if since_march else None) for step in (1, 2, 3)]
        assert steps == (expected[: len(steps)] if report.stateless else expected)  # lost if the result arrives with it

    with report.step("cancellation"):
        assert seen("cancellation") == ["rejected"]

    with report.step("sampling"):
        found = seen("sampling")
        assert found["result"] == {"model": "fake", "text": "I heard: Hello?"}
        assert (found["asked"]["systemPrompt"], found["asked"]["maxTokens"]) == ("Be brief.", 50)

    with report.step("roots"):
        assert seen("roots") == list(ROOTS)

    if report.has("elicitation"):
        with report.step("elicitation"):
            found = seen("elicitation")
            assert found["result"] == {"action": "accept", "content": {"name": "Ada", "age": 36, "sure": True}}
            assert found["asked"]["message"] == "Who?"

    if report.has("url elicitation"):
        with report.step("url elicitation"):
            found = seen("url elicitation")
            assert found["result"] == "accept"
            assert found["asked"]["url"] == "https://example.com/pay"
            assert found["complete"] == [{"elicitationId": "v1"}] * (not report.stateless)

    if report.has("rounds"):
        with report.step("rounds"):  # three requests at once, then a fourth
            assert seen("rounds") == {"result": "accept", "asked": ["elicitation", "elicitation", "sampling"]}

    if report.has("caching"):
        with report.step("caching"):
            assert seen("caching") is True

    if report.has("mirrored arguments"):
        with report.step("mirrored arguments"):
            assert seen("mirrored arguments") == ["eu-west", "Grüße 🌍", " padded "]

    if report.has("resuming"):
        with report.step("resuming"):  # no message is lost or duplicated
            assert seen("resuming") == {"result": "resumed", "heard": ["before", "cut here", "meanwhile"]}

    if report.has("tasks"):
        if package == "client":
            assert seen("tasks") == {"refusal": {"code": "INVALID_RESULT", "data": None}}
            report.skip("tasks", "the SDK has no tasks: it refuses a `CreateTaskResult` as the answer to `tools/call`")
        else:
            with report.step("tasks"):
                found = seen("tasks")
                assert (found["first"], found["last"], found["text"]) == ("taskCreated", "result", "later")
                assert (found["listed"], found["before"], found["cancelled"]) == (2, "working", "cancelled")
                assert found["again"]["code"] == -32602

    assert saw["shutdown"] == "closed"
