"""Generate a package, unless what is there was made of the same by the same."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from mcp_bindgen.spec.errors import locating

from .trial import try_import
from .writer import check_foreign, present, write

_RECORD = Path("__pycache__", "mcp-bindgen.json")
"""What a package was made of, among other files that nobody keeps: without it, a package is generated once more."""

_TOOLS = ("black", "datamodel-code-generator", "jinja2", "pydantic")


@dataclass(frozen=True)
class Update:
    """What became of a package: how many files it has, and whether any of them changed."""

    files: int
    changed: bool


class Generated(Protocol):
    """A folder of generated files, and what they follow from."""

    @property
    def folder(self) -> Path:
        """The folder that they go to."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """All that they follow from, beside the generator."""
        ...

    @property
    def file(self) -> Path | str | None:
        """The name of their source in errors."""
        ...

    def render(self) -> dict[str, str]:
        """Return the files; raises `BadInput` where the source breaks a convention."""
        ...


def update(target: Generated, *, force: bool = False, trial: bool = False) -> Update:
    """Make the package of `target` what its schema says.

    Args:
        target: The package.
        force: Whether files that are not ours may be replaced.
        trial: Whether its modules are imported before they take the place of others.

    Raises:
        BadInput: The schema breaks a convention, the modules cannot be imported, or the folder cannot be written.
    """
    check_foreign(target.folder, force=force)
    made_of, there = _inputs(target), present(target.folder)
    if _read(target.folder) == [made_of, _digest(there)]:
        return Update(len(there), changed=False)
    files = target.render()
    if trial:
        with locating(target.file):
            try_import(files)
    changed = write(target.folder, files, force=force)
    _remember(target.folder, [made_of, _digest({name: text.encode() for name, text in files.items()})])
    return Update(len(files), changed)


def _inputs(target: Generated) -> str:
    """Return a digest of everything that the files of a package follow from."""
    parts = (*target.inputs, _generator())
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _generator() -> str:
    """Return a digest of the generator, of the runtime that it asks, and of the versions of what it is made with."""
    found = sha256(" ".join([sys.version, *map(version, _TOOLS)]).encode())
    for root in _sources():
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc" and path.parent.name != "__pycache__":
                found.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def _sources() -> list[Path]:
    here, runtime = Path(__file__).parent, find_spec("mcp_bindgen.runtime")
    places = (runtime and runtime.submodule_search_locations) or ()
    return [here.parent / "spec", here.parent / "protocol", here.parent / "bridge", here, *map(Path, places)]


def _digest(files: Mapping[str, bytes]) -> str:
    found = sha256()
    for name, content in sorted(files.items()):
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def _read(folder: Path) -> object:
    try:
        return json.loads((folder / _RECORD).read_bytes())
    except (OSError, ValueError):
        return None


def _remember(folder: Path, record: list[str]) -> None:
    """Write the record, also where Python writes no compiled modules; a package is complete without it."""
    path = folder / _RECORD
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(record), "utf-8")
        fresh.replace(path)
