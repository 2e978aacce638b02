"""Refuse what a schema says and a type cannot carry, because it would be lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from mcp_bindgen.spec import BadInput, Schema
from mcp_bindgen.spec.keywords import STRUCTURE

_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")

APPLIES: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": _NUMERIC,
    "number": _NUMERIC,
    "boolean": (),
    "null": (),
    "array": ("items", "minItems", "maxItems"),
    "object": ("additionalProperties",),
}
"""JSON type -> the keywords that narrow it."""

_ALWAYS = frozenset({"type", "format"})
"""Read with everything; `format` is an annotation (JSON Schema 2020-12, validation, 7.2.1)."""


def refuse_lost(schema: Schema, read: Iterable[str], pointer: str) -> None:
    """Refuse keywords that are not `read`; those that narrow nothing may stand anywhere."""
    known = {*_ALWAYS, *read}
    for keyword in STRUCTURE:
        if keyword in schema and keyword not in known and not _is_idle(keyword, schema[keyword]):
            raise BadInput(f"{keyword!r} does not fit the type", pointer=pointer, fix="name the type that it narrows")


def _is_idle(keyword: str, value: Any) -> bool:
    return keyword in ("properties", "required", "additionalProperties", "items") and value in (True, {}, [])


def refuse_beside_union(schema: Schema, pointer: str) -> None:
    """Refuse a union beside which something else narrows the value; only `"type": "object"` may stand there."""
    for union in ("anyOf", "oneOf"):
        beside = [keyword for keyword in STRUCTURE if keyword in schema and keyword not in (union, "format")]
        beside = [keyword for keyword in beside if (keyword, schema[keyword]) != ("type", "object")]
        if union in schema and beside:
            raise BadInput(
                f"{union!r} beside other keywords is not supported: {', '.join(beside)}",
                pointer=pointer,
                fix="move them into its members",
            )


def refuse_empty(choices: Sequence[object], pointer: str) -> None:
    """Refuse a choice between nothing."""
    if not choices:
        raise BadInput("a choice between nothing accepts nothing", pointer=pointer, fix="name what is accepted")


def refuse_pattern(pattern: str, pointer: str) -> None:
    """Refuse a pattern that pydantic's engine cannot compile: it has no look-around and no back-references."""
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        raise BadInput(
            f"the pattern {pattern!r} cannot be compiled", pointer=pointer, fix="write it without look-around"
        ) from None
