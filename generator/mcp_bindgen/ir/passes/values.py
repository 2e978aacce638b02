"""Order the values of enumerations, and add the values of required fields that the schema cannot state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..model import Const, Definition, Field, Json, Object, Ref, Type
from .build_state import BuildState


def fill_defaults(state: BuildState) -> BuildState:
    """Fill in `Field.stated` as `semantics.toml` states it.

    Core facts about fields of any definition apply to an extension only if the field is a field of core's `Result`.
    """
    return state.retyped(lambda name, type: _filled(state.definitions[name], type, state))


def _filled(definition: Definition, type: Type, state: BuildState) -> Type:
    if not isinstance(type, Object):
        return type
    stated = state.facts_about(definition)["defaults"]
    if definition.origin:
        stated = {**_inherited(type, state), **stated}
    values = [_stated(one, stated.get(f"{definition.name}.{one.wire}", stated.get(one.wire))) for one in type.fields]
    fields = (replace(field, stated=value) for field, value in zip(type.fields, values, strict=True))
    return replace(type, fields=tuple(fields))


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


def order_constants(state: BuildState) -> BuildState:
    """Sort the values of the definitions and members in the table `orders`; further values come last."""
    orders: Mapping[str, list[str]] = state.semantics["orders"]

    def ordered(name: str, type: Type) -> Type:
        if not isinstance(type, Object):
            return _ordered(type, orders.get(name, ()))
        found = (replace(it, type=_ordered(it.type, orders.get(f"{name}.{it.wire}", ()))) for it in type.fields)
        return replace(type, fields=tuple(found))

    return state.retyped(ordered)


def _ordered(type: Type, order: Collection[str]) -> Type:
    if not order or not isinstance(type, Const):
        return type
    known = [value for value in order if value in type.values]
    return replace(type, values=(*known, *(value for value in type.values if value not in order)))
