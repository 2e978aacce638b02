"""What a comparison of contracts looks like: for a terminal or a log, as Markdown, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from .verdicts import ContractComparison, ContractFinding, Level

_TITLES = {
    Level.BREAKING: ("Breaks existing clients", "31"),
    Level.RISKY: ("Risky for existing clients", "33"),
    Level.SAFE: ("Safe for existing clients", "32"),
}
_INDENT = 4
_LONGEST = 300
"""How much of an example is shown."""


def text(comparison: ContractComparison, *, width: int = 80, colour: bool = False, witness: bool = False) -> str:
    """The report as plain text: a line that says it all, then the changes, the worst first.

    Args:
        comparison: What to report.
        width: Where lines are folded.
        colour: Whether it is for a terminal that shows colours.
        witness: Whether to show the examples.
    """

    def painted(words: str, code: str) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if colour else words

    lines = [painted(summary(comparison), "1")]
    for level, (title, code) in _TITLES.items():
        found = [finding for finding in comparison.findings if finding.level is level]
        lines += ["", painted(f"{title} ({len(found)})", code)] if found else []
        for finding in found:
            lines += _folded(finding.sentence, width, 2)
            if finding.hint and level is not Level.SAFE:
                lines += [painted(line, "2") for line in _folded(finding.hint, width, _INDENT)]
            if witness and finding.example is not None:
                lines += [painted(line, "2") for line in _folded(_example(finding), width, _INDENT)]
    return "\n".join(lines) + "\n"


def markdown(comparison: ContractComparison) -> str:
    """The report as Markdown: a table for each level."""
    lines = [f"**{summary(comparison)}**"]
    for level, (title, _) in _TITLES.items():
        found = [finding for finding in comparison.findings if finding.level is level]
        if found:
            lines += [
                "",
                f"### {title} ({len(found)})",
                "",
                "| what | change | new client, old server |",
                "| --- | --- | --- |",
            ]
            lines += [
                f"| {_cell(finding.subject)} | {_cell(finding.words)} | {finding.reverse.name.lower()} |"
                for finding in found
            ]
    return "\n".join(lines) + "\n"


def record(comparison: ContractComparison) -> dict[str, Any]:
    """The report as JSON: every finding, for both directions."""
    return {
        "breaking": comparison.breaking,
        "reverseBreaking": comparison.reverse_breaking,
        "findings": [
            {
                "rule": finding.rule,
                "kind": finding.kind,
                "name": finding.name,
                "place": finding.place,
                "words": finding.words,
                "level": finding.level.name.lower(),
                "reverse": finding.reverse.name.lower(),
                "hint": finding.hint or None,
                "example": _record(finding),
            }
            for finding in comparison.findings
        ],
    }


def json_text(comparison: ContractComparison) -> str:
    """`record` as text."""
    return json.dumps(record(comparison), indent=2, ensure_ascii=False) + "\n"


def summary(comparison: ContractComparison) -> str:
    """One line: whether existing clients are broken, and how much there is."""
    counts = {level: sum(finding.level is level for finding in comparison.findings) for level in _TITLES}
    if not comparison.findings:
        return "Nothing changed."
    parts = [f"{count} {level.name.lower()}" for level, count in counts.items() if count]
    verdict = "Existing clients break" if comparison.breaking else "Existing clients go on working"
    if not comparison.breaking and counts[Level.RISKY]:
        verdict = "Existing clients may be affected"
    total = len(comparison.findings)
    return f"{verdict}: {total} change{'s' if total > 1 else ''} ({', '.join(parts)})."


def _record(finding: ContractFinding) -> dict[str, Any] | None:
    example = finding.example
    if example is None:
        return None
    return {"instance": example.instance, "oldAccepts": example.old_accepts, "newAccepts": example.new_accepts}


def _example(finding: ContractFinding) -> str:
    example = finding.example
    assert example is not None
    value = json.dumps(example.instance, ensure_ascii=False)
    value = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
    words = {True: "allows", False: "refuses"}
    old, new = words[example.old_accepts], words[example.new_accepts]
    return f"Both allow {value}" if old == new == "allows" else f"Old {old}, new {new}: {value}"


def _folded(text: str, width: int, indent: int) -> Iterator[str]:
    """`text` in lines, the later ones deeper; nothing in it moves a cursor, as contracts come from anywhere."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in " ".join(text.split()))
    margin = " " * indent
    yield from textwrap.wrap(
        shown, max(width, 40), initial_indent=margin, subsequent_indent=margin + "  ", break_on_hyphens=False
    )


def _cell(text: str) -> str:
    """Text that stays in a cell of a table, and is only text there."""
    shown = " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())
    for mark in "\\`|*_<>[]":
        shown = shown.replace(mark, f"\\{mark}")
    return shown
