"""Define the link to the other side, as handlers and clients see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from .envelope import RequestId
from .methods import Notification, Request

Params = TypeVar("Params")
Answer = TypeVar("Answer")


class Link(Protocol):
    """The way to the other side. `related` is the id of the other side's request that a message belongs to."""

    async def request(
        self, method: Request[Params, Any, Answer], params: Params, *, related: RequestId | None = None
    ) -> Answer:
        """Send a request and wait for its answer; raises `ProtocolError` when the answer is an error."""
        ...

    async def notify(self, method: Notification[Params], params: Params, *, related: RequestId | None = None) -> None:
        """Send a notification."""
        ...

    def metadata(self) -> Mapping[str, Any]:
        """Return what this side must say of itself in the `_meta` of every request (stateless revisions)."""
        ...
