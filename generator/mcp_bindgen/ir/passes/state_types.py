"""State the type of schemas with members: without a type, they are objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcp_bindgen.spec import DiagnosticContext, Schema
from mcp_bindgen.spec.json import join, listed
from mcp_bindgen.spec.keywords import has_members, rebuild

from ..losses import beside_union
from .build_state import BuildState

_MEMBERS = ("properties", "required", "additionalProperties")


def state_types(state: BuildState) -> BuildState:
    """Add `"type": "object"` to every schema with members, and remove keywords that do not apply to objects.

    A schema of several types with members becomes a union of them.

    Raises:
        BadInput: In strict mode: one says something else.
    """
    schemas = {name: _stated(schema, join("/$defs", name), state.context) for name, schema in state.schemas.items()}
    return replace(state, schemas=schemas)


def _stated(schema: Schema, here: str, context: DiagnosticContext) -> Schema:
    schema = rebuild(schema, lambda child, at: _stated(child, at, context), here)
    if not has_members(schema) or "$ref" in schema:
        return schema
    if (wrong := beside_union(schema)) is not None:
        context.report("beside-union-members", here, **wrong)
        schema = {keyword: value for keyword, value in schema.items() if keyword not in ("anyOf", "oneOf")}
    if schema.get("type") == "object":
        return schema
    kinds = listed(schema.get("type", []))
    if "object" not in kinds and kinds:
        context.report("members-of-others", here)
        return {keyword: value for keyword, value in schema.items() if keyword not in _MEMBERS}
    if kinds:
        context.report("members-of-several", here)
        return _split(schema, kinds)
    context.report("members-without-type", here)
    return {**schema, "type": "object"}


def _split(schema: Schema, kinds: list[Any]) -> Schema:
    """Return a union of an object with the members of `schema` and of its other types."""
    others = [kind for kind in kinds if kind != "object"]
    if not others:
        return {**schema, "type": "object"}
    rest = {keyword: value for keyword, value in schema.items() if keyword not in _MEMBERS}
    members = {keyword: schema[keyword] for keyword in _MEMBERS if keyword in schema}
    prose: Schema = {keyword: rest.pop(keyword) for keyword in ("description", "default") if keyword in rest}
    return {**prose, "anyOf": [{"type": "object", **members}, {**rest, "type": others}]}
