"""Event store with HTTP errors for its failures."""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Sequence
from typing import Any, TypeVar

from mcp_bindgen.runtime.logs import log

from .errors import NOT_STORED, not_stored, unavailable
from .event_store.base import Event, EventStore, StoredSession, StoreUnavailable

T = TypeVar("T")


class HttpErrorStore:
    """Event store that raises `HttpError`, and writes to the log, when the wrapped store fails; see `EventStore`.

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
        """Store the record of a session."""
        await self._try(self._store.save(session, record, principal))

    async def load(self, session: str) -> StoredSession | None:
        """Return a session."""
        return await self._try(self._store.load(session))

    async def forget(self, session: str) -> None:
        """Drop a session."""
        await self._try(self._store.forget(session))

    async def sweep(self, alive: Collection[str], idle: float) -> None:
        """Forget unused sessions."""
        await self._try(self._store.sweep(alive, idle))

    async def write(self, session: str, stream: str, events: Sequence[Event], pending: bytes | None) -> None:
        """Add events to a stream."""
        await self._try(self._store.write(session, stream, events, pending))

    async def span(self, session: str, stream: str) -> tuple[int, int] | None:
        """Return the events that are held."""
        return await self._try(self._store.span(session, stream))

    async def read(self, session: str, stream: str, after: int) -> Sequence[Event]:
        """Return the next events of a stream."""
        return await self._try(self._store.read(session, stream, after))
