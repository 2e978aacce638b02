"""Typical mistakes of server authors, and the first message that an author sees: at import, in the log or in a result.

`python -m tests.runtime.contract.test_author_mistakes` prints the table.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.app import App
from mcp_bindgen.v2025_11_25 import Client

HEAD = "from mcp_bindgen.app import App, Context\n\napp = App('shop')\n"
MISTAKES: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "hint names a class that is not imported",
        "@app.tool\ndef find(words: str) -> 'list[Book]':\n    '''Find books.'''\n    return []",
        {},
        "shop.py:4: find: the annotations cannot be read: name 'Book' is not defined; "
        "import Book, or define it before the function",
    ),
    (
        "tool without a docstring",
        "@app.tool\ndef find(words: str) -> str:\n    return words",
        {"words": "tea"},
        "shop.py:4: find: no description, by which models choose tools; write a docstring",
    ),
    (
        "result of a coroutine not awaited",
        "async def load() -> str:\n    return ''\n"
        "@app.tool\nasync def find() -> str:\n    '''Find books.'''\n    return load()",
        {},
        "the tool 'find' failed: find returned the coroutine of load(); write return await load(...) (shop.py:6)",
    ),
    (
        "ctx.info(...) in a def tool without await",
        "@app.tool\ndef find(ctx: Context) -> None:\n    '''Find books.'''\n    ctx.info('hello')",
        {},
        "shop.py:4: find: ctx.info is a coroutine function, and nothing awaits it; "
        "write async def find, and await ctx.info(...)",
    ),
    (
        "two tools of one name",
        "@app.tool\ndef find() -> None:\n    '''Find books.'''\n"
        "@app.tool(name='find')\ndef search() -> None:\n    '''Search books.'''",
        {},
        "shop.py:7: the tool 'find' exists already, at shop.py:4; rename one: @app.tool(name=\"...\")",
    ),
    (
        "wrong type returned",
        "@app.tool\ndef find() -> int:\n    '''Count books.'''\n    return 'many'",
        {},
        "the tool 'find' failed: the tool 'find' returned str, expected int; "
        "correct the value or the annotation (shop.py:4)",
    ),
    (
        "tool raises an exception",
        "@app.tool\ndef find(title: str) -> int:\n    '''Return a price.'''\n    return {'Emma': 5}[title]",
        {"title": "Faust"},
        "the tool 'find' failed: KeyError: 'Faust' (shop.py:7); "
        "raise mcp_bindgen.app.ToolError to tell callers a reason",
    ),
    (
        "parameter of a type that JSON cannot express",
        "import socket\n@app.tool\ndef send(line: socket.socket) -> None:\n    '''Send.'''",
        {},
        "shop.py:5: send: JSON cannot express the type of the parameter line: <class 'socket.socket'>; "
        "use a type that JSON can express, such as str, a dataclass or a pydantic model",
    ),
    (
        "*args",
        "@app.tool\ndef add(*titles: str) -> None:\n    '''Add books.'''",
        {},
        "shop.py:4: add: *titles takes any number of arguments; write titles: list[str]",
    ),
    (
        "**kwargs",
        "@app.tool\ndef add(**options: str) -> None:\n    '''Add books.'''",
        {},
        "shop.py:4: add: **options takes arguments of any name; name them, or write options: dict[str, str]",
    ),
    (
        "argument does not fit a model",
        "from pydantic import BaseModel\nclass Book(BaseModel):\n    year: int\n"
        "@app.tool\ndef find(book: Book) -> None:\n    '''Find a book.'''",
        {"book": {"year": "soon"}},
        "Invalid arguments of find: arguments.book.year: wanted integer, got string",
    ),
    (
        "argument does not fit a union",
        "@app.tool\ndef find(key: int | str) -> None:\n    '''Find a book.'''",
        {"key": [1]},
        "Invalid arguments of find: arguments.key: wanted integer or string, got array",
    ),
    (
        "positional-only parameter",
        "@app.tool\ndef find(words: str, /) -> None:\n    '''Find books.'''",
        {},
        "shop.py:4: find: words is positional-only, but clients pass names; remove the / after words",
    ),
    (
        "ctx without annotation",
        "@app.tool\ndef find(words: str, ctx) -> None:\n    '''Find books.'''",
        {},
        "shop.py:4: find: the parameter ctx has no type; write ctx: Context (from mcp_bindgen.app import Context)",
    ),
    (
        "misspelt option of a decorator",
        "@app.tool(descripton='Find books')\ndef find() -> None: ...",
        {},
        "shop.py:4: unknown option 'descripton'; did you mean 'description'?",
    ),
    (
        "misspelt argument of a call",
        "@app.tool\ndef find(words: str, limit: int = 3) -> None:\n    '''Find books.'''",
        {"word": "tea"},
        "Invalid arguments of find: arguments: 'words' is missing; arguments: 'word' is unknown; did you mean 'words'?",
    ),
    (
        "variables of a URI template and parameters differ",
        "@app.resource('book://{title}')\ndef book(name: str) -> str:\n    return name",
        {},
        "shop.py:4: book: the parameter name is not in book://{title}; "
        "write {name} into the URI, or rename the parameter to title",
    ),
    (
        "@app.resource without parentheses",
        "@app.resource\ndef rules() -> str:\n    return 'Bring books back.'",
        {},
        'shop.py:4: @app.resource needs a URI; write @app.resource("app://rules"), '
        "with {x} in the URI for each parameter x",
    ),
    (
        "result that cannot be serialised, no annotation",
        "class Shelf: ...\n@app.tool\ndef find():\n    '''Return a shelf.'''\n    return Shelf()",
        {},
        "shop.py:5: find: no return annotation, from which the schema follows; "
        "write -> str, -> None, or a type that JSON can express, such as a dataclass or a pydantic model",
    ),
    (
        "method passed as a function",
        "class Shelf:\n    @app.tool\n    def find(self) -> None:\n        '''Find books.'''",
        {},
        "shop.py:5: find: this method needs an object, and nothing passes self; "
        "offer the method of an object after the class: app.add_tool(Shelf(...).find)",
    ),
    (
        "lambda as a tool",
        "app.add_tool(lambda words: words)",
        {},
        "shop.py:4: <lambda>: a lambda has no name, types or description; write a function: def name(text: str) -> str",
    ),
    (
        "blocking call in async def",
        "import time\n@app.tool\nasync def find() -> None:\n    '''Find books.'''\n    time.sleep(0)",
        {},
        "shop.py:5: find: time.sleep blocks the event loop in async def; "
        "write def find, which runs in a thread, or await a call that does not block",
    ),
    (
        "Optional parameter without a default",
        "@app.tool\ndef find(words: str | None) -> None:\n    '''Find books.'''",
        {},
        "shop.py:4: find: words may be None, but callers must pass it; "
        "write words: str | None = None to make it optional",
    ),
]
"""Name of the mistake, source of the module after `HEAD`, arguments of a call of `find`, first message."""


class First(logging.Handler):
    """Keeps the messages of the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.messages.append(record.getMessage())


async def first_message(folder: Path, source: str, arguments: dict[str, Any]) -> str:
    """Return the first message about a module, without the names of folders."""
    file = folder / "shop.py"
    file.write_text(HEAD + source + "\n", "utf-8")
    spec = importlib.util.spec_from_file_location("shop", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["shop"] = importlib.util.module_from_spec(spec)
    first = First()
    logging.getLogger("mcp_bindgen").addHandler(first)
    try:
        spec.loader.exec_module(module)
        app: App = module.app
        async with Client.connect(app) as client:
            result = await client.call_tool("find", arguments)
            first.messages.append(str(result.model_dump()["content"][0]["text"] if result.is_error else ""))
    except (ValueError, TypeError) as error:
        first.messages.append(str(error))
    finally:
        logging.getLogger("mcp_bindgen").removeHandler(first)
        del sys.modules["shop"]
    return re.sub(re.escape(f"{folder}{'/'}"), "", first.messages[0])


@pytest.mark.parametrize(
    ("source", "arguments", "message"), [row[1:] for row in MISTAKES], ids=[r[0] for r in MISTAKES]
)
def test_the_first_message_names_place_cause_and_fix(
    source: str, arguments: dict[str, Any], message: str, tmp_path: Path
) -> None:
    assert asyncio.run(first_message(tmp_path, source, arguments)) == message


if __name__ == "__main__":
    for mistake, written, passed, _ in MISTAKES:
        with tempfile.TemporaryDirectory() as name:
            seen = asyncio.run(first_message(Path(name), written, passed))
        print(f"{mistake}\n    {seen}")
