"""Answer stateful clients without sessions: each POST stands alone, so that any worker can take it.

MCP 2025-03-26 to 2025-11-25, "Transports": Session Management, which servers may do without.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from mcp_bindgen.runtime.concurrency import Turn, begin
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import InsufficientScope
from mcp_bindgen.runtime.protocol.capabilities import declared, is_declared, without_flags
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import ProtocolError, SessionRequired
from mcp_bindgen.runtime.protocol.events import Event, Notified, Rejected, Requested
from mcp_bindgen.runtime.protocol.methods import INITIALIZE, Notification, Path
from mcp_bindgen.runtime.protocol.peer import Peer
from mcp_bindgen.runtime.protocol.request_scope import Handler, Negotiated, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session.execution import execute
from mcp_bindgen.runtime.session.handshake_server import needs_session
from mcp_bindgen.runtime.session.server import Service

from .call import VERSION, Call, HttpError, check_version, refused
from .envelope import posted
from .exchange import Exchange, while_connected


class _Unremembered(Negotiated):
    """Describe what a request may count on whose client was never seen before."""

    def __init__(self, dispatcher: Dispatcher, offers: Mapping[str, Any], all_offers: Mapping[str, Any]) -> None:
        super().__init__(dispatcher)
        self.declared["server"] = offers
        self._all_offers = all_offers

    def missing_capability_error(self, method: str, capability: Path) -> Exception:
        """Make the error for a message that needs a capability: with a session, it might be there."""
        owner, *path = capability
        if owner == "client" or is_declared(self._all_offers, *path):
            return SessionRequired(method)
        return super().missing_capability_error(method, capability)


class _Reply(Exchange):
    """The way to the client of a POST: its response, and nothing beside it."""

    peer: Peer
    negotiated: Negotiated

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuse: the answer would come to nobody knows which worker."""
        raise SessionRequired(method.name)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Send a notification on the response; raises `SessionRequired` when that is over."""
        if self._over:
            raise SessionRequired(f"{method.name} after the end of its request")
        await super().notify(method, params, related=related)


class Sessionless:
    """Answers messages of stateful revisions, each of which stands alone.

    A message is in the revision that its header names, else in the one that the specification says. What its client
    declared is not known, and nothing that it asks for is remembered: capabilities that promise such a thing are not
    declared, and requests for it refused.

    Args:
        service: The servers.
        keep_alive: Seconds between comments that keep a silent stream open.
        unread: Seconds for clients to read what they are sent.
    """

    def __init__(self, service: Service, keep_alive: float, unread: float) -> None:
        self._service, self._keep_alive, self._unread = service, keep_alive, unread
        stateful = {name: one for name, one in service.dispatchers.items() if not one.revision.era.is_stateless}
        self._peer = Peer("server", stateful, service.supported)
        self._peer.max_batch_members = service.limits.batch_members
        self._unnamed = next((name for name, one in stateful.items() if one.revision.unnamed_over_http), None)
        self._offers: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        for name, dispatcher in stateful.items():
            server = service.server(dispatcher)
            server.has_sessions = False
            offers = declared(server, dispatcher)
            self._offers[name] = without_flags(offers, "server", dispatcher.revision), offers

    async def post(self, call: Call, body: bytes) -> None:
        """Respond to a POST: answer what is in it. Raises `HttpError`."""
        said = posted(call, body, self._peer.max_batch_members)
        peer = self._peer.another()
        if said.introduces:
            check_version(call, self._service.dispatchers)
        else:
            peer.resume(self._revision(call), 1)
        revision = peer.dispatcher.revision
        known = None if said.introduces else revision.name
        await self._service.authorize_all(call.identity, known, said.operations or [("an answer", None)])
        if not said.operations:
            raise HttpError(400, SessionRequired("an answer"))
        if said.batch and not revision.batches:
            raise refused(400, f"batches are not part of revision {revision}")
        reply = _Reply(call, self._unread, self._service.threads_of)
        reply.peer, reply.negotiated = peer, _Unremembered(peer.dispatcher, *self._offers[revision.name])
        events = peer.read(body)
        if not said.ids:
            await reply.answer(202, b"")
            await self._answer(peer, reply, events)
            return
        answered, rest = begin(self._answer(peer, reply, events))
        data, error = answered if rest is None else await while_connected(call, reply, rest, self._keep_alive)
        if isinstance(error, InsufficientScope) and not call.begun:
            raise error
        if data:
            await reply.answer(200, data)

    def _revision(self, call: Call) -> str:
        """Return the revision that a message is in; raises `HttpError` where that is not served."""
        supported = list(self._offers)
        check_version(call, supported)
        revision = call.header(VERSION) or self._unnamed
        if revision is None:
            raise refused(400, f"MCP-Protocol-Version is missing; supported are {', '.join(supported)}")
        return revision

    async def _answer(self, peer: Peer, reply: _Reply, events: Iterable[Event]) -> tuple[bytes, ProtocolError | None]:
        """Handle what came, one after the other; the last answer is that of all."""
        data, error = b"", None
        turn = Turn()
        for event in events:
            await turn.give_way()
            if isinstance(event, Rejected):
                data = event.reply
            elif isinstance(event, Requested | Notified):
                data, error = await execute(self._handler, peer, reply, event)
        return data, error

    def _handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        if needs_session(self._service.server(dispatcher), dispatcher, route):
            raise SessionRequired(route.method.name)
        handler = self._service.find(dispatcher, route)
        return partial(_introduce, dispatcher.revision, handler) if route.method.name == INITIALIZE else handler


async def _introduce(revision: Revision, handler: Handler, scope: RequestScope, params: Any) -> Any:
    """Answer a handshake, and declare only what can be kept."""
    answer = handler(scope, params)
    wire = jsonrpc.plain(await answer if inspect.isawaitable(answer) else answer)
    return {**wire, "capabilities": without_flags(wire["capabilities"], "server", revision)}
