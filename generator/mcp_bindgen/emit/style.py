"""The style of generated code."""

from __future__ import annotations

from black import format_str
from black.mode import Mode, TargetVersion

from .environment import WIDTH

_MODE = Mode(line_length=WIDTH, target_versions={TargetVersion.PY311})


def style(code: str) -> str:
    """Return `code` as black writes it."""
    return format_str(code, mode=_MODE)
