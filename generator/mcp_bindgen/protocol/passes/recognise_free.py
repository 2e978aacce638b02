"""Recognise definitions that spell out "any JSON value"."""

from __future__ import annotations

from ..model import Array, Definition, Free, Map, Ref, Scalar, Type, Union
from .draft import Draft


def recognise_free(draft: Draft) -> Draft:
    """Replace recursive unions that accept every JSON value (2026-07-28: `JSONValue`) by `Free`."""
    free = {name for name, definition in draft.definitions.items() if isinstance(definition.type, Union)}
    while True:
        still = {name for name in free if _accepts_all(draft.definitions[name].type, free, draft)}
        if still == free:
            break
        free = still
    return draft.retyped(lambda name, type: Free() if name in free else type)


def _accepts_all(type: Type, free: set[str], draft: Draft) -> bool:
    assert isinstance(type, Union)
    members = [_resolve(member, free, draft) for member in type.members]
    plain = {member.kind for member in members if isinstance(member, Scalar) and not member.constraints}
    arrays = any(
        isinstance(member, Array) and not member.constraints and _free(member.items, free) for member in members
    )
    maps = any(isinstance(member, Map) and _free(member.values, free) for member in members)
    return plain >= {"string", "number", "boolean", "null"} and arrays and maps


def _free(type: Type, free: set[str]) -> bool:
    return isinstance(type, Free) or (isinstance(type, Ref) and type.name in free)


def _resolve(type: Type, free: set[str], draft: Draft) -> Type:
    while isinstance(type, Ref) and type.name not in free:
        definition: Definition = draft.definitions[type.name]
        type = definition.type
    return type
