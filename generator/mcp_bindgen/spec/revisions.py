"""`revisions.toml`: which revisions there are and what each one was made from."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import tomlkit

from .errors import BadInput


@dataclass(frozen=True)
class Pin:
    """Where the structure of one revision comes from.

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
    """The pins of a `revisions.toml`, oldest first.

    Raises:
        BadInput: The file is missing or is not TOML, or an entry lacks a key.
    """
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", file=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"is not TOML: {error}", file=path) from None
    try:
        return {name: Pin(name=name, **table[name]) for name in sorted(table)}
    except TypeError as error:
        raise BadInput(f"has an incomplete entry: {error}", file=path) from None


def save(path: Path, pin: Pin) -> None:
    """Adds or replaces one entry and leaves the rest of the file, comments included, as it is."""
    document = tomlkit.parse(path.read_text("utf-8")) if path.exists() else tomlkit.document()
    values = asdict(pin)
    entry = tomlkit.table()
    for key in ("era", "status", "date", "commit", "sha256", "structure"):
        entry.add(key, values[key])
    if pin.name in document:
        document[pin.name] = entry
    else:
        document.add(tomlkit.nl())
        document.add(pin.name, entry)
    path.write_text(tomlkit.dumps(document), "utf-8")


def unknown(name: str, known: Iterable[str]) -> BadInput:
    """The error for a revision that does not exist, with the nearest one that does."""
    choices = list(known)
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0)
    hint = f"did you mean {near[0]}? " if near else ""
    return BadInput(f"there is no revision {name!r}", fix=f"{hint}known: {', '.join(choices)}")
