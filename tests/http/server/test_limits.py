"""Limits of an HTTP endpoint against hostile clients, over real connections."""

from __future__ import annotations

import json
import threading
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen import v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.http import HttpApp, HttpLimits, MemoryEventStore, SseApp
from mcp_bindgen.http.server import uvicorn_protocol
from mcp_bindgen.http.server.event_store import StoreUnavailable
from mcp_bindgen.http.server.intake import has_more_values
from mcp_bindgen.http.server.sessions import key_of
from mcp_bindgen.runtime import Limits
from tests.harness import any_revision
from tests.harness.any_revision import of_revision
from tests.harness.checked_connections import INITIALIZED, STATELESS, initialize, lone, notification, request, until
from tests.harness.effort import cases, each
from tests.harness.failing_store import FailingStore
from tests.harness.http_wires import BOB, EVE, LATEST, Headers, Observed, Wire, in_session, stateless, who, wires

MIB = 1024 * 1024
BEFORE = "2025-06-18"


class Tools(any_revision.Tools):
    """Tools of any revision.

    Attributes:
        waiting: Number of calls that wait to be cancelled.
        cancelled: Revisions of the cancelled calls.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self.cancelled: list[str] = []

    def extra_capabilities(self) -> Any:
        return {} if self.revision == STATELESS else {"logging": {}}

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        if params.name == "wait":
            self.waiting += 1
            try:
                await anyio.sleep_forever()
            finally:
                self.waiting -= 1
                self.cancelled.append(ctx.revision)
        return self.text(f"{ctx.revision} {params.name}")


Oldest, Batching = of_revision(Tools, v2024_11_05), of_revision(Tools, v2025_03_26)
Before, Then, Now = (of_revision(Tools, package) for package in (v2025_06_18, v2025_11_25, v2026_07_28))


# --- slow readers ---------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_a_broadcast_does_not_wait_for_clients_that_do_not_read() -> None:
    """One client of each kind does not read its stream; all other clients are notified in time."""
    servers = Oldest(), Then(), Now()
    text = "x" * 100_000

    def log(client: Any) -> Any:
        return client.log("info", text)

    def changed(client: Any) -> Any:
        return client.notify_tool_list_changed()

    async with wires(SseApp(servers[0])) as sse, wires(HttpApp(*servers[1:])) as http:
        await sse.open_sse()
        session = await http.begin()
        standing = await http.ask("GET", **session)
        wanted = lone(1, "subscriptions/listen", notifications={"toolsListChanged": True})
        for wire in (standing, await http.ask("POST", wanted, **stateless(wanted))):
            await wire.until(lambda received: b"\r\n\r\n" in received)
        assert [len(server.connections) for server in servers] == [1, 1, 1]
        for _ in range(150):
            await servers[0].broadcast(log)
        assert not servers[0].connections
        for _ in range(150):
            await servers[1].broadcast(log)
        for _ in range(500):
            await servers[2].broadcast(changed)
        again = await http.ask("GET", **session)
        await again.until(lambda received: b"\r\n\r\n" in received)
        assert again.received.startswith(b"HTTP/1.1 200")


async def test_the_connection_of_a_client_that_does_not_read_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close the connection of a client that stopped reading a response, a pipelined response or a stream."""

    class Large(Tools):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            if params.name == "stream":
                await ctx.log("info", "x" * 8 * MIB)
            return self.text("x" * 8 * MIB)

    monkeypatch.setattr(uvicorn_protocol, "_HEAD_TIMEOUT", 0.3)
    open_: set[Any] = set()

    class Protocol(uvicorn_protocol.HttpProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            open_.add(self)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            open_.discard(self)

    async with wires(
        HttpApp(of_revision(Large, v2026_07_28)(), limits=HttpLimits(write_timeout=0.2)), Protocol
    ) as http:
        for name, pipelined in (("whole", 0), ("stream", 0), ("whole", 2)):
            logged, wanted = {"io.modelcontextprotocol/logLevel": "info"}, lone(1, "tools/call", name=name)
            wanted["params"]["_meta"] |= logged
            wire = await http.ask("POST", wanted, **stateless(wanted))
            for _ in range(pipelined):
                await wire.send("POST", "/mcp", json.dumps(wanted).encode(), None, stateless(wanted))
            await wire.until(lambda received: b"\r\n\r\n" in received)
            assert wire.received.startswith(b"HTTP/1.1 200")
            assert open_
            await until(lambda: not open_)


async def test_client_info_and_capabilities_are_limited_in_size() -> None:
    """The server stores `clientInfo` and `capabilities`, and compares them at each message."""
    async with wires(HttpApp(Then())) as http:

        async def introduced(client: dict[str, Any], capabilities: dict[str, Any]) -> Wire:
            params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
            return await http.ask("POST", request(1, "initialize", params))

        large = "x" * 300_000
        for client, capabilities in (
            ({"name": large, "version": "1"}, {}),
            ({"name": "x", "version": "1"}, {"experimental": {"x": {"y": large}}}),
        ):
            wire = await introduced(client, capabilities)
            assert await wire.status() == 200
            assert wire.json["error"] == {"code": -32602, "message": "clientInfo and capabilities are too large"}
            assert "mcp-session-id" not in wire.headers
        wire = await introduced({"name": "x" * 100_000, "version": "1"}, {})
        assert await wire.status() == 200
        assert "mcp-session-id" in wire.headers


# --- bodies ---------------------------------------------------------------------------------------------------


async def test_incomplete_bodies_share_a_byte_budget() -> None:
    """Thirty connections hold no more than the budget, and a client that sends a whole message is served."""
    app = Observed(HttpApp(Then(), Now(), limits=HttpLimits(message=MIB, bodies=4 * MIB, arrival=1.5)))
    call = lone(1, "tools/call", name="x")

    def holds(size: int) -> bool:
        return size <= app.held <= 4 * MIB

    async with in_session(app) as (http, session):
        held: list[Wire] = []
        for place in range(30):
            wire = await http.open()
            await wire.send("POST", "/mcp", b"[" * (MIB - 1), MIB, session if place % 2 else stateless(call))
            held.append(wire)
            await until(partial(holds, min(place + 1, 3) * (MIB - 1)))
        full = lone(1, "tools/call", name="x", arguments={"text": "x" * (MIB - 2000)})
        assert await (await http.ask("POST", full, **stateless(full))).status() == 200
        assert await (await http.call(session)).status() == 200
        statuses = [await wire.status() for wire in held]
        assert set(statuses) == {429, 408}
        assert statuses.count(408) <= 4
        again = [await http.open() for _ in range(4)]
        whole = json.dumps(full).encode()
        for wire in again:
            await wire.send("POST", "/mcp", whole[:-1], len(whole), stateless(full))
        await until(partial(holds, 4 * (len(whole) - 1)))
        for wire in again:
            await wire.stream.send(whole[-1:])
        assert [await wire.status() for wire in again] == [200] * 4, "all of the budget is free again"


async def test_bodies_of_running_requests_count_toward_the_byte_budget() -> None:
    server = Now()
    app = Observed(HttpApp(server, limits=HttpLimits(message=MIB, bodies=2 * MIB)))
    wait = lone(1, "tools/call", name="wait", arguments={"text": "x" * (MIB - 2000)})
    async with wires(app) as http:
        waiting = [await http.ask("POST", wait, **stateless(wait)) for _ in range(2)]
        await until(lambda: server.waiting == 2)
        small = lone(1, "tools/call", name="x")
        whole = json.dumps(small).encode()
        begun = await http.open()
        await begun.send("POST", "/mcp", b"", len(whole), stateless(small))
        await until(lambda: len(app.bodies) == 3)
        refused = await http.ask("POST", wait, **stateless(wait))
        assert (await refused.status(), refused.headers["retry-after"]) == (429, "1")
        assert await (await http.ask("POST", small, **stateless(small))).status() == 200
        await begun.stream.send(whole)
        assert await begun.status() == 200, "who takes up no room is not given up for others"
        for wire in waiting:
            await wire.stream.aclose()
        await until(lambda: not app.bodies)
        for _ in range(2):
            await http.ask("POST", wait, **stateless(wait))
        await until(lambda: server.waiting == 2)


async def test_a_trickling_body_is_refused_at_its_deadline() -> None:
    async with wires(HttpApp(Then(), limits=HttpLimits(arrival=0.3))) as http:
        wire = await http.open()
        await wire.send("POST", "/mcp", b"[", 10_000, await http.begin())

        async def trickle() -> None:
            while True:
                await wire.stream.send(b" " * 10)
                await anyio.sleep(0.02)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(trickle)
            assert await wire.status() == 408
            tasks.cancel_scope.cancel()


async def test_the_body_of_a_request_with_refused_headers_is_not_read() -> None:
    """Session and owner are checked before a byte of the body is read."""
    app = Observed(HttpApp(Then(), Now(), principal=who))
    async with wires(app) as http:
        session = await http.begin(user=BOB)
        bytes_read = app.bytes_read
        unknown = {"mcp_session_id": "x" * 43}
        for headers, status in (
            (unknown, 404),
            (session | {"x_user": "eve"}, 404),
            (session | {"mcp_protocol_version": "2025-99-99"}, 400),
        ):
            wire = await http.open()
            await wire.send("POST", "/mcp", b"[", MIB, headers)
            await wire.until(lambda received: b"\r\n" in received)
            assert int(wire.received.split(None, 2)[1]) == status
        assert app.bytes_read == bytes_read


@pytest.mark.full
async def test_a_message_of_many_values_is_refused() -> None:
    """Values are counted before parsing, which would take long: the end of each body is missing."""
    app, deep = HttpApp(Then(), Now()), b'{"a":' * 150 + b"1" + b"}" * 150
    batch = b"[" + b",".join([b'{"jsonrpc":"2.0","method":"notifications/x"}'] * 90_000)

    async with wires(app) as http:
        session = await http.begin()
        for unit in (b"[]", b"{}", b'{"a":1}', b"1", b'"a"', deep):
            values = b",".join([unit] * (4 * MIB // (len(unit) + 1) - 100))
            call = request(1, "tools/call", {"name": "x", "arguments": {"a": []}})
            body = json.dumps(call).encode().replace(b"[]", b"[" + values + b"]")[:-1]
            assert await (await http.ask("POST", body, **session)).status() == 413
            assert await (await http.ask("POST", body, **stateless(call))).status() == 413
        assert await (await http.ask("POST", batch, **session)).status() == 413
        text = json.dumps(request(1, "tools/call", {"name": "x", "arguments": {"csv": '1,"2",[3],{4},' * 250_000}}))
        assert await (await http.ask("POST", text.encode(), **session)).status() == 200


VALUES = st.recursive(
    st.none() | st.integers() | st.text('ab",[{\\\n'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a",[{\\', max_size=3), inner, max_size=4),
)


@given(VALUES, st.integers(0, 12), st.sampled_from([None, 1]))
def test_the_values_of_a_body_are_counted_exactly(value: Any, most: int, indent: int | None) -> None:
    def count(value: Any) -> int:
        if isinstance(value, dict | list):
            inner = list(value.values()) if isinstance(value, dict) else value
            return max(1, len(inner)) + sum(map(count, inner))
        return 0

    assert has_more_values(json.dumps(value, indent=indent, ensure_ascii=False).encode(), most) == (count(value) > most)


# --- sessions -------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_unfinished_handshakes_do_not_lock_out_other_clients() -> None:
    async with wires(HttpApp(Then(), limits=HttpLimits(sessions=20))) as http:
        first = await http.begin()
        for _ in range(60):
            await http.begin(initialized=False)
        late = await http.begin(initialized=False)
        assert await (await http.ask("POST", INITIALIZED, **late)).status() == 202
        for session in (first, late, await http.begin()):
            assert await (await http.call(session)).status() == 200
        for _ in range(17):
            await http.begin()
        refused = await http.ask("POST", initialize(LATEST))
        assert (await refused.status(), refused.headers["retry-after"]) == (429, "1")


@each("kept", [False, True])
async def test_unfinished_handshakes_expire(kept: bool) -> None:
    store = MemoryEventStore()
    app = HttpApp(Then(), store=store if kept else None, limits=HttpLimits(handshake=0.2))
    async with wires(app) as http:
        session, late = await http.begin(), await http.begin(initialized=False)
        while await (ping := await http.ask("POST", request(1, "ping"), **late)).status() == 200:
            await anyio.sleep(0.02)
        assert await ping.status() == 404
        assert await (await http.call(session)).status() == 200
        assert await (await http.ask("POST", INITIALIZED, **late)).status() == 404
        keys = [key_of(one["mcp_session_id"]) for one in (session, late)]
        assert [await store.load(key) is not None for key in keys] == [kept, False]


async def test_the_sessions_of_a_principal_are_limited() -> None:
    async with wires(HttpApp(Then(), principal=who, limits=HttpLimits(sessions_of_principal=3))) as http:
        for _ in range(5):
            await http.begin(user=EVE, initialized=False)
        held = [await http.begin(user=EVE) for _ in range(3)]
        refused = await http.ask("POST", initialize(LATEST), x_user="eve")
        assert await refused.status() == 429
        assert "of this user" in refused.json["error"]["message"]
        for user in (BOB, None):
            assert await (await http.call(await http.begin(user=user))).status() == 200
        assert await (await http.ask("DELETE", **held[0])).status() == 204
        await http.begin(user=EVE)


async def test_the_streams_of_a_session_are_limited() -> None:
    server = Then()
    async with wires(HttpApp(server, limits=HttpLimits(streams_of_session=4, abandoned=0.2))) as http:
        greedy, other = await http.begin(), await http.begin()
        waiting = [await http.call(greedy, "wait", id_) for id_ in range(4)]
        for wire in waiting:
            await wire.until(lambda received: b"\n\n" in received)
        refused = await http.call(greedy, "x", 9)
        assert await refused.status() == 429
        assert "in this session" in refused.json["error"]["message"]
        assert await (await http.call(other)).status() == 200
        for wire in waiting:
            await wire.stream.aclose()
        await until(lambda: len(server.cancelled) == 4)
        assert await (await http.call(greedy)).status() == 200


async def test_a_session_keeps_its_revision_and_stateless_headers_take_precedence() -> None:
    async with wires(HttpApp(Before(), Then(), Now())) as http:
        for revision, other in ((LATEST, BEFORE), (BEFORE, LATEST)):
            session = await http.begin(revision)
            for version in ({}, {"mcp_protocol_version": revision}, {"mcp_protocol_version": other}):
                answered = await http.call(session | version)
                assert await answered.status() == 200
                assert answered.json["result"]["content"][0]["text"] == f"{revision} x"
            unknown = "2025-99-99"
            for method, message, named in (
                ("POST", request(1, "ping"), unknown),
                ("GET", None, unknown),
                ("GET", None, STATELESS),
                ("DELETE", None, unknown),
                ("DELETE", None, STATELESS),
            ):
                refused = await http.ask(method, message, **session, mcp_protocol_version=named)
                assert await refused.status() == 400
                assert "this revision is not served" in refused.json["error"]["message"]
            stream = await http.ask("GET", **session, mcp_protocol_version=other)
            await stream.until(lambda received: b"\r\n\r\n" in received)
            assert stream.received.startswith(b"HTTP/1.1 200")
            for one in (session, {"mcp_session_id": "x" * 43}):
                alone = lone(1, "tools/call", name="x")
                answered = await http.ask("POST", alone, **one, **stateless(alone))
                assert await answered.status() == 200
                assert answered.json["result"]["content"][0]["text"] == f"{STATELESS} x"
                smuggled = stateless(alone) | {"mcp_name": "y"}
                assert await (await http.ask("POST", alone, **one, **smuggled)).status() == 400
            legacy = request(1, "tools/call", {"name": "x"})
            refused = await http.ask("POST", legacy, **session, **stateless(legacy))
            assert await refused.status() == 400
            assert await (await http.ask("DELETE", **session, mcp_protocol_version=other)).status() == 204


# --- HTTP+SSE -------------------------------------------------------------------------------------------------


async def test_uninitialized_sse_streams_are_closed_to_make_room() -> None:
    app = SseApp(Oldest(), limits=HttpLimits(sessions=3, handshake=0.3))
    async with wires(app) as sse:
        kept, path = await sse.open_sse()
        idle = [await sse.open_sse(initialized=False) for _ in range(5)]
        for wire, _ in idle[:3]:
            await wire.until(lambda received: received.endswith(b"\r\n0\r\n\r\n"))
        for _, late in idle[3:]:
            assert await (await sse.ask("POST", request(7, "ping"), late)).status() == 202
        assert await (await sse.ask("POST", request(7, "tools/call", {"name": "x"}), path)).status() == 202
        await kept.until(lambda received: b"2024-11-05 x" in received)
        for wire, _ in idle:
            await wire.until(lambda received: received.endswith(b"\r\n0\r\n\r\n"))


async def test_an_sse_session_belongs_to_the_user_that_opened_it() -> None:
    async with wires(SseApp(Oldest(), principal=who, limits=HttpLimits(sessions_of_principal=2))) as sse:
        _, path = await sse.open_sse(x_user="bob")
        for user, status in (({"x_user": "eve"}, 404), ({}, 404), ({"x_user": "bob"}, 202)):
            assert await (await sse.ask("POST", notification("notifications/x"), path, **user)).status() == status
        await sse.open_sse(x_user="bob")
        assert await (await sse.ask("GET", path="/sse", x_user="bob")).status() == 429
        await sse.open_sse(x_user="eve")


# --- failing store --------------------------------------------------------------------------------------------


async def test_a_failing_store_is_reported_with_503() -> None:
    store = FailingStore()
    async with in_session(HttpApp(Then(), store=store)) as (http, session):
        store.error = StoreUnavailable()
        for method, headers in (
            ("POST", {"mcp_session_id": "x" * 43}),
            ("GET", session | {"last_event_id": "0-1"}),
            ("DELETE", session),
        ):
            refused = await http.ask(method, request(1, "ping") if method == "POST" else None, **headers)
            assert (await refused.status(), refused.headers["retry-after"]) == (503, "5")
            assert "cannot be stored" in refused.json["error"]["message"]


# --- requests that would stay unanswered ----------------------------------------------------------------------


async def test_the_rest_of_a_batch_is_answered_when_its_last_request_is_cancelled() -> None:
    async with wires(HttpApp(Batching())) as http:
        session = await http.begin("2025-03-26")
        batch = [request(n, "tools/call", {"name": name}) for n, name in ((1, "x"), (2, "wait"), (3, "wait"))]
        wire = await http.ask("POST", batch, **session)
        await wire.until(lambda received: b"\r\n\r\n" in received)
        for n in (2, 3):
            cancelled = notification("notifications/cancelled", {"requestId": n})
            assert await (await http.ask("POST", cancelled, **session)).status() == 202
        await wire.until(lambda received: received.endswith(b"\r\n0\r\n\r\n"))
        assert (wire.received.count(b'"result"'), await (await http.call(session, id_=2)).status()) == (1, 200)


async def test_a_session_ends_even_if_its_store_fails() -> None:
    """Streams end and free their slots; a refused call is cancelled."""
    store, server = FailingStore(), Then()
    app = Observed(HttpApp(server, store=store, limits=HttpLimits(streams=2)))
    async with in_session(app) as (http, session):
        wire = await http.call(session, "wait")
        await wire.until(lambda received: b"retry:" in received)
        store.error = StoreUnavailable()
        assert await (await http.call(session, "wait", 2)).status() == 503
        await until(lambda: len(server.cancelled) == 1)
        with anyio.move_on_after(1):  # a message of the server is stored first, which fails
            await server.broadcast(lambda client: client.log("info", "x"))
        await (await http.ask("DELETE", **session)).status()
        await wire.until(lambda received: received.endswith(b"\r\n0\r\n\r\n"))
        store.error = None
        again = await http.begin()
        for name in ("x", "x"):
            assert await (await http.call(again, name)).status() == 200
        await until(lambda: not app.bodies)
        for number in range(2):
            await (await http.call(again, "wait", number)).until(lambda received: b"retry:" in received)


# --- limits of a principal ------------------------------------------------------------------------------------


async def test_a_user_at_the_stream_limit_does_not_block_other_users() -> None:
    """All sessions of a user share one limit."""
    server = Then()
    app = HttpApp(server, principal=who, limits=HttpLimits(streams=6, streams_of_principal=4, abandoned=0.2))
    async with wires(app) as http:
        sessions = [await http.begin(user=EVE) for _ in range(3)]
        waiting = [await http.call(sessions[n % 3], "wait", n) for n in range(4)]
        for wire in waiting:
            await wire.until(lambda received: b"\n\n" in received)
        for method in ("POST", "GET"):
            refused = await http.ask(method, request(9, "ping") if method == "POST" else None, **sessions[2])
            assert (await refused.status(), refused.headers["retry-after"]) == (429, "1")
            assert refused.json["error"] == {"code": -32000, "message": "too many streams of this user are open"}
        bob = await http.begin(user=BOB)
        assert [await (await http.call(bob, id_=n)).status() for n in range(3)] == [200] * 3
        await waiting[0].stream.aclose()
        await until(lambda: len(server.cancelled) == 1)
        assert await (await http.call(sessions[2], id_=10)).status() == 200


@each("sessions", [True, False])
async def test_a_user_at_the_request_limit_does_not_block_other_users(sessions: bool) -> None:
    limits = HttpLimits(requests=5, requests_of_principal=3)
    server = Now() if sessions else Then()
    app = HttpApp(server, principal=who, limits=limits, sessions=sessions)

    def asked(name: str) -> tuple[Any, Headers]:
        wanted = lone(1, "tools/call", name=name)
        if sessions:
            return wanted, stateless(wanted)
        return request(1, "tools/call", {"name": name}), {"mcp_protocol_version": LATEST}

    async with wires(app) as http:

        async def ask(name: str, user: Headers) -> Wire:
            wanted, headers = asked(name)
            return await http.ask("POST", wanted, **headers, **user)

        waiting = [await ask("wait", EVE) for _ in range(3)]
        await until(lambda: server.waiting == 3)
        refused = await ask("x", EVE)
        assert (await refused.status(), refused.headers["retry-after"]) == (429, "1")
        assert refused.json["error"] == {"code": -32000, "message": "too many requests of this user are in flight"}
        for user in (BOB, {}):
            assert await (await ask("x", user)).status() == 200
        await waiting[0].stream.aclose()
        await until(lambda: server.waiting == 2)
        assert await (await ask("x", EVE)).status() == 200
        for wire in waiting[1:]:
            await wire.stream.aclose()
        await until(lambda: server.waiting == 0)
        again = [await ask("wait", user) for user in (EVE, EVE, EVE, BOB, {})]
        await until(lambda: server.waiting == len(again))


async def test_incomplete_large_messages_of_a_user_do_not_delay_other_users() -> None:
    limits = HttpLimits(message=MIB, bodies=4 * MIB, bodies_of_principal=2 * MIB, arrival=1)
    app = Observed(HttpApp(Now(), principal=who, limits=limits))
    large = lone(1, "tools/call", name="x", arguments={"text": "x" * (MIB - 2000)})
    whole = json.dumps(large).encode()
    async with wires(app) as http:
        slow = [await http.open() for _ in range(6)]
        bob = await http.open()
        await bob.send("POST", "/mcp", whole[:-1], len(whole), {**stateless(large), **BOB})
        await until(lambda: app.held >= len(whole) - 1)
        for wire in slow:
            await wire.send("POST", "/mcp", b"[" * (MIB - 1), MIB, {**stateless(large), **EVE})
        await until(lambda: len(app.bodies) <= 3 and 1.9 * MIB < app.held <= 3 * MIB)
        await bob.stream.send(whole[-1:])
        assert await bob.status() == 200
        statuses = [await wire.status() for wire in slow]
        assert set(statuses) == {408, 429}
        assert statuses.count(429) >= 4


@pytest.mark.full
async def test_a_user_that_does_not_read_does_not_block_other_users() -> None:
    """Unsent bytes are limited for a user and in total; a stream with no unsent bytes always takes a message."""

    class Chatty(Tools):
        logged = 0

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            for _ in range(400 if params.name == "much" else 4):
                await ctx.log("info", "x" * 50_000)
                Chatty.logged += 50_000
            return await super().call_tool(params, ctx)

    app = Observed(
        HttpApp(
            of_revision(Chatty, v2025_11_25)(),
            principal=who,
            limits=HttpLimits(queued=400_000, queued_of_principal=200_000, write_timeout=20),
        )
    )
    async with wires(app) as http:
        held = [await http.call(await http.begin(user=EVE), "much") for _ in range(5)]
        logged = -1
        while logged < Chatty.logged or len(app.bodies) < 5:  # until all calls wait
            logged = Chatty.logged
            for _ in range(200):
                await anyio.sleep(0.001)
        assert logged < 5 * 400 * 50_000
        assert 100_000 < logged - app.bytes_sent < 200_000 + 5 * 51_000
        await (await http.call(await http.begin(user=BOB))).until(lambda received: b'"result"' in received)
        for one in held:
            await one.stream.aclose()
        await until(lambda: not app.bodies)


async def test_a_user_at_the_thread_limit_does_not_block_other_users() -> None:
    """A user's sessions share the same threads."""
    go = threading.Event()

    class Blocking(any_revision.Tools):
        limits = Limits(threads=2)
        at_work = 0

        def call_tool(self, params: Any, ctx: Any) -> Any:
            if params.name == "wait":
                self.at_work += 1
                go.wait(20)
            return self.text("")

    server = of_revision(Blocking, v2025_11_25)()
    async with wires(HttpApp(server, principal=who)) as http:
        try:
            for n in range(4):
                await http.call(await http.begin(user=EVE), "wait", n)
            await until(lambda: server.at_work == 2)
            assert (await (await http.call(await http.begin(user=BOB))).status(), server.at_work) == (200, 2)
        finally:
            go.set()
        await until(lambda: server.at_work == 4)


@pytest.mark.full
@pytest.mark.parametrize(
    ("way", "is_known"),
    cases(
        [("stateless", False), ("stateless", True), ("sessions", True), ("no sessions", True), ("sse", False)],
        quick=[("stateless", True)],
    ),
)
async def test_handlers_of_disconnected_clients_use_a_limited_number_of_threads(way: str, is_known: bool) -> None:
    """A thread counts until its handler ends; further requests wait."""
    revisions: dict[str, Any] = {"stateless": v2026_07_28, "sse": v2024_11_05}
    go, lock = threading.Event(), threading.Lock()

    class Blocking(any_revision.Tools):
        at_work = 0

        def call_tool(self, params: Any, ctx: Any) -> Any:
            with lock:
                self.at_work += 1
            go.wait(30)
            with lock:
                self.at_work -= 1
            return self.text("")

    def are_at_work(count: int) -> object:
        return server.at_work == count

    server = of_revision(Blocking, revisions.get(way, v2025_11_25))()
    principal = who if is_known else lambda scope: None
    make: Any = SseApp if way == "sse" else partial(HttpApp, sessions=way == "sessions")
    before = threading.active_count()
    async with wires(make(server, principal=principal)) as http:
        named: list[tuple[str, Headers]] = []
        for user in range(8):
            known = {"x_user": f"user-{user}"}
            if way == "sse":
                named.append(((await http.open_sse(True, **known))[1], known))
            elif way == "sessions":
                named.append(("/mcp", await http.begin(user=known)))
            else:
                named.append(("/mcp", known))
        try:
            for n in range(160):
                path, headers = named[n % len(named)]
                call = request(n, "tools/call", {"name": "x"})
                if way == "stateless":
                    call = lone(n, "tools/call", name="x")
                    headers = headers | stateless(call)
                elif way == "no sessions":
                    headers = headers | {"mcp_protocol_version": LATEST}
                wire = await http.ask("POST", call, path, **headers)
                if n < 120:
                    await until(partial(are_at_work, n + 1))
                await wire.stream.aclose()
            await anyio.sleep(0.1)
            assert server.at_work == 120
            assert threading.active_count() - before <= 125
        finally:
            go.set()
        await until(lambda: server.at_work == 0)


async def test_a_request_above_the_waiting_limit_of_a_session_gets_429() -> None:
    class Narrow(Tools):
        limits = Limits(in_flight=1, waiting=1)

    async with in_session(HttpApp(of_revision(Narrow, v2025_11_25)())) as (http, session):
        for n in (1, 2):
            await (await http.call(session, "wait", n)).until(lambda received: b"\n\n" in received)
        refused = await http.call(session, "x", 3)
        assert (await refused.status(), refused.headers["retry-after"]) == (429, "1")
        assert (refused.json["id"], refused.json["error"]["code"]) == (3, -32000)
