"""Requests on their way through a gateway, and questions of the server that interrupt them."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

import anyio

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcp_bindgen.runtime.protocol.methods import RequestMethod
from mcp_bindgen.runtime.session.context import Context


class RelayContext(Context):
    """Context of a request that is passed on."""

    def answered_keys(self) -> Collection[str]:
        """Return the keys of the questions that the client has answered."""
        return () if self._questions is None else self._questions.answers.keys()

    async def put(self, key: str, method: RequestMethod[Any, Any, Any], params: object) -> Any:
        """Ask the client and return the typed answer; in a stateless revision the handler ends here."""
        self.check(method, params)
        return await self._ask(key, method, params)


@dataclass(eq=False)
class Question:
    """Request of the server that the client answers.

    Attributes:
        method: The method.
        params: Its typed params.
        key: Key of the question for clients that answer in rounds; it cannot be guessed.
        answer: Future of the typed result.
    """

    method: RequestMethod[Any, Any, Any]
    params: object
    key: str = field(default_factory=lambda: token_urlsafe(16))
    answer: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, answer: object = None, error: BaseException | None = None) -> None:
        """Resolve the future, unless the server no longer waits."""
        if not self.answer.done() and error is not None:
            self.answer.set_exception(error)
        elif not self.answer.done():
            self.answer.set_result(answer)


class RelayedCall:
    """Request of a client on its way to the server.

    Args:
        ctx: Context of the request.
        work: Sends the request, given the call, and returns the result.
        release: Called once when the server is no longer needed for it.

    Attributes:
        ctx: Context of the request; `None` while the call is parked between two rounds.
        may_ask: True if questions of the server can be passed on.
    """

    def __init__(
        self, ctx: RelayContext, work: Callable[[RelayedCall], Awaitable[Any]], release: Callable[[], None]
    ) -> None:
        self.ctx: RelayContext | None = ctx
        self.may_ask = False
        self._work, self._release = work, release
        self._events: asyncio.Queue[Question | None] = asyncio.Queue()
        self._open: Question | None = None
        self._scope = anyio.CancelScope()
        self._result: Any = None
        self._error: Exception | None = ProtocolError(INTERNAL_ERROR, "Gateway: the request was cancelled")

    async def directly(self) -> Any:
        """Send the request in this task and return the result."""
        try:
            return await self._work(self)
        finally:
            self._release()

    async def run(self) -> None:
        """Send the request in a task of its own; `next_question` tells what happens."""
        try:
            with self._scope:
                try:
                    self._result, self._error = await self._work(self), None
                except Exception as error:
                    self._error = error
        finally:
            self._release()
            self._events.put_nowait(None)

    def ask(self, question: Question) -> None:
        """Pass a question to the handler of the request."""
        self._events.put_nowait(question)

    async def next_question(self) -> Question | None:
        """Return the open question, else wait for one; `None` if the request has ended."""
        if self._open is None or self._open.answer.done():
            self._open = await self._events.get()
        return self._open

    def result(self) -> Any:
        """Return the result of a request that has ended, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._result

    def cancel(self) -> None:
        """Cancel the request; the server is told."""
        self._scope.cancel()


@dataclass(frozen=True)
class _Parked:
    call: RelayedCall
    owner: tuple[Any, ...]
    until: float


class ParkedCalls:
    """Calls whose clients answer a question in the next round (MCP 2026-07-28, "Multi Round-Trip Requests").

    Args:
        limit: Maximum number; the oldest call of the principal that has most is cancelled first.
        ttl: Seconds that a call waits for its client.
    """

    def __init__(self, limit: int, ttl: float) -> None:
        self._limit, self._ttl = limit, ttl
        self._calls: OrderedDict[str, _Parked] = OrderedDict()

    def park(self, key: str, call: RelayedCall, owner: tuple[Any, ...]) -> None:
        """Keep a call until its question is answered.

        Args:
            key: Key of the question.
            call: The call.
            owner: Principal and target of the request; only a request with the same owner resumes the call.
        """
        call.ctx = None
        self._calls[key] = _Parked(call, owner, anyio.current_time() + self._ttl)
        while len(self._calls) > self._limit:
            ((most, _),) = Counter(parked.owner[0] for parked in self._calls.values()).most_common(1)
            oldest = next(key for key, parked in self._calls.items() if parked.owner[0] == most)
            self._end(oldest, "too many calls wait for answers")

    def take(self, keys: Collection[str], owner: tuple[Any, ...]) -> RelayedCall | None:
        """Return the call that waits for an answer under one of the keys, or None."""
        for key in keys:
            found = self._calls.get(key)
            if found is not None and found.owner == owner:
                del self._calls[key]
                return found.call
        return None

    def expire(self) -> None:
        """Cancel the calls whose time is over."""
        now = anyio.current_time()
        for key in [key for key, parked in self._calls.items() if parked.until <= now]:
            self._end(key, "its client did not answer in time")

    def _end(self, key: str, reason: str) -> None:
        self._calls.pop(key).call.cancel()
        log.warning("gateway: a call that waits for an answer is cancelled: %s", reason)
