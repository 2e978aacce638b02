"""Typed calls from one side to the other, over whatever connects them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from .errors import UnexpectedAnswer
from .methods import Notification, Request

T = TypeVar("T")
Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer")
M = TypeVar("M", bound=BaseModel)

Returns: TypeAlias = T | Awaitable[T]
"""What a handler may return: the result, or something to await for it. So handlers may be `def` or `async def`."""


class Link(Protocol):
    """The way to the other side."""

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Sends a request and waits for its answer; raises `ProtocolError` when the answer is an error."""
        ...

    async def notify(self, method: Notification[Params], params: Params) -> None:
        """Sends a notification."""
        ...

    def metadata(self) -> Mapping[str, Any]:
        """What this side must say of itself in the `_meta` of every request (stateless revisions)."""
        ...


class Caller:
    """One side's typed calls to the other.

    Args:
        link: The way there.
    """

    def __init__(self, link: Link) -> None:
        self.link = link

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Sends any request of the method table, or one of your own, and returns whatever answers it."""
        return await self.link.request(method, params)

    async def call(self, method: Request[Params, Result, Any], params: Params) -> Result:
        """Sends a request and returns its usual result.

        Raises:
            ProtocolError: The other side answered with an error.
            UnexpectedAnswer: It answered with one of the method's alternatives.
        """
        answer = await self.request(method, params)
        if isinstance(answer, method.alternatives):
            raise UnexpectedAnswer(method.name, answer)
        result: Result = answer
        return result

    async def notify(self, method: Notification[Params], params: Params) -> None:
        """Sends any notification of the method table, or one of your own."""
        await self.link.notify(method, params)

    async def pages(self, call: Callable[[str | None], Awaitable[T]]) -> AsyncIterator[T]:
        """The pages of a paginated list: calls again with each `next_cursor` until there is none."""
        cursor: str | None = None
        while True:
            page = await call(cursor)
            yield page
            cursor = getattr(page, "next_cursor", None)
            if cursor is None:
                return

    def metadata(self, model: type[M], extra: Mapping[str, Any] | None) -> M:
        """The `_meta` of a request: what the link must say, and what the caller adds."""
        return model.model_validate({**self.link.metadata(), **(extra or {})})
