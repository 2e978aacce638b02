"""Type expressions in a few readable words."""

from __future__ import annotations

import json

from .model import Array, Const, Free, Map, Object, Ref, Scalar, Type, Union


def describe(type: Type) -> str:
    """`type` as a person would write it: `array of Tool`, `"a" | "b"`, `integer (minimum 0)`."""
    match type:
        case Free():
            return "any JSON"
        case Scalar(kind, constraints):
            return kind + _constraints(constraints)
        case Const(values):
            return " | ".join(json.dumps(value) for value in values)
        case Array(items, constraints):
            inner = describe(items)
            return f"array of {f'({inner})' if ' | ' in inner else inner}{_constraints(constraints)}"
        case Map(values):
            return "object" if isinstance(values, Free) else f"object of {describe(values)}"
        case Ref(name):
            return name
        case Union(members):
            return " | ".join(describe(member) for member in members)
        case Object():
            return "object"


def _constraints(constraints: tuple[tuple[str, object], ...]) -> str:
    return f" ({', '.join(f'{keyword} {value}' for keyword, value in constraints)})" if constraints else ""
