"""Pins of imported structures, in the tables `revisions.toml` and `extensions.toml` of a schema folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import revisions
from .errors import BadInput, locating
from .extension import check_id
from .json import is_object, join
from .toml import read_toml

REVISIONS, EXTENSIONS = "revisions.toml", "extensions.toml"
_SHARED = ("status", "date", "source", "sha256", "structure")
_KEYS = {REVISIONS: ("era", *_SHARED), EXTENSIONS: _SHARED}


@dataclass(frozen=True)
class Pin:
    """Origin of the structure of a revision, or of one version of an extension.

    Attributes:
        name: The revision, e.g. `2025-11-25`, or the version of the extension. A draft may have any name.
        status: `released` or `draft`.
        date: Day of the last upstream change of the file.
        source: Upstream commit of the file, or repository and commit, or package and version.
        sha256: Digest of the bytes of the file.
        structure: Digest of the canonical structure, before patches.
        era: `stateful` or `stateless`; empty for an extension.
        id: Id of the extension; empty for a revision.
    """

    name: str
    status: str
    date: str
    source: str
    sha256: str
    structure: str
    era: str = ""
    id: str = ""

    @property
    def label(self) -> str:
        """The name on the command line: a revision, or `ID@VERSION`."""
        return f"{self.id}@{self.name}" if self.id else self.name

    @property
    def path(self) -> str:
        """The folder of its files, relative to the schema folder."""
        return f"extensions/{self.id}/{self.name}" if self.id else self.name

    @property
    def table(self) -> str:
        """The file with this pin, relative to the schema folder."""
        return EXTENSIONS if self.id else REVISIONS


def load(folder: Path, table: str) -> list[Pin]:
    """Return the pins of a table in a schema folder: by id, then by date, with undated drafts last.

    Raises:
        BadInput: The file is missing or is not TOML, or an entry is incomplete.
    """
    path = folder / table
    content = read_toml(path)
    with locating(path):
        pins = [_pin(table, *one) for one in _entries(table, content)]
    return sorted(pins, key=lambda pin: (pin.id, revisions.order(pin.name)))


def _entries(table: str, content: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield id, name and entry of each pin."""
    if table == REVISIONS:
        yield from (("", name, entry) for name, entry in content.items())
        return
    for id, versions in content.items():
        check_id(id)
        if not is_object(versions):
            raise BadInput("is not a table", pointer=join("", id), fix="write its versions as tables")
        yield from ((id, version, entry) for version, entry in versions.items())


def _pin(table: str, id: str, name: str, entry: Any) -> Pin:
    keys = _KEYS[table]
    if not is_object(entry) or entry.keys() != set(keys) or not all(isinstance(entry[key], str) for key in keys):
        label = f"{id}@{name}" if id else repr(name)
        raise BadInput(f"the entry of {label} is not complete", fix=f"give it the strings {', '.join(keys)}")
    revisions.check_name(name, draft=True)  # it is also the name of a folder
    return Pin(name=name, id=id, **entry)


def revised(folder: Path, pin: Pin, *, is_removed: bool = False) -> str:
    """Return the text of the table of `pin` after adding, replacing or removing the pin; other lines are unchanged.

    Raises:
        BadInput: The file is damaged.
    """
    import tomlkit  # slow to load, and only changes of a folder need it

    path = folder / pin.table
    document: Any = tomlkit.document()
    if path.exists():
        load(folder, pin.table)
        document = tomlkit.parse(path.read_text("utf-8"))
    if pin.id and pin.id not in document:
        document.add(pin.id, tomlkit.table(is_super_table=True))
    parent = document[pin.id] if pin.id else document
    if is_removed:
        del parent[pin.name]
        if pin.id and not parent:
            del document[pin.id]
        return str(document.as_string()).strip("\n") + "\n"
    entry = tomlkit.table()
    values = asdict(pin)
    for key in _KEYS[pin.table]:
        entry.add(key, values[key])
    if not pin.id and pin.name not in document:
        if document:
            document.add(tomlkit.nl())
        document.add(pin.name, entry)
    else:
        parent[pin.name] = entry
    return tomlkit.dumps(document)
