"""Take part in an endpoint that several workers serve: stay alive for the others, read mail, see to those who died."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mcp_bindgen.http.server.errors import NOT_STORED, unavailable
from mcp_bindgen.http.server.event_store.base import StoreUnavailable
from mcp_bindgen.http.server.session_transport import unanswered

from .store import Mail, News, SharedStore

log = logging.getLogger("mcp_bindgen")

_AGAIN = 0.2  # seconds until the store is asked again when it was away
_KEYS = 5  # beats after which the keys of request state are looked at
_DIED = "the worker that handled this request has died"


class Worker:
    """A worker's life beside its requests.

    Args:
        store: What workers share.
        on_mail: Takes a message for this worker.
        on_news: Takes a broadcast.
        on_lost: Called when others have taken this worker for dead, or the store has lost its data: all that this
            worker has begun is over.
        on_beat: Called now and then.

    Attributes:
        generation: The name of the store's data; `None` before the other workers know this one.
        news: The number of the last broadcast that this worker has read.
    """

    def __init__(
        self,
        store: SharedStore,
        on_mail: Callable[[Mail], Awaitable[None]],
        on_news: Callable[[News], Awaitable[None]],
        on_lost: Callable[[], None],
        on_beat: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._on_mail, self._on_news, self._on_lost, self._on_beat = on_mail, on_news, on_lost, on_beat
        self.generation: str | None = None
        self.news = 0
        self._beats = 0

    def check(self) -> None:
        """Raise `HttpError` before the other workers know this one."""
        if self.generation is None:
            raise unavailable(NOT_STORED)

    @property
    def is_known(self) -> bool:
        """Whether the store was there and the other workers know this one."""
        return self.generation is not None

    async def begin(self) -> None:
        """Make this worker known, if the store is there."""
        try:
            await self._beat()
        except StoreUnavailable:
            log.warning("the shared store is away; sessions cannot be served until it is there")

    async def live(self) -> None:
        """Renew the lease of this worker, for ever."""
        while True:
            try:
                await self._beat()
            except StoreUnavailable:
                await asyncio.sleep(_AGAIN)
                continue
            except Exception:
                log.exception("the lease of this worker could not be renewed")
            await asyncio.sleep(self._store.pulse)

    async def _beat(self) -> None:
        store = self._store
        beat = await store.beat()
        if self.generation is not None and (not beat.known or beat.generation != self.generation):
            log.error("this worker was taken for dead, or the store has lost its data: its sessions begin anew")
            self.generation = None
            self._on_lost()
            store.begin_anew()
            beat = await store.beat()
        if self.generation is None:
            store.listen(beat.news)
            self.generation, self.news = beat.generation, beat.news
            self._beats = 0
        if self._beats % _KEYS == 0:
            await self._on_beat()
        self._beats += 1
        for dead in beat.dead:
            await self._bury(dead)

    async def _bury(self, dead: str) -> None:
        """Fail the requests of a worker that has died; others may do the same at the same time."""
        log.warning("a worker has died: its requests are answered with errors")
        for session, name, pending in await self._store.unfinished(dead):
            await self._store.fail(session, name, dead, unanswered(pending, _DIED))
        await self._store.bury(dead)

    async def read(self) -> None:
        """Read mail and broadcasts, for ever."""
        while True:
            if self.generation is None:
                await asyncio.sleep(_AGAIN / 4)
                continue
            try:
                mail, news = await self._store.mail()
            except StoreUnavailable:
                await asyncio.sleep(_AGAIN)
                continue
            except Exception:
                log.exception("mail could not be read")
                await asyncio.sleep(_AGAIN)
                continue
            for letter in mail:
                await self._take(self._on_mail(letter))
            for one in news:
                self.news = one.number
                await self._take(self._on_news(one))

    async def _take(self, work: Awaitable[None]) -> None:
        try:
            await work
        except StoreUnavailable:
            log.warning("mail is lost: the store is away")
        except Exception:
            log.exception("mail is lost")
