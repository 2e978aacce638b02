"""Recognise a member that was renamed: the same type, equally required, and a name that says the same."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_bindgen.protocol.model import Field
from mcp_bindgen.protocol.naming import words

from .normalize import Normalizer


def renamed_fields(
    gone: Sequence[Field], come: Sequence[Field], old: Normalizer, new: Normalizer
) -> list[tuple[Field, Field]]:
    """Pair of members of which one is gone and the other has come, where no other pair would do as well."""
    close = [
        (before, after)
        for before in gone
        for after in come
        if before.required == after.required
        and old.key(before.type) == new.key(after.type)
        and _akin(before.wire, after.wire)
    ]
    return [
        (before, after) for before, after in close if sum(before is pair[0] or after is pair[1] for pair in close) == 1
    ]


def _akin(one: str, other: str) -> bool:
    """Return whether two names share at least half of their words, such as `ttl` and `ttlMs`."""
    mine, theirs = ({word.lower() for word in words(name)} for name in (one, other))
    return 2 * len(mine & theirs) >= max(len(mine), len(theirs)) and bool(mine & theirs)
