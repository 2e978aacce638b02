"""The HTTP API of the benchmark: 100,000 products, whose searches are answered from memory."""

import json
from functools import cache
from typing import Any
from urllib.parse import parse_qs

NAMES = """Electronics Books Clothing Sports Home Garden Toys Food Beauty Automotive
Music Movies Games Office Health Pets Travel Tools Jewelry Baby"""
CATEGORIES: list[str] = [*NAMES.split()]


def product(index: int) -> dict[str, Any]:
    """Return a product by its index, the id less one."""
    category = CATEGORIES[index % 20]
    return {
        "id": index + 1,
        "sku": f"SKU-{index + 1:06d}",
        "name": f"{category} item {index + 1}",
        "category": category,
        "price": 1 + index % 99900 / 100,
        "stock": index % 501,
        "rating": 1 + index % 40 / 10,
        "tags": ["sale", "new"],
        "description": f"{category} of good quality, item {index + 1}.",
    }


@cache
def search(query: str) -> bytes:
    """Return the answer to a search."""
    asked = {key: values[0] for key, values in parse_qs(query).items()}
    first = CATEGORIES.index(asked["category"])
    low, high = float(asked["min_price"]), float(asked["max_price"])
    found = [one for one in map(product, range(first, 100_000, 20)) if low <= one["price"] <= high]
    found.sort(key=lambda one: float(one["price"]))
    shown = found[: int(asked["limit"])]
    return json.dumps({"category": asked["category"], "total_found": len(found), "products": shown}).encode()


def bill(order: dict[str, Any]) -> bytes:
    """Return the bill of a cart."""
    items = order["items"]
    subtotal = sum(product(item["product_id"] - 1)["price"] * item["quantity"] for item in items)
    total = subtotal * (0.985 if subtotal >= 100 else 1.085) + (0 if subtotal >= 100 else 5.99)
    return json.dumps({"order_id": f"ORD-{order['user_id']}", "total": round(total, 2)}).encode()


async def web(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request."""
    path: str = scope["path"]
    if path == "/products/search":
        answer = search(scope["query_string"].decode())
    elif path == "/cart/calculate":
        answer = bill(json.loads((await receive())["body"]))
    else:
        answer = json.dumps(product(int(path.rpartition("/")[2]) - 1)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
