"""The page of the profiles, docs/reference/providers.md: `python -m tests.lowering.providers --write`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_bindgen.lowering import Profile, names, profile

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "providers.md"
FIX = "run: python -m tests.lowering.providers --write"


def page() -> str:
    """Return the text of the page, whose introduction stays as it is."""
    return PAGE.read_text("utf-8").partition("\n## ")[0] + "".join(
        "\n" + "\n".join(_section(profile(name))) + "\n" for name in names()
    )


def _section(known: Profile) -> Iterator[str]:
    yield f"## {known.name}\n"
    yield f"{known.title}.\n"
    yield "| entry | value | source | date |"
    yield "| --- | --- | --- | --- |"
    for entry, fact in sorted(known.facts.items()):
        yield f"| {entry} | {_cell(fact.value)} | {_escaped(fact.source)} | {fact.date} |"


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"`{one}`" for one in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _escaped(f"`{value}`" if isinstance(value, str) else str(value))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), "utf-8")
    sys.exit(0 if PAGE.read_text("utf-8") == page() else FIX)
