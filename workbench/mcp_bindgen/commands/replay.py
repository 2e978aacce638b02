"""Replay of a recording: send its requests to a live server, and compare the responses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from mcp_bindgen.runtime.model.json_types import same_json
from mcp_bindgen.runtime.protocol.errors import METHOD_NOT_FOUND, ProtocolError, RequestTimeout
from mcp_bindgen.runtime.protocol.methods import DISCOVER, INITIALIZE, LISTEN, untyped
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.tap import TracedMessage
from mcp_bindgen.tap.comparison import Compared, Comparison, Difference
from mcp_bindgen.tap.recording import Exchange, Question, Recording, canonical, meta_of, params_of, recording_of
from mcp_bindgen.tap.redaction import REDACTED
from mcp_bindgen.tap.trace import meta_keys

from .call import requests_of
from .dialogue import Answering
from .live import Connection, Live, bindings


def replay(recording: Recording, ignored: Sequence[str], server: str, connection: Connection) -> list[Compared]:
    """Return the comparison of each recorded request, in their order.

    Args:
        recording: The recording.
        ignored: JSON Pointers into results whose values may differ.
        server: The words that name the server.
        connection: Options for the connection.

    Raises:
        BadInput: There is no such server, or no connection.
        Failed: The server ended during the replay.
    """
    seen = list[TracedMessage]()
    live = replace(
        Live.named(server, connection),
        dialogue=RecordedAnswers(recording),
        declares=tuple(sorted(recording.capabilities)),
        on_trace=seen.append,
    )

    async def work(client: Any) -> list[Compared]:
        comparison = Comparison(recording.exchanges, ignored)
        return [await _repeat(one, client, comparison, seen) for one in recording.exchanges]

    return live.ask(lambda revisions: dict.fromkeys(revisions, work))


async def _repeat(exchange: Exchange, client: Any, comparison: Comparison, seen: list[TracedMessage]) -> Compared:
    """Send one request and compare; requests that begin a connection were sent when it began."""

    def skipped(reason: str) -> Compared:
        return Compared(exchange.line, exchange.title, "skipped", (Difference("", reason),))

    if exchange.method in (INITIALIZE, DISCOVER):
        found = [one for one in recording_of(seen).exchanges if one.method == exchange.method]
        return comparison.compare(exchange, found[0]) if found else skipped("the connection began without it")
    route = requests_of(client.revision).get(exchange.method)
    if route is None:
        return skipped(f"no request of a client of MCP {client.revision}")
    if exchange.method == LISTEN or not exchange.response:
        return skipped("the recording has no response")
    if REDACTED in canonical(exchange.params):
        return skipped("a value is redacted")
    meta = {**_own_meta(exchange.request), **client.link.meta}
    params = comparison.params(exchange) | ({"_meta": meta} if meta else {})
    begun = len(seen)
    try:
        typed = route.read(json.dumps(params) if params else None)
        await client.link.request(untyped(route.method), typed, client.options)
    except (ProtocolError, RequestTimeout, ValidationError) as error:
        if len(seen) == begun:
            return skipped(f"this client cannot send it: {error}")
    found = [one for one in recording_of(seen[begun:]).exchanges if one.method == exchange.method]
    return comparison.compare(exchange, found[-1] if found else None)


def _own_meta(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a request that neither the protocol nor the recorded connection defines."""
    left_out = {*meta_keys().values(), "progressToken"}
    return {key: value for key, value in meta_of(request).items() if key not in left_out}


class RecordedAnswers(Answering):
    """Client whose answers to questions of the server are the recorded ones."""

    def __init__(self, recording: Recording) -> None:
        asked = [one for exchange in recording.exchanges for one in (*exchange.before, *exchange.after)]
        self._questions = [one for one in asked if one.is_request and one.answer]

    def client(self, kind: type[Any]) -> Any:
        """Return a client with handlers for the questions of the recording."""
        asked = {one.message.get("method") for one in self._questions}
        routes = bindings(kind.dispatcher.revision.name, "dispatcher").CLIENT.routes
        handlers: dict[str, Any] = {
            route.handler: self._handler(str(name))
            for name, route in routes.items()
            if name in asked and route.method.kind == "request"
        }
        return type(kind.__name__, (kind,), handlers)()

    def _handler(self, method: str) -> Any:
        async def answer(client: Any, params: Any, ctx: Any) -> dict[str, Any]:
            wire: dict[str, Any] = {} if params is None else params.model_dump()
            return self._answer(method, {"params": wire})

        return answer

    def _answer(self, method: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to the same question, else to the first one of its method."""
        known = [one for one in self._questions if one.message.get("method") == method]
        for one in [one for one in known if same_json(params_of(one.message), params_of(asked))] or known:
            return _result(one)
        raise ProtocolError(METHOD_NOT_FOUND, f"the recording has no answer to {method}")


def _result(question: Question) -> dict[str, Any]:
    error = question.answer.get("error")
    if is_object(error):
        raise ProtocolError(error.get("code", METHOD_NOT_FOUND), str(error.get("message")), error.get("data"))
    result = question.answer.get("result")
    return result if is_object(result) else {}
