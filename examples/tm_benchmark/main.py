"""Entry for the TM Dev Lab benchmark of MCP servers, version 2: `uvicorn main:web`, with `SESSIONS=1` for sessions."""

import os

from shop import ITEMS, SERVER_TYPE, Item, Shop, open_shop
from starlette.requests import Request
from starlette.responses import JSONResponse

from mcp_bindgen.app import App, Context
from mcp_bindgen.http import HttpApp

app = App("benchmark", version="1.0.0", lifespan=open_shop)


@app.tool
async def search_products(
    ctx: Context[Shop],
    category: str = "Electronics",
    min_price: float = 50.0,
    max_price: float = 500.0,
    limit: int = 10,
) -> str:
    """Search products by category and price, with their popularity."""
    return await ctx.state.search(category, min_price, max_price, limit)


@app.tool
async def get_user_cart(ctx: Context[Shop], user_id: str = "user-00042") -> str:
    """Return the cart of a user and recent orders."""
    return await ctx.state.cart(user_id)


@app.tool
async def checkout(ctx: Context[Shop], user_id: str = "user-00042", items: list[Item] = ITEMS) -> str:
    """Order the items of a cart."""
    return await ctx.state.order(user_id, items)


@app.route("/health")
async def health(request: Request) -> JSONResponse:
    """Answer the probe of the benchmark."""
    return JSONResponse({"status": "ok", "server_type": SERVER_TYPE})


web = HttpApp(app, sessions=os.environ.get("SESSIONS") == "1", allowed_hosts=["*"])
