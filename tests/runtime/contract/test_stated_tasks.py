"""Contracts that say which tools are tasks, as entries of MCP 2025-11-25 do: no mark is needed."""

from __future__ import annotations

from typing import Any

import pytest

import mcp_bindgen.app as app
from mcp_bindgen import v2026_07_28
from mcp_bindgen.extensions.tasks import task
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.session.service import lifespans
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.support.checked_connections import connected

TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, **({"execution": {"taskSupport": said}} if said else {})}
    for name, said in {
        "plain": None,
        "never": "forbidden",
        "may": "optional",
        "must": "required",
        "marked": None,
    }.items()
]


class Reports(app.Contract):
    catalog = app.Catalog.of({"tools": TOOLS})
    revisions = (v2026_07_28,)

    @app.tool("plain")
    def plain(self, ctx: Any) -> str:
        return "plain"

    @app.tool("never")
    def never(self, ctx: Any) -> str:
        return "never"

    @app.tool("may")
    def may(self, ctx: Any) -> str:
        return "may"

    @app.tool("must")
    def must(self, ctx: Any) -> str:
        return "must"

    @task("required")
    @app.tool("marked")
    def marked(self, ctx: Any) -> str:
        return "marked"


def text(result: mcp.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, mcp.TextContent)
    return block.text


async def test_tools_are_tasks_as_the_contract_says() -> None:
    servers = Reports().servers()
    async with lifespans(servers), connected(tasks.Client(), *servers) as connection:
        client = connection.client
        handles = {name: await client.start_tool(name) for name in ("plain", "never", "may", "must", "marked")}
        assert [name for name, handle in handles.items() if handle.id] == ["may", "must", "marked"]
        assert [text(await handle.result()) for handle in handles.values()] == list(handles)
        assert text(await client.call_tool("must")) == "must"


async def test_clients_that_know_no_tasks_wait_or_are_refused() -> None:
    servers = Reports().servers()
    async with lifespans(servers), connected(v2026_07_28.Client(), *servers) as connection:
        assert text(await connection.client.call_tool("may")) == "may"
        for name in ("must", "marked"):
            with pytest.raises(ProtocolError) as refused:
                await connection.client.call_tool(name)
            assert refused.value.code == v2026_07_28.errors.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert refused.value.data == {"requiredCapabilities": {"extensions": {tasks.EXTENSION.id: {}}}}
