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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
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
        decoder: The way back from the model's value.
        fix: The edit of the contract that makes the rule unnecessary.
    """

    effect: Effect
    text: str
    decoder: str
    fix: str


_C, _N, _G, _R = Effect.CODED, Effect.NARROWED, Effect.GUARDED, Effect.REFUSED
_VALIDATE = "the original schema validates the arguments"

RULES: Final[dict[str, Rule]] = {
    "rename-member": Rule(_C, "the name {0} is not allowed", "rename it back", "rename the property"),
    "null-if-absent": Rule(_C, "every member must be required", "drop null", "make {0} required"),
    "absent-if-null": Rule(_C, "null is not allowed", "insert null", "make {0} optional without null"),
    "mark-null": Rule(_C, "null already stands for an absent member", "replace the mark by null", "forbid null"),
    "label-values": Rule(_C, "only strings can be enumerated", "replace the label", "use an enum of non-empty strings"),
    "restore-case": Rule(_C, "the model may change letter case", "restore the case of enums", "avoid enum and const"),
    "map-to-entries": Rule(_C, "free member names are not allowed", "collect entries", "list the properties"),
    "tuple-to-object": Rule(_C, "positions are not allowed", "collect positions", "use an object instead of a tuple"),
    "wrap-root": Rule(_C, "a union is not allowed at the root", "unwrap the arguments", "use one object at the root"),
    "tag-union": Rule(
        _C, "decoding needs to tell branches apart", "drop the tag", "add a required const to each branch"
    ),
    "any-json": Rule(_C, "a value without a type is not allowed", "collect entries of objects", "state the type"),
    "drop-duplicates": Rule(_C, "uniqueItems is not allowed", "drop repeated items", "remove uniqueItems"),
    "drop-unknown": Rule(_C, "objects cannot be closed", "drop undeclared members", "remove additionalProperties"),
    "close-object": Rule(_N, "objects must be closed", "none", "set additionalProperties to false"),
    "shadow-member": Rule(_N, "an undeclared member may have the new name {0}", "none", "rename the property"),
    "close-branches": Rule(_N, "unevaluatedProperties closes each branch", "none", "use additionalProperties"),
    "drop-null": Rule(_N, "null stands for an absent member", "drop null", "forbid null or require {0}"),
    "cut-recursion": Rule(_N, "recursion is not allowed below level {0}", "none", "limit the nesting in the schema"),
    "format-to-pattern": Rule(_N, "the format {0} becomes a pattern", "none", "use the pattern in the contract"),
    "assert-format": Rule(_N, "a server may accept other strings than {0}", "none", "replace the format by a pattern"),
    "check-format": Rule(_G, "the format {0} is no assertion here", _VALIDATE, "use a pattern besides the format"),
    "drop-keyword": Rule(_G, "{0} is not allowed", _VALIDATE, "remove {0}"),
    "merge-keyword": Rule(_G, "two values of {0} cannot be merged", _VALIDATE, "state {0} once"),
    "one-of": Rule(_G, "branches of oneOf may overlap", _VALIDATE, "use anyOf, or a required const in each branch"),
    "drop-condition": Rule(_G, "{0} has no positive form", _VALIDATE, "replace {0} by a union of cases"),
    "drop-pattern": Rule(_G, "this pattern is not allowed", _VALIDATE, "use a simple regular expression"),
    "drop-enum": Rule(_G, "{0} values are too many", _VALIDATE, "use at most as many values as the profile allows"),
    "too-many-cases": Rule(_G, "the union has too many cases", _VALIDATE, "use fewer branches"),
    "open-tuple": Rule(_G, "positions of a tuple become one type", _VALIDATE, "use an array of one type"),
    "mixed-entries": Rule(
        _G, "entries may repeat a named member", _VALIDATE, "put free members into an object of their own"
    ),
    "json-text": Rule(_G, "{0} is not allowed, JSON text is", "parse the text, then validate", "state a simpler type"),
    "unsupported": Rule(_R, "{0} cannot be lowered", "none", "replace {0}"),
    "bad-schema": Rule(_R, "the schema is invalid: {0}", "none", "correct the schema"),
    "empty": Rule(_R, "no arguments are accepted", "none", "correct the schema"),
    "limit": Rule(_R, "{0}", "none", "make the tool smaller, or split it"),
}
"""Name -> rule, for each way in which a lowered schema can differ from its original."""


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
