"""Bodies of requests: read and parsed once, within the limits of all clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from mcp_bindgen.runtime.concurrency import first_step
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import InsufficientScope
from mcp_bindgen.runtime.protocol.connection import Connection
from mcp_bindgen.runtime.protocol.envelope import BatchTooLarge, Malformed, parse
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.events import Answered, Event, Rejected
from mcp_bindgen.runtime.protocol.methods import INITIALIZE

from .access import HttpEndpoint
from .call import EVENTS, JSON, HttpCall
from .errors import ClientDisconnected, HttpError, refused, too_many
from .limits import Budget, Budgets, HttpLimits, Turn

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
        self._arriving: dict[HttpCall, asyncio.Timeout] = {}

    async def read(self, call: HttpCall) -> bytes:
        """Read the whole body of a message, as `whole` does; raises `HttpError` also for too many values."""
        body = await self.whole(call)
        if len(body) > _SMALL and has_more_values(body, self._limits.values):
            raise HttpError(413, f"a message has at most {self._limits.values} JSON values")
        if call.record is not None:
            call.record.read(body)
        return body

    async def whole(self, call: HttpCall) -> bytes:
        """Read a whole body; it counts until it is released.

        Raises:
            HttpError: The body is too large, does not arrive in time, or exceeds the limit of all bodies.
            ClientDisconnected: The client has disconnected.
        """
        declared = call.headers.get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._limits.message):
            raise HttpError(413, f"a message has at most {self._limits.message} bytes")
        found, rest = first_step(self._collect(call))
        body: bytes = found if rest is None else await self._wait(call, rest)
        if len(body) <= _SMALL and call.counted_bytes:
            self.release(call)
        return body

    def release(self, call: HttpCall) -> None:
        """Count the body of a request no longer; safe to call twice."""
        if call.byte_budget is not None:
            call.byte_budget.add(-call.counted_bytes)
        call.counted_bytes = 0

    async def _collect(self, call: HttpCall) -> bytes:
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

    def _count(self, call: HttpCall, size: int) -> None:
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

    async def _wait(self, call: HttpCall, rest: Awaitable[bytes]) -> bytes:
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

    async def events(self, call: HttpCall, connection: Connection, body: bytes) -> list[Event]:
        """Read the messages in a body of a stateful revision.

        Raises:
            HttpError: The client does not accept both kinds of responses, or a message is malformed or uses the id of
                a request that is being handled. The error has no id, because it belongs to no stream.
        """
        if not call.accepts(JSON, EVENTS):
            raise refused(406, "answers are application/json or text/event-stream; the client must accept both")
        events: list[Event] = []
        turn = Turn()
        for one in connection.read(body):
            await turn.give_way()
            events.append(one)
        for one in events:
            error = one.error if isinstance(one, Rejected | Answered) else None
            if isinstance(error, Malformed):
                connection.take_back(events)
                raise HttpError(413 if isinstance(error, BatchTooLarge) else 400, error)
        return events

    async def admit(self, call: HttpCall, connection: Connection, events: Sequence[Event]) -> None:
        """Check that the token of a request allows all messages in its body; take the messages back if not.

        Raises:
            InsufficientScope: A scope is missing.
            HttpError: A URI in the body is too long.
        """
        try:
            if not events:  # a response to another worker's request, or a late one
                self._endpoint.authorize(call.identity, None, [("an answer", None)])
            await self._endpoint.admit(call.identity, events)
        except BaseException as error:
            connection.take_back(events)
            if isinstance(error, ProtocolError) and not isinstance(error, InsufficientScope):
                raise HttpError(400, error) from None
            raise


def begins_session(body: bytes) -> bool:
    """Return True if a body is the request `initialize`; raises `HttpError` if it is no JSON."""
    name = jsonrpc.peek_method(body)
    if name is None:
        try:
            message = parse(body)
        except ProtocolError as error:
            raise HttpError(400, error) from None
        name = message.get("method") if is_object(message) else None
    return name == INITIALIZE and body.lstrip()[:1] != b"["


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
