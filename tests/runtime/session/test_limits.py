"""Limits of one connection: waiting handlers, queued messages, unread responses, threads."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from mcp_bindgen.runtime import ConnectionClosed, Limits, Transport, serve
from mcp_bindgen.runtime.threads import thread_limiter
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Client, Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness import checked_connections as checked
from tests.harness.commands import execute

LATEST = "2025-11-25"
LARGE = 100_000
both_ways = pytest.mark.parametrize("make", [pair, checked.pipe_pair])
Make = Callable[[], tuple[Transport, Transport]]


def said(text: str) -> mcp.CallToolResult:
    """Return the result of a tool."""
    return mcp.CallToolResult(content=[mcp.TextContent(text=text)])


def call(id_: object, name: str = "wait") -> dict[str, Any]:
    """Return a tool call."""
    return checked.request(id_, "tools/call", {"name": name})


class Waiting(Server):
    """Server that counts its waiting handlers."""

    def __init__(self, **limits: Any) -> None:
        self.limits, self.go = Limits(**limits), anyio.Event()
        self.waiting = self.most = 0

    async def _wait(self) -> None:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self.go.wait()
        finally:
            self.waiting -= 1

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name == "wait":
            await self._wait()
        return said("x" * LARGE if params.name == "large" else params.name)

    async def on_roots_list_changed(self, params: Any, ctx: Context) -> None:
        await self._wait()


@pytest.mark.parametrize("turns", range(6))
async def test_a_queued_request_can_be_cancelled_until_it_begins(turns: int) -> None:
    """A cancellation may arrive exactly when a slot becomes free; it takes effect in each turn of the event loop."""

    class Stuck(Waiting):
        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
            if params.name == "stick":
                await anyio.sleep_forever()
            return await super().call_tool(params, ctx)

    server = Stuck(in_flight=1)
    async with checked.played(server) as (raw, _):
        await raw.introduce(LATEST)
        await raw.send(call(1), call(2, "stick"))
        await checked.until(lambda: server.waiting == 1)
        server.go.set()
        for _ in range(turns):
            await anyio.sleep(0)
        await raw.send(checked.notification("notifications/cancelled", {"requestId": 2}), call(3))
        assert [(await raw.receive())["id"] for _ in range(2)] == [1, 3]


# --- unread responses -----------------------------------------------------------------------------------------


@pytest.mark.full
@both_ways
async def test_two_sides_that_send_much_data_do_not_block_each_other(make: Make) -> None:
    most, called, arrived = 100, anyio.Event(), {"roots": 0, "calls": 0}

    async def all_arrived(kind: str) -> None:
        arrived[kind] += 1
        if arrived == {"roots": most, "calls": most}:
            called.set()
        await called.wait()

    class Curious(Server):
        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
            if params.name == "ask":
                await asyncio.gather(*(ctx.list_roots() for _ in range(most)))
            else:
                await all_arrived("calls")
            return said("x" * LARGE)

    class Home(Client):
        async def on_list_roots(self, params: Any, ctx: Any) -> mcp.ListRootsResult:
            await all_arrived("roots")
            return mcp.ListRootsResult(roots=[mcp.Root(uri="file:///" + "r" * LARGE)])

    left, right = make()
    async with checked.running(serve(right, Curious())), Home.connect(left) as client:
        await asyncio.gather(*(client.call_tool(name) for name in ("ask", *["tell"] * most)))


@both_ways
async def test_a_client_that_does_not_read_is_disconnected(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    left, right = make()
    raw, slow = checked.Raw(left), Waiting(max_unsent_bytes=LARGE, waiting=10, write_timeout=0.05)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, right, slow)
        await raw.introduce(LATEST)

        async def ask_for_ever() -> None:
            for n in range(10_000):
                await raw.send(call(n, "large"))

        await checked.refused(ask_for_ever(), ConnectionClosed)
    assert "the other side does not read" in caplog.text
    await raw.close()


# --- waiting handlers -----------------------------------------------------------------------------------------


async def test_excess_requests_are_queued_and_refused_if_the_queue_is_full() -> None:
    busy = Waiting(in_flight=4, waiting=8)
    async with checked.played(busy) as (raw, _):
        await raw.introduce(LATEST)
        for n in range(20):
            await raw.send(call(n))
        refused = [await raw.receive() for _ in range(8)]
        assert [one["id"] for one in refused] == list(range(12, 20))
        assert {one["error"]["code"] for one in refused} == {-32000}
        assert refused[0]["error"]["message"] == "Too many requests at once: 8 messages wait to be handled"
        assert await raw.ask(checked.request("p", "ping")) == checked.answer("p", {})
        for n in (0, 5):  # one running request and one queued request
            await raw.send(checked.notification("notifications/cancelled", {"requestId": n}))
        assert await raw.ask(checked.request("q", "ping")) == checked.answer("q", {})
        busy.go.set()
        assert sorted([(await raw.receive())["id"] for _ in range(10)]) == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
        assert busy.most == 4


async def test_responses_are_read_while_requests_are_queued() -> None:
    class Asking(Server):
        limits = Limits(in_flight=1)

        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
            return said(str(len((await ctx.list_roots()).roots)))

    async with checked.played(Asking()) as (raw, _):
        await raw.introduce(LATEST, {"roots": {}})
        await raw.send(*(call(n) for n in ("a", "b", "c")))
        for id_ in ("a", "b", "c"):
            await raw.send(checked.answer((await raw.receive())["id"], {"roots": []}))
            assert (await raw.receive())["id"] == id_


async def test_notifications_count_towards_the_limits(caplog: pytest.LogCaptureFixture) -> None:
    busy = Waiting(in_flight=3, waiting=5)
    async with checked.played(busy) as (raw, _):
        await raw.introduce(LATEST)
        for _ in range(20):
            await raw.send(checked.notification("notifications/roots/list_changed"))
        assert (await raw.ask(checked.request("p", "ping")), busy.waiting) == (checked.answer("p", {}), 3)
        busy.go.set()
        await checked.until(lambda: busy.waiting == 0)
        assert (await raw.ask(call("q", "quick")))["id"] == "q"
    assert caplog.text.count("Too many requests at once: 5 messages wait") == 1


async def test_a_shield_protects_from_the_cancellation_of_a_request() -> None:
    class Careful(Server):
        saved = False
        begun = anyio.Event()

        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
            with anyio.CancelScope(shield=True):  # entered before the handler's first await
                self.begun.set()
                await anyio.sleep(0.05)
                self.saved = True
            await anyio.sleep(20)
            raise AssertionError

    careful = Careful()
    async with checked.played(careful) as (raw, _):
        await raw.introduce(LATEST)
        await raw.send(call(1))
        await careful.begun.wait()
        await raw.send(checked.notification("notifications/cancelled", {"requestId": 1}))
        assert await raw.ask(checked.request(2, "ping")) == checked.answer(2, {})
        assert not careful.saved
        await checked.until(lambda: careful.saved)
        assert await raw.ask(checked.request(3, "ping")) == checked.answer(3, {})


# --- blocking handlers ----------------------------------------------------------------------------------------


class Blocking(Server):
    """Server with a tool that blocks its thread."""

    def __init__(self, **limits: Any) -> None:
        self.limits, self.go, self.blocked = Limits(**limits), threading.Event(), list[str]()

    def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name == "wait":
            self.blocked.append(threading.current_thread().name)
            self.go.wait(20)
        return said(params.name)


async def test_a_thread_counts_until_it_ends_and_each_connection_has_its_own_limit() -> None:
    blocking, before = Blocking(threads=3), threading.active_count()
    try:
        async with checked.played(blocking) as (greedy, _), checked.played(blocking) as (modest, _):
            await greedy.introduce(LATEST)
            await modest.introduce(LATEST)
            for n in range(3):
                await greedy.send(call(n))
                await checked.until(lambda n=n: len(blocking.blocked) == n + 1)  # type: ignore[misc]
                await greedy.send(checked.notification("notifications/cancelled", {"requestId": n}))
            await greedy.send(*(call(n) for n in range(3, 20)))
            assert (await greedy.ask(checked.request("p", "ping")), len(blocking.blocked)) == (
                checked.answer("p", {}),
                3,
            )
            assert threading.active_count() <= before + 3
            assert (await modest.ask(call("q", "quick")))["result"]["content"][0]["text"] == "quick"
            blocking.go.set()
            assert {(await greedy.receive())["id"] for _ in range(3, 20)} == set(range(3, 20))
            await checked.until(lambda: thread_limiter().borrowed_tokens == 0)
    finally:
        blocking.go.set()


async def test_all_connections_share_the_threads_of_the_process() -> None:
    blocking = Blocking()
    thread_limiter().total_tokens = 2
    try:
        async with checked.played(blocking) as (raw, _):
            await raw.introduce(LATEST)
            await raw.send(*(call(n) for n in range(5)))
            await checked.until(lambda: len(blocking.blocked) == 2)
            assert (await raw.ask(checked.request("p", "ping")), len(blocking.blocked)) == (checked.answer("p", {}), 2)
            blocking.go.set()
            assert {(await raw.receive())["id"] for _ in range(5)} == set(range(5))
    finally:
        blocking.go.set()


BLOCKED = """
import time
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types as mcp
class Blocked(Server):
    info = mcp.Implementation(name="blocked", version="1")
    def call_tool(self, params, ctx):
        time.sleep(3600)
run(Blocked())
"""


@pytest.mark.full
def test_a_blocked_handler_does_not_keep_the_process_alive() -> None:
    lines = "".join(f"{json.dumps(one)}\n" for one in (checked.initialize(LATEST), checked.INITIALIZED, call(1)))
    done = execute(sys.executable, "-c", BLOCKED, stdin=lines)
    assert done.returncode == 0
    assert '"id":0' in done.stdout
    assert "handlers still block: 1" in done.stderr


def test_a_blocked_thread_with_unread_output_does_not_keep_the_process_alive() -> None:
    """The process cannot write its buffered output when it ends."""
    code = """
import io, sys, threading
import anyio
from mcp_bindgen.runtime.concurrency import end_process
from mcp_bindgen.runtime.threads import in_thread
begun = threading.Event()
def block(context):
    begun.set()
    threading.Event().wait()
async def main():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(in_thread(block), None)
        while not begun.is_set():
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
anyio.run(main)
sys.stdin.read()
sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")))
print("late")
end_process(7)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.close()
        try:
            assert process.wait(60) == 7
        finally:
            process.kill()
