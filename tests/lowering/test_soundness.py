"""Soundness of lowering: random schemas and values, judged by jsonschema-rs with the original schema."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_bindgen.lowering import RULES, Effect, Lowered, Profile, Verdict, lower, names, profile
from tests.harness.effort import selection
from tests.lowering.judge import Tally, judged
from tests.lowering.schemas import Schemas

PROFILES = [profile(name) for name in names()]


@pytest.mark.parametrize("known", PROFILES, ids=lambda one: str(one.name))
def test_no_random_value_contradicts_a_verdict(known: Profile) -> None:
    tally = Tally()

    for seed in range(selection(15, 25)):
        rng = random.Random(f"{seed} {known.name}")
        assert not list(judged(Schemas(rng).tool(), known, rng, 12, tally)), seed
    assert tally.arguments > 20
    assert tally.documents > 50


@pytest.mark.full
def test_each_reason_has_a_pointer_into_the_tool_and_a_fix() -> None:
    seen: set[Verdict] = set()
    for lowered, tool in _random_tools(60):
        seen.add(lowered.verdict)
        for reason in lowered.reasons:
            node: Any = tool
            for token in reason.pointer.split("/")[1:]:
                step = token.replace("~1", "/").replace("~0", "~")
                node = node[int(step)] if isinstance(node, list) else node[step]
            assert reason.fix
            assert RULES[reason.rule].effect is reason.effect
        assert (lowered.schema is None) == (lowered.verdict is Verdict.REFUSED)
    assert seen == set(Verdict)


def test_the_lowered_schema_cannot_express_the_witness_of_a_narrowing() -> None:
    found = 0
    for lowered, _ in _random_tools(40):
        for reason in lowered.reasons:
            if reason.effect is Effect.NARROWED and (witness := lowered.witness(reason)) is not None:
                found += 1
                with pytest.raises(ValueError, match="express"):
                    lowered.encode(witness)
    assert found > 20


def _random_tools(count: int) -> Iterator[tuple[Lowered, dict[str, Any]]]:
    for seed in range(count):
        tool = Schemas(random.Random(seed)).tool()
        for known in PROFILES:
            yield lower(tool, known), tool


ODD: dict[str, dict[str, Any]] = {
    "conditions of undeclared members": {"additionalProperties": {"not": {"type": "string", "maxLength": 3}}},
    "an anchor in a constant": {
        "properties": {"a": {"$ref": "#x"}, "b": {"$anchor": "x", "type": "string"}, "c": {"const": {"$anchor": "x"}}}
    },
    "a reference below another $id": {
        "properties": {"a": {"$id": "https://a.example/", "$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}},
        "$defs": {"x": {"type": "integer"}},
    },
    "a pattern that fits the new name of a member": {
        "properties": {"~": {"type": "boolean"}},
        "patternProperties": {"^[a-z_]+$": {"type": "string"}},
    },
    "a format of a later dialect": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"format": "uuid", "enum": ["b", "c"]}},
    },
    "boolean bounds": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {
            "a": {"type": "number", "maximum": 5, "exclusiveMaximum": True, "minimum": 1, "exclusiveMinimum": False},
            "b": {"$ref": "#/definitions/b"},
            "exclusiveMaximum": {"type": "boolean"},
        },
        "definitions": {"b": {"type": "number", "minimum": 1, "exclusiveMinimum": True}},
    },
    "keywords of later dialects, and a reference with siblings": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "a": {"$ref": "#b", "minLength": 5},
            "b": {"$id": "#b", "type": "string", "format": "date"},
            "c": {"type": "array", "prefixItems": [False], "contains": True, "minContains": 2},
            "d": {"$id": "#/properties/d", "$anchor": "d", "type": "null"},
        },
        "dependentRequired": {"a": ["b"]},
        "unevaluatedProperties": False,
    },
    "references to tuples": {
        "$schema": "https://json-schema.org/draft/2019-09/schema",
        "properties": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/b/items/0"}},
        "$defs": {"b": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False}},
    },
    "an object without properties and an array without items": {
        "properties": {"a": {"type": "object"}, "b": {"type": "array"}, "c": {"type": ["array", "null"]}}
    },
    "unevaluated items of an array without items": {
        "properties": {"a": {"type": "array", "prefixItems": [True], "unevaluatedItems": False}}
    },
    "unevaluated members of a value without a type": {"allOf": [{"unevaluatedProperties": {"type": "string"}}]},
    "a forbidden member with a name that is not allowed": {"properties": {"a b": False, "a": False}},
}


@pytest.mark.parametrize("members", ODD.values(), ids=ODD.keys())
def test_no_value_contradicts_a_verdict_on_an_odd_schema(members: dict[str, Any]) -> None:
    tool = {"name": "tool", "inputSchema": {"type": "object", **members}}
    for known in PROFILES:
        assert not list(judged(tool, known, random.Random(1), selection(30, 100), Tally())), known.name
