"""Call the other side with types, over whatever connects the two sides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from ..model.json_types import is_object
from ..protocol.capabilities import missing
from ..protocol.envelope import invalid_answer
from ..protocol.errors import UnexpectedAnswer
from ..protocol.extension import Extension
from ..protocol.link import Link
from ..protocol.methods import Method, Notification, Request
from ..protocol.negotiated import Negotiated
from ..protocol.transitions import Role

T = TypeVar("T")
Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer")
M = TypeVar("M", bound=BaseModel)


class Caller:
    """One side's typed calls to the other.

    Args:
        link: The way there.

    Attributes:
        max_pages: The most pages of a list that are read.
    """

    max_pages: int = 1000

    def __init__(self, link: Link) -> None:
        self.link = link

    @property
    def negotiated(self) -> Negotiated | None:
        """What the two sides agreed on, if the link knows."""
        return self.link.negotiated

    def peer_settings(self, extension: Extension) -> Any:
        """Return the settings with which the other side declares an extension that this side declares, too.

        Args:
            extension: The extension.

        Returns:
            The settings, typed where their type is stated; `None` where either side does not declare it, or the
            connection is in another revision.

        Raises:
            ProtocolError: They are not valid.
        """
        agreed = self.negotiated
        if agreed is None or not extension.extends_core(agreed.dispatcher.revision):
            return None
        ours = agreed.dispatcher.role
        theirs: Role = "client" if ours == "server" else "server"
        if not extension.is_in(agreed.declared[ours]):
            return None
        return extension.settings_of(theirs, agreed.declared[theirs])

    def check(self, method: Method, params: Any) -> None:
        """Raise `CapabilityMissing` when a method, or these params of it, need a capability that was not declared."""
        agreed = self.negotiated
        if agreed is not None:
            dispatcher = agreed.dispatcher
            capability = missing(method, dispatcher.revision, dispatcher.role, agreed.declared, params)
            if capability is not None:
                raise agreed.lacking(method.name, capability)

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Send any request of the method table, or one of your own, and return whatever answers it.

        Raises:
            CapabilityMissing: The other side did not declare what this needs; nothing was sent.
            ProtocolError: The answer is an error.
            ConnectionClosed: The connection ended first.
        """
        self.check(method, params)
        return await self.link.request(method, params)

    async def call(self, method: Request[Params, Result, Any], params: Params) -> Result:
        """Send a request and return its usual result.

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
        """Send any notification of the method table, or one of your own; raise as `request` does."""
        self.check(method, params)
        await self.link.notify(method, params)

    async def pages(self, call: Callable[[str | None], Awaitable[T]]) -> AsyncIterator[T]:
        """Yield the pages of a paginated list, typed or in wire form: call again with each cursor until there is none.

        Raises:
            ProtocolError: The list has no end: a cursor comes again, or there are more than `max_pages`.
        """
        cursor: str | None = None
        seen: set[str | None] = {cursor}
        for _ in range(self.max_pages):
            page = await call(cursor)
            yield page
            cursor = page.get("nextCursor") if is_object(page) else getattr(page, "next_cursor", None)
            if cursor is None:
                return
            if cursor in seen:
                raise invalid_answer(f"the list has no end: it gives the cursor {cursor[:60]!r} twice")
            seen.add(cursor)
        raise invalid_answer(f"the list has more than {self.max_pages} pages; max_pages allows more")

    def metadata(self, model: type[M], extra: Mapping[str, Any] | None) -> M:
        """Return the `_meta` of a request: what the link must say, and what the caller adds."""
        return model.model_validate({**self.link.metadata(), **(extra or {})})
