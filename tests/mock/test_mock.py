"""Mock servers of contracts, and the helpers for tests of agents."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen import v2024_11_05, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.contract.samples import samples
from mcp_bindgen.mock import Mock, MockServer, arguments, results
from mcp_bindgen.spec import BadInput
from mcp_bindgen.testing import connected
from tests.harness.checked_connections import refused
from tests.harness.commands import COMMAND, complaint, inside, save
from tests.harness.contract_strategies import inputs
from tests.harness.effort import examples

EVERY_REVISION = pytest.mark.parametrize("package", [v2024_11_05, v2025_06_18, v2025_11_25, v2026_07_28])

ANY: dict[str, Any] = {"type": "object"}
FOUND = {"titles": {"type": "array", "items": {"type": "string"}}, "count": {"type": "integer"}}
CONTRACT: dict[str, Any] = {
    "serverInfo": {"name": "shop", "version": "2"},
    "instructions": "Buy.",
    "revision": "2025-11-25",
    "tools": [
        {
            "name": "find",
            "inputSchema": {**ANY, "properties": {"words": {"type": "string"}}, "required": ["words"]},
            "outputSchema": {**ANY, "properties": FOUND, "required": ["titles"]},
        },
        {"name": "buy", "inputSchema": ANY, "x-mcp-scopes": ["buy"]},
        {"name": "slow", "inputSchema": ANY, "execution": {"taskSupport": "required"}},
        {"name": "odd", "inputSchema": ANY, "outputSchema": {**ANY, "required": ["a"], "properties": {"a": False}}},
    ],
    "prompts": [
        {"name": "plan", "arguments": [{"name": "day", "required": True, "enum": ["mon", "tue"]}, {"name": "who"}]}
    ],
    "resources": [
        {"uri": "shop://logo", "name": "logo", "mimeType": "image/png"},
        {"uri": "shop://list", "name": "list", "mimeType": "application/json"},
        {"uri": "shop://page", "name": "<page>", "mimeType": "text/html"},
        {"uri": "shop://sound", "name": "sound", "mimeType": "audio/wav"},
        {"uri": "shop://text", "name": "text"},
    ],
    "resourceTemplates": [{"uriTemplate": "shop://books/{id}", "name": "book", "mimeType": "image/svg+xml"}],
}


def whole(structured: Any, *content: Any) -> dict[str, Any]:
    """Return a whole result of a tool."""
    return {"content": list(content), "structuredContent": structured}


def mock(answers: dict[str, Any] | None = None, seed: int = 0, **changes: Any) -> Mock:
    return MockServer({**CONTRACT, **changes}, answers, seed).app


def client_of(app: Mock) -> AbstractAsyncContextManager[Any]:
    return connected(v2025_11_25.Client(), app)


@pytest.fixture
def client() -> AbstractAsyncContextManager[Any]:
    return client_of(mock())


@EVERY_REVISION
async def test_a_mock_answers_for_every_contract_entry_in_every_revision(package: Any) -> None:
    async with connected(package.Client(), mock()) as client:
        assert client.server_info.name == "shop"
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"find", "buy"}
        found = await client.call_tool("find", {"words": "emma"})
        assert not found.is_error
        assert "titles" in found.content[0].text
        said = await client.call_tool("buy", {"x": 1})
        assert said.content[0].text == "Sample result of buy(x=1)"
        assert not (await client.call_tool("slow", {})).is_error
        prompt = await client.get_prompt("plan", {"day": "mon"})
        assert "day: mon" in prompt.messages[0].content.text
        contents = [(await client.read_resource(one.uri)).contents[0] async for one in client.iter_resources()]
        assert contents[0].mime_type == "image/png"
        assert contents[0].blob.startswith("iVBOR")
        assert '"shop://list"' in contents[1].text
        assert "&lt;" not in contents[1].text
        assert "<!doctype html>" in contents[2].text
        assert contents[3].blob
        assert contents[4].text == "Sample content of shop://text"
        book = (await client.read_resource("shop://books/7")).contents[0]
        assert (book.mime_type, "shop://books/7" in book.text) == ("image/svg+xml", True)
        await refused(client.read_resource("shop://nothing"))


async def test_completions_come_from_enums_or_samples(client: Any) -> None:
    types = v2025_11_25.types
    for ref, name, typed, wanted in (
        (types.PromptReference(name="plan"), "day", "t", ["tue"]),
        (types.PromptReference(name="plan"), "who", "", ["who-1", "who-2", "who-3"]),
        (types.ResourceTemplateReference(uri="shop://books/{id}"), "id", "id-2", ["id-2"]),
    ):
        argument = types.CompleteRequestParamsArgument(name=name, value=typed)
        assert (await client.complete(ref, argument)).completion.values == wanted


async def test_invalid_arguments_get_the_error_messages_of_an_app(client: Any) -> None:
    wrong = await client.call_tool("find", {"words": 1})
    assert wrong.is_error
    assert "arguments.words: wanted string" in wrong.content[0].text
    await refused(client.get_prompt("plan", {}), match="day")
    await refused(client.get_prompt("plan", {"day": "sun"}), match="day")


async def test_a_call_of_a_tool_without_a_sample_result_is_an_error(client: Any) -> None:
    failed = await client.call_tool("odd", {})
    assert failed.is_error
    assert "no sample value fits the outputSchema of odd" in failed.content[0].text


@pytest.mark.full
async def test_results_depend_on_seed_name_and_arguments_alone() -> None:
    async def told(app: Mock, words: str) -> str:
        async with client_of(app) as client:
            return str((await client.call_tool("find", {"words": words})).structured_content)

    first, again = [[await told(mock(seed=seed), "a") for seed in range(9)] for _ in range(2)]
    assert first == again
    assert len(set(first)) > 1
    assert len({await told(mock(), word) for word in "abcdefghi"}) > 1


async def test_fixed_answers_replace_samples() -> None:
    fixed = {
        "find": [
            {"arguments": {"words": "none"}, "error": "nothing found"},
            {"arguments": {"words": "busy"}, "error": {"code": -32050, "message": "busy", "data": [1]}},
            {"arguments": {"words": "own"}, "result": whole({"titles": []})},
            {"result": {"titles": ["Emma"]}},
        ],
        "buy": [{"result": "bought"}],
    }
    app = mock(fixed)
    async with client_of(app) as client:
        none = await client.call_tool("find", {"words": "none"})
        assert (none.is_error, none.content[0].text) == (True, "nothing found")
        error = await refused(client.call_tool("find", {"words": "busy"}), match="busy")
        assert (error.code, error.data) == (-32050, [1])
        assert (await client.call_tool("find", {"words": "own"})).content == []
        assert (await client.call_tool("find", {"words": "any"})).structured_content == {"titles": ["Emma"]}
        assert (await client.call_tool("buy", {})).content[0].text == "bought"
    assert [name for name, _ in app.calls] == ["find", "find", "find", "find", "buy"]


async def test_a_whole_result_may_be_a_failed_call() -> None:
    text = [{"type": "text", "text": "closed"}]
    fixed = {
        "find": [
            {"arguments": {"words": "all"}, "result": {"content": text, "isError": True}},
            {"arguments": {"words": "some"}, "result": whole({"hint": 1}, *text) | {"isError": True}},
            {"arguments": {"words": "fine"}, "result": whole({"titles": []}, *text) | {"isError": False}},
        ],
        "buy": [{"result": {"content": text, "isError": True}}],
    }
    async with client_of(mock(fixed)) as client:
        for name, words, is_error, structured in (
            ("find", "all", True, None),
            ("find", "some", True, {"hint": 1}),
            ("find", "fine", False, {"titles": []}),
            ("buy", "", True, None),
        ):
            found = await client.call_tool(name, {"words": words})
            assert (bool(found.is_error), found.content[0].text) == (is_error, "closed"), words
            assert found.structured_content == structured, words


async def test_a_list_of_content_is_structured_if_the_output_schema_has_it() -> None:
    lines = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    schema = {**ANY, "properties": {"content": lines, "isError": {"type": "boolean"}}, "required": ["content"]}
    tool = {"name": "read", "inputSchema": ANY, "outputSchema": schema}
    answers = {"read": [{"arguments": {"n": 1}, "result": {"content": ["one"]}}]}
    async with client_of(mock(answers, tools=[tool])) as client:
        for given_number, is_fixed in ((1, True), (1.0, True), (True, False)):
            read = await client.call_tool("read", {"n": given_number})
            assert isinstance(read.structured_content["content"][0], str)
            assert (read.structured_content == {"content": ["one"]}) is is_fixed


@pytest.mark.parametrize(
    ("answers", "pointer", "problem"),
    [
        ([], "", "answers are an object"),
        ({"fnd": []}, "/fnd", "the contract has no tool 'fnd'"),
        ({"find": {}}, "/find", "the answers of a tool are a list"),
        ({"find": [{"result": {"titles": []}, "error": "x"}]}, "/find/0", "a result or an error"),
        ({"find": [{"reslt": 1, "error": "x"}]}, "/find/0", "unknown member 'reslt'"),
        ({"find": [{"error": 1}]}, "/find/0/error", "this is not an error"),
        ({"find": [{"arguments": {"words": 1}, "error": ""}]}, "/find/0/arguments/words", "does not fit the contract"),
        ({"find": [{"result": {"titles": [1]}}]}, "/find/0/result/titles/0", "does not fit the contract"),
        ({"find": [{"result": whole({"titles": [1]})}]}, "/find/0/result/structuredContent/titles/0", "does not fit"),
        ({"find": [{"result": {"content": [], "isError": False}}]}, "/find/0/result", "'titles' is missing"),
        ({"find": [{"result": {"content": [], "isError": "yes"}}]}, "/find/0/result", "'titles' is missing"),
        ({"find": [{"result": {"content": [1], "isError": True}}]}, "/find/0/result", "tools/call is not valid"),
        (
            {"find": [{"result": whole({}) | {"isError": False}}]},
            "/find/0/result/structuredContent",
            "'titles' is missing",
        ),
        ({"find": [{"result": whole({}, "oops")}]}, "/find/0/result", "tools/call is not valid: result.content.0"),
        ({"buy": [{"result": {"content": [{"type": "text"}]}}]}, "/buy/0/result", "text: "),
    ],
)
def test_bad_answers_are_reported_in_one_line(answers: Any, pointer: str, problem: str, tmp_path: Path) -> None:
    contract, file = save(tmp_path / "shop.json", CONTRACT), save(tmp_path / "answers.json", answers)
    said = complaint("mock", contract, "--answers", file)
    assert f"{file}#{pointer}: " in said
    assert problem in said


def test_bad_input_is_reported_in_one_line(tmp_path: Path) -> None:
    contract = save(tmp_path / "shop.json", CONTRACT)
    for words, reason in (
        ([contract, "other"], "unexpected argument 'other'"),
        ([tmp_path / "none.json"], "cannot be read"),
        ([save(tmp_path / "next.json", {**CONTRACT, "revision": "2031-01-01"})], "2031-01-01"),
    ):
        assert reason in complaint("mock", *words)


@pytest.mark.full
def test_the_mock_command_exports_the_contract_of_a_server_file(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(
        "from mcp_bindgen.app import App\napp = App('notes')\n@app.tool\ndef add(title: str) -> int:\n    return 7\n"
    )
    done = inside("call", f"{COMMAND} mock {tmp_path / 'notes.py'}", "tools/call", "add", '{"title": "a"}', code=0)
    assert "result" in done.stdout


# --- helpers for tests ---------------------------------------------------------------------------------------


@pytest.mark.full
async def test_a_mock_server_returns_equal_results_over_http_and_as_a_command() -> None:
    with MockServer(CONTRACT, {"buy": [{"result": "bought"}]}, seed=3) as server:
        told = []
        for target in (server.url, server.command, server.app):
            opened: AbstractAsyncContextManager[Any] = v2025_11_25.Client.connect(target)
            async with opened as client:
                told.append((await client.call_tool("find", {"words": "a"})).structured_content)
                assert (await client.call_tool("buy", {})).content[0].text == "bought"
    assert told[0] == told[1] == told[2]
    assert server.calls == [("find", {"words": "a"}), ("buy", {})] * 2


@pytest.mark.full
@settings(max_examples=examples(5, 25))
@given(st.data())
def test_drawn_values_are_valid(data: st.DataObject) -> None:
    """Of random schemas, judged by the validator alone."""
    schema = data.draw(inputs())
    document = {"tools": [{"name": "t", "inputSchema": schema, "outputSchema": schema}]}
    try:
        contract = contract_of(document)
    except BadInput:
        return
    judge = jsonschema_rs.validator_for(schema, validate_formats=False)
    assert all(judge.is_valid(value) for value in samples(schema))
    if samples(schema):
        assert judge.is_valid(data.draw(arguments(contract, "t")))
        assert judge.is_valid(data.draw(results(contract, "t")))


LIMITED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "m": {"type": "integer", "multipleOf": 5, "minimum": -7, "maximum": 7},
        "s": {"type": "string", "minLength": 2.0, "maxLength": 3},
        "a": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2.0},
        "e": {"enum": ["x", None, 1]},
        "t": {"$ref": "Time"},
    },
    "required": ["n", "m", "s", "t"],
    "$defs": {
        "Time": {"$id": "Time", "type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
    },
    "additionalProperties": False,
}


@settings(max_examples=examples(10, 50))
@given(arguments({"tools": [{"name": "t", "inputSchema": LIMITED}]}, "t"))
def test_limits_of_the_schema_are_met(value: Any) -> None:
    assert jsonschema_rs.validator_for(LIMITED).is_valid(value)


def test_numbers_beyond_a_double_have_sample_values() -> None:
    limits: list[dict[str, Any]] = [
        {"minimum": 10**400},
        {"maximum": -(10**400)},
        {"maximum": 1.7976931348623157e308},
        {"minimum": 10**22, "multipleOf": 7},
        {"minimum": 10**400, "multipleOf": 7},
    ]
    properties = {str(number): {"type": "integer", **limit} for number, limit in enumerate(limits)}
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    arguments({"tools": [{"name": "t", "inputSchema": schema}]}, "t").validate()


def test_unknown_tools_and_missing_schemas_are_reported() -> None:
    with pytest.raises(ValueError, match="no tool 'fid'; did you mean find"):
        arguments(CONTRACT, "fid")
    with pytest.raises(ValueError, match="has no outputSchema"):
        results(CONTRACT, "buy")
    with pytest.raises(ValueError, match="no valid value was found for the outputSchema of 'odd'"):
        results(CONTRACT, "odd")
