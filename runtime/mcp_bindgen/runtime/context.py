"""What a handler knows of its request, and its way back to the side that sent it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from . import jsonrpc
from .calls import Caller
from .errors import ConnectionClosed
from .guards import is_object
from .jsonrpc import RequestId
from .vocabulary import LOG, PROGRESS

if TYPE_CHECKING:
    from .calls import Link
    from .session import Session

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The severities of log messages, the mildest first (RFC 5424)."""


class Context(Caller):
    """What a handler knows of its request, and what it may do meanwhile.

    Attributes:
        request_id: The request's id; `None` for a notification.
    """

    def __init__(self, link: Link, request_id: RequestId | None = None, params: Any = None) -> None:
        self.link = link
        self.request_id = request_id
        self.params = params

    @property
    def session(self) -> Session:
        """The connection; raises `ConnectionClosed` where there is none, as in a test with a link of its own."""
        from .session import Session

        if not isinstance(self.link, Session):
            raise ConnectionClosed("this context has no connection")
        return self.link

    @property
    def revision(self) -> str:
        """The revision that the two sides agreed on."""
        return self.session.peer.vocabulary.revision

    @property
    def peer_info(self) -> Any:
        """How the other side introduced itself: an `Implementation`."""
        return self.session.peer_info

    @property
    def peer_capabilities(self) -> Mapping[str, Any]:
        """What the other side declared, in wire form."""
        peer = self.session.peer
        return self.session.declared["client" if peer.role == "server" else "server"]

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `_meta` of the request, in wire form."""
        meta = getattr(self.params, "meta", None)
        if meta is None and isinstance(self.params, BaseModel):
            meta = (self.params.model_extra or {}).get("_meta")  # revisions that do not name it let it pass
        if isinstance(meta, BaseModel):
            return meta.model_dump()
        return meta if is_object(meta) else {}

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the other side how far the request is; does nothing when it did not ask.

        Args:
            progress: How much is done; grows from call to call.
            total: How much there is in all, if known.
            message: What is going on (from 2025-03-26).
        """
        token = self.meta.get("progressToken")
        if token is None:
            return
        wire = {"progressToken": token, "progress": progress, "total": total, "message": message}
        await self._notify(PROGRESS, wire)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Sends a log message, unless the client asked for more severe ones only.

        Args:
            level: One of `LEVELS`.
            data: Any JSON value.
            logger: Which part of the server speaks.
        """
        wanted = self.session.log_level
        if wanted is None or LEVELS.index(level) >= LEVELS.index(wanted):
            await self._notify(LOG, {"level": level, "data": data, "logger": logger})

    async def _notify(self, name: str, wire: dict[str, Any]) -> None:
        method: Any = self.session.peer.vocabulary.methods[name]
        known = {key: value for key, value in wire.items() if value is not None or key == "data"}
        await self.notify(method, jsonrpc.typed_params(method, known))
