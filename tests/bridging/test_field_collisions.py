"""Drop colliding fields that have no meaning in the sender's revision, and only those."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest

from mcp_bindgen.bridging.converter import drop_collisions, read_without_collisions
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.protocol import jsonrpc
from tests.harness.checked_connections import bindings

TOOLS: dict[str, Any] = {"tools": [{"name": "a", "title": "A"}, {"name": "b", "title": 5, "inputSchema": {"title": 6}}]}


@pytest.mark.parametrize(
    "location",
    [
        ("tools", 1, "title"),
        ("tools", 1, "title", "str"),
        ("function-wrap", "tools", 1, "Tool", "title"),
        ("tools", "list[Tool]", 1, "title", "inner"),
    ],
)
def test_a_colliding_field_at_an_error_location_is_dropped(location: tuple[str | int, ...]) -> None:
    value = copy.deepcopy(TOOLS)
    assert drop_collisions(value, [location], {"title"}) == ["title"]
    assert value == {"tools": [{"name": "a", "title": "A"}, {"name": "b", "inputSchema": {"title": 6}}]}


def test_a_union_tag_in_a_location_is_not_taken_for_a_field() -> None:
    value = {"content": [{"type": "text", "text": "a", "_meta": {"text": 1}, "icons": 5}]}
    assert drop_collisions(value, [("content", 0, "text", "icons")], {"icons"}) == ["icons"]
    assert value == {"content": [{"type": "text", "text": "a", "_meta": {"text": 1}}]}


def test_a_location_without_a_colliding_field_drops_all_collisions_below_it() -> None:
    value = copy.deepcopy(TOOLS)
    assert drop_collisions(value, [("tools", 1)], {"title"}) == ["title", "title"]
    assert value == {"tools": [{"name": "a", "title": "A"}, {"name": "b", "inputSchema": {}}]}


@pytest.mark.parametrize("location", [(), ("tools", 7, "title"), ("tools", -1), ("nothing",)])
def test_fields_without_a_collision_are_kept(location: tuple[str | int, ...]) -> None:
    value = copy.deepcopy(TOOLS)
    assert (drop_collisions(value, [location], {"icons"}), value) == ([], TOOLS)


def test_a_long_ambiguous_location_takes_no_exponential_time() -> None:
    value: Any = {"a": {}}
    for _ in range(150):
        value = {"a": value, "b": 1}
    assert drop_collisions(value, [("a", "x") * 150], {"b"}) == []


def test_locations_of_colliding_fields_take_precedence() -> None:
    value = copy.deepcopy(TOOLS)
    assert drop_collisions(value, [("tools", 0), ("tools", 1, "title"), ("tools", 1, "title", "str")], {"title"}) == [
        "title"
    ]
    assert value["tools"][0]["title"] == "A"


def listed(count: int) -> dict[str, Any]:
    """Return a list of tools; every second tool has colliding fields without meaning in the sender's revision."""
    schema = {"type": "object", "title": 5}
    clash = {"title": 5, "icons": [{"src": 6}, {"src": "x"}], "own": 7}
    return {
        "tools": [
            {"name": f"t{number}", "inputSchema": schema, **(clash if number % 2 else {"title": "fits"})}
            for number in range(count)
        ],
        "title": "fits, too",
    }


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_only_colliding_fields_are_dropped_when_a_payload_is_read(revision: str) -> None:
    read = partial(jsonrpc.typed_result, bindings(revision).methods.METHODS["tools/list"])
    result = read_without_collisions(read, listed(4), frozenset({"title", "icons"}))
    assert [(tool.title, tool.icons) for tool in result.tools] == [("fits", None), (None, None)] * 2
    assert result.tools[1].model_extra == {"own": 7}
    assert [tool.input_schema.model_extra["title"] for tool in result.tools] == [5] * 4
    assert result.model_extra == {"title": "fits, too"}
    with pytest.raises(ProtocolError, match=r"tools\.1\.icons\.0\.src"):
        read_without_collisions(read, listed(4), frozenset({"title"}))
    with pytest.raises(ProtocolError, match=r"tools\.0\.inputSchema"):
        read_without_collisions(read, {"tools": [{"name": 5, "title": 6}]}, frozenset({"title"}))


def test_a_payload_with_many_collisions_is_read_in_at_most_three_passes() -> None:
    readings, method = 0, bindings("2025-11-25").methods.METHODS["tools/list"]

    def read(wire: Any) -> Any:
        nonlocal readings
        readings += 1
        return jsonrpc.typed_result(method, wire)

    result = read_without_collisions(read, listed(2000), frozenset({"title", "icons"}))
    assert [tool.title for tool in result.tools] == ["fits", None] * 1000
    assert readings <= 3
