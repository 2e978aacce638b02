"""The Inspector's command line: what it prints of `full_server.py`, one process for each method."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from .ours import TOOLS
from .processes import MODULES, node
from .report import Report

INSPECTOR = str(MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js")
TOOL_FAILED = 5
AT_ONCE = 4
METHODS = {
    "cancellation": "notifications/cancelled",
    "completion": "completion/complete",
    "elicitation": "elicitation/create",
    "list changes": "notifications/tools/list_changed",
    "ping": "ping",
    "progress": "notifications/progress",
    "roots": "roots/list",
    "sampling": "sampling/createMessage",
    "subscriptions": "resources/subscribe",
    "tasks": "tasks/list",
    "url elicitation": "elicitation/create",
}
"""What the command line has no method for."""


@dataclass
class Printed:
    """What a run of the command line printed."""

    code: int
    output: Any
    error: str


async def look(home: Path, target: Callable[[str], list[str]]) -> dict[str, Printed]:
    """Runs all methods.

    Args:
        home: Where the Inspector may keep its files.
        target: Gives the arguments that name the server, for each run.
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
        "no resource": ["--method", "resources/read", "--uri", "test://nothing"],
        "templates": ["--method", "resources/templates/list"],
        "prompts": ["--method", "prompts/list"],
        "greet": ["--method", "prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ada"],
        "level": ["--method", "logging/setLevel", "--log-level", "warning"],
        "help": ["--method", "help"],
    }
    found: dict[str, Printed] = {}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def run(name: str, options: list[str]) -> None:
        async with limiter:
            command = [node(), INSPECTOR, "--cli", *target(name), *options]
            done = await anyio.run_process(
                command, check=False, stdin=subprocess.DEVNULL, env={"HOME": str(home), "PATH": os.environ["PATH"]}
            )
        output = json.loads(done.stdout) if done.stdout.strip() else None
        found[name] = Printed(done.returncode, output, done.stderr.decode())

    async with anyio.create_task_group() as tasks:
        for name, options in runs.items():
            tasks.start_soon(run, name, options)
    return found


def judge(report: Report, printed: dict[str, Printed]) -> None:
    """Holds what was printed against what there is to see."""
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
        assert printed["fail"].output == {"content": [{"type": "text", "text": "it failed"}], "isError": True}

    if report.has("structured content"):
        with report.step("structured content"):
            assert output("add")["structuredContent"] == {"sum": 5}

    with report.step("content kinds"):
        kinds = ["text", "image", "resource", *["audio"] * since_march, *["resource_link"] * since_june]
        assert [block["type"] for block in output("kinds")["content"]] == kinds

    with report.step("resources"):
        assert output("text")["contents"] == [{"uri": "test://a", "mimeType": "text/plain", "text": "alpha"}]
        assert "Resource not found" in printed["no resource"].error

    with report.step("templates"):
        templates = output("templates")["resourceTemplates"]
        assert [each["uriTemplate"] for each in templates] == ["test://item/{id}", "test://square/{n}"]

    with report.step("prompts"):
        assert output("prompts")["prompts"][0]["arguments"] == [{"name": "name", "required": True}, {"name": "tone"}]
        (message,) = output("greet")["messages"]
        assert message == {"role": "user", "content": {"type": "text", "text": "Greet Ada."}}

    with report.step("logging"):
        assert output("level") == {}

    methods = printed["help"].error.partition("Supported --cli methods: ")[2]
    assert "tools/call" in methods
    for feature, method in METHODS.items():
        assert method not in methods
        report.skip(feature, f"the command line has no `{method}`")
