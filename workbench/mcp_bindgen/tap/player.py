"""Player: a recording as a server over stdio."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup

from mcp_bindgen.ir import build
from mcp_bindgen.runtime.protocol.envelope import Envelope, read_envelopes
from mcp_bindgen.runtime.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ConnectionClosed,
    ProtocolError,
)
from mcp_bindgen.runtime.protocol.methods import CANCELLED, LISTEN, PING
from mcp_bindgen.runtime.protocol.transport import Oversized, Transport
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.check import MAX_DEPTH, is_too_deep
from mcp_bindgen.spec.json import is_array, is_object

from .recording import Exchange, Matching, Question, Recording, meta_of, params_of
from .trace import MAX_MESSAGE_BYTES, meta_keys

_MAX_BATCH = 1000
_MAX_RUNNING = 1000
_UNSUPPORTED = "UnsupportedProtocolVersion"


class Player:
    """Server that answers requests as they were answered in a recording.

    Messages of the server during a request are sent in their place; after a request of the server, the player waits for
    the client's response, of whatever content. Ids and progress tokens are those of the client.

    Args:
        recording: The recording.
        transport: The connection to the client.
    """

    def __init__(self, recording: Recording, transport: Transport) -> None:
        self._recording = recording
        self._matching = Matching(recording.exchanges)
        self._transport = transport
        self._sending = anyio.Lock()
        self._running: dict[str, anyio.CancelScope] = {}
        self._waiting: dict[str, anyio.Event] = {}
        self._asked = 0

    async def run(self) -> None:
        """Answer until the client ends the connection."""
        async with anyio.create_task_group() as tasks:
            while received := await self._transport.receive():
                for text in received:
                    await self._take(text, tasks)
            tasks.cancel_scope.cancel()

    async def _take(self, text: Any, tasks: TaskGroup) -> None:
        if not isinstance(text, bytes):
            limit = text.limit if isinstance(text, Oversized) else MAX_MESSAGE_BYTES
            await self._refuse(None, ProtocolError(INVALID_PARAMS, f"a message is longer than {limit} bytes"))
            return
        try:
            envelopes, _ = read_envelopes(text, _MAX_BATCH)
        except ProtocolError as error:
            await self._refuse(None, error)
            return
        for envelope in envelopes:
            if envelope.kind == "request":
                await self._begin(envelope, tasks)
            elif envelope.is_answer:
                if waiting := self._waiting.get(json.dumps(envelope.id)):
                    waiting.set()
            elif envelope.method == CANCELLED and is_object(envelope.params):
                scope = self._running.get(json.dumps(envelope.params.get("requestId")))
                if scope is not None:
                    scope.cancel()

    async def _begin(self, envelope: Envelope, tasks: TaskGroup) -> None:
        """Start to answer a request; the choice of the exchange depends on the order of requests only."""
        try:
            if is_too_deep(envelope.message):
                raise ProtocolError(INVALID_PARAMS, f"nested deeper than {MAX_DEPTH} levels")
            self._check_revision(envelope.message)
            params = params_of(envelope.message)
            exchange = self._matching.find(envelope.method, params)
            if exchange is None and envelope.method == PING:
                await self._send({"jsonrpc": "2.0", "id": envelope.id, "result": {}})
                return
            if exchange is None:
                code = INVALID_PARAMS if self._matching.has(envelope.method) else METHOD_NOT_FOUND
                raise ProtocolError(code, self._matching.nearest(envelope.method, params))
            if not exchange.response and exchange.method != LISTEN:
                raise ProtocolError(INTERNAL_ERROR, f"the recording has no response to line {exchange.line}")
            if len(self._running) >= _MAX_RUNNING:
                raise ProtocolError(INTERNAL_ERROR, f"more than {_MAX_RUNNING} requests are open")
        except ProtocolError as error:
            await self._refuse(envelope.id, error)
            return
        tasks.start_soon(self._play, exchange, envelope)

    def _check_revision(self, message: Mapping[str, Any]) -> None:
        """Raise the error of the protocol if a request states another revision in its metadata."""
        stated = meta_of(message).get(meta_keys().get("protocolVersion", ""))
        ours = self._recording.revision
        if stated is None or stated == ours:
            return
        for error in build(Store().effective(ours)).errors if ours else ():
            if error.name == _UNSUPPORTED:
                data = {"supported": [ours], "requested": stated}
                raise ProtocolError(error.code, f"the recording is of MCP {ours}", data)

    async def _play(self, exchange: Exchange, envelope: Envelope) -> None:
        key = json.dumps(envelope.id)
        with anyio.CancelScope() as scope:
            self._running[key] = scope
            for question in exchange.before:
                await self._ask(question, exchange, envelope)
            if exchange.response:
                await self._send({**exchange.response, "id": envelope.id})
            for question in exchange.after:
                await self._ask(question, exchange, envelope)
            if not exchange.response:
                await anyio.sleep_forever()  # a subscription lasts until the client ends it
        self._running.pop(key, None)

    async def _ask(self, question: Question, exchange: Exchange, envelope: Envelope) -> None:
        """Send a message of the server, and wait for the response to a request."""
        message = _adapted(question.message, exchange, envelope)
        if message is None:
            return
        if not question.is_request:
            await self._send(message)
            return
        self._asked += 1
        number = f"recorded-{self._asked}"
        answered = self._waiting[json.dumps(number)] = anyio.Event()
        try:
            await self._send({**message, "id": number})
            await answered.wait()
        finally:
            del self._waiting[json.dumps(number)]

    async def _refuse(self, number: Any, error: ProtocolError) -> None:
        data = {} if error.data is None else {"data": error.data}
        await self._send(
            {"jsonrpc": "2.0", "id": number, "error": {"code": error.code, "message": error.message, **data}}
        )

    async def _send(self, message: Mapping[str, Any]) -> None:
        async with self._sending:
            with suppress(ConnectionClosed):  # `receive` ends, too
                await self._transport.send([json.dumps(message).encode()])


def _adapted(message: Mapping[str, Any], exchange: Exchange, envelope: Envelope) -> dict[str, Any] | None:
    """Return a message with the client's progress token and request id; `None` for progress without a token."""
    params = message.get("params")
    if not is_object(params):
        return dict(message)
    if "progressToken" in params:
        token = meta_of(envelope.message).get("progressToken")
        return None if token is None else {**message, "params": {**params, "progressToken": token}}
    recorded = exchange.request.get("id")
    return {**message, "params": _with_id(params, recorded, envelope.id)}


def _with_id(value: Any, recorded: Any, own: Any) -> Any:
    """Return params with the id of the request in the members that hold one."""
    names = {"requestId", meta_keys().get("subscriptionId", "")}
    if is_object(value):
        return {
            key: own if key in names and member == recorded else _with_id(member, recorded, own)
            for key, member in value.items()
        }
    return [_with_id(member, recorded, own) for member in value] if is_array(value) else value
