"""Puts changed files in place: all of them or none, each of them whole at any time."""

from __future__ import annotations

import difflib
import glob
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_bindgen.spec import BadInput


@dataclass(frozen=True)
class Change:
    """What becomes of a file.

    Attributes:
        before: What it holds; `None` for one that is not there yet.
        after: What it is to hold; `None` for one that goes.
    """

    before: bytes | None
    after: bytes | None


Changes = Mapping[str, Change]
"""File, relative to the project -> what becomes of it."""


def place(folder: Path, changes: Changes) -> None:
    """Carries out changes, in their order. File modes stay, and links stay links: the files that they lead to change.

    When anything goes wrong, everything is as it was before. Only a kill in between leaves some files new and some old,
    each of them whole.

    Args:
        folder: The project.
        changes: What is to change.

    Raises:
        BadInput: Something cannot be written, or somebody has changed it meanwhile.
    """
    targets = {(folder / name).resolve(): change for name, change in changes.items()}
    done: list[Path] = []
    try:
        with tempfile.TemporaryDirectory(prefix=".mcp-bindgen.", dir=folder) as scratch:
            new, old = Path(scratch, "new"), Path(scratch, "old")
            for path, change in targets.items():  # a full disk shows here, before anything is changed
                if _read(path) != change.before:
                    raise BadInput("was changed meanwhile", file=path, fix="run it again; nothing was changed")
                if change.before is not None:
                    _save(_kept(old, path), change.before, path)
                if change.after is not None:
                    _save(_kept(new, path), change.after, path)
            try:
                for path in targets:
                    done.append(path)
                    _put(new, path)
                    _forget(path)
            except BaseException:
                for path in reversed(done):
                    _put(old, path)
                raise
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(
            f"cannot be written ({reason})", file=error.filename or folder, fix="nothing was changed"
        ) from None


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _kept(store: Path, path: Path) -> Path:
    """Where the file is kept that is for `path`."""
    return store / path.relative_to(path.anchor)


def _save(copy: Path, content: bytes, path: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    with copy.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        shutil.copymode(path, copy)


def _put(store: Path, path: Path) -> None:
    """Puts the file that is kept for `path` there; without one, there is to be none."""
    copy = _kept(store, path)
    if copy.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        copy.replace(path)
    else:
        path.unlink(missing_ok=True)


def _forget(path: Path) -> None:
    """Removes what Python compiled of a file: it goes by its size, which may be the same, and the second."""
    for cached in (path.parent / "__pycache__").glob(f"{glob.escape(path.stem)}.*.pyc"):
        cached.unlink(missing_ok=True)


def unified(changes: Changes) -> bytes:
    """The changes as a unified diff, as `patch -p1` reads it."""
    parts: list[bytes] = []
    for name, change in sorted(changes.items()):
        label = os.fsencode(name)
        parts += difflib.diff_bytes(
            difflib.unified_diff,
            _lines(change.before),
            _lines(change.after),
            b"a/" + label if change.before is not None else b"/dev/null",
            b"b/" + label if change.after is not None else b"/dev/null",
        )
    marked = (part if part.endswith(b"\n") else part + b"\n\\ No newline at end of file\n" for part in parts)
    return b"".join(marked)


def _lines(content: bytes | None) -> list[bytes]:
    """The lines of a file as `diff` sees them: only a line feed ends one."""
    pieces = (content or b"").split(b"\n")
    return [*(piece + b"\n" for piece in pieces[:-1]), *([pieces[-1]] if pieces[-1] else [])]
