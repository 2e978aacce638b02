"""List the files of a project that are of concern, and copy them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from mcp_bindgen.diff.migration import project
from mcp_bindgen.emit import MARK
from mcp_bindgen.spec import BadInput


def files(folder: Path) -> Iterator[Path]:
    """Return the files of a project and the links to files, in alphabetical order; folders of tools are left out."""
    return (path for path in project.files(folder) if path.is_file())


def python_files(folder: Path) -> Iterator[Path]:
    """Return the Python files among them, and the stubs."""
    return (path for path in project.python_files(folder) if path.is_file())


def is_generated(raw: bytes) -> bool:
    """Return whether a Python file has our header, edited or not."""
    return raw.startswith(MARK.encode())


@contextmanager
def copied(folder: Path) -> Generator[Path]:
    """Return a copy of a project that is there for a while, beside it where that is possible.

    Nothing that is written in the copy reaches the project: links in it lead to copies, and links out of it become the
    files that they lead to.

    Raises:
        BadInput: A file cannot be read, or there is no room.
    """
    folder = folder.resolve()
    try:
        made = tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent, ignore_cleanup_errors=True)
    except OSError:
        made = tempfile.TemporaryDirectory(prefix="mcp-bindgen.", ignore_cleanup_errors=True)
    with made as place:
        copy = Path(place).resolve()
        try:
            for path in files(folder):
                _copy(path, folder, copy)
        except OSError as error:
            raise BadInput(f"cannot be copied ({error.strerror})", file=error.filename or folder) from None
        yield copy


def _copy(path: Path, folder: Path, copy: Path) -> None:
    place, target = copy / path.relative_to(folder), path.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() and folder in target.parents:
        place.symlink_to(os.path.relpath(copy / target.relative_to(folder), place.parent))
    else:
        shutil.copy2(path, place)
