"""The comments that `migrate --write` and `upgrade` put behind code that is left to its owner."""

from __future__ import annotations

import re

_MARK = re.compile(r"  # TODO [^\r\n]*")


def unmarked(text: str) -> str:
    """Return code without these comments."""
    return _MARK.sub("", text)
