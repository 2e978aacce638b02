"""Client of any 1.x version of the official Python SDK for `examples/written_once.py`; it prints results as JSON.

    python dated_client.py stdio COMMAND...
    python dated_client.py sse|http URL

PYTHONPATH selects the version of the SDK, so this program uses only API that all versions have.
"""

from __future__ import annotations

import inspect
import json
import sys
from importlib import import_module
from typing import Any

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client


async def sample(context: Any, params: Any) -> Any:
    """Answer a sampling request."""
    content = types.TextContent(type="text", text="Raise the dead.")
    return types.CreateMessageResult(role="assistant", content=content, model="fake")


async def elicit(context: Any, params: Any) -> Any:
    """Answer an elicitation."""
    return types.ElicitResult(action="accept", content={"line": "Tea"})


def way(over: str, target: list[str]) -> Any:
    """Return the transport to the server."""
    if over == "stdio":
        return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    if over == "sse":
        return sse_client(target[0], timeout=60)
    streams: Any = import_module("mcp.client.streamable_http")  # not in the oldest versions
    return streams.streamablehttp_client(target[0])


async def converse(session: Any, seen: dict[str, Any]) -> None:
    """Try every feature of the server."""
    begun = await session.initialize()
    seen["revision"] = str(begun.protocolVersion)
    seen["server"] = begun.serverInfo.name
    seen["tools"] = sorted(tool.name for tool in (await session.list_tools()).tools)
    for name in ("sing", "find", "count", "rhyme", "tidy", *(["add"] if seen["elicits"] else [])):
        result = await session.call_tool(name, {})
        assert not result.isError, (name, result)
        seen[name] = [type(block).__name__ for block in result.content]
        if name in ("rhyme", "add", "count") and result.content:
            seen[f"{name} said"] = getattr(result.content[0], "text", None)
    seen["structured"] = (await session.call_tool("count", {})).model_dump().get("structuredContent")
    first = await session.list_resources()
    pages = [first]
    if "cursor" in PAGED:  # the oldest versions cannot ask for the second page
        pages.append(await session.list_resources(cursor=first.nextCursor))
    seen["resources"] = [str(each.uri) for page in pages for each in page.resources]
    seen["read"] = (await session.read_resource(first.resources[0].uri)).contents[0].text
    try:
        await session.read_resource("note:///nothing")
    except Exception as error:
        seen["unknown"] = error.error.code  # type: ignore[attr-defined]
    await session.subscribe_resource(first.resources[0].uri)
    await session.unsubscribe_resource(first.resources[0].uri)
    prompt = await session.get_prompt("shorten", {"note": "song"})
    seen["prompt"] = prompt.messages[0].content.text
    reference = types.PromptReference(type="ref/prompt", name="shorten")
    seen["completed"] = (await session.complete(reference, {"name": "note", "value": "so"})).completion.values
    await session.set_logging_level("warning")


PAGED = inspect.signature(ClientSession.list_resources).parameters


async def main() -> None:
    """Connect, try every feature, and print the results."""
    over, *target = sys.argv[1:]
    known = inspect.signature(ClientSession).parameters
    handlers: dict[str, Any] = {"sampling_callback": sample, "elicitation_callback": elicit}
    handlers = {name: handler for name, handler in handlers.items() if name in known}
    seen: dict[str, Any] = {"elicits": "elicitation_callback" in known}
    with anyio.fail_after(120):
        async with way(over, target) as streams, ClientSession(streams[0], streams[1], **handlers) as session:
            await converse(session, seen)
    print(json.dumps(seen))


if __name__ == "__main__":
    anyio.run(main)
