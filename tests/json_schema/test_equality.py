"""Equality of JSON values (JSON Schema 2020-12, 4.2.2) in each part that decides it: `1` is `1.0`, and not `true`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcp_bindgen.bridging.abi import tagged
from mcp_bindgen.contract.comparison.places import differences as schema_differences
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.assignability import Assignability
from mcp_bindgen.ir.constants import are_disjoint
from mcp_bindgen.ir.examples import fits
from mcp_bindgen.ir.model import Const
from mcp_bindgen.mock.answers import Answer
from mcp_bindgen.runtime.model.json_types import ABSENT, differences, distinct, same_json
from mcp_bindgen.spec import canonical
from mcp_bindgen.vectors.run import changes
from tests.harness.effort import each

PROTOCOL = Protocol("", "stateless", "", {}, ())

DECISIONS: dict[str, Callable[[Any, Any], bool]] = {
    "kernel": same_json,
    "distinct values": lambda one, other: len(distinct([one, other])) == 1,
    "differences": lambda one, other: not list(differences(one, other)),
    "bridging": lambda one, other: tagged("kind", one)({"kind": other}),
    "drafts": lambda one, other: canonical.same(one, other, "const"),
    "copies of schemas": lambda one, other: not canonical.differences(one, other),
    "disjoint unions": lambda one, other: not are_disjoint([{"const": one}, {"enum": [other]}], {}),
    "examples": lambda one, other: fits(PROTOCOL, Const((one,)), other),
    "assignability": lambda one, other: Assignability(PROTOCOL, PROTOCOL).accepts(Const((one,)), Const((other,))),
    "vectors": lambda one, other: not list(changes(one, other)),
    "mocks": lambda one, other: Answer({"a": one}).fits({"a": other}),
    "contracts, const": lambda one, other: not list(schema_differences({"const": one}, {"const": other})),
    "contracts, enum": lambda one, other: not list(schema_differences({"enum": [one]}, {"enum": [other]})),
    "contracts, default": lambda one, other: not list(schema_differences({"default": one}, {"default": other})),
}

PAIRS = [
    (1, 1.0, True),
    (0, -0.0, True),
    (1, True, False),
    (1.0, True, False),
    (0, False, False),
    (None, False, False),
    ("1", 1, False),
    ("a", "a", True),
    ([1, True], [1.0, True], True),
    ([1, True], [True, 1], False),
    ({"a": 1, "b": [0]}, {"b": [0.0], "a": 1.0}, True),
    ({"a": 1}, {"a": True}, False),
]


@pytest.mark.parametrize("part", DECISIONS)
@each(("one", "other", "is_equal"), PAIRS)
def test_each_part_decides_equality_as_json_schema_does(part: str, one: Any, other: Any, is_equal: bool) -> None:
    assert DECISIONS[part](one, other) is is_equal
    assert DECISIONS[part](other, one) is is_equal


def test_distinct_values_keep_the_first_of_equal_ones_and_their_order() -> None:
    assert list(map(repr, distinct([1, True, 1.0, "1", True]))) == ["1", "True", "'1'"]


def test_differences_have_a_path_and_both_values() -> None:
    found = list(differences({"a": [{"b": 1}], "c": None, "d": [1]}, {"a": [{"b": True}], "d": [], "e": 2}))
    assert found == [(("a", 0, "b"), 1, True), (("c",), None, ABSENT), (("d",), [1], []), (("e",), ABSENT, 2)]
