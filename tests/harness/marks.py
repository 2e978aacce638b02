"""The comments that `migrate --write` and `upgrade` put above code that is left to its owner."""

from __future__ import annotations

import re

_MARK = re.compile(r"(?m)^[ \t\f]*# TODO .*\n(?:[ \t\f]*#   .*\n)*")


def unmarked(text: str) -> str:
    """Return code without these comments; a line that is left must not have the same comment twice."""
    marks = _MARK.findall(text)
    assert [one for one in marks if f"{one}{one}" in text] == []
    return _MARK.sub("", text)
