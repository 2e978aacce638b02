"""A scripted server of Streamable HTTP, and messages in the form that a session would send."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn

from mcp_bindgen.http.client.transport import HttpClientTransport, http
from mcp_bindgen.runtime.protocol.methods import Notification, RequestMethod
from mcp_bindgen.runtime.protocol.transport import Lost, Outgoing

PATIENCE = 60.0
EVENTS = "text/event-stream"
VERSION = {"MCP-Protocol-Version": "2025-11-25"}
SESSION = {"mcp-session-id": "s-1"}

INITIALIZE: Any = RequestMethod("initialize", "client", None, None)
CALL: Any = RequestMethod("tools/call", "client", None, None)
INITIALIZED: Any = Notification("notifications/initialized", "client", None)
CANCELLED: Any = Notification("notifications/cancelled", "both", None)


# --- the server -----------------------------------------------------------------------------------------------


class Cut(Exception):
    """Raised by a script to break off a response and its connection."""


class Heard:
    """A request that has reached the server, with methods to respond."""

    def __init__(self, scope: Mapping[str, Any], body: bytes, receive: Any, send: Any) -> None:
        self.at = time.monotonic()
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: str = scope["query_string"].decode("ascii")
        self.headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.connection: tuple[str, int] = scope["client"]
        self.body = body
        self.gone_at = 0.0
        self.begun = self.ended = False
        self._receive = receive
        self._send = send

    @property
    def id(self) -> Any:
        return json.loads(self.body).get("id")

    @property
    def name(self) -> str:
        """The method of the message, or the HTTP method if it is not POST."""
        return json.loads(self.body).get("method", "answer") if self.method == "POST" else self.method

    async def begin(self, status: int = 200, kind: str = "", **headers: str) -> None:
        sent = [(name.replace("_", "-"), value) for name, value in headers.items()]
        if kind:
            sent.append(("content-type", kind))
        self.begun = True
        await self._send(
            {"type": "http.response.start", "status": status, "headers": [(a.encode(), b.encode()) for a, b in sent]}
        )

    async def raw(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a complete response with any headers, also repeated ones."""
        self.begun = self.ended = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, status: int = 202, body: bytes = b"", kind: str = "", **headers: str) -> None:
        """Send a complete response."""
        await self.begin(status, kind, content_length=str(len(body)), **headers)
        self.ended = True
        await self._send({"type": "http.response.body", "body": body})

    async def json(self, document: Any, status: int = 200, **headers: str) -> None:
        await self.end(status, json.dumps(document).encode(), "application/json", **headers)

    async def result(self, result: Any = "ok", **headers: str) -> None:
        await self.json(answer(self.id, result), 200, **headers)

    async def event(self, document: Any = None, id: str | None = None, retry: int | None = None) -> None:
        """Send an event; the first one begins the stream."""
        if not self.begun:
            await self.begin(200, EVENTS)
        head = ("" if id is None else f"id: {id}\n") + ("" if retry is None else f"retry: {retry}\n")
        await self.write(f"{head}data: {'' if document is None else json.dumps(document)}\n\n".encode())

    async def until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone_at = time.monotonic()


Play = Callable[[Heard], Awaitable[None]]


class Script:
    """A server controlled by a function."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.heard: list[Heard] = []
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        heard = Heard(scope, body, receive, send)
        self.heard.append(heard)
        await self.play(heard)
        if heard.begun and not heard.ended:
            await send({"type": "http.response.body", "body": b""})

    @property
    def names(self) -> list[str]:
        return [heard.name for heard in self.heard]

    def called(self, name: str) -> list[Heard]:
        return [heard for heard in self.heard if heard.name == name]


class Server(uvicorn.Server):
    """A server in the event loop of the test."""

    async def run_until(self, stop: anyio.Event, port: anyio.Event) -> None:
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        await self.startup()
        port.set()
        await stop.wait()
        self.force_exit = True
        await self.shutdown()


@asynccontextmanager
async def serving(play: Play) -> AsyncGenerator[Script]:
    """Run a script as a server."""
    script, stop, ready = Script(play), anyio.Event(), anyio.Event()
    config = uvicorn.Config(
        script, "127.0.0.1", 0, log_config=None, lifespan="off", access_log=False, timeout_keep_alive=60
    )
    server = Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.run_until, stop, ready)
        await ready.wait()
        script.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        try:
            yield script
        finally:
            stop.set()


@asynccontextmanager
async def talking(play: Play, **options: Any) -> AsyncGenerator[tuple[HttpClientTransport, Script]]:
    """Yield a transport and the server that it is connected to."""
    async with serving(play) as script, http(script.url, **options) as transport:
        yield transport, script


@asynccontextmanager
async def introduced(play: Play, **options: Any) -> AsyncGenerator[tuple[HttpClientTransport, Script]]:
    """Yield a transport with an initialized session, and its server."""
    async with talking(play, **options) as (transport, script):
        await introduce(transport)
        yield transport, script


# --- the client -----------------------------------------------------------------------------------------------


def answer(id_: Any, result: Any = "ok") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def notice(text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}}


def request(id_: int, method: Any = CALL, **attributes: Any) -> Outgoing:
    """Return a request in the form that a session would send."""
    message = Outgoing(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method.name, "params": {}}).encode())
    message.id, message.method, message.headers = id_, method, {} if method is INITIALIZE else VERSION
    message.begins_session = method is INITIALIZE
    vars(message).update(attributes)
    return message


def notification(method: Any = INITIALIZED, **attributes: Any) -> Outgoing:
    message = Outgoing(json.dumps({"jsonrpc": "2.0", "method": method.name}).encode())
    message.method, message.headers, message.opens_stream = method, VERSION, method is INITIALIZED
    vars(message).update(attributes)
    return message


async def messages(transport: HttpClientTransport, count: int) -> list[Any]:
    """Return the next messages: documents parsed from JSON, other objects unchanged."""
    found: list[Any] = []
    while len(found) < count:
        batch = await transport.receive()
        assert batch, "the transport is closed"
        found += [json.loads(one) if isinstance(one, bytes) else one for one in batch]
    assert len(found) == count
    return found


async def ask(transport: HttpClientTransport, message: Outgoing) -> Any:
    """Send a request and return the next message."""
    await transport.send([message])
    (found,) = await messages(transport, 1)
    return found


async def lost(transport: HttpClientTransport, message: Outgoing) -> Exception:
    """Send a request and return the error that arrives in place of a response."""
    found = await ask(transport, message)
    assert isinstance(found, Lost)
    assert found.id == message.id
    assert "\n" not in str(found.error)
    return found.error


async def eventually(fact: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE):
        while not fact():
            await anyio.sleep(0.005)


def go(body: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine with a time limit."""

    async def limited() -> None:
        with anyio.fail_after(PATIENCE):
            await body()

    anyio.run(limited)


def stateful(call: Play) -> Play:
    """Return a script with sessions but without a GET stream; `call` handles tool calls and resumed streams."""

    async def play(heard: Heard) -> None:
        if heard.name == "initialize":
            await heard.result(**SESSION)
        elif heard.name == "GET" and "last-event-id" not in heard.headers:
            await heard.end(405)
        elif heard.name in ("GET", "tools/call"):
            await call(heard)
        else:
            await heard.end()

    return play


async def introduce(transport: HttpClientTransport) -> None:
    assert await ask(transport, request(0, INITIALIZE)) == answer(0)
    await transport.send([notification()])
