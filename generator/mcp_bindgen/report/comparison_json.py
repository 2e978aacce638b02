"""Report of `diff` as JSON, and the JSON Schema that documents it."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.diff.accept import Acceptance, Accepted
from mcp_bindgen.diff.commits import Skipped, Walked
from mcp_bindgen.diff.finding import Comparison, Finding, Message, Severity, Verdict, Witness
from mcp_bindgen.diff.grouping import grouped
from mcp_bindgen.diff.rules import RULES
from mcp_bindgen.ir.model import Protocol
from mcp_bindgen.spec import Correction, Diagnostic
from mcp_bindgen.spec.git import Commit

from .record import as_json, closed, ref, schema_of

_OR_NULL = ("cause", "definition_old", "definition_new", "gate", "unwitnessed", "witness")


def record(report: Accepted) -> dict[str, Any]:
    """Return the report as JSON; `json_schema` describes it."""
    return {
        "comparisons": [_comparison(comparison) for comparison in report.comparisons],
        "walked": as_json(report.walked),
        "accepted": {"count": report.count, "expired": as_json(report.expired), "unused": as_json(report.unused)},
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    findings = grouped(comparison.findings)
    return {
        "old": _revision(comparison.old),
        "new": _revision(comparison.new),
        "verdict": {"oldClient": as_json(comparison.old_client), "newClient": as_json(comparison.new_client)},
        "wordsCompared": comparison.compares_words,
        "commits": as_json(comparison.commits),
        "counts": {
            _name(severity): sum(finding.severity is severity for finding in findings)
            for severity in reversed(Severity)
        },
        "findings": [_finding(finding) for finding in findings],
    }


def _revision(protocol: Protocol) -> dict[str, Any]:
    known = {"revision": protocol.revision, "era": protocol.era, "digest": protocol.digest}
    return {**known, "corrections": as_json(protocol.corrections), "diagnostics": as_json(protocol.diagnostics)}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "fingerprint": finding.fingerprint,
        "severity": _name(finding.severity),
        **as_json(finding, _OR_NULL),
        "witness": finding.witness and as_json(finding.witness, _OR_NULL),
        "places": [_finding(place) for place in finding.places],
    }


def _name(severity: Severity) -> str:
    return str(as_json(severity))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the report."""
    text: dict[str, Any] = {"type": "string"}
    count: dict[str, Any] = {"type": "integer", "minimum": 0}
    digits = {**text, "pattern": "^[0-9a-f]{16}$", "description": "Identifies the change, independent of its wording."}
    finding = {"fingerprint": digits, "severity": {"enum": [_name(one) for one in Severity]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Differences between revisions of the Model Context Protocol",
        **closed(
            comparisons=_list("Comparison", "One comparison for two revisions, one for each step of a chain."),
            walked={"anyOf": [ref("Walked"), {"type": "null"}], "description": "The range of commits, if it was one."},
            accepted=closed(
                count={**count, "description": "How many findings the file took out, each place counted."},
                expired=_list("Acceptance", "Entries that no longer hold."),
                unused=_list("Acceptance", "Entries that no finding has."),
            ),
        ),
        "$defs": {
            "Comparison": closed(
                old=ref("Revision"),
                new=ref("Revision"),
                verdict=closed(oldClient=ref("Verdict"), newClient=ref("Verdict")),
                wordsCompared={
                    "type": "boolean",
                    "description": "False between our descriptions and the descriptions of a file.",
                },
                commits=_list("Commit", "The commits from the old to the new state, if they are known."),
                counts=closed(**{_name(severity): count for severity in reversed(Severity)}),
                findings=_list("Finding", "One for each cause: by severity, area, and distance to a message."),
            ),
            "Revision": closed(
                revision=text,
                era={"enum": ["stateful", "stateless"]},
                digest=text,
                corrections=_list("Correction", "The known mistakes that were corrected in a file from outside."),
                diagnostics=_list("Diagnostic", "How a file from outside was read where it breaks a rule."),
            ),
            "Finding": schema_of(Finding, _OR_NULL, {**finding, "rule": {"enum": sorted(RULES)}}),
            **{
                kind.__name__: schema_of(kind, _OR_NULL)
                for kind in (Acceptance, Correction, Diagnostic, Message, Verdict, Witness)
            },
            **{kind.__name__: schema_of(kind) for kind in (Commit, Skipped, Walked)},
        },
    }


def _list(name: str, description: str) -> dict[str, Any]:
    return {"type": "array", "items": ref(name), "description": description}
