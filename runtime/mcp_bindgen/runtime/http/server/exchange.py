"""A stateless request over HTTP: it says all there is to know, and its response is the only stream it has.

MCP 2026-07-28, "Streamable HTTP". What finishes without a word is answered with JSON; a handler that has something to
say meanwhile turns the response into a stream of events. Who hangs up cancels.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio

from ...core import jsonrpc
from ...core.errors import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_VERSION,
    ConnectionClosed,
    HeaderMismatch,
    MethodNotFound,
    ProtocolError,
)
from ...core.events import Event, Notified, Rejected, Requested
from ...core.json_types import is_object
from ...core.jsonrpc import RequestId
from ...core.methods import Notification
from ...core.peer import Peer
from ...core.revision import CALL_TOOL
from ...endpoint.caller import Link
from ...endpoint.coroutines import is_being_cancelled, resume, within
from ...endpoint.server import Service
from ...eras.stateless import request_meta as metadata
from ..headers import decode
from .call import Call, event
from .header_validation import ToolSchemas

log = logging.getLogger("mcp_bindgen")

VERSION = b"mcp-protocol-version"

_STATUS = {METHOD_NOT_FOUND: 404, HEADER_MISMATCH: 400, MISSING_CLIENT_CAPABILITY: 400, UNSUPPORTED_VERSION: 400}
_PATIENCE = 30.0  # seconds for a client to read what it is sent


class Exchange:
    """The way to the client of one request: its response.

    Args:
        call: The request.

    Attributes:
        principal: Who sent it, if that is known.
        streaming: Whether the response is a stream of events.
    """

    def __init__(self, call: Call) -> None:
        self.principal = call.principal
        self.streaming = False
        self._call = call
        self._over = False
        self._writing = asyncio.Lock()

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuses: servers send no requests in this revision."""
        raise MethodNotFound(method.name)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Sends a notification, on the stream that the response thereby becomes.

        Raises:
            ConnectionClosed: The request is answered, or its client does not read.
        """
        await self.write(event(jsonrpc.notification(method, params)))

    def metadata(self) -> Mapping[str, Any]:
        """Nothing: only requests say something of their sender."""
        return {}

    async def write(self, data: bytes) -> None:
        """Sends a part of the stream; raises `ConnectionClosed` as `notify` does."""
        if self._over:
            raise ConnectionClosed("the request is answered")
        try:
            await within(_PATIENCE, self._write(data))
        except (TimeoutError, OSError):
            self._over = True
            raise ConnectionClosed("the client does not read") from None

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            if not self.streaming:
                self.streaming = True
                await self._call.open_stream()
            await self._call.write(data)

    async def answer(self, status: int, data: bytes) -> None:
        """Sends the answer, which ends the response."""
        if self._over:
            return
        self._over = True
        if self.streaming:
            with suppress(TimeoutError):
                await within(_PATIENCE, self._call.write(event(data), more=False))
        else:
            await self._call.respond(status, data)


class Exchanges:
    """Answers stateless requests.

    Args:
        service: The servers.
        keep_alive: Seconds between comments that keep a silent stream open.
    """

    def __init__(self, service: Service, keep_alive: float) -> None:
        self._service = service
        self._keep_alive = keep_alive
        self._words = {name: words for name, words in service.vocabularies.items() if words.stateless}
        self._tools = ToolSchemas(service)

    async def post(self, call: Call, body: bytes) -> None:
        """Answers one message."""
        peer = Peer("server", self._words, self._service.supported)
        found = next(iter(peer.receive(body)), None)
        if isinstance(found, Requested):
            await self._run(call, peer, found)
        elif isinstance(found, Rejected):
            error = _clearer(call, body, found.error)
            reply = found.reply if error is found.error else jsonrpc.failure(found.id, error)
            await call.respond(_STATUS.get(error.code, 400), reply or jsonrpc.failure(None, error))
        else:
            await self._told(call, found)

    async def _told(self, call: Call, found: Event | None) -> None:
        if not isinstance(found, Notified):
            error = jsonrpc.invalid("over HTTP a message is a request or a notification")
            await call.respond(400, jsonrpc.failure(None, error))
            return
        exchange = Exchange(call)
        await exchange.answer(202, b"")
        try:
            done = self._service.handler(found.vocabulary, found.route)(exchange, None, found.params)
            if inspect.isawaitable(done):
                await done
        except Exception:
            log.exception("the handler of %s failed", found.route.method.name)

    async def _run(self, call: Call, peer: Peer, asked: Requested) -> None:
        """Runs a handler; one that has to wait is cancelled when the client hangs up."""
        exchange = Exchange(call)
        work = self._work(call, exchange, peer, asked)
        with anyio.CancelScope() as scope:
            try:
                trap = work.send(None)
            except StopIteration as done:
                status, data = done.value
            else:
                watch = asyncio.create_task(self._watch(call, exchange, scope))
                try:
                    status, data = await resume(work, trap)
                finally:
                    watch.cancel()
            await exchange.answer(status, data)

    async def _watch(self, call: Call, exchange: Exchange, scope: anyio.CancelScope) -> None:
        """Waits for the client to hang up, and says something on silent streams."""
        gone = asyncio.ensure_future(call.hung_up())
        try:
            while not gone.done():
                await asyncio.wait([gone], timeout=self._keep_alive or None)
                if not gone.done() and exchange.streaming:
                    await exchange.write(b":\n\n")
        except ConnectionClosed:
            pass
        finally:
            gone.cancel()
        scope.cancel()

    async def _work(self, call: Call, exchange: Exchange, peer: Peer, asked: Requested) -> tuple[int, bytes]:
        """The HTTP status and the JSON-RPC message that answer a request."""
        name = asked.route.method.name
        try:
            await self._check(call, exchange, asked)
            answer = self._service.handler(asked.vocabulary, asked.route)(exchange, asked.id, asked.params)
            return 200, peer.respond(asked.id, await answer if inspect.isawaitable(answer) else answer)
        except ProtocolError as error:
            with suppress(ValueError):
                return _STATUS.get(error.code, 200), peer.fail(asked.id, error)
            log.exception("the error that the handler of %s raised cannot be written", name)
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            log.exception("what the handler of %s was waiting for is cancelled", name)
        except Exception:
            log.exception("the handler of %s failed", name)
        return 200, peer.fail(asked.id, ProtocolError(INTERNAL_ERROR, "Internal error"))

    async def _check(self, call: Call, link: Link, asked: Requested) -> None:
        """Holds the headers against the body: whoever looked at one must have seen the other."""
        method: Any = asked.route.method
        _same(call, VERSION, asked.vocabulary.revision)
        _same(call, b"mcp-method", method.name)
        if method.named_by is not None:
            header = call.header(b"mcp-name")
            params, _ = metadata.apart(asked.params)
            if header is None or decode(header) != getattr(params, method.named_by):
                raise HeaderMismatch("Mcp-Name " + ("is missing" if header is None else "differs from the body"))
        if method.name == CALL_TOOL:
            await self._tools.check(asked.vocabulary, link, asked.params, call.headers)


def _same(call: Call, name: bytes, wanted: str) -> None:
    if call.headers.get(name) == wanted.encode():
        return
    header = call.header(name)
    if header != wanted:
        shown = name.decode().title()
        raise HeaderMismatch(f"{shown} is missing" if header is None else f"{shown} differs from the body")


def _clearer(call: Call, body: bytes, error: ProtocolError) -> ProtocolError:
    """What a body says of its revision, and what the header says, matter more than other faults."""
    header = call.header(VERSION)
    try:
        message = jsonrpc.parse(body)
    except ProtocolError:
        return error
    if header is None:
        return HeaderMismatch("MCP-Protocol-Version is missing", error.data if is_object(error.data) else None)
    stated = metadata.stated_version(message) if is_object(message) else None
    if isinstance(stated, str) and header != stated:
        return HeaderMismatch("the versions differ")
    return error
