"""Serve over HTTP with uvicorn until the process is told to stop."""

from __future__ import annotations

import asyncio
import gc
import math
import signal
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from select import select
from socket import socket
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_bindgen.runtime.logs import announce, use_format
from mcp_bindgen.runtime.protocol.access import AccessPolicy
from mcp_bindgen.runtime.session.server import Server

from .app import HttpApp
from .asgi_app import AsgiApp
from .event_store.base import EventStore
from .legacy_sse import SseApp
from .limits import LIMITS, HttpLimits
from .origin_policy import ANY_ADDRESS, LOOPBACK, chosen_hosts
from .stop_signals import knows_stop
from .uvicorn_protocol import HttpProtocol

_GRACE = 8.0  # seconds between the signal to stop and the end of the last request
_ACCEPT = 1.0  # seconds of these for connections that wait to be accepted
_LINGER = 3.0  # seconds of these for requests on idle connections: proxies have to notice that the port is closed


class _Uvicorn(uvicorn.Server):
    """Print where it listens, and stop in an order in which a proxy loses no request.

    Attributes:
        path: The path that is printed.
        ending: Called when the process stops, so that endless responses end.
        is_leaving: True if no connections are accepted any more.
    """

    path = "/"
    ending: Callable[[], None]
    hosts: Collection[str] = ()
    is_leaving = False
    _lingers = False

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.config.host, self.servers[0].sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        gc.freeze()  # what is loaded stays, so no collection need look at it again: it would be a pause for all clients
        announce(f"listening on http://{shown}:{port}{self.path}")
        if set(ANY_ADDRESS).issubset(self.hosts):
            announce("called by IP addresses and localhost only; allow names with --allowed-host or ALLOWED_HOSTS")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._lingers = sig == signal.SIGTERM
        if self._lingers:
            self.should_exit = True  # uvicorn's own handler would raise the signal again after a stop in good order
        else:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Close the port first; then answer what still comes on open connections, and close these one by one.

        A proxy that sends a request on a connection while it is closed cannot know whether the request was handled. So
        idle connections stay open for a moment after SIGTERM, and each response says that its connection is closed.
        """
        now = asyncio.get_running_loop().time
        begun = now()
        ports = [one for server in self.servers for one in server.sockets]
        while now() < begun + _ACCEPT and select(ports, (), (), 0)[0]:
            await asyncio.sleep(0)  # closing the port resets connections that wait, and uvloop accepts one at a time
        self.is_leaving = True
        for server in self.servers:
            server.close()
        self.ending()
        connections: set[Any] = self.server_state.connections
        for connection in connections:
            if not connection.may_be_reused:
                connection.cycle.keep_alive = False
        while self._lingers and now() < begun + _LINGER and any(one.may_be_reused for one in connections):
            await asyncio.sleep(0.02)
        self.config.timeout_graceful_shutdown = math.ceil(begun + _GRACE - now())
        await super().shutdown(sockets)


def parse_address(address: str) -> tuple[str, int]:
    """Return the host and port of HOST:PORT; raises `ValueError`."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 0xFFFF:
        raise ValueError(f"not an address like 127.0.0.1:8000: {address}")
    return host.strip("[]") or "127.0.0.1", int(port)


def hosts_for(host: str, given: Collection[str] | None = None) -> Collection[str]:
    """Return the hosts that a server may be called by.

    Args:
        host: The address that it listens at.
        given: The hosts that are allowed in place of the default: on a loopback address those of this machine, on any
            other also all IP addresses. Names are never a default, as DNS rebinding comes by a name.
    """
    chosen = chosen_hosts(given)
    if chosen is not None:
        return chosen
    host = host.partition("%")[0]  # without the interface of an IPv6 address
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")
    return (*LOOPBACK, host) if is_loopback else (*LOOPBACK, host, *ANY_ADDRESS)


async def serve_app(
    app: ASGIApp, address: str, path: str, ending: Callable[[], None], hosts: Collection[str] = ()
) -> None:
    """Serve an application until the process is told to stop (SIGINT, SIGTERM).

    Args:
        app: The application.
        address: HOST:PORT.
        path: Where it serves, to be shown.
        ending: Called when the process shall stop, so that endless responses end.
        hosts: The hosts that it may be called by; where they are a default without public names, the operator is told.

    Raises:
        ValueError: The address is not HOST:PORT.
    """
    host, port = parse_address(address)

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            begins = message["type"] == "http.response.start"
            closing = {"headers": [*message["headers"], (b"connection", b"close")]} if begins else {}
            await send({**message, **closing})

        await app(scope, receive, last if server.is_leaving and scope["type"] == "http" else send)

    config = uvicorn.Config(
        served, host, port, http=HttpProtocol, lifespan="on", ws="none", log_config=None, access_log=False
    )
    server = _Uvicorn(config)
    server.path, server.ending, server.hosts = path, ending, hosts
    knows_stop.set(True)
    await server.serve()


async def serve_http(
    *servers: Server,
    address: str,
    revisions: Sequence[str] | None = None,
    store: EventStore | None = None,
    sessions: bool = True,
    limits: HttpLimits = LIMITS,
    auth: AccessPolicy | None = None,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    log_format: str | None = None,
) -> None:
    """Serve Streamable HTTP at `/mcp`, and HTTP with server-sent events at `/sse` for the oldest clients.

    `/healthz` and `/readyz` answer the probes of orchestrators.

    Args:
        servers: The servers, at most one for each revision.
        address: HOST:PORT. A loopback address is reached from this machine only.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        store: Keeps what clients may have missed; by default in memory.
        sessions: Whether stateful clients get sessions; see `HttpApp`. Without them nothing is served at `/sse`.
        limits: How much it takes of its clients.
        auth: Verifies the token of each request; see `HttpApp`.
        allowed_hosts: The hosts that it may be called by, such as the public name behind a proxy; see `HttpApp`. By
            default those in the environment variable `ALLOWED_HOSTS`, and without it those of this machine and, unless
            it listens on a loopback address, all IP addresses.
        allowed_origins: The web pages that may call it; see `HttpApp`.
        log_format: `json` writes the records of the root logger as JSON, with one for each request; `text` leaves the
            log as it is. By default as the environment variable `MCP_LOG_FORMAT` says.

    Raises:
        ValueError: The address is not HOST:PORT, or a server needs scopes and there is no `auth`, or there is a store
            for sessions that there are not, or a revision cannot be served.
    """
    use_format(log_format)
    hosts = hosts_for(parse_address(address)[0], allowed_hosts)
    common: Any = {"revisions": revisions, "limits": limits, "auth": auth, "allowed_origins": allowed_origins}
    app = HttpApp(*servers, store=store, sessions=sessions, allowed_hosts=hosts, **common)
    legacy: AsgiApp = SseApp(*servers, allowed_hosts=hosts, **common) if sessions else app

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = legacy if scope.get("path") in ("/sse", "/messages") else app
        await chosen(scope, receive, send)

    def leave() -> None:
        for one in {app, legacy}:
            one.leave()

    with suppress(asyncio.CancelledError):
        await serve_app(either, address, "/mcp", leave, hosts)


async def serve_sse(
    *servers: Server,
    address: str,
    revisions: Sequence[str] | None = None,
    limits: HttpLimits = LIMITS,
    auth: AccessPolicy | None = None,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    log_format: str | None = None,
) -> None:
    """Serve HTTP with server-sent events at `/sse` until the process is told to stop (SIGINT, SIGTERM).

    The arguments are those of `serve_http`.

    Raises:
        ValueError: The address is not HOST:PORT, a server needs scopes and there is no `auth`, or a revision cannot
            be served.
    """
    use_format(log_format)
    hosts = hosts_for(parse_address(address)[0], allowed_hosts)
    app = SseApp(
        *servers, revisions=revisions, allowed_hosts=hosts, allowed_origins=allowed_origins, limits=limits, auth=auth
    )
    await serve_app(app, address, "/sse", app.leave, hosts)
