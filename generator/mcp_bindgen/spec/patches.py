"""Reviewed corrections of known errors in upstream schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mcp_bindgen.json_schema.keywords import PROSE

from .canonical import same
from .errors import BadInput, locating
from .json import is_array, is_object, join, split, value_at
from .keywords import Schema
from .kinds import JSON, TEXT, TEXTS
from .toml import read_toml

_ABSENT: Any = object()
_KINDS = {"pointer": TEXT, "reason": TEXT, "revisions": TEXTS}


@dataclass(frozen=True)
class Patch:
    """Correction of an error: at `pointer`, `old` becomes `new`. An absent `old` adds, an absent `new` removes.

    Attributes:
        pointer: Place in the normalised schema, with definitions in `$defs`.
        reason: Why it is an error.
        revisions: Revisions with the error.
        old: Expected value; prose and the order of members are ignored.
        new: Corrected value.
    """

    pointer: str
    reason: str
    revisions: tuple[str, ...] = ()
    old: Any = _ABSENT
    new: Any = _ABSENT


@dataclass(frozen=True)
class Correction:
    """Corrected error in an external file.

    Attributes:
        file: The file.
        pointer: Place in the file.
        reason: Why it is an error.
    """

    file: str
    pointer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}#{self.pointer}: {self.reason}"


def load(path: Path) -> tuple[Patch, ...]:
    """Return the patches in a `patches.toml`; none if the file does not exist.

    Raises:
        BadInput: The file is not TOML, is not a list of patches, or a patch is incomplete.
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
    if not JSON.fits(entry):
        raise BadInput("holds a value that JSON has not", pointer=pointer, fix="use no dates, nan or inf")
    if not split(entry["pointer"]) or not {"old", "new"} & entry.keys():
        raise BadInput("the patch changes nothing", pointer=pointer, fix="give a place, and an old or a new value")
    return replace(Patch(**entry), revisions=tuple(entry.get("revisions", ())))


def apply(document: Schema, patches: Sequence[Patch], revision: str | None = None) -> tuple[Schema, tuple[Patch, ...]]:
    """Correct the known errors in `document`, in order.

    Args:
        document: A normalised schema, which does not change.
        patches: The known errata.
        revision: Revision of the document, if it is ours.

    Returns:
        The corrected document, and the applied patches.

    Raises:
        BadInput: A known error of `revision` is gone.
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
    """Return `node` with the correction at `tokens`; only the nodes on the path are copied."""
    token, *rest = tokens
    found = value_at(node, join("", token), _ABSENT)
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
    """Return the replacement of `found`, with its prose."""
    known = found is not _ABSENT and patch.old is not _ABSENT
    if not (same(found, patch.old, token) if known else found is patch.old):
        raise BadInput(f"the patch expects {_say(patch.old)} but finds {_say(found)}")
    if is_object(found) and is_object(patch.new):
        return {**{keyword: value for keyword, value in found.items() if keyword in PROSE}, **patch.new}
    return patch.new


def _key(node: Any, token: str) -> Any:
    """Return the Python key or index for `token` in `node`."""
    return int(token) if is_array(node) else token


def _say(value: Any) -> str:
    return "nothing" if value is _ABSENT else repr(value)
