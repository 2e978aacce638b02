"""Compare what one entry of a contract takes, and what it gives: by types, by what is written, and by proof.

The diff of types says what changed so that a person understands it. What types cannot carry is found in the schemas
themselves. In the end a validator's library is asked whether all that was fine still is; its word counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jsonschema_rs

from mcp_bindgen.diff.finding import Finding, Impact
from mcp_bindgen.diff.location import suffix
from mcp_bindgen.diff.rules import RULES, impacts
from mcp_bindgen.diff.scalars import scalar_differences
from mcp_bindgen.protocol.model import Protocol, Scalar
from mcp_bindgen.spec.keywords import CONSTRAINTS

from .inclusion import Answer, Inclusion, included, too_complex
from .places import CONDITIONS, HINTS, TYPED, WORDS, Difference, differences
from .typed import ANSWERED, SENT, steps, type_findings
from .verdicts import ContractFinding, Example, Kind, Level

_LEVELS = {
    Impact.NONE: Level.SAFE,
    Impact.SAFE: Level.SAFE,
    Impact.IGNORED: Level.RISKY,
    Impact.RISKY: Level.RISKY,
    Impact.BREAKS: Level.BREAKING,
}
_OPENNESS = ("additional-properties-closed", "additional-properties-opened")
"""Rules about members that nobody names: a proof leaves those out, so it says nothing against them."""

_LEADING = re.compile(r"""^(?:\.|\["(.*?)"\](?=[.\[{]|$))""")
"""How a place begins: a member's name, which needs no marks there."""

_CHOICES = frozenset({"enum", "const"})
_ALL = TYPED
_EXPLAINS = {
    "field-became-": frozenset({"required"}),
    "field-": frozenset({"properties", "required"}),
    "default-": frozenset({"default"}),
    "format-": frozenset({"format"}),
    "constraint-": frozenset(CONSTRAINTS),
    "pattern-": frozenset({"pattern"}),
    "additional-": frozenset({"additionalProperties"}),
    **dict.fromkeys(("number-", "integer-"), frozenset({"type"})),
    "became-": frozenset({"type", "anyOf", "oneOf"}),
    **dict.fromkeys(("enum-", "const-"), frozenset({"type", "const", "enum", "anyOf", "oneOf"})),
}
"""What rules begin with -> the keywords that they speak of; the others speak of all that stands in a place."""


@dataclass(frozen=True)
class Entry:
    """One thing that both contracts have.

    Attributes:
        kind: What it is.
        name: Its name.
        old: The types of the old contract.
        new: The types of the new one.
    """

    kind: Kind
    name: str
    old: Protocol
    new: Protocol


def schema_findings(entry: Entry, root: str, names: Sequence[str], schemas: Sequence[Any]) -> list[ContractFinding]:
    """Find what changed in the arguments or in the result of an entry.

    Args:
        entry: The entry.
        root: `SENT` or `ANSWERED`.
        names: The old and the new name of the definition.
        schemas: The old and the new schema.
    """
    written = list(differences(*schemas))
    if not written:
        return []
    return _Schemas(entry, root, names, schemas, written).findings()


class _Schemas:
    def __init__(
        self, entry: Entry, root: str, names: Sequence[str], schemas: Sequence[Any], written: list[Difference]
    ) -> None:
        self.entry, self.root, self.names, self.schemas, self.written = entry, root, names, schemas, written

    @cached_property
    def proofs(self) -> tuple[Inclusion, Inclusion]:
        """Whether the new side accepts all that was fine before, and the old one all that is fine now."""
        forward, back = included(*self.schemas), included(*reversed(self.schemas))
        return (forward, back) if self.root == SENT else (back, forward)

    def findings(self) -> list[ContractFinding]:
        """Return all findings, each change once."""
        if all(difference.keyword in WORDS for difference in self.written):
            return list(self.worded())
        if too_complex(*self.schemas):
            words = "changed, and a comparison would take too long; that counts as breaking"
            return [self.finding("too-complex", "", words, [Level.BREAKING, Level.BREAKING])]
        typed = type_findings(self.entry.old, self.entry.new, {self.root: self.names})
        found = [self.typed(finding) for finding in typed]
        chosen = {one.place for one in self.written if one.keyword in _CHOICES}  # there, the values say it all
        for one in self.written:
            if one.keyword == "type" and one.place in chosen:
                continue
            covered = one.keyword in TYPED and any(_covers(finding, one) for finding in typed)
            if one.keyword not in WORDS and not covered:
                said = {(known.place, known.words) for known in found}
                found += [new for new in self.untyped(one, found) if (new.place, new.words) not in said]
        for side, proof in enumerate(self.proofs):
            if proof.answer is Answer.NO:
                found = self.proved(found, side, proof)
        return [*found, *self.worded()]

    # --- what types say -----------------------------------------------------------------------------------------

    def typed(self, finding: Finding) -> ContractFinding:
        """Return a finding of the diff of types; a proof that all is accepted outweighs it."""
        root, place = steps(finding.subject)
        levels = [_LEVELS[finding.old_client], _LEVELS[finding.new_client]]
        for side, proof in enumerate(self.proofs):
            if proof.answer is Answer.YES and levels[side] is Level.BREAKING and finding.rule not in _OPENNESS:
                levels[side] = Level.SAFE
        example = self.example(finding.witness.instance) if finding.witness and root == self.root else None
        if example is not None and example.old_accepts == example.new_accepts:
            example = None if Level.BREAKING in levels else example
        elif example is not None:
            side = int(example.new_accepts) if self.root == SENT else int(example.old_accepts)
            levels[side] = max(levels[side], Level.BREAKING if levels[side] is Level.RISKY else Level.SAFE)
        return self.finding(
            finding.rule,
            place if root == self.root else finding.subject,
            RULES[finding.rule].says.format(old=finding.old, new=finding.new),
            levels,
            hint=_hint(finding.hint),
            example=example,
            apart=root != self.root,
        )

    # --- what is written ----------------------------------------------------------------------------------------

    def worded(self) -> Iterator[ContractFinding]:
        """Find descriptions and other prose that changed."""
        for one in self.written:
            if one.keyword in WORDS:
                what = "description" if one.keyword == "description" else f"`{one.keyword}`"
                rule = "description-changed" if one.keyword == "description" else "words-changed"
                yield self.finding(rule, one.place, f"has another {what}", [Level.SAFE, Level.SAFE])

    def untyped(self, one: Difference, others: Sequence[ContractFinding]) -> Iterator[ContractFinding]:
        """Say what a difference means that types do not show."""
        if one.keyword == "default":
            yield self.ruled("default-changed", one.place, one.old or "nothing", one.new or "nothing")
        elif one.keyword == "format" or one.keyword in CONSTRAINTS:
            old, new = (Scalar("number", *_limit(one.keyword, said)) for said in (one.old, one.new))
            for rule, was, now in scalar_differences(old, new):
                yield self.ruled(rule, one.place, was, now)
        elif one.keyword == "enum" and one.old and one.new:
            before, after = (list(map(_plain, json.loads(said))) for said in (one.old, one.new))
            for value in (value for value in before if value not in after):
                yield self.ruled("enum-value-removed", one.place, value, "")
            for value in (value for value in after if value not in before):
                yield self.ruled("enum-value-added", one.place, "", value)
        else:
            yield self.condition(one, others)

    def ruled(self, rule: str, place: str, old: str, new: str) -> ContractFinding:
        """Return a finding by a rule of the diff of types; a proof that all is accepted outweighs it."""
        impact = impacts([rule], ["client" if self.root == SENT else "server"])
        levels = [_LEVELS[one] for one in impact]
        for side, proof in enumerate(self.proofs):
            if proof.answer is Answer.YES and levels[side] is Level.BREAKING:
                levels[side] = Level.SAFE
        words, hint = RULES[rule].says.format(old=old, new=new), _hint(RULES[rule].hint)
        return self.finding(rule, place, words, levels, hint=hint)

    def condition(self, one: Difference, others: Sequence[ContractFinding]) -> ContractFinding:
        """Return a finding about a keyword that has no rule."""
        if not one.old or not one.new:
            words = f"has `{one.keyword}` now: {_short(one.new)}" if one.new else f"has no `{one.keyword}` any more"
        else:
            words = f"has another `{one.keyword}`: was {_short(one.old)}, is {_short(one.new)}"
        levels = [Level.RISKY, Level.RISKY]
        if one.keyword not in HINTS:
            levels = [self.untyped_level(one, side, others) for side in (0, 1)]
        return self.finding("schema-changed", one.place, words, levels)

    def untyped_level(self, one: Difference, side: int, others: Sequence[ContractFinding]) -> Level:
        """Rate a difference in conditions; where something else breaks already, it may not be this.

        A condition that the sender does not know is taken to break unless it is proved that it does not.
        """
        answer = self.proofs[side].answer
        if answer is Answer.YES:
            return Level.SAFE
        if any(_level(other, side) is Level.BREAKING for other in others):
            return Level.RISKY
        is_new = bool(one.new if side == (self.root == ANSWERED) else one.old) and not (one.old and one.new)
        if answer is Answer.NO or (is_new and one.keyword in CONDITIONS | _CHOICES):
            return Level.BREAKING
        return Level.RISKY

    # --- what is proved -----------------------------------------------------------------------------------------

    def proved(self, found: Sequence[ContractFinding], side: int, proof: Inclusion) -> list[ContractFinding]:
        """Return the findings, one of which must break: if none does, the one at the place of the example."""
        example = self.example(proof.example[0]) if proof.example else None
        path = "".join("[]" if isinstance(step, int) else suffix("field", step) for step in proof.place)
        breaking = [one for one in found if _level(one, side) is Level.BREAKING]
        here = [one for one in breaking or found if one.place == self.place(path) and _level(one, side) > Level.SAFE]
        if here:
            worse = replace(here[0], reverse=Level.BREAKING) if side else replace(here[0], level=Level.BREAKING)
            better = replace(worse, example=worse.example or example)
            return [better if one is here[0] else one for one in found]
        if breaking:
            return list(found)
        who = "refuses what it accepted before" if side == 0 else "accepts what it refused before"
        if self.root == ANSWERED:
            who = "may be what it never was before" if side == 0 else "can no longer be all that it was"
        words = who + (f": {_short(proof.problem)}" if proof.problem and side == 0 else "")
        levels = [Level.BREAKING if one == side else Level.SAFE for one in (0, 1)]
        return [*found, self.finding("schema-changed", path, words, levels, example=example)]

    # --- helpers ------------------------------------------------------------------------------------------------

    def finding(
        self,
        rule: str,
        place: str,
        words: str,
        levels: Sequence[Level],
        *,
        hint: str = "",
        example: Example | None = None,
        apart: bool = False,
    ) -> ContractFinding:
        """Return a finding about this entry; `apart` says that the place stands in a shared definition."""
        where = place if apart else self.place(place)
        return ContractFinding(
            rule, self.entry.kind, self.entry.name, where, words, levels[0], levels[1], hint, example
        )

    def place(self, steps: str) -> str:
        """Return a place as a person would write it: `argument city`, `result days[]`."""
        noun = {SENT: "argument" if steps else "arguments", ANSWERED: "result"}[self.root]
        if self.entry.kind == "template":
            noun = noun.replace("argument", "variable")
        return f"{noun} {_LEADING.sub(lambda found: found[1] or '', steps)}".rstrip()

    def example(self, instance: Any) -> Example | None:
        """Hold a value against both schemas; return `None` where one of them cannot be used."""
        try:
            old, new = (jsonschema_rs.validator_for(schema, offline=True).is_valid(instance) for schema in self.schemas)
        except ValueError:
            return None
        return Example(instance, old, new)


def _covers(finding: Finding, one: Difference) -> bool:
    """Return whether a finding of the diff of types is about a difference, be it in a shared definition."""
    explained = next((keywords for prefix, keywords in _EXPLAINS.items() if finding.rule.startswith(prefix)), _ALL)
    if one.keyword not in explained or (one.keyword == "enum" and one.old and one.new and explained is not _ALL):
        return False  # types know no numbers in an enumeration, so each value counts
    root, place = steps(finding.subject)
    places = [place]
    if finding.rule == "field-renamed":
        places.append(place.removesuffix(suffix("field", finding.new)) + suffix("field", finding.old))
    elif finding.rule == "field-moved":
        places.append(list(steps(finding.old))[1])
    if root not in (SENT, ANSWERED):
        return any(one.place.endswith(known) for known in places)
    return one.place in places or (explained is _ALL and one.place.startswith(place))


def _limit(keyword: str, said: str) -> tuple[Any, ...]:
    """Return the arguments of a scalar that has one limit, or one format."""
    if not said:
        return ()
    value = json.loads(said)
    return ((), value) if keyword == "format" else (((keyword, value),),)


def _hint(words: str) -> str:
    return words.replace("revision", "contract")


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _level(finding: ContractFinding, side: int) -> Level:
    return finding.reverse if side else finding.level


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
