"""Make structured content an object, and the schema of it one of an object: both, or neither."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from ..edits import Say

MEMBER = "result"
"""The member that holds what is no object."""

_DATA = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are data, not schemas."""

_KEPT = "output"


def wrapped(content: Any, say: Say) -> Any:
    """Return structured content as an object."""
    return content if is_object(content) else {MEMBER: content}


def wrapped_schema(schema: Any, say: Say) -> Any:
    """Return the schema of what `wrapped` makes of the values that `schema` takes.

    A schema that takes objects and others becomes one of either: objects stay what they are.
    """
    if not is_object(schema) or schema.get("type") == "object":
        return schema
    dialect = {"$schema": schema.pop("$schema")} if "$schema" in schema else {}
    kinds = schema.get("type")
    if isinstance(kinds, str) or (is_array(kinds) and "object" not in kinds):
        inner = _moved(schema, f"#/properties/{MEMBER}")
        return {**dialect, "type": "object", "properties": {MEMBER: inner}, "required": [MEMBER]}
    either = {"$ref": f"#/$defs/{_KEPT}"}
    wrapper = {"properties": {MEMBER: either}, "required": [MEMBER]}
    inner = _moved(schema, f"#/$defs/{_KEPT}")
    return {**dialect, "type": "object", "anyOf": [either, wrapper], "$defs": {_KEPT: inner}}


def _moved(schema: Any, place: str) -> Any:
    """Return a schema whose references into itself lead to where it stands now."""
    if is_array(schema):
        return [_moved(one, place) for one in schema]
    if not is_object(schema):
        return schema
    if "$id" in schema:
        return schema  # its references are relative to that
    return {name: value if name in _DATA else _reference(name, value, place) for name, value in schema.items()}


def _reference(name: str, value: Any, place: str) -> Any:
    if name == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
        return place + value[1:]
    return _moved(value, place)
