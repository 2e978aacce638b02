"""Answer the probes of orchestrators: does the process live, and shall requests come here? Nothing else is said.

Probes come to the address of a machine and with no token, so neither the `Host` header nor who asks is looked at: all
that a stranger, or a web page that rebinds DNS, learns is that something is served here.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from .call import TEXT, Call

HEALTHZ, READYZ = "/healthz", "/readyz"
"""The paths, in the last letter unlike those of MCP."""

_FRESH = 1.0  # seconds for which what was found out is believed
_PATIENCE = 0.8  # seconds to find out; probes give up after a second unless they are told otherwise

log = logging.getLogger("mcp_bindgen")


class Probes:
    """The probes of one endpoint.

    Args:
        is_open: Tells whether the endpoint takes requests.
        can_store: Tells whether what it needs beside itself can be reached; asked once a second at most.
    """

    def __init__(self, is_open: Callable[[], bool], can_store: Callable[[], Awaitable[bool]] | None = None) -> None:
        self._is_open, self._can_store = is_open, can_store
        self._asked = -_FRESH
        self._found: bool = True
        self._asking = asyncio.Lock()

    async def is_ready(self) -> bool:
        """Tell whether requests shall come here."""
        if self._can_store is not None and self._is_open():
            async with self._asking:
                if time.monotonic() - self._asked > _FRESH:
                    self._note(await self._ask(self._can_store))
        return self._is_open() and self._found

    async def _ask(self, can_store: Callable[[], Awaitable[bool]]) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE):
                return await can_store()
        except Exception as error:
            log.debug("the store was asked in vain: %s: %s", type(error).__name__, error)
            return False

    def _note(self, found: bool) -> None:
        if found != self._found:
            log.warning("the store can be reached again" if found else "not ready: the store cannot be reached")
        self._asked, self._found = time.monotonic(), found

    async def respond(self, call: Call) -> bool:
        """Respond to a probe; returns whether the request was one."""
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
