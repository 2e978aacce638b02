"""Small schemas, and the draft of an unknown revision."""

from __future__ import annotations

import copy
from typing import Any

Schema = dict[str, Any]

INCOMPLETE = (
    "draft: types and stubs only, nothing can connect: "
    "there is no DiscoverRequest, ClientCapabilities, Implementation, ServerCapabilities\n"
)
"""Output of `generate` and `schema import` for a schema named `draft` without a lifecycle."""


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def union(*names: str) -> Schema:
    return {"anyOf": [ref(name) for name in names]}


def record(required: str = "", /, **properties: Any) -> Schema:
    """Return an object schema; `required` lists its required members."""
    return {"type": "object", "properties": properties, "required": required.split()}


def message(method: str, params: Schema | None = None) -> Schema:
    """Return the definition of a message, with optional params."""
    named = {"method": {"const": method, "type": "string"}}
    return record("method", **named) if params is None else record("method params", **named, params=params)


def small(definitions: Schema | None = None, /, **more: Any) -> Schema:
    """Return a schema with the request `books/find` and further definitions; None removes a definition."""
    basis: Schema = {
        "ClientRequest": union("FindBookRequest"),
        "FindBookRequest": message("books/find", ref("FindBookRequestParams")),
        "FindBookRequestParams": record("title", title={"type": "string"}),
        "FindBookResult": record("pages", pages={"type": "integer"}),
    }
    whole = {**basis, **(definitions or {}), **more}
    return {"$defs": {name: schema for name, schema in whole.items() if schema is not None}}


def tangled(levels: int, leaf: Schema, keyword: str = "anyOf", *, below: str = "") -> Schema:
    """Return a schema that applies `leaf` 2**levels times to the argument `x`, below `items` or `not` if given."""
    definitions: Schema = {f"Level{levels}": leaf}
    for level in range(levels):
        inside = ref(f"Level{level + 1}")
        part = {"": inside, "items": {"type": "array", "items": inside}, "not": {"not": inside}}[below]
        definitions[f"Level{level}"] = {keyword: [part, part]}
    return {"type": "object", "properties": {"x": ref("Level0")}, "$defs": definitions}


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
    """Return a complete protocol that shares only the conventions with MCP."""
    return copy.deepcopy(_DRAFT)
