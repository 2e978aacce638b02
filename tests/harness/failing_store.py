"""An event store that can be unavailable."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.http import MemoryEventStore


class FailingStore(MemoryEventStore):
    """Store in memory that raises `error` in each call while `error` is set."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        self._check()
        await super().save(session, record, principal)

    async def load(self, session: str) -> Any:
        self._check()
        return await super().load(session)

    async def span(self, session: str, stream: str) -> Any:
        self._check()
        return await super().span(session, stream)

    async def write(self, session: str, stream: str, events: Any, pending: bytes | None) -> None:
        self._check()
        await super().write(session, stream, events, pending)

    async def forget(self, session: str) -> None:
        self._check()
        await super().forget(session)
