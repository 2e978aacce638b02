"""Find keywords of a schema that a type cannot express, so that they would be lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from mcp_bindgen.spec import Schema
from mcp_bindgen.spec.keywords import STRUCTURE

from .constants import are_of

_LENGTHS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_LONGEST = 2**63 - 1
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


def lost(schema: Schema, read: Iterable[str]) -> Iterator[str]:
    """Yield the keywords that are not `read`; keywords without an effect are ignored."""
    known = {*_ALWAYS, *read}
    for keyword in STRUCTURE:
        if keyword in schema and keyword not in known and not _is_idle(keyword, schema[keyword]):
            yield keyword


def _is_idle(keyword: str, value: Any) -> bool:
    return keyword in ("properties", "required", "additionalProperties", "items") and value in (True, {}, [])


def beside_union(schema: Schema) -> dict[str, str] | None:
    """Return `keyword` of a union `beside` which something narrows, other than the type of its members."""
    for union in (keyword for keyword in ("anyOf", "oneOf") if keyword in schema):
        beside = [keyword for keyword in STRUCTURE if keyword in schema and keyword not in (union, "format")]
        beside = [keyword for keyword in beside if keyword != "type" or not _is_redundant(schema)]
        if beside:
            return {"keyword": union, "beside": ", ".join(beside)}
    return None


def _is_redundant(schema: Schema) -> bool:
    constants = {keyword: value for keyword, value in schema.items() if keyword in ("anyOf", "oneOf")}
    return schema["type"] == "object" or are_of(constants, schema["type"])


def unfit(constraints: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Return the constraints that pydantic's engine cannot hold, each with `reason` and `fix`.

    Its patterns have no look-around and no back-references, its lengths fit into 63 bits, and it rounds when it divides
    by a fraction: 0.3 would be no multiple of 0.1.
    """
    for keyword, value in constraints.items():
        if keyword == "pattern" and not _compiles(value):
            problem, fix = f"the pattern {value!r} cannot be compiled", "write it without look-around"
        elif keyword in _LENGTHS and value > _LONGEST:
            problem, fix = f"{keyword!r} is larger than any length", "use a smaller number"
        elif keyword == "multipleOf" and value % 1:
            problem = f"multiples of the fraction {value} cannot be told from rounded numbers"
            fix = "use a whole number"
        else:
            continue
        yield keyword, {"reason": problem, "fix": fix}


def _compiles(pattern: str) -> bool:
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True
