"""The page of the profiles, docs/reference/providers.md: `python -m tests.lowering.providers --write`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_bindgen.lowering import Profile, names, profile

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "providers.md"
FIX = "run: python -m tests.lowering.providers --write"

HEAD = """# Profiles of model providers and hosts

`mcp-bindgen contract lower SERVER --for PROFILE` and `mcp_bindgen.lowering.lower(tool, PROFILE)` take one of these
names, or the path of a TOML file of yours. [Lowering](../how-to/lowering.md) explains the verdicts. Each entry has a
source and the day on which it was read. Providers change, so measure before you rely on a limit. This page is
generated from `schema/providers/`.

To change a profile, write a file with the entries that differ:

```toml
base = "openai-strict"

[max_tools]
value = 64
source = "our gateway"
date = 2026-11-23
```
"""


def page() -> str:
    """Return the text of the page."""
    return HEAD + "".join("\n" + "\n".join(_section(profile(name))) + "\n" for name in names())


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
