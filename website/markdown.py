"""Parts of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.markdown import code_span, escaped, joined

Pages = dict[str, str]
"""Path in the site's source -> Markdown."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; an empty text if it has no rows."""
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines, ""])


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\|", " ".join(text.split()))


def code(text: str) -> str:
    """Return text as inline code."""
    return code_span(text)


def anchored(text: str, anchor: str) -> str:
    """Return text as inline code that is the target of an anchor."""
    return f"{code(text)}{{ #{anchor} }}"


def block(text: str, language: str = "") -> str:
    """Return text as a block of code."""
    shown = printable(text.rstrip(), keep="\n")
    return f"```{language}\n{shown}\n```\n"


def page(title: str, *parts: str) -> str:
    """Return a page from its title and its paragraphs; empty ones are left out."""
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts if part.strip())]) + "\n"


def plain(text: str) -> str:
    """Return text of a docstring as Markdown: characters that Markdown or HTML would interpret are escaped.

    Inline code stays code.
    """
    pieces = re.split(r"`([^`]+)`", text)
    return joined(code(piece) if at % 2 else escaped(piece) for at, piece in enumerate(pieces))
