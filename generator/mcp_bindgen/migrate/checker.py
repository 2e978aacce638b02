"""Run mypy on a scratch copy of Python files, with packages of choice under the names that the files import.

mypy is called through its public API, with its JSON output. Columns are offsets in UTF-8, as in syntax trees.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import tempfile
import time
import zlib
from collections.abc import Generator, Mapping
from contextlib import ExitStack, chdir, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from shutil import copytree, rmtree

from platformdirs import user_cache_path

from mcp_bindgen.spec import BadInput

_OPTIONS = (
    "--output=json",
    "--no-native-parser",  # the native parser counts columns differently
    "--no-sqlite-cache",
    "--explicit-package-bases",
    "--check-untyped-defs",
    "--allow-redefinition",
    "--ignore-missing-imports",
    "--follow-imports=silent",
    "--no-warn-no-return",
    "--enable-error-code=deprecated",
    "--disable-error-code=empty-body",
)
_IDLE, _USED = "idle-", "used-"
_MAX_RUN_SECONDS = 24 * 60 * 60  # a folder taken for longer was left by a killed run
_BLOCKED = re.compile(r"(?P<file>[^:]+\.pyi?):(?:(?P<line>\d+):)*\s*error: (?P<message>.*?)(?:  \[[\w-]+\])?$")


@dataclass(frozen=True)
class Diagnostic:
    """An error that mypy reports.

    Attributes:
        file: The checked file.
        line: Its line, counted from 1.
        offset: The offset in that line, in bytes of UTF-8.
        message: The message.
        code: The error code of mypy, such as `attr-defined`.
    """

    file: Path
    line: int
    offset: int
    message: str
    code: str


@dataclass
class Checked:
    """The outcome of a run.

    Attributes:
        diagnostics: The errors in the checked files.
        blocked: File -> the reason why mypy cannot check it; all other files were checked without it.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    blocked: dict[Path, str] = field(default_factory=dict[Path, str])


def check(code: Mapping[Path, bytes], root: Path, packages: Mapping[str, str], kind: str = "own") -> Checked:
    """Type-check files.

    Args:
        code: File below `root` -> its content.
        root: The folder that module names start at, or in its `src/`.
        packages: Path such as `acme/mcp/types.py` -> the text of a module that replaces an installed one.
        kind: Name of a kind of packages, which has a cache of its own.

    Raises:
        BadInput: mypy cannot run.
    """
    from mypy import api  # takes time to load

    found = Checked()
    limit, threshold = sys.getrecursionlimit(), gc.get_threshold()
    with tempfile.TemporaryDirectory(prefix="mcp-bindgen.") as scratch, exclusive_cache(kind) as cache:
        home = Path(scratch).resolve()
        copies = _copy(code, root, home / "code")
        overlay = _overlay(packages, home)
        bases = ":".join(str(home / name) for name in ("code/src", "code", "packages"))
        (home / "mypy.ini").write_text(f"[mypy]\nmypy_path = {bases}\n", "utf-8")
        options = [*_OPTIONS, f"--cache-dir={cache or home / 'cache'}", f"--config-file={home / 'mypy.ini'}"]
        with chdir(home):
            while copies:
                out, err, status = api.run([*options, *copies, *overlay])
                sys.setrecursionlimit(limit)  # mypy raises both
                gc.set_threshold(*threshold)
                if status != 2:
                    break
                blocked = _blocked(out + err, copies)
                if blocked is None:
                    raise BadInput(f"mypy cannot check it: {(err or out).strip().splitlines()[0]}", file=root)
                copy, reason = blocked
                found.blocked[copies.pop(copy)] = f"is not Python: {reason}"
            else:
                return found
        for line in out.splitlines():
            entry = json.loads(line or "{}")
            if entry.get("file") in copies and entry["severity"] == "error":
                place = copies[entry["file"]], entry["line"], max(entry["column"], 0)
                found.diagnostics.append(Diagnostic(*place, entry["message"], entry["code"] or ""))
    return found


@contextmanager
def exclusive_cache(kind: str) -> Generator[Path | None]:
    """Yield a cache folder of mypy that no other run uses meanwhile, as mypy replaces the files of a module one by one.

    Each run takes a free folder, which has a cache for each kind, by renaming it, and renames it back at its end. There
    are as many folders as there were runs at once. A kind begins with the cache of another kind. The folder of a run
    that failed is removed. If nothing can be written, there is no folder.
    """
    cache: Path | None = None
    with suppress(OSError):
        cache = _claimed(user_cache_path("mcp-bindgen") / "mypy", kind)
    if cache is None:
        yield None
        return
    own = cache.parent
    with ExitStack() as failing:
        failing.callback(rmtree, own, ignore_errors=True)
        yield cache
        failing.pop_all()
    with suppress(OSError):
        own.rename(own.with_name(own.name.replace(_USED, _IDLE, 1)))


def _claimed(pool: Path, kind: str) -> Path:
    """Return the cache of a kind in a folder that only this run uses; the same one each time if it is free."""
    pool.mkdir(parents=True, exist_ok=True)
    own = pool / f"{_USED}{token_hex(8)}"
    for folder in sorted(pool.iterdir()):
        with suppress(FileNotFoundError):  # another run was faster
            if folder.name.startswith(_IDLE):
                os.utime(folder)
                own = folder.rename(pool / folder.name.replace(_IDLE, _USED, 1))
                break
            if time.time() - folder.stat().st_mtime > _MAX_RUN_SECONDS:
                rmtree(folder, ignore_errors=True)
    cache = own / kind
    if not own.exists():
        cache.mkdir(parents=True)
    elif not cache.exists():
        copytree(next(own.iterdir()), cache)
    return cache


def _copy(code: Mapping[Path, bytes], root: Path, target: Path) -> dict[str, Path]:
    """Write the files where mypy derives their module names, and return copy -> file.

    Names of the standard library and second files of one module get names of their own.
    """
    base = root if root.is_dir() else root.parent
    copies: dict[str, Path] = {}
    for number, (path, raw) in enumerate(code.items()):
        parts = list(path.relative_to(base).with_suffix(".py").parts)
        start = 1 if parts[0] == "src" and len(parts) > 1 else 0
        if parts[start].removesuffix(".py") in sys.stdlib_module_names:
            parts[start] = f"own_{parts[start]}"
        parts = [re.sub(r"[^\w.]", "_", part) for part in parts]
        copy = target.joinpath(*parts)
        if copy.exists():
            copy = copy.with_stem(f"{copy.stem}_{number}")
        _write(copy, raw)
        copies[copy.relative_to(target.parent).as_posix()] = path
    return copies


def _write(path: Path, content: bytes) -> None:
    """Write a file with a time of its content: mypy takes a file of the same path, size and second as unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (0, zlib.crc32(content) >> 1))


def _overlay(packages: Mapping[str, str], home: Path) -> list[str]:
    """Write the packages: into the package of the checked code that holds them, or into a folder of their own."""
    written: list[str] = []
    for name, text in packages.items():
        bases = (home / "code" / "src", home / "code")
        base = next((base for base in bases if (base / name.partition("/")[0]).is_dir()), home / "packages")
        path = base / name
        _write(path, text.encode())
        written.append(path.relative_to(home).as_posix())
    return written


def _blocked(output: str, copies: Mapping[str, Path]) -> tuple[str, str] | None:
    """Return the file that stops mypy and the reason."""
    for line in output.splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            place, message = entry["file"], entry["message"]
        elif (match := _BLOCKED.match(line)) is not None:
            place, message = match["file"], match["message"]
        else:
            continue
        if place in copies:
            return place, message
    return None
