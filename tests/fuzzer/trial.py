"""Parameters of a trial: role, transport, revision, and the seed of all random choices."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.harness.checked_connections import STATEFUL, STATELESS

from .mutations import conversation
from .traffic import traffic

ROUND = 200
"""Messages of a round; each round has a seed of its own, so that it can be repeated alone."""

ALL, EACH_KIND, WITH_STREAMS = (
    [*STATEFUL, STATELESS],
    ["2025-03-26", "2025-11-25", STATELESS],
    ["2024-11-05", "2025-11-25"],
)
"""Revisions; `EACH_KIND` has one revision with batches, one without, and one without sessions."""

TRANSPORTS = {
    ("server", "memory"): (40, ALL),
    ("server", "stdio"): (30, EACH_KIND),
    ("server", "sse"): (10, WITH_STREAMS),
    ("server", "http"): (20, EACH_KIND),
    ("client", "memory"): (6, ALL),
    ("client", "stdio"): (2, EACH_KIND),
    ("client", "sse"): (2, WITH_STREAMS),
    ("client", "http"): (2, EACH_KIND),
}
"""Tested side and transport -> the share of all messages, and the revisions."""


@dataclass(frozen=True)
class Trial:
    """Messages for one side of a connection.

    Attributes:
        role: The side under test.
        transport: The transport of the messages.
        revision: The revision of the connection.
        seed: Seed of all random choices.
        count: Number of messages.
        only: Numbers of the messages to send; None sends all.
    """

    role: str
    transport: str
    revision: str
    seed: int = 0
    count: int = ROUND
    only: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.transport} {self.revision}"

    @property
    def command(self) -> str:
        """Return the command that repeats the trial."""
        chosen = "" if self.only is None else f" --only '{','.join(map(str, self.only))}'"
        return (
            f"python -m tests.fuzzer --role {self.role} --transport {self.transport} --revision {self.revision}"
            f" --seed {self.seed} --count {self.count}{chosen}"
        )

    @property
    def stateless(self) -> bool:
        """True if the revision is stateless: each request is independent of a session."""
        return self.revision == STATELESS

    def dice(self, what: str = "") -> random.Random:
        """Return a random generator for one purpose."""
        return random.Random(f"{self.role} {self.transport} {self.revision} {self.seed} {what}")

    def rounds(self) -> list[Trial]:
        """Return the rounds as trials that can be run alone."""
        counts = [min(ROUND, self.count - start) for start in range(0, self.count, ROUND)]
        return [replace(self, seed=self.seed + number, count=count) for number, count in enumerate(counts)]

    def messages(self) -> list[tuple[int, bytes]]:
        """Return the messages to send, each with its number."""
        recorded = traffic(self.revision)
        said = recorded.client if self.role == "server" else recorded.server
        found = enumerate(conversation(self.dice("messages"), said, self.count))
        return [(number, data) for number, data in found if self.only is None or number in self.only]


def trials(count: int, seed: int = 0, **wanted: str | None) -> list[Trial]:
    """Return trials with `count` messages in total, for all roles, transports and revisions or for selected ones.

    Fast transports get a larger share of the messages.
    """
    found = [
        (share / len(revisions), Trial(role, transport, revision, seed))
        for (role, transport), (share, revisions) in TRANSPORTS.items()
        for revision in revisions
    ]
    found = [one for one in found if all(value in (None, getattr(one[1], name)) for name, value in wanted.items())]
    total = sum(share for share, _ in found)
    return [replace(trial, count=max(1, round(count * share / total))) for share, trial in found]
