"""Subscriptions of a stateless server (MCP 2026-07-28, "Subscriptions")."""

from __future__ import annotations

import asyncio
import inspect
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import anyio.lowlevel

from ..model.base import optional
from ..protocol import jsonrpc
from ..protocol.access import RequestOrigin, followed_by
from ..protocol.capabilities import is_offered
from ..protocol.envelope import RequestId
from ..protocol.errors import ConnectionClosed
from ..protocol.methods import ACKNOWLEDGED, UPDATED, Notification, filtered
from ..protocol.request_scope import Endpoint, Link, Negotiated
from .context import Context
from .server import Server

_MAX_WAITING = 1000  # notifications for a client that reads slowly


_FAR = 30 * 24 * 3600.0  # seconds beyond which a timer is pointless


@contextmanager
def scheduled(when: float | None, call: Callable[[], object]) -> Generator[None]:
    """Call something at a time unless a block ends before.

    Args:
        when: The time, in seconds since 1970; `None` for never.
        call: Function to call, in the event loop.
    """
    pause = math.inf if when is None else when - time.time()
    timer = asyncio.get_running_loop().call_later(max(pause, 0.0), call) if pause < _FAR else None
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


class Subscription(Link):
    """Link to a client that listens; notifications outside of its filter are not sent.

    Notifications wait in a queue, so a slow client delays no sender.

    Args:
        context: Context of the request that listens.
        agreed: Filter that the server agrees to.

    Attributes:
        agreed: The filter.
        negotiated: Agreement of the request that listens.
        origin: Origin of the request that listens.
        told: Number of the last broadcast that was sent, if workers share broadcasts.
        is_ending: True if only waiting notifications are still sent.
        before: Called and awaited before the acknowledgement is sent; does nothing by default.
    """

    told = 0

    def __init__(self, context: Context, agreed: Any) -> None:
        self.endpoint: Endpoint = context.link.endpoint
        self.negotiated: Negotiated = context.agreed
        self.origin: RequestOrigin = context.origin
        self._context = context
        self._filters = [filter for _, filter in filtered(context.agreed.dispatcher.methods)]
        self.agree(agreed)
        self._key = context.agreed.dispatcher.revision.meta_keys["subscription_id"]
        self._waiting: deque[tuple[Notification[Any], dict[str, Any]]] = deque()
        self.is_ending: bool = False
        self.before: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint
        self._ready = True
        self._news = anyio.Event()
        self._sent = anyio.Event()

    @property
    def ready(self) -> bool:
        """True if notifications can be sent."""
        return self._ready

    def agree(self, agreed: Any) -> None:
        """Replace the filter."""
        self.agreed = agreed
        self._index = {filter.member: filter.index(agreed) for filter in self._filters}

    def follows(self, member: str, value: str) -> bool:
        """Return whether a list of the filter has a value."""
        index = self._index[member]
        return not isinstance(index, bool) and value in index

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Queue a notification if the filter asks for it and the subscription is not ending.

        Raises:
            ConnectionClosed: The queue is full. The subscription ends, because the client would miss notifications.
        """
        if self.is_ending or not self.ready or method.filter is None:
            return
        if method.filter.asks_for(self._index.get(method.filter.member, False), params):
            if method.name == UPDATED and not self.allows_resource(params.uri):
                return
            if len(self._waiting) >= _MAX_WAITING:
                self._ready = False
                raise ConnectionClosed("the client does not read")
            self._waiting.append((method, {} if params is None else jsonrpc.plain(params)))
            self._news.set()

    async def serve(self, acknowledged: Notification[Any]) -> None:
        """Send the acknowledgement, then notifications until either side ends the subscription.

        Raises:
            ConnectionClosed: The client is gone, or does not read.
        """
        try:
            await self.before()
            await self._send(acknowledged, {"notifications": jsonrpc.plain(self.agreed)})
            while True:
                while self._waiting and self.ready:
                    await self._send(*self._waiting.popleft())
                if not self.ready:
                    raise ConnectionClosed("the client does not read")
                if self.is_ending:
                    return
                self._sent.set()
                self._sent, self._news = anyio.Event(), anyio.Event()
                await self._news.wait()
        finally:
            self._ready = False
            self._sent.set()

    async def drained(self) -> None:
        """Wait until the queue is empty or the subscription over."""
        while self._waiting and self.ready:
            await self._sent.wait()

    async def _send(self, method: Notification[Any], wire: dict[str, Any]) -> None:
        id_ = self._context.request_id
        wire["_meta"] = {**wire.get("_meta", {}), self._key: id_}
        await self._context.link.notify(method, jsonrpc.typed_params(method, wire), related=id_)

    def leave(self) -> None:
        """End the subscription after the waiting notifications."""
        self.is_ending = True
        self._news.set()


Follow: TypeAlias = Callable[[Subscription, list[str]], AbstractAsyncContextManager[list[str]]]
"""Follows resources for a subscription while a block lasts; yields the followed ones."""


@asynccontextmanager
async def _follow(subscription: Subscription, uris: list[str]) -> AsyncGenerator[list[str]]:
    yield uris


async def listen(server: Server, offers: Mapping[str, Any], params: Any, ctx: Context, follow: Follow = _follow) -> Any:
    """Answer `subscriptions/listen`: serve a subscription until either side ends it."""
    wanted = params.notifications
    followed_by(wanted)  # raises for a filter with too many resources
    dispatcher, revision = ctx.agreed.dispatcher, ctx.agreed.dispatcher.revision
    for extension in dispatcher.extensions:
        if any(getattr(wanted, name) is not None for name in extension.members(type(wanted).__name__)):
            ctx.require_extension(extension)
    agreed = {
        filter.member: getattr(wanted, filter.member)
        for method, filter in filtered(dispatcher.methods)
        if optional(wanted, filter.member) and is_offered(method, offers)
    }
    answer = server.agree(type(wanted)(**agreed), ctx)
    identity, link = ctx.origin.identity, ctx.link
    subscription = Subscription(ctx, await answer if inspect.isawaitable(answer) else answer)
    uris: list[str] = optional(subscription.agreed, revision.resources_member) or []
    acknowledged: Any = revision.methods[ACKNOWLEDGED]
    session_expires_at = None if identity is None else identity.session_expires_at
    with link.ending(subscription.leave):
        async with follow(subscription, uris) as followed:
            if uris:
                subscription.agree(subscription.agreed.model_copy(update={revision.resources_member: followed}))
            # Broadcasts from now on are sent after the acknowledgement. A client whose token expires listens again.
            async with link.endpoint.around_subscription(subscription, wanted):
                with link.endpoint.joined(subscription), scheduled(session_expires_at, subscription.leave):
                    server.begin_subscription(subscription)
                    await subscription.serve(acknowledged)
    return {"_meta": {revision.meta_keys["subscription_id"]: ctx.request_id}}
