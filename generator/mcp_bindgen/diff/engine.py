"""Compare two revisions: two protocol models become findings and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcp_bindgen.protocol.model import Protocol

from .finding import Comparison, Finding, Plane
from .findings import Findings, Found
from .verdict import verdicts


def compare(old: Protocol, new: Protocol, *, evidence: bool = True) -> Comparison:
    """Find the differences between two revisions, and their impact on old and new peers.

    Args:
        old: The old revision.
        new: The new revision.
        evidence: True to add a witness to each finding on the wire, or the reason for its absence.
    """
    found = Findings(old, new).run()
    findings = arranged(_witnessed(old, new, found) if evidence else (finding for finding, _ in found))
    old_client, new_client = verdicts(old, new, findings)
    return Comparison(old, new, old_client, new_client, findings)


def _witnessed(old: Protocol, new: Protocol, found: Iterable[Found]) -> Iterator[Finding]:
    from .witness import Witnesses  # the validator takes time to load

    witnesses = Witnesses(old, new)
    for finding, change in found:
        known = change if finding.plane is Plane.WIRE else None
        yield witnesses.witnessed(finding, known) if known is not None else finding


def arranged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings into groups by severity: the worst finding first, and the group with the worst finding first."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.group, []).append(finding)
    ranked = [sorted(group, key=_rank) for group in groups.values()]
    ranked.sort(key=lambda group: (*_rank(group[0])[:3], group[0].group))
    return tuple(finding for group in ranked for finding in group)


def _rank(finding: Finding) -> tuple[int, int, int, str, str, str, str]:
    worse, better = sorted((finding.old_client, finding.new_client), reverse=True)
    plane = list(Plane).index(finding.plane)
    return -worse, -better, plane, finding.subject, finding.rule, finding.old, finding.new
