"""Connections in memory whose every message is held against the schema of its revision."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from inspect import isawaitable
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

import anyio
import jsonschema_rs
import pytest

from mcp_bindgen.runtime import Client, MethodNotFound, ProtocolError, Server, Transport, serve
from mcp_bindgen.runtime.protocol.events import (
    Answered,
    CancelRequested,
    Event,
    Notified,
    Progressed,
    Rejected,
    Requested,
)
from mcp_bindgen.runtime.protocol.methods import Role
from mcp_bindgen.runtime.protocol.peer import Peer, State
from mcp_bindgen.runtime.protocol.revision import Dispatcher
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Lost, Oversized
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.stdio import Pipes
from mcp_bindgen.spec import Store
from tests.support.effort import HANG_SECONDS
from tests.support.meta_keys import CLIENT_CAPABILITIES, CLIENT_INFO, VERSION

STATEFUL = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
ERROR_NEEDS_ID = STATEFUL[:-1]
"""The revisions whose schema has no error without an id, though JSON-RPC demands one for what cannot be read."""

Arguments = ParamSpec("Arguments")
AnyClient = TypeVar("AnyClient", bound=Client)
AnyEvent = TypeVar("AnyEvent")


def bindings(revision: str) -> ModuleType:
    """The package of a revision."""
    return import_module(f"mcp_bindgen.v{revision.replace('-', '_')}")


def bounded(
    seconds: float = HANG_SECONDS,
) -> Callable[[Callable[Arguments, Awaitable[None]]], Callable[Arguments, None]]:
    """Makes a test of a coroutine function, which fails when it takes too long.

    `tests/conftest.py` does this for each test that is a coroutine function. Needed are only other limits, and
    functions that are no test themselves or that Hypothesis calls.
    """

    def decorate(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
        @wraps(test)
        def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
            async def main() -> None:
                with anyio.fail_after(seconds):
                    await test(*arguments, **named)

            anyio.run(main)

        return run

    return decorate


# --- schemas --------------------------------------------------------------------------------------------------


class Oracle:
    """Says what the schema of a revision thinks of a message.

    Args:
        revision: The revision.
    """

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.definitions = dict(Store().effective(revision).definitions)
        self.methods = bindings(revision).methods.METHODS
        self.messages = {
            definition["properties"]["method"]["const"]: name
            for name, definition in self.definitions.items()
            if name.endswith(("Request", "Notification"))
            and "const" in definition.get("properties", {}).get("method", {})
        }

    @cache  # noqa: B019 - there is one oracle for each revision
    def validator(self, name: str) -> Any:
        """Validates a definition."""
        return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": self.definitions})

    def problems(self, name: str, document: Any) -> list[str]:
        """Say why `document` is not a `name`."""
        return [
            f"{name}: {error.message} at {'/'.join(map(str, error.instance_path))}: {json.dumps(document)[:500]}"
            for error in self.validator(name).iter_errors(document)
        ]

    def message(self, message: Any) -> list[str]:
        """Return what is wrong with a message as far as it can be told from itself."""
        if isinstance(message, list):
            inner = [problem for part in message for problem in self.message(part)]
            return self.problems("JSONRPCMessage", message) + inner
        nameless = isinstance(message, dict) and "error" in message and "id" not in message
        whole = {**message, "id": 0} if nameless and self.revision in ERROR_NEEDS_ID else message
        found = self.problems("JSONRPCMessage", whole)
        method = message.get("method")
        if method in self.messages:
            found += self.problems(self.messages[method], message)
            if ("id" in message) != (self.methods[method].kind == "request"):
                found.append(f"{method}: requests have an id, notifications have none: {json.dumps(message)[:500]}")
        return found

    def result(self, method: str, result: Any) -> list[str]:
        """Return what is wrong with the result of a method; nothing is known of the methods of others."""
        if method not in self.methods:
            return []
        described = self.methods[method]
        names = [answer.__name__ for answer in (described.result, *described.alternatives)]
        return [] if any(self.validator(name).is_valid(result) for name in names) else self.problems(names[0], result)


@cache
def oracle(revision: str) -> Oracle:
    """The oracle of a revision."""
    return Oracle(revision)


# --- transports -----------------------------------------------------------------------------------------------


def strictly(data: bytes) -> Any:
    """`data` as JSON, without NaN and other liberties of Python."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(data.decode(), parse_constant=refuse)


class Recording(Transport):
    """A transport that keeps what travels over it, and whose `close` fails when something we sent breaks the schema.

    Args:
        transport: Does the work.
        revisions: Whose schema counts. Of several, an answer belongs to the stateless one that its request names, else
            to the first; other messages may belong to any.

    Attributes:
        sent: The messages that were sent, parsed.
        received: The messages that came and could be parsed.
        violations: What is wrong with the messages that were sent.
    """

    def __init__(self, transport: Transport, *revisions: str) -> None:
        self._transport = transport
        self._oracles = [oracle(revision) for revision in revisions]
        self._asked: dict[Any, tuple[str, Oracle]] = {}
        self.sent: list[Any] = []
        self.received: list[Any] = []
        self.violations: list[str] = []

    async def receive(self) -> Sequence[bytes | Oversized | Lost]:
        messages = await self._transport.receive()
        for data in messages:
            if isinstance(data, bytes):
                self._remember(data)
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        assert messages
        for data in messages:
            self._check(data)
        await self._transport.send(messages)

    async def close(self) -> None:
        await self._transport.close()
        self.check()

    def check(self) -> None:
        """Fails when something that we sent breaks the schema."""
        assert not self.violations, "\n".join(self.violations)

    def methods(self) -> list[str]:
        """The methods of the requests and notifications that were sent, in order."""
        return [message["method"] for message in self.sent if isinstance(message, dict) and "method" in message]

    def params(self, method: str) -> list[Any]:
        """The params of the messages of one method that were sent."""
        return [part.get("params") for part in self.sent if isinstance(part, dict) and part.get("method") == method]

    def _remember(self, data: bytes) -> None:
        try:
            message = strictly(data)
        except (ValueError, RecursionError):
            return
        self.received.append(message)
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict) and isinstance(part.get("method"), str) and "id" in part:
                self._asked[json.dumps(part["id"])] = part["method"], self._oracle_of(part)

    def _check(self, data: bytes) -> None:
        if b"\n" in data or b"\r" in data:
            self.violations.append(f"a message spans lines: {data[:500]!r}")
        try:
            message = strictly(data)
        except ValueError as error:
            self.violations.append(f"not JSON: {error}: {data[:500]!r}")
            return
        self.sent.append(message)
        self.violations += sorted((one.message(message) for one in self._oracles), key=len)[0]
        for part in message if isinstance(message, list) else [message]:
            if "result" in part:
                asked = self._asked.get(json.dumps(part["id"]))
                wrong = ["answers nothing"] if asked is None else asked[1].result(asked[0], part["result"])
                self.violations += wrong

    def _oracle_of(self, asked: Any) -> Oracle:
        """Return whose schema counts for the answer to a request."""
        params = asked.get("params") if isinstance(asked, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        stated = meta.get(VERSION) if isinstance(meta, dict) else None
        return next((one for one in self._oracles if one.revision == stated), self._oracles[0])


class Raw:
    """One side of a connection, played by hand.

    Args:
        transport: The way to the other side.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: list[bytes | Oversized | Lost] = []

    async def send(self, *messages: object) -> None:
        """Sends messages: JSON documents, or bytes and what a transport tells of a request as they are."""
        sent: list[Any] = [part if isinstance(part, bytes | Lost) else json.dumps(part).encode() for part in messages]
        await self._transport.send(sent)

    async def receive(self) -> Any:
        """The next message; fails when there is none."""
        if not self._waiting:
            self._waiting += await self._transport.receive()
            assert self._waiting, "the other side closed the connection"
        data = self._waiting.pop(0)
        assert isinstance(data, bytes)
        return strictly(data)

    async def ask(self, message: object) -> Any:
        """Sends one message and gives the next that comes."""
        await self.send(message)
        return await self.receive()

    async def introduce(self, revision: str, capabilities: object = None) -> Any:
        """Does the handshake of a client; gives the answer to `initialize`."""
        answer = await self.ask(initialize(revision, capabilities))
        await self.send(INITIALIZED)
        return answer

    async def welcome(self, capabilities: object = None) -> Any:
        """Does the handshake of a server, in the revision that the client asks for; gives its `initialize`."""
        asked = await self.receive()
        result = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": capabilities or {},
            "serverInfo": {"name": "raw", "version": "0"},
        }
        await self.send(answer(asked["id"], result))
        assert await self.receive() == INITIALIZED
        return asked

    async def close(self) -> None:
        """Hangs up."""
        await self._transport.close()


# --- messages -------------------------------------------------------------------------------------------------


def request(id_: object, method: str, params: object = None) -> dict[str, Any]:
    """A request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, **({} if params is None else {"params": params})}


def notification(method: str, params: object = None) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def answer(id_: object, result: object) -> dict[str, Any]:
    """A result."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def refusal(id_: object, code: int, message: str = "no") -> dict[str, Any]:
    """An error."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def initialize(revision: str, capabilities: object = None, id_: object = 0) -> dict[str, Any]:
    """The first request of a client."""
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": info}
    return request(id_, "initialize", params)


INITIALIZED = notification("notifications/initialized")


def stating(capabilities: object = None, *, revision: object = STATELESS, **more: object) -> dict[str, Any]:
    """Return what a stateless request says of itself in its `_meta`."""
    info = {"name": "test", "version": "1"}
    return {VERSION: revision, CLIENT_CAPABILITIES: capabilities or {}, CLIENT_INFO: info, **more}


def lone(id_: object, method: str, capabilities: object = None, **params: object) -> dict[str, Any]:
    """A stateless request, which says all there is to know."""
    return request(id_, method, {"_meta": stating(capabilities), **params})


# --- connections ----------------------------------------------------------------------------------------------


def pipe_pair(limit: int = MAX_MESSAGE) -> tuple[Transport, Transport]:
    """Two ends of a connection through the kernel; for use inside of an event loop."""
    there, back = os.pipe(), os.pipe()
    return Pipes(back[0], there[1], limit), Pipes(there[0], back[1], limit)


@dataclass
class Connection(Generic[AnyClient]):
    """A client that is connected to a server.

    Attributes:
        client: The client.
        ours: What the client sends and receives.
        theirs: What the server sends and receives.
    """

    client: AnyClient
    ours: Recording
    theirs: Recording


@asynccontextmanager
async def connected(
    client: AnyClient, *servers: Server, revisions: Sequence[str] | None = None, exactly: bool = False
) -> AsyncGenerator[Connection[AnyClient]]:
    """Connects a client to servers; afterwards both sides must have kept to the schema of the client's revision."""
    left, right = pair()
    ours, theirs = Recording(left, client.revision), Recording(right, client.revision)
    async with (
        running(serve(theirs, *servers, revisions=revisions)),
        client.connected(ours, exactly=exactly) as connected,
    ):
        yield Connection(connected, ours, theirs)
    ours.check()
    theirs.check()


def own(*servers: Server) -> list[str]:
    """The revisions that servers are written for, to serve these and no others."""
    return [server.revision for server in servers]


@asynccontextmanager
async def played(*servers: Server, revisions: Sequence[str] | None = None) -> AsyncGenerator[tuple[Raw, Recording]]:
    """Servers, for a client that is played by hand, and what they send; by default in their own revisions alone."""
    left, right = pair()
    served = own(*servers) if revisions is None else revisions
    recording = Recording(right, *served)
    async with running(serve(recording, *servers, revisions=served)):
        try:
            yield Raw(left), recording
        finally:
            await left.close()
    recording.check()


@asynccontextmanager
async def scripted(
    client: AnyClient, script: Callable[[Raw], Coroutine[Any, Any, None]], wire: str = ""
) -> AsyncGenerator[AnyClient]:
    """Connects a client to a server that `script` plays, of the client's revision unless `wire` names another one."""
    left, right = pair()
    raw, ours = Raw(right), Recording(left, wire or client.revision)
    async with running(script(raw)), client.connected(ours) as connected:
        yield connected
    await raw.close()
    ours.check()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Runs `work` beside the block, and waits for its end after the block; a block that fails ends it."""
    failures: list[Exception] = []

    async def go() -> None:
        try:
            await work
        except Exception as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        try:
            yield
        except Exception as error:  # the task group would wrap it
            failures.insert(0, error)
            tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Waits for a condition to hold; the limit is for what hangs, not for what is slow."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.005)


async def refused(call: Awaitable[object], kind: Any = ProtocolError, match: str | None = None) -> Any:
    """Return the error of a call, of the expected class or classes."""
    with pytest.raises(kind, match=match) as caught:
        await call
    return caught.value


# --- peers ----------------------------------------------------------------------------------------------------


def takes(revision: str, role: Role, target: type | None = None) -> Dispatcher:
    """Return what a side of a revision takes."""
    package: Any = bindings(revision)
    kind: Any = target or (package.Server if role == "server" else package.Client)
    dispatcher: Dispatcher = kind.dispatcher
    return dispatcher.extended(kind)


async def dispatch(dispatcher: Dispatcher, target: object, method: str, params: bytes | str | None, ctx: object) -> Any:
    """Read params, call the handler of `target` and return its result."""
    route = {**dispatcher.routes, **dispatcher.embedded}.get(method)
    if route is None:
        raise MethodNotFound(method)
    if route.method.kind == "notification" and not dispatcher.is_handled(route, target):
        return None
    handler = dispatcher.handler(route, target)
    arguments = () if route.method.params is None else (route.read(params),)
    answer = handler(*arguments, ctx)
    return await answer if isawaitable(answer) else answer


def feed(peer: Peer, message: object) -> list[Event]:
    """Return what a message means: a JSON document, or bytes as they are."""
    return peer.receive(message if isinstance(message, bytes) else json.dumps(message).encode())


def only(kind: type[AnyEvent], events: list[Event]) -> AnyEvent:
    """Return the one event, which has to be of a kind."""
    (event,) = events
    assert isinstance(event, kind)
    return event


def introduce(peer: Peer, revision: str) -> None:
    """Does the handshake with a server."""
    asked = only(Requested, feed(peer, initialize(revision)))
    peer.negotiated()
    peer.respond(asked.id, {})
    assert [type(event) for event in feed(peer, INITIALIZED)] == [Notified]
    assert peer.state is State.READY


def ready(revision: str, role: Role = "server", target: type | None = None) -> Peer:
    """A peer whose handshake is done."""
    peer = Peer(role, {revision: takes(revision, role, target)})
    if role == "server":
        introduce(peer, revision)
    else:
        peer.negotiated(revision)
    return peer


class _Slow(Peer):
    def _receive_quickly(self, data: bytes) -> Event | None:
        return None


def copied(peer: Peer) -> Peer:
    """A peer to which the same was said."""
    twin = copy.copy(peer)
    twin.handling, twin.pending = dict(peer.handling), dict(peer.pending)
    return twin


def slow(peer: Peer) -> Peer:
    """A peer to which the same was said, but which never guesses."""
    twin = copied(peer)
    twin.__class__ = _Slow
    return twin


def essence(events: list[Event]) -> list[object]:
    """Events in a form that can be compared."""
    found: list[object] = []
    for event in events:
        match event:
            case Requested(id_, route, params):
                found.append(("asked", type(id_), id_, route.method.name, type(params), params))
            case Notified(route, params):
                found.append(("told", route.method.name, type(params), params))
            case Answered(pending, result, error):
                found.append(("answered", pending.id, type(result), result, str(error)))
            case Progressed(pending, params):
                found.append(("progress", pending.id, params))
            case CancelRequested(id_, reason):
                found.append(("cancel", type(id_), id_, reason))
            case Rejected(error, data):
                found.append(("rejected", error.code, str(error), data))
    return found


def spelled(document: Any, dice: random.Random) -> str:
    """One of the many texts of a JSON document: other whitespace, order and escapes."""

    def space() -> str:
        return dice.choice(["", "", "", " ", "\t", "\r\n ", "  "])

    if isinstance(document, dict):
        members = [f"{spelled(name, dice)}{space()}:{space()}{spelled(part, dice)}" for name, part in document.items()]
        dice.shuffle(members)
        return "{" + space() + f"{space()},{space()}".join(members) + space() + "}"
    if isinstance(document, list):
        return "[" + space() + ",".join(space() + spelled(part, dice) for part in document) + space() + "]"
    if isinstance(document, str):
        return '"' + "".join(_character(one, dice) for one in document) + '"'
    return json.dumps(document)


def _character(one: str, dice: random.Random) -> str:
    if one in '"\\' or one < " ":
        return json.dumps(one)[1:-1]
    if dice.random() < 0.02:
        units = one.encode("utf-16-be")
        return "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))
    return "\\/" if one == "/" and dice.random() < 0.1 else one
