"""One end of a connection as a state machine: bytes in, events out; calls in, bytes out. No sockets, no event loop.

It keeps the state that JSON-RPC and the lifecycle demand: unused ids, pending requests, the requests being
handled, batches, cancellation, and the messages that are legal before the end of the handshake.

A connection begins in the state NEW if a handshake comes first, and READY if every request speaks for itself. Each
trigger of `TRANSITIONS` leads from there to another state; a trigger outside of the table is a mistake of the side that
causes it, and raises. Messages have no transitions of their own: a request is *handled* from the moment it is accepted
until it is answered, dropped or the connection closes, and a request of ours is *pending* until its answer comes, it is
cancelled or the connection closes. Both are sets of ids, in any state.

    server   NEW --asked--> ASKED --agreed--> NEGOTIATED --confirmed--> READY        client   NEW --agreed--> READY
             ASKED --failed--> NEW          NEW --resumed--> READY          READY --failed--> NEGOTIATED
    both     READY --agreed--> READY (a client introduces itself again)      any --> CLOSED
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from ..logs import log
from ..model.base import optional
from ..model.json_types import is_array, is_object
from . import jsonrpc
from .envelope import (
    Envelope,
    Malformed,
    Mended,
    RequestId,
    answered_id,
    check_batch_size,
    invalid,
    invalid_answer,
    is_answer,
    own_id,
    parse,
    read_envelope,
    request_id,
)
from .errors import ConnectionClosed, InvalidParams, MethodNotFound, NotInitialized, ProtocolError
from .events import Answered, CancelRequested, Event, Notified, Pending, Progressed, Rejected, Requested, resolve
from .limits import Limits
from .methods import CANCELLED, INITIALIZE, INITIALIZED, LISTEN, PING, Notification, RequestMethod, Role
from .revision import Dispatcher, Dispatchers
from .routing import Route
from .transport import Lost, Oversized, Parsed

if TYPE_CHECKING:
    from .batches import Batch
    from .invalid_items import InvalidItem

_MAX_INVALID_ITEMS = 1000  # records that are kept


class State(Enum):
    """The state of a connection (MCP, "Lifecycle")."""

    NEW = "nothing was agreed"
    ASKED = "initialize is being answered"
    NEGOTIATED = "initialize is answered"
    READY = "initialized, or never in need of it"
    CLOSED = "over"


Trigger: TypeAlias = Literal["asked", "failed", "agreed", "confirmed", "resumed"]
"""A client introduces itself; that was in vain, or is refused; both sides know the revision; the client has taken the
answer to its handshake; another process did the handshake."""

TRANSITIONS: Mapping[tuple[Role, State, Trigger], State] = {
    ("server", State.NEW, "asked"): State.ASKED,
    ("server", State.NEW, "resumed"): State.READY,
    ("server", State.ASKED, "failed"): State.NEW,
    ("server", State.ASKED, "agreed"): State.NEGOTIATED,
    ("server", State.NEGOTIATED, "confirmed"): State.READY,
    ("server", State.READY, "failed"): State.NEGOTIATED,
    ("client", State.NEW, "agreed"): State.READY,
    ("client", State.READY, "agreed"): State.READY,
}
"""Role, state and trigger -> the state afterwards."""

Admission: TypeAlias = Literal["taken", "begins", "confirms", "early", "repeated", "unknown", "unasked"]

_BEFORE: Mapping[str, Admission] = {PING: "taken", CANCELLED: "taken", "request": "early", "notification": "early"}

ADMISSION: Mapping[tuple[Role, State | None], Mapping[str, Admission]] = {
    ("server", None): {INITIALIZE: "unknown"},
    ("server", State.NEW): {INITIALIZE: "begins", **_BEFORE},
    ("server", State.ASKED): {INITIALIZE: "repeated", **_BEFORE},
    ("server", State.NEGOTIATED): {INITIALIZE: "repeated", PING: "taken", INITIALIZED: "confirms", "request": "early"},
    ("server", State.READY): {INITIALIZE: "repeated"},
    ("client", None): {"request": "unasked"},
    ("client", State.NEW): {PING: "taken", "request": "early"},
    ("client", State.READY): {},
}
"""Role and state -> method, or kind of message, -> what becomes of a message; all others are taken.

A stateless message has no state.
"""

_NAMED = re.compile(rb'/protocolVersion"\s*:\s*"([^"\\]{1,64})"').search
"""Finds the revision that a stateless message names."""

_ESCAPED = re.compile(rb"\\/|\\u00[2-7]").search
"""Finds an escape, which can spell any name."""


class Connection:
    """One end of a connection.

    Args:
        role: Which end.
        dispatchers: Revision -> dispatcher, the oldest revision first. A server picks one of them when
            the client introduces itself, or for each request that names its revision.

    Attributes:
        invalid_items: Invalid parts of results that a client left out, each once.
        changes: Number of changes that the server has announced to a client; a lost stream counts as one.
        max_batch_members: Messages in one batch; see `Limits`.
    """

    max_batch_members: int = Limits.batch_members

    def __init__(self, role: Role, dispatchers: Dispatchers) -> None:
        self.role: Role = role
        self.dispatchers = dispatchers
        self.pending: dict[int, Pending] = {}
        self.handling: dict[RequestId, Batch | None] = {}
        self.initialize_request_id: RequestId | None = None
        self.invalid_items: dict[InvalidItem, None] = {}
        self.changes: int = 0
        self._ids = itertools.count(1)
        self._dispatcher: Dispatcher | None = None
        self._state: State | None = None
        self._confirmation: Event | None = None  # the newest message, if it has ended the handshake

    @property
    def dispatcher(self) -> Dispatcher:
        """Dispatcher of the spoken revision; at first of the newest stateful revision, or else of the newest one."""
        if self._dispatcher is None:
            self._dispatcher = self.dispatchers.first()
        return self._dispatcher

    @dispatcher.setter
    def dispatcher(self, dispatcher: Dispatcher) -> None:
        """Speak another revision."""
        self._dispatcher = dispatcher

    @property
    def state(self) -> State:
        """State of the connection: a handshake comes first where there are stateful revisions."""
        if self._state is None:
            self._state = State.NEW if self.dispatchers.best(is_stateless=False) else State.READY
        return self._state

    @property
    def is_closed(self) -> bool:
        """True if the connection is over."""
        return self._state is State.CLOSED

    def another(self) -> Connection:
        """Make a connection that takes the same, to which nothing was said yet; ids of its requests go on."""
        made = Connection.__new__(Connection)
        made.__dict__ = self.__dict__.copy()
        made.pending, made.handling = {}, {}
        return made

    # --- receiving --------------------------------------------------------------------------------------------

    def read(self, data: bytes | Oversized | Lost) -> Iterable[Event]:
        """Return the events of what a transport delivers. This never raises, whatever the bytes.

        Of a batch, the next message is read when the next event is asked for.
        """
        if type(data) is not bytes:
            if isinstance(data, Parsed):
                return data.events
            if isinstance(data, Oversized):
                return self.receive_oversized(data.limit, data.head)
            if isinstance(data, Lost):
                self.changes += data.id == 0
                return self.lose(data.id, data.error)
        if self.is_closed:
            return []
        event = self._receive_quickly(data)
        if event is not None:
            return [event]
        try:
            message = parse(data)
        except ProtocolError as error:
            answered = jsonrpc.peek_answer(data)
            if answered in self.pending:  # it begins like an answer, and no other will come
                pending = self.pending.pop(answered)
                with suppress(ProtocolError, ValueError, RecursionError):  # only entries of lists may be no JSON
                    return [Answered(pending, self.read_result(pending.method, json.loads(data)["result"])[0])]
                return [Answered(pending, error=error)]
            return [Rejected(error, jsonrpc.failure(None, error))]
        return self._receive_batch(message) if is_array(message) else self._receive_parsed(message, None)

    def receive_oversized(self, limit: int, head: bytes) -> list[Event]:
        """Return the events of a message that was too large, of which only the beginning is known."""
        error = invalid(f"the message is larger than {limit} bytes")
        answered = jsonrpc.peek_answer(head)
        if answered is None:
            id_ = jsonrpc.peek_request(head)
            return [Rejected(error, jsonrpc.failure(id_, error), id_)]
        return self.lose(answered, error)

    def _receive_quickly(self, data: bytes) -> Event | None:
        """Return the event, if `data` is a well-formed answer or message that may come now; in a single pass."""
        if data[:64].lstrip()[:1] == b"[":
            return None
        answered = jsonrpc.peek_answer(data) if self.pending else None
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
        name = jsonrpc.peek_method(data)
        dispatcher = self.dispatcher if self.role == "client" else self._peek_revision(data)
        if name is None or dispatcher is None:
            return None
        route = dispatcher.routes.get(name)
        if route is None or self._admission(dispatcher, name, route.method.kind) != "taken":
            return None
        try:
            read = route.read_message(data)
            if read is None:
                return None
            message = read
            params = message["params"] if "params" in message else route.read(None)
        except (ValidationError, InvalidParams):
            return None
        if route.method.kind == "request":
            id_ = message.get("id")
            if (
                id_ is None
                or id_ in self.handling
                or (dispatcher.revision.era.is_stateless and not _names_revision(dispatcher, params))
            ):
                return None
            self.handling[id_] = None
            return Requested(id_, route, params, dispatcher)
        return None if "id" in message else self._notified(route, params, dispatcher)

    def _peek_revision(self, data: bytes) -> Dispatcher | None:
        """Return the dispatcher of the revision that a message names, without a name that of the connection.

        The result is `None` where only the whole text can tell.
        """
        named = _NAMED(data)
        if named is None:
            is_unclear = b"/protocolVersion" in data or (b"\\" in data and _ESCAPED(data) is not None)
            return None if is_unclear and self.dispatchers.best(is_stateless=True) else self.dispatcher
        found = self.dispatchers.get(named[1].decode("utf-8", "replace"))
        is_meant = found is not None and found.revision.era.is_stateless and found.revision.quoted_version_key in data
        return found if is_meant else None

    def _admission(self, dispatcher: Dispatcher, method: str, kind: Literal["request", "notification"]) -> Admission:
        """Return what becomes of a message (MCP, "Lifecycle")."""
        state = None if dispatcher.revision.era.is_stateless else self.state
        row = ADMISSION[self.role, state]
        return row.get(method) or row.get(kind, "taken")

    def _receive_batch(self, messages: list[Any]) -> Iterable[Event]:
        try:
            if not messages:
                raise invalid("the batch is empty", Malformed)
            if not self.dispatcher.revision.batches:
                raise invalid(f"batches are not part of revision {self.dispatcher.revision}", Malformed)
            check_batch_size(messages, self.max_batch_members)
        except ProtocolError as error:
            lost = [event for message in messages for event in self.lose(answered_id(message), error)]
            if lost:
                return lost
            return [Rejected(error, jsonrpc.failure(None, error))]
        from .batches import Batch  # only one revision has batches

        batch = Batch()
        return batch.read(messages, lambda message: self._receive_parsed(message, batch))

    def _receive_parsed(self, message: object, batch: Batch | None) -> list[Event]:
        if self.is_closed:
            return []
        try:
            return self._interpret(read_envelope(message), batch)
        except ProtocolError as error:
            unusable = invalid_answer('a response has "jsonrpc": "2.0", and a result or an error')
            lost = self.lose(answered_id(message), unusable)  # no other answer will come
            if not is_object(message):
                return [Rejected(error, jsonrpc.failure(None, error))]
            id_ = request_id(message)
            silent = "id" not in message and isinstance(message.get("method"), str)
            if self.role == "client" and self.state is State.READY:
                silent = silent or self.dispatcher.revision.era.is_stateless  # servers of that era wait for no answer
            reply = b"" if silent or is_answer(message) else jsonrpc.failure(id_, error)
            return [*lost, Rejected(error, reply, id_)]

    def _interpret(self, envelope: Envelope, batch: Batch | None) -> list[Event]:
        if envelope.is_answer:
            return self._answer(envelope)
        dispatcher = self._selected(envelope)
        if envelope.kind == "request":
            return [self._request(envelope, dispatcher, batch)]
        route = dispatcher.routes.get(envelope.method)
        if route is None or route.method.kind != "notification":
            raise MethodNotFound(envelope.method)
        admission = self._admission(dispatcher, envelope.method, "notification")
        if admission == "early":
            raise NotInitialized
        if admission == "confirms":
            self.move("confirmed")  # whatever its params
        event = self._notified(route, jsonrpc.read_params(route, envelope.message), dispatcher)
        self._confirmation = event if admission == "confirms" else None
        return [event]

    def _selected(self, envelope: Envelope) -> Dispatcher:
        """Return the dispatcher of the revision that a message names, without a name that of the connection."""
        meta = envelope.params.get("_meta") if self.role == "server" and is_object(envelope.params) else None
        is_named = is_object(meta) and any(key.endswith("protocolVersion") for key in meta)
        if is_named or (self.role == "server" and envelope.method not in {INITIALIZE, *self.dispatcher.routes}):
            from .stateless import select_revision  # few servers of the stateful era need it

            return select_revision(envelope, self.dispatchers, lambda: self.dispatcher)
        return self.dispatcher

    def _request(self, envelope: Envelope, dispatcher: Dispatcher, batch: Batch | None) -> Event:
        assert envelope.id is not None
        if envelope.id in self.handling or (batch is not None and batch.has(envelope.id)):
            raise invalid(f"the id {envelope.id!r} is in use", Malformed)
        if batch is not None and not dispatcher.revision.batches:
            raise invalid(f"batches are not part of revision {dispatcher.revision}")
        admission = self._admission(dispatcher, envelope.method, "request")
        if admission == "begins" and batch is None:
            wanted = envelope.params.get("protocolVersion") if is_object(envelope.params) else None
            dispatcher = self.dispatchers.stateful(wanted)
        elif admission != "taken":
            raise self._refusal(admission, envelope.method)
        route = dispatcher.routes.get(envelope.method)
        if route is None or route.method.kind != "request":
            raise MethodNotFound(envelope.method)
        if isinstance(envelope.message, Mended):
            raise InvalidParams(envelope.method, [{"path": "params", "problem": "a text has half of a surrogate pair"}])
        params = jsonrpc.read_params(route, envelope.message)
        meta = None
        if dispatcher.revision.era.is_stateless and not _names_revision(dispatcher, params):
            from .stateless import meta_beside  # few methods have no place for it

            meta = meta_beside(dispatcher, envelope, params)
        if admission == "begins":
            self.dispatcher, self.initialize_request_id = dispatcher, envelope.id
            self.move("asked")
        self.handling[envelope.id] = batch
        if batch is not None:
            batch.expect(envelope.id)
        return Requested(envelope.id, route, params, dispatcher, meta=meta)

    def _refusal(self, admission: Admission, method: str) -> ProtocolError:
        """Return the error for a request that may not come now."""
        if admission == "early":
            return NotInitialized()
        if admission == "unknown":
            return MethodNotFound(method, {"supported": self.dispatchers.supported})
        once = "initialize comes once, first and alone"
        return invalid("servers send no requests in this revision" if admission == "unasked" else once)

    def _notified(self, route: Route, params: object, dispatcher: Dispatcher) -> Event:
        reaction = REACTIONS.get(dispatcher.revision.utilities.get(route.method.name, route.method.name))
        event = None if reaction is None else reaction(self, params)
        return Notified(route, params, dispatcher) if event is None else event

    def react_to_cancelled(self, params: object) -> Event | None:
        """React to the cancellation of a request, by its sender or by the server."""
        id_ = optional(params, "request_id")  # a draft may have no such member
        if id_ in self.handling and (self._state is not State.ASKED or id_ != self.initialize_request_id):
            return CancelRequested(id_, optional(params, "reason"))
        own = own_id(id_)
        if own in self.pending and self.pending[own].method.name == LISTEN:
            return Answered(self.pending.pop(own), error=ConnectionClosed("the server ended the subscription"))
        return None

    def react_to_progress(self, params: object) -> Event | None:
        """React to progress of a request of this side."""
        pending = self.pending.get(own_id(optional(params, "progress_token")))
        return None if pending is None else Progressed(pending, params)

    def _answer(self, envelope: Envelope) -> list[Event]:
        pending = self.pending.pop(own_id(envelope.id), None)
        if pending is None:
            return []  # late, or never asked for
        if envelope.kind == "error":
            return [Answered(pending, error=envelope.error)]
        try:
            return [Answered(pending, self.read_result(pending.method, envelope.message["result"])[0])]
        except ProtocolError as error:
            return [Answered(pending, error=error)]

    def read_result(self, method: RequestMethod[Any, Any], wire: object) -> tuple[Any, Any]:
        """Return a result from its wire form, typed, and the wire form without invalid items.

        A client leaves out invalid items of a result's lists, and records them in `invalid_items`.

        Raises:
            ProtocolError: The result is not valid.
        """
        try:
            return jsonrpc.typed_result(method, wire), wire
        except (ProtocolError, ValueError):
            if self.role != "client":
                raise
            from .invalid_items import drop_invalid  # few results are invalid

            valid, left_out = drop_invalid(method, wire)
            if valid == wire:
                raise
            result = jsonrpc.typed_result(method, valid)
            for one in left_out:
                self.record_invalid(one)
            return result, valid

    def record_invalid(self, one: InvalidItem) -> None:
        """Record and log an invalid item of a result; each is recorded once, up to 1,000."""
        if one not in self.invalid_items and len(self.invalid_items) < _MAX_INVALID_ITEMS:
            self.invalid_items[one] = None
            log.warning("a part of a result is left out: %s", one)

    # --- sending ----------------------------------------------------------------------------------------------

    def request(
        self,
        method: RequestMethod[Any, Any],
        params: object,
        progress: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> tuple[Pending, bytes]:
        """Return the pending request and the message to send.

        Args:
            method: The method.
            params: Its params.
            progress: True if to ask for progress notifications, with the request's id as token.
            meta: Members of its `_meta`, unless it says any of them itself.

        Raises:
            ConnectionClosed: The connection is over.
        """
        self._check_open()
        pending = Pending(next(self._ids), method)
        data = jsonrpc.request(pending.id, method, params)
        if progress or meta:
            message = from_json(data)
            sent_meta = message.setdefault("params", {}).setdefault("_meta", {})
            if meta and sent_meta.keys().isdisjoint(meta):
                sent_meta |= meta
            if progress:
                sent_meta["progressToken"] = pending.id
            data = to_json(message)
        self.pending[pending.id] = pending
        return pending, data

    def notify(self, method: Notification[Any], params: object) -> bytes:
        """Return a notification to send.

        Raises:
            ConnectionClosed: The connection is over.
        """
        self._check_open()
        return jsonrpc.notification(method, params)

    def cancel(self, pending: Pending, reason: str) -> bytes:
        """Give up a request of this side; return the message that cancels it, if the peer may be told."""
        method = self.dispatcher.revision.cancelled
        if self.pending.pop(pending.id, None) is None or pending.method.name == INITIALIZE or method is None:
            return b""
        params = jsonrpc.typed_params(method, {"requestId": pending.id, "reason": reason})
        return jsonrpc.notification(method, params)

    def respond(self, id_: RequestId, result: object) -> bytes:
        """Answer a request of the peer; empty when it was cancelled or when its batch is incomplete."""
        if id_ not in self.handling:
            return b""
        return self._close(id_, jsonrpc.response(id_, result))

    def fail(self, id_: RequestId, error: ProtocolError) -> bytes:
        """Answer a request of theirs with an error; empty in the same cases as `respond`."""
        return self._close(id_, jsonrpc.failure(id_, error)) if id_ in self.handling else b""

    def drop(self, id_: RequestId) -> bytes:
        """Give up a request of theirs without an answer, because they cancelled it; a batch may become complete."""
        return self._close(id_, b"") if id_ in self.handling else b""

    def _close(self, id_: RequestId, data: bytes) -> bytes:
        batch = self.handling.pop(id_)
        if self._state is State.ASKED and id_ == self.initialize_request_id:
            self.move("failed")
        return data if batch is None else batch.answered(id_, data)

    def negotiated(self) -> None:
        """Note that both sides know the revision; a client is ready then, a server when the client says so."""
        self._check_open()
        self.move("agreed")

    def move(self, trigger: Trigger) -> None:
        """Change the state; raises `ValueError` if the trigger is illegal in this state."""
        state = TRANSITIONS.get((self.role, self.state, trigger))
        if state is None:
            raise ValueError(f"{trigger} is impossible for a {self.role} in the state {self.state.name}")
        self._state = state

    def take_back(self, events: Iterable[Event]) -> None:
        """Restore the state before messages that are refused as a whole: nothing was received."""
        for event in events:
            if isinstance(event, Requested):
                self.drop(event.id)
            elif isinstance(event, Answered) and self.is_closed:
                resolve(Answered(event.pending, error=ConnectionClosed("the connection is closed")))
            elif isinstance(event, Answered):
                self.pending[event.pending.id] = event.pending
            elif event is self._confirmation:
                self._confirmation = None
                self.move("failed")

    def lose(self, id_: RequestId | None, error: Exception) -> list[Event]:
        """Return the events that follow when the answer to a request of ours will not come."""
        pending = self.pending.pop(own_id(id_), None)
        return [] if pending is None else [Answered(pending, error=error)]

    def resume(self, revision: str, first_id: int) -> None:
        """Resume as a server after a handshake in another process, with ids of its own from `first_id` on."""
        self.dispatcher = self.dispatchers[revision]
        self.move("resumed")
        self._ids = itertools.count(first_id)

    def close(self, reason: str) -> list[Answered]:
        """Close the connection: every request of ours fails with one clear error."""
        self._state = State.CLOSED
        failed = [Answered(pending, error=ConnectionClosed(reason)) for pending in self.pending.values()]
        self.pending.clear()
        self.handling.clear()
        return failed

    def _check_open(self) -> None:
        if self.is_closed:
            raise ConnectionClosed("the connection is closed")


def _names_revision(dispatcher: Dispatcher, params: Any) -> bool:
    """Return whether the typed params of a request name the revision, as all that a client sends must."""
    named = getattr(getattr(params, "meta", None), "protocol_version", None)
    return dispatcher.role == "server" and named == dispatcher.revision.name


Reaction: TypeAlias = Callable[[Connection, Any], Event | None]
"""Reacts to a notification, given its typed params; returns an event in place of `Notified`."""

REACTIONS: Mapping[str, Reaction] = {
    "cancelled": Connection.react_to_cancelled,
    "progress": Connection.react_to_progress,
}
"""Utility or method name of a notification -> reaction of the protocol; handlers see every other notification."""
