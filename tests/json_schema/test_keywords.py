"""The table of keywords against the official meta-schemas, and walks against names that look like keywords."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

from mcp_bindgen.http.headers import header_params
from mcp_bindgen.json_schema.dialects import modern
from mcp_bindgen.json_schema.keywords import KEYWORDS, Kind, children, edited, nodes, objects
from mcp_bindgen.spec.idioms import lifted, placed
from mcp_bindgen.spec.keywords import rebuild, walk, without_prose

_MODERN = [f"meta/{one}" for one in ("core", "applicator", "validation", "meta-data", "content")]

META_SCHEMAS = {
    4: ["http://json-schema.org/draft-04/schema"],
    6: ["http://json-schema.org/draft-06/schema"],
    7: ["http://json-schema.org/draft-07/schema"],
    2019: [f"https://json-schema.org/draft/2019-09/{one}" for one in ("schema", *_MODERN, "meta/format")],
    2020: [
        f"https://json-schema.org/draft/2020-12/{one}"
        for one in ("schema", *_MODERN, "meta/unevaluated", "meta/format-annotation")
    ],
}
"""Draft -> its meta-schemas."""

LOOK_LIKE_KEYWORDS = ("description", "title", "enum", "default", "$ref", "const", "properties", "required", "examples")


def stated(draft: int) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of a draft and what its meta-schemas say about them."""
    for uri in META_SCHEMAS[draft]:
        contents: Any = REGISTRY[uri].contents
        yield from contents["properties"].items()


def is_schema(rule: Any) -> bool:
    return rule in ({"$ref": "#"}, {"$recursiveRef": "#"}, {"$dynamicRef": "#meta"}, {"allOf": [{"$ref": "#"}]})


def kind_of(rule: Any) -> Kind:
    """Return the kind of the values that a meta-schema describes."""
    if rule is True:
        return Kind.VALUE
    text = str(rule.get("$ref", "")) or str(next((one["$ref"] for one in rule.get("allOf", ()) if "$ref" in one), ""))
    options = rule.get("anyOf", [])
    if is_schema(rule) or (len(options) == 2 and {"type": "boolean"} in options and any(map(is_schema, options))):
        return Kind.SCHEMA
    if text.endswith("schemaArray"):
        return Kind.SCHEMAS
    if "onNegativeInteger" in text or "ositiveInteger" in text:
        return Kind.COUNT
    if any(map(is_schema, options)):
        return Kind.SCHEMA_OR_SCHEMAS
    inside = rule.get("additionalProperties")
    inner = inside.get("anyOf", [inside]) if isinstance(inside, dict) else ()
    return Kind.NAMED if any(map(is_schema, inner)) else Kind.VALUE


@pytest.mark.parametrize("draft", META_SCHEMAS)
def test_the_table_has_each_keyword_with_the_kind_that_the_meta_schema_states(draft: int) -> None:
    for keyword, rule in stated(draft):
        known, said = KEYWORDS[keyword].kind, kind_of(rule)
        if keyword in ("$recursiveRef", "$recursiveAnchor") and draft == 2020:  # a remark about an old keyword
            continue
        if known is Kind.SCHEMA_OR_SCHEMAS and draft == 2020:
            assert said is Kind.SCHEMA
        else:
            assert said is known, keyword


def test_the_table_dates_keywords_as_the_meta_schemas_do() -> None:
    drafts = {keyword: [draft for draft in META_SCHEMAS if keyword in dict(stated(draft))] for keyword in KEYWORDS}
    unsaid = {"$ref": 4, "writeOnly": 7}  # text of the drafts, beside their meta-schemas
    assert {keyword: found[0] for keyword, found in drafts.items()} | unsaid == {
        keyword: one.since for keyword, one in KEYWORDS.items()
    }


@pytest.mark.parametrize("name", LOOK_LIKE_KEYWORDS)
def test_the_name_of_a_member_is_no_keyword(name: str) -> None:
    inner = {"type": "string", "description": "x", "x-mcp-header": "X-Y"}
    schema = {"type": "object", "properties": {name: inner}}

    assert [part for _, _, part in children(schema)] == [inner]
    assert objects(schema) == list(walk(schema)) == [node for _, node in nodes(schema)] == [schema, inner]
    assert edited(schema, lambda _, found: found.pop("description", None))["properties"][name].keys() == {
        "type",
        "x-mcp-header",
    }
    assert rebuild(schema, lambda _, at: {"at": at})["properties"] == {name: {"at": f"/properties/{name}"}}
    assert without_prose(schema)["properties"][name].keys() == {"type", "x-mcp-header"}
    assert header_params(schema) == {(name,): "Mcp-Param-X-Y"}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {name: {"items": [{}]}}}
    assert modern(old)["properties"] == {name: {"prefixItems": [{}]}}


@pytest.mark.parametrize("keyword", ["default", "examples", "const", "enum"])
def test_a_reference_in_a_value_is_no_reference(keyword: str) -> None:
    value = [{"$ref": "#/$defs/A/properties/b"}, {"$ref": "#/$defs/C"}]
    nested = {"A": {"$defs": {"C": {"type": "string"}}, "properties": {"b": {"type": "null"}}, keyword: value}}
    found, _ = lifted(nested)
    assert found["A"][keyword] == value
    document = {"$defs": nested}
    assert placed(document, "$defs", nested, {}) == nested


def test_a_member_with_the_name_of_a_reference_is_moved() -> None:
    member = {"$ref": "#/$defs/A/$defs/C"}
    found, _ = lifted({"A": {"$defs": {"C": {"type": "string"}}, "properties": {"$ref": member, "default": member}}})
    assert found["A"]["properties"] == {name: {"$ref": "#/$defs/AC"} for name in ("$ref", "default")}
