"""Search mode of an app: two tools find and call all others, which stay out of the list."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import BaseModel

from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.model.json_types import is_object

from .context import Context
from .errors import ToolError
from .search import search

SEARCH, CALL = "search_tools", "call_tool"


class FoundTools(BaseModel):
    """The entries of tools that fit a search, as in `tools/list`."""

    tools: list[dict[str, Any]]


class _Inner(NamedTuple):
    name: str
    arguments: dict[str, Any] | None


async def search_tools(words: str, ctx: Context, limit: int = 5) -> FoundTools:
    """Find the tools that fit some words, the best first.

    Args:
        words: What the tool should do.
        limit: Maximum of tools.
    """
    server = ctx.server
    handlers = server.contract.handlers["tool"].items()
    found = [one.entry for name, one in handlers if name not in (SEARCH, CALL) and server.offers(one, ctx)]
    return FoundTools(tools=[found[index] for index in search(words, found, limit)])


async def call_tool(name: str, ctx: Context, arguments: dict[str, Any] | None = None) -> Model:
    """Call a tool that `search_tools` has found.

    Args:
        name: Its name.
        arguments: Its arguments, by its input schema.
    """
    if name == CALL:
        raise ToolError(f"{CALL} does not call itself")
    server = ctx.server
    if server.authorize is not None:
        server.authorize(ctx.identity, ctx.wire_revision, [("tools/call", name)])
    result = await server.call_tool(_Inner(name, arguments), ctx)
    found: Model = server.result("tools/call", result) if is_object(result) else result
    return found
