"""Type guards for JSON values that type checkers follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pydantic_core import from_json
from typing_extensions import TypeIs

# Built-in functions: each message calls them several times, and a call of a Python function costs more.

is_object: Callable[[object], TypeIs[dict[str, Any]]] = cast(
    Callable[[object], TypeIs[dict[str, Any]]], dict.__instancecheck__
)
"""Return True if a value is a JSON object."""

is_array: Callable[[object], TypeIs[list[Any]]] = cast(Any, list.__instancecheck__)
"""Return True if a value is a JSON array."""


def parse_json(data: bytes | str) -> Any:
    """Parse a JSON document; raises `ValueError` when it is none, or has NaN or Infinity."""
    return from_json(data, allow_inf_nan=False)
