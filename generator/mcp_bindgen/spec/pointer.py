"""Name and reach a place in a JSON document by JSON Pointer (RFC 6901)."""

from __future__ import annotations

import re
from typing import Any

from .errors import BadInput
from .json import is_array, is_object

_INDEX = re.compile("0|[1-9][0-9]*")


def join(pointer: str, *tokens: str | int) -> str:
    """Return `pointer` extended by `tokens`, escaped."""
    for token in tokens:
        text = str(token)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        pointer = f"{pointer}/{text}"
    return pointer


def split(pointer: str) -> list[str]:
    """Return the unescaped tokens of `pointer`; raise `BadInput` when it does not start with `/`."""
    if pointer and not pointer.startswith("/"):
        raise BadInput(f"{pointer!r} is not a JSON Pointer", fix="start it with '/'")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def step(node: Any, token: str) -> Any:
    """Return the child of `node` that `token` names; raises `KeyError` when there is none."""
    if is_array(node):
        if _INDEX.fullmatch(token) and int(token) < len(node):
            return node[int(token)]
    elif is_object(node):
        return node[token]
    raise KeyError(token)


def value_at(document: Any, pointer: str, default: Any = None) -> Any:
    """Return the value at a pointer, or `default` if there is none."""
    try:
        for token in split(pointer):
            document = step(document, token)
    except KeyError:
        return default
    return document
