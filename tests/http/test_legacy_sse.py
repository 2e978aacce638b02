"""HTTP+SSE: a conversation over real sockets, refused requests, and the end of connections."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from mcp_bindgen.http import HttpLimits, SseApp, serve_sse, sse
from mcp_bindgen.http.client.legacy_sse import SseClientTransport
from mcp_bindgen.http.server import call as asgi
from mcp_bindgen.http.server import legacy_sse as runtime_sse
from mcp_bindgen.http.server.access import HttpEndpoint
from mcp_bindgen.http.server.errors import HttpError
from mcp_bindgen.http.server.limits import Budget
from mcp_bindgen.http.server.open_session import HttpSession
from mcp_bindgen.runtime import ConnectionClosed, ProtocolError, RequestTimeout
from mcp_bindgen.v2024_11_05 import Client, Context, Server
from mcp_bindgen.v2024_11_05 import types as mcp
from tests.harness.checked_connections import INITIALIZED, initialize, request
from tests.harness.effort import cases, each
from tests.harness.processes import PARSERS
from tests.harness.scripted_http_server import CANCELLED, notification

PATIENCE = 60.0
INITIALIZE = initialize("2024-11-05", id_="start")


class Tools(Server):
    """Server with tools for all tests of the transport."""

    info = mcp.Implementation(name="tools", version="1")

    def __init__(self) -> None:
        self.alive, self.cancelled, self.started = list[str](), threading.Event(), threading.Event()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        self.alive.append("entered")
        yield
        self.alive.append("left")

    def extra_capabilities(self) -> Mapping[str, Any]:
        return {"logging": {}}

    def list_tools(self, params: mcp.ListToolsRequestParams, ctx: Context) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[mcp.Tool(name="echo", input_schema=mcp.ToolInputSchema())])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        arguments: dict[str, Any] = params.arguments or {}
        text = await getattr(self, f"_{params.name}")(ctx, **arguments)
        return mcp.CallToolResult(content=[mcp.TextContent(text=text)])

    async def _echo(self, ctx: Context, text: str) -> str:
        return text

    async def _big(self, ctx: Context, size: int, wait: bool = False) -> str:
        if wait:
            await anyio.sleep(0.001)
        return "x" * size

    async def _count(self, ctx: Context, to: int) -> str:
        for number in range(to):
            await ctx.progress(number, to)
        return "done"

    async def _wait(self, ctx: Context) -> str:
        self.started.set()
        try:
            await anyio.sleep(PATIENCE)
        finally:
            self.cancelled.set()
        return "too late"

    async def _refuse(self, ctx: Context) -> str:
        raise ProtocolError(-32001, "not today", {"why": "é"})

    async def _ask(self, ctx: Context, question: str) -> str:
        message = mcp.SamplingMessage(role="user", content=mcp.TextContent(text=question))
        answer = await ctx.create_message([message], 10)
        assert isinstance(answer.content, mcp.TextContent)
        return answer.content.text

    async def _flood(self, ctx: Context) -> str:
        with anyio.move_on_after(0.3):
            while True:
                await ctx.log("info", "x" * 100_000)
        return await self._leave(ctx)

    async def _spread(self, ctx: Context, times: int) -> str:
        for _ in range(times):
            await self.broadcast(lambda client: client.log("info", "x" * 100_000))
        return "told"

    async def _leave(self, ctx: Context) -> str:
        await ctx.session.close()
        return "gone"


class Model(Client):
    """Client that answers sampling requests."""

    def on_create_message(self, params: mcp.CreateMessageRequestParams, ctx: object) -> mcp.CreateMessageResult:
        asked = params.messages[0].content
        assert isinstance(asked, mcp.TextContent)
        return mcp.CreateMessageResult(role="assistant", model="m", content=mcp.TextContent(text=asked.text.upper()))


# --- helpers --------------------------------------------------------------------------------------------------


@contextmanager
def running(app: Starlette | SseApp, parser: Any = "auto") -> Iterator[str]:
    """Run an application in a thread and yield its address."""
    config = uvicorn.Config(
        app, "127.0.0.1", 0, http=parser, log_config=None, timeout_graceful_shutdown=1, timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def eventually(fact: Callable[[], object]) -> None:
    """Wait for a short time until a condition is true."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(scope="module")
def tools() -> Tools:
    """Return the server of `url`."""
    return Tools()


@pytest.fixture(scope="module", params=cases(PARSERS, quick=PARSERS[:1]))
def url(request: pytest.FixtureRequest, tools: Tools) -> Iterator[str]:
    """Yield the address of `tools`, served with each HTTP parser."""
    with running(SseApp(tools, limits=HttpLimits(message=100_000)), request.param) as url:
        yield url


class Raw:
    """Low-level client."""

    def __init__(self, http: httpx2.AsyncClient, stream: httpx2.Response) -> None:
        self.http, self.stream, self.lines = http, stream, stream.aiter_lines()
        self.endpoint = ""

    async def event(self) -> tuple[str, str]:
        """Return the kind and the data of the next event; a comment has the kind `:`."""
        kind = data = ""
        async for line in self.lines:
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                data += value
            elif not name and value:
                return ":", value
            elif not line and (kind or data):
                return kind, data
        raise EOFError

    async def post(self, content: Any, **options: Any) -> int:
        """POST a message or raw bytes; return the status."""
        body = content if not isinstance(content, dict) else json.dumps(content).encode()
        return (await self.http.post(self.endpoint, content=body, **options)).status_code

    async def call(self, name: str, id_: int, **arguments: Any) -> int:
        """POST a tool call."""
        return await self.post(request(id_, "tools/call", {"name": name, "arguments": arguments}))

    async def lives(self, text: str = "x") -> None:
        """Check that the session still works."""
        assert await self.call("echo", 1000, text=text) == 202
        assert (await self.answer(1000))["result"]["content"][0]["text"] == text

    async def answer(self, id_: object) -> Any:
        """Return the response with this id; skip earlier messages."""
        while True:
            kind, data = await self.event()
            if kind == "message" and json.loads(data).get("id", id_) == id_:
                return json.loads(data)


@asynccontextmanager
async def raw(url: str, ready: bool = True) -> AsyncGenerator[Raw]:
    """Open a stream."""
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http, http.stream("GET", f"{url}/sse") as stream:
        assert stream.status_code == 200
        client = Raw(http, stream)
        kind, client.endpoint = await client.event()
        assert kind == "endpoint"
        if ready:
            assert await client.post(INITIALIZE) == 202
            assert (await client.answer("start"))["result"]["protocolVersion"] == "2024-11-05"
            assert await client.post(INITIALIZED) == 202
        yield client


@asynccontextmanager
async def raw_of(app: SseApp) -> AsyncGenerator[Raw]:
    """Run an application and open a stream."""
    with running(app) as url:
        async with raw(url) as client:
            yield client


def scripted(handler: Callable[[httpx2.Request], httpx2.Response]) -> httpx2.AsyncClient:
    """Return an HTTP client whose server is a function."""
    return httpx2.AsyncClient(transport=httpx2.MockTransport(handler))


def stream_of(text: str) -> httpx2.Response:
    """Return a stream that holds `text` and ends."""
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=text.encode())


async def refused(url: str, client: httpx2.AsyncClient | None = None, **options: Any) -> str:
    """Return the error with which a client fails to connect."""
    with pytest.raises(ConnectionClosed) as caught:
        async with sse(url, client=client, **options):
            pass
    if client is not None:
        await client.aclose()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- a conversation -------------------------------------------------------------------------------------------


def text_of(result: mcp.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, mcp.TextContent)
    return content.text


async def test_calls_progress_sampling_errors_and_timeouts_work(url: str, tools: Tools) -> None:
    seen: list[float] = []

    async with Model.connect(sse(f"{url}/sse")) as client:
        assert client.server_info.name == "tools"
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
        text = "Zoë \u2028\r\n\x85 \U0001f600"
        assert text_of(await client.call_tool("echo", {"text": text})) == text
        watching = client.with_options(on_progress=lambda params: seen.append(params.progress))
        assert text_of(await watching.call_tool("count", {"to": 50})) == "done"
        assert text_of(await client.call_tool("ask", {"question": "why?"})) == "WHY?"
        with pytest.raises(ProtocolError, match="not today") as caught:
            await client.call_tool("refuse")
        assert (caught.value.code, caught.value.data) == (-32001, {"why": "é"})
        tools.cancelled.clear()
        with pytest.raises(RequestTimeout):
            await client.with_options(timeout=1).call_tool("wait")
        assert await anyio.to_thread.run_sync(tools.cancelled.wait, PATIENCE)
        assert text_of(await client.call_tool("echo", {"text": "still here"})) == "still here"
    assert seen == list(range(50))
    eventually(lambda: not tools.connections)


async def test_a_refused_request_leaves_the_connection_open(url: str) -> None:
    async with Model.connect(sse(f"{url}/sse")) as client:
        with pytest.raises(ConnectionClosed, match=f"413 {HTTPStatus(413).phrase}"):
            await client.call_tool("echo", {"text": "x" * 100_001})
        assert text_of(await client.call_tool("echo", {"text": "x"})) == "x"


async def test_a_notification_that_is_refused_leaves_the_connection_open(caplog: pytest.LogCaptureFixture) -> None:
    def serve(request: httpx2.Request) -> httpx2.Response:
        posted.append(request.method)
        return stream_of("event: endpoint\ndata: /messages\n\n") if request.method == "GET" else httpx2.Response(503)

    posted: list[str] = []
    async with sse("http://here.example/sse", client=scripted(serve)) as transport:
        for _ in range(2):
            await transport.send([notification(CANCELLED)])
    assert (posted, caplog.text.count("a message was not taken")) == (["GET", "POST", "POST"], 2)


@pytest.mark.full
async def test_concurrent_calls_get_their_own_results(url: str) -> None:
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        results[number] = text_of(await client.call_tool("echo", {"text": str(number)}))

    async with Model.connect(sse(f"{url}/sse")) as client, anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(one, number)
    assert results == {number: str(number) for number in range(100)}


async def test_the_http_client_and_the_headers_of_the_caller_are_used(url: str) -> None:
    sent: list[httpx2.Request] = []

    async def keep(request: httpx2.Request) -> None:
        sent.append(request)

    async with httpx2.AsyncClient(event_hooks={"request": [keep]}, timeout=PATIENCE) as http:
        async with Model.connect(sse(f"{url}/sse", headers={"authorization": "Bearer x"}, client=http)) as client:
            await client.ping()
        assert not http.is_closed
    assert [request.method for request in sent] == ["GET", "POST", "POST", "POST"]
    assert {request.headers["authorization"] for request in sent} == {"Bearer x"}
    assert {request.headers.get("content-type") for request in sent[1:]} == {"application/json"}


async def test_no_log_shows_a_session_id(url: str, caplog: pytest.LogCaptureFixture) -> None:
    endpoints: list[str] = []

    async def keep(request: httpx2.Request) -> None:
        endpoints.append(request.url.params.get("session_id", ""))

    with caplog.at_level(logging.DEBUG):
        async with (
            httpx2.AsyncClient(event_hooks={"request": [keep]}, timeout=PATIENCE) as http,
            Model.connect(sse(f"{url}/sse", client=http)) as client,
        ):
            await client.call_tool("echo", {"text": "x"})
            used = f"{url}/messages?session_id={endpoints[-1]}"
            for refused_headers, status in (({"origin": "http://evil.example"}, 403), ({"host": "evil.example"}, 421)):
                assert (await http.post(used, headers=refused_headers)).status_code == status
            assert (await http.put(used)).status_code == 405
    assert len(endpoints[-1]) >= 32
    for shown in ('"POST /messages HTTP/1.1" 202', '"POST /messages HTTP/1.1" 403', '"PUT /messages HTTP/1.1" 405'):
        assert shown in caplog.text
    assert endpoints[-1] not in caplog.text


# --- event stream ---------------------------------------------------------------------------------------------


async def test_each_stream_begins_with_a_unique_endpoint(url: str) -> None:
    async with raw(url, ready=False) as one, raw(url, ready=False) as two:
        path, _, id_ = one.endpoint.partition("?session_id=")
        assert path == "/messages"
        assert len(id_) >= 32
        assert one.endpoint != two.endpoint
        assert one.stream.headers["content-type"].startswith("text/event-stream")


async def test_idle_streams_get_comments() -> None:
    async with raw_of(SseApp(Tools(), keep_alive=0.05)) as client:
        assert [await client.event() for _ in range(3)] == [(":", "keep-alive")] * 3
        await client.lives()


async def test_the_number_of_streams_is_limited() -> None:
    with running(SseApp(Tools(), limits=HttpLimits(sessions=1))) as url:
        async with raw(url) as client:
            assert (await refused(f"{url}/sse")).startswith(f"{url}/sse answered 429 Too Many Requests: ")
            assert (await client.http.head("/sse")).status_code == 429
        async with httpx2.AsyncClient(timeout=PATIENCE) as http:
            while (await http.head(f"{url}/sse")).status_code != 200:
                await anyio.sleep(0.005)
        async with Model.connect(sse(f"{url}/sse")) as again:
            await again.ping()


@each("how", ["close", "reset"])
def test_a_client_that_vanishes_ends_its_session(url: str, tools: Tools, how: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), PATIENCE)
    connection.sendall(f"GET /sse HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
    received = b""
    while b"\n\n" not in received.partition(b"data: ")[2]:
        received += connection.recv(4096)
    endpoint = received.partition(b"data: ")[2].split()[0].decode()
    tools.started.clear()
    tools.cancelled.clear()
    call = request(1, "tools/call", {"name": "wait"})
    with httpx2.Client(base_url=url, timeout=PATIENCE) as http:
        for message in (INITIALIZE, INITIALIZED, call):
            assert http.post(endpoint, json=message).status_code == 202
        assert tools.started.wait(PATIENCE)
        assert len(tools.connections) == 1
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        eventually(lambda: not tools.connections)
        assert tools.cancelled.wait(PATIENCE)
        assert http.post(endpoint, json=INITIALIZED).status_code == 404


@pytest.mark.full
@each("wait", [False, True])
async def test_the_server_stops_reading_from_a_client_that_does_not_read(url: str, wait: bool) -> None:
    async with raw(url) as client:
        taken, stuck = 0, False
        while not stuck:
            with anyio.move_on_after(0.5) as patience:
                assert await client.call("big", taken, size=1_000_000, wait=wait) == 202
                taken += 1
            stuck = patience.cancelled_caught
            assert taken < 100
        for id_ in range(taken):
            assert len((await client.answer(id_))["result"]["content"][0]["text"]) == 1_000_000
        await client.lives()


async def test_a_session_closed_by_the_server_fails_pending_and_later_calls(url: str, tools: Tools) -> None:
    async with Model.connect(sse(f"{url}/sse")) as client:
        with pytest.raises(ConnectionClosed):
            await client.call_tool("leave")
        with pytest.raises(ConnectionClosed):
            await client.ping()
    eventually(lambda: not tools.connections)


async def test_a_closed_session_does_not_wait_forever_for_its_reader() -> None:
    async with raw_of(SseApp(Tools(), limits=HttpLimits(sessions=1, write_timeout=0.1))) as client:
        assert await client.call("flood", 1) == 202
        while (await client.http.head("/sse")).status_code != 200:
            await anyio.sleep(0.005)
        assert await client.call("echo", 2, text="x") == 404


@pytest.mark.full
async def test_a_client_that_does_not_read_delays_no_broadcast() -> None:
    """The queue of the slow client fills and its session ends; all other clients receive every message."""
    tools = Tools()

    with running(SseApp(tools)) as url:
        async with raw(url), raw(url) as reader:
            while len(tools.connections) < 2:  # a message is accepted before it is handled
                await anyio.sleep(0.005)
            assert await reader.call("spread", 1, times=200) == 202
            messages: list[Any] = [{}]
            while messages[-1].get("id") != 1:
                messages.append(json.loads((await reader.event())[1]))
            assert sum(message.get("method") == "notifications/message" for message in messages) == 200
            assert len(tools.connections) == 1


async def test_a_client_that_never_reads_is_given_up() -> None:
    tools = Tools()

    async with raw_of(SseApp(tools, limits=HttpLimits(write_timeout=0.3), keep_alive=0.1)) as client:
        assert await client.call("big", 1, size=20_000_000) == 202
        while tools.connections:
            await anyio.sleep(0.01)
        assert await client.call("echo", 2, text="x") == 404


# --- refused requests -----------------------------------------------------------------------------------------


@pytest.mark.full
@each(
    ("headers", "status"),
    [
        *(({"host": host}, 421) for host in ("evil.example", "")),
        *(({"origin": origin}, 403) for origin in ("http://evil.example", "null")),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421),
        ({"host": "[::1]:8000", "origin": "http://localhost:3000"}, 200),
    ],
)
def test_foreign_hosts_and_origins_are_refused(url: str, headers: dict[str, str], status: int) -> None:
    with httpx2.Client(timeout=PATIENCE) as http:
        assert http.head(f"{url}/sse", headers=headers).status_code == status
        with http.stream("GET", f"{url}/sse", headers=headers) as stream:
            assert stream.status_code == status
        posted = http.post(f"{url}/messages?session_id=x", headers=headers, json={})
        assert posted.status_code == (404 if status == 200 else status)


def test_allowed_hosts_and_origins_can_be_configured() -> None:
    app = SseApp(Tools(), allowed_hosts=["api.example:8000"], allowed_origins=["https://app.example"])
    fine = {"host": "api.example:8000", "origin": "https://app.example"}
    with running(app) as url, httpx2.Client(timeout=PATIENCE) as http:
        for headers, status in (({}, 421), (fine, 200), (fine | {"origin": "http://localhost"}, 403)):
            assert http.head(f"{url}/sse", headers=headers).status_code == status


@each("query", ["", "?session_id=", "?session_id=guess", "?session=x"])
def test_unknown_sessions_get_404(url: str, query: str) -> None:
    assert httpx2.post(f"{url}/messages{query}", json=INITIALIZE, timeout=PATIENCE).status_code == 404


def test_unsupported_http_methods_get_405(url: str) -> None:
    assert (httpx2.post(f"{url}/sse").status_code, httpx2.get(f"{url}/messages").status_code) == (405, 405)


async def test_a_message_that_is_too_large_is_refused_and_the_session_continues(url: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * 10_000

    async with raw(url) as client:
        assert (await client.post(b" " * 100_001), await client.post(chunks())) == (413, 413)
        await client.lives("x" * 90_000)
        assert await client.post((b" " * 99_000) + json.dumps(request(2, "ping")).encode()) == 202
        assert (await client.answer(2))["result"] == {}


@each("how", ["stall", "close"])
async def test_an_incomplete_message_does_not_end_the_session(how: str) -> None:
    with running(SseApp(Tools(), limits=HttpLimits(arrival=0.1 if how == "stall" else PATIENCE))) as url:
        host, port = url.removeprefix("http://").split(":")
        async with raw(url) as client, await anyio.connect_tcp(host, int(port)) as connection:
            head = f"POST {client.endpoint} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 9\r\n\r\n"
            await connection.send(head.encode() + b"{")
            if how == "stall":
                assert (await connection.receive()).startswith(b"HTTP/1.1 408 ")
            await connection.aclose()
            await client.lives()


async def test_too_many_concurrent_messages_get_429(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw(url) as client:
        monkeypatch.setattr(runtime_sse, "MAX_POSTS", 0)
        assert await client.call("echo", 1, text="x") == 429
        monkeypatch.undo()
        assert await client.call("echo", 2, text="x") == 202
        assert await client.answer(2)


async def test_a_message_that_is_not_json_is_answered_on_the_stream(url: str) -> None:
    async with raw(url) as client:
        for junk in (b"", b"{", b"\xff", b'{"jsonrpc": "2.0", "id": 1}'):
            assert await client.post(junk, headers={"content-type": "text/plain"}) == 202
            assert "error" in json.loads((await client.event())[1])
        assert await client.call("echo", 7, text="half of a surrogate pair: \ud83d") == 202
        assert (await client.answer(7))["error"]["code"] == -32602
        await client.lives()


# --- applications ---------------------------------------------------------------------------------------------


async def test_an_application_can_be_mounted() -> None:
    tools = Tools()
    app = SseApp(tools, path="/open", messages="/tell")
    outer = Starlette(routes=[Mount("/a b", Starlette(routes=[Mount("/mcp", app)]))], lifespan=app.lifespan)

    with running(outer) as url:
        async with Model.connect(sse(f"{url}/a%20b/mcp/open")) as client:
            assert tools.alive == ["entered"]
            assert text_of(await client.call_tool("ask", {"question": "mounted?"})) == "MOUNTED?"
        async with httpx2.AsyncClient(timeout=PATIENCE) as http, http.stream("GET", f"{url}/a%20b/mcp/open") as stream:
            assert (await Raw(http, stream).event())[1].startswith("/a%20b/mcp/tell?session_id=")
    assert tools.alive == ["entered", "left"]


SCRIPT = """
import sys
sys.argv[1:] = ["--sse", sys.argv[1]]
from mcp_bindgen.runtime import run
from tests.http.test_legacy_sse import Announcing
run(Announcing())
"""


class Announcing(Tools):
    """Server that prints the end of its lifespan, and the module of its event loop."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        yield
        print("over", type(asyncio.get_running_loop()).__module__, flush=True)


@pytest.mark.full
@each(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
async def test_a_process_serves_until_it_gets_a_stop_signal(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said, _, place = process.stderr.readline().partition(" on ")
    assert said == "listening"

    try:
        async with Model.connect(sse(place.strip())) as client:
            assert text_of(await client.call_tool("echo", {"text": "x"})) == "x"
            process.send_signal(number)
            with pytest.raises(ConnectionClosed):
                await client.call_tool("wait")
    finally:
        output, errors = process.communicate(timeout=PATIENCE)
    assert (output, errors, process.returncode) == ("over uvloop\n", "", code)


@each("address", ["", "localhost", "localhost:", "localhost:http", "localhost:65536"])
async def test_invalid_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        await serve_sse(Tools(), address=address)


# --- errors of the client -------------------------------------------------------------------------------------


async def test_connection_failures_have_clear_messages_without_secrets(url: str) -> None:
    elsewhere = "event: endpoint\ndata: http://u:p@evil.example/messages?secret\n\n"
    origins = "event: endpoint\ndata: https://here.example/messages\n\n"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        nothing = "404 Not Found: nothing is served here; this server answers at /sse"
        assert await refused(f"{url}/nothing") == f"{url}/nothing answered {nothing}"
        assert "named no endpoint within 0.1 seconds" in await refused(f"http://127.0.0.1:{port}/sse", timeout=0.1)
        assert "is not the URL of a server" in await refused("ftp://127.0.0.1/sse")
        for answer, reason in [
            (httpx2.Response(200, text="hello"), "http://here.example/sse answered 200 OK with text/plain"),
            (httpx2.Response(302, headers={"location": "/"}), "redirects without end"),
            (
                httpx2.Response(302, headers={"location": "http://evil.example/?secret"}),
                "http://here.example/sse answered 302 Found: it redirects to http://evil.example/",
            ),
            (stream_of(""), "closed the stream before it named its endpoint"),
            (stream_of("data: {}\n\n"), "closed the stream before it named its endpoint"),
            (stream_of(elsewhere), "of another origin: http://evil.example/messages"),
            (stream_of(origins), "of another origin: https://here.example/messages"),
            (stream_of("event: endpoint\ndata: http://[/\n\n"), "of another origin"),
            (stream_of("event: endpoint\ndata: http://here.example:x/\n\n"), "an endpoint that is no URL"),
            (stream_of("event: endpoint\ndata: /" + "x" * 2000 + "\n\n"), "closed the stream before it named"),
        ]:

            def serve(request: httpx2.Request, answer: httpx2.Response = answer) -> httpx2.Response:
                return answer

            said = await refused("http://u:p@here.example/sse?token=x", scripted(serve), limit=1000)
            assert reason in said
            assert "token" not in said
            assert "u:p" not in said
    assert "no answer from" in await refused(f"http://127.0.0.1:{port}/sse")


async def test_a_client_decodes_the_stream_and_posts_to_its_endpoint() -> None:
    text = (
        "\ufeff: hello\r\nevent: endpoint\r\ndata: post?x=1\r\n\r\n: a comment\n\n"
        'event: message\ndata: {"a":\ndata: "é"}\n\nevent: other\ndata: {}\n\n'
        "id: 5\n\ndata: [1]\r\rdata: [2]\n\ndata: 3"
    )
    posted: list[tuple[str, bytes]] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return stream_of(text)
        posted.append((str(request.url), request.content))
        return httpx2.Response(202 if len(posted) < 3 else 404)

    async with scripted(serve) as http, sse("http://here.example/mcp/sse", client=http) as transport:
        assert [await transport.receive() for _ in range(5)] == [['{"a":\n"é"}'.encode()], [b"[1]"], [b"[2]"], (), ()]
        await transport.send([b"1", b"2"])
        with pytest.raises(ConnectionClosed, match="answered 404 Not Found"):
            await transport.send([b"3", b"4"])
        await transport.close()
        await transport.close()
        with pytest.raises(ConnectionClosed):
            await transport.send([b"5"])
    assert posted == [("http://here.example/mcp/post?x=1", data) for data in (b"1", b"2", b"3")]


async def test_no_log_shows_the_session_id_or_the_query(caplog: pytest.LogCaptureFixture, url: str) -> None:
    with caplog.at_level(logging.DEBUG, "httpx2"):
        async with Model.connect(sse(f"{url}/sse?token=query")) as client:
            await client.list_tools()
    assert not any(secret in caplog.text for secret in ("session_id", "token=query"))


async def test_closing_ends_a_waiting_receive(url: str) -> None:
    async def close(transport: SseClientTransport) -> None:
        await anyio.wait_all_tasks_blocked()
        await transport.close()

    async with sse(f"{url}/sse") as transport:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close, transport)
            assert await transport.receive() == ()
        assert await transport.receive() == ()


async def test_a_server_that_dies_ends_pending_requests(caplog: pytest.LogCaptureFixture) -> None:
    streams: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET "):
            streams.append(writer)
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            event = b"event: endpoint\ndata: /messages\n\n"
            writer.write(b"%b%x\r\n%b\r\n" % (head, len(event), event))
        else:
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            for one in (*streams, writer):
                one.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        with pytest.raises(ConnectionClosed):
            async with Model.connect(sse(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/sse")):
                pass
    assert "the stream of the server ended" in caplog.text


async def test_a_closed_session_keeps_its_events_and_refuses_messages() -> None:
    transport = HttpSession(
        HttpEndpoint([Tools()]), "id", "key", HttpLimits(), Budget(1, "too many"), has_one_stream=True
    )
    with transport.standing.reading():
        await transport.send([b'{\n"a":\r\n1}', b"2"])
        await transport.close()
        await transport.close()
        assert await transport.receive() == ()
        with pytest.raises(ConnectionClosed):
            await transport.send([b"3"])
        with pytest.raises(HttpError, match="the session is over"):
            await transport.taken()
        transport.standing.close()
        written = b"".join([asgi.event(event.data) for event in await transport.standing.read(0)])
        assert await transport.standing.read(2) == ()
    assert written.decode().splitlines() == [
        *("event: message", "data: {", 'data: "a":', "data: 1}", ""),
        *("event: message", "data: 2", ""),
    ]


async def test_a_server_that_stops_opens_no_stream() -> None:
    app = SseApp(Tools())
    app.leave()
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
        refused = await client.get("/sse")
    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
