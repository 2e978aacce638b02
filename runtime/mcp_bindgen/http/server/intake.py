"""Bodies of requests: read once within the limits of all clients, and parsed once into the parts that HTTP needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field

from mcp_bindgen.runtime.concurrency import begin
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import InsufficientScope, Operation
from mcp_bindgen.runtime.protocol.envelope import (
    BatchTooLarge,
    Envelope,
    RequestId,
    invalid,
    own_id,
    read_envelopes,
    request_id,
)
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.events import Event, Rejected
from mcp_bindgen.runtime.protocol.methods import CANCELLED, INITIALIZE, INITIALIZED, PROGRESS
from mcp_bindgen.runtime.protocol.peer import Peer
from mcp_bindgen.runtime.protocol.revision import Revision

from .access import HttpEndpoint, operations_named
from .call import EVENTS, JSON, Call
from .errors import ClientDisconnected, HttpError, refused, too_many
from .limits import Budget, Budgets, HttpLimits

_SMALL = 64 * 1024  # bytes of a body that does not count once it has arrived


class Intake:
    """Intake of the bodies that arrive at an endpoint, or are being answered there.

    Args:
        endpoint: The servers.
        limits: Limits for the bytes of bodies.
    """

    def __init__(self, endpoint: HttpEndpoint, limits: HttpLimits) -> None:
        self._endpoint, self._limits = endpoint, limits
        all_bodies, of_principal = (max(limit, limits.message) for limit in (limits.bodies, limits.bodies_of_principal))
        self._budgets = Budgets(all_bodies, of_principal, "the messages{} are too large together")
        self._arriving: dict[Call, asyncio.Timeout] = {}

    async def read(self, call: Call) -> bytes:
        """Read a whole body; it counts until it is released.

        Raises:
            HttpError: The body is too large, does not arrive in time, or exceeds the limit of all bodies.
            ClientDisconnected: The client has disconnected.
        """
        declared = call.headers.get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._limits.message):
            raise HttpError(413, f"a message has at most {self._limits.message} bytes")
        found, rest = begin(self._collect(call))
        body: bytes = found if rest is None else await self._wait(call, rest)
        if len(body) <= _SMALL:
            if call.counted_bytes:
                self.release(call)
        elif has_more_values(body, self._limits.values):
            raise HttpError(413, f"a message has at most {self._limits.values} JSON values")
        if call.record is not None:
            call.record.read(body)
        return body

    def release(self, call: Call) -> None:
        """Count the body of a request no longer; safe to call twice."""
        if call.byte_budget is not None:
            call.byte_budget.add(-call.counted_bytes)
        call.counted_bytes = 0

    async def _collect(self, call: Call) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await call.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limits.message:
                raise HttpError(413, f"a message has at most {self._limits.message} bytes")
            more = message.get("more_body", False)
            if more or size > _SMALL:
                self._count(call, size)
            if not more:
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def _count(self, call: Call, size: int) -> None:
        own: Budget = call.byte_budget or self._budgets.of(call.principal)
        call.byte_budget = own
        own.add(size - call.counted_bytes)
        call.counted_bytes = size
        while (budget := own if own.free < 0 else self._budgets.all).free < 0:
            rivals = (one for one in self._arriving if budget in (one.byte_budget, self._budgets.all))
            oldest = next((one for one in rivals if one is not call and one.counted_bytes), None)
            if oldest is None:
                raise too_many(budget.reason)
            self.release(oldest)
            alarm = self._arriving.pop(oldest)
            if not alarm.expired():
                alarm.reschedule(0)

    async def _wait(self, call: Call, rest: Awaitable[bytes]) -> bytes:
        try:
            async with asyncio.timeout(self._limits.arrival) as alarm:
                self._arriving[call] = alarm
                return await rest
        except TimeoutError:
            if call not in self._arriving:
                raise too_many(self._budgets.all.reason) from None
            raise HttpError(408, "the message did not arrive in time") from None
        finally:
            self._arriving.pop(call, None)

    async def events(self, call: Call, peer: Peer, body: bytes) -> list[Event]:
        """Read the messages in a body of a stateful revision, and check that the token allows all of them.

        Raises:
            HttpError: The client does not accept both kinds of responses, or a message is malformed. Its error would
                have no id, and belongs to no stream.
            InsufficientScope: A scope is missing. Nothing was received then.
        """
        if not call.accepts(JSON, EVENTS):
            raise refused(406, "answers are application/json or text/event-stream; the client must accept both")
        events = list(peer.read(body))
        try:
            for one in events:
                if isinstance(one, Rejected) and one.reply and one.id is None:
                    raise one.error
            await self._endpoint.admit(call.identity, events)
        except ProtocolError as error:
            peer.take_back(events)
            if isinstance(error, InsufficientScope):
                raise
            raise HttpError(413 if isinstance(error, BatchTooLarge) else 400, error) from None
        return events

    def parse(self, call: Call, body: bytes) -> ParsedBody:
        """Parse a body of a stateful revision.

        Raises:
            HttpError: The client does not accept both kinds of responses, or a message is malformed. A session would
                answer that without an id, and such an answer belongs to no stream.
        """
        if not call.accepts(JSON, EVENTS):
            raise refused(406, "answers are application/json or text/event-stream; the client must accept both")
        try:
            return parse_body(body, self._endpoint.limits.batch_members)
        except BatchTooLarge as error:
            raise HttpError(413, error) from None
        except ProtocolError as error:
            raise HttpError(400, error) from None

    async def authorize(self, call: Call, parsed: ParsedBody, revision: str | None) -> None:
        """Check that the token of a request allows all operations in its body.

        Args:
            call: The request.
            parsed: Its body.
            revision: The revision of the messages; None before one is negotiated.

        Raises:
            InsufficientScope: A scope is missing.
            HttpError: A URI in the body is too long.
        """
        if self._endpoint.access_policy is None:
            return
        try:
            operations = parsed.operations()
        except ProtocolError as error:
            raise HttpError(400, error) from None
        self._endpoint.authorize(call.identity, revision, operations)


def has_more_values(body: bytes, limit: int) -> bool:
    """Return True if a JSON document has more values than `limit`: its commas and brackets are counted.

    Those in strings do not count. A second, slower count finds them when there are many.
    """
    if _separators(body) <= limit:
        return False
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') // 2 > 2 * limit + 1:  # each may be a string that has a name
        return True
    return sum(map(_separators, bare.split(b'"')[::2])) > limit


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


@dataclass(slots=True)
class ParsedBody:
    """Body with a message, or a batch of messages, of a stateful revision.

    Attributes:
        body: The JSON text.
        envelopes: The messages.
        is_batch: True if it is a batch.
        ids: Ids of its requests.
        cancelled: Ids of the requests that it cancels.
        answered: Ids of the server's requests that it answers or reports the progress of.
        is_initialize: True if it begins a session.
        is_initialized: True if it has `notifications/initialized`.
    """

    body: bytes
    envelopes: Sequence[Envelope]
    is_batch: bool
    ids: list[RequestId] = field(default_factory=list[RequestId])
    cancelled: list[RequestId] = field(default_factory=list[RequestId])
    answered: list[int] = field(default_factory=list[int])
    is_initialize: bool = False
    is_initialized: bool = False

    def operations(self) -> list[Operation]:
        """Return the operations of its requests and notifications, at least one, for authorization."""
        asked = [one for one in self.envelopes if not one.is_answer]
        return [found for one in asked for found in operations_named(one.method, one.params)] or [("an answer", None)]

    def check_batch(self, revision: Revision) -> None:
        """Check that a revision has batches, if it is one; raises `HttpError`."""
        if self.is_batch and not revision.batches:
            raise refused(400, f"batches are not part of revision {revision}")

    def for_other_workers(self) -> bytes:
        """Return the messages that another worker may wait for: answers, progress and cancellations."""
        if not self.is_batch:
            return self.body
        kept = [one.message for one in self.envelopes if one.is_answer or one.method in (CANCELLED, PROGRESS)]
        return jsonrpc.write_result(kept)


def parse_body(body: bytes, max_members: int | None = None) -> ParsedBody:
    """Parse a body; raises `ProtocolError` as `read_envelopes` does, and if an id is used twice."""
    envelopes, is_batch = read_envelopes(body, max_members)
    parsed = ParsedBody(body, envelopes, is_batch)
    for one in envelopes:
        if one.kind == "request" and one.id is not None:
            parsed.ids.append(one.id)
            parsed.is_initialize = not is_batch and one.method == INITIALIZE
        elif one.is_answer:
            if own := own_id(one.id):
                parsed.answered.append(own)
        else:
            _note_notification(parsed, one)
    if len(parsed.ids) > 1 and len(set(parsed.ids)) < len(parsed.ids):
        raise invalid("an id is used twice")
    return parsed


def _note_notification(parsed: ParsedBody, envelope: Envelope) -> None:
    method, params = envelope.method, envelope.params
    parsed.is_initialized = parsed.is_initialized or method == INITIALIZED
    if method == PROGRESS and is_object(params) and (own := own_id(params.get("progressToken"))):
        parsed.answered.append(own)
    elif method == CANCELLED and is_object(params):
        id_ = request_id({"id": params.get("requestId")})
        if id_ is not None:
            parsed.cancelled.append(id_)
