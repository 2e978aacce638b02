"""Compare the arguments or the result of an entry: differences between the schemas, rated by rules and by proofs.

The rules of `diff` rate most differences. The library of the validator decides whether the new schema accepts every old
value; its answer takes precedence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jsonschema_rs

from mcp_bindgen.app.catalog import Kind
from mcp_bindgen.app.inclusion import Answer
from mcp_bindgen.diff.finding import Impact
from mcp_bindgen.diff.location import suffix
from mcp_bindgen.diff.rules import RULES, impacts
from mcp_bindgen.spec.errors import shortened

from ..references import IN_PLACE
from .inclusion import Inclusion, included, too_complex
from .places import HINTS, WORDS, Difference, differences
from .verdicts import ContractFinding, Example, Level

SENT = "arguments"
"""Arguments, which a client sends."""

ANSWERED = "result"
"""Result, which a server sends."""

_LEVELS = {
    Impact.NONE: Level.SAFE,
    Impact.SAFE: Level.SAFE,
    Impact.IGNORED: Level.RISKY,
    Impact.RISKY: Level.RISKY,
    Impact.BREAKS: Level.BREAKING,
}
_OPENNESS = ("additional-properties-closed", "additional-properties-opened")
"""Rules about unnamed members, which a proof does not consider."""

_CONDITIONS = IN_PLACE | {
    *("dependentRequired", "patternProperties", "propertyNames", "minProperties", "maxProperties"),
    *("unevaluatedProperties", "prefixItems", "contains", "minContains", "maxContains", "uniqueItems"),
    *("unevaluatedItems", "enum", "const"),
}
"""Keywords without a rule that restrict values."""

_LEADING = re.compile(r"""^(?:\.|\["(.*?)"\](?=[.\[{]|$))""")
"""Member name at the start of a place."""

_MAX_LENGTH = 60
"""Maximum number of characters of a value in a sentence."""


@dataclass(frozen=True)
class SchemaPair:
    """The old and the new schema of the arguments or the result of an entry.

    Attributes:
        kind: Kind of the entry.
        name: Name of the entry.
        root: `SENT` or `ANSWERED`.
        schemas: Both schemas.
    """

    kind: Kind
    name: str
    root: str
    schemas: tuple[Any, Any]

    @cached_property
    def proofs(self) -> tuple[Inclusion, Inclusion]:
        """Answers to whether the new side accepts every old value, and the old side every new value."""
        forward, back = included(*self.schemas), included(*reversed(self.schemas))
        return (forward, back) if self.root == SENT else (back, forward)

    def findings(self) -> list[ContractFinding]:
        """Return all findings, each change once."""
        written = list(differences(*self.schemas))
        worded = [self.worded(one) for one in written if one.keyword in WORDS]
        changed = [one for one in written if one.keyword not in WORDS]
        if changed and too_complex(*self.schemas):
            message = "changed, and a comparison would take too long; that counts as breaking"
            return [self.finding("too-complex", "", message, [Level.BREAKING, Level.BREAKING])]
        found = [self.ruled(one) for one in changed if one.rule]
        found += [self.condition(one, found) for one in changed if not one.rule]
        for side, proof in enumerate(self.proofs if changed else ()):
            if proof.answer is Answer.NO:
                found = self.proved(found, side, proof)
        return [*found, *worded]

    def worded(self, one: Difference) -> ContractFinding:
        """Return the finding about changed prose."""
        noun = "description" if one.keyword == "description" else f"`{one.keyword}`"
        return self.finding(rule_of_words(one.keyword), one.place, f"has another {noun}", [Level.SAFE, Level.SAFE])

    def ruled(self, one: Difference) -> ContractFinding:
        """Return a finding by a rule of `diff`, unless a proof refutes it."""
        rule = RULES[one.rule]
        levels = [_LEVELS[one] for one in impacts([rule.id], ["client" if self.root == SENT else "server"])]
        for side, proof in enumerate(self.proofs):
            if proof.answer is Answer.YES and levels[side] is Level.BREAKING and rule.id not in _OPENNESS:
                levels[side] = Level.SAFE
        message, hint = rule.says.format(old=one.old, new=one.new), rule.hint.replace("revision", "contract")
        return self.finding(rule.id, one.place, message, levels, hint=hint)

    def condition(self, one: Difference, others: Sequence[ContractFinding]) -> ContractFinding:
        """Return a finding about a keyword without a rule."""
        if one.keyword == "type" and one.old and one.new:
            message = f"was {_short(one.old)}, is {_short(one.new)}"
        elif one.old and one.new:
            message = f"has another `{one.keyword}`: was {_short(one.old)}, is {_short(one.new)}"
        else:
            message = f"has `{one.keyword}` now: {_short(one.new)}" if one.new else f"has no `{one.keyword}` any more"
        levels = [Level.RISKY, Level.RISKY]
        if one.keyword not in HINTS:
            levels = [self.condition_level(one, side, others) for side in (0, 1)]
        return self.finding("schema-changed", one.place, message, levels)

    def condition_level(self, one: Difference, side: int, others: Sequence[ContractFinding]) -> Level:
        """Rate a changed condition; if another finding breaks already, the condition may be harmless.

        A new condition breaks, unless a proof refutes it.
        """
        answer = self.proofs[side].answer
        if answer is Answer.YES:
            return Level.SAFE
        if any(_level(other, side) is Level.BREAKING for other in others):
            return Level.RISKY
        is_new = bool(one.new if side == (self.root == ANSWERED) else one.old) and not (one.old and one.new)
        return Level.BREAKING if answer is Answer.NO or (is_new and one.keyword in _CONDITIONS) else Level.RISKY

    def proved(self, found: Sequence[ContractFinding], side: int, proof: Inclusion) -> list[ContractFinding]:
        """Return the findings, with the finding at the place of the example as breaking if no other one is."""
        example = self.example(proof.example[0]) if proof.example else None
        path = "".join("[]" if isinstance(step, int) else suffix("field", step) for step in proof.place)
        breaking = [one for one in found if _level(one, side) is Level.BREAKING]
        here = [one for one in breaking or found if one.place == self.place(path) and _level(one, side) > Level.SAFE]
        here = here or (breaking if len(breaking) == 1 else [])
        if here:
            worse = replace(here[0], reverse=Level.BREAKING) if side else replace(here[0], level=Level.BREAKING)
            better = replace(worse, example=worse.example or example)
            return [better if one is here[0] else one for one in found]
        if breaking:
            return list(found)
        verb = "refuses what it accepted before" if side == 0 else "accepts what it refused before"
        if self.root == ANSWERED:
            verb = "may be what it never was before" if side == 0 else "can no longer be all that it was"
        message = verb + (f": {_short(proof.problem)}" if proof.problem and side == 0 else "")
        levels = [Level.BREAKING if one == side else Level.SAFE for one in (0, 1)]
        return [*found, replace(self.finding("schema-changed", path, message, levels), example=example)]

    def finding(
        self, rule: str, place: str, message: str, levels: Sequence[Level], *, hint: str = ""
    ) -> ContractFinding:
        """Return a finding about this entry."""
        return ContractFinding(rule, self.kind, self.name, self.place(place), message, levels[0], levels[1], hint)

    def place(self, steps: str) -> str:
        """Return a place as text: `argument city`, `result days[]`."""
        noun = {SENT: "argument" if steps else "arguments", ANSWERED: "result"}[self.root]
        if self.kind == "template":
            noun = noun.replace("argument", "variable")
        return f"{noun} {_LEADING.sub(lambda found: found[1] or '', steps)}".rstrip()

    def example(self, instance: Any) -> Example:
        """Return the verdicts of both schemas on a value."""
        old, new = (jsonschema_rs.validator_for(schema, offline=True).is_valid(instance) for schema in self.schemas)
        return Example(instance, old, new)


def rule_of_words(keyword: str) -> str:
    """Return the rule for a change of prose, by the member that has it."""
    return "description-changed" if keyword == "description" else "words-changed"


def _level(finding: ContractFinding, side: int) -> Level:
    return finding.reverse if side else finding.level


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _MAX_LENGTH)
