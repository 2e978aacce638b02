"""Puts a new project in place: all of it, or nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mcp_bindgen.spec import BadInput

_SKIPPED = "__pycache__"


def write_new(folder: Path, files: Mapping[str, str], finish: Callable[[Path], object]) -> list[str]:
    """Makes a folder that holds `files`, in one step.

    Args:
        folder: It must not exist yet, or be empty.
        files: Path -> text.
        finish: Does the rest, in the folder where they are until then.

    Returns:
        The paths of everything that is there now, in order.

    Raises:
        BadInput: There is something already, or the folder cannot be written; nothing was changed then.
    """
    refuse_occupied(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(folder.parent, f".{folder.name}.") as fresh:
            found = _fill(fresh, files, finish)
            fresh.chmod(0o755)
            if folder.is_dir():
                folder.rmdir()  # it is empty
            fresh.rename(folder)
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", file=folder, fix="choose another --out") from None
    return found


def rehearse(files: Mapping[str, str], finish: Callable[[Path], object]) -> list[str]:
    """The paths of everything that `write_new` would write; what it takes to know is in a folder for a moment."""
    with _temporary(None, "mcp-bindgen.") as fresh:
        return _fill(fresh, files, finish)


def refuse_occupied(folder: Path) -> None:
    """Raises `BadInput` where a new project cannot be."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput("is no folder", file=folder, fix="choose another name, or another --out")
    if folder.is_dir() and any(folder.iterdir()):
        raise BadInput("is not empty", file=folder, fix="choose another name, or another --out")


def tree(root: str, paths: list[str]) -> Iterator[str]:
    """`paths` below `root` as a tree, line by line."""
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


@contextmanager
def _temporary(parent: Path | None, prefix: str) -> Generator[Path]:
    fresh = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _fill(folder: Path, files: Mapping[str, str], finish: Callable[[Path], object]) -> list[str]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    finish(folder)
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if _SKIPPED not in path.parts)
