"""Clients and servers that talk to each other in memory; every message is held against the schema."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from mcp_bindgen.runtime import (
    CapabilityMissing,
    ConnectionClosed,
    Json,
    Model,
    Notification,
    Options,
    ProtocolError,
    Request,
    RequestTimeout,
    Server,
    UnsupportedRevision,
    handles,
    serve,
)
from mcp_bindgen.runtime.session.service import lifespans
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Client as Latest
from mcp_bindgen.v2025_11_25 import Context, errors, methods
from mcp_bindgen.v2025_11_25 import Server as LatestServer
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.support.checked_connections import (
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
    request,
    running,
    until,
)

LATEST = "2025-11-25"
LONG = 3600.0
PATIENCE = 0.5
"""A timeout for what shall time out."""

every_revision = pytest.mark.parametrize("revision", STATEFUL)


# --- tools ----------------------------------------------------------------------------------------------------


def server(revision: str, **handlers: Any) -> Any:
    """A server with handlers."""
    return type("Made", (bindings(revision).Server,), handlers)()


def client(revision: str, **handlers: Any) -> Any:
    """A client with handlers."""
    return type("Made", (bindings(revision).Client,), handlers)()


def said(text: str, revision: str = LATEST) -> Any:
    """What a tool answers."""
    types = bindings(revision).types
    return types.CallToolResult(content=[types.TextContent(text=text)])


def text_of(result: Any) -> str:
    (block,) = result.content
    return str(block.text)


class Tools(LatestServer):
    """Answers `tools/call` by the method of that name."""

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        return cast(mcp.CallToolResult, said(str(await getattr(self, params.name)(ctx, **(params.arguments or {})))))


async def outcome(client: Any, name: str, **arguments: Any) -> str:
    """What a tool of `Tools` says."""
    return text_of(await client.call_tool(name, arguments))


class Sleeper(Tools):
    """Has tools that wait; it knows how many do, and what became of them."""

    def __init__(self) -> None:
        self.waiting = 0
        self.cancelled = 0
        self.go = anyio.Event()

    async def sleep(self, ctx: Context) -> str:
        self.waiting += 1
        try:
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            self.waiting -= 1
        return "rested"

    async def quick(self, ctx: Context, n: int = 0) -> str:
        return f"quick {n}"


# --- capabilities ---------------------------------------------------------------------------------------------


async def handler(self: Any, params: Any, ctx: Any) -> Any:
    raise NotImplementedError


@every_revision
async def test_capabilities_follow_from_the_handlers(revision: str) -> None:
    offered = dict.fromkeys(["call_tool", "list_prompts", "read_resource", "subscribe", "complete"], handler)
    ours = client(revision, on_list_roots=handler, on_create_message=handler)
    seen: list[Any] = []

    async def on_initialized(self: Any, params: Any, ctx: Any) -> None:
        seen.append((ctx.peer_capabilities, ctx.peer_info.name, ctx.revision))

    theirs = server(revision, on_initialized=on_initialized, **offered)
    theirs.info = bindings(revision).types.Implementation(name="shop", version="3")
    theirs.instructions = "Be kind."
    async with connected(ours, theirs) as connection:
        declared = connection.client.server_capabilities
        assert declared == {
            "logging": {},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "tools": {"listChanged": True},
            **({} if revision == "2024-11-05" else {"completions": {}}),
        }
        assert connection.client.server_info == theirs.info
        assert connection.client.instructions == "Be kind."
        await until(lambda: seen)
        assert seen == [({"roots": {"listChanged": True}, "sampling": {}}, "mcp-bindgen", revision)]


@every_revision
async def test_who_offers_nothing_declares_nothing(revision: str) -> None:
    async with connected(client(revision), server(revision)) as connection:
        assert connection.client.server_capabilities == {"logging": {}}
        assert connection.ours.sent[0]["params"]["capabilities"] == {}
        assert connection.client.instructions is None


async def test_more_capabilities_can_be_declared() -> None:
    class Shop(LatestServer):
        list_tools = handler

        def extra_capabilities(self) -> Any:
            return {"tools": {"x/stock": True}, "experimental": {"x/y": {}}}

    class Buyer(Latest):
        def extra_capabilities(self) -> Any:
            return {"elicitation": {"url": {}}}

    async with connected(Buyer(), Shop()) as connection:
        assert connection.client.server_capabilities == {
            "logging": {},
            "tools": {"listChanged": True, "x/stock": True},
            "experimental": {"x/y": {}},
        }
        assert connection.ours.sent[0]["params"]["capabilities"] == {"elicitation": {"url": {}}}


@every_revision
async def test_what_was_not_declared_is_not_sent(revision: str) -> None:
    failures: list[CapabilityMissing] = []

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        for attempt in (ctx.list_roots, ctx.notify_resource_list_changed):
            with pytest.raises(CapabilityMissing) as caught:
                await attempt()
            failures.append(caught.value)
        return said("done", revision)

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        before = len(connection.ours.sent)
        for attempt in (connection.client.list_prompts, connection.client.notify_roots_list_changed):
            with pytest.raises(CapabilityMissing) as caught:
                await attempt()
            failures.append(caught.value)
        assert len(connection.ours.sent) == before
        await connection.client.call_tool("x")
        assert connection.theirs.methods() == []
        assert [".".join(failure.capability) for failure in failures] == [
            "server.prompts",
            "client.roots.listChanged",
            "client.roots",
            "server.resources.listChanged",
        ]
        assert "'prompts', which the server did not declare" in str(failures[0])


@every_revision
async def test_who_lacks_what_a_handler_needs_is_told(revision: str) -> None:
    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        await ctx.list_roots()

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        with pytest.raises(ProtocolError, match="'roots', which the client did not declare") as caught:
            await connection.client.call_tool("x")
        assert caught.value.code == errors.INVALID_REQUEST


# --- errors ---------------------------------------------------------------------------------------------------


@every_revision
async def test_a_crash_is_logged_here_and_not_told_there(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        if params.name == "later":
            await anyio.sleep(0)
        raise ValueError("the password is s3cret")

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        for name in ("at once", "later"):
            with pytest.raises(ProtocolError) as caught:
                await connection.client.call_tool(name)
            assert (caught.value.code, caught.value.message, caught.value.data) == (-32603, "Internal error", None)
            assert not any("s3cret" in str(message) for message in connection.theirs.sent)
    assert [record.getMessage() for record in caplog.records] == ["the handler of tools/call failed"] * 2
    assert caplog.text.count("ValueError: the password is s3cret") == 2
    assert "Traceback" in caplog.text


@every_revision
async def test_an_error_that_a_handler_raises_arrives(revision: str) -> None:
    data = {"why": [1, None, "é"]}

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        raise ProtocolError(-32042, "Not now.", data)

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        with pytest.raises(ProtocolError) as caught:
            await connection.client.call_tool("x")
        assert (caught.value.code, caught.value.message, caught.value.data) == (-32042, "Not now.", data)


class Clumsy(Tools):
    """Fails in ways that a runtime does not expect."""

    async def data(self, ctx: Context) -> str:
        raise ProtocolError(1, "no", object())

    async def message(self, ctx: Context) -> str:
        raise ProtocolError(1, cast(Any, object()))

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        answered = await super().call_tool(params, ctx)
        if params.name == "result":
            cast(Any, answered).content = [object()]
        return answered

    async def result(self, ctx: Context) -> str:
        return ""

    async def cancelled(self, ctx: Context) -> str:
        raise asyncio.CancelledError

    async def awaited(self, ctx: Context) -> str:
        task = asyncio.ensure_future(asyncio.sleep(LONG))
        asyncio.get_running_loop().call_later(0.01, task.cancel)
        await task
        return "never"

    async def recursion(self, ctx: Context) -> str:
        return await self.recursion(ctx)

    async def stop(self, ctx: Context) -> str:
        raise StopAsyncIteration

    async def quick(self, ctx: Context) -> str:
        return "quick"


@pytest.mark.parametrize("name", ["data", "message", "result", "cancelled", "awaited", "recursion", "stop", "nope"])
async def test_no_failure_of_a_handler_ends_the_connection(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(Latest(), Clumsy()) as connection:
        with pytest.raises(ProtocolError) as caught:
            await connection.client.call_tool(name)
        assert caught.value.code == -32603
        assert caplog.records
        assert await outcome(connection.client, "quick") == "quick"
        assert not connection.client.link.peer.pending


async def test_a_result_that_is_no_object_fails_here(caplog: pytest.LogCaptureFixture) -> None:
    """Who forgets `return` reads it in the own log."""

    async def call_tool(self: Any, params: Any, ctx: Any) -> None: ...

    async with connected(Latest(), server(LATEST, call_tool=call_tool)) as connection:
        with pytest.raises(ProtocolError):
            await connection.client.call_tool("x")


async def test_what_is_not_offered_is_refused() -> None:
    async with connected(Latest(), server(LATEST, list_tools=handler)) as connection:
        with pytest.raises(ProtocolError) as caught:
            await connection.client.call_tool("x")
        assert caught.value.code == -32601
    async with played(LatestServer()) as (raw, _):
        await raw.introduce(LATEST)
        for method in ("prompts/list", "tools/explode", "sampling/createMessage"):
            assert (await raw.ask(request(1, method)))["error"]["code"] == -32601
        await raw.send(notification("notifications/roots/list_changed"), notification("nope"), request(2, "ping"))
        assert await raw.receive() == answer(2, {})


# --- handlers -------------------------------------------------------------------------------------------------


@every_revision
async def test_handlers_that_block_run_in_threads(revision: str) -> None:
    together = threading.Barrier(3, timeout=10)
    main = threading.get_ident()

    def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        assert threading.get_ident() != main
        together.wait()
        return said("done", revision)

    pair_of = connected(client(revision), server(revision, call_tool=call_tool))
    async with pair_of as connection, anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(connection.client.call_tool, "x")
        await until(lambda: together.n_waiting == 2)
        await connection.client.ping()
        await anyio.to_thread.run_sync(together.wait)


async def test_a_handler_in_a_thread_reaches_its_context() -> None:
    class Threaded(LatestServer):
        def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
            anyio.from_thread.run(ctx.progress, 1)
            return cast(mcp.CallToolResult, said(str(anyio.from_thread.run(ctx.list_roots).roots)))

    class Home(Latest):
        def on_list_roots(self, params: Any, ctx: Any) -> mcp.ListRootsResult:
            return mcp.ListRootsResult(roots=[])

    seen: list[Any] = []
    async with connected(Home(), Threaded()) as connection:
        answered = await connection.client.with_options(on_progress=seen.append).call_tool("x")
        assert text_of(answered) == "[]"
        assert [params.progress for params in seen] == [1]


async def test_a_handler_may_return_something_to_await() -> None:
    async def later(text: str) -> Any:
        await anyio.sleep(0)
        return said(text)

    class Lazy(LatestServer):
        def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> Any:
            return later(params.name)

    async with connected(Latest(), Lazy()) as connection:
        assert text_of(await connection.client.call_tool("x")) == "x"


async def test_handlers_that_wait_hold_nobody_up() -> None:
    theirs = Sleeper()
    async with connected(Latest(), theirs) as connection:
        done: list[str] = []

        async def sleep() -> None:
            done.append(await outcome(connection.client, "sleep"))

        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(sleep)
            await until(lambda: theirs.waiting == 100)
            for n in range(50):
                assert await outcome(connection.client, "quick", n=n) == f"quick {n}"
            assert await connection.client.ping() == mcp.Result()
            assert done == []
            theirs.go.set()
        assert done == ["rested"] * 100
        assert not connection.client.link.peer.pending


async def test_answers_come_in_the_order_of_their_end() -> None:
    class Turns(Tools):
        async def wait(self, ctx: Context, turns: int) -> int:
            for _ in range(turns):
                await anyio.sleep(0.01)
            return turns

    done: list[str] = []
    async with connected(Latest(), Turns()) as connection:

        async def ask(turns: int) -> None:
            done.append(await outcome(connection.client, "wait", turns=turns))

        async with anyio.create_task_group() as tasks:
            for turns in (15, 0, 8, 1):
                tasks.start_soon(ask, turns)
    assert done == ["0", "1", "8", "15"]


VARIABLE = contextvars.ContextVar("VARIABLE", default="clean")


async def test_context_variables_stay_in_their_handler() -> None:
    class Marking(Tools):
        async def at_once(self, ctx: Context, mark: str) -> str:
            before = VARIABLE.get()
            VARIABLE.set(mark)
            return f"{before} {VARIABLE.get()}"

        async def later(self, ctx: Context, mark: str) -> str:
            before = VARIABLE.get()
            VARIABLE.set(mark)
            await anyio.sleep(0.01)
            inside = await anyio.to_thread.run_sync(VARIABLE.get)
            return f"{before} {VARIABLE.get()} {inside}"

    async with connected(Latest(), Marking()) as connection:
        found: list[str] = []

        async def ask(name: str, mark: str) -> None:
            found.append(await outcome(connection.client, name, mark=mark))

        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(ask, "at_once", f"a{n}")
                tasks.start_soon(ask, "later", f"b{n}")
        assert sorted(found) == [f"clean a{n}" for n in range(5)] + [f"clean b{n} b{n}" for n in range(5)]
    assert VARIABLE.get() == "clean"


class Scopes(Tools):
    """Uses what anyio and asyncio have for structured concurrency."""

    async def fail_after(self, ctx: Context) -> str:
        try:
            with anyio.fail_after(0.01):
                await anyio.sleep(LONG)
        except TimeoutError:
            return "too slow"
        return "never"

    async def move_on_after(self, ctx: Context) -> str:
        with anyio.move_on_after(0.01) as scope:
            await anyio.sleep(LONG)
        return str(scope.cancelled_caught)

    async def at_once(self, ctx: Context) -> str:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep(LONG)
        return str(scope.cancelled_caught)

    async def tasks(self, ctx: Context) -> str:
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

    async def failing_tasks(self, ctx: Context) -> str:
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

    async def native(self, ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(LONG)
        except TimeoutError:
            return str(await asyncio.wait_for(asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)), 5))
        return "never"

    async def shielded(self, ctx: Context) -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.01)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep, LONG)
            tasks.cancel_scope.cancel()
        await anyio.sleep(0)
        return "alive"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fail_after", "too slow"),
        ("move_on_after", "True"),
        ("at_once", "True"),
        ("tasks", "[2, 1, 0]"),
        ("failing_tasks", "1"),
        ("native", "[1, 2]"),
        ("shielded", "alive"),
    ],
)
async def test_structured_concurrency_works_in_handlers(name: str, text: str) -> None:
    async with connected(Latest(), Scopes()) as connection:
        for _ in range(3):
            assert await outcome(connection.client, name) == text
        results: list[str] = []

        async def ask() -> None:
            results.append(await outcome(connection.client, name))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
        assert results == [text] * 10


# --- progress, timeouts, cancellation -------------------------------------------------------------------------


def striding(revision: str) -> Any:
    """A server with a tool that takes steps and says so."""

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        for step in range(params.arguments["steps"]):
            await anyio.sleep(params.arguments["pause"])
            await ctx.progress(step, params.arguments["steps"], f"step {step}")
        return said("there", revision)

    return server(revision, call_tool=call_tool)


@every_revision
async def test_progress_arrives_where_it_was_asked_for(revision: str) -> None:
    async with connected(client(revision), striding(revision)) as connection:
        seen: list[list[Any]] = [[], []]

        async def ask(mine: list[Any]) -> None:
            view = connection.client.with_options(on_progress=mine.append)
            assert text_of(await view.call_tool("walk", {"steps": 3, "pause": 0.001})) == "there"

        async with anyio.create_task_group() as tasks:
            for mine in seen:
                tasks.start_soon(ask, mine)
        for mine in seen:
            assert [(params.progress, params.total) for params in mine] == [(0, 3), (1, 3), (2, 3)]
        tokens = {params.progress_token for mine in seen for params in mine}
        assert len(tokens) == 2
        before = len(connection.theirs.params("notifications/progress"))
        await connection.client.call_tool("walk", {"steps": 3, "pause": 0})
        assert len(connection.theirs.params("notifications/progress")) == before


async def test_a_progress_callback_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(params: Any) -> None:
        raise ValueError("callback")

    async with connected(Latest(), striding(LATEST)) as connection:
        view = connection.client.with_options(on_progress=fail)
        assert text_of(await view.call_tool("walk", {"steps": 2, "pause": 0})) == "there"
    assert caplog.text.count("ValueError: callback") == 2


async def test_progress_puts_the_timeout_off() -> None:
    async with connected(Latest(), striding(LATEST)) as connection:
        walk = {"steps": 12, "pause": PATIENCE / 6}
        patient = connection.client.with_options(timeout=PATIENCE, on_progress=lambda params: None)
        assert text_of(await patient.call_tool("walk", walk)) == "there"
        with pytest.raises(RequestTimeout):  # who does not ask for progress gets none
            await connection.client.with_options(timeout=PATIENCE).call_tool("walk", walk)
        hurried = patient.with_options(total_timeout=PATIENCE)
        with pytest.raises(RequestTimeout):
            await hurried.call_tool("walk", walk)


@every_revision
@pytest.mark.parametrize("kind", ["timeout", "total_timeout"])
async def test_who_does_not_wait_any_longer_says_so(revision: str, kind: str) -> None:
    cancelled: list[str] = []

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        try:
            await anyio.sleep(LONG)
        finally:
            cancelled.append(params.name)

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        view = connection.client.with_options(**{kind: 0.05})
        with pytest.raises(RequestTimeout, match="tools/call"):
            await view.call_tool("x")
        await until(lambda: cancelled)
        (told,) = connection.ours.params("notifications/cancelled")
        (asked,) = [message for message in connection.ours.sent if message.get("method") == "tools/call"]
        assert told == {"requestId": asked["id"], "reason": "timed out"}
        await connection.client.ping()
        assert [message["id"] for message in connection.theirs.sent if message.get("id") == asked["id"]] == []
        assert not connection.client.link.peer.pending


async def test_clients_do_not_wait_for_ever_unless_they_are_told_to() -> None:
    assert LatestServer.options.timeout is None, "a person may be answering"
    async with connected(Latest(), Sleeper()) as connection:
        client = connection.client
        assert client.options == Options(timeout=60.0, total_timeout=None)
        forever = client.with_options(timeout=None, total_timeout=5)
        assert forever.options == Options(timeout=None, total_timeout=5)
        assert forever.with_options().options == forever.options
        assert forever.with_options(total_timeout=None).options == Options(timeout=None)
        client.options = Options(timeout=0.05)
        with pytest.raises(RequestTimeout, match="tools/call was not answered in time"):
            await client.call_tool("sleep")
        with anyio.move_on_after(0.2) as scope:
            await client.with_options(timeout=None).call_tool("sleep")
        assert scope.cancelled_caught


class Asking(Tools):
    """Asks the client, and then answers, or not."""

    async def ask(self, ctx: Context) -> str:
        return str(len((await ctx.list_roots()).roots))

    async def ask_and_sleep(self, ctx: Context) -> str:
        await ctx.list_roots()
        await anyio.sleep(LONG)
        return "never"

    async def sleep(self, ctx: Context) -> str:
        await anyio.sleep(LONG)
        return "never"


class Thinking(Latest):
    """Takes longer to answer than its requests may take."""

    begun = 0
    calls = ""

    async def on_list_roots(self, params: mcp.RequestParams, ctx: Any) -> mcp.ListRootsResult:
        self.begun += 1
        if self.calls:
            await self.with_options(timeout=0.05).call_tool(self.calls)
        await anyio.sleep(0.3)
        return mcp.ListRootsResult(roots=[])


async def test_the_clock_does_not_run_while_somebody_answers() -> None:
    async with connected(Thinking(), Asking()) as connection:
        client = connection.client
        hasty = client.with_options(timeout=0.1)
        assert await outcome(hasty, "ask") == "0"
        begun = anyio.current_time()
        with pytest.raises(RequestTimeout):
            await hasty.call_tool("ask_and_sleep")
        assert 0.35 < anyio.current_time() - begun < 5, "it runs again afterwards"
        begun = anyio.current_time()
        with pytest.raises(RequestTimeout):
            await hasty.with_options(total_timeout=0.2).call_tool("ask")
        assert anyio.current_time() - begun < 0.3, "the total is the total"
        client.calls = "sleep"
        with pytest.raises(ProtocolError, match="Internal error"):  # its own call timed out
            await hasty.call_tool("ask")
        assert client.begun == 4


async def test_options_of_a_class_are_used() -> None:
    class Hasty(Latest):
        options = Options(timeout=0.05)

    async with connected(Hasty(), Sleeper()) as connection:
        with pytest.raises(RequestTimeout):
            await connection.client.call_tool("sleep")


async def test_a_task_that_is_cancelled_gives_its_request_up() -> None:
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
        assert sorted(told) == asked
        assert await outcome(connection.client, "quick") == "quick 0"


async def test_a_request_that_is_given_up_at_once_is_cancelled_after_it_was_sent() -> None:
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


async def test_a_late_answer_is_no_answer_to_the_next_request() -> None:
    left, right = pair()
    raw = Raw(right)
    answers: list[str] = []

    async def script() -> None:
        await raw.welcome({"tools": {}})
        first = await raw.receive()
        assert (await raw.receive())["method"] == "notifications/cancelled"
        second = await raw.receive()
        for asked, text in ((first, "late"), (second, "right")):
            await raw.send(answer(asked["id"], {"content": [{"type": "text", "text": text}]}))

    async with running(script()), Latest.connect(Recording(left, LATEST)) as caller:
        with pytest.raises(RequestTimeout):
            await caller.with_options(timeout=0.05).call_tool("x")
        answers.append(text_of(await caller.call_tool("y")))
    assert answers == ["right"]
    await raw.close()


async def test_a_handler_may_ignore_that_it_was_cancelled() -> None:
    class Stubborn(Tools):
        async def work(self, ctx: Context) -> str:
            try:
                await anyio.sleep(LONG)
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await ctx.progress(1)  # it is not sent any more
                    await ctx.notify_tool_list_changed()
                raise
            return "never"

    async with played(Stubborn()) as (raw, _):
        await raw.introduce(LATEST)
        call = {"name": "work", "_meta": {"progressToken": "t"}}
        await raw.send(request(1, "tools/call", call), notification("notifications/cancelled", {"requestId": 1}))
        assert (await raw.receive())["method"] == "notifications/tools/list_changed"
        assert await raw.ask(request(1, "ping")) == answer(1, {})


async def test_cancelling_in_the_same_breath() -> None:
    theirs = Sleeper()
    async with played(theirs) as (raw, _):
        await raw.introduce(LATEST)
        await raw.send(
            request("a", "tools/call", {"name": "sleep"}),
            notification("notifications/cancelled", {"requestId": "a"}),
            request("b", "tools/call", {"name": "quick"}),
            notification("notifications/cancelled", {"requestId": "b"}),
            request("c", "ping"),
        )
        assert [(await raw.receive())["id"] for _ in range(2)] == ["b", "c"]
        await until(lambda: theirs.waiting == 0)


async def test_initialize_that_takes_too_long_is_not_cancelled() -> None:
    left, right = pair()
    recording = Recording(left, LATEST)

    class Hasty(Latest):
        options = Options(timeout=0.05)

    with pytest.raises(RequestTimeout):
        async with Hasty.connect(recording):
            pass
    assert recording.methods() == ["initialize"]
    await right.close()


# --- the server asks ------------------------------------------------------------------------------------------


@every_revision
async def test_a_server_asks_its_client(revision: str) -> None:
    package = bindings(revision)
    types = package.types

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

    asker = server(revision, call_tool=call_tool)
    async with connected(
        client(revision, on_list_roots=on_list_roots, on_create_message=on_create_message), asker
    ) as connection:
        results: list[str] = []

        async def ask() -> None:
            results.append(text_of(await connection.client.call_tool("x")))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
        assert results == ["1 Ho!"] * 20


async def test_questions_nest() -> None:
    """A tool samples, the client's model calls a tool, which elicits."""

    class Deep(Tools):
        async def outer(self, ctx: Context) -> str:
            content = mcp.TextContent(text="go")
            sampled = await ctx.create_message([mcp.SamplingMessage(role="user", content=content)], 1)
            return f"outer({sampled.model})"

        async def inner(self, ctx: Context) -> str:
            schema = mcp.ElicitRequestFormParamsRequestedSchema(properties={})
            form = mcp.ElicitRequestFormParams(message="Who?", requested_schema=schema)
            answered = await ctx.elicit(form)
            return f"inner({answered.action})"

    class Modelling(Latest):
        async def on_create_message(self, params: Any, ctx: Any) -> mcp.CreateMessageResult:
            inner = await self.call_tool("inner")
            return mcp.CreateMessageResult(
                model=text_of(inner), role="assistant", content=mcp.TextContent(text="there")
            )

        async def on_elicit(self, params: Any, ctx: Any) -> mcp.ElicitResult:
            assert await self.ping() == mcp.Result()
            return mcp.ElicitResult(action="decline")

    async with connected(Modelling(), Deep()) as connection:
        assert await outcome(connection.client, "outer") == "outer(inner(decline))"


async def test_a_client_that_fails_fails_the_handler_that_asked() -> None:
    class Curious(Tools):
        async def ask(self, ctx: Context) -> str:
            with pytest.raises(ProtocolError) as caught:
                await ctx.list_roots()
            return f"{caught.value.code} {caught.value.message}"

    class Homeless(Latest):
        async def on_list_roots(self, params: Any, ctx: Any) -> mcp.ListRootsResult:
            raise ProtocolError(-1, "no home")

    async with connected(Homeless(), Curious()) as connection:
        assert await outcome(connection.client, "ask") == "-1 no home"


async def test_a_handler_that_is_cancelled_gives_its_own_requests_up() -> None:
    asleep = Sleeper()
    cancelled: list[bool] = []

    class Curious(Tools):
        async def ask(self, ctx: Context) -> str:
            await ctx.list_roots()
            return "never"

    class Slow(Latest):
        async def on_list_roots(self, params: Any, ctx: Any) -> mcp.ListRootsResult:
            try:
                await asleep.go.wait()
            finally:
                cancelled.append(True)
            return mcp.ListRootsResult(roots=[])

    async with connected(Slow(), Curious()) as connection:
        with pytest.raises(RequestTimeout):
            await connection.client.with_options(total_timeout=0.05).call_tool("ask")
        await until(lambda: cancelled)
        assert connection.theirs.methods() == ["roots/list", "notifications/cancelled"]


@every_revision
async def test_ping_works_both_ways(revision: str) -> None:
    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        return said(str((await ctx.ping()).model_dump()), revision)

    async with connected(client(revision), server(revision, call_tool=call_tool)) as connection:
        assert (await connection.client.ping()).model_dump() == {}
        assert text_of(await connection.client.call_tool("x")) == "{}"


@pytest.mark.parametrize("revision", [*STATEFUL, STATELESS])
async def test_only_files_are_roots(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    types = bindings(revision).types
    uri = "file:///home"

    async def on_list_roots(self: Any, params: Any, ctx: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///a"), types.Root(uri=uri)])

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        return said(str(len((await ctx.list_roots()).roots)), revision)

    ours = client(revision, on_list_roots=on_list_roots)
    async with connected(ours, server(revision, call_tool=call_tool)) as connection:
        assert text_of(await connection.client.call_tool("x")) == "2"
        uri = "https://example.com/secret"
        with pytest.raises((ProtocolError, ValueError)) as caught:
            await connection.client.call_tool("x")
        message = "the URI of a root must begin with file://: 'https://example.com/secret'"
        assert message in (str(caught.value) if revision == STATELESS else caplog.text)


# --- telling --------------------------------------------------------------------------------------------------


@every_revision
async def test_a_client_hears_what_it_wants_to_hear(revision: str) -> None:
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


async def test_each_client_has_its_own_level() -> None:
    class Talking(Tools):
        async def talk(self, ctx: Context) -> str:
            await ctx.log("info", "hello")
            return ""

    theirs = Talking()
    async with connected(Latest(), theirs) as one, connected(Latest(), theirs) as two:
        await one.client.set_level("error")
        await outcome(one.client, "talk")
        await outcome(two.client, "talk")
        assert one.theirs.methods() == []
        assert two.theirs.methods() == ["notifications/message"]


async def test_notifications_reach_their_handlers() -> None:
    heard: list[str] = []

    class Listening(Latest):
        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            heard.append("tools")

        def on_resource_updated(self, params: Any, ctx: Any) -> None:
            heard.append(params.uri)

        async def on_list_roots(self, params: Any, ctx: Any) -> mcp.ListRootsResult:
            raise NotImplementedError

    class Telling(Tools):
        subscribe = handler

        async def tell(self, ctx: Context) -> str:
            await ctx.notify_tool_list_changed()
            await ctx.notify_resource_updated("x://y")
            return ""

        async def on_roots_list_changed(self, params: Any, ctx: Any) -> None:
            heard.append("roots")

    async with connected(Listening(), Telling()) as connection:
        await outcome(connection.client, "tell")
        await connection.client.notify_roots_list_changed()
        await until(lambda: len(heard) == 3)
        assert sorted(heard) == ["roots", "tools", "x://y"]


async def test_a_notification_handler_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Latest):
        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            raise ValueError("ouch")

    class Telling(Tools):
        async def tell(self, ctx: Context) -> str:
            await ctx.notify_tool_list_changed()
            return "told"

    async with connected(Failing(), Telling()) as connection:
        assert await outcome(connection.client, "tell") == "told"
        await until(lambda: "ValueError: ouch" in caplog.text)


async def test_a_server_tells_all_its_clients() -> None:
    class Quiet(LatestServer):
        list_tools = handler

    theirs = Quiet()
    assert theirs.connections == []
    left, right = pair()
    raw = Raw(left)
    async with (
        connected(Latest(), theirs) as one,
        connected(Latest(), theirs) as two,
        running(serve(Recording(right, LATEST), theirs)),
    ):
        assert len(theirs.connections) <= 2
        await until(lambda: len(theirs.connections) == 2)
        await raw.ask(initialize(LATEST))  # a third one is not ready yet
        for context in theirs.connections:
            await context.notify_tool_list_changed()  # type: ignore[attr-defined]
        assert one.theirs.methods() == two.theirs.methods() == ["notifications/tools/list_changed"]
        await raw.send(INITIALIZED)
        await until(lambda: len(theirs.connections) == 3)
        await raw.close()
        await until(lambda: len(theirs.connections) == 2)
        assert theirs.connections[0].request_id is None
    assert theirs.connections == []


# --- methods of one's own -------------------------------------------------------------------------------------


class Greeting(Model):
    name: str


SERVER_GREET: Request[Greeting, Greeting] = Request("acme/greet", "client", Greeting, Greeting)
CLIENT_GREET: Request[Greeting, Json] = Request("acme/greet", "server", Greeting, Json)
SHOUT: Notification[dict[str, int]] = Notification("acme/shout", "both", dict[str, int])


async def test_both_sides_have_methods_of_their_own() -> None:
    shouts: list[Any] = []

    class Greeter(LatestServer):
        @handles(SERVER_GREET)
        async def greet(self, params: Greeting, ctx: Context) -> Greeting:
            back = await ctx.request(CLIENT_GREET, Greeting(name="client"))
            await ctx.notify(SHOUT, {"server": 1})
            return Greeting(name=f"{params.name} {back}")

        @handles(SHOUT)
        def heard(self, params: dict[str, int], ctx: Context) -> None:
            shouts.append(params)

    class Greeted(Latest):
        @handles(CLIENT_GREET)
        def greet(self, params: Greeting, ctx: Any) -> Any:
            return {params.name: None}

        @handles(SHOUT)
        async def heard(self, params: dict[str, int], ctx: Any) -> None:
            shouts.append(params)

    async with connected(Greeted(), Greeter()) as connection:
        answered = await connection.client.call(SERVER_GREET, Greeting(name="server"))
        assert answered == Greeting(name="server {'client': None}")
        await connection.client.notify(SHOUT, {})
        await until(lambda: len(shouts) == 2)
        assert sorted(shouts, key=len) == [{}, {"server": 1}]
        with pytest.raises(ProtocolError) as caught:
            await connection.client.call(Request("acme/nope", "client", Greeting, Greeting), Greeting(name="x"))
        assert caught.value.code == -32601


async def test_methods_of_the_protocol_can_be_called_by_their_descriptor() -> None:
    class Listing(LatestServer):
        async def list_tools(self, params: Any, ctx: Context) -> mcp.ListToolsResult:
            return mcp.ListToolsResult(tools=[])

    async with connected(Latest(), Listing()) as connection:
        answered = await connection.client.request(methods.LIST_TOOLS, mcp.PaginatedRequestParams())
        assert answered == mcp.ListToolsResult(tools=[])


# --- pages ----------------------------------------------------------------------------------------------------


@every_revision
async def test_lists_are_read_page_by_page(revision: str) -> None:
    types = bindings(revision).types
    asked: list[str | None] = []

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
async def test_a_list_without_end_is_an_error(revision: str) -> None:
    types = bindings(revision).types
    pages, period = 0, 1

    async def list_tools(self: Any, params: Any, ctx: Any) -> Any:
        nonlocal pages
        pages += 1
        return types.ListToolsResult(tools=[], next_cursor=str(pages % period))

    async with connected(client(revision), server(revision, list_tools=list_tools)) as connection:
        for turns, most, read, message in [
            (1, 1000, 2, "gives the cursor '0' twice"),
            (3, 1000, 4, "gives the cursor '1' twice"),
            (10**6, 5, 5, "more than 5 pages; max_pages allows more"),
            (10**6, 1000, 1000, "more than 1000 pages"),
        ]:
            pages, period = 0, turns
            connection.client.max_pages = most
            with pytest.raises(ProtocolError, match=message):
                assert [tool async for tool in connection.client.iter_tools()] == []
            assert pages == read


# --- revisions ------------------------------------------------------------------------------------------------


def versatile() -> list[Server]:
    """A server for each stateful revision, each of which says who it is."""

    def make(revision: str) -> Any:
        async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
            assert isinstance(ctx, bindings(revision).Context)
            assert isinstance(params, bindings(revision).types.CallToolRequestParams)
            return said(f"{revision} {ctx.revision}", revision)

        return server(revision, call_tool=call_tool)

    return [make(revision) for revision in STATEFUL]


async def test_one_endpoint_speaks_many_revisions() -> None:
    servers = versatile()
    async with anyio.create_task_group() as tasks:

        async def ask(revision: str) -> None:
            async with connected(client(revision), *servers) as connection:
                assert text_of(await connection.client.call_tool("x")) == f"{revision} {revision}"
                for mine in servers:
                    assert all(context.revision == mine.revision for context in mine.connections)

        for revision in STATEFUL:
            for _ in range(3):
                tasks.start_soon(ask, revision)
    for order in (servers[::-1], servers[1:] + servers[:1]):
        left, right = pair()
        async with running(serve(Recording(right, LATEST), *order)):
            raw = Raw(left)
            assert (await raw.introduce("1999-01-01"))["result"]["protocolVersion"] == LATEST
            await raw.close()


async def test_connections_belong_to_the_server_of_their_revision() -> None:
    old, new = server("2024-11-05", list_tools=handler), server(LATEST, list_tools=handler)
    async with connected(client("2024-11-05"), old, new) as one, connected(Latest(), old, new) as two:
        await until(lambda: len(old.connections) == len(new.connections) == 1)
        for context in (*old.connections, *new.connections):
            await context.notify_tool_list_changed()
        assert len(one.theirs.methods()) == len(two.theirs.methods()) == 1


@pytest.mark.parametrize(
    ("ours", "theirs"), [("2024-11-05", LATEST), (LATEST, "2024-11-05"), ("2025-06-18", "2025-03-26")]
)
async def test_no_revision_in_common(ours: str, theirs: str) -> None:
    left, right = pair()
    recording = Recording(left, ours)
    async with running(serve(Recording(right, theirs), server(theirs), revisions=[theirs])):
        with pytest.raises(UnsupportedRevision, match=theirs):
            async with client(ours).connected(recording, exactly=True):
                raise AssertionError
    assert recording.methods() == ["initialize"]


# --- lifecycle ------------------------------------------------------------------------------------------------


async def test_lifespans_are_entered_and_left() -> None:
    log: list[str] = []

    class Shop(LatestServer):
        def __init__(self, name: str) -> None:
            self.name = name

        @asynccontextmanager
        async def lifespan(self) -> AsyncGenerator[None]:
            log.append(f"open {self.name}")
            try:
                yield
            finally:
                log.append(f"close {self.name}")

    async with lifespans([Shop("a"), Shop("b")]):
        log.append("serving")
    with pytest.raises(ValueError, match="inside"):
        async with lifespans([Shop("c")]):
            raise ValueError("inside")
    assert log == ["open a", "open b", "serving", "close b", "close a", "open c", "close c"]


async def test_a_server_that_answers_initialize_itself() -> None:
    class Custom(LatestServer):
        async def initialize(self, params: mcp.InitializeRequestParams, ctx: Context) -> mcp.InitializeResult:
            await anyio.sleep(0)
            if params.client_info.name == "rude":
                raise ProtocolError(-1, "go away")
            return mcp.InitializeResult(
                capabilities=mcp.ServerCapabilities(prompts=mcp.ServerCapabilitiesPrompts()),
                protocol_version=params.protocol_version,
                server_info=mcp.Implementation(name="custom", version="1"),
            )

    class Rude(Latest):
        info = mcp.Implementation(name="rude", version="1")

    async with connected(Latest(), Custom()) as connection:
        assert connection.client.server_capabilities == {"prompts": {}}
        assert connection.client.server_info.name == "custom"
        with pytest.raises(CapabilityMissing):
            await connection.client.list_tools()
    left, right = pair()
    async with running(serve(Recording(right, LATEST), Custom())):
        with pytest.raises(ProtocolError, match="go away"):
            async with Rude().connected(Recording(left, LATEST)):
                raise AssertionError


async def test_what_a_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with connected(Latest(), Sleeper()):
            raise KeyError("mine")

    async def fail_among_calls() -> None:
        async with connected(Latest(), Sleeper()) as connection:
            with anyio.CancelScope() as scope:
                asyncio.get_running_loop().call_later(0.01, scope.cancel)
                await connection.client.call_tool("sleep")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail_among_calls()


async def test_when_the_server_goes_calls_fail() -> None:
    left, right = pair()
    raw = Raw(right)
    async with _connected_to(raw, Recording(left, LATEST)) as caller:
        failures: list[ConnectionClosed] = []

        async def ask() -> None:
            with pytest.raises(ConnectionClosed) as caught:
                await caller.ping()
            failures.append(caught.value)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await raw.close()
        assert len(failures) == 3
        assert {str(failure) for failure in failures} == {"the other side closed the connection"}
        await ask()
        with pytest.raises(ConnectionClosed):
            await caller.notify(methods.INITIALIZED, mcp.NotificationParams())


@asynccontextmanager
async def _connected_to(raw: Raw, transport: Any) -> AsyncGenerator[Latest]:
    """A client that is connected to a server which is played by hand."""
    async with running(raw.welcome({"tools": {}})), Latest.connect(transport) as caller:
        yield caller


async def test_when_the_client_goes_handlers_are_cancelled() -> None:
    theirs = Sleeper()
    left, right = pair()
    async with running(serve(Recording(right, LATEST), theirs)):
        raw = Raw(left)
        await raw.introduce(LATEST)
        await raw.send(*(request(n, "tools/call", {"name": "sleep"}) for n in range(5)))
        await until(lambda: theirs.waiting == 5)
        await raw.close()
    assert theirs.cancelled == 5


async def test_a_client_leaves_while_its_calls_are_under_way() -> None:
    theirs = Sleeper()
    left, right = pair()
    failures: list[Exception] = []

    async with (
        running(serve(Recording(right, LATEST), theirs)),
        anyio.create_task_group() as tasks,
        Latest.connect(Recording(left, LATEST)) as caller,
    ):

        async def ask() -> None:
            try:
                await caller.call_tool("sleep")
            except ConnectionClosed as error:
                failures.append(error)

        for _ in range(3):
            tasks.start_soon(ask)
        await until(lambda: theirs.waiting == 3)
    assert [str(error) for error in failures] == ["the connection was closed by this side"] * 3
    assert theirs.cancelled == 3


async def test_batches_are_answered_as_batches() -> None:
    revision = "2025-03-26"
    go = anyio.Event()

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
        gone = notification("notifications/cancelled", {"requestId": "x"})
        go = anyio.Event()
        await raw.send([request("x", "tools/call", {"name": "slow"}), request("y", "ping"), gone], [told])
        assert [part["id"] for part in await raw.receive()] == ["y"]
        assert await raw.ask(request("z", "ping")) == answer("z", {})


async def test_a_server_may_be_refused() -> None:
    left, right = pair()
    raw = Raw(right)

    async def script() -> None:
        asked = await raw.receive()
        await raw.send(refusal(asked["id"], -7, "full"))

    async with running(script()):
        with pytest.raises(ProtocolError, match="full"):
            async with Latest.connect(Recording(left, LATEST)):
                raise AssertionError
    await raw.close()
