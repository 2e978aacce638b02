"""Files for programs that read the site: `llms.txt`, and the Markdown of each page beside its HTML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from mcp_bindgen.spec.json import is_object

from .markdown import Pages
from .sources import ROOT, SITE

_MOST_CHARS = 160


def program_files(pages: Pages) -> Pages:
    """Return path in the site -> text."""
    return {**pages, "llms.txt": llms(pages)}


def llms(pages: Pages) -> str:
    """Return the index of the Markdown files, in the order of the navigation; pages outside of it follow."""
    project: Any = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    about = descriptions(pages)
    lines = [f"# {project['site_name']}", "", f"> {project['site_description']}", ""]
    left = dict.fromkeys(pages)
    for section in project["nav"]:
        ((title, inside),) = section.items()
        lines += [f"## {title}", ""]
        for name in _pages(inside):
            left.pop(name)
            lines.append(_entry(pages, about, name))
        lines.append("")
    lines += ["## Optional", "", *(_entry(pages, about, name) for name in left), ""]
    return "\n".join(lines)


def _pages(inside: Any) -> Iterator[str]:
    if isinstance(inside, str):
        yield inside
    elif is_object(inside):
        yield from _pages(list(inside.values()))
    else:
        for one in inside:
            yield from _pages(one)


def navigation() -> list[str]:
    """Return the pages that the navigation names."""
    return list(_pages(tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]))


def _entry(pages: Pages, about: dict[str, str], name: str) -> str:
    title = pages[name].partition("\n")[0].removeprefix("# ").replace("`", "")
    return f"- [{title}]({SITE}{name}): {about[name]}"


def descriptions(pages: Pages) -> dict[str, str]:
    """Page -> its first sentence without marks."""
    return {name: _described(text) for name, text in pages.items()}


def _described(text: str) -> str:
    paragraphs = re.split(r"\n\s*\n", text)
    first = next((one for one in paragraphs[1:] if re.match(r"[A-Za-z*`\[]", one)), paragraphs[0])
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*`#]", r"\1", " ".join(first.split()))
    sentence = re.split(r"(?<=\w[.:])\s", words)[0].rstrip(":")
    return sentence if len(sentence) <= _MOST_CHARS else sentence[: _MOST_CHARS - 3].rpartition(" ")[0] + "..."
