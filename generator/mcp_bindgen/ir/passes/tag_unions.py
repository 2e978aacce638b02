"""Find the member that tells the alternatives of a union apart."""

from __future__ import annotations

from dataclasses import replace

from ..model import Definition, Object, Ref, Type, Union, map_parts
from .build_state import BuildState


def tag_unions(state: BuildState) -> BuildState:
    """Set `Union.tag` wherever all members are objects that require the same field with different constants."""
    return state.retyped(lambda _, type: _tagged(type, state))


def _tagged(type: Type, state: BuildState) -> Type:
    type = map_parts(type, lambda part: _tagged(part, state))
    return replace(type, tag=_tag(type.members, state)) if isinstance(type, Union) else type


def _tag(members: tuple[Type, ...], state: BuildState) -> str | None:
    constants = [_constants(member, state) for member in members]
    for wire in constants[0]:
        values = [known.get(wire) for known in constants]
        if None not in values and len(set(values)) == len(values):
            return wire
    return None


def _constants(type: Type, state: BuildState) -> dict[str, str]:
    """Return wire name -> value for the required fields of an object that can hold one string only."""
    if not isinstance(type, Ref):
        return {}
    definition: Definition = state.definitions[type.name]
    if not isinstance(definition.type, Object):
        return {}
    fields = definition.type.fields
    return {field.wire: field.constant for field in fields if field.required and isinstance(field.constant, str)}
