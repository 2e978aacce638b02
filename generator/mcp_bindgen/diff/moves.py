"""Recognise renamed and moved members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mcp_bindgen.ir.model import Field, Type
from mcp_bindgen.ir.naming import words

from .location import NEW, OLD, Change, root
from .normalize import Normalizer

Forms = tuple[Normalizer, Normalizer]


def renamed_fields(gone: Sequence[Field], come: Sequence[Field], forms: Forms) -> list[tuple[Field, Field]]:
    """Pair members with similar names, equal types and equal requiredness, if the pair is unique."""
    close = [
        (before, after)
        for before in gone
        for after in come
        if before.required == after.required
        and _is_same(before.type, after.type, forms)
        and akin(before.wire, after.wire)
    ]
    return [
        (before, after) for before, after in close if sum(before is pair[0] or after is pair[1] for pair in close) == 1
    ]


def akin(one: str, other: str) -> bool:
    """Return whether two names share at least half of their words, such as `ttl` and `ttlMs`."""
    mine, theirs = ({word.lower() for word in words(name)} for name in (one, other))
    return 2 * len(mine & theirs) >= max(len(mine), len(theirs)) and bool(mine & theirs)


def with_moves(changes: Sequence[Change], forms: Forms) -> list[Change]:
    """Return `changes` with each removal and addition that form a move as one change.

    A member has moved if there is one removal and one addition with the same name and type.
    """
    removed, added = _once(changes, "field-removed-"), _once(changes, "field-added-")
    merged: dict[int, Change | None] = {}
    for wire in removed.keys() & added.keys():
        was, now = removed[wire], added[wire]
        if _is_move(was, now, forms):
            parts = "field-moved", was.rule, now.rule
            moved = replace(
                now, rule="field-moved", descriptions=(was.subject, now.subject), parts=parts, in_place=None
            )
            merged |= {id(was): None, id(now): moved}
    return [kept for change in changes if (kept := merged.get(id(change), change)) is not None]


def _once(changes: Sequence[Change], rule: str) -> dict[str, Change]:
    """Return member -> change, for members with a single change."""
    found = [change for change in changes if change.rule.startswith(rule)]
    count = Counter(change.location.step for change in found)
    return {change.location.step[1]: change for change in found if count[change.location.step] == 1}


def _is_move(removed: Change, added: Change, forms: Forms) -> bool:
    if removed.rule.removeprefix("field-removed-") != added.rule.removeprefix("field-added-"):
        return False
    return _is_same(removed.types[OLD], added.types[NEW], forms) and root(removed.subject) == root(added.subject)


def _is_same(old: Type | None, new: Type | None, forms: Forms) -> bool:
    return old is not None and new is not None and forms[OLD].key(old) == forms[NEW].key(new)
