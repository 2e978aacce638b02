"""Aliases that contain themselves: type checkers want them first, quoted, and each recursive in itself only."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.model import Array, Map, Object, Ref, Type, Union, references

from .annotations import CHECKED, annotation


def recursive_aliases(protocol: Protocol) -> dict[str, str]:
    """Name -> expression of every alias that contains itself, directly or through other definitions.

    Of a circle of aliases one is written out and the others refer to it: `JSONValue` is a union with itself inside,
    `JSONObject` is just a `dict[str, JSONValue]`.
    """
    found: dict[str, str] = {}
    for name, definition in protocol.definitions.items():
        if not isinstance(definition.type, Object) and name in _reach(protocol, references(definition.type)):
            circle = _circle(protocol, name)
            if name == min(circle | {name}, key=lambda alias: _rank(protocol, alias)):
                found[name] = annotation(_expanded(definition.type, protocol, circle, {name}), CHECKED, prefix="")
    return found


def _rank(protocol: Protocol, alias: str) -> tuple[bool, str]:
    """Unions first: that is where people expect the whole list of alternatives."""
    return not isinstance(protocol.definitions[alias].type, Union), alias


def _circle(protocol: Protocol, name: str) -> set[str]:
    """The aliases that contain `name` and that `name` contains, with no class in between."""
    aliases = {alias for alias, definition in protocol.definitions.items() if not isinstance(definition.type, Object)}
    below = _reach(protocol, references(protocol.definitions[name].type), aliases)
    return {alias for alias in below if name in _reach(protocol, references(protocol.definitions[alias].type), aliases)}


def _reach(protocol: Protocol, roots: Iterable[str], within: set[str] | None = None) -> set[str]:
    found: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in found and (within is None or name in within):
            found.add(name)
            pending.extend(references(protocol.definitions[name].type))
    return found


def _expanded(type: Type, protocol: Protocol, circle: set[str], trail: set[str]) -> Type:
    """`type` with the other aliases of its circle written out."""
    match type:
        case Ref(name) if name in circle and name not in trail:
            return _expanded(protocol.definitions[name].type, protocol, circle, {*trail, name})
        case Array(items, constraints):
            return Array(_expanded(items, protocol, circle, trail), constraints)
        case Map(values):
            return Map(_expanded(values, protocol, circle, trail))
        case Union(members, tag):
            return Union(tuple(_expanded(member, protocol, circle, trail) for member in members), tag)
        case _:
            return type
