"""Type guards for JSON values that type checkers follow."""

from __future__ import annotations

import re
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


_HALF = re.compile("[\ud800-\udfff]")


def whole_json(value: object, default: Callable[[Any], Any] | None = None) -> bytes:
    """Return the JSON text of a value, with U+FFFD for each half of a surrogate pair.

    Args:
        value: The value.
        default: Returns the JSON value for an object of another type.
    """
    import json  # few values have one

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=default)
    return _HALF.sub("\ufffd", text).encode()
