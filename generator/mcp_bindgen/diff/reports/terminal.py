"""Lay out text for a terminal: colours, and lines that fit."""

from __future__ import annotations

import textwrap

from mcp_bindgen.spec.errors import printable

RED, YELLOW, GREEN, CYAN, BOLD, DIM = "31", "33", "32", "36", "1", "2"


class Terminal:
    """The terminal that text is laid out for.

    Args:
        width: Where lines are folded.
        colour: Whether it shows colours.
    """

    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour = max(width, 40), colour

    def style(self, text: str, *codes: str) -> str:
        """Return `text` in a colour or another style."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.colour else text

    def folded(self, text: str, indent: int, more: int = 0) -> list[str]:
        """Return `text` in lines behind `indent` columns, `more` of them from the second line on."""
        margin = " " * indent
        return textwrap.wrap(
            plain(text),
            self.width,
            initial_indent=margin,
            subsequent_indent=margin + " " * more,
            break_on_hyphens=False,
        )


def plain(text: str) -> str:
    """Return `text` in one line, without what a terminal would obey: schemas come from anywhere."""
    return printable(" ".join(text.split()))
