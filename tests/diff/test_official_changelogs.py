"""The facts that the official changelogs state (`changelogs.toml`): `diff` shows each, or a reason says why not."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.diff.test_changelogs import PAIRS, REVISIONS, comparison, expand

CHANGELOGS = tomllib.loads((Path(__file__).parent / "changelogs.toml").read_text("utf-8"))
FACTS: list[dict[str, Any]] = CHANGELOGS["facts"]


def test_each_item_of_a_changelog_has_findings_or_a_reason() -> None:
    """Part of an item is named after it: `Major changes 6, core`."""
    assert list(CHANGELOGS["items"]) == REVISIONS[1:]
    items = {
        (revision, f"{section} {number}")
        for revision, sections in CHANGELOGS["items"].items()
        for section, count in sections.items()
        for number in range(1, count + 1)
    }
    assert {(fact["revision"], fact["item"].partition(",")[0]) for fact in FACTS} == items
    assert set(Counter((fact["revision"], fact["item"]) for fact in FACTS).values()) == {1}
    for fact in FACTS:
        assert fact.keys() in ({"revision", "item", "says", "findings"}, {"revision", "item", "says", "reason"}), fact
        assert fact.get("findings") != [], fact
    assert {fact["reason"] for fact in FACTS if "reason" in fact} == set(CHANGELOGS["reasons"])


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=[new for _, new in PAIRS])
def test_each_finding_of_a_fact_is_in_the_comparison(old: str, new: str) -> None:
    known = {(one.rule, end) for one in comparison(old, new).findings for end in ends(one.subject)}
    stated = [line.partition(": ") for fact in FACTS if fact["revision"] == new for line in fact.get("findings", ())]
    facts = [(rule, each) for rule, _, places in stated for part in places.split("; ") for each in expand(part)]
    assert [fact for fact in facts if fact not in known] == []
    assert Counter(facts).most_common(1)[0][1] == 1, "one fact has it twice, or two facts have it"


def ends(subject: str) -> list[str]:
    """Return a subject, and what follows each space in it: `tools/call|X` of `client->server request tools/call|X`."""
    words = subject.split(" ")
    return [" ".join(words[start:]) for start in range(len(words))]
