"""Compare scalars: kinds, limits and formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_bindgen.ir.model import Array, Scalar

_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems"})

_EMPTY = frozenset({("minLength", 0), ("minItems", 0)})
"""Limits that limit nothing."""

Difference = tuple[str, tuple[str, str]]
"""Rule, and short descriptions of the old and the new state."""


def scalar_differences(old: Scalar, new: Scalar) -> Iterator[Difference]:
    """Find the differences between two scalars of the same JSON type; integers are numbers."""
    if old.kind != new.kind:
        yield "integer-to-number" if new.kind == "number" else "number-to-integer", (old.kind, new.kind)
    yield from limit_differences(old, new)
    if old.format != new.format:
        yield "format-changed", (old.format or "no format", new.format or "no format")


def limit_differences(old: Scalar | Array, new: Scalar | Array) -> Iterator[Difference]:
    """Find the differences between the limits of two types."""
    before, after = (dict(limit for limit in one.constraints if limit not in _EMPTY) for one in (old, new))
    for keyword in sorted(before.keys() | after.keys()):
        if before.get(keyword) != after.get(keyword):
            rule = _rule(keyword, before.get(keyword), after.get(keyword))
            yield rule, (_words(keyword, before), _words(keyword, after))


def _rule(keyword: str, old: Any, new: Any) -> str:
    if old is None or new is None:
        tighter = old is None
    elif keyword == "pattern":
        return "pattern-changed"
    elif keyword == "multipleOf":
        if new % old and old % new:
            return "type-changed"
        tighter = new % old == 0
    else:
        tighter = (new > old) == (keyword in _LOWER)
    return "constraint-tightened" if tighter else "constraint-loosened"


def _words(keyword: str, constraints: dict[str, Any]) -> str:
    return f"{keyword} {constraints[keyword]}" if keyword in constraints else f"no {keyword}"
