"""Strict JSON, type guards for JSON values, and places in documents by JSON Pointer (RFC 6901)."""

from __future__ import annotations

import json
from collections import Counter
from math import isfinite
from typing import Any, cast

from mcp_bindgen.json_schema import pointer as lenient
from mcp_bindgen.json_schema.pointer import join as join
from mcp_bindgen.runtime.model.json_types import is_array as is_array
from mcp_bindgen.runtime.model.json_types import is_object as is_object

from .errors import BadInput


def parse(text: str, noun: str, fix: str) -> Any:
    """Return the value of a JSON text without duplicate members and with finite numbers.

    Args:
        text: The text.
        noun: Kind of document for messages, e.g. `schema`.
        fix: Advice in errors.

    Raises:
        BadInput: The text is not such JSON.
    """
    has_repeated = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_repeated
        result = dict(pairs)
        has_repeated = has_repeated or len(result) != len(pairs)
        return result

    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=_refuse, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise BadInput(f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}", fix=fix) from None
    except RecursionError:
        raise BadInput(f"is nested too deeply to be a {noun}", fix=fix) from None
    except ValueError:
        raise BadInput("has a number with too many digits", fix="use a smaller one") from None
    if has_repeated:
        raise _repeated(text)
    return value


def _repeated(text: str) -> BadInput:
    """Return the error for the outermost repeated member of a JSON text."""
    level: list[tuple[str, Any]] = [("", json.loads(text, object_pairs_hook=tuple))]  # an object is a tuple of pairs
    for pointer, node in level:
        pairs = (
            enumerate(node) if is_array(node) else cast("tuple[tuple[str, Any]]", node if type(node) is tuple else ())
        )
        inner = [(name, join(pointer, name), value) for name, value in pairs]
        level += [(place, value) for _, place, value in inner]
        for (name, place), times in Counter((name, place) for name, place, _ in inner).items():
            if times > 1:
                problem = f"the member {name!r} is repeated in one object"
                return BadInput(problem, pointer=place, fix="remove one of them")
    raise ValueError("no member is repeated")


def _refuse(constant: str) -> Any:
    raise BadInput(f"{constant} is not JSON", fix="use a finite number or a string")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if isfinite(number) else _refuse(digits)


JSON_TYPES: dict[str, type[object]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
"""JSON type -> type in Python."""

_NAMES = {type: kind for kind, type in JSON_TYPES.items()}


def is_json_type(value: object, kind: str) -> bool:
    """Return whether a JSON value is of a JSON type; every integer is a number."""
    return json_type_of(value) == kind or (kind == "number" and json_type_of(value) == "integer")


def json_type_of(value: object) -> str:
    """Return the JSON type of a value; `number` for a `float` only.

    Raises:
        TypeError: The value is no JSON.
    """
    try:
        return _NAMES[type(value)]
    except KeyError:
        raise TypeError(f"a value of type {type(value).__name__} is not JSON") from None


def listed(value: Any) -> list[Any]:
    """Return `value` as a list: keywords like `type` take one value or several."""
    return value if is_array(value) else [value]


# --- JSON Pointers ----------------------------------------------------------------------------------------------------


def split(pointer: str) -> list[str]:
    """Return the unescaped tokens of `pointer`; raise `BadInput` when it does not start with `/`."""
    if pointer and not pointer.startswith("/"):
        raise BadInput(f"{pointer!r} is not a JSON Pointer", fix="start it with '/'")
    return lenient.tokens(pointer)


def step(node: Any, token: str) -> Any:
    """Return the child of `node` that `token` names; raises `KeyError` when there is none."""
    for child in lenient.step(node, token):
        return child
    raise KeyError(token)


def value_at(document: Any, pointer: str, default: Any = None) -> Any:
    """Return the value at a pointer, or `default` if there is none."""
    return next(iter(lenient.values_at(document, pointer)), default)
