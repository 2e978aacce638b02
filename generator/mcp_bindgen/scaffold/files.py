"""Put a new project in place, and show its files as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.transaction import Change, put


def write_new(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a new project: all of them or none; raise `BadInput` if the folder is occupied."""
    refuse_occupied(folder)
    put(folder, {name: Change(None, text.encode()) for name, text in files.items()})


def refuse_occupied(folder: Path) -> None:
    """Raise `BadInput` if a folder has no room for a new project."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput("is no folder", file=folder, fix="choose another name, or another --out")
    if folder.is_dir() and any(folder.iterdir()):
        raise BadInput("is not empty", file=folder, fix="choose another name, or another --out")


def tree(root: str, paths: Iterable[str]) -> Iterator[str]:
    """Return `paths` below `root` as a tree, line by line."""
    yield f"{root}/"
    yield from _branches([tuple(path.split("/")) for path in paths], "")


def _branches(paths: list[tuple[str, ...]], margin: str) -> Iterator[str]:
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).extend([tuple(rest)] if rest else [])
    names = sorted(below, key=lambda name: (not below[name], name))
    for name in names:
        last = name == names[-1]
        yield f"{margin}{'└── ' if last else '├── '}{name}{'/' if below[name] else ''}"
        yield from _branches(below[name], margin + ("    " if last else "│   "))
