"""Serve subscriptions of which each worker has a part: a client that listens again elsewhere misses no broadcast."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from pydantic_core import from_json, to_json

from mcp_bindgen.http.server.event_store.base import StoreUnavailable
from mcp_bindgen.http.server.session_registry import UNREADABLE
from mcp_bindgen.runtime.concurrency import Turn
from mcp_bindgen.runtime.era.stateless.subscriptions import Subscription, audience
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.methods import Notification
from mcp_bindgen.runtime.session.request_scope import RequestScope
from mcp_bindgen.runtime.session.server import Service

from .store import News, SharedStore
from .worker import Worker


class SharedSubscriptions:
    """The subscriptions that this worker serves (stateless revisions).

    A worker that ends a subscription in good order leaves the number of the last broadcast that was sent on it in the
    store, for a minute. The next subscription of the same principal and client with the same filter begins with the
    broadcasts after that number, at whichever worker it is.

    Args:
        service: The servers.
        store: The store of the workers.
        worker: This worker.
    """

    def __init__(self, service: Service, store: SharedStore, worker: Worker) -> None:
        self._service, self._store, self._worker = service, store, worker

    async def tell(self, news: News, found: tuple[Notification[Any], Any] | None) -> None:
        """Send a broadcast, given what `read` returned for it, on all subscriptions that ask for it."""
        send = self._sender(news, found)
        turn = Turn()
        for one in self._all():
            if one.told < news.number and not one.is_ending:
                await send(one)
            await turn.give_way()

    def end(self) -> None:
        """End all of them in good order: clients listen again, and get what this worker has missed."""
        for one in self._all():
            one.end()

    @asynccontextmanager
    async def continued(self, subscription: Subscription, wanted: Any) -> AsyncGenerator[None]:
        """Begin a subscription where the client's last one ended, and hand it over if it ends in good order.

        Args:
            subscription: The subscription.
            wanted: The filter that the client sent.
        """
        key = self._key(subscription, wanted)
        try:
            await self._catch_up(subscription, await self._store.take_over(key))
        except StoreUnavailable:
            log.debug("a subscription begins anew: the store is away")
        subscription.told = max(subscription.told, self._worker.news)
        yield
        try:
            await self._store.hand_over(key, subscription.told)
        except StoreUnavailable:
            log.debug("a subscription is not handed over: the store is away")

    async def _catch_up(self, subscription: Subscription, told: int | None) -> None:
        """Queue the broadcasts after a number, up to those that this worker sends as they come."""
        if told is None:
            return
        subscription.told = told
        while True:
            known = self._worker.news
            for news in await self._store.missed(subscription.told):
                await self._sender(news, self.read(news))(subscription)
            if self._worker.news <= max(known, subscription.told):
                return

    def read(self, news: News) -> tuple[Notification[Any], Any] | None:
        """Return the method of a broadcast and its params; None if it cannot be read, or is not served here."""
        dispatcher = self._service.dispatchers.get(news.revision)
        method = None if dispatcher is None else dispatcher.methods.get(news.method)
        if isinstance(method, Notification):
            with suppress(*UNREADABLE):
                return method, jsonrpc.typed_params(method, from_json(news.data).get("params"))
        return None

    def _sender(
        self, news: News, found: tuple[Notification[Any], Any] | None
    ) -> Callable[[Subscription], Awaitable[None]]:
        """Return the function that queues a broadcast on a subscription of its revision, and notes its number there."""
        server = self._service.server_of(news.revision)

        async def send(subscription: Subscription) -> None:
            subscription.told = news.number
            agreed = subscription.negotiated
            if server is None or found is None or agreed is None:
                return
            if agreed.dispatcher.revision.name == news.revision:
                with suppress(ConnectionClosed):
                    await server.context(RequestScope.of(subscription)).notify(*found)

        return send

    def _all(self) -> list[Subscription]:
        links = {id(one): one for server in self._service.servers for one in audience(server)}
        return [one for one in links.values() if isinstance(one, Subscription)]

    def _key(self, subscription: Subscription, wanted: Any) -> str:
        """Return the name under which a subscription is handed over; numbers count within one generation only."""
        agreed = subscription.negotiated
        assert agreed is not None
        client = None if agreed.peer_info is None else jsonrpc.plain(agreed.peer_info)
        said = [self._worker.generation, agreed.dispatcher.revision.name, subscription.origin.principal, client]
        return hashlib.sha256(to_json([*said, jsonrpc.plain(wanted)])).hexdigest()
