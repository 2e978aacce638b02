"""Workers of `examples/cluster_server.py` behind nginx without affinity, on Redis, and a client that reconnects."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from mcp_bindgen.http.client import bounded as _bounded
from tests.harness.checked_connections import initialize
from tests.harness.commands import ROOT
from tests.harness.forks import PYTHON
from tests.harness.processes import PATIENCE, free_port, process
from tests.harness.redis_server import ANSWER_SECONDS, RedisServer, redis_server

NGINX_CONF = ROOT / "examples" / "nginx.conf"
PUBLIC_NAME = "mcp.example.com"
OLD, NEW = "2025-11-25", "2026-07-28"
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

LONG_LEASE = 20.0
"""Lease in seconds that is long enough that no living worker counts as dead, even on a busy machine."""


@contextmanager
def nginx(folder: Path, ports: Sequence[int]) -> Iterator[str]:
    """Run nginx in front of two workers with the configuration of the example, on other ports; yield its URL.

    The command that the example shows creates the certificate. While nginx runs, this process trusts the certificate
    and resolves the public name of the example to this machine.
    """
    example = NGINX_CONF.read_text("utf-8")
    (shown,) = re.findall(r"^# +(openssl (?:.*\\\n)*.*)", example, re.MULTILINE)
    words = shlex.split(shown.replace("\\\n#", ""))
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    front = free_port()
    instead = {443: front, **dict(zip((8001, 8002), ports, strict=True))}
    conf, count = re.subn(
        r"(?<=listen )443\b|(?<=server 127\.0\.0\.1:)80\d\d\b", lambda found: str(instead[int(found[0])]), example
    )
    assert count == 4
    with _running(folder, conf, front), _found_here(folder / f"{PUBLIC_NAME}.pem"):
        yield f"https://{PUBLIC_NAME}:{front}/mcp"


_PLAIN = """
daemon off; pid nginx.pid; error_log stderr warn;
events {{}}
http {{
    access_log off;
    upstream workers {{ {workers} keepalive 32; keepalive_timeout 2s; }}
    server {{
        listen 127.0.0.1:{front};
        location / {{
            proxy_pass http://workers;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_buffering off;
            proxy_read_timeout 1h;
        }}
    }}
}}
"""


@contextmanager
def plain_nginx(folder: Path, ports: Sequence[int]) -> Iterator[str]:
    """Run nginx without TLS, for clients that only accept local addresses; yield its URL."""
    front = free_port()
    workers = " ".join(f"server 127.0.0.1:{port} max_fails=0;" for port in ports)
    with _running(folder, _PLAIN.format(workers=workers, front=front), front):
        yield f"http://127.0.0.1:{front}/mcp"


@contextmanager
def _running(folder: Path, conf: str, front: int) -> Iterator[None]:
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        missing = "there is no nginx"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    (folder / "nginx.conf").write_text(conf, "utf-8")
    with process([program, "-p", folder, "-c", folder / "nginx.conf"], front, folder / "nginx.log"):
        yield


@contextmanager
def _found_here(certificate: Path) -> Iterator[None]:
    """Resolve the public name to this machine and trust its certificate."""
    resolve: Any = socket.getaddrinfo

    def here(host: Any, *arguments: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if host in (PUBLIC_NAME, PUBLIC_NAME.encode()) else host, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", here)
        patch.setenv("SSL_CERT_FILE", str(certificate))
        _bounded.certificates.cache_clear()
        try:
            yield
        finally:
            _bounded.certificates.cache_clear()


class Cluster:
    """Workers of one server.

    Args:
        folder: The folder for logs.
        redis: The Redis that the workers share.
        lease: Seconds without a heartbeat after which a worker counts as dead.
        timeout: Timeout of Redis commands in seconds.

    Attributes:
        url: URL of nginx, or of the first worker before nginx runs.
        workers: Port -> process id.
    """

    def __init__(self, folder: Path, redis: RedisServer, lease: float, timeout: float) -> None:
        self.redis = redis
        self.url = ""
        self.workers: dict[int, int] = {}
        self._log = (folder / "workers.log").open("wb")
        self.log = folder / "workers.log"
        self._starter = subprocess.Popen(
            [PYTHON, "-m", "tests.harness.cluster_worker", redis.url, str(lease), str(timeout)],
            cwd=ROOT,
            env={**os.environ, "ALLOWED_HOSTS": f"{PUBLIC_NAME},127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def start(self, port: int | None = None) -> int:
        """Start a worker and wait until it listens; return its port."""
        port = port or free_port()
        assert self._starter.stdin is not None
        assert self._starter.stdout is not None
        self._starter.stdin.write(f"{port}\n")
        self._starter.stdin.flush()
        said = self._starter.stdout.readline().split()
        assert said[:1] == [str(port)], self.log.read_text()
        self.workers[port] = int(said[1])
        self._reach(port)
        return port

    def _reach(self, port: int) -> None:
        """Wait until a worker listens."""
        end = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                return
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.01)

    def signal(self, port: int, number: int) -> None:
        """Send a signal to a worker."""
        os.kill(self.workers[port], number)

    def kill(self, port: int) -> None:
        """Kill a worker with SIGKILL."""
        self.signal(port, signal.SIGKILL)

    def at(self, port: int) -> str:
        """Return the URL of a worker."""
        return f"http://127.0.0.1:{port}/mcp"

    def wait(self, port: int) -> None:
        """Wait until a worker has exited."""
        end = time.monotonic() + PATIENCE
        with suppress(ProcessLookupError):
            while True:
                os.kill(self.workers[port], 0)
                assert time.monotonic() < end, self.log.read_text()
                time.sleep(0.01)

    def stop(self) -> None:
        """Stop all workers."""
        for pid in self.workers.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert self._starter.stdin is not None
        self._starter.stdin.close()
        self._starter.wait(PATIENCE)
        self._starter.stdout.close()  # type: ignore[union-attr]
        self._log.close()


class ShippedCluster(Cluster):
    """Workers started by the command line that the example documents."""

    def __init__(self, folder: Path, redis: RedisServer, lease: float, timeout: float) -> None:
        super().__init__(folder, redis, lease, timeout)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, port: int | None = None) -> int:
        """Start a worker and wait until it listens; return its port."""
        port = port or free_port()
        command: list[Any] = [sys.executable, ROOT / "examples" / "cluster_server.py", "--port", str(port)]
        self._processes[port] = subprocess.Popen(
            [*command, "--redis", self.redis.url],
            env={**os.environ, "ALLOWED_HOSTS": PUBLIC_NAME},
            stdout=self._log,
            stderr=self._log,
        )
        self.workers[port] = self._processes[port].pid
        self._reach(port)
        return port

    def wait(self, port: int) -> None:
        """Wait until a worker has exited."""
        self._processes[port].wait(PATIENCE)

    def stop(self) -> None:
        """Stop all workers."""
        super().stop()
        for one in self._processes.values():
            one.wait(PATIENCE)


@contextmanager
def cluster(
    folder: Path, lease: float = LONG_LEASE, timeout: float = ANSWER_SECONDS, kind: type[Cluster] = Cluster
) -> Iterator[Cluster]:
    """Run two workers behind nginx."""
    with redis_server(folder) as redis:
        made = kind(folder, redis, lease, timeout)
        try:
            with nginx(folder, [made.start(), made.start()]) as url:
                made.url = url
                yield made
        finally:
            made.stop()


# --- a client -------------------------------------------------------------------------------------------------


class Lost(Exception):
    """The request must be sent again: the server refused it for now, or the connection broke before the first event."""


class Patient:
    """Raw client that resumes its streams and rejects duplicate events.

    Attributes:
        seen: Event ids received so far.
        session: The session id.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url
        self.headers = dict(HEADERS)
        self.seen: set[str] = set()
        self._next = 0

    async def begin(self, capabilities: Any = None) -> None:
        """Do the handshake."""
        response = await self.insist(initialize(OLD, {"elicitation": {}} if capabilities is None else capabilities))
        assert response.status_code == 200, response.text
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        response = await self.insist({"method": "notifications/initialized"})
        assert response.status_code == 202, response.text

    def id(self) -> int:
        """Return an unused request id."""
        self._next += 1
        return self._next

    async def post(self, message: dict[str, Any], url: str | None = None) -> httpx2.Response:
        """Post a message and read the whole response."""
        return await self.http.post(url or self.url, headers=self.headers, json={"jsonrpc": "2.0", **message})

    async def insist(self, message: dict[str, Any], url: str | None = None) -> httpx2.Response:
        """Post an idempotent message again until a worker accepts it."""
        with anyio.fail_after(PATIENCE):
            while True:
                with suppress(httpx2.HTTPError):
                    response = await self.post(message, url)
                    if response.status_code < 500:
                        return response
                await anyio.sleep(0.05)

    def calling(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return a `tools/call` request."""
        id_ = self.id()
        params = {"name": name, "arguments": arguments, "_meta": {"progressToken": id_}}
        return {"id": id_, "method": "tools/call", "params": params}

    async def call(self, name: str, **arguments: Any) -> list[Any]:
        """Call a tool; return all messages including the response, which is the last one."""
        return [one async for one in self.messages(self.calling(name, **arguments))]

    async def hello(self, url: str) -> httpx2.Response:
        """Send `initialize` for another session."""
        return await self.http.post(url, headers=HEADERS, json=initialize(OLD))

    async def ping(self, url: str | None = None) -> int:
        """Send a ping; return the HTTP status."""
        return (await self.post({"id": self.id(), "method": "ping"}, url)).status_code

    async def subscribe(self, uri: str, url: str | None = None) -> None:
        """Subscribe to a resource."""
        await self.insist({"id": self.id(), "method": "resources/subscribe", "params": {"uri": uri}}, url)

    def stream(self, url: str, request: dict[str, Any] | None = None, last: Sequence[str] = ()) -> Any:
        """Return an open response: to a request, or to a GET that resumes after the last of these event ids."""
        if request is not None:
            return self.http.stream("POST", url, headers=self.headers, json={"jsonrpc": "2.0", **request})
        return self.http.stream("GET", url, headers={**self.headers, **({"last-event-id": last[-1]} if last else {})})

    async def messages(self, request: dict[str, Any], url: str | None = None) -> AsyncIterator[Any]:
        """Yield the messages on the stream of a request until its response, from any of the workers.

        Raises:
            Lost: The server cannot accept requests now, or the connection broke before the first event.
        """
        last: list[str] = []
        attempt = self.http.stream("POST", url or self.url, headers=self.headers, json={"jsonrpc": "2.0", **request})
        end = time.monotonic() + PATIENCE
        while True:
            try:
                async with attempt as response:
                    if response.status_code >= 500 and not last:
                        raise Lost(response.status_code)
                    if response.headers.get("content-type") == "application/json":
                        yield json.loads(await response.aread())
                        return
                    if response.status_code != 200 and not last:
                        raise Lost(response.status_code)
                    if response.status_code == 200:
                        async for message in self.events(response, last):
                            yield message
                            if message.get("id") == request["id"] and "method" not in message:
                                return
                    assert response.status_code not in (400, 404), await response.aread()
            except httpx2.HTTPError:
                if not last:
                    raise Lost("the connection broke") from None
            assert time.monotonic() < end, last
            await anyio.sleep(0.05)
            headers = {**self.headers, "last-event-id": last[-1]}
            attempt = self.http.stream("GET", self.url, headers=headers)

    async def listen(self, last: list[str], url: str | None = None) -> AsyncGenerator[Any]:
        """Yield messages of the GET stream forever; resume it after the last id in `last`."""
        while True:
            more = {"last-event-id": last[-1]} if last else {}
            with suppress(httpx2.HTTPError):
                async with self.http.stream("GET", url or self.url, headers={**self.headers, **more}) as response:
                    if response.status_code == 200:
                        async for message in self.events(response, last):
                            yield message
                    else:
                        assert response.status_code >= 500, response.status_code
            await anyio.sleep(0.05)

    async def events(self, response: httpx2.Response, last: list[str]) -> AsyncIterator[Any]:
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                last.append(line[4:])
            elif line.startswith("data: ") and line[6:]:
                assert last[-1] not in self.seen, f"{last[-1]} came twice"
                self.seen.add(last[-1])
                yield json.loads(line[6:])


class Reader:
    """The stream of one request, read from several workers in turn.

    Attributes:
        said: The messages.
    """

    def __init__(self, client: Patient, request: dict[str, Any]) -> None:
        self.said: list[Any] = []
        self._client, self._request, self._last = client, request, list[str]()

    async def read(self, url: str, most: int | None = None, then: Callable[[], object] | None = None) -> list[Any]:
        """Read to the end, or until there are `most` messages; then call `then`, or close the connection."""
        asked = None if self._last else self._request
        async with self._client.stream(url, asked, self._last) as response:
            assert response.status_code == 200
            async for message in self._client.events(response, self._last):
                self.said.append(message)
                if len(self.said) == most:
                    if then is None:
                        break
                    then()
        return self.said


def connections() -> httpx2.AsyncClient:
    """Return an HTTP client with a timeout."""
    return httpx2.AsyncClient(timeout=PATIENCE, limits=httpx2.Limits(max_connections=1000))


@asynccontextmanager
async def patient(cluster: Cluster, url: str | None = None) -> AsyncIterator[Patient]:
    """Connect a client, with a session and a timeout."""
    async with connections() as http:
        client = Patient(http, url or cluster.url)
        await client.begin()
        yield client


@asynccontextmanager
async def meeting(cluster: Cluster) -> AsyncIterator[tuple[Patient, int, int]]:
    """Yield a client with a session, and the ports of the first two workers."""
    async with patient(cluster) as client:
        first, second, *_ = cluster.workers
        yield client, first, second


def answer(response: httpx2.Response) -> Any:
    """Return the response to a request; depending on timing it is JSON or the last event of a stream."""
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ") and line[6:]]
    return json.loads(lines[-1]) if lines else response.json()


def numbers(messages: Sequence[Any]) -> list[int]:
    """Return the numbers in progress notifications."""
    return [one["params"]["progress"] for one in messages if one.get("method") == "notifications/progress"]


def text(message: Any) -> str:
    """Return the text of a result."""
    said: str = message["result"]["content"][0]["text"]
    return said
