"""Suggest what a name that does not exist was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_LONGEST = 100  # characters of a name that is looked at
_MOST = 1000  # names that it is compared with


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """Return `; did you mean 'x'?` for the nearest of some names, or nothing.

    Args:
        name: The name that does not exist.
        known: Those that do.
        cutoff: How near it must be, from 0 to 1.
    """
    from difflib import get_close_matches  # only who is mistaken waits for the import

    near = get_close_matches(name[:_LONGEST], list(islice(known, _MOST)), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""
