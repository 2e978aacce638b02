"""Several processes behind a real nginx without affinity, and ASGI servers that run the application (15 s)."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp_bindgen.runtime import connect
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import STATELESS, lone, refused, until
from tests.harness.cluster import PUBLIC_NAME, connections, nginx
from tests.harness.processes import PATIENCE, New, Old, free_port, granian, process, text, uvicorn

# --- nginx ----------------------------------------------------------------------------------------------------


class Cluster:
    """Two workers behind nginx.

    Attributes:
        url: Address of nginx.
        workers: Processes of the workers.
        news: The file that the workers watch.
    """

    def __init__(self, folder: Path, url: str, workers: list[subprocess.Popen[bytes]]) -> None:
        self.url, self.workers, self.news = url, workers, folder / "news"


@contextmanager
def cluster(folder: Path, keys: Sequence[str] = ("the same", "the same")) -> Iterator[Cluster]:
    """Start two workers behind nginx, configured as in the example; each has its own key."""
    news = str(folder / "news")
    with ExitStack() as stack:
        ports = [free_port(), free_port()]
        url = stack.enter_context(nginx(folder, ports))
        workers = [
            stack.enter_context(
                process(
                    uvicorn(port),
                    port,
                    folder / f"{port}.log",
                    WORKER_KEY=key,
                    WORKER_NEWS=news,
                    ALLOWED_HOSTS=PUBLIC_NAME,
                )
            )
            for port, key in zip(ports, keys, strict=True)
        ]
        yield Cluster(folder, url, workers)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


# --- many workers ---------------------------------------------------------------------------------------------


class Raw:
    """Client that POSTs messages and sees which worker answers."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http, self._url = http, url

    async def call(self, name: str, **params: Any) -> tuple[str, Any]:
        """Call a tool; return the worker and the response."""
        message = lone(1, "tools/call", {"elicitation": {"form": {}}}, name=name, **params)
        headers = {"mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": name}
        accept = "application/json, text/event-stream"
        response = await self._http.post(self._url, json=message, headers={"accept": accept, **headers})
        return response.headers["x-worker"], response.json()

    async def rounds(self) -> tuple[list[str], Any]:
        """Answer the input requests of a tool until it completes; return the worker of each round and the result."""
        who, answer = await self.call("ask")
        workers = [who]
        while answer.get("result", {}).get("resultType") == "input_required":
            asked = answer["result"]["inputRequests"]
            given = {key: {"action": "accept", "content": {key: f"my {key}"}} for key in asked}
            more = {"inputResponses": given, "requestState": answer["result"].get("requestState")}
            who, answer = await self.call("ask", **{key: value for key, value in more.items() if value is not None})
            workers.append(who)
        return workers, answer


async def many_calls(url: str, turns: int) -> None:
    async with connect(url, New) as client:

        async def several(number: int) -> None:
            for turn in range(turns):
                said = f"{number} {turn}"
                assert await text(client, "echo", text=said) == said

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(several, number)


@pytest.mark.full
async def test_a_thousand_concurrent_calls_succeed(two: Cluster) -> None:
    await many_calls(two.url, 50)


@pytest.mark.full
async def test_requests_are_distributed_evenly_among_workers(two: Cluster) -> None:
    async with connections() as http:
        raw = Raw(http, two.url)
        seen = Counter([(await raw.call("echo", arguments={"text": "x"}))[0] for _ in range(40)])
    assert sorted(seen.values()) == [20, 20]


async def test_the_rounds_of_a_request_may_go_to_different_workers(two: Cluster) -> None:
    async with connections() as http:
        workers, answer = await Raw(http, two.url).rounds()
        assert (answer["result"]["content"][0]["text"], len(workers)) == ("my name my colour", 3)
        assert workers[0] != workers[1] != workers[2]


@pytest.mark.full
async def test_a_worker_with_another_key_refuses_the_request_state(tmp_path: Path) -> None:
    with cluster(tmp_path, ("one key", "another")) as apart:
        async with connections() as http:
            workers, answer = await Raw(http, apart.url).rounds()
            assert answer["error"]["code"] == -32602
            assert "requestState" in answer["error"]["message"]
            assert len(workers) == 3


@pytest.mark.full
async def test_our_client_completes_requests_of_several_rounds(two: Cluster) -> None:
    async with connect(two.url, New) as client:

        async def one() -> None:
            assert await text(client, "ask") == "my name my colour"

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(one)


@pytest.mark.full
async def test_subscribed_clients_at_any_worker_are_notified_of_changes(two: Cluster) -> None:
    wanted = mcp.SubscriptionFilter(tools_list_changed=True)
    clients = [New() for _ in range(10)]
    async with AsyncExitStack() as stack:
        for client in clients:
            await stack.enter_async_context(client.connected(two.url))
            assert (await stack.enter_async_context(client.subscribed(wanted))).tools_list_changed
        for turn in (1, 2, 3):
            two.news.touch() if turn % 2 else two.news.unlink()
            while any(client.news < turn for client in clients):
                await anyio.sleep(0.01)
        await anyio.sleep(0.1)
        assert [client.news for client in clients] == [3] * 10
        async with connect(two.url, New) as another:
            assert await text(another, "echo", text="x") == "x"


@pytest.mark.full
async def test_progress_notifications_pass_through_nginx_without_delay(two: Cluster) -> None:
    seen: list[float] = []
    async with connect(two.url, New) as client, anyio.create_task_group() as tasks:
        patient = client.with_options(on_progress=lambda one: seen.append(one.progress))
        assert await text(patient, "count", to=30) == "done"
        assert seen == list(range(30))
        seen.clear()
        tasks.start_soon(partial(text, patient, "count", to=1_000_000))  # progress arrives long before the end
        await until(lambda: len(seen) > 3)
        tasks.cancel_scope.cancel()


@pytest.mark.full
async def test_calls_succeed_after_a_worker_dies(tmp_path: Path) -> None:
    with cluster(tmp_path) as three:
        await many_calls(three.url, 5)
        three.workers[0].kill()
        three.workers[0].wait()
        await many_calls(three.url, 20)


# --- ASGI servers ---------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("command", [uvicorn, granian])
async def test_asgi_servers_serve_stateful_and_stateless_revisions_and_stop(command: Any, tmp_path: Path) -> None:
    """Run the same conversation in both eras; then the process ends although a client still listens."""
    port = free_port()
    url, log = f"http://127.0.0.1:{port}/mcp", tmp_path / "log"

    async def converse(kind: type[Any]) -> None:
        seen: list[float] = []
        async with connect(url, kind) as client:
            assert client.revision == kind.revision
            assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "count", "ask", "vitals"]
            assert await text(client, "echo", text="é" * 100_000) == "é" * 100_000
            patient = client.with_options(on_progress=lambda one: seen.append(one.progress))
            assert (await text(patient, "count", to=5), seen) == ("done", [0, 1, 2, 3, 4])
            assert await text(client, "ask") == "my name my colour"
            with anyio.move_on_after(0.1):
                await client.call_tool("count", {"to": 100_000})
            await refused(client.call_tool("unknown"))

    news = tmp_path / "news"
    with process(command(port), port, log, WORKER_NEWS=str(news)) as server:
        await converse(New)
        await converse(Old)
        client, wanted = New(), mcp.SubscriptionFilter(tools_list_changed=True)
        async with client.connected(url), client.subscribed(wanted), connect(url, Old):
            news.touch()
            while not client.news:
                await anyio.sleep(0.01)
            server.send_signal(signal.SIGTERM)
            with anyio.fail_after(PATIENCE):
                while server.poll() is None:
                    await anyio.sleep(0.02)
        assert server.returncode in (0, -signal.SIGTERM)
    said = log.read_text()
    assert "Task was destroyed" not in said
    assert said.count("failed") == said.count("the handler of tools/call failed") == 2, said  # unknown tool
