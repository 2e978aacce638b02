"""Existing names that a misspelt name may mean; only mistakes need it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
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
    """Return whether two names differ by one slip in three characters, or by words that one of them has in addition."""
    words, others = (re.split(r"[\W_]+", name[:_LONGEST].casefold()) for name in names)
    for end in (0, -1):
        while words and others and words[end] == others[end]:
            del words[end], others[end]
    one, other = "_".join(words), "_".join(others)
    return not one or not other or _edits(one, other) <= max(len(one), len(other), 3) // 3


def _edits(one: str, other: str) -> int:
    """Return the least number of characters to add, remove, replace, or swap with the next one."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, 1):
        row, last = [i], rows[-1]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (a != b))
            is_swap = i > 1 and j > 1 and (a, b) == (other[j - 2], one[i - 2])
            row.append(min(cost, rows[-2][j - 2] + 1) if is_swap else cost)
        rows.append(row)
    return rows[-1][-1]
