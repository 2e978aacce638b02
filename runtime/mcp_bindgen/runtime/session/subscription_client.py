"""Subscriptions of a stateless client (MCP 2026-07-28, "Subscriptions")."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from pydantic import BaseModel

from ..concurrency import background_tasks
from ..logs import log
from ..model.base import optional
from ..protocol import jsonrpc
from ..protocol.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    AuthorizationError,
    CapabilityMissing,
    ConnectionClosed,
    ProtocolError,
    RequestTimeout,
)
from ..protocol.limits import Options
from ..protocol.methods import ACKNOWLEDGED, LISTEN
from ..protocol.request_scope import Negotiated
from ..protocol.routing import Route

Filter = TypeVar("Filter", bound=BaseModel)

_SHORTEST, _LONGEST = 0.25, 30.0  # seconds before listening again
_STEADY = 1.0  # seconds after which a stream counts as stable


class Listening:
    """A subscription of ours, which outlives its stream, however that ends.

    Args:
        client: Client of the subscription.
        open_: The subscriptions of that client by the id of the request that listens.
        wanted: Filter in wire form.
        lost: Called when something may have been missed.

    Attributes:
        agreed: Filter of the acknowledgement; `None` before it.
        error: Why the server did not agree.
        settled: Set when either is known.
    """

    def __init__(
        self, client: Any, open_: dict[int, Listening], wanted: dict[str, Any], lost: Callable[[], None]
    ) -> None:
        self.agreed: Any = None
        self.error: Exception | None = None
        self.settled: anyio.Event = anyio.Event()
        self._client = client
        self._open = open_
        self._wanted = wanted
        self._lost = lost
        self._losses = 0
        self._since = math.inf
        self._id = 0

    def acknowledge(self, agreed: Any) -> bool:
        """Take the acknowledgement of the server; return whether it is the first."""
        self._since = anyio.current_time()
        first = self.agreed is None
        if first:
            self.agreed = agreed
            self.settled.set()
        elif agreed != self.agreed:
            log.warning("the server agrees to another subscription than before: %r", agreed)
        return first

    async def listen(self) -> None:
        """Listen until the connection is closed or the server refuses for good; open another stream when one ends."""
        session = self._client.link
        revision = session.peer.dispatcher.revision
        method = revision.request(LISTEN)
        final = {METHOD_NOT_FOUND, INVALID_PARAMS, *revision.errors.values()}
        while True:
            params = jsonrpc.typed_params(method, {"notifications": self._wanted, "_meta": dict(session.meta)})
            try:
                await session.request(method, params, Options(timeout=None), opened=self._opened)
                error: Exception = ConnectionClosed("the server ended the subscription")
            except (ConnectionClosed, ProtocolError) as reason:
                error = reason
            except AuthorizationError as reason:
                if self.agreed is None or not reason.is_temporary:
                    raise
                error = reason
            finally:
                self._open.pop(self._id, None)
            if self.agreed is None:
                self.error = error
                self.settled.set()
                return
            self._lost()
            if session.closed.is_set():
                log.info("%s", error)
                return
            if isinstance(error, ProtocolError) and error.code in final:
                log.warning("the server tells of no changes any more: %s", error)
                return
            log.info("%s; listening again", error)
            await anyio.sleep(self._pause())

    def _opened(self, id_: int) -> None:
        self._id = id_
        self._open[id_] = self

    def _pause(self) -> float:
        """Return the seconds to wait before listening again: exponential backoff with jitter."""
        if anyio.current_time() - self._since > _STEADY:
            self._losses = 0
        self._since = math.inf
        pause = min(_LONGEST, _SHORTEST * 2.0 ** min(self._losses, 16))
        self._losses += 1
        return pause * random.uniform(0.5, 1)  # noqa: S311


def check_filter(agreed: Negotiated, *wanted: BaseModel) -> None:
    """Raise `CapabilityMissing` when parts of a filter are of an extension that the server does not declare."""
    kind = agreed.dispatcher.revision.subscription_filter
    if kind is None or not agreed.dispatcher.extensions:
        return
    members = {name for one in wanted for name in jsonrpc.plain(one)}
    for extension in agreed.dispatcher.extensions:
        if not extension.is_in(agreed.declared["server"]) and members & {*extension.members(kind.__name__).values()}:
            raise CapabilityMissing(LISTEN, ("server", "extensions", extension.id))


@asynccontextmanager
async def subscribed(
    client: Any, open_: dict[int, Listening], wanted: Filter, more: Sequence[Any], lost: Callable[[], None]
) -> AsyncGenerator[Filter]:
    """Subscribe to changes while the block lasts; see `Client.subscribed`."""
    client.link.peer.dispatcher.revision.request(LISTEN)  # stateful revisions have none
    wire = {name: value for one in (wanted, *more) for name, value in jsonrpc.plain(one).items()}
    listening = Listening(client, open_, wire, lost)
    async with background_tasks() as tasks:
        tasks.start_soon(listening.listen)
        with anyio.move_on_after(client.options.timeout):
            await listening.settled.wait()
        if listening.error is not None:
            raise listening.error
        if listening.agreed is None:
            raise RequestTimeout(f"{LISTEN} was not acknowledged in time")
        agreed = listening.agreed
        yield agreed if isinstance(agreed, type(wanted)) else type(wanted).model_validate(jsonrpc.plain(agreed))


def reaches(open_: Mapping[int, Listening], session: Any, route: Route, params: Any) -> bool:
    """Return whether a notification concerns the handlers of a client: not if its subscription is over.

    Args:
        open_: The subscriptions of the client.
        session: Its connection.
        route: The method.
        params: Its params.
    """
    id_ = optional(optional(params, "meta"), "subscription_id")
    if not isinstance(id_, int):
        return True
    if id_ not in session.peer.pending:
        return False
    if route.method.name == ACKNOWLEDGED and id_ in open_:
        return open_[id_].acknowledge(params.notifications)
    return True
