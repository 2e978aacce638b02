"""Report of `lock check`: a section for each server, with diffs of texts and values that prove breaks."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcp_bindgen.lock.verdict import LockStatus, TextChange

from mcp_bindgen.app.catalog import KINDS
from mcp_bindgen.report.document import (
    NOWHERE,
    Block,
    Code,
    Document,
    Evidence,
    Finding,
    Findings,
    Level,
    Place,
    Section,
    code,
    literal,
)
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.jsonc import Located
from mcp_bindgen.spec.pointer import join

from ..wording import hints
from .drift import Checked

_LEVELS = {LockStatus.BREAKING: Level.ERROR, LockStatus.UNPROVEN: Level.ERROR, LockStatus.TEXT_CHANGED: Level.WARNING}
_FIXES = {
    LockStatus.ADDED: "Review it and run `mcp-bindgen lock` to offer it.",
    LockStatus.TEXT_CHANGED: "Review the text and run `mcp-bindgen lock` to accept it.",
    LockStatus.UNPROVEN: "Review both schemas and run `mcp-bindgen lock` to accept the change.",
    LockStatus.BREAKING: "Change the callers, or keep the locked version of the server.",
}
_MAX_DIFF_LINES = 60

Servers = Mapping[str, Sequence[Checked]]
"""Server -> its verdicts, the worst first."""


class LockPlaces:
    """Places of entries in a lock file.

    Args:
        path: The lock file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._located = Located(path.read_text("utf-8"))

    def of(self, server: str, one: Checked) -> Place:
        """Return the place of a verdict; an entry that the lock does not have is at its server."""
        verdict = one.verdict
        pointer = join("/servers", server)
        if verdict.kind != "server" and verdict.status is not LockStatus.ADDED and not one.age:
            pointer = join(pointer, KINDS[verdict.kind].member, verdict.name)
        return Place(str(self._path), pointer, self._located.line(pointer))


def document(servers: Servers, places: LockPlaces | None = None) -> Document:
    """Return the report; `places` for formats that show lines."""
    return Document("lock check", [_section(name, found, places) for name, found in servers.items()])


def record(servers: Servers) -> dict[str, Any]:
    """Return the report as JSON: every verdict, with changed texts and values that prove breaks."""
    return {
        "servers": {
            name: [
                {
                    "kind": one.verdict.kind,
                    "name": one.verdict.name,
                    "status": _word(one.verdict.status),
                    "reasons": list(one.verdict.reasons),
                    "earlierContract": one.age,
                    "texts": [
                        {"place": place, "old": list(old), "new": list(new), "hints": _hints(old, new)}
                        for place, old, new in one.texts
                    ],
                    "witnesses": [asdict(shown) for shown in one.witnesses],
                }
                for one in found
            ]
            for name, found in servers.items()
        }
    }


def _section(server: str, found: Sequence[Checked], places: LockPlaces | None) -> Section:
    counts = {status: sum(one.verdict.status is status for one in found) for status in reversed(LockStatus)}
    changed = [f"{count} {_word(status).replace('-', ' ')}" for status, count in counts.items() if count and status]
    blocks: list[Block] = []
    for one in found:
        if one.verdict.status is not LockStatus.SAME:
            blocks.append(Findings([_finding(one, NOWHERE if places is None else places.of(server, one))]))
            if one.texts and one.verdict.status >= LockStatus.TEXT_CHANGED:
                blocks.append(Code(_diff(one.texts), "diff"))
    return Section(f"{server}: {', '.join(changed) if changed else 'same'}", blocks)


def _finding(one: Checked, place: Place) -> Finding:
    verdict = one.verdict
    subject = f"{verdict.kind} {verdict.name}".rstrip()
    status = _word(verdict.status).replace("-", " ")
    reasons = "; ".join(verdict.reasons) or "its schema changed; clients of the lock work, which is proven"
    shown = next(iter(one.witnesses), None)
    older = f"Compared with the contract {one.age} before the locked one." if one.age else ""
    warnings = [f"{place}: {hint}" for place, old, new in one.texts for hint in _hints(old, new)]
    return Finding(
        rule=f"lock-{_word(verdict.status)}",
        level=_LEVELS.get(verdict.status, Level.NOTE),
        message=f"{code(subject)} {literal(f'{status}: {reasons}')}",
        effect=" ".join(f"{literal(printable(words))}." for words in warnings),
        note=older,
        fix=_FIXES.get(verdict.status, "").replace("`", ""),
        place=place,
        evidence=None if shown is None else Evidence(f"{shown.part}: {shown.problem}", shown.value, has_value=True),
    )


def _word(status: LockStatus) -> str:
    return status.name.lower().replace("_", "-")


def _hints(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the hints about new texts that the old ones did not have."""
    known = {hint for text in old for hint in hints(text)}
    return [hint for text in new for hint in hints(text) if hint not in known]


def _diff(texts: Sequence[TextChange]) -> str:
    """Return the changed texts as a diff; hidden characters are shown as JSON escapes."""
    lines: list[str] = []
    for place, old, new in texts:
        before, after = ([line for text in side for line in text.split("\n")] for side in (old, new))
        lines += [f"@@ {place} @@", *list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]]
    lines = [line for line in lines if not (line.startswith("@@ -") and line.endswith(" @@"))]
    more = [f"... and {len(lines) - _MAX_DIFF_LINES} more lines"] if len(lines) > _MAX_DIFF_LINES else []
    return "".join(f"{printable(line)}\n" for line in (*lines[:_MAX_DIFF_LINES], *more))
