"""Format of generated code."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ruff import find_ruff_bin  # type: ignore[import-untyped]

from .environment import WIDTH

_COMMON = ("--isolated", "--no-cache", "--quiet", "--target-version=py311", f"--line-length={WIDTH}", ".")


def style(code: str) -> str:
    """Return `code` as ruff formats it, without unused imports; raise `SyntaxError` as `style_files`."""
    return style_files({"code.py": code})["code.py"]


def style_files(files: Mapping[str, str]) -> dict[str, str]:
    """Return Python files as ruff formats them, without unused imports and without configuration of the user.

    Args:
        files: File name -> text.

    Raises:
        SyntaxError: A file is not Python; its `filename` is the name.
    """
    with TemporaryDirectory(prefix="mcp-bindgen.") as scratch:
        paths = {name: Path(scratch, name) for name in files}
        for name, path in paths.items():
            path.write_bytes(files[name].encode())
        _ruff(scratch, "check", "--fix", "--exit-zero", "--select=F401", "--ignore-noqa")
        for name, path in paths.items():
            path.write_bytes(_closed(path.read_bytes().decode(), name).encode())
        _ruff(scratch, "format")
        return {name: path.read_bytes().decode() for name, path in paths.items()}


def _ruff(folder: str, *command: str) -> None:
    subprocess.run([find_ruff_bin(), *command, *_COMMON], cwd=folder, capture_output=True, check=True)  # noqa: S603


def _closed(code: str, name: str) -> str:
    """Return a module with at most one blank line after imports, also where unused ones were."""
    lines = code.splitlines(keepends=True)
    for node in reversed(ast.parse(code, name).body):
        if isinstance(node, ast.Import | ast.ImportFrom) and node.end_lineno is not None:
            while lines[node.end_lineno : node.end_lineno + 2] == ["\n", "\n"]:
                del lines[node.end_lineno]
    return "".join(lines)
