"""Gateways: servers in front of another server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any, TypedDict, Unpack

import anyio

from mcp_bindgen.app.contract import InProcess
from mcp_bindgen.bridging import missed
from mcp_bindgen.host.watch import Watch
from mcp_bindgen.runtime import connect
from mcp_bindgen.runtime.connecting import TIMEOUT
from mcp_bindgen.runtime.connecting import address as address_of
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.service import Service
from mcp_bindgen.runtime.session.targets import Address, Auth, Target

from .relay import relay
from .upstream import Connections, Offer


class GatewayOptions(TypedDict, total=False):
    """Options of a gateway.

    Attributes:
        headers: HTTP headers for a server at a URL.
        auth: Authorizes requests to a URL. Tokens of clients are never passed on.
        timeout: Seconds that connecting to the server may take.
        max_connections: Maximum number of connections to the server, 100 by default.
        idle_seconds: Seconds after which a connection for requests without a session ends, 300 by default.
        isolated: True to use a connection for one request only, if the request has no session. By default later
            requests of the same principal use it, too; requests without token count as one principal.
    """

    headers: Mapping[str, str]
    auth: Auth | None
    timeout: float
    max_connections: int
    idle_seconds: float
    isolated: bool


class Gateway(InProcess):
    """Server of all revisions in front of any server: `run(Gateway("npx -y @example/server"))`.

    Requests, notifications and errors of both sides are passed on; the bridges convert between revisions. Each session
    has a connection of its own to the server. A lost connection begins again with the next request.

    Args:
        target: A URL, a command line, its words, an entry of an `mcpServers` file or an app.
        options: See `GatewayOptions`.

    Attributes:
        offer: The offer of the server; `None` before `probe`.
    """

    def __init__(self, target: Target, **options: Unpack[GatewayOptions]) -> None:
        self._place: Address = address_of(target, options.get("headers"), None, options.get("auth"))
        self._options = options
        self.offer: Offer | None = None

    async def probe(self) -> Offer:
        """Connect once to learn the revision and the offer of the server, and return them.

        Raises:
            ConnectionClosed: The server cannot be reached.
            ProtocolError: The server refuses.
            AuthorizationError: The server requires authorization that is not available.
            UnsupportedRevision: The server speaks no known revision.
        """
        if self.offer is None:
            watch = Watch("behind the gateway")
            try:
                async with connect(watch.address(self._place), timeout=self._options.get("timeout", TIMEOUT)) as client:
                    bindings = import_module(client.dispatcher.revision.package)
                    info: dict[str, Any] = {} if client.server_info is None else client.server_info.model_dump()
                    self.offer = Offer(bindings, client.server_capabilities, info, client.instructions)
            except ConnectionClosed as error:
                raise ConnectionClosed(watch.explained(error, "")) from error
        return self.offer

    def servers(self) -> list[Server]:
        """Return the server in the revision of the server behind it; all other revisions are conversions.

        Raises:
            RuntimeError: An event loop runs, and `probe` was not called before.
        """
        offer = self.offer or anyio.run(self.probe)
        found = relay(offer)
        found.info = offer.bindings.types.Implementation.model_validate(offer.info) if offer.info else None
        found.instructions = offer.instructions
        found.connect = partial(
            Connections,
            self._place,
            offer,
            timeout=self._options.get("timeout", TIMEOUT),
            limit=self._options.get("max_connections", 100),
            idle_seconds=self._options.get("idle_seconds", 300.0),
            is_isolated=self._options.get("isolated", False),
        )
        return [found]

    def losses(self, revisions: Sequence[str] | None = None) -> Mapping[str, Sequence[str]]:
        """Return revision -> losses of its clients, one sentence for each reason.

        Args:
            revisions: The revisions to serve; by default all.

        Raises:
            ValueError: A revision cannot be served.
        """
        (server,) = self.servers()
        home = server.dispatcher.extended(type(server))
        service = Service([server], revisions)
        offered, own = home.offered(server), server.revision
        return {name: [] if name == own else missed(own, name, offered) for name in service.supported}

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Transport]:
        await self.probe()
        async with super()._connection() as transport:
            yield transport
