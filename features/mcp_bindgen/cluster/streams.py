"""Streams that several workers write, and their readers at this worker."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress

import anyio

from mcp_bindgen.http.server.event_store import StoreUnavailable
from mcp_bindgen.http.server.session_transport import SessionTransport
from mcp_bindgen.http.server.sessions import OpenSession
from mcp_bindgen.http.server.streams import LISTEN_STREAM, Stream, already_read, parse_event_id, unknown_event
from mcp_bindgen.runtime.protocol.envelope import RequestId

from .store import SharedStore, StreamPosition

StreamKey = tuple[str, str]
"""Key of a session, and name of a stream."""


class SharedListenStream(Stream):
    """Listen stream of a session, to which every worker adds events; the store numbers them."""

    async def _add(self, message: bytes | None, answered: Collection[RequestId]) -> bool:
        if message is None or not self.persisted:
            return await super()._add(message, answered)
        assert isinstance(self.store, SharedStore)
        number = await self.store.add(self.session, message)
        if number:
            self.advance(number, message)
        return number > 0


class SharedTransport(SessionTransport):
    """Transport of a session at one worker."""

    listen_stream = SharedListenStream


class StreamReaders:
    """Streams that clients read at this worker, after a GET.

    Args:
        store: Store of the workers.
    """

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._open: dict[StreamKey, tuple[Stream, str]] = {}

    @asynccontextmanager
    async def reading(self, session: OpenSession, last_event_id: str | None) -> AsyncGenerator[tuple[Stream, int]]:
        """Read a stream, which any worker may write, while the block runs; see `SessionRegistry.reading`."""
        if last_event_id is None and session.transport.standing.is_read:
            raise already_read()
        name, after = (LISTEN_STREAM, None) if last_event_id is None else parse_event_id(last_event_id) or ("", 0)
        key, token = (session.key, name), secrets.token_urlsafe(9)
        before = self._open.get(key)
        own = session.transport.standing if name == LISTEN_STREAM else session.transport.streams.get(name)
        stream = own or (before and before[0]) or Stream(session.key, name, (), self._store, persisted=True)
        self._open[key] = stream, token
        position: StreamPosition | None = None
        try:
            position = await self._attach(key, token, after)
            if position is None:
                raise unknown_event()
            stream.last_delivered_id = position.after
            stream.advance(position.last, closes=position.is_closed)
            yield stream, position.after
        finally:
            if self.find(key, token) is not None:
                del self._open[key]
                if position is None and before is not None:
                    self._open[key] = before
            if position is not None:
                with anyio.CancelScope(shield=True), suppress(StoreUnavailable):
                    await self._store.detach(*key, token, stream.last_delivered_id)

    async def _attach(self, key: StreamKey, token: str, after: int | None) -> StreamPosition | None:
        force, lease = after is not None, 0
        while True:
            position = await self._store.attach(*key, token, after, force)
            if position is None or not position.busy_until:
                return position
            if lease and position.busy_until > lease:  # the reader's worker has renewed its lease, so it is alive
                raise already_read()
            lease = position.busy_until
            await asyncio.sleep(self._store.heartbeat_interval / 2)

    def find(self, key: StreamKey, token: str) -> Stream | None:
        """Return a stream if the reader with this token still reads it."""
        stream, known = self._open.get(key, (None, ""))
        return stream if known == token else None

    def advance(self, key: StreamKey, number: int, data: bytes | None, over: bool) -> None:
        """Note an event of a stream; see `Stream.advance`."""
        stream, _ = self._open.get(key, (None, ""))
        if stream is not None:
            stream.advance(number, data, over)

    async def refresh(self) -> None:
        """Ask the store for events whose messages were lost."""
        keys = list(self._open)
        for key, found in zip(keys, await self._store.positions(keys), strict=True):
            if found is not None:
                self.advance(key, found.last, None, found.is_closed)

    def end(self, session: str) -> None:
        """End the streams of a session that is over."""
        for (key, _), (stream, _) in list(self._open.items()):
            if key == session:
                stream.close()

    def leave(self, retry: int) -> None:
        """Tell all clients to reconnect in so many milliseconds."""
        for stream, _ in list(self._open.values()):
            stream.leave(retry)
