"""Laws of tightened limits: random schemas and random values, with the validator jsonschema-rs as the judge."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings

from mcp_bindgen.bridging.chain import LossReport, NotConvertible, Step
from mcp_bindgen.conversion.document import Model
from mcp_bindgen.conversion.rules import Rule, read_rules
from mcp_bindgen.conversion.source import protocol_of
from mcp_bindgen.conversion.steps import plan
from mcp_bindgen.emit.emitter import Options
from mcp_bindgen.emit.python.bridges import emit
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.json import value_at
from tests.harness.commands import save
from tests.harness.effort import cases, examples
from tests.harness.json_instances import Instances, map_names
from tests.harness.small_schemas import Schema, record, ref, small

MISSING = object()
TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
LEAVES: list[tuple[Schema, Schema]] = [
    (TEXT, {**TEXT, "maxLength": 3}),
    ({**TEXT, "minLength": 1}, {**TEXT, "minLength": 2, "maxLength": 12}),
    (TEXT, {**TEXT, "pattern": "^[a-z]+$"}),
    (TEXT, {**TEXT, "pattern": "\\d"}),
    (TEXT, {**TEXT, "enum": ["a", "ab", "1"]}),
    ({**TEXT, "enum": ["a", "b", "é"]}, {**TEXT, "enum": ["b", "é"]}),
    ({**TEXT, "enum": ["a", "abab"]}, {**TEXT, "maxLength": 2}),
    (TEXT, {**TEXT, "format": "uri"}),
    (WHOLE, {**WHOLE, "minimum": 0, "maximum": 10}),
    (WHOLE, {**WHOLE, "exclusiveMinimum": 1}),
    (NUMBER, {**NUMBER, "maximum": 1.5}),
    (NUMBER, WHOLE),
    (WHOLE, {**WHOLE, "multipleOf": 5}),
    ({}, {**TEXT, "maxLength": 3}),
    ({}, {"type": "object"}),
    ({}, record("", a={})),
    ({}, {"anyOf": [{"type": "array", "items": {}, "maxItems": 2}, {"type": "object"}, WHOLE]}),
    ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [{**TEXT, "maxLength": 2}, {**WHOLE, "minimum": 1}]}),
    ({"anyOf": [TEXT, WHOLE]}, {**TEXT, "minLength": 1}),
    ({"anyOf": [TEXT, WHOLE]}, {"anyOf": [{**TEXT, "enum": ["a"]}, {**TEXT, "minLength": 5}]}),
    (
        {"anyOf": [TEXT, {"type": "array", "items": TEXT}]},
        {"anyOf": [TEXT, {"type": "array", "items": TEXT, "maxItems": 1}]},
    ),
]
"""Schemas of a member: the loose one, and the tight one."""

RENAME = """
["s -> t"]
FindBookResult.title = { rename = "name", because = "it is a name" }
"""


def pair(rng: random.Random, depth: int = 0) -> tuple[Schema, Schema]:
    """Return a random schema and a tightened one."""
    shape = rng.choice(["leaf", "leaf", "array", "map", "object", "itself"]) if depth < 3 else "leaf"
    if shape == "leaf":
        return rng.choice(LEAVES)
    if shape == "itself":
        return ref("Node"), ref("Node")
    if shape == "object":
        parts = {name: pair(rng, depth + 1) for name in "ab"}
        return tuple(record("a", **{name: part[side] for name, part in parts.items()}) for side in (0, 1))  # type: ignore[return-value]
    loose, tight = pair(rng, depth + 1)
    if shape == "map":
        return {"type": "object", "additionalProperties": loose}, {"type": "object", "additionalProperties": tight}
    limits = rng.choice([{}, {"maxItems": 2}, {"minItems": 1}])
    return {"type": "array", "items": loose}, {"type": "array", "items": tight, **limits}


def step(folder: Path, source: Schema, target: Schema, *rules: Rule, defaults: Any = None) -> Step:
    """Return the generated conversion between two schemas."""
    facts = {**Store().semantics, "defaults": defaults or {}}
    ours, theirs = (
        protocol_of(save(folder / f"{name}.json", one), Store(), facts)
        for name, one in zip("st", (source, target), strict=True)
    )
    planned = plan(ours, theirs, {rule.path: rule for rule in rules})
    (text,) = emit(Model(ours, (planned,)), Options("made", "test", joins_installed=True)).values()
    space: dict[str, Any] = {}
    exec(compile(text, "step.py", "exec"), space)
    found: Step = space["STEP"]
    return found


def converted(step: Step, value: Any) -> Any:
    """Return the converted result of the request, or the error that refuses it."""
    row = step.results.get("books/find")
    try:
        return copy.deepcopy(value) if row is None else row.convert(copy.deepcopy(value), LossReport())
    except NotConvertible as error:
        return error


@pytest.mark.parametrize("seed", cases(range(12), quick=[0]))
def test_values_that_fit_a_tightened_schema_pass_and_others_are_refused_at_their_place(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    parts = {f"m{index}": pair(rng) for index in range(8)}
    if seed == 0:  # the quick test has every leaf
        parts |= {f"leaf{index}": one for index, one in enumerate(LEAVES)}
    nodes = [record("", **{name: part[side] for name, part in parts.items()}) for side in (0, 1)]
    loose, tight = (small(FindBookResult=ref("Node"), Node=node) for node in nodes)
    hold(step(tmp_path, loose, tight), loose, tight)
    hold(step(tmp_path, tight, loose), tight, loose)


def hold(step: Step, source: Schema, target: Schema) -> None:
    """Check that values of the source that fit the target pass unchanged, and that all others are refused."""
    fits = jsonschema_rs.validator_for({**target, **ref("Node")}, validate_formats=False)

    @settings(max_examples=examples(60, 400), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(Instances({**source, **ref("Node")}, names=map_names, is_strict=True).strategy())
    def holds(value: Any) -> None:
        made = converted(step, value)
        if not isinstance(made, NotConvertible):
            assert fits.is_valid(made)
            assert json.dumps(made) == json.dumps(value)
            return
        assert not fits.is_valid(value)
        assert f": MCP {step.target} " in made.message
        assert made.message.endswith(f" (at {made.pointer})")
        assert value_at(value, made.pointer, MISSING) is not MISSING

    holds()


def test_a_rule_of_a_checked_place_is_for_the_values_that_do_not_fit(tmp_path: Path) -> None:
    loose, tight = (small(FindBookResult=record("", title=schema)) for schema in LEAVES[0])
    place = ("FindBookResult", "title")
    wrapped = step(tmp_path, loose, tight, Rule("by", "wrapped", "structured_as_object", path=place))
    assert converted(wrapped, {"title": "abc"}) == {"title": "abc"}
    assert converted(wrapped, {"title": "abcd"}) == {"title": {"result": "abcd"}}
    refused = step(tmp_path, loose, tight, Rule("refuse", "titles are short now", path=place))
    assert converted(refused, {"title": "abc"}) == {"title": "abc"}
    error = converted(refused, {"title": "abcd"})
    assert error.message == "FindBookResult.title: titles are short now (at /title)"


def test_a_rule_drops_only_the_values_that_do_not_fit(tmp_path: Path) -> None:
    words = {"type": "array", "items": TEXT}, {"type": "array", "items": LEAVES[0][1]}
    loose, tight = (small(FindBookResult=record("", title=LEAVES[0][side], words=words[side])) for side in (0, 1))
    places = [("FindBookResult", name) for name in ("title", "words")]
    there = step(tmp_path, loose, tight, *(Rule("drop", "too long", path=place) for place in places))
    fitting, losses = {"title": "abc", "words": ["a"]}, LossReport()
    assert converted(there, fitting) == fitting
    assert there.results["books/find"].convert({"title": "abcd", "words": ["a", "abcd"]}, losses) == {}
    assert [place for place, _ in losses.losses] == ["FindBookResult.title", "FindBookResult.words"]
    listed = step(tmp_path, loose, tight, Rule("by", "joined", "structured_as_object", path=places[1]))
    assert converted(listed, {"words": ["abc"]}) == {"words": ["abc"]}
    assert converted(listed, {"words": ["abcd"]}) == {"words": {"result": ["abcd"]}}
    required = small(FindBookResult=record("title", title=LEAVES[0][1]))
    with pytest.raises(BadInput, match=r"/s -> t/FindBookResult/title: .* drops it, which MCP t wants"):
        step(tmp_path, loose, required, Rule("drop", "too long", path=places[0]))


def test_a_required_object_is_filled_in_by_its_default(tmp_path: Path) -> None:
    loose, tight = small(), small(FindBookResult=record("pages size", pages=WHOLE, size={"type": "object"}))
    there = step(tmp_path, loose, tight, defaults={"FindBookResult.size": {"width": [1]}})
    first, second = (converted(there, {"pages": pages}) for pages in (1, 2))
    assert first == {"pages": 1, "size": {"width": [1]}}
    first["size"]["width"].append(2)
    assert second["size"] == {"width": [1]}
    back = step(tmp_path, tight, loose, defaults={"FindBookResult.size": {"width": [1]}})
    assert converted(back, {"pages": 1, "size": {}}) == {"pages": 1}


@pytest.mark.parametrize(
    ("new", "says"),
    [({"type": "integer"}, "where MCP t accepts integer, not string"), ({"type": "string", "maxLength": 3}, "")],
)
def test_a_rename_between_types_that_do_not_accept_each_other_is_refused(
    new: Schema, says: str, tmp_path: Path
) -> None:
    loose, tight = small(FindBookResult=record("title", title=TEXT)), small(FindBookResult=record("name", name=new))
    (tmp_path / "rules.toml").write_text(RENAME, "utf-8")
    (rule,) = read_rules(tmp_path / "rules.toml")["s", "t"].values()
    if says:
        with pytest.raises(BadInput, match="FindBookResult.title.* name, " + says):
            step(tmp_path, loose, tight, rule)
    else:
        there = step(tmp_path, loose, tight, rule)
        assert converted(there, {"title": "abc"}) == {"name": "abc"}
        assert converted(there, {"title": "abcd"}).pointer == "/title"
