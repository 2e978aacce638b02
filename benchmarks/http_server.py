"""Our server for the benchmarks of HTTP, both eras at `/mcp`: `python benchmarks/http_server.py PORT [OPTION...]`.

Its tools all say back what they are told; `report` also reports progress once, and `change` tells all who listen that
the tools have changed.
"""

import sys
from typing import Any

from echo_server import server

from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import run
from mcp_bindgen.v2026_07_28 import Context, Server
from mcp_bindgen.v2026_07_28 import types as mcp


class Bench(Server):
    """Says back what it is told."""

    info = mcp.Implementation(name="bench", version="1")

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        schema = mcp.ToolInputSchema.model_validate({"type": "object", "properties": {"text": {"type": "string"}}})
        names = ("echo", "report", "change")
        tools = [mcp.Tool(name=name, input_schema=schema) for name in names]
        return mcp.ListToolsResult(tools=tools, ttl_ms=0, cache_scope="private")

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name == "report":
            await ctx.progress(1)
        elif params.name == "change":
            await self.broadcast(lambda client: client.notify_tool_list_changed())
        text: Any = (params.arguments or {})["text"]
        return mcp.CallToolResult(content=[mcp.TextContent(text=text)])


def app() -> HttpApp:
    """Return the application that `run` serves, for calls without sockets."""
    return HttpApp(server("2025-11-25"), Bench())


if __name__ == "__main__":
    sys.argv[1:] = ["--http", f"127.0.0.1:{sys.argv[1]}", *sys.argv[2:]]
    run(server("2025-11-25"), Bench())
