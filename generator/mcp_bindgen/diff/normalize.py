"""Normalize types: references to inline definitions are followed, so only what a value may be counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator

from mcp_bindgen.protocol.model import Array, Const, Free, Map, Object, Protocol, Ref, Scalar, Type, Union
from mcp_bindgen.protocol.text import describe


class Normalizer:
    """The normalizer of one revision's types.

    Args:
        protocol: The revision.
        rename: Gives a definition the name under which both revisions know it.
    """

    def __init__(self, protocol: Protocol, rename: Callable[[str], str] = str) -> None:
        self.protocol = protocol
        self.rename = rename
        self._keys: dict[str, Hashable] = {}

    def named(self, type: Type) -> str | None:
        """Return the name of the definition that `type` refers to; none for inline types, hoisted ones included."""
        if isinstance(type, Ref) and not self.protocol.definitions[type.name].hoisted:
            return type.name
        return None

    def inline(self, type: Type) -> Type:
        """Return `type` with references to hoisted definitions followed."""
        while isinstance(type, Ref) and self.protocol.definitions[type.name].hoisted:
            type = self.protocol.definitions[type.name].type
        return type

    def key(self, type: Type) -> Hashable:
        """Return what is equal for equal types: hoisted definitions are looked into, others go by their name."""
        match type:
            case Ref(name):
                if not self.protocol.definitions[name].hoisted:
                    return "ref", self.rename(name)
                if name not in self._keys:
                    self._keys[name] = self.key(self.protocol.definitions[name].type)
                return self._keys[name]
            case Free():
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
        """Return the one definition that is the same array as an inline one; empty where there is none."""
        key, definitions = self.key(type), self.protocol.definitions.values()
        arrays = [(one.name, one.type) for one in definitions if isinstance(one.type, Array) and not one.hoisted]
        names = [name for name, array in arrays if self.key(array) == key]
        return names[0] if len(names) == 1 else ""

    def alternatives(self, type: Type) -> Iterator[Type]:
        """Return the variants of `type`: unions and enumerations are taken apart, definitions stay references."""
        type = self.inline(type)
        match type:
            case Union(members):
                for member in members:
                    yield from self.alternatives(member)
            case Const(values):
                for value in values:
                    yield Const((value,))
            case _:
                yield type

    def opened(self, type: Type) -> Iterator[Type]:
        """Return the `alternatives` of what a reference leads to; references to objects stay."""
        if isinstance(type, Ref) and not isinstance(self.protocol.resolve(type), Object):
            for member in self.alternatives(self.protocol.definitions[type.name].type):
                yield from self.opened(member)
        else:
            yield type

    def words(self, type: Type) -> str:
        """Return `type` as a person would write it, without the names of hoisted definitions."""
        return describe(type, self.inline, formats=True)


def category(type: Type) -> str:
    """Return the JSON type of the values of `type`, or `union` and `any`; constants are of their value's type."""
    match type:
        case Free():
            return "any"
        case Scalar(kind):
            return "number" if kind == "integer" else kind
        case Const(values):
            kinds = {_kind(value) for value in values}
            return kinds.pop() if len(kinds) == 1 else "union"
        case Array():
            return "array"
        case Map() | Object():
            return "object"
        case Union():
            return "union"
        case Ref():
            raise TypeError("follow the reference first")


def as_object(type: Type) -> Object:
    """Return an object type; a dictionary is an object without members of its own."""
    if isinstance(type, Map):
        return Object((), type.values)
    assert isinstance(type, Object)
    return type


def is_value(scalar: Scalar, value: object) -> bool:
    """Return whether a constant is a value of a scalar type, its limits aside."""
    if scalar.kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return _kind(value) == category(scalar)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"
