"""The tools of the official SDK and of FastMCP, and the lifespan of their applications."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from shop import ITEMS, Item, Shop, open_shop

shops: list[Shop] = []


async def search_products(
    category: str = "Electronics", min_price: float = 50.0, max_price: float = 500.0, limit: int = 10
) -> str:
    """Search products by category and price, with their popularity."""
    return await shops[0].search(category, min_price, max_price, limit)


async def get_user_cart(user_id: str = "user-00042") -> str:
    """Return the cart of a user and recent orders."""
    return await shops[0].cart(user_id)


async def checkout(user_id: str = "user-00042", items: list[Item] = ITEMS) -> str:
    """Order the items of a cart."""
    return await shops[0].order(user_id, items)


TOOLS: list[Callable[..., Any]] = [search_products, get_user_cart, checkout]


def with_shop(web: Any) -> Any:
    """Return a Starlette application that opens the shop beside its own lifespan."""
    inner = web.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncGenerator[Any]:
        async with open_shop() as shop, inner(app) as state:
            shops.append(shop)
            yield state

    web.router.lifespan_context = lifespan
    return web
