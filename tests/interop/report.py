"""What was tried with a peer, and how it went."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
FEATURES = {
    "handshake": "2024-11-05",
    "ping": "2024-11-05",
    "tools": "2024-11-05",
    "tool errors": "2024-11-05",
    "structured content": "2025-06-18",
    "content kinds": "2024-11-05",
    "pagination": "2024-11-05",
    "resources": "2024-11-05",
    "templates": "2024-11-05",
    "subscriptions": "2024-11-05",
    "list changes": "2024-11-05",
    "prompts": "2024-11-05",
    "completion": "2024-11-05",
    "logging": "2024-11-05",
    "progress": "2024-11-05",
    "cancellation": "2024-11-05",
    "sampling": "2024-11-05",
    "roots": "2024-11-05",
    "elicitation": "2025-06-18",
    "url elicitation": "2025-11-25",
    "tasks": "2025-11-25",
    "shutdown": "2024-11-05",
    "valid messages": "2024-11-05",
}
"""What a conversation can try -> the revision that has it first."""

STEP = 10.0
"""Seconds that a step may take."""


@dataclass
class Report:
    """One conversation.

    Attributes:
        peer: With whom.
        revision: In which revision.
        transport: Over what.
        works: The features that were tried and worked.
        absent: Feature -> why the peer cannot do it, as far as the peer itself says.
        failures: Feature -> what went wrong.
    """

    peer: str
    revision: str
    transport: str
    works: list[str] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def step(self, feature: str) -> Generator[None]:
        """Tries a feature; what goes wrong is written down and the conversation goes on."""
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
        """Says that the peer cannot do something."""
        assert feature not in self.tried, f"{feature} is tried twice"
        if self.has(feature):
            self.absent[feature] = reason

    def has(self, feature: str) -> bool:
        """Whether the revision has a feature."""
        return FEATURES[feature] <= self.revision

    @property
    def tried(self) -> set[str]:
        """What is written down so far."""
        return {*self.works, *self.absent, *self.failures}

    def check(self) -> None:
        """Nothing failed, and nothing was forgotten."""
        assert not self.failures, "\n".join(f"--- {feature}\n{why}" for feature, why in self.failures.items())
        forgotten = {feature for feature in FEATURES if self.has(feature)} - self.tried
        assert not forgotten, f"not tried: {sorted(forgotten)}"
