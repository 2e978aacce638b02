"""What a sender may say: random instances of the closed form of a schema, and the open schemas that receivers hold.

A sender emits the members that its schema names, and the entries of maps; it invents no others. A receiver tolerates
members that it does not know. It shares no code with the generator's own comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import jsonschema_rs

from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.model import Array, Const, Free, Map, Object, Ref, Scalar, Type, Union

Schema = dict[str, Any]
Definitions = Mapping[str, Schema]

ENVELOPE = ("jsonrpc", "id")
"""The members that carry a message: some revisions write them into every message, others do not."""

_DEEP = 7
_WORDS = ("", "a", "word", "0123456789ab", "https://example.org/x", "é", "AB")
_KEYS = ("key", "a/b", "x1")


class Closed:
    """Draws instances of the closed form.

    Args:
        definitions: Definition name -> JSON Schema.
        random: What decides.
    """

    def __init__(self, definitions: Definitions, random: Random) -> None:
        self.definitions = definitions
        self.random = random

    def of(self, name: str) -> Any:
        """An instance of a definition."""
        return self.schema(self.definitions[name])

    def schema(self, node: Schema | bool, depth: int = 0) -> Any:
        """An instance of a schema; below `_DEEP` levels, one that is as small as can be."""
        if isinstance(node, bool):
            return self.free(depth)
        if "$ref" in node:
            return self.schema(self.definitions[node["$ref"].rpartition("/")[2]], depth)
        if "allOf" in node:
            return self.schema(self.merged(node), depth)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self.random.choice(node["enum"])
        for union in ("anyOf", "oneOf"):
            if union in node:
                return self.schema(self.random.choice(node[union]), depth)
        kinds = node.get("type")
        kind = self.random.choice(kinds) if isinstance(kinds, list) else kinds
        match kind:
            case "object":
                return self.object(node, depth)
            case "array":
                return self.array(node, depth)
            case "string":
                return self.text(node)
            case "integer" | "number":
                return self.number(node, kind)
            case "boolean":
                return self.random.random() < 0.5
            case "null":
                return None
        return self.free(depth)

    def object(self, node: Schema, depth: int) -> Any:
        properties, required = node.get("properties", {}), node.get("required", ())
        wanted = [name for name in properties if name in required or (depth < _DEEP and self.random.random() < 0.5)]
        found = {name: self.schema(properties.get(name, True), depth + 1) for name in {*wanted, *required}}
        others = node.get("additionalProperties", True)
        is_map = not properties or (isinstance(others, dict) and bool(others))
        if is_map and others is not False and depth < _DEEP:
            keys = self.random.sample(_KEYS, self.random.randint(0, 2))
            found |= {key: self.schema(others, depth + 1) for key in keys if key not in properties}
        return found

    def array(self, node: Schema, depth: int) -> Any:
        least = node.get("minItems", 0)
        most = min(node.get("maxItems", least + 2), least + (0 if depth >= _DEEP else 2))
        return [self.schema(node.get("items", True), depth + 1) for _ in range(self.random.randint(least, most))]

    def text(self, node: Schema) -> str:
        words: list[str] = [word for word in _WORDS if jsonschema_rs.is_valid({**node, "type": "string"}, word)]
        return self.random.choice(words or ["x" * int(node.get("minLength", 1))])

    def number(self, node: Schema, kind: str) -> Any:
        low, high = node.get("minimum", -1000), node.get("maximum", 1000)
        if kind == "number" and self.random.random() < 0.5:
            return self.random.uniform(low, high)
        return self.random.choice([low, high, self.random.randint(int(low), int(high))])

    def free(self, depth: int) -> Any:
        """Any JSON."""
        choice = self.random.randrange(8 if depth < _DEEP else 6)
        if choice < 6:
            return (None, True, 0, -1.5, "text", 2**53)[choice]
        return [self.free(depth + 2)] if choice == 6 else {"any": self.free(depth + 2)}

    def merged(self, node: Schema) -> Schema:
        """An object that is several things at once, as one schema."""
        whole: Schema = {"type": "object", "properties": {}, "required": []}
        for part in node["allOf"]:
            while isinstance(part, dict) and "$ref" in part:
                part = self.definitions[part["$ref"].rpartition("/")[2]]
            part = self.merged(part) if "allOf" in part else part
            if set(part) - {"properties", "required", "type", "description", "additionalProperties"}:
                return part  # one part says it all
            for name, child in part.get("properties", {}).items():
                before = whole["properties"].get(name, {})
                whole["properties"][name] = {"allOf": [before, child]} if before and before != child else child
            whole["required"] += part.get("required", ())
        return whole


# --- the receiver ---------------------------------------------------------------------------------------------


def validator(definitions: Definitions, node: Schema) -> Any:
    """Judges instances of `node`, which may refer to `definitions`."""
    return jsonschema_rs.Draft202012Validator({"allOf": [node], "$defs": dict(definitions)})


def named(definitions: Definitions, name: str) -> Any:
    """Judges instances of a definition."""
    return validator(definitions, {"$ref": f"#/$defs/{name}"})


def without_envelope(definitions: Definitions) -> dict[str, Schema]:
    """The definitions, their messages without what carries them."""
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
    """All definitions of a model, those that were inline in the schema too, as JSON Schema."""
    return {name: _as_schema(definition.type) for name, definition in protocol.definitions.items()}


def _as_schema(type: Type) -> Schema:
    match type:
        case Free():
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
