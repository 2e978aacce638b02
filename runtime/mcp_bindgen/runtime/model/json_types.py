"""Type guards for JSON values that type checkers follow, and equality of JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias, TypeVar, cast

from pydantic_core import from_json, to_jsonable_python
from typing_extensions import TypeIs

Value = TypeVar("Value")

Path: TypeAlias = tuple[str | int, ...]
"""Names of members and indexes of items that lead to a place in a JSON value."""

# Built-in functions: each message calls them several times, and a call of a Python function costs more.

is_object: Callable[[object], TypeIs[dict[str, Any]]] = cast(
    Callable[[object], TypeIs[dict[str, Any]]], dict.__instancecheck__
)
"""Return True if a value is a JSON object."""

is_array: Callable[[object], TypeIs[list[Any]]] = cast(Any, list.__instancecheck__)
"""Return True if a value is a JSON array."""


def as_object(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one in place of any other value."""
    return value if is_object(value) else {}


def as_array(value: object) -> list[Any]:
    """Return a JSON array, or an empty one in place of any other value."""
    return value if is_array(value) else []


def json_key(value: object) -> object:
    """Return a hashable value that is equal for equal JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if is_object(value):
        return "object", frozenset((name, json_key(member)) for name, member in value.items())
    if is_array(value):
        return "array", tuple(map(json_key, value))
    return type(value) if isinstance(value, bool) else None, value


def same_json(one: object, other: object) -> bool:
    """Return whether two JSON values are equal, as JSON Schema defines it (2020-12, 4.2.2)."""
    return json_key(one) == json_key(other)


def distinct(values: Iterable[Value]) -> list[Value]:
    """Return values once each, in their order."""
    found: dict[object, Value] = {}
    for value in values:
        found.setdefault(json_key(value), value)
    return list(found.values())


ABSENT: Final = object()
"""Stands for a member that one of two values lacks."""


def differences(old: object, new: object, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the places where two JSON values differ, with both values; arrays of other lengths differ as a whole."""
    if is_object(old) and is_object(new):
        for name in {**old, **new}:
            yield from differences(old.get(name, ABSENT), new.get(name, ABSENT), (*path, name))
    elif is_array(old) and is_array(new) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, (*path, index))
    elif not same_json(old, new):
        yield path, old, new


def parse_json(data: bytes | str) -> Any:
    """Parse a JSON document; raises `ValueError` when it is none, or has NaN or Infinity."""
    return from_json(data, allow_inf_nan=False)


def whole_json(value: object) -> bytes:
    """Return the JSON text of a value, with U+FFFD for each half of a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=to_jsonable_python)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
