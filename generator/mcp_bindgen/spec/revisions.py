"""Read and revise `revisions.toml`: which revisions there are and what each one was made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .errors import BadInput, locating, suggestion
from .json import is_object
from .toml import read_toml

_KEYS = ("era", "status", "date", "commit", "sha256", "structure")


@dataclass(frozen=True)
class Pin:
    """The origin of the structure of one revision.

    Attributes:
        name: The revision's date, e.g. `2025-11-25`.
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
    """Return the pins of a `revisions.toml`, oldest first.

    Raises:
        BadInput: The file is missing or is not TOML, or an entry is not complete.
    """
    table = read_toml(path)
    with locating(path):
        return {name: _pin(name, table[name]) for name in sorted(table)}


def _pin(name: str, entry: Any) -> Pin:
    if not is_object(entry) or entry.keys() != set(_KEYS) or not all(isinstance(entry[key], str) for key in _KEYS):
        raise BadInput(f"the entry of {name!r} is not complete", fix=f"give it the strings {', '.join(_KEYS)}")
    return Pin(name=name, **entry)


def revised(path: Path, pin: Pin) -> str:
    """Return the text of a `revisions.toml` with one entry added or replaced; all else is as it was.

    Raises:
        BadInput: The file is damaged.
    """
    import tomlkit  # takes time to load, and only an import needs it

    document = tomlkit.document()
    if path.exists():
        load(path)
        document = tomlkit.parse(path.read_text("utf-8"))
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


def unknown(name: str, known: Iterable[str]) -> BadInput:
    """Return the error for a revision that does not exist, with the nearest one that does."""
    return BadInput(f"there is no revision {name!r}", fix=suggestion(name, known, cutoff=0))
