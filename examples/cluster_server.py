"""One of several workers that serve the same clients: `python examples/cluster_server.py --port 8001`.

Start as many as you like, with the same Redis, behind any load balancer, such as nginx with `nginx.conf`: any worker
takes any request of any session. It serves http://127.0.0.1:PORT/mcp to clients of 2025-11-25 and 2026-07-28, and
answers to the hosts in the environment variable `ALLOWED_HOSTS`: name the public host there. If Redis has a password,
set `MCP_STORE` to its URL.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

import anyio

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.cluster import RedisStore
from mcp_bindgen.http import serve_http
from mcp_bindgen.runtime import InvalidParams, Server

INFO = {"name": "cluster", "version": "1.0.0"}
NOTE = "note://1"
TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "count": ("Count up to a number, and say each.", {"to": "integer", "delay_ms": "integer"}),
    "ask": ("Ask the user a question, and return the answer.", {"question": "string"}),
    "announce": ("Tell all subscribers that a resource has changed.", {"uri": "string"}),
}
FRESH = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Cluster(Server):
    """Tools and a resource, in the types of a revision.

    Attributes:
        types: Those types.
        more: Further members of lists and contents.
    """

    types: Any
    more: Mapping[str, Any] = {}

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        """List the tools."""
        tools: list[dict[str, Any]] = []
        for name, (text, arguments) in TOOLS.items():
            properties = {one: {"type": kind} for one, kind in arguments.items()}
            schema = {"type": "object", "properties": properties, "required": list(arguments)}
            tools.append({"name": name, "description": text, "inputSchema": schema})
        return self.types.ListToolsResult.model_validate({"tools": tools, **self.more})

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        """Call a tool."""
        kinds = {"integer": int, "string": str}
        wanted = TOOLS.get(params.name, ("", {}))[1]
        given: dict[str, Any] = params.arguments or {}
        if params.name not in TOOLS or {name: type(value) for name, value in given.items()} != {
            name: kinds[kind] for name, kind in wanted.items()
        }:
            raise InvalidParams("tools/call", [{"path": "params", "problem": f"the tools are {TOOLS}"}])
        text = await getattr(self, params.name)(ctx, **given)
        return self.types.CallToolResult(content=[self.types.TextContent(text=text)])

    async def count(self, ctx: Any, to: int, delay_ms: int) -> str:
        """Count, and say each number in a progress notification."""
        for number in range(1, to + 1):
            await ctx.progress(number, to, str(number))
            await anyio.sleep(delay_ms / 1000)
        return f"counted to {to}"

    async def ask(self, ctx: Any, question: str) -> str:
        """Elicit a form with one field."""
        form = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
        schema = self.types.ElicitRequestFormParamsRequestedSchema.model_validate(form)
        answer = await ctx.ask_params(
            "question", self.types.ElicitRequestFormParams(message=question, requested_schema=schema)
        )
        given: Any = answer.content or {}
        return str(given.get("answer", "no answer"))

    async def announce(self, ctx: Any, uri: str) -> str:
        """Tell the subscribers of all workers and revisions."""

        async def tell(client: Any) -> None:
            await client.notify_resource_updated(uri)

        for server in SERVERS:
            await server.broadcast(tell)
        return f"announced {uri}"

    async def list_resources(self, params: Any, ctx: Any) -> Any:
        """List the note."""
        note = {"name": "note", "uri": NOTE, "mimeType": "text/plain"}
        return self.types.ListResourcesResult.model_validate({"resources": [note], **self.more})

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        """Read the note."""
        if params.uri != NOTE:
            raise InvalidParams("resources/read", [{"path": "params.uri", "problem": "there is no such resource"}])
        note = {"uri": NOTE, "mimeType": "text/plain", "text": "any worker can say this"}
        return self.types.ReadResourceResult.model_validate({"contents": [note], **self.more})


class Old(Cluster, v2025_11_25.Server):
    """For clients with sessions."""

    types = v2025_11_25.types
    info = v2025_11_25.types.Implementation.model_validate(INFO)

    async def subscribe(self, params: Any, ctx: Any) -> Any:
        """Let a client follow a resource; which ones it follows, the runtime remembers."""
        return self.types.EmptyResult()

    async def unsubscribe(self, params: Any, ctx: Any) -> Any:
        """Let a client follow a resource no longer."""
        return self.types.EmptyResult()


class New(Cluster, v2026_07_28.Server):
    """For clients whose requests carry their metadata."""

    types = v2026_07_28.types
    info = v2026_07_28.types.Implementation.model_validate(INFO)
    more = FRESH


SERVERS: tuple[Any, ...] = (Old(), New())


async def serve(port: int, store: RedisStore) -> None:
    """Serve on a port until the process is told to stop."""
    await serve_http(*SERVERS, address=f"127.0.0.1:{port}", store=store)


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--port", type=int, default=8001)
    url = os.environ.get("MCP_STORE", "redis://127.0.0.1:6379")
    parser.add_argument("--redis", metavar="URL", default=url, help="redis://, rediss:// or unix:// [MCP_STORE]")
    given = parser.parse_args()
    anyio.run(serve, given.port, RedisStore(given.redis))


if __name__ == "__main__":
    main()
