"""What kind of JSON value a Python value is, in a way that type checkers follow."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeIs


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Whether `value` is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Whether `value` is a JSON array."""
    return isinstance(value, list)
