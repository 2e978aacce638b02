"""Apply the ledger of known mistakes: reviewed corrections of what upstream publishes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from .canonical import same
from .errors import BadInput, locating
from .json import is_array, is_object
from .keywords import PROSE, Schema
from .kinds import TEXT, TEXTS
from .pointer import join, split, step
from .toml import read_toml

_ABSENT: Any = object()
_KINDS = {"pointer": TEXT, "reason": TEXT, "revisions": TEXTS}


@dataclass(frozen=True)
class Patch:
    """The correction of a mistake: at `pointer`, `old` becomes `new`. An absent `old` adds, an absent `new` removes.

    Attributes:
        pointer: A place in the normalised schema, which has `$defs` whatever the file has.
        reason: Why it is a mistake.
        revisions: Those that are known to have it.
        old: What is expected there; prose and the order of members do not count.
        new: What it should be.
    """

    pointer: str
    reason: str
    revisions: tuple[str, ...] = ()
    old: Any = _ABSENT
    new: Any = _ABSENT


@dataclass(frozen=True)
class Correction:
    """A known mistake that was found in a file from outside, and corrected.

    Attributes:
        file: The file.
        pointer: The place in it.
        reason: Why it is a mistake.
    """

    file: str
    pointer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}#{self.pointer}: {self.reason}"


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
    names = [field.name for field in fields(Patch)]
    if not is_object(entry) or not entry.keys() <= set(names) or not {"pointer", "reason"} <= entry.keys():
        raise BadInput("is not a patch", pointer=pointer, fix=f"give it the keys {', '.join(names)}")
    for name, kind in _KINDS.items():
        if name in entry:
            kind.check(entry[name], name, join(pointer, name))
    try:
        json.dumps(entry, allow_nan=False)
    except (TypeError, ValueError):
        raise BadInput("holds a value that JSON has not", pointer=pointer, fix="use no dates, nan or inf") from None
    if not split(entry["pointer"]) or not {"old", "new"} & entry.keys():
        raise BadInput("the patch changes nothing", pointer=pointer, fix="name a place, and what is old or new")
    return replace(Patch(**entry), revisions=tuple(entry.get("revisions", ())))


def apply(document: Schema, patches: Sequence[Patch], revision: str | None = None) -> tuple[Schema, tuple[Patch, ...]]:
    """Correct the mistakes that are found in `document`, one after the other.

    Args:
        document: A normalised schema; it is not changed.
        patches: The ledger.
        revision: The revision that the document is of, if it is one of ours.

    Returns:
        The corrected document, and the patches that found what they expect.

    Raises:
        BadInput: A mistake that `revision` is known to have is not there.
    """
    applied: list[Patch] = []
    for patch in patches:
        try:
            document = _patched(document, split(patch.pointer), patch)
        except BadInput as misfit:
            if revision in patch.revisions:
                raise BadInput(
                    f"{misfit.message} in {revision}",
                    pointer=patch.pointer,
                    fix="review the patch: upstream may have corrected this place, and then its revisions are fewer",
                ) from None
        else:
            applied.append(patch)
    return document, tuple(applied)


def _patched(node: Any, tokens: Sequence[str], patch: Patch) -> Any:
    """Return `node` with the correction made where `tokens` lead; only what is on the way there is copied."""
    token, *rest = tokens
    found = _below(node, token)
    new = _patched(found, rest, patch) if rest else _corrected(found, token, patch)
    if found is _ABSENT and not is_object(node):
        raise BadInput("the patch adds a member where there is no object")
    copy = node.copy()
    if new is _ABSENT:
        del copy[_key(node, token)]
    else:
        copy[_key(node, token)] = new
    return copy


def _corrected(found: Any, token: str, patch: Patch) -> Any:
    """Return what takes the place of `found`, with its prose."""
    known = found is not _ABSENT and patch.old is not _ABSENT
    if not (same(found, patch.old, token) if known else found is patch.old):
        raise BadInput(f"the patch expects {_say(patch.old)} but finds {_say(found)}")
    if is_object(found) and is_object(patch.new):
        return {**{keyword: value for keyword, value in found.items() if keyword in PROSE}, **patch.new}
    return patch.new


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
