"""Questions of servers to the user, as in `await ctx.ask("Delete it?", bool)`, if the client can answer them."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import anyio
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mcp_bindgen.runtime import CapabilityMissing, Context, NotAnswered, ProtocolError, Root, UnexpectedAnswer
from tests.harness.checked_connections import (
    STATEFUL,
    STATELESS,
    Raw,
    answer,
    bindings,
    connected,
    refused,
    request,
    scripted,
    until,
)
from tests.harness.effort import each, examples

EVERY = [*STATEFUL, STATELESS]
ASKING = ["2025-06-18", "2025-11-25", STATELESS]

asking = pytest.mark.parametrize("revision", ASKING)
every = pytest.mark.parametrize("revision", EVERY)

Handler = Callable[[Any], Awaitable[Any]]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Details(BaseModel):
    """A flat model with all that forms have."""

    name: Annotated[str, Field(title="Your name", max_length=10)]
    age: Annotated[int, Field(ge=0, le=150, description="In years")]
    height: float = 1.5
    member: bool = False
    colour: Colour = Colour.RED
    since: date | None = None


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict):
    name: str


class Deep(BaseModel):
    inner: Details


async def conversation(
    revision: str, handler: Handler, answers: Any = (), *, declares: bool = True
) -> tuple[list[Any], Any]:
    """Call a tool that asks, answer its questions, and return the questions and the tool's result."""
    package: Any = bindings(revision)
    mcp, asked, given = package.types, list[Any](), iter(answers)

    class Asking(package.Server):  # type: ignore[misc]
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            try:
                said = repr(await handler(ctx))
            except (NotAnswered, CapabilityMissing, ValueError, TypeError, UnexpectedAnswer) as error:
                said = f"{type(error).__name__}: {error}"
            return mcp.CallToolResult(content=[mcp.TextContent(text=said)])

    def answering(kind: str) -> Any:
        def answer_next(self: Any, params: Any, ctx: Any) -> Any:
            asked.append(params.model_dump() if params is not None else None)
            return getattr(mcp, kind).model_validate(next(given))

        return answer_next

    kinds = {"on_create_message": "CreateMessageResult", "on_list_roots": "ListRootsResult"}
    kinds |= {"on_elicit": "ElicitResult"} if revision in ASKING else {}
    handlers = {name: answering(kind) for name, kind in kinds.items()} if declares else {}
    async with connected(type("Asked", (package.Client,), handlers)(), Asking()) as connection:
        result = await connection.client.call_tool("x")
    return asked, result.content[0].text


def accepting(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


# --- questions and answers ------------------------------------------------------------------------------------


@pytest.mark.full
@asking
@pytest.mark.parametrize(
    ("kind", "field", "answer", "value"),
    [
        (bool, {"type": "boolean"}, True, True),
        (bool, {"type": "boolean"}, False, False),
        (str, {"type": "string"}, "Ada", "Ada"),
        (int, {"type": "integer"}, 3.0, 3),
        (float, {"type": "number"}, 2, 2.0),
        (date, {"type": "string", "format": "date"}, "2030-01-02", date(2030, 1, 2)),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (Literal["a"], {"type": "string", "enum": ["a"]}, "a", "a"),
        (Colour, {"type": "string", "enum": ["red", "blue"], "title": "Colour"}, "blue", Colour.BLUE),
        (Annotated[int, Field(ge=1)], {"type": "integer", "minimum": 1}, 1, 1),
    ],
)
async def test_ask_requests_a_single_value(revision: str, kind: Any, field: Any, answer: Any, value: Any) -> None:
    asked, said = await conversation(revision, lambda ctx: ctx.ask("Which?", kind), [accepting(answer=answer)])
    (question,) = asked
    assert question["message"] == "Which?"
    assert question["requestedSchema"] == {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
    assert said == repr(value)


@asking
async def test_ask_turns_a_flat_model_into_a_form(revision: str) -> None:
    content = {"name": "Ada", "age": 36, "height": 2, "colour": "blue", "since": "2030-01-02"}
    asked, said = await conversation(revision, lambda ctx: ctx.ask("Details", Details), [accepting(**content)])
    assert said == repr(Details(name="Ada", age=36, height=2.0, colour=Colour.BLUE, since=date(2030, 1, 2)))
    schema = asked[0]["requestedSchema"]
    assert schema["required"] == ["name", "age"]
    assert schema["properties"] == {
        "name": {"type": "string", "title": "Your name", "maxLength": 10},
        "age": {"type": "integer", "title": "Age", "description": "In years", "minimum": 0, "maximum": 150},
        "height": {"type": "number", "title": "Height", "default": 1.5},
        "member": {"type": "boolean", "title": "Member", "default": False},
        "colour": {"type": "string", "title": "Colour", "enum": ["red", "blue"], "default": "red"},
        "since": {"type": "string", "title": "Since", "format": "date"},
    }


@asking
async def test_ask_turns_dataclasses_and_typed_dicts_into_forms(revision: str) -> None:
    async def handler(ctx: Context) -> Any:
        point = await ctx.ask("Where?", Point)
        return point.x, point.y, (await ctx.ask("Who?", Named))["name"]

    _, said = await conversation(revision, handler, [accepting(x=1), accepting(name="Ada")])
    assert said == "(1, 0, 'Ada')"


@pytest.mark.parametrize("revision", ASKING[1:])
async def test_ask_requests_multiple_choices_where_the_revision_has_them(revision: str) -> None:
    kind = list[Literal["a", "b"]]
    asked, said = await conversation(revision, lambda ctx: ctx.ask("Which?", kind), [accepting(answer=["b"])])
    field = asked[0]["requestedSchema"]["properties"]["answer"]
    assert (field, said) == ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "['b']")


async def test_ask_sends_no_form_that_the_revision_cannot_express() -> None:
    found = await conversation("2025-06-18", lambda ctx: ctx.ask("Which?", list[Literal["a", "b"]]))
    assert found == ([], "TypeError: a form cannot ask for list: MCP 2025-06-18 has no such field")


@asking
@each("kind", [Deep, dict[str, str], list[str], Literal[1, 2], Callable, int | str, tuple[int, int]])
async def test_ask_refuses_types_that_no_form_can_express(revision: str, kind: Any) -> None:
    asked, said = await conversation(revision, lambda ctx: ctx.ask("Which?", kind))
    assert asked == []
    assert said.startswith("TypeError: a form cannot ask for ")


# --- invalid answers ------------------------------------------------------------------------------------------


@pytest.mark.full
@asking
@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        (bool, {"action": "decline"}, "False"),
        (bool, {"action": "cancel"}, "NotAnswered: the question 'Well?' was cancelled"),
        (str, {"action": "decline"}, "NotAnswered: the question 'Well?' was declined"),
        (str, {"action": "cancel"}, "NotAnswered: the question 'Well?' was cancelled"),
        (str, accepting(), "NotAnswered: the question 'Well?' has an invalid answer: answer: Field required"),
        (bool, {"action": "accept"}, "NotAnswered: the question 'Well?' has an invalid answer: answer: Field required"),
        (bool, accepting(answer="yes"), "NotAnswered: the question 'Well?' has an invalid answer: answer: "),
        (int, accepting(answer=True), "NotAnswered: the question 'Well?' has an invalid answer: answer: "),
        (int, accepting(answer="1"), "NotAnswered: the question 'Well?' has an invalid answer: answer: "),
        (Colour, accepting(answer="green"), "NotAnswered: the question 'Well?' has an invalid answer: answer: "),
        (Details, accepting(name="Ada"), "NotAnswered: the question 'Well?' has an invalid answer: age: "),
    ],
)
async def test_a_missing_or_invalid_answer_is_an_error_and_a_declined_bool_is_false(
    revision: str, kind: Any, answer: Any, said: str
) -> None:
    _, found = await conversation(revision, lambda ctx: ctx.ask("Well?", kind), [answer])
    assert found == said or (said.endswith(": ") and found.startswith(said))


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "line": {"type": "string", "minLength": 2, "maxLength": 4},
        "size": {"type": "integer", "minimum": 0.5, "maximum": 3.5},
        "price": {"type": "number", "minimum": 0.5},
        "sure": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "blue"]},
    },
    "required": ["line", "other"],
}
LISTS: dict[str, Any] = {
    "one": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
    "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2},
    "titled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}},
}


def form(revision: str, schema: dict[str, Any]) -> Any:
    """Return the params of a form elicitation."""
    mcp: Any = bindings(revision).types
    kind = getattr(mcp, "ElicitRequestFormParams", None) or mcp.ElicitRequestParams
    return kind.model_validate({"message": "Well?", "requestedSchema": schema})


@pytest.mark.full
@pytest.mark.parametrize(
    ("revision", "by_call"),
    [("2025-06-18", False), ("2025-06-18", True), ("2025-11-25", False), ("2025-11-25", True), (STATELESS, False)],
)
@given(data=st.data())
@settings(max_examples=examples(12, 100))
def test_an_answer_that_violates_the_requested_schema_is_refused(
    revision: str, by_call: bool, data: st.DataObject
) -> None:
    """Compare with a JSON Schema validator."""
    has_lists = revision != "2025-06-18"
    schema = {**FORM, "properties": FORM["properties"] | (LISTS if has_lists else {})}
    texts = st.sampled_from(["a", "b", "red", "green", "abcde", ""])
    values: Any = texts | st.sampled_from([0, 0.5, 1, 2.0, 3.5, 4]) | st.booleans()
    values = values | st.lists(texts, max_size=3) if has_lists else values
    content = data.draw(st.dictionaries(st.sampled_from([*schema["properties"], "other"]), values, max_size=4))
    params = form(revision, schema)

    async def ask(ctx: Any) -> Any:
        answer = await (ctx.call(bindings(revision).methods.ELICIT, params) if by_call else ctx.ask_params("k", params))
        return answer.content

    _, found = anyio.run(conversation, revision, ask, [accepting(**content)])
    is_refused = found.startswith("NotAnswered: the question 'Well?' has an invalid answer: ")
    assert is_refused is not jsonschema_rs.is_valid(schema, content), (content, found)


@asking
async def test_a_declined_form_needs_no_content(revision: str) -> None:
    async def ask(ctx: Any) -> Any:
        return (await ctx.ask_params("k", form(revision, FORM))).action

    assert (await conversation(revision, ask, [{"action": "decline"}]))[1] == "'decline'"


@asking
async def test_ask_is_an_error_without_the_elicitation_capability(revision: str) -> None:
    async def ask(ctx: Context) -> Any:
        return await ctx.ask("Well?", bool)

    needs = "CapabilityMissing: elicitation/create needs the capability 'elicitation', which the client did not declare"
    assert await conversation(revision, ask, declares=False) == ([], needs)


@pytest.mark.parametrize("revision", STATEFUL[:2])
async def test_ask_is_an_error_in_a_revision_without_elicitation(revision: str) -> None:
    asked, said = await conversation(revision, lambda ctx: ctx.ask("Well?", bool))
    assert asked == []
    assert said == (
        f"CapabilityMissing: elicitation/create needs the capability 'elicitation', which MCP {revision} does not have"
    )


# --- keys -----------------------------------------------------------------------------------------------------


@asking
async def test_a_handler_may_ask_sequentially_and_concurrently(revision: str) -> None:
    async def handler(ctx: Context) -> Any:
        name = await ctx.ask("Your name?", str)
        return await asyncio.gather(*(ctx.ask(f"Does {name} like {what}?", bool) for what in ("tea", "rain")))

    yes = accepting(answer=True)
    asked, said = await conversation(revision, handler, [accepting(answer="Ada"), yes, yes])
    assert said == "[True, True]"
    assert {one["message"] for one in asked} == {"Your name?", "Does Ada like tea?", "Does Ada like rain?"}


@asking
async def test_two_identical_questions_need_different_keys(revision: str) -> None:
    def twice(*keys: str | None) -> Handler:
        async def ask(ctx: Context) -> Any:
            return [await ctx.ask("Again?", bool, key=key) for key in keys]

        return ask

    answers = [accepting(answer=True), accepting(answer=False)]
    needs = "ValueError: two questions have the key 'Again?': give each a key of its own, ask(..., key=...)"
    for keys, expected in (((None, None), needs), (("a", "b"), "[True, False]")):
        assert (await conversation(revision, twice(*keys), answers))[1] == expected


# --- models and roots -----------------------------------------------------------------------------------------


@every
async def test_sample_returns_the_text_of_the_client_model(revision: str) -> None:
    answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello."}}
    asked, said = await conversation(
        revision, lambda ctx: ctx.sample("Greet me", system_prompt="Be short.", temperature=0.5), [answer]
    )
    assert said == "'Hello.'"
    (question,) = asked
    assert (question["maxTokens"], question["systemPrompt"], question["temperature"]) == (1000, "Be short.", 0.5)
    message = question["messages"][0]
    content = message["content"][0] if isinstance(message["content"], list) else message["content"]
    assert (message["role"], content) == ("user", {"type": "text", "text": "Greet me"})


@every
async def test_sample_is_an_error_if_the_client_model_returns_no_text(revision: str) -> None:
    answer = {"role": "assistant", "model": "m", "content": {"type": "image", "data": "", "mimeType": "image/png"}}
    _, said = await conversation(revision, lambda ctx: ctx.sample("Paint me"), [answer])
    assert said.startswith("UnexpectedAnswer: sampling/createMessage was answered by ")


@every
async def test_roots_returns_the_roots_of_the_client(revision: str) -> None:
    answer = {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}
    _, said = await conversation(revision, lambda ctx: ctx.roots(), [answer])
    assert said == repr([Root("file:///a", "A"), Root("file:///b")])


@every
async def test_sample_and_roots_are_errors_without_the_client_capability(revision: str) -> None:
    for handler, capability in ((lambda ctx: ctx.sample("x"), "sampling"), (lambda ctx: ctx.roots(), "roots")):
        _, said = await conversation(revision, handler, declares=False)
        assert f"needs the capability '{capability}', which the client did not declare" in said


# --- log messages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", STATEFUL)
async def test_log_messages_have_a_method_for_each_common_level(revision: str) -> None:
    package: Any = bindings(revision)
    heard: list[tuple[str, Any, Any]] = []

    class Logging(package.Server):  # type: ignore[misc]
        async def call_tool(self, params: Any, ctx: Context) -> Any:
            for level in ("debug", "info", "warning", "error"):
                await getattr(ctx, level)({"at": level}, "here")
            await ctx.log("alert", None)
            return package.types.CallToolResult(content=[])

    async def hear(self: Any, params: Any, ctx: Any) -> None:
        heard.append((params.level, params.data, params.logger))

    async with connected(type("Hearing", (package.Client,), {"on_logging_message": hear})(), Logging()) as connection:
        await connection.client.call_tool("x")
        await anyio.wait_all_tasks_blocked()
    said = [(level, {"at": level}, "here") for level in ("debug", "info", "warning", "error")]
    assert sorted(heard, key=str) == sorted([*said, ("alert", None, None)], key=str)


def test_not_answered_is_not_a_protocol_error() -> None:
    assert not issubclass(NotAnswered, ProtocolError)  # the client's own request is valid


LATEST = "2025-11-25"
BOTH = [LATEST, STATELESS]
URL = {"mode": "url", "message": "Log in", "url": "https://example.com", "elicitationId": "1"}
WHO = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
TOOLS = {"messages": [], "maxTokens": 1, "tools": []}
CHOICE = {"messages": [], "maxTokens": 1, "toolChoice": {"mode": "auto"}}
CONTEXT = {"messages": [], "maxTokens": 1, "includeContext": "allServers"}
PLAIN = {"messages": [], "maxTokens": 1, "includeContext": "none"}

CASES = [
    (WHO, {"elicitation": {}}, None),
    ({**WHO, "mode": "form"}, {"elicitation": {}}, None),
    (WHO, {"elicitation": {"form": {}}}, None),
    (WHO, {"elicitation": {"url": {}}}, "elicitation.form"),
    (WHO, {}, "elicitation"),
    (URL, {"elicitation": {}}, "elicitation.url"),
    (URL, {"elicitation": {"form": {}}}, "elicitation.url"),
    (URL, {"elicitation": {"url": {}}}, None),
    (PLAIN, {"sampling": {}}, None),
    (TOOLS, {"sampling": {}}, "sampling.tools"),
    (TOOLS, {"sampling": {"context": {}}}, "sampling.tools"),
    (TOOLS, {"sampling": {"tools": {}}}, None),
    (CHOICE, {"sampling": {}}, "sampling.tools"),
    (CONTEXT, {"sampling": {"tools": {}}}, "sampling.context"),
    (CONTEXT, {"sampling": {"context": {}}}, None),
]


def params_of(types: Any, wire: dict[str, Any]) -> Any:
    """Return typed params."""
    if "maxTokens" in wire:
        return types.CreateMessageRequestParams.model_validate(wire)
    kind = types.ElicitRequestURLParams if wire.get("mode") == "url" else types.ElicitRequestFormParams
    return kind.model_validate(wire)


def made_client(revision: str, declared: Any) -> tuple[Any, list[Any]]:
    """Return a client that answers all requests but declares only `declared`, and the list of its requests."""
    package: Any = bindings(revision)
    asked: list[Any] = []

    class Home(package.Client):  # type: ignore[misc]
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            asked.append(params)
            return package.types.ElicitResult(action="decline")

        async def on_create_message(self, params: Any, ctx: Any) -> Any:
            asked.append(params)
            text = package.types.TextContent(text="hm")
            return package.types.CreateMessageResult(role="assistant", content=text, model="m")

        def extra_capabilities(self) -> Any:
            return declared

    return Home(), asked


@pytest.mark.full
@pytest.mark.parametrize("revision", BOTH)
@pytest.mark.parametrize(("wire", "declared", "lacking"), CASES)
async def test_a_server_sends_only_requests_that_the_client_declared(
    revision: str, wire: Any, declared: Any, lacking: str | None
) -> None:
    package: Any = bindings(revision)

    class Asking(package.Server):  # type: ignore[misc]
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            await ctx.ask_params("q", params_of(package.types, wire))
            return package.types.CallToolResult(content=[])

    client, asked = made_client(revision, declared)
    if "elicitation" not in declared:
        type(client).on_elicit = package.Client.on_elicit
    if "sampling" not in declared:
        type(client).on_create_message = package.Client.on_create_message

    async with connected(client, Asking()) as connection:
        if lacking is None:
            await connection.client.call_tool("x")
            assert len(asked) == 1
            return
        assert lacking in (await refused(connection.client.call_tool("x"))).message
        assert not asked


@each(("wire", "declared", "lacking"), CASES)
async def test_a_client_refuses_requests_without_a_declared_capability(
    wire: Any, declared: Any, lacking: str | None
) -> None:
    client, asked = made_client(LATEST, declared)
    method = "sampling/createMessage" if "maxTokens" in wire else "elicitation/create"

    answers: list[Any] = []

    async def script(raw: Raw) -> None:
        await raw.welcome()
        answers.append(await raw.ask(request(1, method, wire)))

    async with scripted(client, script):
        await until(lambda: answers)
    (said,) = answers
    if lacking in (None, "elicitation", "sampling.context"):  # only servers check `sampling.context`
        assert "result" in said
        assert len(asked) == 1
    else:
        assert said["error"]["code"] == -32602
        assert str(lacking) in said["error"]["message"]
        assert not asked


# --- visits, and params of other revisions ---------------------------------------------------------------------

PAGE = "https://shop.example/pay"
LACKING = {
    **dict.fromkeys(["2024-11-05", "2025-03-26", "2025-06-18"], "'elicitation.url', which MCP {} does not have"),
    **dict.fromkeys(BOTH, "'elicitation.url', which the client did not declare"),
}


async def visit(ctx: Any) -> str:
    """Ask for a visit, and say that it is over."""
    await ctx.ask_url("Pay.", PAGE, id="pay-7")
    await ctx.url_completed("pay-7")
    return "paid"


@every
async def test_a_page_is_shown_in_the_way_of_every_revision(revision: str) -> None:
    if revision in BOTH:
        asked, text = await conversation(revision, visit, [{"action": "accept"}])
        own = {"elicitationId": "pay-7"} if revision == LATEST else {}
        assert (asked, text) == ([{"mode": "url", "message": "Pay.", "url": PAGE, **own}], "'paid'")
        for action, verb in (("decline", "declined"), ("cancel", "cancelled")):
            _, text = await conversation(revision, visit, [{"action": action}])
            assert text == f"NotAnswered: the question 'Pay.' was {verb}"
        asked, _ = await conversation(revision, lambda ctx: ctx.ask_url("Pay.", PAGE), [{"action": "accept"}])
        assert asked[0].get("elicitationId", "new") not in ("", "pay-7")
    asked, text = await conversation(revision, visit, declares=revision not in BOTH)
    lacking = LACKING[revision].format(revision)
    assert (asked, text) == ([], f"CapabilityMissing: elicitation/create needs the capability {lacking}")


@each("url", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "https://a\nb", "pay.example", ""])
async def test_an_address_that_is_no_page_is_not_shown(url: str) -> None:
    asked, text = await conversation(LATEST, lambda ctx: ctx.ask_url("Pay.", url))
    assert (asked, text) == ([], f"ValueError: {url!r} is not the address of a page; use https://...")


async def test_a_client_hears_that_a_visit_is_over() -> None:
    package, heard = bindings(LATEST), list[str]()

    class Home(package.Client):  # type: ignore[misc, name-defined]
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            return package.types.ElicitResult(action="accept")

        async def on_elicitation_complete(self, params: Any, ctx: Any) -> None:
            heard.append(params.elicitation_id)

    class Shop(package.Server):  # type: ignore[misc, name-defined]
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return package.types.CallToolResult(content=[package.types.TextContent(text=await visit(ctx))])

    async with connected(Home(), Shop()) as connection:
        assert (await connection.client.call_tool("pay")).content[0].text == "paid"
        await until(lambda: heard == ["pay-7"])


def form_of(revision: str) -> Any:
    """Return params of a form with a choice, in the types of a revision."""
    types: Any = bindings(revision).types
    kind = types.ElicitRequestParams if revision == "2025-06-18" else types.ElicitRequestFormParams
    colour = {"type": "string", "enum": ["r", "b"]}
    schema = {"type": "object", "properties": {"colour": colour}, "required": ["colour"]}
    return kind.model_validate({"message": "Which?", "requestedSchema": schema})


@pytest.mark.full
@every
@pytest.mark.parametrize("theirs", ASKING)
async def test_params_of_any_revision_ask_clients_of_every_revision(revision: str, theirs: str) -> None:
    async def handler(ctx: Any) -> Any:
        return await ctx.ask_params("colour", form_of(theirs))

    asked, text = await conversation(revision, handler, [accepting(colour="b")])
    if revision not in ASKING:
        assert (asked, text.partition(":")[0]) == ([], "CapabilityMissing")
        return
    assert asked[0]["requestedSchema"]["properties"] == {"colour": {"type": "string", "enum": ["r", "b"]}}
    assert text == repr(bindings(theirs).types.ElicitResult.model_validate(accepting(colour="b")))
    _, text = await conversation(revision, handler, [accepting(colour="x")])
    assert text.startswith("NotAnswered: the question 'Which?' has an invalid answer: colour: ")


@pytest.mark.full
@every
@pytest.mark.parametrize("theirs", EVERY)
async def test_models_and_roots_are_asked_with_params_of_any_revision(revision: str, theirs: str) -> None:
    types: Any = bindings(theirs).types
    kind = types.RequestParams if theirs == LATEST else types.ListRootsRequestParams

    async def handler(ctx: Any) -> Any:
        message = {"role": "user", "content": {"type": "text", "text": "Hi"}}
        wanted = types.CreateMessageRequestParams.model_validate({"messages": [message], "maxTokens": 9})
        wrote, roots = await ctx.ask_params("wish", wanted), await ctx.ask_params("roots", kind())
        return [
            type(wrote) is types.CreateMessageResult,
            wrote.content.text,
            roots.roots[0] == types.Root(uri="file:///a"),
        ]

    wrote = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hm"}}
    asked, text = await conversation(revision, handler, [wrote, {"roots": [{"uri": "file:///a"}]}])
    assert text == "[True, 'hm', True]"
    assert asked[0]["messages"][0]["role"] == "user"


@every
async def test_params_that_ask_nothing_are_refused_with_those_that_do(revision: str) -> None:
    for params in (object(), bindings(LATEST).types.Annotations(), {"message": "Who?"}):

        async def handler(ctx: Any, params: Any = params) -> Any:
            return await ctx.ask_params("x", params)

        _, text = await conversation(revision, handler)
        name = type(params).__name__
        assert text.startswith(f"TypeError: {name} is not the type of a question's params; use ")
        assert " or CreateMessageRequestParams" in text


@pytest.mark.parametrize(
    ("extra", "declared"),
    [
        ({}, {"form": {}, "url": {}}),
        ({"sampling": {"tools": {}}}, {"form": {}, "url": {}}),
        ({"elicitation": {"form": {}}}, {"form": {}}),
        ({"elicitation": {"url": {}}}, {"url": {}}),
        ({"elicitation": {}}, {}),
    ],
)
@pytest.mark.parametrize("revision", ASKING)
@pytest.mark.parametrize("theirs", ASKING)
async def test_a_handler_declares_all_modes_unless_the_client_states_some(
    revision: str, theirs: str, extra: Any, declared: Any
) -> None:
    seen, (ours, server) = list[Any](), map(bindings, (revision, theirs))

    class Seeing(server.Server):  # type: ignore[misc, name-defined]
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            seen.append(ctx.peer_capabilities.get("elicitation"))
            return server.types.CallToolResult(content=[])

    class Home(ours.Client):  # type: ignore[misc, name-defined]
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            raise NotImplementedError

        def extra_capabilities(self) -> Any:
            return extra

    async with connected(Home(), Seeing()) as connection:
        await connection.client.call_tool("x")
    is_bound_to_forms = revision == "2025-06-18" and "elicitation" not in extra
    assert seen == [{} if is_bound_to_forms else declared]


async def test_a_client_refuses_requests_for_input_that_it_did_not_declare() -> None:
    client, asked = made_client(STATELESS, {"elicitation": {"form": {}}})
    fresh = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    question = {"method": "elicitation/create", "params": URL}

    async def script(raw: Raw) -> None:
        offers = {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}}
        await raw.send(answer((await raw.receive())["id"], {**offers, **fresh}))
        asking = {"resultType": "input_required", "inputRequests": {"q": question}}
        await raw.send(answer((await raw.receive())["id"], asking))

    async with scripted(client, script) as caller:
        assert (await refused(caller.call_tool("x"), match=r"elicitation\.url")).code == -32602
        assert not asked
