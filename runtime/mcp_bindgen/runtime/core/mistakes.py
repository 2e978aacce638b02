"""Say of a mistake where it is, and what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

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


def place_of(function: Callable[..., Any]) -> str:
    """Return the file and line of a function, also of one that is bound or wrapped."""
    inner: Any = inspect.unwrap(function)
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    return "unknown place" if code is None else f"{code.co_filename}:{code.co_firstlineno}"
