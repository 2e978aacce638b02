"""An ASGI application that handles HTTP requests as `Call`s: what all endpoints of this folder have in common."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send

from mcp_bindgen.runtime.logs import request_fields, requests
from mcp_bindgen.runtime.protocol.access import AccessDenied, AccessPolicy, InsufficientScope
from mcp_bindgen.runtime.protocol.errors import ServerUnavailable
from mcp_bindgen.runtime.session.server import Server, lifespans

from .bodies import Bodies
from .call import STOPPING, Call, ClientDisconnected, HttpError, not_stored, unavailable
from .event_store.base import StoreUnavailable
from .limits import LIMITS, HttpLimits
from .origin_policy import OriginPolicy
from .probes import Probes
from .request_log import RequestRecord
from .stop_signals import leaving_on_stop

log = logging.getLogger("mcp_bindgen")

_MOST_HEADERS = 64 * 1024  # bytes


def authenticated_user(scope: Scope) -> str | None:
    """Name who sends a request, as Starlette's `AuthenticationMiddleware` leaves it in the scope; `None` for nobody."""
    user: Any = scope.get("user")
    if user is None or not getattr(user, "is_authenticated", False):
        return None
    try:
        return str(user.identity)
    except (AttributeError, NotImplementedError):  # Starlette's own simple users have none
        return str(user.display_name)


@dataclass(eq=False)
class AsgiApp(ABC):
    """Serve HTTP: validate headers, handle calls, and turn errors into responses.

    Mounted in another application, its lifespan is for that one to enter, as frameworks do not by themselves:
    `Starlette(routes=[Mount("/mcp", app)], lifespan=app.lifespan)`.

    Args:
        servers: Those whose lifespans it enters.
        policy: Which hosts and origins are allowed.
        principal: Tells who sends a request, where no tokens are verified.
        limits: How much it takes of its clients.
        auth: Verifies tokens, and says what they allow.

    Attributes:
        bodies: Reads what is posted.
        probes: Answers `/healthz` and `/readyz`.
        is_leaving: Whether `leave` was called, so that no requests shall come here any more.
    """

    servers: Sequence[Server]
    policy: OriginPolicy
    principal: Callable[[Scope], str | None] = authenticated_user
    limits: HttpLimits = LIMITS
    auth: AccessPolicy | None = None
    is_leaving: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.bodies = Bodies(self.limits)
        self.probes = Probes(lambda: not self.is_leaving)
        if self.auth is None:
            for server in self.servers:
                if type(server).required_scopes is not Server.required_scopes:
                    name = type(server).__name__
                    raise ValueError(f"{name} needs scopes, and nothing verifies tokens: pass auth=ResourceServer(...)")

    @abstractmethod
    async def handle(self, call: Call) -> None:
        """Respond to a request; raises `HttpError` to refuse it."""

    def leave(self) -> None:
        """End open streams in good order; call it when the process is about to stop.

        Servers of ASGI wait for open responses before they end the lifespan, and these would stay open.
        """
        self.is_leaving = True
        self.end()

    @abstractmethod
    def end(self) -> None:
        """End open streams in good order."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which requests are handled, inside of the lifespans of the servers."""
        return nullcontext()

    async def is_ready(self) -> bool:
        """Tell whether requests shall come here, as `/readyz` says: not when it leaves, or its store is away."""
        return await self.probes.is_ready()

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Enter the lifespans of the servers; when it ends, so does everything that is still open."""
        self.is_leaving = False
        async with lifespans(self.servers), self.running():
            try:
                with leaving_on_stop(self.leave):
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
        request_fields.set(None)  # a connection may keep the context of the request before
        scope["headers"] = list(scope["headers"])  # some ASGI servers append trailers to theirs
        if scope["path"].endswith("z") and await self.probes.respond(Call(scope, receive, send, {})):
            return
        call = Call(scope, receive, send, {}, self.principal(scope))
        if not requests.isEnabledFor(logging.INFO):
            await self._respond(call)
            return
        call.record = record = RequestRecord(scope, send, call.principal)
        call.send = record.send
        await record.during(self._respond(call))

    async def _respond(self, call: Call) -> None:
        scope = call.scope
        try:
            call.headers = _headers(scope["headers"])
            self.policy.check(scope["headers"])
            if self.auth is not None and scope["path"] == self.auth.metadata_path:
                await _tell(call, self.auth)
            else:
                await self.handle(call)
        except AccessDenied as denied:
            reason = ServerUnavailable(denied.reason) if denied.status == 503 else denied.reason
            await call.refuse(HttpError(denied.status, reason, *denied.headers))
        except InsufficientScope as missing:
            assert self.auth is not None
            await call.refuse(HttpError(403, missing, *self.auth.challenge(missing).headers))
        except HttpError as error:
            if not call.begun:
                await call.refuse(error)
        except StoreUnavailable as error:
            if not call.begun:
                await call.refuse(not_stored(error))
        except ClientDisconnected:
            return
        except asyncio.CancelledError:
            if not self.is_leaving:
                raise
            if call.begun:  # the time to stop is over
                await call.write(b"", more=False)
            else:
                await call.refuse(unavailable(STOPPING))
        finally:
            if call.held:
                self.bodies.release(call)

    async def admit(self, call: Call) -> None:
        """Find out who sends a request, before its body is read, where tokens are verified.

        Raises:
            AccessDenied: It has no valid token.
        """
        if self.auth is not None:
            call.identity = await self.auth.authenticate(call)
            call.principal = call.identity.principal
            if call.record is not None:
                call.record.fields["principal"] = call.principal

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


async def _tell(call: Call, auth: AccessPolicy) -> None:
    """Serve the metadata of the protected resource: anybody may read it."""
    if call.scope["method"] not in ("GET", "HEAD"):
        raise HttpError(405, "use GET", (b"allow", b"GET, HEAD"))
    await call.respond(200, auth.metadata(), headers=[(b"cache-control", b"max-age=300")])


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
