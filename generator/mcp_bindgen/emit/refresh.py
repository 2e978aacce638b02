"""Generate a package, unless its files already follow from the same inputs and the same generator."""

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

from .emitter import Emitter, Target
from .writer import check_foreign, present, write


@dataclass(frozen=True)
class Update:
    """Outcome of `update`.

    Attributes:
        files: Number of files in the package.
        changed: True if any of them changed.
    """

    files: int
    changed: bool


def update(target: Target, *, force: bool = False) -> Update:
    """Generate a package if its inputs, the generator or its files have changed.

    Args:
        target: The package.
        force: True to replace files that were not generated.

    Raises:
        BadInput: The schema breaks a convention, the files cannot be used, or the folder cannot be written.
    """
    check_foreign(target.folder, force=force)
    inputs, there = _inputs(target), present(target.folder)
    record = target.folder / target.emitter.record if target.emitter.record else None
    if record is not None and _read(record) == [inputs, _digest(there)]:
        return Update(len(there), changed=False)
    files = target.render()
    target.check_files(files)
    changed = write(target.folder, files, force=force)
    if record is not None:
        _remember(record, [inputs, _digest({name: text.encode() for name, text in files.items()})])
    return Update(len(files), changed)


def _inputs(target: Target) -> str:
    """Return a digest of all inputs of a package."""
    parts = (*target.inputs, _generator(target.emitter))
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _generator(emitter: Emitter) -> str:
    """Return a digest of the generator, of the emitter, and of the code and versions that shape the emitter's text."""
    found = sha256(" ".join([sys.version, *map(version, emitter.made_with)]).encode())
    for root in _sources(emitter):
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and path.suffix != ".pyc" and path.parent.name != "__pycache__":
                found.update(f"\0{path.relative_to(root)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def _sources(emitter: Emitter) -> list[Path]:
    """Return the files and folders of code that generated text follows from."""
    here = Path(__file__).parent
    specs = map(find_spec, emitter.modules)
    packages = (Path(place) for spec in specs for place in (spec and spec.submodule_search_locations) or ())
    own = [*here.glob("*.py"), *(here.parent / name for name in ("spec", "ir", "conversion"))]
    return [*own, *emitter.sources, *packages]


def _digest(files: Mapping[str, bytes]) -> str:
    found = sha256()
    for name, content in sorted(files.items()):
        found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def _read(record: Path) -> object:
    try:
        return json.loads(record.read_bytes())
    except (OSError, ValueError):
        return None


def _remember(record: Path, digests: list[str]) -> None:
    """Write a record; a package is complete without it."""
    with suppress(OSError):
        record.parent.mkdir(exist_ok=True)
        fresh = record.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(digests), "utf-8")
        fresh.replace(record)
