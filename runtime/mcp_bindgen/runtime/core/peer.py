"""One end of a connection as a state machine: bytes in, events out; calls in, bytes out. No sockets, no event loop.

It keeps what JSON-RPC and the lifecycle demand: ids that are never used twice, pending requests, the requests being
handled, batches, cancellation, and what may be said before the handshake is over.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from ..eras.stateless import request_meta as metadata
from . import jsonrpc
from .errors import INTERNAL_ERROR, ConnectionClosed, InvalidParams, MethodNotFound, ProtocolError, UnsupportedVersion
from .events import Answered, CancelRequested, Event, Notified, Pending, Progressed, Rejected, Requested, State
from .json_types import is_array, is_object
from .jsonrpc import RequestId
from .methods import Notification, Request
from .revision import CANCELLED, DISCOVER, INITIALIZE, INITIALIZED, LISTEN, PING, PROGRESS, Role, Vocabulary
from .routing import Route


@dataclass(slots=True, eq=False)
class _Batch:
    """The answers that a batch still owes; they leave together."""

    owed: set[RequestId]
    parts: list[bytes] = field(default_factory=list[bytes])

    def done(self) -> bytes:
        return b"[" + b",".join(self.parts) + b"]" if self.parts and not self.owed else b""


class Peer:
    """One end of a connection.

    Args:
        role: Which end.
        vocabularies: Revision -> what this end understands in it, best last. A server picks one of them when the client
            introduces itself, or for each request that names a stateless one; a client has one.
        supported: The revisions to name to who wants another one, the best first; by default those above.
    """

    def __init__(
        self, role: Role, vocabularies: Mapping[str, Vocabulary], supported: Sequence[str] | None = None
    ) -> None:
        self.role: Role = role
        self.vocabularies = vocabularies
        self.stateful = [words for words in vocabularies.values() if not words.stateless]
        self.stateless = {revision: words for revision, words in vocabularies.items() if words.stateless}
        self.vocabulary = (self.stateful or list(self.stateless.values()))[-1]
        self.state = State.NEW if self.stateful else State.READY
        self.supported = supported if supported is not None else list(vocabularies)[::-1]
        self.pending: dict[int, Pending] = {}
        self.handling: dict[RequestId, _Batch | None] = {}
        self._introducing: RequestId | None = None
        self._ids = itertools.count(1)

    # --- receiving --------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """What one message (or batch) means. Whatever `data` holds, this does not raise."""
        if self.state is State.CLOSED:
            return []
        event = self._receive_quickly(data)
        if event is not None:
            return [event]
        try:
            message = jsonrpc.parse(data)
        except ProtocolError as error:
            answered = jsonrpc.peek_answer(data)
            if answered in self.pending:  # it begins like an answer, and no other will come
                return [Answered(self.pending.pop(answered), error=error)]
            return [Rejected(error, jsonrpc.failure(None, error))]
        if is_array(message):
            return self._receive_batch(message)
        return self._receive_parsed(message, None)

    def receive_oversized(self, limit: int, head: bytes) -> list[Event]:
        """What a message means that was too large, of which only the beginning is known."""
        error = jsonrpc.invalid(f"the message is larger than {limit} bytes")
        answered = jsonrpc.peek_answer(head)
        if answered is None:
            id_ = jsonrpc.peek_request(head)
            return [Rejected(error, jsonrpc.failure(id_, error), id_)]
        pending = self.pending.pop(answered, None)
        return [] if pending is None else [Answered(pending, error=error)]

    def _receive_quickly(self, data: bytes) -> Event | None:
        """The event, if `data` is a well-formed answer or message that is welcome now; in one pass over the bytes."""
        answered = jsonrpc.peek_answer(data)
        if answered is not None:
            pending = self.pending.get(answered)
            if pending is None:
                return None
            try:
                message = jsonrpc.answer_reader(pending.method).validate_json(data)
            except ValidationError:
                return None
            if message["id"] != answered:  # there are two, and the last one counts
                return None
            return Answered(self.pending.pop(answered), message["result"])
        method = jsonrpc.peek_method(data)
        words = self._peek_vocabulary(data)
        route = words.routes.get(method) if method is not None and words is not None else None
        if route is None or words is None or method == INITIALIZE:
            return None
        if self.state is not State.READY and not (words.stateless and self.role == "server"):
            return None
        try:
            message = jsonrpc.message_reader(route).validate_json(data)
            params = message["params"] if "params" in message else route.read(None)
        except (ValidationError, InvalidParams):
            return None
        if route.method.kind == "request":
            id_ = message.get("id")
            if id_ is None or id_ in self.handling:
                return None
            if words.stateless and self.role == "server" and not metadata.is_in(params, words.revision):
                return None
            self.handling[id_] = None
            return Requested(id_, route, params, words)
        if "id" in message:
            return None
        return self._notified(route, params, words)

    def _peek_vocabulary(self, data: bytes) -> Vocabulary | None:
        """The words that a message seems to be in; `None` where only its whole text can tell."""
        if not self.stateless or self.role == "client":
            return self.vocabulary
        revision = metadata.peek_version(data)
        if revision is not None:
            return self.stateless.get(revision)
        return None if metadata.may_state_version(data) else self.vocabulary

    def _receive_batch(self, messages: list[Any]) -> list[Event]:
        if not self.vocabulary.batches or not messages:
            error = jsonrpc.invalid("batches are not part of this revision" if messages else "the batch is empty")
            return [Rejected(error, jsonrpc.failure(None, error))]
        batch = _Batch(set())
        events = [event for message in messages for event in self._receive_parsed(message, batch)]
        batch.owed |= {id_ for id_, owner in self.handling.items() if owner is batch}
        for event in events:
            if isinstance(event, Rejected) and event.reply:
                batch.parts.append(event.reply)
                event.reply = b""
        rejections = batch.done()
        return [*events, Rejected(jsonrpc.invalid("parts of a batch"), rejections)] if rejections else events

    def _receive_parsed(self, message: Any, batch: _Batch | None) -> list[Event]:
        if not is_object(message):
            error = jsonrpc.invalid("a message is a JSON object")
            return [Rejected(error, jsonrpc.failure(None, error))]
        id_ = jsonrpc.envelope_id(message)
        try:
            return self._interpret(message, id_, batch)
        except ProtocolError as error:
            silent = "method" in message and "id" not in message and isinstance(message.get("method"), str)
            return [Rejected(error, b"" if silent or _is_answer(message) else jsonrpc.failure(id_, error), id_)]

    def _interpret(self, message: dict[str, Any], id_: RequestId | None, batch: _Batch | None) -> list[Event]:
        if message.get("jsonrpc") != "2.0":
            raise jsonrpc.invalid('"jsonrpc" must be "2.0"')
        if _is_answer(message):
            return self._answer(message, id_)
        name = message.get("method")
        if not isinstance(name, str):
            raise jsonrpc.invalid('"method" must be a string')
        if "id" in message:
            if id_ is None:
                raise jsonrpc.invalid('"id" must be a string or an integer')
            return [self._request(name, message, id_, batch, self._vocabulary_of(name, message))]
        words = self._vocabulary_of(name, message)
        route = words.routes.get(name)
        if route is None or route.method.kind != "notification":
            raise MethodNotFound(name)
        if self.role == "server" and self.state is State.NEW and not words.stateless and name != CANCELLED:
            raise jsonrpc.invalid("the connection is not initialized")
        return [self._notified(route, jsonrpc.read_params(route, message), words)]

    def _vocabulary_of(self, name: str, message: dict[str, Any]) -> Vocabulary:
        """The words that a message is in: those of the connection, unless it names a stateless revision itself."""
        if not self.stateless or self.role == "client":
            return self.vocabulary
        newest = list(self.stateless.values())[-1]
        revision = metadata.stated_version(message)
        if isinstance(revision, str):
            if revision not in self.stateless:
                raise UnsupportedVersion(revision, self.supported)
            return self.stateless[revision]
        old = name == INITIALIZE or name in self.vocabulary.routes or name not in newest.routes
        return self.vocabulary if self.stateful and revision is None and old else newest

    def _request(
        self, name: str, message: dict[str, Any], id_: RequestId, batch: _Batch | None, words: Vocabulary
    ) -> Event:
        if id_ in self.handling:
            raise jsonrpc.invalid(f"the id {id_!r} is in use")
        if words.stateless:
            if batch is not None:
                raise jsonrpc.invalid("batches are not part of this revision")
            if name == INITIALIZE:
                raise MethodNotFound(name, {"supported": list(self.supported)})
        elif name == INITIALIZE and self.role == "server":
            if self.state is not State.NEW or self._introducing in self.handling or batch is not None:
                raise jsonrpc.invalid("initialize comes once, first and alone")
            self._introducing = id_
            words = self._negotiate(message)
        elif self.state is not State.READY and name != PING:
            raise jsonrpc.invalid("the connection is not initialized")
        route = words.routes.get(name)
        if route is None or route.method.kind != "request":
            raise MethodNotFound(name)
        params = jsonrpc.read_params(route, message)
        if words.stateless and self.role == "server" and not metadata.is_in(params, words.revision):
            params = metadata.Apart(params, _read_meta(words, name, message))
        self.handling[id_] = batch
        return Requested(id_, route, params, words)

    def _negotiate(self, message: dict[str, Any]) -> Vocabulary:
        """Picks the revision that the client asks for, or else our best; the client decides whether that will do."""
        params = message.get("params")
        wanted = params.get("protocolVersion") if is_object(params) else None
        fitting = [words for words in self.stateful if words.revision == wanted]
        self.vocabulary = (fitting or self.stateful)[-1]
        return self.vocabulary

    def _notified(self, route: Route[Any], params: Any, words: Vocabulary) -> Event:
        name = route.method.name
        if name == CANCELLED:
            id_ = getattr(params, "request_id", None)
            if id_ in self.handling and (self.state is not State.NEW or id_ != self._introducing):
                return CancelRequested(id_, getattr(params, "reason", None))
            listening = self.pending.get(id_) if self.role == "client" and isinstance(id_, int) else None
            if listening is not None and listening.method.name == LISTEN:  # nothing else can be taken back from us
                return Answered(
                    self.pending.pop(listening.id), error=ConnectionClosed("the server ended the subscription")
                )
        elif name == PROGRESS:
            token = getattr(params, "progress_token", None)
            if isinstance(token, int) and token in self.pending:
                return Progressed(self.pending[token], params)
        elif name == INITIALIZED and self.role == "server" and self.state is State.NEGOTIATED:
            self.state = State.READY
        return Notified(route, params, words)

    def _answer(self, message: dict[str, Any], id_: RequestId | None) -> list[Event]:
        pending = self.pending.pop(id_, None) if isinstance(id_, int) else None
        if pending is None:
            return []  # late, or never asked for: nobody waits for it
        if "error" in message and message.get("result") is None:
            return [Answered(pending, error=_error(message["error"]))]
        try:
            return [Answered(pending, jsonrpc.typed_result(pending.method, message["result"]))]
        except ProtocolError as error:
            return [Answered(pending, error=error)]

    # --- sending ----------------------------------------------------------------------------------------------

    def request(self, method: Request[Any, Any, Any], params: Any, *, progress: bool = False) -> tuple[Pending, bytes]:
        """A request to send, and what will be answered.

        Args:
            method: The method.
            params: Its params.
            progress: Whether to ask for progress notifications, with the request's id as token.

        Raises:
            ConnectionClosed: The connection is over.
        """
        self._check_open()
        pending = Pending(next(self._ids), method)
        data = jsonrpc.request(pending.id, method, params)
        if progress:
            message = from_json(data)
            message.setdefault("params", {}).setdefault("_meta", {})["progressToken"] = pending.id
            data = to_json(message)
        self.pending[pending.id] = pending
        return pending, data

    def notify(self, method: Notification[Any], params: Any) -> bytes:
        """A notification to send.

        Raises:
            ConnectionClosed: The connection is over.
        """
        self._check_open()
        return jsonrpc.notification(method, params)

    def cancel(self, pending: Pending, reason: str) -> bytes:
        """Gives up a request of ours: what to send so that they give up too. `initialize` cannot be cancelled."""
        if self.pending.pop(pending.id, None) is None or pending.method.name == INITIALIZE:
            return b""
        method = self.vocabulary.methods[CANCELLED]
        params = jsonrpc.typed_params(method, {"requestId": pending.id, "reason": reason})
        return jsonrpc.notification(method, params)

    def respond(self, id_: RequestId, result: Any) -> bytes:
        """The answer to a request of theirs; empty when it was cancelled or when its batch still waits for others."""
        return self._close(id_, lambda: jsonrpc.response(id_, result))

    def fail(self, id_: RequestId, error: ProtocolError) -> bytes:
        """The error that answers a request of theirs; empty in the same cases as `respond`."""
        return self._close(id_, lambda: jsonrpc.failure(id_, error))

    def drop(self, id_: RequestId) -> bytes:
        """Gives up a request of theirs without an answer, because they cancelled it; a batch may become complete."""
        return self._close(id_, lambda: b"")

    def _close(self, id_: RequestId, write: Any) -> bytes:
        if id_ not in self.handling:
            return b""
        data: bytes = write()
        batch = self.handling.pop(id_)
        if batch is None:
            return data
        batch.owed.discard(id_)
        if data:
            batch.parts.append(data)
        return batch.done()

    def negotiated(self, revision: str | None = None) -> None:
        """The handshake went well; a client is ready at once, a server when the client says so."""
        if revision is not None:
            self.vocabulary = self.vocabularies[revision]
        self.state = State.READY if self.role == "client" else State.NEGOTIATED

    def lose(self, id_: int, error: Exception) -> list[Event]:
        """What it means that the answer to a request of ours will not come."""
        pending = self.pending.pop(id_, None)
        return [] if pending is None else [Answered(pending, error=error)]

    def resume(self, revision: str, first_id: int) -> None:
        """Goes on as a server whose handshake was done elsewhere, with ids of its own from `first_id` on."""
        self.vocabulary = next(words for words in self.stateful if words.revision == revision)
        self.state = State.READY
        self._ids = itertools.count(first_id)

    def close(self, reason: str) -> list[Answered]:
        """Ends the connection: every request of ours fails with one clear error."""
        self.state = State.CLOSED
        failed = [Answered(pending, error=ConnectionClosed(reason)) for pending in self.pending.values()]
        self.pending.clear()
        self.handling.clear()
        return failed

    def _check_open(self) -> None:
        if self.state is State.CLOSED:
            raise ConnectionClosed("the connection is closed")


def _read_meta(words: Vocabulary, name: str, message: dict[str, Any]) -> Any:
    """The `_meta` of a request whose params do not name it; raises `InvalidParams`."""
    params = message.get("params")
    known = {"_meta": params["_meta"]} if is_object(params) and "_meta" in params else {}
    plain: Any = words.methods[DISCOVER]  # its params are nothing else
    return Route(replace(plain, name=name), object).read(to_json(known)).meta


def _is_answer(message: dict[str, Any]) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _error(body: Any) -> ProtocolError:
    """The error of a response, however badly it is formed."""
    if not is_object(body):
        return jsonrpc.invalid("the error of a response is not an object")
    code, message = body.get("code"), body.get("message")
    return ProtocolError(
        code if type(code) is int else INTERNAL_ERROR, message if isinstance(message, str) else "", body.get("data")
    )
