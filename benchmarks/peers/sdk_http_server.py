"""The same server on the official SDK's low-level server, in 2026-07-28: `python sdk_http_server.py PORT [--json]`.

With `--json` it only ever answers with JSON, which is quicker.
"""

import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

bus = InMemorySubscriptionBus()


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    """List three tools."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema=schema) for name in ("echo", "report", "change")],
        ttl_ms=0,
        cache_scope="private",
    )


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Return the text of the arguments."""
    if params.name == "report":
        await ctx.session.report_progress(1)
    elif params.name == "change":
        await bus.publish(ToolsListChanged())
    text = (params.arguments or {})["text"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


if __name__ == "__main__":
    server = Server(
        "bench",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(bus),
    )
    app = server.streamable_http_app(json_response="--json" in sys.argv)
    uvicorn.run(app, port=int(sys.argv[1]), log_config=None, access_log=False)
