"""Describe type expressions in a few readable words."""

from __future__ import annotations

import json
from collections.abc import Callable

from .model import AnyValue, Array, Const, Map, Object, Ref, Scalar, Type, Union


def describe(type: Type, inline: Callable[[Type], Type] = lambda type: type, *, formats: bool = False) -> str:
    """Return `type` as a person would write it: `array of Tool`, `"a" | "b"`, `integer (minimum 0)`.

    Args:
        type: The type.
        inline: Follows the references that are not to be named.
        formats: Whether to say the formats of strings.
    """

    def inner(part: Type) -> str:
        return describe(part, inline, formats=formats)

    match inline(type):
        case AnyValue():
            return "any JSON"
        case Scalar(kind, constraints, format):
            return kind + _limits(constraints, format if formats else None)
        case Const(values):
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
        case Array(items, constraints):
            words = inner(items)
            return f"array of {f'({words})' if ' | ' in words else words}{_limits(constraints)}"
        case Map(values):
            return "object" if isinstance(values, AnyValue) else f"object of {inner(values)}"
        case Ref(name):
            return name
        case Union(members):
            return " | ".join(map(inner, members))
        case Object():
            return "object"


def _limits(constraints: tuple[tuple[str, object], ...], format: str | None = None) -> str:
    words = [f"{keyword} {value}" for keyword, value in constraints] + ([format] if format else [])
    return f" ({', '.join(words)})" if words else ""
