"""Put the values of enumerations into the order that `semantics.toml` states."""

from __future__ import annotations

from dataclasses import replace

from ..model import Const, Type
from .build_state import BuildState


def order_constants(state: BuildState) -> BuildState:
    """Sort the values of the definitions in the table `orders`; further values come last."""
    return state.retyped(lambda name, type: _ordered(type, state.semantics["orders"].get(name, ())))


def _ordered(type: Type, order: list[str]) -> Type:
    if not order or not isinstance(type, Const):
        return type
    known = [value for value in order if value in type.values]
    return replace(type, values=(*known, *(value for value in type.values if value not in order)))
