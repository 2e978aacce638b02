"""Streamable HTTP client against a scripted server (13 s)."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import anyio
import httpx2
import pytest

from mcp_bindgen.http import event_stream, http, sse
from mcp_bindgen.http.client import transport as client_module
from mcp_bindgen.runtime import AuthorizationError, ConnectionClosed, ProtocolError, connect
from mcp_bindgen.runtime.protocol.errors import Refused, SessionLost
from mcp_bindgen.runtime.protocol.transport import Outgoing, Oversized
from mcp_bindgen.v2025_11_25 import Client
from tests.harness.checked_connections import refused
from tests.harness.effort import each
from tests.harness.scripted_http_server import (
    CANCELLED,
    EVENTS,
    INITIALIZE,
    SESSION,
    VERSION,
    Cut,
    Heard,
    Play,
    answer,
    ask,
    eventually,
    introduce,
    introduced,
    lost,
    messages,
    notice,
    notification,
    request,
    serving,
    stateful,
    talking,
)

# --- responses ------------------------------------------------------------------------------------------------


async def test_a_request_is_a_post_that_is_answered_by_json() -> None:
    async with talking(Heard.result, headers={"Authorization": "Bearer x", "ACCEPT": "nothing"}) as (there, script):
        assert await ask(there, request(1, headers={**VERSION, "Mcp-Method": "tools/call"})) == answer(1)
    (heard,) = script.heard
    assert (heard.method, heard.path, heard.id) == ("POST", "/mcp", 1)
    assert heard.headers["accept"] == "application/json, text/event-stream"
    assert (heard.headers["content-type"], heard.headers["authorization"]) == ("application/json", "Bearer x")
    assert (heard.headers["mcp-protocol-version"], heard.headers["mcp-method"]) == ("2025-11-25", "tools/call")
    assert "mcp-session-id" not in heard.headers


async def test_a_request_is_answered_by_events() -> None:
    async def play(heard: Heard) -> None:
        await heard.begin(200, "Text/Event-Stream; charset=utf-8")
        await heard.write(b": keep-alive\n\nevent: message\ndata: ")
        await heard.write(json.dumps(notice("é \u2028")).encode()[:40])
        await heard.write(json.dumps(notice("é \u2028")).encode()[40:] + b"\r\n\r\n")
        await heard.write(b"event: other\ndata: {}\n\nid: 7\ndata:\n\n")
        await heard.event(notice("b"))
        await heard.event(answer(heard.id))

    async with talking(play) as (there, script):
        for id_ in (1, 2, 3):
            await there.send([request(id_)])
            assert await messages(there, 3) == [notice("é \u2028"), notice("b"), answer(id_)]
        assert len({heard.connection for heard in script.heard}) == 1, "the connection is used again"


@each("response", [answer(1), {"jsonrpc": "2.0", "id": 1}])
async def test_a_stream_that_stays_open_after_the_answer_is_closed(response: dict[str, Any]) -> None:
    async def play(heard: Heard) -> None:
        await heard.event(response)
        await heard.event(notice("late"))
        await heard.until_gone()

    async with talking(play) as (there, script):
        await there.send([request(1)])
        assert await messages(there, 2) == [response, notice("late")]
        await eventually(lambda: script.heard[0].gone_at)


async def test_the_number_of_concurrent_requests_is_limited() -> None:
    running, most = list[int](), 0

    async def play(heard: Heard) -> None:
        nonlocal most
        running.append(heard.id)
        most = max(most, len(running))
        await anyio.sleep(0.02)
        running.remove(heard.id)
        await (heard.result() if heard.id % 2 else heard.event(answer(heard.id)))

    async with talking(play, in_flight=10) as (there, _):
        await there.send([request(id_) for id_ in range(50)])
        assert sorted(one["id"] for one in await messages(there, 50)) == list(range(50))
    assert most == 10


async def test_the_timeout_does_not_apply_to_slow_responses() -> None:
    """The time-out covers connecting and missing responses, not a slow tool or a silent stream."""

    async def play(heard: Heard) -> None:
        if heard.id == 1:
            await anyio.sleep(0.5)
            await heard.result()
        elif heard.id == 2:
            await heard.begin(200, EVENTS)
            await anyio.sleep(0.5)
            await heard.event(answer(heard.id))
        else:
            await heard.until_gone()

    async with talking(play, timeout=0.2) as (there, script):
        assert await ask(there, request(1)) == answer(1)
        assert await ask(there, request(2)) == answer(2)
        await there.send([notification(CANCELLED)])
        await eventually(lambda: script.heard[-1].gone_at)


@pytest.mark.full
async def test_big_messages_are_sent_and_received() -> None:
    text = "é" * 3_000_000

    async def play(heard: Heard) -> None:
        assert json.loads(heard.body)["params"] == text
        await (heard.result(text) if heard.id == 1 else heard.event(answer(heard.id, text)))

    async with talking(play) as (there, _):
        for id_ in (1, 2):
            message = Outgoing(json.dumps({"id": id_, "method": "tools/call", "params": text}).encode())
            message.id = id_
            assert (await ask(there, message))["result"] == text


@pytest.mark.full
async def test_unread_messages_stop_the_client_from_reading_on() -> None:
    written = 0

    async def play(heard: Heard) -> None:
        nonlocal written
        await heard.begin(200, EVENTS)
        for number in range(500):
            await heard.event(notice(f"{number}{'x' * 100_000}"))
            written = number + 1
        await heard.event(answer(heard.id))

    async with talking(play) as (there, _):
        await there.send([request(1)])
        await anyio.sleep(0.5)
        assert written < 300
        assert [int(one["params"]["data"].rstrip("x")) for one in (await messages(there, 501))[:-1]] == list(range(500))


# --- invalid responses ----------------------------------------------------------------------------------------

INFO = {"name": "script", "version": "1"}
ERROR = {"code": -32022, "message": "no", "data": {"supported": []}}


@each("status", [200, 400, 404, 500])
@each("ids", [{"id": 1}, {"id": None}, {}, {"id": "server-error"}])
async def test_a_protocol_error_with_any_status_and_id_is_a_response(status: int, ids: dict[str, Any]) -> None:
    async with talking(lambda heard: heard.json({"jsonrpc": "2.0", **ids, "error": ERROR}, status)) as (there, _):
        assert await ask(there, request(1)) == {"jsonrpc": "2.0", "id": 1, "error": ERROR}


@each(
    ("status", "content", "kind", "said"),
    [
        (400, b"", "", "answered 400 Bad Request"),
        (401, b'{"error": "invalid_token"}', "application/json", '401 Unauthorized: {"error": "invalid_token"}'),
        (403, b"Invalid\n  Host", "text/plain; charset=utf-8", "403 Forbidden: Invalid Host"),
        (404, b"<html>", "text/html", "answered 404 Not Found"),
        (405, b"\x1b[31m", "text/plain", "answered 405 Method Not Allowed"),
        (500, b"x" * 5000, "text/plain", "500 Internal Server Error: " + "x" * 200),
        (400, b'{"error": {"code": 1, "message": "not JSON-RPC"}}', "application/json", "400 Bad Request: "),
        (400, b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "error": {}}', "application/json", "400 Bad Request: "),
        (400, b"[]", "application/json", "400 Bad Request: []"),
        (303, b"", "", "answered 303 See Other"),
        (502, b"x" * 20_001, "text/plain", None),
    ],
)
async def test_an_error_status_fails_the_request_and_keeps_the_transport_usable(
    status: int, content: bytes, kind: str, said: str | None
) -> None:
    async with talking(lambda heard: heard.end(status, content, kind), limit=20_000) as (there, script):
        error = await lost(there, request(1))
        if said is None:
            assert isinstance(error, ProtocolError)
        else:
            assert isinstance(error, Refused)
            assert error.status == status
            assert said in str(error)
            assert str(error).startswith(script.url)
        assert isinstance(await lost(there, request(2)), type(error)), "the transport goes on"


@each(
    ("status", "content", "kind"),
    [
        (202, b"", ""),
        (204, b"", ""),
        (200, b"", ""),
        (200, b"", "application/json"),
        (200, b"{", "application/json"),
        (200, b"\xff\xfe", "application/json"),
        (200, b"null", "application/json"),
        (200, b"<html>hello</html>", "text/html"),
        (200, b'{"jsonrpc": "2.0", "id": 2, "result": {}}', "application/json"),
        (200, b'{"jsonrpc": "2.0", "id": "x", "result": {}}', "application/json"),
        (200, b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}', "application/json"),
        (200, b'{"id": 1, "error"', "application/json"),
    ],
)
async def test_a_success_status_without_a_response_fails_the_request(status: int, content: bytes, kind: str) -> None:
    async with talking(lambda heard: heard.end(status, content, kind)) as (there, _):
        error = await lost(there, request(1))
        assert isinstance(error, ConnectionClosed)
        assert not isinstance(error, Refused)
        assert "no answer" in str(error)


async def test_batches_and_any_order_of_members_are_accepted_as_responses() -> None:
    bodies = [b'{"result": {"method": "x"}, "id": 1, "jsonrpc": "2.0"}', b'[{"jsonrpc":"2.0","id":1,"result":{}}]']
    bodies.append(b'{"jsonrpc":"2.0","id":"1","result":{}}')

    for content in bodies:

        async def play(heard: Heard, content: bytes = content) -> None:
            if heard.headers["x-as"] == "json":
                await heard.end(200, content, "application/json")
            else:
                await heard.begin(200, EVENTS)
                await heard.write(b"id: 1\ndata: " + content + b"\n\n")

        async with talking(play) as (there, script):
            for form in ("json", "events"):
                assert await ask(there, request(1, headers={"x-as": form})) == json.loads(content)
            await anyio.sleep(0.1)
            assert script.names == ["tools/call"] * 2


async def test_messages_above_the_limit_are_reported_as_oversized() -> None:
    big = answer(1, "x" * 5000)

    async def play(heard: Heard) -> None:
        if heard.id == 1:
            await heard.json(big)
        else:
            await heard.event(big, id="1")
            await heard.event(notice("x" * 5000))
            await heard.event(notice("y"))
            await heard.event(answer(heard.id, "y"))

    async with talking(play, limit=1000) as (there, _):
        error = await lost(there, request(1))
        assert isinstance(error, ProtocolError)
        assert "larger than 1000 bytes" in str(error)
        await there.send([request(2)])
        first, second, third, last = await messages(there, 4)
        assert isinstance(first, Oversized)
        assert first.limit == 1000
        assert first.head.startswith(b'{"jsonrpc": "2.0", "id": 1, "result": "xxx')
        assert isinstance(second, Oversized)
        assert (third, last) == (notice("y"), answer(2, "y"))


async def test_an_oversized_response_in_a_stream_is_not_requested_again() -> None:
    async def play(heard: Heard) -> None:
        await heard.event(answer(heard.id, "x" * 5000), id="1")

    async with talking(play, limit=1000) as (there, script):
        assert isinstance(await ask(there, request(1)), Oversized)
        await anyio.sleep(1.2)
        assert script.names == ["tools/call"], "it is not asked for again"


async def test_compressed_responses_are_limited_by_their_decompressed_size() -> None:
    async def play(heard: Heard) -> None:
        bomb = gzip.compress(json.dumps(answer(heard.id, "x" * (10_000_000 if heard.id == 2 else 10))).encode())
        await heard.end(200, bomb, "application/json", content_encoding="gzip")

    async with talking(play, limit=1_000_000) as (there, _):
        assert await ask(there, request(1)) == answer(1, "x" * 10)
        assert "larger than" in str(await lost(there, request(2)))


@each("where", ["head", "json", "stream"])
async def test_a_broken_connection_fails_only_its_own_request(where: str) -> None:
    async def play(heard: Heard) -> None:
        if heard.id == 2:
            await heard.result()
        elif where == "json":
            await heard.begin(200, "application/json", content_length="1000")
            await heard.write(json.dumps(answer(heard.id)).encode())
        elif where == "stream":
            await heard.event(notice("first"))
            await heard.write(b"data: " + json.dumps(answer(heard.id)).encode() + b"\n")
        if heard.id == 1:
            raise Cut

    async with talking(play) as (there, script):
        await there.send([request(1)])
        if where == "stream":
            assert await messages(there, 1) == [notice("first")]
        (found,) = await messages(there, 1)
        if where == "head":  # uvicorn answers 500
            assert isinstance(found.error, Refused)
        else:
            assert type(found.error) is ConnectionClosed
            assert script.url in str(found.error)
        assert await ask(there, request(2)) == answer(2)


async def test_unreachable_and_non_http_servers_fail_the_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        writer.close()

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with http(f"http://user:secret@127.0.0.1:{port}/mcp?token=secret") as there:
        error = await lost(there, request(1))
        assert str(error).startswith(f"no answer from http://127.0.0.1:{port}/mcp: ")
        assert "secret" not in str(error)
        await there.send([notification()])
    for serve in (garbage, hang_up):
        async with await asyncio.start_server(serve, "127.0.0.1") as server:
            place = server.sockets[0].getsockname()[1]
            async with http(f"http://127.0.0.1:{place}/mcp") as there:
                assert type(await lost(there, request(1))) is ConnectionClosed


@each("url", ["ftp://127.0.0.1/mcp", "mcp", "", "http://", "http://host:x/", "stdio:"])
async def test_invalid_urls_are_refused(url: str) -> None:
    with pytest.raises(ConnectionClosed):
        async with http(url):
            pass


@each("proxy", ["socks5://127.0.0.1:1", "ftp://127.0.0.1:1", "http://[::1"])
async def test_an_unusable_proxy_of_the_environment_is_reported(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(ConnectionClosed, match="the proxy of the environment cannot be used"):
        async with http("https://example.com/mcp"):
            pass


async def test_invalid_headers_are_refused() -> None:
    with pytest.raises(ConnectionClosed):
        async with http("http://127.0.0.1:1/", headers={"é\u2028": "x"}):
            pass
    async with talking(Heard.result, headers={"x": "a\r\nb: c"}) as (there, script):
        assert isinstance(await lost(there, request(1)), ConnectionClosed)
        assert not script.heard


async def test_redirects_are_followed_only_within_the_same_origin() -> None:
    elsewhere = ""

    async def play(heard: Heard) -> None:
        if heard.path == "/mcp":
            await heard.end(
                {1: 307, 2: 308, 3: 302}.get(heard.id, 307), location="/mcp/" if heard.id < 4 else elsewhere
            )
        elif heard.path == "/loop":
            await heard.end(307, location="/loop")
        elif heard.path in ("/1", "/2", "/3"):
            await heard.end(307, location=f"/{int(heard.path[1:]) + 1}")
        else:
            await heard.result()

    async def other(heard: Heard) -> None:
        await heard.result("stolen")

    async with serving(other) as thief, talking(play, headers={"authorization": "x"}) as (there, script):
        elsewhere = thief.url + "?token=secret"
        assert (await ask(there, request(1)), [heard.path for heard in script.heard]) == (answer(1), ["/mcp", "/mcp/"])
        assert (script.heard[1].body, script.heard[1].headers["authorization"]) == (script.heard[0].body, "x")
        assert await ask(there, request(2)) == answer(2)
        assert "302 Found" in str(await lost(there, request(3))), "POST must not become GET"
        error = await lost(there, request(4))
        assert isinstance(error, Refused)
        assert str(error).endswith(f"it redirects to {thief.url}")
        async with http(script.url.replace("/mcp", "/1")) as there:
            assert await ask(there, request(5)) == answer(5)
        async with http(script.url.replace("/mcp", "/loop")) as there:
            assert "redirects without end" in str(await lost(there, request(1)))
        assert not thief.heard


# --- sessions -------------------------------------------------------------------------------------------------


async def test_a_session_sends_its_id_with_each_message_until_the_delete_request() -> None:
    async with introduced(stateful(Heard.result)) as (there, script):
        assert await ask(there, request(1)) == answer(1)
        await there.send([Outgoing(b'{"jsonrpc":"2.0","id":9,"result":{}}')])
        await eventually(lambda: "GET" in script.names)
        await there.close()
        await there.close()
        assert await there.receive() == ()
        await refused(there.send([request(2)]), ConnectionClosed)
    assert sorted(script.names) == sorted(
        ["initialize", "notifications/initialized", "GET", "tools/call", "answer", "DELETE"]
    )
    assert script.names[-1] == "DELETE"
    first, *others = script.heard
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    assert {heard.headers["mcp-session-id"] for heard in others} == {"s-1"}
    versioned = [heard for heard in others if heard.name != "answer"]
    assert {heard.headers["mcp-protocol-version"] for heard in versioned} == {"2025-11-25"}
    (get,) = script.called("GET")
    assert get.headers["accept"] == EVENTS
    assert "content-type" not in get.headers


async def test_a_server_without_sessions_gets_no_session_header_and_no_delete_request() -> None:
    async def play(heard: Heard) -> None:
        await (
            heard.result()
            if heard.name in ("initialize", "tools/call")
            else heard.end(405 if heard.name == "GET" else 202)
        )

    async with introduced(play) as (there, script):
        assert await ask(there, request(1)) == answer(1)
        await eventually(lambda: "GET" in script.names)
    assert "DELETE" not in script.names
    assert not any("mcp-session-id" in heard.headers for heard in script.heard)


async def test_notifications_arrive_before_later_messages() -> None:
    async def play(heard: Heard) -> None:
        if heard.id is None:
            await anyio.sleep(0.1)
            taken.append(heard.at)
            await heard.end()
        else:
            await heard.result()

    taken: list[float] = []

    async with talking(play) as (there, script):
        await there.send([request(1), notification(CANCELLED), notification(CANCELLED), request(2), request(3)])
        assert len(taken) == 2
        await messages(there, 3)
        one, two = script.called("notifications/cancelled")
        assert two.at - one.at > 0.09
        assert min(heard.at for heard in script.called("tools/call")[1:]) > two.at + 0.09


@pytest.mark.parametrize("status", [400, 401, 413, 500])
async def test_a_notification_that_is_refused_is_logged(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def play(heard: Heard) -> None:
        await (heard.result() if heard.id else heard.json({"jsonrpc": "2.0", "error": ERROR}, status))

    async with talking(play) as (there, _):
        await there.send([notification()])
        assert await ask(there, request(1)) == answer(1)
    assert "a message was not taken: http://127.0.0.1" in caplog.text
    assert f"answered {status} " in caplog.text


async def test_a_lost_session_fails_new_requests_until_the_next_initialize() -> None:
    lives, release = True, anyio.Event()

    async def call(heard: Heard) -> None:
        if heard.id == 1:
            await heard.event(id="e-1")
            await release.wait()
            await heard.event(answer(1))
        elif heard.id == 2:
            await release.wait()
            await heard.result()
        elif not lives and "mcp-session-id" in heard.headers:
            await heard.json({"jsonrpc": "2.0", "id": "server-error", "error": ERROR}, 404)
        else:
            await heard.result()

    async with introduced(stateful(call)) as (there, script):
        modern = request(5, self_contained=True)
        await there.send([request(1), request(2)])
        await eventually(lambda: len(script.called("tools/call")) == 2)
        lives = False
        assert isinstance(await lost(there, request(3)), SessionLost)
        count = len(script.heard)
        assert isinstance(await lost(there, request(4)), SessionLost)
        await there.send([notification(CANCELLED)])
        assert len(script.heard) == count, "the server is not asked in vain"
        assert await ask(there, modern) == answer(5)
        lives = True
        assert await ask(there, request(6, INITIALIZE)) == answer(6)
        assert "mcp-session-id" not in script.heard[-1].headers
        assert (await ask(there, request(7)), script.heard[-1].headers["mcp-session-id"]) == (answer(7), "s-1")
        release.set()
        assert sorted(one["id"] for one in await messages(there, 2)) == [1, 2], "what the server had taken is answered"


@each("as_events", [False, True])
async def test_only_refused_requests_are_sent_again_after_a_session_loss(as_events: bool) -> None:
    """When a session is lost, its running call completes once, and the refused call is sent again in a new session."""
    release, session = anyio.Event(), 0
    ran: list[str] = []

    async def play(heard: Heard) -> None:
        nonlocal session
        if heard.name == "initialize":
            session += 1
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
            await heard.result(result, mcp_session_id=f"s-{session}")
        elif heard.name != "tools/call":
            await heard.end(405 if heard.name == "GET" else 202)
        else:
            tool = json.loads(heard.body)["params"]["name"]
            if tool == "refused" and heard.headers["mcp-session-id"] == "s-1":
                await heard.end(404)
                return
            ran.append(tool)
            answered = {"content": [{"type": "text", "text": tool}]}
            if tool == "slow" and as_events:
                await heard.event(id="e")
            if tool == "slow":
                await release.wait()
            await (heard.event(answer(heard.id, answered)) if as_events else heard.result(answered))

    async with serving(play) as script, Client.connect(http(script.url)) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "slow")
        await eventually(lambda: ran)
        await client.call_tool("refused")
        release.set()
    assert (ran, session) == (["slow", "refused"], 2)


async def test_an_accepted_request_is_not_sent_again_when_its_stream_is_gone() -> None:
    ran: list[str] = []

    async def call(heard: Heard) -> None:
        if heard.method == "POST":
            ran.append(heard.headers["mcp-session-id"])
            await heard.event(id="e", retry=10)
        else:
            await heard.end(404)

    async def play(heard: Heard) -> None:
        if heard.name == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}
            await heard.result(result, **SESSION)
        else:
            await stateful(call)(heard)

    async with serving(play) as script, Client.connect(http(script.url)) as client:
        await refused(client.call_tool("once"), ConnectionClosed, "forgotten the session")
    assert ran == ["s-1"]


async def test_a_late_404_for_an_earlier_session_does_not_end_the_current_session() -> None:
    """A late 404 for an earlier session does not end the current session."""
    number, release = 0, anyio.Event()

    async def play(heard: Heard) -> None:
        nonlocal number
        if heard.name == "initialize":
            number += 1
            await heard.result(mcp_session_id=f"s-{number}")
        elif heard.headers.get("mcp-session-id") == "s-1":
            await release.wait()
            await heard.end(404)
        else:
            await heard.result()

    async with talking(play) as (there, script):
        assert await ask(there, request(1, INITIALIZE)) == answer(1)
        await there.send([request(2)])
        await eventually(lambda: script.called("tools/call"))
        assert await ask(there, request(3, INITIALIZE)) == answer(3)
        release.set()
        (late,) = await messages(there, 1)
        assert (late.id, type(late.error)) == (2, SessionLost)
        assert await ask(there, request(4)) == answer(4)


@each("session", ["", "a b", "a\tb", "s\x80"])
async def test_invalid_session_ids_are_refused(session: str) -> None:
    async with talking(lambda heard: heard.result(mcp_session_id=session)) as (there, script):
        assert "characters that are not allowed" in str(await lost(there, request(1, INITIALIZE)))
        assert await ask(there, request(2)) == answer(2)
        assert "mcp-session-id" not in script.heard[-1].headers


async def test_only_a_result_of_initialize_begins_a_session() -> None:
    async def play(heard: Heard) -> None:
        if heard.id == 1:
            await heard.json({"jsonrpc": "2.0", "id": 1, "error": ERROR}, 400, **SESSION)
        else:
            await heard.result(**SESSION)

    async with talking(play) as (there, script):
        await ask(there, request(1, INITIALIZE))
        await ask(there, request(2))
        await ask(there, request(3))
        assert not any("mcp-session-id" in heard.headers for heard in script.heard)


@pytest.mark.parametrize("how", ["slow", "405", "gone"])
async def test_closing_does_not_wait_long_for_the_delete_request(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_FAREWELL_SECONDS", 0.2)

    async def play(heard: Heard) -> None:
        if heard.name == "DELETE":
            if how == "gone":
                raise Cut
            await (heard.until_gone() if how == "slow" else heard.end(405))
        else:
            await heard.result(**SESSION)

    async with serving(play) as script:
        async with http(script.url) as there:
            await ask(there, request(1, INITIALIZE))
        assert script.names[-1] == "DELETE"


async def test_closing_ends_all_waiting_requests_and_receivers() -> None:
    async def call(heard: Heard) -> None:
        await heard.event(id="1")
        await heard.until_gone()

    async with serving(stateful(call)) as script:
        async with http(script.url) as there, anyio.create_task_group() as tasks:
            await introduce(there)
            await there.send([request(id_) for id_ in range(1, 6)])
            await eventually(lambda: len(script.called("tools/call")) == 5)
            tasks.start_soon(there.receive)
            await anyio.sleep(0.05)
            await there.close()
        await eventually(lambda: all(heard.gone_at for heard in script.called("tools/call")))
        assert script.names[-1] == "DELETE"


async def test_exceptions_of_the_caller_are_raised_unchanged() -> None:
    async def fail(url: str) -> None:
        async with http(url) as there:
            await there.send([request(1)])
            raise KeyError("mine")

    async with serving(Heard.result) as script:
        await refused(fail(script.url), KeyError, "mine")
        with anyio.move_on_after(0.1) as scope:
            async with http(script.url):
                await anyio.sleep_forever()
        assert scope.cancelled_caught


# --- GET stream -----------------------------------------------------------------------------------------------


def listening(get: Play) -> Play:
    """Serve sessions whose GET streams are handled by a function."""

    async def play(heard: Heard) -> None:
        if heard.name == "GET":
            await get(heard)
        elif heard.name in ("initialize", "tools/call"):
            await heard.result(**SESSION)
        else:
            await heard.end()

    return play


async def test_the_get_stream_delivers_messages_of_the_server() -> None:
    async def get(heard: Heard) -> None:
        await heard.event(id="a", retry=50)
        await heard.event(notice("one"), id="b")
        await heard.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await heard.until_gone()

    async with introduced(listening(get)) as (there, script):
        assert await messages(there, 2) == [notice("one"), {"jsonrpc": "2.0", "id": 1, "method": "ping"}]
        assert await ask(there, request(1)) == answer(1)
        assert "last-event-id" not in script.called("GET")[0].headers
    assert script.called("GET")[0].gone_at


async def test_the_get_stream_is_reopened_at_the_last_event_id() -> None:
    async def get(heard: Heard) -> None:
        turn = len(script.called("GET"))
        if turn == 1:
            await heard.event(notice("1"), id="a", retry=100)
        elif turn == 2:
            await heard.event(notice("2"))
            raise Cut
        elif turn == 3:
            await heard.end(503)
        else:
            await heard.event(notice("4"), id="d")
            await heard.until_gone()

    async with introduced(listening(get)) as (there, script):
        assert await messages(there, 3) == [notice("1"), notice("2"), notice("4")]
    gets = script.called("GET")
    assert [heard.headers.get("last-event-id") for heard in gets] == [None, "a", "a", "a"]
    waited = [later.at - earlier.at for earlier, later in pairwise(gets)]
    assert min(waited[0], waited[1], waited[2] - 0.1) > 0.09, "longer after a failure"


@each("status", [400, 404, 405, 410, 422])
async def test_a_get_stream_that_is_not_resumed_is_opened_anew(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def get(heard: Heard) -> None:
        turn = len(script.called("GET"))
        if turn in (2, 3):
            await heard.end(status)
        else:
            await heard.event(notice(str(turn)), id="a", retry=10)
            if turn > 1:
                await heard.until_gone()

    async def play(heard: Heard) -> None:
        await (get(heard) if heard.name == "GET" else heard.end() if heard.id is None else heard.result())

    async with introduced(play, min_retry=0.01) as (there, script):
        first, gap, second = await messages(there, 3)
        assert (first, gap.id, second) == (notice("1"), 0, notice("4"))
    assert [heard.headers.get("last-event-id") for heard in script.called("GET")] == [None, "a", None, None]
    assert caplog.text.count("a stream cannot be resumed, events are lost: http://127.0.0.1") == 1
    caplog.clear()


class Tokens:
    """Source of no tokens, whose attempts fail as the test demands."""

    def __init__(self, *failures: Exception | None) -> None:
        self.extensions, self.failures = dict[str, Any](), [*failures]

    def authorizer(self, url: str) -> Tokens:
        return self

    def attempt(self, ask_user: object) -> Tokens:
        return self

    async def headers(self, method: str, url: str) -> dict[str, str]:
        if method == "GET" and self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        return {}

    async def again(self, url: str, status: int, headers: Any) -> bool:
        return False


AWAY, DENIED = AuthorizationError("the issuer answered 503", is_temporary=True), AuthorizationError("log in again")


@each(
    ("failures", "statuses"),
    [
        ([AWAY], []),
        ([AWAY, None, AWAY], []),
        ([None, DENIED, DENIED], []),
        ([DENIED, AWAY, DENIED], []),
        ([], [200, 401, 403, 401]),
        ([], [521, 599]),
    ],
)
async def test_the_get_stream_is_opened_again_after_a_new_login(
    failures: list[Any], statuses: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "_RETRY", 0.01)

    async def get(heard: Heard) -> None:
        turn = len(script.called("GET"))
        if statuses[turn - 1 : turn] not in ([], [200]):
            await heard.end(statuses[turn - 1])
        else:
            await heard.event(notice(str(turn)), id="a", retry=10)
            if turn > 1:
                await heard.until_gone()

    async with introduced(listening(get), min_retry=0.01, auth=Tokens(*failures)) as (there, script):
        was_away = bool(failures and failures[0]) or 521 in statuses
        found = await messages(there, 2 if 521 in statuses else 2 + was_away)
    assert isinstance(found[0], dict) != was_away
    assert found[-1]["method"] == "notifications/message"
    assert script.called("GET")[-1].headers.get("last-event-id") == (None if 521 in statuses else "a")


@each("how", ["400", "404", "405", "403", "302", "html"])
async def test_a_server_without_a_get_stream_stays_usable(how: str) -> None:
    async def get(heard: Heard) -> None:
        await (heard.end(200, b"<html>", "text/html") if how == "html" else heard.end(int(how), location="/elsewhere"))

    async with introduced(listening(get)) as (there, script):
        await eventually(lambda: "GET" in script.names)
        assert await ask(there, request(1)) == answer(1)
        await anyio.sleep(0.1)
        assert (await ask(there, request(2)), len(script.called("GET"))) == (answer(2), 4 if how == "302" else 1)


async def test_the_stream_ends_with_the_session() -> None:
    async def play(heard: Heard) -> None:
        if heard.name == "GET":
            await heard.event(id="a")
            await heard.until_gone()
        elif heard.name == "tools/call":
            await heard.end(404)
        else:
            await (heard.result(**SESSION) if heard.id is not None else heard.end())

    async with introduced(play) as (there, script):
        await eventually(lambda: script.called("GET"))
        assert isinstance(await lost(there, request(1)), SessionLost)
        await eventually(lambda: script.called("GET")[0].gone_at)
        await introduce(there)
        await eventually(lambda: len(script.called("GET")) == 2)


async def test_a_404_when_the_get_stream_is_reopened_ends_the_session() -> None:
    async def get(heard: Heard) -> None:
        if "last-event-id" in heard.headers:
            await heard.end(404)
        else:
            await heard.event(id="a", retry=50)

    async with introduced(listening(get)) as (there, script):
        await eventually(lambda: len(script.called("GET")) == 2)
        await anyio.sleep(0.05)
        assert isinstance(await lost(there, request(1)), SessionLost)


# --- resuming -------------------------------------------------------------------------------------------------


@each("how", ["end", "cut", "521", "away"])
async def test_a_response_arrives_on_the_resumed_stream(how: str) -> None:
    async def call(heard: Heard) -> None:
        if heard.method == "POST":
            await heard.event(id="e-1", retry=10)
            await heard.event(notice("before"), id="e-2")
            await heard.write(b"id: e-3\ndata: half an ev")
            if how == "cut":
                raise Cut
        elif how == "521" and len([heard for heard in script.called("GET") if "last-event-id" in heard.headers]) == 1:
            await heard.end(521)
        else:
            await heard.event(notice("after"))
            await heard.event(answer(1))
            await heard.until_gone()

    tokens = Tokens(None, *[AWAY] * (how == "away"))
    async with introduced(stateful(call), auth=tokens) as (there, script):
        await there.send([request(1)])
        assert await messages(there, 3) == [notice("before"), notice("after"), answer(1)]
        get = [heard for heard in script.called("GET") if "last-event-id" in heard.headers][-1]
        assert (get.headers["last-event-id"], get.headers["mcp-session-id"]) == ("e-2", "s-1")
        assert get.headers["mcp-protocol-version"] == "2025-11-25"
        await eventually(lambda: get.gone_at)


async def test_a_stream_is_not_resumed_before_its_retry_time() -> None:
    async def call(heard: Heard) -> None:
        if heard.id == 1:
            await heard.event(id="e-1", retry=3_600_000)
        else:
            await heard.result()

    async with introduced(stateful(call)) as (there, script):
        await there.send([request(1)])
        for number in range(2, 22):
            assert await ask(there, request(number)) == answer(number)
        assert not [heard for heard in script.called("GET") if "last-event-id" in heard.headers]


async def test_polling_continues_while_the_server_sends_events() -> None:
    async def call(heard: Heard) -> None:
        turn = int(heard.headers.get("last-event-id", "0"))
        await heard.event(id=str(turn + 1), retry=10)
        if turn == 12:
            await heard.event(answer(1))

    async with introduced(stateful(call), min_retry=0.01) as (there, _):
        assert await ask(there, request(1)) == answer(1)


@each("how", ["503", "silence", "cut"])
async def test_resuming_is_given_up_after_five_attempts(how: str) -> None:
    async def call(heard: Heard) -> None:
        if heard.method == "POST":
            await heard.event(id="e", retry=10)
        elif how == "silence":
            await heard.begin(200, EVENTS)
        elif how == "503":
            await heard.end(503)
        else:
            raise Cut

    async with introduced(stateful(call), min_retry=0.01) as (there, script):
        error = await lost(there, request(1))
        assert type(error) is ConnectionClosed
        assert "ended the stream before the answer" in str(error)
        gets = [heard for heard in script.called("GET") if "last-event-id" in heard.headers]
        assert len(gets) == 5
        assert {heard.headers["last-event-id"] for heard in gets} == {"e"}


@each(("status", "kind"), [(405, Refused), (400, Refused), (404, ConnectionClosed), (200, Refused)])
async def test_a_server_that_does_not_resume_fails_the_request(status: int, kind: type[Exception]) -> None:
    async def call(heard: Heard) -> None:
        if heard.method == "POST":
            await heard.event(id="e", retry=10)
        else:
            await heard.end(status, b"<html>", "text/html")

    async with introduced(stateful(call)) as (there, _):
        assert type(await lost(there, request(1))) is kind


@each("id_", [None, "", "\x07", "é"])
async def test_a_stream_without_a_valid_event_id_is_not_resumed(id_: str | None) -> None:
    async def call(heard: Heard) -> None:
        await heard.event(notice("x"), id="good" if id_ is not None else None, retry=10)
        await heard.event(id=id_)

    async with introduced(stateful(call)) as (there, script):
        await there.send([request(1)])
        first, second = await messages(there, 2)
        assert first == notice("x")
        assert type(second.error) is ConnectionClosed
        assert not any("last-event-id" in heard.headers for heard in script.heard)


# --- stateless requests ---------------------------------------------------------------------------------------


async def test_a_self_contained_request_has_no_session_and_is_not_resumed() -> None:
    async with introduced(stateful(lambda heard: heard.event(notice("x"), id="e", retry=10))) as (there, script):
        await there.send([request(1, self_contained=True)])
        first, second = await messages(there, 2)
        assert (first, type(second.error)) == (notice("x"), ConnectionClosed)
        assert "mcp-session-id" not in script.called("tools/call")[0].headers
        await anyio.sleep(0.1)
        assert not any("last-event-id" in heard.headers for heard in script.heard)


async def test_a_404_for_a_self_contained_request_does_not_end_the_session() -> None:
    async def call(heard: Heard) -> None:
        if heard.id == 1:
            await heard.json({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}, 404)
        else:
            await (heard.end(404) if heard.id == 2 else heard.result())

    async with introduced(stateful(call)) as (there, _):
        assert (await ask(there, request(1, self_contained=True)))["error"]["code"] == -32601
        assert type(await lost(there, request(2, self_contained=True))) is Refused
        assert await ask(there, request(3)) == answer(3)


@each("phase", ["head", "stream"])
async def test_cancelling_a_self_contained_request_closes_its_connection(phase: str) -> None:
    async def play(heard: Heard) -> None:
        if heard.id == 2:
            await heard.result()
            return
        if phase == "stream":
            await heard.event(notice("begun"))
        await heard.until_gone()

    async with talking(play) as (there, script):
        await there.send([request(1, self_contained=True)])
        if phase == "stream":
            assert await messages(there, 1) == [notice("begun")]
        await eventually(lambda: script.heard)
        cancel = notification(CANCELLED, cancels=1, self_contained=True)
        await there.send([cancel, cancel])
        await eventually(lambda: script.heard[0].gone_at)
        assert await ask(there, request(2)) == answer(2)
        await there.send([notification(CANCELLED, cancels=2, self_contained=True)])
        await anyio.sleep(0.05)
        assert script.names == ["tools/call", "tools/call"], "it is not posted"


async def test_a_queued_request_that_is_cancelled_is_never_sent() -> None:
    async def play(heard: Heard) -> None:
        await (heard.until_gone() if heard.id == 1 else heard.result())

    async with talking(play, in_flight=1) as (there, script):
        await there.send([request(id_, self_contained=True) for id_ in (1, 2, 3)])
        await eventually(lambda: script.heard)
        await there.send([notification(CANCELLED, cancels=id_, self_contained=True) for id_ in (2, 1)])
        assert (await messages(there, 1), [heard.id for heard in script.heard]) == ([answer(3)], [1, 3])


async def test_a_cancellation_in_a_session_is_sent_and_the_stream_is_closed() -> None:
    async def call(heard: Heard) -> None:
        await heard.event(id="e", retry=10)
        await heard.until_gone()

    async with introduced(stateful(call)) as (there, script):
        await there.send([request(1)])
        await eventually(lambda: script.called("tools/call"))
        await there.send([notification(CANCELLED, cancels=1)])
        (told,) = script.called("notifications/cancelled")
        assert told.headers["mcp-session-id"] == "s-1"
        await eventually(lambda: script.called("tools/call")[0].gone_at)
        assert script.called("tools/call")[0].gone_at >= told.at
        await anyio.sleep(0.1)
        assert not any("last-event-id" in heard.headers for heard in script.heard)
        await there.send([notification(CANCELLED, cancels=1)])
        assert len(script.called("notifications/cancelled")) == 2


async def test_a_subscription_stays_open_beyond_the_timeout() -> None:
    async def play(heard: Heard) -> None:
        if heard.id != 1:
            await heard.result()
            return
        await heard.event(notice("acknowledged"))
        for number in range(3):
            await anyio.sleep(0.2)
            await heard.write(b":\r\n\r\n")
            await heard.event(notice(str(number)))
        await heard.until_gone()

    async with talking(play, timeout=0.1) as (there, script):
        await there.send([request(1, self_contained=True)])
        assert await messages(there, 4) == [notice("acknowledged"), *map(notice, "012")]
        assert await ask(there, request(2)) == answer(2)
    assert script.heard[0].gone_at


# --- everything else ------------------------------------------------------------------------------------------


async def test_the_http_client_of_the_caller_is_used_and_stays_open() -> None:
    class Failing(httpx2.Auth):
        async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            if json.loads(request.content)["id"] == 2:
                raise PermissionError("no token")
            request.headers["authorization"] = "Bearer mine"
            yield request

    async with httpx2.AsyncClient(auth=Failing(), follow_redirects=True, timeout=0.01) as client:
        async with talking(Heard.result, client=client) as (there, script):
            assert await ask(there, request(1)) == answer(1)
            assert script.heard[0].headers["authorization"] == "Bearer mine"
            assert isinstance(await lost(there, request(2)), PermissionError)
        assert not client.is_closed


HERE = "http://here.example/mcp"


@each("opened", [http, sse])
@each(
    ("url", "headers", "said"),
    [
        (HERE, {"Authorization": "Bearer s3cret\n"}, "a header has characters that are not allowed"),
        (HERE, {"X-Key": "s3cret\x00"}, "a header has characters"),
        (HERE, {"X-Key": "s3cret\u00e9"}, "the URL or a header is malformed"),
        (HERE, {"Authorization: s3cret": "x"}, "a header has characters"),
        ("http://user:s3cret/word@127.0.0.1:9/mcp", {}, "the URL or a header is malformed"),
    ],
)
async def test_errors_of_a_malformed_url_or_header_show_no_secret(
    opened: Any, url: str, headers: dict[str, str], said: str
) -> None:
    async with serving(lambda heard: heard.result()) as script:
        with pytest.raises(ConnectionClosed, match=said) as failed:
            async with opened(url.replace(HERE, script.url), headers=headers) as there:
                raise await lost(there, request(1))
        assert "s3cret" not in str(failed.value)


async def test_a_url_that_cannot_be_split_is_malformed() -> None:
    with pytest.raises(ConnectionClosed, match=r"^the URL or a header is malformed$"):
        async with connect("http://user:s3[cret@127.0.0.1:port/mcp"):
            pass


async def test_no_log_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def play(heard: Heard) -> None:
        if heard.path == "/moved":
            await heard.end(307, location="/mcp?token=redirected")
        else:
            await (heard.end(405) if heard.name == "DELETE" else heard.result(mcp_session_id="session-secret"))

    with caplog.at_level(logging.DEBUG):
        async with serving(play) as script:
            async with http(script.url.replace("//", "//user:password@") + "?token=query") as there:
                await ask(there, request(1, INITIALIZE))
                await ask(there, request(2))
            assert script.heard[1].headers["mcp-session-id"] == "session-secret"
            assert script.heard[1].headers["authorization"].startswith("Basic ")
            async with http(script.url) as there:
                await ask(there, request(1))
            async with http(script.url.replace("/mcp", "/moved")) as there:
                await ask(there, request(1))
            assert script.heard[-1].query == "token=redirected"
    for secret in ("password", "token=query", "session-secret", "redirected"):
        assert secret not in caplog.text
    assert "HTTP Request: POST http://127.0.0.1" in caplog.text
    filters = [
        each for name in ("httpx2", "httpcore2.http11", "httpcore2.http2") for each in logging.getLogger(name).filters
    ]
    assert not filters
