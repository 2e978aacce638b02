"""Recognise a member that moved to another place: gone once, come once, with the same name and the same type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from mcp_bindgen.protocol.model import Type

from .location import Change
from .normalize import Normalizer


def with_moves(changes: Sequence[Change], old: Normalizer, new: Normalizer) -> list[Change]:
    """Return `changes`, in which a removal and an addition that are one move are one change."""
    gone: dict[str, list[Change]] = defaultdict(list)
    come: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.rule.startswith("field-removed-"):
            gone[change.location.step[1]].append(change)
        elif change.rule.startswith("field-added-"):
            come[change.location.step[1]].append(change)
    merged: dict[int, Change | None] = {}
    for wire, removed in gone.items():
        added = come.get(wire, [])
        if len(removed) == len(added) == 1 and _is_move(removed[0], added[0], old, new):
            merged[id(removed[0])] = None
            parts = removed[0].rule, added[0].rule
            merged[id(added[0])] = replace(
                added[0], rule="field-moved", old=removed[0].subject, new=added[0].subject, parts=parts
            )
    return [kept for change in changes if (kept := merged.get(id(change), change)) is not None]


def _is_move(removed: Change, added: Change, old: Normalizer, new: Normalizer) -> bool:
    if removed.rule.removeprefix("field-removed-") != added.rule.removeprefix("field-added-"):
        return False
    return _key(removed.old_type, old) == _key(added.new_type, new) and _root(removed) == _root(added)


def _key(type: Type | None, normalizer: Normalizer) -> object:
    assert type is not None
    return normalizer.key(type)


def _root(change: Change) -> str:
    """Return the definition that a subject begins with."""
    name = change.subject
    for mark in ".[{|":
        name = name.partition(mark)[0]
    return name
