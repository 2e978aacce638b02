"""A generated server with one tool, `echo(text)`, over stdio: `python benchmarks/echo_server.py [REVISION]`."""

import sys
from importlib import import_module
from typing import Any

from mcp_bindgen.runtime import Server, run


def server(revision: str) -> Server:
    """The echo server of a revision."""
    bindings: Any = import_module(f"mcp_bindgen.v{revision.replace('-', '_')}")
    mcp = bindings.types

    class Echo(bindings.Server):  # type: ignore[misc]
        """Says back what it is told."""

        info = mcp.Implementation(name="echo", version="1")

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            schema = mcp.ToolInputSchema(properties={"text": {"type": "string"}}, required=["text"])
            return mcp.ListToolsResult(tools=[mcp.Tool(name="echo", input_schema=schema)])

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return mcp.CallToolResult(content=[mcp.TextContent(text=params.arguments["text"])])

    return Echo()


if __name__ == "__main__":
    revision = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "2025-11-25"
    run(server(revision))
