"""Fuzz our clients with mutated messages over every transport: each call ends, and no task is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import h11

from mcp_bindgen.http.client.legacy_sse import sse
from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime import ConnectionClosed, ProtocolError, RequestTimeout
from mcp_bindgen.runtime.protocol.errors import CapabilityMissing, UnexpectedAnswer, UnsupportedRevision
from mcp_bindgen.runtime.protocol.limits import Options
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.stdio import stdio

from . import mutations
from .against_servers import PATIENCE, WITH_BATCHES, Connection, Direct, Lines
from .checker import Checker
from .failure import Violation
from .peers import client
from .traffic import calls, traffic
from .trial import Trial

CALLERS = 16
IN_TIME = Options(timeout=0.25, total_timeout=1.0)
PATIENTLY = Options(timeout=PATIENCE)
EXPECTED = (CapabilityMissing, ConnectionClosed, ProtocolError, RequestTimeout, UnexpectedAnswer, UnsupportedRevision)
"""Errors that a call may raise after an invalid response."""

RELAY = Path(__file__).with_name("relay.py")
STATUSES = [100, 102, 200, 201, 202, 204, 206, 301, 304, 307, 400, 401, 404, 405, 429, 500, 503, 999]
_NO_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")
SESSION = b"mcp-session-id: fuzzer\r\n"


class Adversary:
    """Hostile server: chooses messages for a client and checks the client's messages.

    Args:
        trial: The messages of the server.

    Attributes:
        number: Number of mutated messages so far.
        kind: True if it sends only correct responses from now on.
        found: First violation of the client.
        judge: Checks the client's messages.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.number = 0
        self.kind = False
        self.found: Violation | None = None
        self._recorded = traffic(trial.revision)
        self._results = self._recorded.results()
        self.reset()

    def reset(self) -> None:
        """Begin a new connection."""
        trial = self.trial
        self.judge = Checker([trial.revision], trial.revision in WITH_BATCHES, is_asked=not trial.stateless)

    @property
    def over(self) -> bool:
        """True if all messages were sent or a violation was found."""
        return self.found is not None or self.number >= self.trial.count

    def replies(self, asked: Any, *, certain: bool = True) -> list[bytes]:
        """Return the messages after a request: mutated messages, and in most cases the correct response.

        Args:
            asked: The request.
            certain: Whether the client will read all of it.
        """
        known = self._results.get(asked["method"]) or [{}]
        right: Any = {"jsonrpc": "2.0", "id": asked["id"], "result": known[asked["id"] % len(known)]}
        found: list[bytes] = []
        if not self.kind and not self.over:
            dice = self.trial.dice(f"reply {self.number}")
            is_first = asked["method"] in ("initialize", "server/discover")
            for _ in range(dice.choice([0, 0, 0, 0, 0, 1]) if is_first else dice.choice([1, 1, 2, 5])):
                message = mutations.mutated(dice, [right, right, right, *self._recorded.server])
                if self.trial.only is None or self.number in self.trial.only:
                    found.append(message)
                self.number += 1
            if dice.random() < 0.9:
                found.append(json.dumps(right).encode())
        else:
            found.append(json.dumps(right).encode())
        if self.trial.transport != "memory":  # transports end messages at line ends
            found = [message.translate(_NO_LINE_ENDS) for message in found]
        for message in found:
            self.judge.sent(message, certain=certain)
        return found

    def hear(self, data: bytes) -> list[Any]:
        """Check a message of the client; return its requests."""
        try:
            self.judge.received(data)
        except Violation as violation:
            self.found = violation
        return self.judge.take_requests()

    async def serve(self, connection: Connection) -> None:
        """Act as the server of a connection."""
        while messages := await connection.receive():
            for data in messages:
                for asked in self.hear(data):
                    for reply in self.replies(asked):
                        await connection.send(reply)


# --- transports of a client -----------------------------------------------------------------------------------


@asynccontextmanager
async def _memory(adversary: Adversary) -> AsyncGenerator[Any]:
    ours, theirs = pair()
    serving = asyncio.create_task(adversary.serve(Direct(theirs)))
    try:
        yield ours
    finally:
        await _stop(serving)
        await theirs.close()


@asynccontextmanager
async def _stdio(adversary: Adversary) -> AsyncGenerator[Any]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await adversary.serve(Lines(reader, writer))

    async with _listening(serve) as port, stdio(sys.executable, "-S", str(RELAY), str(port)) as transport:
        yield transport


@asynccontextmanager
async def _http(adversary: Adversary) -> AsyncGenerator[Any]:
    site = _Site(adversary)
    async with _listening(site.streamable) as port, http(f"http://127.0.0.1:{port}/mcp", timeout=0.5) as transport:
        yield transport


@asynccontextmanager
async def _sse(adversary: Adversary) -> AsyncGenerator[Any]:
    site = _Site(adversary)
    async with _listening(site.legacy) as port, sse(f"http://127.0.0.1:{port}/sse", timeout=0.5) as transport:
        yield transport


WAYS: dict[str, Callable[[Adversary], Any]] = {"memory": _memory, "stdio": _stdio, "http": _http, "sse": _sse}


@asynccontextmanager
async def _listening(serve: Callable[..., Awaitable[None]]) -> AsyncGenerator[int]:
    """Accept connections; yield the port."""
    tasks: list[asyncio.Task[None]] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(converse(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", limit=1 << 26)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await _stop(*tasks)


async def _stop(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Site:
    """HTTP server that parses requests with h11 and may write any bytes."""

    def __init__(self, adversary: Adversary) -> None:
        self._adversary = adversary
        self._dice = adversary.trial.dice("http")
        self._stream: asyncio.StreamWriter | None = None
        self._unsure: set[bytes] = set()

    async def _requests(self, reader: asyncio.StreamReader) -> AsyncGenerator[tuple[bytes, bytes]]:
        """Yield the method and the body of each request."""
        parser = h11.Connection(h11.SERVER)
        method, body = b"", b""
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(1 << 16)
                if not data:
                    return
                parser.receive_data(data)
            elif isinstance(event, h11.Request):
                method, body = event.method, b""
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                yield method, body
                parser = h11.Connection(h11.SERVER)  # h11 does not see the responses, so each request gets a new parser

    async def streamable(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve Streamable HTTP on a connection."""
        with suppress(ConnectionError):
            async for method, body in self._requests(reader):
                is_again = body in self._unsure  # clients resend possibly lost messages other than requests
                asked = self._adversary.hear(body) if method == b"POST" and not is_again else []
                if method == b"GET" and self._dice.random() < 0.5:
                    writer.write(_head(200, b"content-type: text/event-stream\r\n"))
                    await asyncio.Event().wait()
                self._unsure |= set() if asked else {body}
                if not await self._respond(writer, method, asked):
                    break
                self._unsure.discard(body)

    async def _respond(self, writer: asyncio.StreamWriter, method: bytes, asked: list[Any]) -> bool:
        """Write a response; return True if the connection can be used again."""
        dice = self._dice
        damaged = not self._adversary.kind and dice.random() < (0.15 if asked else 0.04)
        messages = [reply for one in asked for reply in self._adversary.replies(one, certain=False)]
        session = SESSION if any(one["method"] == "initialize" for one in asked) else b""
        if not messages:
            data = _head(202 if method == b"POST" else 405, b"content-length: 0\r\n")
            if (asked or damaged) and dice.random() < 0.2:
                await asyncio.Event().wait()  # never responds
        elif dice.random() < 0.5:
            data = _head(200, session + b"content-type: application/json\r\ncontent-length: %d\r\n" % len(messages[-1]))
            data += messages[-1]
        else:
            body = b"".join(map(_event, messages))
            data = _head(200, session + b"content-type: text/event-stream\r\ncontent-length: %d\r\n" % len(body)) + body
        if damaged:
            data = _damaged(dice, data)
        writer.write(data)
        await writer.drain()
        return not damaged

    async def legacy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve HTTP+SSE on a connection."""
        with suppress(ConnectionError):
            async for method, body in self._requests(reader):
                if method == b"GET":
                    writer.write(_head(200, b"content-type: text/event-stream\r\n"))
                    writer.write(b"event: endpoint\r\ndata: /messages\r\n\r\n")
                    self._stream = writer
                    continue
                writer.write(_head(202, b"content-length: 0\r\n"))
                for asked in self._adversary.hear(body):
                    await self._push(asked)

    async def _push(self, asked: Any) -> None:
        """Send the replies to a request on the event stream."""
        damaged = not self._adversary.kind and self._dice.random() < 0.1
        for reply in self._adversary.replies(asked, certain=False):
            if self._stream is not None:
                self._stream.write(_odd_event(self._dice, reply) if damaged else _event(reply))
                await self._stream.drain()


def _head(status: int, headers: bytes) -> bytes:
    return b"HTTP/1.1 %d Said\r\n%b\r\n" % (status, headers)


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _damaged(dice: random.Random, response: bytes) -> bytes:
    """Return a response with another status or type, a damaged head, or cut off; its messages are not mutated."""
    head, separator, body = response.partition(b"\r\n\r\n")
    match dice.randrange(5):
        case 0:
            return response.replace(b" 200 ", b" %d " % dice.choice(STATUSES), 1)
        case 1:
            return response.replace(b"application/json", dice.choice([b"text/event-stream", b"text/html", b"\xff"]), 1)
        case 2:
            return response[: dice.randrange(len(response))]
        case 3:
            return mutations.framing(dice, head + separator) + body
        case _:
            return mutations.cut(head, dice) + separator + body


def _odd_event(dice: random.Random, data: bytes) -> bytes:
    """Return an event with an unusual field or an empty line before it."""
    fields: list[bytes] = [
        b"event: other",
        b"id: 1",
        b"id: \x00",
        b"retry: 0",
        b"retry: -1",
        b": comment",
        b"data",
        b"x",
    ]
    return dice.choice([*fields, b"\n", b"\r\n\r"]) + b"\n" + _event(data)


# --- a round --------------------------------------------------------------------------------------------------


class Calls:
    """Clients in this process, with new clients for each round."""

    pid = os.getpid()

    async def round(self, trial: Trial) -> None:
        """Run one round. Raises `Violation`."""
        before = len(asyncio.all_tasks())
        adversary = Adversary(trial)
        while not adversary.over:
            await self._connected(trial, adversary)
        if adversary.found is not None:
            raise adversary.found
        adversary.kind = True
        if not await self._connected(trial, adversary):
            raise Violation("a kind server was not understood")
        async with asyncio.timeout(PATIENCE):
            while len(asyncio.all_tasks()) > before:
                await asyncio.sleep(0.01)

    async def _connected(self, trial: Trial, adversary: Adversary) -> bool:
        """Connect and make calls; return True if a final valid call succeeds."""
        adversary.reset()
        began = adversary.number
        try:
            async with AsyncExitStack() as stack:
                one = client(trial.revision)
                one.options = IN_TIME if not adversary.kind else PATIENTLY
                async with asyncio.timeout(PATIENCE):
                    transport = await stack.enter_async_context(WAYS[trial.transport](adversary))
                    await stack.enter_async_context(one.connected(transport))
                async with asyncio.TaskGroup() as callers:
                    for number in range(CALLERS):
                        callers.create_task(self._call(one, adversary, f"{began} {number}"))
                return await self._finish(one, adversary)
        except EXPECTED:
            adversary.number += adversary.number == began  # guarantees progress
            return False

    async def _call(self, one: Any, adversary: Adversary, name: str) -> None:
        """Make random calls until all messages are sent or the connection ends."""
        dice, work = adversary.trial.dice(name), calls(one, adversary.trial.revision)
        while not adversary.over and not one.link.closed.is_set():
            call = dice.choice(work)
            try:
                async with asyncio.timeout(PATIENCE):
                    await call()
            except EXPECTED:
                pass
            except TimeoutError:
                raise Violation("a call does not end") from None
            except Exception as error:
                raise Violation(f"a call raised {type(error).__name__}: {error}") from error

    async def _finish(self, one: Any, adversary: Adversary) -> bool:
        """Wait for required responses of the client and make a valid call; return True if that was possible."""
        if one.link.closed.is_set():
            return False
        kind, adversary.kind = adversary.kind, True
        await one.with_options(timeout=PATIENCE, total_timeout=PATIENCE).list_tools()
        async with asyncio.timeout(PATIENCE):
            while adversary.judge.outstanding and not one.link.closed.is_set():
                await asyncio.sleep(0.005)
        adversary.kind = kind
        return True
