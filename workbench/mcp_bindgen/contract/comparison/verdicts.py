"""Result of a comparison of two contracts: findings with levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal

from mcp_bindgen.app.catalog import Kind


class Level(IntEnum):
    """Impact of a change on an unchanged peer; a greater value is worse."""

    SAFE = 0
    """No impact."""
    RISKY = 1
    """A failure or misinterpretation is possible."""
    BREAKING = 2
    """Values that worked are refused, or an entry is gone."""


@dataclass(frozen=True)
class Example:
    """Value that proves a change: arguments or result of a call.

    Attributes:
        instance: The value.
        old_accepts: True if the old contract allows it.
        new_accepts: True if the new contract allows it.
    """

    instance: Any
    old_accepts: bool
    new_accepts: bool


@dataclass(frozen=True)
class ContractFinding:
    """Change between two contracts.

    Attributes:
        rule: Kind of change, e.g. `field-became-required`.
        kind: Kind of the changed entry; `server` for a change of the whole server.
        name: Its name or URI.
        place: Place in the entry, e.g. `argument city`; empty for the entry as a whole.
        message: Predicate of the sentence with the place.
        level: Impact on an old client with the new server.
        reverse: Impact on a new client with the old server.
        hint: Recommended action; may be empty.
        example: Value that proves it, if any.
    """

    rule: str
    kind: Kind | Literal["server"]
    name: str
    place: str
    message: str
    level: Level
    reverse: Level
    hint: str = ""
    example: Example | None = None

    @property
    def subject(self) -> str:
        """Subject of the change, e.g. `get-forecast: argument city`."""
        if self.kind == "server":
            return self.place
        return f"{self.name}: {self.place}" if self.place else f"{self.kind} {self.name}"

    @property
    def sentence(self) -> str:
        """The change in one line."""
        return f"{self.subject} {self.message}"


@dataclass(frozen=True)
class ContractComparison:
    """Comparison of two contracts.

    Attributes:
        findings: Changes: worst for existing clients first, then by subject.
    """

    findings: Sequence[ContractFinding]

    @property
    def breaking(self) -> bool:
        """True if a client of the old contract breaks with the new server."""
        return any(finding.level is Level.BREAKING for finding in self.findings)

    @property
    def reverse_breaking(self) -> bool:
        """True if a client of the new contract breaks with the old server."""
        return any(finding.reverse is Level.BREAKING for finding in self.findings)
