"""Limits of an endpoint for messages, sessions and streams: of each session, of each principal and in all."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from weakref import WeakValueDictionary

from mcp_bindgen.runtime import concurrency

from .errors import too_many


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of an endpoint. A principal is limited apart from all clients where it is known.

    Attributes:
        message: Bytes of a message.
        values: Members and items of all objects and arrays in a message; small values cost far more than their bytes.
        bodies: Bytes of the larger messages, beyond 64 KiB each, that arrive or are being answered. Above it, the
            messages that began to arrive first are refused.
        bodies_of_principal: The same for one principal.
        arrival: Seconds for a message to arrive.
        write_timeout: Seconds for a client to read an event, before it is disconnected.
        unasked: Seconds for a client with a full queue, before it is disconnected, when a message comes that belongs
            to no request: broadcasts do not wait longer.
        requests: Requests in flight that belong to no session, subscriptions included.
        requests_of_principal: The same for one principal.
        sessions: Open sessions of stateful revisions.
        sessions_of_principal: The same for one principal.
        handshake: Seconds for the client of a new session to send `notifications/initialized`. Where there is no room
            for another session, the oldest session without it ends.
        idle: Seconds without traffic after which a session ends.
        streams: Streams of all sessions: requests in flight, and connections that listen.
        streams_of_session: The same for one session.
        streams_of_principal: The same for all sessions of one principal.
        queued: Bytes of messages that wait for clients to read them, on all streams of sessions. Above it, a stream
            with a waiting message takes no further one, and the sender waits.
        queued_of_principal: The same for one principal.
        abandoned: Seconds after which a request of a session is cancelled if its client has disconnected and does not
            resume the stream. A request without a resumable stream is cancelled at once.
    """

    message: int = 4 * 1024 * 1024
    values: int = 100_000
    bodies: int = 256 * 1024 * 1024
    bodies_of_principal: int = 64 * 1024 * 1024
    arrival: float = 30.0
    write_timeout: float = 30.0
    unasked: float = 0.5
    requests: int = 10_000
    requests_of_principal: int = 1000
    sessions: int = 1000
    sessions_of_principal: int = 100
    handshake: float = 10.0
    idle: float = 1800.0
    streams: int = 10_000
    streams_of_session: int = 256
    streams_of_principal: int = 1000
    queued: int = 256 * 1024 * 1024
    queued_of_principal: int = 64 * 1024 * 1024
    abandoned: float = 300.0


LIMITS = HttpLimits()
"""Default limits of an endpoint."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class Budget:
    """Counter with a limit; it may be a part of a larger budget.

    Attributes:
        limit: Largest amount in use.
        reason: Error message for clients that exceed it.
        parent: The budget that this budget is a part of.
        used: Amount in use.
    """

    limit: int
    reason: str
    parent: Budget | None = None
    used: int = 0

    @property
    def free(self) -> int:
        """The amount that is left."""
        return self.limit - self.used

    @property
    def is_full(self) -> bool:
        """True if nothing is left, here or in the parent."""
        return self.used >= self.limit or (self.parent is not None and self.parent.is_full)

    def take(self) -> None:
        """Take one, here and from the parent; raises `HttpError` where nothing is left."""
        budget: Budget | None = self
        while budget is not None:
            if budget.used >= budget.limit:
                raise too_many(budget.reason)
            budget = budget.parent
        self.add(1)

    def add(self, amount: int) -> None:
        """Count an amount that exists already, also above the limit; a negative amount is given back."""
        budget: Budget | None = self
        while budget is not None:
            budget.used += amount
            budget = budget.parent


class Budgets:
    """Budget of all clients, with a part for each principal.

    Args:
        limit: Largest amount in all.
        of_principal: Largest amount of a principal.
        reason: Error message, with `{}` for the words about the user.

    Attributes:
        all: The budget of all clients.
    """

    def __init__(self, limit: int, of_principal: int, reason: str) -> None:
        self.all: Budget = Budget(limit, reason.format(""))
        self._of_principal, self._reason = of_principal, reason.format(" of this user")
        self._parts: WeakValueDictionary[str, Budget] = WeakValueDictionary()

    def of(self, principal: str | None) -> Budget:
        """Return the budget of a principal, which lasts while it is referenced, or of all clients."""
        if principal is None:
            return self.all
        found = self._parts.get(principal)
        if found is None:
            found = self._parts[principal] = Budget(self._of_principal, self._reason, self.all)
        return found


class Turn:
    """Time that a task may use the event loop before it lets other tasks run."""

    def __init__(self) -> None:
        self._end = time.monotonic() + concurrency.TURN_SECONDS

    async def give_way(self) -> None:
        """Let other tasks run if the turn is over, and begin the next turn."""
        if time.monotonic() > self._end:
            await asyncio.sleep(0)
            self._end = time.monotonic() + concurrency.TURN_SECONDS
