"""Keep notes: a server of annotated functions, over stdio or `--http 127.0.0.1:8000`, in every revision."""

from typing import Literal

from pydantic import BaseModel

from mcp_bindgen.runtime import App, Context, run
from mcp_bindgen.runtime.contract import Completion, ResourceNotFound, ToolError

app = App("notes", version="1.0.0", instructions="Keep short notes.", dynamic=["contents"])
notes: dict[str, "Note"] = {}


class Note(BaseModel):
    """A note."""

    id: str
    text: str
    tags: list[str] = []


@app.tool
async def add(id: str, text: str, tags: list[str] | None = None) -> Note:
    """Write a note, or write it anew."""
    notes[id] = Note(id=id, text=text, tags=tags or [])
    app.updated(f"note://{id}")
    return notes[id]


@app.tool(annotations={"readOnlyHint": True})
async def find(words: str, order: Literal["id", "text"] = "id") -> list[Note]:
    """Find the notes that contain some words."""
    return sorted((note for note in notes.values() if words in note.text), key=lambda note: getattr(note, order))


@app.tool(annotations={"readOnlyHint": True})
async def get(id: str) -> Note:
    """Return a note."""
    if id not in notes:
        raise ToolError(f"there is no note {id!r}")
    return notes[id]


@app.tool
async def delete(id: str, ctx: Context) -> str:
    """Delete a note, if the user agrees."""
    if not await ctx.ask(f"Delete the note {id!r}?", bool):
        return "It is kept."
    await ctx.info(f"deleted {id}")
    return "It is gone." if notes.pop(id, None) else "There was none."


@app.tool
async def count() -> int:
    """Count the notes."""
    return len(notes)


@app.resource("note://{id}", mime_type="text/plain")
async def note(id: str) -> str:
    """Read a note."""
    if id not in notes:
        raise ResourceNotFound
    return notes[id].text


@app.prompt
async def summarize(id: str, style: Literal["short", "long"] = "short") -> str:
    """Ask for a summary of a note."""
    return f"Give a {style} summary of: {notes[id].text}"


@app.completion("note://{id}", "id")
@app.completion("summarize", "id")
async def ids(asked: Completion) -> list[str]:
    return [id for id in notes if id.startswith(asked.value)]


if __name__ == "__main__":
    run(app)
