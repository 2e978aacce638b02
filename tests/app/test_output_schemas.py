"""Clients check tool results against the output schema of the tool."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from mcp_bindgen.app import OutputSchemas, UnexpectedResult
from tests.harness.checked_connections import STATELESS, bindings, connected, refused
from tests.harness.effort import each

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
REMOTE = {"type": "object", "properties": {"n": {"$ref": "https://example.com/schema"}}}

RESULTS: list[tuple[str, Any, bool, str | None]] = [
    ("counted", {"n": 1}, False, None),
    ("counted", {"n": 0}, False, r"result of the tool 'counted' does not fit its outputSchema: structuredContent\.n: "),
    ("counted", {}, False, "does not fit its outputSchema"),
    ("counted", None, False, "'counted' gave no structured content"),
    ("counted", None, True, None),
    ("counted", {"n": 0}, True, None),
    ("free", {"n": 0}, False, None),
    ("unlisted", {"n": 0}, False, None),
    ("remote", {"n": 0}, False, None),
]


def server(revision: str, content: Any, is_error: bool) -> Any:
    """Return a server with several output schemas; all of its tools return the same result."""
    package = bindings(revision)
    types = package.types

    class Careless(package.Server):  # type: ignore[misc, name-defined]
        info = types.Implementation(name="careless", version="1")

        def list_tools(self, params: Any, ctx: Any) -> Any:
            schemas = {"counted": SCHEMA, "remote": REMOTE, "free": None}
            tools = [
                {"name": name, "inputSchema": {"type": "object"}} | ({} if schema is None else {"outputSchema": schema})
                for name, schema in schemas.items()
            ]
            return types.ListToolsResult.model_validate(
                {"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            )

        def call_tool(self, params: Any, ctx: Any) -> Any:
            more = {} if content is None else {"structured_content": content}
            return types.CallToolResult(content=[], is_error=is_error, **more)

    return Careless()


@each("revision", ["2025-06-18", "2025-11-25", STATELESS])
@each(("name", "content", "is_error", "message"), RESULTS)
async def test_results_are_validated_against_the_listed_output_schemas(
    revision: str, name: str, content: Any, is_error: bool, message: str | None
) -> None:
    async with connected(bindings(revision).Client(), server(revision, content, is_error)) as connection:
        client = connection.client
        await client.call_tool(name)
        client.checks = OutputSchemas()
        await client.call_tool(name)  # the client has not listed any schema yet
        await client.list_tools()
        await refused(client.call_tool(name), UnexpectedResult, message) if message else nullcontext()


async def test_the_number_of_cached_output_schemas_is_limited() -> None:
    async with connected(bindings("2025-11-25").Client(), server("2025-11-25", {}, False)) as connection:
        connection.client.checks = OutputSchemas(limit=1)
        await connection.client.list_tools()
        await connection.client.call_tool("counted")  # unchecked: only the last schema is kept
