"""Atomic replacement of a set of files."""

from __future__ import annotations

import difflib
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from .errors import BadInput


@dataclass(frozen=True)
class Change:
    """Content of a file before and after a transaction.

    Attributes:
        before: Old content; `None` for a new file.
        after: New content; `None` for a removed file.
    """

    before: bytes | None
    after: bytes | None


Changes = Mapping[str, Change]
"""Path relative to a folder -> change."""


def put(folder: Path, changes: Changes, *, beside: bool = False, follow_links: bool = False) -> None:
    """Carry out changes in order; file modes are kept.

    All files are written to a scratch folder first, so that a full disk changes nothing. An error undoes all changes. A
    killed process may leave some files old; running the command again completes the changes.

    Args:
        folder: Base folder of the paths; it is created if necessary.
        changes: The changes.
        beside: True to keep the scratch folder beside `folder`: Python must not import leftovers of a killed process.
        follow_links: True to change the targets of links instead of replacing the links.

    Raises:
        BadInput: A file cannot be written, or its content is no longer `before`.
    """
    paths = {(folder / name).resolve() if follow_links else folder / name: change for name, change in changes.items()}
    home = folder if folder.is_dir() and not beside else folder.parent
    try:
        with ExitStack() as undo:
            _create_folder(home, undo)
            with tempfile.TemporaryDirectory(prefix=".mcp-bindgen.", dir=home) as scratch:
                staged = [(path, *_stage(Path(scratch, str(n)), path, paths[path])) for n, path in enumerate(paths)]
                with ExitStack() as failed:
                    for path, old, new in staged:
                        _create_folder(path.parent, failed)
                        failed.callback(_move, old, path)
                        _move(new, path)
                        _forget_compiled(path)
                    failed.pop_all()
            undo.pop_all()
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"cannot be written ({reason})", file=folder, fix="nothing was changed there") from None


def read(path: Path) -> bytes | None:
    """Return the content of a file, or `None` if it does not exist."""
    return path.read_bytes() if path.exists() else None


def save(path: Path, text: str, fix: str) -> None:
    """Write a file into an existing folder, or into a device or pipe; `fix` is the advice in errors."""
    if not path.parent.is_dir():
        raise BadInput("cannot be written (there is no such folder)", file=path, fix=fix)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(text.encode())  # a device or a pipe, which must not be replaced
        else:
            put(path.parent, {path.name: Change(read(path), text.encode())})
    except BadInput as error:
        raise BadInput(error.message, file=path, fix=fix) from None
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", file=path, fix=fix) from None


def _stage(stem: Path, path: Path, change: Change) -> tuple[Path, Path]:
    """Write the old and the new content of `path` to two files, if they exist."""
    if read(path) != change.before:
        raise BadInput("was changed meanwhile", file=path, fix="run it again; nothing was changed")
    old, new = stem.with_suffix(".old"), stem.with_suffix(".new")
    if path.exists() or path.is_symlink():
        shutil.copy2(path, old, follow_symlinks=False)
    if change.after is not None:
        with new.open("wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if path.is_file():
            shutil.copymode(path, new)
    return old, new


def _move(source: Path, path: Path) -> None:
    if source.exists() or source.is_symlink():
        source.replace(path)
    else:
        path.unlink(missing_ok=True)


def _create_folder(folder: Path, undo: ExitStack) -> None:
    """Create a folder and its parents; `undo` removes the new folders."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        undo.callback(path.rmdir)


def _forget_compiled(path: Path) -> None:
    """Remove the bytecode of a file: Python would accept it for a new file of the same size and second."""
    for cached in (path.parent / "__pycache__").glob(f"{glob.escape(path.stem)}.*.pyc"):
        cached.unlink(missing_ok=True)


def unified_diff(changes: Changes, label: Callable[[str, str], str] = "{0}/{1}".format) -> bytes:
    """Return changes as a unified diff for `patch -p1`.

    Args:
        changes: The changes.
        label: Returns the label for a side, `a` or `b`, and a name.
    """
    parts: list[bytes] = []
    for name, change in sorted(changes.items()):
        parts += difflib.diff_bytes(
            difflib.unified_diff,
            _lines(change.before),
            _lines(change.after),
            os.fsencode(label("a", name)) if change.before is not None else b"/dev/null",
            os.fsencode(label("b", name)) if change.after is not None else b"/dev/null",
        )
    return b"".join(part if part.endswith(b"\n") else part + b"\n\\ No newline at end of file\n" for part in parts)


def _lines(content: bytes | None) -> list[bytes]:
    """Split a file into lines at line feeds only, as `diff` does."""
    return BytesIO(content or b"").readlines()
