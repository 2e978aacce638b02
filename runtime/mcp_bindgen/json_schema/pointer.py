"""JSON Pointers (RFC 6901), which name places in a JSON document."""

from __future__ import annotations

import re
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

_INDEX = re.compile("0|[1-9][0-9]{0,9}")


def join(pointer: str, *tokens: str | int) -> str:
    """Return `pointer` extended by `tokens`, escaped."""
    for token in tokens:
        text = str(token)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        pointer = f"{pointer}/{text}"
    return pointer


def tokens(pointer: str) -> list[str]:
    """Return the reference tokens of a JSON Pointer, unescaped."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def step(node: object, token: str) -> list[Any]:
    """Return the part of a JSON value that a token of a pointer names, in a list; empty if there is none."""
    if is_object(node):
        return [node[token]] if token in node else []
    return node[int(token) :][:1] if is_array(node) and _INDEX.fullmatch(token) else []


def existing(document: object, pointer: str) -> str:
    """Return the pointer to the last existing value on the way to a place."""
    while not values_at(document, pointer):
        pointer = pointer.rpartition("/")[0]
    return pointer


def values_at(document: object, pointer: str) -> list[Any]:
    """Return the value at a pointer, in a list; empty if there is none."""
    values = [document]
    for token in tokens(pointer):
        values = [below for value in values for below in step(value, token)]
    return values
