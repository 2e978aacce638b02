"""The words that the reports share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from mcp_bindgen.spec import Decision

from ..commits import Walked
from ..finding import Comparison, Finding, Impact, Outcome, Plane, Severity
from ..rules import RULES

IMPACTS = {impact: impact.name.lower() for impact in Impact}
OUTCOMES = {
    Outcome.WORKS: "works",
    Outcome.LIMITED: "works with limits",
    Outcome.CANNOT_TALK: "cannot talk",
}
PAIRINGS = ("old client, new server", "new client, old server")
PLANES = {
    Plane.WIRE: "On the wire",
    Plane.SOURCE: "In generated code only",
    Plane.DOC: "In words only",
}


def said(finding: Finding, quoted: Callable[[str], str] = str) -> str:
    """Return the words of the rule; `quoted` is how names and types are written."""
    return RULES[finding.rule].says.format(old=quoted(finding.old), new=quoted(finding.new))


def sentence(finding: Finding, quoted: Callable[[str], str] = str) -> str:
    """Return the subject and the words of the rule."""
    return f"{quoted(finding.subject)} {said(finding, quoted)}"


def on(comparison: Comparison, plane: Plane) -> list[Finding]:
    """Return the findings of one plane, in their order."""
    return [finding for finding in comparison.findings if finding.plane is plane]


def grouped(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Return group -> its findings, in their order."""
    return [(group, list(members)) for group, members in groupby(findings, key=lambda finding: finding.group)]


def by_rule(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Return rule -> its findings; the rules and the findings in alphabetical order."""
    ordered = sorted(findings, key=lambda finding: (finding.rule, finding.subject))
    return [(rule, list(members)) for rule, members in groupby(ordered, key=lambda finding: finding.rule)]


def about_words(comparison: Comparison) -> str:
    """Say that descriptions and deprecations were not compared, and why; empty where they were."""
    if comparison.compares_words:
        return ""
    return "Descriptions and deprecations are not compared: one side has our words, the other those of its file."


def place(decision: Decision) -> str:
    """Return where a decision was taken."""
    return f"{decision.file}#{decision.pointer}"


def plural(count: int, one: str, many: str = "") -> str:
    """Return `1 change`, `2 changes`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def severities(findings: Sequence[Finding]) -> str:
    """Say how many findings break, are risky, and are harmless."""
    counts = Counter(finding.severity for finding in findings)
    parts = [
        (counts[Severity.BREAKING], "breaks", "break"),
        (counts[Severity.RISKY], "is risky", "are risky"),
        (counts[Severity.INFO], "is harmless", "are harmless"),
    ]
    return ", ".join(plural(count, one, many) for count, one, many in parts if count)


def reached(finding: Finding, quoted: Callable[[str], str] = str, most: int = 3) -> str:
    """Return the methods that a finding reaches, unless it is listed under the only one; empty for none."""
    names = list(dict.fromkeys(message.method for message in finding.reaches))
    if not names or names == [finding.group]:
        return ""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quoted, names[:most])) + more


def verdict_of(comparison: Comparison) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return pairing, outcome and reasons of both verdicts."""
    verdicts = (comparison.old_client, comparison.new_client)
    return [
        (pairing, OUTCOMES[verdict.outcome], verdict.reasons)
        for pairing, verdict in zip(PAIRINGS, verdicts, strict=True)
    ]


def walked_in_words(walked: Walked) -> str:
    """Say how many commits there were, and what is not in the report."""
    parts = [f"{plural(walked.commits, 'commit')} touched it"]
    parts += [f"{walked.same} of them changed only words or layout"] if walked.same else []
    parts += [f"{len(walked.skipped)} of them cannot be read and were skipped"] if walked.skipped else []
    return ", ".join(parts)


def telling(comparisons: Sequence[Comparison], walked: Walked | None) -> list[Comparison]:
    """Return the comparisons that a report goes into: of commits, only those with something to tell."""
    told = [comparison for comparison in comparisons if comparison.findings or walked is None]
    return told or list(comparisons[:1])
