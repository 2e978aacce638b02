"""Raw HTTP over real connections to an application that runs in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any

import anyio
import uvicorn
from anyio.abc import SocketStream
from starlette.types import Message, Receive, Scope, Send

from mcp_bindgen.http.server.app import AsgiApp
from tests.harness.checked_connections import INITIALIZED, STATELESS, initialize, request, until

LATEST, OLDEST = "2025-11-25", "2024-11-05"
BOTH = "application/json, text/event-stream"

Headers = dict[str, str]

BOB, EVE = {"x_user": "bob"}, {"x_user": "eve"}


def who(scope: Scope) -> str | None:
    """Return the user that the `x-user` header names."""
    name = dict(scope["headers"]).get(b"x-user")
    return None if name is None else name.decode()


class Observed:
    """Application wrapper that counts body bytes.

    Args:
        app: The wrapped application.

    Attributes:
        bodies: For each request in flight, the bytes of the body that the application has read.
        bytes_read: Total bytes of bodies that the application has read.
        bytes_sent: Total bytes of bodies that the application has sent, including bytes that the server buffers.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self.bodies: dict[object, int] = {}
        self.bytes_read = self.bytes_sent = 0

    @property
    def held(self) -> int:
        """Bytes read from all requests in flight."""
        return sum(self.bodies.values())

    def leave(self) -> None:
        """Tell the application to end its streams."""
        self._app.leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        key = object()
        self.bodies[key] = 0

        async def counted_receive() -> Message:
            message = await receive()
            size = len(message.get("body", b""))
            self.bodies[key] += size
            self.bytes_read += size
            return message

        async def counted_send(message: Message) -> None:
            self.bytes_sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, counted_receive, counted_send)
        finally:
            del self.bodies[key]


@asynccontextmanager
async def listening(app: AsgiApp | Observed, protocol: Any = "auto") -> AsyncGenerator[int]:
    """Serve an application in this process; yield its port."""
    config = uvicorn.Config(app, "127.0.0.1", 0, http=protocol, lifespan="on", log_config=None)
    config.timeout_graceful_shutdown, config.timeout_keep_alive = 1, 60  # longer than clients reuse connections
    server = uvicorn.Server(config)
    vars(server)["capture_signals"] = nullcontext  # the test runner handles signals
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        app.leave()
        server.should_exit = True
        await serving


class Wire:
    """A connection for raw HTTP."""

    def __init__(self, stream: SocketStream) -> None:
        self.stream = stream
        self.received = b""

    async def send(self, method: str, path: str, body: bytes, length: int | None, headers: Headers) -> None:
        """Send a request; with a larger `length`, `body` is only the first part of the announced body."""
        known = {"host": "localhost", "accept": BOTH, "content-type": "application/json"}
        known |= {name.replace("_", "-"): value for name, value in headers.items()}
        if method == "POST":
            known["content-length"] = str(len(body) if length is None else length)
        head = "".join(f"{name}: {value}\r\n" for name, value in known.items())
        await self.stream.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)

    async def until(self, fact: Callable[[bytes], Any]) -> None:
        """Read until a condition on the received bytes holds."""
        while not fact(self.received):
            self.received += await self.stream.receive()

    async def status(self) -> int:
        """Read a complete response; return its status."""
        await self.until(_is_whole)
        return int(self.received.split(None, 2)[1])

    @property
    def headers(self) -> Headers:
        """Headers of the response."""
        lines = self.received.partition(b"\r\n\r\n")[0].decode().splitlines()[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def json(self) -> Any:
        """Body of the response, parsed from JSON."""
        return json.loads(self.received.partition(b"\r\n\r\n")[2])


def _is_whole(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    lengths = [int(line[16:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
    return bool(end) and (len(body) >= lengths[0] if lengths else body.endswith(b"\r\n0\r\n\r\n"))


class Wires:
    """Connections to one port."""

    def __init__(self, port: int, stack: AsyncExitStack) -> None:
        self.port, self.stack = port, stack

    async def open(self) -> Wire:
        """Open a connection."""
        return Wire(await self.stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", self.port)))

    async def ask(self, method: str, content: Any = None, path: str = "/mcp", **headers: str) -> Wire:
        """Send a request on a new connection."""
        wire = await self.open()
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        await wire.send(method, path, body, None, headers)
        return wire

    async def begin(self, revision: str = LATEST, initialized: bool = True, user: Headers | None = None) -> Headers:
        """Begin a session; return the headers that identify it."""
        begun = await self.ask("POST", initialize(revision), **(user or {}))
        assert await begun.status() == 200, begun.received
        session = {"mcp_session_id": begun.headers["mcp-session-id"], **(user or {})}
        if initialized:
            assert await (await self.ask("POST", INITIALIZED, **session)).status() == 202
        return session

    async def call(self, session: Headers, name: str = "x", id_: int = 1) -> Wire:
        """Call a tool in a session."""
        return await self.ask("POST", request(id_, "tools/call", {"name": name}), **session)

    async def open_sse(self, initialized: bool = True, **headers: str) -> tuple[Wire, str]:
        """Open a session of HTTP+SSE; return its stream and the URL for messages."""
        wire = await self.ask("GET", path="/sse", **headers)
        await wire.until(lambda received: b"\n\n" in received.partition(b"data: ")[2])
        path = wire.received.partition(b"data: ")[2].split()[0].decode()
        if initialized:
            for message in (initialize(OLDEST), INITIALIZED):
                assert await (await self.ask("POST", message, path, **headers)).status() == 202
            await wire.until(lambda received: b'"result"' in received)
        return wire, path


@asynccontextmanager
async def wires(app: AsgiApp | Observed, protocol: Any = "auto") -> AsyncGenerator[Wires]:
    """Serve an application; yield a factory of connections to it."""
    async with listening(app, protocol) as port, AsyncExitStack() as stack:
        yield Wires(port, stack)


@asynccontextmanager
async def in_session(app: AsgiApp | Observed, protocol: Any = "auto") -> AsyncGenerator[tuple[Wires, Headers]]:
    """Serve an application; yield a factory of connections, and the headers of a new session."""
    async with wires(app, protocol) as made:
        yield made, await made.begin()


def stateless(message: Any) -> Headers:
    """Return the headers of a stateless request."""
    found = {"mcp_protocol_version": STATELESS, "mcp_method": message["method"]}
    return found | ({"mcp_name": message["params"]["name"]} if "name" in message["params"] else {})
