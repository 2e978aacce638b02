"""An MCP server inside of a web application: `uvicorn mounted:app --timeout-graceful-shutdown 5`, here in `examples/`.

MCP is at /mcp, for clients of both eras; the web page that shows their activity is at /guests. It is the same with
Starlette: `Starlette(routes=[..., Mount("/", mcp)], lifespan=mcp.lifespan)`. The option bounds the time that requests
have when the process is told to stop. Behind a proxy, set `ALLOWED_HOSTS` to the public name.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from fastapi import FastAPI

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.http import HttpApp
from mcp_bindgen.v2025_11_25 import types as old
from mcp_bindgen.v2026_07_28 import types as new

guests: list[str] = []
SIGN = {"name": "sign", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class Book(v2026_07_28.Server):
    """A guest book, for requests that speak for themselves."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Open the book with the application, and close it with the application."""
        guests.append("the host")
        yield
        guests.clear()

    async def list_tools(self, params: new.PaginatedRequestParams, ctx: v2026_07_28.Context) -> new.ListToolsResult:
        return new.ListToolsResult(tools=[new.Tool.model_validate(SIGN)], ttl_ms=60_000, cache_scope="public")

    async def call_tool(self, params: new.CallToolRequestParams, ctx: v2026_07_28.Context) -> new.CallToolResult:
        return new.CallToolResult(content=[new.TextContent(text=sign(params.arguments or {}))])


class OldBook(v2025_11_25.Server):
    """The same guest book, for clients with sessions."""

    async def list_tools(self, params: old.PaginatedRequestParams, ctx: v2025_11_25.Context) -> old.ListToolsResult:
        return old.ListToolsResult(tools=[old.Tool.model_validate(SIGN)])

    async def call_tool(self, params: old.CallToolRequestParams, ctx: v2025_11_25.Context) -> old.CallToolResult:
        return old.CallToolResult(content=[old.TextContent(text=sign(params.arguments or {}))])


def sign(arguments: Mapping[str, object]) -> str:
    """Write a name into the book."""
    name = arguments.get("name", "somebody")
    guests.append(str(name))
    return f"Welcome, {name}!"


mcp = HttpApp(OldBook(), Book())
app = FastAPI(lifespan=mcp.lifespan)  # frameworks do not enter the lifespans of mounted applications


@app.get("/guests")
def read() -> list[str]:
    """Show the book."""
    return guests


app.mount("/", mcp)
