"""HTTP spoken by hand, over real connections to an application that is served here."""

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
from tests.support.checked_connections import INITIALIZED, STATELESS, initialize, request, until

LATEST, OLDEST = "2025-11-25", "2024-11-05"
BOTH = "application/json, text/event-stream"

Headers = dict[str, str]

BOB, EVE = {"x_user": "bob"}, {"x_user": "eve"}


def who(scope: Scope) -> str | None:
    """Who sends a request, as a header says."""
    name = dict(scope["headers"]).get(b"x-user")
    return None if name is None else name.decode()


class Observed:
    """Application in front of another one that counts what passes through.

    Args:
        app: The application behind.

    Attributes:
        bodies: Bytes of the body that the application has read so far, of each request in flight.
        bytes_read: Bytes of all bodies that it has read.
        bytes_sent: Bytes of all bodies that it has sent, also those that wait for the connection.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self.bodies: dict[object, int] = {}
        self.bytes_read = self.bytes_sent = 0

    @property
    def held(self) -> int:
        """Bytes of the bodies of all requests in flight."""
        return sum(self.bodies.values())

    def leave(self) -> None:
        """Tell the application to end its streams."""
        self._app.leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one ASGI scope on."""
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
    """Serves an application here, and gives the port."""
    config = uvicorn.Config(app, "127.0.0.1", 0, http=protocol, lifespan="on", log_config=None)
    config.timeout_graceful_shutdown, config.timeout_keep_alive = 1, 60  # longer than clients use connections again
    server = uvicorn.Server(config)
    vars(server)["capture_signals"] = nullcontext  # signals are for who runs the tests
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        app.leave()
        server.should_exit = True
        await serving


class Wire:
    """A connection on which HTTP is spoken by hand."""

    def __init__(self, stream: SocketStream) -> None:
        self.stream = stream
        self.received = b""

    async def send(self, method: str, path: str, body: bytes, length: int | None, headers: Headers) -> None:
        """Sends a request, or only a part of its body if `length` says that there is more."""
        known = {"host": "localhost", "accept": BOTH, "content-type": "application/json"}
        known |= {name.replace("_", "-"): value for name, value in headers.items()}
        if method == "POST":
            known["content-length"] = str(len(body) if length is None else length)
        head = "".join(f"{name}: {value}\r\n" for name, value in known.items())
        await self.stream.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)

    async def until(self, fact: Callable[[bytes], Any]) -> None:
        """Reads until something is true of what came."""
        while not fact(self.received):
            self.received += await self.stream.receive()

    async def status(self) -> int:
        """Reads a whole response; gives its status."""
        await self.until(_is_whole)
        return int(self.received.split(None, 2)[1])

    @property
    def headers(self) -> Headers:
        """The headers of the response."""
        lines = self.received.partition(b"\r\n\r\n")[0].decode().splitlines()[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}

    @property
    def json(self) -> Any:
        """The body of the response."""
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
        """Opens a connection."""
        return Wire(await self.stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", self.port)))

    async def ask(self, method: str, content: Any = None, path: str = "/mcp", **headers: str) -> Wire:
        """Sends a request on a connection of its own."""
        wire = await self.open()
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        await wire.send(method, path, body, None, headers)
        return wire

    async def begin(self, revision: str = LATEST, initialized: bool = True, user: Headers | None = None) -> Headers:
        """Begins a session; gives the headers that name it."""
        begun = await self.ask("POST", initialize(revision), **(user or {}))
        assert await begun.status() == 200, begun.received
        session = {"mcp_session_id": begun.headers["mcp-session-id"], **(user or {})}
        if initialized:
            assert await (await self.ask("POST", INITIALIZED, **session)).status() == 202
        return session

    async def call(self, session: Headers, name: str = "x", id_: int = 1) -> Wire:
        """Calls a tool in a session."""
        return await self.ask("POST", request(id_, "tools/call", {"name": name}), **session)

    async def open_sse(self, initialized: bool = True, **headers: str) -> tuple[Wire, str]:
        """Opens a session of HTTP+SSE; gives its stream, and where messages go."""
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
    """Connections to an application while it is served."""
    async with listening(app, protocol) as port, AsyncExitStack() as stack:
        yield Wires(port, stack)


@asynccontextmanager
async def in_session(app: AsgiApp | Observed, protocol: Any = "auto") -> AsyncGenerator[tuple[Wires, Headers]]:
    """Connections to an application while it is served, and the headers that name a session."""
    async with wires(app, protocol) as made:
        yield made, await made.begin()


def stateless(message: Any) -> Headers:
    """The headers that a stateless client sends."""
    found = {"mcp_protocol_version": STATELESS, "mcp_method": message["method"]}
    return found | ({"mcp_name": message["params"]["name"]} if "name" in message["params"] else {})
