"""Run the formatter of a project over generated files."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from mcp_bindgen.spec.errors import BadInput, first_line

from .header import is_generated

_FIX = "correct `formatter` in the settings of the package"


def formatted(files: Mapping[str, str], command: Sequence[str], folder: Path, base: Path) -> dict[str, str]:
    """Return files as a formatter writes them.

    Only the configuration of the project names the command, never a schema. It runs without a shell.

    Args:
        files: File name -> text.
        command: The command; it reads a file from stdin and writes it to stdout.
        folder: Folder of the package, for the paths of the files.
        base: Working folder.

    Raises:
        BadInput: The command cannot be started, it fails, or it removes the header.
    """
    with ThreadPoolExecutor() as pool:
        texts = pool.map(partial(_format, command, folder, base), files, files.values())
        return dict(zip(files, texts, strict=True))


def _format(command: Sequence[str], folder: Path, base: Path, name: str, text: str) -> str:
    words = [word.replace("{file}", str((folder / name).absolute())) for word in command]
    try:
        done = subprocess.run(words, input=text.encode(), cwd=base, capture_output=True)  # noqa: S603 - see above
        if done.returncode == 0 and is_generated(done.stdout):
            return done.stdout.decode().replace("\r\n", "\n")
        code = f"exit code {done.returncode}" if done.returncode else "it removes our header"
        reason = first_line(done.stderr.decode(errors="replace").strip() or code)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    raise BadInput(f"the formatter {command[0]!r} fails for {name}: {reason}", fix=_FIX)
