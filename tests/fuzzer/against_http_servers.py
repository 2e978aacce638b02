"""Fuzz a process that serves Streamable HTTP: mutated messages, headers and requests on several connections."""

from __future__ import annotations

import asyncio
import json
import random
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tests.harness.checked_connections import INITIALIZED, STATELESS, initialize, strictly

from . import mutations
from .against_servers import CAPABILITIES, HEAD, PATIENCE, WITH_BATCHES, sentinel
from .checker import Checker, Id, read
from .failure import Violation
from .mutations import Headers
from .traffic import traffic
from .trial import Trial
from .wire import Gone, Response, Wire, encode

TARGET = b"/mcp"
BOTH = (b"accept", b"application/json, text/event-stream")
NOT_OURS = {501, 503, 505}
"""Statuses from 500 on that are no crash: unsupported methods and HTTP versions, and overload."""

CONNECTIONS = 4


class Http:
    """Server process, with a new session for each round."""

    def __init__(self, port: int, pid: int) -> None:
        self.pid = pid
        self._port = port

    async def round(self, trial: Trial) -> None:
        """Run one round. Raises `Violation`."""
        async with asyncio.timeout(3 * PATIENCE):
            await _Round(trial, self._port).run()


class _Round:
    def __init__(self, trial: Trial, port: int) -> None:
        self._trial, self._port = trial, port
        self._session: Headers = []
        self._deleted = False
        self._beginning = asyncio.Lock()
        self._strays: set[bytes] = set()
        self._cancelled: set[Id] = set()
        self._reused: set[Id] = set()
        self._results = traffic(trial.revision).results()
        self._dice = trial.dice("answers")
        self._answering: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        messages = self._trial.messages()
        asked = Counter(id_ for _, data in messages for id_, _, _ in read(data, None).owed + read(data, None).possible)
        self._reused = {id_ for id_, count in asked.items() if count > 1}
        self._cancelled = {id_ for _, data in messages for id_ in read(data, None).cancels}
        async with asyncio.TaskGroup() as tasks:
            await self._begin()
            listening = tasks.create_task(self._listen()) if self._session else None
            waiting = iter(messages)
            async with asyncio.TaskGroup() as senders:
                for _ in range(CONNECTIONS):
                    senders.create_task(self._send_all(waiting))
            await asyncio.gather(*self._answering)
            await self._begin()
            wire = Wire(self._port)
            data = json.dumps(sentinel(self._trial, "end")).encode()
            await self._converse(wire, await wire.send(self._post(data)), data, clean=True)
            await self._end(wire)
            wire.close()
            if listening is not None:
                async with asyncio.timeout(PATIENCE):
                    await listening

    # --- sessions ---------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Begin a session if there is none."""
        async with self._beginning:
            if not self._trial.stateless and (self._deleted or not self._session):
                await self._introduce()

    async def _introduce(self) -> None:
        self._session, self._deleted = [], False
        wire = Wire(self._port)
        data = json.dumps(initialize(self._trial.revision, CAPABILITIES, "hello")).encode()
        response = await wire.send(self._post(data))
        if response.status != 200:
            raise Violation(f"a clean initialize was answered with {response.status}")
        await self._converse(wire, response, data, clean=True)
        session = (b"mcp-session-id", response.headers[b"mcp-session-id"])
        self._session = [session, (b"mcp-protocol-version", self._trial.revision.encode())]
        response = await wire.send(self._post(json.dumps(INITIALIZED).encode()))
        if response.status != 202:
            raise Violation(f"notifications/initialized was answered with {response.status}")
        wire.close()

    async def _end(self, wire: Wire) -> None:
        """End the session, and sessions that mutated messages began."""
        for id_ in self._strays:
            wire.close()
            await wire.send(encode(b"DELETE", TARGET, [*HEAD, (b"mcp-session-id", id_)]))
        if self._session:
            wire.close()
            response = await wire.send(encode(b"DELETE", TARGET, [*HEAD, *self._session]))
            if response.status != 204:
                raise Violation(f"a clean DELETE was answered with {response.status}")

    async def _listen(self) -> None:
        """Read the stream of unsolicited messages; it must not contain responses."""
        wire, judge = Wire(self._port), self._checker([self._trial.revision])
        with suppress(Gone):
            response = await wire.send(encode(b"GET", TARGET, [*HEAD, BOTH, *self._session]))
            if response.status != 200:
                raise Violation(f"a clean GET was answered with {response.status}")
            async for data in response.messages():
                judge.received(data)
        wire.close()

    # --- requests ---------------------------------------------------------------------------------------------

    def _post(self, data: bytes) -> bytes:
        return encode(b"POST", TARGET, [*HEAD, BOTH, *self._session, *self._mirrored(data)], data)

    def _mirrored(self, data: bytes) -> Headers:
        """Return the headers that repeat members of a message."""
        if not self._trial.stateless:
            return []
        found = [(b"mcp-protocol-version", STATELESS.encode())]
        with suppress(ValueError, RecursionError):
            message = strictly(data)
            if isinstance(message, dict):
                params = message.get("params")
                params = params if isinstance(params, dict) else {}
                named = {b"mcp-method": message.get("method"), b"mcp-name": params.get("name", params.get("uri"))}
                found += [(name, _header(value)) for name, value in named.items() if isinstance(value, str)]
        return found

    async def _send_all(self, waiting: Iterator[tuple[int, bytes]]) -> None:
        wire = Wire(self._port)
        for number, data in waiting:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._send(number, data, wire)
            except Gone as error:
                raise Violation(f"no response ({error}) to message {number}: {data[:500]!r}") from None
            except TimeoutError:
                raise Violation(f"no end of the response to message {number}: {data[:500]!r}") from None
        wire.close()

    async def _send(self, number: int, data: bytes, wire: Wire) -> None:
        """Send a message with or without damage to its HTTP request, and check the response."""
        dice = self._trial.dice(f"request {number}")
        match dice.choices(["clean", "headers", "framing", "gone"], [80, 12, 5, 3])[0]:
            case "clean":
                session = self._session
                response = await wire.send(self._post(data))
                if response.status != 404 or session is self._session:
                    await self._converse(wire, response, data, clean=True)
            case "headers":
                await self._with_headers(dice, wire, data)
            case "framing":
                await self._with_framing(dice, data)
            case _:
                await self._and_leave(dice, data)

    async def _with_headers(self, dice: random.Random, wire: Wire, data: bytes) -> None:
        method = dice.choice([b"POST"] * 9 + mutations.METHODS)
        given = mutations.headers(dice, [*HEAD, BOTH, *self._session, *self._mirrored(data)])
        if method == b"POST":
            with suppress(Gone):  # for example after `Connection: close` in a mutated header
                response = await wire.send(encode(method, TARGET, given, data))
                await self._converse(wire, response, data, clean=False)
        else:
            self._deleted = self._deleted or method == b"DELETE"
            wire.close()
            status = (await wire.send(encode(method, TARGET, given, data))).status
            _check_status(status, data)
            wire.close()
            if method == b"DELETE":
                self._strays |= {id_ for name, id_ in self._session if name == b"mcp-session-id"}
                await self._begin()

    async def _with_framing(self, dice: random.Random, data: bytes) -> None:
        """Send a request without a clear end and close the connection: the server must close it, too."""
        wire = Wire(self._port)
        damaged = mutations.framing(dice, self._post(data))
        with suppress(Gone):
            _check_status((await wire.send(damaged, last=True)).status, damaged)
        wire.close()

    async def _and_leave(self, dice: random.Random, data: bytes) -> None:
        """Send a request, or a part of it, and close the connection without reading the response."""
        wire = Wire(self._port)
        request = self._post(data)
        await wire.write(request[: dice.choice([len(request), dice.randrange(len(request))])])
        wire.close()

    # --- responses --------------------------------------------------------------------------------------------

    def _checker(self, revisions: list[str]) -> Checker:
        return Checker(revisions, None if len(revisions) > 1 else self._trial.revision in WITH_BATCHES)

    async def _converse(self, wire: Wire, response: Response, data: bytes, *, clean: bool) -> None:
        """Read a response and check it."""
        status, content = response.status, response.headers.get(b"content-type", b"")
        _check_status(status, data)
        stray = response.headers.get(b"mcp-session-id")
        if stray is not None and self._session and (b"mcp-session-id", stray) not in self._session:
            self._strays.add(stray)
        judge = self._checker([self._trial.revision] if clean else [self._trial.revision, STATELESS])
        judge.sent(data)
        judge.forgive(list(self._cancelled))
        judge.may_mistake(self._reused)
        if status >= 400:
            judge.refused()
        if not content.startswith((b"application/json", b"text/event-stream")):
            async for _ in response.parts():
                pass
        else:
            async for message in response.messages():
                judge.received(message)
                for asked in judge.take_requests():
                    task = asyncio.create_task(self._answer(asked))
                    self._answering.add(task)
                    task.add_done_callback(self._answering.discard)
                if judge.endless():
                    wire.close()
                    return
        if judge.outstanding and status < 400 and not self._deleted:
            raise Violation(f"{status} does not answer {list(judge.outstanding)}: {data[:500]!r}")
        if clean and status == 404 and not self._trial.stateless and not self._deleted:
            raise Violation(f"the session is gone, though nobody ended it: {data[:500]!r}")

    async def _answer(self, asked: Any) -> None:
        """Answer a request of the server, correctly or with a mutated response."""
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": self._dice.choice(self._results[asked["method"]])}
        data = json.dumps(answer).encode()
        if self._dice.random() < 0.5:
            data = mutations.mutated(self._dice, [answer])
        wire = Wire(self._port)
        await self._converse(wire, await wire.send(self._post(data)), data, clean=True)
        wire.close()


def _check_status(status: int, data: bytes) -> None:
    if status >= 500 and status not in NOT_OURS:
        raise Violation(f"status {status}: {data[:500]!r}")


def _header(value: str) -> bytes:
    """Return a value encoded for a header."""
    if value.isascii() and value.isprintable() and value.strip() == value and not value.startswith("=?base64?"):
        return value.encode()
    return b"=?base64?" + b64encode(value.encode("utf-8", "surrogatepass")) + b"?="
