"""An ASGI application that handles HTTP requests as `Call`s: what all endpoints of this folder have in common."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from ...endpoint.server import Server, lifespans
from ._call import Call, ClientDisconnected, HttpError
from ._origin_policy import OriginPolicy

log = logging.getLogger("mcp_bindgen")

_MOST_HEADERS = 64 * 1024  # bytes


def no_principal(scope: Scope) -> str | None:
    """Name nobody as who sends a request."""


@dataclass(eq=False)
class AsgiApp(ABC):
    """Serve HTTP: validate headers, handle calls, and turn errors into responses.

    Mounted in another application, its lifespan is for that one to enter, as frameworks do not by themselves:
    `Starlette(routes=[Mount("/mcp", app)], lifespan=app.lifespan)`.

    Args:
        servers: Those whose lifespans it enters.
        policy: Which hosts and origins are allowed.
        principal: Tells who sends a request.
    """

    servers: Sequence[Server]
    policy: OriginPolicy
    principal: Callable[[Scope], str | None] = no_principal

    @abstractmethod
    async def handle(self, call: Call) -> None:
        """Respond to a request; raises `HttpError` to refuse it."""

    @abstractmethod
    def leave(self) -> None:
        """End open streams in good order; call it when the process is about to stop.

        Servers of ASGI wait for open responses before they end the lifespan, and these would stay open.
        """

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Enter the lifespans of the servers; when it ends, so does everything that is still open."""
        async with lifespans(self.servers):
            try:
                yield
            finally:
                self.leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as ASGI wants it."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        call = Call(scope, receive, send, {}, self.principal(scope))
        try:
            call.headers = _headers(scope["headers"])
            self.policy.check(scope["headers"])
            await self.handle(call)
        except HttpError as error:
            await call.refuse(error)
        except ClientDisconnected:
            return

    async def _live(self, receive: Receive, send: Send) -> None:
        """Follow the lifespan protocol of ASGI."""
        await receive()
        phase = "startup"
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                phase = "shutdown"
                await receive()
        except Exception as error:
            log.exception("%s failed", phase)
            await send({"type": f"lifespan.{phase}.failed", "message": str(error)})
            return
        await send({"type": "lifespan.shutdown.complete"})


def _headers(raw: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    found = dict(raw)
    if len(found) < len(raw):  # some were sent twice
        found = {}
        for name, value in raw:
            between = b"\n" if name.startswith(b"mcp-") else b", "
            found[name] = found[name] + between + value if name in found else value
    if sum(map(len, found)) + sum(map(len, found.values())) > _MOST_HEADERS:
        raise HttpError(431, "the headers are too large")
    return found
