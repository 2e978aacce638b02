"""Each pass on its own, on schemas of a few lines; then names and slices of the real revisions."""

from __future__ import annotations

import keyword
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.emit.python.package_scope import PackageScope
from mcp_bindgen.emit.python.stubs import calls, constant, handlers
from mcp_bindgen.ir import Protocol, build, slice_protocol
from mcp_bindgen.ir import naming as model_names
from mcp_bindgen.ir.model import (
    AnyValue,
    Array,
    Capability,
    Const,
    Definition,
    ErrorCode,
    Field,
    Filter,
    HeaderParams,
    Map,
    MetaKey,
    Method,
    Need,
    Object,
    Ref,
    Scalar,
    Truncation,
    Type,
    Union,
    references,
)
from mcp_bindgen.ir.passes import PASSES, BuildState
from mcp_bindgen.runtime import Client, Context, Server
from mcp_bindgen.spec import BadInput, DiagnosticContext, EffectiveSchema, ExtensionSchema, Schema, Store, extend
from tests.harness.commands import ROOT
from tests.harness.small_schemas import record, ref, union

STORE = Store()
REVISIONS = list(STORE.pins)
STRING: Schema = {"type": "string"}
TEXT = Scalar("string")
SEMANTICS: dict[str, Any] = {
    **{table: {} for table in STORE.semantics},
    "deprecations": [],
    "unions": {
        "ClientRequest": {"sender": "client", "kind": "request"},
        "ServerRequest": {"sender": "server", "kind": "request"},
        "ServerNotification": {"sender": "server", "kind": "notification"},
        "InputRequest": {"sender": "server", "kind": "request", "carrier": "embedded"},
    },
}

every_revision = pytest.mark.parametrize("revision", REVISIONS)


def build_state(schemas: Schema, *, revision: str = "2026-01-01", docs: Any = None, **semantics: Any) -> BuildState:
    """Return the input of the first pass."""
    return BuildState(EffectiveSchema(revision, schemas, "", {**SEMANTICS, **semantics}, docs), schemas)


def after(names: str, so_far: BuildState) -> BuildState:
    """Run these passes in order."""
    for name in names.split():
        (step,) = (one for one in PASSES if one.__name__ == name)
        so_far = step(so_far)
    return so_far


def read(schemas: Schema, **more: Any) -> BuildState:
    """Return the input of the passes on types."""
    return after("read_definitions", build_state(schemas, **more))


def types(so_far: BuildState) -> dict[str, Type]:
    return {name: definition.type for name, definition in so_far.definitions.items()}


def fields(so_far: BuildState, name: str) -> dict[str, Type]:
    """Return wire name -> type for the fields of a definition."""
    type = so_far.definitions[name].type
    assert isinstance(type, Object)
    return {field.wire: field.type for field in type.fields}


def const(value: object) -> Schema:
    return {"const": value}


def message(method: str, params: Schema | None = None, required: str = "method") -> Schema:
    """Return a request or notification."""
    more = {} if params is None else {"params": params}
    return record(required, method=const(method), **more)


@cache
def protocol(revision: str) -> Protocol:
    return build(STORE.effective(revision))


def test_every_pass_is_tested_here() -> None:
    used = re.findall(r"\w+", Path(__file__).read_text("utf-8").partition("# ---")[2])
    assert {step.__name__ for step in PASSES} <= {*used}


def test_every_pass_is_described() -> None:
    page = (ROOT / "docs" / "explanation" / "generator.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", page, re.MULTILINE)
    assert {step.__name__ for step in PASSES} <= {name for row in rows for name in re.findall(r"\w+", row)}


@pytest.mark.full
def test_no_pass_modifies_its_input() -> None:
    schemas = STORE.effective("2026-07-28").definitions
    before = repr(schemas)
    build(STORE.effective("2026-07-28"))
    so_far = BuildState(STORE.effective("2026-07-28"), schemas)
    for step in PASSES:
        frozen = repr(so_far)
        step_result = step(so_far)
        assert repr(so_far) == frozen, step.__name__
        so_far = step_result
    assert repr(schemas) == before


# --- lowering: names of classes -------------------------------------------------------------------------------


def small_protocol(types: dict[str, Type], *methods: Method) -> Protocol:
    """Return a strictly read protocol with these definitions and methods."""
    definitions = {name: Definition(name, type) for name, type in types.items()}
    return Protocol("draft", "stateless", "", definitions, methods, context=DiagnosticContext())


def test_lowering_refuses_names_that_are_invalid_for_a_class() -> None:
    for name in ["with space", "a/b", "1st", "_hidden", "Tool<T>", "", "None", "Literal", "Model"]:
        with pytest.raises(BadInput, match="cannot be a name in Python"):
            lower(small_protocol({name: TEXT}))


def test_lowering_keeps_all_other_names() -> None:
    whole = small_protocol({"Field": TEXT, "Json": Ref("Field"), "URL2Tool": Object((Field("a", Ref("Json"), True),))})
    assert lower(whole).definitions == whole.definitions


# --- restore_unions -------------------------------------------------------------------------------------------


def test_restore_unions_refers_to_the_inlined_message() -> None:
    left = message("left", STRING)
    schemas: Schema = {"LeftNotification": left, "ServerNotification": {**left, "description": "From servers."}}
    restored = after("restore_unions", build_state(schemas)).schemas
    assert restored["ServerNotification"] == {"description": "From servers.", "anyOf": [ref("LeftNotification")]}
    assert restored["LeftNotification"] == left


def test_restore_unions_leaves_other_schemas_unchanged() -> None:
    for schemas in [
        {"LeftNotification": message("left"), "ServerNotification": union("LeftNotification")},
        {"LeftNotification": message("left"), "Other": message("left")},
        {"LeftNotification": message("left"), "ServerNotification": message("right")},
        {"LeftNotification": message("left", STRING), "ServerNotification": message("left")},
        {"ServerNotification": record(method=STRING)},
    ]:
        assert after("restore_unions", build_state(schemas)).schemas == schemas


# --- flatten_all_of -------------------------------------------------------------------------------------------


def flat(schema: Schema, **others: Schema) -> Schema:
    return dict(after("flatten_all_of", build_state({**others, "X": schema})).schemas["X"])


def test_flatten_all_of_merges_the_parts() -> None:
    base = {**record("a", a=STRING, b={}), "description": "Base."}
    part = {"type": "object", "properties": {"b": const(1), "c": ref("Base")}, "required": ["c", "a"]}
    assert flat({"allOf": [ref("Base"), part], "description": "Both."}, Base=base) == {
        "type": "object",
        "properties": {"a": STRING, "b": const(1), "c": ref("Base")},
        "required": ["a", "c"],
        "description": "Both.",
    }


def test_flatten_all_of_flattens_nested_schemas() -> None:
    both: Schema = {"allOf": [STRING, {"minLength": 1}]}
    one = {"type": "string", "minLength": 1}
    nested = record(a={"type": "array", "items": both}, b={"anyOf": [both, {"additionalProperties": both}]})
    assert flat(nested) == record(a={"type": "array", "items": one}, b={"anyOf": [one, {"additionalProperties": one}]})


def test_flatten_all_of_follows_chains_of_references() -> None:
    more = {"allOf": [ref("Base"), record("b", b=STRING)]}
    found = flat({"allOf": [ref("More"), record(c=STRING)]}, More=more, Base=record("a", a=STRING))
    assert found == record("a b", a=STRING, b=STRING, c=STRING)


def test_flatten_all_of_merges_keywords_beside_all_of() -> None:
    assert flat({"allOf": [record("a", a=STRING)], **record("b", b=STRING)}) == record("a b", a=STRING, b=STRING)


def test_flatten_all_of_narrows_additional_properties() -> None:
    for one, other, extra in [
        ({}, STRING, STRING),
        (True, STRING, STRING),
        (STRING, {"maxLength": 2}, {**STRING, "maxLength": 2}),
    ]:
        parts = [{**record(a=STRING), "additionalProperties": part} for part in (one, other)]
        assert flat({"allOf": parts})["additionalProperties"] == extra


def test_flatten_all_of_takes_the_narrower_member() -> None:
    for either in [True, {}]:
        assert flat({"allOf": [record(a=either), record(a=STRING)]}) == record(a=STRING)
        assert flat({"allOf": [record(a=STRING), record(a=either)]}) == record(a=STRING)


def test_flatten_all_of_refuses_contradictions() -> None:
    for one, other, says in [
        (record(a=STRING), record(a={"type": "integer"}), "disagree about 'type'"),
        (record(a=const(1)), record(a=const(2)), "disagree about 'const'"),
        ({"type": "object"}, STRING, "disagree about 'type'"),
        ({"minimum": 1}, {"minimum": 2}, "disagree about 'minimum'"),
        (record(a=ref("X1")), record(a=ref("X2")), "disagree about"),
        ({**record(a=STRING), "additionalProperties": False}, record(b=STRING), "closed to the members of another"),
    ]:
        for parts in ([one, other], [other, one]):
            with pytest.raises(BadInput, match=says) as caught:
                flat({"allOf": parts}, X1=STRING, X2=STRING)
            assert str(caught.value).startswith("#/$defs/X")
            assert caught.value.fix


def test_flatten_all_of_ignores_parts_that_accept_everything() -> None:
    assert flat({"allOf": [True, record(a=STRING), {}]}) == record(a=STRING)


def test_flatten_all_of_refuses_constraints_beside_a_reference() -> None:
    with pytest.raises(BadInput):
        flat({"allOf": [record(a=ref("Name")), record(a={"maxLength": 3})]}, Name=STRING)


# --- extract_inline_objects -------------------------------------------------------------------------------------

INLINE = record("x", x=STRING)


def extracted(schema: Schema, **others: Schema) -> tuple[Schema, Schema]:
    """Return the remaining definition `X`, and the inline types extracted from it."""
    result = after("extract_inline_objects", build_state({**others, "X": schema}))
    assert result.inline_names == set(result.schemas) - {"X", *others}
    return result.schemas["X"], {name: result.schemas[name] for name in sorted(result.inline_names)}


def test_extract_inline_objects_names_them_after_their_place() -> None:
    for schema, left, names in [
        (record(some_part=INLINE), record(some_part=ref("XSomePart")), ["XSomePart"]),
        (record(a={"items": INLINE}), record(a={"items": ref("XA")}), ["XA"]),
        (record(a={"items": {"items": INLINE}}), record(a={"items": {"items": ref("XA")}}), ["XA"]),
        (record(a={"additionalProperties": INLINE}), record(a={"additionalProperties": ref("XA")}), ["XA"]),
        ({"items": INLINE}, {"items": ref("XItem")}, ["XItem"]),
        ({"additionalProperties": INLINE}, {"additionalProperties": ref("XValue")}, ["XValue"]),
        ({"anyOf": [INLINE, STRING]}, {"anyOf": [ref("XOption"), STRING]}, ["XOption"]),
        (record(a={"anyOf": [STRING, INLINE]}), record(a={"anyOf": [STRING, ref("XA")]}), ["XA"]),
        (
            record(a={"oneOf": [INLINE, STRING, record(y=STRING)]}),
            record(a={"oneOf": [ref("XA1"), STRING, ref("XA2")]}),
            ["XA1", "XA2"],
        ),
    ]:
        kept, moved = extracted(schema)
        assert kept == left
        assert list(moved) == names
        assert moved[names[0]] == INLINE


def test_extract_inline_objects_extracts_nested_objects() -> None:
    left, moved = extracted(record(a=record(b=record(c=STRING))))
    assert (left, moved) == (record(a=ref("XA")), {"XA": record(b=ref("XAB")), "XAB": record(c=STRING)})


def test_extract_inline_objects_writes_words_that_a_parent_and_its_member_share_once_unless_the_name_is_taken() -> None:
    failed = record(error=record(data=INLINE))
    before = build_state({"ParseError": failed})
    assert after("extract_inline_objects", before).inline_names == {"ParseErrorObject", "ParseErrorData"}
    before = build_state({"ParseError": failed, "ParseErrorObject": INLINE})
    assert after("extract_inline_objects", before).inline_names == {"ParseErrorError", "ParseErrorErrorData"}


def test_extract_inline_objects_leaves_definitions_and_dictionaries() -> None:
    for schema in [
        INLINE,
        record(a={"type": "object"}),
        record(a={"type": "object", "additionalProperties": STRING}),
        record(a=True, b={"additionalProperties": True}),
        {"type": "object", "additionalProperties": {}},
    ]:
        assert extracted(schema) == (schema, {})


def test_extract_inline_objects_extracts_objects_with_rules_but_no_properties() -> None:
    for closed in [{"type": "object", "additionalProperties": False}, {"required": ["a"]}]:
        assert extracted(record(a=closed)) == (record(a=ref("XA")), {"XA": closed})


def test_extract_inline_objects_refuses_a_name_that_is_taken() -> None:
    for schema, others in [
        (record(a=INLINE), {"XA": STRING}),
        (record(a_b=INLINE, a=record(b=INLINE)), {}),
        (record(aB=INLINE, a_b=INLINE), {}),
    ]:
        with pytest.raises(BadInput, match="which is taken; rename"):
            extracted(schema, **others)


# --- state_types ----------------------------------------------------------------------------------------------


def test_state_types_refuses_object_keywords_outside_plain_objects() -> None:
    for schema, says in [
        ({"properties": {"a": STRING}}, '"type": "object"'),
        ({"type": ["object", "null"], "required": ["a"]}, '"type": "object"'),
        ({"type": "string", "additionalProperties": False}, '"type": "object"'),
        ({**record(a=STRING), "anyOf": [record("a"), record("b")]}, "beside other keywords"),
    ]:
        with pytest.raises(BadInput, match=says) as caught:
            after("state_types", build_state({"X": record(a={"items": schema})}))
        assert caught.value.pointer == "/$defs/X/properties/a/items"


def test_state_types_leaves_objects_and_schemas_without_members_unchanged() -> None:
    schemas = {"X": record(a=STRING, b={"type": ["object", "null"]}), "Y": {"anyOf": [ref("X"), STRING]}}
    assert after("state_types", build_state(schemas)).schemas == schemas


# --- read_definitions -----------------------------------------------------------------------------------------


def test_read_definitions_reads_each_kind_of_type() -> None:
    for schema, type in [
        ({}, AnyValue()),
        ({"description": "Any."}, AnyValue()),
        (STRING, TEXT),
        ({"type": "string", "format": "uri", "minLength": 1}, Scalar("string", (("minLength", 1),), "uri")),
        ({"type": "integer", "minimum": 0, "maximum": 9}, Scalar("integer", (("minimum", 0), ("maximum", 9)))),
        ({"type": "number"}, Scalar("number")),
        ({"type": "boolean"}, Scalar("boolean")),
        ({"type": "null"}, Scalar("null")),
        (const("a"), Const(("a",))),
        ({"type": "string", "enum": ["a", "b"]}, Const(("a", "b"))),
        ({"enum": [1, None, True]}, Const((1, None, True))),
        ({"type": "array"}, Array(AnyValue())),
        ({"type": "array", "items": STRING, "minItems": 1}, Array(TEXT, (("minItems", 1),))),
        ({"type": "object"}, Map(AnyValue())),
        ({"type": "object", "additionalProperties": {"type": "array"}}, Map(Array(AnyValue()))),
        (ref("X"), Ref("X")),
        ({"type": ["string", "null"]}, Union((TEXT, Scalar("null")))),
        ({"type": ["string", "null"], "maxLength": 1}, Union((Scalar("string", (("maxLength", 1),)), Scalar("null")))),
        ({"anyOf": [STRING, {"anyOf": [ref("X"), STRING]}]}, Union((TEXT, Ref("X")))),
        ({"anyOf": [STRING]}, TEXT),
        ({"type": "object", "anyOf": [ref("X"), ref("Y")]}, Union((Ref("X"), Ref("Y")))),
        ({"oneOf": [STRING, {"type": "integer"}]}, Union((TEXT, Scalar("integer")))),
        ({"anyOf": [const(1), const("1")]}, Const((1, "1"))),
    ]:
        assert types(read({"X": STRING, "Y": STRING, "Read": schema}))["Read"] == type
        assert fields(read({"X": STRING, "Y": STRING, "Read": record(a=schema)}), "Read") == {"a": type}


def test_read_definitions_distinguishes_booleans_from_numbers() -> None:
    expected = repr(Union((Const((1,)), Const((True,)))))
    assert repr(types(read({"X": {"anyOf": [const(1), const(True)]}}))["X"]) == expected


def test_read_definitions_reads_objects() -> None:
    schema = {**record("b z", a={**STRING, "description": "A."}, b=True), "description": "An X."}
    definition = read({"X": schema}).definitions["X"]
    assert definition.doc == "An X."
    assert isinstance(definition.type, Object)
    members = [(field.wire, field.type, field.required, field.doc) for field in definition.type.fields]
    assert members == [("a", TEXT, False, "A."), ("b", AnyValue(), True, ""), ("z", AnyValue(), True, "")]
    assert definition.type.extra == AnyValue()


def test_read_definitions_reads_additional_properties() -> None:
    for additional, extra in [
        (True, AnyValue()),
        ({}, AnyValue()),
        (False, None),
        (STRING, TEXT),
        (ref("X"), Ref("X")),
    ]:
        type = read({"X": {**record(a=STRING), "additionalProperties": additional}}).definitions["X"].type
        assert isinstance(type, Object)
        assert type.extra == extra


def test_read_definitions_reads_a_closed_object_without_members() -> None:
    assert types(read({"X": {"type": "object", "additionalProperties": False}})) == {"X": Object((), None)}


def test_read_definitions_sorts_definitions_and_marks_inline_types() -> None:
    found = after(
        "extract_inline_objects read_definitions", build_state({"Z": record(a=INLINE), "B": STRING})
    ).definitions
    assert list(found) == ["B", "Z", "ZA"]
    assert [definition.inline for definition in found.values()] == [False, False, True]


def test_read_definitions_refuses_schemas_that_types_cannot_express() -> None:
    for schema, says in [
        (record(a=False), "accepts nothing"),
        ({"anyOf": [STRING, False]}, "accepts nothing"),
        ({"type": "string", "anyOf": [STRING]}, "beside other keywords"),
        ({"anyOf": [STRING, {"type": "array"}], "minLength": 1}, "beside other keywords"),
        ({"items": STRING}, "does not fit the type"),
        ({"additionalProperties": STRING}, "does not fit the type"),
        ({"oneOf": [STRING, const("a")]}, "may overlap"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "may overlap"),
        ({"oneOf": [ref("Y"), STRING]}, "may overlap"),
        (const(1.5), "can be constants"),
        ({"enum": [["a"]]}, "can be constants"),
        ({"type": "string", "const": 1}, "not of its own type"),
        ({"type": "integer", "const": True}, "not of its own type"),
        ({"type": "string", "minimum": 1}, "does not fit the type"),
        ({"minLength": 1}, "does not fit the type"),
    ]:
        with pytest.raises(BadInput, match=says) as caught:
            read({"X": schema, "Y": STRING})
        assert str(caught.value).startswith("#/$defs/X")


# --- recognise_free -------------------------------------------------------------------------------------------


def value(*scalars: str, items: Schema | None = None, values: Schema | None = None) -> Schema:
    """Return a union of scalars, arrays and objects of itself."""
    return {
        "anyOf": [
            *({"type": scalar} for scalar in scalars),
            {"type": "array", "items": items or ref("Value")},
            {"type": "object", "additionalProperties": values or ref("Value")},
        ]
    }


SCALARS = ["string", "number", "boolean", "null"]
ITEMS, VALUES = {"type": "array", "items": ref("Value")}, {"type": "object", "additionalProperties": ref("Value")}
FULL = value(*SCALARS)


def test_recognise_free_recognises_unions_of_all_json_values() -> None:
    rows: list[Any] = [
        {"Value": FULL},
        {"Value": value("string", "integer", "number", "boolean", "null")},
        {"Value": value("string", "number", "boolean", "null", items={}, values={})},
        {"Value": {"anyOf": [{"type": SCALARS}, ref("List"), ref("Dict")]}, "List": ITEMS, "Dict": VALUES},
    ]
    for schemas in rows:
        found = types(after("recognise_free", read(schemas)))
        assert found["Value"] == AnyValue()
        assert found.get("List", Array(Ref("Value"))) == Array(Ref("Value"))


def test_recognise_free_leaves_narrower_unions_unchanged() -> None:
    for schema in [
        value("string", "number", "boolean"),
        value("string", "integer", "boolean", "null"),
        value("number", "boolean", "null"),
        value("string", "number", "boolean", "null", items=STRING),
        value("string", "number", "boolean", "null", values={"type": "null"}),
        {"anyOf": FULL["anyOf"][:-1]},
        {"anyOf": [{"type": "string", "maxLength": 1}, *FULL["anyOf"][1:]]},
        {"type": "object", "additionalProperties": ref("Value")},
    ]:
        before = read({"Value": schema})
        assert types(after("recognise_free", before)) == types(before)


def test_recognise_free_depends_on_referenced_definitions() -> None:
    narrow = value("string", "number", "boolean", items=ref("Other"), values=ref("Other"))
    wide = value("string", "number", "boolean", "null", items=ref("Other"), values=ref("Other"))
    before = read({"Value": wide, "Other": narrow})
    assert types(after("recognise_free", before)) == types(before)
    assert types(after("recognise_free", read({"Value": wide, "Other": FULL})))["Value"] == AnyValue()


# --- tag_unions -----------------------------------------------------------------------------------------------

SHAPES: Schema = {
    "Circle": record("kind", kind=const("circle"), unit=const("cm")),
    "Square": record("kind", kind=const("square"), unit=const("mm")),
    "Loose": record(kind=const("loose")),
    "Again": record("kind", kind=const("circle")),
    "Several": record("kind", kind={"enum": ["a", "b"]}),
}
TAGGED = Union((Ref("Circle"), Ref("Square")), "kind")


def test_tag_unions_adds_a_tag_only_for_distinct_required_constants() -> None:
    for schema, type in [
        (union("Circle", "Square"), TAGGED),
        ({"type": "array", "items": union("Circle", "Square")}, Array(TAGGED)),
        ({"type": "object", "additionalProperties": union("Circle", "Square")}, Map(TAGGED)),
        (union("Circle", "Loose"), Union((Ref("Circle"), Ref("Loose")))),
        (union("Circle", "Again"), Union((Ref("Circle"), Ref("Again")))),
        (union("Circle", "Several"), Union((Ref("Circle"), Ref("Several")))),
        ({"anyOf": [ref("Circle"), STRING]}, Union((Ref("Circle"), TEXT))),
        ({"anyOf": [STRING, ref("Circle")]}, Union((TEXT, Ref("Circle")))),
    ]:
        found = after("tag_unions", read({**SHAPES, "X": schema, "Y": record(a=schema)}))
        assert types(found)["X"] == type
        assert fields(found, "Y") == {"a": type}


def test_tag_unions_tags_unions_in_additional_properties() -> None:
    found = after(
        "tag_unions", read({**SHAPES, "X": {**record(a=STRING), "additionalProperties": union("Circle", "Square")}})
    )
    type = found.definitions["X"].type
    assert isinstance(type, Object)
    assert type.extra == TAGGED


# --- name_refinements -----------------------------------------------------------------------------------------

SHORT: Schema = {"type": "string", "maxLength": 3}


def test_name_refinements_names_refined_types_inside_other_types() -> None:
    for refined in [union("Circle", "Square"), SHORT, {"type": "array", "maxItems": 2}]:
        outer = {"type": "array", "items": refined}
        found = after("tag_unions name_refinements", read({**SHAPES, "X": record(a_b=outer), "Y": outer, "Z": refined}))
        assert fields(found, "X") == {"a_b": Array(Ref("XAB"))}
        assert types(found)["Y"] == Array(Ref("YItem"))
        assert types(found)["XAB"] == types(found)["YItem"] == types(found)["Z"]
        assert found.definitions["XAB"].inline
        assert list(found.definitions) == sorted(found.definitions)


def test_name_refinements_leaves_types_that_can_be_refined_in_place() -> None:
    for schema in [SHORT, union("Circle", "Square"), {"type": "array"}, record(a=SHORT)]:
        before = after("tag_unions", read({**SHAPES, "X": schema}))
        assert types(after("name_refinements", before)) == types(before)


def test_name_refinements_names_types_in_maps_unions_and_additional_properties() -> None:
    schemas: Schema = {
        "X": record(a={"type": "object", "additionalProperties": SHORT}, b={"anyOf": [SHORT, {"type": "null"}]}),
        "Y": {**record(a=STRING), "additionalProperties": SHORT},
    }
    found = after("name_refinements", read(schemas))
    assert fields(found, "X") == {"a": Map(Ref("XA")), "b": Union((Ref("XB"), Scalar("null")))}
    type = found.definitions["Y"].type
    assert isinstance(type, Object)
    assert type.extra == Ref("YExtra")


def test_name_refinements_numbers_different_types_and_shares_equal_ones() -> None:
    long: Schema = {"type": "integer", "minimum": 1}
    options: Schema = {"anyOf": [{"type": "array", "items": SHORT}, SHORT, long]}
    found = after("name_refinements", read({"X": record(a=options)}))
    assert fields(found, "X") == {"a": Union((Array(Ref("XA")), Ref("XA"), Ref("XA2")))}
    assert types(found)["XA2"] == Scalar("integer", (("minimum", 1),))


def test_name_refinements_refuses_a_name_that_is_taken() -> None:
    with pytest.raises(BadInput, match="'XA', which is taken"):
        after("name_refinements", read({"X": record(a={"type": "array", "items": SHORT}), "XA": STRING}))


# --- fill_defaults --------------------------------------------------------------------------------------------


def default(property: Schema, required: str = "a", **stated: object) -> object:
    """Return the default that the constructor of `X` uses for its field `a`."""
    stated = {name.replace("__", "."): given for name, given in stated.items()}
    type = after("fill_defaults", read({"X": record(required, a=property)}, defaults=stated)).definitions["X"].type
    assert isinstance(type, Object)
    return type.fields[0].default


@pytest.mark.parametrize(
    ("values", "expected"),
    [(["c", "b", "a"], ("a", "b", "c")), (["d", "c", "a"], ("a", "c", "d")), (["x", "y"], ("x", "y"))],
)
def test_order_constants_sorts_the_values_of_an_enumeration_as_stated(
    values: list[str], expected: tuple[str, ...]
) -> None:
    order, schema = ["a", "b", "c"], {"enum": values}
    schemas = {"X": schema, "Y": schema, "Z": record(m=schema, n=schema)}
    first = build_state(schemas, orders={"X": order, "Z.m": order})
    state = after("order_constants", after("read_definitions", first))
    assert state.definitions["X"].type == Const(expected)
    assert state.definitions["Y"].type == Const(tuple(values))
    member, other = state.fields_of(Ref("Z"))
    assert (member.type, other.type) == (Const(expected), Const(tuple(values)))


def test_fill_defaults_takes_the_constants_of_required_fields() -> None:
    assert default(const("x")) == "x"
    assert default(const("x"), a="y") == "x"
    assert default(const("x"), required="") is None
    assert default({"enum": ["x", "y"]}) is None


def test_fill_defaults_takes_the_stated_defaults_of_required_fields() -> None:
    assert default(STRING) is None
    assert default(STRING, a="x") == "x"
    assert default(STRING, a="x", X__a="y") == "y"
    assert default(STRING, a="x", Y__a="y") == "x"
    assert default(STRING, required="", a="x") is None
    assert default({"type": "integer"}, a=0) == 0


def test_fill_defaults_ignores_a_default_outside_the_enum() -> None:
    assert default({"enum": ["x", "y"]}, a="y") == "y"
    assert default({"enum": ["x", "y"]}, a="z") is None


# --- collect_methods ------------------------------------------------------------------------------------------

MESSAGES: Schema = {
    "ClientRequest": union("GetRequest", "PingRequest"),
    "ServerRequest": union("PingRequest"),
    "ServerNotification": union("GoneNotification"),
    "InputRequest": union("AskRequest"),
    "GetRequest": {**message("things/get", ref("P"), "method params"), "description": "Gets."},
    "PingRequest": message("ping", ref("P")),
    "GoneNotification": message("notifications/things/gone"),
    "AskRequest": message("ask", ref("P")),
    "P": record(a=STRING),
}


def test_collect_methods_visits_each_union_once() -> None:
    levels: Schema = {
        f"{side}{level}": union(f"Left{level + 1}", f"Right{level + 1}")
        for level in range(40)
        for side in ("Left", "Right")
    }
    ends = {"Left40": ref("GetRequest"), "Right40": ref("PingRequest"), "ClientRequest": union("Left0", "Right0")}
    assert (
        after("collect_methods", read({**MESSAGES, **levels, **ends})).methods
        == after("collect_methods", read(MESSAGES)).methods
    )


def test_collect_methods_reads_the_kind_sender_and_params_of_messages() -> None:
    found = after("collect_methods", read(MESSAGES)).methods
    assert list(found) == ["ask", "notifications/things/gone", "ping", "things/get"]
    assert found["things/get"] == Method(
        "things/get", "GetRequest", "request", ("client",), params=Ref("P"), params_required=True, doc="Gets."
    )
    assert found["ping"] == Method("ping", "PingRequest", "request", ("client", "server"), params=Ref("P"))
    assert found["notifications/things/gone"] == Method(
        "notifications/things/gone", "GoneNotification", "notification", ("server",)
    )
    assert found["ask"].carrier == "embedded"
    assert [found[name].sender for name in found] == ["server", "server", "both", "client"]


def test_collect_methods_looks_into_nested_unions() -> None:
    for more in [union("GetRequest", "PingRequest"), union("GetRequest"), ref("GetRequest")]:
        nested = {**MESSAGES, "ClientRequest": union("More", "PingRequest"), "More": more}
        assert after("collect_methods", read(nested)).methods == after("collect_methods", read(MESSAGES)).methods


def test_collect_methods_refuses_inconsistent_role_unions() -> None:
    for changes, says in [
        ({"ClientRequest": union("GetRequest", "P", "PingRequest")}, "P is a member of ClientRequest but has no"),
        ({"InputRequest": union("PingRequest")}, "AskRequest is a message but stands in no role union"),
        ({"ServerRequest": union("PingRequest", "GoneNotification")}, "its name does not end in 'Request'"),
        ({"ServerRequest": {"anyOf": [ref("PingRequest"), STRING]}}, "has a member that is not a reference"),
        ({"Stray": message("stray")}, "Stray is a message but stands in no role union"),
        (
            {"ServerRequest": union("PingRequest", "OtherRequest"), "OtherRequest": message("things/get", STRING)},
            "things/get",
        ),
    ]:
        with pytest.raises(BadInput, match=says) as caught:
            after("collect_methods", read({**MESSAGES, **changes}))
        assert caught.value.pointer
        assert caught.value.fix


def test_collect_methods_needs_a_role_union() -> None:
    with pytest.raises(BadInput, match="no role union says who sends what"):
        after("collect_methods", read({"P": STRING}))


# --- link_results ---------------------------------------------------------------------------------------------


def answered(definitions: Schema, **semantics: Any) -> Method:
    """Return `things/get` with its results."""
    schemas = {"ClientRequest": union("GetRequest"), "GetRequest": message("things/get"), **definitions}
    return after("collect_methods link_results", read(schemas, **semantics)).methods["things/get"]


def test_link_results_by_name() -> None:
    method = answered({"GetResult": STRING})
    assert (method.result, method.alternatives) == (Ref("GetResult"), ())


def test_link_results_by_response() -> None:
    for result, usual, instead in [
        (ref("GetResult"), "GetResult", ()),
        (union("MoreResult", "GetResult"), "GetResult", (Ref("MoreResult"),)),
        (union("GetResult", "MoreResult"), "GetResult", (Ref("MoreResult"),)),
        (ref("MoreResult"), "MoreResult", ()),
        (union("MoreResult", "LastResult"), "LastResult", (Ref("MoreResult"),)),
    ]:
        response = record("result", result=result)
        method = answered({"GetResult": STRING, "MoreResult": {}, "LastResult": {}, "GetResultResponse": response})
        assert (method.result, method.alternatives) == (Ref(usual), instead)


def test_link_results_by_stated_facts() -> None:
    stated = {"results": {"things/get": "EmptyResult"}, "alternatives": {"things/get": ["TaskResult", "NoResult"]}}
    method = answered({"EmptyResult": STRING, "GetResult": STRING, "TaskResult": STRING}, **stated)
    assert (method.result, method.alternatives) == (Ref("EmptyResult"), (Ref("TaskResult"),))


def test_link_results_reports_the_fact_to_add() -> None:
    with pytest.raises(BadInput, match=r'define it, or write results\."things/get" = "EmptyResult" in a file'):
        answered({"EmptyResult": STRING})


def test_link_results_gives_notifications_no_result() -> None:
    schemas = {"ServerNotification": union("GoneNotification"), "GoneNotification": message("gone")}
    schemas["GoneResult"] = STRING
    assert after("collect_methods link_results", read(schemas)).methods["gone"].result is None


# --- fields ---------------------------------------------------------------------------------------------------


def test_link_fields_links_names_and_filters_by_stated_facts() -> None:
    for handshake, named_by in [(False, "theName"), (True, None)]:
        schemas = {
            "ClientRequest": union("GetRequest"),
            "GetRequest": message("things/get", ref("GetParams")),
            "GetParams": record(theName=STRING),
            "ServerNotification": union("GoneNotification"),
            "GoneNotification": message("gone"),
            "Filter": record(thingsGone={"type": "boolean"}),
            **({"Hello": const("initialize")} if handshake else {}),
        }
        stated = {"names": {"things/get": "theName"}, "filters": {"gone": {"member": "Filter.thingsGone"}}}
        linked = after(
            "collect_methods link_results link_fields", read({**schemas, "GetResult": STRING}, **stated)
        ).methods
        assert (linked["things/get"].named_by, linked["things/get"].filter) == (named_by, None)
        assert (linked["gone"].named_by, linked["gone"].filter) == (None, Filter("Filter", "thingsGone"))
        unknown = {"names": {"things/get": "other"}, "filters": {"gone": {"member": "Nothing.thingsGone"}}}
        linked = after("collect_methods link_fields", read(schemas, **unknown)).methods
        assert not any(method.named_by or method.filter for method in linked.values())


# --- name_open_params -----------------------------------------------------------------------------------------


def test_name_open_params_names_the_params_of_messages() -> None:
    for params in [{}, {"type": "object"}, ref("Any")]:
        found = after(
            "name_open_params", read({"GetRequest": message("get", params), "Any": {}, "X": record(params=params)})
        )
        assert fields(found, "GetRequest")["params"] == Ref("GetRequestParams")
        assert found.definitions["GetRequestParams"].type == Object((), AnyValue())
        assert fields(found, "X")["params"] == fields(read({"X": record(params=params), "Any": {}}), "X")["params"]


def test_name_open_params_keeps_the_type_of_additional_properties() -> None:
    texts: Schema = {"type": "object", "additionalProperties": STRING}
    assert types(after("name_open_params", read({"GetRequest": message("get", texts)})))["GetRequestParams"] == Object(
        (), TEXT
    )


def test_name_open_params_refuses_a_name_that_is_taken() -> None:
    with pytest.raises(BadInput, match="'GetRequestParams', which is taken"):
        after("name_open_params", read({"GetRequest": message("get", {}), "GetRequestParams": record(x=STRING)}))


# --- merge_inline_objects -------------------------------------------------------------------------------------

PLACES: Schema = {
    "A": record(note=record(x=STRING)),
    "B": record(note=record(x=STRING)),
    "C": record(note=record(y=STRING)),
    "D": record(other=record(x=STRING)),
}


def merged(schemas: Schema) -> BuildState:
    return after(
        "extract_inline_objects read_definitions merge_inline_objects", build_state(schemas, shared={"note": "Note"})
    )


def test_merge_inline_objects_merges_the_most_frequent_shape_of_a_member() -> None:
    found = merged(PLACES)
    assert list(found.definitions) == ["A", "B", "C", "CNote", "D", "DOther", "Note"]
    assert fields(found, "A")["note"] == fields(found, "B")["note"] == Ref("Note")
    assert fields(found, "C")["note"] == Ref("CNote")
    assert found.definitions["Note"].name == "Note"
    assert found.definitions["Note"].inline


def test_merge_inline_objects_reuses_only_a_definition_of_the_same_shape() -> None:
    same, other = merged({**PLACES, "Note": record(x=STRING)}), merged({**PLACES, "Note": record(z=STRING)})
    assert fields(same, "A")["note"] == Ref("Note")
    assert not same.definitions["Note"].inline
    assert fields(other, "A")["note"] == Ref("ANote")


def test_merge_inline_objects_leaves_a_single_object_unchanged() -> None:
    assert list(merged({"A": record(note=record(x=STRING))}).definitions) == ["A", "ANote"]


# --- link_fields ----------------------------------------------------------------------------------------------


def test_link_fields_sets_arguments_and_lifecycle() -> None:
    for stated, required, arguments in [
        (None, "", ()),
        (None, "b", ("b",)),
        (None, "a b", ()),
        (["c", "a"], "c", ("c", "a")),
        (["c", "unknown", "a"], "c", ("c", "a")),
        (["unknown"], "b", ("b",)),
        (["a", "c"], "c", ("a",)),  # in Python, no required argument follows an optional argument
    ]:
        schemas: Schema = {
            "ClientRequest": union("GetRequest"),
            "GetRequest": message("get", ref("GetParams")),
            "GetParams": record(required, a=STRING, b=STRING, c=STRING),
            "GetResult": STRING,
        }
        more = {"arguments": {"get": stated} if stated else {}, "lifecycle": {"get": "at noon"} if stated else {}}
        found = after("collect_methods link_results link_fields", read(schemas, **more))
        method = found.methods["get"]
        assert method.arguments == tuple(wire for wire in stated or () if wire != "unknown")
        whole = lower(small_protocol({name: one.type for name, one in found.definitions.items()}, method))
        assert whole.positional["get"] == arguments
        assert method.lifecycle == ("at noon" if stated else "")


PARAMS = {"listed_by": "things/list", "items": "allThings", "name": "id", "schema": "theSchema", "arguments": "theArgs"}


def test_link_fields_sets_header_params_only_if_all_fields_exist() -> None:
    for handshake, stated, linked in [
        (False, {}, True),
        (True, {}, False),
        (False, {"listed_by": "things/gone"}, False),
        *[(False, {key: "nothing"}, False) for key in ("items", "name", "schema", "arguments")],
        (False, {"items": "next"}, False),
    ]:
        schemas = {
            "ClientRequest": union("CallRequest", "ListRequest"),
            "CallRequest": message("things/call", ref("CallParams")),
            "CallParams": record(theArgs=record()),
            "CallResult": STRING,
            "ListRequest": message("things/list"),
            "ListResult": record(allThings={"type": "array", "items": ref("Thing")}, next=STRING),
            "Thing": record(id=STRING, theSchema=record()),
            **({"Hello": const("initialize")} if handshake else {}),
        }
        facts = {"header_params": {"things/call": {**PARAMS, **stated}}}
        methods = after("collect_methods link_results link_fields", read(schemas, **facts)).methods
        expected = HeaderParams(**PARAMS)
        assert methods["things/call"].header_params == (expected if linked else None)
        assert methods["things/list"].header_params is None


# --- collect_facts --------------------------------------------------------------------------------------------


def test_collect_facts_drops_facts_about_unknown_methods() -> None:
    schemas = {
        "ClientRequest": union("ListRequest", "PeekRequest"),
        "ServerNotification": union("ChangedNotification"),
        "ListRequest": message("things/list"),
        "ListResult": record(ttlMs=STRING),
        "PeekRequest": message("things/peek"),
        "PeekResult": record(other=STRING),
        "ChangedNotification": message("notifications/changed"),
        "Meta": record(**{"acme.org/traceId": STRING, "plain": STRING}),
        "Batch": {"type": "array", "items": STRING},
    }
    stated = {
        "cache_invalidations": {
            "notifications/changed": ["things/list", "things/peek", "gone"],
            "notifications/gone": ["things/list"],
        },
        "utilities": {"log": "notifications/changed", "progress": "notifications/gone"},
        "batches": {"definition": "Batch"},
    }
    found = after("collect_methods link_results collect_facts", read(schemas, **stated)).facts
    assert found.cache_invalidations == (("notifications/changed", ("things/list",)),)
    assert found.utilities == (("log", "notifications/changed"),)
    assert found.meta_keys == ("acme.org/traceId",)
    assert found.batches
    assert not found.stream_polling
    assert not after("collect_facts", read({"Meta": record()}, batches={"definition": "Batch"})).facts.batches


# --- capabilities ---------------------------------------------------------------------------------------------

CAPABILITIES: Schema = {
    "ServerCapabilities": record(things=record(listChanged={"type": "boolean"}, watch=record()), alone=STRING),
    "ClientCapabilities": record(things=STRING),
}


def test_collect_capabilities_reads_the_capabilities_of_both_sides() -> None:
    found = after(
        "extract_inline_objects read_definitions collect_capabilities", build_state(CAPABILITIES)
    ).capabilities
    assert found == (
        Capability("client", "things"),
        Capability("server", "alone"),
        Capability("server", "things"),
        Capability("server", "things.listChanged", flag=True),
        Capability("server", "things.watch"),
    )
    assert after("collect_capabilities", read({"X": STRING})).capabilities == ()


def test_link_capabilities_by_method_name_or_stated_fact() -> None:
    for method, union_, stated, capabilities in [
        ("things/list", "ClientRequest", None, (("client", "server.things"),)),
        ("things/watch", "ClientRequest", None, (("client", "server.things.watch"),)),
        ("things/deep/list", "ClientRequest", None, (("client", "server.things"),)),
        ("things/list", "ServerRequest", None, (("server", "client.things"),)),
        ("notifications/things/list_changed", "ServerNotification", None, (("server", "server.things.listChanged"),)),
        ("notifications/things/gone", "ServerNotification", None, (("server", "server.things"),)),
        ("notifications/things", "ServerNotification", None, ()),
        ("others/list", "ClientRequest", None, ()),
        ("alone", "ClientRequest", None, ()),
        ("others/list", "ClientRequest", "server.alone", (("client", "server.alone"),)),
        ("things/list", "ClientRequest", "server.alone", (("client", "server.alone"),)),
        ("things/list", "ClientRequest", "server.later", (("client", "server.things"),)),
    ]:
        name = "XNotification" if union_.endswith("Notification") else "XRequest"
        schemas = {**CAPABILITIES, union_: union(name), name: message(method)}
        semantics = {method: stated} if stated else {}
        so_far = after("extract_inline_objects read_definitions", build_state(schemas, capabilities=semantics))
        linked = after("collect_methods collect_capabilities link_capabilities", so_far)
        assert linked.methods[method].capabilities == capabilities


def test_link_capabilities_of_both_senders() -> None:
    schemas = {**CAPABILITIES, **{name: union("XRequest") for name in ("ClientRequest", "ServerRequest")}}
    so_far = after(
        "extract_inline_objects read_definitions", build_state({**schemas, "XRequest": message("things/watch")})
    )
    method = after("collect_methods collect_capabilities link_capabilities", so_far).methods["things/watch"]
    assert method.capabilities == (("client", "server.things.watch"), ("server", "client.things"))
    assert method.capability("server") == "client.things"


def test_link_fields_links_opt_in_fields_and_truncation() -> None:
    for wire, more in [("task", "hasMore"), ("later", "later")]:
        asks = message("things/call")
        asks["properties"]["params"] = record(task=STRING)
        inner = record(
            values={"type": "array", "items": STRING}, total={"type": "integer"}, hasMore={"type": "boolean"}
        )
        schemas = {
            "ClientRequest": union("CallRequest"),
            "CallRequest": asks,
            "CallResult": record("holder", holder=inner),
            "TaskResult": record(),
        }
        stated = {"holder": "holder", "values": "values", "most": 7, "total": "total", "more": more}
        facts: Any = {
            "alternatives": {"things/call": ["TaskResult"]},
            "opt_in": {"TaskResult": wire},
            "truncated": {"things/call": stated},
        }
        so_far = after(
            "extract_inline_objects read_definitions collect_methods link_results", build_state(schemas, **facts)
        )
        method = after("link_fields", so_far).methods["things/call"]
        exists = wire == "task"
        assert method.opt_in == ("task" if exists else None)
        assert method.truncation == (Truncation("holder", "values", "total", "hasMore", 7) if exists else None)


def test_link_capabilities_links_params_to_required_capabilities() -> None:
    client: Schema = {"type": "object", "properties": {"ask": record(form=record(), url=record(), tools=record())}}
    params = {
        "Either": {"anyOf": [ref("Url"), ref("Form")]},
        "Url": record("mode", mode=const("url"), tools=STRING),
        "Form": record(mode=const("form"), level={"type": "string"}, other=const("unknown")),
    }
    asks = message("ask/now")
    asks["properties"]["params"] = ref("Either")
    stated = {
        "ask/now.level": {"capability": "client.ask.tools", "values": ["high"], "checked_by": "sender"},
        "ask/now.other": {"capability": "client.of.a.later.revision"},
    }
    schemas = {"ClientCapabilities": client, "ServerRequest": union("XRequest"), "XRequest": asks, **params}
    facts: Any = {"needs": stated, "implied": {"client.ask": "client.ask.form"}}
    so_far = after("extract_inline_objects read_definitions", build_state(schemas, **facts))
    linked = after("collect_methods collect_capabilities link_capabilities", so_far)
    assert set(linked.methods["ask/now"].needs) == {
        Need("mode", "client.ask.url", ("url",)),
        Need("tools", "client.ask.tools"),
        Need("mode", "client.ask.form", ("form",), absent=True, implied=True),
        Need("level", "client.ask.tools", ("high",), tolerated=True),
    }


# --- collect_errors -------------------------------------------------------------------------------------------


def test_collect_errors_reads_error_schemas_and_stated_errors() -> None:
    stated = {
        "Old": {"code": -1, "doc": "Gone.", "until": "2025-01-01"},
        "Known": {"code": -2, "doc": "In words."},
        "Last": {"code": -9, "doc": "To the end.", "until": "2026-01-01"},
    }
    schemas: Schema = {
        "LuckError": {**record("code", code=const(-3)), "description": "No luck."},
        "WordsError": record("code", code=const(-2)),
        "WholeError": record("error", error=ref("Inner")),
        "Inner": record(error=STRING, code={"type": "integer"}),
        "FullError": record("error", error=ref("WordsError2")),
        "WordsError2": STRING,
        "AliasError": ref("LuckError"),
    }
    found = after("collect_errors", read({**schemas, "AliasError": STRING}, errors=stated)).errors
    assert found == (
        ErrorCode("Last", -9, None, "To the end.", "2026-01-01"),
        ErrorCode("Luck", -3, "LuckError", "No luck."),
        ErrorCode("Known", -2, "WordsError", "In words."),
    )


def test_collect_errors_looks_into_whole_responses() -> None:
    schemas = {"LuckError": record("error", error=record("code", code=const(-3))), "Other": record(code=const("x"))}
    found = after("extract_inline_objects read_definitions collect_errors", build_state(schemas)).errors
    assert found == (ErrorCode("Luck", -3, "LuckError"),)


# --- document -------------------------------------------------------------------------------------------------

CHANGED_DOCS: dict[str, Any] = {
    "2025-01-01": {"doc": "New X.", "fields": {"c": "New c."}},
    "2026-01-01": {"fields": {"c": "Newest c."}},
}
DOCS: dict[str, Any] = {
    "common": {"a": "Common a.", "b": "Common b."},
    "X": {"doc": "Old X.", "fields": {"a": "Own a.", "c": "Old c."}, "since": CHANGED_DOCS},
}


def test_document_takes_the_descriptions_of_the_revision() -> None:
    for revision, words in [
        ("2024-01-01", ["Old X.", "Own a.", "Common b.", "Old c."]),
        ("2025-01-01", ["New X.", "Own a.", "Common b.", "New c."]),
        ("2025-06-01", ["New X.", "Own a.", "Common b.", "New c."]),
        ("2026-01-01", ["New X.", "Own a.", "Common b.", "Newest c."]),
    ]:
        schema = {**record(a=STRING, b=STRING, c=STRING, d=STRING), "description": "Prose of the file."}
        definition = after("document", read({"X": schema}, revision=revision, docs=DOCS)).definitions["X"]
        assert isinstance(definition.type, Object)
        assert [definition.doc, *(field.doc for field in definition.type.fields)] == [*words, ""]


def test_document_keeps_the_descriptions_of_a_schema_without_docs() -> None:
    schema = {**record(a={**STRING, "description": "Its a."}), "description": "Its X."}
    definition = after("document", read({"X": schema})).definitions["X"]
    assert isinstance(definition.type, Object)
    assert (definition.doc, definition.type.fields[0].doc) == ("Its X.", "Its a.")


def test_document_describes_methods_and_errors() -> None:
    schemas: Schema = {"ServerNotification": union("XNotification"), "XNotification": message("x")}
    schemas |= {"YError": record(code=const(-1)), "ZError": record(code=const(-2))}
    docs = {"XNotification": {"doc": "An X."}, "YError": {"doc": "A Y."}, "ZError": {"doc": "A Z."}}
    stated = {"Z": {"code": -2, "doc": "Stated."}}
    found = after("collect_methods collect_errors document", read(schemas, docs=docs, errors=stated))
    assert found.methods["x"].doc == "An X."
    assert {error.name: error.doc for error in found.errors} == {"Y": "A Y.", "Z": "Stated."}


def test_document_marks_deprecated_definitions_and_methods() -> None:
    for revision, deprecated in [("2025-12-31", ""), ("2026-01-01", "since 2026-01-01: use Y")]:
        notices = [{"since": "2026-01-01", "instead": "use Y", "definitions": ["XNotification", "Z.io.a/b"]}]
        schemas: Schema = {"ServerNotification": union("XNotification"), "XNotification": message("x"), "Y": STRING}
        schemas["Z"] = record(**{"io.a/b": STRING, "c": STRING})
        found = after("collect_methods document", read(schemas, revision=revision, deprecations=notices))
        assert [field.deprecated for field in found.fields_of(Ref("Z"))] == ["", deprecated]
        assert found.methods["x"].deprecated == found.definitions["XNotification"].deprecated == deprecated
        assert found.definitions["Y"].deprecated == ""


@pytest.mark.parametrize(
    ("stated", "doc", "notice"),
    [
        ({"deprecated": True}, "", "by its schema"),
        ({"deprecated": False, "description": "No longer deprecated."}, "No longer deprecated.", ""),
        ({"deprecated": "Use Y."}, "", "by its schema: Use Y"),
        (
            {"description": "An X.\n\n@deprecated use {@link Y}\ninstead.\n@see Z"},
            "An X.\n\nSee Z",
            "by its schema: use `Y` instead",
        ),
        ({"description": "/** @deprecated */"}, "", "by its schema"),
        ({"description": "**Deprecated:** use Y.\n\nAn X."}, "An X.", "by its schema: use Y"),
        ({"description": "```\n@deprecated\n```"}, "@deprecated", ""),
        ({"description": "An X.", "deprecated": True}, "An X.", "by its schema"),
    ],
)
def test_a_schema_states_deprecations_by_keyword_or_in_prose(stated: Schema, doc: str, notice: str) -> None:
    found = read({"X": {**STRING, **stated}, "Z": record(x={**STRING, **stated})})
    (member,), one = found.fields_of(Ref("Z")), found.definitions["X"]
    assert (one.doc, one.deprecated) == (member.doc, member.deprecated) == (doc, notice)


# --- naming ---------------------------------------------------------------------------------------------------


FIELD_NAMES = """
name name, nextCursor next_cursor, listChanged list_changed, list_changed list_changed, _meta meta, $schema schema_,
$defs defs, class class_, from from_, None none, match match, list list_, self self_, copy copy_, json json_, cls cls,
modelPreferences model_preferences, model model, modelDump model_dump_, modelConfig model_config_, org.example/a/b b,
io.modelcontextprotocol/clientInfo client_info, websiteUrl website_url, websiteURL website_url, URLPath url_path,
JSONValue json_value, ttlMs ttl_ms, sha256 sha256, x-mcp-header x_mcp_header, 2d field_2d, $ field, ümlaut ümlaut
"""
"""Wire names and Python names."""


def test_wire_names_become_python_field_names() -> None:
    for wire, name in [("", "field"), *(pair.split() for pair in FIELD_NAMES.split(","))]:
        assert naming.field(wire) == name
        assert name.isidentifier()


def test_fields_refuses_two_wire_names_with_the_same_python_name() -> None:
    assert naming.fields("X", ["_meta", "nextCursor"], DiagnosticContext()) == {
        "_meta": "meta",
        "nextCursor": "next_cursor",
    }
    with pytest.raises(BadInput, match="'next_cursor' and 'nextCursor' of X are both 'next_cursor' in Python"):
        naming.fields("X", ["next_cursor", "nextCursor"], DiagnosticContext())


def test_names_of_stubs_packages_constants_and_arguments() -> None:
    requests = {"CallTool": "call_tool", "Ping": "ping", "ListURL": "list_url", "Find": "find"}
    assert {stem: naming.stub(f"{stem}Request", "request") for stem in requests} == requests
    packages = {"2025-11-25": "v2025_11_25", "draft": "vdraft", "2.0-rc.1": "v2_0_rc_1"}
    assert {revision: naming.package(revision) for revision in packages} == packages
    assert naming.stub("ToolListChangedNotification", "notification") == "tool_list_changed"
    assert naming.constant("set_level") == "SET_LEVEL"
    assert naming.constant("URLElicitationRequired") == "URL_ELICITATION_REQUIRED"
    assert model_names.pascal("inputSchema") == "InputSchema"
    assert model_names.inline_name("Tool", "inputSchema") == "ToolInputSchema"
    assert model_names.inline_name("Tool", "_meta") == "ToolMeta"
    assert model_names.inline_name("Tool", "$") == "ToolValue"
    assert model_names.inline_name("ParseError", "errorData") == "ParseErrorData"
    assert model_names.inline_name("ParseError", "error", "Object") == "ParseErrorObject"
    assert model_names.inline_name("ListToolsResult", "tools") == "ListToolsResultTools"
    assert naming.argument("id") == "id"
    assert naming.argument("copy_") == "copy"
    assert naming.argument("class_") == "class_"
    assert naming.argument("types") == "types_"
    assert naming.walker("list_resource_templates") == "iter_resource_templates"


@every_revision
def test_names_of_fields_are_a_bijection(revision: str) -> None:
    lowered = lower(protocol(revision))
    for name, definition in lowered.definitions.items():
        if isinstance(definition.type, Object):
            names = list(lowered.attributes[name].values())
            wires = [field.wire for field in definition.type.fields]
            assert len(set(names)) == len(set(wires)) == len(names), name
            for field in names:
                assert field.isidentifier()
                assert not keyword.iskeyword(field)
                assert not field.startswith("_")
                assert not hasattr(BaseModel, field)


@every_revision
def test_names_of_methods_are_unique(revision: str) -> None:
    whole = lower(protocol(revision))
    constants = [constant(PackageScope(whole), method) for method in whole.methods]
    assert len(set(constants)) == len(constants)
    assert "METHODS" not in constants
    errors = [whole.constants[error.code] for error in whole.errors]
    assert len(set(errors)) == len(errors)


@every_revision
def test_names_of_stubs_are_unique_on_each_side(revision: str) -> None:
    part = PackageScope(lower(protocol(revision)))
    client = [call.name for call in calls(part, "client")] + [stub.name for stub in handlers(part, "client")]
    server = [stub.name for stub in handlers(part, "server")]
    context = [call.name for call in calls(part, "server")]
    for names, base in ((client, Client), (server, Server), (context, Context)):
        assert len(set(names)) == len(names)
        assert not set(names) & {*dir(base), *base.__annotations__}
        assert not [name for name in names if keyword.iskeyword(name) or not name.isidentifier()]


@every_revision
def test_arguments_of_calls_are_unique_and_required_ones_come_first(revision: str) -> None:
    whole = lower(protocol(revision))
    for call in (*calls(PackageScope(whole), "client"), *calls(PackageScope(whole), "server")):
        arguments = (*call.positional, *call.keywords)
        names = [argument.name for argument in arguments]
        may_be_left_out = [argument.is_optional or argument.default is not None for argument in arguments]
        assert len({*names, "self"}) == len(names) + 1
        assert may_be_left_out == sorted(may_be_left_out)


# --- slices ---------------------------------------------------------------------------------------------------


def top(revision: str) -> set[str]:
    """Return the capabilities by which a revision can be sliced."""
    return {capability.path.split(".")[0] for capability in protocol(revision).capabilities}


def needs(method: Method) -> set[str]:
    return {capability.split(".")[1] for _, capability in method.capabilities}


def used(method: Method) -> set[str]:
    """Return the definitions that a method names."""
    parts = [part for part in (method.params, method.result, *method.alternatives) if part is not None]
    return {method.definition, *(name for part in parts for name in references(part))}


def missing(part: Protocol) -> set[str]:
    """Return the definitions that a protocol names but does not have."""
    named = {name for definition in part.definitions.values() for name in references(definition.type)}
    named |= {name for method in part.methods for name in used(method)}
    named |= {error.definition for error in part.errors if error.definition is not None}
    return named - set(part.definitions)


@every_revision
def test_every_reference_in_a_revision_has_a_definition(revision: str) -> None:
    assert missing(protocol(revision)) == set()


def test_a_slice_has_only_its_methods_and_all_referenced_definitions() -> None:
    for revision, name in [(known, name) for known in REVISIONS for name in sorted(top(known))]:
        whole = protocol(revision)
        part = slice_protocol(whole, [name])
        assert missing(part) == set()
        assert [method for method in whole.methods if not needs(method) or name in needs(method)] == list(part.methods)
        assert list(part.definitions) == [known for known in whole.definitions if known in part.definitions]
        assert len(part.definitions) < len(whole.definitions)
        messages = {method.definition for method in whole.methods if method.carrier == "message"}
        assert messages & set(part.definitions) == messages & {method.definition for method in part.methods}


JOBS = "com.example/jobs"


def extended(own: Schema, core: Schema, **facts: Any) -> BuildState:
    """Return the input of the first pass for a core revision and an extension of it."""
    source = build_state(core, **facts.pop("core_facts", {})).source
    head = {"id": JOBS, "core": [source.revision], **facts.pop("head", {})}
    stated = {**SEMANTICS, "unions": {}, "roles": {}, "extends": {}, "meta": {}, "extension": head, **facts}
    whole = extend(source, ExtensionSchema(JOBS, "1", "jobs", own, "", stated))
    return BuildState(whole, whole.definitions, whole.context, whole.origins)


CORE: Schema = {
    "RequestParams": record("_meta", _meta=ref("Meta")),
    "Result": record("resultType", _meta={"type": "object"}, resultType=STRING),
    "Meta": record("who", who=STRING),
    "ClientRequest": union("PingRequest"),
    "PingRequest": message("ping"),
    "PingResult": record(),
    "Filter": record(all={"type": "boolean"}),
    "Thing": record(_meta={"type": "object"}, a=STRING),
}


def test_complete_messages_adds_core_members_to_extension_messages() -> None:
    own = {
        "RunRequest": message("jobs/run", record("job", job=STRING, _meta={"type": "object"})),
        "RunResult": record(resultType=const("job")),
        "ListRequest": message("jobs/list"),
        "ListResult": {"anyOf": [ref("Some"), record(none=STRING)]},
        "Some": record(some=STRING),
        "Other": record(),
        "StopRequest": message("jobs/stop", ref("StopParams")),
        "StopParams": ref("Stop"),
        "Stop": record("job", job=STRING),
    }
    roles = dict.fromkeys(("RunRequest", "ListRequest", "StopRequest"), "client")
    schemas = after("complete_messages", extended(own, CORE, roles=roles)).schemas
    assert schemas["RunRequest"]["properties"]["params"] == record("_meta job", _meta=ref("Meta"), job=STRING)
    assert schemas["ListRequest"]["properties"]["params"] == ref("RequestParams")
    assert schemas["ListRequest"]["required"] == ["method", "params"]
    assert (schemas["StopParams"], schemas["Stop"]["required"]) == (ref("Stop"), ["_meta", "job"])
    assert schemas["RunResult"] == record("resultType", _meta={"type": "object"}, resultType=const("job"))
    assert schemas["Some"] == record("resultType", _meta={"type": "object"}, resultType=STRING, some=STRING)
    assert schemas["ListResult"]["anyOf"][1]["required"] == ["resultType"]
    assert schemas["Other"] == own["Other"]
    assert {name: schemas[name] for name in CORE} == CORE


def whole(own: Schema, core: Schema = CORE, **facts: Any) -> BuildState:
    """Return the result of the last pass."""
    so_far = extended(own, core, **facts)
    for step in PASSES:
        so_far = step(so_far)
    return so_far


def test_fill_defaults_takes_core_result_defaults_for_extension_results() -> None:
    own = {"RunRequest": message("jobs/run"), "RunResult": record("hint", hint=STRING, resultType=STRING)}
    core = {**CORE, "Result": record("resultType hint", resultType=STRING, hint=STRING)}
    facts = {"defaults": {"hint": "", "resultType": "complete"}}
    type = whole(own, core, roles={"RunRequest": "client"}, core_facts=facts).definitions["RunResult"].type
    assert isinstance(type, Object)
    assert {field.wire: field.default for field in type.fields} == {"hint": "", "resultType": "complete"}


def test_collect_extensions_collects_the_facts_of_an_extension() -> None:
    own = {"JobFilter": record(jobs={"type": "array", "items": STRING}), "DoneNotification": message("jobs/done")}
    own["DoneNotification"]["properties"]["params"] = record(job=STRING)
    own |= {"JobResult": record(), "Settings": record(), "Mark": record(), "JobsRequest": message("jobs/all")}
    facts: dict[str, Any] = {
        "roles": {"DoneNotification": "server", "JobsRequest": "client"},
        "results": {"jobs/all": "JobResult"},
        "alternatives": {"ping": ["JobResult"]},
        "extends": {"Filter": "JobFilter"},
        "filters": {"jobs/done": {"member": "Filter.jobs", "compares": "job"}},
        "meta": {"com.example/mark": {"Thing": "Mark"}, "n": {"Thing": "integer"}},
        "cache_invalidations": {"jobs/done": ["jobs/all"]},
        "head": {"settings": {"client": "Settings"}, "options": {"engine": "example"}, "doc": "Run jobs."},
    }
    built = whole(own, core_facts={"results": {"ping": "PingResult"}}, **facts)
    (found,) = after("collect_extensions", built).extensions
    assert (found.id, found.name, found.doc) == (JOBS, "jobs", "Run jobs.")
    assert found.options == (("engine", "example"),)
    assert found.settings == (("client", "Settings"),)
    assert found.alternatives == (("ping", ("JobResult",)),)
    assert found.extends == (("Filter", "JobFilter"),)
    assert built.methods["jobs/done"].filter == Filter("JobFilter", "jobs", "job", "equal")
    assert found.cache_invalidations == (("jobs/done", ("jobs/all",)),)
    assert found.meta_keys == (
        MetaKey("com.example/mark", Ref("Mark"), ("Thing",)),
        MetaKey("n", Scalar("integer"), ("Thing",)),
    )
    origins = {name: method.origin for name, method in built.methods.items()}
    assert origins == {"ping": "", "jobs/done": JOBS, "jobs/all": JOBS}
    assert {name for name, one in built.definitions.items() if not one.origin} == {*CORE}
    assert built.methods["ping"].alternatives == ()


UNUSED: list[tuple[str, Any, str]] = [
    ("roles", {"Nothing": "client"}, "/roles/Nothing"),
    ("roles", {"PingRequest": "client"}, "/roles/PingRequest"),
    ("extends", {"Nothing": "Own"}, "/extends/Nothing"),
    ("extends", {"Filter": "Thing"}, "/extends/Filter"),
    ("results", {"ping": "Own"}, "/results/ping"),
    ("alternatives", {"ping": ["Thing"]}, "/alternatives/ping"),
    ("alternatives", {"nothing": ["Own"]}, "/alternatives/nothing"),
    ("names", {"ping": "a"}, "/names/ping"),
    ("names", {"own/do": "nothing"}, "/names/own~1do"),
    ("arguments", {"own/do": ["nothing"]}, "/arguments/own~1do"),
    ("lifecycle", {"ping": "always"}, "/lifecycle/ping"),
    ("capabilities", {"own/do": "server.nothing"}, "/capabilities/own~1do"),
    ("filters", {"own/did": {"member": "Filter.nothing"}}, "/filters/own~1did"),
    ("filters", {"own/did": {"member": "Filter.all", "compares": "nothing"}}, "/filters/own~1did"),
    ("cache_invalidations", {"own/did": ["nothing"]}, "/cache_invalidations/own~1did"),
    ("meta", {"k": {"Meta": "string"}}, "/meta/k"),
    ("meta", {"k": {"Thing": "Nothing"}}, "/meta/k"),
    ("defaults", {"a": "x"}, "/defaults/a"),
    ("needs", {"own/do.a": {"capability": "server.nothing"}}, "/needs/own~1do.a"),
    ("opt_in", {"Own": "a"}, "/opt_in/Own"),
    ("errors", {"Parse": {"code": -32700, "doc": ""}}, "/errors/Parse"),
    ("deprecations", [{"since": "2026-01-01", "instead": "", "definitions": ["Thing"]}], "/deprecations/0"),
    ("head", {"settings": {"client": "Nothing"}}, "/extension/settings"),
]  # fmt: skip


def test_check_facts_refuses_facts_without_effect() -> None:
    for table, entry, pointer in UNUSED:
        own = {"Own": record(a=STRING), "DoRequest": message("own/do", record(a=STRING)), "DoResult": record()}
        own["DidNotification"] = message("own/did")
        roles = {"DoRequest": "client", "DidNotification": "server"}
        core_facts = {"errors": {"ParseError": {"code": -32700, "doc": ""}}}
        built = whole(own, roles=roles, core_facts=core_facts)
        assert after("check_facts", built) is built
        facts = {"roles": roles, table: {**roles, **entry} if table == "roles" else entry}
        with pytest.raises(BadInput) as caught:
            whole(own, core_facts=core_facts, **facts)
        assert caught.value.pointer == pointer
        assert caught.value.fix


def test_facts_of_core_and_of_an_extension_do_not_affect_each_other() -> None:
    """Facts about core do not apply to the extension and vice versa: defaults, results, alternatives, descriptions."""
    own = {
        "PingResultResponse": record(result=ref("JobResult")),
        "JobResult": record("ttl size", ttl={"type": "integer"}, size={"type": "integer"}),
        "JobRequest": message("job"),
    }
    core = {**CORE, "Cached": record("ttl size", ttl={"type": "integer"}, size={"type": "integer"})}
    core_facts: dict[str, Any] = {
        "defaults": {"ttl": 0},
        "alternatives": {"ping": ["JobResult"]},
        "docs": {"JobResult": {"doc": "No."}},
    }
    built = whole(own, core, core_facts=core_facts, roles={"JobRequest": "client"}, defaults={"size": 1})
    alone = build_state(core, **core_facts)
    for step in PASSES:
        alone = step(alone)
    assert {name: one for name, one in built.definitions.items() if not one.origin} == alone.definitions
    assert built.methods["ping"] == alone.methods["ping"]
    job, cached = (built.definitions[name].type for name in ("JobResult", "Cached"))
    assert isinstance(job, Object)
    assert isinstance(cached, Object)
    assert {field.wire: field.default for field in cached.fields} == {"ttl": 0, "size": None}
    expected = {"_meta": None, "resultType": None, "ttl": None, "size": 1}
    assert {field.wire: field.default for field in job.fields} == expected
    assert built.definitions["JobResult"].doc == ""


def test_extension_methods_have_the_declaring_side_and_the_required_setting() -> None:
    own = {"DoRequest": message("own/do"), "DoResult": record(), "MoreRequest": message("own/more")}
    own |= {"MoreResult": record(), "Settings": record(more={"type": "boolean"}, name=STRING)}
    facts: dict[str, Any] = {
        "roles": {"DoRequest": "client", "MoreRequest": "client"},
        "head": {"settings": {"server": "Settings"}, "declared_by": "server"},
    }
    built = whole(own, capabilities={"own/more": "more"}, **facts)
    found = {name: (one.declared_by, one.setting) for name, one in built.methods.items() if one.origin}
    assert found == {"own/do": ("server", ""), "own/more": ("server", "more")}
    for other in ("name", "nothing"):
        with pytest.raises(BadInput) as caught:
            whole(own, capabilities={"own/more": other}, **facts)
        assert caught.value.pointer == "/capabilities/own~1more"


@every_revision
def test_a_slice_with_all_capabilities_equals_the_revision(revision: str) -> None:
    assert slice_protocol(protocol(revision), top(revision)) == protocol(revision)


def test_a_slice_of_tools_excludes_other_capabilities() -> None:
    part = slice_protocol(protocol("2025-11-25"), ["tools"])
    names = {method.name for method in part.methods}
    assert {"tools/call", "tools/list", "initialize", "ping", "notifications/tools/list_changed"} <= names
    assert not {"prompts/get", "resources/read", "sampling/createMessage"} & names
    assert "CallToolRequestParams" in part.definitions
    assert not {"GetPromptResult", "ListRootsResult", "ReadResourceRequest"} & set(part.definitions)
    union = part.definitions["ClientRequest"].type
    assert isinstance(union, Union)
    assert Ref("CallToolRequest") in union.members
    assert Ref("GetPromptRequest") not in union.members


def test_a_slice_of_an_unknown_capability_is_refused() -> None:
    with pytest.raises(BadInput, match="has no capability 'tool'; did you mean tools\\?"):
        slice_protocol(protocol("2025-11-25"), ["tool"])


def test_definitions_are_compared_by_value() -> None:
    assert Definition("X", Object(())) == Definition("X", Object((), AnyValue()))
    assert Definition("X", Object(())) != Definition("X", Object((), None))
