"""Build servers of any revision from one class of handlers."""

from __future__ import annotations

from typing import Any

from tests.harness.checked_connections import STATELESS


class Tools:
    """Handlers for all revisions; the list of tools is empty."""

    types: Any
    revision: str

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        more = {"ttl_ms": 0, "cache_scope": "private"} if self.revision == STATELESS else {}
        return self.types.ListToolsResult(tools=[], **more)

    def text(self, text: str) -> Any:
        """Return a tool result with one text block."""
        return self.types.CallToolResult(content=[self.types.TextContent(text=text)])


def of_revision(handlers: type, package: Any) -> Any:
    """Return a server class for the revision of `package`, with these handlers."""
    info = package.types.Implementation(name="tools", version="1")
    return type(handlers.__name__, (handlers, package.Server), {"types": package.types, "info": info})
