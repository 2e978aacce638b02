"""Lease of a worker, messages of the other workers, and cleanup after workers that died."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from mcp_bindgen.http.server.errors import NOT_STORED, unavailable
from mcp_bindgen.http.server.event_store import StoreUnavailable
from mcp_bindgen.http.server.session_transport import unanswered
from mcp_bindgen.runtime.logs import log

from .store import Broadcast, SharedStore, WorkerMessage

_RETRY_SECONDS = 0.2  # until the next attempt while the store is unavailable
_HEARTBEATS_PER_CHECK = 5
_DIED = "the worker that handled this request has died"


class Worker:
    """Membership of this process in the workers of an endpoint.

    Args:
        store: Store of the workers.
        on_message: Handles a message for this worker.
        on_broadcast: Handles a broadcast.
        on_lost: Called if the other workers took this worker for dead, or the store has lost its data: all sessions
            and subscriptions of this worker are over.
        on_check: Called with every fifth heartbeat.

    Attributes:
        generation: Name of the store's data; None before the other workers know this worker.
        last_broadcast: Number of the last broadcast that this worker has received.
    """

    def __init__(
        self,
        store: SharedStore,
        on_message: Callable[[WorkerMessage], Awaitable[None]],
        on_broadcast: Callable[[Broadcast], Awaitable[None]],
        on_lost: Callable[[], None],
        on_check: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._on_message, self._on_broadcast = on_message, on_broadcast
        self._on_lost, self._on_check = on_lost, on_check
        self.generation: str | None = None
        self.last_broadcast: int = 0
        self._heartbeats = 0

    def check(self) -> None:
        """Raise `HttpError` before the other workers know this worker."""
        if self.generation is None:
            raise unavailable(NOT_STORED)

    async def begin(self) -> None:
        """Announce this worker, if the store is available."""
        try:
            await self._heartbeat()
        except StoreUnavailable:
            log.warning("the shared store is away; sessions cannot be served until it is there")

    async def live(self) -> None:
        """Renew the lease of this worker until cancelled."""
        while True:
            pause = self._store.heartbeat_interval
            try:
                await self._heartbeat()
            except StoreUnavailable:
                pause = _RETRY_SECONDS
            except Exception:
                log.exception("the lease of this worker could not be renewed")
            await asyncio.sleep(pause)

    async def _heartbeat(self) -> None:
        store = self._store
        found = await store.heartbeat()
        if self.generation is not None and (not found.is_known or found.generation != self.generation):
            log.error("this worker was taken for dead, or the store has lost its data: its sessions begin anew")
            self.generation = None
            self._on_lost()
            store.new_name()
            found = await store.heartbeat()
        if self.generation is None:
            store.receive_after(found.last_broadcast)
            self.generation, self.last_broadcast, self._heartbeats = found.generation, found.last_broadcast, 0
        if self._heartbeats % _HEARTBEATS_PER_CHECK == 0:
            await self._on_check()
        self._heartbeats += 1
        for dead in found.dead:
            await self._remove(dead)

    async def _remove(self, dead: str) -> None:
        """Fail the requests of a dead worker. Several workers may do so at the same time."""
        log.warning("a worker has died: its requests are answered with errors")
        for session, name, pending in await self._store.unfinished(dead):
            await self._store.fail(session, name, dead, unanswered(pending, _DIED))
        await self._store.remove_worker(dead)

    async def read(self) -> None:
        """Handle messages and broadcasts until cancelled."""
        while True:
            if self.generation is None:
                await asyncio.sleep(_RETRY_SECONDS / 4)
                continue
            try:
                messages, broadcasts = await self._store.receive()
            except Exception as error:
                if not isinstance(error, StoreUnavailable):
                    log.exception("messages of other workers could not be read")
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            for message in messages:
                await self._handle(self._on_message(message))
            for broadcast in broadcasts:
                self.last_broadcast = broadcast.number
                await self._handle(self._on_broadcast(broadcast))

    async def _handle(self, work: Awaitable[None]) -> None:
        try:
            await work
        except StoreUnavailable:
            log.warning("a message of another worker is lost: the store is away")
        except Exception:
            log.exception("a message of another worker is lost")
