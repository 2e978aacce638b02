"""Type guards for JSON values that type checkers follow."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json
from typing_extensions import TypeIs


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return whether `value` is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Return whether `value` is a JSON array."""
    return isinstance(value, list)


def parse_json(data: bytes | str) -> Any:
    """Parse a JSON document; raises `ValueError` when it is none, or has NaN or Infinity."""
    return from_json(data, allow_inf_nan=False)
