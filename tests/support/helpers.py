"""Shared by tests: the real command, small schema files, and the draft of a revision that nobody has seen before."""

from __future__ import annotations

import copy
import io
import json
import os
import random
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from mcp_bindgen.cli.app import run
from mcp_bindgen.spec.json import is_array, is_object

ROOT = Path(__file__).parents[2]
UPSTREAM = Path(__file__).parents[3] / "shared" / "upstream"
COMMAND = Path(sys.executable).with_name("mcp-bindgen")

Schema = dict[str, Any]
Done = subprocess.CompletedProcess[str]


PATIENCE = 300.0
"""Seconds that a program may take before it counts as hanging."""


def execute(*command: object, cwd: Path | None = None, stdin: str = "", **variables: str) -> Done:
    """Runs a program to its end, which must come in time; what the caller's shell says about colour does not count."""
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        input=stdin,
        env=plain | variables,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )


def bindgen(*arguments: object, cwd: Path | None = None, **variables: str) -> Done:
    """Runs the installed `mcp-bindgen`."""
    return execute(COMMAND, *arguments, cwd=cwd, **variables)


def inside(*arguments: object) -> Done:
    """Runs `mcp-bindgen` in this process: quicker, and a crash shows where."""
    out, err = io.StringIO(), io.StringIO()
    words = list(map(str, arguments))
    code: object = 0
    with mock.patch.object(sys, "argv", ["mcp-bindgen", *words]), redirect_stdout(out), redirect_stderr(err):
        try:
            run()
        except SystemExit as stop:
            code = stop.code
    assert isinstance(code, int)
    return Done(words, code, out.getvalue(), err.getvalue())


def python(code: str, path: Path, *arguments: object, stdin: str = "") -> str:
    """What a fresh interpreter prints that imports from `path`; it must not fail."""
    done = execute(sys.executable, "-W", "error", "-c", code, *arguments, stdin=stdin, PYTHONPATH=str(path))
    assert done.returncode == 0, done.stderr
    return done.stdout


def snapshot(folder: Path) -> dict[str, bytes]:
    """Relative name -> content of all files below `folder`, except for what Python caches."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def save(path: Path, document: object) -> Path:
    """Writes `document` as JSON."""
    path.write_text(json.dumps(document), "utf-8")
    return path


def shuffled(node: Any, seed: int) -> Any:
    """A copy of a JSON document whose objects have their members in another order."""
    if is_object(node):
        members = [(name, shuffled(child, seed)) for name, child in node.items()]
        random.Random(seed).shuffle(members)
        return dict(members)
    return [shuffled(child, seed) for child in node] if is_array(node) else node


# --- schemas --------------------------------------------------------------------------------------------------


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def union(*names: str) -> Schema:
    return {"anyOf": [ref(name) for name in names]}


def record(required: str = "", /, **properties: Any) -> Schema:
    """An object with members of its own; `required` lists the names of some."""
    return {"type": "object", "properties": properties, "required": required.split()}


def message(method: str, params: Schema | None = None) -> Schema:
    """The definition of a message, with its params if it has any."""
    named = {"method": {"const": method, "type": "string"}}
    return record("method", **named) if params is None else record("method params", **named, params=params)


def small(definitions: Schema | None = None, /, **more: Any) -> Schema:
    """A schema with one request, `books/find`, and whatever else a test is about; `None` removes a definition."""
    basis: Schema = {
        "ClientRequest": union("FindBookRequest"),
        "FindBookRequest": message("books/find", ref("FindBookRequestParams")),
        "FindBookRequestParams": record("title", title={"type": "string"}),
        "FindBookResult": record("pages", pages={"type": "integer"}),
    }
    whole = {**basis, **(definitions or {}), **more}
    return {"$defs": {name: schema for name, schema in whole.items() if schema is not None}}


_TEXT = {"type": "string"}

_DRAFT: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {
        "ClientRequest": union("BorrowBookRequest", "CountBooksRequest", "EchoRequest"),
        "ClientNotification": union("ReaderLeftNotification"),
        "ServerRequest": union("EchoRequest", "AskReaderRequest"),
        "ServerNotification": union("ShelfMovedNotification"),
        # messages
        "BorrowBookRequest": message("books/borrow", ref("BorrowBookRequestParams")),
        "BorrowBookRequestParams": record(
            "title",
            **{
                "$schema": _TEXT,
                "_meta": {"type": "object"},
                "class": _TEXT,
                "io.vendor/someKey": {"type": "integer", "minimum": 1},
                "list": {"type": "array", "items": _TEXT},
                "title": {"type": "string", "description": "What stands on the cover."},
            },
        ),
        "BorrowBookResult": record("loan", loan=ref("Loan")),
        "CountBooksRequest": message("books/count"),
        "CountBooksResult": record("count", count={"type": "integer"}),
        "EchoRequest": message("echo", record("text", text=_TEXT)),
        "EchoResult": record("text", text=_TEXT),
        "AskReaderRequest": message("reader/ask", record("question", question=_TEXT)),
        "AskReaderResult": record(answer={"anyOf": [_TEXT, {"type": "number"}, {"type": "boolean"}]}),
        "ReaderLeftNotification": message("notifications/reader/left"),
        "ShelfMovedNotification": message("notifications/shelf/moved", record("shelf", shelf=ref("Shelf"))),
        "ServerCapabilities": record(books=record()),
        # everything else
        "Loan": record("returned", due={"type": ["string", "null"]}, returned={"type": ["string", "null"]}),
        "Item": {**union("Book", "Film"), "description": "What a shelf holds."},
        "Book": record("form pages", form={"const": "book", "type": "string"}, pages={"type": "integer"}),
        "Film": record("form", form={"const": "film", "type": "string"}, minutes={"type": "number"}),
        "Shelf": record(
            "items",
            items={"type": "array", "items": ref("Item")},
            shelves={"type": "array", "items": ref("Shelf")},
            size=record(width={"type": "number"}),
        ),
        "Sealed": {**record("code", code=_TEXT), "additionalProperties": False},
        "Prices": {**record(currency=_TEXT), "additionalProperties": {"type": "number"}},
        "Anything": {},
    },
}


def draft() -> Schema:
    """A whole protocol with nothing of MCP in it but the conventions."""
    return copy.deepcopy(_DRAFT)
