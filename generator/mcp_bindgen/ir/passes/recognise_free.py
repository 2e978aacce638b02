"""Recognise definitions that spell out "any JSON value"."""

from __future__ import annotations

from ..model import AnyValue, Array, Map, Ref, Scalar, Type, Union
from .build_state import BuildState


def recognise_free(state: BuildState) -> BuildState:
    """Replace recursive unions that accept every JSON value (2026-07-28: `JSONValue`) by `AnyValue`."""
    free = {name for name, definition in state.definitions.items() if isinstance(definition.type, Union)}
    while (still := {name for name in free if _accepts_all(state.definitions[name].type, free, state)}) != free:
        free = still
    return state.retyped(lambda name, type: AnyValue() if name in free else type)


def _accepts_all(type: Type, free: set[str], state: BuildState) -> bool:
    assert isinstance(type, Union)
    members = [_resolve(member, free, state) for member in type.members]
    plain = {member.kind for member in members if isinstance(member, Scalar) and not member.constraints}
    arrays = any(
        isinstance(member, Array) and not member.constraints and _free(member.items, free) for member in members
    )
    maps = any(isinstance(member, Map) and _free(member.values, free) for member in members)
    return plain >= {"string", "number", "boolean", "null"} and arrays and maps


def _free(type: Type, free: set[str]) -> bool:
    return isinstance(type, AnyValue) or (isinstance(type, Ref) and type.name in free)


def _resolve(type: Type, free: set[str], state: BuildState) -> Type:
    while isinstance(type, Ref) and type.name not in free:
        type = state.definitions[type.name].type
    return type
