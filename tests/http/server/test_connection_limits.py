"""Limits on bytes outside of bodies, over real connections: head, trailers, chunk sizes, pipelined requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import anyio
import pytest
from starlette.types import Message, Scope

from mcp_bindgen.http import HttpApp, HttpLimits, SseApp
from mcp_bindgen.http.server import uvicorn_protocol
from mcp_bindgen.http.server.uvicorn_protocol import HttpProtocol
from tests.harness.checked_connections import lone, refused, until
from tests.harness.effort import each
from tests.harness.http_wires import Wire, stateless, who, wires
from tests.http.server.test_limits import MIB, Now, Oldest, Then

TAKEN = 8 * MIB  # bytes: socket buffers on both sides take some of them before the server closes the connection

CALL = lone(1, "tools/call", name="x")
BODY = json.dumps(CALL).encode()
HEAD = (
    b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\n"
)
NAMES = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in stateless(CALL).items()).encode()
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)
WHOLE = HEAD + NAMES + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
WAIT = lone(1, "tools/call", name="wait")
WAITING = HEAD + NAMES.replace(b": x\r\n", b": wait\r\n") + b"content-length: %d\r\n\r\n" % len(json.dumps(WAIT))
WAITING += json.dumps(WAIT).encode()

FLOODS: dict[str, tuple[bytes, bytes]] = {
    "trailers": (CHUNKED + CHUNKS, b"x: yyyyyyyyyyyyyyyy\r\n"),
    "tiny trailers": (CHUNKED + CHUNKS, b"x:\r\n"),
    "one long trailer": (CHUNKED + CHUNKS + b"x: ", b"y"),
    "trailers of an answered request": (CHUNKED.replace(b"/mcp", b"/elsewhere") + CHUNKS, b"x: y\r\n"),
    "chunk extensions": (CHUNKED, b"1;" + b"e" * 1000 + b"\r\n \r\n"),
    "one long chunk extension": (CHUNKED + b"1;", b"e"),
    "zeros of chunk sizes": (CHUNKED, b"0000000000000001\r\n \r\n"),
    "request line": (b"GET /", b"e"),
    "header fields": (b"GET / HTTP/1.1\r\n", b"a:\r\n"),
    "blank lines": (b"", b"\r\n"),
    "pipelined requests": (b"", b"GET / HTTP/1.1\r\n\r\n"),
    "pipelined requests behind one at work": (WAITING, b"GET / HTTP/1.1\r\n\r\n"),
    "pipelined bodies behind a request at work": (WAITING, HEAD + b"content-length: 9999\r\n\r\n" + b" " * 9999),
    "blank lines behind a request at work": (WAITING, b"\r\n"),
}


async def is_cut(wire: Wire, parts: Iterable[bytes], pause: float = 0) -> bool:
    """Return True if the server closes the connection while the parts are sent."""
    try:
        for part in parts:
            await wire.stream.send(part)
            await anyio.sleep(pause)
    except anyio.BrokenResourceError:
        return True
    return False


@pytest.mark.full
@each("flood", FLOODS)
async def test_a_connection_is_cut_at_the_limit_of_bytes_outside_of_bodies(flood: str) -> None:
    first, part = FLOODS[flood]
    block, largest = part * max(1, 50_000 // len(part)), 0

    class Watched(HttpProtocol):
        def data_received(self, data: bytes) -> None:
            nonlocal largest
            super().data_received(data)
            largest = max(largest, len(getattr(self, "pipeline", ())), len(self.headers or ()) // 100)

    async with wires(HttpApp(Then(), Now()), Watched) as http:
        assert await is_cut(await http.open(), [first, *[block] * (TAKEN // len(block))])
    assert largest <= 16


async def test_bodies_and_later_requests_do_not_count_toward_the_limit() -> None:
    """A chunked body and many requests on one connection may exceed the limit for bytes outside of bodies."""
    body = json.dumps(lone(1, "tools/call", name="x", arguments={"text": "x" * 2 * MIB})).encode()
    blocks = [body[at : at + 1024] for at in range(0, len(body), 1024)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(block), block) for block in blocks)
    async with wires(HttpApp(Now()), HttpProtocol) as http:
        wire = await http.open()
        await wire.stream.send(HEAD + NAMES + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert await wire.status() == 200
        padded = WHOLE.replace(b"host:", b"x: " + b"y" * 5000 + b"\r\nhost:")
        for _ in range(100):
            wire.received = b""
            await wire.stream.send(padded)
            assert await wire.status() == 200


# --- trailers -------------------------------------------------------------------------------------------------


@each("at_once", [True, False])
async def test_trailers_are_dropped(at_once: bool) -> None:
    """Neither the protocol rules nor the `principal` function see a trailer."""
    seen: list[list[tuple[bytes, bytes]]] = []

    def principal(scope: Scope) -> str | None:
        seen.append(scope["headers"])
        return who(scope)

    async def ask(head: bytes, trailers: bytes) -> Wire:
        wire = await http.open()
        if at_once:
            await wire.stream.send(head + CHUNKS + trailers + b"\r\n")
        else:
            await wire.stream.send(head)
            await until(lambda: seen)
            await wire.stream.send(CHUNKS + trailers + b"\r\n")
        return wire

    async with wires(HttpApp(Then(), Now(), principal=principal), HttpProtocol) as http:
        refused = await ask(CHUNKED, NAMES + b"x-user: eve\r\nauthorization: Bearer x\r\nhost: elsewhere\r\n")
        assert await refused.status() == 400
        assert "Mcp-Protocol-Version is missing" in refused.json["error"]["message"]
        served = await ask(HEAD + NAMES + b"transfer-encoding: chunked\r\n\r\n", b"mcp-name: y\r\nhost: elsewhere\r\n")
        assert await served.status() == 200
    names = [{name for name, _ in headers} for headers in seen]
    assert all(found.isdisjoint({b"x-user", b"authorization"}) for found in names)
    assert [dict(headers)[b"host"] for headers in seen] == [b"localhost"] * 2


@each(("app", "path"), [(HttpApp(Then(), Now()), "/mcp"), (SseApp(Oldest()), "/messages")])
async def test_headers_that_are_appended_while_the_body_arrives_are_ignored(app: Any, path: str) -> None:
    """An ASGI server may append trailers to the list of headers while the body arrives."""
    headers = [(name, value) for name, _, value in (line.partition(b": ") for line in HEAD.split(b"\r\n")[1:-1])]
    scope: Scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    answers: list[Message] = []

    async def receive() -> Message:
        headers.extend((name.encode().replace(b"_", b"-"), value.encode()) for name, value in stateless(CALL).items())
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def send(message: Message) -> None:
        answers.append(message)

    await app(scope, receive, send)
    assert answers[0]["status"] in (400, 404)
    headers.append((b"x-user", b"eve"))
    assert b"x-user" not in dict(scope["headers"])


@each("lengths", ["content-length: 3\r\ntransfer-encoding: chunked", "transfer-encoding: chunked\r\ncontent-length: 3"])
async def test_a_request_with_two_lengths_is_refused(lengths: str) -> None:
    """A proxy that uses the other length would read part of the body as another request."""
    async with wires(HttpApp(Now()), HttpProtocol) as http:
        wire = await http.open()
        await wire.stream.send(HEAD + NAMES + lengths.encode() + b"\r\n\r\n" + CHUNKS + b"\r\n" + WHOLE)
        await wire.until(lambda received: b"\r\n\r\n" in received)
        await refused(wire.until(lambda received: False), anyio.EndOfStream)
    assert wire.received.startswith(b"HTTP/1.1 400")
    assert b"200 OK" not in wire.received


# --- pipelined requests ---------------------------------------------------------------------------------------


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    async with wires(HttpApp(Now()), HttpProtocol) as http:
        wire = await http.open()
        await wire.stream.send(b"".join(WHOLE.replace(b'"id": 1', b'"id": %d' % n) for n in range(1, 6)))
        await wire.until(lambda received: received.count(b"HTTP/1.1 200") == 5 and b'"id":5' in received)
        places = [wire.received.index(b'"id":%d' % n) for n in range(1, 6)]
        assert places == sorted(places)


async def test_a_disconnecting_client_with_pipelined_requests_cancels_its_request() -> None:
    """The running request is cancelled, and its slot is free again."""
    server = Now()
    async with wires(HttpApp(server, limits=HttpLimits(requests=1)), HttpProtocol) as http:
        for pipelined in (b"", WHOLE, WHOLE * 3, WHOLE[:-9], b"GET / HT"):
            wire = await http.open()
            await wire.stream.send(WAITING)
            await until(lambda: server.waiting == 1)
            await anyio.sleep(0.02)
            await wire.stream.send(pipelined or b"\r\n")
            await anyio.sleep(0.05)
            assert server.waiting == 1
            await wire.stream.aclose()
            await until(lambda: server.waiting == 0)
    assert len(server.cancelled) == 5


# --- responses ------------------------------------------------------------------------------------------------


class Plain:
    """Application that answers hello: "stream" sends no length, "slow" waits until the client has the head."""

    def __init__(self) -> None:
        self.has_head = anyio.Event()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        length = [] if "stream" in scope["path"] else [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        if "slow" in scope["path"]:
            await self.has_head.wait()
        if "broken" in scope["path"]:
            raise ValueError
        await send({"type": "http.response.body", "body": b"he", "more_body": True})
        await send({"type": "http.response.body", "body": b"llo"})

    def leave(self) -> None:
        """Do nothing: there are no streams to end."""


@each(
    ("line", "parts", "end"),
    [
        (b"GET /whole", 2, b"\r\n\r\nhello"),
        (b"HEAD /whole", 1, b"content-length: 5\r\n\r\n"),
        (b"GET /stream", 2, b"\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        (b"GET /slow-stream", 3, b"\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        (b"GET /broken", 1, b"content-length: 5\r\n\r\n"),
    ],
)
@each("last", [False, True])
async def test_a_head_is_sent_with_its_body_or_without_delay(line: bytes, parts: int, end: bytes, last: bool) -> None:
    sent: list[bytes] = []

    class Watched(HttpProtocol):
        def connection_made(self, transport: Any) -> None:
            write = transport.write

            def noted(data: bytes) -> None:
                sent.append(data)
                write(data)

            transport.write = noted
            super().connection_made(transport)

    app: Any = Plain()
    async with wires(app, Watched) as http:
        wire = await http.open()
        await wire.stream.send(line + b" HTTP/1.1\r\nhost: localhost\r\n" + b"connection: close\r\n" * last + b"\r\n")
        await wire.until(lambda received: b"\r\n\r\n" in received)
        app.has_head.set()
        await wire.until(lambda received: received.endswith(end) or b"close" in received)
        if last:
            await refused(wire.until(lambda received: False), anyio.EndOfStream)
    assert wire.received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert wire.received.replace(b"connection: close\r\n", b"").endswith(end)
    assert len(sent) == parts
    assert wire.received.count(b"HTTP/1.1") == 1


# --- time-outs ------------------------------------------------------------------------------------------------


def slowly() -> Iterator[tuple[bytes, bytes]]:
    yield b"GET /mcp HTTP/1.1\r\n", b"x: y\r\n"
    yield b"", b"\r\n"
    yield HEAD.replace(b"/mcp", b"/elsewhere") + b"content-length: 100000\r\n\r\n", b" "
    yield CHUNKED.replace(b"/mcp", b"/elsewhere") + CHUNKS, b"x: y\r\n"
    yield CHUNKED + CHUNKS, b"x: y\r\n"


@pytest.mark.parametrize(
    "slow", list(slowly()), ids=["head", "blank lines", "refused body", "its trailers", "trailers"]
)
async def test_a_connection_on_which_no_request_is_completed_is_cut(
    slow: tuple[bytes, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_protocol, "_HEAD_TIMEOUT", 0.3)
    async with wires(HttpApp(Now(), limits=HttpLimits(arrival=0.3)), HttpProtocol) as http:
        wire = await http.open()
        await wire.stream.send(slow[0])
        assert await is_cut(wire, repeat(slow[1]), 0.02)


async def test_a_connection_is_closed_when_it_was_idle_too_long_after_a_response() -> None:
    """Neither a request that takes longer nor a later request is cut off."""
    server = Now()

    class Brief(HttpProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            vars(self)["timeout_keep_alive"] = 0.3

    async with wires(HttpApp(server), Brief) as http:
        waiting = await http.open()
        await waiting.stream.send(WAITING)
        wire = await http.open()
        for _ in range(4):
            wire.received = b""
            await wire.stream.send(WHOLE)
            assert await wire.status() == 200
            await anyio.sleep(0.15)
        begun = anyio.current_time()
        await refused(wire.until(lambda received: False), anyio.EndOfStream)
        assert 0.1 < anyio.current_time() - begun < 2
        assert server.waiting == 1
