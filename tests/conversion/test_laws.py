"""Laws of bridges, checked with random payloads; the independent validator jsonschema-rs judges converted payloads.

The payloads include members that only other revisions define. Each payload is converted to every other revision.
`make test` draws few payloads, `make test-all` more.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen.bridging.chain import Chain, LossReport, NotConvertible, chain
from mcp_bindgen.conversion.edits import Members, reach
from tests.harness.bridging import REVISIONS, Json, Payload, converted, payloads, plan, settled, text, values
from tests.harness.effort import cases, examples

OWN = "acme.example/own"
"""Member that no schema defines."""


def between(source: str, target: str) -> Chain:
    found = chain(source, target)
    assert found is not None
    return found


def refusals(source: str, target: str) -> set[str]:
    """Return the differences between two revisions at which rules may refuse a payload."""
    differences = (
        difference
        for step in between(source, target).steps
        for difference in plan(step.source, step.target).differences
    )
    return {
        difference.name
        for difference in differences
        if difference.rule is not None and difference.rule.action in ("refuse", "by")
    }


def dropped(source: str, target: str) -> set[str]:
    """Return the members that are filled in or dropped anywhere between two revisions."""
    plans = [plan(step.source, step.target) for step in between(source, target).steps]
    edits = [one for each in plans for payload in each.payloads for one in reach(payload.edit, each.named)]
    members = [one for one in edits if isinstance(one, Members)]
    return {name for one in members for name in (*one.drops, *(fill.member for fill in one.fills))}


def without(value: Json, names: set[str]) -> Json:
    return {name: item for name, item in value.items() if name not in names} if isinstance(value, dict) else value


@st.composite
def said(draw: st.DrawFn, revision: str) -> tuple[Payload, Json]:
    """Return a payload of a revision, with an unknown member in each object that allows one."""
    payload = draw(st.sampled_from(payloads(revision)))
    value = draw(values(payload))
    for holder in objects(value):
        holder[OWN] = 1
        if not payload.validator.is_valid(value):
            del holder[OWN]
    return payload, value


def objects(value: Json) -> list[dict[str, Any]]:
    """Return all objects in a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, dict) else []), *(one for item in inner for one in objects(item))]


def own(value: Json) -> int:
    return sum(OWN in one for one in objects(value))


def check(payload: Payload, value: Json, target: str) -> None:
    """Check all laws for one value on its way to one revision."""
    other = payload.counterpart(target)
    if other is None:
        return
    there, notes = between(payload.revision, target), LossReport()
    conversion = payload.of(there)
    try:
        made = converted(conversion, value, notes)
        final = settled(copy.deepcopy(made), other, conversion, there.field_collisions(payload.part, payload.method))
    except NotConvertible as refused:
        # 1: only rules refuse a payload
        if refused.place in refusals(payload.revision, target):
            return
        raise
    # 1, 4: the converted payload is valid on every path
    assert [f"{problem.instance_path}: {problem.message}" for problem in other.validator.iter_errors(final)] == []
    # 2: a payload converted to a newer revision and back is unchanged
    aside = dropped(payload.revision, target) | dropped(target, payload.revision)
    if REVISIONS.index(target) > REVISIONS.index(payload.revision) and not notes.losses:
        back = converted(other.of(between(target, payload.revision)), made)
        assert without(back, aside) == without(value, aside)
    # 3: a second conversion changes nothing
    assert converted(conversion, made) == made
    # 5: a payload that the prefilter excludes does not change
    if conversion is None or not conversion.may_apply(text(value)):
        assert text(made) == text(value)
    if conversion is None or not conversion.may_apply_to_any(json.dumps(value, indent=1).encode()):
        assert made == value
    # 7: members that neither revision defines survive
    if not notes.losses:
        assert own(made) >= own(without(value, aside))


def others(revision: str) -> Iterator[str]:
    return (other for other in REVISIONS if other != revision)


@pytest.mark.parametrize("revision", cases(REVISIONS, quick=["2024-11-05", "2026-07-28"]))
def test_conversion_laws_hold_for_random_payloads(revision: str) -> None:
    hold(revision, examples(25, 200))


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
def test_conversion_laws_hold_for_many_random_payloads(revision: str) -> None:
    hold(revision, 1500)


def hold(revision: str, count: int) -> None:
    """Check the laws for random payloads of a revision on their way to all other revisions."""

    @settings(max_examples=count, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(said(revision))
    def holds(drawn: tuple[Payload, Json]) -> None:
        payload, value = drawn
        for other in others(revision):
            check(payload, copy.deepcopy(value), other)

    holds()
