"""Tools of a host's servers as functions of a model provider: names, calls, guards and budgets."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from mcp_bindgen.host import Host, NotRouted
from mcp_bindgen.lowering import InvalidArguments, RequestTooLarge
from mcp_bindgen.v2025_11_25 import Client
from mcp_bindgen.v2025_11_25 import types as mcp

SERVER = """
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types as mcp

class Tools(Server):
    info = mcp.Implementation(name="tools", version="1")

    async def list_tools(self, params, ctx):
        return {"tools": [
            {"name": "labels.set", "inputSchema": {"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "count": {"type": "integer", "not": {"multipleOf": 2}}}}},
            {"name": "never", "inputSchema": {"type": "object", "properties": {"a": False}, "required": ["a"]}},
        ]}

    async def call_tool(self, params, ctx):
        return mcp.CallToolResult(content=[], structured_content={"name": params.name, "arguments": params.arguments})

run(Tools())
"""


@pytest.mark.full
async def test_functions_are_called_by_their_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER, "utf-8")
    entry = {"command": sys.executable, "args": [str(script)]}
    async with Host({"a": entry, "b": entry}, Client) as host:
        with pytest.raises(NotRouted, match=r"call functions\(\) first"):
            await host.dispatch("a__labels_set", {})
        with caplog.at_level(logging.WARNING, "mcp_bindgen"):
            functions = await host.functions("openai-strict")
        assert "MCP server a: never is no function: no arguments are accepted" in caplog.text
        assert [one.tool for one in functions] == ["labels.set", "labels.set"]
        assert len({one.name for one in functions}) == 2
        arguments = {"labels": [{"key": "x", "value": "1"}], "count": 3}
        result = await host.dispatch(functions[1].name, arguments)
        assert isinstance(result, mcp.CallToolResult)
        decoded = {"labels": {"x": "1"}, "count": 3}
        assert result.structured_content == {"name": "labels.set", "arguments": decoded}
        with pytest.raises(InvalidArguments, match=r"arguments\.count"):
            await host.dispatch(functions[0].name, {"labels": None, "count": 2})
        with pytest.raises(NotRouted, match="no function 'x'; there are: a__labels_set_"):
            await host.dispatch("x", {})
        profile = tmp_path / "small.toml"
        profile.write_text('[max_tools]\nvalue = 2\nsource = "a test"\ndate = 2026-01-01\n', "utf-8")
        with pytest.raises(RequestTooLarge, match="4 tools; at most 2 fit into a request; send fewer tools"):
            await host.functions(str(profile))
        only = await host.functions(str(profile), only=lambda offer: offer.server == "b")
        assert [one.name for one in only] == ["b__labels.set", "b__never"]
