"""Servers in the process of their client."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import IO, Any

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.service import lifespans, serve
from mcp_bindgen.runtime.session.targets import Address, Auth
from mcp_bindgen.runtime.transports.memory import pair


class InProcess:
    """Provider of servers that is also a target of clients: `Client.connect(app)`, `Host({"notes": app}, Client)`.

    Each connection has servers and a lifespan of its own.
    """

    @abstractmethod
    def servers(self) -> list[Server]:
        """Return a server for each revision."""

    def address(self, headers: Mapping[str, str], stderr: int | IO[Any] | None, auth: Auth | None) -> Address:
        """Return the address of servers in this process; raise `ValueError` for headers or `auth`, which need a URL."""
        if headers or auth is not None:
            raise ValueError("headers and auth are for URLs; a server of this process has no HTTP requests")
        return Address(self._connection)

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Transport]:
        servers = self.servers()
        ours, theirs = pair()
        async with lifespans(servers), background_tasks() as tasks:
            tasks.start_soon(serve, theirs, *servers)
            yield ours
