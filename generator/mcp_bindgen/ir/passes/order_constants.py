"""Put the values of enumerations into the order that `semantics.toml` states."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ..model import Const, Object, Type
from .build_state import BuildState


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
