"""Links: the way to the other side, as handlers and clients use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from anyio import CapacityLimiter

from .access import UNKNOWN_ORIGIN, RequestOrigin
from .envelope import RequestId
from .methods import Notification, Request
from .negotiated import Negotiated

Params = TypeVar("Params")
Answer = TypeVar("Answer")


class Link(Protocol):
    """The way to the other side. Inherit from it: only `request` and `notify` are required.

    `related` is the id of the peer's request that a message belongs to.

    Attributes:
        origin: Origin of the newest message.
        negotiated: Agreement of both sides; `None` if each request makes its own.
    """

    origin: RequestOrigin = UNKNOWN_ORIGIN
    negotiated: Negotiated | None = None

    async def request(
        self, method: Request[Params, Any, Answer], params: Params, *, related: RequestId | None = None
    ) -> Answer:
        """Send a request and wait for its answer; raises `ProtocolError` when the answer is an error."""
        ...

    async def notify(self, method: Notification[Params], params: Params, *, related: RequestId | None = None) -> None:
        """Send a notification."""
        ...

    def metadata(self) -> Mapping[str, Any]:
        """Return the members of `_meta` that every request to this side needs (stateless revisions)."""
        return {}

    def thread_limit(self) -> CapacityLimiter | None:
        """Return the limit of threads for blocking handlers; `None` for that of the process only."""
        return None

    def is_over(self, id_: RequestId) -> bool:
        """Return whether a request of the peer was answered or cancelled while the connection goes on."""
        return False

    def close_stream(self, related: RequestId | None, retry: int | None = None) -> bool:
        """Close the stream of a request; see `Transport.close_stream`."""
        return False

    def allows_resource(self, uri: str) -> bool:
        """Return whether the peer's token permits notifications about a resource; True without tokens."""
        return True
