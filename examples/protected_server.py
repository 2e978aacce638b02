"""A server that wants a token: `python examples/protected_server.py --port 8000 --issuer https://auth.example.org`.

It is the resource http://127.0.0.1:PORT/mcp, for clients of all revisions that know authorization. Behind a proxy, say
`--resource https://mcp.example.com/mcp`, and set `ALLOWED_HOSTS` to that name. Tokens are JWTs of
the issuer for this resource; `whoami` needs the scope `mcp:read`, `delete` the scope `mcp:write`.
"""

import argparse
import asyncio
import logging
import sys
from typing import Any

from mcp_bindgen import v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.auth import JwtVerifier, ResourceServer
from mcp_bindgen.http import serve_http
from mcp_bindgen.runtime import InvalidParams, Server

SCOPES = {("tools/call", "whoami"): ["mcp:read"], ("tools/call", "delete"): ["mcp:write"]}
REVISIONS: list[Any] = [v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28]


class Protected:
    """The tools, in any revision."""

    types: Any

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        schema = self.types.ToolInputSchema()
        tools = [self.types.Tool(name=name, input_schema=schema) for _, name in SCOPES]
        more = {"ttl_ms": 0, "cache_scope": "private"} if self.types is v2026_07_28.types else {}
        return self.types.ListToolsResult(tools=tools, **more)

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        answers = {"whoami": ctx.identity.subject, "delete": "deleted"}
        if params.name not in answers:
            raise InvalidParams("tools/call", [{"path": "params.name", "problem": f"no tool {params.name!r}"}])
        return self.types.CallToolResult(content=[self.types.TextContent(text=answers[params.name])])


def servers() -> list[Server]:
    """Return a server for each revision."""
    found: list[Server] = []
    for package in REVISIONS:
        info = package.types.Implementation(name="protected", version="1.0.0")
        kind = type("ProtectedServer", (Protected, package.Server), {"types": package.types, "info": info})
        found.append(kind())
    return found


def main() -> None:
    """Serve until the process is told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--issuer", required=True, help="the authorization server: https, or http on this machine")
    parser.add_argument("--resource", metavar="URL", help="address of the resource for clients and tokens")
    arguments = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    address = f"127.0.0.1:{arguments.port}"
    try:
        auth = ResourceServer(
            arguments.resource or f"http://{address}/mcp",
            JwtVerifier(arguments.issuer),
            scopes=SCOPES,
            basic_scopes=["mcp:read"],
        )
    except ValueError as error:
        parser.error(str(error))
    asyncio.run(serve_http(*servers(), address=address, auth=auth))


if __name__ == "__main__":
    main()
