"""Add the values of required fields that the schema cannot state."""

from __future__ import annotations

from dataclasses import replace

from ..model import Const, Definition, Field, Json, Object, Ref
from .build_state import BuildState


def fill_defaults(state: BuildState) -> BuildState:
    """Fill in `Field.stated` as `semantics.toml` states it.

    Core facts about fields of any definition apply to an extension only if the field is a field of core's `Result`.
    """
    return replace(
        state, definitions={name: _filled(definition, state) for name, definition in state.definitions.items()}
    )


def _filled(definition: Definition, state: BuildState) -> Definition:
    if not isinstance(definition.type, Object):
        return definition
    stated = state.facts_about(definition)["defaults"]
    if definition.origin:
        stated = {**_inherited(definition.type, state), **stated}
    fields = definition.type.fields
    values = [_stated(one, stated.get(f"{definition.name}.{one.wire}", stated.get(one.wire))) for one in fields]
    if all(value is None for value in values):
        return definition
    filled = tuple(replace(field, stated=value) for field, value in zip(fields, values, strict=True))
    return replace(definition, type=replace(definition.type, fields=filled))


def _inherited(type: Object, state: BuildState) -> dict[str, Json]:
    """Return the core facts about fields of `Result` that `type` has too."""
    fields, stated = state.fields_of(Ref("Result")), state.semantics["defaults"]
    same = [field.wire for field in fields if (own := type.field(field.wire)) is not None and own.type == field.type]
    return {wire: stated[wire] for wire in same if wire in stated}


def _stated(field: Field, stated: Json) -> Json:
    """Return the stated value if `field` is required and may have it; a constant needs no statement."""
    if not field.required or field.constant is not None:
        return None
    return None if isinstance(field.type, Const) and stated not in field.type.values else stated
