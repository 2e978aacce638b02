"""The result of a comparison of two contracts: findings with levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

Kind = Literal["tool", "prompt", "resource", "template", "server"]


class Level(IntEnum):
    """The effect of a change on somebody who does not change; the worse, the greater."""

    SAFE = 0
    """All goes on as before."""
    RISKY = 1
    """It may go wrong, or mean something else."""
    BREAKING = 2
    """What worked is refused, or is gone."""


@dataclass(frozen=True)
class Example:
    """A value that shows a change: the arguments of a call, or what answers it.

    Attributes:
        instance: The value.
        old_accepts: Whether the old contract allows it.
        new_accepts: Whether the new one does.
    """

    instance: Any
    old_accepts: bool
    new_accepts: bool


@dataclass(frozen=True)
class ContractFinding:
    """One change between two contracts.

    Attributes:
        rule: What kind of change, e.g. `field-became-required`.
        kind: What kind of thing changed.
        name: Its name, or URI.
        place: Where in it, e.g. `argument city`; empty where it is the thing as a whole.
        words: What happened, to be read after the place.
        level: What it does to an old client with the new server.
        reverse: What it does to a new client with the old server.
        hint: What to do about it; may be empty.
        example: A value that shows it, where there is one.
    """

    rule: str
    kind: Kind
    name: str
    place: str
    words: str
    level: Level
    reverse: Level
    hint: str = ""
    example: Example | None = None

    @property
    def subject(self) -> str:
        """What changed: `get-forecast: argument city`."""
        if self.kind == "server":
            return self.place
        return f"{self.name}: {self.place}" if self.place else f"{self.kind} {self.name}"

    @property
    def sentence(self) -> str:
        """The change in one line."""
        return f"{self.subject} {self.words}"


@dataclass(frozen=True)
class ContractComparison:
    """Two contracts, compared.

    Attributes:
        findings: What changed: the worst for existing clients first, then by what it is about.
    """

    findings: Sequence[ContractFinding]

    @property
    def breaking(self) -> bool:
        """Whether something breaks for a client of the old contract that meets the new server."""
        return any(finding.level is Level.BREAKING for finding in self.findings)

    @property
    def reverse_breaking(self) -> bool:
        """Whether something breaks for a client of the new contract that meets the old server."""
        return any(finding.reverse is Level.BREAKING for finding in self.findings)
