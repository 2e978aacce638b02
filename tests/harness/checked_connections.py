"""Connections in memory that validate every message against the schema of its revision."""

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
from mcp_bindgen.runtime.protocol.connection import Connection, State
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
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Dispatchers
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Lost, Oversized
from mcp_bindgen.runtime.session.endpoint import all_served
from mcp_bindgen.runtime.session.targets import Provider
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.pipes import Pipes
from mcp_bindgen.spec import Store
from tests.harness.effort import HANG_SECONDS
from tests.harness.meta_keys import CLIENT_CAPABILITIES, CLIENT_INFO, VERSION

STATEFUL = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
ERROR_NEEDS_ID = STATEFUL[:-1]
"""Revisions whose schema requires an id in errors, though JSON-RPC has errors without one for unreadable messages."""

Arguments = ParamSpec("Arguments")
AnyClient = TypeVar("AnyClient", bound=Client)
AnyEvent = TypeVar("AnyEvent")


def bindings(revision: str) -> ModuleType:
    """Return the package of a revision."""
    return import_module(f"mcp_bindgen.v{revision.replace('-', '_')}")


def bounded(
    seconds: float = HANG_SECONDS,
) -> Callable[[Callable[Arguments, Awaitable[None]]], Callable[Arguments, None]]:
    """Turn a coroutine function into a test that fails after some seconds.

    `tests/conftest.py` does this for every test that is a coroutine function. Use it only for another time limit, for
    helper functions, and for functions that Hypothesis calls.
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
    """Validator of the messages of a revision.

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
        """Return the validator of a definition."""
        return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": self.definitions})

    def problems(self, name: str, document: Any) -> list[str]:
        """Return the reasons why `document` is not a valid `name`."""
        return [
            f"{name}: {error.message} at {'/'.join(map(str, error.instance_path))}: {json.dumps(document)[:500]}"
            for error in self.validator(name).iter_errors(document)
        ]

    def message(self, message: Any) -> list[str]:
        """Return the problems of a message, without knowledge of the request that it answers."""
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
        """Return the problems of the result of a method; results of unknown methods have none."""
        if method not in self.methods:
            return []
        described = self.methods[method]
        names = [answer.__name__ for answer in (described.result, *described.alternatives)]
        return [] if any(self.validator(name).is_valid(result) for name in names) else self.problems(names[0], result)


@cache
def oracle(revision: str) -> Oracle:
    """Return the oracle of a revision."""
    return Oracle(revision)


# --- transports -----------------------------------------------------------------------------------------------


def strictly(data: bytes) -> Any:
    """Parse JSON strictly: reject NaN and other constants that only Python accepts."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(data.decode(), parse_constant=refuse)


class Recording(Transport):
    """Transport that records its messages; `close` fails if a sent message violates the schema.

    Args:
        transport: The transport to wrap.
        revisions: The revisions to validate against. With several, a response is validated against the stateless
            revision that its request declares, else against the first one; other messages may be valid in any of them.

    Attributes:
        sent: The messages that were sent, parsed.
        received: The messages that arrived and could be parsed.
        violations: Problems of the messages that were sent.
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
        """Fail if a sent message violates the schema."""
        assert not self.violations, "\n".join(self.violations)

    def methods(self) -> list[str]:
        """Return the methods of the requests and notifications that were sent, in order."""
        return [message["method"] for message in self.sent if isinstance(message, dict) and "method" in message]

    def params(self, method: str) -> list[Any]:
        """Return the params of all sent messages of a method."""
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
        """Return the oracle for the response to a request."""
        params = asked.get("params") if isinstance(asked, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        stated = meta.get(VERSION) if isinstance(meta, dict) else None
        return next((one for one in self._oracles if one.revision == stated), self._oracles[0])


class Raw:
    """One side of a connection, controlled by the test message by message.

    Args:
        transport: The transport to the other side.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: list[bytes | Oversized | Lost] = []

    async def send(self, *messages: object) -> None:
        """Send messages: JSON documents, or raw bytes and `Lost` objects unchanged."""
        sent: list[Any] = [part if isinstance(part, bytes | Lost) else json.dumps(part).encode() for part in messages]
        await self._transport.send(sent)

    async def receive(self) -> Any:
        """Return the next message; fail if the other side has closed the connection."""
        if not self._waiting:
            self._waiting += await self._transport.receive()
            assert self._waiting, "the other side closed the connection"
        data = self._waiting.pop(0)
        assert isinstance(data, bytes)
        return strictly(data)

    async def ask(self, message: object) -> Any:
        """Send one message and return the next message that arrives."""
        await self.send(message)
        return await self.receive()

    async def introduce(self, revision: str, capabilities: object = None) -> Any:
        """Do the handshake as a client; return the response to `initialize`."""
        answer = await self.ask(initialize(revision, capabilities))
        await self.send(INITIALIZED)
        return answer

    async def welcome(self, capabilities: object = None) -> Any:
        """Do the handshake as a server, in the revision that the client requests; return its `initialize` request."""
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
        """Close the connection."""
        await self._transport.close()


# --- messages -------------------------------------------------------------------------------------------------


def request(id_: object, method: str, params: object = None) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, **({} if params is None else {"params": params})}


def notification(method: str, params: object = None) -> dict[str, Any]:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def answer(id_: object, result: object) -> dict[str, Any]:
    """Return a response with a result."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def refusal(id_: object, code: int, message: str = "no") -> dict[str, Any]:
    """Return an error response."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}


def initialize(revision: str, capabilities: object = None, id_: object = 0) -> dict[str, Any]:
    """Return an `initialize` request."""
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": info}
    return request(id_, "initialize", params)


INITIALIZED = notification("notifications/initialized")


def stating(capabilities: object = None, *, revision: object = STATELESS, **more: object) -> dict[str, Any]:
    """Return the `_meta` of a stateless request."""
    info = {"name": "test", "version": "1"}
    return {VERSION: revision, CLIENT_CAPABILITIES: capabilities or {}, CLIENT_INFO: info, **more}


def lone(id_: object, method: str, capabilities: object = None, **params: object) -> dict[str, Any]:
    """Return a stateless request with its complete `_meta`."""
    return request(id_, method, {"_meta": stating(capabilities), **params})


# --- connections ----------------------------------------------------------------------------------------------


def pipe_pair(limit: int = MAX_MESSAGE) -> tuple[Transport, Transport]:
    """Return two connected transports over pipes; call this inside an event loop."""
    there, back = os.pipe(), os.pipe()
    return Pipes(back[0], there[1], limit), Pipes(there[0], back[1], limit)


@dataclass
class Connected(Generic[AnyClient]):
    """A client that is connected to a server.

    Attributes:
        client: The connected client.
        ours: Recording of the client's side.
        theirs: Recording of the server's side.
    """

    client: AnyClient
    ours: Recording
    theirs: Recording


@asynccontextmanager
async def connected(
    client: AnyClient, *servers: Server | Provider, revisions: Sequence[str] | None = None, exactly: bool = False
) -> AsyncGenerator[Connected[AnyClient]]:
    """Connect a client to servers; afterwards check that both sides kept to the schema of the client's revision."""
    left, right = pair()
    ours, theirs = Recording(left, client.revision), Recording(right, client.revision)
    async with (
        running(serve(theirs, *servers, revisions=revisions)),
        client.connected(ours, exactly=exactly) as connected,
    ):
        yield Connected(connected, ours, theirs)
    ours.check()
    theirs.check()


def own(*servers: Server | Provider) -> list[str]:
    """Return the revisions that servers are written for, to serve only these."""
    return [revision.name for one in all_served(servers) for revision in one.revisions()]


@asynccontextmanager
async def played(
    *servers: Server | Provider, revisions: Sequence[str] | None = None
) -> AsyncGenerator[tuple[Raw, Recording]]:
    """Run servers; yield a raw client and a recording of the servers, by default only in their own revisions."""
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
    """Connect a client to a server that `script` plays, in the client's revision or in `wire`."""
    left, right = pair()
    raw, ours = Raw(right), Recording(left, wire or client.revision)
    async with running(script(raw)), client.connected(ours) as connected:
        yield connected
    await raw.close()
    ours.check()


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run `work` next to the block and wait for it after the block; cancel it if the block raises."""
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
    """Wait for a condition; the time limit only detects hanging tests."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.005)


async def refused(call: Awaitable[object], kind: Any = ProtocolError, match: str | None = None) -> Any:
    """Return the error that a call raises, of the expected class or classes."""
    with pytest.raises(kind, match=match) as caught:
        await call
    return caught.value


# --- peers ----------------------------------------------------------------------------------------------------


def dispatchers_of(*made: Dispatcher) -> Dispatchers:
    """Return the mapping of dispatchers, the best last."""
    by_name = {one.revision.name: one for one in made}
    return Dispatchers({name: one.revision.era.is_stateless for name, one in by_name.items()}, by_name.__getitem__)


def takes(revision: str, role: Role, target: type | None = None) -> Dispatcher:
    """Return the dispatcher for the messages that a role receives in a revision."""
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


def feed(connection: Connection, message: object) -> list[Event]:
    """Return the events of a message, which is a JSON document or raw bytes."""
    return list(connection.read(message if isinstance(message, bytes) else json.dumps(message).encode()))


def only(kind: type[AnyEvent], events: list[Event]) -> AnyEvent:
    """Return the only event after a check of its class."""
    (event,) = events
    assert isinstance(event, kind)
    return event


def introduce(connection: Connection, revision: str) -> None:
    """Do the handshake with a server."""
    asked = only(Requested, feed(connection, initialize(revision)))
    connection.negotiated()
    connection.respond(asked.id, {})
    assert [type(event) for event in feed(connection, INITIALIZED)] == [Notified]
    assert connection.state is State.READY


def ready(revision: str, role: Role = "server", target: type | None = None) -> Connection:
    """Return a peer after its handshake."""
    connection = Connection(role, dispatchers_of(takes(revision, role, target)))
    if role == "server":
        introduce(connection, revision)
    else:
        connection.dispatcher = connection.dispatchers[revision]
        connection.negotiated()
    return connection


class _Slow(Connection):
    def _receive_quickly(self, data: bytes) -> Event | None:
        return None


def copied(connection: Connection) -> Connection:
    """Return a copy of a peer in the same state."""
    twin = copy.copy(connection)
    twin.handling, twin.pending = dict(connection.handling), dict(connection.pending)
    return twin


def slow(connection: Connection) -> Connection:
    """Return a copy of a peer that never uses the fast path for parsing."""
    twin = copied(connection)
    twin.__class__ = _Slow
    return twin


def essence(events: list[Event]) -> list[object]:
    """Return events in a comparable form."""
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
    """Return a random serialization of a JSON document, with varied whitespace, order and escapes."""

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
