"""Serve streams of change notifications that a client asks for (MCP 2026-07-28, "Subscriptions")."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any, TypeAlias

import anyio

from ...concurrency import scheduled
from ...protocol import jsonrpc
from ...protocol.access import Identity
from ...protocol.capabilities import is_offered
from ...protocol.envelope import RequestId
from ...protocol.errors import ConnectionClosed, MethodNotFound
from ...protocol.link import Link
from ...protocol.methods import Notification, filtered
from ...protocol.negotiated import Negotiated
from ...protocol.revision import Revision
from ...protocol.uris import canonical, followed_key
from ..lifecycle import ACKNOWLEDGED, SUBSCRIBE, UPDATED
from ..operations import check_followed, followed_by

_MOST_WAITING = 1000  # notifications for a client that reads slowly


class Subscription(Link):
    """The way to a client that listens: what it did not ask for is not sent.

    What is to be sent waits in a queue, so that a slow reader holds up no sender.

    Args:
        context: The context of the request that listens.
        agreed: Which notifications it gets, in the form of a filter.
        hears: Decides whether its token allows to hear of a resource below one that it follows, given the URI.

    Attributes:
        agreed: The filter.
        ready: Whether the client can be told something.
        negotiated: What the request that listens may count on.
        origin: Origin of the request that listens.
        told: The number of the last broadcast that it was told, where several workers share those.
        is_ending: True if nothing more is sent but what waits.
    """

    ready = True
    told = 0

    def __init__(self, context: Any, agreed: Any, hears: Callable[[str], bool]) -> None:
        self.negotiated: Negotiated | None = context.negotiated
        self.origin = context.origin
        self._hears = hears
        self._context = context
        self._filters = [filter for _, filter in filtered(context.negotiated.dispatcher.methods)]
        self.agree(agreed)
        self._key = context.negotiated.dispatcher.revision.meta_keys["subscription_id"]
        self._waiting: deque[tuple[Notification[Any], dict[str, Any]]] = deque()
        self.is_ending = False
        self._news = anyio.Event()
        self._sent = anyio.Event()

    def agree(self, agreed: Any) -> None:
        """Replace the filter."""
        self.agreed = agreed
        self._index = {filter.member: filter.index(agreed) for filter in self._filters}

    def _may_hear(self, member: str, uri: str) -> bool:
        """Tell whether the token allows to hear of a resource: the ones that the filter names were checked before."""
        return self.follows(member, followed_key(uri)) or self._hears(uri)

    def follows(self, member: str, value: str) -> bool:
        """Tell whether a list of the filter has a value."""
        index = self._index[member]
        return not isinstance(index, bool) and value in index

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuse: a client cannot be asked over its subscription."""
        raise MethodNotFound(method.name)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Send a notification soon, if it was asked for and the subscription is not about to end.

        Raises:
            ConnectionClosed: Too many wait already. The client is given up, because it would miss some.
        """
        if self.is_ending or not self.ready or method.filter is None:
            return
        if method.filter.asks_for(self._index.get(method.filter.member, False), params):
            if method.name == UPDATED and not self._may_hear(method.filter.member, params.uri):
                return
            if len(self._waiting) >= _MOST_WAITING:
                self.ready = False
                raise ConnectionClosed("the client does not read")
            self._waiting.append((method, {} if params is None else jsonrpc.plain(params)))
            self._news.set()

    async def serve(self, acknowledged: Notification[Any]) -> None:
        """Send the acknowledgement, and then notifications until either side ends the subscription.

        Raises:
            ConnectionClosed: The client is gone, or does not read.
        """
        try:
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
            self.ready = False
            self._sent.set()

    async def drained(self) -> None:
        """Wait until nothing waits to be sent, or the subscription is over."""
        while self._waiting and self.ready:
            await self._sent.wait()

    async def _send(self, method: Notification[Any], wire: dict[str, Any]) -> None:
        id_ = self._context.request_id
        wire["_meta"] = {**wire.get("_meta", {}), self._key: id_}
        await self._context.link.notify(method, jsonrpc.typed_params(method, wire), related=id_)

    def end(self) -> None:
        """End the subscription in good order."""
        self.is_ending = True
        self._news.set()


AroundSubscription: TypeAlias = Callable[[Subscription, Any], AbstractAsyncContextManager[None]]
"""Surrounds the service of a subscription, given the filter that its client sent; entered before it begins."""

Follow: TypeAlias = Callable[[Subscription, list[str]], AbstractAsyncContextManager[list[str]]]
"""Has resources followed for a subscription while a block lasts; gives those that are."""


@asynccontextmanager
async def _followed(subscription: Subscription, uris: list[str]) -> AsyncGenerator[list[str]]:
    yield uris


def _resources(revision: Revision, agreed: Any) -> str:
    """Return the member of a filter that lists resources; empty where none does."""
    updated = revision.methods.get(UPDATED)
    member = updated.filter.member if isinstance(updated, Notification) and updated.filter is not None else ""
    return member if getattr(agreed, member, None) else ""


async def listen(
    server: Any,
    revision: Revision,
    offers: Mapping[str, Any],
    params: Any,
    context: Any,
    follow: Follow = _followed,
) -> Any:
    """Answer `subscriptions/listen`: serve a subscription until either side ends it."""
    wanted = params.notifications
    check_followed(followed_by(wanted))
    dispatcher = context.negotiated.dispatcher
    for extension in dispatcher.extensions:
        if any(getattr(wanted, name) is not None for name in extension.members(type(wanted).__name__)):
            context.require_extension(extension)
    agreed = {
        filter.member: getattr(wanted, filter.member)
        for method, filter in filtered(dispatcher.methods)
        if getattr(wanted, filter.member, None) and is_offered(method, offers)
    }
    answer = server.agree(type(wanted)(**agreed), context)
    identity: Identity | None = context.origin.identity

    def hears(uri: str) -> bool:
        return server.allows is None or server.allows(identity, revision.name, [(SUBSCRIBE, canonical(uri))])

    subscription = Subscription(context, await answer if inspect.isawaitable(answer) else answer, hears)
    resources = _resources(revision, subscription.agreed)
    acknowledged: Any = revision.methods[ACKNOWLEDGED]
    endless: set[Any] = getattr(context.link, "endless", set())
    around: AroundSubscription | None = getattr(context.link, "listening", None)
    endless.add(subscription.end)
    session_expires_at = None if identity is None else identity.session_expires_at
    try:
        async with follow(subscription, getattr(subscription.agreed, resources, None) or []) as followed:
            if resources:
                subscription.agree(subscription.agreed.model_copy(update={resources: followed}))
            # Broadcasts from now on follow the acknowledgement. A client whose token expires listens again.
            async with nullcontext() if around is None else around(subscription, wanted):
                with attached(server, subscription), scheduled(session_expires_at, subscription.end):
                    server.begin_subscription(subscription)
                    await subscription.serve(acknowledged)
    finally:
        endless.discard(subscription.end)
    return {"_meta": {revision.meta_keys["subscription_id"]: context.request_id}}


# --- who listens to a server ----------------------------------------------------------------------------------


def audience(server: object) -> list[Link]:
    """Return the links to the clients of a server: connections, and subscriptions."""
    found: list[Link] = server.__dict__.setdefault("_audience", [])
    return found


@contextmanager
def attached(server: object, link: Link) -> Generator[None]:
    """Make a link part of the audience for a while."""
    audience(server).append(link)
    try:
        yield
    finally:
        audience(server).remove(link)
