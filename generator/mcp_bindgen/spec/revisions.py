"""Names of revisions: their order, form and errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from .errors import BadInput, suggestion

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME = re.compile(r"[A-Za-z0-9]+([._-][A-Za-z0-9]+)*")
_MAX_NAME_LENGTH = 64
_TO_COME = "~"  # sorts after every date


def order(name: str) -> tuple[str, bool, str]:
    """Return the sort key of a revision: its date, with drafts of a date before it and undated drafts last."""
    dated = _dated(name)
    return dated, name == dated, name


def has_reached(name: str, first: str) -> bool:
    """Return whether a revision is `first` or later; undated drafts are later than every date."""
    return _dated(name) >= first


def _dated(name: str) -> str:
    found = _DATE.match(name)
    return found[0] if found else _TO_COME


def is_date(name: str) -> bool:
    """Return whether a name has the form of a released revision."""
    return _DATE.fullmatch(name) is not None


def check_name(name: str, *, draft: bool) -> date | None:
    """Return the date that is the name of a revision, or `None` for a draft with another name.

    Raises:
        BadInput: The name is not valid, or the name of a released revision is not a date.
    """
    if is_date(name):
        try:
            return date.fromisoformat(name)
        except ValueError:
            raise BadInput(f"{name!r} is not a date", fix="name a revision like 2025-11-25") from None
    if not _NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        raise BadInput(
            f"{name!r} is not the name of a revision",
            fix=f"use up to {_MAX_NAME_LENGTH} letters and digits with single . _ - between them, as in 2027-01-15-rc1",
        )
    if not draft:
        raise BadInput(
            f"{name!r} is not a date, and a released revision is named by its date",
            fix="name it like 2025-11-25, or say --status draft",
        )
    return None


def unknown(name: str, known: Iterable[str]) -> BadInput:
    """Return the error for an unknown revision, with the nearest known name."""
    return BadInput(f"there is no revision {name!r}", fix=suggestion(name, known))
