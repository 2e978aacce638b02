"""The Inspector's command line: run each of its methods with a server such as `full_server.py`; check the output."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import anyio

from tests.interop.ours import TOOLS
from tests.interop.processes import HERE, MODULES, node
from tests.interop.report import Report

INSPECTOR = str(MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "cli" / "build" / "index.js")
COMPILED = Path(gettempdir()) / "mcp-bindgen-inspector"
"""Node's compile cache for the Inspector, which speeds up its start."""
TOOL_FAILED = 5
AT_ONCE = 2
"""Number of concurrent runs."""
METHODS = {
    "cancellation": "notifications/cancelled",
    "completion": "completion/complete",
    "elicitation": "elicitation/create",
    "list changes": "notifications/tools/list_changed",
    "logging": "notifications/message",
    "ping": "ping",
    "progress": "notifications/progress",
    "roots": "roots/list",
    "rounds": "elicitation/create",
    "sampling": "sampling/createMessage",
    "subscriptions": "resources/subscribe",
    "tasks": "tasks/list",
    "url elicitation": "elicitation/create",
}
"""Feature -> its MCP method, which the command line does not offer."""


@dataclass
class Printed:
    """Output of a run of the command line."""

    code: int
    output: Any
    error: str


async def inspect(home: Path, runs: Mapping[str, Sequence[str]], **variables: str) -> dict[str, Printed]:
    """Run the command line many times in one process of node, `AT_ONCE` runs at a time.

    Args:
        home: Folder for the Inspector's files.
        runs: Name of each run -> its arguments.
        variables: Additional environment variables.
    """
    command = [node(), str(HERE / "inspector.mjs"), INSPECTOR, str(AT_ONCE)]
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "NODE_COMPILE_CACHE": str(COMPILED), **variables}
    done = await anyio.run_process(command, input=json.dumps(runs).encode(), check=False, env=env)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    return {
        name: Printed(each["code"], json.loads(each["output"]) if each["output"].strip() else None, each["error"])
        for name, each in found.items()
    }


async def look(report: Report, home: Path, target: Callable[[str], list[str]]) -> dict[str, Printed]:
    """Run all methods of the command line.

    Args:
        report: The report with the revision.
        home: Folder for the Inspector's files.
        target: Returns the arguments that name the server, for each run.
    """

    def tool(name: str, **arguments: Any) -> list[str]:
        return ["--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments)]

    runs = {
        "initialize": ["--method", "initialize"],
        "tools": ["--method", "tools/list"],
        "add": tool("add", a=2, b=3),
        "fail": tool("fail"),
        "kinds": tool("kinds"),
        "resources": ["--method", "resources/list"],
        "text": ["--method", "resources/read", "--uri", "test://a"],
        "templates": ["--method", "resources/templates/list"],
        "prompts": ["--method", "prompts/list"],
        "help": ["--method", "help"],
        "greet": ["--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ada"],
    }
    if not report.stateless:
        runs["level"] = ["--method", "logging/setLevel", "--log-level", "warning"]
    if report.has("mirrored arguments"):
        runs["route"] = tool("route", region="Grüße 🌍")
    era = ["--protocol-era", "modern"] if report.stateless else []
    return await inspect(home, {name: [*era, *target(name), *options] for name, options in runs.items()})


def judge(report: Report, printed: dict[str, Printed]) -> None:
    """Check the output of all runs; record it in the report."""
    since_march, since_june = report.revision >= "2025-03-26", report.revision >= "2025-06-18"

    def output(name: str) -> Any:
        found = printed[name]
        assert found.code == 0, found.error
        return found.output

    with report.step("handshake"):
        answer = output("initialize")
        assert answer["protocolVersion"] == report.revision
        assert answer["serverInfo"] == {"name": "fixture", "version": "1.0"}
        assert answer["instructions"] == "Try everything."
        assert ("completions" in answer["capabilities"]) == since_march

    with report.step("pagination"):
        assert {tool["name"] for tool in output("tools")["tools"]} >= TOOLS
        assert [each["name"] for each in output("resources")["resources"]] == ["a", "b", "c"]
        assert [each["name"] for each in output("prompts")["prompts"]] == ["greet", "show"]

    with report.step("tools"):
        assert output("tools")["tools"][0]["inputSchema"]["required"] == ["a", "b"]
        assert output("add")["content"] == [{"type": "text", "text": '{"sum": 5}'}]

    with report.step("tool errors"):
        assert printed["fail"].code == TOOL_FAILED
        assert printed["fail"].output["content"] == [{"type": "text", "text": "it failed"}]
        assert printed["fail"].output["isError"] is True

    if report.has("structured content"):
        with report.step("structured content"):
            assert output("add")["structuredContent"] == {"sum": 5}

    with report.step("content kinds"):
        kinds = ["text", "image", "resource", *["audio"] * since_march, *["resource_link"] * since_june]
        assert [block["type"] for block in output("kinds")["content"]] == kinds

    with report.step("resources"):
        assert output("text")["contents"] == [{"uri": "test://a", "mimeType": "text/plain", "text": "alpha"}]

    with report.step("templates"):
        templates = output("templates")["resourceTemplates"]
        assert [each["uriTemplate"] for each in templates] == ["test://item/{id}", "test://square/{n}"]

    with report.step("prompts"):
        assert output("prompts")["prompts"][0]["arguments"] == [{"name": "name", "required": True}, {"name": "tone"}]
        (message,) = output("greet")["messages"]
        assert message == {"role": "user", "content": {"type": "text", "text": "Greet Ada."}}

    if not report.stateless:
        with report.step("logging"):
            assert output("level") == {}

    if report.has("mirrored arguments"):
        with report.step("mirrored arguments"):
            assert output("route")["content"] == [{"type": "text", "text": "Grüße 🌍"}]

    supported = printed["help"].error.partition("Supported --cli methods: ")[2]
    assert "tools/call" in supported
    for feature, method in METHODS.items():
        if report.stateless or feature != "logging":
            assert method not in supported
            report.skip(feature, f"the command line has no `{method}`")
    for feature in ("resuming", "caching"):
        report.skip(feature, "the command line ends with the first result")
