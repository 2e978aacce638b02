"""Know the JSON Schema keywords that we read and those that we may drop, and walk schemas by them.

Anything outside of `STRUCTURE` and `ANNOTATIONS` changes what a schema accepts in a way that the generator
does not carry into types, so it is refused instead of ignored (JSON Schema 2020-12, core and validation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import pointer as json_pointer
from .json import is_object

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""What every schema is read as."""

PREFIX = "#/$defs/"
"""What references to definitions begin with."""

PROSE = frozenset({"description", "title", "examples", "example", "$comment", "markdownDescription"})
"""Keywords for readers only; `schema import` drops them."""

ANNOTATIONS = frozenset({"default", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"})
"""Keywords that say something but accept and reject nothing; kept, because a diff reports them."""

CONSTRAINTS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
)

STRUCTURE = (
    "$ref",
    "type",
    "const",
    "enum",
    "format",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    "allOf",
    *CONSTRAINTS,
)
"""Keywords with meaning, in the order in which the canonical form writes them."""

KNOWN = frozenset(STRUCTURE) | PROSE | ANNOTATIONS

_SCHEMA_MAPS = ("properties",)
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf")
_SCHEMAS = ("items", "additionalProperties")

NESTING = frozenset((*_SCHEMA_MAPS, *_SCHEMA_LISTS, *_SCHEMAS))
"""Keywords whose values hold schemas."""


def children(schema: Schema, pointer: str) -> Iterator[tuple[str, Schema]]:
    """Return the schemas directly below `schema`, each with its pointer; boolean schemas are left out."""
    for keyword in _SCHEMAS:
        if is_object(schema.get(keyword)):
            yield json_pointer.join(pointer, keyword), schema[keyword]
    for keyword in _SCHEMA_LISTS:
        for index, member in enumerate(schema.get(keyword, ())):
            if is_object(member):
                yield json_pointer.join(pointer, keyword, index), member
    for keyword in _SCHEMA_MAPS:
        for name, member in schema.get(keyword, {}).items():
            if is_object(member):
                yield json_pointer.join(pointer, keyword, name), member


def walk(schema: Schema, pointer: str = "") -> Iterator[tuple[str, Schema]]:
    """Return `schema` and every schema below it, parents first, each with its pointer."""
    pending = [(pointer, schema)]
    while pending:
        here, node = pending.pop()
        yield here, node
        pending.extend(reversed(list(children(node, here))))


def rebuild(schema: Schema, change: Callable[[Schema, str], Schema], pointer: str = "") -> Schema:
    """Return a copy of `schema`, which stands at `pointer`, with each schema directly below it changed.

    Args:
        schema: The schema.
        change: Takes a schema and its pointer, and returns what takes its place.
        pointer: The pointer to `schema`.
    """
    result = dict(schema)
    for keyword in _SCHEMAS:
        if is_object(schema.get(keyword)):
            result[keyword] = change(schema[keyword], json_pointer.join(pointer, keyword))
    for keyword in _SCHEMA_LISTS:
        if keyword in schema:
            result[keyword] = [
                change(member, json_pointer.join(pointer, keyword, index)) if is_object(member) else member
                for index, member in enumerate(schema[keyword])
            ]
    for keyword in _SCHEMA_MAPS:
        if keyword in schema:
            result[keyword] = {
                name: change(member, json_pointer.join(pointer, keyword, name)) if is_object(member) else member
                for name, member in schema[keyword].items()
            }
    return result


def without_prose(schema: Schema) -> Schema:
    """Return what a schema says to programs: itself, without the words in it."""
    kept = {keyword: value for keyword, value in schema.items() if keyword not in PROSE}
    return rebuild(kept, lambda child, _: without_prose(child))
