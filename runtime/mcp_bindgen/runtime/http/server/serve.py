"""Serve over HTTP with uvicorn until the process is told to stop."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import socket
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ...core.access import Gate
from ...endpoint.server import Server
from ._asgi_app import AsgiApp
from ._origin_policy import LOOPBACK
from .app import HttpApp
from .event_store.base import EventStore
from .legacy_sse import sse_app
from .limits import LIMITS, HttpLimits

_GRACE = 5  # seconds for what is still being answered when the process shall stop
_PATIENCE = 30.0  # seconds for the headers of a request, and at least for the rest of a response to be read
_MOST_HEAD = 256 * 1024  # bytes of them; not all parsers have a limit

_Protocol: Any = AutoHTTPProtocol


class _Impatient(_Protocol):  # type: ignore[misc]
    """Close connections on which no request is completed for long, however slowly they trickle, or however quickly.

    Those whose client does not even read the rest of what it was sent are cut off then, or they would stay for ever.
    """

    _alarm: asyncio.TimerHandle
    _head = 0
    _closed = False

    def connection_made(self, transport: Any) -> None:
        _Protocol.connection_made(self, transport)
        self._alarm = self.loop.call_later(_PATIENCE, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._alarm.cancel()
        _Protocol.connection_lost(self, exc)

    def data_received(self, data: bytes) -> None:
        _Protocol.data_received(self, data)
        if not self._waiting():
            self._head = 0
            return
        if self.cycle is None or not self.cycle.more_body:
            if not self._head:
                self._alarm.cancel()
                self._alarm = self.loop.call_later(_PATIENCE, self._look)
            self._head += len(data)
            if self._head > _MOST_HEAD:
                self.transport.close()

    def _waiting(self) -> bool:
        return self.cycle is None or self.cycle.response_complete or self.transport.is_closing()

    def _look(self) -> None:
        if self._closed:
            self.transport.abort()
        elif self._waiting():
            self._closed = True
            self.transport.close()
        self._alarm = self.loop.call_later(_PATIENCE, self._look)


class _Uvicorn(uvicorn.Server):
    """Print where it listens, and end open streams when the process shall stop."""

    path = "/"
    ending: Callable[[], None]

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.config.host, self.servers[0].sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        gc.freeze()  # what is loaded stays, so no collection need look at it again: it would be a pause for all clients
        print(f"listening on http://{shown}:{port}{self.path}", file=sys.stderr, flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        asyncio.get_event_loop().call_soon_threadsafe(self.ending)


def parse_address(address: str) -> tuple[str, int]:
    """Return the host and port of HOST:PORT; raises `ValueError`."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 0xFFFF:
        raise ValueError(f"not an address like 127.0.0.1:8000: {address}")
    return host.strip("[]") or "127.0.0.1", int(port)


def hosts_for(host: str) -> tuple[str, ...]:
    """Return the hosts that a server may be called by: on a loopback address only those of this machine, else any."""
    private = host in ("localhost", "::1") or host.startswith("127.")
    return (*LOOPBACK, host) if private else ("*",)


async def serve_app(app: ASGIApp, address: str, path: str, ending: Callable[[], None]) -> None:
    """Serve an application until the process is told to stop (SIGINT, SIGTERM).

    Args:
        app: The application.
        address: HOST:PORT.
        path: Where it serves, to be shown.
        ending: Called when the process shall stop, so that endless responses end.

    Raises:
        ValueError: The address is not HOST:PORT.
    """
    host, port = parse_address(address)
    config = uvicorn.Config(
        app, host, port, http=_Impatient, lifespan="on", ws="none", log_config=None, access_log=False
    )
    config.timeout_graceful_shutdown = _GRACE
    server = _Uvicorn(config)
    server.path, server.ending = path, ending
    await server.serve()


async def serve_http(
    *servers: Server,
    address: str,
    revisions: Sequence[str] | None = None,
    store: EventStore | None = None,
    sessions: bool = True,
    limits: HttpLimits = LIMITS,
    auth: Gate | None = None,
) -> None:
    """Serve Streamable HTTP at `/mcp`, and HTTP with server-sent events at `/sse` for the oldest clients.

    `/healthz` and `/readyz` answer the probes of orchestrators.

    Args:
        servers: The servers, at most one for each revision.
        address: HOST:PORT. On a loopback address only this machine is served; on any other, everybody who can reach it.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        store: Keeps what clients may have missed; by default in memory.
        sessions: Whether stateful clients get sessions; see `HttpApp`. Without them nothing is served at `/sse`.
        limits: How much it takes of its clients.
        auth: Verifies the token of each request; see `HttpApp`.

    Raises:
        ValueError: The address is not HOST:PORT, or a server needs scopes and there is no `auth`, or there is a store
            for sessions that there are not, or a revision cannot be served.
    """
    hosts = hosts_for(parse_address(address)[0])
    app = HttpApp(
        *servers, revisions=revisions, allowed_hosts=hosts, store=store, sessions=sessions, limits=limits, auth=auth
    )
    legacy: AsgiApp = app
    if sessions:
        legacy = sse_app(*servers, revisions=revisions, allowed_hosts=hosts, limits=limits, auth=auth)

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = legacy if scope.get("path") in ("/sse", "/messages") else app
        await chosen(scope, receive, send)

    def leave() -> None:
        for one in {app, legacy}:
            one.leave()

    with suppress(asyncio.CancelledError):
        await serve_app(either, address, "/mcp", leave)


async def serve_sse(
    *servers: Server,
    address: str,
    revisions: Sequence[str] | None = None,
    limits: HttpLimits = LIMITS,
    auth: Gate | None = None,
) -> None:
    """Serve HTTP with server-sent events until the process is told to stop (SIGINT, SIGTERM).

    Args:
        servers: The servers, at most one for each revision.
        address: HOST:PORT. On a loopback address only this machine is served; on any other, everybody who can reach it.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        limits: How much it takes of its clients.
        auth: Verifies the token of each request; see `HttpApp`.

    Raises:
        ValueError: The address is not HOST:PORT, a server needs scopes and there is no `auth`, or a revision cannot
            be served.
    """
    hosts = hosts_for(parse_address(address)[0])
    app = sse_app(*servers, revisions=revisions, allowed_hosts=hosts, limits=limits, auth=auth)
    await serve_app(app, address, "/sse", app.leave)
