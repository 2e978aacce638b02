"""Probes of orchestrators: `/healthz` for a live process, `/readyz` for an endpoint that takes requests.

Probes come to the address of a machine and without a token, so neither the `Host` header nor the sender is checked.
A stranger, or a web page that rebinds DNS, learns only that an endpoint exists here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from mcp_bindgen.runtime.logs import log

from .call import TEXT, Call

HEALTHZ, READYZ = "/healthz", "/readyz"
"""The paths; unlike the paths of MCP, they end with `z`."""

_FRESH_SECONDS = 1.0  # for which a result is used again
_TIMEOUT = 0.8  # seconds for the store; probes give up after a second by default


class Probes:
    """Probes of one endpoint.

    Args:
        is_open: Returns True if the endpoint takes requests.
        can_store: Returns True if the store can be reached; called once a second at most. None without a store.
    """

    def __init__(self, is_open: Callable[[], bool], can_store: Callable[[], Awaitable[bool]] | None = None) -> None:
        self._is_open, self._can_store = is_open, can_store
        self._asked_at = -_FRESH_SECONDS
        self._is_reachable: bool = True
        self._asking = asyncio.Lock()

    async def is_ready(self) -> bool:
        """Return True if the endpoint takes requests and its store can be reached."""
        if self._can_store is not None and self._is_open():
            async with self._asking:
                if time.monotonic() - self._asked_at > _FRESH_SECONDS:
                    self._note(await self._ask(self._can_store))
        return self._is_open() and self._is_reachable

    async def _ask(self, can_store: Callable[[], Awaitable[bool]]) -> bool:
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await can_store()
        except Exception as error:
            log.debug("the store does not answer: %s: %s", type(error).__name__, error)
            return False

    def _note(self, is_reachable: bool) -> None:
        if is_reachable != self._is_reachable:
            log.warning("the store can be reached again" if is_reachable else "not ready: the store cannot be reached")
        self._asked_at, self._is_reachable = time.monotonic(), is_reachable

    async def respond(self, call: Call) -> bool:
        """Respond to a probe; returns False for any other request."""
        path, method = call.path, call.scope["method"]
        if path not in (HEALTHZ, READYZ):
            return False
        if method not in ("GET", "HEAD"):
            await call.respond(405, headers=[(b"allow", b"GET, HEAD")])
            return True
        is_good = path == HEALTHZ or await self.is_ready()
        body = b"" if method == "HEAD" else b"ok\n" if is_good else b"not ready\n"
        await call.respond(200 if is_good else 503, body, TEXT, [(b"cache-control", b"no-store")])
        return True
