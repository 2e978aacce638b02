"""Batches of many messages (2025-03-26): their limit, and the turns of the event loop between their messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_bindgen import v2025_03_26
from mcp_bindgen.auth import ResourceServer, StaticTokens
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import Identity, Limits
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session.endpoint import serve
from mcp_bindgen.runtime.transports.memory import pair
from tests.harness import checked_connections as checked
from tests.harness.http_wires import wires

BATCHING = "2025-03-26"
MOST = Limits().batch_members
types = v2025_03_26.types

Ask = Callable[[Any], Any]
"""Sends a batch and returns the answer: a list or an error."""


class Busy(v2025_03_26.Server):
    """Server with handlers that compute."""

    info = types.Implementation(name="busy", version="1")

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        compute()
        return types.CallToolResult(content=[types.TextContent(text="x" * 1000)])

    async def on_roots_list_changed(self, params: Any, ctx: Any) -> None:
        compute()


computed = [0]


def compute() -> None:
    computed[0] += 1


@asynccontextmanager
async def over_messages(ends: tuple[Transport, Transport], server: Any) -> AsyncGenerator[Ask]:
    left, right = ends
    async with checked.running(serve(right, server, revisions=[BATCHING])):
        raw = checked.Raw(left)
        await raw.introduce(BATCHING)

        async def ask(batch: Any) -> Any:
            await raw.send(batch, checked.request("last", "ping"))
            first = await raw.receive()
            if isinstance(first, dict) and first.get("id") == "last":
                return None
            assert (await raw.receive())["id"] == "last"
            return first

        yield ask
        await raw.close()


@asynccontextmanager
async def over_http(server: Any, sessions: bool) -> AsyncGenerator[Ask]:
    async with wires(HttpApp(server, revisions=[BATCHING], sessions=sessions)) as http:
        named = await http.begin(BATCHING) if sessions else {"mcp_protocol_version": BATCHING}

        async def ask(batch: Any) -> Any:
            wire = await http.ask("POST", batch, **named)
            status = await wire.status()
            if status == 202:
                return None
            if "event-stream" in wire.headers["content-type"]:
                return json.loads(wire.received.partition(b"data: ")[2].partition(b"\n")[0])
            assert isinstance(wire.json, list) == (status == 200)
            return wire.json

        yield ask


@asynccontextmanager
async def over_sse(server: Any) -> AsyncGenerator[Ask]:
    async with wires(SseApp(server, revisions=[BATCHING])) as http:
        stream = await http.ask("GET", path="/sse")
        await stream.until(lambda received: b"\n\n" in received.partition(b"data: ")[2])
        path = stream.received.partition(b"data: ")[2].split()[0].decode()
        for message in (checked.initialize(BATCHING), checked.INITIALIZED):
            assert await (await http.ask("POST", message, path)).status() == 202
        await stream.until(lambda received: b'"result"' in received)

        async def ask(batch: Any) -> Any:
            stream.received = b""
            for message in (batch, checked.request("last", "ping")):
                assert await (await http.ask("POST", message, path)).status() == 202
            await stream.until(lambda received: b'"id":"last"' in received and received.endswith(b"\n\n\r\n"))
            found = [json.loads(part.split(b"\n")[0]) for part in stream.received.split(b"data: ")[1:]]
            return next((one for one in found if isinstance(one, list) or "error" in one), None)

        yield ask


TRANSPORTS: dict[str, Callable[[Any], Any]] = {
    "memory": lambda server: over_messages(pair(), server),
    "pipes": lambda server: over_messages(checked.pipe_pair(), server),
    "http": lambda server: over_http(server, True),
    "no sessions": lambda server: over_http(server, False),
    "sse": over_sse,
}
OVER = pytest.mark.parametrize("over", TRANSPORTS)


@pytest.fixture
def brief_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """End each turn at once, so that the reading loop yields after each message."""
    monkeypatch.setattr("mcp_bindgen.runtime.concurrency.TURN_SECONDS", -1.0)


class Turns:
    """Turns of the event loop that a concurrent task got.

    Attributes:
        count: Number of turns.
        longest: Largest number of `compute` calls between two turns.
    """

    def __init__(self) -> None:
        self.count = self.longest = 0

    async def take(self) -> None:
        while True:
            before = computed[0]
            await asyncio.sleep(0)
            self.count += 1
            self.longest = max(self.longest, computed[0] - before)


@asynccontextmanager
async def turns_of_others() -> AsyncGenerator[Turns]:
    turns = Turns()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.take)
        yield turns
        tasks.cancel_scope.cancel()


def calls(count: int, arguments: Any) -> list[Any]:
    return [checked.request(n, "tools/call", {"name": "x", "arguments": arguments}) for n in range(1, count + 1)]


KINDS: dict[str, list[Any]] = {
    "calls": calls(MOST, {}),
    "large calls": calls(MOST, {"text": "x" * 3500}),
    "calls with many values": calls(MOST, {"a": [{"b": 1}] * 35}),
    "notifications": [checked.notification("notifications/roots/list_changed")] * MOST,
    "invalid params": [checked.request(n, "tools/call", {"name": n, "arguments": ["x"] * 80}) for n in range(MOST)],
    "unknown methods": [checked.request(n, "nope") for n in range(MOST)],
}


@pytest.mark.full
@pytest.mark.usefixtures("brief_turns")
@pytest.mark.parametrize(
    ("over", "kind"),
    [("memory", kind) for kind in KINDS] + [(over, "calls") for over in TRANSPORTS if over != "memory"],
)
async def test_a_batch_does_not_block_the_event_loop(over: str, kind: str) -> None:
    async with TRANSPORTS[over](Busy()) as ask:
        async with turns_of_others() as turns:
            answered = await ask(KINDS[kind])
        assert sorted(one["id"] for one in answered or []) == [one["id"] for one in KINDS[kind] if "id" in one]
    assert turns.count >= MOST
    assert turns.longest < 10


@pytest.mark.full
@pytest.mark.parametrize(
    "member", [checked.request(1, "ping"), checked.INITIALIZED, checked.answer(1, {}), 1, checked.request(1, "nope")]
)
@OVER
async def test_a_batch_of_too_many_messages_is_refused_as_a_whole(over: str, member: Any) -> None:
    async with TRANSPORTS[over](Busy()) as ask:
        refused = await ask([member] * (MOST + 1))
        assert refused["error"]["code"] == -32600
        assert "send at most 1000" in refused["error"]["message"]


@OVER
async def test_only_errors_in_a_batch_are_logged(over: str, caplog: pytest.LogCaptureFixture) -> None:
    async with TRANSPORTS[over](Busy()) as ask:
        assert (
            len(await ask([checked.request(1, "ping"), checked.notification("notifications/roots/list_changed")])) == 1
        )
        assert not [record for record in caplog.records if record.name == "mcp_bindgen"]
        assert (
            len(await ask([checked.request(2, "nope"), checked.notification("notifications/roots/list_changed")])) == 1
        )
    logged = [record.message for record in caplog.records if record.name == "mcp_bindgen"]
    assert logged == ([] if over == "no sessions" else ["Method not found: nope (-32601)"])


@OVER
async def test_the_total_size_of_the_responses_to_a_batch_is_limited(
    over: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_bindgen.runtime.protocol.batches._MAX_REPLY_BYTES", 20_000)
    async with TRANSPORTS[over](Busy()) as ask:
        answered = await ask(calls(100, {}))
    assert [one["id"] for one in answered] == list(range(1, 101))
    assert sum("result" in one for one in answered) in range(15, 20)
    assert "are larger than 20000 bytes" in answered[-1]["error"]["message"]


@OVER
async def test_the_server_sets_the_limit_of_a_batch(over: str) -> None:
    class Narrow(Busy):
        limits = Limits(batch_members=2)

    async with TRANSPORTS[over](Narrow()) as ask:
        assert len(await ask(calls(2, {}))) == 2
        assert "send at most 2" in (await ask(calls(3, {})))["error"]["message"]


@pytest.mark.usefixtures("brief_turns")
async def test_scope_checks_of_a_batch_do_not_block_the_event_loop() -> None:
    class Scoped(Busy):
        def required_scopes(self, method: str, name: str | None) -> Any:
            compute()
            return ["files"] if name == "x" else []

    alice = Identity(subject="alice", scopes=frozenset({"files"}))
    auth = ResourceServer("http://localhost/mcp", StaticTokens({"the-token-of-alice": alice}))
    app = HttpApp(Scoped(), revisions=[BATCHING], auth=auth)
    bearer = {"authorization": "Bearer the-token-of-alice"}
    async with wires(app) as http:
        begun = await http.ask("POST", checked.initialize(BATCHING), **bearer)
        assert await begun.status() == 200, begun.received
        async with turns_of_others() as turns:
            wire = await http.ask("POST", calls(MOST, {}), mcp_session_id=begun.headers["mcp-session-id"], **bearer)
            await wire.until(lambda received: b"\r\n\r\n" in received)
    assert turns.longest < 10


@pytest.mark.usefixtures("brief_turns")
async def test_a_batch_does_not_block_a_client_and_has_the_same_limit() -> None:
    """A server sends requests and responses in batches; a request fails if its response is in a refused batch."""
    told = 0

    class Client(v2025_03_26.Client):
        info = types.Implementation(name="client", version="1")

        async def on_logging_message(self, params: Any, ctx: Any) -> None:
            nonlocal told
            told += 1
            compute()

    message = checked.notification("notifications/message", {"level": "info", "data": "x"})

    async def script(raw: checked.Raw) -> None:
        await raw.welcome()
        asked = await raw.receive()
        async with turns_of_others() as turns:
            await raw.send([*[message] * (MOST - 1), checked.answer(asked["id"], {})])
            asked = await raw.receive()
        assert turns.longest < 10
        await raw.send([*[message] * MOST, checked.answer(asked["id"], {})])

    async with checked.scripted(Client(), script) as connected:
        await connected.ping()
        assert told == MOST - 1
        await checked.refused(connected.ping(), match="send at most 1000")
        assert told == MOST - 1
