"""Read streams that other workers write."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio

from mcp_bindgen.http.server.event_store.base import StoreUnavailable
from mcp_bindgen.http.server.http_error_store import Guarded
from mcp_bindgen.http.server.session_registry import OpenSession, unknown_event
from mcp_bindgen.http.server.streams import LISTEN_STREAM, Stream, taken

from .store import Position, SharedStore

Place = tuple[str, str]
"""The key of a session, and the name of a stream."""


class Readers:
    """The streams whose clients are connected to this worker, and came back for them or opened them by GET.

    Args:
        store: What the workers share.

    """

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._guarded = Guarded(store)
        self._open: dict[Place, tuple[Stream, str]] = {}

    @asynccontextmanager
    async def reading(self, session: OpenSession, name: str, after: int | None) -> AsyncGenerator[tuple[Stream, int]]:
        """Be the reader of a stream, whoever writes it, while the block runs.

        Args:
            session: The session.
            name: The stream's name.
            after: The number of the last event that the client has; `None` for the last one that was given to it.

        Yields:
            The stream, and the number after which it is read.

        Raises:
            HttpError: The event is unknown, or another connection reads the stream and keeps it.
        """
        place, token = (session.key, name), secrets.token_urlsafe(9)
        before = self._open.get(place)
        own = session.transport.standing if name == LISTEN_STREAM else session.transport.streams.get(name)
        stream = own or (before and before[0]) or Stream(session.key, name, (), self._guarded, kept=True)
        self._open[place] = stream, token
        position: Position | None = None
        try:
            position = await self._attached(place, token, after)
            if position is None:
                raise unknown_event()
            stream.given = position.after
            stream.advance(position.last, over=position.over)
            yield stream, position.after
        finally:
            if self.find(place, token) is not None:
                del self._open[place]
                if position is None and before is not None:
                    self._open[place] = before
            if position is not None:
                with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                    await self._store.detach(*place, token, stream.given)

    async def _attached(self, place: Place, token: str, after: int | None) -> Position | None:
        force = after is not None
        position = await self._store.attach(*place, token, after, force)
        lease = 0 if position is None else position.busy
        while position is not None and position.busy:  # until its worker shows that it is alive, or is not
            await asyncio.sleep(self._store.pulse / 2)
            position = await self._store.attach(*place, token, after, force)
            if position is not None and position.busy > lease:
                raise taken()
        return position

    def find(self, place: Place, token: str) -> Stream | None:
        """Return a stream, if it is still read under this token."""
        stream, known = self._open.get(place, (None, ""))
        return stream if known == token else None

    def advance(self, place: Place, number: int, data: bytes | None, over: bool) -> None:
        """Take note of an event; see `Stream.advance`."""
        stream, _ = self._open.get(place, (None, ""))
        if stream is not None:
            stream.advance(number, data, over)

    async def look(self) -> None:
        """See whether there is something for readers that they were not told of."""
        places = list(self._open)
        for place, found in zip(places, await self._store.look(places), strict=True):
            if found is not None:
                self.advance(place, found.last, None, found.over)

    def end(self, session: str) -> None:
        """End what is read of a session that is over."""
        for (key, _), (stream, _) in list(self._open.items()):
            if key == session:
                stream.end()

    def leave(self, retry: int) -> None:
        """Tell all clients to reconnect in so many milliseconds."""
        for stream, _ in list(self._open.values()):
            stream.leave(retry)
