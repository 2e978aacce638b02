"""What kind of JSON value a Python value is, in a way that type checkers follow."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeIs


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Whether `value` is a JSON object, such as a schema that is not just `true` or `false`."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Whether `value` is a JSON array."""
    return isinstance(value, list)


def listed(value: Any) -> list[Any]:
    """`value` as a list: keywords like `type` take one value or several."""
    return value if is_array(value) else [value]
