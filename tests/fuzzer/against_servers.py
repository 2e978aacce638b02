"""Fuzz our servers with mutated messages in order: in memory, over stdio, and over HTTP+SSE."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio

from mcp_bindgen.runtime import serve
from mcp_bindgen.runtime.transports.memory import pair
from tests.harness.checked_connections import INITIALIZED, initialize, lone, notification, request
from tests.harness.commands import ROOT

from .checker import Checker
from .failure import Violation
from .mutations import mutated
from .peers import server
from .traffic import traffic
from .trial import Trial
from .wire import Gone, Wire, encode

PATIENCE = 20.0
"""Seconds within which all required responses arrive, even on a busy machine."""

HEAD = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
WITH_BATCHES = {"2025-03-26"}
CAPABILITIES = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}


class Connection(Protocol):
    """One side of a connection that keeps the order of messages."""

    async def send(self, message: bytes) -> None:
        """Send a message."""
        ...

    async def receive(self) -> list[bytes]:
        """Return the next messages; none if the other side has closed the connection."""
        ...


# --- connections to a server ----------------------------------------------------------------------------------


class Direct:
    """Connection in memory."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    async def send(self, message: bytes) -> None:
        await self._transport.send([message])

    async def receive(self) -> list[bytes]:
        return [*await self._transport.receive()]


class Lines:
    """Connection over pipes or a socket, one message per line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: bytes) -> None:
        self._writer.write(message + b"\n")
        await self._writer.drain()

    async def receive(self) -> list[bytes]:
        line = await self._reader.readline()
        return [line] if line else []


class Posts:
    """Connection over HTTP+SSE."""

    def __init__(self, port: int, events: AsyncIterator[tuple[bytes, bytes]], endpoint: bytes) -> None:
        self._wire, self._events, self._endpoint = Wire(port), events, endpoint

    async def send(self, message: bytes) -> None:
        response = await self._wire.send(encode(b"POST", self._endpoint, HEAD, message))
        said = b"".join([part async for part in response.parts()])
        if response.status != 202:
            raise Violation(f"a message was refused with {response.status} {said[:200]!r}: {message[:500]!r}")

    async def receive(self) -> list[bytes]:
        try:
            return [(await anext(self._events))[1]]
        except (Gone, StopAsyncIteration):
            return []

    def close(self) -> None:
        self._wire.close()


@asynccontextmanager
async def in_memory(revision: str) -> AsyncGenerator[Connection]:
    """Connect to a server in this process."""
    ours, theirs = pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, theirs, server(revision))
        try:
            yield Direct(ours)
        finally:
            with anyio.CancelScope(shield=True):
                await ours.close()


@asynccontextmanager
async def over_stdio(revision: str) -> AsyncGenerator[tuple[Connection, int]]:
    """Start a server over stdio; yield the connection and the process id."""
    with tempfile.TemporaryFile() as log:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.fuzzer.peers", revision),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            limit=1 << 26,
        )
        assert running.stdin
        assert running.stdout
        try:
            yield Lines(running.stdout, running.stdin), running.pid
            running.stdin.close()
            async with asyncio.timeout(PATIENCE):
                status = await running.wait()
            if status:
                raise Violation(f"the process ended with status {status}")
        except BaseException as error:
            log.seek(0)
            error.add_note(log.read().decode("utf-8", "replace")[-2000:])
            raise
        finally:
            if running.returncode is None:
                running.kill()
                await running.wait()


@asynccontextmanager
async def over_sse(port: int) -> AsyncGenerator[Connection]:
    """Open an event stream; yield a connection that posts to the endpoint of its first event."""
    wire = Wire(port)
    stream = await wire.send(encode(b"GET", b"/sse", [*HEAD, (b"accept", b"text/event-stream")]))
    events = stream.events()
    _, endpoint = await anext(events)
    connection = Posts(port, events, endpoint)
    try:
        yield connection
    finally:
        connection.close()
        wire.close()


# --- a round --------------------------------------------------------------------------------------------------


def sentinel(trial: Trial, name: str) -> dict[str, Any]:
    """Return a valid request that gets a response regardless of earlier messages."""
    return lone(name, "server/discover") if trial.stateless else request(name, "ping")


class Round:
    """Messages for a server on a connection, until all required responses have arrived.

    Args:
        trial: The messages to send.
        connection: The connection to the server.
        checker: Checks the server's messages.
    """

    def __init__(self, trial: Trial, connection: Connection, checker: Checker) -> None:
        self._trial, self._connection, self._checker = trial, connection, checker
        self._changed = asyncio.Event()
        self._sending = asyncio.Lock()
        self._dice = trial.dice("answers")
        self._results = traffic(trial.revision).results()

    async def run(self, *, introduce: bool) -> None:
        """Send all messages of the trial. Raises `Violation`."""
        async with asyncio.timeout(3 * PATIENCE), asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read())
            if introduce:
                await self._send(initialize(self._trial.revision, CAPABILITIES, "hello"))
                await self._until("hello")
                await self._send(INITIALIZED)
            for _, message in self._trial.messages():
                await self._tell(message)
            await self._send(sentinel(self._trial, "end"))
            await self._until(None)
            for id_ in self._checker.endless():
                await self._send(notification("notifications/cancelled", {"requestId": id_}))
            await self._send(sentinel(self._trial, "the very end"))
            await self._until(None)
            self._checker.settled()
            reading.cancel()

    async def _send(self, message: Any) -> None:
        await self._tell(json.dumps(message).encode())

    async def _tell(self, data: bytes) -> None:
        async with self._sending:
            for message in data.split(b"\n") if isinstance(self._connection, Lines) else [data]:
                self._checker.sent(message)
            await self._connection.send(data)

    async def _until(self, id_: str | None) -> None:
        """Wait for the response to a request, or to all requests."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self._checker.outstanding if id_ is None else id_ in self._checker.outstanding:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Violation(f"not answered: {dict(self._checker.outstanding)}") from None

    async def _read(self) -> None:
        async with asyncio.TaskGroup() as answering:
            while True:
                messages = await self._connection.receive()
                if not messages:
                    raise Violation("the server ended the connection")
                for message in messages:
                    self._checker.received(message)
                for asked in self._checker.take_requests():
                    answering.create_task(self._answer(asked))
                self._changed.set()

    async def _answer(self, asked: Any) -> None:
        """Answer a request of the server, correctly or with a mutated response."""
        result = self._dice.choice(self._results.get(asked["method"], [{}]))
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        await self._tell(mutated(self._dice, [answer]) if self._dice.random() < 0.5 else json.dumps(answer).encode())


# --- subjects -------------------------------------------------------------------------------------------------


class Memory:
    """Servers in this process, a new server for each round; some get no `initialize`."""

    pid = os.getpid()

    async def round(self, trial: Trial) -> None:
        """Run one round. Raises `Violation`."""
        introduce = not trial.stateless and trial.dice("greeting").random() < 0.8
        async with in_memory(trial.revision) as connection:
            await Round(trial, connection, checker(trial, greeted=introduce)).run(introduce=introduce)


class Stdio:
    """Child process, with one connection for all rounds."""

    def __init__(self, trial: Trial, connection: Connection, pid: int) -> None:
        self.pid = pid
        self._connection, self._checker = connection, checker(trial)
        self._is_new = not trial.stateless

    async def round(self, trial: Trial) -> None:
        """Run one round. Raises `Violation`."""
        introduce, self._is_new = self._is_new, False
        await Round(trial, self._connection, self._checker).run(introduce=introduce)


class Sse:
    """Process that serves HTTP+SSE, with a new stream for each round."""

    def __init__(self, port: int, pid: int) -> None:
        self.pid = pid
        self._port = port

    async def round(self, trial: Trial) -> None:
        """Run one round. Raises `Violation`."""
        introduce = trial.dice("greeting").random() < 0.8
        async with over_sse(self._port) as connection:
            await Round(trial, connection, checker(trial, greeted=introduce)).run(introduce=introduce)


def checker(trial: Trial, *, greeted: bool = True) -> Checker:
    """Return the checker of a trial's server."""
    return Checker([trial.revision], (trial.revision in WITH_BATCHES) if greeted or trial.stateless else None)
