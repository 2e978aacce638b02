"""Members that mean nothing to their sender are dropped where they do not fit, and nothing else is."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mcp_bindgen.runtime.bridges.claims import drop_claimed

TOOLS = {"tools": [{"name": "a", "title": "A"}, {"name": "b", "title": 5, "inputSchema": {"title": 6}}]}


@pytest.mark.parametrize(
    "location",
    [
        ("tools", 1, "title"),
        ("tools", 1, "title", "str"),
        ("function-wrap", "tools", 1, "Tool", "title"),
        ("tools", "list[Tool]", 1, "title", "inner"),
    ],
)
def test_the_member_that_does_not_fit_is_dropped(location: tuple[str | int, ...]) -> None:
    value = copy.deepcopy(TOOLS)
    assert drop_claimed(value, location, {"title"}) == ["title"]
    assert value == {"tools": [{"name": "a", "title": "A"}, {"name": "b", "inputSchema": {"title": 6}}]}


def test_a_name_of_an_alternative_is_not_taken_for_a_member() -> None:
    value = {"content": [{"type": "text", "text": "a", "_meta": {"text": 1}, "icons": 5}]}
    assert drop_claimed(value, ("content", 0, "text", "icons"), {"icons"}) == ["icons"]
    assert value == {"content": [{"type": "text", "text": "a", "_meta": {"text": 1}}]}


def test_below_a_place_that_no_claim_leads_to_all_claims_count() -> None:
    value = copy.deepcopy(TOOLS)
    assert drop_claimed(value, ("tools", 1), {"title"}) == ["title", "title"]
    assert value == {"tools": [{"name": "a", "title": "A"}, {"name": "b", "inputSchema": {}}]}


@pytest.mark.parametrize("location", [(), ("tools", 7, "title"), ("tools", -1), ("nothing",)])
def test_what_is_no_claim_stays(location: tuple[str | int, ...]) -> None:
    value = copy.deepcopy(TOOLS)
    assert drop_claimed(value, location, {"icons"}) == []
    assert value == TOOLS


def test_a_long_location_takes_no_long_time() -> None:
    value: Any = {"a": {}}
    for _ in range(150):
        value = {"a": value, "b": 1}
    assert drop_claimed(value, ("a", "x") * 150, {"b"}) == []
