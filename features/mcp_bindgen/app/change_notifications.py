"""Tell clients what has changed in an app while they are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import SessionRequired
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.server import Server

_PATIENCE = 10.0  # seconds that clients have to take the news of one change


class News:
    """Tells clients of changes, from whatever thread they are made in; the same news is told once.

    Attributes:
        servers: Whose clients are told.
    """

    def __init__(self) -> None:
        self.servers: list[Server] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[tuple[str, str | None], None] = {}
        self._arrived = asyncio.Event()

    @asynccontextmanager
    async def telling(self) -> AsyncGenerator[None]:
        """Tell clients while a block runs."""
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._tell_all)
                yield
        finally:
            self._loop = None

    def add(self, method: str, uri: str | None = None) -> None:
        """Tell the clients soon; where nobody is served yet, there is nobody to tell."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._add, method, uri)

    def _add(self, method: str, uri: str | None) -> None:
        self._waiting[method, uri] = None
        self._arrived.set()

    async def _tell_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                news = next(iter(self._waiting))
                del self._waiting[news]
                for server in self.servers:
                    await self._tell_clients(server, *news)

    async def _tell_clients(self, server: Server, name: str, uri: str | None) -> None:
        """Tell the clients of a server; what goes wrong ends neither the app nor the next news."""
        try:
            with anyio.move_on_after(_PATIENCE):
                await server.broadcast(partial(self._tell, name, uri))
        except SessionRequired:
            log.debug("%s reaches nobody: clients are served without sessions", name)
        except Exception:
            log.exception("%s could not be sent", name)

    async def _tell(self, name: str, uri: str | None, client: Context) -> None:
        agreed = client.negotiated
        method: Any = None if agreed is None else agreed.dispatcher.revision.methods.get(name)
        if method is not None:
            await client.notify(method, jsonrpc.typed_params(method, {} if uri is None else {"uri": uri}))
