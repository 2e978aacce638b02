"""Plans of all steps: their counts, their completeness, and their agreement with the findings of `diff`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from mcp_bindgen.conversion.differences import Difference, Kind, Payload
from mcp_bindgen.conversion.missing import with_missing_rules
from mcp_bindgen.conversion.rules import read_rules
from mcp_bindgen.conversion.steps import plan as planned
from mcp_bindgen.diff import Finding, compare
from mcp_bindgen.diff.finding import Plane, Severity
from mcp_bindgen.emit import BRIDGES, Request, drift, targets
from mcp_bindgen.spec import BadInput
from tests.harness.bridging import REVISIONS, STEPS, every_plan, plan, protocol

COUNTS = {
    ("2024-11-05", "2025-03-26"): ({"identity": 39}, 0, 3),
    ("2025-03-26", "2024-11-05"): ({"identity": 32, "ignored": 3, "rule": 4}, 0, 0),
    ("2025-03-26", "2025-06-18"): ({"identity": 39}, 0, 23),
    ("2025-06-18", "2025-03-26"): ({"identity": 26, "ignored": 11, "rule": 2}, 1, 0),
    ("2025-06-18", "2025-11-25"): ({"identity": 38, "rule": 3}, 0, 46),
    ("2025-11-25", "2025-06-18"): ({"identity": 14, "ignored": 20, "rule": 7}, 6, 4),
    ("2025-11-25", "2026-07-28"): ({"identity": 6, "ignored": 2, "fill": 5, "rule": 16}, 13, 10),
    ("2026-07-28", "2025-11-25"): ({"identity": 3, "ignored": 14, "fill": 4, "rule": 8}, 3, 16),
}
"""Step -> kinds of payloads, number of removed methods, number of field collisions."""


def worst(payload: Payload) -> str:
    """Return the worst kind of the differences in a payload: `rule`, `fill` or `ignored`; `identity` without these."""
    kinds = {difference.kind for difference in payload.differences}
    if Kind.NEEDS_RULE in kinds or any(difference.rule for difference in payload.differences):
        return "rule"
    return next((kind.value for kind in (Kind.FILL, Kind.IGNORED) if kind in kinds), "identity")


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_steps_have_the_expected_numbers_of_conversions(step: tuple[str, str]) -> None:
    one = plan(*step)
    type_conflicts = sum(difference.kind is Kind.TYPE_CONFLICT for difference in one.differences)
    assert (dict(Counter(worst(payload) for payload in one.payloads)), len(one.absent), type_conflicts) == COUNTS[step]


def test_no_rule_is_missing_or_unused() -> None:
    assert [(one.name, difference.name) for one in every_plan() for difference in one.missing] == []
    assert [(one.name, rule.path) for one in every_plan() for rule in one.unused] == []


def test_a_difference_has_at_most_one_rule() -> None:
    for one in every_plan():
        rules: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for difference in one.differences:
            if difference.rule is not None:
                rules.setdefault(difference.path, set()).add(difference.rule.path)
        assert [path for path, stands in rules.items() if len(stands) > 1] == []


def test_generated_steps_and_their_page_are_in_sync() -> None:
    wanted = targets(Request(("2025-11-25",)))
    (steps,) = (target for target in wanted if target.name == BRIDGES)
    assert drift(steps.folder, steps.render()) == ""
    assert not steps.stale_pages


# --- findings of `diff`, which shares no code with the plan ----------------------------------------------------


def breaking() -> Iterator[tuple[str, str, Finding]]:
    for old, new in pairwise(REVISIONS):
        for finding in compare(protocol(old), protocol(new), evidence=False).findings:
            if finding.plane is Plane.WIRE and finding.severity is Severity.BREAKING:
                yield old, new, finding


def places_of(old: str, new: str, method: str) -> list[Difference]:
    """Return the planned places of a method, in both directions."""
    steps = (plan(old, new), plan(new, old))
    gone = [difference for step in steps for difference in step.gone if difference.path[0] == method]
    payloads = [payload for step in steps for payload in step.payloads if payload.method == method]
    return gone + [difference for payload in payloads for difference in payload.differences]


def accounted(finding: Finding, difference: Difference) -> bool:
    """Return True if a place covers a finding of `diff`."""
    if difference.path[0] == finding.group and not difference.path[2:]:
        return True  # the method itself was removed
    (*_, name) = re.findall(r"[^.|{}\"\s\[\]]+(?:\.[^.|{}\"\s\[\]]+/[^\"]+)?", finding.subject)
    own = {name, "[]"} if finding.subject.endswith("[]") else {name}
    if "Meta" in finding.subject or name == "params":
        own.add("_meta")  # a request describes its sender there
    return bool(own & {*difference.path})


def test_every_breaking_finding_is_accounted_for() -> None:
    count, left = 0, list[str]()
    for old, new, finding in breaking():
        count += 1
        if not finding.reaches:
            assert finding.subject.startswith("JSONRPC"), finding  # the runtime handles envelopes
        elif finding.rule == "message-carrier-changed":
            assert protocol(new).era != protocol(old).era  # the era decides on requests that are embedded in results
        else:
            methods = {message.method for message in finding.reaches}
            known = [
                one for one in methods if any(accounted(finding, difference) for difference in places_of(old, new, one))
            ]
            left += [f"{old} {new} {finding.subject} in {method}" for method in methods.difference(known)]
    assert left == []
    assert count > 60


# --- rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('["a to b"]\n', "is no step"),
        ('["a -> b"]\nTool.name = { do = "drop" }\n', "a rule without a reason"),
        ('["a -> b"]\nTool.name = { do = "forget", because = "x" }\n', "of the wrong kind"),
        ('["a -> b"]\nTool.icons."[]" = { do = "drop", because = "x" }\n', "`drop` is for members"),
        ('["a -> b"]\nTool.name = { do = "drop", by = "f", because = "x" }\n', "a rule does one thing"),
        ('["a -> b"]\nTool.name = { because = "x" }\n', "a rule does one thing"),
        ('["a -> b"]\nTool.name = { by = "os.system(1)", because = "x" }\n', "of the wrong kind"),
        ('["a -> b"]\nTool.name = { by = "a.b:", because = "x" }\n', "of the wrong kind"),
        ('["a -> b"]\nTool.name = { move = ["a"], because = "x" }\n', "of the wrong kind"),
        ('["a -> b"]\nTool = { wrap = "[]", because = "x" }\n', "`wrap` is for members"),
        ('["a -> b"]\nTool.name = { merge = "all", because = "x" }\n', "belong together"),
        ('["a -> b"]\nTool.name = { wrap = "[]", item = {}, because = "x" }\n', "belong together"),
        ('["a -> b"]\nTool.name = { do = "drop", because = "x", why = "y" }\n', "'why' says nothing here"),
        ('["a -> b"]\nTool.name = 1\n', "a rule without a reason"),
        ('["a -> b"]\nTool.name = { give = [2026-01-01], because = "x" }\n', "without dates, nan and inf"),
        ('["a -> b"]\nTool.name = { give = nan, because = "x" }\n', "without dates, nan and inf"),
        ("[[", "is not TOML"),
    ],
)
def test_an_invalid_rule_is_refused_with_its_file(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "bridges.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=says) as caught:
        read_rules(file)
    assert str(file) in str(caught.value)


def test_printed_missing_rules_are_valid_and_complete(tmp_path: Path) -> None:
    bare = planned(protocol("2025-11-25"), protocol("2026-07-28"), {})
    file = tmp_path / "bridges.toml"
    revisions = {name: protocol(name) for name in REVISIONS}
    file.write_text(with_missing_rules("", bare, revisions), "utf-8")
    rules = read_rules(file)[bare.source.revision, bare.target.revision]
    assert rules.keys() == {difference.path for difference in bare.missing}
    assert ("RequestMeta", "io.modelcontextprotocol/protocolVersion") in rules
    complete = planned(protocol("2025-11-25"), protocol("2026-07-28"), rules)
    assert (complete.missing, complete.unused) == ((), ())
