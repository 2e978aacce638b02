"""Python calls into our handwritten code for one warm `tools/call` on each path; counts are the same on every machine.

Counted are the calls of functions, and the steps of coroutines, whose code is in `runtime/` or `features/`: from the
handler of one call to the handler of the next, so that the response and the next request are in it.
With `--time`, print medians of the processor time of HTTP calls and sessions instead, without sockets.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
from http_driver import message
from stdio import INITIALIZE, INITIALIZED, calls

import mcp_bindgen.runtime as runtime
import mcp_bindgen.telemetry as telemetry
from mcp_bindgen.app import App
from mcp_bindgen.extensions.tasks import TaskLimits, Tasks
from mcp_bindgen.extensions.tasks import task as as_task
from mcp_bindgen.http import HttpApp
from mcp_bindgen.runtime import Server, run, serve
from mcp_bindgen.runtime.session.endpoint import lifespans
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Server as StatefulServer
from mcp_bindgen.v2025_11_25 import types as stateful
from mcp_bindgen.v2026_07_28 import Server as StatelessServer
from mcp_bindgen.v2026_07_28 import types as stateless
from mcp_bindgen.v2026_07_28.extensions import tasks

ROOTS = tuple(str(Path(package.__file__ or "").parents[1]) + os.sep for package in (runtime, telemetry))
WARM, COUNTED = 20, 5
ROUNDS, REPEATED = 9, 200
ACCEPTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Counter:
    """Counts calls between two marks.

    Attributes:
        counts: The counts so far, without those before the first mark.
        is_on: False if marks do nothing.
    """

    is_on = True

    def __init__(self) -> None:
        self.counts: list[int] = []
        self._calls = 0

    def mark(self) -> None:
        """End one count and begin the next; each handler calls it."""
        sys.setprofile(None)
        self.counts.append(self._calls)
        self._calls = 0
        if self.is_on:
            sys.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOTS):
            self._calls += 1

    def result(self) -> int:
        """Return the median of the last counts."""
        sys.setprofile(None)
        return round(statistics.median(self.counts[-COUNTED:]))


COUNTER = Counter()


class Session(StatefulServer):
    """An echo server with a handshake."""

    info = stateful.Implementation(name="calls", version="1")

    async def list_tools(self, params: stateful.PaginatedRequestParams, ctx: Any) -> stateful.ListToolsResult:
        schema = stateful.ToolInputSchema(properties={"text": {"type": "string"}}, required=["text"])
        return stateful.ListToolsResult(tools=[stateful.Tool(name="echo", input_schema=schema)])

    async def call_tool(self, params: stateful.CallToolRequestParams, ctx: Any) -> stateful.CallToolResult:
        COUNTER.mark()
        text = (params.arguments or {})["text"]
        return stateful.CallToolResult(content=[stateful.TextContent(text=str(text))])


class Stateless(StatelessServer):
    """An echo server without sessions."""

    info = stateless.Implementation(name="calls", version="1")

    async def list_tools(self, params: stateless.PaginatedRequestParams, ctx: Any) -> stateless.ListToolsResult:
        schema = stateless.ToolInputSchema(properties={"text": {"type": "string"}}, required=["text"])
        return stateless.ListToolsResult(
            tools=[stateless.Tool(name="echo", input_schema=schema)], ttl_ms=0, cache_scope="private"
        )

    async def call_tool(self, params: stateless.CallToolRequestParams, ctx: Any) -> stateless.CallToolResult:
        COUNTER.mark()
        text = (params.arguments or {})["text"]
        return stateless.CallToolResult(content=[stateless.TextContent(text=str(text))])


class Working(tasks.Server):
    """An echo server whose tool is a task."""

    info = stateless.Implementation(name="calls", version="1")
    own_tasks = Tasks(limits=TaskLimits(poll=0.01))

    @as_task(tools={"echo": "required"})
    async def call_tool(self, params: stateless.CallToolRequestParams, ctx: Any) -> stateless.CallToolResult:
        COUNTER.mark()
        await anyio.sleep(0.001)
        return stateless.CallToolResult(content=[stateless.TextContent(text="done")])


def over_stdio() -> int:
    """Count a call over standard input and output, in a process of its own."""
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for request in (INITIALIZE, INITIALIZED, *calls(WARM + COUNTED)):
            process.stdin.write(request)
            process.stdin.flush()
            if request != INITIALIZED:
                assert b'"result"' in process.stdout.readline()
        _, said = process.communicate()
        return int(said.splitlines()[-1])


@asynccontextmanager
async def application(server: Server | App) -> AsyncGenerator[Callable[..., Awaitable[dict[bytes, bytes]]]]:
    """Run an HTTP application; yield a function that sends a request and returns the headers of the response."""
    app = HttpApp(server)

    async def post(headers: dict[str, str], body: bytes = b"", method: str = "POST") -> dict[bytes, bytes]:
        raw = [(key.lower().encode(), value.encode()) for key, value in {"Host": "localhost", **headers}.items()]
        scope = {"type": "http", "method": method, "path": "/mcp", "root_path": "", "headers": raw}
        unread = [{"type": "http.request", "body": body}]
        answered: dict[bytes, bytes] = {}

        async def receive() -> Any:
            return unread.pop() if unread else await asyncio.Event().wait()

        async def send(event: Any) -> None:
            if event["type"] == "http.response.start":
                assert event["status"] in (200, 202, 204), event
                answered.update(event["headers"])

        await app(scope, receive, send)
        return answered

    started, stopping = asyncio.Event(), asyncio.Event()

    async def receive() -> Any:
        if not started.is_set():
            return {"type": "lifespan.startup"}
        await stopping.wait()
        return {"type": "lifespan.shutdown"}

    async def send(event: Any) -> None:
        started.set()

    running = asyncio.create_task(app({"type": "lifespan"}, receive, send))
    await started.wait()
    yield post
    stopping.set()
    await running


async def over_http_stateless() -> int:
    """Count a stateless call over HTTP."""
    async with application(Stateless()) as post:
        for number in range(WARM + COUNTED):
            await post(*message(number, "tools/call", "echo", arguments={"text": "hello"}))
        return COUNTER.result()


async def opened(post: Callable[..., Awaitable[dict[bytes, bytes]]]) -> dict[str, str]:
    """Open a session and initialize it; return the headers of its requests."""
    answered = await post(ACCEPTED, INITIALIZE)
    session = {"Mcp-Session-Id": answered[b"mcp-session-id"].decode(), "MCP-Protocol-Version": "2025-11-25"}
    await post(ACCEPTED | session, INITIALIZED)
    return ACCEPTED | session


async def over_http_session() -> int:
    """Count a call in an HTTP session."""
    async with application(Session()) as post:
        headers = await opened(post)
        for request in calls(WARM + COUNTED):
            await post(headers, request)
        return COUNTER.result()


async def as_a_task() -> int:
    """Count a call that becomes a task, on both sides: the call, the questions for its status, the result."""
    server = Working()
    near, far = pair()
    async with lifespans([server]), anyio.create_task_group() as running:
        running.start_soon(serve, far, server)
        async with tasks.Client.connect(near) as client:
            for _ in range(WARM + COUNTED):
                result = await client.call_tool("echo", {"text": "hello"})
                assert json.loads(result.model_dump_json())["content"], result
        COUNTER.result()
        running.cancel_scope.cancel()
    return COUNTER.result()


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return the median of the microseconds of processor time that one piece of work takes."""
    rounds: list[float] = []
    for _ in range(ROUNDS + 1):
        begin = time.process_time()
        for _ in range(REPEATED):
            await work()
        rounds.append((time.process_time() - begin) / REPEATED * 1e6)
    return statistics.median(rounds[1:])


async def print_times() -> None:
    """Print the times of a stateless call, of a call in a session, and of a whole session."""
    app = App("calls")

    @app.tool
    async def echo(text: str) -> str:
        """Return a text."""
        return text

    stateless_call = message(1, "tools/call", "echo", arguments={"text": "hello"})
    [session_call] = calls(1)
    servers: dict[str, tuple[Server | App, Server | App]] = {"class": (Stateless(), Session()), "App": (app, app)}
    for name, (modern, old) in servers.items():
        async with application(modern) as post:
            print(f"{name}: HTTP, stateless call: {await timed(partial(post, *stateless_call)):.0f} us")
        async with application(old) as post:
            headers = await opened(post)
            print(f"{name}: HTTP, call in a session: {await timed(partial(post, headers, session_call)):.0f} us")

            async def whole() -> None:
                await post(await opened(post), method="DELETE")

            print(f"{name}: HTTP, open, initialize and delete a session: {await timed(whole):.0f} us")


def main() -> None:
    """Print the counts."""
    if sys.argv[1:] == ["--time"]:
        COUNTER.is_on = False
        asyncio.run(print_times())
        return
    if sys.argv[1:] == ["serve"]:
        del sys.argv[1:]
        run(Session())
        print(COUNTER.result(), file=sys.stderr)
        return
    print(f"stdio: {over_stdio()}")
    for name, count in (("HTTP, stateless", over_http_stateless), ("HTTP, session", over_http_session)):
        print(f"{name}: {asyncio.run(count())}")
    print(f"task, both sides: {anyio.run(as_a_task)}")


if __name__ == "__main__":
    main()
