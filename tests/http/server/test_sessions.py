"""Streamable HTTP with sessions: access, the stream of each message, and recovery of broken connections."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import Receive, Scope, Send

from mcp_bindgen import v2025_03_26, v2025_11_25
from mcp_bindgen.http import EventStore, HttpLimits, MemoryEventStore, StoreLimits
from mcp_bindgen.http.server.access import HttpEndpoint
from mcp_bindgen.http.server.call import HttpCall
from mcp_bindgen.http.server.errors import HttpError
from mcp_bindgen.http.server.event_store import StoredEvent, StoreUnavailable
from mcp_bindgen.http.server.intake import Intake
from mcp_bindgen.http.server.limits import LIMITS, Budget
from mcp_bindgen.http.server.open_session import HttpSession
from mcp_bindgen.http.server.sessions import SESSION, HttpSessions, SessionRegistry, SessionStore, key_of
from mcp_bindgen.http.server.streams import Stream
from mcp_bindgen.runtime import ConnectionClosed
from mcp_bindgen.sqlite import SqliteEventStore
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import INITIALIZED, answer, initialize, notification, own, request, until
from tests.harness.effort import each
from tests.harness.exchanges import Exchange
from tests.harness.http_wires import BOTH, LATEST
from tests.harness.leaping_clock import leaping_clock

PATIENCE = 60.0


class Tools(v2025_11_25.Server):
    """Server with tools for all tests of streams."""

    info = mcp.Implementation(name="tools", version="1")

    def __init__(self) -> None:
        self.finished, self.cancelled, self.failures = list[str](), list[str](), list[Exception]()

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2025_11_25.Context) -> mcp.CallToolResult:
        try:
            text = await getattr(self, f"_{params.name}")(ctx, **(params.arguments or {}))
        except asyncio.CancelledError:
            self.cancelled.append(params.name)
            raise
        self.finished.append(params.name)
        return mcp.CallToolResult(content=[mcp.TextContent(text=text)])

    async def _echo(self, ctx: v2025_11_25.Context, text: str) -> str:
        return text

    async def _wait(self, ctx: v2025_11_25.Context, seconds: float = 0.1, size: int = 4) -> str:
        await anyio.sleep(seconds)
        return "x" * size

    async def _count(self, ctx: v2025_11_25.Context, to: int, pause: float = 0.0, size: int = 0) -> str:
        for number in range(to):
            await ctx.log("info", {"number": number, "more": "x" * size})
            await anyio.sleep(pause)
        return "done"

    async def _poll(self, ctx: v2025_11_25.Context, pause: float = 0.1) -> str:
        await ctx.log("info", "before")
        closed = ctx.close_stream(0.25)
        await anyio.sleep(pause)
        await ctx.log("info", "after")
        return "closed" if closed else "open"

    async def _announce(self, ctx: v2025_11_25.Context, times: int = 1) -> str:
        """Notify all clients, on streams that belong to no request."""
        for _ in range(times):
            clients: list[Any] = self.connections
            for client in clients:
                await client.notify_tool_list_changed()
        return "told"

    async def _ask(self, ctx: v2025_11_25.Context, aside: bool = False) -> str:
        """Send a request to the client, on the stream of the call or on the GET stream."""
        asked: Any = self.connections[0] if aside else ctx
        message = mcp.SamplingMessage(role="user", content=mcp.TextContent(text="?"))
        try:
            reply = await asked.create_message([message], 10)
        except ConnectionClosed as error:
            self.failures.append(error)
            return "nobody"
        return str(reply.content.text)

    async def _level(self, ctx: v2025_11_25.Context) -> str:
        level = ctx.negotiated.log_level if ctx.negotiated else None
        return f"{level} {ctx.peer_info.name} {sorted(ctx.peer_capabilities)}"

    async def _leave(self, ctx: v2025_11_25.Context) -> str:
        await ctx.session.close()
        return "gone"


class Old(v2025_03_26.Server):
    """Server of the revision that has batches."""

    async def call_tool(
        self, params: v2025_03_26.types.CallToolRequestParams, ctx: v2025_03_26.Context
    ) -> v2025_03_26.types.CallToolResult:
        seconds: Any = (params.arguments or {}).get("seconds", 0)
        await anyio.sleep(seconds)
        await ctx.log("info", seconds)
        return v2025_03_26.types.CallToolResult(content=[v2025_03_26.types.TextContent(text=params.name)])


# --- low-level client -----------------------------------------------------------------------------------------


class Endpoint:
    """ASGI application with sessions, and requests to it."""

    def __init__(self, registry: SessionRegistry, **options: Any) -> None:
        self.intake = Intake(registry.endpoint, HttpLimits(message=10_000_000))
        self.sessions = HttpSessions(registry, self.intake, **options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        principal = headers.get(b"x-user")
        call = HttpCall(scope, receive, send, headers, None if principal is None else principal.decode())
        try:
            match scope["method"]:
                case "POST":
                    session = await self.sessions.find(call) if SESSION in headers else None
                    await self.sessions.post(call, await self.intake.read(call), session)
                case "GET":
                    await self.sessions.get(call)
                case _:
                    await self.sessions.delete(call)
        except HttpError as error:
            await call.refuse(error)

    def ask(self, method: str, content: Any = None, **headers: str | None) -> Exchange:
        """Begin a request; header names use underscores, and `None` omits a header."""
        known: dict[str, str | None] = {"accept": BOTH, "content-type": "application/json"}
        known.update({name.replace("_", "-"): value for name, value in headers.items()})
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        return Exchange(self, method, [(name, value) for name, value in known.items() if value is not None], [body])

    async def refused(self, method: str, content: Any = None, **headers: str | None) -> tuple[int, str]:
        """Return the status and the message of a refusal, which has no id."""
        exchange = self.ask(method, content, **headers)
        body = await exchange.answered()
        assert exchange.headers["content-type"] == "application/json"
        assert exchange.status >= 400
        assert "id" not in body
        return exchange.status, body["error"]["message"]

    async def begin(self, revision: str = LATEST, capabilities: Any = None, **headers: Any) -> Peer:
        """Begin a session."""
        exchange = self.ask("POST", initialize(revision, capabilities), **headers)
        assert (await exchange.answered())["result"]["protocolVersion"] == revision
        peer = Peer(self, exchange.headers["mcp-session-id"], headers)
        accepted = peer.post(INITIALIZED)
        assert (await accepted.whole(), accepted.status) == (b"", 202)
        return peer


class Peer:
    """Client of one session."""

    def __init__(self, endpoint: Endpoint, id_: str, headers: dict[str, str | None]) -> None:
        self.endpoint, self.key = endpoint, key_of(id_)
        self.headers: dict[str, str | None] = {"mcp_session_id": id_, **headers}

    def post(self, content: Any) -> Exchange:
        """POST a message."""
        return self.endpoint.ask("POST", content, **self.headers)

    def call(self, name: str, id_: object = 1, **arguments: Any) -> Exchange:
        """Call a tool."""
        return self.post(request(id_, "tools/call", {"name": name, "arguments": arguments}))

    def get(self, last_event_id: str | None = None) -> Exchange:
        """Open the GET stream."""
        return self.endpoint.ask("GET", **self.headers, last_event_id=last_event_id)

    async def listen(self, last_event_id: str | None = None) -> Exchange:
        """Open the GET stream and wait until it is open."""
        exchange = self.get(last_event_id)
        assert await exchange.head() == 200, exchange.body
        assert exchange.headers["content-type"] == "text/event-stream"
        return exchange

    async def delete(self) -> int:
        """End the session."""
        return await self.endpoint.ask("DELETE", **self.headers).head()

    async def text(self, name: str, **arguments: Any) -> Any:
        """Return the text of a tool result, in either content type."""
        exchange = self.call(name, random.getrandbits(50), **arguments)
        message = await exchange.answered()
        assert exchange.status == 200, message
        return text_of(message)


def text_of(message: Any) -> Any:
    return message["result"]["content"][0]["text"]


def numbers_of(messages: list[Any]) -> list[int]:
    """Return the numbers that `count` logged."""
    return [m["params"]["data"]["number"] for m in messages if m.get("method") == "notifications/message"]


@asynccontextmanager
async def served(*servers: Any, store: EventStore | None = None, **options: Any) -> AsyncGenerator[Endpoint]:
    """Run an endpoint that serves the revisions of its servers only; options may be limits."""
    servers = servers or (Tools(),)
    others = {name: options.pop(name) for name in ("keep_alive", "quick", "retry") if name in options}
    endpoint = HttpEndpoint(servers, revisions=own(*servers))
    registry = SessionRegistry(endpoint, SessionStore(store), HttpLimits(**options))
    async with registry.running():
        yield Endpoint(registry, **others)


@asynccontextmanager
async def conversing(*servers: Any, capabilities: Any = None, **options: Any) -> AsyncGenerator[Peer]:
    """Yield a client with a session."""
    async with served(*servers, **options) as endpoint:
        yield await endpoint.begin(capabilities=capabilities)


# --- access ---------------------------------------------------------------------------------------------------


async def test_a_session_serves_calls_until_the_delete_request() -> None:
    async with conversing(quick=PATIENCE) as peer:
        id_ = peer.headers["mcp_session_id"]
        assert id_ is not None
        assert len(id_) >= 43
        assert all(0x21 <= ord(character) <= 0x7E for character in id_)
        exchange = peer.call("echo", "é", text="Zoë\n\u2028")
        assert text_of(await exchange.answered()) == "Zoë\n\u2028"
        assert (exchange.status, exchange.headers["content-type"]) == (200, "application/json")
        assert "mcp-session-id" not in exchange.headers
        assert (await peer.delete(), await peer.call("echo", text="x").head()) == (204, 404)


PING = request(1, "ping")
ALL_METHODS = (("POST", PING), ("GET", None), ("DELETE", None))
NO_MESSAGES: list[tuple[Any, str]] = [
    *((body, "Parse error") for body in (b"{", b"", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}')),
    ([], "the batch is empty"),
    (7, "a message is a JSON object"),
    ({"id": 1, "method": "ping"}, '"jsonrpc" must be'),
    *(({"jsonrpc": "2.0", "id": 1, **method}, '"method" must be a string') for method in ({}, {"method": 1})),
    *((request(id_, "ping"), '"id" must be a string or an integer') for id_ in (None, True, 1.5)),
    ([PING, PING], "batches are not part of revision 2025-11-25"),
    ([PING], "batches are not part of revision 2025-11-25"),
]
CASES: list[Any] = [
    *(
        (*asked, {"mcp_session_id": None}, 400, "header Mcp-Session-Id is missing")
        for asked in (*ALL_METHODS, ("POST", INITIALIZED), ("POST", [initialize(LATEST)]))
    ),
    ("POST", PING, {"mcp_session_id": "x" * 43}, 404, "no such session"),
    *(
        (method, None, {"mcp_session_id": id_}, 404, "no such session")
        for method, id_ in (("GET", ""), ("DELETE", "x"))
    ),
    *((*asked, {"x_user": "eve"}, 404, "no such session") for asked in ALL_METHODS),
    *(
        ("POST", PING, {"accept": kinds}, 406, "must accept both")
        for kinds in (None, "application/json", "text/event-stream", "text/event-stream, application/json;q=0")
    ),
    ("GET", None, {"accept": "application/json"}, 406, "must accept it"),
    *(
        (*asked, {"mcp_protocol_version": named}, 400, "supported are 2025-11-25")
        for asked, named in zip(ALL_METHODS, ("1999-01-01", "", "é"), strict=True)
    ),
    *(("POST", message, {}, 400, words) for message, words in NO_MESSAGES),
    ("GET", None, {"last_event_id": "0-1"}, 400, "Last-Event-ID"),
]


async def test_invalid_requests_are_refused_and_the_session_continues() -> None:
    async with served() as endpoint:
        peer = await endpoint.begin(x_user="bob")
        for method, content, headers, status, words in CASES:
            got = await endpoint.refused(method, content, **(peer.headers | headers))
            assert got[0] == status, (method, content, headers, got)
            assert words in got[1]
        assert await peer.text("echo", text="still here") == "still here"


@each(
    "headers",
    [
        *({"accept": kinds} for kinds in ("*/*", "Application/*;q=0.5 , text/event-stream; q=0.8")),
        *({"mcp_protocol_version": named} for named in (LATEST, f" {LATEST} ")),
    ],
)
async def test_equivalent_header_values_are_accepted(headers: dict[str, Any]) -> None:
    async with served() as endpoint:
        assert await (await endpoint.begin(**headers)).text("echo", text="x") == "x"


async def test_sessions_are_independent() -> None:
    async with served() as endpoint:
        one, two, three = [await endpoint.begin(x_user=user) for user in ("bob", "bob", None)]
        assert len({peer.headers["mcp_session_id"] for peer in (one, two, three)}) == 3
        assert (await one.delete(), await one.call("echo", text="x").head()) == (204, 404)
        assert await two.text("echo", text="x") == await three.text("echo", text="x") == "x"
        assert (await endpoint.refused("POST", request(1, "ping"), **(two.headers | {"x_user": None})))[0] == 404


async def test_a_handshake_that_fails_leaves_no_session() -> None:
    async with served(sessions=1, quick=PATIENCE) as endpoint:
        for _ in range(3):
            exchange = endpoint.ask("POST", request(1, "initialize", {"protocolVersion": 7}))
            assert (await exchange.answered())["error"]["code"] == -32602
            assert "mcp-session-id" not in exchange.headers
        again = await (await endpoint.begin()).post(initialize(LATEST, id_=9)).answered()
        assert "comes once" in again["error"]["message"]


async def test_sessions_and_streams_are_limited() -> None:
    async with leaping_clock(), served(sessions=2, streams=3) as endpoint:
        peers = [await endpoint.begin() for _ in range(2)]
        refused = endpoint.ask("POST", initialize(LATEST))
        assert "too many sessions" in (await refused.answered())["error"]["message"]
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        waiting = [peer.call("wait", 7, seconds=0.3) for peer in peers]
        listening = await peers[0].listen()
        status, words = await endpoint.refused("POST", request(8, "ping"), **peers[1].headers)
        assert (status, words) == (429, "too many streams are open")
        assert (await endpoint.refused("GET", **peers[1].headers))[0] == 429
        assert [text_of((await one.rest())[0]) for one in waiting] == ["xxxx"] * 2
        assert await peers[1].text("echo", text="x") == "x"
        listening.cut()
        await peers[0].delete()
        await endpoint.begin()
    tools = Tools()
    async with served(tools, streams=0) as endpoint:
        assert (await endpoint.refused("POST", initialize(LATEST)))[0] == 429
        assert not tools.connections


async def test_a_disconnect_does_not_free_the_slot_of_a_running_request() -> None:
    """Requests of a disconnected client count against the limit until their handlers end."""

    tools = Tools()
    async with leaping_clock(), conversing(tools, store=MemoryEventStore(), streams=3) as peer:
        for number in range(3):
            exchange = peer.call("wait", number, seconds=0.3)
            await exchange.head()
            await exchange.gone()
        assert await peer.call("echo", 9, text="x").head() == 429
        await until(lambda: len(tools.finished) == 3)
        assert await peer.text("echo", text="x") == "x"


async def test_too_many_concurrent_messages_get_429() -> None:
    async with conversing(message=100) as peer:
        posts = [peer.post(notification("notifications/x", {"fill": "x" * 40})) for _ in range(50)]
        assert ({await post.head() for post in posts}, await peer.text("echo", text="x")) == ({202, 429}, "x")


async def test_a_request_that_is_refused_for_now_can_be_repeated_with_its_id() -> None:
    async with conversing(message=100) as peer:
        calls = {id_: peer.call("echo", id_, text="x" * 40) for id_ in range(20)}
        refused = [id_ for id_, call in calls.items() if await call.head() == 429]
        assert len(refused) in range(1, 20)
        assert {await peer.call("echo", id_, text="x").head() for id_ in refused} == {200}


async def test_a_request_id_that_is_in_use_is_refused() -> None:
    async with leaping_clock(), conversing() as peer:
        first, other = peer.call("wait", 1), peer.call("wait", "1")
        await asyncio.sleep(0.01)
        assert await peer.endpoint.refused("POST", request(1, "ping"), **peer.headers) == (
            400,
            "Invalid request: the id 1 is in use",
        )
        assert [message["id"] for message in await first.rest()] == [1]
        assert [message["id"] for message in await other.rest()] == ["1"]
        assert (await peer.call("echo", 1, text="x").answered())["id"] == 1


async def test_no_log_shows_a_session_id(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with served(store=MemoryEventStore()) as endpoint:
            peer = await endpoint.begin()
            await peer.call("count", to=3).whole()
            await peer.call("wait", size=1).whole()
            await peer.delete()
            assert str(peer.headers["mcp_session_id"]) not in caplog.text


# --- the stream of a message ----------------------------------------------------------------------------------


async def test_a_slow_response_is_streamed() -> None:
    async with conversing() as peer:
        late = peer.call("wait", 1, seconds=0.2)
        assert (await late.head(), late.headers["content-type"]) == (200, "text/event-stream")
        assert late.headers["cache-control"].startswith("no-cache")
        assert [text_of(message) for message in await late.rest()] == ["xxxx"]
        assert [set(block) for block in late.blocks] == [{"event", "data"}]
        messages = await peer.call("count", 2, to=3).rest()
        assert (numbers_of(messages), [message.get("id") for message in messages]) == ([0, 1, 2], [None, None, None, 2])


async def test_concurrent_calls_have_separate_streams() -> None:
    async with conversing(store=MemoryEventStore()) as peer:
        calls = {id_: peer.call("count", id_, to=id_, pause=0.001) for id_ in range(1, 30)}
        for id_, exchange in calls.items():
            messages = await exchange.rest()
            assert (numbers_of(messages), messages[-1]["id"]) == (list(range(id_)), id_)
        ids = [block["id"] for exchange in calls.values() for block in exchange.blocks]
        assert len(set(ids)) == len(ids)


async def test_messages_without_a_request_are_sent_on_the_get_stream() -> None:
    async with served() as endpoint:
        one, two = await endpoint.begin(), await endpoint.begin()
        assert await one.text("announce") == "told"
        streams = [await peer.listen() for peer in (one, two)]
        assert await two.text("announce") == "told"
        for stream in streams:
            messages = await stream.several(2)
            assert [message["method"] for message in messages] == ["notifications/tools/list_changed"] * 2


@each("store", [None, MemoryEventStore()])
async def test_the_newest_get_takes_the_stream_of_the_session(store: EventStore | None) -> None:
    """A connection that broke without a sign may look open for long."""
    async with served(store=store) as endpoint:
        one, two = await endpoint.begin(), await endpoint.begin()
        older = await one.listen()
        newest = await one.listen()
        assert await older.rest() == []
        await two.text("announce")
        assert len(await newest.several(1)) == 1
        await newest.gone()
        newest = await one.listen()
        await two.text("announce")
        assert len(await newest.several(1)) == 1


REPLY = {"role": "assistant", "content": {"type": "text", "text": "because"}, "model": "m"}


async def test_a_request_to_the_client_is_sent_on_the_stream_of_its_call() -> None:
    async with conversing(capabilities={"sampling": {}}) as peer:
        standing = await peer.listen()
        exchange = peer.call("ask", 5)
        (question,) = await exchange.several(1)
        assert question["method"] == "sampling/createMessage"
        reply = peer.post(answer(question["id"], REPLY))
        assert (await reply.whole(), reply.status) == (b"", 202)
        assert text_of((await exchange.rest())[1]) == "because"
        exchange = peer.call("ask", 6, aside=True)
        (question,) = await standing.several(1)
        await peer.post(answer(str(question["id"]), REPLY)).whole()  # some clients send a text
        assert (text_of(await exchange.answered()), len(standing.messages)) == ("because", 1)


@pytest.mark.full
@each("keeps", [True, False])
async def test_a_request_to_the_client_fails_when_the_get_queue_is_full(keeps: bool) -> None:
    tools = Tools()
    store = MemoryEventStore(StoreLimits(events=2000)) if keeps else None
    async with conversing(tools, store=store, capabilities={"sampling": {}}) as peer:
        await peer.text("announce", times=1024)
        assert (await peer.text("ask", aside=True), len(tools.failures)) == ("nobody", 1)
        assert len(await (await peer.listen()).several(1024)) == 1024


@each("keeps", [False, True])
async def test_a_disconnect_cancels_a_call_only_if_it_cannot_be_resumed(keeps: bool) -> None:
    tools = Tools()
    async with conversing(tools, store=MemoryEventStore() if keeps else None) as peer:
        exchange = peer.call("wait", 5, seconds=0.15)
        await exchange.head()
        exchange.cut()
        if keeps:
            await until(lambda: tools.finished)
        else:
            await until(lambda: tools.cancelled)
        assert (await peer.text("echo", text="x"), tools.finished) == ("x", ["wait", "echo"][not keeps :])


async def test_a_call_is_cancelled_when_its_client_does_not_reconnect_in_time() -> None:
    tools = Tools()
    async with (
        leaping_clock(),
        conversing(tools, store=MemoryEventStore(), abandoned=0.2, streams_of_session=3) as peer,
    ):
        away, back = peer.call("wait", 5, seconds=PATIENCE), peer.call("wait", 6, seconds=0.6)
        await away.primed()
        await back.primed()
        for exchange in (away, back):
            await exchange.gone()
        again = await peer.listen(back.last_id)
        assert await peer.call("echo", 7, text="x").head() == 429
        await until(lambda: tools.cancelled)
        (error,) = await (await peer.listen(away.last_id)).rest()
        assert (error["id"], error["error"]["code"]) == (5, -32603)
        assert "did not come back" in error["error"]["message"]
        assert [text_of(message) for message in await again.rest()] == ["xxxx"]
        assert await peer.text("echo", text="x") == "x"


@each("seconds", [0.0, 0.1])
async def test_cancelling_ends_the_stream(seconds: float) -> None:
    tools = Tools()
    async with conversing(tools, streams=1) as peer:
        exchange = peer.call("wait", 5, seconds=PATIENCE)
        await asyncio.sleep(seconds)
        assert await peer.post(notification("notifications/cancelled", {"requestId": 5})).head() == 202
        assert await exchange.rest() == []
        assert not tools.finished
        assert await peer.text("echo", text="x") == "x"


async def test_responses_to_a_batch_are_sent_together() -> None:
    async with served(Old(), Tools()) as endpoint:
        peer = await endpoint.begin("2025-03-26")
        call, ping = {"name": "a", "arguments": {"seconds": 0.1}}, request("p", "ping")
        exchange = peer.post([ping, notification("notifications/x"), request("q", "ping")])
        assert {one["id"] for one in await exchange.answered()} == {"p", "q"}
        exchange = peer.post([ping, request(2, "tools/call", call)])
        messages = await exchange.rest()
        assert [message.get("method") for message in messages[:-1]] == ["notifications/message"]
        assert {one["id"] for one in messages[-1]} == {"p", 2}
        exchange = peer.post([answer(1, {}), request("a", "ping", "wrong"), request("b", "unknown")])
        assert {one["id"] for one in await exchange.answered()} == {"a", "b"}
        exchange = peer.post([ping, request("\udc00", "tools/call", {"name": "a", "arguments": {"x": "\ud83d"}})])
        assert {one["id"]: one.get("error", {}).get("code") for one in await exchange.answered()} == {
            "p": None,
            "\udc00": -32602,
        }
        exchange = peer.post([notification("notifications/x"), answer(1, {})])
        assert (await exchange.whole(), exchange.status) == (b"", 202)
        for wrong in ([ping, ping], [ping, {"id": 1, "method": "ping"}]):
            assert (await endpoint.refused("POST", wrong, **peer.headers))[0] == 400
        exchange = peer.post([request(3, "tools/call", call), request(4, "tools/call", call)])
        await asyncio.sleep(0.01)
        await peer.post([notification("notifications/cancelled", {"requestId": id_}) for id_ in (3, 4)]).whole()
        assert (await exchange.rest(), (await peer.post(ping).answered())["id"]) == ([], "p")
        exchange = peer.post([ping, request(5, "tools/call", call)])
        await asyncio.sleep(0.01)
        await peer.post(notification("notifications/cancelled", {"requestId": 5})).whole()
        assert [one["id"] for one in await exchange.answered()] == ["p"]


async def test_handlers_do_not_inherit_the_context_of_the_initialize_request() -> None:
    from contextvars import ContextVar

    who: ContextVar[str] = ContextVar("who", default="nobody")

    class Seeing(Tools):
        async def _who(self, ctx: v2025_11_25.Context) -> str:
            return who.get()

    async with served(Seeing()) as endpoint:
        who.set("first")
        assert await (await endpoint.begin()).text("who") == "nobody"


# --- life of a session ----------------------------------------------------------------------------------------


async def test_a_session_is_ended_by_delete_or_by_its_server() -> None:
    tools = Tools()
    async with served(tools) as endpoint:
        peer = await endpoint.begin()
        listening = await peer.listen()
        waiting = peer.call("wait", 5, seconds=PATIENCE)
        await waiting.head()
        assert (await peer.delete(), await peer.delete()) == (204, 404)
        (error,) = await waiting.rest()
        assert (error["id"], error["error"]["code"]) == (5, -32603)
        assert "the session is over" in error["error"]["message"]
        assert await listening.rest() == []
        peer = await endpoint.begin()
        error = await peer.call("leave", 6).answered()
        assert "the session is over" in error["error"]["message"]
        assert await peer.call("echo", text="x").head() == 404
        await until(lambda: not tools.connections)


async def test_idle_sessions_end() -> None:
    store, tools = MemoryEventStore(), Tools()
    async with leaping_clock(), served(tools, store=store, idle=0.4) as endpoint:
        idle, listening, busy = [await endpoint.begin() for _ in range(3)]
        stream = await listening.listen()
        for _ in range(14):
            await asyncio.sleep(0.05)
            assert await busy.text("echo", text="x") == "x"
        assert (await idle.call("echo", text="x").head(), await listening.text("echo", text="x")) == (404, "x")
        stream.cut()
        await asyncio.sleep(0.8)
        assert await listening.call("echo", text="x").head() == 404
        assert not tools.connections
        assert [await store.load(peer.key) for peer in (idle, listening, busy)] == [None] * 3


async def test_sessions_work_without_running_the_registry() -> None:
    before = asyncio.all_tasks()
    endpoint = Endpoint(SessionRegistry(HttpEndpoint([Tools()]), SessionStore(None), LIMITS))
    peer = await endpoint.begin()
    assert (await peer.text("wait", seconds=0.1), await peer.delete()) == ("xxxx", 204)
    await until(lambda: len(asyncio.all_tasks() - before) == 1)
    (sweeper,) = asyncio.all_tasks() - before
    sweeper.cancel()


async def test_stopping_the_registry_ends_all_sessions_and_streams() -> None:
    async with conversing() as peer:
        listening = await peer.listen()
        waiting = peer.call("wait", 5, seconds=PATIENCE)
        await waiting.head()
        await peer.call("wait", 6, seconds=0.2).head()
    assert await listening.rest() == await waiting.rest() == []
    assert await peer.call("echo", text="x").head() == 503
    status, error = (await peer.endpoint.refused("POST", initialize(LATEST)))[:2]
    assert (status, error) == (503, "the server is stopping")


async def test_idle_streams_get_comments() -> None:
    async with conversing(capabilities={"sampling": {}}, keep_alive=0.02) as peer:
        stream = await peer.listen()
        asked = peer.call("ask", 5)
        await stream.until(lambda: stream.body.count(b": keep-alive\n\n") >= 3)
        await asked.until(lambda: asked.body.count(b": keep-alive\n\n") >= 3)
        await peer.post(answer(asked.messages[0]["id"], REPLY)).whole()
        assert [message["id"] for message in await asked.rest()][1:] == [5]


@pytest.mark.full
async def test_a_client_that_does_not_read_is_disconnected_after_the_write_timeout() -> None:
    tools = Tools()
    async with leaping_clock(), conversing(tools, store=MemoryEventStore(), write_timeout=0.4) as peer:
        exchange = peer.call("count", 5, to=200, size=100_000)
        await exchange.several(1)
        exchange.flows.clear()
        await asyncio.sleep(0.2)
        assert not tools.finished
        assert await peer.text("echo", text="others are not held up") == "others are not held up"
        exchange.flows.set()
        assert (numbers_of(await exchange.rest()), tools.finished) == (list(range(200)), ["echo", "count"])
        exchange = peer.call("count", 6, to=200, size=100_000)
        await exchange.several(1)
        exchange.flows.clear()
        await until(lambda: len(tools.finished) == 3)
        assert not exchange.over
        await exchange.gone()


# --- resumed streams ------------------------------------------------------------------------------------------


async def test_streams_begin_with_an_event_id_and_a_retry_time() -> None:
    async with served(Old(), Tools(), store=MemoryEventStore(), retry=0.75) as endpoint:
        peer = await endpoint.begin()
        exchange = peer.call("wait", 1)
        await exchange.rest()
        first, second = exchange.blocks
        assert {"retry": first["retry"], "data": first["data"]} == {"retry": "750", "data": ""}
        assert first["id"] != second["id"]
        listening = await peer.listen()
        await listening.primed()
        assert listening.blocks == [{"id": "0-0", "retry": "750", "data": ""}]
        old = await endpoint.begin("2025-03-26")
        exchange = old.post(request(1, "tools/call", {"name": "a", "arguments": {"seconds": 0.1}}))
        await exchange.rest()
        assert ["retry" in block for block in exchange.blocks] == [False, False]
        assert ["id" in block for block in exchange.blocks] == [True, True]


async def test_a_broken_stream_is_resumed_without_loss() -> None:
    async with conversing(Tools(), store=MemoryEventStore()) as peer:
        exchange, other = peer.call("count", 5, to=40, pause=0.005), peer.call("count", 6, to=40, pause=0.005)
        await exchange.several(10)
        await exchange.gone()
        await asyncio.sleep(0.05)
        again = await peer.listen(exchange.last_id)
        messages = exchange.messages + await again.rest()
        assert (numbers_of(messages), messages[-1]["id"]) == (list(range(40)), 5)
        assert numbers_of(await other.rest()) == list(range(40))
        for block in exchange.blocks[::7]:
            later = await peer.listen(block["id"])
            assert await later.rest() == messages[len(messages) - len(later.messages) :]
        assert await (await peer.listen(again.last_id)).rest() == []


async def test_a_broken_get_stream_is_resumed_without_loss() -> None:
    async with conversing(store=MemoryEventStore()) as peer:
        await peer.text("announce", times=2)
        stream = await peer.listen()
        await stream.several(2)
        await stream.gone()
        await peer.text("announce", times=3)
        again = await peer.listen(stream.blocks[1]["id"])
        assert len(await again.several(4)) == 4
        fresh = await peer.listen(again.last_id)
        assert await again.rest() == again.messages
        await peer.text("announce")
        assert len(await fresh.several(1)) == 1
        await fresh.gone()
        unnamed = await peer.listen()
        await peer.text("announce")
        assert len(await unnamed.several(1)) == 1


async def test_a_new_connection_replaces_the_previous_connection_of_a_stream() -> None:
    async with conversing(store=MemoryEventStore()) as peer:
        exchange = peer.call("count", 5, to=40, pause=0.005)
        await exchange.several(10)
        exchange.flows.clear()
        had = exchange.last_id, exchange.messages
        await asyncio.sleep(0.05)
        assert numbers_of(had[1] + await (await peer.listen(had[0])).rest()) == list(range(40))
        await exchange.gone()


@each("pause", [0.0, 0.1])
async def test_a_server_may_close_a_stream_during_a_call(pause: float) -> None:
    async with conversing(store=MemoryEventStore()) as peer:
        exchange = peer.call("poll", 5, pause=pause or 0.01)
        assert [message["params"]["data"] for message in await exchange.rest()] == ["before"]
        assert [block.get("retry") for block in exchange.blocks] == ["1000", None, "250"]
        await asyncio.sleep(0 if pause else 0.05)
        after = await (await peer.listen(exchange.last_id)).rest()
        assert (after[0]["params"]["data"], text_of(after[1])) == ("after", "closed")


@each("keeps", [True, False])
async def test_a_server_does_not_close_a_stream_that_cannot_be_resumed(keeps: bool) -> None:
    class Polling(Old):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            closed = ctx.close_stream()
            await anyio.sleep(0.1)
            return v2025_03_26.types.CallToolResult(content=[v2025_03_26.types.TextContent(text=str(closed))])

    async with served(Polling(), Tools(), store=MemoryEventStore() if keeps else None) as endpoint:
        peer = await endpoint.begin("2025-03-26" if keeps else LATEST)
        assert await peer.text("poll") == ("False" if keeps else "open")


async def test_resuming_after_an_evicted_or_unknown_event_is_refused() -> None:
    async with served(store=MemoryEventStore(StoreLimits(events=5))) as endpoint:
        peer = await endpoint.begin()
        exchange = peer.call("count", 5, to=20)
        await exchange.rest()
        ids = [block["id"] for block in exchange.blocks]
        status, words = await endpoint.refused("GET", **peer.headers, last_event_id=ids[3])
        assert (status, words.split(":")[0]) == (400, "Last-Event-ID")
        name = ids[0].rpartition("-")[0]
        for id_ in ["", "x", "0", "-1", f"{name}-99", f"{name}x-1", f"{name}-1x", f"{name}-{'9' * 30}", f"{name}-²"]:
            assert (await endpoint.refused("GET", **peer.headers, last_event_id=id_))[0] == 400, id_
        assert len(await (await peer.listen(ids[-3])).rest()) == 2
        assert (await endpoint.refused("GET", **(await endpoint.begin()).headers, last_event_id=ids[-1]))[0] == 400


async def test_the_response_for_a_disconnected_client_is_kept() -> None:
    tools = Tools()
    async with conversing(tools, store=MemoryEventStore(), streams=2) as peer:
        exchange = peer.call("wait", 5, seconds=0.1)
        await exchange.primed()
        exchange.cut()
        await until(lambda: tools.finished)
        for _ in range(3):
            (message,) = await (await peer.listen(exchange.last_id)).rest()
            assert text_of(message) == "xxxx"


class Slow(MemoryEventStore):
    """Store that can be blocked.

    Attributes:
        open: Writes wait while it is cleared.
        readable: Reads wait while it is cleared.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dice = random.Random(0)
        self.open, self.readable = asyncio.Event(), asyncio.Event()
        self.open.set()
        self.readable.set()

    async def write(self, session: str, stream: str, events: Sequence[StoredEvent], pending: bytes | None) -> None:
        await asyncio.sleep(self.dice.random() * 0.003)
        await self.open.wait()
        await super().write(session, stream, events, pending)

    async def read(self, session: str, stream: str, after: int) -> Sequence[StoredEvent]:
        await asyncio.sleep(self.dice.random() * 0.02)
        await self.readable.wait()
        return await super().read(session, stream, after)


async def test_an_event_is_not_sent_before_it_is_stored() -> None:
    store = Slow()
    async with conversing(store=store) as peer:
        exchange = peer.call("count", to=3, pause=0.1)
        assert numbers_of(await exchange.several(1)) == [0]
        store.open.clear()
        await asyncio.sleep(0.2)
        assert numbers_of(exchange.messages) == [0]
        store.open.set()
        assert numbers_of(await exchange.rest()) == [0, 1, 2]


@each("kind", ["asyncio", "anyio"])
async def test_a_cancelled_write_leaves_no_gap_in_the_stream(kind: str) -> None:
    """A disconnect or a cancellation during a write leaves no gap in the event numbers."""

    store = Slow()
    await store.save("s", b"")
    stream = Stream("s", "a", [1], store)
    await stream.persist()
    with stream.reading():
        for number in range(3):
            await stream.put(b"%d" % number)
    store.open.clear()
    if kind == "asyncio":
        cancelled = asyncio.ensure_future(stream.put(b"3"))
        await asyncio.sleep(0.01)
        cancelled.cancel()
    else:
        with anyio.CancelScope() as scope:
            asyncio.get_running_loop().call_later(0.01, scope.cancel)
            asyncio.get_running_loop().call_later(0.02, store.open.set)
            await stream.put(b"3")
    asyncio.get_running_loop().call_later(0.02, store.open.set)
    await stream.put(b"4")
    with stream.reading():
        await stream.put(b"5")
        found: list[StoredEvent] = []
        while len(found) < 5:
            found += await stream.read(found[-1].number if found else 1)
    assert found == [StoredEvent(number, b"%d" % (number - 1)) for number in range(2, 7)]


async def test_a_session_frees_its_streams_while_the_store_is_unavailable(caplog: pytest.LogCaptureFixture) -> None:
    """Requests end at once and free their slots, although the store cannot record their end."""

    class Away(Slow):
        is_away = False

        async def write(self, session: str, stream: str, events: Sequence[StoredEvent], pending: bytes | None) -> None:
            if self.is_away:
                await asyncio.sleep(0.2)
                raise StoreUnavailable
            await super().write(session, stream, events, pending)

    store = Away()
    await store.save("s", b"")
    budget = Budget(30, "too many")
    transport = HttpSession(HttpEndpoint([Tools()]), "s", "s", HttpLimits(), budget, store=store)
    streams = [transport.expect([number]) for number in range(30)]
    for stream in streams:
        await stream.persist()
        stream.hang_up()
    store.is_away = True
    begun = asyncio.get_running_loop().time()
    await transport.end("the server is stopping")
    assert asyncio.get_running_loop().time() - begun < 2
    assert all(stream.state == "done" for stream in streams)
    assert budget.used == 0
    assert not transport.streams
    assert "the end of a session is not stored: The store cannot be reached" in caplog.text


async def test_an_event_that_is_written_during_a_replay_is_sent_once() -> None:
    """An event that is written during a replay is delivered once."""

    store = Slow()
    await store.save("s", b"")
    stream = Stream("s", "a", [1], store)
    await stream.persist()
    await stream.put(b"1")
    with stream.reading():
        store.readable.clear()
        reading = asyncio.ensure_future(stream.read(0))
        await stream.put(b"2")
        store.readable.set()
        found = [*await reading]
        await stream.put(b"3")
        while found[-1].number < 3:
            found += await stream.read(found[-1].number)
    assert [event.number for event in found] == [1, 2, 3]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["memory", "slow", "sqlite"])
async def test_clients_with_broken_connections_receive_every_event_once(kind: str, tmp_path: Path) -> None:
    """Clients that are cut off at random, or left half open, receive every event once, in order."""

    async def one(endpoint: Endpoint, dice: random.Random) -> None:
        peer = await endpoint.begin()
        for id_ in range(3):
            to = dice.randrange(1, 60)
            exchange, heard = peer.call("count", id_, to=to, pause=0.002), list[Any]()
            broken: list[Exchange] = []
            while True:
                await exchange.primed()
                with anyio.move_on_after(dice.random() * 0.05):
                    await exchange.until(lambda: False)
                heard += exchange.messages
                if exchange.over and heard and heard[-1].get("id") == id_:
                    break
                if dice.random() < 0.5:
                    exchange.cut()
                else:
                    exchange.flows.clear()
                broken.append(exchange)
                exchange = await peer.listen(exchange.last_id)
            assert numbers_of(heard) == list(range(to))
            for exchange in broken:
                await exchange.gone()

    store: Any = {"memory": MemoryEventStore, "slow": Slow}.get(kind, lambda: SqliteEventStore(tmp_path / "db"))()
    try:
        async with served(store=store, streams=250) as endpoint:
            await asyncio.gather(*(one(endpoint, random.Random(seed)) for seed in range(10)))
            peers = [await endpoint.begin() for _ in range(6)]
            waiting = [peers[id_ // 50].call("wait", id_, seconds=PATIENCE) for id_ in range(251)]
            # These are 251 connections: a busy machine reads them in any order.
            assert sorted([await exchange.head() for exchange in waiting]) == [200] * 250 + [429]
            for peer in peers:
                await peer.delete()
    finally:
        if isinstance(store, SqliteEventStore):
            store.close()


async def test_a_store_that_fails_ends_the_session(caplog: pytest.LogCaptureFixture) -> None:
    class Full(MemoryEventStore):
        async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
            raise OSError("disk full")

    async with served(store=Full(), quick=PATIENCE) as endpoint:
        assert "error" in await endpoint.ask("POST", initialize(LATEST)).answered()
    assert "the event store failed" in caplog.text


# --- sessions that survive their process ----------------------------------------------------------------------


async def test_a_session_continues_in_another_process() -> None:
    store = MemoryEventStore()
    async with served(store=store) as endpoint:
        peer = await endpoint.begin(capabilities={"sampling": {}}, x_user="bob")
        await peer.post(request(1, "logging/setLevel", {"level": "info"})).whole()
        await peer.text("announce", times=2)
        listening = await peer.listen()
        await listening.several(2)
        assert len(await peer.call("count", 4, to=1).rest()) == 2
        waiting = peer.call("wait", 5, seconds=PATIENCE)
        await waiting.primed()
        counted = peer.call("count", 6, to=3)
        await counted.rest()
        asked = peer.call("ask", 7)
        (question,) = await asked.several(1)
    async with served(store=store) as endpoint:
        peer.endpoint = endpoint
        assert (await endpoint.refused("POST", request(1, "ping"), **(peer.headers | {"x_user": "eve"})))[0] == 404
        assert await peer.text("level") == "info test ['sampling']"
        assert [len(await peer.call("count", id_, to=1).rest()) for id_ in (21, 22, 23, 24)] == [2] * 4
        (error,) = await (await peer.listen(waiting.last_id)).rest()
        assert (error["id"], error["error"]["code"]) == (5, -32603)
        assert "restarted" in error["error"]["message"]
        assert len(await (await peer.listen(counted.blocks[1]["id"])).rest()) == 3
        assert [m["id"] for m in await (await peer.listen(asked.last_id)).rest()] == [7]
        again = peer.call("ask", 8)
        (new,) = await again.several(1)
        assert new["id"] != question["id"]
        streams = [{block["id"].rpartition("-")[0] for block in one.blocks} for one in (waiting, counted, again)]
        assert len(set.union(*streams)) == 3
        result = {"role": "assistant", "content": {"type": "text", "text": "late"}, "model": "m"}
        await peer.post(answer(question["id"], result)).whole()
        await peer.post(answer(new["id"], result)).whole()
        assert text_of((await again.rest())[-1]) == "late"
        standing = await peer.listen(listening.blocks[1]["id"])
        await peer.text("announce")
        assert len(await standing.several(2)) == 2
        assert await peer.call("wait", 5, seconds=0.1).rest() != []
        assert "comes once" in (await peer.post(initialize(LATEST, id_=10)).answered())["error"]["message"]
        assert await peer.delete() == 204
    async with served(store=store) as endpoint:
        peer.endpoint = endpoint
        assert await peer.call("echo", text="x").head() == 404
    assert await store.load(peer.key) is None


async def test_a_get_stream_without_events_is_resumed_in_another_process() -> None:
    store = MemoryEventStore()
    async with served(store=store) as endpoint:
        peer = await endpoint.begin()
        listening = await peer.listen()
        await listening.primed()
    async with served(store=store) as endpoint:
        peer.endpoint = endpoint
        again = await peer.listen(listening.last_id)
        await peer.text("announce")
        assert len(await again.several(1)) == 1


async def test_a_session_of_a_revision_that_is_no_longer_served_gets_404() -> None:
    store = MemoryEventStore()
    async with served(Old(), Tools(), store=store) as endpoint:
        peer = await endpoint.begin("2025-03-26")
    async with served(Tools(), store=store) as endpoint:
        peer.endpoint = endpoint
        assert await peer.post(request(1, "ping")).head() == 404


async def test_concurrent_requests_restore_a_session_only_once() -> None:
    store = MemoryEventStore()
    async with served(store=store) as endpoint:
        peer = await endpoint.begin()
    tools = Tools()
    async with served(tools, store=store) as endpoint:
        peer.endpoint = endpoint
        assert await asyncio.gather(*(peer.text("echo", text="x") for _ in range(20))) == ["x"] * 20
        assert len(tools.connections) == 1
