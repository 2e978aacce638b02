"""The rules of lowering: each states its effect on the set of accepted arguments, its decoder, and how to avoid it.

Let S be the set of arguments that the tool accepts and L the set that the lowered schema accepts. `dec` is the decoder.

- coded: `dec` maps L onto S, and `encode` is its right inverse.
- narrowed: `dec` maps L into S, and some arguments of S cannot be expressed.
- guarded: `dec` may give arguments outside of S; the original schema validates them.
- refused: there is no lowered schema.

Rewrites whose L equals S need no decoder and are no reason: `const` as `enum`, merged `allOf`, inlined `$ref`,
inclusive bounds of integers, dropped annotations, `if` and `dependentRequired` as a union of cases, and `oneOf` as
`anyOf` if its branches exclude each other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final


class Effect(StrEnum):
    """Effect of a rule on the set of accepted arguments."""

    CODED = "coded"
    NARROWED = "narrowed"
    GUARDED = "guarded"
    REFUSED = "refused"


class Verdict(StrEnum):
    """Relation between the lowered schema and the original."""

    EXACT = "exact"
    CODED = "coded"
    NARROWED = "narrowed"
    GUARDED = "guarded"
    NARROWED_GUARDED = "narrowed+guarded"
    REFUSED = "refused"


@dataclass(frozen=True)
class Rule:
    """A rewrite.

    Attributes:
        effect: Its effect on the set of accepted arguments.
        text: The reason, with `{0}` for its subject.
        fix: The edit of the contract that makes the rule unnecessary.
        decoder: The way back from the model's value.
    """

    effect: Effect
    text: str
    fix: str
    decoder: str = "none"


RULES: Final[dict[str, Rule]] = {
    name: Rule(**{**table, "effect": Effect(table["effect"])})
    for name, table in tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8")).items()
}
"""The rules of `rules.toml`: name -> rule, for each way in which a lowered schema can differ from its original."""


@dataclass(frozen=True)
class Reason:
    """Use of a rule at a place of the schema.

    Attributes:
        pointer: JSON Pointer into the tool, such as `/inputSchema/properties/city`.
        rule: Name of the rule, a key of `RULES`.
        text: The reason in one sentence.
        fix: The edit of the contract that makes this place exact.
    """

    pointer: str
    rule: str
    text: str
    fix: str
    example: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @property
    def effect(self) -> Effect:
        """Effect of the rule on the set of accepted arguments."""
        return RULES[self.rule].effect

    def inside(self, wrap: Callable[[Any], Any]) -> Reason:
        """Return the reason with its example inside of a larger value."""
        if (example := self.example) is None:
            return self
        return replace(self, example=lambda: wrap(example()))


def reason(rule: str, pointer: str, subject: object = "", example: Callable[[], Any] | None = None) -> Reason:
    """Return the use of a rule; `example` makes a value that it loses."""
    known = RULES[rule]
    return Reason(pointer, rule, known.text.format(subject), known.fix.format(subject), example)


class Refused(Exception):
    """A schema has no lowered form."""

    def __init__(self, rule: str, pointer: str, subject: object = "") -> None:
        self.reason: Reason = reason(rule, pointer, subject)
        super().__init__(self.reason.text)


def verdict(reasons: Iterable[Reason]) -> Verdict:
    """Return the verdict that follows from the effects of all rules that were used."""
    effects = {one.effect for one in reasons}
    if Effect.REFUSED in effects:
        return Verdict.REFUSED
    if effects >= {Effect.NARROWED, Effect.GUARDED}:
        return Verdict.NARROWED_GUARDED
    found = next((one for one in (Effect.GUARDED, Effect.NARROWED, Effect.CODED) if one in effects), None)
    return Verdict.EXACT if found is None else Verdict(found.value)
