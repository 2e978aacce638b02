"""Accepted changes: a TOML file of fingerprints, each with a reason and perhaps an expiry date.

[3f2a9c0b1d8e7f65]
reason = "our clients never send it"
expires = 2027-01-31
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import is_object, join
from mcp_bindgen.spec.toml import read_toml

from .finding import Comparison, Finding, Walked


@dataclass(frozen=True)
class Acceptance:
    """Accepted change.

    Attributes:
        fingerprint: Fingerprint of a finding: of one place, or of all places of its cause.
        reason: Why the change is accepted.
        expires: Last day of the acceptance.
    """

    fingerprint: str
    reason: str
    expires: date | None = None


@dataclass(frozen=True)
class Accepted:
    """Comparisons without the accepted findings.

    Attributes:
        comparisons: The comparisons without the accepted findings.
        count: Number of accepted findings, each place counted.
        expired: Expired acceptances; their findings are in `comparisons`.
        unused: Acceptances without a finding.
        walked: The range of commits, if the comparisons are of commits.
    """

    comparisons: tuple[Comparison, ...]
    count: int = 0
    expired: tuple[Acceptance, ...] = ()
    unused: tuple[Acceptance, ...] = ()
    walked: Walked | None = None

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The remaining findings of all comparisons."""
        return tuple(finding for comparison in self.comparisons for finding in comparison.findings)


def read_acceptances(path: Path) -> tuple[Acceptance, ...]:
    """Return the acceptances in a TOML file, which has a table for each fingerprint.

    Raises:
        BadInput: The file cannot be read, or an entry has no reason or an unknown key.
    """
    found: list[Acceptance] = []
    for fingerprint, entry in read_toml(path).items():
        at = join("", fingerprint)
        if not is_object(entry):
            raise BadInput("is not a table", file=path, pointer=at, fix='write [FINGERPRINT] and reason = "..." below')
        for key in entry.keys() - {"reason", "expires"}:
            raise BadInput(f"{key!r} says nothing here", file=path, pointer=at, fix="use the keys reason, expires")
        reason, expires = entry.get("reason"), entry.get("expires")
        if not isinstance(reason, str) or not reason.strip():
            raise BadInput("has no reason", file=path, pointer=at, fix='say why: reason = "..."')
        if expires is not None and type(expires) is not date:
            raise BadInput("'expires' is not a date", file=path, pointer=at, fix="write it like 2027-01-31")
        found.append(Acceptance(fingerprint, reason, expires))
    return tuple(found)


def accept(
    comparisons: Sequence[Comparison], acceptances: Sequence[Acceptance], today: date, whole: Sequence[Comparison]
) -> Accepted:
    """Remove accepted findings from comparisons.

    Args:
        comparisons: The comparisons.
        acceptances: The acceptances.
        today: The current date, to find expired acceptances.
        whole: The comparisons before any selection, to find unused acceptances.
    """
    expired = tuple(known for known in acceptances if known.expires is not None and known.expires < today)
    valid = {known.fingerprint for known in acceptances if known not in expired}
    seen = {fingerprint for one in whole for finding in one.findings for fingerprint in finding.fingerprints}
    left = tuple(
        replace(
            comparison,
            findings=tuple(finding for finding in comparison.findings if not finding.fingerprints & valid),
        )
        for comparison in comparisons
    )
    before = sum(len(comparison.findings) for comparison in comparisons)
    return Accepted(
        comparisons=left,
        count=before - sum(len(comparison.findings) for comparison in left),
        expired=tuple(known for known in expired if known.fingerprint in seen),
        unused=tuple(known for known in acceptances if known.fingerprint not in seen),
    )
