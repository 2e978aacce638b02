"""Recognise renamed and moved members."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mcp_bindgen.ir.model import Field, Type
from mcp_bindgen.ir.naming import words

from .location import HOW, NEW, OLD, SIDES, Change, root
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

    A member has moved if there is one removal and one addition with the same name and type, or if it stands in an
    object that only one side has in the same place. Such an object with other members is a change of its own.
    """
    removed, added = (_once(changes, how) for how in HOW)
    merged: dict[int, Change | None] = {}
    for wire in removed.keys() & added.keys():
        was, now = removed[wire], added[wire]
        is_alike = was.rule.rpartition("-")[2] == now.rule.rpartition("-")[2] and root(was.subject) == root(now.subject)
        if is_alike and _is_same(was.types[OLD], now.types[NEW], forms):
            parts = "field-moved", was.rule, now.rule
            moved = replace(
                now, rule="field-moved", descriptions=(was.subject, now.subject), parts=parts, in_place=None
            )
            merged |= {id(was): None, id(now): moved}
    inner: defaultdict[int, set[str]] = defaultdict(set)
    for whole, part, moved in _inner_moves([change for change in changes if id(change) not in merged], forms):
        merged[id(part)] = moved
        inner[id(whole)].add(part.location.step[1])
        side = OLD if whole.types[NEW] is None else NEW
        if inner[id(whole)] == {member.wire for member in forms[side].protocol.fields_of(whole.types[side])}:
            merged[id(whole)] = None
    return [kept for change in changes if (kept := merged.get(id(change), change)) is not None]


def _inner_moves(changes: Sequence[Change], forms: Forms) -> Iterator[tuple[Change, Change, Change]]:
    """Yield an object of one side only, a member of the other side that stands in it, and the move of the member."""
    for side, part in [(one, part) for one in SIDES for part in _members(changes, HOW[1 - one])]:
        wire, protocol = part.location.step[1], forms[side].protocol
        holders = [
            (whole, field)
            for whole in _members(changes, HOW[side])
            if whole.location.above is part.location.above and (field := protocol.field_of(whole.types[side], wire))
        ]
        if len(holders) != 1:
            continue
        ((whole, field),) = holders
        old, new = (field.type, part.types[NEW]) if side == OLD else (part.types[OLD], field.type)
        if _is_same(old, new, forms):
            place = whole.location.below("field", wire, field.type, field.type)
            required = field.required and whole.rule.endswith("-required")
            rules = part.rule, f"field-{HOW[side]}-{'required' if required else 'optional'}"
            places = (place, part.location)[:: 1 if side == OLD else -1]
            subjects = places[OLD].subject, places[NEW].subject
            yield whole, part, Change("field-moved", places[NEW], subjects, (old, new), ("field-moved", *rules))


def _members(changes: Sequence[Change], how: str) -> list[Change]:
    """Return the changes that remove or add a member."""
    return [change for change in changes if change.rule.startswith(f"field-{how}-")]


def _once(changes: Sequence[Change], how: str) -> dict[str, Change]:
    """Return member -> change, for members that are removed or added in one place."""
    found = _members(changes, how)
    count = Counter(change.location.step for change in found)
    return {change.location.step[1]: change for change in found if count[change.location.step] == 1}


def _is_same(old: Type | None, new: Type | None, forms: Forms) -> bool:
    return old is not None and new is not None and forms[OLD].key(old) == forms[NEW].key(new)
