"""Handwritten pages, with their links changed for the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from .markdown import Pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = "https://mcp-bindgen.github.io/mcp-bindgen/"
BLOB = "https://github.com/mcp-bindgen/mcp-bindgen/blob/main/"
_COMMENT = re.compile(r"^<!-- (?:not run: [^\n]*|\w+(?: [^\s>]+)?\n.*?^)-->\n", re.MULTILINE | re.DOTALL)
"""Instructions for tests/harness/pages.py, which readers do not see."""
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"(^```.*?^```$|(?<=\n\n)(?: {4}[^\n]*\n|\n)+|(?<!`)`[^`]+`(?!`))", re.MULTILINE | re.DOTALL)


def handwritten(generated: Pages) -> Pages:
    """Return the pages in `docs/`, which may link to generated ones; `README.md` is the index of its folder."""
    found = {_name(path.relative_to(DOCS).as_posix()): path for path in sorted(DOCS.rglob("*.md"))}
    names = {*found, *generated}
    return {name: _linked(_COMMENT.sub("", path.read_text("utf-8")), path, name, names) for name, path in found.items()}


def _name(path: str) -> str:
    return re.sub(r"(^|/)README\.md$", r"\1index.md", path)


def _linked(text: str, file: Path, name: str, names: set[str]) -> str:
    """Return the text of `file` with links for the page `name`.

    Addresses of this site become relative, and files outside of `docs/` become addresses in the repository.
    """

    def changed(match: re.Match[str]) -> str:
        place, mark, anchor = match[1].partition("#")
        return f"]({_target(place, file, name, names)}{mark}{anchor})"

    pieces = _CODE.split(text)
    return "".join(piece if index % 2 else _LINK.sub(changed, piece) for index, piece in enumerate(pieces))


def _target(place: str, file: Path, name: str, names: set[str]) -> str:
    if place.startswith(SITE):
        stem = place.removeprefix(SITE).rstrip("/")
        found = f"{stem}.md" if f"{stem}.md" in names else f"{stem}/index.md".removeprefix("/")
    elif not place or re.match(r"[a-z]+:", place):
        return place
    else:
        absolute = (file.parent / place).resolve()
        if not absolute.is_relative_to(DOCS):
            return BLOB + absolute.relative_to(ROOT).as_posix()
        found = _name(absolute.relative_to(DOCS).as_posix())
    return posixpath.relpath(found, posixpath.dirname(name) or ".")
