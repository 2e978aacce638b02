"""Find JSON text without which an edit changes nothing, so that bytes need not be parsed to know it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from .edits import Apply, Cases, Check, Each, Edit, Members, Named, Sequence, Test, Try

Texts = frozenset[bytes]

_OPENINGS = {"array": b"[", "object": b"{", "string": b'"', "null": b"null"}


def prefilter(edit: Edit, named: Mapping[Named, Edit]) -> tuple[bytes, ...]:
    """Return pieces of compact JSON of which any value that `edit` changes holds one; none where it may change any."""
    found = _texts(edit, named, b"", b"", ()) or frozenset()
    return tuple(sorted(one for one in found if not any(other in one for other in found if other != one)))


def _texts(
    edit: Edit, named: Mapping[Named, Edit], near: bytes, before: bytes, above: tuple[Named, ...]
) -> Texts | None:
    """Return the texts of an edit; `None` if no text is certain.

    Args:
        edit: The edit.
        named: Definition -> edit.
        near: Text that is there wherever the edit is reached; empty where there is none.
        before: Text that stands right before the value, likewise.
        above: The definitions that the edit is in.
    """
    match edit:
        case Apply(required_text=required_text):
            text = required_text.encode() or near
            return frozenset({text}) if text else None
        case Check():
            return frozenset({near}) if near else None
        case Named():
            inner = named[edit]
            return frozenset() if edit in above else _texts(inner, named, near, before, (*above, edit))
        case Try(inner):
            return _texts(inner, named, near, before, above)
        case Sequence(edits):
            return _united(_texts(one, named, near, before, above) for one in edits)
        case Each(inner, values):
            opening = b"{" if values else b"["
            return _texts(inner, named, before + opening if before else near, b":" if values else b"", above)
        case Cases(pairs, rest):
            cases = [(_text(case.test, near, before), case.edit) for case in pairs] + [(near, rest)]
            return _united(_texts(one, named, text, b"", above) for text, one in cases if one is not None)
        case Members(edits, fills, drops, _, moves, wants, only):
            if fills or wants or only:
                return frozenset({near}) if near else None
            members = [*drops, *(str(move.applied.rule.take[0]) for move in moves)]
            parts = [_texts(one, named, _member(name), _member(name), above) for name, one in edits]
            return _united([*parts, frozenset(map(_member, members))])


def _united(parts: Iterable[Texts | None]) -> Texts | None:
    found: Texts = frozenset()
    for part in parts:
        if part is None:
            return None
        found |= part
    return found


def _member(name: str, value: object = None) -> bytes:
    """Return how a member begins in compact JSON."""
    text = f"{json.dumps(name, ensure_ascii=False)}:"
    return (text + json.dumps(value, ensure_ascii=False) if value is not None else text).encode()


def _text(test: Test, near: bytes, before: bytes) -> bytes:
    """Return text of every value that passes a test and stands where `near` and `before` are."""
    if test.member:
        return _member(test.member, test.value)
    opening = _OPENINGS.get(test.kind, b"")
    return before + opening if before and opening else near
