"""What must not happen when two things happen in the same moment: answers, timeouts, progress, and the end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from mcp_bindgen.http import HttpApp
from mcp_bindgen.runtime import ConnectionClosed, RequestTimeout, connect, serve
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Client, Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.support.checked_connections import initialize, running

PATIENCE = 10.0
INFO = mcp.Implementation(name="racing", version="1")


class Racing(Server):
    """A server whose tool answers at once, reports progress without end, or says very much."""

    info = INFO

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        if params.name == "huge":
            return mcp.CallToolResult(content=[mcp.TextContent(text="x" * 1_500_000)])
        while params.name == "endless":
            await ctx.progress(time.monotonic())
            await asyncio.sleep(0)
        return mcp.CallToolResult(content=[])


class Delaying(Transport):
    """A transport that holds the event loop up with a message in its hands, until a request's time is up."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.seconds = 0.0

    async def receive(self) -> Sequence[Any]:
        messages = await self._inner.receive()
        time.sleep(self.seconds)
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        await self._inner.send(messages)

    async def close(self) -> None:
        await self._inner.close()


async def test_an_answer_that_comes_as_the_time_is_up_counts() -> None:
    left, right = pair()
    delaying = Delaying(left)
    async with running(serve(right, Racing())), connect(delaying, Client) as client:
        delaying.seconds = 0.6  # both happen in one turn of the loop
        assert (await client.with_options(timeout=0.5).call_tool("timed")).content == []


async def test_progress_that_comes_as_the_time_is_up_ends_no_connection() -> None:
    left, right = pair()
    async with running(serve(right, Racing())), connect(left, Client) as client:
        hurried = client.with_options(timeout=5, total_timeout=0.02, on_progress=lambda params: None)
        for _ in range(20):
            with pytest.raises(RequestTimeout):
                await hurried.call_tool("endless")
        await client.ping()


class Vanishing(Transport):
    """A transport whose other side answers `initialize`, and is gone in the same moment."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._request: Any = None
        self._answered = False

    async def receive(self) -> Sequence[bytes]:
        await self._asked.wait()
        if self._answered:
            return ()
        self._answered = True
        info = {"name": "gone", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
        return [json.dumps({"jsonrpc": "2.0", "id": self._request["id"], "result": result}).encode()]

    async def send(self, messages: Sequence[bytes]) -> None:
        self._request = self._request or json.loads(messages[0])
        self._asked.set()

    async def close(self) -> None:
        self._asked.set()


async def test_a_server_that_is_gone_as_it_answers_the_handshake() -> None:
    with pytest.raises(ConnectionClosed):
        async with connect(Vanishing(), Client) as client:
            await client.ping()


def test_a_large_answer_in_a_session_blocks_nobody() -> None:
    async def post(app: HttpApp, message: Any, **headers: str) -> list[Any]:
        sent: list[Any] = []
        bodies = [{"type": "http.request", "body": json.dumps(message).encode()}]
        known = {"host": "localhost", "content-type": "application/json", **headers}
        known["accept"] = "application/json, text/event-stream"
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in known.items()]

        async def receive() -> Any:
            if bodies:
                return bodies.pop()
            return await asyncio.sleep(PATIENCE)

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
            params = {"name": "huge", "arguments": {}}
            call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
            answer = await asyncio.wait_for(post(app, call, mcp_session_id=session), PATIENCE)
            assert sum(len(part.get("body", b"")) for part in answer) > 1_500_000

    asyncio.run(talk())
