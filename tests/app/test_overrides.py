"""Other names, texts and arguments for tools of mounted apps and of servers behind proxies."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen import v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.app import (
    App,
    BadOverride,
    Call,
    Context,
    Next,
    Result,
    ToolOverride,
    proxy,
    read_overrides,
)
from mcp_bindgen.app.overrides import OverriddenTool
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.testing import connected
from tests.harness.checked_connections import refused
from tests.harness.effort import each

Json = dict[str, Any]

SEARCH = {
    "name": "find",
    "title": "Find",
    "description": "Find books.",
    "arguments": {
        "words": {"name": "query", "description": "Words of the title."},
        "lang": {"default": "en", "hide": True},
        "limit": {"default": 3},
    },
}


@pytest.fixture(params=[v2025_06_18, v2025_11_25, v2026_07_28])
def package(request: pytest.FixtureRequest) -> Any:
    return request.param


def books(calls: list[Any] | None = None) -> App:
    """Return an app whose middleware notes calls."""
    app = App("books")

    @app.middleware
    async def audit(call: Call, next: Next) -> Result:
        if calls is not None:
            calls.append((call.name, dict(call.arguments)))
        return await next(call)

    @app.tool
    def search(words: str, lang: str, ctx: Context, limit: int = 10) -> str:
        """Search.

        Args:
            words: The words.
            limit: Maximum.
        """
        assert ctx.call.name == "search"
        return f"{words} {lang} {limit}"

    @app.tool
    def drop(title: str) -> str:
        """Drop a book."""
        return f"dropped {title}"

    return app


async def text_of(client: Any, tool: str, **arguments: Any) -> str:
    return str((await client.call_tool(tool, arguments)).content[0].text)


async def tools_of(client: Any) -> dict[str, Json]:
    return {tool["name"]: tool for tool in [one.model_dump() async for one in client.iter_tools()]}


def shelf() -> str:
    """Name a shelf."""
    return "shelf"


def mounted(part: App) -> App:
    shop = App("shop")
    shop.mount(part, "x", tools={"search": SEARCH, "drop": ToolOverride(hide=True)})
    return shop


def mounted_proxy(part: App) -> App:
    shop = App("shop")
    shop.mount(proxy(part, tools={"search": SEARCH, "drop": {"hide": True}}), "x")
    return shop


@each("made", [mounted, mounted_proxy])
async def test_a_changed_tool_is_listed_and_called_by_its_new_names(made: Any) -> None:
    calls, seen = list[Any](), list[Any]()
    shop: App = made(books(calls))

    @shop.middleware
    async def outer(call: Call, next: Next) -> Result:
        seen.append((call.name, dict(call.arguments)))
        return await next(call)

    for package in (v2025_06_18, v2026_07_28):
        async with connected(package.Client(), shop) as client:
            (tool,) = (await tools_of(client)).values()
            assert (tool["name"], tool["title"], tool["description"]) == ("x_find", "Find", "Find books.")
            assert tool["inputSchema"] == {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words of the title."},
                    "limit": {"type": "integer", "description": "Maximum.", "default": 3},
                },
                "required": ["query"],
                "additionalProperties": False,
            }
            assert await text_of(client, "x_find", query="Emma") == "Emma en 3"
            assert await text_of(client, "x_find", query="Emma", limit=5) == "Emma en 5"
            for unknown in ("x_search", "x_drop", "search"):
                await refused(client.call_tool(unknown, {"words": "x", "lang": "de"}), ProtocolError, "Unknown tool")
    assert seen[:2] == [("x_find", {"query": "Emma"}), ("x_find", {"query": "Emma", "limit": 5})]
    assert calls[:2] == [
        ("search", {"words": "Emma", "lang": "en", "limit": 3}),
        ("search", {"words": "Emma", "lang": "en", "limit": 5}),
    ]


@each("made", [mounted, mounted_proxy])
async def test_errors_of_arguments_speak_of_the_new_names(made: Any) -> None:
    async with connected(v2026_07_28.Client(), made(books())) as client:
        pairs: list[tuple[Json, str]] = [
            ({}, "Invalid arguments of x_find: arguments: 'query' is missing"),
            ({"query": 1}, "arguments.query: wanted string, got integer"),
            ({"query": "x", "lang": "de"}, "'lang' is unknown"),
            ({"words": "x"}, "'words' is unknown"),
            ({"query": "x", "limit": "3"}, "arguments.limit: wanted integer, got string"),
        ]
        for arguments, problem in pairs:
            result: Any = await client.call_tool("x_find", arguments)
            assert result.is_error
            assert problem in result.content[0].text


async def test_searches_find_the_new_names_alone() -> None:
    shop = App("shop", tool_search=True)
    shop.mount(books(), "x", tools={"search": SEARCH, "drop": {"hide": True}})
    async with connected(v2025_11_25.Client(), shop) as client:
        words = {"words": "find search drop books query"}
        found: Any = (await client.call_tool("search_tools", words)).structured_content
        assert [tool["name"] for tool in found["tools"]] == ["x_find"]
        inner = {"name": "x_find", "arguments": {"query": "Emma"}}
        assert await text_of(client, "call_tool", **inner) == "Emma en 3"
        hidden = {"name": "x_drop", "arguments": {"title": "x"}}
        await refused(client.call_tool("call_tool", hidden), ProtocolError, "Unknown tool: x_drop")


async def test_changes_hold_for_tools_that_come_later_and_renaming_goes_on() -> None:
    part, shop = App("part", dynamic=["tools"]), App("shop", dynamic=["tools"])

    def find(word: str) -> str:
        return word

    shop.mount(
        part, "p", tools={"find": {"name": "seek", "arguments": {"word": {"name": "w"}}}, "gone": {"hide": True}}
    )
    shop.rename_tools({"p_seek": "look"})
    async with connected(v2025_11_25.Client(), shop) as client:
        assert await tools_of(client) == {}
        part.add_tool(find)
        part.add_tool(find, name="gone")
        part.add_tool(find, name="kept")
        assert [*await tools_of(client)] == ["look", "p_kept"]
        assert await text_of(client, "look", w="found") == "found"
        part.remove_tool("gone")
        part.remove_tool("find")
        assert [*await tools_of(client)] == ["p_kept"]


async def test_names_can_be_swapped() -> None:
    shop = App("shop")
    shop.mount(books(), tools={"search": {"name": "drop"}, "drop": {"name": "search"}})
    async with connected(v2025_11_25.Client(), shop) as client:
        assert await text_of(client, "search", title="Emma") == "dropped Emma"
        assert await text_of(client, "drop", words="Emma", lang="de") == "Emma de 10"


# --- mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ({"search": {"hidden": True}}, "/search/hidden: Extra inputs are not permitted"),
        (
            {"search": {"arguments": {"a/b": {"hide": "yes"}}}},
            "/search/arguments/a~1b/hide: Input should be a valid",
        ),
        ({"search": {"name": "drop"}}, "/search/name: the server has a tool 'drop', too"),
        (
            {"search": {"name": "x"}, "drop": {"name": "x"}},
            "/search/name: another tool is named 'x'; choose another",
        ),
        ({"search": {"arguments": {"word": {"name": "w"}}}}, "no such argument; did you mean 'words'?"),
        (
            {"search": {"arguments": {"words": {"hide": True}}}},
            "/search/arguments/words/hide: the argument is",
        ),
        (
            {"search": {"arguments": {"words": {"name": "lang"}}}},
            "/search/arguments/lang/name: another argument is",
        ),
        ({"search": {"arguments": {"limit": {"default": "x"}}}}, "/search/arguments/limit/default: wanted integer"),
    ],
)
def test_a_change_that_cannot_be_made_is_an_error_with_its_pointer(tools: Any, problem: str) -> None:
    with pytest.raises(BadOverride) as caught:
        App("shop").mount(books(), tools=tools)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ({"serch": {"hide": True}}, "/serch: the server has no such tool; did you mean 'search'?"),
        ({"search": {"name": "drop"}}, "/search/name: the server has a tool 'drop', too"),
        ({"drop": {"name": "search"}}, "/drop/name: the server has a tool 'search', too"),
        ({"search": {"arguments": {"word": {"hide": True}}}}, "/search/arguments/word: the tool has no such argument"),
    ],
)
async def test_a_change_that_does_not_fit_the_server_of_a_proxy_is_an_error_at_start(tools: Any, problem: str) -> None:
    with pytest.raises(BadOverride) as caught:
        async with connected(v2025_11_25.Client(), proxy(books(), "books", tools=tools)):
            pass
    assert problem in str(caught.value)


def test_a_change_is_for_the_tool_of_one_app() -> None:
    shop = App("shop")
    shop.mount(books(), tools={"search": {"name": "find"}, "drop": {"hide": True}})
    shop.mount(books())
    assert [tool["name"] for tool in shop.document["tools"]] == ["find", "search", "drop"]
    with pytest.raises(ValueError, match="the tool 'find' exists already"):
        shop.tool(name="find")(shelf)


async def test_a_change_for_a_missing_tool_of_an_app_is_an_error_at_the_start() -> None:
    shop = App("shop")
    shop.mount(books(), "x", tools={"serch": {"hide": True}})
    with pytest.raises(BadOverride, match="/serch: the server has no such tool; did you mean 'search'"):
        async with connected(v2025_11_25.Client(), shop):
            pass


# --- schemas --------------------------------------------------------------------------------------------------

POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}


def changed(schema: Json, **arguments: Json) -> OverriddenTool:
    override = read_overrides({"t": {"arguments": arguments}})["t"]
    return OverriddenTool({"name": "t", "inputSchema": {"type": "object", **schema}}, override)


def test_references_to_arguments_keep_their_meaning() -> None:
    schema = {
        "properties": {
            "start": POINT,
            "end": {"$ref": "#/properties/start"},
            "width": {"$ref": "#/properties/start/properties/x"},
            "within": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
            "named": {"$ref": "#/$defs/Name"},
        },
        "required": ["start"],
        "$defs": {"Name": {"type": "string"}, "original": {}},
    }
    tool = changed(schema, start={"hide": True, "default": {"x": 1}}, end={"name": "to"}, named={"name": "start"})
    validator = jsonschema_rs.validator_for(tool.entry["inputSchema"])
    assert tool.arguments({"to": {"x": 2}, "start": "me"}, "t") == {"start": {"x": 1}, "end": {"x": 2}, "named": "me"}
    for value, is_valid in [
        ({}, True),
        ({"to": {"x": 1}, "width": 2, "within": {"start": {"x": 1}, "end": {"x": 2}}}, True),
        ({"within": {"to": 1, "start": {"x": 1}}}, True),  # inside, the names are those of the server
        ({"within": {"start": "me"}}, False),
        ({"within": {}}, False),
        ({"to": {}}, False),
        ({"width": "2"}, False),
        ({"start": {"x": 1}}, False),
    ]:
        assert validator.is_valid(value) == is_valid, value


@pytest.mark.parametrize(
    "more",
    [
        {"allOf": [{"required": ["a"]}]},
        {"dependentRequired": {"a": ["b"]}},
        {"minProperties": 1},
        {"patternProperties": {"^a": {}}},
        {"$ref": "#/$defs/Arguments"},
        {"$defs": {"x": {"$dynamicRef": "#b"}}},
        {"unevaluatedProperties": False},
    ],
)
def test_arguments_that_may_depend_on_each_other_are_not_changed(more: Json) -> None:
    schema = {"properties": {"a": {"type": "string"}}, **more}
    with pytest.raises(BadOverride, match="/t/arguments: arguments may depend on each other"):
        changed(schema, a={"name": "b"})
    described = changed(schema, a={"description": "A."})
    assert described.entry["inputSchema"]["properties"] == {"a": {"type": "string", "description": "A."}}
    assert not described.middlewares


def test_an_open_schema_lets_neither_hidden_nor_former_names_pass() -> None:
    tool = changed({"properties": {"a": {}, "b": True}}, a={"hide": True, "default": None}, b={"name": "c"})
    assert tool.entry["inputSchema"] == {"type": "object", "properties": {"c": True}}
    assert tool.arguments({"c": 1, "more": 2}, "t") == {"a": None, "b": 1, "more": 2}
    for name in ("a", "b"):
        with pytest.raises(ProtocolError, match=f"'{name}' is unknown"):
            tool.arguments({name: 1}, "t")


def test_a_default_is_not_shared_by_calls() -> None:
    tool = changed({"properties": {"a": {"type": "array"}}}, a={"hide": True, "default": []})
    tool.arguments({}, "t")["a"].append(1)
    assert tool.arguments({}, "t") == {"a": []}


NAMES = st.sampled_from("abcd")
PARTS = st.sampled_from([{"type": "integer"}, {"type": "string"}, True, {"enum": [1, "x"]}])
GIVEN = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "new_a", "new_b", "e"]), st.sampled_from([1, "x", None]))


@st.composite
def schemas(draw: st.DrawFn) -> Json:
    """Return schemas of independent arguments, some of them required."""
    properties = draw(st.dictionaries(NAMES, PARTS, min_size=1))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": draw(st.booleans()),
    }


@given(st.data(), schemas(), GIVEN)
def test_exactly_valid_arguments_become_valid_arguments_of_the_server(data: Any, schema: Json, stated: Json) -> None:
    edits: Json = {}
    for name in data.draw(st.lists(st.sampled_from(sorted(schema["properties"])), unique=True)):
        changes = [{"name": f"new_{name}"}, {"hide": True, "default": 1}, {"default": 1}]
        edits[name] = data.draw(st.sampled_from(changes))
    before = jsonschema_rs.validator_for(schema)
    optional = jsonschema_rs.validator_for({**schema, "required": []})
    if not all(optional.is_valid({name: 1}) for name, one in edits.items() if "default" in one):
        with pytest.raises(BadOverride, match="wanted string"):
            changed(schema, **edits)
        return
    tool = changed(schema, **edits)
    gone = {name for name, one in edits.items() if "name" in one or "hide" in one}
    is_valid = jsonschema_rs.validator_for(tool.entry["inputSchema"]).is_valid(stated) and gone.isdisjoint(stated)
    if edits and not is_valid:
        with pytest.raises(ProtocolError, match="Invalid arguments of t"):
            tool.arguments(stated, "t")
        return
    passed = tool.arguments(stated, "t")
    former = {one["name"]: name for name, one in edits.items() if "name" in one}
    defaults = {name: 1 for name, one in edits.items() if "default" in one}
    assert passed == {**defaults, **{former.get(name, name): value for name, value in stated.items()}}
    assert before.is_valid(passed) or not edits
