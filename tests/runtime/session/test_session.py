"""Clients and servers connected in memory; each message is checked against the schema."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from mcp_bindgen import runtime
from mcp_bindgen.http import HttpApp
from mcp_bindgen.runtime.protocol.errors import SessionLost
from mcp_bindgen.runtime.protocol.transport import Lost, Transport
from mcp_bindgen.runtime.session.endpoint import lifespans
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Client as Latest
from mcp_bindgen.v2025_11_25 import Context, errors, methods
from mcp_bindgen.v2025_11_25 import Server as LatestServer
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import (
    INITIALIZED,
    STATEFUL,
    STATELESS,
    Raw,
    Recording,
    answer,
    bindings,
    connected,
    initialize,
    notification,
    played,
    refusal,
    refused,
    request,
    running,
    scripted,
    until,
)
from tests.harness.effort import each
from tests.harness.leaping_clock import leaping_clock

LATEST = "2025-11-25"
LONG = 3600.0
PATIENCE = 0.5
"""Timeout in seconds for requests that must time out."""

every_revision = pytest.mark.parametrize("revision", STATEFUL)


# --- helpers --------------------------------------------------------------------------------------------------


def server(revision: str, **handlers: Any) -> Any:
    """Return a server with handlers."""
    return type("Made", (bindings(revision).Server,), handlers)()


def client(revision: str, **handlers: Any) -> Any:
    """Return a client with handlers."""
    return type("Made", (bindings(revision).Client,), handlers)()


def said(text: str, revision: str = LATEST) -> Any:
    """Return the result of a tool."""
    types = bindings(revision).types
    return types.CallToolResult(content=[types.TextContent(text=text)])


def text_of(result: Any) -> str:
    (block,) = result.content
    return str(block.text)


def toolbox(*functions: Any, revision: str = LATEST, **handlers: Any) -> Any:
    """Return a server with functions as tools: each takes a context and arguments, and returns the result's text."""
    known = {function.__name__: function for function in functions}

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        return said(str(await known[params.name](ctx, **(params.arguments or {}))), revision)

    return server(revision, call_tool=call_tool, **handlers)


async def outcome(client: Any, name: str, **arguments: Any) -> str:
    """Call a tool; return its text."""
    return text_of(await client.call_tool(name, arguments))


class Sleeper(LatestServer):
    """Server with a waiting tool; counts waiting and cancelled calls."""

    def __init__(self) -> None:
        self.waiting, self.cancelled, self.go = 0, 0, anyio.Event()

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> Any:
        if params.name == "quick":
            return said(f"quick {(params.arguments or {}).get('n', 0)}")
        self.waiting += 1
        try:
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
        return said("rested")


async def handler(self: Any, params: Any, ctx: Any) -> Any:
    raise NotImplementedError


# --- capabilities ---------------------------------------------------------------------------------------------


@every_revision
async def test_capabilities_follow_from_the_handlers(revision: str) -> None:
    offered = dict.fromkeys(["call_tool", "list_prompts", "read_resource", "subscribe", "complete"], handler)
    ours, seen = client(revision, on_list_roots=handler, on_create_message=handler), list[Any]()

    async def on_initialized(self: Any, params: Any, ctx: Any) -> None:
        seen.append((ctx.peer_capabilities, ctx.peer_info.name, ctx.revision))

    theirs = server(revision, on_initialized=on_initialized, **offered)
    theirs.info = bindings(revision).types.Implementation(name="shop", version="3")
    theirs.instructions = "Be kind."
    async with connected(ours, theirs) as connection:
        lists = {"prompts": {"listChanged": True}, "tools": {"listChanged": True}}
        lists |= {"logging": {}, "resources": {"listChanged": True, "subscribe": True}}
        declared = lists | ({} if revision == "2024-11-05" else {"completions": {}})
        assert connection.client.server_capabilities == declared
        assert (connection.client.server_info, connection.client.instructions) == (theirs.info, "Be kind.")
        await until(lambda: seen)
        assert seen == [({"roots": {"listChanged": True}, "sampling": {}}, "mcp-bindgen", revision)]


@every_revision
async def test_sides_without_handlers_declare_no_capability_except_logging(revision: str) -> None:
    async with connected(client(revision), server(revision)) as connection:
        assert connection.client.server_capabilities == {"logging": {}}
        assert connection.ours.sent[0]["params"]["capabilities"] == {}
        assert connection.client.instructions is None


async def test_more_capabilities_can_be_declared() -> None:
    more = {"tools": {"x/stock": True}, "experimental": {"x/y": {}}}
    shop = server(LATEST, list_tools=handler, extra_capabilities=lambda self: more)
    buyer = client(LATEST, extra_capabilities=lambda self: {"elicitation": {"url": {}}})
    async with connected(buyer, shop) as connection:
        tools = {"listChanged": True, "x/stock": True}
        assert connection.client.server_capabilities == {"logging": {}, **more, "tools": tools}
        assert connection.ours.sent[0]["params"]["capabilities"] == {"elicitation": {"url": {}}}


@every_revision
async def test_a_message_without_its_declared_capability_is_not_sent(revision: str) -> None:
    failures: list[runtime.CapabilityMissing] = []

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        for attempt in (ctx.list_roots, ctx.notify_resource_list_changed):
            failures.append(await refused(attempt(), runtime.CapabilityMissing))
        return said("done", revision)

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        before = len(connection.ours.sent)
        for attempt in (connection.client.list_prompts, connection.client.notify_roots_list_changed):
            failures.append(await refused(attempt(), runtime.CapabilityMissing))
        assert len(connection.ours.sent) == before
        await connection.client.call_tool("x")
        assert connection.theirs.methods() == []
        lacking = " ".join(".".join(failure.capability) for failure in failures)
        assert lacking == "server.prompts client.roots.listChanged client.roots server.resources.listChanged"
        assert "'prompts', which the server did not declare" in str(failures[0])


@every_revision
async def test_a_client_without_a_needed_capability_gets_an_error(revision: str) -> None:
    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        await ctx.list_roots()

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        error = await refused(connection.client.call_tool("x"), match="'roots', which the client did not declare")
        assert error.code == errors.INVALID_REQUEST


# --- errors ---------------------------------------------------------------------------------------------------


@every_revision
async def test_a_crash_is_logged_but_its_details_are_not_sent(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        if params.name == "later":
            await anyio.sleep(0)
        raise ValueError("the password is s3cret")

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        for name in ("at once", "later"):
            error = await refused(connection.client.call_tool(name))
            assert (error.code, error.message, error.data) == (-32603, "Internal error", None)
            assert not any("s3cret" in str(message) for message in connection.theirs.sent)
    assert [record.getMessage() for record in caplog.records] == ["the handler of tools/call failed"] * 2
    assert caplog.text.count("ValueError: the password is s3cret") == 2
    assert "Traceback" in caplog.text


async def test_a_method_that_is_not_offered_is_refused() -> None:
    async with connected(Latest(), server(LATEST, list_tools=handler)) as connection:
        assert (await refused(connection.client.call_tool("x"))).code == -32601
    async with played(LatestServer()) as (raw, _):
        await raw.introduce(LATEST)
        for method in ("prompts/list", "tools/explode", "sampling/createMessage"):
            assert (await raw.ask(request(1, method)))["error"]["code"] == -32601
        await raw.send(notification("notifications/roots/list_changed"), notification("nope"), request(2, "ping"))
        assert await raw.receive() == answer(2, {})


# --- handlers -------------------------------------------------------------------------------------------------


@every_revision
async def test_handlers_that_block_run_in_threads(revision: str) -> None:
    together, main = threading.Barrier(3, timeout=10), threading.get_ident()

    def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        assert threading.get_ident() != main
        together.wait()
        return said("done", revision)

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        called = asyncio.gather(*(connection.client.call_tool("x") for _ in range(2)))
        await until(lambda: together.n_waiting == 2)
        await connection.client.ping()
        await anyio.to_thread.run_sync(together.wait)
        await called


async def test_a_handler_in_a_thread_can_use_its_context() -> None:
    def call_tool(self: Any, params: Any, ctx: Context) -> Any:
        anyio.from_thread.run(ctx.progress, 1)
        return said(str(anyio.from_thread.run(ctx.list_roots).roots))

    home = client(LATEST, on_list_roots=lambda self, params, ctx: mcp.ListRootsResult(roots=[]))
    seen: list[Any] = []
    async with connected(home, server(LATEST, call_tool=call_tool)) as connection:
        assert await outcome(connection.client.with_options(on_progress=seen.append), "x") == "[]"
        assert [params.progress for params in seen] == [1]


async def test_a_handler_may_return_an_awaitable() -> None:
    async def later(text: str) -> Any:
        await anyio.sleep(0)
        return said(text)

    lazy = server(LATEST, call_tool=lambda self, params, ctx: later(params.name))
    async with connected(Latest(), lazy) as connection:
        assert await outcome(connection.client, "x") == "x"


async def test_waiting_handlers_do_not_delay_other_requests() -> None:
    theirs = Sleeper()
    async with connected(Latest(), theirs) as connection:
        sleeping = asyncio.gather(*(outcome(connection.client, "sleep") for _ in range(100)))
        await until(lambda: theirs.waiting == 100)
        for n in range(50):
            assert await outcome(connection.client, "quick", n=n) == f"quick {n}"
        assert await connection.client.ping() == mcp.Result()
        assert not sleeping.done()
        theirs.go.set()
        assert await sleeping == ["rested"] * 100
        assert not connection.client.link.connection.pending


async def test_responses_are_sent_in_the_order_of_completion() -> None:
    async def wait(ctx: Context, turns: int) -> int:
        for _ in range(turns):
            await anyio.sleep(0.01)
        return turns

    async with leaping_clock(), connected(Latest(), toolbox(wait)) as connection:
        asked = [outcome(connection.client, "wait", turns=turns) for turns in (15, 0, 8, 1)]
        assert [await one for one in asyncio.as_completed(asked)] == ["0", "1", "8", "15"]


VARIABLE = contextvars.ContextVar("VARIABLE", default="clean")


async def test_context_variables_stay_in_their_handler() -> None:
    async def mark(ctx: Context, mark: str, is_late: bool) -> str:
        before = VARIABLE.get()
        VARIABLE.set(mark)
        if is_late:
            await anyio.sleep(0.01)
            assert await anyio.to_thread.run_sync(VARIABLE.get) == mark
        return f"{before} {VARIABLE.get()}"

    async with connected(Latest(), toolbox(mark)) as connection:
        asked = [
            outcome(connection.client, "mark", mark=f"{is_late} {n}", is_late=is_late)
            for n in range(5)
            for is_late in (False, True)
        ]
        expected = [f"clean {is_late} {n}" for n in range(5) for is_late in (False, True)]
        assert await asyncio.gather(*asked) == expected
    assert VARIABLE.get() == "clean"


async def fail_after(ctx: Context) -> str:
    try:
        with anyio.fail_after(0.01):
            await anyio.sleep(LONG)
    except TimeoutError:
        return "too slow"
    return "never"


async def move_on_after(ctx: Context) -> str:
    with anyio.move_on_after(0.01) as scope:
        await anyio.sleep(LONG)
    return str(scope.cancelled_caught)


async def at_once(ctx: Context) -> str:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await anyio.sleep(LONG)
    return str(scope.cancelled_caught)


async def in_turns(ctx: Context) -> str:
    found: list[int] = []
    added = [anyio.Event() for _ in range(3)]

    async def add(n: int) -> None:
        if n < 2:
            await added[n + 1].wait()
        found.append(n)
        added[n].set()

    async with anyio.create_task_group() as tasks:
        for n in range(3):
            tasks.start_soon(add, n)
    return str(found)


async def failing_tasks(ctx: Context) -> str:
    async def fail() -> None:
        await anyio.sleep(0)
        raise ValueError("one")

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep, LONG)
            tasks.start_soon(fail)
    except ExceptionGroup as group:
        return str(len(group.exceptions))
    return "never"


async def native(ctx: Context) -> str:
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(LONG)
    except TimeoutError:
        return str(await asyncio.wait_for(asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)), 5))
    return "never"


async def shielded(ctx: Context) -> str:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.sleep, LONG)
        tasks.cancel_scope.cancel()
    await anyio.sleep(0)
    return "alive"


SCOPES = {fail_after: "too slow", move_on_after: "True", at_once: "True", in_turns: "[2, 1, 0]", failing_tasks: "1"}
SCOPES |= {native: "[1, 2]", shielded: "alive"}


@each("tool", SCOPES)
async def test_structured_concurrency_works_in_handlers(tool: Any) -> None:
    async with connected(Latest(), toolbox(tool)) as connection:
        for _ in range(3):
            assert await outcome(connection.client, tool.__name__) == SCOPES[tool]
        together = (outcome(connection.client, tool.__name__) for _ in range(10))
        assert await asyncio.gather(*together) == [SCOPES[tool]] * 10


# --- progress, timeouts, cancellation -------------------------------------------------------------------------


def striding(revision: str) -> Any:
    """Return a server with a tool that reports its progress after each step."""

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        steps, pause = params.arguments["steps"], params.arguments["pause"]
        for step in range(steps):
            await anyio.sleep(pause)
            await ctx.progress(step, steps, f"step {step}")
        return said("there", revision)

    return server(revision, call_tool=call_tool)


@every_revision
async def test_progress_is_sent_only_for_requests_that_ask_for_it(revision: str) -> None:
    async with connected(client(revision), striding(revision)) as connection:
        seen: list[list[Any]] = [[], []]
        views = [connection.client.with_options(on_progress=mine.append) for mine in seen]
        assert await asyncio.gather(*(outcome(one, "walk", steps=3, pause=0.001) for one in views)) == ["there"] * 2
        for mine in seen:
            assert [(params.progress, params.total) for params in mine] == [(0, 3), (1, 3), (2, 3)]
        assert len({params.progress_token for mine in seen for params in mine}) == 2
        before = len(connection.theirs.params("notifications/progress"))
        await connection.client.call_tool("walk", {"steps": 3, "pause": 0})
        assert len(connection.theirs.params("notifications/progress")) == before


async def test_an_error_in_a_progress_callback_does_not_fail_the_request(caplog: pytest.LogCaptureFixture) -> None:
    def fail(params: Any) -> None:
        raise ValueError("callback")

    async with connected(Latest(), striding(LATEST)) as connection:
        view = connection.client.with_options(on_progress=fail)
        assert text_of(await view.call_tool("walk", {"steps": 2, "pause": 0})) == "there"
    assert caplog.text.count("ValueError: callback") == 2


async def test_progress_extends_the_timeout() -> None:
    async with leaping_clock(), connected(Latest(), striding(LATEST)) as connection:
        walk = {"steps": 12, "pause": PATIENCE / 6}
        patient = connection.client.with_options(timeout=PATIENCE, on_progress=lambda params: None)
        assert text_of(await patient.call_tool("walk", walk)) == "there"
        with pytest.raises(runtime.RequestTimeout):  # without a progress callback, progress does not extend the timeout
            await connection.client.with_options(timeout=PATIENCE).call_tool("walk", walk)
        await refused(patient.with_options(total_timeout=PATIENCE).call_tool("walk", walk), runtime.RequestTimeout)


@every_revision
@pytest.mark.parametrize("kind", ["timeout", "total_timeout"])
async def test_a_client_cancels_a_request_that_timed_out(revision: str, kind: str) -> None:
    cancelled: list[bool] = []

    async def wait(ctx: Any) -> None:
        try:
            await anyio.sleep(LONG)
        finally:
            cancelled.append(True)

    async with connected(client(revision), toolbox(wait, revision=revision)) as connection:
        view = connection.client.with_options(**{kind: 0.05})
        await refused(view.call_tool("wait"), runtime.RequestTimeout, match="tools/call")
        await until(lambda: cancelled)
        (told,) = connection.ours.params("notifications/cancelled")
        (asked,) = [message for message in connection.ours.sent if message.get("method") == "tools/call"]
        assert told == {"requestId": asked["id"], "reason": "timed out"}
        await connection.client.ping()
        assert [message["id"] for message in connection.theirs.sent if message.get("id") == asked["id"]] == []
        assert not connection.client.link.connection.pending


async def test_clients_have_a_default_timeout_that_can_be_disabled() -> None:
    assert LatestServer.options.timeout is None, "a person may be answering"
    async with leaping_clock(), connected(Latest(), Sleeper()) as connection:
        client = connection.client
        assert client.options == runtime.Options(timeout=60.0, total_timeout=None)
        forever = client.with_options(timeout=None, total_timeout=5)
        assert forever.options == runtime.Options(timeout=None, total_timeout=5)
        assert forever.with_options().options == forever.options
        assert forever.with_options(total_timeout=None).options == runtime.Options(timeout=None)
        client.options = runtime.Options(timeout=0.05)
        await refused(client.call_tool("sleep"), runtime.RequestTimeout, match="tools/call was not answered in time")
        with anyio.move_on_after(0.2) as scope:
            await client.with_options(timeout=None).call_tool("sleep")
        assert scope.cancelled_caught


class Thinking(Latest):
    """Client that answers later than the timeout of its own requests."""

    begun = 0
    calls = ""

    async def on_list_roots(self, params: mcp.RequestParams, ctx: Any) -> mcp.ListRootsResult:
        self.begun += 1
        if self.calls:
            await self.with_options(timeout=0.05).call_tool(self.calls)
        await anyio.sleep(0.3)
        return mcp.ListRootsResult(roots=[])


async def test_the_timeout_is_suspended_while_the_client_answers_a_request() -> None:
    async def ask(ctx: Context, after: float = 0) -> str:
        roots = (await ctx.list_roots()).roots
        await anyio.sleep(after)
        return str(len(roots))

    async def sleep(ctx: Context) -> None:
        await anyio.sleep(LONG)

    async with leaping_clock(), connected(Thinking(), toolbox(ask, sleep)) as connection:
        client = connection.client
        hasty = client.with_options(timeout=0.1)
        assert await outcome(hasty, "ask") == "0"
        await refused(hasty.call_tool("ask", {"after": LONG}), runtime.RequestTimeout)  # runs after the answer
        await refused(hasty.with_options(total_timeout=0.2).call_tool("ask"), runtime.RequestTimeout)
        client.calls = "sleep"
        await refused(hasty.call_tool("ask"), match="Internal error")  # the client's own call in its handler timed out
        assert client.begun == 4


async def test_options_of_a_class_are_used() -> None:
    async with connected(client(LATEST, options=runtime.Options(timeout=0.05)), Sleeper()) as connection:
        await refused(connection.client.call_tool("sleep"), runtime.RequestTimeout)


async def test_a_cancelled_task_cancels_its_request() -> None:
    theirs = Sleeper()
    async with connected(Latest(), theirs) as connection:
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(connection.client.call_tool, "sleep")
            await until(lambda: theirs.waiting == 3)
            tasks.cancel_scope.cancel()
        await until(lambda: theirs.cancelled == 3)
        assert theirs.waiting == 0
        told = [params["requestId"] for params in connection.ours.params("notifications/cancelled")]
        asked = [message["id"] for message in connection.ours.sent if message.get("method") == "tools/call"]
        assert (sorted(told), await outcome(connection.client, "quick")) == (asked, "quick 0")


async def test_an_immediate_cancellation_is_sent_after_its_request() -> None:
    theirs = Sleeper()
    async with connected(Latest(), theirs) as connection:
        for others in range(4):
            async with anyio.create_task_group() as tasks:
                for _ in range(others):
                    tasks.start_soon(connection.client.call_tool, "sleep")
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await connection.client.call_tool("sleep")
                tasks.cancel_scope.cancel()
        await connection.client.ping()
        await until(lambda: theirs.waiting == 0)
        given_up: set[int] = set()
        for message in connection.ours.sent:
            assert message.get("id") not in given_up
            if message["method"] == "notifications/cancelled":
                given_up.add(message["params"]["requestId"])
        assert len(given_up) == 10


async def test_a_late_response_does_not_answer_the_next_request() -> None:
    async def script(raw: Raw) -> None:
        await raw.welcome({"tools": {}})
        first = await raw.receive()
        assert (await raw.receive())["method"] == "notifications/cancelled"
        for asked, text in ((first, "late"), (await raw.receive(), "right")):
            await raw.send(answer(asked["id"], {"content": [{"type": "text", "text": text}]}))

    async with scripted(Latest(), script) as caller:
        await refused(caller.with_options(timeout=0.05).call_tool("x"), runtime.RequestTimeout)
        assert await outcome(caller, "y") == "right"


async def test_a_handler_may_send_a_notification_after_its_cancellation() -> None:
    async def work(ctx: Context) -> None:
        try:
            await anyio.sleep(LONG)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await ctx.progress(1)  # not sent any more
                await ctx.notify_tool_list_changed()
            raise

    async with played(toolbox(work)) as (raw, _):
        await raw.introduce(LATEST)
        call = {"name": "work", "_meta": {"progressToken": "t"}}
        await raw.send(request(1, "tools/call", call), notification("notifications/cancelled", {"requestId": 1}))
        assert (await raw.receive())["method"] == "notifications/tools/list_changed"
        assert await raw.ask(request(1, "ping")) == answer(1, {})


async def test_a_request_and_its_cancellation_may_arrive_together() -> None:
    theirs = Sleeper()
    async with played(theirs) as (raw, _):
        await raw.introduce(LATEST)
        cancelling = {id_: notification("notifications/cancelled", {"requestId": id_}) for id_ in "ab"}
        sleep, quick = (request(id_, "tools/call", {"name": name}) for id_, name in (("a", "sleep"), ("b", "quick")))
        await raw.send(sleep, cancelling["a"], quick, cancelling["b"], request("c", "ping"))
        assert [(await raw.receive())["id"] for _ in range(2)] == ["b", "c"]
        await until(lambda: theirs.waiting == 0)


async def test_initialize_that_takes_too_long_is_not_cancelled() -> None:
    left, right = pair()
    recording = Recording(left, LATEST)

    with pytest.raises(runtime.RequestTimeout):
        async with client(LATEST, options=runtime.Options(timeout=0.05)).connected(recording):
            raise AssertionError
    assert recording.methods() == ["initialize"]
    await right.close()


# --- requests of the server -----------------------------------------------------------------------------------


@pytest.mark.full
@every_revision
async def test_a_server_sends_requests_to_its_client(revision: str) -> None:
    types = bindings(revision).types

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        roots = await ctx.list_roots()
        message = types.SamplingMessage(role="user", content=types.TextContent(text="Hi?"))
        sampled = await ctx.create_message([message], 10)
        return said(f"{len(roots.roots)} {sampled.content.text}", revision)

    async def on_list_roots(self: Any, params: Any, ctx: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///x")])

    async def on_create_message(self: Any, params: Any, ctx: Any) -> Any:
        assert params.max_tokens == 10
        await anyio.sleep(0)
        return types.CreateMessageResult(model="m", role="assistant", content=types.TextContent(text="Ho!"))

    ours = client(revision, on_list_roots=on_list_roots, on_create_message=on_create_message)
    async with connected(ours, server(revision, call_tool=call_tool)) as connection:
        assert await asyncio.gather(*(outcome(connection.client, "x") for _ in range(20))) == ["1 Ho!"] * 20


async def test_requests_in_both_directions_can_be_nested() -> None:
    """A tool samples, the model of the client calls a second tool, and this tool elicits."""

    async def outer(ctx: Context) -> str:
        message = mcp.SamplingMessage(role="user", content=mcp.TextContent(text="go"))
        return f"outer({(await ctx.create_message([message], 1)).model})"

    async def inner(ctx: Context) -> str:
        schema = mcp.ElicitRequestFormParamsRequestedSchema(properties={})
        answered = await ctx.elicit(mcp.ElicitRequestFormParams(message="Who?", requested_schema=schema))
        return f"inner({answered.action})"

    class Modelling(Latest):
        async def on_create_message(self, params: Any, ctx: Any) -> mcp.CreateMessageResult:
            content = mcp.TextContent(text="there")
            return mcp.CreateMessageResult(model=await outcome(self, "inner"), role="assistant", content=content)

        async def on_elicit(self, params: Any, ctx: Any) -> mcp.ElicitResult:
            assert await self.ping() == mcp.Result()
            return mcp.ElicitResult(action="decline")

    async with connected(Modelling(), toolbox(outer, inner)) as connection:
        assert await outcome(connection.client, "outer") == "outer(inner(decline))"


async def test_an_error_of_the_client_is_raised_in_the_handler() -> None:
    async def ask(ctx: Context) -> str:
        error = await refused(ctx.list_roots())
        return f"{error.code} {error.message}"

    async def on_list_roots(self: Any, params: Any, ctx: Any) -> mcp.ListRootsResult:
        raise runtime.ProtocolError(-1, "no home")

    async with connected(client(LATEST, on_list_roots=on_list_roots), toolbox(ask)) as connection:
        assert await outcome(connection.client, "ask") == "-1 no home"


async def test_a_cancelled_handler_cancels_its_own_requests() -> None:
    cancelled: list[bool] = []

    async def ask(ctx: Context) -> None:
        await ctx.list_roots()

    async def on_list_roots(self: Any, params: Any, ctx: Any) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(True)

    async with connected(client(LATEST, on_list_roots=on_list_roots), toolbox(ask)) as connection:
        await refused(connection.client.with_options(total_timeout=0.05).call_tool("ask"), runtime.RequestTimeout)
        await until(lambda: cancelled)
        assert connection.theirs.methods() == ["roots/list", "notifications/cancelled"]


@every_revision
async def test_ping_works_both_ways(revision: str) -> None:
    async def ping(ctx: Any) -> Any:
        return (await ctx.ping()).model_dump()

    async with connected(client(revision), toolbox(ping, revision=revision)) as connection:
        assert ((await connection.client.ping()).model_dump(), await outcome(connection.client, "ping")) == ({}, "{}")


@pytest.mark.parametrize("revision", [*STATEFUL, STATELESS])
async def test_a_root_must_have_a_file_uri(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    types, uri = bindings(revision).types, "file:///home"

    async def on_list_roots(self: Any, params: Any, ctx: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///a"), types.Root(uri=uri)])

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        return said(str(len((await ctx.list_roots()).roots)), revision)

    ours = client(revision, on_list_roots=on_list_roots)
    async with connected(ours, server(revision, call_tool=call_tool)) as connection:
        assert text_of(await connection.client.call_tool("x")) == "2"
        uri = "https://example.com/secret"
        error = await refused(connection.client.call_tool("x"), (runtime.ProtocolError, ValueError))
        message = "the URI of a root must begin with file://: 'https://example.com/secret'"
        assert message in (str(error) if revision == STATELESS else caplog.text)


# --- notifications --------------------------------------------------------------------------------------------


@every_revision
async def test_a_client_gets_log_messages_from_its_level_upwards(revision: str) -> None:
    heard: list[tuple[str, Any, str | None]] = []

    async def on_logging_message(self: Any, params: Any, ctx: Any) -> None:
        heard.append((params.level, params.data, params.logger))

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        await ctx.log("debug", {"n": 1})
        await ctx.log("warning", None, "door")
        await ctx.log("emergency", "fire")
        return said("done", revision)

    ours = client(revision, on_logging_message=on_logging_message)
    async with connected(ours, server(revision, call_tool=call_tool)) as connection:
        expected: list[Any] = [("debug", {"n": 1}, None), ("warning", None, "door"), ("emergency", "fire", None)]
        for level, dropped in ((None, 0), ("debug", 0), ("notice", 1), ("warning", 1), ("alert", 2), ("info", 1)):
            if level is not None:
                await connection.client.set_level(level)
            heard.clear()
            await connection.client.call_tool("x")
            assert heard == expected[dropped:], level


async def test_each_client_has_its_own_log_level() -> None:

    async def talk(ctx: Context) -> None:
        await ctx.log("info", "hello")

    theirs = toolbox(talk)
    async with connected(Latest(), theirs) as one, connected(Latest(), theirs) as two:
        await one.client.set_level("error")
        await outcome(one.client, "talk")
        await outcome(two.client, "talk")
        assert (one.theirs.methods(), two.theirs.methods()) == ([], ["notifications/message"])


async def test_notifications_reach_their_handlers() -> None:
    heard: list[str] = []

    async def hear(self: Any, params: Any, ctx: Any) -> None:
        heard.append("changed")

    async def tell(ctx: Context) -> None:
        await ctx.notify_tool_list_changed()
        await ctx.notify_resource_updated("x://y")

    def on_resource_updated(self: Any, params: Any, ctx: Any) -> None:
        heard.append(params.uri)

    handlers = {"on_tool_list_changed": hear, "on_resource_updated": on_resource_updated, "on_list_roots": handler}
    async with connected(
        client(LATEST, **handlers), toolbox(tell, subscribe=handler, on_roots_list_changed=hear)
    ) as connection:
        await outcome(connection.client, "tell")
        await until(lambda: sorted(heard) == ["changed", "x://y"])
        await connection.client.notify_roots_list_changed()
        await until(lambda: sorted(heard) == ["changed", "changed", "x://y"])


async def test_an_error_in_a_notification_handler_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def on_tool_list_changed(self: Any, params: Any, ctx: Any) -> None:
        raise ValueError("ouch")

    async def tell(ctx: Context) -> str:
        await ctx.notify_tool_list_changed()
        return "told"

    async with connected(client(LATEST, on_tool_list_changed=on_tool_list_changed), toolbox(tell)) as connection:
        assert await outcome(connection.client, "tell") == "told"
        await until(lambda: "ValueError: ouch" in caplog.text)


async def test_a_server_notifies_all_its_clients() -> None:
    theirs = server(LATEST, list_tools=handler)
    assert theirs.connections == []
    async with connected(Latest(), theirs) as one, connected(Latest(), theirs) as two, played(theirs) as (raw, _):
        assert len(theirs.connections) <= 2
        await until(lambda: len(theirs.connections) == 2)
        await raw.ask(initialize(LATEST))  # a third client, which is not ready yet
        for context in theirs.connections:
            await context.notify_tool_list_changed()
        assert one.theirs.methods() == two.theirs.methods() == ["notifications/tools/list_changed"]
        await raw.send(INITIALIZED)
        await until(lambda: len(theirs.connections) == 3)
        await raw.close()
        await until(lambda: len(theirs.connections) == 2)
        assert theirs.connections[0].request_id is None
    assert theirs.connections == []


# --- custom methods -------------------------------------------------------------------------------------------


class Greeting(runtime.Model):
    name: str


SERVER_GREET: runtime.RequestMethod[Greeting, Greeting] = runtime.RequestMethod(
    "acme/greet", "client", Greeting, Greeting
)
CLIENT_GREET: runtime.RequestMethod[Greeting, runtime.Json] = runtime.RequestMethod(
    "acme/greet", "server", Greeting, runtime.Json
)
SHOUT: runtime.Notification[dict[str, int]] = runtime.Notification("acme/shout", "both", dict[str, int])


async def test_both_sides_may_define_custom_methods() -> None:
    shouts: list[Any] = []

    class Greeter(LatestServer):
        @runtime.handles(SERVER_GREET)
        async def greet(self, params: Greeting, ctx: Context) -> Greeting:
            back = await ctx.request(CLIENT_GREET, Greeting(name="client"))
            await ctx.notify(SHOUT, {"server": 1})
            return Greeting(name=f"{params.name} {back}")

        @runtime.handles(SHOUT)
        def heard(self, params: dict[str, int], ctx: Context) -> None:
            shouts.append(params)

    class Greeted(Latest):
        @runtime.handles(CLIENT_GREET)
        def greet(self, params: Greeting, ctx: Any) -> Any:
            return {params.name: None}

        @runtime.handles(SHOUT)
        async def heard(self, params: dict[str, int], ctx: Any) -> None:
            shouts.append(params)

    async with connected(Greeted(), Greeter()) as connection:
        answered = await connection.client.call(SERVER_GREET, Greeting(name="server"))
        assert answered == Greeting(name="server {'client': None}")
        await connection.client.notify(SHOUT, {})
        await until(lambda: len(shouts) == 2)
        assert sorted(shouts, key=len) == [{}, {"server": 1}]
        with pytest.raises(runtime.ProtocolError) as caught:
            await connection.client.call(
                runtime.RequestMethod("acme/nope", "client", Greeting, Greeting), Greeting(name="x")
            )
        assert caught.value.code == -32601


async def test_methods_of_the_protocol_can_be_called_by_their_descriptor() -> None:
    listing = server(LATEST, list_tools=lambda self, params, ctx: mcp.ListToolsResult(tools=[]))
    async with connected(Latest(), listing) as connection:
        answered = await connection.client.request(methods.LIST_TOOLS, mcp.PaginatedRequestParams())
        assert answered == mcp.ListToolsResult(tools=[])


# --- pages ----------------------------------------------------------------------------------------------------


@every_revision
async def test_lists_are_read_page_by_page(revision: str) -> None:
    types, asked = bindings(revision).types, list[str | None]()

    async def list_tools(self: Any, params: Any, ctx: Any) -> Any:
        asked.append(params.cursor)
        page = int(params.cursor or 0)
        tools = [types.Tool(name=f"{page}{n}", input_schema=types.ToolInputSchema()) for n in range(page)]
        return types.ListToolsResult(tools=tools, next_cursor=str(page + 1) if page < 3 else None)

    async with connected(client(revision), server(revision, list_tools=list_tools)) as connection:
        tools = connection.client.iter_tools()
        assert [tool.name async for tool in tools] == ["10", "20", "21", "30", "31", "32"]
        assert asked == [None, "1", "2", "3"]
        tools = connection.client.iter_tools()
        assert (await anext(tools)).name == "10"
        await tools.aclose()
        assert asked[4:] == [None, "1"]


@every_revision
async def test_the_pages_of_a_list_have_a_limit_together(revision: str) -> None:
    types = bindings(revision).types

    async def list_tools(self: Any, params: Any, ctx: Any) -> Any:
        asked.append(params.cursor)
        tool = types.Tool(name=f"{len(asked)}", description="x" * 900, input_schema={"type": "object"})
        return types.ListToolsResult(tools=[tool], next_cursor=str(len(asked)) if len(asked) < 5 else None)

    asked: list[str | None] = []
    async with connected(client(revision), server(revision, list_tools=list_tools)) as connection:
        connection.client.max_list_bytes = 3000
        with pytest.raises(runtime.ProtocolError, match="larger than 3000 bytes; max_list_bytes allows more"):
            assert [tool async for tool in connection.client.iter_tools()] == []
        assert asked == [None, "1", "2", "3"][: len(asked)]
        connection.client.max_list_bytes, asked[:] = 6000, []
        assert len([tool async for tool in connection.client.iter_tools()]) == 5


@pytest.mark.full
@every_revision
async def test_a_list_without_end_is_an_error(revision: str) -> None:
    types = bindings(revision).types
    pages, period = 0, 1

    async def list_tools(self: Any, params: Any, ctx: Any) -> Any:
        nonlocal pages
        pages += 1
        return types.ListToolsResult(tools=[], next_cursor=str(pages % period))

    async with connected(client(revision), server(revision, list_tools=list_tools)) as connection:
        cycles = [(1, 1000, 2, "gives the cursor '0' twice"), (3, 1000, 4, "gives the cursor '1' twice")]
        endless = [
            (10**6, 5, 5, "more than 5 pages; max_pages allows more"),
            (10**6, 1000, 1000, "more than 1000 pages"),
        ]
        for turns, most, read, message in cycles + endless:
            pages, period = 0, turns
            connection.client.max_pages = most
            with pytest.raises(runtime.ProtocolError, match=message):
                assert [tool async for tool in connection.client.iter_tools()] == []
            assert pages == read


# --- revisions ------------------------------------------------------------------------------------------------


def versatile() -> list[runtime.Server]:
    """Return one server for each stateful revision; the tools return the revision."""

    def make(revision: str) -> Any:
        async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
            assert isinstance(ctx, bindings(revision).Context)
            assert isinstance(params, bindings(revision).types.CallToolRequestParams)
            return said(f"{revision} {ctx.revision}", revision)

        return server(revision, call_tool=call_tool)

    return [make(revision) for revision in STATEFUL]


async def test_one_endpoint_speaks_many_revisions() -> None:
    servers = versatile()

    async def ask(revision: str) -> None:
        async with connected(client(revision), *servers) as connection:
            assert text_of(await connection.client.call_tool("x")) == f"{revision} {revision}"
            for mine in servers:
                assert all(context.revision == mine.revision for context in mine.connections)

    await asyncio.gather(*(ask(revision) for revision in STATEFUL * 3))
    for order in (servers[::-1], servers[1:] + servers[:1]):
        async with played(*order) as (raw, _):
            assert (await raw.introduce("1999-01-01"))["result"]["protocolVersion"] == LATEST


async def test_connections_belong_to_the_server_of_their_revision() -> None:
    old, new = server("2024-11-05", list_tools=handler), server(LATEST, list_tools=handler)
    async with connected(client("2024-11-05"), old, new) as one, connected(Latest(), old, new) as two:
        await until(lambda: len(old.connections) == len(new.connections) == 1)
        for context in (*old.connections, *new.connections):
            await context.notify_tool_list_changed()
        assert len(one.theirs.methods()) == len(two.theirs.methods()) == 1


@pytest.mark.parametrize("pairs", [("2024-11-05", LATEST), (LATEST, "2024-11-05"), ("2025-06-18", "2025-03-26")])
async def test_a_connection_without_a_common_revision_fails(pairs: tuple[str, str]) -> None:
    ours, theirs = pairs
    left, right = pair()
    recording = Recording(left, ours)
    async with running(runtime.serve(Recording(right, theirs), server(theirs), revisions=[theirs])):
        with pytest.raises(runtime.UnsupportedRevision, match=theirs):
            async with client(ours).connected(recording, exactly=True):
                raise AssertionError
    assert recording.methods() == ["initialize"]


# --- lifecycle ------------------------------------------------------------------------------------------------


async def test_lifespans_are_entered_and_left() -> None:
    log: list[str] = []

    def shop(name: str) -> Any:
        @asynccontextmanager
        async def lifespan(self: Any) -> AsyncGenerator[None]:
            log.append(f"open {name}")
            try:
                yield
            finally:
                log.append(f"close {name}")

        return server(LATEST, lifespan=lifespan)

    async with lifespans([shop("a"), shop("b")]):
        log.append("serving")
    with pytest.raises(ValueError, match="inside"):
        async with lifespans([shop("c")]):
            raise ValueError("inside")
    assert log == ["open a", "open b", "serving", "close b", "close a", "open c", "close c"]


async def test_a_server_may_answer_initialize_itself() -> None:
    class Custom(LatestServer):
        async def initialize(self, params: mcp.InitializeRequestParams, ctx: Context) -> mcp.InitializeResult:
            await anyio.sleep(0)
            if params.client_info.name == "rude":
                raise runtime.ProtocolError(-1, "go away")
            has: Any = {"prompts": {}}
            info = {"name": "custom", "version": "1"}
            result = {"capabilities": has, "protocolVersion": params.protocol_version, "serverInfo": info}
            return mcp.InitializeResult.model_validate(result)

    class Rude(Latest):
        info = mcp.Implementation(name="rude", version="1")

    async with connected(Latest(), Custom()) as connection:
        assert connection.client.server_capabilities == {"prompts": {}}
        assert connection.client.server_info.name == "custom"
        await refused(connection.client.list_tools(), runtime.CapabilityMissing)
    with pytest.raises(runtime.ProtocolError, match="go away"):
        async with connected(Rude(), Custom()):
            raise AssertionError


async def test_an_error_in_the_block_is_raised_unchanged() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with connected(Latest(), Sleeper()):
            raise KeyError("mine")

    async def fail_among_calls() -> None:
        async with connected(Latest(), Sleeper()) as connection:
            with anyio.CancelScope() as scope:
                asyncio.get_running_loop().call_later(0.01, scope.cancel)
                await connection.client.call_tool("sleep")
            raise KeyError("mine")

    await refused(fail_among_calls(), KeyError, match="mine")


async def test_calls_fail_when_the_server_disconnects() -> None:
    left, right = pair()
    raw = Raw(right)
    async with running(raw.welcome({"tools": {}})), Latest.connect(Recording(left, LATEST)) as caller:
        asked = asyncio.gather(*(refused(caller.ping(), runtime.ConnectionClosed) for _ in range(3)))
        await anyio.wait_all_tasks_blocked()
        await raw.close()
        assert [str(failure) for failure in await asked] == ["the other side closed the connection"] * 3
        await refused(caller.ping(), runtime.ConnectionClosed)
        await refused(caller.notify(methods.INITIALIZED, mcp.NotificationParams()), runtime.ConnectionClosed)


async def test_handlers_are_cancelled_when_the_client_disconnects() -> None:
    theirs = Sleeper()
    async with played(theirs) as (raw, _):
        await raw.introduce(LATEST)
        await raw.send(*(request(n, "tools/call", {"name": "sleep"}) for n in range(5)))
        await until(lambda: theirs.waiting == 5)
    assert theirs.cancelled == 5


async def test_pending_calls_fail_when_the_client_closes_the_connection() -> None:
    theirs = Sleeper()
    async with connected(Latest(), theirs) as connection:
        asked = [refused(connection.client.call_tool("sleep"), runtime.ConnectionClosed) for _ in range(3)]
        leaving = asyncio.gather(*asked)
        await until(lambda: theirs.waiting == 3)
    assert [str(error) for error in await leaving] == ["the connection was closed by this side"] * 3
    assert theirs.cancelled == 3


async def test_batches_are_answered_as_batches() -> None:
    revision, go = "2025-03-26", anyio.Event()

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        if params.name == "slow":
            await go.wait()
        return said(params.name, revision)

    async with played(server(revision, call_tool=call_tool)) as (raw, _):
        await raw.introduce(revision)
        told = notification("notifications/roots/list_changed")
        slow, quick = (request(name, "tools/call", {"name": name}) for name in ("slow", "quick"))
        await raw.send([slow, told, quick, request("p", "ping"), request("u", "nope")], request("alone", "ping"))
        assert (await raw.receive())["id"] == "alone"
        go.set()
        parts = await raw.receive()
        assert {part["id"]: "result" in part for part in parts} == {"slow": True, "quick": True, "p": True, "u": False}
        gone, go = notification("notifications/cancelled", {"requestId": "x"}), anyio.Event()
        await raw.send([request("x", "tools/call", {"name": "slow"}), request("y", "ping"), gone], [told])
        assert [part["id"] for part in await raw.receive()] == ["y"]
        assert await raw.ask(request("z", "ping")) == answer("z", {})


async def test_a_server_may_refuse_initialize() -> None:
    async def script(raw: Raw) -> None:
        await raw.send(refusal((await raw.receive())["id"], -7, "full"))

    with pytest.raises(runtime.ProtocolError, match="full"):
        async with scripted(Latest(), script):
            raise AssertionError


TOO_LONG = 10.0
INFO = mcp.Implementation(name="racing", version="1")


class Racing(LatestServer):
    """Server whose tool answers at once, reports progress without end, or returns a very large result."""

    info = INFO

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name == "huge":
            return mcp.CallToolResult(content=[mcp.TextContent(text="x" * 1_500_000)])
        while params.name == "endless":
            await ctx.progress(time.monotonic())
            await asyncio.sleep(0)
        return mcp.CallToolResult(content=[])


class Delaying(Transport):
    """Transport that blocks the event loop after it received a message, until the request times out."""

    def __init__(self, inner: Transport) -> None:
        self._inner, self.seconds = inner, 0.0

    async def receive(self) -> Sequence[Any]:
        messages = await self._inner.receive()
        time.sleep(self.seconds)
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        await self._inner.send(messages)

    async def close(self) -> None:
        await self._inner.close()


async def test_a_response_that_arrives_at_the_timeout_is_accepted() -> None:
    left, right = pair()
    delaying = Delaying(left)
    async with running(runtime.serve(right, Racing())), runtime.connect(delaying, Latest) as client:
        delaying.seconds = 0.6  # answer and timeout happen in one turn of the event loop
        assert (await client.with_options(timeout=0.5).call_tool("timed")).content == []


async def test_progress_that_arrives_at_the_timeout_does_not_end_the_connection() -> None:
    left, right = pair()
    async with running(runtime.serve(right, Racing())), runtime.connect(left, Latest) as client:
        hurried = client.with_options(timeout=5, total_timeout=0.02, on_progress=lambda params: None)
        for _ in range(20):
            await refused(hurried.call_tool("endless"), runtime.RequestTimeout)
        await client.ping()


class Vanishing(Transport):
    """Transport whose peer answers `initialize` and disconnects at once."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._request: Any = None
        self._answered = False

    async def receive(self) -> Sequence[bytes]:
        await self._asked.wait()
        if self._answered:
            return ()
        self._answered = True
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "gone", "version": "1"}}
        return [json.dumps({"jsonrpc": "2.0", "id": self._request["id"], "result": result}).encode()]

    async def send(self, messages: Sequence[bytes]) -> None:
        self._request = self._request or json.loads(messages[0])
        self._asked.set()

    async def close(self) -> None:
        self._asked.set()


async def test_a_disconnect_right_after_the_initialize_response_is_an_error() -> None:
    with pytest.raises(runtime.ConnectionClosed):
        async with runtime.connect(Vanishing(), Latest) as client:
            await client.ping()


def test_a_large_response_in_a_session_does_not_block() -> None:
    async def post(app: HttpApp, message: Any, **headers: str) -> list[Any]:
        sent, bodies = list[Any](), [{"type": "http.request", "body": json.dumps(message).encode()}]
        known = {"host": "localhost", "content-type": "application/json", **headers}
        known["accept"] = "application/json, text/event-stream"
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in known.items()]

        async def receive() -> Any:
            if bodies:
                return bodies.pop()
            return await asyncio.sleep(TOO_LONG)

        async def send(part: Any) -> None:
            sent.append(part)

        await app({"type": "http", "method": "POST", "path": "/mcp", "headers": raw}, receive, send)
        return sent

    async def talk() -> None:
        app = HttpApp(Racing())
        async with app.lifespan():
            begun = await post(app, initialize(revision="2025-11-25"))
            session = dict(begun[0]["headers"])[b"mcp-session-id"].decode()
            await post(app, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session)
            call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "huge", "arguments": {}}}
            answer = await asyncio.wait_for(post(app, call, mcp_session_id=session), TOO_LONG)
            assert sum(len(part.get("body", b"")) for part in answer) > 1_500_000

    asyncio.run(talk())


# --- lost HTTP sessions ---------------------------------------------------------------------------------------


async def test_subscriptions_and_the_log_level_are_sent_again_after_a_lost_session() -> None:
    heard = list[str]()
    capabilities = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}

    async def forgetful(raw: Raw) -> None:
        await raw.welcome(capabilities)
        while heard.count("tools/call") < 2:
            asked = await raw.receive()
            heard.append(asked["method"])
            if heard.count("tools/call") == 1 and asked["method"] == "tools/call":
                await raw.send(Lost(asked["id"], SessionLost("forgotten")))
                await raw.welcome(capabilities)
            else:
                await raw.send(answer(asked["id"], {"content": []} if asked["method"] == "tools/call" else {}))

    async with scripted(Latest(), forgetful) as client:
        await client.set_level("error")
        for uri in ("note://1", "note://2"):
            await client.subscribe(uri)
        await client.set_level("info")
        await client.unsubscribe("note://1")
        await client.call_tool("x")
    again = heard[heard.index("tools/call") + 1 :]
    assert again == ["logging/setLevel", "resources/subscribe", "tools/call"]
