"""Contracts that mark tools as tasks in their JSON (`execution.taskSupport` of MCP 2025-11-25), without a decorator."""

from __future__ import annotations

from typing import Any

import mcp_bindgen.app as app
from mcp_bindgen import v2026_07_28
from mcp_bindgen.extensions.tasks import task
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.app.serving import served
from tests.harness.checked_connections import STATELESS, refused

SUPPORT = {"plain": None, "never": "forbidden", "may": "optional", "must": "required", "marked": None}
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}, **({"execution": {"taskSupport": said}} if said else {})}
    for name, said in SUPPORT.items()
]


def saying(name: str) -> Any:
    """Return a tool that returns its name."""

    def said(self: Any, ctx: Any) -> str:
        return name

    return app.tool(name)(said)


class Reports(app.Contract):
    catalog = app.Catalog.of({"tools": TOOLS})
    revisions = (v2026_07_28,)
    plain, never, may, must = map(saying, ("plain", "never", "may", "must"))
    marked = task("required")(saying("marked"))


def text(result: mcp.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, mcp.TextContent)
    return block.text


async def test_tools_run_as_tasks_according_to_the_contract() -> None:
    async with served(Reports(), STATELESS, tasks.Client) as client:
        handles = {name: await client.start_tool(name) for name in SUPPORT}
        assert [name for name, handle in handles.items() if handle.id] == ["may", "must", "marked"]
        assert [text(await handle.result()) for handle in handles.values()] == list(handles)
        assert text(await client.call_tool("must")) == "must"


async def test_clients_without_the_tasks_extension_wait_or_are_refused() -> None:
    async with served(Reports(), STATELESS) as client:
        assert text(await client.call_tool("may")) == "may"
        for name in ("must", "marked"):
            error = await refused(client.call_tool(name))
            assert error.code == v2026_07_28.errors.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert error.data == {"requiredCapabilities": {"extensions": {tasks.EXTENSION.id: {}}}}
