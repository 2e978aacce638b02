"""Judge whether an old and a new side can work together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mcp_bindgen.protocol.model import Protocol

from .finding import Finding, Impact, Outcome, Plane, Verdict
from .messages import HANDSHAKE

CERTAIN = frozenset(
    {
        "field-added-required",
        "field-removed-required",
        "field-renamed",
        "type-changed",
        "const-changed",
        "message-carrier-changed",
        "request-method-removed",
    }
)
"""Rules whose change, where it breaks, breaks every message of its kind, and not just some."""


def verdicts(old: Protocol, new: Protocol, findings: Sequence[Finding]) -> tuple[Verdict, Verdict]:
    """Judge an old client with a new server, and a new client with an old server."""
    return (
        _verdict(old, new, [(finding, finding.old_client) for finding in findings]),
        _verdict(new, old, [(finding, finding.new_client) for finding in findings]),
    )


def _verdict(client: Protocol, server: Protocol, found: Sequence[tuple[Finding, Impact]]) -> Verdict:
    breaking = [finding for finding, impact in found if impact is Impact.BREAKS and finding.plane is Plane.WIRE]
    risky = [finding for finding, impact in found if impact is Impact.RISKY and finding.plane is Plane.WIRE]
    if client.era != server.era:
        return Verdict(Outcome.CANNOT_TALK, (*_eras(client), *_limits(breaking, risky)))
    fatal = [finding for finding in breaking if finding.rule in CERTAIN and _is_handshake(finding)]
    if fatal:
        subjects = ", ".join(dict.fromkeys(finding.subject for finding in fatal))
        return Verdict(Outcome.CANNOT_TALK, (f"The handshake fails: {subjects}.", *_limits(breaking, risky)))
    return Verdict(Outcome.LIMITED if breaking else Outcome.WORKS, _limits(breaking, risky))


def _is_handshake(finding: Finding) -> bool:
    return finding.group in HANDSHAKE


def _eras(client: Protocol) -> tuple[str, str]:
    if client.era == "stateful":
        return (
            "The client opens with `initialize`, which the server does not know.",
            "They can talk only if one of them also speaks the revision of the other.",
        )
    return (
        "The client never sends `initialize`, which the server insists on.",
        "They can talk only if one of them also speaks the revision of the other.",
    )


def _limits(breaking: Sequence[Finding], risky: Sequence[Finding]) -> tuple[str, ...]:
    reasons: list[str] = []
    if breaking:
        groups = Counter(finding.group for finding in breaking)
        named = [f"{group} ({count})" if count > 1 else group for group, count in groups.most_common(6)]
        more = f" and {len(groups) - 6} more" if len(groups) > 6 else ""
        noun = "change breaks" if len(breaking) == 1 else "changes break"
        reasons.append(f"{len(breaking)} {noun} messages: {', '.join(named)}{more}.")
    if risky:
        noun = "change is" if len(risky) == 1 else "changes are"
        reasons.append(f"{len(risky)} {noun} accepted but may be misunderstood.")
    return tuple(reasons)
