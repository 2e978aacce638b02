"""The shop over ASGI with the least work: json.loads, json.dumps, sessions that nobody checks."""

import json
import secrets
from typing import Any

from shop import ITEMS, Shop, open_shop

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("search_products", "get_user_cart", "checkout")]
shops: list[Shop] = []


async def call(name: str, given: dict[str, Any]) -> str:
    """Return the result of a tool."""
    (shop,) = shops
    if name == "search_products":
        prices = given.get("min_price", 50.0), given.get("max_price", 500.0)
        return await shop.search(given.get("category", "Electronics"), *prices, given.get("limit", 10))
    if name == "get_user_cart":
        return await shop.cart(given.get("user_id", "user-00042"))
    return await shop.order(given.get("user_id", "user-00042"), given.get("items", ITEMS))


async def result_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    method, params = message["method"], message["params"]
    if method == "initialize":
        info = {"name": "benchmark", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    return {"content": [{"type": "text", "text": await call(params["name"], params["arguments"])}], "isError": False}


async def web(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request."""
    if scope["type"] == "lifespan":
        await receive()
        async with open_shop() as shop:
            shops.append(shop)
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    body, more = b"", True
    while more:
        part = await receive()
        body += part.get("body", b"")
        more = part.get("more_body", False)
    headers = [(b"content-type", b"application/json")]
    answer, status = b"", 202
    if scope["method"] == "DELETE":
        status = 200
    elif "id" in (message := json.loads(body)):
        answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": await result_of(message)}).encode()
        status = 200
        if message["method"] == "initialize":
            headers.append((b"mcp-session-id", secrets.token_hex(16).encode()))
    headers.append((b"content-length", str(len(answer)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
