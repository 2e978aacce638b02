"""Example files behind a public name, and workers that restart in turn under load without losses (10 s)."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
import uvicorn

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.http.server.limits import LIMITS
from mcp_bindgen.http.server.serve import _Uvicorn
from mcp_bindgen.http.server.uvicorn_protocol import HttpProtocol
from tests.harness.checked_connections import bounded, lone, refused
from tests.harness.cluster import HEADERS, NEW, OLD, PUBLIC_NAME, Cluster, Patient, ShippedCluster, cluster, connections
from tests.harness.processes import PATIENCE

NOTE = "note://1"
RATE = 25
"""Requests per second."""

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}},
}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("two"), lease=5.0) as made:
        yield made


# --- limits of nginx --------------------------------------------------------------------------------------------


async def test_nginx_serves_the_public_name_and_nothing_but_the_endpoint(two: Cluster) -> None:
    origin = two.url.removesuffix("/mcp")
    async with connections() as http:
        for path in ("/", "/healthz", "/readyz", "/mcp/", "/mcp/healthz", "//readyz", "/%72eadyz", "/sse", "/messages"):
            assert (await http.get(origin + path)).status_code == 404, path
        assert (await http.get(two.url, headers=HEADERS)).status_code == 400  # no session id
        await refused(http.get(origin.replace(PUBLIC_NAME, "localhost")), httpx2.ConnectError)
        assert (await http.get(two.url.replace("https", "http"))).status_code == 400


async def test_nginx_has_the_limits_of_the_server(two: Cluster) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"x": ""}}}
    async with connections() as http:

        async def post(size: int, **headers: str) -> int:
            message["params"] = {"_meta": {"x": "x" * size}}
            return (await http.post(two.url, headers={**HEADERS, **headers}, json=message)).status_code

        below, above = LIMITS.message - 1000, LIMITS.message + 1
        assert [await post(below), await post(above)] == [400, 413]  # 400: no session id
        many = {name: name * 15_000 for name in "xyz"}
        assert (await http.post(two.url, headers={**HEADERS, **many}, json=HELLO)).status_code == 200
        assert await post(1, x="x" * 70_000) == 400


# --- SIGTERM --------------------------------------------------------------------------------------------------


def _get(path: str = "/healthz") -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()


def _answer(connection: socket.socket) -> bytes:
    """Return the answer to a probe; empty if the connection ends."""
    connection.settimeout(PATIENCE)
    said = b""
    while not said.endswith(b"ok\n") and (more := connection.recv(65536)):
        said += more
    return said


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def _connect_again_and_again(port: int) -> None:
    while True:
        _connect(port).close()
        time.sleep(0.01)


def test_a_stopping_worker_answers_requests_on_open_connections(two: Cluster) -> None:
    port = next(iter(two.workers))
    with _connect(port) as used, _connect(port) as fresh:
        used.sendall(_get())
        assert b"connection: close" not in _answer(used)
        two.signal(port, signal.SIGTERM)
        with pytest.raises(ConnectionRefusedError):
            _connect_again_and_again(port)
        for connection in (used, fresh):
            connection.sendall(_get())
            assert b"200 OK" in (said := _answer(connection))
            assert b"connection: close" in said
            assert _answer(connection) == b""
    two.wait(port)
    two.start(port)


@pytest.mark.full
def test_a_stopping_worker_waits_only_briefly_for_idle_connections(two: Cluster) -> None:
    port = next(iter(two.workers))
    with _connect(port) as idle:
        two.signal(port, signal.SIGTERM)
        assert _answer(idle) == b""
        two.wait(port)
    two.start(port)


def test_a_worker_that_is_interrupted_waits_for_no_idle_connection(two: Cluster) -> None:
    port = next(iter(two.workers))
    with _connect(port) as idle:
        idle.sendall(_get())
        _answer(idle)
        two.signal(port, signal.SIGINT)
        assert _answer(idle) == b""
        two.wait(port)
    two.start(port)


@pytest.mark.full
def test_a_worker_keeps_idle_connections_longer_than_clients_reuse_them(two: Cluster) -> None:
    """A request on a closing connection is lost; httpx2 reuses a connection for 5 seconds."""
    with _connect(next(iter(two.workers))) as idle:
        for pause in (0, 6):
            time.sleep(pause)
            idle.sendall(_get())
            assert b"200 OK" in _answer(idle)


async def _started(part: Callable[[], Awaitable[None]]) -> _Uvicorn:
    """Run a server in this process that SIGTERM stops; it awaits `part` before the end of a response."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"\n", "more_body": True})
        await part()
        await send({"type": "http.response.body", "body": b"ok\n"})

    config = uvicorn.Config(app, "127.0.0.1", 0, http=HttpProtocol, lifespan="off", ws="none", log_config=None)
    config.load()
    server = _Uvicorn(config)
    server.ending, server.lifespan = lambda: None, config.lifespan_class(config)
    await server.startup()
    server.handle_exit(signal.SIGTERM, None)
    return server


def test_connections_in_the_backlog_are_answered_when_the_port_closes() -> None:
    """uvloop accepts one connection per iteration of its event loop; closing the port resets waiting connections."""

    async def body() -> None:
        server = await _started(anyio.lowlevel.checkpoint)
        port = server.servers[0].sockets[0].getsockname()[1]
        waiting = [_connect(port) for _ in range(20)]  # without an iteration of the event loop
        for connection in waiting:
            connection.sendall(_get())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.shutdown)
            for connection in waiting:
                with connection:
                    assert (await anyio.to_thread.run_sync(_answer, connection)).endswith(b"ok\n")

    anyio.run(body, backend_options={"use_uvloop": True})


async def test_a_response_that_began_before_the_signal_does_not_end_its_connection() -> None:
    """The response head could not announce the close, so a proxy may have sent the next request already."""

    stopping = anyio.Event()
    server = await _started(stopping.wait)
    with _connect(server.servers[0].sockets[0].getsockname()[1]) as connection:
        connection.sendall(_get())
        assert await anyio.to_thread.run_sync(connection.recv, 4096)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.shutdown)
            while (b"connection", b"close") not in server.server_state.default_headers:
                await anyio.sleep(0.01)
            stopping.set()
            for _ in range(2):
                assert (await anyio.to_thread.run_sync(_answer, connection)).endswith(b"ok\n")
                connection.sendall(_get())
            connection.close()


# --- handover of subscriptions --------------------------------------------------------------------------------


class Stream:
    """Subscription at one worker, over plain HTTP."""

    def __init__(self, http: httpx2.AsyncClient, url: str, name: str = "listener") -> None:
        message = lone(1, "subscriptions/listen", {}, notifications={"resourceSubscriptions": [NOTE]})
        message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": name, "version": "1"}
        headers = {**HEADERS, "mcp-protocol-version": NEW, "mcp-method": "subscriptions/listen"}
        self._opened, self.heard = http.stream("POST", url, headers=headers, json=message), list[str]()

    async def read(self, *, seconds: float = PATIENCE) -> str:
        """Read until the stream ends or the time is over; return "ended", "lost" or "open"."""
        with anyio.move_on_after(seconds):
            async with self._opened as response:
                async for line in response.aiter_lines():
                    if not line.startswith("data: "):
                        continue
                    message = json.loads(line[6:])
                    if "result" in message:
                        return "ended"
                    self.heard.append(message["params"].get("uri", message["method"]))
                return "lost"
        return "open"

    @property
    def events(self) -> list[str]:
        return [one for one in self.heard if one.startswith(NOTE)]


async def _announce(http: httpx2.AsyncClient, url: str, uri: str) -> None:
    message = lone(1, "tools/call", {}, name="announce", arguments={"uri": uri})
    headers = {**HEADERS, "mcp-protocol-version": NEW, "mcp-method": "tools/call", "mcp-name": "announce"}
    assert "announced" in (await http.post(url, headers=headers, json=message)).text


@pytest.mark.full
async def test_events_between_two_streams_of_a_subscription_arrive_once(two: Cluster) -> None:
    first, second = two.workers
    async with connections() as http, anyio.create_task_group() as tasks:
        former, ended = Stream(http, two.at(first)), list[str]()

        async def read() -> None:
            ended.append(await former.read())

        tasks.start_soon(read)
        while not former.heard:
            await anyio.sleep(0.01)
        await _announce(http, two.at(second), f"{NOTE}/1")
        while not former.events:
            await anyio.sleep(0.01)
        two.signal(first, signal.SIGTERM)
        while not ended:
            await anyio.sleep(0.01)
        assert (ended, former.events) == (["ended"], [f"{NOTE}/1"])
        for number in (2, 3):
            await _announce(http, two.at(second), f"{NOTE}/{number}")
        stranger, later = (Stream(http, two.at(second), name) for name in ("stranger", "listener"))
        assert [await stranger.read(seconds=0.2), stranger.events] == ["open", []]
        tasks.start_soon(later.read)
        while not later.events:
            await anyio.sleep(0.01)
        await _announce(http, two.at(second), f"{NOTE}/4")
        while len(later.events) < 3:
            await anyio.sleep(0.01)
        assert later.heard == ["notifications/subscriptions/acknowledged", *(f"{NOTE}/{n}" for n in (2, 3, 4))]
        another = Stream(http, two.at(second))
        assert [await another.read(seconds=0.2), another.events] == ["open", []]
        tasks.cancel_scope.cancel()
    two.wait(first)
    two.start(first)


# --- rolling restarts -----------------------------------------------------------------------------------------


class Listener:
    """Base of clients that count events."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()

    def on_resource_updated(self, params: Any, ctx: Any) -> None:
        self.heard[params.uri] += 1


class NewListener(Listener, v2026_07_28.Client):
    """Stateless client that counts events."""


class OldListener(Listener, v2025_11_25.Client):
    """Client with a session that counts events."""


class Load:
    """Load at a steady rate: short and long calls of both eras, and events.

    Attributes:
        statuses: Number of short calls by HTTP status.
        long: Number of long calls by outcome.
        events: URIs of published events.
    """

    def __init__(self, cluster: Cluster, http: httpx2.AsyncClient, seconds: float) -> None:
        self.statuses: Counter[int | str] = Counter()
        self.long: Counter[str] = Counter()
        self.events: list[str] = []
        self._cluster, self._http, self._steps = cluster, http, round(seconds * 10)
        self._old, self._over = Patient(http, cluster.url), False

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Call while the block runs, and wait for the last responses."""
        await self._old.begin()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drive)
            yield
            self._over = True

    async def _drive(self) -> None:
        begin, number = anyio.current_time(), 0
        async with anyio.create_task_group() as tasks:
            while not self._over:
                number += 1
                if number % 25 == 0:
                    tasks.start_soon(self._call_long, number % 50 == 0)
                elif number % 6 == 0:
                    tasks.start_soon(self.announce, f"{NOTE}/{number}")
                else:
                    tasks.start_soon(self._count, number % 2 == 0, "count", {"to": 1, "delay_ms": 0})
                await anyio.sleep_until(begin + number / RATE)

    async def announce(self, uri: str) -> None:
        """Publish an event."""
        if await self._count(True, "announce", {"uri": uri}):
            self.events.append(uri)

    async def _count(self, is_new: bool, name: str, arguments: dict[str, Any]) -> bool:
        """Make one call and count its status; return True if it succeeded."""
        try:
            status: int | str = await self._call(is_new, name, arguments)
        except httpx2.HTTPError as error:
            status = repr(error)
        self.statuses[status] += 1
        return status == 200

    async def _call(self, is_new: bool, name: str, arguments: dict[str, Any]) -> int:
        id_ = self._old.id()
        if is_new:
            message = lone(id_, "tools/call", {}, name=name, arguments=arguments)
            headers = {**HEADERS, "mcp-protocol-version": NEW, "mcp-method": "tools/call", "mcp-name": name}
        else:
            message = {"jsonrpc": "2.0", "id": id_, "method": "tools/call"}
            message["params"] = {"name": name, "arguments": arguments}
            headers = self._old.headers
        response = await self._http.post(self._cluster.url, headers=headers, json=message)
        if response.status_code == 503:
            assert "retry-after" in response.headers
        elif response.status_code == 200:
            assert '"content"' in response.text, response.text
        return response.status_code

    async def _call_long(self, is_new: bool) -> None:
        arguments = {"to": self._steps, "delay_ms": 100}
        if is_new:
            said = f"{await self._call(True, 'count', arguments)}"
        else:
            said = "error"
            with suppress(Exception):
                answer = (await self._old.call("count", **arguments))[-1]
                said = "200" if "result" in answer else str(answer)
        self.long[said] += 1


async def _restart(cluster: Cluster, number: int, pause: float) -> None:
    for port in list(cluster.workers):
        cluster.signal(port, number)
        await anyio.to_thread.run_sync(cluster.wait, port)
        await anyio.to_thread.run_sync(cluster.start, port)
        await anyio.sleep(pause)


async def _restarts(
    cluster: Cluster, rounds: int, pause: float, seconds: float, number: int = signal.SIGTERM
) -> tuple[Load, Any, Any]:
    """Restart both workers in turn, `rounds` times, under load; return the load and both listeners."""
    new, old = NewListener(), OldListener()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(connections())
        await stack.enter_async_context(new.connected(cluster.url))
        await stack.enter_async_context(old.connected(cluster.url))
        assert (new.wire_revision, old.wire_revision) == ("2026-07-28", "2025-11-25")
        wanted = v2026_07_28.types.SubscriptionFilter(resource_subscriptions=[NOTE])
        await stack.enter_async_context(new.subscribed(wanted))
        await old.subscribe(NOTE)
        load = Load(cluster, http, seconds)
        async with load.running():
            await anyio.sleep(0.5)
            for _ in range(rounds):
                await _restart(cluster, number, pause)
        misses = number == signal.SIGKILL  # a stateless client misses some events after a kill
        listeners: list[Listener] = [old] if misses else [old, new]
        with anyio.move_on_after(PATIENCE):
            while misses and load.events[-1] not in new.heard:
                await load.announce(f"{NOTE}/again/{len(load.events)}")
                await anyio.sleep(0.5)
            while any(set(load.events) - listener.heard.keys() for listener in listeners):
                await anyio.sleep(0.05)
    return load, new, old


def _check(load: Load, new: NewListener, old: OldListener, max_refused_share: float) -> None:
    print(f"\nshort calls {dict(load.statuses)}, long calls {dict(load.long)}, {len(load.events)} events: ", end="")
    print(f"{len(set(load.events) & new.heard.keys())} and {len(set(load.events) & old.heard.keys())} heard")
    assert set(load.statuses) <= {200, 502, 503}
    for calls, answered in ((load.statuses, load.statuses[200]), (load.long, load.long["200"])):
        assert calls.total() - answered <= max_refused_share * calls.total()
    assert len(load.events) > 5
    for listener in (new, old):
        assert [uri for uri in load.events if listener.heard[uri] != 1] == []


@pytest.mark.full
async def test_a_rolling_restart_under_load_loses_no_response_or_event(two: Cluster) -> None:
    _check(*await _restarts(two, 1, 0.1, 1), 0)


@pytest.mark.full
async def test_a_client_is_notified_of_a_killed_worker_and_gets_later_events(two: Cluster) -> None:
    load, new, old = await _restarts(two, 2, 1, 1, signal.SIGKILL)
    assert load.events[-1] in new.heard  # the next subscription receives later events
    assert ([uri for uri in load.events if old.heard[uri] != 1], max(new.heard.values())) == ([], 1)
    assert new.changes > len(new.heard)  # a loss counts as a change


@pytest.mark.full
@bounded(300)
async def test_rolling_restarts_of_the_example_files_lose_no_event(tmp_path_factory: pytest.TempPathFactory) -> None:
    with cluster(tmp_path_factory.mktemp("two"), kind=ShippedCluster) as shipped:
        _check(*await _restarts(shipped, 2, 1, 3), 0.1)  # a busy nginx notices a refused connection late
