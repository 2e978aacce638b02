"""ASGI applications: their base, with probes and the lifespan, and Streamable HTTP for clients of all revisions."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, TypedDict, Unpack

import anyio
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_bindgen.runtime.log_format import request_fields
from mcp_bindgen.runtime.logs import log, requests
from mcp_bindgen.runtime.protocol.access import InsufficientScope
from mcp_bindgen.runtime.protocol.envelope import parse
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.request_scope import Step
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.protocol.stateless import may_state_version, stated_version
from mcp_bindgen.runtime.session.endpoint import all_served, all_servers, lifespans
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.targets import Provider, Served, WebRoute

from .access import AccessPolicy, HttpEndpoint, check
from .call import JSON, TEXT, VERSION, HttpCall
from .errors import STOPPING, ClientDisconnected, HttpError, not_stored, unavailable
from .event_store import EventStore, MemoryEventStore, RemoteStore, StoreUnavailable
from .intake import Intake
from .limits import LIMITS, Budgets, HttpLimits
from .mirrored_headers import mirrored
from .origin_policy import OriginPolicy
from .request_log import RequestRecord
from .routes import routed
from .sessions import SESSION, HttpSessions, SessionRegistry, SessionStore, SharedByWorkers, SharedSessions
from .stateless import Sessionless, StatelessRequests, remembered

knows_stop: ContextVar[bool] = ContextVar("knows_stop", default=False)
"""True if the server in this context calls `leave` of its application itself."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_leaving: list[Callable[[], object]] = []
_handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}


@contextmanager
def leaving_on_stop(leave: Callable[[], object]) -> Generator[None]:
    """Call `leave` in the event loop when SIGTERM or SIGINT arrives while the block runs.

    The Python handler of the ASGI server is called as well. Without such a handler, outside of the main thread, and
    where `knows_stop` is set, nothing changes.
    """
    if knows_stop.get() or current_thread() is not main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def call_leave() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(leave)

    _leaving.append(call_leave)
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler) and handler is not _handle:
            _handlers[number] = handler
            signal.signal(number, _handle)
    try:
        yield
    finally:
        _leaving.remove(call_leave)
        for known, handler in _handlers.items():
            if not _leaving and signal.getsignal(known) is _handle:
                signal.signal(known, handler)


def _handle(number: int, frame: FrameType | None) -> None:
    for leave in list(_leaving):
        leave()
    _handlers[number](number, frame)


STEPS: Sequence[Step] = (mirrored, remembered)
"""Work around the handlers of messages over HTTP, the outermost first."""

CALL = "mcp_bindgen.call"
"""Key of the `HttpCall` in the scope of a request."""

_MAX_HEADER_BYTES = 64 * 1024
_CORS: dict[str, Any] = {
    "allow_methods": ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
    "allow_headers": ("*",),  # arguments of tools have headers, too
    "allow_private_network": True,
    "expose_headers": ("Mcp-Session-Id", "WWW-Authenticate", "DPoP-Nonce", "Retry-After"),
}

HEALTHZ, READYZ = "/healthz", "/readyz"
"""The paths; unlike the paths of MCP, they end with `z`."""

_FRESH_SECONDS = 1.0  # for which a result is used again
PROBE_TIMEOUT_SECONDS = 0.8
"""Time for the store to answer; probes of Kubernetes give up after a second by default."""


def authenticated_user(scope: Scope) -> str | None:
    """Return the sender of a request, as Starlette's `AuthenticationMiddleware` leaves it in the scope, or None."""
    user: Any = scope.get("user")
    if user is None or not getattr(user, "is_authenticated", False):
        return None
    try:
        return str(user.identity)
    except (AttributeError, NotImplementedError):  # Starlette's own simple users have none
        return str(user.display_name)


class AppOptions(TypedDict, total=False):
    """Options of all applications.

    Attributes:
        revisions: Revisions to serve; by default all revisions that the servers can serve.
        allowed_hosts: Hosts that clients may call: HOST, HOST:PORT, `*.DOMAIN`, an address or network, or `*`. By
            default the list in the environment variable `ALLOWED_HOSTS`, and without it this machine only.
        allowed_origins: Web pages that may call: the same, or http[s]://HOST[:PORT]. By default the list
            in `ALLOWED_ORIGINS`, and without it the pages of this machine and of the single hosts that are allowed.
        limits: Limits for messages, sessions and streams.
        keep_alive: Seconds between comments that keep an idle stream open; 15 by default, 0 sends none.
        principal: Returns the sender of a request where there is no `auth`. Sessions and the state of requests are
            bound to it. By default the user of Starlette's `AuthenticationMiddleware`.
        auth: Verifies the token of each request and decides which operations it allows: a `ResourceServer` of
            `mcp_bindgen.auth`. Its metadata is served at the well-known path that it names, unless the application is
            mounted below another path; see its `routes` for that.
    """

    revisions: Sequence[str] | None
    allowed_hosts: Collection[str] | None
    allowed_origins: Collection[str] | None
    limits: HttpLimits
    keep_alive: float
    principal: Callable[[Scope], str | None]
    auth: AccessPolicy | None


class Probes:
    """Probes of one endpoint: `/healthz` for a live process, `/readyz` for an endpoint that takes requests.

    Probes come to the address of a machine and without a token, so neither the `Host` header nor the sender is checked.
    A stranger, or a web page that rebinds DNS, learns only that an endpoint exists here.

    Args:
        is_open: Returns True if the endpoint takes requests.
        can_store: Returns True if the store can be reached; called once a second at most. None without a store.
    """

    def __init__(self, is_open: Callable[[], bool], can_store: Callable[[], Awaitable[bool]] | None = None) -> None:
        self._is_open, self._can_store = is_open, can_store
        self._asked_at = -_FRESH_SECONDS
        self._is_reachable: bool = True
        self._asking = asyncio.Lock()

    async def is_ready(self) -> bool:
        """Return True if the endpoint takes requests and its store can be reached."""
        if self._can_store is not None and self._is_open():
            async with self._asking:
                if time.monotonic() - self._asked_at > _FRESH_SECONDS:
                    self._note(await self._ask(self._can_store))
        return self._is_open() and self._is_reachable

    async def _ask(self, can_store: Callable[[], Awaitable[bool]]) -> bool:
        try:
            with anyio.fail_after(PROBE_TIMEOUT_SECONDS):
                return await can_store()
        except Exception as error:
            log.debug("the store does not answer: %s: %s", type(error).__name__, error)
            return False

    def _note(self, is_reachable: bool) -> None:
        if is_reachable != self._is_reachable:
            log.warning("the store can be reached again" if is_reachable else "not ready: the store cannot be reached")
        self._asked_at, self._is_reachable = time.monotonic(), is_reachable

    async def respond(self, call: HttpCall) -> bool:
        """Respond to a probe; returns False for any other request."""
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


class AsgiApp(ABC):
    """ASGI application that serves MCP over HTTP; `/healthz` and `/readyz` answer the probes of orchestrators.

    A framework that mounts the application does not enter its lifespan by itself; pass it on:
    `Starlette(routes=[Mount("/mcp", app)], lifespan=app.lifespan)`.

    Args:
        servers: The servers, at most one for each revision.
        paths: The paths that the application answers.
        options: See `AppOptions`.

    Attributes:
        servers: The servers.
        intake: Reads the bodies of requests.
        probes: Answers `/healthz` and `/readyz`.
        requests: Requests in flight that belong to no session.
        is_leaving: True once `leave` was called.

    Raises:
        ValueError: There is no server, or there are two for a revision, or a server needs scopes and there is no
            `auth`, or a revision or an HTTP route cannot be served.
    """

    def __init__(
        self,
        servers: Sequence[Server | Provider],
        paths: Sequence[str],
        *,
        revisions: Sequence[str] | None = None,
        allowed_hosts: Collection[str] | None = None,
        allowed_origins: Collection[str] | None = None,
        limits: HttpLimits = LIMITS,
        keep_alive: float = 15.0,
        principal: Callable[[Scope], str | None] = authenticated_user,
        auth: AccessPolicy | None = None,
        sessions: bool = True,
        store: EventStore | None = None,
    ) -> None:
        workers = store.workers() if isinstance(store, SharedByWorkers) else None
        can_store = store.ready if isinstance(store, RemoteStore) else None
        self._served: list[Served] = all_served(servers)
        self.servers: list[Server] = all_servers(self._served)
        self.limits: HttpLimits = limits
        self.keep_alive: float = keep_alive
        self.auth: AccessPolicy | None = auth
        self.policy: OriginPolicy = OriginPolicy(allowed_hosts, allowed_origins)
        self.is_leaving: bool = False
        self._principal = principal
        for server in self.servers if auth is None else ():
            if type(server).required_scopes is not Server.required_scopes:
                name = type(server).__name__
                raise ValueError(f"{name} needs scopes, and tokens are not verified: pass auth=ResourceServer(...)")
        self.endpoint: HttpEndpoint = HttpEndpoint(
            self._served, revisions, has_sessions=sessions, workers=workers, steps=STEPS, access_policy=auth
        )
        self.intake: Intake = Intake(self.endpoint, limits)
        limit, of_principal = limits.requests, limits.requests_of_principal
        self.requests: Budgets = Budgets(limit, of_principal, "too many requests{} are in flight")
        metadata = None if auth is None else auth.metadata_path
        taken = [*paths, HEALTHZ, READYZ, *([] if metadata is None else [metadata])]
        routes = [route for one in self._served for route in one.routes]
        self._paths = frozenset(paths)
        found = routed(self.guarded, routes, taken, has_tokens=auth is not None) if routes else []
        self._router = Router(found, redirect_slashes=False, default=self._handled) if found else None
        self.probes: Probes = Probes(lambda: not self.is_leaving, can_store)
        self._registry: SessionRegistry | None = None

    @abstractmethod
    async def handle(self, call: HttpCall) -> None:
        """Respond to a request; raises `HttpError` to refuse it."""

    def leave(self) -> None:
        """End sessions and open streams in good order; call it when the process is about to stop.

        ASGI servers wait for open responses before they end the lifespan, and streams would stay open.
        """
        self.is_leaving = True
        if self._registry is not None:
            self._registry.leave()
        self.endpoint.clients.leave()

    async def is_ready(self) -> bool:
        """Return True if the endpoint takes requests, as `/readyz` does."""
        return await self.probes.is_ready()

    def guarded(self, inner: ASGIApp, route: WebRoute) -> ASGIApp:
        """Return the application of a route, which checks the token of a request and applies the limits."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            call = scope[CALL]
            if not route.is_public:
                await self.authenticate(call)
                asked = [(route.path, None)]
                check(call.identity, self.endpoint.needed_scopes(None, asked).union(route.scopes), asked)
                scope["user"] = call.identity
            budget = self.requests.of(call.principal)
            budget.take()
            try:
                body = [await self.intake.whole(call)]
                scope["state"] = {**scope.get("state", {}), "lifespan": route.state()}

                async def received() -> Message:
                    return {"type": "http.request", "body": body.pop()} if body else await receive()

                async def sent(message: Message) -> None:
                    call.begun = True
                    try:
                        async with asyncio.timeout(self.limits.write_timeout):
                            await send(message)
                    except TimeoutError:
                        raise ClientDisconnected from None

                await inner(scope, received, sent)
            finally:
                budget.add(-1)

        return answer

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Enter the lifespans of the servers; end all open streams and sessions with them."""
        self.is_leaving = self.endpoint.clients.are_leaving = False
        async with lifespans(self._served), nullcontext() if self._registry is None else self._registry.running():
            try:
                with leaving_on_stop(self.leave):
                    yield
            finally:
                self.leave()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await Router(lifespan=self.lifespan).lifespan(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        request_fields.set(None)  # a connection may keep the context of the request before
        scope["headers"] = list(scope["headers"])  # some ASGI servers append trailers to theirs
        if scope.get("query_string"):  # access logs are written later, and show it
            scope["query_string"], scope = b"", {**scope}
        if scope["path"].endswith("z") and await self.probes.respond(HttpCall(scope, receive, send, {})):
            return
        call = HttpCall(scope, receive, send, {}, self._principal(scope))
        if not requests.isEnabledFor(logging.INFO):
            await self._respond(call)
            return
        call.record = record = RequestRecord(scope, send, call.principal)
        call.send = record.send
        await record.during(self._respond(call))

    async def _respond(self, call: HttpCall, *, has_cors: bool = False) -> None:
        """Check the headers of a request, and respond; web pages of allowed origins may read the response (CORS)."""
        scope = call.scope
        try:
            call.headers = _joined(scope["headers"])
            if not self.policy.is_met(call.headers):
                self.policy.check(scope["headers"])
            if b"origin" in call.headers and not has_cors:

                async def answer(scope: Scope, receive: Receive, send: Send) -> None:
                    call.send = send
                    await self._respond(call, has_cors=True)

                await CORSMiddleware(answer, allow_origin_regex=".*", **_CORS)(scope, call.receive, call.send)
                return
            if self.auth is not None and scope["path"] == self.auth.metadata_path:
                if scope["method"] not in ("GET", "HEAD"):
                    raise HttpError(405, "use GET", (b"allow", b"GET, HEAD"))
                headers = [(b"cache-control", b"max-age=300"), (b"vary", b"Origin")]
                await call.respond(200, self.auth.metadata(), headers=headers)
            elif self._router is None or scope["path"] in self._paths or (call.path == "/" and scope.get("root_path")):
                await self.handle(call)
            else:
                scope[CALL] = call
                await self._router(scope, call.receive, call.send)
        except InsufficientScope as missing:
            assert self.auth is not None
            await call.refuse(HttpError(403, missing, *self.auth.challenge(missing)))
        except (HttpError, StoreUnavailable) as error:
            if not call.begun:
                await call.refuse(error if isinstance(error, HttpError) else not_stored(error))
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
            if call.counted_bytes:
                self.intake.release(call)

    async def _handled(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.handle(scope[CALL])

    async def authenticate(self, call: HttpCall) -> None:
        """Verify the token of a request before its body is read, where tokens are verified; raises `HttpError`."""
        if self.auth is not None:
            call.identity = await self.auth.authenticate(call)
            call.principal = call.identity.principal
            if call.record is not None:
                call.record.fields["principal"] = call.principal


def _joined(raw: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by name, with repeated headers joined; see `HttpCall.headers`."""
    found = dict(raw)
    if len(found) < len(raw):
        found = {}
        for name, value in raw:
            between = b"\n" if name.startswith(b"mcp-") else b", "
            found[name] = found[name] + between + value if name in found else value
    if len(b"".join(found)) + len(b"".join(found.values())) > _MAX_HEADER_BYTES:
        raise HttpError(431, "the headers are too large")
    return found


class HttpApp(AsgiApp):
    """ASGI application that serves Streamable HTTP.

    Without `auth` it authenticates no client: put that in front of it.

    Args:
        servers: The servers, at most one for each revision, or providers of them such as an `App`.
        path: The path that it serves; below a mount point, the rest of the path may also be empty.
        store: Store of the events of stateful revisions, so that clients can resume streams; by default in memory,
            within limits. Several workers serve the same clients if they share a `RedisStore`.
        sessions: True if clients of stateful revisions get sessions. Without sessions each message is independent, so
            that any worker can take it; features that need a session raise `SessionRequired`.
        options: See `AppOptions`.

    Raises:
        ValueError: See `AsgiApp`; also if there is a store without sessions.
    """

    def __init__(
        self,
        *servers: Server | Provider,
        path: str = "/mcp",
        store: EventStore | None = None,
        sessions: bool = True,
        **options: Unpack[AppOptions],
    ) -> None:
        if store is not None and not sessions:
            raise ValueError("a store is for sessions: leave it out, or sessions=False")
        super().__init__(servers, [path], sessions=sessions, store=store, **options)
        self._path = path
        endpoint, limits = self.endpoint, self.limits
        served = [dispatcher.revision for dispatcher in endpoint.dispatchers.values()]
        self._stateless = {revision.name.encode(): revision for revision in served if revision.era.is_stateless}
        self._newest = next(iter(self._stateless.values()), None)
        self._is_modern = len(self._stateless) == len(served)
        workers = endpoint.workers
        if isinstance(workers, SharedSessions):
            self._registry = SessionRegistry(endpoint, workers, limits)
        elif sessions and not self._is_modern:
            self._registry = SessionRegistry(endpoint, SessionStore(store or MemoryEventStore()), limits)
        self._requester = StatelessRequests(endpoint, self.keep_alive, limits.write_timeout)
        self._sessions: HttpSessions | None = None
        self._sessionless: Sessionless | None = None
        if not self._is_modern and self._registry is not None:
            self._sessions = HttpSessions(self._registry, self.intake, self.keep_alive)
        elif not self._is_modern:
            self._sessionless = Sessionless(endpoint, self.keep_alive, limits.write_timeout, self.intake)

    async def handle(self, call: HttpCall) -> None:
        """Respond to a request: read the body of a POST once, and give it to the lifecycle of its revision."""
        if call.scope["path"] != self._path:
            path = call.path
            if path != self._path and not (call.scope.get("root_path") and path == "/"):
                raise HttpError(404, f"nothing is served here; this server answers at {call.url_path(self._path)}")
        if self.auth is not None:
            await self.authenticate(call)
        if call.scope["method"] != "POST":
            await self._handle_other(call, call.scope["method"])
            return
        kind = call.headers.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            raise HttpError(415, "a message is application/json")
        is_stateless = self._is_modern or call.headers.get(VERSION, b"").strip(b" \t") in self._stateless
        session = None
        if self._sessions is not None and not is_stateless and SESSION in call.headers:
            session = await self._sessions.find(call)
        body = await self.intake.read(call)
        if not is_stateless and self._newest is not None and may_state_version(self._newest, body):
            is_stateless = _names_revision(self._newest, body)  # its header should have done so, and it is refused
        if self._sessions is not None and not is_stateless:
            await self._sessions.post(call, body, session)
            return
        requester = self._requester if is_stateless or self._sessionless is None else self._sessionless
        budget = self.requests.all if call.principal is None else self.requests.of(call.principal)
        budget.take()
        try:
            await requester.post(call, body)
        finally:
            budget.add(-1)

    async def _handle_other(self, call: HttpCall, method: str) -> None:
        self.endpoint.authorize(call.identity, None, [(method, None)])
        if method == "GET" and self._sessions is not None:
            await self._sessions.get(call)
        elif method == "DELETE" and self._sessions is not None:
            await self._sessions.delete(call)
        else:
            allowed = "POST" if self._sessions is None else "POST, GET, DELETE"
            raise HttpError(405, f"use {allowed}", (b"allow", allowed.encode()))


def _names_revision(revision: Revision, body: bytes) -> bool:
    """Return True if a message names its revision itself."""
    try:
        return stated_version(revision, parse(body)) is not None
    except ProtocolError:
        return False
