"""Pages of changes: anchors for their groups, and links to the atlas and to the rules."""

from __future__ import annotations

import re
from collections.abc import Container

from .atlas.model import definition_page, group_anchor, method_page

_GROUP = re.compile(r"^### `([^`]*)`$", re.MULTILINE)
_RULE = re.compile(r"<sub>([a-z-]+) ([0-9a-f]{16})</sub>")


def linked_findings(name: str, text: str, pages: Container[str]) -> str:
    """Return a page with links from its findings to the atlas; only pages of changes have any."""
    if not name.startswith("changes/"):
        return text
    seen: dict[str, int] = {}

    def group(match: re.Match[str]) -> str:
        anchor = group_anchor(match[1])
        seen[anchor] = seen.get(anchor, 0) + 1
        number = f"-{seen[anchor]}" if seen[anchor] > 1 else ""
        heading = f"### `{match[1]}` {{ #{anchor}{number} }}"
        page = next((page for page in (method_page(match[1]), definition_page(match[1])) if page in pages), None)
        return f"{heading}\n\n[In the atlas](../{page})" if page is not None else heading

    text = _GROUP.sub(group, text)
    return _RULE.sub(r"<small>[\1](../reference/diff-rules.md#\1) \2</small>", text)
