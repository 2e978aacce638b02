"""Type guards for JSON values that type checkers follow, and equality of JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from pydantic_core import from_json, to_jsonable_python
from typing_extensions import TypeIs

# Built-in functions: each message calls them several times, and a call of a Python function costs more.

is_object: Callable[[object], TypeIs[dict[str, Any]]] = cast(
    Callable[[object], TypeIs[dict[str, Any]]], dict.__instancecheck__
)
"""Return True if a value is a JSON object."""

is_array: Callable[[object], TypeIs[list[Any]]] = cast(Any, list.__instancecheck__)
"""Return True if a value is a JSON array."""


def json_key(value: object) -> object:
    """Return a hashable value that is equal for equal JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if is_object(value):
        return "object", frozenset((name, json_key(member)) for name, member in value.items())
    if is_array(value):
        return "array", tuple(map(json_key, value))
    return type(value) if isinstance(value, bool) else None, value


def parse_json(data: bytes | str) -> Any:
    """Parse a JSON document; raises `ValueError` when it is none, or has NaN or Infinity."""
    return from_json(data, allow_inf_nan=False)


def whole_json(value: object) -> bytes:
    """Return the JSON text of a value, with U+FFFD for each half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=to_jsonable_python)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
