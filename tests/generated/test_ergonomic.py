"""Everyday use of generated models: construction, reading and errors."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import types as stateless


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
