"""Read and revise `revisions.toml`: which revisions there are and what each one was made from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadInput, locating, suggestion
from .json import is_object
from .toml import read_toml

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

_KEYS = ("era", "status", "date", "commit", "sha256", "structure")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAME = re.compile(r"[A-Za-z0-9]+([._-][A-Za-z0-9]+)*")
_LONGEST = 64
_TO_COME = "~"  # sorts after every date


@dataclass(frozen=True)
class Pin:
    """The origin of the structure of one revision.

    Attributes:
        name: The revision's date, e.g. `2025-11-25`; a draft may have any other name.
        era: `stateful` (initialize handshake) or `stateless` (metadata on every request).
        status: `released` or `draft`.
        date: The day on which upstream last changed the file.
        commit: The upstream commit of that file.
        sha256: Digest of the file's bytes.
        structure: Digest of its canonical structure, before patches.
    """

    name: str
    era: str
    status: str
    date: str
    commit: str
    sha256: str
    structure: str


def load(path: Path) -> dict[str, Pin]:
    """Return the pins of a `revisions.toml`, in `order`.

    Raises:
        BadInput: The file is missing or is not TOML, or an entry is not complete.
    """
    table = read_toml(path)
    with locating(path):
        return {name: _pin(name, table[name]) for name in sorted(table, key=order)}


def _pin(name: str, entry: Any) -> Pin:
    if not is_object(entry) or entry.keys() != set(_KEYS) or not all(isinstance(entry[key], str) for key in _KEYS):
        raise BadInput(f"the entry of {name!r} is not complete", fix=f"give it the strings {', '.join(_KEYS)}")
    check_name(name, draft=True)  # it is also the name of a folder
    return Pin(name=name, **entry)


def order(name: str) -> tuple[str, bool, str]:
    """Return the key that sorts revisions: by date, drafts of a date before it, those without a date at the end."""
    dated = _dated(name)
    return dated, name == dated, name


def has_reached(name: str, first: str) -> bool:
    """Return whether what began with the revision `first` holds in another one; without a date it is yet to come."""
    return _dated(name) >= first


def _dated(name: str) -> str:
    found = _DATE.match(name)
    return found[0] if found else _TO_COME


def is_date(name: str) -> bool:
    """Return whether a name looks like that of a released revision."""
    return _DATE.fullmatch(name) is not None


def check_name(name: str, *, draft: bool) -> date | None:
    """Return the date that a revision is named after, `None` for a draft with another name.

    Raises:
        BadInput: It is not the name of a revision, or a released one is not named after its date.
    """
    if is_date(name):
        try:
            return date.fromisoformat(name)
        except ValueError:
            raise BadInput(f"{name!r} is not a date", fix="name a revision like 2025-11-25") from None
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise BadInput(
            f"{name!r} is not the name of a revision",
            fix=f"use up to {_LONGEST} letters and digits, with single . _ - between them, as in 2027-01-15-rc1",
        )
    if not draft:
        raise BadInput(
            f"{name!r} is not a date, as the names of released revisions are",
            fix="name it like 2025-11-25, or say --status draft",
        )
    return None


def revised(path: Path, pin: Pin) -> str:
    """Return the text of a `revisions.toml` with one entry added or replaced; all else is as it was.

    Raises:
        BadInput: The file is damaged.
    """
    import tomlkit  # takes time to load, and only an import needs it

    document = _parsed(path)
    values = asdict(pin)
    entry = tomlkit.table()
    for key in _KEYS:
        entry.add(key, values[key])
    if pin.name in document:
        document[pin.name] = entry
    else:
        document.add(tomlkit.nl())
        document.add(pin.name, entry)
    return tomlkit.dumps(document)


def without(path: Path, name: str) -> str:
    """Return the text of a `revisions.toml` without one entry; raise `BadInput` when the file is damaged."""
    document = _parsed(path)
    del document[name]
    return document.as_string().rstrip("\n") + "\n"


def _parsed(path: Path) -> TOMLDocument:
    import tomlkit

    if not path.exists():
        return tomlkit.document()
    load(path)
    return tomlkit.parse(path.read_text("utf-8"))


def unknown(name: str, known: Iterable[str]) -> BadInput:
    """Return the error for a revision that does not exist, with the nearest one that does."""
    return BadInput(f"there is no revision {name!r}", fix=suggestion(name, known, cutoff=0))
