"""Limits of both HTTP clients against hostile servers: bytes, time, reconnections, and data for other origins."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import httpx2
import pytest

from mcp_bindgen import v2026_07_28
from mcp_bindgen.host import Entry
from mcp_bindgen.http import http, sse
from mcp_bindgen.http.event_stream import EventDecoder
from mcp_bindgen.runtime import ConnectionClosed, NoConnection, connect
from mcp_bindgen.runtime.protocol.errors import Refused
from mcp_bindgen.runtime.protocol.transport import Lost
from mcp_bindgen.v2025_11_25 import Client
from tests.harness.checked_connections import STATELESS, refused
from tests.harness.effort import each
from tests.harness.scripted_http_server import (
    EVENTS,
    Heard,
    answer,
    ask,
    introduced,
    notification,
    request,
    serving,
    talking,
)
from tests.runtime.test_connecting import discovered

Open = Callable[..., AbstractAsyncContextManager[Any]]
both = pytest.mark.parametrize("opened", [http, sse])

ENDPOINT = b"event: endpoint\ndata: /post\n\n"
URL = "https://here.example:8443/mcp"


class Parts(httpx2.AsyncByteStream):
    """Endless response body that counts the parts that were read."""

    def __init__(self, part: bytes, pause: float = 0, *, first: bytes = b"") -> None:
        self._first, self._part, self._pause = first, part, pause
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._first:
            yield self._first
        while True:
            await anyio.sleep(self._pause)
            self.read += len(self._part)
            yield self._part


def stream() -> httpx2.Response:
    """Return an event stream that names its endpoint and stays open."""
    return httpx2.Response(200, headers={"content-type": EVENTS}, stream=Parts(b": \n", 3600, first=ENDPOINT))


@asynccontextmanager
async def playing(
    opened: Open, play: Callable[[httpx2.Request], httpx2.Response], **options: Any
) -> AsyncGenerator[Any]:
    """Connect a transport to a mocked server; `play` answers every request except the GET that opens an SSE stream."""

    def serve(request: httpx2.Request) -> httpx2.Response:
        return stream() if request.method == "GET" and opened is sse else play(request)

    mock = httpx2.MockTransport(serve)
    async with httpx2.AsyncClient(transport=mock) as client, opened(URL, client=client, **options) as transport:
        yield transport


# --- limits on reading ----------------------------------------------------------------------------------------


@pytest.mark.full
@both
@pytest.mark.parametrize("status", [202, 400])
async def test_an_unneeded_response_body_is_not_decompressed_to_its_end(opened: Open, status: int) -> None:
    """Send two megabytes that unpack to two gigabytes, an endless body, and a slow endless body."""
    packed = gzip.compress(b"x" * 2**26)
    bodies = [(Parts(packed * 8), "gzip"), (Parts(b" " * 2**16), "identity"), (Parts(b" ", 0.01), "identity")]
    left = iter(bodies)

    def play(request: httpx2.Request) -> httpx2.Response:
        body, encoding = next(left)
        return httpx2.Response(
            status, headers={"content-type": "text/plain", "content-encoding": encoding}, stream=body
        )

    async with playing(opened, play) as transport:
        for _ in bodies:
            await transport.send([notification(opens_stream=False)])
    assert all(one.read <= len(packed) * 8 + 2**17 for one, _ in bodies)


@pytest.mark.full
@each("status", [200, 400])
async def test_a_response_is_not_decompressed_beyond_the_limit(status: int) -> None:
    body = Parts(gzip.compress(b" " * 2**27))

    def play(request: httpx2.Request) -> httpx2.Response:
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        return httpx2.Response(status, headers=headers, stream=body)

    async with playing(http, play, limit=2**20) as transport:
        assert "larger than 1048576 bytes" in str(await _lost(transport))
    assert body.read < 2**18  # only one part of 128 MB, not unpacked to its end


@pytest.mark.full
@both
async def test_compressed_events_are_decoded_in_small_chunks(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes unpack to millions of lines, which take seconds to decode: the client decodes small chunks."""
    sizes, feed = list[int](), EventDecoder.feed

    def measured(self: EventDecoder, chunk: bytes) -> list[Any]:
        sizes.append(len(chunk))
        return [*feed(self, chunk)]

    monkeypatch.setattr(EventDecoder, "feed", measured)
    lines, answer = b"data:\n" * 2**18, b'data: {"jsonrpc": "2.0", "id": 1, "result": {}}\n\n'

    def serve(request: httpx2.Request) -> httpx2.Response:
        head = {"content-type": EVENTS, "content-encoding": "gzip"}
        return httpx2.Response(200, headers=head, content=gzip.compress(ENDPOINT + lines + b"\n" + answer))

    async with (
        httpx2.AsyncClient(transport=httpx2.MockTransport(serve)) as client,
        opened(URL, client=client) as transport,
    ):
        if opened is http:
            await transport.send([request(1)])
        received: list[Any] = []
        while not any(isinstance(one, bytes) and b"result" in one for one in received):
            received += await transport.receive()
    assert sum(sizes) > len(lines)
    assert max(sizes) <= 2**16


@both
@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "gzip,deflate"])
async def test_only_requested_content_encodings_are_decompressed(opened: Open, encoding: str) -> None:
    """A few kilobytes that are compressed twice unpack to a terabyte and would block the event loop."""
    asked: list[str] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.headers["accept-encoding"])
        body = Parts(gzip.compress(gzip.compress(b": " * 2**20)))
        return httpx2.Response(200, headers={"content-type": EVENTS, "content-encoding": encoding}, stream=body)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(serve)) as client:
        message = "answered in an encoding other than gzip or deflate"
        if opened is sse:
            with pytest.raises(ConnectionClosed, match=message):
                async with sse(URL, client=client):
                    pass
        else:
            async with http(URL, client=client) as transport:
                assert message in str(await _lost(transport))
    assert asked == ["gzip, deflate"]


async def _lost(transport: Any) -> Exception:
    """Send a request and return the error that it ends with."""
    found = await ask(transport, request(1))
    assert isinstance(found, Lost)
    return found.error


# --- redirects to other origins -------------------------------------------------------------------------------

ELSEWHERE = [
    "https://evil.example:8443/mcp",
    "https://here.example/mcp",
    "https://here.example:8444/mcp",
    "http://here.example:8443/mcp",
    "http://here.example/mcp",
    "//evil.example/mcp",
]


@both
@each("place", ELSEWHERE)
@each("status", [301, 302, 303, 307, 308])
async def test_a_redirect_sends_no_data_to_another_origin(opened: Open, place: str, status: int) -> None:
    """Neither POSTs nor the GET of HTTP+SSE send headers or messages to the target of a redirect."""
    seen, opening = list[httpx2.URL](), list[bool]()

    def serve(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url)
        assert request.url.origin == httpx2.URL(URL).origin
        if request.method == "GET" and opening:
            return stream()
        return httpx2.Response(status, headers={"location": place})

    secrets = {"Authorization": "Bearer secret", "X-Api-Key": "secret"}
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(serve), follow_redirects=True) as client:
        if opened is http:
            async with http(URL, headers=secrets, client=client) as transport:
                errors = [await _lost(transport)]
        else:
            with pytest.raises(Refused) as stream_refused:
                async with sse(URL, headers=secrets, client=client):
                    pass
            opening.append(True)
            with pytest.raises(Refused) as message_refused:
                async with sse(URL, headers=secrets, client=client) as older:
                    await older.send([b"{}"])
            errors = [stream_refused.value, message_refused.value]
        for error in errors:
            assert isinstance(error, Refused)
            assert f"{status} " in str(error)
            assert "redirects to" in str(error)
    assert seen


# --- error messages for refusals ------------------------------------------------------------------------------

LONG = f"<script>{'x' * 900}</script><p>Ask&nbsp;&lt;us&gt;"
REASONS = [
    ("text/html; charset=utf-8", "<head><title>No</title></head><h1>Ask</h1>\r\n<b>us", ": Ask us"),
    ("text/html", LONG, ": Ask <us>"),
    ("text/plain", "no tenant", ": no tenant"),
    ("application/problem+json", '{"detail": "no tenant"}', ': {"detail": "no tenant"}'),
    ("", "no tenant", ": no tenant"),
    ("text/plain", "a\x1b[2J", ""),
    ("text/plain", "Bearer secret", ""),
    ("text/html", "<p>the key is s3cret", ""),
    ("text/plain", "y" * 1000, f": {'y' * 200}"),
    ("image/png", "no tenant", ""),
]


@each(("kind", "body", "said"), REASONS)
async def test_the_reason_for_a_refusal_is_reported_in_one_harmless_line(kind: str, body: str, said: str) -> None:
    def serve(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(403, headers={"content-type": kind} if kind else {}, content=body.encode())

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(serve)) as client:
        secrets = {"Authorization": "Bearer secret", "X-Api-Key": "s3cret"}
        with pytest.raises(Refused) as refused:
            async with sse(URL, headers=secrets, client=client):
                pass
        assert str(refused.value) == f"{URL} answered 403 Forbidden{said}"
        async with http(URL, headers=secrets, client=client) as transport:
            assert str(await _lost(transport)) == f"{URL} answered 403 Forbidden{said}"


@each("text", ["the key a b/c_d-e is unknown", "no user with p%ssw/rd-1", "y" * 195 + " p%ssw/rd-1"])
async def test_a_refusal_that_repeats_a_secret_of_the_url_is_not_reported(text: str) -> None:
    def serve(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(403, content=text.encode())

    url = URL.replace("//", "//ann:p%25ssw%2Frd-1@") + "?key=a%20b%2Fc_d-e&page=no"
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(serve)) as client:
        for opened in (http, sse):
            with pytest.raises(Refused) as refused:
                async with opened(url, client=client) as transport:
                    raise await _lost(transport)
            assert str(refused.value) == f"{URL} answered 403 Forbidden"


# --- time-outs ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def dripping(head: bytes = b"HTTP/1.1 202 Accepted\r\n") -> AsyncGenerator[str]:
    """Serve endless responses, one byte at a time, to all messages except request 1; SSE streams stay open."""

    async def drip(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x: y\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            said = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in said.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
            )
            body = await reader.readexactly(length)
            if said.startswith(b"GET /sse"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + ENDPOINT)
                await reader.read()
            elif b'"id": 1' in body:
                result = b'{"jsonrpc": "2.0", "id": 1, "result": "ok"}'
                kind = b"content-type: application/json\r\nconnection: close\r\n"
                writer.write(b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (kind, len(result), result))
            else:
                writer.write(head)
                await drip(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_a_drip_fed_response_to_a_notification_blocks_only_until_the_timeout() -> None:
    async with dripping() as place:
        async with http(f"{place}/mcp", timeout=0.3) as transport:
            await transport.send([notification(opens_stream=False), request(1)])
            assert (await transport.receive())[0] == b'{"jsonrpc": "2.0", "id": 1, "result": "ok"}'
        async with sse(f"{place}/sse", timeout=0.3) as transport:
            with pytest.raises(ConnectionClosed, match=r"did not take a message within 0\.3 seconds"):
                await transport.send([notification()])


@each(
    "target",
    ["{}/mcp", "{}/sse", {"url": "{}/sse", "type": "sse"}, "sh -c 'cat > /dev/null'", {"url": "{}/x", "type": "sse"}],
)
async def test_connecting_takes_no_longer_than_the_timeout(target: Any) -> None:
    async with dripping() as place:
        target = json.loads(json.dumps(target).replace("{}", place))
        target = Entry.read(target) if isinstance(target, dict) else target
        with pytest.raises(NoConnection, match=r"not connected within 0\.3 s$"):
            async with connect(target, Client, timeout=0.3):
                pass
        with pytest.raises(NoConnection, match=r"not connected within 0\.3 s$"):
            async with Client.connect(target, timeout=0.3):
                pass


# --- reconnecting ---------------------------------------------------------------------------------------------


@each("asked", [True, False])
async def test_a_server_cannot_have_a_client_reconnect_without_a_pause(asked: bool) -> None:
    """The client pauses before it resumes a response stream or reopens its GET stream, even with `retry: 0`."""

    async def play(heard: Heard) -> None:
        if heard.name == "initialize":
            await heard.result(mcp_session_id="s")
        elif heard.name in ("GET", "tools/call"):
            await heard.event(id="e", retry=0)
        else:
            await heard.end()

    async with introduced(play) as (transport, script):
        if asked:
            await transport.send([request(1)])
        await anyio.sleep(1)
        assert 2 <= len(script.called("GET")) <= (10 if asked else 5)


async def test_the_reconnection_pause_grows_while_no_message_arrives() -> None:
    async def play(heard: Heard) -> None:
        if heard.name == "initialize":
            await heard.result(mcp_session_id="s")
        elif heard.name == "GET":
            await heard.event(id="e", retry=0)
        else:
            await heard.end()

    async with introduced(play, min_retry=0.02) as (_, script):
        await anyio.sleep(0.8)
        pauses = [later - sooner for sooner, later in pairwise([heard.at for heard in script.called("GET")])]
        assert len(pauses) >= 3
        assert pauses[-1] > 3 * pauses[0]


async def test_a_server_may_let_a_client_poll_for_as_long_as_a_call_takes() -> None:
    async def play(heard: Heard) -> None:
        if len(script.called("GET")) > 10:
            await heard.event(answer(1))
        else:
            await heard.event(id="e", retry=2)

    async with talking(play, min_retry=0.001) as (transport, script):
        assert await ask(transport, request(1)) == answer(1)


async def test_a_server_cannot_have_a_client_keep_many_or_long_cookies() -> None:
    async def play(heard: Heard) -> None:
        body = json.dumps(answer(heard.id)).encode()
        values = {f"c{heard.id}-{number}": b"x" * 9 for number in range(30)} | {"same": b"%d" % heard.id}
        cookies = [(b"set-cookie", name.encode() + b"=" + value) for name, value in values.items()]
        cookies.append((b"set-cookie", b"long=" + b"x" * 5000))
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *cookies]
        await heard.raw(200, headers, body)

    async with talking(play) as (there, script):
        for id_ in (1, 2, 3):
            await ask(there, request(id_))
    sent = script.heard[-1].headers["cookie"].split("; ")
    assert (len(sent), "same=2" in sent, any("long" in one for one in sent)) == (50, True, False)


# --- error messages of the client -----------------------------------------------------------------------------


@each(
    ("is_array", "members", "match"),
    [(True, {"result": {"tools": []}}, "batches are not part of revision"), (False, {}, "a result or an error")],
)
@each("as_events", [False, True])
async def test_an_unusable_response_fails_the_request_at_once(
    as_events: bool, is_array: bool, members: dict[str, Any], match: str
) -> None:
    async def play(heard: Heard) -> None:
        if heard.name == "initialize":
            info = {"name": "arrays", "version": "1"}
            await heard.result({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
        elif heard.method == "POST" and heard.id is not None:
            message = {"jsonrpc": "2.0", "id": heard.id, **members}
            said = [message] if is_array else message
            await (heard.event(said) if as_events else heard.json(said))
        else:
            await heard.end(405 if heard.method == "GET" else 202)

    async with serving(play) as script, Client.connect(script.url) as client:
        for _ in range(2):
            await refused(client.list_tools(), match=match)


async def test_a_tool_with_an_invalid_header_name_is_left_out_and_reported() -> None:
    def tool(name: str, header: str) -> dict[str, Any]:
        argument = {"type": "string", "x-mcp-header": header}
        return {"name": name, "inputSchema": {"type": "object", "properties": {"city": argument}}}

    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await heard.result(discovered(STATELESS))
        else:
            hints = {"resultType": "complete", "ttlMs": -1, "cacheScope": "private"}
            await heard.result({"tools": [tool("good", "City"), tool("bad", "no header"), 5], **hints})

    async with serving(play) as script, connect(script.url, v2026_07_28.Client) as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["good"]
        assert [one.pointer for one in client.invalid_items] == ["/tools/2", "/tools/1/inputSchema"]
        assert "is not the name of a header" in client.invalid_items[1].problem
