"""Existing names that a misspelt name may mean; only mistakes need it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from itertools import islice

_LONGEST = 100  # characters of a name that is looked at
_MOST = 1000  # names that it is compared with
_CANDIDATES = 10  # of which the words are compared


def similar(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the names that a name may be a misspelling of, the nearest first.

    Words that both names begin or end with do not count: `list_tickets` is not similar to `list_statistics`.

    Args:
        name: The name that does not exist.
        known: The existing names.
        most: Maximum of names.
        cutoff: Minimum similarity of the whole names, from 0 to 1; higher to refuse a name, in place of advice.
    """
    near = get_close_matches(name[:_LONGEST], list(islice(known, _MOST)), _CANDIDATES, cutoff)
    return [other for other in near if _is_slip(name, other)][:most]


def _is_slip(*names: str) -> bool:
    """Return whether two names differ by one slip in three characters or by their order, or one has more words."""
    words, others = (re.split(r"[\W_]+", name[:_LONGEST].casefold()) for name in names)
    for end in (0, -1):
        while words and others and words[end] == others[end]:
            del words[end], others[end]
    one, other = "_".join(words), "_".join(others)
    steps = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    slips = sum(max(i2 - i1, j2 - j1) for step, i1, i2, j1, j2 in steps if step != "equal")
    return not (one and other) or sorted(one) == sorted(other) or slips <= max(len(one), len(other), 3) // 3
