"""Verdicts on changes."""

from __future__ import annotations

from enum import IntEnum


class Verdict(IntEnum):
    """Meaning of a change for callers; a greater value is worse."""

    SAME = 0
    """Nothing changed."""
    NOTATION = 1
    """Callers can send and get the same; it is written in another way."""
    COMPATIBLE = 2
    """All that callers send is accepted, and all that they read is there; something else changed."""
    UNPROVEN = 3
    """It is neither proven that callers work nor that they break."""
    BREAKING = 4
    """Callers break."""

    @property
    def is_open(self) -> bool:
        """True if callers work."""
        return self <= Verdict.COMPATIBLE
