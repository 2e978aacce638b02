"""`mcp-bindgen tap --listen`: a reverse proxy that changes nothing, and whose trace holds no secrets."""

from __future__ import annotations

import gzip
import json
import re
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp_bindgen.tap.trace import MAX_MESSAGE_BYTES
from tests.harness.checked_connections import refused, until
from tests.harness.commands import complaint
from tests.harness.taps import JSON, URL, Scripted, event, in_memory, tapped, traced, violations
from tests.interop.eavesdrop import Eavesdropper
from tests.interop.everything import EVERYTHING
from tests.interop.processes import NODE_SERVER, SDK_SERVER, free_port, listening, needed, node

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo"}}
RESULT = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}
VERSION = {"mcp-protocol-version": "2025-11-25"}


def answering(status: int = 200, headers: Any = JSON, *parts: bytes) -> Scripted:
    return Scripted(lambda sent: (status, headers, parts or (json.dumps(RESULT).encode(),)))


# --- forwarding -----------------------------------------------------------------------------------------------


async def test_requests_and_responses_are_forwarded_unmodified() -> None:
    """This covers body, target, and all headers, also unknown headers; the tap sets hop-by-hop headers itself."""
    body = b' {"jsonrpc":"2.0", "id":7,\t"method":"tools/call","params":{"name":"\\u00e9"}}\r\n'
    upstream = answering(418, [("X-Odd", "a"), ("X-Odd", "b"), ("Connection", "X-Hop"), ("X-Hop", "1"), *JSON.items()])
    sent = {"last-event-id": "e/7", "mcp-session-id": "s1", "cookie": "a=b", "x-hop": "1", "connection": "x-hop"}
    async with in_memory(upstream) as (client, _):
        answer = await client.post("/mcp;a=%2f?x=%41", content=body, headers={**sent, **JSON, **VERSION})
    (request,) = upstream.requests
    assert request.body == body
    assert request.target == b"/mcp;a=%2f?x=%41"
    assert request.headers["host"] == "server.example:8000"
    for name in ("last-event-id", "mcp-session-id", "cookie", "content-length", "mcp-protocol-version"):
        assert name in request.headers
    assert not {"x-hop", "connection"} & request.headers.keys()
    assert (answer.status_code, answer.content) == (418, json.dumps(RESULT).encode())
    assert answer.headers.get_list("x-odd") == ["a", "b"]
    assert "x-hop" not in answer.headers


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (401, {"www-authenticate": 'Bearer resource_metadata="https://server.example/.well-known/x"'}),
        (403, {"www-authenticate": 'Bearer error="insufficient_scope"'}),
        (307, {"location": "https://other.example/mcp"}),
        (404, {}),
        (202, {"set-cookie": "id=1"}),
    ],
)
async def test_refusals_redirects_and_cookies_are_left_to_the_client(status: int, headers: Mapping[str, str]) -> None:
    upstream = answering(status, headers, b"")
    async with in_memory(upstream) as (client, seen):
        for _ in range(2):
            answer = await client.post("/mcp", json=CALL, headers=VERSION, follow_redirects=False)
            assert answer.status_code == status
            assert headers.items() <= dict(answer.headers).items()
            client.cookies.clear()
    assert len(upstream.requests) == 2
    assert all("cookie" not in request.headers for request in upstream.requests)
    assert [message.kind for message in seen] == ["request", "http"] * 2
    assert seen[1].http is not None
    assert seen[1].http["status"] == status


async def test_a_compressed_body_is_forwarded_unchanged_and_decoded_for_the_trace() -> None:
    packed = gzip.compress(json.dumps({**RESULT, "result": {}}).encode())
    upstream = answering(200, {**JSON, "content-encoding": "gzip"}, packed[:10], packed[10:])
    async with (
        in_memory(upstream) as (client, seen),
        client.stream("POST", "/mcp", json=CALL, headers=VERSION) as answer,
    ):
        assert b"".join([part async for part in answer.aiter_raw()]) == packed
    assert any("content" in one for one in violations(seen))


@pytest.mark.full
async def test_an_unreachable_server_gives_a_502(tmp_path: Path) -> None:
    out = tmp_path / "trace.jsonl"
    async with tapped(f"http://127.0.0.1:{free_port()}/mcp", out) as url, httpx2.AsyncClient(timeout=60) as client:
        answer = await client.post(url, json=CALL)
        assert answer.status_code == 502
        assert "no answer from" in answer.text
    assert "no answer from" in traced(out)[-1]["http"]["error"]


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


@asynccontextmanager
async def tapped_raw(
    answer: bytes, folder: Path, ended: anyio.Event | None = None, heard: list[bytes] | None = None
) -> AsyncGenerator[str]:
    """Run a tap before a server that answers with these bytes and keeps the connection open; yield the tap's URL.

    `ended` is set when the tap closes the connection to the server; `heard` gets the parts that the server receives.
    """
    parts = [] if heard is None else heard

    async def serve(stream: anyio.abc.ByteStream) -> None:
        async with stream:
            try:
                parts.append(await stream.receive())
                await stream.send(answer)
                while True:
                    parts.append(await stream.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                if ended is not None:
                    ended.set()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        server = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/mcp"
        async with tapped(server, folder / "trace.jsonl") as url:
            yield url
        tasks.cancel_scope.cancel()


@pytest.mark.full
async def test_events_are_not_buffered_and_a_disconnect_reaches_the_server(tmp_path: Path) -> None:
    ended = anyio.Event()
    first = event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    async with tapped_raw(STREAM + first, tmp_path, ended) as url:
        async with httpx2.AsyncClient(timeout=None) as client, client.stream("GET", url) as answer:
            async for part in answer.aiter_raw():
                assert part == first
                break
        await ended.wait()


@pytest.mark.full
async def test_a_truncated_response_is_an_error_for_the_client(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    async with tapped_raw(answer, tmp_path) as url, httpx2.AsyncClient(timeout=3) as client:
        await refused(client.post(url, json=CALL), httpx2.HTTPError)


# --- attacks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:8001"}, 421),
        ({"host": "server.example:8000"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
async def test_requests_with_a_foreign_host_or_origin_are_refused(headers: Mapping[str, str], status: int) -> None:
    upstream = answering()
    async with in_memory(upstream) as (client, seen):
        answer = await client.post("/mcp", json=CALL, headers=headers)
    assert answer.status_code == status
    assert upstream.requests == []
    assert seen == []


def test_the_tap_listens_on_loopback_addresses_only() -> None:
    for address in ["0.0.0.0:0", "192.0.2.1:80", ":70000", "nonsense"]:
        complaint("tap", "--listen", address, URL)


DEEP = b'{"jsonrpc":"2.0","id":7,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
HUGE = b'{"jsonrpc":"2.0","id":7,"result":{"a":"' + b"x" * MAX_MESSAGE_BYTES + b'"}}'
HOSTILE: dict[str, tuple[bytes, Mapping[str, str], str]] = {
    "deep": (DEEP, JSON, "not JSON|nested deeper"),
    "huge": (HUGE, JSON, "longer than"),
    "huge event": (b"data: " + HUGE + b"\n\n", {"content-type": "text/event-stream"}, "longer than"),
    "no JSON": (b"\xff\x00", JSON, "not JSON"),
    "bomb": (b"", {**JSON, "content-encoding": "gzip"}, "longer than"),
    "broken gzip": (b"\x1f\x8b broken", {**JSON, "content-encoding": "gzip"}, "not checked"),
    "odd packing": (b"\x00\x01", {**JSON, "content-encoding": "br"}, "not checked"),
}


async def test_a_body_is_not_unpacked_beyond_the_limit_in_memory() -> None:
    body = gzip.compress(HUGE * 8)
    async with in_memory(answering(200, {**JSON, "content-encoding": "gzip"}, body)) as (client, seen):
        tracemalloc.start()
        async with client.stream("POST", "/mcp", json=CALL, headers=VERSION) as answer:
            assert b"".join([part async for part in answer.aiter_raw()]) == body
        await until(lambda: any(message.sender == "server" for message in seen))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 5 * MAX_MESSAGE_BYTES


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_bodies_are_forwarded_and_the_trace_continues(name: str) -> None:
    body, headers, reason = HOSTILE[name]
    body = body or gzip.compress(HUGE * 8)
    upstream = answering(200, headers, *(body[start : start + 60_000] for start in range(0, len(body), 60_000)))
    async with in_memory(upstream) as (client, seen):
        for _ in range(2):
            async with client.stream("POST", "/mcp", json=CALL, headers=VERSION) as answer:
                assert b"".join([part async for part in answer.aiter_raw()]) == body
    found = [message for message in seen if message.sender == "server"]
    assert len(found) == 2
    assert all(re.search(reason, str(message.violations[0])) for message in found)


async def test_responses_cannot_inject_headers(tmp_path: Path) -> None:
    """The server sends a bare CR and a folded line; the client receives no header made from them."""
    answer = b"HTTP/1.1 200 OK\r\nx-a: 1\rset-cookie: a=b\r\ncontent-length: 2\r\n\r\n{}"
    async with tapped_raw(answer, tmp_path) as url, httpx2.AsyncClient(timeout=60) as client:
        response = await client.post(url, json=CALL)
    assert response.status_code == 502
    assert "set-cookie" not in response.headers


@pytest.mark.full
async def test_requests_cannot_be_smuggled(tmp_path: Path) -> None:
    """A request with both Content-Length and Transfer-Encoding is refused."""
    async with tapped_raw(b"", tmp_path) as url:
        port = httpx2.URL(url).port
        assert port is not None
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            head = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n"
            await stream.send(head + b"0\r\n\r\nGET /x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert b" 400 " in await stream.receive()


SMUGGLED = b"GET /x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("target", "headers", "forwarded", "kept"),
    [
        (b"/mcp", b"connection: content-length", b"/mcp", b"content-length: %d\r\n" % len(SMUGGLED)),
        (b"http://evil.example/mcp?a=1", b"x-a: 1", b"/mcp?a=1", b"host: 127.0.0.1:"),
    ],
)
async def test_the_server_reads_one_request_for_its_own_host(
    target: bytes, headers: bytes, forwarded: bytes, kept: bytes, tmp_path: Path
) -> None:
    """A body without its length would be another request, and an absolute target names another host."""
    heard: list[bytes] = []
    async with tapped_raw(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", tmp_path, heard=heard) as url:
        port = httpx2.URL(url).port
        assert port is not None
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            head = b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\n%b\r\ncontent-length: %d\r\n\r\n"
            await stream.send(head % (target, headers, len(SMUGGLED)) + SMUGGLED)
            assert b" 200 " in await stream.receive()
    request = b"".join(heard)
    assert request.startswith(b"POST %b HTTP/1.1\r\n" % forwarded)
    assert kept in request
    assert b"evil" not in request


async def test_the_trace_has_no_secrets_and_no_control_characters() -> None:
    secret = "S3CRETS3CRET"
    sent = {"authorization": f"DPoP {secret}", "dpop": secret, "cookie": secret, "x-api-key": secret}
    sent |= {"mcp-session-id": secret, "proxy-authorization": secret, "x-auth-token": secret}
    headers = {**JSON, "set-cookie": secret, "mcp-session-id": secret, "www-authenticate": "Bearer realm=x"}
    body = {**CALL, "method": "\x1b]0;owned\x07\x1b[2J", "params": {"password": secret}}
    target = f"/mcp?token={secret}&session_id={secret}"
    async with in_memory(answering(200, headers)) as (client, seen):
        await client.post(target, json=body, headers={**sent, **VERSION})
        await client.get(f"/other?access_token={secret}", headers=sent)
        await client.post("/register", json={"client_secret": secret})
    assert secret not in json.dumps([message.document() for message in seen])
    assert "realm=x" in json.dumps([message.document() for message in seen])
    assert all(line.isprintable() for message in seen if message.kind == "http" for line in message.lines())
    assert [message.kind for message in seen] == ["request", "result", *["http"] * 4]


# --- official clients and foreign servers ---------------------------------------------------------------------

SERVERS = {
    "python": ((*SDK_SERVER, "--http", "127.0.0.1:PORT"), "/mcp", ("echo", {"text": "hi"})),
    "python over HTTP+SSE": ((*SDK_SERVER, "--http", "127.0.0.1:PORT"), "/sse", ("echo", {"text": "hi"})),
    "node": ((node(), NODE_SERVER, "--http", "127.0.0.1:PORT"), "/mcp", ("echo", {"text": "hi"})),
    "everything": ((node(), EVERYTHING, "streamableHttp"), "/mcp", ("echo", {"message": "hi"})),
}
RANDOM = re.compile(rb"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}(_[\w-]+)?")


@pytest.mark.full
@pytest.mark.parametrize("name", SERVERS)
async def test_the_official_client_and_foreign_servers_see_the_same_bytes(name: str, tmp_path: Path) -> None:
    """The messages of each conversation are compared on both sides of the tap, and with a direct run."""
    words, path, (tool, arguments) = SERVERS[name]
    if words[0] == node():
        needed()
    port, out = free_port(), tmp_path / "trace.jsonl"

    from mcp import ClientSession  # imported late, as every worker imports this module
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    async def talk(url: str) -> None:
        opened = sse_client(url, timeout=60) if path == "/sse" else streamable_http_client(url)
        async with opened as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            await session.list_tools()
            await session.call_tool(tool, arguments)

    def said(heard: Eavesdropper) -> list[tuple[list[bytes], list[bytes]]]:
        found = [(one.asked, one.said) for one in heard.conversations() if one.asked]
        return [([RANDOM.sub(b"ID", text) for text in side]) for pair in found for side in pair]  # type: ignore[misc]

    async with listening(*(word.replace("PORT", str(port)) for word in words), port=port):
        direct, far = Eavesdropper(port), Eavesdropper(port)
        async with direct.listening() as place:
            await talk(f"http://127.0.0.1:{place}{path}")
        async with far.listening() as place, tapped(f"http://127.0.0.1:{place}{path}", out) as url:
            near = Eavesdropper(httpx2.URL(url).port or 0)
            async with near.listening() as tap:
                await talk(f"http://127.0.0.1:{tap}{path}")
    assert said(near) == said(far)
    assert said(near) == said(direct)
    found = traced(out)
    assert [one["violations"] for one in found if one["violations"]] == []
    assert {one["method"] for one in found} >= {"initialize", "tools/list", "tools/call"}
    assert sys.platform != "win32"
