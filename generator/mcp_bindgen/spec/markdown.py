"""Text from anywhere as Markdown, for every reader of Markdown: GitHub's rules and those of the site differ."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from .errors import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|])")


def code_span(text: str) -> str:
    """Return text as code on one line, also if it contains backticks."""
    flat = printable(" ".join(text.split()))
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", flat)), default=0))
    pad = " " if len(ticks) > 1 else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}" if flat else ""


def escaped(text: str) -> str:
    """Return text in which nothing is Markdown or HTML. Entities replace characters that not all readers unescape."""
    return _SPECIAL.sub(r"\\\1", html.escape(printable(text, keep="\n"), quote=False))


def joined(parts: Iterable[str]) -> str:
    """Return parts of a line in a row; without a space between them two spans of code would be read as one."""
    found = ""
    for part in parts:
        found += f"&#8203;{part}" if found.endswith("`") and part.startswith("`") else part
    return found
