"""JSON Schema keywords, and walks through schemas.

Keywords outside of `STRUCTURE` and `ANNOTATIONS` restrict values in ways that types do not express, so they are errors
(JSON Schema 2020-12, core and validation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

from mcp_bindgen.json_schema.keywords import HINTS, NESTING, PROSE, children

from . import kinds
from .json import is_object, join
from .toml import read_toml

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""Dialect of all effective schemas."""

PREFIX = "#/$defs/"
"""Prefix of references to definitions."""

ANNOTATIONS = HINTS - {"format", "contentSchema"}
"""Keywords that restrict no values, kept because `diff` reports them."""

_TABLES = read_toml(Path(__file__).with_suffix(".toml"))

CONSTRAINTS = {keyword: kinds.named(name) for keyword, name in _TABLES["constraints"].items()}
"""Keyword that limits values of a type -> kind of its value."""

STRUCTURE = {keyword: kinds.named(name) for keyword, name in _TABLES["structure"].items()} | CONSTRAINTS
"""Keyword of structure -> kind of its value, in the order of the canonical form."""

KNOWN = frozenset(STRUCTURE) | PROSE | ANNOTATIONS


def walk(schema: Schema) -> Iterator[Schema]:
    """Yield `schema` and all its subschemas, parents first, without boolean schemas."""
    pending = [schema]
    while pending:
        yield (node := pending.pop())
        pending.extend(reversed([part for _, _, part in children(node) if is_object(part)]))


def rebuild(schema: Schema, change: Callable[[Schema, str], Schema], pointer: str = "") -> Schema:
    """Return a copy of `schema` with changed direct subschemas.

    Args:
        schema: The schema.
        change: Returns the replacement for a subschema and its pointer.
        pointer: Pointer to `schema`.
    """
    result = {keyword: copy(value) if keyword in NESTING else value for keyword, value in schema.items()}
    for keyword, step, part in children(schema):
        if is_object(part):
            place = (keyword,) if step is None else (keyword, step)
            owner: Any = result if step is None else result[keyword]
            owner[place[-1]] = change(part, join(pointer, *place))
    return result


def has_members(schema: Schema) -> bool:
    """Return whether a schema has members of its own; otherwise it is a plain dictionary and needs no class."""
    return bool(schema.get("properties") or schema.get("required")) or schema.get("additionalProperties") is False


def method_of(schema: Schema) -> str | None:
    """Return the method that the schema of a message names in a constant; None for other schemas."""
    method = schema.get("properties", {}).get("method")
    name = method.get("const") if is_object(method) else None
    return name if isinstance(name, str) else None


def without_prose(schema: Schema) -> Schema:
    """Return a schema without prose."""
    kept = {keyword: value for keyword, value in schema.items() if keyword not in PROSE}
    return rebuild(kept, lambda child, _: without_prose(child))
