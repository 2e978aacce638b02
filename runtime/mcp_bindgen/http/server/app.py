"""Streamable HTTP as an ASGI application: one address for clients of all revisions (MCP, "Transports")."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Unpack

from mcp_bindgen.runtime.era.stateless import may_state_version, stated_version
from mcp_bindgen.runtime.protocol.envelope import parse
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.service import Served

from .asgi_app import AppOptions, AsgiApp, Probes
from .call import JSON, VERSION, Call
from .errors import HttpError
from .event_store import EventStore, RemoteStore
from .limits import Budgets
from .session_registry import RegistryFactory, SessionRegistry
from .sessionless import Sessionless
from .sessions import SESSION, HttpSessions
from .sqlite_store import MemoryEventStore
from .stateless import StatelessRequests


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
        *servers: Server | Served,
        path: str = "/mcp",
        store: EventStore | None = None,
        sessions: bool = True,
        **options: Unpack[AppOptions],
    ) -> None:
        super().__init__(servers, **options)
        if store is not None and not sessions:
            raise ValueError("a store is for sessions: leave it out, or sessions=False")
        self._path = path
        service, limits = self.service, self.limits
        served = [dispatcher.revision for dispatcher in service.dispatchers.values()]
        self._stateless = {revision.name.encode(): revision for revision in served if revision.era.is_stateless}
        self._newest = next(iter(self._stateless.values()), None)
        self._is_modern = len(self._stateless) == len(served)
        self._requests = Budgets(limits.requests, limits.requests_of_principal, "too many requests{} are in flight")
        self.probes: Probes = Probes(
            lambda: not self.is_leaving, store.ready if isinstance(store, RemoteStore) else None
        )
        self._registry: SessionRegistry | None = None
        if isinstance(store, RegistryFactory):
            self._registry = store.registry(service, limits)
        elif sessions and not self._is_modern:
            self._registry = SessionRegistry(service, store or MemoryEventStore(), limits)
        around = None if self._registry is None else self._registry.around_subscription
        self._requester = StatelessRequests(service, self.keep_alive, limits.write_timeout, self.auth, around)
        self._sessions: HttpSessions | None = None
        self._sessionless: Sessionless | None = None
        if not self._is_modern and self._registry is not None:
            self._sessions = HttpSessions(self._registry, self.intake, self.keep_alive)
        elif not self._is_modern:
            self._sessionless = Sessionless(service, self.intake, self.keep_alive, limits.write_timeout)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which sessions run."""
        self._requester.is_leaving = False
        return nullcontext() if self._registry is None else self._registry.running()

    def end(self) -> None:
        """End sessions and subscriptions in good order."""
        if self._registry is not None:
            self._registry.leave()
        self._requester.leave()

    async def handle(self, call: Call) -> None:
        """Respond to a request: read the body of a POST once, and give it to the lifecycle of its revision."""
        if call.scope["path"] != self._path:
            path = call.path
            if path != self._path and not (call.scope.get("root_path") and path == "/"):
                raise HttpError(404, "nothing is served here")
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
        budget = self._requests.all if call.principal is None else self._requests.of(call.principal)
        budget.take()
        try:
            await requester.post(call, body)
        finally:
            budget.add(-1)

    async def _handle_other(self, call: Call, method: str) -> None:
        self.service.authorize(call.identity, None, [(method, None)])
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
