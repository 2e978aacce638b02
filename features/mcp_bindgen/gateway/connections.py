"""Connections of a gateway: one for each session and subscription, and a pool for requests without a session."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import anyio
from anyio.abc import TaskGroup

from mcp_bindgen.runtime.protocol.errors import TooManyRequests
from mcp_bindgen.runtime.session.targets import Address

from .upstream import Offer, Sender, Upstream

Open: TypeAlias = Callable[[Sender], Upstream]

_SWEEP_SECONDS = 15.0


class Connections:
    """The connections to the server, each for one client at a time.

    A session, a connection over stdio and a subscription have a connection of their own. Requests of stateless clients
    over HTTP borrow a connection that only earlier requests of the same principal have used.

    Args:
        place: Address of the server.
        offer: The offer of the server.
        tasks: Task group for the connections.
        timeout: Seconds that connecting may take.
        limit: Maximum number of connections.
        idle_seconds: Seconds after which an unused connection ends.
        is_isolated: True to use each borrowed connection for one request only.
    """

    def __init__(
        self,
        place: Address,
        offer: Offer,
        tasks: TaskGroup,
        *,
        timeout: float,
        limit: int,
        idle_seconds: float,
        is_isolated: bool,
    ) -> None:
        self._open: Open = lambda sender: Upstream(place, offer, sender, tasks, timeout)
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._is_isolated = is_isolated
        self._of_links: dict[int, Upstream] = {}
        self._borrowed: set[Upstream] = set()
        self._idle: dict[Upstream, tuple[str, float]] = {}

    def of_link(self, link: object) -> Upstream | None:
        """Return the connection of a session or subscription, or None."""
        return self._of_links.get(id(link))

    def begin(self, link: object, sender: Sender) -> Upstream:
        """Make the connection of a session or subscription; raise `TooManyRequests` if there are too many."""
        self._make_room()
        made = self._of_links[id(link)] = self._open(sender)
        return made

    def end(self, link: object) -> None:
        """End the connection of a session or subscription."""
        found = self._of_links.pop(id(link), None)
        if found is not None:
            found.stop()

    def borrow(self, sender: Sender) -> Upstream:
        """Return a connection for one request; raise `TooManyRequests` if there are too many.

        It is an idle one of the same principal with the same capabilities, if there is one.
        """
        key = _key(sender)
        found = next((one for one, (owner, _) in reversed(self._idle.items()) if owner == key), None)
        if found is None:
            self._make_room()
            found = self._open(sender)
        self._idle.pop(found, None)
        self._borrowed.add(found)
        return found

    def give_back(self, upstream: Upstream) -> None:
        """Keep a borrowed connection for later requests of its principal."""
        self._borrowed.discard(upstream)
        if self._is_isolated or not upstream.is_alive:
            upstream.stop()
        else:
            self._idle[upstream] = _key(upstream.sender), anyio.current_time()

    def _make_room(self) -> None:
        if len(self._of_links) + len(self._borrowed) + len(self._idle) < self._limit:
            return
        if not self._idle:
            raise TooManyRequests(f"Gateway: {self._limit} connections to the server are in use")
        oldest = next(iter(self._idle))
        del self._idle[oldest]
        oldest.stop()

    async def sweep(self, also: Callable[[], None]) -> None:
        """End unused connections from time to time, and call `also`."""
        while True:
            await anyio.sleep(min(_SWEEP_SECONDS, self._idle_seconds))
            also()
            limit = anyio.current_time() - self._idle_seconds
            for one in [one for one, (_, since) in self._idle.items() if since < limit]:
                del self._idle[one]
                one.stop()

    def stop(self) -> None:
        """End all connections."""
        for one in (*self._of_links.values(), *self._borrowed, *self._idle):
            one.stop()


def _key(sender: Sender) -> str:
    capabilities: Mapping[str, Any] = sender.capabilities
    return json.dumps([sender.principal, capabilities], sort_keys=True)
