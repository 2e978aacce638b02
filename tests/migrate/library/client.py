"""Client of a library, written for MCP 2025-11-25: a visit with every kind of request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.v2025_11_25 import Client, errors
from mcp_bindgen.v2025_11_25 import types as mcp


@dataclass
class Diary:
    """The notes of a visit."""

    lines: list[str] = field(default_factory=list[str])

    def note(self, line: object) -> None:
        self.lines.append(str(line))


class Reader(Client):
    """Client that answers the questions of a library."""

    info = mcp.Implementation(name="reader", version="1.4.0")

    def __init__(self, *, agrees: bool = True) -> None:
        super().__init__()
        self.agrees = agrees
        self.asked: list[str] = []

    async def on_elicit(self, params: mcp.ElicitRequestParams, ctx: object) -> mcp.ElicitResult:
        self.asked.append(params.message)
        if not self.agrees:
            return mcp.ElicitResult(action="decline")
        return mcp.ElicitResult(action="accept", content={"sure": True})

    async def on_create_message(self, params: mcp.CreateMessageRequestParams, ctx: object) -> mcp.CreateMessageResult:
        self.asked.append(f"{params.max_tokens} tokens")
        return mcp.CreateMessageResult(role="assistant", model="small", content=mcp.TextContent(text="Persuasion."))

    async def on_list_roots(self, params: mcp.RequestParams, ctx: object) -> mcp.ListRootsResult:
        return mcp.ListRootsResult(roots=[mcp.Root(uri="file:///home/reader/notes", name="notes")])


def texts(result: mcp.CallToolResult) -> list[str]:
    """Return the texts of a result."""
    return [block.text for block in result.content if isinstance(block, mcp.TextContent)]


def signature(tool: mcp.Tool) -> str:
    """Return a tool as a function signature: `borrow(uri, reader)`."""
    properties: Mapping[str, object] = tool.input_schema.properties or {}
    required = tool.input_schema.required or []
    names = (name if name in required else f"{name}?" for name in properties)
    return f"{tool.name}({', '.join(names)})"


def kind_of(tool: mcp.Tool) -> str:
    """Return the risk of a tool for its user."""
    hints = tool.annotations
    if hints is None:
        return "plain"
    return "reads" if hints.read_only_hint else "writes" if hints.destructive_hint else "plain"


def title_of(tool: mcp.Tool) -> str:
    """Return the best title of a tool."""
    hints = tool.annotations
    return tool.title or (hints.title if hints is not None else None) or tool.name


async def tools(client: Client, diary: Diary) -> None:
    """Note the tools, page by page and one by one."""
    page = await client.list_tools()
    diary.note(f"{len(page.tools)} tools on the first page, more: {page.next_cursor is not None}")
    async for tool in client.iter_tools():
        diary.note(f"{title_of(tool)}: {signature(tool)} {kind_of(tool)}")


async def loans(client: Client, diary: Diary) -> None:
    """Search, borrow and return."""
    found = await client.call_tool("search", {"words": "austen"})
    structured = found.structured_content or {}
    diary.note(structured.get("titles"))
    borrowed = await client.call_tool(
        "borrow", {"uri": "book://persuasion", "reader": "Ada"}, meta=mcp.RequestMeta(progress_token="loan-1")
    )
    diary.note(texts(borrowed))
    again = await client.call_tool("borrow", {"uri": "book://persuasion", "reader": "Bob"})
    diary.note((texts(again), again.is_error))
    returned = await client.call_tool("bring_back", {"uri": "book://persuasion", "reader": "Ada"})
    diary.note(texts(returned))
    advice = await client.call_tool("advise", {"taste": "letters"})
    diary.note(texts(advice))
    scanned = await client.call_tool("scan")
    diary.note(texts(scanned))


async def resources(client: Client, diary: Diary) -> None:
    """Read cards of the catalogue."""
    async for resource in client.iter_resources():
        diary.note(f"{resource.name} at {resource.uri}")
    templates = await client.list_resource_templates()
    diary.note([template.uri_template for template in templates.resource_templates])
    card = await client.read_resource("book://emma")
    for contents in card.contents:
        if isinstance(contents, mcp.TextResourceContents):
            diary.note(contents.text)
    try:
        await client.read_resource("book://none")
    except ProtocolError as error:
        diary.note("missing" if error.code == errors.RESOURCE_NOT_FOUND else f"error {error.code}")


async def prompts(client: Client, diary: Diary) -> None:
    """Get a prompt, and complete its argument."""
    listed = await client.list_prompts()
    for prompt in listed.prompts:
        diary.note(f"{prompt.name}: {[argument.name for argument in prompt.arguments or []]}")
    prompted = await client.get_prompt("review", {"uri": "book://ulysses"})
    for message in prompted.messages:
        if isinstance(message.content, mcp.TextContent):
            diary.note(f"{message.role}: {message.content.text}")
    reference = mcp.PromptReference(name="review")
    argument = mcp.CompleteRequestParamsArgument(name="uri", value="book://e")
    completed = await client.complete(ref=reference, argument=argument)
    diary.note(completed.completion.values)


async def visit(client: Reader) -> list[str]:
    """Visit a library."""
    diary = Diary()
    await client.ping()
    await client.set_level("warning")
    await client.notify_roots_list_changed()
    await tools(client, diary)
    await loans(client, diary)
    await resources(client, diary)
    await prompts(client, diary)
    return diary.lines
