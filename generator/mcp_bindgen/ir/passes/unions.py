"""Restore unions that are published as their one member, recognise any JSON value, and tag other unions."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec.keywords import method_of, without_prose
from mcp_bindgen.spec.references import reference

from ..model import AnyValue, Array, Definition, Map, Object, Ref, Scalar, Type, Union, map_parts
from .build_state import BuildState


def restore_unions(state: BuildState) -> BuildState:
    """Replace a definition that repeats a message's definition under a union's name by a reference to it."""
    unions = state.semantics["unions"]
    messages = {
        name: schema
        for name, schema in state.schemas.items()
        if name not in unions and name not in state.origins and method_of(schema)
    }
    schemas = dict(state.schemas)
    for union in unions:
        schema = schemas.get(union, {})
        same = [name for name, message in messages.items() if method_of(message) == method_of(schema)]
        same = [name for name in same if without_prose(messages[name]) == without_prose(schema)]
        if same:
            prose = {"description": schema["description"]} if "description" in schema else {}
            schemas[union] = {**prose, "anyOf": [{"$ref": reference(same[-1])}]}
    return replace(state, schemas=schemas)


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
