"""Mistakes of server authors: early errors, limited effects on the other side, and harmless log lines."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

import mcp_bindgen.app as app
from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import ProtocolError, connect, serve
from mcp_bindgen.runtime.logs import MAX_CHARACTERS, harmless
from mcp_bindgen.runtime.protocol.routing import did_you_mean
from mcp_bindgen.runtime.similar_names import similar
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Client, Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.app.weather.base import ForecastContract
from tests.harness import checked_connections as checked
from tests.harness.effort import each

every = pytest.mark.parametrize("revision", [*checked.STATEFUL, checked.STATELESS])


def made(revision: str, **handlers: Any) -> Any:
    """Return a server with handlers."""
    return type("Made", (checked.bindings(revision).Server,), handlers)()


def handler(self: Any, params: Any, ctx: Any) -> None: ...


def other(self: Any, a: Any, b: Any) -> None: ...


def helper(self: Any) -> None: ...


# --- names of handlers ----------------------------------------------------------------------------------------


@each(
    ("side", "name", "function", "meant"),
    [
        ("Server", "list_promts", handler, "list_prompts"),
        ("Server", "call_tools", handler, "call_tool"),
        ("Server", "list_promts", other, "list_prompts"),
        ("Client", "on_tools_list_changed", handler, "on_tool_list_changed"),
        ("Client", "on_logging_mesage", other, "on_logging_message"),
    ],
)
@every
def test_a_misspelt_handler_is_an_error_when_its_class_is_created(
    revision: str, side: str, name: str, function: Any, meant: str
) -> None:
    base = getattr(checked.bindings(revision), side)
    with pytest.raises(TypeError) as caught:
        type("Mine", (base,), {name: function})
    place = f"{__file__}:{function.__code__.co_firstlineno}"
    assert str(caught.value).startswith(
        f"{place}: Mine.{name} handles nothing of MCP {revision}; did you mean {meant!r}?"
    )


@each(
    ("name", "function"),
    [
        ("_list_promts", handler),
        ("list_promts", helper),
        ("reload", handler),
        ("list_prompts", handler),
        ("lifespan", helper),
        ("list_promts", staticmethod(handler)),
        ("list_promts", property(helper)),
    ],
)
@every
def test_other_attributes_are_not_reported_as_misspelt_handlers(revision: str, name: str, function: Any) -> None:
    type("More", (type("Mine", (checked.bindings(revision).Server,), {name: function}),), {name: function})


# --- return values of handlers --------------------------------------------------------------------------------


@pytest.mark.parametrize("returned", [[], "tools", 3, True, "prompts"])
@every
async def test_a_wrong_return_type_is_reported_with_the_line_of_the_handler(
    revision: str, returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    package: Any = checked.bindings(revision)
    if returned == "prompts":
        returned = package.types.ListPromptsResult(prompts=[])

    async def list_tools(self: Any, params: Any, ctx: Any) -> Any:
        return returned

    async with checked.connected(package.Client(), made(revision, list_tools=list_tools)) as connection:
        error = await checked.refused(connection.client.list_tools())
    line = list_tools.__code__.co_firstlineno
    said = f"the handler of tools/list returned {type(returned).__name__}, expected ListToolsResult"
    assert error.message == f"Internal error: {said} ({Path(__file__).name}:{line})"
    assert f"WrongResult: {said} ({__file__}:{line})" in caplog.text


@every
async def test_results_of_other_revisions_and_in_wire_form_are_accepted(revision: str) -> None:
    package: Any = checked.bindings(revision)

    foreign = (v2026_07_28 if package is v2025_11_25 else v2025_11_25).types.ListToolsResult(tools=[])
    free = made(revision, list_tools=lambda *_: foreign, list_prompts=lambda *_: {"prompts": []})
    async with checked.connected(package.Client(), free) as connection:
        assert (await connection.client.list_tools()).tools == []
        assert (await connection.client.list_prompts()).prompts == []


# --- contracts ------------------------------------------------------------------------------------------------


def test_a_missing_contract_method_is_an_error_at_instantiation() -> None:
    class Nearly(ForecastContract):
        async def get_forcast(self, arguments: Any, ctx: Any) -> Any: ...

    with pytest.raises(TypeError) as caught:
        Nearly()  # type: ignore[abstract]
    said = "Nearly misses get_forecast, for the tool 'get-forecast'; did you mean it by get_forcast?"
    assert str(caught.value) == said


# --- invalid results and connection targets -----------------------------------------------------------------------


@every
async def test_an_invalid_result_is_reported_as_an_invalid_answer(revision: str) -> None:
    left, right = pair()
    wrong = made(revision, list_tools=lambda *_: {"tools": 3})
    async with checked.running(serve(right, wrong)), connect(left, checked.bindings(revision).Client) as client:
        with pytest.raises(
            ProtocolError, match=r"Invalid answer: the result of tools/list is not valid: result\.tools"
        ):
            await client.list_tools()


async def test_a_configuration_file_is_not_a_connection_target(tmp_path: Any) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}')
    with pytest.raises(ValueError, match="is a file of servers") as caught:
        async with connect(str(config)):
            pass
    assert str(caught.value) == f"{config} is a file of servers; connect to one of its entries"


# --- suggestions ----------------------------------------------------------------------------------------------

SLIPS = """
list_promts list_prompts, fnd find, raed read, tow two, siez size, Find find, ad add, id ids, word words
2025-11-52 2025-11-25, 2025-03-27 2025-03-26, forecast get-forecast, search search_tickets, note://{id} notes://{id}
listTicket listTickets, resources/lst resources/list, forcast forecast, tools/cal tools/call
"""
OTHERS = """
tickets statistics, desk://tickets desk://statistics, support-desk://tickets support-desk://statistics, x y
list_tickets list_statistics, get_ticket_by_id get_statistics_by_id, listTickets listStatistics, add_note add_book
start stats, delete select, create update, greet secret, tools/call tools/list, query words
"""
checked_pairs = pytest.mark.parametrize(
    ("name", "other", "is_slip"),
    [
        (*pair.split(), is_slip)
        for text, is_slip in ((SLIPS, True), (OTHERS, False))
        for pair in text.strip().replace("\n", ", ").split(", ")
    ],
)


@checked_pairs
def test_only_a_misspelling_of_a_name_is_suggested(name: str, other: str, is_slip: bool) -> None:
    assert similar(name, [other, "something else"]) == [other] * is_slip
    assert similar(other, [name, "something else"]) == [name] * is_slip


def test_the_nearest_names_are_suggested_first() -> None:
    assert similar("nots", ["knots", "note", "notes", "coats"], 2) == ["notes", "knots"]
    assert similar("nots", ["knots", "note"], cutoff=0.9) == []


def test_suggestions_are_short_and_fast() -> None:
    assert did_you_mean("list_promts", ["list_prompts", "other"]) == "; did you mean 'list_prompts'?"
    assert did_you_mean("something", ["else"]) == ""
    assert did_you_mean("tool-1x" + "y" * 1_000_000, [f"tool-{number}" for number in range(100_000)]) == ""
    assert app.missing_method(ForecastContract, "get_forecast").startswith("ForecastContract misses get_forecast")


LATEST = "2025-11-25"
REVISIONS = [*checked.STATEFUL, checked.STATELESS]
every_revision = pytest.mark.parametrize("revision", REVISIONS)


def tool(work: Any, revision: str = LATEST) -> Any:
    """Return a server whose tools all do the same work."""
    package: Any = checked.bindings(revision)

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        await work(params, ctx)
        return package.types.CallToolResult(content=[])

    return made(revision, call_tool=call_tool)


@every_revision
async def test_progress_that_does_not_increase_is_not_sent(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work(params: Any, ctx: Any) -> None:
        for amount in (1, 3, 3, 2, 3.5, -1, 4):
            await ctx.progress(amount)

    seen: list[Any] = []
    async with checked.connected(checked.bindings(revision).Client(), tool(work, revision)) as connection:
        asking = connection.client.with_options(on_progress=lambda params: seen.append(params.progress))
        await asking.call_tool("x")
        await asking.call_tool("x")
    assert seen == [1, 3, 3.5, 4] * 2
    assert "progress 2 after 3 is not sent: it must increase" in caplog.text


@every_revision
async def test_asynchronous_progress_callbacks_are_awaited_in_order(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(params: Any, ctx: Any) -> None:
        for amount in range(1, 6):
            await ctx.progress(amount)

    seen: list[Any] = []

    async def on_progress(params: Any) -> None:
        await anyio.sleep(0.01 / params.progress)
        if params.progress == 3:
            raise ValueError("three")
        seen.append(params.progress)

    async with checked.connected(checked.bindings(revision).Client(), tool(work, revision)) as connection:
        await connection.client.with_options(on_progress=on_progress).call_tool("x")
    assert (seen, caplog.text.count("the progress callback of tools/call failed")) == ([1, 2, 4, 5], 1)


async def test_progress_and_log_messages_are_handled_in_order() -> None:
    heard: list[Any] = []

    class Listener(Client):
        async def on_logging_message(self, params: Any, ctx: Any) -> None:
            heard.append(params.data)

    async def script(raw: checked.Raw) -> None:
        await raw.welcome({"tools": {}, "logging": {}})
        asked = await raw.receive()
        token = asked["params"]["_meta"]["progressToken"]
        told = [
            checked.notification("notifications/progress", {"progressToken": token, "progress": number})
            if number % 2
            else checked.notification("notifications/message", {"level": "info", "data": number})
            for number in range(1, 7)
        ]
        await raw.send(*told, checked.answer(asked["id"], {"content": []}))

    async with checked.scripted(Listener(), script) as client:
        await client.with_options(on_progress=lambda params: heard.append(params.progress)).call_tool("x")
    assert heard == [1, 2, 3, 4, 5, 6]


async def test_a_request_that_fails_cancels_its_progress_callback() -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def work(params: Any, ctx: Any) -> None:
        await ctx.progress(1)
        await started.wait()
        raise ProtocolError(-32000, "no")

    async def on_progress(params: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with checked.connected(checked.bindings(LATEST).Client(), tool(work)) as connection:
        await checked.refused(connection.client.with_options(on_progress=on_progress).call_tool("x"))
        await ended.wait()


@every_revision
async def test_a_progress_callback_cannot_cancel_its_caller_or_outlast_total_timeout(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(params: Any, ctx: Any) -> None:
        await ctx.progress(1)
        await ctx.progress(2)

    seen: list[Any] = []

    async def on_progress(params: Any) -> None:
        seen.append(params.progress)
        if params.progress == 2:
            await anyio.sleep_forever()
        ended = asyncio.create_task(anyio.sleep_forever())
        ended.cancel()
        await ended

    async with checked.connected(checked.bindings(revision).Client(), tool(work, revision)) as connection:
        await connection.client.with_options(on_progress=on_progress, total_timeout=1).call_tool("x")
    assert seen == [1, 2]
    assert "has not ended within total_timeout" in caplog.text


async def test_a_discovery_request_to_a_stateful_server_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Clients of both eras begin with `server/discover`, which older servers do not have."""
    async with checked.played(Server()) as (client, _):
        await client.send(checked.request(1, "server/discover"))
        refused = await client.receive()
    assert refused["error"]["message"] == "Invalid request: the connection is not initialized"
    assert not [record for record in caplog.records if record.levelno >= logging.INFO]


@pytest.mark.parametrize("revision", [LATEST, checked.STATELESS])
async def test_no_notification_is_sent_for_a_finished_request(revision: str) -> None:
    answered, told = anyio.Event(), anyio.Event()

    async def afterwards(ctx: Any) -> None:
        await answered.wait()
        await ctx.progress(2)
        await ctx.log("error", "late")
        told.set()

    async with anyio.create_task_group() as tasks:

        async def work(params: Any, ctx: Any) -> None:
            await ctx.progress(1)
            tasks.start_soon(afterwards, ctx)

        async with checked.connected(checked.bindings(revision).Client(), tool(work, revision)) as connection:
            asking = connection.client.with_options(on_progress=lambda params: None)
            if revision == LATEST:
                await asking.call_tool("x")
            else:
                meta = {**connection.client.link.meta, "io.modelcontextprotocol/logLevel": "debug"}
                types, methods = checked.bindings(revision).types, checked.bindings(revision).methods
                params = types.CallToolRequestParams.model_validate({"name": "x", "_meta": meta})
                await asking.request(methods.CALL_TOOL, params)
            answered.set()
            await told.wait()
            assert connection.theirs.methods() == ["notifications/progress"]


async def test_no_notification_is_sent_for_a_cancelled_request() -> None:
    begun = anyio.Event()

    async def work(params: Any, ctx: Any) -> None:
        try:
            begun.set()
            await anyio.sleep(20)
        finally:
            with anyio.CancelScope(shield=True):
                await ctx.progress(1)
                await ctx.log("error", "cancelled")

    async with checked.played(tool(work)) as (raw, _):
        await raw.introduce(LATEST)
        await raw.send(checked.request(1, "tools/call", {"name": "x", "_meta": {"progressToken": "t"}}))
        await begun.wait()
        await raw.send(checked.notification("notifications/cancelled", {"requestId": 1}))
        assert await raw.ask(checked.request(2, "ping")) == checked.answer(2, {})


async def test_a_task_result_is_an_error_if_the_client_did_not_ask_for_a_task(caplog: pytest.LogCaptureFixture) -> None:
    now = "2026-01-01T00:00:00Z"
    task = mcp.Task(task_id="t", status="working", ttl=None, created_at=now, last_updated_at=now)
    async with checked.played(made(LATEST, call_tool=lambda *_: mcp.CreateTaskResult(task=task))) as (raw, _):
        await raw.introduce(LATEST)
        assert (await raw.ask(checked.request(1, "tools/call", {"name": "x", "task": {}})))["result"]["task"][
            "taskId"
        ] == "t"
        unasked = await raw.ask(checked.request(2, "tools/call", {"name": "x"}))
        said = "Internal error: the handler of tools/call returned CreateTaskResult without 'task'"
        assert (unasked["error"]["code"], unasked["error"]["message"].startswith(said)) == (-32603, True)
    assert "returned CreateTaskResult without 'task'" in caplog.text


async def test_calls_with_a_task_return_the_task_or_the_usual_result_of_a_side_without_tasks() -> None:
    now = "2026-01-01T00:00:00Z"
    later = mcp.CreateTaskResult(
        task=mcp.Task(task_id="t", status="working", ttl=None, created_at=now, last_updated_at=now)
    )
    sampled = list[Any]()

    class Model(Client):
        def on_create_message(self, params: mcp.CreateMessageRequestParams, ctx: Any) -> Any:
            text = mcp.TextContent(text="hi")
            return later if params.task else mcp.CreateMessageResult(model="m", role="assistant", content=text)

    class Tools(Server):
        info = mcp.Implementation(name="tools", version="1")

        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> Any:
            sampled.append((await ctx.create_message([], 1, task=params.task)).model_dump().keys())
            return later if params.task and params.name == "slow" else mcp.CallToolResult(content=[])

    async with checked.connected(Model(), Tools()) as connection:
        client = connection.client
        task = mcp.TaskMetadata(ttl=1)
        assert await client.call_tool("slow", task=task) == later
        assert await client.call_tool("quick", task=task) == mcp.CallToolResult(content=[])
        assert await client.call_tool("slow") == mcp.CallToolResult(content=[])
    assert ["task" in keys for keys in sampled] == [True, True, False]


@pytest.mark.parametrize(
    "revision", checked.STATEFUL
)  # later schemas state the limit, so their models refuse longer lists
async def test_at_most_100_completions_are_sent(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    package: Any = checked.bindings(revision)

    async def answering(self: Any, params: Any, ctx: Any) -> Any:
        count = int(params.argument.value)
        known = {"total": 5000} if count == 200 else {}
        return package.types.CompleteResult(completion={"values": [str(n) for n in range(count)], **known})

    async with checked.connected(package.Client(), made(revision, complete=answering)) as connection:

        async def complete(count: int) -> Any:
            argument = {"name": "a", "value": str(count)}
            return (await connection.client.complete({"type": "ref/prompt", "name": "p"}, argument)).completion

        assert len((await complete(100)).values) == 100
        assert not caplog.records
        found = await complete(101)
        assert (found.values, found.total, found.has_more) == ([str(n) for n in range(100)], 101, True)
        found = await complete(200)
        assert (len(found.values), found.total, found.has_more) == (100, 5000, True)
    assert "1 values beyond the first 100 are not sent" in caplog.text


# --- half of a character ----------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("served", [checked.STATELESS, LATEST, "2024-11-05"])
async def test_half_of_a_character_is_replaced_in_results_errors_and_notifications(revision: str, served: str) -> None:
    mcp: Any = checked.bindings(served).types

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        await ctx.progress(1, message="half \ud83d")
        if params.name == "fail":
            raise ProtocolError(-32000, "half \ud83d", {"half \ud83d": 1})
        return mcp.CallToolResult(content=[mcp.TextContent(text="half \ud83d")], more={"\udc00": ["\udc00"]})

    client = checked.bindings(revision).Client()
    async with checked.connected(client, made(served, call_tool=call_tool)):
        told = list[Any]()
        result = await client.with_options(on_progress=told.append).call_tool("x")
        assert (result.content[0].text, result.model_dump()["more"]) == ("half \ufffd", {"\ufffd": ["\ufffd"]})
        assert [getattr(one, "message", "half \ufffd") for one in told] == ["half \ufffd"]
        error = await checked.refused(client.call_tool("fail"))
        assert (error.message, [*error.data]) == ("half \ufffd", ["half \ufffd"])
        with pytest.raises(ValueError, match="surrogates not allowed"):  # a request with another text is another one
            await client.call_tool("\udc80")


# --- logs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ümläute", "plain text, ümläute"),
        ("a\nERROR forged", "a\\nERROR forged"),
        ("\x1b[2J\x07\r", "\\x1b[2J\\x07\\r"),
        ("\u202eevil\u2028\x9b", "\\u202eevil\\u2028\\x9b"),
        ("\ud800", "\\ud800"),
        ("x" * (MAX_CHARACTERS + 1), "x" * MAX_CHARACTERS + f"... ({MAX_CHARACTERS + 1} characters)"),
    ],
)
def test_untrusted_text_is_escaped_and_truncated_in_logs(text: str, shown: str) -> None:
    assert harmless(text) == shown


class Records(logging.Handler):
    """Log handler that formats records like a file handler."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).split("\n")


async def test_a_client_cannot_inject_log_lines() -> None:
    async def fail(self: Any, params: Any, ctx: Any) -> Any:
        raise ValueError(f"unknown: {params.name}")

    records, logger = Records(), logging.getLogger("mcp_bindgen")
    logger.addHandler(records)
    try:
        async with checked.played(made(LATEST, call_tool=fail)) as (raw, _):
            await raw.introduce(LATEST)
            for n, name in enumerate(["a\nERROR forged\x1b[31m", "m" * 1_000_000]):
                assert "error" in await raw.ask(checked.request(n, name))
            assert "error" in await raw.ask(checked.request("c", "tools/call", {"name": "b\nERROR forged\x1b[31m"}))
        async with checked.connected(Client(), made(LATEST, call_tool=fail)) as connection:
            await checked.refused(connection.client.call_tool("x"))
    finally:
        logger.removeHandler(records)
    assert records.lines
    assert not any(line.startswith("ERROR forged") for line in records.lines)
    assert all(line.isprintable() and len(line) < 3000 for line in records.lines)


ALL: dict[str, dict[str, str]] = {"tools": {}, "prompts": {}, "resources": {}}


async def declines(self: Any, params: Any, ctx: Any) -> Any:
    raise NotImplementedError


@pytest.mark.parametrize("revision", [*checked.STATEFUL, checked.STATELESS])
async def test_a_declared_capability_without_a_list_handler_gives_an_empty_list(revision: str) -> None:
    package: Any = checked.bindings(revision)
    declares = made(revision, extra_capabilities=lambda self: ALL)
    for server, prompts in ((declares, True), (made(revision, call_tool=declines, read_resource=declines), False)):
        async with checked.connected(package.Client(), server) as connection:
            client: Any = connection.client
            assert ((await client.list_tools()).tools, (await client.list_resources()).resources) == ([], [])
            assert (await client.list_resource_templates()).resource_templates == []
            if prompts:
                assert (await client.list_prompts()).prompts == []
    async with checked.connected(package.Client(), package.Server()) as connection:
        methods = package.methods
        params = methods.LIST_TOOLS.params.model_validate({"_meta": connection.client.link.meta})
        assert (await checked.refused(connection.client.link.request(methods.LIST_TOOLS, params))).code == -32601
