"""A planned step: the differences between two revisions, and the edit of each payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from pydantic import StrictInt

from mcp_bindgen.ir.json_form import List, Maybe

from .edits import Edit, Named, reach
from .rules import Path, Rule


class Kind(StrEnum):
    """Kind of a difference."""

    IGNORED = "ignored"
    """The target ignores the value."""
    FILL = "fill"
    """The target requires a member with a known value, or closes the object to a member of the source."""
    TYPE_CONFLICT = "type-conflict"
    """The target types a member that the source does not name: a valid payload may have any value there."""
    CHECKED = "checked"
    """The target accepts some of the values; a value that it does not accept is refused, or converted by a rule."""
    NEEDS_RULE = "needs-rule"
    """Only a rule can decide."""


@dataclass(frozen=True)
class Difference:
    """Part of a payload that has another meaning in the target.

    Attributes:
        path: Where it is.
        kind: How it differs.
        description: The difference in words.
        rule: The rule for the difference, if there is one.
    """

    path: Path
    kind: Kind
    description: str
    rule: Maybe[Rule] = None

    @property
    def name(self) -> str:
        """The path as people read it."""
        return ".".join(self.path)

    @property
    def reason(self) -> str:
        """The reason of the rule, else the difference."""
        return self.description if self.rule is None else self.rule.because


@dataclass(frozen=True)
class Outcome:
    """The edit of a value, and the differences that require it."""

    edit: Edit | None = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Payload:
    """The params or the results of a method.

    Attributes:
        method: The method.
        part: `params` or `results`.
        edit: The edit; absent if the payload stays as it is.
        differences: The differences in the payload.
    """

    method: str
    part: Literal["params", "results"]
    edit: Maybe[Edit] = None
    differences: List[Difference] = ()


@dataclass(frozen=True)
class Conversion:
    """The edit of a definition that payloads refer to by name."""

    definition: Named
    edit: Edit


@dataclass(frozen=True)
class Side:
    """A revision at one end of a step, with the sha256 of its structure."""

    revision: str
    digest: str


@dataclass(frozen=True)
class Plan:
    """The conversion of all messages of a revision to an adjacent one.

    Attributes:
        source: The revision of the messages.
        target: The revision that they are converted to.
        payloads: The params and results of all methods that both revisions have.
        conversions: The edits of definitions, inner ones first.
        gone: The methods that the target lacks; with a sender in the path, that side may not send it there.
        errors: Method, or `*` for all -> code of the source -> code of the target.
        differences: All differences, each once.
        unused: Rules that match no difference.
    """

    source: Side
    target: Side
    payloads: List[Payload] = ()
    conversions: List[Conversion] = ()
    gone: List[Difference] = ()
    errors: Mapping[str, Mapping[int, StrictInt]] = field(default_factory=dict[str, Mapping[int, int]])
    differences: List[Difference] = ()
    unused: List[Rule] = ()

    @cached_property
    def named(self) -> dict[Named, Edit]:
        """Definition -> edit, inner definitions first."""
        return {conversion.definition: conversion.edit for conversion in self.conversions}

    def reached(self, payload: Payload) -> list[Edit]:
        """Return all edits of a payload, including edits of definitions, each definition once."""
        return [*reach(payload.edit, self.named)]

    @property
    def name(self) -> str:
        """The step as the headings of `bridges.toml` name it."""
        return f"{self.source.revision} -> {self.target.revision}"

    @property
    def absent(self) -> dict[str, str]:
        """Method that the target does not have -> why."""
        return {one.path[0]: one.reason for one in self.gone if not one.path[1:] and one.path[0] not in self.renamed}

    @property
    def renamed(self) -> dict[str, str]:
        """Method -> its name in the target, if that differs."""
        return {
            one.path[0]: one.rule.value for one in self.gone if one.rule is not None and one.rule.action == "rename"
        }

    @property
    def unsent(self) -> dict[str, dict[str, str]]:
        """Sender -> method that the target lets only the other side send -> why."""
        found: dict[str, dict[str, str]] = {}
        for difference in self.gone:
            for sender in difference.path[1:]:
                found.setdefault(sender, {})[difference.path[0]] = difference.reason
        return found

    @property
    def adapted(self) -> tuple[str, ...]:
        """The methods that the target lacks and whose purpose the adapter between the eras serves."""
        return tuple(one.path[0] for one in self.gone if one.rule is not None and one.rule.action == "adapter")

    @property
    def missing(self) -> tuple[Difference, ...]:
        """The differences that need a rule and have none; messages with a value there are refused."""
        return tuple(one for one in self.differences if one.kind is Kind.NEEDS_RULE and one.rule is None)
