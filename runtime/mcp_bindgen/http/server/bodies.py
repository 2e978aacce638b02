"""Read the bodies of requests within limits: of each one, and of all together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from mcp_bindgen.runtime.concurrency import resume

from .byte_budget import Budget, Budgets
from .call import Call, ClientDisconnected, HttpError, too_many
from .limits import HttpLimits

_SMALL = 64 * 1024  # bytes of a body that is not worth counting once it is there


class Bodies:
    """The bodies that arrive at an endpoint, or are being answered there.

    Args:
        limits: How much of them there may be.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        all_bodies, of_principal = (max(most, limits.message) for most in (limits.bodies, limits.bodies_of_principal))
        self._budgets = Budgets(all_bodies, of_principal, "the messages{} are too large together")
        self._arriving: dict[Call, asyncio.Timeout] = {}

    async def read(self, call: Call) -> bytes:
        """Read a whole body; it counts until it is released.

        Raises:
            HttpError: It is too large, does not arrive in time, or there is no room for it.
            ClientDisconnected: The client hung up.
        """
        declared = call.headers.get(b"content-length", b"")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > self._limits.message):
            raise HttpError(413, f"a message has at most {self._limits.message} bytes")
        work = self._collect(call)
        try:
            trap = work.send(None)
        except StopIteration as done:
            body: bytes = done.value
        else:
            body = await self._wait(call, work, trap)
        if len(body) <= _SMALL:
            if call.held:
                self.release(call)
        elif has_more_values(body, self._limits.values):
            raise HttpError(413, f"a message has at most {self._limits.values} JSON values")
        if call.record is not None:
            call.record.read(body)
        return body

    def release(self, call: Call) -> None:
        """Count the body of a request no longer; safe to call twice."""
        if call.share is not None:
            call.share.give_back(call.held)
        call.held = 0

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
        share: Budget = call.share or self._budgets.of(call.principal)
        call.share = share
        share.add(size - call.held)
        call.held = size
        while (budget := share if share.free < 0 else self._budgets.all).free < 0:
            rivals = (one for one in self._arriving if budget in (one.share, self._budgets.all))
            oldest = next((one for one in rivals if one is not call and one.held), None)
            if oldest is None:
                raise too_many(budget.reason)
            self.release(oldest)
            alarm = self._arriving.pop(oldest)
            if not alarm.expired():
                alarm.reschedule(0)

    async def _wait(self, call: Call, work: Coroutine[Any, Any, bytes], trap: Any) -> bytes:
        try:
            async with asyncio.timeout(self._limits.arrival) as alarm:
                self._arriving[call] = alarm
                return await resume(work, trap)
        except TimeoutError:
            if call not in self._arriving:
                raise too_many(self._budgets.all.reason) from None
            raise HttpError(408, "the message did not arrive in time") from None
        finally:
            self._arriving.pop(call, None)


def has_more_values(body: bytes, most: int) -> bool:
    """Tell whether a JSON document has more than so many values, without reading it: commas and brackets tell.

    Those in strings do not count, but are worth a second look only when there are many.
    """
    if _separators(body) <= most:
        return False
    bare = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if bare.count(b'"') // 2 > 2 * most + 1:  # each may be a string that has a name
        return True
    return sum(map(_separators, bare.split(b'"')[::2])) > most


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
