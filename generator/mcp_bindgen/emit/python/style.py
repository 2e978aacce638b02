"""Format of generated code: black writes it, with the imports that it uses."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .environment import WIDTH
from .imports import resolved


def style(code: str, package: str = "") -> str:
    """Return `code` as black formats it; `package` as in `resolved`."""
    return _formatted("code.py", resolved(code, package))


def style_files(files: Mapping[str, str]) -> dict[str, str]:
    """Return the Python files of a package as black formats them, without configuration of the user.

    Args:
        files: File name -> text.

    Raises:
        SyntaxError: A file is not Python; its `filename` is the name.
    """
    return {name: _formatted(name, resolved(text)) for name, text in files.items()}


def _formatted(name: str, text: str) -> str:
    from black import format_str  # it takes time to load
    from black.mode import Mode, TargetVersion
    from black.parsing import InvalidInput

    try:
        return format_str(text, mode=Mode({TargetVersion.PY311}, WIDTH))
    except InvalidInput:
        ast.parse(text, name)
        raise
