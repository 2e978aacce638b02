"""Requests of servers for input during a call: the same handlers in both eras, and signed request state."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import anyio
import anyio.from_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcp_bindgen.runtime as runtime
from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.runtime.protocol.access import RequestOrigin
from mcp_bindgen.runtime.session.rounds import RequestStateSigner
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.methods import CALL_TOOL
from tests.harness import checked_connections as checked
from tests.harness.effort import each, examples
from tests.harness.meta_keys import CLIENT_CAPABILITIES, SERVER_INFO

LATEST = "2025-11-25"
ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
INVALID, PARAMS, INTERNAL, LACKING = -32600, -32602, -32603, -32021

# --- handlers that serve both eras ----------------------------------------------------------------------------


def form(types: Any, message: str = "?") -> Any:
    """Return the params of an elicitation."""
    schema = types.ElicitRequestFormParamsRequestedSchema(properties={"x": types.StringSchema()})
    return types.ElicitRequestFormParams(message=message, requested_schema=schema)


def sample(types: Any, text: str = "?") -> Any:
    """Return the params of a sampling request."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequestParams(max_tokens=5, messages=[message])


def roots(types: Any) -> Any:
    """Return the params of `roots/list`."""
    return (getattr(types, "ListRootsRequestParams", None) or types.RequestParams)()


class Asks:
    """Tools that ask the client, written once for both eras."""

    def __init__(self) -> None:
        self.runs, self.failures = list[str](), list[BaseException]()

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        types = checked.bindings(ctx.revision).types
        self.runs.append(params.name)
        return types.CallToolResult(content=[types.TextContent(text=await getattr(self, params.name)(ctx, types))])

    async def read_resource(self, params: Any, ctx: Any) -> Any:
        types = checked.bindings(ctx.revision).types
        reply = await ctx.ask_params("who", form(types, params.uri))
        contents = types.TextResourceContents(uri=params.uri, text=str(reply.content["x"]))
        return types.ReadResourceResult(contents=[contents])

    async def get_prompt(self, params: Any, ctx: Any) -> Any:
        types = checked.bindings(ctx.revision).types
        text = types.TextContent(text=str((await ctx.ask_params("who", form(types, params.name))).content["x"]))
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])

    async def one(self, ctx: Any, types: Any) -> str:
        reply = await ctx.ask_params("name", form(types, "Your name?"))
        return f"{reply.action} {(reply.content or {}).get('x')}"

    async def three(self, ctx: Any, types: Any) -> str:
        questions = {"name": form(types), "model": sample(types), "places": roots(types)}
        name, model, places = await asyncio.gather(*(ctx.ask_params(key, one) for key, one in questions.items()))
        return f"{name.content['x']} {model.content.text} {len(places.roots)}"

    async def group(self, ctx: Any, types: Any) -> str:
        found: dict[str, Any] = {}

        async def ask(key: str, params: Any) -> None:
            found[key] = await ctx.ask_params(key, params)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "name", form(types))
            tasks.start_soon(ask, "model", sample(types))
        return f"{found['name'].content['x']} {found['model'].content.text}"

    async def rounds(self, ctx: Any, types: Any) -> str:
        said: list[str] = []
        for key in ("first", "second", "third"):
            said.append((await ctx.ask_params(key, form(types, f"{key} after {said}"))).content["x"])
        return " ".join(said)

    async def depends(self, ctx: Any, types: Any) -> str:
        reply = await ctx.ask_params("which", form(types))
        if reply.action != "accept":
            return reply.action  # type: ignore[no-any-return]
        kind = sample(types) if reply.content["x"] == "model" else form(types)
        more = await ctx.ask_params(f"more-{reply.content['x']}", kind)
        return more.content.text if reply.content["x"] == "model" else more.content["x"]  # type: ignore[no-any-return]

    async def unnamed(self, ctx: Any, types: Any) -> str:
        first, second = [await ctx.elicit(form(types, message)) for message in "12"]
        return f"{first.content['x']} {second.content['x']} {len((await ctx.list_roots()).roots)}"

    async def careful(self, ctx: Any, types: Any) -> str:
        try:
            reply = await ctx.ask_params("name", form(types))
        except Exception as error:  # like a handler that catches every error
            return f"survived {type(error).__name__}"
        finally:
            self.runs.append("tidied")
        return str(reply.content["x"])

    async def timed(self, ctx: Any, types: Any) -> str:
        with anyio.fail_after(30):
            reply = await asyncio.wait_for(ctx.ask_params("name", form(types)), 5)
        async with asyncio.TaskGroup() as tasks:
            more = tasks.create_task(ctx.ask_params("model", sample(types)))
        return f"{reply.content['x']} {more.result().content.text}"

    async def sampled(self, ctx: Any, types: Any) -> str:
        return str((await ctx.ask_params("model", sample(types))).content.text)

    async def lacking(self, ctx: Any, types: Any) -> str:
        try:
            await ctx.ask_params("model", sample(types))
        except runtime.CapabilityMissing as error:
            self.failures.append(error)
            raise
        return "?"

    async def lacking_in_group(self, ctx: Any, types: Any) -> str:
        async with anyio.create_task_group() as tasks:
            for key, question in {"name": form(types), "model": sample(types), "places": roots(types)}.items():
                tasks.start_soon(ctx.ask_params, key, question)
        return "?"

    async def fails_beside(self, ctx: Any, types: Any) -> str:
        async def fail() -> None:
            raise ValueError("my fault")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ctx.ask_params, "name", form(types))
            tasks.start_soon(fail)
        return "?"

    async def swallows(self, ctx: Any, types: Any) -> str:
        try:
            await ctx.ask_params("name", form(types))
        except BaseException:
            return "did without"
        return "asked"


class AsksNow(Asks, v2026_07_28.Server):
    """Stateless server."""


class AsksThen(Asks, v2025_11_25.Server):
    """Stateful server."""


class Answers:
    """Client that answers all questions and records them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.content: dict[str, Any] = {"x": "Ada"}
        self.action = "accept"

    async def on_elicit(self, params: Any, ctx: Any) -> Any:
        self.asked.append(params.message)
        content = self.content if self.action == "accept" else None
        return checked.bindings(ctx.revision).types.ElicitResult(action=self.action, content=content)

    def on_create_message(self, params: Any, ctx: Any) -> Any:
        self.asked.append("model")
        types = checked.bindings(ctx.revision).types
        return types.CreateMessageResult(model="m", role="assistant", content=types.TextContent(text="42"))

    def on_list_roots(self, params: Any, ctx: Any) -> Any:
        self.asked.append("roots")
        types = checked.bindings(ctx.revision).types
        return types.ListRootsResult(roots=[types.Root(uri="file:///a")])


class AnswersNow(Answers, v2026_07_28.Client):
    """Stateless client."""


class AnswersThen(Answers, v2025_11_25.Client):
    """Stateful client."""


SIDES: list[tuple[Any, Any]] = [(AnswersNow, AsksNow), (AnswersThen, AsksThen)]
both_eras = pytest.mark.parametrize(("answers", "asks"), SIDES, ids=[checked.STATELESS, LATEST])


async def called(client: Any, name: str) -> str:
    """Call a tool; return its text."""
    return str((await client.call_tool(name)).content[0].text)


async def call(client: checked.Raw, name: str, capabilities: Any = ALL, **more: Any) -> Any:
    """Return the raw response to a call."""
    return await client.ask(checked.lone(1, "tools/call", capabilities, name=name, **more))


# --- one code for both eras -----------------------------------------------------------------------------------


@both_eras
@pytest.mark.parametrize(
    ("tool", "expected", "asked"),
    [
        ("one", "accept Ada", ["Your name?"]),
        ("three", "Ada 42 1", ["?", "model", "roots"]),
        ("group", "Ada 42", ["?", "model"]),
        ("rounds", "Ada Ada Ada", ["first after []", "second after ['Ada']", "third after ['Ada', 'Ada']"]),
        ("depends", "Ada", ["?", "?"]),
        ("unnamed", "Ada Ada 1", ["1", "2", "roots"]),
        ("careful", "Ada", ["?"]),
        ("timed", "Ada 42", ["?", "model"]),
    ],
)
async def test_one_handler_asks_for_input_in_stateful_and_stateless_revisions(
    answers: Any, asks: Any, tool: str, expected: str, asked: list[str]
) -> None:
    client, server = answers(), asks()
    async with checked.connected(client, server) as connection:
        assert (await called(client, tool), sorted(client.asked)) == (expected, sorted(asked))
        if client.revision == checked.STATELESS:
            assert not [message for message in connection.theirs.sent if "method" in message]
        else:
            assert server.runs.count(tool) == 1


@both_eras
async def test_prompts_and_resources_may_ask_for_input(answers: Any, asks: Any) -> None:
    async with checked.connected(answers(), asks()) as connection:
        client: Any = connection.client
        assert (await client.read_resource("x:y")).contents[0].text == "Ada"
        assert ((await client.get_prompt("p")).messages[0].content.text, client.asked) == ("Ada", ["x:y", "p"])


@both_eras
async def test_the_total_timeout_limits_the_wait_for_input(answers: Any, asks: Any) -> None:
    class Silent(answers):  # type: ignore[misc]
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            await anyio.sleep_forever()

    async with checked.connected(Silent(), asks()) as connection:
        with pytest.raises(runtime.RequestTimeout, match="tools/call was not answered in time"):
            await connection.client.with_options(total_timeout=0.1).call_tool("one")


@both_eras
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_or_cancelling_an_elicitation_is_a_valid_answer(answers: Any, asks: Any, action: str) -> None:
    client = answers()
    client.action = action
    async with checked.connected(client, asks()):
        assert (await called(client, "one"), await called(client, "depends")) == (f"{action} None", action)


async def test_an_answer_may_determine_the_next_request_for_input() -> None:
    for answers, asks in SIDES:
        client = answers()
        client.content = {"x": "model"}
        async with checked.connected(client, asks()):
            assert (await called(client, "depends"), client.asked) == ("42", ["?", "model"])


async def test_a_stateless_handler_restarts_from_its_beginning_in_each_round() -> None:
    server = AsksNow()
    async with checked.connected(AnswersNow(), server) as connection:
        assert (await called(connection.client, "rounds"), server.runs) == ("Ada Ada Ada", ["rounds"] * 4)
        assert await called(connection.client, "careful") == "Ada"
        assert server.runs[4:] == ["careful", "tidied", "careful", "tidied"]


async def test_a_handler_that_catches_all_exceptions_continues_without_an_answer() -> None:
    async with checked.connected(AnswersNow(), AsksNow()) as connection:
        assert await called(connection.client, "swallows") == "did without"


async def test_many_concurrent_calls_may_ask_for_input() -> None:
    client = AnswersNow()
    async with checked.connected(client, AsksNow()):
        expected = {"one": "accept Ada", "three": "Ada 42 1", "rounds": "Ada Ada Ada", "group": "Ada 42"}
        assert (await asyncio.gather(*(called(client, name) for name in [*expected] * 5))) == [*expected.values()] * 5


# --- messages on the wire -------------------------------------------------------------------------------------


def said(message: Any) -> str:
    """Return the text of a tool's result."""
    assert message["result"]["resultType"] == "complete"
    return str(message["result"]["content"][0]["text"])


def required(message: Any) -> Any:
    """Return the result that asks for input."""
    result = message["result"]
    assert result["resultType"] == "input_required"
    assert SERVER_INFO in result["_meta"]
    assert "content" not in result
    return result


ADA = {"action": "accept", "content": {"x": "Ada"}}


async def test_a_request_for_input_is_sent_as_a_result() -> None:
    async with checked.played(AsksNow()) as (client, _):
        asked = required(await call(client, "one"))
        question = asked["inputRequests"]["name"]
        assert (question["method"], question["params"]["message"]) == ("elicitation/create", "Your name?")
        assert "requestState" not in asked
        assert said(await call(client, "one", inputResponses={"name": ADA})) == "accept Ada"


async def test_concurrent_requests_for_input_are_sent_in_one_result() -> None:
    async with checked.played(AsksNow()) as (client, _):
        for tool, keys in (("three", {"name", "model", "places"}), ("group", {"name", "model"})):
            assert set(required(await call(client, tool))["inputRequests"]) == keys


async def test_missing_answers_are_requested_again_and_unknown_answers_are_ignored() -> None:
    async with checked.played(AsksNow()) as (client, _):
        for wrong in ({}, {"nmae": ADA}, {"": ADA, "x": {"roots": []}}):
            asked = required(await call(client, "one", inputResponses=wrong))
            assert set(asked["inputRequests"]) == {"name"}
        assert said(await call(client, "one", inputResponses={"name": ADA, "other": {"roots": []}})) == "accept Ada"
        asked = required(await call(client, "three", inputResponses={"model": MODEL}))
        assert set(asked["inputRequests"]) == {"name", "places"}
        rest = {"name": ADA, "places": {"roots": []}}
        assert said(await call(client, "three", inputResponses=rest, requestState=asked["requestState"])) == "Ada 7 0"


async def test_the_request_state_contains_the_answers_of_earlier_rounds() -> None:
    async with checked.played(AsksNow()) as (client, _):
        state: dict[str, Any] = {}
        for key in ("first", "second", "third"):
            asked = required(await call(client, "rounds", **state))
            assert (list(asked["inputRequests"]), "requestState" in asked) == ([key], key != "first")
            state = {"inputResponses": {key: {"action": "accept", "content": {"x": key}}}}
            if "requestState" in asked:
                state["requestState"] = asked["requestState"]
        assert said(await call(client, "rounds", **state)) == "first second third"


MODEL = {"model": "m", "role": "assistant", "content": {"type": "text", "text": "7"}}
NO_ANSWERS: list[Any] = [5, None, {}, {"action": "perhaps"}, {"action": "accept", "content": 5}, {"roots": []}, MODEL]


@each("responses", [5, "x", [], [ADA], *({"name": one} for one in [*NO_ANSWERS, {"result": ADA}])])
async def test_invalid_input_responses_are_refused(responses: object) -> None:
    async with checked.played(AsksNow()) as (client, _):
        answered = await call(client, "one", inputResponses=responses)
        assert (answered["id"], answered["error"]["code"]) == (1, PARAMS)
        assert "inputResponses" in json.dumps(answered["error"])


@pytest.mark.parametrize(("tool", "needed"), [("sampled", "sampling"), ("one", "elicitation"), ("lacking", "sampling")])
async def test_a_request_for_input_needs_a_declared_capability(tool: str, needed: str) -> None:
    async with checked.played(AsksNow()) as (client, _):
        answered = await call(client, tool, {name: ALL[name] for name in ALL if name != needed})
        assert answered["error"]["code"] == LACKING
        assert answered["error"]["data"] == {"requiredCapabilities": {needed: {}}}


async def test_concurrent_requests_for_input_without_capabilities_give_one_error() -> None:
    async with checked.played(AsksNow()) as (client, _):
        cases: list[tuple[dict[str, Any], set[str]]] = [({"elicitation": {}}, {"sampling", "roots"}), ({}, set(ALL))]
        for declared, lacking in cases:
            answered = await call(client, "lacking_in_group", declared)
            assert answered["error"]["code"] == LACKING
            assert set(answered["error"]["data"]["requiredCapabilities"]) <= lacking
        answered = await call(client, "three", {"elicitation": {}})
        assert answered["error"]["code"] == LACKING


async def test_a_stateful_handler_gets_an_error_for_a_missing_client_capability() -> None:
    server = AsksThen()
    async with checked.connected(v2025_11_25.Client(), server) as connection:
        caught = await checked.refused(connection.client.call_tool("lacking"))
        assert caught.code == INVALID
        assert "'sampling'" in caught.message
        assert [type(error) for error in server.failures] == [runtime.CapabilityMissing]
        assert "sampling/createMessage" not in connection.theirs.methods()


async def test_an_error_beside_a_request_for_input_fails_the_call() -> None:
    async with checked.played(AsksNow()) as (client, _):
        for _ in range(3):
            assert (await call(client, "fails_beside"))["error"]["code"] == INTERNAL
        assert said(await call(client, "one", inputResponses={"name": ADA}))


class Elsewhere(v2026_07_28.Server):
    """Server that asks in methods where questions are not allowed."""

    async def list_tools(self, params: Any, ctx: v2026_07_28.Context) -> mcp.ListToolsResult:
        await ctx.ask_params("name", form(mcp))
        return mcp.ListToolsResult(tools=[])

    async def complete(self, params: Any, ctx: v2026_07_28.Context) -> Any:
        return mcp.InputRequiredResult(request_state="x")


async def test_other_methods_cannot_ask_for_input(caplog: pytest.LogCaptureFixture) -> None:
    async with checked.played(Elsewhere()) as (client, _):
        answered = await client.ask(checked.lone(1, "tools/list", ALL))
        assert answered["error"]["code"] == INTERNAL
        assert "elicitation/create can only be asked while a request runs" in caplog.text
        wrong = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}
        answered = await client.ask(checked.lone(2, "completion/complete", ALL, **wrong))
        assert answered["error"]["code"] == INTERNAL


# --- handlers in threads --------------------------------------------------------------------------------------


class Threads(v2026_07_28.Server):
    """Server with blocking handlers."""

    def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context) -> Any:
        if params.name == "thread":
            reply = anyio.from_thread.run(ctx.ask_params, "name", form(mcp))
            assert isinstance(reply, mcp.ElicitResult)
            return mcp.CallToolResult(content=[mcp.TextContent(text=str(reply.content))])
        return self._later(ctx)

    async def _later(self, ctx: v2026_07_28.Context) -> mcp.CallToolResult:
        reply = await ctx.ask_params("name", form(mcp))
        return mcp.CallToolResult(content=[mcp.TextContent(text=str(reply.content))])


@pytest.mark.parametrize("name", ["thread", "later"])
async def test_blocking_handlers_ask_for_input_from_their_thread(name: str) -> None:
    client = AnswersNow()
    async with checked.connected(client, Threads()):
        for _ in range(3):
            assert await called(client, name) == "{'x': 'Ada'}"
        assert len(client.asked) == 3


# --- results made by hand -------------------------------------------------------------------------------------


class ByHand(v2026_07_28.Server):
    """Server that builds its `InputRequiredResult` objects itself."""

    def __init__(self) -> None:
        self.seen: list[tuple[str | None, Any]] = []

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context) -> Any:
        self.seen.append((params.request_state, params.input_responses))
        match params.name:
            case "state" if params.request_state is None:
                return mcp.InputRequiredResult(request_state="my own")
            case "empty":
                return mcp.InputRequiredResult()
            case "endless":
                return mcp.InputRequiredResult(request_state=f"{len(self.seen)}")
            case "asks" if params.input_responses is None:
                asked = mcp.ElicitRequest(params=form(mcp)), mcp.CreateMessageRequest(params=sample(mcp))
                return mcp.InputRequiredResult(input_requests=dict(zip("ab", asked, strict=True)))
            case "mixed":
                reply = await ctx.ask_params("first", form(mcp))
                if params.request_state is None:
                    return mcp.InputRequiredResult(request_state=f"heard {reply.action}")
        return mcp.CallToolResult(content=[mcp.TextContent(text=f"{params.request_state}")])


async def test_a_custom_request_state_returns_unchanged() -> None:
    async with checked.played(ByHand()) as (client, _):
        asked = required(await call(client, "state", {}))
        assert asked["requestState"] != "my own"
        assert "inputRequests" not in asked
        assert said(await call(client, "state", {}, requestState=asked["requestState"])) == "my own"
        assert (await call(client, "state", {}, requestState="my own"))["error"]["code"] == PARAMS
        asked = required(await call(client, "mixed"))
        assert list(asked["inputRequests"]) == ["first"]
        asked = required(await call(client, "mixed", inputResponses={"first": ADA}))
        assert said(await call(client, "mixed", requestState=asked["requestState"])) == "heard accept"


async def test_an_empty_input_required_result_gets_a_request_state() -> None:
    async with checked.played(ByHand()) as (client, _):
        assert "requestState" in required(await call(client, "empty", {}))


async def test_a_custom_input_required_result_needs_declared_capabilities() -> None:
    async with checked.played(ByHand()) as (client, _):
        answered = await call(client, "asks", {"roots": {}})
        assert answered["error"]["code"] == LACKING
        assert answered["error"]["data"] == {"requiredCapabilities": {"elicitation": {}, "sampling": {}}}
        assert set(required(await call(client, "asks"))["inputRequests"]) == {"a", "b"}


# --- the client's loop ----------------------------------------------------------------------------------------


async def test_a_client_answers_requests_for_input_and_echoes_the_state() -> None:
    server, client = ByHand(), AnswersNow()
    async with checked.connected(client, server) as connection:
        assert (await called(client, "state"), await called(client, "asks")) == ("my own", "None")
        assert (await called(client, "mixed"), sorted(client.asked)) == ("heard accept", ["?", "?", "model"])
        calls = [message for message in connection.ours.sent if message["method"] == "tools/call"]
        assert len({message["id"] for message in calls}) == len(calls) == 7
        answers = [message["result"] for message in connection.theirs.sent if "resultType" in message["result"]][1:]
        for one, following in zip(answers, calls[1:], strict=False):
            assert following["params"].get("requestState") == one.get("requestState")
            assert ("inputResponses" in following["params"]) == bool(one.get("inputRequests"))


async def test_a_client_limits_the_number_of_input_rounds() -> None:
    server = ByHand()
    async with checked.connected(AnswersNow(), server) as connection:
        await checked.refused(connection.client.call_tool("endless"), runtime.UnexpectedAnswer)
    assert 8 <= len(server.seen) <= 100


async def test_a_request_for_input_without_a_client_handler_is_an_error() -> None:
    class Deaf(v2026_07_28.Client):
        def extra_capabilities(self) -> Any:
            return ALL

    async with checked.connected(Deaf(), AsksNow()) as connection:
        await checked.refused(connection.client.call_tool("one"), runtime.MethodNotFound, match="elicitation/create")
        meta = connection.client.metadata(mcp.RequestMetaObject, None)
        asking = connection.client.request(CALL_TOOL, mcp.CallToolRequestParams(name="one", meta=meta))
        assert isinstance(await asking, mcp.InputRequiredResult)


async def test_an_error_in_a_client_handler_ends_the_call() -> None:
    class Fails(v2026_07_28.Client):
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            raise LookupError("nobody is there")

    async with checked.connected(Fails(), AsksNow()) as connection:
        await checked.refused(connection.client.call_tool("one"), LookupError, match="nobody is there")
        assert len(connection.ours.sent) == 2


async def test_client_handlers_may_return_plain_objects() -> None:
    class Plain(v2026_07_28.Client):
        def on_elicit(self, params: Any, ctx: Any) -> Any:
            return {"action": "accept", "content": {"x": "Ada"}}

    async with checked.connected(Plain(), AsksNow()) as connection:
        assert await called(connection.client, "one") == "accept Ada"


STATES = ["", "x", "é\u0000\u2028\U0001f600", '{"a": "\\n"}', "=" * 5000]


DISCOVERED = {
    "supportedVersions": [checked.STATELESS],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


async def reply(server: checked.Raw, **result: Any) -> Any:
    """Answer the next request, by default with a complete result; return the request's params."""
    asked = await server.receive()
    await server.send(checked.answer(asked["id"], {"resultType": "complete", **result}))
    return asked["params"]


async def test_the_state_is_echoed_exactly() -> None:
    seen: list[Any] = []

    async def script(server: checked.Raw) -> None:
        await reply(server, **DISCOVERED)
        for state in STATES:
            await reply(server, resultType="input_required", requestState=state)
            seen.append((await reply(server, content=[]))["requestState"])
        await reply(server, resultType="input_required", requestState="old")  # then questions without a state
        asked = await reply(server, resultType="input_required", inputRequests={"r": {"method": "roots/list"}})
        again = await server.receive()
        seen.append(again["params"].get("requestState"))
        assert again["params"]["inputResponses"] == {"r": {"roots": [{"uri": "file:///a"}]}}
        assert (again["params"]["name"], again["params"]["arguments"]) == ("last", {"n": 1})
        assert again["params"]["_meta"][CLIENT_CAPABILITIES] == asked["_meta"][CLIENT_CAPABILITIES]
        await server.send(checked.answer(again["id"], {"content": []}))  # no resultType: complete
        await server.send(checked.refusal((await server.receive())["id"], PARAMS, "requestState has expired"))

    async with checked.scripted(AnswersNow(), script) as client:
        for _ in STATES:
            await client.call_tool("x")
        await client.call_tool("last", {"n": 1})
        await checked.refused(client.call_tool("x"), match="expired")
    assert seen == [*STATES, None]


async def test_an_unknown_kind_of_result_is_invalid() -> None:
    async def script(server: checked.Raw) -> None:
        await reply(server, **DISCOVERED)
        await reply(server, resultType="novel", content=[])
        await reply(server, resultType="input_required", inputRequests={"a": {"method": "no/such"}})

    async with checked.scripted(AnswersNow(), script) as client:
        for _ in range(2):
            await checked.refused(client.call_tool("x"))


# --- request state --------------------------------------------------------------------------------------------

PURPOSE = ["2026-07-28", "s", "tools/call", {"name": "pay", "arguments": {"to": "Ada", "n": 1}}, "me"]
KEY, OTHER = b"k" * 32, b"o" * 32
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=6,
)
quick = settings(max_examples=examples(50, 150), deadline=None, derandomize=True, database=None)


def refused(seal: RequestStateSigner, text: str, purpose: object = PURPOSE) -> bool:
    """Check that a state is refused with "invalid params"."""
    with pytest.raises(runtime.ProtocolError) as caught:
        seal.verify(text, purpose)
    assert caught.value.code == PARAMS
    return True


@pytest.mark.full
@quick
@given(JSON, JSON)
def test_a_signed_state_is_accepted_for_the_same_purpose(state: Any, purpose: Any) -> None:
    seal = RequestStateSigner([KEY])
    assert seal.verify(seal.sign(state, purpose), purpose) == state


@quick
@given(JSON, JSON, JSON)
def test_a_signed_state_is_refused_for_another_purpose(state: Any, purpose: Any, other: Any) -> None:
    seal = RequestStateSigner([KEY])
    if json.dumps(purpose, sort_keys=True) != json.dumps(other, sort_keys=True):
        assert refused(seal, seal.sign(state, purpose), other)


SEALED = RequestStateSigner([KEY], clock=lambda: 0.0).sign({"answers": {"a": 1}, "own": "é"}, PURPOSE)


def test_a_signed_state_with_a_changed_bit_is_refused() -> None:
    seal = RequestStateSigner([KEY], clock=lambda: 0.0)
    assert seal.verify(SEALED, PURPOSE) == {"answers": {"a": 1}, "own": "é"}
    for place in range(len(SEALED)):
        for one in ("A", "B", "_", "=", ".", "é", "", "\n", " "):
            changed = SEALED[:place] + one + SEALED[place + 1 :]
            assert changed == SEALED or refused(seal, changed)
        assert refused(seal, SEALED[:place])
    data = bytearray(base64.urlsafe_b64decode(SEALED.partition(".")[0]))
    for bit in range(len(data) * 8):
        data[bit // 8] ^= 1 << bit % 8
        assert refused(seal, base64.urlsafe_b64encode(data).decode() + SEALED[SEALED.index(".") :])
        data[bit // 8] ^= 1 << bit % 8


@quick
@given(st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode() + "."))
def test_random_text_is_refused_as_a_state(text: str) -> None:
    assert refused(RequestStateSigner([KEY]), text)


@quick
@given(st.sampled_from(["", "=", "-TAMPERED", ".", " ", "\n", "x"]), st.booleans())
def test_a_signed_state_with_added_text_is_refused(more: str, before: bool) -> None:
    changed = more + SEALED if before else SEALED + more
    if changed != SEALED:
        assert refused(RequestStateSigner([KEY], clock=lambda: 0.0), changed)


def test_keys_can_be_replaced() -> None:
    old, both, new = RequestStateSigner([OTHER]), RequestStateSigner([KEY, OTHER]), RequestStateSigner([KEY])
    assert (both.verify(old.sign(1, PURPOSE), PURPOSE), new.verify(both.sign(2, PURPOSE), PURPOSE)) == (1, 2)
    assert refused(new, old.sign(1, PURPOSE))
    assert refused(old, both.sign(2, PURPOSE))
    assert refused(RequestStateSigner(), RequestStateSigner().sign(1, PURPOSE))


@pytest.mark.parametrize("keys", [[], [b""], [KEY, b"short"]])
def test_keys_must_be_long(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        RequestStateSigner(keys)


def test_a_state_expires() -> None:
    now = [1000.0]
    seal = RequestStateSigner([KEY], lifetime=60, clock=lambda: now[0])
    sealed = seal.sign("x", PURPOSE)
    now[0] += 59.9
    assert seal.verify(sealed, PURPOSE) == "x"
    now[0] += 0.2
    with pytest.raises(runtime.ProtocolError, match="expired"):
        seal.verify(sealed, PURPOSE)


def test_the_repr_of_a_signer_hides_its_keys() -> None:
    assert "kkk" not in repr(RequestStateSigner([KEY]))


class Pays(v2026_07_28.Server):
    """Server that asks two questions one after the other, so the second needs a state."""

    def __init__(self, key: bytes = KEY) -> None:
        self.now = 0.0
        self.request_state_signer = RequestStateSigner([key], clock=lambda: self.now)

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context) -> mcp.CallToolResult:
        replies: list[Any] = [await ctx.ask_params(key, form(mcp)) for key in "ab"]
        return mcp.CallToolResult(content=[mcp.TextContent(text=" ".join(one.content["x"] for one in replies))])

    async def get_prompt(self, params: mcp.GetPromptRequestParams, ctx: v2026_07_28.Context) -> Any:
        for key in "ab":
            await ctx.ask_params(key, form(mcp))
        return mcp.GetPromptResult(messages=[])


CALL: dict[str, Any] = {"name": "pay", "arguments": {"to": "Ada", "sum": {"n": 1, "of": [1, 2]}}}
SAME = {"arguments": {"sum": {"of": [1, 2], "n": 1}, "to": "Ada"}, "name": "pay"}


async def state_of(client: checked.Raw, **call: Any) -> str:
    """Return the state after the first answer."""
    asked = required(await client.ask(checked.lone(1, "tools/call", ALL, **call, inputResponses={"a": ADA})))
    assert list(asked["inputRequests"]) == ["b"]
    return str(asked["requestState"])


async def retried(client: checked.Raw, method: str, state: object, **call: Any) -> Any:
    """Repeat a request with a state; return the response."""
    reply = {"b": {"action": "accept", "content": {"x": "Bob"}}}
    return await client.ask(checked.lone(2, method, ALL, **call, inputResponses=reply, requestState=state))


async def test_a_request_state_is_valid_only_for_its_request_and_lifetime() -> None:
    server = Pays()
    async with checked.played(server) as (client, _):
        state = await state_of(client, **CALL)
        for call in (CALL, SAME):
            assert said(await retried(client, "tools/call", state, **call)) == "Ada Bob"
        given: Any = CALL["arguments"]
        others: list[Any] = [
            {"name": "Pay"},
            {"arguments": {**given, "to": "Eve"}},
            {"arguments": {**given, "more": None}},
        ]
        for call in ({"name": "pay"}, *({**CALL, **other} for other in [*others, {"extra": 1}])):
            assert (await retried(client, "tools/call", state, **call))["error"]["code"] == PARAMS
        named = await retried(client, "prompts/get", state, name="pay", arguments={"to": "Ada"})
        assert named["error"]["code"] == PARAMS
        for changed in (state + "-TAMPERED", state[:-1], "", "x", state.upper(), 5, None):
            answered = await retried(client, "tools/call", changed, **CALL)
            expected = changed is None  # without a state the server asks `a` again
            assert ("error" in answered) is not expected or answered["error"]["code"] == PARAMS
        server.now = 599
        assert said(await retried(client, "tools/call", state, **CALL)) == "Ada Bob"
        server.now = 601
        assert (await retried(client, "tools/call", state, **CALL))["error"]["code"] == PARAMS


async def test_a_request_state_is_valid_only_for_its_server_and_client() -> None:
    class Other(Pays):
        info = mcp.Implementation(name="other", version="1")

    async with checked.played(Pays()) as (client, _):
        state = await state_of(client, **CALL)
    for server, fine in ((Pays(), True), (Pays(key=OTHER), False), (Other(), False)):
        async with checked.played(server) as (client, _):
            answered = await retried(client, "tools/call", state, **CALL)
            assert ("result" in answered) is fine
    left, right = pair()
    right.origin = RequestOrigin(principal="somebody")
    async with checked.running(runtime.serve(right, Pays())):
        answered = await retried(checked.Raw(left), "tools/call", state, **CALL)
        assert answered["error"]["code"] == PARAMS
        await left.close()


async def test_a_later_answer_replaces_an_earlier_one() -> None:
    async with checked.played(Pays()) as (client, _):
        state = await state_of(client, **CALL)
        replies = {key: {"action": "accept", "content": {"x": key.upper()}} for key in ("a", "b")}
        assert said(await call(client, **CALL, inputResponses=replies, requestState=state)) == "A B"
