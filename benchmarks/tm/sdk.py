"""The shop on `MCPServer` of the official SDK; `SESSIONS=1` gives sessions, else it answers with JSON and without."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer
from shop import ITEMS, Item, Shop, open_shop

shops: list[Shop] = []
server = MCPServer("benchmark")


@server.tool(structured_output=False)
async def search_products(
    category: str = "Electronics", min_price: float = 50.0, max_price: float = 500.0, limit: int = 10
) -> str:
    """Search products by category and price, with their popularity."""
    return await shops[0].search(category, min_price, max_price, limit)


@server.tool(structured_output=False)
async def get_user_cart(user_id: str = "user-00042") -> str:
    """Return the cart of a user and recent orders."""
    return await shops[0].cart(user_id)


@server.tool(structured_output=False)
async def checkout(user_id: str = "user-00042", items: list[Item] = ITEMS) -> str:
    """Order the items of a cart."""
    return await shops[0].order(user_id, items)


web = server.streamable_http_app(json_response=True, stateless_http=os.environ.get("SESSIONS") != "1")
inner = web.router.lifespan_context


@asynccontextmanager
async def lifespan(app: Any) -> AsyncGenerator[Any]:
    """Open the shop beside the sessions of the server."""
    async with open_shop() as shop, inner(app) as state:
        shops.append(shop)
        yield state


web.router.lifespan_context = lifespan
