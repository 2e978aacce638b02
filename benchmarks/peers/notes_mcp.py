# mypy: ignore-errors
# pyright: basic
"""Keep notes, as examples/notes.py does, with the official SDK."""

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
    ToolAnnotations,
)
from pydantic import BaseModel

app = MCPServer("notes", version="1.0.0", instructions="Keep short notes.")
notes: dict[str, "Note"] = {}


class Note(BaseModel):
    id: str
    text: str
    tags: list[str] = []


class Answer(BaseModel):
    answer: bool


@app.tool()
async def add(note: Note) -> str:
    """Write a note, or write it anew."""
    notes[note.id] = note
    return f"There are {len(notes)} notes."


@app.tool(annotations=ToolAnnotations(read_only_hint=True))
@app.resource("note://{id}")
async def read(id: str) -> Note:
    """Read a note."""
    if id not in notes:
        raise ResourceNotFoundError(f"there is no note {id!r}")
    return notes[id]


@app.tool()
async def find(words: str) -> list[Note]:
    """Find the notes that contain some words."""
    return [note for note in notes.values() if words in note.text]


@app.tool()
async def delete(id: str, ctx: Context) -> bool:
    """Delete a note, if the user agrees."""
    result = await ctx.elicit(f"Delete {id}?", Answer)
    return result.action == "accept" and result.data.answer and notes.pop(id, None) is not None


@app.tool()
async def tags() -> list[str]:
    """List all tags."""
    return sorted({tag for note in notes.values() for tag in note.tags})


@app.prompt()
async def summarize(id: str) -> str:
    """Ask for a summary of a note."""
    return f"Summarize this note: {notes[id].text}"


@app.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    return Completion(values=[id for id in notes if id.startswith(argument.value)])


if __name__ == "__main__":
    app.run()
