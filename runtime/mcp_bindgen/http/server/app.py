"""Serve Streamable HTTP as an ASGI application: one address for clients of all revisions (MCP, "Transports")."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from starlette.types import Scope

from mcp_bindgen.runtime.era.stateless import may_state_version, stated_version
from mcp_bindgen.runtime.protocol.access import AccessPolicy
from mcp_bindgen.runtime.protocol.envelope import parse
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.session.server import Server, Service

from .asgi_app import AsgiApp, authenticated_user
from .byte_budget import Budgets
from .call import JSON, VERSION, Call, HttpError
from .event_store.base import EventStore
from .event_store.memory import MemoryEventStore
from .exchange import Exchanges
from .http_error_store import Guarded
from .limits import LIMITS, HttpLimits
from .origin_policy import OriginPolicy
from .probes import Probes
from .session_registry import RegistryFactory, SessionRegistry
from .sessionless import Sessionless
from .sessions import SESSION, HttpSessions


class HttpApp(AsgiApp):
    """An ASGI application that serves Streamable HTTP; `/healthz` and `/readyz` answer the probes of orchestrators.

    Without `auth` it authenticates nobody: put that in front of it.

    Mounted in another application, its lifespan is for that one to enter, as frameworks do not by themselves:
    `Starlette(routes=[Mount("/mcp", app)], lifespan=app.lifespan)`.

    Args:
        servers: The servers, at most one for each revision.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        path: Where it serves; below a mount point, whatever path is left over is served too.
        allowed_hosts: The hosts that it may be called by: HOST, HOST:PORT, `*.DOMAIN`, an address or network, or `*`.
            By default those in the environment variable `ALLOWED_HOSTS`, and without it this machine only.
        allowed_origins: The web pages that may call it: the same, or http[s]://HOST[:PORT]. By default those in
            `ALLOWED_ORIGINS`, and without it those of this machine and of the single hosts that are allowed.
        store: Keeps events of stateful revisions, so that clients can come back for what they missed; by default in
            memory, within bounds. Several workers serve the same clients if they share a `RedisStore`.
        sessions: Whether stateful clients get sessions. Without them each of their messages stands alone, so that any
            worker can take it, as servers do that only answer: what needs a session raises `SessionRequired`.
        limits: How much it takes of its clients.
        keep_alive: Seconds between comments that keep an idle stream open; 0 sends none.
        principal: Tells who sends a request, where there is no `auth`. Sessions and the state of requests are bound to
            that.
        auth: Verifies the token of each request, and says what it allows: a `ResourceServer` of `runtime.auth`. Its
            metadata is served at the well-known path that it names, unless the application is mounted below another
            path; see its `routes` for that.

    Raises:
        ValueError: There is no server, or there are two for a revision, or one needs scopes and there is no `auth`, or
            there is a store for sessions that there are not, or a revision cannot be served.
    """

    def __init__(
        self,
        *servers: Server,
        revisions: Sequence[str] | None = None,
        path: str = "/mcp",
        allowed_hosts: Collection[str] | None = None,
        allowed_origins: Collection[str] | None = None,
        store: EventStore | None = None,
        sessions: bool = True,
        limits: HttpLimits = LIMITS,
        keep_alive: float = 15.0,
        principal: Callable[[Scope], str | None] = authenticated_user,
        auth: AccessPolicy | None = None,
    ) -> None:
        super().__init__(servers, OriginPolicy(allowed_hosts, allowed_origins), principal, limits, auth)
        self._path = path
        self._service = service = Service(servers, auth, revisions)
        served = [dispatcher.revision for dispatcher in service.dispatchers.values()]
        self._stateless = {revision.name: revision for revision in served if revision.era.is_stateless}
        self._is_modern = len(self._stateless) == len(served)
        self._requests = Budgets(limits.requests, limits.requests_of_principal, "too many requests{} are at work")
        self._sessions: HttpSessions | None = None
        self._sessionless: Sessionless | None = None
        if store is not None and not sessions:
            raise ValueError("a store is for sessions: leave it out, or sessions=False")
        self.probes = Probes(lambda: not self.is_leaving, getattr(store, "ready", None))
        self._registry: SessionRegistry | None = None
        if isinstance(store, RegistryFactory):
            self._registry = store.registry(service, limits)
        elif sessions and not self._is_modern:
            self._registry = SessionRegistry(service, Guarded(store or MemoryEventStore()), limits)
        around = None if self._registry is None else self._registry.around_subscription
        self._exchanges = Exchanges(service, keep_alive, limits.unread, auth, around)
        if not self._is_modern and self._registry is not None:
            self._sessions = HttpSessions(self._registry, keep_alive)
        elif not self._is_modern:
            self._sessionless = Sessionless(service, keep_alive, limits.unread)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which sessions run."""
        self._exchanges.is_leaving = False
        return nullcontext() if self._registry is None else self._registry.running()

    def end(self) -> None:
        """End sessions and subscriptions in good order."""
        if self._registry is not None:
            self._registry.leave()
        self._exchanges.leave()

    async def handle(self, call: Call) -> None:
        """Respond to a request. Raises `HttpError`."""
        if call.path != self._path and not (call.scope.get("root_path") and call.path == "/"):
            raise HttpError(404, "nothing is served here")
        await self.admit(call)
        method = call.scope["method"]
        if method == "POST":
            await self._post(call)
            return
        self._service.authorize(call.identity, None, [(method, None)])
        if method == "GET" and self._sessions is not None:
            await self._sessions.get(call)
        elif method == "DELETE" and self._sessions is not None:
            await self._sessions.delete(call)
        else:
            allowed = "POST" if self._sessions is None else "POST, GET, DELETE"
            raise HttpError(405, f"use {allowed}", (b"allow", allowed.encode()))

    async def _post(self, call: Call) -> None:
        kind = call.headers.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            raise HttpError(415, "a message is application/json")
        is_stateless = self._is_modern or call.header(VERSION) in self._stateless
        session = None
        if self._sessions is not None and not is_stateless and SESSION in call.headers:
            session = await self._sessions.find(call)
        body = await self.bodies.read(call)
        is_stateless = is_stateless or self._is_stateless(body)  # its header should have said so, and it is refused
        if self._sessions is not None and not is_stateless:
            await self._sessions.post(call, body, session)
            return
        answering = self._exchanges if is_stateless or self._sessionless is None else self._sessionless
        budget = self._requests.all if call.principal is None else self._requests.of(call.principal)
        budget.take()
        try:
            await answering.post(call, body)
        finally:
            budget.give_back()

    def _is_stateless(self, body: bytes) -> bool:
        """Tell whether a message names its revision itself."""
        revision = next(iter(self._stateless.values()), None)
        if revision is None or not may_state_version(revision, body):
            return False
        try:
            return stated_version(revision, parse(body)) is not None
        except ProtocolError:
            return False
