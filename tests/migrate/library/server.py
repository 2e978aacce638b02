"""Server of a small library, written for MCP 2025-11-25: loans, a catalogue and reading advice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.v2025_11_25 import Context, Server, errors
from mcp_bindgen.v2025_11_25 import types as mcp


@dataclass
class Book:
    """A book of the library."""

    title: str
    author: str
    year: int
    copies: int = 1
    readers: list[str] = field(default_factory=list[str])

    @property
    def free(self) -> int:
        return self.copies - len(self.readers)

    @property
    def uri(self) -> str:
        return f"book://{self.title.lower().replace(' ', '-')}"


class Catalogue:
    """The books, by their URIs."""

    def __init__(self, books: list[Book]) -> None:
        self.books = {book.uri: book for book in books}

    def find(self, words: str) -> Iterator[Book]:
        for book in self.books.values():
            if words.lower() in f"{book.title} {book.author}".lower():
                yield book

    def get(self, uri: str) -> Book:
        if uri not in self.books:
            raise ProtocolError(errors.RESOURCE_NOT_FOUND, f"there is no book {uri}")
        return self.books[uri]


BOOKS = [
    Book("Emma", "Jane Austen", 1815, copies=2),
    Book("Persuasion", "Jane Austen", 1817),
    Book("Ulysses", "James Joyce", 1922),
    Book("To the Lighthouse", "Virginia Woolf", 1927, copies=3),
]


def text(words: str, *, failed: bool = False) -> mcp.CallToolResult:
    """Return a result of one text."""
    return mcp.CallToolResult(content=[mcp.TextContent(text=words)], is_error=failed or None)


def schema(**properties: str) -> mcp.ToolInputSchema:
    """Return the schema of arguments that are all required."""
    return mcp.ToolInputSchema(
        properties={name: {"type": kind} for name, kind in properties.items()}, required=list(properties)
    )


TOOLS = [
    mcp.Tool(
        name="search",
        title="Search",
        description="Find books by words of title and author.",
        input_schema=schema(words="string"),
        output_schema=mcp.ToolOutputSchema(
            properties={"titles": {"type": "array", "items": {"type": "string"}}}, required=["titles"]
        ),
        annotations=mcp.ToolAnnotations(read_only_hint=True),
        execution=mcp.ToolExecution(task_support="forbidden"),
    ),
    mcp.Tool(
        name="borrow",
        description="Borrow a book for a reader, after a question.",
        input_schema=schema(uri="string", reader="string"),
        annotations=mcp.ToolAnnotations(destructive_hint=True, title="Borrow"),
        execution=mcp.ToolExecution(task_support="forbidden"),
    ),
    mcp.Tool(name="bring_back", description="Return a book.", input_schema=schema(uri="string", reader="string")),
    mcp.Tool(name="advise", description="Ask a model for advice.", input_schema=schema(taste="string")),
    mcp.Tool(
        name="scan",
        input_schema=mcp.ToolInputSchema(),
        execution=mcp.ToolExecution(task_support="forbidden"),
        description="Scan the shelves; this takes a while.",
    ),
]


class Library(Server):
    """Server that lends books."""

    info = mcp.Implementation(name="library", version="2.1.0")
    instructions = "Search before you borrow."

    def __init__(self) -> None:
        super().__init__()
        self.catalogue = Catalogue([Book(one.title, one.author, one.year, one.copies) for one in BOOKS])
        self.log: list[str] = []

    # --- tools ------------------------------------------------------------------------------------------------

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        start = int(params.cursor or 0)
        following = start + 3
        return mcp.ListToolsResult(
            tools=TOOLS[start:following], next_cursor=str(following) if following < len(TOOLS) else None
        )

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        arguments = params.arguments or {}
        match params.name:
            case "search":
                return self.search(str(arguments["words"]))
            case "borrow":
                return await self.borrow(str(arguments["uri"]), str(arguments["reader"]), ctx)
            case "bring_back":
                return self.bring_back(str(arguments["uri"]), str(arguments["reader"]))
            case "advise":
                return await self.advise(str(arguments["taste"]), ctx)
            case "scan":
                return await self.scan(ctx)
            case other:
                raise ProtocolError(errors.INVALID_PARAMS, f"there is no tool {other}")

    def search(self, words: str) -> mcp.CallToolResult:
        titles = [book.title for book in self.catalogue.find(words)]
        return mcp.CallToolResult(
            content=[mcp.TextContent(text=", ".join(titles) or "nothing")], structured_content={"titles": [*titles]}
        )

    async def borrow(self, uri: str, reader: str, ctx: Context) -> mcp.CallToolResult:
        book = self.catalogue.get(uri)
        if not book.free:
            return text(f"all copies of {book.title} are out", failed=True)
        properties: dict[str, mcp.PrimitiveSchemaDefinition] = {"sure": mcp.BooleanSchema(title="Sure?")}
        form = mcp.ElicitRequestFormParams(
            message=f"Borrow {book.title} for {reader}?",
            requested_schema=mcp.ElicitRequestFormParamsRequestedSchema(properties=properties, required=["sure"]),
        )
        answer = await ctx.elicit(form)
        if answer.action != "accept" or not (answer.content or {}).get("sure"):
            return text("not borrowed")
        book.readers.append(reader)
        self.log.append(f"{reader} borrows {book.title}")
        return text(f"borrowed {book.title}")

    def bring_back(self, uri: str, reader: str) -> mcp.CallToolResult:
        book = self.catalogue.get(uri)
        if reader not in book.readers:
            return text(f"{reader} does not have {book.title}", failed=True)
        book.readers.remove(reader)
        self.log.append(f"{reader} returns {book.title}")
        return text(f"returned {book.title}")

    async def advise(self, taste: str, ctx: Context) -> mcp.CallToolResult:
        titles = ", ".join(book.title for book in self.catalogue.books.values())
        question = f"A reader likes {taste}. Which of these fits: {titles}?"
        message = mcp.SamplingMessage(role="user", content=mcp.TextContent(text=question))
        answer = await ctx.create_message([message], 50, temperature=0.2)
        content = answer.content
        return text(content.text if isinstance(content, mcp.TextContent) else "no advice")

    async def scan(self, ctx: Context) -> mcp.CallToolResult:
        found = 0
        for number, book in enumerate(self.catalogue.books.values(), 1):
            await ctx.progress(number, total=len(self.catalogue.books), message=book.title)
            await asyncio.sleep(0)
            found += book.free
        return text(f"{found} books on the shelves")

    # --- resources --------------------------------------------------------------------------------------------

    async def list_resources(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult(
            resources=[
                mcp.Resource(uri=uri, name=book.title, description=book.author, mime_type="text/plain")
                for uri, book in self.catalogue.books.items()
            ]
        )

    async def list_resource_templates(
        self, params: mcp.PaginatedRequestParams, ctx: Context
    ) -> mcp.ListResourceTemplatesResult:
        template = mcp.ResourceTemplate(name="book", uri_template="book://{title}", mime_type="text/plain")
        return mcp.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: Context) -> mcp.ReadResourceResult:
        book = self.catalogue.get(params.uri)
        card = f"{book.title} by {book.author}, {book.year}: {book.free} of {book.copies} free"
        return mcp.ReadResourceResult(contents=[mcp.TextResourceContents(uri=params.uri, text=card)])

    # --- prompts ----------------------------------------------------------------------------------------------

    async def list_prompts(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListPromptsResult:
        argument = mcp.PromptArgument(name="uri", description="The book.", required=True)
        return mcp.ListPromptsResult(prompts=[mcp.Prompt(name="review", title="Review", arguments=[argument])])

    async def get_prompt(self, params: mcp.GetPromptRequestParams, ctx: Context) -> mcp.GetPromptResult:
        book = self.catalogue.get((params.arguments or {}).get("uri", ""))
        words = mcp.TextContent(text=f"Review {book.title} by {book.author}.")
        return mcp.GetPromptResult(messages=[mcp.PromptMessage(role="user", content=words)])

    async def complete(self, params: mcp.CompleteRequestParams, ctx: Context) -> mcp.CompleteResult:
        values = [uri for uri in self.catalogue.books if uri.startswith(params.argument.value)]
        return mcp.CompleteResult(completion=mcp.CompleteResultCompletion(values=values, total=len(values)))

    # --- notifications ----------------------------------------------------------------------------------------

    async def on_cancelled(self, params: mcp.CancelledNotificationParams, ctx: Context) -> None:
        self.log.append(f"cancelled {params.request_id}")

    async def set_level(self, params: mcp.SetLevelRequestParams, ctx: Context) -> mcp.EmptyResult:
        self.log.append(f"logs from {params.level} on")
        return mcp.EmptyResult()

    async def on_roots_list_changed(self, params: mcp.NotificationParams, ctx: Context) -> None:
        self.log.append("the folders of the client have changed")
