"""Report of `diff` as JSON, and the JSON Schema that documents it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import NonNegativeInt

from mcp_bindgen.diff import finding
from mcp_bindgen.diff.accept import Acceptance, Accepted
from mcp_bindgen.diff.finding import RULES, Finding, Severity, Verdict, Walked
from mcp_bindgen.diff.grouping import grouped
from mcp_bindgen.ir.model import Protocol
from mcp_bindgen.spec import Correction, Diagnostic, Era
from mcp_bindgen.spec.git import Commit

from .record import as_json, schema_of


@dataclass(frozen=True)
class Revision:
    """One of the compared revisions.

    Attributes:
        corrections: The known mistakes that were corrected in a file from outside.
        diagnostics: How a file from outside was read where it breaks a rule.
    """

    revision: str
    era: Era
    digest: str
    corrections: tuple[Correction, ...]
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Verdicts:
    """A verdict for each pairing."""

    old_client: Verdict
    new_client: Verdict


@dataclass(frozen=True)
class Counts:
    """Number of findings of each severity."""

    breaking: NonNegativeInt
    risky: NonNegativeInt
    info: NonNegativeInt


@dataclass(frozen=True)
class Comparison:
    """Comparison of two revisions.

    Attributes:
        words_compared: False between our descriptions and the descriptions of a file.
        commits: The commits from the old to the new state, if they are known.
        findings: One for each cause: by severity, area, and distance to a message.
    """

    old: Revision
    new: Revision
    verdict: Verdicts
    words_compared: bool
    commits: tuple[Commit, ...]
    counts: Counts
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Acceptances:
    """Findings that a file accepts.

    Attributes:
        count: How many findings the file took out, each place counted.
        expired: Entries that no longer hold.
        unused: Entries that no finding has.
    """

    count: NonNegativeInt
    expired: tuple[Acceptance, ...]
    unused: tuple[Acceptance, ...]


@dataclass(frozen=True)
class Comparisons:
    """Differences between revisions of the Model Context Protocol.

    Attributes:
        comparisons: One comparison for two revisions, one for each step of a chain.
        walked: The range of commits, if it was one.
        accepted: The findings that a file accepts.
    """

    comparisons: tuple[Comparison, ...]
    walked: Walked | None
    accepted: Acceptances


def record(report: Accepted) -> dict[str, Any]:
    """Return the report as JSON; `json_schema` describes it."""
    accepted = Acceptances(report.count, report.expired, report.unused)
    found: dict[str, Any] = as_json(Comparisons(tuple(map(_comparison, report.comparisons)), report.walked, accepted))
    return found


def _comparison(comparison: finding.Comparison) -> Comparison:
    findings = grouped(comparison.findings)
    return Comparison(
        old=_revision(comparison.old),
        new=_revision(comparison.new),
        verdict=Verdicts(comparison.old_client, comparison.new_client),
        words_compared=comparison.compares_words,
        commits=comparison.commits,
        counts=Counts(*(sum(one.severity is severity for one in findings) for severity in reversed(Severity))),
        findings=tuple(findings),
    )


def _revision(protocol: Protocol) -> Revision:
    return Revision(protocol.revision, protocol.era, protocol.digest, protocol.corrections, protocol.diagnostics)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the report."""
    schema = schema_of(Comparisons)
    schema["$defs"]["Finding"]["properties"]["rule"]["enum"] = sorted(RULES)
    return schema
