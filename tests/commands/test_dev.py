"""`mcp-bindgen dev`: a page in a real browser that lists, calls and shows messages; foreign clients have no access."""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import jsonschema_rs
import pytest
from watchfiles import Change

from tests.harness.browser import check_accessibility, chromium
from tests.harness.commands import COMMAND, ROOT, complaint
from tests.harness.processes import alive

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator
    from playwright.sync_api import Page as Window

SERVER = """
import asyncio
from decimal import Decimal
from typing import Annotated, Literal

from mcp_bindgen.app import App, Completion, Context
from mcp_bindgen.runtime.protocol import jsonrpc
from pydantic import BaseModel, Field

app = App("notes", instructions="Keep notes.")
EVIL = "<img src=x onerror=alert(1)>"

class Place(BaseModel):
    shelf: int = Field(ge=1, le=9)
    room: Literal["north", "south"]

class Circle(BaseModel):
    kind: Literal["circle"]
    radius: float

class Square(BaseModel):
    kind: Literal["square"] = "square"
    side: Decimal

class Group(BaseModel):
    name: str
    parts: list[Circle | Square] = []
    inner: "Group | None" = None

@app.tool(name="NAME<b>")
async def put(text: str, ctx: Context, times: Annotated[int, Field(ge=2, description="How often.")],
              kind: Literal["plain", "fancy"] | None = None, tags: list[str] = ["new"], loud: bool = False) -> str:
    "Put a note down."
    sure = await ctx.ask("Sure?", bool, key="sure")
    place = await ctx.ask("Where?", Place, key="where")
    return f"{text} {times} {kind} {tags} {loud} {sure} {place.shelf} {place.room}"

@app.tool(annotations={"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False, "owner": EVIL})
def fail() -> str:
    "Fail."
    raise ValueError("no shelf")

@app.tool(annotations={"title": "Drawing", "readOnlyHint": True})
def draw(shape: Annotated[Circle | Square, Field(discriminator="kind")], group: Group | None = None,
         both: int | str | None = None) -> str:
    "Draw."
    return f"{shape!r} {group!r} {both!r}"

@app.tool
async def count(ctx: Context) -> str:
    "Count."
    for number in (1, 2):
        await ctx.progress(number, total=2, message=f"step {number} {EVIL}")
        await asyncio.sleep(0.5)
    return "counted"

@app.tool
async def think(ctx: Context) -> str:
    "Think."
    return await ctx.sample(f"Say {EVIL}", system_prompt=f"Be {EVIL}", temperature=0.5)

@app.tool
async def where(ctx: Context) -> str:
    "Say where."
    return str([root.uri for root in await ctx.roots()])

@app.tool
async def visit(url: str, ctx: Context) -> str:
    "Visit."
    method = ctx.agreed.dispatcher.revision.methods["elicitation/create"]
    asked = {"mode": "url", "message": f"Pay {EVIL}", "url": url, "elicitationId": "1"}  # ask_url refuses evil
    answer = await ctx.ask_by(url, method, jsonrpc.typed_params(method, asked))
    return "visited" if answer.action == "accept" else answer.action

@app.tool
async def act(ctx: Context) -> str:
    "Act."
    messages = [{"role": "user", "content": {"type": "text", "text": "Act"}}]
    tools = [{"name": EVIL, "inputSchema": {"type": "object"}}, {"name": "look", "inputSchema": {"type": "object"}}]
    method = ctx.agreed.dispatcher.revision.methods["sampling/createMessage"]
    params = jsonrpc.typed_params(method, {"maxTokens": 9, "messages": messages, "tools": tools})
    return str(await ctx.ask_by("act", method, params))

@app.resource("note://{id}/{part}")
def note(id: str, part: str) -> str:
    "Return a note."
    return f"note {id}, part {part}"

@app.completion("note://{id}/{part}", "part")
def parts(asked: Completion) -> list[str]:
    return [f"{asked.known.get('id')}{number}{asked.value}" for number in (1, 2)]

@app.prompt
def advise(topic: str) -> str:
    "Advise."
    return f"What about {topic}?"

@app.completion("advise", "topic")
def topics(asked: Completion) -> list[str]:
    return [topic for topic in ("tea", "teapots", "milk", EVIL) if topic.startswith(asked.value)]
"""

HOSTILE = ROOT / "tests" / "harness" / "hostile_contract.json"
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


@dataclass
class Page:
    """Served page: its URL, its origin, its token, and the script of the server."""

    url: str
    script: Path

    def __post_init__(self) -> None:
        self.origin, _, self.token = self.url.partition("/?token=")


@contextmanager
def developing(folder: Path, *options: str) -> Iterator[Page]:
    """Yield the page of a running `mcp-bindgen dev`."""
    script = folder / "server.py"
    script.write_text(SERVER.replace("NAME", "add"), "utf-8")
    command = [str(COMMAND), "dev", "server.py", *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{40,}", process.stdout.readline())
            assert found is not None
            yield Page(found[0], script)
        finally:
            process.terminate()
            assert process.wait(20) is not None


@contextmanager
def showing(page: Page, browser: Browser) -> Iterator[Window]:
    """Yield the page in a browser; afterwards check that no script failed."""
    window = browser.new_page(timezone_id="Asia/Tokyo")
    complaints: list[str] = []
    window.on("pageerror", lambda error: complaints.append(str(error)))
    window.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    window.goto(page.url)
    expect(window.locator("#state")).to_have_text("ready", timeout=30_000)
    yield window
    window.close()
    assert complaints == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with developing(tmp_path_factory.mktemp("dev")) as page:
        yield page


@pytest.fixture(scope="module")
def window(page: Page, browser: Browser) -> Iterator[Window]:
    with showing(page, browser) as window:
        yield window


@pytest.fixture(scope="module", params=["2026-07-28", "2025-11-25"])
def asking(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Window]:
    """Yield the page of a server of each era, whose questions come in results or as requests."""
    folder = tmp_path_factory.mktemp("dev")
    with developing(folder, "--revision", request.param) as page, showing(page, browser) as window:
        yield window


def expect(place: Locator) -> Any:
    """Return Playwright's assertions about an element; the import is local because only these tests need Playwright."""
    from playwright.sync_api import expect as expecting

    return expecting(place)


def press(window: Window, name: str) -> None:
    """Press a button."""
    window.get_by_role("button", name=name).click()


def fill(window: Window, label: str, text: str) -> None:
    """Fill in a field."""
    window.get_by_label(label).fill(text)


def shows(window: Window, place: str, *texts: str | re.Pattern[str]) -> None:
    """Wait until an element of the page contains all texts."""
    for text in texts:
        expect(window.locator(place)).to_contain_text(text)


def choose(window: Window, offer: str) -> None:
    """Choose an offer by its list and its name or URI."""
    window.locator(f'[data-choice="{offer}"]').click()


def sent(window: Window) -> Any:
    """Return the params of the request that the form makes."""
    return json.loads(window.input_value("#params"))


@pytest.mark.full
def test_offers_are_in_groups_and_forms_have_defaults_but_no_invented_values(window: Window) -> None:
    expect(window.locator("header")).to_contain_text("Keep notes.")
    for heading in ("Tools (8)", "Prompts (1)", "Resource templates (1)"):
        expect(window.get_by_role("heading", name=heading)).to_be_visible()
    window.get_by_role("button", name="add<b> Put a note down.").click()
    assert sent(window) == {"name": "add<b>", "arguments": {"text": "", "tags": ["new"], "loud": False}}
    expect(window.get_by_label("times required")).to_have_attribute("min", "2")
    expect(window.get_by_text("How often. (at least 2)")).to_be_visible()
    window.get_by_label("Filter offers").fill("advise")
    expect(window.locator("#offers li > button:visible")).to_have_count(1)
    window.get_by_label("Filter offers").fill("")


@pytest.mark.full
def test_a_form_is_sent_elicitations_are_answered_and_traffic_is_timed(window: Window) -> None:
    press(window, "add<b> Put a note down.")
    fill(window, "text required", "milk")
    window.get_by_label("kind").select_option("fancy")
    fill(window, "times", "")
    press(window, "Send")
    shows(window, ".field.wrong > .bad", "A value is required.")
    expect(window.get_by_label("times")).to_be_focused()
    expect(window.get_by_role("alert").first).to_contain_text("Correct the marked fields")
    fill(window, "times", "1")
    shows(window, ".field.wrong > .bad", "Not valid: at least 2.")
    fill(window, "times", "2")
    expect(window.locator("#fields .wrong")).to_have_count(0)
    press(window, "Add item to tags")
    window.get_by_label("Item", exact=True).nth(1).fill("b")
    window.get_by_role("button", name="Remove item of tags").nth(0).click()
    press(window, "Send")
    press(window, "Yes")
    press(window, "Accept")
    shows(window, "#questions .wrong > .bad", "A value is required.")
    fill(window, "shelf required", "7")
    window.get_by_label("room required").select_option("south")
    press(window, "Accept")
    shows(window, "#answer", "milk 2 fancy ['b'] False True 7 south", re.compile(r"Done after \d+ ms"))
    shows(window, "#wire", "→ tools/call add<b>", re.compile(r"← result of tools/call #\d+ \d+ ms"))


LEFT_OUT = object()
NULLABLE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
DECIMAL = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)?$"}]}
CLOCK = r"^\d\d:\d\d:\d\d$"
INPUTS: list[tuple[dict[str, Any], bool, str | None, Any, str]] = [
    ({"type": "integer"}, True, None, LEFT_OUT, "required"),
    ({"type": "integer"}, True, "", LEFT_OUT, "required"),
    ({"type": "integer"}, False, "", LEFT_OUT, ""),
    ({"type": "integer"}, True, "0", 0, ""),
    ({"type": "integer"}, True, "2.5", LEFT_OUT, "whole number"),
    ({"type": "integer"}, True, "9007199254740993", LEFT_OUT, "too large"),
    ({"type": "integer", "default": 3}, False, None, 3, ""),
    ({"type": "integer", "default": 3}, False, "", LEFT_OUT, ""),
    (NULLABLE, True, "", None, ""),
    (NULLABLE, False, "", LEFT_OUT, ""),
    ({**NULLABLE, "default": 3}, False, "", None, ""),
    ({"type": ["integer", "null"]}, True, "4", 4, ""),
    ({"type": "number", "exclusiveMinimum": 1}, True, "1", LEFT_OUT, "more than 1"),
    ({"type": "number", "multipleOf": 0.01, "minimum": 1}, True, "19.99", 19.99, ""),
    ({"type": "number", "multipleOf": 0.5}, True, "0.7", LEFT_OUT, "multiple of 0.5"),
    (DECIMAL, True, "", LEFT_OUT, "required"),
    (DECIMAL, True, "19.90", "19.90", ""),
    (DECIMAL, True, "19.9", 19.9, ""),
    (DECIMAL, True, "-1", LEFT_OUT, "at least 0"),
    (DECIMAL, True, "much", LEFT_OUT, "pattern"),
    ({"type": "string"}, True, None, "", ""),
    ({"type": "string"}, False, "", LEFT_OUT, ""),
    ({"type": "string", "minLength": 1}, True, None, LEFT_OUT, "required"),
    ({"type": "string", "pattern": "^a"}, True, "", LEFT_OUT, "required"),
    ({"type": "string", "pattern": "^a"}, True, "b", LEFT_OUT, "pattern ^a"),
    ({"type": "string", "pattern": "(?P<of>another dialect)"}, True, "b", "b", ""),
    ({"type": "string", "maxLength": 2}, True, "ab🎈", LEFT_OUT, "at most 2"),
    ({"type": "string", "examples": ["tea"]}, True, None, "tea", ""),
    ({"type": "string", "format": "date"}, True, None, LEFT_OUT, "required"),
    ({"type": "string", "format": "date"}, True, "2026-02-03", "2026-02-03", ""),
    ({"type": "string", "format": "time"}, True, "10:05", "10:05:00Z", ""),
    ({"type": "string", "format": "time", "pattern": CLOCK}, True, "10:05:07", "10:05:07", ""),
    ({"type": "string", "format": "date-time"}, True, "2026-02-03T10:05", "2026-02-03T01:05:00Z", ""),
    (
        {"type": "string", "format": "date-time", "default": "2026-02-03T10:05:00+02:00"},
        False,
        None,
        "2026-02-03T10:05:00+02:00",
        "",
    ),
    ({"type": "string", "format": "email"}, True, "ada", LEFT_OUT, "valid email"),
    ({"type": "string", "format": "email"}, True, "ada@example.com", "ada@example.com", ""),
    ({"type": "string", "format": "uri"}, True, "here", LEFT_OUT, "valid uri"),
    ({"type": "string", "format": "uri"}, True, "urn:a:b", "urn:a:b", ""),
    ({"enum": ["a", 2]}, True, None, "a", ""),
    ({"enum": ["a", 2]}, False, None, LEFT_OUT, ""),
    ({"oneOf": [{"const": 1, "title": "one"}, {"const": 2, "title": "two"}]}, True, "two", 2, ""),
    ({"const": None}, True, None, None, ""),
    ({"type": "boolean"}, True, None, False, ""),
    ({"type": "boolean"}, False, None, LEFT_OUT, ""),
    ({"type": "boolean"}, False, "no", False, ""),
    ({"type": "array", "items": {"type": "string"}}, False, None, LEFT_OUT, ""),
    ({"type": "array", "items": {"type": "string"}}, True, None, [], ""),
    ({"type": "array", "items": {"type": "string"}, "minItems": 1}, True, None, LEFT_OUT, "items at least 1"),
    ({"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b"]}, False, None, ["b"], ""),
    ({"type": "array"}, True, "[1", LEFT_OUT, "Not JSON"),
    ({"type": "array"}, True, "{}", LEFT_OUT, "type array"),
    ({"type": "object"}, True, "", LEFT_OUT, "required"),
    ({"type": "object"}, True, '{"a": 1}', {"a": 1}, ""),
    ({"type": "object", "properties": {"a": {"type": "integer"}}}, False, None, LEFT_OUT, ""),
    ({"type": "object", "properties": {"a": {"type": "integer"}}}, True, None, {}, ""),
    ({}, True, "", LEFT_OUT, "required"),
    ({}, False, "null", None, ""),
]
"""Schema of a field, whether it is required, the typed text, the value that is sent, and a part of the problem."""


@pytest.mark.full
def test_an_empty_or_invalid_field_is_left_out_or_has_an_error_beside_it(window: Window) -> None:
    for schema, required, typed, value, problem in INPUTS:
        whole = {"properties": {"x": schema}, "required": ["x"] if required else []}
        window.evaluate("schema => document.querySelector('main').prepend((window.form = fields(schema)).box)", whole)
        place = window.locator("main > .field > .inner > .field")
        if typed is not None and place.locator("select").count():
            place.locator("select").select_option(typed)
        elif typed is not None:
            place.locator("input, textarea").fill(typed)
        found = window.evaluate("[form.read(false), checked(form) !== undefined]")
        case = (schema, required, typed)
        assert found == [{} if value is LEFT_OUT else {"x": value}, not problem], case
        said = place.locator("> .bad").inner_text()
        assert bool(said) == bool(problem), case
        assert problem.lower() in said.lower(), case
        window.evaluate("form.box.remove()")


@pytest.mark.full
def test_unions_have_a_choice_of_variant_with_its_tag(window: Window) -> None:
    choose(window, "tools draw")
    shows(window, "#chosen", "Drawing")
    press(window, "Send")
    shows(window, ".field.wrong > .bad", "A value is required.")
    window.get_by_label("shape").select_option("square")
    expect(window.get_by_label("kind")).to_have_value("square")
    fill(window, "side", "2.50")
    press(window, "Add group")
    fill(window, "name", "all")
    press(window, "Add item to parts")
    window.get_by_label("Item", exact=True).select_option("circle")
    fill(window, "radius", "1")
    press(window, "Add inner")
    window.get_by_label("name").nth(1).fill("some")
    window.get_by_label("both").select_option("integer")
    window.get_by_label("integer").fill("7")
    part = {"kind": "circle", "radius": 1}
    group = {"name": "all", "parts": [part], "inner": {"name": "some"}}
    shape = {"kind": "square", "side": "2.50"}
    assert sent(window)["arguments"] == {"shape": shape, "group": group, "both": 7}
    press(window, "Send")
    shows(window, "#answer", "Square(kind='square', side=Decimal('2.50')) Group(name='all'", "inner=Group(name='some'")
    press(window, "Remove inner")
    press(window, "Remove item of parts")
    window.get_by_label("both").select_option("—")
    assert sent(window)["arguments"] == {"shape": shape, "group": {"name": "all"}}


SHAPE = {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "discriminator": {"propertyName": "kind"}}
DEFINED = {
    "A": {"properties": {"kind": {"enum": ["a", "aa"]}, "next": {"$ref": "#/$defs/All"}}, "required": ["kind", "next"]},
    "B": {
        "title": "Bee",
        "allOf": [{"properties": {"kind": {"const": "b"}}}, {"properties": {"size": {"type": "integer"}}}],
    },
    "All": SHAPE,
    "Loop": {"$ref": "#/$defs/Loop"},
    "Twice": {"allOf": [{"$ref": "#/$defs/Twice"}, {"$ref": "#/$defs/Twice"}]},
    "Wide": {
        "properties": {f"p{n}": {"$ref": "#/$defs/Wide"} for n in range(30)},
        "required": [f"p{n}" for n in range(30)],
    },
}


@pytest.mark.full
def test_tags_of_several_values_defaults_and_schemas_without_end_have_forms(window: Window) -> None:
    made = "schema => [...fields({...schema}).box.querySelectorAll('option')].map(one => one.textContent)"
    whole = {"properties": {"x": SHAPE}, "required": ["x"], "$defs": DEFINED}
    assert window.evaluate(made, whole) == ["—", "a | aa", "Bee"]
    default = {"kind": "aa", "next": {"kind": "b", "size": 1}}
    whole["properties"] = {"x": {**SHAPE, "default": default}}
    assert window.evaluate("schema => fields(schema).read(true)", whole) == {"x": default}
    invalid = {
        "name": 5,
        "annotations": "read-only",
        "description": 5,
        "inputSchema": {"properties": {"a": {"title": 5}}},
    }
    window.evaluate("item => choose('tools', item, 'tools/call', 'name')", invalid)
    expect(window.locator("#problem")).to_contain_text("There is no form for this schema")
    for name in ("Loop", "Twice", "Wide", "missing"):
        whole["properties"] = {"x": {"$ref": f"#/$defs/{name}"}}
        fields = window.evaluate("schema => fields(schema).box.querySelectorAll('*').length", whole)
        assert 5 < fields < 50_000, name


BEYOND_FORMS = {"consts", "conditional", "counted"}
"""Schemas with integers that JavaScript rounds, and with keywords that forms do not read; the server refuses values."""


@pytest.mark.full
def test_forms_of_hostile_schemas_have_valid_values_or_a_problem(window: Window) -> None:
    schemas = json.loads(HOSTILE.read_text("utf-8"))["inputs"]
    made = {name: window.evaluate("schema => checked(fields(schema))", schema) for name, schema in schemas.items()}
    filled = {name: value for name, value in made.items() if value is not None}
    assert len(filled) > 15
    assert {name for name, value in filled.items() if not jsonschema_rs.is_valid(schemas[name], value)} == BEYOND_FORMS


@pytest.mark.full
def test_the_answer_goes_when_another_entry_is_chosen(window: Window) -> None:
    choose(window, "tools fail")
    assert window.locator("#badges .badge").all_inner_texts() == [
        "writes",
        "destructive",
        "closed world",
        "owner: <img src=x onerror=alert(1)>",
    ]
    expect(window.get_by_role("button", name="fail destructive Fail.")).to_be_visible()
    press(window, "Send")
    shows(window, "#answer", "no shelf")
    choose(window, "tools fail")
    shows(window, "#answer", "no shelf")
    choose(window, "tools count")
    shows(window, "#answer", "Send the request")
    press(window, "Send")
    choose(window, "tools think")
    expect(window.locator("#wire li").last).to_contain_text("result of tools/call", timeout=10_000)
    shows(window, "#answer", "Send the request")


@pytest.mark.full
def test_progress_is_shown_while_a_call_runs_and_afterwards(window: Window) -> None:
    choose(window, "tools count")
    press(window, "Send")
    shows(window, "#answer", "1 of 2: step 1 <img src=x onerror=alert(1)>")
    expect(window.get_by_role("progressbar")).to_have_attribute("value", "1")
    shows(window, "#answer", "counted")
    expect(window.get_by_role("progressbar")).to_have_count(0)
    window.get_by_text("Progress", exact=True).click()
    assert window.locator("#answer li").count() == 2


@pytest.mark.full
def test_values_are_completed_with_the_other_arguments(window: Window) -> None:
    shown = window.locator(".suggestions button")
    choose(window, "prompts advise")
    fill(window, "topic", "tea")
    expect(shown).to_have_text(["tea", "teapots"])
    shown.nth(1).click()
    expect(window.get_by_label("topic")).to_have_value("teapots")
    expect(shown).to_have_count(0)
    fill(window, "topic", "<")
    expect(shown).to_have_text(["<img src=x onerror=alert(1)>"])
    choose(window, "resourceTemplates note://{id}/{part}")
    fill(window, "id", "n")
    fill(window, "part", "x")
    expect(shown).to_have_text(["n1x", "n2x"])
    shown.nth(0).click()
    assert sent(window) == {"uri": "note://n/n1x"}


@pytest.mark.full
def test_the_user_answers_in_place_of_a_model(asking: Window) -> None:
    choose(asking, "tools think")
    press(asking, "Send")
    shows(
        asking,
        "#questions",
        "Be <img src=x onerror=alert(1)>",
        "Say <img src=x onerror=alert(1)>",
        "1000 tokens",
        "0.5",
    )
    asking.get_by_label("text required").fill("two\nlines")
    asking.get_by_label("model required").fill("parrot")
    asking.get_by_label("stopReason").select_option("maxTokens")
    asking.get_by_text("Answer as JSON").click()
    answer = {"role": "assistant", "content": {"type": "text", "text": "two\nlines"}, "model": "parrot"}
    assert json.loads(asking.get_by_label("Answer as JSON").input_value()) == {**answer, "stopReason": "maxTokens"}
    fill(asking, "Answer as JSON", '{"role": "assistant"}')
    press(asking, "Answer")
    shows(asking, "#questions [role=alert]", "result.content: Field required")
    fill(asking, "Answer as JSON", json.dumps({**answer, "content": {"type": "text", "text": "written"}}))
    press(asking, "Answer")
    shows(asking, "#answer", "written")
    press(asking, "Send")
    press(asking, "Refuse")
    shows(asking, "#answer", "refused")
    choose(asking, "tools act")
    press(asking, "Send")
    asking.get_by_label("content required").select_option("Tool call")
    asking.get_by_label("name required").select_option("look")
    press(asking, "Answer")
    shows(asking, "#answer", "ToolUseContent(id='call-1', input={}, name='look')")


@pytest.mark.full
def test_the_user_lists_roots(asking: Window) -> None:
    choose(asking, "tools where")
    press(asking, "Send")
    fill(asking, "uri", "/a")
    press(asking, "Answer")
    shows(asking, "#questions .wrong > .bad", "pattern ^file://")
    fill(asking, "uri", "file:///a")
    press(asking, "Add item to roots")
    asking.get_by_label("uri").nth(1).fill("file:///b")
    press(asking, "Answer")
    shows(asking, "#answer", "['file:///a', 'file:///b']")
    press(asking, "Send")
    expect(asking.get_by_label("uri").nth(1)).to_have_value("file:///b")
    press(asking, "Refuse")
    shows(asking, "#answer", "refused")


@pytest.mark.full
def test_a_url_is_a_link_that_only_the_user_opens(asking: Window) -> None:
    choose(asking, "tools visit")
    fill(asking, "url", "https://bank.example@evil.example/pay")
    press(asking, "Send")
    shows(asking, "#questions", "Pay <img src=x onerror=alert(1)>", "Opens evil.example")
    link = asking.locator("#questions a")
    expect(link).to_have_attribute("href", "https://bank.example@evil.example/pay")
    expect(link).to_have_attribute("target", "_blank")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    assert len(asking.context.pages) == 1
    press(asking, "Accept")
    shows(asking, "#answer", "visited")
    for url in ("javascript:alert(1)", "data:text/html,x", "no URL"):
        fill(asking, "url required", url)
        press(asking, "Send")
        shows(asking, "#questions pre", url)
        expect(link).to_have_count(0)
        press(asking, "Decline")
        shows(asking, "#answer", "decline")


@pytest.mark.full
def test_texts_of_a_server_are_no_markup(asking: Window) -> None:
    evil = "<img src=x onerror=alert(1)>"
    schema = {
        "properties": {
            evil: {"title": evil, "description": evil, "pattern": evil, "default": evil, "type": "string"},
            "enum": {"enum": [evil], "enumNames": [evil]},
            "one": {"oneOf": [{"title": evil, "properties": {"kind": {"const": evil}}}, {"type": "string"}]},
            "many": {"type": "array", "items": {"enum": [evil, "b"]}},
        }
    }
    asking.evaluate(
        """([schema, evil]) => {
            const card = params => question({id: 0, method: "elicitation/create", params});
            card({message: evil, requestedSchema: schema});
            card({message: evil, url: evil});
            card({message: evil, requestedSchema: {properties: {sure: {type: "boolean", description: evil}}}});
            const messages = [{role: evil, content: {type: evil}}];
            question({id: 0, method: "sampling/createMessage", params: {messages, tools: [{name: evil}]}});
            show({error: evil, data: {elicitations: [{message: evil, url: evil}]}}, 1);
            at("badges").replaceChildren(...badges({annotations: {[evil]: evil, readOnlyHint: evil}}));
        }""",
        [schema, evil],
    )
    assert asking.locator("main img").count() == 0
    assert asking.locator("main").inner_text().count(evil) > 10
    asking.evaluate("at('questions').replaceChildren()")


@pytest.mark.full
def test_results_are_shown_by_kind(window: Window) -> None:
    for offer, fields, texts in (
        ("fail destructive Fail.", {}, ("The tool reports an error", "no shelf")),
        ("note://{id}/{part}", {"id required": "a b", "part required": "2"}, ("note a b, part 2",)),
        ("advise Advise.", {"topic required": "tea"}, ("What about tea?",)),
        ("Any request", {}, ("Done",)),
        (None, {"Method": "tools/cal"}, ("did you mean",)),
    ):
        if offer is not None:
            press(window, offer)
        for label, text in fields.items():
            fill(window, label, text)
        press(window, "Send")
        shows(window, "#answer", *texts)
    blocks = [{"type": "image", "mimeType": "image/gif", "data": PIXEL}, {"type": "odd"}]
    window.evaluate("result => show({result}, 1)", {"content": blocks})
    assert window.locator("#answer img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    shows(window, "#answer", '"odd"')


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_is_accessible(window: Window, width: int, scheme: Literal["light", "dark"]) -> None:
    window.set_viewport_size({"width": width, "height": 900})
    window.emulate_media(color_scheme=scheme)
    for offer, question in (("tools act", "content"), ("tools where", "uri"), ("tools draw", None)):
        choose(window, "tools fail")
        choose(window, offer)
        press(window, "Send")
        if question is None:
            window.get_by_label("shape").select_option("circle")
            press(window, "Add group")
            press(window, "Add item to parts")
            window.get_by_label("Item", exact=True).select_option("square")
            press(window, "Send")
        elif question == "content":
            window.get_by_label("content required").select_option("Tool call")
        window.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        check_accessibility(window)
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        if question is not None:
            press(window, "Refuse")
            shows(window, "#answer", "refused")


@pytest.mark.full
def test_the_page_shows_changes_of_the_server_code(page: Page, window: Window) -> None:
    page.script.with_name("notes.db-wal").write_text("data that the server writes", "utf-8")
    page.script.write_text(SERVER.replace("NAME", "put"), "utf-8")
    expect(window.get_by_role("button", name="put<b>")).to_be_visible(timeout=30_000)
    expect(window.locator("#wire")).to_contain_text("changed: ")
    expect(window.locator("#wire")).not_to_contain_text("notes.db-wal")
    page.script.write_text("raise SystemExit('not yet')", "utf-8")
    expect(window.locator("#state")).to_contain_text("not yet", timeout=30_000)
    page.script.write_text(f"print('hello')\n{SERVER.replace('NAME', 'back')}", "utf-8")
    expect(window.get_by_role("button", name="back<b>")).to_be_visible(timeout=30_000)
    expect(window.locator("#wire")).to_contain_text("stdout, no message: hello")


ATTACKS: list[tuple[str, dict[str, str], int]] = [
    ("no token", {}, 403),
    ("another token", {"x-dev-token": "x" * 43}, 403),
    ("part of the token", {"x-dev-token": "TOKEN[:-1]"}, 403),
    ("another page", {"x-dev-token": "TOKEN", "origin": "https://evil.example"}, 403),
    ("a file", {"x-dev-token": "TOKEN", "origin": "null"}, 403),
    ("another port", {"x-dev-token": "TOKEN", "origin": "http://127.0.0.1:1"}, 403),
    ("a name that resolves to this machine", {"x-dev-token": "TOKEN", "host": "evil.example"}, 421),
    ("that name with our port", {"x-dev-token": "TOKEN", "host": "evil.example:PORT"}, 421),
]


@pytest.mark.full
def test_foreign_requests_to_the_page_are_refused(page: Page) -> None:
    for who, headers, status in ATTACKS:
        port = page.origin.rpartition(":")[2]
        filled = {
            name: value.replace("TOKEN[:-1]", page.token[:-1]).replace("TOKEN", page.token).replace("PORT", port)
            for name, value in headers.items()
        }
        with httpx2.Client(base_url=page.origin, timeout=10) as client:
            for path in ("/", "/offers", "/events", "/call", "/answer"):
                answer = client.request("POST" if path in ("/call", "/answer") else "GET", path, headers=filled)
                assert answer.status_code == status, (who, path)
                assert page.token not in answer.text
                assert "access-control-allow-origin" not in answer.headers


def test_the_page_has_strict_security_headers_and_a_new_nonce_each_time(page: Page) -> None:
    with httpx2.Client(base_url=page.origin, timeout=10) as client:
        answer = client.get("/", params={"token": page.token})
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert page.token not in answer.text
        again = client.get("/", params={"token": page.token})
        assert again.headers["content-security-policy"] != policy, "a nonce is used once"
        body = b'{"method": "ping", "params": ' + b"[" * 5_000_000
        assert client.post("/call", content=body, headers={"x-dev-token": page.token}).status_code == 200
        assert client.get("/offers", headers={"x-dev-token": page.token}).status_code == 200


def test_the_page_is_served_with_limits_for_heads(page: Page) -> None:
    with httpx2.Client(base_url=page.origin, timeout=10) as client:
        headers = [("x-dev-token", page.token), *(("x-a", "b") for _ in range(1500))]
        assert client.get("/offers", headers=headers).status_code in (400, 431)


BROWSER = """#!{python}
import pathlib, stat, sys, urllib.parse, urllib.request
page = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[1]).path))
modes = [stat.S_IMODE(one.stat().st_mode) for one in (page, page.parent)]
seen = pathlib.Path("/proc/self/cmdline").read_bytes(), pathlib.Path("/proc/self/environ").read_bytes()
pathlib.Path({found!r}).write_text(repr((*seen, modes, str(page), page.read_text())))
"""


@pytest.mark.full
def test_the_browser_is_opened_without_the_token_in_the_list_of_processes(tmp_path: Path) -> None:
    found, browser = tmp_path / "found", tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable, found=str(found)))
    browser.chmod(0o755)
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    command = [str(COMMAND), "dev", "server.py", "--open"]
    settings = {**os.environ, "BROWSER": f"{browser} %s"}
    with subprocess.Popen(command, cwd=tmp_path, env=settings, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        token = url.partition("token=")[2]
        limit = time.monotonic() + 30
        while not found.exists() or not found.read_text().endswith(")"):
            assert time.monotonic() < limit
            time.sleep(0.05)
        seen, environment, modes, page, text = ast.literal_eval(found.read_text())
        own = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.send_signal(signal.SIGINT)
        process.wait(20)
    assert len(token) >= 40
    assert not [one for one in (seen, environment, own) if token.encode() in one]
    assert modes == [0o600, 0o700]
    assert f'content="0;url={url}"' in text
    assert not Path(page).parent.exists()


def test_invalid_input_gives_a_one_line_error(tmp_path: Path) -> None:
    for words, said in (
        (("'",), "not a command"),
        (("x", "--watch", "nowhere"), "nowhere: there is no such folder; give --watch a folder"),
        ((tmp_path,), "no project of ours"),
    ):
        assert said in complaint("dev", *words, cwd=tmp_path)


def test_only_source_files_restart_the_server(tmp_path: Path) -> None:
    from mcp_bindgen.commands.dev_server import SOURCES

    sources = ["server.py", "tools.ts", "pyproject.toml", "page.html", "skills/a/SKILL.md", ".env"]
    written = ["state.json", "notes.db", "a.sqlite-wal", "a.log.1", "server.pid", "__pycache__/a.pyc", ".venv/a.py"]
    assert [name for name in sources + written if SOURCES(Change.modified, str(tmp_path / name))] == sources


@pytest.mark.full
def test_ctrl_c_ends_dev_and_its_server(tmp_path: Path) -> None:
    started, code = tmp_path / "pid", "import os, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))\n"
    (tmp_path / "server.py").write_text(code + SERVER, "utf-8")
    command = [str(COMMAND), "dev", "server.py"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:
        assert process.stdout is not None
        origin, _, token = process.stdout.readline().split()[-1].partition("/?token=")
        with httpx2.stream("GET", f"{origin}/events", headers={"x-dev-token": token}, timeout=60) as open_page:
            lines = open_page.iter_lines()  # its end closes the page
            assert "starting" in next(lines)
            deadline = time.monotonic() + 60
            while not started.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            process.send_signal(2)
            assert process.wait(20) in (0, 130)
        assert process.communicate()[1] == ""
    assert not alive(int(started.read_text()))
