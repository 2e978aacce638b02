"""Contracts for tests, and strategies for random JSON Schemas."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.harness.json_instances import SCALARS

Schema = dict[str, Any]

_PLAIN = ["a", "b", "A b", "1", "$", "ü", "", "\0", "quote'\""]
PROPERTY_NAMES = [*_PLAIN, "a-b", "a_b", "self", "class", "_meta", "meta", "json", "model_dump"]
"""Names of properties; several of them map to the same Python name."""

_NAMES = st.sampled_from(PROPERTY_NAMES)
_REFERENCES = ["#", "#/$defs/One", "#/$defs/Two", "#/properties/a", "#/$defs/One/properties/b"]
_KINDS = ["string", "integer", "number", "boolean", "null", "array", "object"]


def tool(schema: Any, name: str = "t", **members: Any) -> Schema:
    """Return a contract with one tool."""
    return {"tools": [{"name": name, "inputSchema": schema, **members}]}


def taking(schema: Any, **members: Any) -> Schema:
    """Return a contract with one tool that has one argument, `a`."""
    return tool({"type": "object", "properties": {"a": schema}, **members})


def _leaves() -> st.SearchStrategy[Any]:
    scalars = st.sampled_from(_KINDS).map(lambda kind: {"type": kind})
    kinds = st.lists(st.sampled_from(_KINDS), min_size=1, max_size=3, unique=True).map(lambda names: {"type": names})
    values = st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"enum": values})
    narrow = st.sampled_from(
        [
            {"type": "integer", "minimum": 0},
            {"type": "string", "maxLength": 2, "format": "uri"},
            {"type": "string", "pattern": "^a", "default": "b"},
            {"type": "number", "multipleOf": 0.5, "default": 1},
            {"not": {"type": "string"}},
            {"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"type": "number"}},
        ]
    )
    return st.one_of(scalars, kinds, values, SCALARS.map(lambda value: {"const": value}), narrow, st.booleans())


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    members = st.dictionaries(_NAMES, inner, max_size=4)
    # `#/properties/a` could refer directly to itself, so references are only below a member or an item
    below = inner | st.sampled_from(_REFERENCES).map(lambda place: {"$ref": place})
    records = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(_NAMES, below, max_size=4)},
        optional={
            "required": st.lists(_NAMES, max_size=2, unique=True),
            "additionalProperties": inner | st.just(False),
            "patternProperties": inner.map(lambda schema: {"^a": schema}),
            "nullable": st.just(True),
            "anyOf": st.just([{"required": ["a"]}, {"required": ["b"]}]),
        },
    )
    return st.one_of(
        records,
        members.map(lambda members: {"properties": members}),
        below.map(lambda schema: {"type": "array", "items": schema}),
        below.map(lambda schema: {"type": "object", "additionalProperties": schema}),
        several.map(lambda schemas: {"type": "array", "prefixItems": schemas}),
        st.tuples(several, inner).map(lambda both: {"type": "array", "prefixItems": both[0], "items": both[1]}),
        several.map(lambda schemas: {"anyOf": schemas}),
        several.map(lambda schemas: {"oneOf": schemas}),
        several.map(lambda schemas: {"allOf": schemas}),
        st.tuples(records, records).map(lambda both: {"type": "object", "allOf": list(both)}),
        st.tuples(records, several).map(lambda both: {**both[0], "anyOf": both[1]}),
        several.map(lambda schemas: {"type": ["object", "null"], "oneOf": schemas}),
    )


SCHEMAS = st.recursive(_leaves(), _larger, max_leaves=8)
"""Schemas of any type that may refer to `One` and `Two` in `$defs`, to the root and to its member `a`."""


@st.composite
def inputs(draw: st.DrawFn) -> Schema:
    """Draw a schema for the input of a tool."""
    schema: Schema = {"type": "object", "properties": draw(st.dictionaries(_NAMES, SCHEMAS, max_size=4))}
    schema["properties"].setdefault("a", draw(SCHEMAS))
    if draw(st.booleans()):
        schema["required"] = draw(st.lists(_NAMES, max_size=2, unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(SCHEMAS | st.just(False))
    one = {"type": "object", "properties": {"b": draw(SCHEMAS), "next": {"$ref": "#/$defs/One"}}}
    return {**schema, "$defs": {"One": one, "Two": draw(SCHEMAS)}}
