"""Notifications about changes of a contract while clients are connected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, SessionRequired
from mcp_bindgen.runtime.protocol.request_scope import Link, RequestScope
from mcp_bindgen.runtime.session import context
from mcp_bindgen.runtime.session.server import Server

_MAX_NOTIFY_SECONDS = 10.0  # that clients have to take one notification


class ChangeNotifier:
    """Sends notifications of changes, which may come from any thread; equal ones that wait are sent once.

    Args:
        servers: Revision -> the servers whose clients are notified.
    """

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self._servers = servers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[tuple[str, str | None, Link | None], None] = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Send notifications while a block runs."""
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._send_all)
                yield
        finally:
            self._loop = None

    def add(self, method: str, uri: str | None = None, link: Link | None = None) -> None:
        """Send a notification soon, to one client or to all; while no client is served, do nothing."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._add, method, uri, link)

    def _add(self, *waiting: *tuple[str, str | None, Link | None]) -> None:
        self._waiting[waiting] = None
        self._arrived.set()

    async def _send_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                name, uri, link = next(iter(self._waiting))
                del self._waiting[name, uri, link]
                for one in [*self._servers.values()] if link is None else [link]:
                    await self._send(one, name, uri)

    async def _send(self, to: Server | Link, name: str, uri: str | None) -> None:
        """Notify the clients of a server, or one client; an error ends neither the app nor later notifications."""

        async def tell(client: context.Context) -> None:
            agreed = client.negotiated
            method = None if agreed is None else agreed.dispatcher.revision.methods.get(name)
            if method is not None:
                params = jsonrpc.typed_params(method, {} if uri is None else {"uri": uri})
                await client.notify(cast(Any, method), params)

        try:
            with anyio.move_on_after(_MAX_NOTIFY_SECONDS):
                if isinstance(to, Server):
                    await to.broadcast(tell)
                else:
                    endpoint: Any = to.endpoint
                    await tell(endpoint.server(to.negotiated.dispatcher).context(RequestScope.of(to)))
        except (SessionRequired, ConnectionClosed) as error:
            log.debug("%s is not sent: %r", name, error)
        except Exception:
            log.exception("%s could not be sent", name)
