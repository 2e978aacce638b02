"""Scope of one request: everything that its handler may know besides the params."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..protocol.access import RequestOrigin
from ..protocol.envelope import RequestId
from ..protocol.link import Link
from ..protocol.negotiated import Negotiated


@dataclass(frozen=True, slots=True)
class RequestScope:
    """Scope of a request or notification. An era makes it from the message and its transport's origin.

    Attributes:
        link: Way to the sender.
        origin: Origin of this message.
        request_id: Id of the request; `None` for a notification.
        negotiated: Revision, capabilities and peer that this request counts on; `None` if unknown.
        meta: Typed `_meta` of the request (stateless revisions); `None` where the params hold it.
    """

    link: Link
    origin: RequestOrigin
    request_id: RequestId | None = None
    negotiated: Negotiated | None = None
    meta: Any = None

    @classmethod
    def of(cls, link: Link) -> RequestScope:
        """Return the scope of messages that belong to no request."""
        return cls(link, link.origin, None, link.negotiated)

    @property
    def is_over(self) -> bool:
        """True if the request was answered or cancelled while the connection goes on."""
        return self.request_id is not None and self.link.is_over(self.request_id)
