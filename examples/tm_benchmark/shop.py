"""The work of the three tools: requests to an HTTP API and commands to Redis, without MCP."""

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from redis.asyncio import Redis
from typing_extensions import TypedDict

SERVER_TYPE = os.environ.get("SERVER_TYPE", "python-mcp-bindgen")


class Item(TypedDict):
    """Product and quantity in a cart."""

    product_id: int
    quantity: int


ITEMS: list[Item] = [{"product_id": 42, "quantity": 2}, {"product_id": 1337, "quantity": 1}]
"""The cart of a checkout that names none."""


async def together(*work: Awaitable[Any]) -> list[Any]:
    """Return the results of concurrent work."""
    return list(await asyncio.gather(*work))


@dataclass(frozen=True)
class Shop:
    """Catalog and carts.

    Attributes:
        api: HTTP client of the catalog.
        redis: Client of the store of carts, histories and popularity.
    """

    api: Any
    redis: Any

    async def search(self, category: str, min_price: float, max_price: float, limit: int) -> str:
        """Return the products of a category as JSON, with their ranks among the ten most popular."""
        asked = {"category": category, "min_price": min_price, "max_price": max_price, "limit": limit}
        answer, popular = await together(
            self.api.get("/products/search", params=asked),
            self.redis.zrevrange("bench:popular", 0, 9),
        )
        found, top = answer.json(), [int(name.partition(":")[2]) for name in popular]
        ranks = {product: rank for rank, product in enumerate(top, 1)}
        kept = ("id", "sku", "name", "price", "rating")
        products = [
            {**{key: one[key] for key in kept}, "popularity_rank": ranks.get(one["id"], 0)} for one in found["products"]
        ]
        rest = {"category": category, "total_found": found["total_found"], "top10_popular_ids": top}
        return json.dumps({**rest, "products": products, "server_type": SERVER_TYPE})

    async def cart(self, user_id: str) -> str:
        """Return the cart of a user as JSON, with the last five orders."""
        kept = await self.redis.hgetall(f"bench:cart:{user_id}")
        items = json.loads(kept.get("items", "[]"))
        product = items[0]["product_id"] if items else 1
        answers = await together(
            self.api.get(f"/products/{product}"), self.redis.lrange(f"bench:history:{user_id}", 0, 4)
        )
        cart = {"items": items, "item_count": len(items), "estimated_total": float(kept.get("total", 0))}
        history = [json.loads(order) for order in answers[1]]
        return json.dumps({"user_id": user_id, "cart": cart, "recent_history": history, "server_type": SERVER_TYPE})

    async def order(self, user_id: str, items: list[Item]) -> str:
        """Order the items of a cart; returns the confirmation as JSON."""
        now, product = int(time.time()), items[0]["product_id"] if items else 1
        order = json.dumps({"order_id": f"ORD-{user_id}-{now}", "items": items, "ts": now})
        counter = f"bench:ratelimit:user-{int(user_id.rpartition('-')[2]) % 100:05d}"
        answers = await together(
            self.api.post("/cart/calculate", json={"user_id": user_id, "items": items}),
            self.redis.incr(counter),
            self.redis.rpush(f"bench:history:{user_id}", order),
            self.redis.zincrby("bench:popular", 1, f"product:{product}"),
        )
        bill = answers[0].json()
        done = {"order_id": bill["order_id"], "user_id": user_id, "total": bill["total"], "items_count": len(items)}
        return json.dumps({**done, "rate_limit_count": answers[1], "status": "confirmed", "server_type": SERVER_TYPE})


@asynccontextmanager
async def open_shop() -> AsyncGenerator[Shop]:
    """Connect with the services of `API_SERVICE_URL` and `REDIS_URL`."""
    store: Any = Redis
    redis = store.from_url(os.environ.get("REDIS_URL", "redis://mcp-redis:6379"), decode_responses=True)
    url = os.environ.get("API_SERVICE_URL", "http://mcp-api-service:8100")
    async with httpx2.AsyncClient(base_url=url, timeout=10) as api, redis:
        yield Shop(api, redis)
