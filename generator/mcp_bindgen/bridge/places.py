"""Describe a planned step: the places where two revisions differ, and what is done to each payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from mcp_bindgen.protocol.model import Protocol

from .edits import Edit, Named
from .rules import Path, Rule


class Kind(StrEnum):
    """Name how a place differs, and who knows what to do."""

    OPEN = "open"
    """The target ignores what the source says."""
    FILL = "fill"
    """The target wants what has a known default, or has no place for what the source says."""
    CLAIM = "claim"
    """The source leaves a name open that the target types: a valid payload may hold anything there."""
    HARD = "hard"
    """Only a rule can tell."""


@dataclass(frozen=True)
class Place:
    """A place where a payload of the source does not mean the same in the target.

    Attributes:
        path: Where it is.
        kind: How it differs.
        words: The difference in words.
        rule: What happens, if a rule says.
    """

    path: Path
    kind: Kind
    words: str
    rule: Rule | None = None

    @property
    def name(self) -> str:
        """The path as people read it."""
        return ".".join(self.path)

    @property
    def reason(self) -> str:
        """The reason for what becomes of it, or else the difference."""
        return self.words if self.rule is None else self.rule.because


@dataclass(frozen=True)
class Outcome:
    """Hold what is done to a value, and the places that this is for."""

    edit: Edit | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Payload:
    """The params or the results of a method.

    Attributes:
        method: The method.
        part: Which of them.
        edit: What is done to them; `None` for nothing.
        places: The places in them.
    """

    method: str
    part: Literal["params", "results"]
    edit: Edit | None
    places: tuple[Place, ...]

    @property
    def kind(self) -> str:
        """The worst of its places: `rule`, `fill` or `open`; `identity` where there is none but claims."""
        kinds = {place.kind for place in self.places}
        if Kind.HARD in kinds or any(place.rule for place in self.places):
            return "rule"
        return next((kind.value for kind in (Kind.FILL, Kind.OPEN) if kind in kinds), "identity")


@dataclass(frozen=True)
class Plan:
    """The conversion of all that a revision may say to an adjacent one.

    Attributes:
        source: The revision of what goes in.
        target: The revision of what comes out.
        payloads: All params and results of methods that both have.
        named: Source and target definition -> what is done to it, inner ones first.
        gone: The methods that the target does not have; with a sender in the path where only the other side sends them.
        errors: Method, or `*` for any -> code -> code.
        places: All places, each once.
        unused: Rules that match no place.
    """

    source: Protocol
    target: Protocol
    payloads: tuple[Payload, ...]
    named: Mapping[Named, Edit]
    gone: tuple[Place, ...]
    errors: Mapping[str, Mapping[int, int]]
    places: tuple[Place, ...]
    unused: tuple[Rule, ...] = ()

    @property
    def name(self) -> str:
        """The step as the headings of `bridges.toml` name it."""
        return f"{self.source.revision} -> {self.target.revision}"

    @property
    def absent(self) -> dict[str, str]:
        """Method that the target does not have -> why."""
        return {place.path[0]: place.reason for place in self.gone if not place.path[1:]}

    @property
    def unsent(self) -> dict[str, dict[str, str]]:
        """Sender -> method that the target lets only the other side send -> why."""
        found: dict[str, dict[str, str]] = {}
        for place in self.gone:
            for sender in place.path[1:]:
                found.setdefault(sender, {})[place.path[0]] = place.reason
        return found

    @property
    def adapted(self) -> tuple[str, ...]:
        """The methods that are gone, but who speaks the era of the target sees to what they are for."""
        return tuple(place.path[0] for place in self.gone if place.rule is not None and place.rule.action == "adapter")

    @property
    def missing(self) -> tuple[Place, ...]:
        """The hard places without a rule; what is said there is refused."""
        return tuple(place for place in self.places if place.kind is Kind.HARD and place.rule is None)
