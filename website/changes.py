"""Pages of changes: an anchor for each finding, and links to the atlas and to the rules."""

from __future__ import annotations

import re
from collections.abc import Container

from .atlas.model import definition_page, finding_anchor, method_page

_SUBJECT = re.compile(r"^- (`(?:[\w<>-]+ \w+ )?([\w/]+)[^`]*`)", re.MULTILINE)
_RULE = re.compile(r'<sub title="([0-9a-f]{16})">([a-z-]+)</sub>')


def linked_findings(name: str, text: str, pages: Container[str]) -> str:
    """Return a page with links from its findings to the atlas; only pages of changes have any."""
    if not name.startswith("changes/"):
        return text

    def subject(match: re.Match[str]) -> str:
        page = next((page for page in (method_page(match[2]), definition_page(match[2])) if page in pages), None)
        return f"- [{match[1]}](../{page})" if page is not None else match[0]

    def rule(match: re.Match[str]) -> str:
        place = f'id="{finding_anchor(match[1])}" title="{match[1]}"'
        return f"<small {place}>[{match[2]}](../reference/diff-rules.md#{match[2]})</small>"

    return _RULE.sub(rule, _SUBJECT.sub(subject, text))
