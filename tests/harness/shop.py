"""A server of the vendor's extension in `stock_schema.py`, which also runs standalone: `python shop.py`."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio

from mcp_bindgen.runtime import run
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.stock_schema import ID, stock

bindings = stock()
types = bindings.types
RESERVED = {"resultType": "reserved", "by": "wire"}


class Shop(bindings.Server):  # type: ignore[misc, name-defined]
    """A server that reserves items of its stock."""

    info = mcp.Implementation(name="shop", version="1")

    def __init__(self) -> None:
        self.read: list[str] = []
        self.settings: list[Any] = []

    async def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[])

    async def get_stock(self, params: Any, ctx: Any) -> Any:
        return types.GetStockResult(count=len(params.item), ttl_ms=60_000)

    async def on_stock_read(self, params: Any, ctx: Any) -> None:
        self.read.append(params.item)

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        match params.name:
            case "reserve" if ctx.extension(bindings.EXTENSION) is None:
                return mcp.CallToolResult(content=[mcp.TextContent(text="come to the counter")])
            case "reserve":
                self.settings.append(ctx.extension(bindings.EXTENSION))
                return types.ReservedResult(by="shop", input_requests={"colour": {"method": "no question"}}, ttl_ms=9)
            case "careless":
                return types.ReservedResult(by="shop")
            case "wire":
                return RESERVED
            case "must":
                ctx.require_extension(bindings.EXTENSION)
            case "sell":
                for item in ("pear", "apple", "apples"):
                    await self.broadcast(partial(_tell, item))
            case _:
                pass
        return mcp.CallToolResult(content=[mcp.TextContent(text=str(self.read))])


async def _tell(item: str, client: Any) -> None:
    await client.notify_stock_changed(item=item, count=1)


class Customer(bindings.Client):  # type: ignore[misc, name-defined]
    """A client that supports the extension."""

    def __init__(self) -> None:
        super().__init__()
        self.extension_settings = {ID: {"currency": "EUR"}}
        self.heard: list[str] = []
        self.changed = anyio.Event()

    async def on_stock_changed(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.item)
        self.changed.set()


if __name__ == "__main__":
    run(Shop())
