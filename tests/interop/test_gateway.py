"""`mcp-bindgen gateway` between official clients of older revisions and a server of 2026-07-28, and the reverse."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

import pytest

from mcp_bindgen import v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import connect
from tests.harness.commands import COMMAND
from tests.interop import dated
from tests.interop.processes import HERE, MODULES, needed, node
from tests.interop.test_written_once import SPOKEN, judge_dated, run, server

pytestmark = pytest.mark.full

PUBLISHED: dict[str, tuple[tuple[str, ...], str, dict[str, Any]]] = {
    "server-everything": ((), "get-sum", {"a": 1, "b": 2}),
    "server-filesystem": ((str(HERE),), "list_allowed_directories", {}),
    "server-memory": ((), "search_nodes", {"query": "nothing"}),
}
"""npm package of a server -> its arguments, a tool, and the tool's arguments."""


@pytest.mark.parametrize("version", ["1.6.0", pytest.param("1.23.3", marks=pytest.mark.slow)])
async def test_official_clients_of_older_revisions_use_a_2026_07_28_server(version: str) -> None:
    gateway = [str(COMMAND), "gateway", shlex.join(server())]
    command = [sys.executable, str(HERE / "dated_client.py"), "stdio", *gateway]
    judge_dated(await run(command, PYTHONPATH=str(dated.folder(version))), SPOKEN[version])


@pytest.mark.parametrize(
    "name", [name if name == "server-memory" else pytest.param(name, marks=pytest.mark.slow) for name in PUBLISHED]
)
async def test_published_servers_serve_a_2026_07_28_client(name: str) -> None:
    """Lists and results equal the direct connection, except for tools that must run as tasks, which are omitted."""
    needed(f"@modelcontextprotocol/{name}")
    arguments, tool, given = PUBLISHED[name]
    program = MODULES / "@modelcontextprotocol" / name / "dist" / "index.js"
    direct = [node(), str(program), *arguments]

    async def look(target: list[str], *kinds: Any) -> list[Any]:
        async with connect(target, *kinds, exactly=True, stderr=subprocess.DEVNULL) as client:
            tools = [one.model_dump() async for one in client.iter_tools()]
            result = (await client.call_tool(tool, given)).model_dump()
        executions = [one.pop("execution", {}) for one in tools]
        kept = [one for one, how in zip(tools, executions, strict=True) if how.get("taskSupport") != "required"]
        return [kept, result["content"], result.get("structuredContent")]

    through = [str(COMMAND), "gateway", shlex.join(direct)]
    assert await look(through, v2026_07_28.Client) == await look(direct, v2025_11_25.Client, v2025_06_18.Client)
