"""Turn the failures of an event store into refusals that clients understand."""

from __future__ import annotations

import logging
from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

from .call import NOT_STORED, not_stored, unavailable
from .event_store.base import Event, EventStore, StoredSession, StoreUnavailable

T = TypeVar("T")

log = logging.getLogger("mcp_bindgen")


class Guarded:
    """An event store whose methods raise `HttpError` when it fails; the log says why.

    Args:
        store: The store.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store

    async def _try(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except StoreUnavailable as error:
            raise not_stored(error) from error
        except Exception as error:
            log.error("the event store failed: %s: %s", type(error).__name__, error)
            raise unavailable(NOT_STORED) from error

    async def save(self, session: str, record: bytes, principal: str | None = None) -> None:
        """See `EventStore`."""
        await self._try(self._store.save(session, record, principal))

    async def load(self, session: str) -> StoredSession | None:
        """See `EventStore`."""
        return await self._try(self._store.load(session))

    async def forget(self, session: str) -> None:
        """See `EventStore`."""
        await self._try(self._store.forget(session))

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """See `EventStore`."""
        await self._try(self._store.sweep(alive, idle))

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """See `EventStore`."""
        await self._try(self._store.write(session, stream, events, pending))

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """See `EventStore`."""
        return await self._try(self._store.span(session, stream))

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """See `EventStore`."""
        return await self._try(self._store.read(session, stream, after))
