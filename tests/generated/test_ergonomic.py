"""Everyday use of generated models: construction, reading and errors."""

from __future__ import annotations

import copy
import json
import pickle
import pydoc
from inspect import signature
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError, model_validator

from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import types as stateless
from tests.typing import everyday


def test_constants_are_optional_in_constructors_but_required_on_the_wire() -> None:
    assert mcp.TextContent(text="hi").model_dump_json() == '{"text":"hi","type":"text"}'
    with pytest.raises(ValidationError, match="type"):
        mcp.TextContent.model_validate_json('{"text": "hi"}')
    with pytest.raises(ValidationError, match="type"):
        mcp.TextContent(text="hi", type="image")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_absent_optionals_read_as_none_and_stay_absent() -> None:
    page = mcp.ListToolsResult(tools=[])
    assert page.next_cursor is None
    assert page.model_dump_json() == '{"tools":[]}'
    page.next_cursor = "more"
    assert json.loads(page.model_dump_json()) == {"tools": [], "nextCursor": "more"}


def test_attributes_have_python_names_and_json_has_wire_names() -> None:
    page = mcp.ListToolsResult.model_validate_json('{"tools": [], "nextCursor": "a", "next_cursor": "b"}')
    assert page.next_cursor == "a"
    assert json.loads(page.model_dump_json()) == {"tools": [], "nextCursor": "a", "next_cursor": "b"}


def test_all_dumps_use_the_wire_form_by_default() -> None:
    tool = mcp.Tool(name="t", input_schema=mcp.ToolInputSchema(), meta={"a/b": None})
    wire = {"_meta": {"a/b": None}, "inputSchema": {"type": "object"}, "name": "t"}
    assert tool.model_dump() == wire
    assert json.loads(tool.model_dump_json()) == wire
    assert TypeAdapter(mcp.Tool).dump_python(tool) == wire
    assert json.loads(TypeAdapter(list[mcp.Tool]).dump_json([tool])) == [wire]


def test_required_nulls_are_kept() -> None:
    date = "2025-11-25T00:00:00Z"
    task = mcp.Task(task_id="t", status="working", created_at=date, last_updated_at=date, ttl=None)
    assert json.loads(task.model_dump_json())["ttl"] is None


def test_an_explicit_null_differs_from_an_absent_member() -> None:
    silent = stateless.CallToolResult(content=[])
    null = stateless.CallToolResult(content=[], structured_content=None)
    assert silent.structured_content is None
    assert null.structured_content is None
    assert "structuredContent" not in json.loads(silent.model_dump_json())
    assert json.loads(null.model_dump_json())["structuredContent"] is None


def test_repr_shows_only_the_given_fields() -> None:
    result = mcp.CallToolResult(content=[mcp.TextContent(text="hi")], is_error=False)
    assert repr(result) == "CallToolResult(content=[TextContent(text='hi')], is_error=False)"


def test_unions_narrow_with_match() -> None:
    blocks = TypeAdapter(list[mcp.ContentBlock]).validate_json(
        '[{"type": "text", "text": "hi"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}]'
    )
    seen: list[str] = []
    for block in blocks:
        match block:
            case mcp.TextContent(text=text):
                seen.append(text)
            case mcp.ImageContent(mime_type=kind):
                seen.append(kind)
            case other:
                seen.append(other.type)
    assert seen == ["hi", "image/png"]


def test_errors_name_the_location_and_the_union_tag() -> None:
    with pytest.raises(ValidationError) as caught:
        mcp.CallToolResult.model_validate_json('{"content": [{"type": "text"}]}')
    assert [error["loc"] for error in caught.value.errors()] == [("content", 0, "text", "text")]


def test_errors_of_constructors_name_the_field_and_the_wire_name() -> None:
    with pytest.raises(ValidationError) as caught:
        mcp.Tool(name=1, input_schema={"type": "array"}, meta=3)  # type: ignore[arg-type]  # pyright: ignore
    assert [(error["loc"], error["type"], error["msg"]) for error in caught.value.errors()] == [
        (
            ("input_schema", "type"),
            "literal_error",
            "Input should be 'object' (`input_schema` is `inputSchema` in JSON)",
        ),
        (("name",), "string_type", "Input should be a valid string"),
        (("meta",), "dict_type", "Input should be a valid dictionary (`meta` is `_meta` in JSON)"),
    ]
    with pytest.raises(ValidationError) as caught:
        mcp.Tool.model_validate_json('{"name": "t"}')
    assert [error["loc"] for error in caught.value.errors()] == [("inputSchema",)]


def test_errors_of_a_user_validator_have_no_field() -> None:
    class Even(mcp.Icon):
        @model_validator(mode="after")
        def check(self) -> Even:
            raise ValueError("odd {src}")

    with pytest.raises(ValidationError, match=r"odd \{src\}"):
        Even(src="data:,")


def test_signatures_have_python_names_and_types_before_and_after_first_use() -> None:
    class Mine(mcp.Tool):
        members: int = 0

    before = str(signature(Mine))
    assert not Mine.__pydantic_complete__
    assert Mine(name="t", input_schema=mcp.ToolInputSchema()).members == 0
    assert Mine.__pydantic_complete__
    assert str(signature(Mine)) == before
    for part in (
        "(*, input_schema: ",
        ".ToolInputSchema, name: str, ",
        "meta: dict[str, ",
        "| None = None",
        "**members_",
    ):
        assert part in before
    assert "inputSchema" not in pydoc.plain(pydoc.render_doc(mcp.Tool)).split("Methods inherited")[0]


def test_a_json_schema_has_the_docstrings_of_fields_of_all_bases() -> None:
    class Mine(mcp.Tool):
        other: int
        """A field of the user."""

    found = Mine.model_json_schema()
    texts = {name: member.get("description") for name, member in found["properties"].items()}
    assert texts["other"] == "A field of the user."
    assert texts["_meta"] == "Metadata for the protocol and for extensions; unknown keys are kept."
    assert None not in texts.values()
    assert "description" in found["$defs"]["Icon"]["properties"]["src"]
    assert "description" in Mine.model_json_schema(by_alias=False)["properties"]["input_schema"]


def test_a_json_schema_without_source_has_no_descriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere(Model):
        name: str
        """Unknown."""

    monkeypatch.setattr(Nowhere, "__module__", "builtins")
    assert "description" not in Nowhere.model_json_schema()["properties"]["name"]


def test_everyday_code_works_at_run_time() -> None:
    made = everyday.main()
    assert len(made) > 20
    for one in made:
        assert type(one).model_validate_json(one.model_dump_json()) == one


def test_deprecated_classes_and_fields_give_no_warning_at_run_time() -> None:
    params: Any = {"messages": [], "maxTokens": 1, "includeContext": "thisServer"}
    read = stateless.CreateMessageRequestParams.model_validate_json(json.dumps(params))
    assert read.include_context == "thisServer"
    assert stateless.CreateMessageRequestParams(messages=[], max_tokens=1).include_context is None
    assert stateless.ClientCapabilities(sampling=stateless.ClientCapabilitiesSampling()).sampling is not None


def test_ids_keep_their_type() -> None:
    ids = TypeAdapter(mcp.RequestId)
    assert ids.validate_json('"1"') == "1"
    assert ids.validate_json("1") == 1
    assert ids.dump_json(ids.validate_json('"1"')) == b'"1"'


def test_plain_dicts_may_stand_for_nested_objects() -> None:
    tool = mcp.Tool.model_validate({"name": "t", "inputSchema": {"type": "object", "x-order": [1, 2]}})
    assert tool.input_schema.model_dump() == {"type": "object", "x-order": [1, 2]}


def test_a_json_schema_is_built_alike_with_declared_and_undeclared_members() -> None:
    members: Any = {"properties": {"a": {"type": "string"}}, "required": ["a"]}
    schemas: list[Any] = [types.ToolInputSchema(**members) for types in (mcp, stateless)]
    assert schemas[0].model_dump() == schemas[1].model_dump()
    assert schemas[1].model_dump() == {"type": "object", **members}
    assert schemas[1].model_extra["required"] == ["a"]
    rest: dict[str, Any] = {"$defs": {"d": True}}
    output = stateless.ToolOutputSchema(type="array", items={"$ref": "#/$defs/d"}, **rest)
    assert output.model_dump() == {"type": "array", "items": {"$ref": "#/$defs/d"}, **rest}


def test_copies_and_pickles_are_equal() -> None:
    tool = mcp.Tool(name="t", input_schema=mcp.ToolInputSchema(properties={"a": {"type": "string"}}))
    assert copy.deepcopy(tool) == tool
    assert pickle.loads(pickle.dumps(tool)) == tool
    assert tool.model_copy(update={"name": "u"}).name == "u"


def test_stateless_results_are_complete_by_default() -> None:
    filled = {"cacheScope": "private", "resultType": "complete", "ttlMs": 0}
    assert stateless.ListToolsResult(tools=[]).model_dump() == {**filled, "tools": []}
    assert stateless.InputRequiredResult().result_type == "input_required"
    with pytest.raises(ValidationError, match="resultType"):
        stateless.ListToolsResult.model_validate_json('{"tools": [], "ttlMs": 0, "cacheScope": "public"}')
