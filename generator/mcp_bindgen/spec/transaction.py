"""Put a set of files in place: all of them or none, and each of them whole at any time."""

from __future__ import annotations

import difflib
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from .errors import BadInput


@dataclass(frozen=True)
class Change:
    """The content of a file before and after a transaction.

    Attributes:
        before: The old content; `None` for a file that is created.
        after: The new content; `None` for a file that is removed.
    """

    before: bytes | None
    after: bytes | None


Changes = Mapping[str, Change]
"""Path relative to a folder -> change."""


def put(folder: Path, changes: Changes, *, beside: bool = False, follow_links: bool = False) -> None:
    """Carry out changes in their order; file modes are kept.

    Everything is written to a scratch folder first, so a full disk shows before anything is changed. An error undoes
    what was done. Only a kill in between leaves some files new and some old, and running the same again completes it.

    Args:
        folder: The folder that the paths are relative to; it is created where it does not exist.
        changes: The changes.
        beside: Keep the scratch folder beside `folder`, where Python does not find what a kill leaves behind.
        follow_links: Change the files that links lead to, instead of replacing the links.

    Raises:
        BadInput: A file cannot be written, or does not hold `before` any more.
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
    """Return the content of a file, `None` where there is none."""
    return path.read_bytes() if path.exists() else None


def save(path: Path, text: str, fix: str) -> None:
    """Write one file into a folder that exists; `fix` is the advice where that is not possible."""
    if not path.parent.is_dir():
        raise BadInput("cannot be written (there is no such folder)", file=path, fix=fix)
    try:
        put(path.parent, {path.name: Change(read(path), text.encode())})
    except BadInput as error:
        raise BadInput(error.message, file=path, fix=fix) from None
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", file=path, fix=fix) from None


def _stage(stem: Path, path: Path, change: Change) -> tuple[Path, Path]:
    """Keep the old and the new content of `path` in two files; no file stands for no content."""
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
    """Create a folder and its parents; `undo` removes those that were created."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        undo.callback(path.rmdir)


def _forget_compiled(path: Path) -> None:
    """Remove what Python compiled of a file: a new file of the same size and second would not count as changed."""
    for cached in (path.parent / "__pycache__").glob(f"{glob.escape(path.stem)}.*.pyc"):
        cached.unlink(missing_ok=True)


def unified_diff(changes: Changes, label: Callable[[str, str], str] = "{0}/{1}".format) -> bytes:
    """Return changes as a unified diff, as `patch -p1` reads it.

    Args:
        changes: The changes.
        label: Makes the label of a side, `a` or `b`, and a name.
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


def _lines(content: bytes | None) -> Iterable[bytes]:
    """Split a file into lines as `diff` sees them: only a line feed ends one."""
    pieces = (content or b"").split(b"\n")
    return [*(piece + b"\n" for piece in pieces[:-1]), *([pieces[-1]] if pieces[-1] else [])]
