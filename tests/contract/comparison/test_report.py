"""The comparison of contracts: findings for each change, and their wording."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.contract.comparison import report
from mcp_bindgen.contract.comparison.compare import ContractComparison, compare_contracts
from mcp_bindgen.contract.comparison.places import differences
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.drift.callers import callers
from mcp_bindgen.drift.changes import Verdict
from mcp_bindgen.report import Format, Page, Report, render
from tests.harness.commands import shuffled
from tests.harness.effort import each
from tests.harness.small_schemas import Schema, tangled

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}


def record(*required: str, **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def forecast(arguments: Schema, result: Schema | None = None, **more: Any) -> Schema:
    """Return a contract with one tool."""
    output = {} if result is None else {"outputSchema": result}
    return {"tools": [{"name": "get-forecast", "inputSchema": arguments, **output, **more}]}


def compared(old: Schema, new: Schema, profile: str = "sensible") -> ContractComparison:
    return compare_contracts(contract_of(old), contract_of(new), callers(profile))


def said(old: Schema, new: Schema) -> list[tuple[str, str]]:
    """Return a sentence and the verdict of each finding: each difference of a schema, or the finding without any."""
    found = compared(old, new).findings
    return [
        (sentence, one.verdict.name.lower())
        for one in found
        for sentence in ([detail.sentence for detail in one.details] or [one.sentence])
    ]


# --- findings about tools -------------------------------------------------------------------------------------

DAY, DATE, DIGITS = ({"type": "string", **more} for more in ({}, {"format": "date"}, {"pattern": "^[0-9]+$"}))
CHANGES: list[Any] = [
    (record(city=TEXT), record("city", city=TEXT), "argument city is required now", "breaking"),
    (record(u={"enum": ["c", "f"]}), record(u={"enum": ["c"]}), 'argument u may not be "f" any more', "breaking"),
    (record(u={"enum": ["c"]}), record(u={"enum": ["c", "f"]}), 'argument u may be "f"', "compatible"),
    (record(city=TEXT), record(city=TEXT, days=WHOLE), "argument days is new and optional: integer", "compatible"),
    (record(), record("days", days=WHOLE), "argument days is new and required: integer", "breaking"),
    (record(city=TEXT, days=WHOLE), record(city=TEXT), "argument days is gone; it was integer", "compatible"),
    (record(days=WHOLE), record(days=TEXT), "argument days was integer, is string", "breaking"),
    (
        *(record(place=record(spots={"type": "array", "items": items})) for items in (TEXT, WHOLE)),
        *("argument place.spots[] was string, is integer", "breaking"),
    ),
    (
        *(record(**{"a-b": {"type": "string", "maxLength": most}}) for most in (9, 5)),
        *("argument a-b was maxLength 9, is maxLength 5", "breaking"),
    ),
    (
        *(record(days={"type": "integer", "default": default}) for default in (3, 4)),
        *("argument days means 4 where it is absent; it was 3", "compatible"),
    ),
    (record(day=DAY), record(day=DATE), "argument day was no format, is date", "compatible"),
    (
        *(record(day={"type": "string", "pattern": pattern}) for pattern in ("^[a-z]+$", "^[0-9]+$")),
        *("argument day was pattern ^[a-z]+$, is pattern ^[0-9]+$", "breaking"),
    ),
    (
        *(record(tags={"type": "array", "items": TEXT, **more}) for more in ({}, {"uniqueItems": True})),
        *("argument tags has `uniqueItems` now: true", "breaking"),
    ),
    (
        *(record(a=TEXT, b=TEXT) | more for more in ({}, {"not": {"required": ["a", "b"]}})),
        *('arguments has `not` now: {"required": ["a", "b"]}', "breaking"),
    ),
]


def test_argument_changes_are_reported_with_their_verdicts() -> None:
    for old, new, sentence, verdict in CHANGES:
        assert said(forecast(old), forecast(new)) == [(sentence, verdict)]


def test_a_changed_description_is_no_finding_but_a_text() -> None:
    old, new = (forecast(record(city={**TEXT, **more})) for more in ({}, {"description": "Where."}))
    comparison = compared(old, new)
    assert not comparison.findings
    assert [one.texts for one in comparison.texts] == [[("inputSchema.city.description", [], ["Where."])]]


def test_an_argument_that_becomes_an_undeclared_property_is_compatible() -> None:
    old = record("city", city=TEXT, unit=TEXT)
    for is_open, verdict in ((True, Verdict.COMPATIBLE), (False, Verdict.BREAKING)):
        new = record("city", city=TEXT) | {"additionalProperties": is_open}
        assert compared(forecast(old), forecast(new)).verdict is verdict


def test_each_change_of_an_argument_is_reported() -> None:
    old = record(days={"type": "integer", "maximum": 7, "default": 3, "description": "A."})
    new = record("days", days={"type": "integer", "maximum": 5, "format": "int32"})
    assert sorted(said(forecast(old), forecast(new))) == [
        ("argument days is required now", "breaking"),
        ("argument days means nothing where it is absent; it was 3", "breaking"),
        ("argument days was maximum 7, is maximum 5", "breaking"),
        ("argument days was no format, is int32", "breaking"),
    ]


def test_a_witness_is_valid_for_the_old_schema_and_refused_by_the_new_one() -> None:
    for old, new, _, verdict in CHANGES:
        (finding,) = compared(forecast(old), forecast(new)).findings
        assert (finding.witness is not None) == (verdict == "breaking")
        if finding.witness is not None:
            accepts, refuses = map(jsonschema_rs.validator_for, (old, new))
            assert accepts.is_valid(finding.witness.value)
            assert not refuses.is_valid(finding.witness.value)
            assert finding.pointer.startswith("/inputSchema")


def test_added_and_removed_enum_values_are_reported_individually() -> None:
    old, new = record(n={"enum": [1, 2, 3]}), record(n={"enum": [1, 4]})
    assert sorted(said(forecast(old), forecast(new))) == [
        ("argument n may be 4", "breaking"),
        ("argument n may not be 2 any more", "breaking"),
        ("argument n may not be 3 any more", "breaking"),
    ]


def test_an_enum_added_to_an_integer_is_breaking() -> None:
    found = said(forecast(record(n={"type": "integer"})), forecast(record(n={"enum": [1, 2]})))
    assert found == [("argument n has `enum` now: [1, 2]", "breaking")]


def test_an_added_enum_value_is_reported_once() -> None:
    old, new = record(n={"enum": ["a", "b", 1]}), record(n={"enum": ["a", None]})
    sentences = [sentence for sentence, _ in said(forecast(old), forecast(new))]
    assert sentences.count("argument n may be null") == 1


def test_the_direction_of_breaks_is_reversed_for_results() -> None:
    plain = record()
    old, new = record("sky", sky=TEXT, t=WHOLE), record(sky=TEXT, t={"type": "number"})
    assert sorted(said(forecast(plain, old), forecast(plain, new))) == [
        ("result sky is optional now", "breaking"),
        ("result t may have a fraction", "breaking"),
    ]
    assert compared(forecast(plain, new), forecast(plain, old)).verdict is Verdict.COMPATIBLE


def test_a_result_that_is_no_longer_structured_is_breaking() -> None:
    plain, structured = forecast(record()), forecast(record(), record(sky=TEXT))
    assert said(structured, plain) == [("tool get-forecast has no structured result any more", "breaking")]
    assert said(plain, structured) == [("tool get-forecast has a structured result now", "compatible")]


def test_removed_and_added_tools_are_reported_with_a_rename_hint() -> None:
    old, new = (
        {"tools": [{"name": name, "inputSchema": record(q=TEXT)} for name in ("find", other)]}
        for other in ("count-all", "countAll")
    )
    assert said(old, new) == [("tool count-all is gone", "breaking"), ("tool countAll is new", "compatible")]
    assert compared(old, new).findings[0].hint == "Perhaps it is countAll now."


def test_changes_of_description_title_and_annotations_are_texts() -> None:
    old = forecast(record(), description="Old.", annotations={"readOnlyHint": True, "title": "A"})
    new = forecast(record(), description="New.", title="B", annotations={"title": "A"})
    comparison = compared(old, new)
    assert not comparison.findings
    (change,) = comparison.texts
    assert {place for place, *_ in change.texts} == {"annotations", "description", "title"}


def test_an_added_scope_is_breaking_and_a_removed_scope_is_compatible() -> None:
    states: list[Schema] = [{"x-mcp-scopes": scopes} for scopes in (["a", "b"], ["b", "c"])]
    old, new = (forecast(record(), **state) for state in states)
    assert said(old, new) == [
        ("tool get-forecast needs the scope c", "breaking"),
        ("tool get-forecast does not need the scope a any more", "compatible"),
    ]


def test_changes_of_prompt_arguments_are_reported() -> None:
    def greet(*arguments: Schema) -> Schema:
        return {"prompts": [{"name": "greet", "arguments": list(arguments)}]}

    old = greet({"name": "style", "enum": ["a", "b"]}, {"name": "who"})
    new = greet({"name": "style", "enum": ["a"]}, {"name": "who", "required": True}, {"name": "more"})
    assert sorted(said(old, new)) == [
        ("argument more is new and optional: string", "breaking"),
        ('argument style may not be "b" any more', "breaking"),
        ("argument who is required now", "breaking"),
    ]


def test_changes_of_resources_and_templates_are_reported() -> None:
    old = {
        "resources": [{"uri": "file:///a", "name": "a", "mimeType": "text/plain"}, {"uri": "file:///b", "name": "b"}],
        "resourceTemplates": [{"uriTemplate": "note://{id}", "name": "note"}],
    }
    new = {
        "resources": [{"uri": "file:///a", "name": "a", "mimeType": "text/html"}, {"uri": "file:///c", "name": "c"}],
        "resourceTemplates": [{"uriTemplate": "note://{id}/{part}", "name": "note"}],
    }
    assert sorted(said(old, new)) == [
        ("resource file:///a had the media type text/plain, has text/html", "breaking"),
        ("resource file:///b is gone", "breaking"),
        ("resource file:///c is new", "compatible"),
        ("template note://{id} is gone", "breaking"),
        ("template note://{id}/{part} is new", "compatible"),
    ]
    (gone,) = (one for one in compared(old, new).findings if one.name == "note://{id}")
    assert gone.hint == "Perhaps it is note://{id}/{part} now."


def test_changed_instructions_are_a_text() -> None:
    comparison = compared({"instructions": "Old."}, {"instructions": "New."})
    assert not comparison.findings
    assert comparison.texts[0].texts == [("instructions", ["Old."], ["New."])]


def test_a_change_in_a_recursive_type_is_reported_once() -> None:
    def tree(value: Schema) -> Schema:
        node = record(value=value, children={"type": "array", "items": {"$ref": "#/$defs/Node"}})
        return record(root={"$ref": "#/$defs/Node"}) | {"$defs": {"Node": node}}

    assert said(forecast(tree(WHOLE)), forecast(tree(TEXT))) == [
        ("argument root.value was integer, is string", "breaking")
    ]


# --- differences that are no change ---------------------------------------------------------------------------

RICH = forecast(
    record(
        "city",
        city={**TEXT, "description": "Where."},
        unit={"enum": ["c", "f"]},
        either={"anyOf": [TEXT, WHOLE]},
        tree={"$ref": "#/$defs/Node"},
        odd={"if": {"const": 1}, "then": {"minimum": 0}, "not": {"const": 7}},
    )
    | {"$defs": {"Node": record(kids={"type": "array", "items": {"$ref": "#/$defs/Node"}})}},
    record("sky", sky=TEXT),
)


def test_the_order_of_members_is_no_change() -> None:
    for seed in range(5):
        assert said(RICH, copy.deepcopy(RICH)) == []
        assert said(RICH, shuffled(RICH, seed)) == []


def test_equivalent_schemas_are_another_notation() -> None:
    old = record("a", "b", a={"type": ["string"]}, b={"enum": [1, 2]}, c=record(x=TEXT))
    new = record("b", "a", a=TEXT, b={"enum": [2, 1]}, c={"$ref": "#/$defs/C"}) | {"$defs": {"C": record(x=TEXT)}}
    assert said(forecast(old), forecast(new)) == [("tool get-forecast accepts the same arguments", "notation")]


@pytest.mark.full
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
@pytest.mark.parametrize("below", ["", "items", "not"])
def test_a_comparison_that_would_take_too_long_is_unproven(keyword: str, below: str) -> None:
    old, new = (tangled(30, leaf, keyword, below=below) for leaf in (TEXT, WHOLE))
    (finding,) = compared(forecast(old), forecast(new)).findings
    assert finding.verdict is Verdict.UNPROVEN
    assert finding.message.endswith("the schemas are too complex")
    assert said(forecast(old), forecast(shuffled(old, 1))) == []


def test_a_change_below_many_alternatives_is_reported_once() -> None:
    old, new = (tangled(8, leaf, below="items") for leaf in (TEXT, WHOLE))
    assert said(forecast(old), forecast(new)) == [(f"argument x{'[]' * 8} was string, is integer", "breaking")]


HOST = "https://example.org"


def test_breaks_below_references_in_equal_alternatives_and_of_float_counts_are_found() -> None:
    sides: list[Any] = [
        (record(x={"$ref": "#it"}) | {"$defs": {"It": {"$anchor": "it", **kind}}} for kind in (WHOLE, TEXT)),
        (
            record(x={"$dynamicRef": "#it"}) | {"$defs": {"It": {"$dynamicAnchor": "it", **kind}}}
            for kind in (WHOLE, TEXT)
        ),
        (record(x={"$recursiveRef": "#"}, y=kind) for kind in (WHOLE, TEXT)),
        *(
            (
                record(x={"$ref": reference}) | {"$id": f"{HOST}/s/root.json", "$defs": {"It": {"$id": name, **kind}}}
                for kind in (WHOLE, TEXT)
            )
            for reference, name in (
                ("it.json", f"{HOST}/s/it.json"),
                (f"{HOST}/s/it.json", "it.json"),
                ("/it", "../it"),
            )
        ),
        (record(x={"$ref": "It"}) | {"$defs": {"It": {"$id": "It", **kind}}} for kind in (WHOLE, TEXT)),
        (record(x={"$ref": "#/$defs/It"}) | {"$defs": {"It": kind}} for kind in (True, False)),
        (record(x={"oneOf": [WHOLE, *strings]}) for strings in ([TEXT], [TEXT, {**TEXT, "title": "Id"}])),
        (record(x={**TEXT, "minLength": least}) for least in (2.0, 3.0)),
    ]
    for old, new in sides:
        assert compared(forecast(old), forecast(new)).verdict is Verdict.BREAKING, (old, new)


def test_every_added_keyword_is_reported() -> None:
    rows: list[Any] = [
        *({"patternProperties": {"^x": TEXT}}, {"propertyNames": {"maxLength": 9}}, {"minProperties": 1}),
        *({"dependentRequired": {"a": ["b"]}}, {"not": {"const": {"a": "x"}}}, {"if": {"required": ["a"]}}),
        *({"allOf": [{"required": ["a"]}]}, {"unevaluatedProperties": False}, {"x-vendor": 1}),
    ]
    for more in rows:
        plain = record(a=TEXT, b=TEXT)
        assert said(forecast(plain), forecast(plain | more))
        assert said(forecast(record(inner=plain)), forecast(record(inner=plain | more)))


# --- reports --------------------------------------------------------------------------------------------------


def rendered(
    comparison: ContractComparison, format: Format = Format.TEXT, *, witness: bool = False, colour: bool = False
) -> str:
    made = Report(lambda: report.document(comparison, witness=witness), lambda: report.record(comparison))
    return render(made, format, Page(colour=colour))


def test_the_text_report_lists_breaking_changes_first_and_texts_apart() -> None:
    old = forecast(record(city=TEXT, unit={"enum": ["c", "f"]}), description="Old.")
    new = forecast(record("city", city=TEXT, unit={"enum": ["c", "f", "k"]}), description="New.")
    shown = rendered(compared(old, new), witness=True)
    assert shown.startswith("Sensible callers break: 1 breaking, 1 entry with changed texts.\n")
    words = ("Breaking (1)", "argument city", "{}", "Changed texts (1)", "+New.")
    places = [shown.index(word) for word in words]
    assert places == sorted(places)
    assert rendered(compared(old, old)) == "Nothing changed.\n"
    assert "\x1b[31m" in rendered(compared(old, new), colour=True)


def test_markdown_and_json_reports_contain_the_finding() -> None:
    old, new = forecast(record(city=TEXT)), forecast(record("city", city=TEXT))
    comparison = compared(old, new)
    shown = rendered(comparison, Format.MARKDOWN)
    assert "\n- `tool get-forecast` refuses arguments that were valid: argument city is required now.\n" in shown
    found = json.loads(rendered(comparison, Format.JSON))
    assert (found["callers"], found["verdict"]) == ("sensible", "breaking")
    (finding,) = found["findings"]
    assert (finding["verdict"], finding["tool"], finding["rule"]) == ("breaking", "get-forecast", "arguments-breaking")
    assert finding["pointer"] == "/inputSchema/properties/city"
    assert finding["witness"]["value"] == {}


def test_equal_changes_of_many_entries_are_grouped() -> None:
    listed: list[Schema] = [{"uri": f"note://{number}", "name": f"note {number}"} for number in range(100)]
    tools = [{"name": name, "inputSchema": record(city=TEXT)} for name in ("get-forecast", "forecast")]
    comparison = compared({"resources": listed, "tools": tools[:1]}, {"resources": listed[:1], "tools": tools[1:]})
    assert rendered(comparison) == (
        "Sensible callers break: 100 breaking, 1 compatible.\n\n"
        f"Breaking (100) {'-' * 65}\n"
        "  tool get-forecast is gone\n    Perhaps it is forecast now.\n"
        "  resource note://1 is gone\n"
        "    The same change in 98 other resources: note://10, note://11, note://12, ...\n\n"
        f"Compatible (1) {'-' * 65}\n"
        "  tool forecast is new\n"
    )
    assert len(rendered(comparison, Format.MARKDOWN).splitlines()) < 20
    assert len(json.loads(rendered(comparison, Format.JSON))["findings"]) == 101, "programs get each of them"


def test_server_texts_are_escaped_in_reports() -> None:
    old, new = ({"resources": [{"uri": "x:y", "name": "a\x1b[31m|`b", "mimeType": type}]} for type in ("a", "b\n|\x1b"))
    comparison = compared(old, new)
    assert "\x1b" not in rendered(comparison)
    row = next(line for line in rendered(comparison, Format.MARKDOWN).splitlines() if "x:y" in line)
    assert row == r"- `resource x:y` had the media type a, has b \|\\u001b."


@pytest.mark.full
def test_one_break_among_500_tools_is_found() -> None:
    schema = record(city=TEXT, days=WHOLE)
    tools: list[Schema] = [{"name": f"tool-{index}", "inputSchema": schema} for index in range(500)]
    other = copy.deepcopy(tools)
    other[7]["inputSchema"] = {**schema, "required": ["city"]}
    assert [one.verdict for one in compared({"tools": tools}, {"tools": other}).findings] == [Verdict.BREAKING]


def test_an_explicit_keyword_default_is_no_difference() -> None:
    for kind, keyword in [("array", "items"), ("object", "additionalProperties")]:
        silent, stated, closed = {"type": kind}, {"type": kind, keyword: True}, {"type": kind, keyword: False}
        assert list(differences(silent, stated)) == list(differences(stated, silent)) == []
        assert [found.keyword for found in differences(silent, closed)] == [keyword]


# --- names and dialects ---------------------------------------------------------------------------------------

NAMES = ("description", "title", "deprecated", "examples", "markdownDescription", "const", "properties")
MAPS: list[Schema] = [
    {"dependentRequired": ["a"]},
    {"dependencies": ["a"]},
    {"dependentSchemas": {"required": ["a"]}},
    {"patternProperties": WHOLE},
    {"properties": WHOLE},
]


@each("name", NAMES)
def test_a_member_named_like_a_keyword_is_compared(name: str) -> None:
    plain = record(a=TEXT, b=TEXT, **{name: TEXT})
    for case in MAPS:
        ((keyword, value),) = case.items()
        old, new = (plain | {"allOf": [{keyword: {"b": value, **more}}]} for more in ({}, {name: value}))
        assert compared(forecast(old), forecast(new)).verdict is Verdict.BREAKING, (keyword, old, new)
        old, new = (plain | {keyword: {**plain.get(keyword, {}), "b": value, **more}} for more in ({}, {name: value}))
        assert compared(forecast(old), forecast(new)).verdict is Verdict.BREAKING, (keyword, old, new)
    no_x = record(a={"not": {"$ref": "#/$defs/x"}})
    old, new = (no_x | {"$defs": {"x": record(**{name: one})}} for one in (TEXT, {}))
    assert compared(forecast(old), forecast(new)).verdict >= Verdict.UNPROVEN
    for keyword in ("const", "default"):
        old, new = (record(a={keyword: [{name: value}]}) for value in (1, 2))
        assert len(compared(forecast(old), forecast(new)).findings) == 1, keyword
        old, new = (record(a={"not": {"enum": [{keyword: {name: value}}]}}) for value in (1, 2))
        assert compared(forecast(old), forecast(new)).verdict >= Verdict.UNPROVEN, keyword


DRAFT_4, DRAFT_6, DRAFT_7 = (f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 6, 7))
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
REFERS = record(a={"$ref": "#/definitions/A", "minLength": 5}) | {"definitions": {"A": TEXT}}
ACTIVE: list[Any] = [
    (DRAFT_7, REFERS),
    (DRAFT_7, REFERS | {"definitions": {"A": {"$ref": "#/definitions/B"}, "B": TEXT}}),
    (DRAFT_7, record(a=TEXT, b=TEXT) | {"dependentRequired": {"a": ["b"]}}),
    (DRAFT_7, record(a=TEXT, b=TEXT) | {"allOf": [{"dependentSchemas": {"a": {"required": ["b"]}}}]}),
    (DRAFT_7, record(a={"type": "array", "contains": TEXT, "minContains": 2})),
    (DRAFT_7, record(a={"anyOf": [{"type": "array", "prefixItems": [TEXT, WHOLE]}]})),
    (DRAFT_6, record(a=TEXT, b=TEXT) | {"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
    (DRAFT_4, record(a={"const": "a"}) | {"propertyNames": {"maxLength": 5}}),
    (DRAFT_2019, record(a={"type": "array", "prefixItems": [TEXT]})),
]


@each(("dialect", "schema"), ACTIVE)
def test_a_keyword_that_a_new_dialect_makes_active_is_breaking(dialect: str, schema: Schema) -> None:
    old, new = forecast(schema | {"$schema": dialect}), forecast(schema)
    assert compared(old, new).verdict is Verdict.BREAKING
    assert said(old, old) == []


def test_a_dialect_with_the_same_meaning_is_no_change() -> None:
    for dialect in (DRAFT_6, DRAFT_7, DRAFT_2019):
        old = forecast(record("a", a=TEXT, b={"$ref": "#/definitions/B"}, format=TEXT) | {"definitions": {"B": WHOLE}})
        new = forecast({**old["tools"][0]["inputSchema"], "$schema": dialect})
        assert said(old, new) == [("tool get-forecast accepts the same arguments", "notation")]
        stricter = forecast({**new["tools"][0]["inputSchema"], "required": ["a", "b"]})
        assert said(old, stricter) == [("argument b is required now", "breaking")]


def test_the_dialect_of_an_inner_resource_is_compared() -> None:
    inner = {"$id": "https://example.com/a", "type": "object", "dependentRequired": {"a": ["b"]}}
    old, new = (forecast(record(a={**inner, "$schema": dialect})) for dialect in (DRAFT_7, DRAFT_2019))
    assert compared(old, new).findings


def test_a_type_beside_constants_is_compared() -> None:
    mixed = {"enum": ["a", True]}
    old, new = forecast(record(a={**mixed, "type": "string"})), forecast(record(a=mixed))
    assert said(old, new) == [("argument a has no `type` any more", "compatible")]


def test_a_tuple_in_the_form_of_another_dialect_is_another_notation() -> None:
    first, rest = [TEXT, WHOLE], {"type": "array"}
    for dialect in (DRAFT_4, DRAFT_7, DRAFT_2019):
        old = record(a={**rest, "items": first, "additionalItems": WHOLE}, b={"$ref": "#/properties/a/items/1"})
        new = record(a={**rest, "prefixItems": first, "items": WHOLE}, b={"$ref": "#/properties/a/prefixItems/1"})
        sides = forecast(old | {"$schema": dialect}), forecast(new)
        assert [verdict for _, verdict in said(*sides)] == ["notation"]
        assert [verdict for _, verdict in said(*reversed(sides))] == ["notation"]


@pytest.mark.parametrize(("bound", "limit"), [("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")])
def test_a_boolean_bound_is_compared_as_the_limit_that_it_is(bound: str, limit: str) -> None:
    def side(**more: Any) -> Schema:
        return forecast(record(a={"type": "number", limit: 5, **more}) | {"$schema": DRAFT_4})

    for loose in (side(), side(**{bound: False})):
        assert compared(loose, side(**{bound: True})).verdict is Verdict.BREAKING
        assert compared(side(**{bound: True}), loose).verdict is Verdict.COMPATIBLE
    same = [(side(), side(**{bound: False})), (side(**{bound: True}), forecast(record(a={"type": "number", bound: 5})))]
    assert [compared(*sides).verdict for sides in same] == [Verdict.NOTATION] * 2


def test_a_reference_with_a_sibling_is_not_the_same_as_one_schema() -> None:
    closed = record(a=TEXT) | {"additionalProperties": False}
    emptied = record(x={"$ref": "#/$defs/A", "additionalProperties": False}) | {"$defs": {"A": record(a=TEXT)}}
    assert compared(forecast(record(x=closed)), forecast(emptied)).verdict is Verdict.BREAKING
