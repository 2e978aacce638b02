"""Servers of annotated functions in every revision; each message is checked against the schema of its revision."""

from __future__ import annotations

import asyncio
import enum
import json
import math
import re
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any, Literal
from uuid import UUID

import anyio
import jsonschema_rs
import pytest
from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, RootModel, TypeAdapter
from typing_extensions import TypedDict

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.app import App, BadFunction, Completion, Context, ResourceNotFound, Stored, ToolError
from mcp_bindgen.runtime import NotAnswered, ProtocolError
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.request_scope import LEVELS
from mcp_bindgen.runtime.session.endpoint import all_servers, lifespans
from tests.app.serving import client_of, served
from tests.harness.checked_connections import STATEFUL, STATELESS, bindings, connected, refused, until
from tests.harness.effort import each

EVERY = [*STATEFUL, STATELESS]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Note(BaseModel):
    """A note."""

    id: int
    text: str = ""


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict):
    name: str


async def failure(client: Any, name: str, **arguments: Any) -> str:
    """Return the error text that a model gets from a failed tool."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    (block,) = result.content
    return str(block.text)


class Tagged(BaseModel):
    tags: set[int | bool] = Field(alias="theTags")


class Rows(RootModel[dict[bool, str]]): ...


class Chosen(BaseModel):
    rows: dict[float, str] = Field(validation_alias=AliasChoices("theRows", "rows"))


def split(value: Any) -> Any:
    return value.split(",") if isinstance(value, str) else value


Split = Annotated[set[float], BeforeValidator(split, json_schema_input_type=str | list[float])]


def small() -> App:
    """Return an app with tools, resources and prompts."""
    app = App("small", version="2", title="Small", instructions="Ask.")

    @app.tool
    async def add(text: str, id: int = 7, colour: Colour = Colour.RED) -> Note:
        """Add a note.

        Args:
            text: What it says.
        """
        return Note(id=id, text=f"{text} {colour.name}")

    @app.tool(name="all-notes", title="All", annotations={"readOnlyHint": True}, meta={"acme.org/x": 1})
    def all_notes(notes: list[Note], ctx: Context) -> list[Note]:
        assert ctx.revision
        assert threading.current_thread() is not threading.main_thread()
        return notes

    @app.tool
    async def move(to: Point, near: Named | None = None) -> Point:
        return Point(to.x + 1, len(near["name"]) if near else 0)

    @app.tool
    async def silent(what: Annotated[str, Field(max_length=3)]) -> None: ...

    @app.tool
    async def anything(what: Any) -> Any:
        return what

    @app.tool
    async def fail(how: Literal["told", "not", "long"]) -> str:
        if how == "told":
            raise ToolError("as told")
        raise KeyError("x\ny" if how == "not" else "x" * 1000)

    @app.resource("note://{id}", mime_type="text/plain")
    async def note(id: int) -> str:
        """Read a note."""
        if id > 9:
            raise ResourceNotFound
        return f"note {id}"

    @app.resource("note://all")
    async def everything() -> list[Note]:
        return [Note(id=1)]

    @app.resource("logo://small")
    async def logo() -> bytes:
        return b"\x00\xff"

    @app.prompt
    async def greet(name: str, style: Literal["short", "long"] = "short", times: int = 1) -> str:
        """Greet somebody.

        Args:
            name: Whom.
        """
        return f"{style} hello to {name}, {times} times"

    @app.prompt(title="Talk")
    def talk() -> list[str]:
        return ["a", "b"]

    @app.completion("greet", "name")
    async def names(asked: Completion) -> Sequence[str]:
        return [name for name in ("Ada", "Alan") if name.startswith(asked.value)]

    @app.completion("note://{id}", "id")
    def ids(asked: Completion) -> list[str]:
        return ["1", "2"]

    return app


@pytest.fixture
def client(revision: str) -> Any:
    return served(small(), revision)


# --- entries built from function signatures -------------------------------------------------------------------


def test_log_levels_are_completed_by_severity() -> None:
    app = App("levels")

    @app.prompt
    def explain(level: v2025_11_25.types.LoggingLevel) -> str:
        return level

    assert app.document["prompts"][0]["arguments"] == [{"name": "level", "required": True, "enum": [*LEVELS]}]


@pytest.mark.full
async def test_functions_are_listed_with_their_schemas_and_descriptions(client: Any) -> None:
    tools = {tool["name"]: tool for tool in [one.model_dump() async for one in client.iter_tools()]}
    prompts = [one.model_dump() async for one in client.iter_prompts()]
    resources = [one.model_dump() async for one in client.iter_resources()]
    templates = [one.model_dump() async for one in client.iter_resource_templates()]
    assert (client.server_info.name, client.server_info.version, client.instructions) == ("small", "2", "Ask.")
    assert list(tools) == ["add", "all-notes", "move", "silent", "anything", "fail"]
    assert tools["add"] == {
        "name": "add",
        "description": "Add a note.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What it says."},
                "id": {"type": "integer", "default": 7},
                "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            },
            "required": ["text"],
            "additionalProperties": False,
            "$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}},
        },
        "outputSchema": {
            "type": "object",
            "title": "Note",
            "description": "A note.",
            "properties": {"id": {"type": "integer"}, "text": {"type": "string", "default": ""}},
            "required": ["id"],
        },
    }
    assert tools["all-notes"]["annotations"] == {"readOnlyHint": True}
    assert (tools["all-notes"]["title"], tools["all-notes"]["_meta"]) == ("All", {"acme.org/x": 1})
    assert [one["name"] for one in prompts] == ["greet", "talk"]
    assert prompts[0]["arguments"] == [
        {"name": "name", "description": "Whom.", "required": True},
        {"name": "style", "enum": ["short", "long"]},
        {"name": "times"},
    ]
    assert resources == [
        {"uri": "note://all", "name": "everything", "mimeType": "application/json"},
        {"uri": "logo://small", "name": "logo"},
    ]
    assert templates == [
        {"uriTemplate": "note://{id}", "name": "note", "description": "Read a note.", "mimeType": "text/plain"}
    ]


@pytest.mark.full
async def test_annotations_define_arguments_and_results_of_tools(client: Any) -> None:
    async def called(name: str, **arguments: Any) -> Any:
        result = (await client.call_tool(name, arguments)).model_dump()
        assert "isError" not in result
        if "structuredContent" in result:
            (block,) = result["content"]
            assert json.loads(block["text"]) == result["structuredContent"]
            return result["structuredContent"]
        return [block["text"] for block in result["content"]]

    assert await called("add", text="a", colour="blue") == {"id": 7, "text": "a BLUE"}
    assert await called("all-notes", notes=[{"id": 1}]) == {"result": [{"id": 1, "text": ""}]}
    assert await called("move", to={"x": 1}, near={"name": "abc"}) == {"x": 2, "y": 3}
    assert await called("silent", what="abc") == []
    assert await called("anything", what={"a": [1, None]}) == ['{"a":[1,null]}']
    assert await called("anything", what="x") == ['"x"']


@pytest.mark.full
async def test_functions_serve_resources_prompts_and_completions(client: Any) -> None:
    async def read(uri: str) -> dict[str, Any]:
        (content,) = (await client.read_resource(uri)).model_dump()["contents"]
        return dict(content)

    assert await read("note://3") == {"uri": "note://3", "mimeType": "text/plain", "text": "note 3"}
    everything = {"uri": "note://all", "mimeType": "application/json", "text": '[{"id":1,"text":""}]'}
    assert await read("note://all") == everything
    assert await read("logo://small") == {"uri": "logo://small", "blob": "AP8="}
    for uri in ("note://10", "note://x", "other://1"):
        await refused(client.read_resource(uri), ProtocolError, "Resource not found")

    greeting = await client.get_prompt("greet", {"name": "Ada", "times": "3"})
    assert greeting.model_dump()["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "short hello to Ada, 3 times"}}
    ]
    assert [message.content.text for message in (await client.get_prompt("talk")).messages] == ["a", "b"]
    with pytest.raises(ProtocolError, match=r"Invalid arguments of greet: arguments\.style"):
        await client.get_prompt("greet", {"name": "Ada", "style": "wide"})

    async def completed(ref: dict[str, str], name: str, value: str) -> list[str]:
        found: list[str] = (await client.complete(ref, {"name": name, "value": value})).completion.values
        return found

    prompt, template = {"type": "ref/prompt", "name": "greet"}, {"type": "ref/resource", "uri": "note://{id}"}
    assert (await completed(prompt, "name", "A"), await completed(prompt, "style", "l")) == (["Ada", "Alan"], ["long"])
    assert await completed(template, "id", "") == ["1", "2"]


async def test_arguments_are_validated_against_the_schema(revision: str, client: Any) -> None:
    for name, arguments, problem in (
        ("add", {}, "'text' is missing"),
        ("add", {"text": "a", "id": "7"}, "arguments.id"),
        ("all-notes", {"notes": [{"id": 1}, {"text": "no id"}]}, "arguments.notes.1"),
        ("silent", {"what": "long"}, "arguments.what"),
        ("fail", {"how": "never"}, "arguments.how"),
    ):
        if bindings(revision).REVISION.argument_errors_in_results:
            said = await failure(client, name, **arguments)
        else:
            said = (await refused(client.call_tool(name, arguments))).message
        assert said.startswith(f"Invalid arguments of {name}: ")
        assert problem in said


class Span(BaseModel):
    low: float = -math.inf
    marks: list[float] = [math.nan]


@dataclass
class Reach:
    most: float = math.inf


async def test_a_default_that_json_lacks_is_not_listed_and_reaches_the_function() -> None:
    app = App("limits")

    @app.tool
    def limit(
        most: float = math.inf,
        sizes: tuple[float, ...] = (1.0, math.nan),
        span: Span = Span(),  # noqa: B008
        reach: Reach = Reach(),  # noqa: B008
        name: str = "\ud800",
    ) -> Span:
        assert (most, span.low, reach.most, name) == (math.inf, -math.inf, math.inf, "\ud800")
        return Span(low=len(sizes), marks=[])

    @app.prompt
    def ask(most: float = math.inf) -> str:
        return f"{most}"

    async with served(app) as client:
        (listed,) = (await client.list_tools()).tools
        assert "default" not in json.dumps(listed.model_dump())
        assert (await client.call_tool("limit")).structured_content == {"low": 2, "marks": []}
        assert [one.name for one in (await client.list_prompts()).prompts] == ["ask"]


class Size(enum.Enum):
    ANY = math.inf


@each(
    ("kind", "hint", "options", "member"),
    [
        ("tool", Size, {}, "inputSchema"),
        ("tool", Annotated[float, Field(examples=[math.nan])], {}, "inputSchema"),
        ("tool", list[Annotated[int, Field(json_schema_extra={"default": math.inf})]], {}, "inputSchema"),
        ("tool", str, {"title": "\udfff"}, "title"),
        ("tool", str, {"output_schema": {"minimum": -math.inf}}, "outputSchema"),
        ("tool", str, {"annotations": {"cost": math.nan}}, "annotations"),
        ("prompt", Annotated[str, Field(description="\ud800")], {}, "arguments"),
        ("prompt", str, {"meta": {"a": [math.inf]}}, "_meta"),
        ("resource", str, {"annotations": {"priority": math.nan}}, "annotations"),
    ],
)
def test_an_entry_that_json_lacks_is_refused_at_import(
    kind: str, hint: Any, options: dict[str, Any], member: str
) -> None:
    app = App("limits")

    def one(x: Any) -> str:
        return ""

    one.__annotations__["x"] = hint
    add: Any = {"tool": app.add_tool, "prompt": app.add_prompt, "resource": partial(app.add_resource, "x://{x}")}[kind]
    with pytest.raises(
        ValueError, match=rf"test_apps.py:\d+: the {member} of the \w+ '.+' has NaN, an infinity or half"
    ):
        add(one, **options)
    assert not any(app.document.get(name) for name in ("tools", "prompts", "resourceTemplates"))


class Sort(enum.Enum):
    CAT = "cat"
    DOG = "dog"


class Cat(BaseModel):
    kind: Literal[Sort.CAT] = Sort.CAT
    lives: int = 9


class Dog(BaseModel):
    kind: Literal[Sort.DOG, "hound"] = Sort.DOG
    friends: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []


class First(BaseModel):
    version: Literal[1] = Field(default=1, alias="v")
    size: int = 0


class Second(BaseModel):
    version: Literal[2] = Field(default=2, alias="v")


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Versions = dict[str, Annotated[First | Second, Field(discriminator="version")] | None]
TAGS = "expected tags: 'cat', 'dog', 'hound' (the member 'kind')"
NUMBERS = "expected tags: 1, 2 (the member 'v')"


class Red(BaseModel):
    hue: Literal["red", "pink"]


class Blue(BaseModel):
    hue: Literal["blue"]
    depth: int = 0


class Green(BaseModel):
    hue: Literal["green"]


class Circle(BaseModel):
    radius: float


class Square(BaseModel):
    side: Annotated[float, Field(gt=0)]


class Ring(BaseModel):
    ring: Circle


Hue = Annotated[Red | Blue, Field(discriminator="hue")]
HUES = "expected tags: 'red', 'pink', 'blue' (the member 'hue')"
SHAPES = "fits none of these: Circle ('radius' is missing), Square ('side' is missing)"
SHORT = Annotated[str, Field(max_length=2)] | Annotated[str, Field(pattern="^a")]


@each(
    ("hint", "value", "problem"),
    [
        (Pet, {"kind": "cat"}, ""),
        (Pet, {"kind": "hound", "friends": [{"kind": "dog"}]}, ""),
        (Pet, {}, f"arguments.x: {TAGS}"),
        (Pet, {"lives": 3}, f"arguments.x: {TAGS}"),
        (Pet, {"kind": "cow"}, f"arguments.x: {TAGS}"),
        (Pet, {"kind": "cat", "lives": "many"}, "arguments.x.lives: wanted integer, got string"),
        (Pet, {"kind": "dog", "friends": [{"kind": "dog"}, {}]}, f"arguments.x.friends.1: {TAGS}"),
        (Pet, 3, "arguments.x: wanted object, got integer"),
        (Versions, {"a": {"v": 1}, "b": {"v": 2}, "c": None}, ""),
        (Versions, {"a": {}}, f"arguments.x.a: {NUMBERS}"),
        (Versions, {"a": {"v": 3}}, f"arguments.x.a: {NUMBERS}"),
        (Versions, {"a": {"v": 1, "size": None}}, "arguments.x.a.size: wanted integer, got null"),
        (list[Cat], [{}], ""),
        (Red | Blue, {"hue": "pink"}, ""),
        (Red | Blue, {"hue": "green"}, f"arguments.x: {HUES}"),
        (list[Red | Blue | None], [None, {"depth": 3}], f"arguments.x.1: {HUES}"),
        (Hue | Green, {"hue": "grey"}, "arguments.x: " + HUES.replace(" (", ", 'green' (")),
        (Hue | Green, {"hue": "blue", "depth": "deep"}, "arguments.x.depth: wanted integer, got string"),
        (Red | Blue | int, "green", "arguments.x: wanted object or integer, got string"),
        (Circle | Square, {}, f"arguments.x: {SHAPES}"),
        (Circle | Square | None, {"size": 1}, f"arguments.x: {SHAPES}"),
        (Circle | int, {"radius": "x"}, "arguments.x.radius: wanted number, got string"),
        (
            Circle | Square | Ring,
            {"side": -1, "ring": {"radius": None}},
            "arguments.x: fits none of these: Circle ('radius' is missing), "
            "Square (side: the value is less than or equal to the minimum of 0), "
            "Ring (ring: radius: wanted number, got null)",
        ),
        (
            SHORT,
            "bcd",
            "arguments.x: fits none of these: string (the value is longer than 2 characters), "
            'string (the value does not match "^a")',
        ),
    ],
)
async def test_errors_of_unions_name_the_tags_or_the_alternatives(hint: Any, value: Any, problem: str) -> None:
    app = App("zoo")

    def show(x: Any) -> str:
        return repr(x)

    show.__annotations__["x"] = hint
    app.tool(show)
    async with served(app) as client:
        schema = (await client.list_tools()).tools[0].model_dump()["inputSchema"]
        assert jsonschema_rs.is_valid(schema, {"x": value}) == (not problem)
        if problem:
            assert await failure(client, "show", x=value) == f"Invalid arguments of show: {problem}"
        else:
            assert not (await client.call_tool("show", {"x": value})).is_error


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (Literal[Colour.RED], "red"),
        (list[Literal[Colour.RED, "x"]], ["red", "x"]),
        (Literal[Colour.BLUE] | None, "blue"),
        (dict[str, Annotated[Literal[Colour.RED], Field(description="The colour.")]], {"a": "red"}),
        (Cat, {"kind": "cat"}),
    ],
)
async def test_a_literal_of_a_member_of_an_enum_takes_the_published_value(hint: Any, value: Any) -> None:
    app = App("colours")
    seen: list[Any] = []

    def show(x: Any) -> str:
        seen.append(x)
        return ""

    show.__annotations__["x"] = hint
    app.tool(show)
    if value == "red":
        app.prompt(show)
    async with served(app) as client:
        schema = (await client.list_tools()).tools[0].model_dump()["inputSchema"]
        assert jsonschema_rs.is_valid(schema, {"x": value})
        assert not (await client.call_tool("show", {"x": value})).is_error
        if value == "red":
            await client.get_prompt("show", {"x": value})
    assert [TypeAdapter(hint).dump_python(one, mode="json", exclude_unset=True) for one in seen] == [value] * len(seen)
    assert all(one is Colour.RED for one in seen if value == "red")


@pytest.mark.parametrize(
    ("of", "argument", "problem"),
    [
        ("great", "name", "there is no prompt or template 'great'; did you mean 'greet'?"),
        ("greet", "nam", "greet has no argument 'nam'; did you mean 'name'?"),
        ("greet", "colour", "greet has no argument 'colour'; define it above this function"),
        ("note://{id}", "name", "note://{id} has no argument 'name'; define it above this function"),
        ("logo://small", "name", "there is no prompt or template 'logo://small'; define it above this function"),
        ("talk", "name", "talk has no argument 'name'; define it above this function"),
    ],
)
def test_a_completion_without_a_prompt_or_argument_is_refused(of: str, argument: str, problem: str) -> None:
    with pytest.raises(BadFunction, match=rf"test_apps.py:\d+: {re.escape(problem)}$"):

        @small().completion(of, argument)
        def complete(asked: Completion) -> list[str]:
            return []


@pytest.mark.parametrize(("hide", "shown"), [(None, True), (True, False)])
async def test_failed_prompts_resources_and_completions_report_their_exceptions(
    hide: bool | None, shown: bool, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("failing", hide_errors=hide)

    @app.prompt
    def greet(name: str) -> str:
        raise KeyError(name)

    @app.completion("greet", "name")
    def names(asked: Completion) -> list[str]:
        if not asked.value:
            raise ToolError("type a letter")
        raise LookupError("x")

    @app.resource("note://a")
    async def note() -> str:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(anyio.sleep(0))
            raise ResourceNotFound("gone")

    ref = {"type": "ref/prompt", "name": "greet"}
    async with served(app, revision) as client:
        for call, reason in (
            (client.get_prompt("greet", {"name": "Ada"}), ": KeyError: 'Ada'"),
            (client.complete(ref, {"name": "name", "value": "x"}), ": LookupError: x"),
        ):
            error = await refused(call)
            assert (error.code, error.message) == (-32603, f"greet failed{reason if shown else ''}")
        told = client.complete(ref, {"name": "name", "value": ""})
        assert (await refused(told)).message == "type a letter"
        await refused(client.read_resource("note://a"))
    assert f"the prompt 'greet' failed: KeyError: 'Ada' ({__file__}:" in caplog.text


MERGING: list[tuple[Any, Any, Any]] = [
    (dict[int, str], {"1": "a", "01": "b"}, {"1": "a", "-2": "b"}),
    (dict[float, str], {"1": "a", "1.0": "b"}, {"1": "a", "2": "b"}),
    (dict[bool, str], {"true": "a", "1": "b"}, {"true": "a", "false": "b"}),
    (dict[date, str], {"2030-01-01": "a", "2030-01-01T00:00:00": "b"}, {"2030-01-01": "a", "2030-01-02": "b"}),
    (set[int | bool], [1, True], [1, False]),
    (set[Any], [0, False], ["0", 0]),
    (frozenset[float], [2**53, 2**53 + 1], [1, 2.5]),
    (set[tuple[int | bool, ...]], [[1], [True]], [[1], [2]]),
    (list[Tagged], [{"theTags": [True, 1]}], [{"theTags": [True, 2]}]),
    (OrderedDict[float, str], {"1": "a", "1.0": "b"}, {"1": "a", "2": "b"}),
    (Rows, {"true": "a", "1": "b"}, {"true": "a", "0": "b"}),
    (list[Chosen], [{"theRows": {"1": "a", "1.0": "b"}}], [{"theRows": {"1": "a"}}]),
    (Split, [2**53, 2**53 + 1], "1,2,3"),
    (dict[str, set[UUID]], {"a": [str(UUID(int=171)), str(UUID(int=171)).upper()]}, {"a": [str(UUID(int=171))]}),
]


@each(("kind", "merged", "distinct"), MERGING)
async def test_values_that_python_would_merge_are_refused(kind: Any, merged: Any, distinct: Any) -> None:
    """A conversion must not silently drop members of objects or items of arrays."""
    app = App("merging")

    def count(x: Any) -> str:
        return repr(x)

    count.__annotations__["x"] = kind
    app.tool(count)
    async with served(app) as client:
        assert (await failure(client, "count", x=merged)).startswith("Invalid arguments of count: arguments.x")
        assert not (await client.call_tool("count", {"x": distinct})).is_error
        listed = (await client.list_tools()).tools[0].model_dump()
        assert jsonschema_rs.is_valid(listed["inputSchema"], {"x": distinct})
        if kind == dict[int, str]:
            assert not jsonschema_rs.is_valid(listed["inputSchema"], {"x": merged})


async def test_a_failed_tool_names_the_missing_client_capability(revision: str) -> None:
    app = App("asking")

    @app.tool
    async def delete(ctx: Context) -> str:
        return str(await ctx.ask("Delete it?", bool))

    @app.tool
    async def delete_all(ctx: Context) -> str:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(ctx.ask("Delete one?", bool))
            tasks.create_task(ctx.ask("Delete two?", bool))
        return "deleted"

    async with served(app, revision) as client:
        for name in ("delete", "delete_all"):
            if revision == STATELESS:  # this revision has an error that names the missing capability
                error = await refused(client.call_tool(name))
                assert (error.code, error.data) == (-32021, {"requiredCapabilities": {"elicitation": {}}})
            else:
                assert "needs the capability 'elicitation'" in await failure(client, name)


async def test_resource_not_found_in_a_prompt_is_an_invalid_params_error() -> None:
    app = App("notes")

    @app.prompt
    async def summarize(id: str) -> str:
        raise ResourceNotFound(f"there is no note {id!r}")

    async with served(app) as client:
        summary = client.get_prompt("summarize", {"id": "beer"})
        assert (await refused(summary, match="there is no note 'beer'")).code == -32602


class Route(BaseModel):
    origin: str = Field(alias="from")
    end: str = Field(alias="to", default="Oslo")


async def test_fields_have_their_aliases_in_results_resources_and_kept_values() -> None:
    app, kept = App("trains"), Stored(list[Route], list, per="session")

    @app.tool
    async def reverse(route: Route, ctx: Context) -> list[Route]:
        async with kept.edit(ctx) as routes:
            routes.append(Route.model_validate({"from": route.end, "to": route.origin}))
        return await kept.get(ctx)

    @app.tool
    def route() -> Route:
        return Route.model_validate({"from": "Bergen"})

    app.resource("route://first")(route)
    bergen, oslo = {"from": "Bergen", "to": "Oslo"}, {"from": "Oslo", "to": "Bergen"}
    async with served(app) as client:
        assert (await client.call_tool("route")).structured_content == bergen
        for count in (1, 2):
            result = await client.call_tool("reverse", {"route": bergen})
            assert result.structured_content == {"result": [oslo] * count}
        (content,) = (await client.read_resource("route://first")).contents
        assert json.loads(content.text) == bergen


async def test_results_are_validated_against_the_schema(caplog: pytest.LogCaptureFixture) -> None:
    app = App("wrong")

    @app.tool
    def note() -> Note:
        return {"id": 1}  # type: ignore[return-value]

    @app.tool
    def notes() -> list[Note]:
        return [3]  # type: ignore[list-item]

    @app.tool
    def bounded_number() -> Annotated[int, Field(ge=10)]:
        return 3

    async with served(app, STATELESS) as client:
        told = {name: await failure(client, name) for name in ("note", "notes", "bounded_number")}
    line = note.__code__.co_firstlineno
    where = f"({Path(__file__).name}:{line})"
    said = "the tool 'note' returned dict, expected Note; correct the value or the annotation"
    assert told["note"] == f"note failed: {said} {where}"
    assert "returned list, expected list[Note] (a part is int, not Note)" in told["notes"]
    assert "returned structuredContent.result: the value is less" in told["bounded_number"]
    assert f"{said} ({__file__}:{line})" in caplog.text
    assert "the tool 'notes' returned list, expected list[Note] (a part is int, not Note)" in caplog.text
    assert "the tool 'bounded_number' returned structuredContent.result: " in caplog.text


async def test_text_that_is_no_unicode_is_mended(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    app = App("files")

    @app.tool
    def names() -> str:
        return b"caf\xe9".decode("utf-8", "surrogateescape")

    @app.tool
    def block() -> v2025_11_25.types.TextContent:
        return v2025_11_25.types.TextContent(text=names())

    @app.tool
    def listed() -> list[str]:
        return [names()]

    @app.tool
    def mixed() -> Any:
        return {names(): {names()}, "block": block()}

    @app.tool
    def lost() -> str:
        raise FileNotFoundError(names())

    @app.prompt
    def spoken() -> str:
        return names()

    @app.resource("note://1")
    def note() -> str:
        return names()

    @app.resource("note://2")
    def table() -> dict[str, str]:
        return {names(): names()}

    async with served(app, revision) as client:
        for name, text in (("names", "caf\ufffd"), ("block", "caf\ufffd"), ("listed", '{"result":["caf\ufffd"]}')):
            assert (await client.call_tool(name)).content[0].text == text
            assert "U+FFFD is sent in place of half of a character" in caplog.text
        assert json.loads((await client.call_tool("mixed")).content[0].text)["caf\ufffd"] == ["caf\ufffd"]
        assert (await client.get_prompt("spoken")).messages[0].content.text == "caf\ufffd"
        assert (await client.read_resource("note://1")).contents[0].text == "caf\ufffd"
        mended = json.loads((await client.read_resource("note://2")).contents[0].text)
        assert [(name.rstrip("\ufffd"), text) for name, text in mended.items()] == [("caf", "caf\ufffd")]
        assert await failure(client, "lost") == "lost failed: FileNotFoundError: caf\ufffd"


@pytest.mark.parametrize("hide", [None, True])
async def test_a_prompt_that_fails_says_what_a_tool_says_unless_errors_are_hidden(
    hide: bool | None, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("wrong", hide_errors=hide)

    def number() -> str:
        """Return a number."""
        return 7  # type: ignore[return-value]

    def missing() -> str:
        """Look up a key."""
        return {"a": "b"}["secret"]

    def refusing() -> str:
        """Refuse."""
        raise ToolError("no such book")

    async def declined(ctx: Context) -> str:
        """Ask in vain."""
        raise NotAnswered("Sure?", "decline")

    lines = {one.__name__: one.__code__.co_firstlineno for one in (number, missing, refusing, declined)}
    for one in (number, missing, refusing, declined):
        app.tool(one)
        app.prompt(one)
    returned = (
        "returned int, expected str or a list of texts and models of the protocol; correct the value or the annotation"
    )
    async with served(app, revision) as client:
        for name, said in {
            "number": f": the {{}} 'number' {returned} ({Path(__file__).name}:{lines['number']})",
            "missing": ": KeyError: 'secret'",
        }.items():
            for kind, text in (
                ("tool", await failure(client, name)),
                ("prompt", (await refused(client.get_prompt(name))).message),
            ):
                assert text == f"{name} failed" + ("" if hide else said.format(kind))
                assert f"the {kind} {name!r} failed: " in caplog.text
        for name, text in {"refusing": "no such book", "declined": "the question 'Sure?' was declined"}.items():
            assert await failure(client, name) == (await refused(client.get_prompt(name))).message == text
    assert f"{returned} ({__file__}:{lines['number']})" in caplog.text
    assert (
        f"({__file__}:{lines['missing'] + 2}); raise mcp_bindgen.app.ToolError to tell callers a reason" in caplog.text
    )


ADA = Identity(subject="ada")


@pytest.mark.full
@pytest.mark.parametrize(
    ("hide", "identity", "shown"), [(None, None, True), (None, ADA, False), (False, ADA, True), (True, None, False)]
)
async def test_a_failed_tool_reports_its_exception_unless_errors_are_hidden(
    hide: bool | None,
    identity: Identity | None,
    shown: bool,
    revision: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = small()
    app.hide_errors = hide
    package: Any = bindings(revision)

    class Known(package.Context):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.identity = identity

    (server,) = (server for server in all_servers([app]) if server.revision == revision)
    monkeypatch.setattr(type(server), "context", Known)
    async with connected(package.Client(), server) as connection:
        assert await failure(connection.client, "fail", how="told") == "as told"
        hidden = await failure(connection.client, "fail", how="not")
        assert hidden == ("fail failed: KeyError: 'x\\ny'" if shown else "fail failed")
        long = await failure(connection.client, "fail", how="long")
        assert (len(long) < 300 and "KeyError: 'xxx" in long) if shown else long == "fail failed"
    assert "Traceback" in caplog.text


@pytest.mark.full
async def test_only_permitted_names_are_suggested_for_an_unknown_name(revision: str) -> None:
    app = small()

    async def secret_report() -> str:
        return ""

    app.add_tool(secret_report, scopes=["secrets"])
    async with served(app, revision) as client:
        for call, said in (
            (client.call_tool("ad"), "Unknown tool: ad; did you mean 'add'?"),
            (client.call_tool("al-notes"), "Unknown tool: al-notes; did you mean 'all-notes'?"),
            (client.call_tool("something else"), "Unknown tool: something else"),
            (client.call_tool("secret_reprot"), "Unknown tool: secret_reprot; did you mean 'secret_report'?"),
            (client.get_prompt("greed"), "Unknown prompt: greed; did you mean 'greet'?"),
        ):
            assert (await refused(call)).message == said
    (server, *_) = all_servers([app])
    for scopes, near in ((frozenset[str](), ""), (frozenset({"secrets"}), "; did you mean 'secret_report'?")):
        endpoint = SimpleNamespace(allows=lambda who, revision, asked: asked[0][1] != "secret_report" or who.scopes)
        link = SimpleNamespace(endpoint=endpoint)
        context: Any = SimpleNamespace(identity=Identity(subject="ada", scopes=scopes), link=link, wire_revision="")
        with pytest.raises(ProtocolError) as caught:
            server.find("tool", "secret_reprot", context)  # type: ignore[attr-defined]
        assert caught.value.message == f"Unknown tool: secret_reprot{near}"


# --- invalid definitions --------------------------------------------------------------------------------------


def test_an_invalid_function_is_refused_with_its_file_and_line() -> None:
    app = App("bad")

    def untyped(a): ...  # type: ignore[no-untyped-def]

    def speechless(a: int): ...  # type: ignore[no-untyped-def]

    def missing_variable() -> str:
        return ""

    def another(id: str, other: str) -> str:
        return id + other

    for function, problem in (
        (untyped, "untyped: the parameter a has no type"),
        (speechless, "speechless: no return annotation"),
    ):
        with pytest.raises(BadFunction) as caught:
            app.tool(function)
        assert str(caught.value).startswith(f"{__file__}:{function.__code__.co_firstlineno}: {problem}")
    with pytest.raises(BadFunction, match=r"missing_variable: \{id\} of note://\{id\} is no parameter; take id: str"):
        app.resource("note://{id}")(missing_variable)
    with pytest.raises(BadFunction, match=r"another: the parameter other is not in note://\{id\}"):
        app.resource("note://{id}")(another)


def test_duplicate_and_unknown_tool_names_are_refused() -> None:
    app = small()

    async def add() -> None: ...

    with pytest.raises(ValueError, match="the tool 'add' exists already"):
        app.add_tool(add)
    with pytest.raises(KeyError):
        app.remove_tool("nothing")


def test_an_app_is_made_from_the_functions_of_a_module() -> None:
    module = ModuleType("sums")
    exec("def double(number: int) -> int: return 2 * number\ndef _hidden(): ...\n", vars(module))
    app = App.of_module(module, version="3")
    assert app.document["serverInfo"] == {"name": "sums", "version": "3"}
    assert [tool["name"] for tool in app.document["tools"]] == ["double"]


# --- changes at run time --------------------------------------------------------------------------------------


def noting(word: str) -> Any:
    """Return a handler that records a word."""

    def note(self: Any, params: Any, ctx: Any) -> None:
        self.heard.append(word)

    return note


class Listening:
    """Client that records its notifications."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    on_tool_list_changed = noting("tools")
    on_prompt_list_changed = noting("prompts")
    on_resource_list_changed = noting("resources")

    def on_resource_updated(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.uri)


@pytest.mark.full
async def test_capabilities_declare_changes_of_dynamic_kinds_only(revision: str, client: Any) -> None:
    assert [client.server_capabilities[name] for name in ("tools", "prompts", "resources")] == [{}, {}, {}]
    async with served(App("none", dynamic=["tools", "contents"]), revision) as changing:
        declared = changing.server_capabilities
        assert (declared["tools"], declared["resources"]) == ({"listChanged": True}, {"subscribe": True})
        assert "prompts" not in declared
        assert (await changing.list_tools()).tools == []


@pytest.mark.full
@pytest.mark.parametrize("revision", STATEFUL)
async def test_clients_are_notified_of_added_and_removed_entries(revision: str) -> None:
    app = App("changing", dynamic=["tools", "prompts", "resources"])

    @app.tool
    def grow() -> str:  # runs in a thread
        async def grown(a: int) -> int:
            return a

        app.add_tool(grown)
        return "grown"

    async with served(app, revision, Listening) as client:
        await client.call_tool("grow")
        await told(client, ["tools"])
        assert [tool.name for tool in (await client.list_tools()).tools] == ["grow", "grown"]
        assert (await client.call_tool("grown", {"a": 3})).model_dump()["structuredContent"] == {"result": 3}
        app.remove_tool("grown")
        await told(client, ["tools"])
        await refused(client.call_tool("grown", {"a": 3}), ProtocolError, "Unknown tool")

        async def read(id: str = "") -> str:
            return id

        async def said() -> str:
            return "x"

        app.add_resource("note://{id}", read)
        app.add_resource("note://one", read)
        app.add_prompt(said)
        await told(client, ["prompts", "resources"])
        assert (await client.read_resource("note://two")).contents[0].text == "two"
        assert (await client.get_prompt("said")).messages[0].content.text == "x"
        app.remove_resource("note://{id}")
        app.remove_prompt("said")
        await told(client, ["prompts", "resources"])
        await refused(client.read_resource("note://two"), ProtocolError, "Resource not found")
        assert [one.uri for one in (await client.list_resources()).resources] == ["note://one"]


async def told(client: Any, news: list[str]) -> None:
    """Wait until a client has received exactly these notifications, in any order."""
    await until(lambda: len(client.heard) >= len(news))
    assert sorted(client.heard) == news
    client.heard.clear()


def notes(*dynamic: Any) -> App:
    """Return an app with notes as resources."""
    app = App("contents", dynamic=dynamic)

    @app.resource("note://{id}")
    async def note(id: str) -> str:
        return id

    return app


@pytest.mark.parametrize("revision", STATEFUL)
async def test_subscribed_clients_are_notified_of_updated_resources(revision: str) -> None:
    app = notes("contents")
    async with served(app, revision, Listening) as client:
        await client.subscribe("note://1")
        app.updated("note://2")
        app.updated("note://1")
        await told(client, ["note://1"])
        await client.unsubscribe("note://1")
        await client.subscribe("note://3")
        app.updated("note://1")
        app.updated("note://3")
        await told(client, ["note://3"])
        await refused(client.subscribe("other://1"), match="Resource not found")


async def test_a_listening_client_gets_the_notifications_of_its_filter() -> None:
    app = notes("tools", "contents")

    async def more() -> None: ...

    wanted = v2026_07_28.types.SubscriptionFilter(tools_list_changed=True, resource_subscriptions=["note://1"])
    async with served(app, STATELESS, Listening) as client, client.subscribed(wanted):
        app.add_tool(more)
        app.updated("note://2")
        app.updated("note://1")
        await told(client, ["note://1", "tools"])


@pytest.mark.parametrize("revision", [STATEFUL[-1], STATELESS])
async def test_a_client_cannot_follow_a_resource_that_is_hidden_from_it(revision: str) -> None:
    app = notes("contents")

    @app.resource("plan://secret")
    async def secret() -> str:
        return "secret"

    app.disable("plan://secret")
    async with served(app, revision, Listening) as client:
        if revision == STATELESS:
            wanted = v2026_07_28.types.SubscriptionFilter(resource_subscriptions=["plan://secret", "note://1", "x://1"])
            async with client.subscribed(wanted) as agreed:
                assert agreed.resource_subscriptions == ["note://1"]
                app.updated("plan://secret")
                app.updated("note://1")
                await told(client, ["note://1"])
        else:
            hidden = await refused(client.subscribe("plan://secret"), match="Resource not found")
            missing = await refused(client.subscribe("plan://missing"), match="Resource not found")
            assert hidden.code == missing.code


async def test_a_failed_broadcast_is_logged_and_does_not_stop_notifications(caplog: pytest.LogCaptureFixture) -> None:
    app = App("lonely", dynamic=["tools"])

    async def one() -> None: ...

    found = app.served()
    servers = all_servers([found])
    caller = client_of(STATEFUL[3], Listening)
    async with lifespans([found]), connected(caller, found) as connection:
        client = connection.client

        async def fails(tell: Any) -> None:
            raise OSError("the store is gone")

        vars(servers[-1])["broadcast"] = fails
        app.add_tool(one)
        await anyio.wait_all_tasks_blocked()
        del vars(servers[-1])["broadcast"]
        app.add_tool(one, name="two")
        await told(client, ["tools"] * 2)
    assert "tools/list_changed could not be sent" in caplog.text


async def test_the_number_of_subscribed_resources_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_bindgen.runtime.protocol.access.MAX_FOLLOWED_URIS", 2)
    async with served(notes("contents")) as client:
        for id in "ab":
            await client.subscribe(f"note://{id}")
        await refused(client.subscribe("note://c"), match="too many subscriptions")
        await client.subscribe("note://a")
        await client.unsubscribe("note://a")
        await client.subscribe("note://c")


@pytest.mark.full
async def test_the_session_limits_number_and_size_of_subscribed_uris() -> None:
    """The session keeps subscribed URIs in memory and in its store, so 1,000 URIs are the limit for every server."""
    asked: list[str] = []

    class Takes(v2025_11_25.Server):
        info = v2025_11_25.types.Implementation(name="takes", version="1")

        async def subscribe(self, params: Any, ctx: Any) -> Any:
            asked.append(params.uri)
            return {}

    async with connected(v2025_11_25.Client(), Takes()) as connection:
        subscribe = connection.client.subscribe
        for number in range(3):
            await subscribe(f"note://{number}" + "x" * 80_000)
        await refused(subscribe("note://3" + "x" * 80_000), match="too many subscriptions")
        for number in range(997):
            await subscribe(f"n:{number}")
        await refused(subscribe("n:997"), match="too many subscriptions")
    assert len(asked) == 1000


async def test_a_served_app_refuses_changes_of_entries_that_are_not_dynamic() -> None:
    app = App("fixed")

    async def one() -> None: ...

    app.add_tool(one)
    async with served(app, STATELESS):
        with pytest.raises(ValueError, match=r"say|dynamic=\{'tools'\}"):
            app.add_tool(one, name="two")
        with pytest.raises(ValueError, match=r"dynamic=\{'tools'\}"):
            app.remove_tool("one")
        with pytest.raises(ValueError, match=r"dynamic=\{'contents'\}"):
            app.updated("note://1")


async def test_a_later_tool_may_need_scopes_only_if_an_entry_already_does() -> None:
    app = App("scoped", revisions=[v2025_11_25, v2026_07_28], dynamic=["tools"])

    async def open_() -> None: ...

    app.add_tool(open_)
    app.served()
    with pytest.raises(ValueError, match="'closed' depends on its callers, but no entry did"):
        app.add_tool(open_, name="closed", scopes=["a"])

    scoped = App("scoped", revisions=[v2025_11_25, v2026_07_28], dynamic=["tools"])
    scoped.tool(name="closed", scopes=["a", "b"])(open_)
    servers = all_servers([scoped])
    scoped.add_tool(open_, name="later", scopes=["c"])
    for server in servers:
        assert set(server.required_scopes("tools/call", "closed")) == {"a", "b"}
        assert set(server.required_scopes("tools/call", "later")) == {"c"}
    assert scoped.document["tools"][0]["x-mcp-scopes"] == ["a", "b"]


async def test_the_lifespan_is_entered_once_for_all_revisions() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None]:
        events.append("up")
        yield
        events.append("down")

    async with lifespans([App("alive", lifespan=lifespan)]):
        assert events == ["up"]
    assert events == ["up", "down"]


# --- pages --------------------------------------------------------------------------------------------------------


def paged(*names: str, **options: Any) -> App:
    """Return an app with a tool, a prompt, a resource and a template for each name."""
    app = App("pages", **options)

    def show(id: str = "") -> str:
        return id

    for name in names:
        app.add_tool(show, name=name)
        app.add_prompt(show, name=name)
        app.add_resource(f"note://{name}", show, name=name)
        app.add_resource(f"{name}://{{id}}", show, name=name)
    return app


async def pages_of(client: Any, name: str, member: str) -> list[list[str]]:
    """Return the names in each page of a list."""
    found: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = await getattr(client, f"list_{name}")(cursor=cursor)
        found.append([one.name for one in getattr(page, member)])
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_lists_have_pages_in_the_order_of_names(revision: str) -> None:
    app = paged("e", "d", "c", "b", "a", page_size=2)
    async with served(app, revision) as client:
        for name, member in (
            ("tools", "tools"),
            ("prompts", "prompts"),
            ("resources", "resources"),
            ("resource_templates", "resource_templates"),
        ):
            assert await pages_of(client, name, member) == [["a", "b"], ["c", "d"], ["e"]]
        assert [tool.name async for tool in client.iter_tools()] == [*"abcde"]
    async with served(paged("b", "a", page_size=2), revision) as client:
        assert await pages_of(client, "tools", "tools") == [["a", "b"]]
    async with served(paged("b", "a"), revision) as client:
        assert await pages_of(client, "tools", "tools") == [["b", "a"]], "one page is in the order of definition"


async def test_a_cursor_is_good_for_other_processes_and_for_a_list_that_changed(revision: str) -> None:
    async with served(paged("a", "c", "e", "g", page_size=2), revision) as client:
        cursor = (await client.list_tools()).next_cursor
    other = paged("g", "f", "e", "d", "b", "a", page_size=2)  # without `c`, the last name of the first page
    async with served(other, revision) as client:
        page = await client.list_tools(cursor=cursor)
        assert [tool.name for tool in page.tools] == ["d", "e"]
        rest = await client.list_tools(cursor=page.next_cursor)
        assert [tool.name for tool in rest.tools] == ["f", "g"]
        assert rest.next_cursor is None
    async with served(paged("a", page_size=2), revision) as client:
        assert (await client.list_tools(cursor=cursor)).tools == [], "a list that ended meanwhile has an empty page"


async def test_a_cursor_that_was_not_made_for_a_list_is_refused(revision: str) -> None:
    async with served(paged("a", "b", "c", page_size=1), revision) as client:
        of_tools = (await client.list_tools()).next_cursor
        for cursor in ("", "2", "é", "%%%", "a" * 10_000, of_tools[1:], of_tools[:-3]):
            error = await refused(client.list_tools(cursor=cursor))
            said = {"path": "params.cursor", "problem": "no page of this list has this cursor; list again without one"}
            assert (error.code, error.data) == (-32602, [said]), cursor
            assert said["problem"] in error.message
        assert (await refused(client.list_prompts(cursor=of_tools))).code == -32602
    with pytest.raises(ValueError, match="page_size is 0; a page has at least one entry"):
        App("none", page_size=0)
