"""Functions named by rules, for cases that random payloads rarely reach."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.bridging import rules
from mcp_bindgen.bridging.chain import LossReport, NotConvertible, RuleContext, Ruling, chain, missed
from tests.harness.json_instances import JSON

TEXT = {"type": "text", "text": "a"}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


@pytest.fixture
def say() -> RuleContext:
    return RuleContext(Ruling("Some.place", "there are no such words"), LossReport())


SCHEMAS: list[Any] = [
    {
        "type": "array",
        "items": {"$ref": "#/$defs/enum"},
        "$defs": {"enum": {"$ref": "#/$defs/a"}, "a": {"type": "integer"}},
    },
    {},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "array", "items": {"type": "integer"}},
    {"type": ["string", "null"]},
    {"type": ["object", "array"]},
    {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "integer"}]},
    {"enum": [1, {"$ref": "#"}, {"result": 1}]},
    {"const": {"a": [{"$ref": "#/$defs/x"}]}},
    {"$defs": {"x": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/x"}},
    {"$defs": {"x": {"type": "integer"}}, "anyOf": [{"$ref": "#/$defs/x"}, {"type": "object"}]},
    {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}, {"required": ["b"], "type": "object"}]},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "not": {"type": "object"}},
]


@pytest.mark.full
@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_structured_content_and_its_schema_are_converted_consistently(schema: Any) -> None:
    say = RuleContext(Ruling("", ""), LossReport())
    made = rules.schema_as_object(copy.deepcopy(schema), say)
    assert (made["type"], rules.schema_as_object(copy.deepcopy(made), say)) == ("object", made)
    before, after = (jsonschema_rs.validator_for(one) for one in (schema, made))

    @given(JSON | st.lists(st.integers(), max_size=3) | st.dictionaries(st.sampled_from("ab"), st.integers()))
    def agree(value: Any) -> None:
        goes = rules.structured_as_object(value, say)
        assert after.is_valid(goes) is (before.is_valid(value) or before.is_valid(goes))

    agree()


def test_audio_becomes_a_resource_with_all_its_fields(say: RuleContext) -> None:
    block = {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "annotations": {"priority": 1}, "acme": 1}
    made = rules.audio_as_resource(block, say)
    assert made == {
        "type": "resource",
        "resource": {"uri": "embedded:audio", "mimeType": "audio/wav", "blob": "AA=="},
        "annotations": {"priority": 1},
        "acme": 1,
    }
    assert list(say.losses.losses) == [("Some.place", "there are no such words")]


def test_a_link_becomes_text(say: RuleContext) -> None:
    link = {"type": "resource_link", "name": "n", "title": "T", "uri": "a:b", "description": "D", "size": 1, "acme": 1}
    assert rules.link_as_text(link, say) == {"type": "text", "text": "T\na:b\nD", "acme": 1}


@pytest.mark.parametrize(
    ("blocks", "count"), [([], 1), ([IMAGE], 2), ([TEXT], 1), ([{"type": "text", "text": "{}"}, IMAGE], 2)]
)
def test_structured_content_is_added_as_text_if_text_is_missing(
    say: RuleContext, blocks: list[Any], count: int
) -> None:
    result = rules.structured_as_text({"content": list(blocks), "structuredContent": {"a": "é"}}, say)
    assert len(result["content"]) == count
    assert count == len(blocks) or result["content"][-1] == {"type": "text", "text": '{"a":"é"}'}
    assert result["structuredContent"] == {"a": "é"}


def test_a_message_with_several_blocks_becomes_several_messages(say: RuleContext) -> None:
    messages = [{"role": "user", "content": [TEXT, IMAGE]}, {"role": "assistant", "content": TEXT}]
    made = rules.one_block_each(messages, say)
    assert made == [
        {"role": "user", "content": TEXT},
        {"role": "user", "content": IMAGE},
        {"role": "assistant", "content": TEXT},
    ]
    assert rules.one_block_each([{"role": "user", "content": []}], say) == [
        {"role": "user", "content": {"type": "text", "text": ""}}
    ]
    assert not say.losses.losses


def test_text_blocks_are_joined_and_mixed_blocks_are_refused(say: RuleContext) -> None:
    assert rules.one_block([IMAGE], say) == IMAGE
    assert rules.one_block([TEXT, TEXT], say) == {"type": "text", "text": "a\na"}
    with pytest.raises(NotConvertible, match="no such words"):
        rules.one_block([TEXT, IMAGE], say)


def test_titles_of_enum_values_become_enum_names(say: RuleContext) -> None:
    schema = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}], "title": "Colour", "default": "r"}
    made = rules.titles_as_names(schema, say)
    assert made == {"type": "string", "enum": ["r"], "enumNames": ["Red"], "title": "Colour", "default": "r"}
    assert rules.titles_as_names({"oneOf": 5}, say) == {"oneOf": 5}


def test_url_elicitations_get_unique_ids(say: RuleContext) -> None:
    one, other = (rules.with_elicitation_id({}, say)["elicitationId"] for _ in range(2))
    assert one != other
    assert rules.with_elicitation_id({"elicitationId": one}, say) == {"elicitationId": one}


@given(st.integers(0, 300))
def test_at_most_100_completion_values_are_sent(count: int) -> None:
    notes = LossReport()
    made = rules.first_values({"values": ["x"] * count}, RuleContext(Ruling("", ""), notes))
    assert made == (
        {"values": ["x"] * count} if count <= 100 else {"values": ["x"] * 100, "hasMore": True, "total": count}
    )
    assert bool(notes.losses) is (count > 100)


def test_tools_that_must_run_as_tasks_are_left_out(say: RuleContext) -> None:
    tools = [{"name": kind, "execution": {"taskSupport": kind}} for kind in ("required", "optional")] + [{"name": "a"}]
    assert [tool["name"] for tool in rules.without_required_tasks(tools, say)] == ["optional", "a"]
    assert say.losses.losses


@given(JSON)
def test_unrecognized_values_are_unchanged(value: Any) -> None:
    say = RuleContext(Ruling("", ""), LossReport())
    for function in (
        rules.structured_as_text,
        rules.first_values,
        rules.one_block_each,
        rules.without_required_tasks,
    ):
        assert function(copy.deepcopy(value), say) == value


# --- features that the peers of a class will miss -------------------------------------------------------------


def test_missing_features_are_reported_for_the_methods_of_a_class() -> None:
    assert missed("2025-11-25", "2024-11-05", ["prompts/get"]) == [
        "prompts/get: MCP 2025-03-26 has no links to resources: they are sent as text with title, URI and description",
        "prompts/get: MCP 2024-11-05 has no audio: it is sent as an embedded resource with its data and media type",
    ]
    assert missed("2025-11-25", "2024-11-05", ["prompts/list"]) == []
    assert missed("2025-11-25", "2025-11-25", ["tools/call"]) == []


def test_a_request_that_peers_do_not_support_is_reported_once() -> None:
    (line,) = missed("2025-06-18", "2024-11-05", [], ["elicitation/create"])
    assert line == "elicitation/create: MCP 2025-03-26 has no elicitation: its clients cannot ask their users"


def test_features_with_a_replacement_are_not_reported_as_missing() -> None:
    assert missed("2025-11-25", "2026-07-28", ["resources/subscribe", "logging/setLevel"]) == []
    (line,) = missed("2025-11-25", "2026-07-28", ["notifications/roots/list_changed"])
    assert line.startswith("notifications/roots/list_changed: servers of MCP 2026-07-28 ask for the roots")


def test_an_unknown_revision_has_no_chain_and_raises_a_lookup_error() -> None:
    assert chain("2025-11-25", "unheard-of") is None
    with pytest.raises(LookupError, match="no bridge leads"):
        missed("2025-11-25", "unheard-of", [])
