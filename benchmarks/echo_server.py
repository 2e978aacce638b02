"""A generated server with one tool, `echo(text)`: `python benchmarks/echo_server.py [REVISION ...] [--http PORT]`.

Over stdio it speaks one revision, over HTTP at `/mcp` both eras unless it is told otherwise.
"""

import re
import sys
from importlib import import_module
from typing import Any

from mcp_bindgen.runtime import Server, run

REVISION = re.compile(r"\d{4}-\d\d-\d\d")


def server(revision: str) -> Server:
    """Return the echo server of a revision."""
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
    over_http = "--http" in sys.argv
    revisions = [word for word in sys.argv[1:] if REVISION.fullmatch(word)]
    rest = [word for word in sys.argv[1:] if word not in revisions]
    if over_http and rest[-1].isdecimal():
        rest[-1] = f"127.0.0.1:{rest[-1]}"
    sys.argv[1:] = rest
    revisions = revisions or (["2025-11-25", "2026-07-28"] if over_http else ["2025-11-25"])
    run(*map(server, revisions), revisions=revisions)
