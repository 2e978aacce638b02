"""Client that buys books."""

from __future__ import annotations

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.v2025_11_25 import Client, errors
from mcp_bindgen.v2025_11_25 import types as mcp


class Reader(Client):
    """Client that answers the questions of a shop."""

    info = mcp.Implementation(name="reader", version="1.0.0")

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.asked: list[str] = []

    def on_elicit(self, params: mcp.ElicitRequestParams, ctx: object) -> mcp.ElicitResult:
        self.asked.append(params.message)
        return mcp.ElicitResult(action="accept", content={"sure": True})

    def on_create_message(self, params: mcp.CreateMessageRequestParams, ctx: object) -> mcp.CreateMessageResult:
        self.asked.append(str(params.max_tokens))
        return mcp.CreateMessageResult(role="assistant", content=mcp.TextContent(text="Fine."), model="mine")

    def on_list_roots(self, params: mcp.RequestParams, ctx: object) -> mcp.ListRootsResult:
        return mcp.ListRootsResult(roots=[mcp.Root(uri="file:///books")])

    def on_resource_updated(self, params: mcp.ResourceUpdatedNotificationParams, ctx: object) -> None:
        self.heard.append(params.uri)

    def on_ping(self, params: mcp.RequestParams, ctx: object) -> mcp.EmptyResult:
        return mcp.EmptyResult()


def arguments(tool: mcp.Tool) -> list[str]:
    """Return the names of the arguments of a tool."""
    return sorted(tool.input_schema.properties or {})


def needed(tool: mcp.Tool) -> list[str]:
    return list(tool.input_schema.required or [])


async def visit(client: Reader) -> list[str]:
    """Look around and buy something."""
    said: list[str] = []
    await client.ping()
    await client.set_level("debug")
    async for tool in client.iter_tools():
        said.append(f"{tool.name}({', '.join(arguments(tool))}) needs {needed(tool)}")
        if tool.execution is not None:
            said.append(str(tool.execution.task_support))
    await client.subscribe("book://Emma")
    result = await client.call_tool("buy", {"title": "Emma"}, meta=mcp.RequestMeta(progress_token=7))
    said += [block.text for block in result.content if isinstance(block, mcp.TextContent)]
    for name in ("review", "where"):
        result = await client.call_tool(name, {"title": "Emma"})
        said += [block.text for block in result.content if isinstance(block, mcp.TextContent)]
    priced = await client.call_tool("price", {"title": "Ulysses"})
    prices = priced.structured_content or {}
    said.append(str(prices.get("price")))
    await client.unsubscribe("book://Emma")
    await client.notify_roots_list_changed()
    try:
        await client.read_resource("book://None")
    except ProtocolError as error:
        said.append("missing" if error.code == errors.RESOURCE_NOT_FOUND else "wrong")
    return said
