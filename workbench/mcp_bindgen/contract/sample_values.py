"""Sample values for JSON Schemas, from their members, limits and constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.examples import Examples, scalars
from mcp_bindgen.ir.losses import APPLIES
from mcp_bindgen.ir.model import AnyValue, Array, Const, Definition, Field, Object, Ref, Scalar, Type, Union, parts
from mcp_bindgen.json_schema.keywords import IN_PLACE, children
from mcp_bindgen.json_schema.references import Targets
from mcp_bindgen.spec.json import is_object, listed

_KINDS = ["object", "string", "integer", "number", "boolean", "array", "null"]
_MAX_FLOAT_COUNT = 2**53
_EVERYWHERE = (
    "text",
    "",
    "a",
    "A",
    "0",
    "a-b",
    "2025-01-01",
    "a@example.org",
    "https://example.org/a",
    0,
    -1,
    2,
    1.5,
    10,
)


def sample_values(schema: Any) -> Iterator[Any]:
    """Yield sample values for a JSON Schema; some are not valid."""
    types = SchemaTypes(schema)
    yield from Examples(types.protocol, [*_EVERYWHERE, *types.mentioned()]).several(types.root)


class SchemaTypes:
    """Types of a JSON Schema for sample values: less exact than contract types, but with all limits and conditions."""

    def __init__(self, schema: Any) -> None:
        self._targets = Targets(schema)
        self._definitions: dict[str, Definition] = {}
        self.root = self._type(schema)
        self.protocol = Protocol("", "stateless", "", self._definitions, ())

    def mentioned(self) -> Iterator[Any]:
        """Yield the constants and the values at limits."""
        pending = [self.root, *(definition.type for definition in self._definitions.values())]
        while pending:
            type = pending.pop()
            pending.extend(parts(type))
            match type:
                case Scalar():
                    yield from scalars(type)
                case Const(values):
                    yield from values
                case _:
                    pass

    def _type(self, schema: Any) -> Type:
        if not is_object(schema):
            return AnyValue()
        found: list[Type] = [Const((schema["const"],))] if "const" in schema else []
        found += [Const(tuple(schema["enum"]))] if "enum" in schema else []
        reference = schema.get("$ref")
        if isinstance(reference, str):
            found.append(self._referred(reference))
        found += [self._type(part) for keyword, _, part in children(schema) if keyword in IN_PLACE]
        plain = [] if schema.keys() & {"$ref", "anyOf"} else _KINDS
        kinds = schema.get("type", "object" if "properties" in schema else plain)
        found += [self._of_kind(kind, schema) for kind in listed(kinds)]
        return found[0] if len(found) == 1 else Union(tuple(found))

    def _referred(self, reference: str) -> Ref:
        if reference not in self._definitions:
            self._definitions[reference] = Definition(reference, AnyValue())
            self._definitions[reference] = Definition(reference, self._type(self._targets.find(reference)))
        return Ref(reference)

    def _of_kind(self, kind: str, schema: dict[str, Any]) -> Type:
        limits = tuple((keyword, _count(schema[keyword])) for keyword in APPLIES.get(kind, ()) if keyword in schema)
        match kind:
            case "object":
                needed = schema.get("required", ())
                named = schema.get("properties", {}).items()
                fields = tuple(Field(wire, self._type(inner), wire in needed) for wire, inner in named)
                extra = schema.get("additionalProperties", False)
                return Object(fields, None if extra is False else self._type(extra))
            case "array":
                return Array(self._type(schema.get("items")), tuple(limit for limit in limits if limit[0] != "items"))
            case "string" | "integer" | "number" | "boolean" | "null":
                return Scalar(kind, limits)
            case _:
                return AnyValue()


def _count(limit: Any) -> Any:
    """Return a limit; a count may be a float in JSON, such as `2.0`."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() and abs(limit) < _MAX_FLOAT_COUNT else limit
