"""Faults between client and server over HTTP: kills, cut connections, guessed ids, and long runs (50 s)."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp_bindgen import v2025_11_25
from mcp_bindgen.http import HttpApp, HttpLimits, http
from mcp_bindgen.runtime import ConnectionClosed, ProtocolError, connect
from mcp_bindgen.runtime.protocol.transport import Outgoing
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import (
    INITIALIZED,
    STATELESS,
    bounded,
    initialize,
    lone,
    refused,
    request,
    stating,
)
from tests.harness.effort import cases
from tests.harness.forks import PYTHON
from tests.harness.processes import PARSERS, PATIENCE, New, Old, free_port, process, text, uvicorn
from tests.harness.scripted_http_server import Cut, Heard, talking

BOTH = "application/json, text/event-stream"
NEWEST = "2025-11-25"
PARAMS = -32602

Clients = type[New] | type[Old]


@contextmanager
def worker(folder: Path, port: int, parser: str = "auto", program: str = sys.executable, **variables: str) -> Any:
    """Start a process that serves both eras."""
    with process(uvicorn(port, parser, program), port, folder / "log", **variables) as running:
        yield running


async def settled(client: Any) -> dict[str, int]:
    """Return the counters of the process once they have not changed for a second."""
    before, since = dict[str, int](), time.monotonic()
    with anyio.fail_after(PATIENCE):
        while True:
            vitals: dict[str, int] = json.loads(await text(client, "vitals"))
            if {**vitals, "memory": 0} != {**before, "memory": 0} or vitals["requests"] > 1:
                before, since = vitals, time.monotonic()
            if time.monotonic() > since + 1.2:
                return vitals
            await anyio.sleep(0.1)


async def calm(client: Any, first: dict[str, int]) -> dict[str, int]:
    """Return the counters of the process once they are no higher than `first`, or after a long time."""
    vitals: dict[str, int] = {}
    with anyio.move_on_after(PATIENCE):
        while not vitals or any(vitals[name] > first[name] for name in ("sessions", "listeners", "requests", "tasks")):
            await anyio.sleep(0.1)
            vitals = json.loads(await text(client, "vitals"))
    return vitals


# --- killed server --------------------------------------------------------------------------------------------


@asynccontextmanager
async def client_of(way: str, kind: Clients, url: str) -> AsyncGenerator[Any]:
    """Connect a client with `connect`, or with a transport."""
    if way == "connect":
        async with connect(url, kind) as client:
            yield client
    else:
        async with http(url) as transport, kind.connect(transport) as client:
            yield client


@pytest.mark.full
@pytest.mark.parametrize(("way", "heard"), [("connect", 0), ("http", 25), ("connect", 200)])
async def test_a_session_survives_a_server_that_is_killed_during_a_stream(tmp_path: Path, way: str, heard: int) -> None:
    """Messages sent before the kill arrive once and in order, then one clear error; the session survives."""
    port = free_port()
    kept = {"WORKER_STORE": str(tmp_path / "events.db"), "WORKER_JOURNAL": str(tmp_path / "journal")}
    said: list[float] = []

    async def call(client: Any, failed: anyio.Event) -> None:
        patient = client.with_options(on_progress=lambda one: said.append(one.progress))
        with pytest.raises(ProtocolError, match="the server was restarted") as caught:
            await patient.call_tool("count", {"to": 100_000, "pause": 0.002})
        assert caught.value.code == -32603
        failed.set()

    failed = anyio.Event()
    with ExitStack() as stack:
        first = stack.enter_context(worker(tmp_path, port, **kept))
        async with client_of(way, Old, f"http://127.0.0.1:{port}/mcp") as client, anyio.create_task_group() as tasks:
            assert await text(client, "echo", text="x") == "x"
            tasks.start_soon(call, client, failed)
            while len(said) <= heard:
                await anyio.sleep(0.001)
            first.kill()
            first.wait()
            spoken = (tmp_path / "journal").stat().st_size
            stack.enter_context(worker(tmp_path, port, **kept))
            await failed.wait()
            assert said == list(range(len(said)))
            assert len(said) >= spoken
            assert await text(client, "echo", text="again") == "again"
            assert json.loads(await text(client, "vitals"))["sessions"] == 1


@pytest.mark.full
@pytest.mark.parametrize("parser", cases(PARSERS, quick=PARSERS[:1]))
async def test_without_sessions_a_killed_server_fails_a_call_with_one_clear_error(tmp_path: Path, parser: str) -> None:
    """A call fails at once; later calls work, and the client subscribes again."""
    port, news = free_port(), tmp_path / "news"

    async def expect_closed(client: Any) -> None:
        assert "\n" not in str(await refused(client.call_tool("count", {"to": 100_000}), ConnectionClosed))

    client, wanted = New(), mcp.SubscriptionFilter(tools_list_changed=True)
    with ExitStack() as stack:
        first = stack.enter_context(worker(tmp_path, port, parser, WORKER_NEWS=str(news)))
        async with client.connected(f"http://127.0.0.1:{port}/mcp"), client.subscribed(wanted):
            with anyio.fail_after(30):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(expect_closed, client)
                    await anyio.sleep(0.2)
                    first.kill()
            first.wait()
            await expect_closed(client)
            stack.enter_context(worker(tmp_path, port, parser, WORKER_NEWS=str(news)))
            assert await text(client, "echo", text="again") == "again"
            while not json.loads(await text(client, "vitals"))["listeners"]:
                await anyio.sleep(0.05)
            news.touch()
            while not client.news:
                await anyio.sleep(0.01)


# --- cut connections ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cuts", [0, 1, 3, 4])
async def test_an_interrupted_post_is_repeated_up_to_three_times(cuts: int) -> None:
    """A lost response would leave a handler of the server waiting forever."""

    async def play(heard: Heard) -> None:
        if len(script.heard) <= cuts:
            await heard.begin(202, content_length="5")
            raise Cut
        await heard.end()

    async with talking(play) as (transport, script):
        await transport.send([Outgoing(b'{"jsonrpc":"2.0","id":7,"result":{}}')])
        assert len(script.called("answer")) == min(cuts + 1, 4)


class Cutter:
    """TCP proxy that closes or resets connections at random.

    Args:
        to: Port of the server.
        share: Probability that a connection is cut.
        dice: Random generator.

    Attributes:
        port: Port of the proxy.
        opened: Number of connections.
        cut: Number of connections that were cut.
    """

    port = opened = cut = 0

    def __init__(self, to: int, share: float, dice: random.Random) -> None:
        self._to, self._share, self._dice = to, share, dice

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with await asyncio.start_server(self._pass, "127.0.0.1", backlog=1000) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        try:
            behind, beyond = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        ways = [asyncio.create_task(self._copy(*ends)) for ends in ((reader, beyond), (behind, writer))]
        life = None
        if self._dice.random() < self._share:
            life = self._dice.expovariate(2)
        done, _ = await asyncio.wait(ways, timeout=life, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        if not done:
            self.cut += 1
            if self._dice.random() < 0.5:
                linger = struct.pack("ii", 1, 0)  # send a reset instead of an orderly close
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        for end in (writer, beyond):
            end.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()


class Tally:
    """Outcomes of calls."""

    def __init__(self) -> None:
        self.results = 0
        self.errors: Counter[str] = Counter()

    async def call(self, client: Any, work: Callable[[Any], Awaitable[None]]) -> None:
        """Make a call, which must end in time with a result or with one clear error."""
        try:
            with anyio.fail_after(PATIENCE):
                await work(client)
        except (ConnectionClosed, ProtocolError) as error:
            self.errors[str(error)] += 1
        else:
            self.results += 1


async def _echo(client: Any) -> None:
    said = str(random.randrange(1000))  # few different texts: pydantic caches 16,384 short strings
    assert (await client.call_tool("echo", {"text": said})).content[0].text == said


async def _count(client: Any) -> None:
    seen: list[float] = []
    try:
        await client.with_options(on_progress=lambda one: seen.append(one.progress)).call_tool("count", {"to": 20})
    finally:
        assert seen == list(range(len(seen)))
    assert len(seen) == 20


async def _ask(client: Any) -> None:
    assert (await client.call_tool("ask")).content[0].text == "my name my colour"


async def _list(client: Any) -> None:
    assert len((await client.list_tools()).tools) == 4


WORK = [_echo, _count, _ask, _list]


@pytest.mark.full
@pytest.mark.parametrize("parser", cases(PARSERS, quick=PARSERS[:1]))
@pytest.mark.parametrize(
    ("clients", "seconds"), [(50, 3), pytest.param(200, 60, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_every_call_over_cut_connections_ends_with_a_result_or_one_error(
    tmp_path: Path, clients: int, seconds: float, parser: str
) -> None:
    """Every call ends in the right result or in one clear error, and all resources are freed."""
    port, tally, dice = free_port(), Tally(), random.Random(6)
    cutter = Cutter(port, 0.05, dice)

    async def one(kind: Clients, until: float) -> None:
        now = asyncio.get_running_loop().time
        while time.monotonic() < until or not tally.errors:
            try:
                async with asyncio.timeout(PATIENCE) as patience:
                    async with connect(f"http://127.0.0.1:{cutter.port}/mcp", kind) as client:
                        patience.reschedule(None)
                        for _ in range(dice.randrange(1, 40)):
                            await tally.call(client, dice.choice(WORK))
                            if time.monotonic() > until:
                                break
                        patience.reschedule(now() + PATIENCE)
            except (ConnectionClosed, ProtocolError) as error:
                tally.errors[f"connecting: {type(error).__name__}"] += 1

    @bounded(seconds + 3 * PATIENCE)
    async def body() -> None:
        async with cutter.running(), anyio.create_task_group() as tasks:
            for number in range(clients):
                tasks.start_soon(one, Old if number % 2 else New, time.monotonic() + seconds)
        assert cutter.cut > cutter.opened * 0.01, (cutter.cut, cutter.opened)
        print(f"{cutter.cut} of {cutter.opened} connections cut, {tally.results} results,", dict(tally.errors))
        assert tally.results > 0.9 * (tally.results + tally.errors.total()), tally.errors
        assert tally.errors
        assert all(words and "\n" not in words for words in tally.errors)
        async with connect(f"http://127.0.0.1:{port}/mcp", New) as client:
            vitals = await settled(client)
            while vitals["listeners"] != 2 * vitals["sessions"]:  # each session listens to both servers
                vitals = await settled(client)  # a session is still ending
        assert vitals["sessions"] <= cutter.cut  # sessions of clients that could not end them

    with worker(tmp_path, port, parser, PYTHON):
        body()


# --- guessed ids and request smuggling ------------------------------------------------------------------------


@asynccontextmanager
async def in_process(*servers: Any, **options: Any) -> AsyncGenerator[Callable[..., Awaitable[httpx2.Response]]]:
    """Yield a function that sends requests to an application in this process."""
    app = HttpApp(*servers, **options)
    transport = httpx2.ASGITransport(app)
    async with app.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:

        async def send(method: str = "POST", message: Any = None, **headers: str) -> httpx2.Response:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            accept = {"accept": BOTH, "content-type": "application/json"}
            return await client.request(method, "/mcp", json=message, headers={**accept, **named})

        yield send


@pytest.mark.full
async def test_session_ids_cannot_be_guessed() -> None:
    """No part or variation of an id finds its session, with and without a store that persists sessions."""
    dice, ids = random.Random(2), set[str]()
    async with in_process(Server25(), limits=HttpLimits(sessions=300)) as send:
        for _ in range(200):
            ids.add((await send("POST", initialize(NEWEST))).headers["mcp-session-id"])
        assert len(ids) == 200
        assert all(len({id_[place] for id_ in ids}) > 20 for place in range(42))  # every character is random
        real = min(ids)
        assert (await send("POST", INITIALIZED, mcp_session_id=real)).status_code == 202
        for _ in range(300):
            place, other = dice.randrange(len(real)), dice.choice("Aab0_-%*")
            guess = dice.choice(
                [real[:place] + other + real[place + 1 :], real[:place], real + other, real.swapcase(), real[::-1]]
            )
            if guess not in ids:
                status = await send(dice.choice(["GET", "POST", "DELETE"]), request(1, "ping"), mcp_session_id=guess)
                assert status.status_code == 404, guess
        assert (await send("POST", request(1, "ping"), mcp_session_id=real)).json()["result"] == {}


class Server25(v2025_11_25.Server):
    """Server without features."""


SMUGGLED = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
LINE = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.mark.full
@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 4\r\nContent-Length: 40\r\n",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\nContent-Length: 4\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length : 4\r\n",
        b"X\x00: y\r\nContent-Length: 4\r\n",
    ],
)
def test_an_ambiguous_http_request_is_refused_and_its_connection_is_closed(smuggling: int, head: bytes) -> None:
    """Refuse an ambiguous HTTP request and close the connection, so that no second request is smuggled."""
    with socket.create_connection(("127.0.0.1", smuggling)) as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(LINE + head + b"\r\n" + b"null" + SMUGGLED)
        heard = b""
        with suppress(ConnectionResetError):
            while part := connection.recv(1 << 16):
                heard += part
    assert heard.startswith(b"HTTP/1.1 400 ")
    assert heard.count(b"HTTP/1.1 ") == 1


@pytest.mark.full
@pytest.mark.parametrize("lines", [True, False], ids=["many", "one"])
def test_a_client_that_sends_endless_headers_is_disconnected(tmp_path: Path, lines: bool) -> None:
    """A client that sends endless headers and no request is disconnected before that costs memory."""
    port = free_port()
    command = [PYTHON, "benchmarks/echo_server.py", "--http", port]
    with process(command, port, tmp_path / "log"), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(b"POST /mcp HTTP/1.1\r\nX: ")
        sent = 0
        with suppress(ConnectionError):
            while sent < 100_000_000:
                connection.sendall((b"\r\nX: " if lines else b"") + b"y" * 100_000)
                sent += 100_000
        assert sent < 20_000_000


@pytest.fixture(scope="module", params=cases(PARSERS, quick=PARSERS[:1]))
def smuggling(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Yield the port of a server."""
    port = free_port()
    with worker(tmp_path_factory.mktemp("smuggling"), port, request.param, PYTHON):
        yield port


# --- long runs ------------------------------------------------------------------------------------------------


async def soak(url: str, turns: int) -> None:
    """Run all kinds of client behaviour in both eras, good and bad; the amount is the same on a slow machine."""
    dice = random.Random(3)

    async def behave(kind: Any) -> None:
        for _ in range(turns):
            async with connect(url, kind) as client:
                for _ in range(10):
                    await dice.choice(WORK)(client)
                with anyio.move_on_after(0.02):  # cancels
                    await client.call_tool("count", {"to": 1000})
                with suppress(ProtocolError):
                    await client.call_tool("unknown")

    async def listen() -> None:
        for _ in range(5 * turns):
            wanted = mcp.SubscriptionFilter(tools_list_changed=True)
            async with connect(url, New) as client, client.subscribed(wanted):
                await anyio.sleep(0.05)

    async def misbehave() -> None:
        async with httpx2.AsyncClient(timeout=60) as client:
            for _ in range(10 * turns):
                begun = await client.post(url, json=initialize(NEWEST), headers={"accept": BOTH})
                session = {"accept": BOTH, "mcp-session-id": begun.headers["mcp-session-id"]}
                await client.post(url, json=INITIALIZED, headers=session)
                call = request(1, "tools/call", {"name": "count", "arguments": {"to": 20}})
                async with client.stream("POST", url, json=call, headers=session):
                    pass  # disconnects at once and does not resume
                await client.post(url, content=dice.randbytes(200), headers=session)
                name = dice.randbytes(9).hex()  # names of unknown methods, tools and revisions must not be stored
                for message in (lone(1, name), lone(1, "tools/call", name=name)):
                    stated = {"mcp-protocol-version": STATELESS, "mcp-method": message["method"], "mcp-name": name}
                    await client.post(url, json=message, headers={"accept": BOTH, **stated})
                message = request(1, "tools/list", {"_meta": stating(revision=name)})
                await client.post(url, json=message, headers={"accept": BOTH, "mcp-protocol-version": name})
                await client.delete(url, headers=session)

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(behave, Old if number % 2 else New)
        tasks.start_soon(listen)
        tasks.start_soon(misbehave)


@pytest.mark.full
@pytest.mark.parametrize("turns", [1, pytest.param(120, marks=pytest.mark.slow)], ids=["short", "long"])
def test_soak(tmp_path: Path, turns: int) -> None:
    """Memory, tasks, sessions, streams and listeners do not grow with time."""
    port, rounds = free_port(), 5

    @bounded(rounds * turns * 5 + 4 * PATIENCE)
    async def body() -> None:
        url = f"http://127.0.0.1:{port}/mcp"
        async with connect(url, New) as client:
            found: list[dict[str, int]] = []
            for _ in range(rounds):
                await soak(url, turns)
                found.append(await (calm(client, found[0]) if found else settled(client)))
                print(found[-1])
        for one in found:
            assert (one["sessions"], one["listeners"]) == (0, 0)
            assert (one["requests"], one["tasks"]) <= (found[0]["requests"], found[0]["tasks"])
        memory = [one["memory"] for one in found[rounds // 4 :]]
        assert max(memory) - memory[0] < 150_000, memory

    with worker(tmp_path, port, WORKER_TRACE="yes"):
        body()
