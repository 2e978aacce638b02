"""A server written once, in the types of 2025-11-25, for clients of every revision.

    python examples/written_once.py                # stdio
    python examples/written_once.py --port 8000    # http://127.0.0.1:8000/mcp

Older clients get audio as an embedded resource and links as text; stateless ones answer questions inside of results;
nothing below knows of that.
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import anyio

from mcp_bindgen.http import serve_http
from mcp_bindgen.runtime import InvalidParams, ProtocolError, run
from mcp_bindgen.v2025_11_25 import Context, Server, errors
from mcp_bindgen.v2025_11_25 import types as mcp

NOTES = {"note:///song": "La, la, la.", "note:///list": "Milk, eggs, bread."}
SILENCE = base64.b64encode(b"RIFF$\0\0\0WAVEfmt ").decode()

Tool: TypeAlias = "Callable[[Notes, Context], Awaitable[mcp.CallToolResult]]"


def said(*content: mcp.ContentBlock) -> mcp.CallToolResult:
    """Return the result of a tool."""
    return mcp.CallToolResult(content=list(content))


async def sing(notes: Notes, ctx: Context) -> mcp.CallToolResult:
    """Sing a note."""
    return said(mcp.AudioContent(data=SILENCE, mime_type="audio/wav"))


async def find(notes: Notes, ctx: Context) -> mcp.CallToolResult:
    """Find the notes, and link to them."""
    return said(*(mcp.ResourceLink(name=uri.rpartition("/")[2], uri=uri, mime_type="text/plain") for uri in NOTES))


async def count(notes: Notes, ctx: Context) -> mcp.CallToolResult:
    """Count the words of all notes."""
    words = {uri: len(text.split()) for uri, text in NOTES.items()}
    return mcp.CallToolResult(content=[], structured_content={"words": words})


async def add(notes: Notes, ctx: Context) -> mcp.CallToolResult:
    """Add a line to the list, if the user says which."""
    line = mcp.StringSchema(type="string", title="What is missing?")
    schema = mcp.ElicitRequestFormParamsRequestedSchema(properties={"line": line}, required=["line"])
    asked = mcp.ElicitRequestFormParams(message="Add to the list", requested_schema=schema)
    answer = await ctx.ask_params("line", asked)
    if answer.action != "accept" or answer.content is None:
        return said(mcp.TextContent(text="Nothing is added."))
    NOTES["note:///list"] += f" {answer.content['line']}."
    await notes.changed("note:///list")
    return said(mcp.TextContent(text=f"Added {answer.content['line']}."))


async def rhyme(notes: Notes, ctx: Context) -> mcp.CallToolResult:
    """Have the client's model write a rhyme."""
    wish = mcp.SamplingMessage(role="user", content=mcp.TextContent(text="Rhyme on bread."))
    answer = await ctx.ask_params("rhyme", mcp.CreateMessageRequestParams(messages=[wish], max_tokens=50))
    blocks = answer.content if isinstance(answer.content, list) else [answer.content]
    return said(*(block for block in blocks if isinstance(block, mcp.TextContent)))


async def tidy(notes: Notes, ctx: Context) -> mcp.CallToolResult:
    """Tidy the notes up, step by step."""
    for step, uri in enumerate(NOTES, 1):
        await ctx.progress(step, len(NOTES), uri)
        await ctx.log("info", f"tidied {uri}")
        await anyio.sleep(0.05)
    return said(mcp.TextContent(text="All is tidy."))


TOOLS: dict[str, Tool] = {tool.__name__: tool for tool in (sing, find, count, add, rhyme, tidy)}
COUNTED = mcp.ToolOutputSchema(properties={"words": {"type": "object"}}, required=["words"])


class Notes(Server):
    """Keeps notes."""

    info = mcp.Implementation(name="written-once", version="1.0.0", title="Written once")
    instructions = "Two notes, and tools for them."

    async def changed(self, uri: str) -> None:
        """Notify the subscribers of a note that it changed."""
        await self.broadcast(lambda client: client.notify_resource_updated(uri))

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(
            tools=[
                mcp.Tool(
                    name=name,
                    description=tool.__doc__,
                    input_schema=mcp.ToolInputSchema(),
                    output_schema=COUNTED if tool is count else None,
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name not in TOOLS:
            raise InvalidParams("tools/call", [{"path": "params.name", "problem": f"no tool {params.name!r}"}])
        return await TOOLS[params.name](self, ctx)

    async def list_resources(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListResourcesResult:
        """Return one note a page."""
        uris = list(NOTES)
        place = uris.index(params.cursor) if params.cursor in uris else 0
        following = uris[place + 1] if place + 1 < len(uris) else None
        note = mcp.Resource(name=uris[place].rpartition("/")[2], uri=uris[place], mime_type="text/plain")
        return mcp.ListResourcesResult(resources=[note], next_cursor=following)

    async def list_resource_templates(
        self, params: mcp.PaginatedRequestParams, ctx: Context
    ) -> mcp.ListResourceTemplatesResult:
        template = mcp.ResourceTemplate(name="note", uri_template="note:///{name}")
        return mcp.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: Context) -> mcp.ReadResourceResult:
        if params.uri not in NOTES:
            raise ProtocolError(errors.RESOURCE_NOT_FOUND, "No such note", {"uri": params.uri})
        text = mcp.TextResourceContents(uri=params.uri, text=NOTES[params.uri], mime_type="text/plain")
        return mcp.ReadResourceResult(contents=[text])

    async def subscribe(self, params: mcp.SubscribeRequestParams, ctx: Context) -> mcp.EmptyResult:
        return mcp.EmptyResult()

    async def unsubscribe(self, params: mcp.UnsubscribeRequestParams, ctx: Context) -> mcp.EmptyResult:
        return mcp.EmptyResult()

    async def list_prompts(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListPromptsResult:
        argument = mcp.PromptArgument(name="note", required=True)
        return mcp.ListPromptsResult(prompts=[mcp.Prompt(name="shorten", arguments=[argument])])

    async def get_prompt(self, params: mcp.GetPromptRequestParams, ctx: Context) -> mcp.GetPromptResult:
        note = NOTES.get(f"note:///{(params.arguments or {}).get('note')}")
        if params.name != "shorten" or note is None:
            raise InvalidParams("prompts/get", [{"path": "params", "problem": "no such prompt, or no such note"}])
        text = mcp.TextContent(text=f"Shorten this: {note}")
        return mcp.GetPromptResult(messages=[mcp.PromptMessage(role="user", content=text)])

    async def complete(self, params: mcp.CompleteRequestParams, ctx: Context) -> mcp.CompleteResult:
        names = [uri.rpartition("/")[2] for uri in NOTES]
        values = [name for name in names if name.startswith(params.argument.value)]
        return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=values))


def main() -> None:
    """Serve until the process is stopped."""
    parser = argparse.ArgumentParser(description=Notes.__doc__)
    parser.add_argument("--port", type=int, help="serve HTTP at /mcp instead of stdio")
    port = parser.parse_args().port
    if port is None:
        run(Notes())
    else:
        anyio.run(partial(serve_http, Notes(), address=f"127.0.0.1:{port}"))


if __name__ == "__main__":
    main()
