"""Report of a conversation with a peer: the features that were tried, and their outcome."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
STATEFUL, STATELESS = REVISIONS[:-1], REVISIONS[-1]
ALWAYS = (REVISIONS[0], STATELESS)
HANDSHAKE = (REVISIONS[0], STATEFUL[-1])
FEATURES = {
    "handshake": ALWAYS,
    "ping": HANDSHAKE,
    "tools": ALWAYS,
    "tool errors": ALWAYS,
    "structured content": ("2025-06-18", STATELESS),
    "content kinds": ALWAYS,
    "pagination": ALWAYS,
    "resources": ALWAYS,
    "templates": ALWAYS,
    "subscriptions": ALWAYS,
    "list changes": ALWAYS,
    "prompts": ALWAYS,
    "completion": ALWAYS,
    "logging": ALWAYS,
    "progress": ALWAYS,
    "cancellation": ALWAYS,
    "sampling": ALWAYS,
    "roots": ALWAYS,
    "elicitation": ("2025-06-18", STATELESS),
    "url elicitation": ("2025-11-25", STATELESS),
    "tasks": ("2025-11-25", "2025-11-25"),
    "rounds": (STATELESS, STATELESS),
    "caching": (STATELESS, STATELESS),
    "resuming": ("2025-03-26", STATEFUL[-1]),
    "mirrored arguments": (STATELESS, STATELESS),
    "shutdown": ALWAYS,
    "valid messages": ALWAYS,
}
"""Feature -> the first and the last revision that have it."""

HTTP_ONLY = ("resuming", "mirrored arguments")

STEP = 60.0
"""Seconds that a step may take."""


@dataclass(eq=False)
class Report:
    """Report of one conversation.

    Attributes:
        peer: The name of the peer.
        revision: The revision of the conversation.
        transport: The transport of the conversation.
        works: The features that were tried and worked.
        absent: Feature -> why the peer does not support it.
        failures: Feature -> traceback of its failure.
        without: Features that the peer cannot have, because it was written for another revision.
    """

    peer: str
    revision: str
    transport: str
    works: list[str] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()

    @contextmanager
    def step(self, feature: str) -> Generator[None]:
        """Try a feature; record an error and continue the conversation."""
        assert self.has(feature), f"{self.revision} has no {feature}"
        assert feature not in self.tried, f"{feature} is tried twice"
        try:
            with anyio.fail_after(STEP):
                yield
        except Exception:
            self.failures[feature] = traceback.format_exc()
        else:
            self.works.append(feature)

    def skip(self, feature: str, reason: str) -> None:
        """Record that the peer does not support a feature."""
        assert feature not in self.tried, f"{feature} is tried twice"
        if self.has(feature):
            self.absent[feature] = reason

    def skip_all(self, reason: str) -> None:
        """Record that the peer supports no feature in this conversation."""
        for feature in FEATURES:
            self.skip(feature, reason)

    def has(self, feature: str) -> bool:
        """Return True if the revision has a feature over this transport."""
        if feature in self.without:
            return False
        first, last = FEATURES[feature]
        return first <= self.revision <= last and (feature not in HTTP_ONLY or self.transport == "http")

    @property
    def stateless(self) -> bool:
        """True if the revision is stateless: each request is independent of a session."""
        return self.revision == STATELESS

    @property
    def tried(self) -> set[str]:
        """Features that have an outcome so far."""
        return {*self.works, *self.absent, *self.failures}

    def check(self) -> None:
        """Check that no feature failed and that every feature of the revision was tried."""
        assert not self.failures, "\n".join(f"--- {feature}\n{why}" for feature, why in self.failures.items())
        forgotten = {feature for feature in FEATURES if self.has(feature)} - self.tried
        assert not forgotten, f"not tried: {sorted(forgotten)}"
