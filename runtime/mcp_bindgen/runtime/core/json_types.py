"""Tell what kind of JSON value a Python value is, in a way that type checkers follow."""

from __future__ import annotations

from math import isfinite
from typing import Any

from pydantic_core import from_json
from typing_extensions import TypeIs


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Tell whether `value` is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Tell whether `value` is a JSON array."""
    return isinstance(value, list)


def parse_json(data: bytes | str) -> Any:
    """Parse a JSON document; raises `ValueError` when it is none, or has numbers that are not finite."""
    document = from_json(data, allow_inf_nan=False)
    if not is_finite(document):  # 1e999 is a number in JSON, and none in Python
        raise ValueError("a number is not finite")
    return document


def is_finite(value: Any) -> bool:
    """Tell whether all numbers in a JSON value are finite."""
    kind = value.__class__
    if kind is float:
        return isfinite(value)
    if kind is list:
        return all(map(is_finite, value))
    return all(map(is_finite, value.values())) if kind is dict else True
