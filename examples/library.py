"""A library with SQLite, carts of users, an audit, a task and a mounted part: `uvicorn library:web` in `examples/`."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing
from typing import Annotated

from fastapi import FastAPI
from pydantic import BaseModel

from mcp_bindgen.app import App, Call, Completion, Context, Depends, Next, ResourceNotFound, Result, Stored, ToolError
from mcp_bindgen.auth import ResourceServer, StaticTokens
from mcp_bindgen.http import HttpApp

BOOKS = [("Emma", "Austen"), ("Persuasion", "Austen"), ("Faust", "Goethe")]
log = logging.getLogger("library")
carts = Stored(list[str], list)


class Book(BaseModel):
    title: str
    author: str


@asynccontextmanager
async def lifespan() -> AsyncGenerator[sqlite3.Connection]:
    with closing(sqlite3.connect(os.environ.get("LIBRARY", ":memory:"), check_same_thread=False)) as db, db:
        db.execute("create table if not exists books (title primary key, author)")
        db.executemany("insert or ignore into books values (?, ?)", BOOKS)
        yield db


def cursor(ctx: Context[sqlite3.Connection]) -> Generator[sqlite3.Cursor]:
    """Yield a cursor; commit after the call."""
    with ctx.state:
        yield ctx.state.cursor()


Cursor = Annotated[sqlite3.Cursor, Depends(cursor)]
app = App("library", version="1.0.0", instructions="Find and borrow books.", lifespan=lifespan)
shop = App("shop")
app.mount(shop, "shop")


@app.middleware
async def audit(call: Call, next: Next) -> Result:
    who = call.ctx.identity and call.ctx.identity.subject
    try:
        result = await next(call)
    except Exception:  # InputRequired is none: a call that asks the user is one line, with its last round
        log.info("%s %s by %s failed", call.kind, call.name, who)
        raise
    log.info("%s %s by %s", call.kind, call.name, who)
    return result


@app.tool
def find(words: str, db: Cursor) -> list[Book]:
    """Find books by words of title or author."""
    rows = db.execute("select * from books where title || ' ' || author like ?", [f"%{words}%"])
    return [Book(title=title, author=author) for title, author in rows]


@app.tool
def add(book: Book, db: Cursor) -> str:
    """Add a book."""
    db.execute("insert into books values (?, ?)", [book.title, book.author])
    return f"added {book.title}"


@app.tool(annotations={"destructiveHint": True})
async def remove(title: str, ctx: Context, db: Cursor) -> bool:
    """Remove a book, if the user agrees."""
    return (
        await ctx.ask(f"Remove {title}?", bool)
        and db.execute("delete from books where title = ?", [title]).rowcount > 0
    )


@app.tool
async def borrow(title: str, ctx: Context, db: Cursor) -> list[str]:
    """Put a book into the cart of the user."""
    if not db.execute("select 1 from books where title = ?", [title]).fetchone():
        raise ToolError(f"there is no book {title!r}")
    async with carts.edit(ctx) as cart:
        cart.append(title)
        return cart


@app.tool
async def cart(ctx: Context) -> list[str]:
    """List the cart of the user."""
    return await carts.get(ctx)


@app.tool(task="optional")
async def stocktake(ctx: Context, db: Cursor) -> int:
    """Count all books, slowly."""
    titles = db.execute("select title from books").fetchall()
    for number, (title,) in enumerate(titles, 1):
        await ctx.progress(number, len(titles), title)
        await asyncio.sleep(0.01)
    return len(titles)


@shop.tool
def price(title: str) -> int:
    """Return the price of a book in cents."""
    return 100 * len(title)


@shop.tool(timeout=5)
async def order(title: str, ctx: Context) -> str:
    """Order a book."""
    await ctx.info(f"ordering {title}")
    return f"ordered {title} for {price(title)} cents"


@app.resource("library://authors")
def authors(db: Cursor) -> list[str]:
    return [author for (author,) in db.execute("select distinct author from books order by author")]


@app.resource("library://count")
def count(db: Cursor) -> str:
    return str(db.execute("select count(*) from books").fetchone()[0])


@app.resource("library://rules", mime_type="text/markdown")
def rules() -> str:
    return "# Rules\n\nBring books back."


@app.resource("book://{title}")
def book(title: str, db: Cursor) -> Book:
    for row in db.execute("select * from books where title = ?", [title]):
        return Book(title=row[0], author=row[1])
    raise ResourceNotFound(f"there is no book {title!r}")


@app.resource("author://{name}/books")
def by_author(name: str, db: Cursor) -> list[str]:
    return [title for (title,) in db.execute("select title from books where author = ?", [name])]


@app.prompt
def summarize(title: str) -> str:
    """Ask for a summary of a book."""
    return f"Summarize the book {title}."


@app.prompt
def compare(first: str, second: str) -> str:
    """Ask for a comparison of two books."""
    return f"Compare {first} and {second}."


@app.completion("summarize", "title")
def titles(asked: Completion) -> list[str]:
    return [title for title, _ in BOOKS if title.startswith(asked.value)]


keys = StaticTokens({os.environ.get("LIBRARY_KEY", "a-key-of-the-example"): "ada"})
mcp = HttpApp(app, auth=ResourceServer("http://127.0.0.1:8000/mcp", keys))
web = FastAPI(lifespan=mcp.lifespan)


@web.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


web.mount("/", mcp)
