"""Lines of text for a terminal."""

from __future__ import annotations

import textwrap


class Terminal:
    """Fold and colour lines.

    Args:
        width: Where lines are folded.
        colour: Whether it is for a terminal that shows colours.
    """

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour = max(width, 40), colour

    def style(self, text: str, code: str) -> str:
        """Give `text` a colour, by its code."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def folded(self, text: str, indent: int) -> list[str]:
        """Fold `text` into lines that fit behind `indent` columns."""
        lines = textwrap.wrap(printable(" ".join(text.split())), self.width - indent, break_on_hyphens=False)
        return [" " * indent + line for line in lines]


def printable(text: str) -> str:
    """Escape what a terminal would obey: schemas and files come from anywhere."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
