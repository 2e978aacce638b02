"""Broadcasts: notifications to all clients of a server, at all endpoints that serve it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

import anyio
from anyio.lowlevel import checkpoint

from ..protocol.errors import ConnectionClosed, StoreUnavailable
from ..protocol.request_scope import Endpoint
from .rounds import RequestStateSigner

_MAX_TOLD_AT_ONCE = 100  # clients of a broadcast


class Workers(Protocol):
    """Processes that serve the same clients; a shared store brings them."""

    @property
    def shared(self) -> object:
        """The store, which gets a broadcast once for all endpoints that share it."""
        ...

    @property
    def signer(self) -> RequestStateSigner:
        """The signer of all processes for the state of requests."""
        ...

    def continued(self, link: Any, wanted: object) -> AbstractAsyncContextManager[None]:
        """Return the context of a subscription, which goes on where the client's previous one ended."""
        ...

    async def publish(self, server: Any, tell: Callable[[Any], Awaitable[None]]) -> bool:
        """Notify the clients of all processes; return False where only those of this process can be notified."""
        ...


async def broadcast(endpoints: Iterable[Endpoint], server: object, tell: Callable[[Any], Awaitable[None]]) -> None:
    """Notify all clients of a server at its endpoints; see `Server.broadcast`.

    A store that several endpoints share gets the broadcast once. If it is away, other clients are notified.

    Raises:
        StoreUnavailable: A store is away.
    """
    alone: list[Endpoint] = []
    told: list[object] = []
    failure: StoreUnavailable | None = None
    for endpoint in endpoints:
        try:
            if not await endpoint.publish(server, tell, told):
                alone.append(endpoint)
        except StoreUnavailable as error:
            failure = error

    async def one(context: Any) -> None:
        with suppress(ConnectionClosed):
            await tell(context)

    async with anyio.create_task_group() as tasks:
        for number, context in enumerate((found for each in alone for found in each.connections(server)), 1):
            tasks.start_soon(one, context)
            if number % _MAX_TOLD_AT_ONCE == 0:  # requests are handled in between
                await checkpoint()
    if failure is not None:
        raise failure
