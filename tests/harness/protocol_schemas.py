"""Definitions of the protocol as JSON Schema: without envelopes, with a validator, and derived from the protocol model.

A receiver tolerates unknown members. This module shares no code with the generator's comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import AnyValue, Array, Const, Map, Object, Ref, Scalar, Type, Union

Schema = dict[str, Any]
Definitions = Mapping[str, Schema]

ENVELOPE = ("jsonrpc", "id")
"""Members of the message envelope; some revisions include them in the definition of each message."""


def validator(definitions: Definitions, node: Schema) -> Any:
    """Return a validator of `node`, which may refer to `definitions`."""
    return jsonschema_rs.Draft202012Validator({"allOf": [node], "$defs": dict(definitions)})


def named(definitions: Definitions, name: str) -> Any:
    """Return a validator of a definition."""
    return validator(definitions, {"$ref": f"#/$defs/{name}"})


def without_envelope(definitions: Definitions) -> dict[str, Schema]:
    """Return the definitions, with messages that lack the envelope members."""
    return {name: _content(schema) if _is_message(schema) else schema for name, schema in definitions.items()}


def _is_message(schema: Schema) -> bool:
    method = schema.get("properties", {}).get("method", {})
    return isinstance(method, dict) and "const" in method


def _content(schema: Schema) -> Schema:
    properties = {name: child for name, child in schema["properties"].items() if name not in ENVELOPE}
    required = [name for name in schema.get("required", ()) if name not in ENVELOPE]
    return {**schema, "properties": properties, "required": required}


# --- the protocol model as JSON Schema --------------------------------------------------------------------------


def as_schemas(protocol: Protocol) -> dict[str, Schema]:
    """Return all definitions of a model as JSON Schema, including definitions that were inline in the schema."""
    return {name: _as_schema(definition.type) for name, definition in protocol.definitions.items()}


def _as_schema(type: Type) -> Schema:
    match type:
        case AnyValue():
            return {}
        case Scalar(kind, constraints):
            return {"type": kind, **dict(constraints)}
        case Const(values):
            return {"enum": list(values)}
        case Array(items, constraints):
            return {"type": "array", "items": _as_schema(items), **dict(constraints)}
        case Map(values):
            return {"type": "object", "additionalProperties": _as_schema(values)}
        case Ref(name):
            return {"$ref": f"#/$defs/{name}"}
        case Union(members):
            return {"anyOf": [_as_schema(member) for member in members]}
        case Object(fields, extra):
            return {
                "type": "object",
                "properties": {field.wire: _as_schema(field.type) for field in fields},
                "required": [field.wire for field in fields if field.required],
                "additionalProperties": False if extra is None else _as_schema(extra),
            }
