"""Rules that move values, and functions of the user: laws for random documents, losses, refusals and errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen.bridging.chain import Conversion, LossReport, NotConvertible, Step
from mcp_bindgen.conversion.descriptions import sections
from mcp_bindgen.conversion.document import read, write
from mcp_bindgen.conversion.missing import with_missing_rules
from mcp_bindgen.conversion.source import models
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.sources import Source
from tests.harness.bridging import converted, text
from tests.harness.effort import examples
from tests.harness.json_instances import odd_names, of_definitions
from tests.harness.small_bridges import DOWN, NEW, OLD, UP, steps, store
from tests.harness.small_schemas import message, record, ref, small

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
BLOCKS = {"type": "array", "items": {"anyOf": [ref("Word"), ref("Number")]}}
SHARED = {"Word": record("text", text=TEXT), "Number": record("number", number=WHOLE)}
FORMATS = {"type": "array", "items": {"anyOf": [ref("Blocks"), ref("Data")]}}


def item(format: str, required: str, **more: Any) -> dict[str, Any]:
    return record(f"format audience {required}", format={"const": format, "type": "string"}, audience=TEXT, **more)


OUTPUTS = {
    "Blocks": item("blocks", "content", content=BLOCKS),
    "Data": item("data", "", data={}),
    "FindBookResult": record("outputs", outputs=FORMATS, pages=WHOLE),
}
MERGED = """
FindBookResult.content = { merge = "outputs", item = BLOCKS, member = "content", because = "x" }
FindBookResult.data = { merge = "outputs", item.format = "data", item.audience = "b", member = "data", because = "x" }
""".replace("BLOCKS", '{ format = "blocks", audience = "a" }')
GIVE = 'FindBookResult.content = { give = [], because = "every result has blocks" }\n'

CASES = {
    "rename": (
        record("a", a=BLOCKS),
        {"FindBookResult": record("b", b=BLOCKS)},
        UP + 'FindBookResult.a = { rename = "b", because = "x" }',
    ),
    "swap": (
        record("a", a=TEXT, b=WHOLE),
        {"FindBookResult": record("b", b=TEXT, a=WHOLE)},
        UP + 'FindBookResult.a = { rename = "b", because = "x" }\nFindBookResult.b = { rename = "a", because = "x" }',
    ),
    "move": (
        record("a", a=BLOCKS, b=TEXT, c=WHOLE),
        {"FindBookResult": record("in", **{"in": ref("In"), "c": WHOLE}), "In": record("a", a=BLOCKS, b=TEXT)},
        UP
        + 'FindBookResult.a = { move = ["in", "a"], because = "x" }\n'
        + 'FindBookResult.b = { move = ["in", "b"], because = "x" }',
    ),
    "move from an object": (
        record("in", **{"in": record("a", a=TEXT, b=WHOLE)}),
        {"FindBookResult": record("a in", **{"a": TEXT, "in": record("", b=WHOLE)})},
        DOWN + 'FindBookResult.a = { move = ["in", "a"], because = "x" }',
    ),
    "wrap in an array": (
        record("a", a=TEXT, b=ref("Word")),
        {"FindBookResult": record("a", a={"type": "array", "items": TEXT}, b={"type": "array", "items": ref("Word")})},
        UP + 'FindBookResult.a = { wrap = "[]", because = "x" }\nFindBookResult.b = { wrap = "[]", because = "x" }',
    ),
    "wrap in an object": (
        record("a", a=BLOCKS),
        {"FindBookResult": record("a", a=record("blocks", blocks=BLOCKS))},
        UP + 'FindBookResult.a = { wrap = "blocks", because = "x" }',
    ),
    "merge": (record("content", content=BLOCKS, data={}, pages=WHOLE), OUTPUTS, UP + MERGED + DOWN + GIVE),
}


def made(folder: Path, case: str) -> tuple[Any, Any, tuple[Step, Step]]:
    before, after, rules = CASES[case]
    old, new = {**SHARED, "FindBookResult": before}, {**SHARED, **after}
    return old, new, steps(store(folder, old, new, rules))


def validator(definitions: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({**small(definitions), "$ref": "#/$defs/FindBookResult"})


def results(step: Step) -> Conversion:
    return step.results["books/find"]


@pytest.mark.parametrize("case", CASES)
def test_laws_hold_for_random_results(case: str, tmp_path: Path) -> None:
    old, new, (up, down) = made(tmp_path, case)
    told, names = {OLD: validator(old), NEW: validator(new)}, odd_names("a", "b", "in", "content", "data", "outputs")
    definitions = {OLD: small(old)["$defs"], NEW: small(new)["$defs"]}
    drawn = {name: of_definitions(one, names=names).strategy_of("FindBookResult") for name, one in definitions.items()}
    own = {name: set(one["FindBookResult"]["properties"]) for name, one in definitions.items()}

    @settings(max_examples=examples(40, 600), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(st.sampled_from([(up, down), (down, up)]), st.data())
    def holds(pair: tuple[Step, Step], data: st.DataObject) -> None:
        there, back = pair
        value, losses = data.draw(drawn[there.source]), LossReport()
        if not told[there.source].is_valid(value):
            return
        value["acme.example/own"] = [1]
        foreign = own[there.target] - own[there.source]
        try:
            result = converted(results(there), value, losses)
        except NotConvertible as error:
            if error.place in {ruling.place for _, ruling in there.remarks["books/find"]}:
                return
            raise
        assert told[there.target].is_valid(result), result
        assert result["acme.example/own"] == [1]
        if there is up:
            assert losses.losses == {}
            known = {name: one for name, one in value.items() if name not in foreign}
            assert converted(results(back), result, losses) == known
            assert losses.losses == {}
        else:
            assert {place for place, _ in losses.losses} <= {
                ruling.place for _, ruling in there.remarks.get("books/find", ())
            }
        if not results(there).may_apply(text(value)):
            assert text(result) == text(value)

    holds()


BLOCK = {"format": "blocks", "audience": "a", "content": [{"text": "a"}]}


@pytest.mark.parametrize(
    ("outputs", "result", "lost"),
    [
        ([BLOCK], {"content": [{"text": "a"}]}, False),
        ([{**BLOCK, "audience": "user"}], {"content": [{"text": "a"}]}, True),
        ([{**BLOCK, "audience": "user", "content": []}, BLOCK], {"content": [{"text": "a"}]}, True),
        ([{**BLOCK, "acme": 1}], {"content": [{"text": "a"}]}, True),
        ([{"format": "data", "audience": "b", "data": None}], {"content": [], "data": None}, False),
        ([{"format": "data", "audience": "b"}], {"content": []}, True),
        ([], {"content": []}, False),
    ],
)
def test_items_without_a_member_are_a_recorded_loss(outputs: Any, result: Any, lost: bool, tmp_path: Path) -> None:
    *_, (_, down) = made(tmp_path, "merge")
    losses = LossReport()
    assert converted(results(down), {"outputs": outputs}, losses) == result
    assert bool(losses.losses) == lost


GIVEN = '{ format = "data", audience = "a" }'


def test_items_that_a_rule_gives_are_taken_away_without_a_loss(tmp_path: Path) -> None:
    before = {**SHARED, "FindBookResult": record("", data={})}
    rules = (
        UP
        + MERGED.splitlines()[2]
        + '\nFindBookResult.outputs = { give = [{ format = "data", audience = "a" }], because = "x" }'
    )
    up, down = steps(store(tmp_path, before, {**SHARED, **OUTPUTS}, rules))
    added = {"format": "data", "audience": "a"}
    for value in ({}, {"data": 1}):
        for _ in range(2):  # the value of the rule does not change
            result = converted(results(up), value)
            assert result["outputs"] == [added, *({"format": "data", "audience": "b", "data": 1} for _ in value)]
            losses = LossReport()
            assert (converted(results(down), result, losses), losses.losses) == (value, {})


@pytest.mark.parametrize(("array", "result"), [(["a"], "a"), ([], None), (["a", "b"], None)])
def test_an_array_is_unwrapped_if_it_has_one_item(array: list[str], result: str | None, tmp_path: Path) -> None:
    *_, (_, down) = made(tmp_path, "wrap in an array")
    if result is not None:
        assert converted(results(down), {"a": array}) == {"a": result}
        return
    with pytest.raises(NotConvertible, match=r"FindBookResult.a.\[\]: x: an array with another number of items"):
        converted(results(down), {"a": array})


def test_members_beside_an_unwrapped_value_are_a_recorded_loss(tmp_path: Path) -> None:
    *_, (_, down) = made(tmp_path, "wrap in an object")
    losses = LossReport()
    assert converted(results(down), {"a": {"blocks": [], "more": 1}}, losses) == {"a": []}
    assert [*losses.losses] == [("FindBookResult.a.blocks", "x")]


def test_a_moved_value_is_converted_by_its_types_and_a_rule_of_the_opposite_step_wins(tmp_path: Path) -> None:
    narrow = {"type": "array", "items": ref("Word")}
    new = {**SHARED, "FindBookResult": record("in", **{"in": record("a", a=narrow)})}
    old = {**SHARED, "FindBookResult": record("a", a=BLOCKS)}
    rules = (
        UP
        + 'FindBookResult.a = { move = ["in", "a"], because = "x" }\n'
        + DOWN
        + 'FindBookResult.in = { do = "keep", because = "y" }\nFindBookResult.a = { give = [], because = "z" }\n'
    )
    up, down = steps(store(tmp_path, old, new, rules))
    assert converted(results(up), {"a": [{"text": "a"}]}) == {"in": {"a": [{"text": "a"}]}}
    with pytest.raises(NotConvertible, match="has no Number here"):
        converted(results(up), {"a": [{"number": 1}]})
    assert converted(results(down), {"in": {"a": []}}) == {"in": {"a": []}, "a": []}


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ('rename = "n"', "moves it to n, where MCP 2026-02-01 accepts integer, not string"),
        ('rename = "b"', "moves it to b, where MCP 2026-01-01 has another value"),
        ('rename = "gone"', "moves it to gone, which MCP 2026-02-01 does not have"),
        ('move = ["in", "n"]', "moves it to in.n, where MCP 2026-02-01 accepts integer, not string"),
        ('move = ["in", "t"]', "moves it to in.t, where MCP 2026-02-01 also wants 'n'"),
        ('wrap = "[]"', r"moves it to a.\[\], which MCP 2026-02-01 does not have"),
        ('merge = "many", item = { kind = "x" }, member = "t"', r"moves it to many.\[\].t, which"),
        (
            'merge = "many", item = { kind = "k" }, member = "n"',
            r"many.\[\].n, where MCP 2026-02-01 accepts integer",
        ),
        ('merge = "many", item = { kind = "k" }, member = "t"', r"many.\[\].t, where MCP 2026-02-01 also wants 'n'"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused(rule: str, says: str, tmp_path: Path) -> None:
    inner = record("n", n=WHOLE, t=TEXT)
    kinds = {"type": "array", "items": record("kind n", kind={"const": "k", "type": "string"}, n=WHOLE, t=TEXT)}
    before = {"FindBookResult": record("a", a=TEXT, b=TEXT)}
    after = {"FindBookResult": record("", b=TEXT, n=WHOLE, many=kinds, **{"in": inner})}
    rules = f'{UP}FindBookResult.a = {{ {rule}, because = "x" }}'
    with pytest.raises(BadInput, match=says) as caught:
        models(store(tmp_path, before, after, rules))
    assert 'by = "package.module:function"' in str(caught.value)
    assert f"bridges.toml#/{OLD} -> {NEW}/FindBookResult/a: " in str(caught.value)


def test_a_method_that_is_renamed_is_converted_in_both_directions(tmp_path: Path) -> None:
    sought = message("books/seek", ref("FindBookRequestParams"))
    moved = f'{UP}FindBookResult.a = {{ rename = "b", because = "x" }}\n'
    before, after = record("a", a=TEXT), record("b", b=TEXT)
    new = {"FindBookResult": after, "FindBookRequest": sought}
    for name in ("books/seek", "books/loose"):
        rules = f'{moved}"books/find" = {{ rename = "{name}", because = "x" }}'
        found = store(tmp_path / name.replace("/", "-"), {"FindBookResult": before}, new, rules)
        if name == "books/loose":
            with pytest.raises(BadInput, match=f"books/find names no request of MCP {NEW}: books/loose; name its"):
                models(found)
            return
        up, down = steps(found)
        assert (up.renamed, up.absent, down.renamed) == ({"books/find": "books/seek"}, {}, {"books/seek": "books/find"})
        assert converted(up.results["books/find"], {"a": "x"}) == {"b": "x"}
        assert converted(down.results["books/seek"], {"b": "x"}) == {"a": "x"}
        titles = [section.title for model in models(found) for plan in model.bridges for section in sections(plan)]
        assert titles == ["Converted", "Converted"]


def test_a_suggested_merge_names_the_constant_first_which_tells_items_apart(tmp_path: Path) -> None:
    before, after, _ = CASES["merge"]
    found = models(store(tmp_path, {**SHARED, "FindBookResult": before}, {**SHARED, **after}, ""))
    revisions = {model.protocol.revision: model.protocol for model in found}
    missing = with_missing_rules("", found[0].bridges[0], revisions)
    assert 'FindBookResult.content = { merge = "outputs", item = { format = "blocks", audience = ' in missing
    assert not re.search(r'(\w+) = \{ rename = "\1"', missing)


def test_plans_with_moves_are_described_and_printed(tmp_path: Path) -> None:
    before, after, rules = CASES["merge"]
    found = models(store(tmp_path, {**SHARED, "FindBookResult": before}, {**SHARED, **after}, rules))
    for model in found:
        assert read(Source(write(model).encode(), "model.json", "draft", "model.json")) == model
    (up, down) = (model.bridges[0] for model in found)
    titles = {
        name: one.title for plan in (up, down) for one in sections(plan) for names, _ in one.entries for name in names
    }
    assert titles["FindBookResult.content"] in ("Converted", "Filled in or removed")
    assert titles["FindBookResult.outputs.content"] == "Converted with a loss"
