"""Lowering of single tools: each kind of rewrite with its codec, names, budgets, profiles, guards and cost."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen import lowering
from mcp_bindgen.lowering import BadProfile, InvalidArguments, Lowered, Verdict, lower, names, profile
from mcp_bindgen.lowering.codecs import Lost
from mcp_bindgen.lowering.profiles import refused_at
from mcp_bindgen.v2025_11_25 import types as old
from mcp_bindgen.v2026_07_28 import types as new
from tests.harness.commands import execute
from tests.harness.effort import each

CLOSED = {"type": "object", "additionalProperties": False}
TEXT = {"type": "string"}
MAP = {"type": "object", "additionalProperties": {"type": "integer"}}
TREE = {
    "type": "object",
    "properties": {"name": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["name"],
    "additionalProperties": False,
}
KINDS = [
    {**CLOSED, "properties": {"kind": {"const": name}, name: TEXT}, "required": ["kind"]} for name in ("file", "link")
]


def lowered(profile: str, /, root: dict[str, Any] | None = None, **properties: Any) -> Lowered:
    schema = {**CLOSED, "properties": properties, "required": list(properties), **(root or {})}
    return lower({"name": "tool", "inputSchema": schema}, profile)


@each(
    ("profile", "schema", "rules", "arguments", "encoded"),
    [
        ("openai-strict", MAP, {"map-to-entries"}, {"a": 1}, [{"key": "a", "value": 1}]),
        ("openai-strict", {"anyOf": [MAP, {"type": "null"}]}, {"map-to-entries"}, {"a": 1}, [{"key": "a", "value": 1}]),
        ("openai-strict", {"anyOf": [MAP, {"type": "null"}]}, {"map-to-entries"}, None, None),
        ("openai-strict", {}, {"any-json"}, {"a": [None]}, {"entries": [{"key": "a", "value": [None]}]}),
        ("openai-strict", {"type": "array", "items": TEXT, "uniqueItems": True}, {"drop-duplicates"}, ["a"], ["a"]),
        ("openai-strict", {"prefixItems": [TEXT, {"type": "null"}], "items": False, "minItems": 2, "type": "array"},
         {"tuple-to-object"}, ["a", None], {"0": "a", "1": None}),
        ("openai-strict", {"oneOf": KINDS}, {"null-if-absent"}, {"kind": "link"}, {"kind": "link", "link": None}),
        ("gemini", {"enum": [1, "", "a"]}, {"label-values"}, 1, "1"),
        ("gemini", CLOSED, {"label-values"}, {}, "{}"),
        ("anthropic-strict", {"enum": ["Oslo", "Rome"]}, {"restore-case"}, "Oslo", "Oslo"),
    ],
)  # fmt: skip
def test_coded_values_are_decoded_unchanged(
    profile: str, schema: Any, rules: set[str], arguments: Any, encoded: Any
) -> None:
    found = lowered(profile, value=schema)
    assert {one.rule for one in found.reasons} - {"drop-unknown"} == rules
    assert found.verdict is Verdict.CODED
    assert found.encode({"value": arguments}) == {"value": encoded}
    assert found.decode({"value": encoded}) == {"value": arguments}


def test_min_properties_above_one_is_dropped_where_entries_may_repeat_a_key() -> None:
    for least in (1, 2):
        found = lowered("openai-strict", value={**MAP, "minProperties": least})
        pointers = {one.pointer for one in found.reasons if one.rule == "drop-keyword"}
        assert ("/inputSchema/properties/value/minProperties" in pointers) == (least == 2)


def test_a_required_member_has_the_schema_of_its_pattern() -> None:
    """Python's `re` cannot read the pattern, which is one of ECMA-262."""
    schema = {**CLOSED, "patternProperties": {r"^\p{Ll}$": {"type": "integer"}}, "required": ["é"]}
    found = lowered("openai-strict", value=schema)
    assert found.schema is not None
    assert found.schema["properties"]["value"]["properties"]["é"] == {"type": "integer"}


def test_null_represents_an_absent_member_unless_null_is_a_valid_value() -> None:
    optional: dict[str, Any] = {"required": []}
    absent = lowered("openai-strict", optional, value=TEXT)
    assert absent.schema is not None
    assert absent.schema["properties"] == {"value": {"type": ["string", "null"]}}
    assert (absent.decode({"value": None}), absent.encode({})) == ({}, {"value": None})

    assert lowered("openai-strict", optional, value={"type": "string", "const": "a"}).encode({}) == {"value": None}

    marked = lowered("openai-strict", optional, value={"type": ["string", "null"]})
    assert marked.decode({"value": None}) == {}
    assert marked.decode(marked.encode({"value": None})) == {"value": None}

    dropped = lowered("openai-strict", optional, value={"type": ["string", "null"], "default": None})
    assert (dropped.verdict, dropped.decode({"value": None})) == (Verdict.NARROWED, {})
    assert dropped.witness(dropped.reasons[0]) == {"value": None}

    required = lowered("gemini", value={"type": ["string", "null"]})
    assert (required.decode({}), required.encode({"value": None})) == ({"value": None}, {})


def test_the_letter_case_of_constants_is_restored() -> None:
    found = lowered("anthropic-strict", city={"enum": ["Oslo", "Rome", "A", "a"]})
    assert found.decode({"city": "OSLO"}) == {"city": "Oslo"}
    assert found.decode({"city": "a"}) == {"city": "a"}


def test_recursion_is_kept_or_cut() -> None:
    root = {"$defs": {"tree": TREE}}
    deep: dict[str, Any] = {"name": "leaf"}
    for name in "abcdef":
        deep = {"name": name, "children": [deep]}
    kept = lowered("openai-strict", root, tree={"$ref": "#/$defs/tree"})
    assert kept.schema is not None
    assert list(kept.schema["$defs"]) == ["tree"]
    assert kept.decode(kept.encode({"tree": deep})) == {"tree": deep}
    cut = lowered("gemini", root, tree={"$ref": "#/$defs/tree"})
    assert cut.verdict is Verdict.NARROWED
    with pytest.raises(ValueError, match="cannot express"):
        cut.encode({"tree": deep})


def test_tuples_with_different_first_items_exclude_each_other() -> None:
    tuples = [{"type": "array", "prefixItems": [{"const": name}], "items": TEXT, "minItems": 1} for name in "aab"]
    for branches, overlap in ((tuples[1:], False), (tuples[:2], True)):
        found = lowered("openai-strict", value={"oneOf": branches})
        assert ("one-of" in {one.rule for one in found.reasons}) is overlap


def test_a_union_at_the_root_is_wrapped() -> None:
    found = lower({"name": "tool", "inputSchema": {"type": "object", "anyOf": KINDS}}, "claude-code")
    assert found.verdict is Verdict.CODED
    assert found.encode({"kind": "file"}) == {"arguments": {"kind": "file"}}
    assert found.decode({"arguments": {"kind": "file"}}) == {"kind": "file"}


def test_names_of_members_are_restored() -> None:
    found = lowered("anthropic", **{"a b": TEXT, "a_b": TEXT})
    assert found.decode(found.encode({"a b": "1", "a_b": "2"})) == {"a b": "1", "a_b": "2"}
    assert found.schema is not None
    assert all(re.fullmatch("[a-zA-Z0-9_.-]+", name) for name in found.schema["properties"])


def test_an_undeclared_member_with_the_new_name_of_a_member_is_lost() -> None:
    found = lower({"name": "tool", "inputSchema": {"type": "object", "properties": {"a b": TEXT}}}, "anthropic")
    assert found.verdict is Verdict.NARROWED
    assert {one.rule: found.witness(one) for one in found.reasons} == {
        "rename-member": None,
        "shadow-member": {"a_b": None},
    }


def test_a_guard_reports_the_location_of_an_invalid_argument() -> None:
    found = lowered("azure-strict", count={"type": "integer", "minimum": 1, "description": "How many."})
    assert found.verdict is Verdict.GUARDED
    assert found.schema is not None
    assert found.schema["properties"]["count"]["description"] == "How many. minimum: 1."
    assert found.decode({"count": 2}) == {"count": 2}
    with pytest.raises(InvalidArguments, match=r"Invalid arguments of tool: arguments\.count: .*minimum"):
        found.decode({"count": 0})


def test_a_condition_at_the_root_is_guarded() -> None:
    tool = {"name": "tool", "inputSchema": {"type": "object", "not": {"minProperties": 2}}}
    found = lower(tool, "openai")
    assert (lower(tool, "claude-code").verdict, found.verdict) == (Verdict.EXACT, Verdict.GUARDED)
    assert found.decode({"a": 1}) == {"a": 1}
    with pytest.raises(InvalidArguments):
        found.decode({"a": 1, "b": 2})


@pytest.mark.parametrize("profile", ["azure-strict", "openai-strict", "gemini"])
def test_a_true_schema_is_lowered_like_an_empty_one(profile: str) -> None:
    parts: list[Any] = [True, {}]
    boolean, empty = (lowered(profile, a=part, b={"type": "array", "items": part}) for part in parts)
    assert (boolean.verdict, boolean.schema) == (empty.verdict, empty.schema)


def test_dropped_defaults_are_added_to_the_description() -> None:
    found = lowered("openai-strict", {"required": []}, count={"type": "integer", "default": 5})
    assert found.schema is not None
    assert found.schema["properties"]["count"] == {"type": ["integer", "null"], "description": "Default: 5."}


@pytest.mark.parametrize(
    ("schema", "pointer", "rule"),
    [
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "/inputSchema", "empty"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "/inputSchema/properties/a/$ref", "unsupported"),
        ({"properties": {"a": {"$dynamicRef": "#a"}}}, "/inputSchema/properties/a/$dynamicRef", "unsupported"),
        ({"properties": {"a": {"type": "text"}}}, "/inputSchema/properties/a/type", "bad-schema"),
        ({"properties": {str(one): TEXT for one in range(101)}}, "/inputSchema", "limit"),
        ("no schema", "/inputSchema", "bad-schema"),
    ],
)
def test_a_refusal_names_its_location(schema: Any, pointer: str, rule: str) -> None:
    found = lower({"name": "tool", "inputSchema": schema}, "azure-strict")
    assert (found.verdict, found.schema) == (Verdict.REFUSED, None)
    assert [(one.pointer, one.rule) for one in found.reasons] == [(pointer, rule)]
    assert found.reasons[0].fix
    with pytest.raises(ValueError, match="refused"):
        found.decode({})


def test_tools_of_every_revision_are_accepted() -> None:
    older = old.Tool(name="a", input_schema=old.ToolInputSchema())
    for tool in (older, new.Tool(name="a", input_schema=new.ToolInputSchema())):
        assert lower(tool, "openai-strict").schema == {**CLOSED, "properties": {}, "required": []}


def test_function_names_are_valid_unique_and_stable() -> None:
    pairs = [
        *[("s", "t"), ("", "t"), ("s", "a.b"), ("s", "a_b"), ("s", "a/b"), ("s", "x" * 200), ("s", "x" * 201)],
        *[("a", "b__c"), ("a__b", "c"), ("a_", "b"), ("a", "_b"), ("", "a__b"), ("", ""), ("s", "ü")],
    ]  # fmt: skip
    for name in names():
        known = profile(name)
        found = [lowering.function_name(tool, known, server) for server, tool in pairs]
        assert len({*found}) == len(pairs)
        assert all(len(one) <= known.tool_name_length and re.fullmatch(f"({known.tool_name})+", one) for one in found)
        assert found == [lowering.function_name(tool, known, server) for server, tool in pairs]


def test_budgets_of_a_request_are_checked() -> None:
    tools = [lower({"name": f"t{index}", "inputSchema": {"type": "object"}}, "openai") for index in range(129)]
    assert lowering.exceeded_budgets(tools[1:], "openai") == []
    with pytest.raises(lowering.RequestTooLarge, match="129 tools; at most 128 fit into a request; send fewer tools"):
        lowering.require_budgets(tools, "openai")
    optional = [lowered("anthropic-strict", {"required": []}, **dict.fromkeys("abcdefghijklm", TEXT)) for _ in "ab"]
    assert "26 optional members; at most 24 fit into a request" in lowering.exceeded_budgets(
        optional, "anthropic-strict"
    )


def test_a_small_schema_that_multiplies_is_refused_after_a_limited_number_of_steps() -> None:
    """Each member contains all members again, with one more requirement: ten levels have 6 ** 10 places."""
    members = {name: {"$ref": "#/$defs/node", "required": [name]} for name in "abcdef"}
    node = {"type": "object", "properties": members}
    tool = {
        "name": "t",
        "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}},
    }
    found = lower(tool, "openai-strict")
    assert found.schema is None
    assert found.reasons[-1].text == "lowering takes more than 2000 steps"


def test_a_custom_profile_extends_a_built_in_profile(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    entry = '[{0}]\nvalue = {1}\nsource = "a measurement"\ndate = 2026-01-01\n'
    file.write_text('base = "gemini"\n' + entry.format("max_tools", 3), "utf-8-sig")
    mine = profile(str(file))
    assert (mine.name, mine.max_tools, mine.keywords) == ("mine", 3, profile("gemini").keywords)
    for text, said in [
        (entry.format("max_tool", 3), "unknown entry max_tool"),
        (entry.format("max_tools", "true"), "max_tools.value must be of type int"),
        ("max_tools = 3", r"\[max_tools\] needs value, source and date"),
        ("max_tools", "mine.toml: "),
        ("base = []", "title and base must be texts"),
        ("title = 2026-01-01", "title and base must be texts"),
        (f'base = "{file}"', "base leads back to this file"),
        (f"title = {'[' * 5000}", "mine.toml: "),
        (entry.format("keywords", "[[]]"), r"\[keywords\] needs texts"),
        (entry.format("max_tools", 3).replace('"a measurement"', "[]"), r"\[max_tools\] needs texts"),
    ]:
        file.write_text(text, "utf-8")
        profile.cache_clear()
        with pytest.raises(BadProfile, match=said):
            profile(str(file))
    with pytest.raises(BadProfile, match=r"none.toml: No such file"):
        profile(str(tmp_path / "none.toml"))
    with pytest.raises(BadProfile, match="unknown profile 'gpt'; use a TOML file or one of anthropic"):
        profile("gpt")


def test_the_library_loads_few_modules_and_no_validator() -> None:
    names = execute(sys.executable, "-c", "import sys, mcp_bindgen.lowering; print(*sys.modules)").stdout.split()
    assert len([name for name in names if name.startswith("mcp_bindgen.")]) <= 8
    assert "jsonschema_rs" not in names


DRAFT_04, DRAFT_07 = ({"$schema": f"http://json-schema.org/draft-0{number}/schema#"} for number in (4, 7))
BOUNDS = {"type": "integer", "minimum": 1, "exclusiveMinimum": False, "maximum": 5, "exclusiveMaximum": True}
PAIR = {"type": "array", "items": [TEXT, {"type": "integer"}], "minItems": 2, "additionalItems": False}


@each(
    ("root", "good", "bad"),
    [
        (DRAFT_04 | {"properties": {"a": BOUNDS}}, [1, 4], [0, 5]),
        (DRAFT_04 | {"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": BOUNDS}}, [1, 4], [0, 5]),
        (DRAFT_04 | {"properties": {"a": {"$ref": "#x"}}, "definitions": {"y": {"id": "#x", **BOUNDS}}}, [4], [5]),
        (DRAFT_07 | {"properties": {"a": {"$ref": "#x"}}, "definitions": {"y": {"$id": "#x", **TEXT}}}, ["a"], [1]),
        (DRAFT_07 | {"properties": {"a": TEXT | {"$id": "#/properties/a"}}}, ["a"], [1]),
        (DRAFT_07 | {"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": PAIR}}, [["a", 1]], [[1]]),
        (DRAFT_07 | {"properties": {"b": PAIR, "a": {"$ref": "#/properties/b/items/0"}}}, ["a"], [1]),
        (DRAFT_07 | {"properties": {"a": TEXT, "b": TEXT}, "dependentRequired": {"a": ["b"]}}, ["a"], [1]),
        (DRAFT_04 | {"id": "https://a.example/b#", "properties": {"a": {"$ref": "https://a.example/b#/definitions/x"}},
                     "definitions": {"x": TEXT}}, ["a"], [1]),
    ],
)  # fmt: skip
@each("known", names())
def test_a_schema_of_an_older_dialect_keeps_its_meaning(
    known: str, root: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    found = lowered(known, {**root, "required": ["a"]})
    assert found.schema is not None, found.reasons
    jsonschema_rs.meta.validate({**found.schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    for value in good:
        arguments = {"a": value} | ({"b": ["a", 1]} if PAIR in root["properties"].values() else {})
        assert found.decode(found.encode(arguments)) == arguments
    for value in bad:
        with pytest.raises((InvalidArguments, Lost)):
            found.encode(found.decode({"a": value}))


@pytest.mark.parametrize("known", ["openai", "openai-strict", "azure-strict"])
def test_openai_gets_the_properties_of_objects_and_the_items_of_arrays(known: str) -> None:
    """The API refuses the whole request otherwise."""
    nested = {"a": {"type": "object"}, "b": {"type": ["array", "null"]}, "c": {"anyOf": [CLOSED, {"type": "array"}]}}
    for root in ({"type": "object"}, CLOSED, {**CLOSED, "properties": nested, "required": list(nested)}):
        assert refused_at(root, profile(known)) is not None
        found = lower({"name": "tool", "inputSchema": root}, known)
        assert found.schema is not None
        assert refused_at(found.schema, profile(known)) is None
    for word, exact in (("contains", True), ("unevaluatedItems", False)):
        array = {"type": "array", word: False}
        found = lower({"name": "tool", "inputSchema": {**CLOSED, "properties": {"b": array}}}, "openai")
        assert found.schema is not None
        assert (found.schema["properties"]["b"] == array | {"items": {}}) == (found.verdict is Verdict.EXACT) == exact


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"name": "a"}
    for _ in range(levels):
        found = {"name": "a", "children": [found]}
    return found


HOSTILE = ("\ud800", ["\ud800"], {"\ud800": 1}, float("nan"), nested(100_000), b"a", 10**5000)


@each("known", names())
@each("value", HOSTILE)
def test_hostile_arguments_of_a_model_are_invalid_arguments(known: str, value: Any) -> None:
    properties: dict[str, Any] = {"any": {}, "tree": {"$ref": "#/$defs/tree"}, "set": {"uniqueItems": True}, "map": MAP}
    properties["union"] = {"anyOf": [MAP, {"not": TEXT}]}
    root = {**CLOSED, "properties": properties, "$defs": {"tree": TREE}}
    found = lower({"name": "tool", "inputSchema": root}, known)
    for name in properties:
        with pytest.raises(InvalidArguments, match="do not fit the schema"):
            found.decode({name: value})


def test_hostile_text_of_a_json_document_is_an_invalid_argument() -> None:
    for text in ('"\\ud800"', "NaN", "[" * 100_000, "1" * 5000, "\ud800"):
        for known in ("gemini", "anthropic-strict"):
            with pytest.raises(InvalidArguments):
                lowered(known, value={}).decode({"value": text})
