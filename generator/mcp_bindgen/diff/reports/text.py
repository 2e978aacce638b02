"""Render the report for a terminal: a summary that fits one screen, then every finding."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from mcp_bindgen.spec.git import Commit

from ..commits import Walked
from ..finding import Comparison, Finding, Impact, Plane, Severity
from .terminal import BOLD, DIM, GREEN, RED, YELLOW, Terminal, plain
from .words import (
    IMPACTS,
    OUTCOMES,
    PLANES,
    about_words,
    by_rule,
    grouped,
    on,
    place,
    plural,
    reached,
    sentence,
    severities,
    telling,
    verdict_of,
    walked_in_words,
)

_INDENT = 20
_COLUMN = 9
_COMMIT = 24
_COLOURS = {Impact.BREAKS: RED, Impact.RISKY: YELLOW, Impact.IGNORED: DIM, Impact.SAFE: GREEN, Impact.NONE: DIM}
_SEVERITIES = {Severity.BREAKING: RED, Severity.RISKY: YELLOW, Severity.INFO: DIM}
_OUTCOMES = {"works": GREEN, "works with limits": YELLOW, "cannot talk": RED}


def text(
    comparisons: Sequence[Comparison],
    *,
    width: int = 80,
    colour: bool = False,
    witness: bool = False,
    walked: Walked | None = None,
) -> str:
    """Return the report as plain text.

    Args:
        comparisons: What to report.
        width: Where lines are folded.
        colour: Whether it is for a terminal that shows colours.
        witness: Whether to show the witnesses.
        walked: The range of commits that they are from, if they are.
    """
    printer = _Printer(width, colour, witness)
    lines: list[str] = []
    if walked is not None:
        lines += [*printer.walk(comparisons, walked), ""]
    elif len(comparisons) > 1:
        lines += [*printer.steps(comparisons), ""]
    for comparison in telling(comparisons, walked):
        lines += [*printer.summary(comparison), *printer.details(comparison), ""]
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


class _Printer(Terminal):
    def __init__(self, width: int, colour: bool, witness: bool) -> None:
        super().__init__(width, colour)
        self.witness = witness

    # --- summary ------------------------------------------------------------------------------------------------

    def steps(self, comparisons: Sequence[Comparison]) -> Iterator[str]:
        """Return one line for each step of a chain."""
        for comparison in comparisons:
            outcomes = [OUTCOMES[comparison.old_client.outcome], OUTCOMES[comparison.new_client.outcome]]
            words = outcomes[0] if outcomes[0] == outcomes[1] else " / ".join(outcomes)
            yield f"{_title(comparison)}  {plural(len(comparison.findings), 'change'):>11}  {words}"

    def walk(self, comparisons: Sequence[Comparison], walked: Walked) -> Iterator[str]:
        """Return what each commit of a range changed, and those that were skipped."""
        for line in self.folded(f"{walked.source}: {walked_in_words(walked)}.", 0):
            yield self.style(line, BOLD)
        for comparison in comparisons:
            worst = max((finding.severity for finding in comparison.findings), default=Severity.INFO)
            changes = severities(comparison.findings) or "nothing to report"
            for commit in comparison.commits:
                yield ""
                yield from self.commit(commit)
            if comparison.commits:
                yield from (self.style(line, _SEVERITIES[worst]) for line in self.folded(changes, _COMMIT))
        for reason, skipped in groupby(walked.skipped, key=lambda one: one.reason):
            yield ""
            yield from self.folded(f"Skipped, because it cannot be read: {reason}", 0)
            for one in skipped:
                yield from self.commit(one.commit)

    def commit(self, commit: Commit) -> Iterator[str]:
        """Return a commit: its hash, its day and its subject."""
        first, *rest = self.folded(commit.subject or "(no subject)", _COMMIT)
        yield f"{self.style(commit.short, BOLD)}  {commit.date}  {first.strip()}"
        yield from rest

    def summary(self, comparison: Comparison) -> Iterator[str]:
        """Return the verdicts, how much there is, and where most of it is."""
        yield self.style(f"MCP {_title(comparison)}: {plural(len(comparison.findings), 'change')}", BOLD)
        for commit in comparison.commits:
            yield from self.commit(commit)
        yield ""
        for pairing, outcome, reasons in verdict_of(comparison):
            yield f"{pairing.capitalize()}: {self.style(outcome, BOLD, _OUTCOMES[outcome])}"
            for reason in reasons:
                yield from self.folded(reason, 2)
        yield ""
        for plane, title in PLANES.items():
            found = on(comparison, plane)
            if found:
                detail = f" ({severities(found)})" if plane is Plane.WIRE else ""
                yield from self.folded(f"{title}: {len(found)}{detail}", 0)
        yield from self.folded(about_words(comparison), 0)

    # --- details ------------------------------------------------------------------------------------------------

    def details(self, comparison: Comparison) -> Iterator[str]:
        """Return every finding: those on the wire one by one, the others by what they are."""
        wire = on(comparison, Plane.WIRE)
        if wire:
            yield ""
            yield from self.heading("ON THE WIRE")
            yield f"  {'old':<{_COLUMN}}{'new':<{_COLUMN}}client, with the other side of the other revision"
        for group, findings in grouped(wire):
            yield ""
            yield self.style(plain(group), BOLD)
            for finding in findings:
                yield from self.finding(finding)
        for plane in (Plane.SOURCE, Plane.DOC):
            found = on(comparison, plane)
            if found:
                yield ""
                yield from self.heading(PLANES[plane].upper())
            for rule, findings in by_rule(found):
                yield ""
                yield f"{self.style(rule, BOLD)} ({len(findings)})"
                for finding in findings:
                    words = finding.subject if plane is Plane.DOC else sentence(finding)
                    first, *rest = self.folded(words, 4)
                    yield f"  {first.strip()}"
                    yield from rest
                    yield self.style(f"    {finding.fingerprint}", DIM)

        if comparison.decisions:
            yield ""
            yield from self.heading("HOW THE SCHEMAS WERE READ")
        for decision in comparison.decisions:
            yield ""
            for line in self.folded(place(decision), 0, more=2):
                yield self.style(line, BOLD)
            for words in (f"{decision.reason}; {decision.reading}", decision.fix):
                yield from self.folded(words, 2)

    def heading(self, title: str) -> Iterator[str]:
        yield self.style(f"{title} {'-' * (self.width - len(title) - 1)}", DIM)

    def finding(self, finding: Finding) -> Iterator[str]:
        """Return a finding on the wire."""
        impacts = (finding.old_client, finding.new_client)
        margin = "  " + "".join(
            self.style(IMPACTS[impact], _COLOURS[impact]) + " " * (_COLUMN - len(IMPACTS[impact])) for impact in impacts
        )
        first, *rest = self.folded(sentence(finding), _INDENT)
        yield margin + first.strip()
        yield from rest
        names = reached(finding)
        if names:
            yield from self.folded(f"in {names}", _INDENT)
        if finding.hint:
            yield from self.folded(finding.hint, _INDENT)
        if self.witness:
            yield from self.folded(_witness(finding), _INDENT)
        yield self.style(" " * _INDENT + f"{finding.rule} {finding.fingerprint}", DIM)


def _title(comparison: Comparison) -> str:
    return f"{plain(comparison.old.revision)} -> {plain(comparison.new.revision)}"


def _witness(finding: Finding) -> str:
    if finding.witness is None:
        return f"No witness: {finding.unwitnessed}."
    value = json.dumps(finding.witness.instance, ensure_ascii=False)
    value = value if len(value) <= 400 else f"{value[:400]}..."
    old, new = finding.witness.judgements
    return f"Both accept {value}" if old == new == "accepts" else f"Old {old}, new {new}: {value}"
