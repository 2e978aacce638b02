"""Typed calls from one side to the other, over whatever connects them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from ..core.capabilities import missing
from ..core.errors import CapabilityMissing, UnexpectedAnswer
from ..core.methods import Method, Notification, Request

if TYPE_CHECKING:
    from ..core.jsonrpc import RequestId
    from ..core.negotiated import Terms

T = TypeVar("T")
Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer")
M = TypeVar("M", bound=BaseModel)

Returns: TypeAlias = T | Awaitable[T]
"""What a handler may return: the result, or something to await for it. So handlers may be `def` or `async def`."""


class Link(Protocol):
    """The way to the other side. `related` is the id of the other side's request that a message belongs to."""

    async def request(
        self, method: Request[Params, Any, Answer], params: Params, *, related: RequestId | None = None
    ) -> Answer:
        """Sends a request and waits for its answer; raises `ProtocolError` when the answer is an error."""
        ...

    async def notify(self, method: Notification[Params], params: Params, *, related: RequestId | None = None) -> None:
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

    @property
    def terms(self) -> Terms | None:
        """What the two sides agreed on, if the link knows."""
        return getattr(self.link, "terms", None)

    def check(self, method: Method) -> None:
        """Raises `CapabilityMissing` when `method` needs a capability that was not declared."""
        terms = self.terms
        capability = missing(method, terms.vocabulary.role, terms.declared) if terms is not None else None
        if capability is not None:
            raise CapabilityMissing(method.name, capability)

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Sends any request of the method table, or one of your own, and returns whatever answers it.

        Raises:
            CapabilityMissing: The other side did not declare what this needs; nothing was sent.
            ProtocolError: The answer is an error.
            ConnectionClosed: The connection ended first.
        """
        self.check(method)
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
        """Sends any notification of the method table, or one of your own; raises as `request` does."""
        self.check(method)
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
