"""Deliver the messages of streams that other workers write, too."""

from __future__ import annotations

from collections.abc import Collection

from mcp_bindgen.http.server.limits import Budget
from mcp_bindgen.http.server.streams import LISTEN_STREAM, Stream
from mcp_bindgen.runtime.protocol.envelope import RequestId

from .store import SharedStore


class SharedStanding(Stream):
    """The stream of a session that belongs to no request, as one of several workers sees it: each may add to it.

    Args:
        session: The session's key in the store.
        store: Where its events are, and numbered.
        last: The number of its last event.
        persisted: True if the store has it.
        queue: Limits the bytes that wait, here and on other streams.
    """

    def __init__(
        self, session: str, store: SharedStore, *, last: int = 0, persisted: bool = False, queue: Budget | None = None
    ) -> None:
        super().__init__(session, LISTEN_STREAM, store=store, last=last, persisted=persisted, queue=queue)
        self._shared = store

    async def _add(self, message: bytes | None, answered: Collection[RequestId]) -> bool:
        if message is None or not self.persisted:
            return await super()._add(message, answered)
        number = await self._shared.add(self._session, self.name, message)
        if number:
            self.advance(number, message)
        return number > 0
