"""Keep notes: annotated functions are a server of every revision."""

from pydantic import BaseModel

from mcp_bindgen.app import App, Completion, Context, ResourceNotFound, run

app = App("notes", version="1.0.0", instructions="Keep short notes.")
notes: dict[str, "Note"] = {}


class Note(BaseModel):
    id: str
    text: str
    tags: list[str] = []


@app.tool
async def add(note: Note) -> str:
    """Write a note, or write it anew."""
    notes[note.id] = note
    return f"There are {len(notes)} notes."


@app.tool(annotations={"readOnlyHint": True})
@app.resource("note://{id}")
async def read(id: str) -> Note:
    """Read a note."""
    if id not in notes:
        raise ResourceNotFound(f"there is no note {id!r}")
    return notes[id]


@app.tool
async def find(words: str) -> list[Note]:
    """Find the notes that contain some words."""
    return [note for note in notes.values() if words in note.text]


@app.tool
async def delete(id: str, ctx: Context) -> bool:
    """Delete a note, if the user agrees."""
    return await ctx.ask(f"Delete {id}?", bool) and notes.pop(id, None) is not None


@app.tool
async def tags() -> list[str]:
    """List all tags."""
    return sorted({tag for note in notes.values() for tag in note.tags})


@app.prompt
async def summarize(id: str) -> str:
    """Ask for a summary of a note."""
    return f"Summarize this note: {(await read(id)).text}"


@app.completion("summarize", "id")
@app.completion("note://{id}", "id")
def ids(asked: Completion) -> list[str]:
    return [id for id in notes if id.startswith(asked.value)]


if __name__ == "__main__":
    run(app)
