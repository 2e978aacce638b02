"""Uses of what 2026-07-28 deprecates; type checkers that are asked to report each of them. Nothing here runs."""

from __future__ import annotations

from mcp_bindgen.v2025_11_25 import types as stateful
from mcp_bindgen.v2026_07_28 import Client, Context
from mcp_bindgen.v2026_07_28 import types as mcp


def classes(block: object) -> list[mcp.Root]:  # error: a deprecated class
    mcp.SamplingMessage(role="user", content=mcp.TextContent(text="hi"))  # error: a deprecated class
    mcp.ModelHint(name="small")  # error: a deprecated class
    mcp.ClientCapabilitiesSampling()  # error: a deprecated class
    mcp.LegacyTitledEnumSchema(enum=["a"])  # error: a deprecated class
    stateful.LegacyTitledEnumSchema(enum=["a"])  # error: a deprecated class, also in the revision before
    stateful.Root(uri="file:///")
    if isinstance(block, mcp.ToolUseContent):  # error: a deprecated class
        print(block.input)
    return []


async def calls(ctx: Context, client: Client) -> None:
    await ctx.list_roots()  # error: a deprecated call
    await ctx.create_message([], 100)  # error: a deprecated call
    await ctx.notify_logging_message("info", "hi")  # error: a deprecated call
    print(client.on_list_roots)  # error: a deprecated handler
    await client.call_tool("echo")
