"""Write types of the protocol model as JSON Schema 2020-12."""

from __future__ import annotations

from mcp_bindgen.spec import Schema
from mcp_bindgen.spec.keywords import DIALECT
from mcp_bindgen.spec.references import as_uri, reference

from .model import AnyValue, Array, Const, Map, Object, Protocol, Ref, Scalar, Type, Union


def schema_of(type: Type, base: str = "") -> Schema:
    """Return the JSON Schema of a type; it refers to definitions as `#/$defs/NAME` in the document `base`."""
    match type:
        case AnyValue():
            return {}
        case Scalar(kind, constraints, format):
            return {"type": kind, **({"format": format} if format else {}), **dict(constraints)}
        case Const(values):
            return {"enum": list(values)}
        case Array(items, constraints):
            return {"type": "array", "items": schema_of(items, base), **dict(constraints)}
        case Map(values):
            return {"type": "object", "additionalProperties": schema_of(values, base)}
        case Ref(name):
            return {"$ref": base + as_uri(reference(name))}
        case Union(members):
            return {"anyOf": [schema_of(member, base) for member in members]}
        case Object(fields, extra):
            return {
                "type": "object",
                "properties": {field.wire: schema_of(field.type, base) for field in fields},
                "required": [field.wire for field in fields if field.required],
                "additionalProperties": False if extra is None else schema_of(extra, base),
            }


def document_of(protocol: Protocol) -> Schema:
    """Return all definitions of a revision as one JSON Schema document, inline ones included."""
    definitions = {name: schema_of(definition.type) for name, definition in protocol.definitions.items()}
    return {"$schema": DIALECT, "$defs": definitions}
