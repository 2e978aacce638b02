"""Check a schema as published: known keywords only, each with a value of the kind that JSON Schema wants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from . import kinds
from . import pointer as json_pointer
from .errors import BadInput
from .json import is_array, is_object, listed
from .keywords import KNOWN, NESTING, PROSE, STRUCTURE, Schema, children

DEEPEST = 100
"""How many levels of JSON a schema may have, and how many definitions may stand for each other in a row: those of MCP
have a dozen and three, and the passes recurse."""

_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})

_KINDS = {
    "$ref": kinds.TEXT,
    "type": kinds.TYPES,
    "enum": kinds.FILLED,
    "format": kinds.TEXT,
    "properties": kinds.OBJECT,
    "required": kinds.TEXTS,
    "additionalProperties": kinds.SCHEMA,
    "items": kinds.SCHEMA,
    "anyOf": kinds.FILLED,
    "oneOf": kinds.FILLED,
    "allOf": kinds.FILLED,
    "minimum": kinds.NUMBER,
    "maximum": kinds.NUMBER,
    "exclusiveMinimum": kinds.NUMBER,
    "exclusiveMaximum": kinds.NUMBER,
    "multipleOf": kinds.STEP,
    "minLength": kinds.COUNT,
    "maxLength": kinds.COUNT,
    "pattern": kinds.TEXT,
    "minItems": kinds.COUNT,
    "maxItems": kinds.COUNT,
    "description": kinds.TEXT,
}
"""Keyword -> what its value must be, for the keywords whose values are read."""


def check_depth(document: Any) -> None:
    """Refuse a document that is nested so deeply that walking it could exhaust the stack."""
    level = [document]
    for _ in range(DEEPEST):
        level = [child for node in level for child in _inside(node)]
        if not level:
            return
    raise BadInput("is nested too deeply to be a schema", fix="give a JSON Schema file")


def _inside(node: Any) -> Iterator[Any]:
    if is_object(node):
        yield from node.values()
    elif is_array(node):
        yield from node


def check_definition(definition: Any, top: str, *, legacy: bool) -> None:
    """Check every schema of a definition.

    Args:
        definition: What stands at `top`.
        top: The definition's pointer.
        legacy: Whether it is draft-07, in which a reference hides what stands beside it.

    Raises:
        BadInput: A keyword is unknown, has a value of the wrong kind, or is not supported beside another.
    """
    if not is_object(definition):
        raise BadInput("a definition must be an object", pointer=top, fix="write it as a schema")
    _check_characters(top, top)
    pending = [(top, definition)]
    while pending:
        here, node = pending.pop()
        for keyword, value in node.items():
            _check_keyword(keyword, value, json_pointer.join(here, keyword))
        for name in listed(node.get("type", [])):
            if name not in _TYPES:
                raise BadInput(
                    f"{name!r} is not a JSON type",
                    pointer=json_pointer.join(here, "type"),
                    fix=f"use one of {', '.join(sorted(_TYPES))}",
                )
        if "$ref" in node and not legacy:
            _check_reference_stands_alone(node, here)
        pending.extend(children(node, here))


def _check_keyword(keyword: str, value: Any, at: str) -> None:
    if keyword not in KNOWN and not keyword.startswith("x-"):
        raise BadInput(
            f"the keyword {keyword!r} would change the meaning and is not supported",
            pointer=at,
            fix="express it with the keywords that MCP schemas use, or drop it with a patch",
        )
    if keyword in _KINDS:
        _KINDS[keyword].check(value, keyword, at)
    for token, member in _members(keyword, value):
        inner = json_pointer.join(at, token)
        _check_characters(token, inner)
        kinds.SCHEMA.check(member, str(token), inner)
    if keyword not in NESTING | PROSE:
        _check_characters([keyword, value], at)


def _members(keyword: str, value: Any) -> Iterator[tuple[str | int, Any]]:
    """Return the schemas in the value of a keyword that has several."""
    if keyword == "properties":
        yield from value.items()
    elif keyword in ("anyOf", "oneOf", "allOf"):
        yield from enumerate(value)


def _check_characters(value: Any, at: str) -> None:
    """Refuse halves of surrogate pairs: they have no UTF-8, so nothing with them can be written or hashed."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadInput("has half of a character", pointer=at, fix="write the whole surrogate pair") from None


def _check_reference_stands_alone(node: Schema, here: str) -> None:
    beside = [keyword for keyword in STRUCTURE if keyword in node and keyword != "$ref"]
    if beside:
        raise BadInput(
            f"{beside[0]!r} beside '$ref' is not supported", pointer=here, fix="combine the two with 'allOf'"
        )
