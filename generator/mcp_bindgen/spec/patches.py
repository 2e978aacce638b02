"""Apply the ledger of reviewed corrections to an upstream schema."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, fields
from functools import reduce
from pathlib import Path
from typing import Any

from .errors import BadInput, locating
from .json import is_array, is_object
from .keywords import Schema
from .pointer import join, split, step
from .toml import read_toml

_ABSENT: Any = object()


@dataclass(frozen=True)
class Patch:
    """One correction: at `pointer`, `old` becomes `new`. An absent `old` adds, an absent `new` removes."""

    pointer: str
    reason: str
    old: Any = _ABSENT
    new: Any = _ABSENT


def load(path: Path) -> tuple[Patch, ...]:
    """Return the patches of a `patches.toml`; no file means no patch.

    Raises:
        BadInput: The file is not TOML, or is not a list of patches, or one of them is not complete.
    """
    if not path.exists():
        return ()
    table = read_toml(path)
    entries = table.pop("patch", [])
    with locating(path):
        for name in table:
            raise BadInput(f"there is no table {name!r} here", pointer=join("", name), fix="write [[patch]]")
        if not is_array(entries):
            raise BadInput("is not a list of patches", pointer="/patch", fix="write [[patch]]")
        return tuple(_patch(entry, join("/patch", index)) for index, entry in enumerate(entries))


def _patch(entry: Any, pointer: str) -> Patch:
    names = {field.name for field in fields(Patch)}
    if not is_object(entry) or not entry.keys() <= names or not {"pointer", "reason"} <= entry.keys():
        raise BadInput("is not a patch", pointer=pointer, fix="give it the keys pointer, reason, old and new")
    for name in ("pointer", "reason"):
        if not isinstance(entry[name], str):
            raise BadInput("is not a string", pointer=join(pointer, name), fix="put it in quotes")
    try:
        json.dumps(entry, allow_nan=False)
    except (TypeError, ValueError):
        raise BadInput("holds a value that JSON has not", pointer=pointer, fix="use no dates, nan or inf") from None
    return Patch(**entry)


def apply(document: Schema, patches: tuple[Patch, ...]) -> Schema:
    """Return a patched copy of `document`.

    Raises:
        BadInput: A patch no longer fits, because what stands at its pointer is not `old`.
    """
    patched = copy.deepcopy(document)
    for patch in patches:
        _apply(patched, patch)
    return patched


def _apply(document: Schema, patch: Patch) -> None:
    if not patch.pointer or patch.old is patch.new is _ABSENT:
        raise BadInput("the patch changes nothing", pointer=patch.pointer, fix="name a place, and what is old or new")
    *parents, last = split(patch.pointer)
    node = reduce(_below, parents, document)
    found = _below(node, last)
    if found != patch.old:
        raise BadInput(
            f"the patch expects {_say(patch.old)} but finds {_say(found)}",
            pointer=patch.pointer,
            fix="review the patch: upstream may have changed or corrected this place",
        )
    if found is _ABSENT and not is_object(node):
        raise BadInput(
            "the patch adds a member where there is no object",
            pointer=patch.pointer,
            fix="add the object first, or replace the whole list",
        )
    key = _key(node, last)
    if patch.new is _ABSENT:
        del node[key]
    else:
        node[key] = patch.new


def _below(node: Any, token: str) -> Any:
    """Return what stands at `token`, or `_ABSENT`."""
    try:
        return step(node, token)
    except KeyError:
        return _ABSENT


def _key(node: Any, token: str) -> Any:
    """Return what Python calls the place in `node` that `token` names."""
    return int(token) if is_array(node) else token


def _say(value: Any) -> str:
    return "nothing" if value is _ABSENT else repr(value)
