"""Find the member that tells the alternatives of a union apart."""

from __future__ import annotations

from dataclasses import replace

from ..model import Definition, Object, Ref, Type, Union, map_parts
from .draft import Draft


def tag_unions(draft: Draft) -> Draft:
    """Set `Union.tag` wherever all members are objects that require the same field with different constants."""
    return draft.retyped(lambda _, type: _tagged(type, draft))


def _tagged(type: Type, draft: Draft) -> Type:
    type = map_parts(type, lambda part: _tagged(part, draft))
    return replace(type, tag=_tag(type.members, draft)) if isinstance(type, Union) else type


def _tag(members: tuple[Type, ...], draft: Draft) -> str | None:
    constants = [_constants(member, draft) for member in members]
    for wire in constants[0]:
        values = [known.get(wire) for known in constants]
        if None not in values and len(set(values)) == len(values):
            return wire
    return None


def _constants(type: Type, draft: Draft) -> dict[str, str]:
    """Return wire name -> value for the required fields of an object that can hold one string only."""
    if not isinstance(type, Ref):
        return {}
    definition: Definition = draft.definitions[type.name]
    if not isinstance(definition.type, Object):
        return {}
    fields = definition.type.fields
    return {field.wire: field.constant for field in fields if field.required and isinstance(field.constant, str)}
