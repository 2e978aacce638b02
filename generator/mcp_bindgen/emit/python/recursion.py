"""Find aliases that contain themselves: type checkers want them first, quoted, and recursive in themselves only."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.model import Object, Ref, Type, Union, map_parts, references

from .annotations import annotation


def recursive_aliases(protocol: Protocol, scalars: Mapping[str, str]) -> dict[str, str]:
    """Name -> expression of every alias that contains itself, directly or through other definitions.

    In a cycle of aliases one is written out, and the rest refers to it: `JSONValue` is a union with itself inside,
    `JSONObject` is just a `dict[str, JSONValue]`. `scalars` maps JSON types to the value types of the module.
    """
    found: dict[str, str] = {}
    for name, definition in protocol.definitions.items():
        if not isinstance(definition.type, Object) and name in protocol.reach(references(definition.type)):
            circle = _circle(protocol, name)
            if name == min(circle | {name}, key=lambda alias: _rank(protocol, alias)):
                found[name] = annotation(_expanded(definition.type, protocol, circle, {name}), scalars, prefix="")
    return found


def _rank(protocol: Protocol, alias: str) -> tuple[bool, str]:
    """Rank unions first: that is where people expect the whole list of alternatives."""
    return not isinstance(protocol.definitions[alias].type, Union), alias


def _circle(protocol: Protocol, name: str) -> set[str]:
    """Return the aliases that contain `name` and that `name` contains, with no class in between."""
    aliases = {alias for alias, definition in protocol.definitions.items() if not isinstance(definition.type, Object)}
    below = protocol.reach(references(protocol.definitions[name].type), aliases)
    return {alias for alias in below if name in protocol.reach(references(protocol.definitions[alias].type), aliases)}


def _expanded(type: Type, protocol: Protocol, circle: set[str], trail: set[str]) -> Type:
    """Return `type` with the other aliases of its circle written out."""
    if isinstance(type, Ref) and type.name in circle and type.name not in trail:
        return _expanded(protocol.definitions[type.name].type, protocol, circle, {*trail, type.name})
    return map_parts(type, lambda part: _expanded(part, protocol, circle, trail))
