"""Every small change of a real schema is found exactly once, and no finding promises more safety than there is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, permutations
from random import Random
from typing import Any

import pytest

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.finding import Comparison, Finding, Impact, Message, Plane
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.model import Ref, Sender, references
from mcp_bindgen.ir.passes.build_state import BuildState
from mcp_bindgen.ir.passes.unions import restore_unions
from mcp_bindgen.spec import EffectiveSchema, Store
from mcp_bindgen.spec.document import normalise
from tests.harness.effort import cases, examples
from tests.harness.impacts import Reach
from tests.harness.json_instances import map_names, of_definitions
from tests.harness.protocol_schemas import Schema, as_schemas, named, without_envelope
from tests.harness.schema_locations import Places
from tests.harness.schema_mutations import Expected, Mutation, bundles, mutations

STORE = Store()
REVISIONS = list(STORE.pins)
WANTED = int(os.environ.get("DIFF_MUTATIONS", examples(60, 200)))
"""Number of mutations of each of the five revisions."""

EVERY = 1 if WANTED > 60 else 3
"""In older revisions, only every n-th mutation is tried."""

SAMPLES = 8
ACCEPTED = Impact.IGNORED
"""The worst impact at which the receiver still accepts every value."""


@cache
def definitions(revision: str) -> dict[str, Schema]:
    """Return the definitions; a union with one member becomes a reference, so a mutation of the member changes both."""
    source = STORE.effective(revision)
    return dict(restore_unions(BuildState(source, source.definitions)).schemas)


@cache
def protocol(revision: str) -> Protocol:
    return model(revision, definitions(revision))


def model(revision: str, schemas: Mapping[str, Schema], facts: Mapping[str, Any] | None = None) -> Protocol:
    """Return the protocol model of a schema that brings its own descriptions."""
    semantics = dict(STORE.semantics)
    for name, entries in (facts or {}).items():
        semantics[name] = [*semantics[name], *entries]
    return build(EffectiveSchema(revision, schemas, f"{id(schemas)} {facts}", semantics))


def new_schemas(mutation: Mutation) -> Mapping[str, Schema]:
    """Return the definitions after a mutation, in our dialect."""
    legacy = mutation.new.get("")
    return mutation.new if legacy is None else normalise({"definitions": legacy})["$defs"]


# --- each change is found once, and nothing else ------------------------------------------------------------------


@dataclass
class Score:
    """Result of comparing mutated schemas."""

    expected: int = 0
    found: int = 0
    wrong: list[str] = field(default_factory=list[str])
    unsound: list[str] = field(default_factory=list[str])
    extra: int = 0

    def __str__(self) -> str:
        recall = self.found / max(self.expected, 1)
        precision = self.found / max(self.found + self.extra, 1)
        return f"precision {precision:.4f}, recall {recall:.4f}, {self.expected} changes expected"


def judge(mutation: Mutation, found: Comparison, reach: Reach, score: Score) -> None:
    """Compare the findings with the changes that the mutation made."""
    left = list(found.findings)
    label = f"{mutation.kind} at {mutation.place}"
    for expected in mutation.expected:
        score.expected += 1
        hit = next((finding for finding in left if fits(finding, expected)), None)
        if hit is None:
            score.wrong.append(f"{label}: no {name(expected)}; found {listing(found.findings)}")
            continue
        score.found += 1
        left.remove(hit)
        if problem := misjudged(mutation, hit, reach):
            score.wrong.append(f"{label}: {hit.rule} {hit.subject} {problem}")
    extra = [finding for finding in left if finding.plane is Plane.WIRE or finding.rule not in mutation.tolerated]
    if extra:
        score.extra += len(extra)
        score.wrong.append(f"{label}: also {listing(extra)}")


def fits(finding: Finding, expected: Expected) -> bool:
    members = tuple(subject[:-1] for subject in expected.subjects if subject.endswith("|*"))
    is_there = finding.subject in expected.subjects or finding.subject.startswith(members)
    return finding.rule in expected.rules and is_there


def name(expected: Expected) -> str:
    return f"{'/'.join(sorted(expected.rules))} {' or '.join(sorted(expected.subjects, key=len))}"


def listing(findings: Any) -> str:
    return "; ".join(f"{finding.plane} {finding.rule} {finding.subject}" for finding in findings[:5]) or "nothing"


def misjudged(mutation: Mutation, finding: Finding, reach: Reach) -> str:
    """Describe wrong impacts and a wrong reach of a finding; return an empty text if there are none."""
    definition = mutation.definition
    table = reach.impacts(definition, finding.rule) if definition else None
    if table is None:
        return ""
    got = (finding.old_client, finding.new_client)
    if definition in reach.loose:
        if any(one > other for one, other in zip(got, table, strict=True)):
            return f"is {got}, worse than the table's {table}"
    elif mutation.impacts and got != table:
        return f"is {got[0].name}/{got[1].name}, the table says {table[0].name}/{table[1].name}"
    missing = reach.messages[definition] - set(finding.reaches)
    return f"does not reach {sorted(map(str, missing))[:3]}" if missing else ""


# --- promises of safety -----------------------------------------------------------------------------------------


def accepted_worst(findings: tuple[Finding, ...], *, new_client: bool) -> Impact:
    return max((finding.new_client if new_client else finding.old_client for finding in findings), default=Impact.NONE)


def check_safe(mutation: Mutation, found: Comparison, reach: Reach, random: Random) -> str:
    """Return a counterexample if the findings call the changed definition safer than it is, or an empty text."""
    target = mutation.definition
    if not target or target not in reach.senders:
        return ""
    old, new = without_envelope(mutation.old), without_envelope(new_schemas(mutation))
    for new_client in (False, True):
        if accepted_worst(found.findings, new_client=new_client) > ACCEPTED:
            continue
        for sender in reach.senders[target]:
            # the sender uses the new revision if a new client sends, or a new server responds to an old client
            new_sends = (sender == "client") == new_client
            source, receiver = (new, old) if new_sends else (old, new)
            for instance in rejected(source, target, receiver, target, random):
                return f"{'new' if new_client else 'old'} client: {sender} sends {instance!r}"[:300]
    return ""


def rejected(
    source: Mapping[str, Schema], sent: str, receiver: Mapping[str, Schema], read: str, random: Random
) -> list[Any]:
    """Draw values of the definition `sent`; return the first that the definition `read` of the receiver rejects."""
    judge, closed = named(receiver, read), of_definitions(source, random, names=map_names)
    drawn = (closed.of(sent) for _ in range(SAMPLES))
    return [instance for instance in drawn if not judge.is_valid(instance)][:1]


def check_witness(finding: Finding, old: Mapping[str, Schema], new: Mapping[str, Schema], reach: Reach) -> str:
    """Describe a problem in the evidence of a finding; return an empty text if there is none.

    Args:
        finding: The finding.
        old: The old definitions without envelopes, with extracted inline types.
        new: The new definitions, likewise.
        reach: The senders of each definition, in both revisions.
    """
    if finding.plane is not Plane.WIRE:
        return ""
    witness = finding.witness
    if witness is None:
        return "" if finding.unwitnessed else "has neither a witness nor a reason"
    for label, claimed, where, schemas in (
        ("old", witness.old_accepts, witness.definition_old, old),
        ("new", witness.new_accepts, witness.definition_new, new),
    ):
        if where and named(schemas, where).is_valid(witness.instance) != claimed:
            return f"{label} {where} {'rejects' if claimed else 'accepts'} {witness.instance!r}"[:300]
    claims = (witness.old_accepts, witness.new_accepts)
    senders = reach.senders.get(finding.definition_old, set()) | reach.senders.get(finding.definition_new, set())
    shows = breakage(finding, senders)
    if shows and witness.definition_old and witness.definition_new and claims not in shows:
        return f"breaks, but old and new judge {witness.instance!r} {claims}"[:300]
    return ""


def breakage(finding: Finding, senders: set[Sender]) -> set[tuple[bool, bool]]:
    """Return possible verdicts (old, new) on a value that breaks a pairing: the sender's revision always accepts it."""
    found: set[tuple[bool, bool]] = set()
    for sender in senders:
        for impact, new_client in ((finding.old_client, False), (finding.new_client, True)):
            if impact is Impact.BREAKS:
                new_sends = (sender == "client") == new_client
                found.add((not new_sends, new_sends))
    return found


def all_schemas(schemas: Mapping[str, Schema], of: Protocol) -> dict[str, Schema]:
    """Return the definitions of the schema and its extracted inline types, without envelopes."""
    return without_envelope({**as_schemas(of), **schemas})


# --- mutations ----------------------------------------------------------------------------------------------------


def run(revision: str, chosen: Iterable[Mutation], seed: int = 1) -> tuple[Score, Counter[str]]:
    """Compare the schemas before and after each mutation, and judge the findings."""
    random = Random(seed)
    score, kinds, reach = Score(), Counter[str](), Reach(protocol(revision))
    for mutation in chosen:
        old = known_or_built(revision, mutation.old)
        new = known_or_built(revision, new_schemas(mutation), mutation.semantics)
        found = compare(old, new)
        kinds[mutation.kind] += 1
        judge(mutation, found, reach, score)
        if problem := check_safe(mutation, found, reach, random):
            score.unsound.append(f"{mutation.kind} at {mutation.place}: {problem}")
        if any(finding.plane is Plane.WIRE for finding in found.findings):
            before, after = all_schemas(mutation.old, old), all_schemas(new_schemas(mutation), new)
            for finding in found.findings:
                if problem := check_witness(finding, before, after, reach):
                    score.unsound.append(f"{mutation.kind} at {mutation.place}: {finding.rule} {problem}")
    return score, kinds


def known_or_built(revision: str, schemas: Mapping[str, Schema], facts: Mapping[str, Any] | None = None) -> Protocol:
    unchanged = schemas is definitions(revision) and not facts
    return protocol(revision) if unchanged else model(revision, schemas, facts)


def verdict(score: Score, kinds: Counter[str]) -> str:
    shown = [*score.wrong[:40], *score.unsound[:20]]
    return f"{score}, {len(kinds)} kinds, {len(score.wrong)} wrong, {len(score.unsound)} unsound\n" + "\n".join(shown)


@pytest.mark.full
@pytest.mark.parametrize("revision", cases(REVISIONS, quick=REVISIONS[-1:]))
def test_a_mutation_is_found_as_one_change(revision: str, capsys: pytest.CaptureFixture[str]) -> None:
    places = Places(definitions(revision), protocol(revision))
    first, step = (0, 1) if revision == REVISIONS[-1] else (REVISIONS.index(revision) % EVERY, EVERY)
    score, kinds = run(revision, mutations(places, WANTED, seed=20260728)[first::step])
    with capsys.disabled():
        print(f"\n{revision}: {sum(kinds.values())} mutations of {len(kinds)} kinds, {score}")
    assert sum(kinds.values()) >= WANTED // step
    assert len(kinds) > 50 // step
    assert not score.wrong, verdict(score, kinds)
    assert not score.unsound, verdict(score, kinds)
    assert (score.extra, score.found) == (0, score.expected)


@pytest.mark.parametrize("revision", cases(REVISIONS, quick=REVISIONS[-1:]))
def test_mutations_do_not_hide_each_other(revision: str) -> None:
    places = Places(definitions(revision), protocol(revision))
    score, kinds = run(revision, bundles(places, WANTED // 20, 6, seed=7))
    assert score.expected == WANTED // 20 * 6
    assert not score.wrong, verdict(score, kinds)
    assert not score.unsound, verdict(score, kinds)


# --- real revisions ------------------------------------------------------------------------------------------------


@cache
def comparison(old: str, new: str) -> Comparison:
    return compare(protocol(old), protocol(new))


def flows(old: Protocol, new: Protocol) -> Iterator[tuple[Message, str, Sender, str, str]]:
    """Yield the messages and results that two revisions exchange: every message in both revisions, and its results.

    Each has a description, the side that sends it, and its old and its new definition.
    """
    theirs = {method.name: method for method in new.methods}
    for method in old.methods:
        other = theirs.get(method.name)
        if other is None or "embedded" in (method.carrier, other.carrier):
            continue
        for sender in sorted(set(method.senders) & set(other.senders)):
            known = Message(method.name, method.kind, sender)
            yield known, f"{known}", sender, method.definition, other.definition
            if isinstance(method.result, Ref) and isinstance(other.result, Ref):
                reply: Sender = "server" if sender == "client" else "client"
                yield known, f"{known}: result", reply, method.result.name, other.result.name


NEXT = [*pairwise(REVISIONS), *pairwise(REVISIONS[::-1])]
FARTHEST = [(REVISIONS[0], REVISIONS[-1]), (REVISIONS[-1], REVISIONS[0])]
PAIRS = [
    *cases([*NEXT, *FARTHEST], quick=NEXT),
    *(
        pytest.param(*pair, marks=pytest.mark.slow)
        for pair in permutations(REVISIONS, 2)
        if pair not in NEXT + FARTHEST
    ),
]
"""Other pairs compare changes that two revisions next to each other, or the first and the last one, compare as well."""
SHAPES = ("field-", "type-", "const-", "enum-", "union-", "constraint-", "became-", "number-", "integer-")
"""Prefixes of rules about types."""


@pytest.mark.full
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_messages_reported_as_safe_are_accepted(old: str, new: str) -> None:
    found = comparison(old, new)
    random = Random(f"{old} {new}")
    schemas = [without_envelope(definitions(old)), without_envelope(definitions(new))]
    wrong: list[str] = []
    for new_client in (False, True):
        for known, label, sender, *names in flows(protocol(old), protocol(new)):
            reaching = tuple(finding for finding in found.findings if known in finding.reaches)
            if accepted_worst(reaching, new_client=new_client) <= ACCEPTED:
                new_sends = (sender == "client") == new_client
                refused = rejected(
                    schemas[new_sends], names[new_sends], schemas[not new_sends], names[not new_sends], random
                )
                wrong += [f"{label} {'new' if new_client else 'old'} client: {each!r}"[:400] for each in refused]
    assert not wrong, "\n".join(wrong[:12])


@pytest.mark.full
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_definitions_without_risky_findings_are_compatible(old: str, new: str) -> None:
    """A definition without a finding above `ignored`, nested or direct, accepts the values of the other revision."""
    before, after = protocol(old), protocol(new)
    bad: set[str] = set()
    for finding in comparison(old, new).findings:
        if max(finding.old_client, finding.new_client) > ACCEPTED or finding.rule == "definition-redefined":
            bad |= {finding.definition_old, finding.definition_new}
    sent = Reach(before).senders.keys() & Reach(after).senders.keys()
    random = Random(f"{old} {new}")
    schemas = (without_envelope(definitions(old)), without_envelope(definitions(new)))
    checked, wrong = 0, list[str]()
    for name in sorted(sent & schemas[0].keys() & schemas[1].keys()):
        if bad & (inside(before, name) | inside(after, name)):
            continue
        checked += 1
        for side, source, receiver in (("old", *schemas), ("new", *schemas[::-1])):
            refused = rejected(source, name, receiver, name, random)
            wrong += [f"{name}: {side} sends {instance!r}"[:300] for instance in refused]
    assert not wrong, "\n".join(wrong[:12])
    assert checked >= 5


def inside(of: Protocol, name: str) -> set[str]:
    """Return the names of a definition and of all definitions that it refers to."""
    seen, names = set[str](), [name]
    while names:
        known = names.pop()
        if known not in seen:
            seen.add(known)
            names.extend(references(of.definitions[known].type))
    return seen


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_breaking_findings_reach_a_message_of_both_revisions(old: str, new: str) -> None:
    """Changes in messages that only one revision has cannot be the reason for a rejected message."""
    shared = messages(protocol(old)) & messages(protocol(new))
    wrong = [one for one in breaking(old, new) if one.reaches and not shared & set(one.reaches)]
    assert not wrong, "\n".join(f"{one.rule} {one.subject} reaches only {one.reaches}" for one in wrong)


def breaking(old: str, new: str) -> list[Finding]:
    """Return the changes of types that break a pairing."""
    found = [finding for finding in comparison(old, new).findings if finding.rule.startswith(SHAPES)]
    return [finding for finding in found if Impact.BREAKS in (finding.old_client, finding.new_client)]


def messages(of: Protocol) -> set[Message]:
    return {Message(method.name, method.kind, sender) for method in of.methods for sender in method.senders}


@pytest.mark.full
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_the_evidence_of_each_finding_is_valid(old: str, new: str) -> None:
    before, after = (all_schemas(definitions(revision), protocol(revision)) for revision in (old, new))
    reach = Reach(protocol(old), protocol(new))
    wrong = [
        f"{finding.rule} {finding.subject}: {problem}"
        for finding in comparison(old, new).findings
        if (problem := check_witness(finding, before, after, reach))
    ]
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_nine_in_ten_breaking_findings_have_evidence(old: str, new: str) -> None:
    """Only findings about more than a definition's value, such as a whole message, may lack evidence."""
    without = [f"{one.rule} {one.subject}: {one.unwitnessed}" for one in breaking(old, new) if not one.witness]
    assert len(without) <= len(breaking(old, new)) // 10, "\n".join(without[:20])


# --- tests of the judges --------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
def test_closed_instances_are_valid(revision: str) -> None:
    """Drawn values are valid by the schema and by the model."""
    schemas, derived = definitions(revision), as_schemas(protocol(revision))
    closed = of_definitions(schemas, revision, names=map_names)
    for name in schemas:
        judges = [named(schemas, name), named(derived, name)]
        for _ in range(20):
            instance = closed.of(name)
            assert [judge.is_valid(instance) for judge in judges] == [True, True], (name, instance)


def test_a_closed_instance_has_no_undeclared_members() -> None:
    some: Schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    priced: Schema = {**some, "additionalProperties": {"type": "number"}}
    definitions = {"Open": some, "Priced": priced, "Map": {"type": "object"}}
    closed = of_definitions(definitions, names=map_names)
    assert {key for _ in range(50) for key in closed.of("Open")} == {"a"}
    assert len({key for _ in range(50) for key in closed.of("Priced")}) > 1
    assert len({key for _ in range(50) for key in closed.of("Map")}) > 1


@pytest.mark.full
def test_the_safety_checks_reject_an_empty_comparison() -> None:
    """The judges catch a comparison without findings."""
    revision = REVISIONS[0]
    places = Places(definitions(revision), protocol(revision))
    nothing = comparison(revision, revision)
    reach = Reach(protocol(revision))
    caught, score, random = 0, Score(), Random(3)
    chosen = [mutation for mutation in mutations(places, 200, 5) if mutation.expected]
    for mutation in chosen:
        judge(mutation, nothing, reach, score)
        caught += bool(check_safe(mutation, nothing, reach, random))
    assert len(score.wrong) >= len(chosen)
    assert caught > len(chosen) // 5
