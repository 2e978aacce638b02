"""HTTP servers on uvicorn that run until the process is told to stop."""

from __future__ import annotations

import asyncio
import gc
import math
import signal
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from select import select
from socket import socket
from types import FrameType
from typing import Any, Unpack

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_bindgen.runtime.log_format import announce, use_format
from mcp_bindgen.runtime.session.endpoint import all_served
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.targets import Provider

from .app import AppOptions, AsgiApp, HttpApp, knows_stop
from .event_store import EventStore
from .legacy_sse import SseApp
from .origin_policy import ANY_ADDRESS, LOOPBACK, chosen_hosts
from .uvicorn_protocol import HttpProtocol

GRACE_SECONDS = 8.0
"""Time between the signal to stop and the end of the last request."""

_ACCEPT_SECONDS = 1.0  # of the grace: for connections that wait to be accepted
_LINGER_SECONDS = 3.0  # of the grace: for requests on idle connections, until proxies notice the closed port


class _Uvicorn(uvicorn.Server):
    """Server that prints its address, and stops in an order that loses no request of a proxy.

    Attributes:
        path: The path to print.
        ending: Ends endless responses; called when the process stops.
        hosts: Hosts that requests may name; the operator is told if public names are missing.
    """

    path = "/"
    ending: Callable[[], None]
    hosts: Collection[str] = ()
    _lingers = False

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.config.host, self.servers[0].sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        gc.freeze()  # a full collection of the loaded modules would be a pause for all clients
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
        """Close the port first, then answer requests on open connections, and close these one by one.

        A proxy cannot know whether a request was handled if its connection is closed meanwhile. So idle connections
        stay open for a moment after SIGTERM, and each response announces that its connection is closed.
        """
        now = asyncio.get_running_loop().time
        begun = now()
        ports = [one for server in self.servers for one in server.sockets]
        while now() < begun + _ACCEPT_SECONDS and select(ports, (), (), 0)[0]:
            await asyncio.sleep(0)  # closing the port resets connections that wait, and uvloop accepts one at a time
        for server in self.servers:
            server.close()
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        self.ending()
        connections: set[Any] = self.server_state.connections
        for connection in connections:
            if not connection.may_be_reused:
                connection.cycle.keep_alive = False
        while self._lingers and now() < begun + _LINGER_SECONDS and any(one.may_be_reused for one in connections):
            await asyncio.sleep(0.02)
        self.config.timeout_graceful_shutdown = math.ceil(begun + GRACE_SECONDS - now())
        await super().shutdown(sockets)


def parse_address(address: str) -> tuple[str, int]:
    """Return the host and port of HOST:PORT; raises `ValueError`."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 0xFFFF:
        raise ValueError(f"not an address like 127.0.0.1:8000: {address}")
    return host.strip("[]") or "127.0.0.1", int(port)


def hosts_for(host: str, given: Collection[str] | None = None) -> Collection[str]:
    """Return the hosts that requests to a server may name.

    Args:
        host: The address of the server.
        given: The hosts to allow instead of the default: the hosts of this machine, and all IP addresses unless `host`
            is a loopback address. Names are never a default, as DNS rebinding uses names.
    """
    chosen = chosen_hosts(given)
    if chosen is not None:
        return chosen
    host = host.partition("%")[0]  # without the interface of an IPv6 address
    is_loopback = host in ("localhost", "::1") or host.startswith("127.")
    return (*LOOPBACK, host) if is_loopback else (*LOOPBACK, host, *ANY_ADDRESS)


async def _check_free(address: str, host: str, port: int) -> None:
    """Raise `ValueError` if no server can listen at an address; uvicorn would only log that, and exit."""
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port, start_serving=False)
    except OSError as error:
        reason = str(error.strerror).rpartition(": ")[2]
        raise ValueError(f"cannot listen on {address}: {reason}; choose another port or address") from None
    server.close()


async def serve_app(app: ASGIApp, address: str, path: str, ending: Callable[[], None], hosts: Collection[str]) -> None:
    """Serve an application until the process is told to stop (SIGINT, SIGTERM).

    Args:
        app: The application.
        address: HOST:PORT.
        path: The path to print.
        ending: Ends endless responses; called when the process stops.
        hosts: The hosts that requests may name; the operator is told if they are a default without public names.

    Raises:
        ValueError: The address is not HOST:PORT or cannot be used.
    """
    host, port = parse_address(address)
    await _check_free(address, host, port)

    quiet: Any = {"log_config": None, "access_log": False}
    config = uvicorn.Config(app, host, port, http=HttpProtocol, interface="asgi3", lifespan="on", ws="none", **quiet)
    server = _Uvicorn(config)
    server.path, server.ending, server.hosts = path, ending, hosts
    knows_stop.set(True)
    await server.serve()


async def serve_http(
    *servers: Server | Provider,
    address: str,
    store: EventStore | None = None,
    sessions: bool = True,
    log_format: str | None = None,
    **options: Unpack[AppOptions],
) -> None:
    """Serve Streamable HTTP at `/mcp`, and HTTP with server-sent events at `/sse`, until the process is told to stop.

    `/healthz` and `/readyz` answer the probes of orchestrators.

    Args:
        servers: The servers, at most one for each revision, or providers of them such as an `App`.
        address: HOST:PORT. A loopback address can be reached from this machine only.
        store: Keeps sessions and the events that clients may have missed; by default in memory.
        sessions: True to give sessions to stateful clients; see `HttpApp`. Without sessions, `/sse` is not served.
        log_format: `json` writes the records of the root logger as JSON, with one for each request; `text` does not
            change the log. By default the environment variable `MCP_LOG_FORMAT` decides.
        options: See `AppOptions`. `allowed_hosts`, such as the public name behind a proxy, is by default the
            environment variable `ALLOWED_HOSTS`, or else the hosts of this machine and, unless the address is a
            loopback address, all IP addresses.

    Raises:
        ValueError: The address is not HOST:PORT or cannot be used, a server needs scopes without `auth`, a store is
            given without sessions, or a revision cannot be served.
    """
    use_format(log_format)
    hosts = options["allowed_hosts"] = hosts_for(parse_address(address)[0], options.get("allowed_hosts"))
    shared = all_served(servers)
    app = HttpApp(*shared, store=store, sessions=sessions, **options)
    legacy: AsgiApp = SseApp(*shared, **options) if sessions else app

    def either(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        chosen = legacy if scope.get("path") in ("/sse", "/messages") else app
        return chosen(scope, receive, send)

    def leave() -> None:
        for one in {app, legacy}:
            one.leave()

    with suppress(asyncio.CancelledError):
        await serve_app(either, address, "/mcp", leave, hosts)


async def serve_sse(
    *servers: Server | Provider, address: str, log_format: str | None = None, **options: Unpack[AppOptions]
) -> None:
    """Serve HTTP with server-sent events at `/sse` until the process is told to stop (SIGINT, SIGTERM).

    The arguments and errors are those of `serve_http`.
    """
    use_format(log_format)
    hosts = options["allowed_hosts"] = hosts_for(parse_address(address)[0], options.get("allowed_hosts"))
    app = SseApp(*servers, **options)
    await serve_app(app, address, "/sse", app.leave, hosts)
