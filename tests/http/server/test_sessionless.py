"""Stateful revisions without sessions: messages are independent, and features that need a session report an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from mcp_bindgen import v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.auth import ResourceServer, StaticTokens
from mcp_bindgen.http import HttpApp, MemoryEventStore
from mcp_bindgen.runtime import Identity, Server, SessionRequired, connect
from tests.harness import any_revision
from tests.harness.any_revision import of_revision
from tests.harness.checked_connections import (
    STATEFUL,
    STATELESS,
    initialize,
    lone,
    notification,
    oracle,
    refused,
    request,
    until,
)
from tests.harness.effort import each
from tests.harness.http_wires import LATEST, Headers, Wire, Wires, in_session, listening, stateless, wires

KEY = "a-token-that-nobody-guesses"
NEEDS = "needs a session, and this endpoint keeps none (sessions=False)"
BEFORE, FIRST = "2025-06-18", "2025-03-26"
QUESTIONS = {"sample": "sampling/createMessage", "roots": "roots/list", "ping": "ping"}


class Tools(any_revision.Tools):
    """Tools of any revision: they log, send requests to the client, or wait."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.late: Any = None
        self.stopped = 0

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        self.late, said = ctx, f"{ctx.revision} {params.name}"
        match params.name:
            case "count":
                for number in range(1, 4):
                    await ctx.progress(number, 3)
                    await ctx.log("info", number)
            case "sample":
                asked = self.types.SamplingMessage(role="user", content=self.types.TextContent(text="?"))
                await ctx.create_message([asked], 10)
            case "roots":
                await ctx.list_roots()
            case "ping":
                await ctx.ping()
            case "changed":
                await ctx.notify_tool_list_changed()
            case "who":
                said = json.dumps([ctx.peer_info, dict(ctx.peer_capabilities)])
            case "wait":
                try:
                    await anyio.sleep_forever()
                finally:
                    self.stopped += 1
        return self.text(said)

    async def subscribe(self, params: Any, ctx: Any) -> Any:
        raise AssertionError("nobody could be told")

    async def on_roots_list_changed(self, params: Any, ctx: Any) -> None:
        self.told.append(ctx.revision)


First, Before, Then = (of_revision(Tools, package) for package in (v2025_03_26, v2025_06_18, v2025_11_25))


class Stateless(any_revision.Tools):
    """Stateless server whose tool returns the revision."""

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        return self.text(f"{ctx.revision} {params.name}")


Now = of_revision(Stateless, v2026_07_28)


def app(*servers: Server, **options: Any) -> HttpApp:
    """Return an application without sessions."""
    return HttpApp(*(servers or (First(), Before(), Then(), Now())), sessions=False, **options)


def tool(name: str, id_: object = 1, **meta: Any) -> dict[str, Any]:
    """Return a tool call."""
    return request(id_, "tools/call", {"name": name, **({"_meta": meta} if meta else {})})


def said(wire: Wire) -> list[Any]:
    """Return the messages of a response in either content type."""
    body = wire.received.partition(b"\r\n\r\n")[2].decode()
    if "content-length" in wire.headers:
        return [json.loads(body)]
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ")]


async def told(http: Wires, message: Any, revision: str | None = LATEST, **headers: str) -> list[Any]:
    """Send a message and return the messages of the response."""
    named: Headers = {} if revision is None else {"mcp_protocol_version": revision}
    wire = await http.ask("POST", message, **named, **headers)
    await wire.until(lambda received: b"content-length" in received or received.endswith(b"0\r\n\r\n"))
    await wire.until(lambda received: b"\r\n\r\n" in received)
    if "content-length" in wire.headers:
        await wire.status()
    return said(wire)


def text(message: Any) -> str:
    """Return the text of a tool result."""
    found: str = message["result"]["content"][0]["text"]
    return found


@each("revision", [FIRST, BEFORE, LATEST])
async def test_a_handshake_returns_no_session_and_no_capability_that_needs_a_session(revision: str) -> None:
    async with wires(app()) as http:
        begun = await http.ask("POST", initialize(revision))
        assert await begun.status() == 200
        assert "mcp-session-id" not in begun.headers
        result = begun.json["result"]
        assert (oracle(revision).result("initialize", result), result["protocolVersion"]) == ([], revision)
        assert result["capabilities"] == {"logging": {}, "resources": {}, "tools": {}}
        initialized = notification("notifications/initialized")
        assert await (await http.ask("POST", initialized, mcp_protocol_version=revision)).status() == 202
        (one,) = await told(http, tool("x"), revision)
        assert text(one) == f"{revision} x"


async def test_any_worker_handles_any_message() -> None:
    """No message depends on an earlier one, so two workers in turn behave like one."""
    async with wires(app()) as one, wires(app()) as other:
        assert await (await one.ask("POST", initialize(LATEST))).status() == 200
        for http in (other, one, other):
            assert text((await told(http, tool("x")))[0]) == f"{LATEST} x"


async def test_the_version_header_selects_the_revision_with_2025_03_26_as_the_default() -> None:
    async with wires(app()) as http:
        assert [text((await told(http, tool("x"), revision))[0]) for revision in (LATEST, BEFORE, None)] == [
            f"{LATEST} x",
            f"{BEFORE} x",
            f"{FIRST} x",
        ]
        refused = await http.ask("POST", tool("x"), mcp_protocol_version="2020-02-02")
        assert (await refused.status(), refused.json["error"]["data"]) == (400, {"supported": STATEFUL})
        wanted = lone(1, "tools/call", name="x")
        now = await http.ask("POST", wanted, **stateless(wanted))
        assert (await now.status(), text(now.json)) == (200, f"{STATELESS} x")
    async with wires(app(Then(), revisions=[LATEST])) as http:
        refused = await http.ask("POST", tool("x"))
        assert await refused.status() == 400
        assert "MCP-Protocol-Version is missing; supported are 2025-11-25" in refused.json["error"]["message"]


async def test_get_and_delete_are_not_allowed() -> None:
    async with wires(app()) as http:
        for method in ("GET", "DELETE"):
            wire = await http.ask(method, mcp_session_id="x" * 43)
            assert (await wire.status(), wire.headers["allow"]) == (405, "POST")


async def test_progress_and_logs_come_on_the_response() -> None:
    async with wires(app()) as http:
        messages = await told(http, tool("count", progressToken="t"))
        assert [one.get("method", "the answer") for one in messages] == [
            *["notifications/progress", "notifications/message"] * 3,
            "the answer",
        ]
        assert text(messages[-1]) == f"{LATEST} count"


@each("name", QUESTIONS)
async def test_a_request_to_the_client_needs_a_session(name: str) -> None:
    async with wires(app()) as http:
        (one,) = await told(http, tool(name))
        assert one["error"] == {"code": -32600, "message": f"{QUESTIONS[name]} {NEEDS}"}


@each(
    ("method", "params"),
    [
        ("resources/subscribe", {"uri": "a:b"}),
        ("resources/unsubscribe", {"uri": "a:b"}),
        ("logging/setLevel", {"level": "info"}),
    ],
)
async def test_a_request_that_changes_session_state_needs_a_session(method: str, params: Any) -> None:
    async with wires(app()) as http:
        (one,) = await told(http, request(1, method, params))
        assert one["error"] == {"code": -32600, "message": f"{method} {NEEDS}"}


async def test_a_message_outside_of_a_request_needs_a_session() -> None:
    server = Then()
    async with wires(app(server)) as http:
        (one,) = await told(http, tool("changed"))
        assert one["error"]["message"] == f"notifications/tools/list_changed {NEEDS}"
        await told(http, tool("x"))
        with pytest.raises(SessionRequired, match="after the end of its request needs a session"):
            await server.late.log("info", "late")
        with pytest.raises(SessionRequired, match="broadcast needs a session"):
            await server.broadcast(lambda client: client.notify_tool_list_changed())
        refused = await http.ask("POST", {"jsonrpc": "2.0", "id": 7, "result": {}}, mcp_protocol_version=LATEST)
        assert (await refused.status(), refused.json["error"]["message"]) == (400, f"an answer {NEEDS}")


@each("order", [(False, True), (True, False)])
async def test_an_endpoint_without_sessions_changes_no_other_endpoint(order: Sequence[bool]) -> None:
    server = Then()
    served = [HttpApp(server, sessions=has_sessions) for has_sessions in order]
    async with wires(served[order.index(True)]):
        assert server.has_sessions
        await server.broadcast(lambda client: client.notify_tool_list_changed())


async def test_client_info_and_capabilities_are_not_kept_between_messages() -> None:
    async with wires(app()) as http:
        assert await (await http.ask("POST", initialize(LATEST, {"sampling": {}, "roots": {}}))).status() == 200
        (one,) = await told(http, tool("who"))
        assert json.loads(text(one)) == [None, {}]


async def test_notifications_reach_their_handlers() -> None:
    server = Then()
    async with wires(app(server)) as http:
        for name in ("notifications/roots/list_changed", "notifications/cancelled"):
            params = {"requestId": 1} if name.endswith("cancelled") else None
            wire = await http.ask("POST", notification(name, params), mcp_protocol_version=LATEST)
            assert await wire.status() == 202
        await until(lambda: server.told == [LATEST])


async def test_batches_are_answered_together_in_revisions_with_batches() -> None:
    async with wires(app()) as http:
        batch: Sequence[Any] = [tool("x", 1), notification("notifications/roots/list_changed"), tool("roots", 2)]
        ((one, two),) = await told(http, batch, FIRST)
        assert (text(one), two["error"]["message"]) == (f"{FIRST} x", f"roots/list {NEEDS}")
        assert await (await http.ask("POST", batch, mcp_protocol_version=LATEST)).status() == 400


async def test_invalid_messages_get_the_same_errors_as_with_sessions() -> None:
    messages: list[Any] = [
        request(1, "tools/call", {"name": 7}),
        request(1, "nothing/known"),
        b"{",
        {"jsonrpc": "2.0"},
        [],
        [initialize(FIRST), tool("x", 2)],
        request(None, "ping"),
        tool("half of a pair: \ud83d"),
    ]
    async with wires(app(First(), Then())) as without, in_session(HttpApp(First(), Then())) as (having, session):
        for message in messages:
            one = await without.ask("POST", message, mcp_protocol_version=LATEST)
            other = await having.ask("POST", message, **session)
            assert (await one.status(), one.json) == (await other.status(), other.json)
        refused = await without.ask("POST", messages[-1], mcp_protocol_version=LATEST)
        assert (await refused.status(), refused.json["id"], refused.json["error"]["code"]) == (200, 1, -32602)
        for headers in ({"content_type": "text/plain"}, {"accept": "application/json"}):
            assert await (await without.ask("POST", tool("x"), **headers)).status() in (406, 415)


async def test_a_disconnecting_client_cancels_its_request() -> None:
    server = Then()
    async with wires(app(server)) as http:
        wire = await http.ask("POST", tool("wait"), mcp_protocol_version=LATEST)
        await until(lambda: server.late is not None)
        await wire.stream.aclose()
        await until(lambda: server.stopped == 1)


@each("client", [v2025_03_26.Client, v2025_06_18.Client, v2025_11_25.Client])
async def test_our_clients_need_no_session(client: Any) -> None:
    class Asked(client):  # type: ignore[misc]
        """Client with roots, which no server can request."""

        async def on_list_roots(self, *arguments: Any) -> Any:
            raise AssertionError("nobody can ask")

    asked: Any = Asked()
    async with listening(app()) as port, connect(f"http://127.0.0.1:{port}/mcp", asked) as connected:
        seen: list[Any] = []
        counting: Any = connected.with_options(on_progress=lambda params: seen.append(params.progress))
        assert (await counting.call_tool("count")).content[0].text.endswith("count")
        assert seen == [1, 2, 3]
        await refused(connected.call_tool("roots"), match="needs a session")


def test_a_store_without_sessions_is_refused() -> None:
    with pytest.raises(ValueError, match="a store is for sessions"):
        app(store=MemoryEventStore())


async def test_tokens_and_scopes_are_checked_without_sessions() -> None:
    class Guarded(Tools):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            if params.name == "admin":
                ctx.identity.require("admin")
            return await super().call_tool(params, ctx)

    alice = Identity(subject="alice", scopes=frozenset({"read"}))
    scopes = {("tools/call", "x"): ["read"], ("tools/call", "delete"): ["write"]}
    auth = ResourceServer("http://localhost/mcp", StaticTokens({KEY: alice}), scopes=scopes)
    async with wires(app(of_revision(Guarded, v2025_11_25)(), auth=auth)) as http:
        for name, token, status in (("x", "wrong", 401), ("x", KEY, 200), ("delete", KEY, 403), ("admin", KEY, 403)):
            headers = {"mcp_protocol_version": LATEST, "authorization": f"Bearer {token}"}
            wire = await http.ask("POST", tool(name), **headers)
            assert await wire.status() == status, name
            assert ("insufficient_scope" in wire.headers.get("www-authenticate", "")) == (status == 403)


async def test_every_post_gets_a_response() -> None:
    ping, unknown = request(1, "ping"), notification("no/such")
    rows: list[tuple[str, Any, int, int]] = [
        (LATEST, unknown, 202, 0),
        (LATEST, notification("notifications/progress", {"progress": "much"}), 202, 0),
        (LATEST, notification("initialize"), 202, 0),
        (FIRST, [ping, unknown], 200, 1),
        (FIRST, [ping, unknown, request(2, "no/such")], 200, 2),
    ]
    async with wires(app()) as http:
        for revision, messages, status, answers in rows:
            wire = await http.ask("POST", messages, mcp_protocol_version=revision)
            assert await wire.status() == status, messages
            assert not answers or len(wire.json) == answers
