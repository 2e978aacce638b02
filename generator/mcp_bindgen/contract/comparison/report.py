"""Render a comparison of contracts for a terminal or a log, as Markdown, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from mcp_bindgen.diff.reports.record import as_json
from mcp_bindgen.diff.reports.terminal import BOLD, DIM, GREEN, RED, YELLOW, Terminal
from mcp_bindgen.diff.reports.words import plural

from .verdicts import ContractComparison, ContractFinding, Level

_TITLES = {
    Level.BREAKING: ("Breaks existing clients", RED),
    Level.RISKY: ("Risky for existing clients", YELLOW),
    Level.SAFE: ("Safe for existing clients", GREEN),
}
_INDENT = 4
_LONGEST = 300
"""How much of an example is shown."""


def text(comparison: ContractComparison, *, width: int = 80, colour: bool = False, witness: bool = False) -> str:
    """Return the report as plain text: a line that says it all, then the changes, the worst first.

    Args:
        comparison: What to report.
        width: Where lines are folded.
        colour: Whether it is for a terminal that shows colours.
        witness: Whether to show the examples.
    """
    terminal = Terminal(width, colour)
    lines = [terminal.style(summary(comparison), BOLD)]
    for level, (title, code) in _TITLES.items():
        found = [finding for finding in comparison.findings if finding.level is level]
        lines += ["", terminal.style(f"{title} ({len(found)})", code)] if found else []
        for finding, others in _grouped(found):
            lines += terminal.folded(finding.sentence, 2, 2)
            more = [finding.hint] if finding.hint and level is not Level.SAFE else []
            more += [_example(finding)] if witness and finding.example is not None else []
            lines += [terminal.style(line, DIM) for words in more for line in terminal.folded(words, _INDENT, 2)]
            if others:
                same = _alike(finding, others)
                lines += terminal.folded(same, _INDENT, 2)
    return "\n".join(lines) + "\n"


def markdown(comparison: ContractComparison) -> str:
    """Return the report as Markdown: a table for each level."""
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
                f"| {_cell(finding.subject)} | {_cell(_told(finding, others))} | {finding.reverse.name.lower()} |"
                for finding, others in _grouped(found)
            ]
    return "\n".join(lines) + "\n"


_FEW = 3
"""From how many entries on with one and the same change they are told together, and how many of them are named."""


def _grouped(found: Sequence[ContractFinding]) -> Iterator[tuple[ContractFinding, list[str]]]:
    """Yield each finding with the names of the other entries that have the very same change, if these are many."""
    groups: dict[object, list[ContractFinding]] = {}
    for finding in found:
        key = finding.rule, finding.kind, finding.place, finding.words, finding.hint, finding.reverse
        groups.setdefault(key, []).append(finding)
    for group in groups.values():
        if len(group) <= _FEW or group[0].kind == "server":
            yield from ((finding, []) for finding in group)
        else:
            yield group[0], [finding.name for finding in group[1:]]


def _alike(finding: ContractFinding, others: Sequence[str]) -> str:
    """Say what else has the change of `finding`."""
    more = ", ..." if len(others) > _FEW else ""
    return f"and {plural(len(others), f'other {finding.kind}')} alike: {', '.join(others[:_FEW])}{more}"


def _told(finding: ContractFinding, others: Sequence[str]) -> str:
    """Return what happened, what to do about it, and what else it happened to."""
    hint = finding.hint if finding.level is not Level.SAFE else ""
    same = f"({_alike(finding, others)})" if others else ""
    return " ".join(filter(None, [f"{finding.words}." if hint else finding.words, hint, same]))


def record(comparison: ContractComparison) -> dict[str, Any]:
    """Return the report as JSON: every finding, for both directions."""
    return {
        "breaking": comparison.breaking,
        "reverseBreaking": comparison.reverse_breaking,
        "findings": [as_json(finding, or_null=("hint",)) for finding in comparison.findings],
    }


def json_text(comparison: ContractComparison) -> str:
    """Return `record` as text."""
    return json.dumps(record(comparison), indent=2, ensure_ascii=False) + "\n"


def summary(comparison: ContractComparison) -> str:
    """Return one line: whether existing clients are broken, and how much there is."""
    counts = {level: sum(finding.level is level for finding in comparison.findings) for level in _TITLES}
    if not comparison.findings:
        return "Nothing changed."
    parts = [f"{count} {level.name.lower()}" for level, count in counts.items() if count]
    verdict = "Existing clients break" if comparison.breaking else "Existing clients go on working"
    if not comparison.breaking and counts[Level.RISKY]:
        verdict = "Existing clients may be affected"
    total = len(comparison.findings)
    return f"{verdict}: {total} change{'s' if total > 1 else ''} ({', '.join(parts)})."


def _example(finding: ContractFinding) -> str:
    example = finding.example
    assert example is not None
    value = json.dumps(example.instance, ensure_ascii=False)
    value = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
    words = {True: "allows", False: "refuses"}
    old, new = words[example.old_accepts], words[example.new_accepts]
    return f"Both allow {value}" if old == new == "allows" else f"Old {old}, new {new}: {value}"


def _cell(text: str) -> str:
    """Escape text for a cell of a table."""
    shown = " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())
    for mark in "\\`|*_<>[]":
        shown = shown.replace(mark, f"\\{mark}")
    return shown
