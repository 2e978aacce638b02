"""Verdicts on the compatibility of an old and a new side."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_bindgen.ir.model import Protocol
from mcp_bindgen.spec.errors import several

from .finding import RULES, Finding, Impact, Outcome, Plane, Verdict
from .grouping import grouped
from .messages import HANDSHAKE

_OPENINGS = {
    "stateful": "The client opens with `initialize`, which the server does not know.",
    "stateless": "The client never sends `initialize`, which the server insists on.",
}
"""Era of the client -> reason why it cannot connect to a server of the other era."""


def verdicts(old: Protocol, new: Protocol, findings: Sequence[Finding]) -> tuple[Verdict, Verdict]:
    """Return the verdicts on an old client with a new server, and on a new client with an old server."""
    return (
        _verdict(old, new, [(finding, finding.old_client) for finding in findings]),
        _verdict(new, old, [(finding, finding.new_client) for finding in findings]),
    )


def _verdict(client: Protocol, server: Protocol, found: Sequence[tuple[Finding, Impact]]) -> Verdict:
    breaking, risky = (
        [finding for finding, impact in found if impact is level and finding.plane is Plane.WIRE]
        for level in (Impact.BREAKS, Impact.RISKY)
    )
    limits = _limits(grouped(breaking), grouped(risky))
    if client.era != server.era:
        otherwise = "They can talk only if one of them also speaks the revision of the other."
        return Verdict(Outcome.CANNOT_TALK, (_OPENINGS[client.era], otherwise, *limits))
    fatal = [finding.subject for finding in breaking if RULES[finding.rule].is_certain and finding.group in HANDSHAKE]
    if fatal:
        return Verdict(Outcome.CANNOT_TALK, (f"The handshake fails: {', '.join(dict.fromkeys(fatal))}.", *limits))
    return Verdict(Outcome.LIMITED if breaking else Outcome.WORKS, limits)


def _limits(breaking: Sequence[Finding], risky: Sequence[Finding]) -> tuple[str, ...]:
    breaks = "change breaks" if len(breaking) == 1 else "changes break"
    may = "change is" if len(risky) == 1 else "changes are"
    named = several([one.subject for one in breaking], 6)
    return (
        *([f"{len(breaking)} {breaks} messages: {named}."] if breaking else []),
        *([f"{len(risky)} {may} accepted but may be misunderstood."] if risky else []),
    )
