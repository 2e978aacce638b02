"""Say of a mistake where it is, and what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

_LONGEST = 100  # characters of a name that is looked at
_MOST = 1000  # names that it is compared with


class WrongResult(TypeError):
    """A handler returned what is no result of its method, or not what a contract says.

    Args:
        reason: What is wrong.
        function: The handler; the error has its file and line.

    Attributes:
        told: The same for callers, who learn of the place only the name of the file, and the line.
    """

    def __init__(self, reason: str, function: Callable[..., Any] | None = None) -> None:
        place = "" if function is None else place_of(function)
        super().__init__(f"{reason} ({place})" if place else reason)
        self.told = f"{reason} ({Path(place).name})" if place else reason


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
