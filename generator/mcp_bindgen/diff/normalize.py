"""Normal forms of types: references to inline definitions are followed, so that only the values count."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator

from mcp_bindgen.ir.model import AnyValue, Array, Const, Map, Object, Protocol, Ref, Scalar, Type, Union
from mcp_bindgen.ir.text import describe
from mcp_bindgen.spec.json import is_json_type, json_type_of


class Normalizer:
    """Normalizer of the types of a revision.

    Args:
        protocol: The revision.
        rename: Returns the common name of a definition for both revisions.
    """

    def __init__(self, protocol: Protocol, rename: Callable[[str], str] = str) -> None:
        self.protocol = protocol
        self.rename = rename
        self._keys: dict[str, Hashable] = {}

    def named(self, type: Type) -> str | None:
        """Return the name of a referenced definition; `None` for inline types, including their definitions."""
        if isinstance(type, Ref) and not self.protocol.definitions[type.name].inline:
            return type.name
        return None

    def key(self, type: Type) -> Hashable:
        """Return a key that equal types share: inline definitions count by structure, other definitions by name."""
        match type:
            case Ref(name):
                if not self.protocol.definitions[name].inline:
                    return "ref", self.rename(name)
                if name not in self._keys:
                    self._keys[name] = self.key(self.protocol.definitions[name].type)
                return self._keys[name]
            case AnyValue():
                return "any"
            case Scalar(kind, constraints, format):
                return kind, constraints, format
            case Const(values):
                return "const", frozenset(map(json.dumps, values))
            case Array(items, constraints):
                return "array", self.key(items), constraints
            case Map(values):
                return "map", self.key(values)
            case Union(members):
                return "union", frozenset(self.key(member) for member in members)
            case Object(fields, extra):
                parts = frozenset(
                    (field.wire, field.required, field.fallback, self.key(field.type)) for field in fields
                )
                return "object", parts, None if extra is None else self.key(extra)

    def alias(self, type: Array) -> str:
        """Return the only definition of an array equal to an inline array; empty if there is none."""
        key, definitions = self.key(type), self.protocol.definitions.values()
        arrays = [(one.name, one.type) for one in definitions if isinstance(one.type, Array) and not one.inline]
        names = [name for name, array in arrays if self.key(array) == key]
        return names[0] if len(names) == 1 else ""

    def alternatives(self, type: Type) -> Iterator[Type]:
        """Yield the variants of `type`: unions and enumerations are split, definitions stay references.

        The constant null is the type null, and the constants true and false together are the type boolean.
        """
        type = self.protocol.inline(type)
        match type:
            case Union(members):
                for member in members:
                    yield from self.alternatives(member)
            case Const(values):
                booleans = {value for value in values if isinstance(value, bool)}
                if len(booleans) == 2:
                    yield Scalar("boolean")
                for value in values:
                    if not (isinstance(value, bool) and len(booleans) == 2):
                        yield Scalar("null") if value is None else Const((value,))
            case _:
                yield type

    def opened(self, type: Type) -> Iterator[Type]:
        """Yield the `alternatives` of a referenced type; references to objects stay."""
        if isinstance(type, Ref) and self.protocol.object_of(type) is None:
            for member in self.alternatives(self.protocol.definitions[type.name].type):
                yield from self.opened(member)
        else:
            yield type

    def describe(self, type: Type) -> str:
        """Return `type` as text, without the names of inline definitions."""
        return describe(type, self.protocol.inline, formats=True)


def category(type: Type) -> str:
    """Return the JSON type of the values of `type`, or `union` or `any`."""
    match type:
        case AnyValue():
            return "any"
        case Scalar(kind):
            return "number" if kind == "integer" else kind
        case Const(values):
            kinds = {"number" if is_json_type(value, "number") else json_type_of(value) for value in values}
            return kinds.pop() if len(kinds) == 1 else "union"
        case Array():
            return "array"
        case Map() | Object():
            return "object"
        case Union():
            return "union"
        case Ref():
            raise TypeError("follow the reference first")
