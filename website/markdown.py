"""Parts of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Pages = dict[str, str]
"""Path in the site's source -> Markdown."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; an empty text if it has no rows."""
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines, ""])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return text as inline code."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def block(text: str, language: str = "") -> str:
    """Return text as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def page(title: str, *parts: str) -> str:
    """Return a page from its title and its paragraphs; empty ones are left out."""
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts if part.strip())]) + "\n"


def plain(text: str) -> str:
    """Return text of a docstring as Markdown: characters that Markdown or HTML would interpret are escaped.

    Inline code stays code.
    """
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else _escaped(piece) for piece in pieces)


def _escaped(text: str) -> str:
    return re.sub(r"([*_\[\]])", r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")
