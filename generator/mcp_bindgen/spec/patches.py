"""The ledger of reviewed corrections to an upstream schema."""

from __future__ import annotations

import copy
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import pointer as json_pointer
from .errors import BadInput
from .keywords import Schema

_ABSENT: Any = object()


@dataclass(frozen=True)
class Patch:
    """One correction: at `pointer`, `old` becomes `new`. An absent `old` adds, an absent `new` removes."""

    pointer: str
    reason: str
    old: Any = _ABSENT
    new: Any = _ABSENT


def load(path: Path) -> tuple[Patch, ...]:
    """The patches of a `patches.toml`; no file means no patch.

    Raises:
        BadInput: The file is not TOML, or an entry lacks `pointer` or `reason`, or has an unknown key.
    """
    if not path.exists():
        return ()
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"is not TOML: {error}", file=path) from None
    patches: list[Patch] = []
    for index, entry in enumerate(table.get("patch", [])):
        try:
            patches.append(Patch(**entry))
        except TypeError:
            raise BadInput(
                "a patch has the keys pointer, old, new and reason", file=path, pointer=f"/patch/{index}"
            ) from None
    return tuple(patches)


def apply(document: Schema, patches: tuple[Patch, ...]) -> Schema:
    """A patched copy of `document`.

    Raises:
        BadInput: A patch no longer fits, because what stands at its pointer is not `old`.
    """
    patched = copy.deepcopy(document)
    for patch in patches:
        _apply(patched, patch)
    return patched


def _apply(document: Schema, patch: Patch) -> None:
    *parents, last = json_pointer.split(patch.pointer)
    node: Any = document
    try:
        for token in parents:
            node = json_pointer.step(node, token)
        found = json_pointer.step(node, last)
    except KeyError:
        found = _ABSENT
    if found != patch.old or not isinstance(node, dict | list):
        raise BadInput(
            f"the patch expects {_say(patch.old)} but finds {_say(found)}",
            pointer=patch.pointer,
            fix="review the patch: upstream may have changed or corrected this place",
        )
    if isinstance(node, list):
        node[int(last)] = patch.new
    elif patch.new is _ABSENT:
        del node[last]
    else:
        node[last] = patch.new


def _say(value: Any) -> str:
    return "nothing" if value is _ABSENT else repr(value)
