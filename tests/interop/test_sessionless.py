"""The official clients use a server without sessions."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import anyio
import pytest

from mcp_bindgen.http import HttpApp
from mcp_bindgen.v2025_11_25 import Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.http_wires import listening
from tests.interop.processes import HERE, needed, node

CAPABILITIES: dict[str, Any] = {"logging": {}, "tools": {}}


class Tools(Server):
    """Server with a counting tool, and a tool that requests roots, which is impossible without a session."""

    info = mcp.Implementation(name="tools", version="1")

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        schema = mcp.ToolInputSchema()
        return mcp.ListToolsResult(tools=[mcp.Tool(name=name, input_schema=schema) for name in ("count", "roots")])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name == "roots":
            await ctx.list_roots()
        for number in (1, 2, 3):
            await ctx.progress(number)
        return mcp.CallToolResult(content=[mcp.TextContent(text="counted")])


async def test_the_python_sdk_needs_no_session() -> None:
    from mcp import Client, MCPError, types
    from mcp.client.streamable_http import streamable_http_client

    seen: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with (
        listening(HttpApp(Tools(), sessions=False)) as port,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp"), mode="legacy") as client,
    ):
        assert len((await client.list_tools()).tools) == 2
        (block,) = (await client.call_tool("count", {}, progress_callback=progressed)).content
        assert isinstance(block, types.TextContent)
        assert (block.text, seen) == ("counted", [1, 2, 3])
        with pytest.raises(MCPError, match="roots/list needs a session"):
            await client.call_tool("roots", {})


@pytest.mark.full
@pytest.mark.parametrize("package", ["sdk", "client"])
async def test_the_typescript_sdk_needs_no_session(package: str) -> None:
    needed()
    async with listening(HttpApp(Tools(), sessions=False)) as port:
        command = [node(), str(HERE / "sessionless_client.mjs"), package, f"http://127.0.0.1:{port}/mcp"]
        done = await anyio.run_process(command, stderr=sys.stderr.fileno(), stdin=subprocess.DEVNULL)
        saw: dict[str, Any] = json.loads(done.stdout)
    assert (saw["session"], saw["capabilities"], saw["tools"]) == (None, CAPABILITIES, 2)
    assert (saw["text"], saw["steps"]) == ("counted", [1, 2, 3])
    assert saw["refused"]["code"] == -32600
    assert "roots/list needs a session" in saw["refused"]["message"]
