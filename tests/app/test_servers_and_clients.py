"""Base classes of generated contract code: servers of a contract in every revision, and typed clients.

`weather/` contains such code, written by hand. Each message is checked against the schema of its revision.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

import pytest
from pydantic import TypeAdapter, ValidationError

import mcp_bindgen.app as app
from mcp_bindgen import v2024_11_05, v2025_11_25, v2026_07_28
from mcp_bindgen.app import errors
from mcp_bindgen.app import validation as _validation
from mcp_bindgen.runtime import Context as AnyContext
from mcp_bindgen.runtime import Integer, Nullable, serve
from mcp_bindgen.runtime.model.scalars import Constant
from mcp_bindgen.runtime.session.endpoint import lifespans
from mcp_bindgen.runtime.transports.memory import pair
from tests.app.serving import client_of, served
from tests.app.weather import models
from tests.app.weather.base import ForecastContract
from tests.app.weather.everywhere import Content, Context, Prompted, Read, WeatherContract
from tests.harness.checked_connections import (
    STATEFUL,
    STATELESS,
    bindings,
    connected,
    lone,
    played,
    refused,
    request,
    running,
)
from tests.harness.commands import ROOT, SOURCE_ROOTS, execute, python, save
from tests.harness.effort import each
from tests.harness.small_schemas import tangled

EVERY = [*STATEFUL, STATELESS]
ASKING = ["2025-06-18", "2025-11-25", STATELESS]
INVALID_PARAMS, INTERNAL = -32602, -32603
LOGO = bytes(range(256))


class Weather(WeatherContract):
    """Server that implements the whole contract; tests override single results."""

    def __init__(self, forecast: Any = None, said: Any = None) -> None:
        self.forecast, self.said, self.asked = forecast, said, list[models.GetForecastInput]()
        self.events: list[str] = []

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        self.events.append("up")
        yield
        self.events.append("down")

    async def get_forecast(self, arguments: models.GetForecastInput, ctx: Context) -> Any:
        self.asked.append(arguments)
        if self.forecast is not None:
            return self.forecast(ctx)
        if arguments.city == "nowhere":
            raise app.ToolError("there is no such city")
        return models.GetForecastOutput(summary=f"{arguments.city}: snow", temperatures=[-1.5, 2**60] * arguments.days)

    async def say(self, arguments: models.SayInput, ctx: Context) -> Content:
        content: Content = arguments.what if self.said is None else self.said(ctx)
        return content

    async def who(self, arguments: models.WhoInput, ctx: Context) -> Content:
        method = bindings(ctx.revision).methods.METHODS["elicitation/create"]
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = TypeAdapter(method.params).validate_python({"message": "Who?", "requestedSchema": schema})
        answer: Any = await ctx.ask_by("who", method, params)
        return f"It is {answer.content['name']}"

    def slow(self, arguments: models.SlowInput, ctx: Context) -> Content:  # type: ignore[override]
        return "main" if threading.current_thread() is threading.main_thread() else "thread"

    async def prompt_greeting(self, arguments: models.GreetingArguments, ctx: Context) -> Prompted:
        return f"Greet {arguments.name}, {arguments.style or 'as you like'}."

    async def prompt_hello(self, ctx: Context) -> Prompted:
        types = v2025_11_25.types
        return [
            types.PromptMessage(role="user", content=types.TextContent(text="Hello?")),
            types.PromptMessage(role="assistant", content=types.TextContent(text="Hello!")),
        ]

    async def read_readme(self, ctx: Context) -> Read:
        return "# Weather"

    async def read_logo(self, ctx: Context) -> Read:
        return LOGO

    async def read_special(self, ctx: Context) -> Read:
        types = v2025_11_25.types
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri="note://other", text="special")])

    async def read_note(self, arguments: models.NoteVariables, ctx: Context) -> Read:
        if arguments.id == "gone":
            raise app.ResourceNotFound
        return f"note {arguments.id}"

    async def read_deep(self, arguments: models.DeepVariables, ctx: Context) -> Read:
        return f"deep {arguments.path}"

    async def read_find(self, arguments: models.FindVariables, ctx: Context) -> Read:
        return f"{arguments.kind} {arguments.q} {arguments.limit}"


class Answering:
    """Client that answers the server's elicitation."""

    async def on_elicit(self, params: Any, ctx: AnyContext) -> Any:
        assert params.message == "Who?"
        return bindings(ctx.revision).types.ElicitResult(action="accept", content={"name": "Ada"})


def forecast_of(document: Mapping[str, Any], **members: Any) -> Any:
    """Return an object of the small contract (one tool, `get-forecast`) whose catalog is `document`."""
    members = {"catalog": app.Catalog.of(document), **members}
    return type("Other", (Keeping,), members)()


class Keeping(ForecastContract):
    """Implementation of the small contract."""

    async def get_forecast(self, arguments: models.GetForecastInput, ctx: Any) -> Any:
        return models.GetForecastOutput(summary=arguments.city, temperatures=[])


def document() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "tests/app/weather/contract.json").read_text("utf-8"))
    return loaded


# --- lists and capabilities -----------------------------------------------------------------------------------


@pytest.fixture
def client(revision: str) -> Any:
    return served(Weather(), revision)


async def test_lists_return_the_entries_of_the_contract_verbatim(revision: str) -> None:
    async with connected(client_of(revision), Weather()) as connection:
        client = connection.client
        for each in (client.list_tools, client.list_prompts, client.list_resources, client.list_resource_templates):
            await each()
    said = document()
    for member in ("tools", "prompts", "resources", "resourceTemplates"):
        (listed,) = [part["result"] for part in connection.theirs.sent if member in part.get("result", {})]
        assert json.dumps(listed[member]) == json.dumps(said[member])  # numbers too: 1.0 is not 1
        assert ("ttlMs" in listed) == ("cacheScope" in listed) == (revision == STATELESS)


async def test_a_server_declares_the_info_and_capabilities_of_its_contract(revision: str, client: Any) -> None:
    assert client.server_info.model_dump() == {"name": "weather", "version": "2.1"}
    assert client.instructions == "Ask for a city."
    completions = set() if revision == STATEFUL[0] else {"completions"}  # no such capability
    assert set(client.server_capabilities) == {"tools", "prompts", "resources", "logging"} | completions


async def test_a_subclass_overrides_server_info_and_instructions() -> None:
    class Named(Keeping):
        info = {"name": "mine", "version": "3", "title": "Mine"}  # noqa: RUF012
        instructions = ""

    async with served(Named()) as client:
        assert (client.server_info.title, client.instructions) == ("Mine", "")


Mark = Callable[[Callable[..., Any]], Callable[..., Any]]

ONE_PART: list[tuple[str, dict[str, Any], Mark, set[str]]] = [
    ("tools", {"name": "x", "inputSchema": {"type": "object"}}, app.tool("x"), {"tools"}),
    ("prompts", {"name": "x"}, app.prompt("x"), {"prompts"}),
    ("prompts", {"name": "x", "arguments": [{"name": "a", "enum": []}]}, app.prompt("x"), {"prompts", "completions"}),
    ("resources", {"uri": "a:x", "name": "x"}, app.resource("a:x"), {"resources"}),
    ("resourceTemplates", {"uriTemplate": "a:{x}", "name": "x"}, app.template("a:{x}"), {"resources"}),
]


def small_contract(document: dict[str, Any], **members: Any) -> Any:
    """Return a contract of one revision."""
    members = {"catalog": app.Catalog.of(document), "revisions": (v2025_11_25,), **members}
    return type("Small", (app.Contract,), members)()


@pytest.mark.parametrize(("member", "entry", "mark", "offered"), ONE_PART)
async def test_capabilities_cover_only_the_entries_of_the_contract(
    member: str, entry: Any, mark: Mark, offered: set[str]
) -> None:

    def only(self: Any, ctx: Any) -> str:
        return "x"

    async with served(small_contract({member: [entry]}, only=mark(only))) as client:
        assert (set(client.server_capabilities), client.server_info.name) == (offered | {"logging"}, "Small")


async def test_an_empty_list_declares_a_capability_and_a_missing_list_does_not() -> None:
    async with served(small_contract({"tools": [], "resourceTemplates": []})) as client:
        assert set(client.server_capabilities) == {"tools", "resources", "logging"}
        assert ((await client.list_tools()).tools, (await client.list_resources()).resources) == ([], [])
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await refused(client.call_tool("x"))).code == INVALID_PARAMS


async def test_lists_have_one_page_and_refuse_cursors(client: Any) -> None:
    error = await refused(client.list_tools(cursor="2"))
    assert (error.code, error.data[0]["path"]) == (INVALID_PARAMS, "params.cursor")


def test_methods_of_a_class_must_match_its_contract() -> None:
    with pytest.raises(ValueError, match=r"Other\.get_forecast: the contract has no tool 'get-forecast'"):
        forecast_of({"tools": []}).served()
    with pytest.raises(ValueError, match="Other has no method for the tool"):
        forecast_of({**document(), "prompts": [], "resources": [], "resourceTemplates": []}).served()


def test_a_contract_class_with_missing_methods_cannot_be_instantiated() -> None:
    with pytest.raises(TypeError, match="get_forecast"):
        ForecastContract()  # type: ignore[abstract]


# --- tools ----------------------------------------------------------------------------------------------------


async def test_a_tool_is_called_with_typed_arguments(revision: str) -> None:
    weather = Weather()
    async with served(weather, revision) as client:
        result = await client.call_tool("get-forecast", {"city": "Oslo", "unit": None, "days": 1.0})
        wire, forecast = result.model_dump(), app.structured(result, models.GetForecastOutput)
    (arguments,) = weather.asked
    assert (arguments.city, arguments.days, arguments.unit) == ("Oslo", 1, None)
    assert arguments.model_dump() == {"city": "Oslo", "days": 1, "unit": None}
    said = {"summary": "Oslo: snow", "temperatures": [-1.5, 2**60]}
    assert wire["structuredContent"] == json.loads(wire["content"][0]["text"]) == said
    assert "isError" not in wire
    assert (forecast.temperatures, forecast.unit) == ([-1.5, 2**60], "celsius")


async def test_a_tool_error_is_returned_as_an_error_result(client: Any) -> None:
    result = await client.call_tool("get-forecast", {"city": "nowhere"})
    assert (result.is_error, result.content[0].text) == (True, "there is no such city")
    with pytest.raises(app.ToolError, match="there is no such city") as caught:
        app.succeeded(result)
    assert caught.value.result is result


async def test_invalid_arguments_are_refused_with_all_problems(revision: str) -> None:
    weather = Weather()
    weather.argument_errors = "protocol"
    async with served(weather, revision) as client:
        error = await refused(client.call_tool("get-forecast", {"city": "", "days": 99, "unit": "rankine", "more": 1}))
        missing = await refused(client.call_tool("get-forecast"))
        unknown = await refused(client.call_tool("get-" * 100))
    assert error.code == missing.code == unknown.code == INVALID_PARAMS
    assert {one["path"] for one in error.data} == {
        "params.arguments", "params.arguments.city", "params.arguments.days", "params.arguments.unit"
    }  # fmt: skip
    assert "maximum of 14" in str(error.data)
    assert "rankine" not in error.message + str(error.data)
    assert missing.message == "Invalid arguments of get-forecast: arguments: 'city' is missing"
    assert unknown.message.startswith("Unknown tool: get-get-")
    assert len(unknown.message) < 150
    assert weather.asked == []


@each(("said", "told"), [(None, EVERY[3:]), ("result", EVERY), ("protocol", [])])
async def test_revision_and_option_decide_if_argument_errors_are_results(
    said: Literal["result", "protocol"] | None, told: list[str], revision: str
) -> None:
    weather = Weather()
    weather.argument_errors = said
    async with served(weather, revision) as client:
        call = client.call_tool("get-forecast", {"city": 1})
        if revision not in told:
            assert (await refused(call)).code == INVALID_PARAMS
            return
        result = await call
    assert result.is_error
    assert "arguments.city: wanted string, got" in str(result.content)


async def test_the_schema_validates_constraints_that_the_model_omits() -> None:
    tool = {
        "name": "get-forecast",
        "inputSchema": {"type": "object", "not": {"required": ["days"]}},
        "outputSchema": {"type": "object", "properties": {"summary": {"pattern": "^[a-z]+$"}}},
    }
    async with served(forecast_of({"tools": [tool]}, argument_errors="protocol")) as client:
        call = client.call_tool
        assert app.structured(await call("get-forecast", {"city": "oslo"}), models.GetForecastOutput).summary == "oslo"
        assert (await refused(call("get-forecast", {"city": "oslo", "days": 1}))).code == INVALID_PARAMS
        assert (await call("get-forecast", {"city": "Oslo"})).is_error
        assert (await refused(call("get-forecast", {"town": "oslo"}))).data[0]["path"] == "params.arguments.city"


@pytest.mark.full
async def test_a_tool_may_return_a_string_blocks_or_a_whole_result(revision: str) -> None:
    types = bindings(revision).types
    forms: list[Any] = [
        "words",
        [types.TextContent(text="words")],
        (types.TextContent(text="words"),),
        types.CallToolResult(content=[types.TextContent(text="words")]),
        v2024_11_05.types.CallToolResult(content=[v2024_11_05.types.TextContent(text="words")]),
        v2026_07_28.types.CallToolResult(content=[v2026_07_28.types.TextContent(text="words")]),
    ]
    for form in forms:
        async with served(Weather(said=lambda ctx, form=form: form), revision) as client:
            result = await client.call_tool("say", {"what": "?"})
            assert type(result) is types.CallToolResult
            assert [block.text for block in result.content] == ["words"]


@pytest.mark.parametrize("said", [7, {"a": 1}, {1}, [None]], ids=repr)
async def test_an_invalid_return_value_gives_an_error_result_and_is_logged(
    said: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(Weather(said=lambda ctx: said)) as client:
        result: Any = await client.call_tool("say", {"what": "?"})
    assert result.is_error
    assert result.content[0].text.startswith("say failed: ")
    assert "the tool 'say' failed" in caplog.text


async def test_content_that_an_old_revision_does_not_know_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    audio = Weather(said=lambda ctx: [v2025_11_25.types.AudioContent(data="", mime_type="audio/wav")])
    async with served(audio) as client:
        await client.call_tool("say", {"what": "?"})
    assert not caplog.records
    async with served(audio, "2024-11-05") as client:
        assert (await client.call_tool("say", {"what": "?"})).is_error
    assert "InvalidResult: mcp_bindgen.v2024_11_05.types" in caplog.text


def wrong_result(ctx: Context, content: list[str], **wire: Any) -> Any:
    types = bindings(ctx.revision).types
    blocks = [{"type": "text", "text": text} for text in content]
    return types.CallToolResult.model_validate({"content": blocks, "resultType": "complete", **wire})


@pytest.mark.parametrize("revision", [STATEFUL[0], STATEFUL[-1], STATELESS])
@pytest.mark.parametrize(
    "wrong",
    [
        lambda ctx: models.GetForecastOutput(summary="x" * 81, temperatures=[]),
        lambda ctx: {"summary": "a dict", "temperatures": []},
        lambda ctx: "cold",
        lambda ctx: None,
        lambda ctx: wrong_result(ctx, ["cold"]),
        lambda ctx: wrong_result(ctx, [], structuredContent={"summary": 1}),
    ],
)
async def test_structured_content_must_match_the_contract(
    revision: str, wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(Weather(forecast=wrong), revision) as client:
        result = await client.call_tool("get-forecast", {"city": "Oslo"})
    assert result.is_error
    assert getattr(result, "structured_content", None) is None
    assert result.content[0].text.startswith("get-forecast failed: the tool 'get-forecast' returned ")
    assert "InvalidResult: the tool 'get-forecast'" in caplog.text


@each(
    "wire",
    [
        {"content": [], "structuredContent": {"summary": "s", "temperatures": [1]}, "_meta": {"x": None}},
        {"content": [{"type": "text", "text": "no"}], "isError": True},
    ],
)
async def test_a_whole_result_with_structured_content_or_an_error_is_passed_on(wire: Any, revision: str) -> None:
    whole = bindings(revision).types.CallToolResult.model_validate({"resultType": "complete", **wire})
    async with served(Weather(forecast=lambda ctx: whole), revision) as client:
        told = (await client.call_tool("get-forecast", {"city": "Oslo"})).model_dump()
    told.get("_meta", {}).pop("io.modelcontextprotocol/serverInfo", None)
    assert {name: told[name] for name in wire} == wire


async def test_synchronous_methods_run_in_a_thread(client: Any) -> None:
    assert (await client.call_tool("slow")).content[0].text == "thread"


@pytest.mark.parametrize("revision", ASKING)
async def test_a_tool_sends_an_elicitation_in_stateful_and_stateless_revisions(revision: str) -> None:
    async with served(Weather(), revision, Answering) as client:
        result = await client.call_tool("who", {})
    assert result.content[0].text == "It is Ada"


# --- hostile arguments and schemas ------------------------------------------------------------------------------


def problems(schema: Any, value: Any) -> list[dict[str, str]]:
    return _validation.Validator(schema, "the schema").problems(value, "params")


def test_the_number_of_reported_problems_is_limited() -> None:
    found = problems({"items": {"type": "string"}}, list(range(100)))
    assert len(found) == _validation.MAX_PROBLEMS + 1
    assert found[-1] == {"path": "params", "problem": "there is more"}
    assert len(problems({"items": {"type": "string"}}, list(range(10)))) == 10


@each(
    ("schema", "value"),
    [
        ({"items": {"type": "string"}}, [0] * 500_000),
        ({"additionalProperties": False}, {f"{'k' * 500}{number}": 1 for number in range(100)}),
        ({"additionalProperties": {"type": "string"}}, {"k" * 10_000: 1}),
        ({"properties": {"a": {"maxLength": 2}}}, {"a": "secret" * 1000}),
        ({"pattern": "^(a+)+$"}, "a" * 10_000 + "!"),
        ({"uniqueItems": True}, [["x"]] * 10_000),
        ({"enum": ["v" * 1000] * 10}, "secret"),
    ],
)
def test_large_invalid_arguments_give_short_problem_reports(schema: Any, value: Any) -> None:
    text = json.dumps(problems(schema, value))
    assert text != "[]"
    assert len(text) < 600
    assert "secret" not in text


@each("keyword", ["anyOf", "oneOf", "allOf"])
@each("below", ["", "not", "items"])
def test_a_schema_with_exponential_validation_cost_is_refused(keyword: str, below: str) -> None:
    too_complex = "the schema is too complex: a value can take more than 100000 steps"
    with pytest.raises(errors.InvalidResult, match=too_complex):
        problems(tangled(30, {"type": "string"}, keyword, below=below), {"x": 1})
    assert problems(tangled(12, {"type": "string"}, "allOf", below=below), {}) == []
    small = tangled(5, {"type": "string"}, keyword, below=below)
    with pytest.raises(errors.InvalidResult, match="more than 10 steps"):
        _validation.Validator(small, "the schema", most_steps=10).problems({"x": 1}, "params")


@pytest.mark.full
@pytest.mark.parametrize(
    ("items", "value"),
    [
        ({"allOf": [{"minimum": 0}] * 30_000}, [1] * 100_000),
        ({"enum": [{"a": number} for number in range(50_000)]}, [{"a": 49_999}] * 20_000),
    ],
)
def test_a_value_that_needs_too_many_validation_steps_is_refused(items: Any, value: Any) -> None:
    schema = {"items": items}
    assert problems(schema, value[:100]) == []
    (problem,) = problems(schema, value)
    assert problem["problem"] == "is too large for the schema: validation would take too many steps"


def test_a_pattern_that_exceeds_the_step_limit_does_not_match() -> None:
    schema = {"pattern": r"^(a|a)*(b)\2$"}
    assert problems(schema, "aabb") == []
    began = time.process_time()
    assert problems({"items": {"anyOf": [schema, {"minLength": 61}]}}, ["a" * 60] * 1000)
    assert time.process_time() - began < 10  # takes 24 s without our step limit
    assert problems({"pattern": r"^(?=.*[a-z])(?=.*\d)(?=.*[!?]).{8,}$"}, "a" * 1000 + "1!") == []


def test_an_ordinary_schema_accepts_a_large_value() -> None:
    fields = {f"f{number}": {"anyOf": [{"type": "integer"}, {"type": "null"}]} for number in range(200)}
    schema = {"items": {"properties": fields, "additionalProperties": False}}
    assert problems(schema, [dict.fromkeys(fields, 1)] * 2000) == []


@pytest.mark.parametrize("reference", ["#/$defs/Node", "#node", "#dynamic", "https://example.com/node"])
def test_a_deep_value_of_a_recursive_schema_is_refused_without_a_location(reference: str) -> None:
    """The validator rejects the value at once, but would try 2**40 combinations to locate the problem."""
    keyword = "$dynamicRef" if reference == "#dynamic" else "$ref"
    below: Any = {"type": "object", "properties": {"x": {keyword: reference}}}
    node = {"anyOf": [{**below, "maxProperties": most} for most in (8, 9)]}
    names = {"$id": "https://example.com/node", "$anchor": "node"} if "#/" not in reference else {}
    names |= {"$dynamicAnchor": "dynamic"} if reference == "#dynamic" else {}
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": {**node, **names}}}
    value: Any = 1
    for _ in range(40):
        value = {"x": value}
    assert problems(schema, {"x": {"x": {}}}) == []
    (problem,) = problems(schema, value)
    assert problem == {"path": "params", "problem": "does not fit the schema; it is too large to locate the problem"}


def test_validation_of_deeply_nested_arguments_does_not_crash() -> None:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    problems({"items": {"$ref": "#"}}, value)


@pytest.mark.parametrize(
    ("schema", "value", "path", "said"),
    [
        ({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}]}, "long", "params", "longer than 1"),
        ({"properties": {"a": {"anyOf": [{"type": "object", "required": ["x"]}, {"type": "null"}]}}}, {"a": {}},
         "params.a", "'x' is missing"),
        ({"oneOf": [{"properties": {"k": {"const": "a"}, "n": {"type": "integer"}}},
                    {"properties": {"k": {"const": "b"}}, "required": ["k"]}]}, {"k": "a", "n": "1"},
         "params.n", "wanted "),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "params", "wanted string or null"),
    ],
)  # fmt: skip
def test_problems_in_a_union_refer_to_the_closest_alternative(schema: Any, value: Any, path: str, said: str) -> None:
    (problem,) = problems(schema, value)
    assert problem["path"] == path
    assert said in problem["problem"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema.json"},
        {"properties": {"a": {"$ref": "file:///etc/hostname"}}},
        {"$id": "https://example.com/a", "$ref": "b"},
        {"$schema": "https://example.com/dialect"},
        {"type": "nothing"},
        {"pattern": "["},
    ],
)
async def test_an_unusable_schema_gives_an_error_result_without_network_access(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def connect(*arguments: Any, **named: Any) -> None:
        raise AssertionError("the network is used")

    monkeypatch.setattr("socket.socket.connect", connect)
    monkeypatch.setattr("socket.getaddrinfo", connect)
    tool = {"name": "get-forecast", "inputSchema": {"type": "object", **schema} if "type" not in schema else schema}
    async with played(forecast_of({"tools": [tool]})) as (client, _):
        await client.introduce("2025-11-25")
        answer = await client.ask(request(1, "tools/call", {"name": "get-forecast", "arguments": {"city": "x"}}))
    assert answer["result"]["isError"] is True
    assert "the inputSchema of 'get-forecast' is not a usable schema" in caplog.text


def test_local_references_and_old_dialects_work() -> None:
    recursive = {"$defs": {"t": {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"}
    assert problems(recursive, {"t": {"t": {}}}) == []
    assert problems(recursive, {"t": {"t": 1}})[0]["path"] == "params.t.t"
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}], "format": "email"}
    assert problems(draft, [1]) == []
    assert problems(draft, ["1"]) != []
    assert problems({"format": "date"}, "tomorrow") == []


# --- prompts ----------------------------------------------------------------------------------------------------


async def test_prompts_are_rendered_and_their_arguments_validated(client: Any) -> None:
    get = client.get_prompt
    greeting = await get("greeting", {"name": "Ada", "style": "formal"})
    assert greeting.description == "A greeting."
    assert [(one.role, one.content.text) for one in greeting.messages] == [("user", "Greet Ada, formal.")]
    assert (await get("greeting", {"name": "Ada"})).messages[0].content.text == "Greet Ada, as you like."
    assert [one.role for one in (await get("hello")).messages] == ["user", "assistant"]
    missing = await refused(get("greeting"))
    assert (missing.code, missing.data[0]["path"]) == (INVALID_PARAMS, "params.arguments.name")
    other = await refused(get("greeting", {"name": "Ada", "style": "secret"}))
    assert other.data[0]["path"] == "params.arguments.style"
    assert "secret" not in other.message
    assert (await refused(get("farewell"))).code == INVALID_PARAMS


# --- resources --------------------------------------------------------------------------------------------------


async def test_resources_and_templates_are_read(client: Any) -> None:
    async def read(uri: str) -> dict[str, Any]:
        (contents,) = (await client.read_resource(uri)).contents
        wire: dict[str, Any] = contents.model_dump()
        return wire

    assert await read("file:///readme") == {
        "uri": "file:///readme", "mimeType": "text/markdown", "text": "# Weather"
    }  # fmt: skip
    logo = await read("file:///logo")
    assert (logo["mimeType"], b64decode(logo["blob"])) == ("image/png", LOGO)
    assert await read("note://special") == {"uri": "note://other", "text": "special"}
    assert await read("note://a%20b") == {"uri": "note://a%20b", "mimeType": "text/plain", "text": "note a b"}
    assert (await read("note://a/b"))["text"] == "deep a/b"
    assert (await read("find://city?limit=5&q=os"))["text"] == "city os 5"
    assert (await read("find://country"))["text"] == "country None None"


@pytest.mark.full
@pytest.mark.parametrize("uri", ["file:///other", "note://gone", "note://", "find://planet", "note:///%FF", "", "%"])
async def test_a_missing_resource_gives_a_not_found_error(revision: str, client: Any, uri: str) -> None:
    error = await refused(client.read_resource(uri))
    assert error.code == (INVALID_PARAMS if revision == STATELESS else -32002)
    assert (error.message, error.data) == ("Resource not found", {"uri": uri})


# --- completion -------------------------------------------------------------------------------------------------


async def test_arguments_are_completed_from_enums(revision: str) -> None:
    types = bindings(revision).types
    template = getattr(types, "ResourceTemplateReference", getattr(types, "ResourceReference", None))
    assert template is not None
    prompt, find = types.PromptReference(name="greeting"), template(uri="find://{kind}{?q,limit}")
    async with served(Weather(), revision) as client:

        async def complete(ref: Any, name: str, value: str) -> Any:
            return (await client.complete(ref, types.CompleteRequestParamsArgument(name=name, value=value))).completion

        found = await complete(prompt, "style", "f")
        assert (found.values, found.total, found.has_more) == (["formal", "friendly", "Frosty"], 3, False)
        assert (await complete(prompt, "style", "FR")).values == ["friendly", "Frosty"]
        assert (await complete(prompt, "name", "")).values == []
        assert (await complete(find, "kind", "co")).values == ["country"]
        assert (await complete(find, "q", "")).values == []
        for ref, name in [(prompt, "other"), (types.PromptReference(name="none"), "style"), (template(uri="x"), "y")]:
            assert (await refused(complete(ref, name, ""))).code == INVALID_PARAMS


async def test_a_custom_completion_returns_at_most_100_values() -> None:
    class Knowing(Weather):
        async def complete(self, asked: app.Completion, ctx: AnyContext) -> Sequence[str]:
            if asked.argument == "style":
                return await super().complete(asked, ctx)
            return [f"{asked.of} {asked.name} {asked.value} {asked.known} {number}" for number in range(150)]

    types = v2025_11_25.types
    argument = types.CompleteRequestParamsArgument(name="name", value="A")
    known = types.CompleteRequestParamsContext(arguments={"style": "formal"})
    ref = types.PromptReference(name="greeting")
    async with served(Knowing()) as client:
        completion = (await client.complete(ref, argument, context=known)).completion
        assert completion.values[0] == "prompt greeting A {'style': 'formal'} 0"
        assert (len(completion.values), completion.total, completion.has_more) == (100, 150, True)
        argument = types.CompleteRequestParamsArgument(name="style", value="fo")
        assert (await client.complete(ref, argument)).completion.values == ["formal"]


# --- servers ----------------------------------------------------------------------------------------------------


async def test_the_lifespan_is_entered_once_for_all_revisions() -> None:
    weather = Weather()
    served = weather.served()
    assert [one.name for one in served.revisions()] == EVERY
    for _ in range(2):
        async with lifespans([served]):
            assert weather.events == ["up"]
        assert weather.events == ["up", "down"]
        weather.events.clear()


async def test_a_failure_reaches_the_lifespan() -> None:
    class Minding(Keeping):
        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            with pytest.raises(KeyError):
                yield
            raise LookupError("seen")

    with pytest.raises(LookupError, match="seen"):
        async with lifespans([Minding()]):
            raise KeyError


async def test_one_connection_serves_stateful_and_stateless_requests() -> None:
    async with played(Weather()) as (client, _):
        params = {"name": "get-forecast", "arguments": {"city": "Oslo"}}
        modern = await client.ask(lone(1, "tools/call", **params))
        assert modern["result"]["resultType"] == "complete"
        await client.introduce("2024-11-05")
        old = await client.ask(request(2, "tools/call", params))
        assert "resultType" not in old["result"]
        assert old["result"]["structuredContent"] == modern["result"]["structuredContent"]


def test_heavy_libraries_are_imported_only_when_needed(tmp_path: Path) -> None:
    heavy = ("jsonschema_rs", "uritemplate", "pydantic", "anyio")
    show = f"import sys; print([name for name in {heavy} if name in sys.modules])"
    assert python(f"from mcp_bindgen import app; {show}", tmp_path) == "[]\n"
    client = "from mcp_bindgen.app import ContractClient, arguments, structured, Model"
    assert python(f"{client}; {show}", tmp_path) == "['pydantic', 'anyio']\n"


def test_no_export_is_named_like_a_module() -> None:
    assert {path.stem for path in Path(app.__file__).parent.glob("*.py")} & set(vars(app)["__all__"]) == set()


def test_a_catalog_can_be_in_an_archive(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("weather/contract.json", '{"tools": [{"name": "zipped"}]}')
    assert list(app.Catalog.beside(str(tmp_path / "app.zip" / "weather" / "base.py")).entries("tool")) == ["zipped"]


@pytest.mark.parametrize("text", ["[]", "{", ""])
def test_a_catalog_that_is_no_json_object_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "contract.json").write_text(text)
    with pytest.raises(ValueError, match=r"contract\.json is not JSON|is not a JSON object"):
        _ = app.Catalog.beside(str(tmp_path / "base.py")).entries("tool")


# --- models -----------------------------------------------------------------------------------------------------


class Point(app.Model):
    """Model with every kind of default."""

    x_y: Integer
    kind: str = "point"
    size: Integer = 3
    note: str | None = None
    label: Nullable[str] = None
    inner: Point | None = None


@pytest.mark.parametrize(
    "wire",
    [
        {"xY": 1},
        {"xY": 1, "kind": "point", "size": 3},
        {"xY": 1, "label": None},
        {"xY": 1, "size": 4, "more": [None, 1.0]},
        {"xY": 1, "inner": {"xY": 2}},
    ],
)
def test_models_read_and_write_without_loss(wire: Any) -> None:
    point = Point.model_validate_json(json.dumps(wire))
    assert (point.model_dump(), point.kind, point.size) == (wire, wire.get("kind", "point"), wire.get("size", 3))


class Circle(app.Model):
    """Object with a required constant."""

    kind: Constant[Literal["circle"]] = "circle"
    filled: Constant[Literal[True]] = True
    dashed: Literal[True] = True
    centre: Point | None = None


def test_the_default_of_an_absent_field_is_not_serialized() -> None:
    point = Point(x_y=1)
    assert (point.kind, point.size, point.model_dump()) == ("point", 3, {"xY": 1})
    assert point == Point.model_validate_json('{"xY": 1}')
    assert repr(point) == "Point(x_y=1)"
    assert Point(x_y=1, label=None, size=5).model_dump() == {"xY": 1, "size": 5, "label": None}
    assert Point(x_y=1, size=3).model_dump() == {"xY": 1, "size": 3}
    assert repr(Point(x_y=1, size=3)) == "Point(x_y=1, size=3)"
    point.size = 3
    assert point.model_dump() == {"xY": 1, "size": 3}


def test_a_required_constant_is_filled_in_and_required_in_input() -> None:
    circle = Circle(centre=Point(x_y=1))
    assert circle.model_dump() == {"kind": "circle", "filled": True, "centre": {"xY": 1}}
    assert (circle.dashed, repr(circle)) == (True, "Circle(centre=Point(x_y=1))")
    assert Circle(dashed=True).model_dump() == {"kind": "circle", "filled": True, "dashed": True}
    with pytest.raises(ValidationError, match="kind"):
        Circle.model_validate_json('{"filled": true}')


# --- typed clients ----------------------------------------------------------------------------------------------


class WeatherClient(app.ContractClient[v2025_11_25.Client]):
    """Typed client, in the form of generated code."""

    async def get_forecast(
        self, city: str, *, days: int | None = None, unit: str | app.Absent | None = app.ABSENT
    ) -> models.GetForecastOutput:
        """Return the forecast."""
        wire = app.arguments({"city": city, "days": days, "unit": unit}, nullable={"unit"})
        return app.structured(await self.client.call_tool("get-forecast", wire), models.GetForecastOutput)

    async def say(self, what: str) -> Sequence[v2025_11_25.types.ContentBlock]:
        """Return the given content."""
        return app.succeeded(await self.client.call_tool("say", app.arguments({"what": what}))).content

    async def prompt_greeting(self, name: str, *, style: str | None = None) -> v2025_11_25.types.GetPromptResult:
        """Return a greeting."""
        return await self.client.get_prompt("greeting", app.texts({"name": name, "style": style}))

    async def read_note(self, id: str) -> v2025_11_25.types.ReadResourceResult:
        """Return a note."""
        return await self.client.read_resource(app.UriTemplate("note://{id}").expand({"id": id}))


class OwnClient(WeatherClient):
    """Client class of a user of the generated code."""


async def test_a_typed_client_calls_tools_prompts_and_resources() -> None:
    weather = Weather()
    left, right = pair()
    async with running(serve(right, weather)), OwnClient.connect(left) as client:
        assert type(client) is OwnClient
        assert type(client.client) is v2025_11_25.Client
        forecast = await client.get_forecast("Oslo")
        assert (forecast.summary, forecast.unit) == ("Oslo: snow", "celsius")
        await client.get_forecast("Oslo", days=1, unit=None)
        assert [one.model_fields_set for one in weather.asked] == [{"city"}, {"city", "days", "unit"}]
        await refused(client.get_forecast("nowhere"), app.ToolError, "no such city")
        await refused(client.get_forecast("Oslo", days=99), app.ToolError, "maximum of 14")
        (block,) = await client.say("hi")
        assert isinstance(block, v2025_11_25.types.TextContent)
        assert "formal" in str(await client.prompt_greeting("Ada", style="formal"))
        assert "note a/b c" in str(await client.read_note("a/b c"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1.0, float("-inf")]])
def test_nan_and_infinity_in_arguments_are_refused_in_one_line(value: object) -> None:
    with pytest.raises(ValueError, match=r"^the argument 'b' contains NaN or an infinity, which JSON lacks$"):
        app.arguments({"a": 1.5, "b": value})


def test_absent_arguments_are_omitted() -> None:
    point = Point(x_y=1, inner=Point(x_y=2))
    given = app.arguments(
        {"a": None, "b": app.ABSENT, "c": None, "d": point, "e": [point], "f": 0, "g": ""}, nullable={"b", "c"}
    )
    wire = {"xY": 1, "inner": {"xY": 2}}
    assert given == {"c": None, "d": wire, "e": [wire], "f": 0, "g": ""}
    assert (app.texts({"a": "x", "b": None, "c": ""}), repr(app.ABSENT)) == ({"a": "x", "c": ""}, "ABSENT")


def test_missing_or_invalid_structured_content_is_refused(revision: str) -> None:
    types = bindings(revision).types

    def result(**wire: Any) -> Any:
        return types.CallToolResult.model_validate({"content": [], "resultType": "complete", **wire})

    good = result(structuredContent={"summary": "s", "temperatures": []})
    assert app.structured(good, models.GetForecastOutput).summary == "s"
    assert app.structured(good, dict[str, Any] | int) == {"summary": "s", "temperatures": []}
    with pytest.raises(app.UnexpectedResult, match="no structured content"):
        app.structured(result(), models.GetForecastOutput)
    with pytest.raises(app.UnexpectedResult, match=r"structuredContent\.summary"):
        app.structured(result(structuredContent={"summary": 1, "temperatures": []}), models.GetForecastOutput)
    with pytest.raises(app.ToolError, match="without an error message"):
        app.structured(result(isError=True), models.GetForecastOutput)


# --- other clients ----------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_the_official_client_is_served() -> None:
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "tests.app.weather"], cwd=ROOT, env={**os.environ}
    )
    async with Client(stdio_client(server)) as client:
        (tool,) = (await client.list_tools()).tools
        assert tool.output_schema == document()["tools"][0]["outputSchema"]
        result = await client.call_tool("get-forecast", {"city": "Oslo", "days": 2})
        assert result.structured_content == {"summary": "snow", "temperatures": [-3, -3]}
        assert (await client.call_tool("get-forecast", {"city": "Rome"})).is_error
        await refused(client.call_tool("forecast", {}), MCPError, "Unknown tool: forecast; did you mean 'get-forecast'")
        told = await client.call_tool("get-forecast", {"city": "Oslo", "days": 0})
        assert "Invalid arguments of get-forecast" in str(told.content)


SNIPPET = """
from typing import TypeAlias, assert_type

from mcp_bindgen import app
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Client, types
from tests.app.weather import models
from tests.app.weather.base import Context, ForecastContract


class Good(ForecastContract):
    async def get_forecast(self, arguments: models.GetForecastInput, ctx: Context) -> models.GetForecastOutput:
        return models.GetForecastOutput(summary=arguments.city, temperatures=[])


class Missing(ForecastContract):
    pass


class OtherArguments(ForecastContract):
    async def get_forecast(self, arguments: models.SayInput, ctx: Context) -> models.GetForecastOutput:  # error
        return models.GetForecastOutput(summary=arguments.what, temperatures=[])


class OtherResult(ForecastContract):
    async def get_forecast(self, arguments: models.GetForecastInput, ctx: Context) -> str:  # error
        return "text"


class Wrong(ForecastContract):
    async def get_forecast(self, arguments: models.GetForecastInput, ctx: Context) -> models.GetForecastOutput:
        return arguments.city  # error


class Typed(app.ContractClient[Client]):
    async def look(self) -> models.GetForecastOutput:
        result = app.succeeded(await self.client.call_tool("x", app.arguments({"a": 1}, nullable={"a"})))
        assert_type(result, types.CallToolResult)
        return app.structured(result, models.GetForecastOutput)


Alias: TypeAlias = list[int] | str


async def use() -> Alias:
    async with Typed.connect("command") as client:
        assert_type(client, Typed)
        assert_type(await client.look(), models.GetForecastOutput)
        result: Alias = app.structured(await client.client.call_tool("x"), Alias)
        return result


run(Good())
Missing()  # error
"""


@pytest.mark.full
def test_pyright_reports_code_that_violates_the_contract(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPET, "utf-8")
    sources = [os.path.relpath(ROOT / name, tmp_path) for name in (*SOURCE_ROOTS, ".")]
    save(
        tmp_path / "pyrightconfig.json",
        {"include": ["snippet.py"], "extraPaths": sources, "typeCheckingMode": "strict"},
    )
    options = ["--outputjson", "--pythonpath", sys.executable, "--project", tmp_path]
    reports = json.loads(execute(sys.executable, "-m", "pyright", *options).stdout)["generalDiagnostics"]
    found = {report["range"]["start"]["line"] for report in reports}
    expected = {number for number, line in enumerate(SNIPPET.splitlines()) if "# error" in line}
    assert found == expected, reports
    assert {"reportAbstractUsage", "reportIncompatibleMethodOverride"} <= {report["rule"] for report in reports}
