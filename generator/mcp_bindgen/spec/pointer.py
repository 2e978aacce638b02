"""Name and reach a place in a JSON document by JSON Pointer (RFC 6901)."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.json_schema import pointer as lenient
from mcp_bindgen.json_schema.pointer import join as join

from .errors import BadInput


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
