"""Stateful revisions without sessions: each POST is independent, so that any worker can take it.

MCP 2025-03-26 to 2025-11-25, "Transports": Session Management, which is optional for servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from mcp_bindgen.runtime.concurrency import Turn, begin, resolved
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import InsufficientScope
from mcp_bindgen.runtime.protocol.capabilities import declared, is_declared
from mcp_bindgen.runtime.protocol.envelope import RequestId
from mcp_bindgen.runtime.protocol.errors import ProtocolError, SessionRequired
from mcp_bindgen.runtime.protocol.events import Event, Notified, Rejected, Requested
from mcp_bindgen.runtime.protocol.methods import INITIALIZE, SET_LEVEL, Notification, Path, Request
from mcp_bindgen.runtime.protocol.peer import Peer
from mcp_bindgen.runtime.protocol.request_scope import Handler, Negotiated, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session.execution import execute
from mcp_bindgen.runtime.session.server import Server

from .access import GuardedService
from .call import VERSION, Call, check_version
from .errors import HttpError, refused
from .intake import Intake
from .stateless import Exchange


class _Unremembered(Negotiated):
    """Negotiated features of a request from an unknown client."""

    def __init__(self, dispatcher: Dispatcher, offers: Mapping[str, Any], all_offers: Mapping[str, Any]) -> None:
        super().__init__(dispatcher)
        self.declared["server"] = offers
        self._all_offers = all_offers

    def missing_capability_error(self, method: str, capability: Path) -> Exception:
        """Return the error for a message that needs a missing capability, which a session might have."""
        owner, *path = capability
        if owner == "client" or is_declared(self._all_offers, *path):
            return SessionRequired(method)
        return super().missing_capability_error(method, capability)


class _Reply(Exchange):
    """Link to the client of a POST: its response alone."""

    peer: Peer

    async def request(self, method: Request[Any, Any], params: object, *, related: RequestId | None = None) -> Any:
        """Refuse: any worker could get the answer."""
        raise SessionRequired(method.name)

    async def notify(self, method: Notification[Any], params: object, *, related: RequestId | None = None) -> None:
        """Send a notification on the response; raises `SessionRequired` when it is over."""
        if self.has_ended:
            raise SessionRequired(f"{method.name} after the end of its request")
        await super().notify(method, params, related=related)


class Sessionless:
    """Independent messages of stateful revisions.

    The header of a message names its revision; without it, the revision that the specification names applies. The
    capabilities of the client are unknown, and no state is kept: capabilities that need state are not declared, and
    requests for them are refused.

    Args:
        service: The servers.
        intake: Reads and parses bodies.
        keep_alive: Seconds between comments on an idle stream.
        write_timeout: Seconds for a client to read an event.
    """

    def __init__(self, service: GuardedService, intake: Intake, keep_alive: float, write_timeout: float) -> None:
        self._service, self._intake = service, intake
        self._keep_alive, self._write_timeout = keep_alive, write_timeout
        stateful = {name: one for name, one in service.dispatchers.items() if not one.revision.era.is_stateless}
        self._peer = Peer("server", stateful, service.supported)
        self._peer.max_batch_members = service.limits.batch_members
        self._unnamed = next((name for name, one in stateful.items() if one.revision.unnamed_over_http), None)
        for one in service.servers:
            one.session_modes[service] = one.dispatcher.revision.era.is_stateless
        self._offers: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        for name, dispatcher in stateful.items():
            server = service.server(dispatcher)
            offers = declared(server, dispatcher)
            self._offers[name] = _without_flags(offers, dispatcher.revision), offers

    async def post(self, call: Call, body: bytes) -> None:
        """Answer the messages of a POST. Raises `HttpError`."""
        parsed = self._intake.parse(call, body)
        peer = self._peer.another()
        if parsed.is_initialize:
            check_version(call, self._service.dispatchers)
        else:
            peer.resume(self._revision(call), 1)
        revision = peer.dispatcher.revision
        await self._intake.authorize(call, parsed, None if parsed.is_initialize else revision.name)
        if all(one.is_answer for one in parsed.envelopes):
            raise HttpError(400, SessionRequired("an answer"))
        parsed.check_batch(revision)
        reply = _Reply(call, self._service, self._write_timeout, self._keep_alive)
        reply.peer, reply.negotiated = peer, _Unremembered(peer.dispatcher, *self._offers[revision.name])
        events = peer.read(body)
        if not parsed.ids:
            await reply.answer(202, b"")
            await self._answer(peer, reply, events)
            return
        answered, rest = begin(self._answer(peer, reply, events))
        if rest is not None:
            answered = await reply.while_connected(rest)
        data, error = answered or (b"", None)
        if isinstance(error, InsufficientScope) and not call.begun:
            raise error
        if data:
            await reply.answer(200, data)

    def _revision(self, call: Call) -> str:
        """Return the revision of a message; raises `HttpError` where it is not served."""
        supported = list(self._offers)
        check_version(call, supported)
        revision = call.header(VERSION) or self._unnamed
        if revision is None:
            raise refused(400, f"MCP-Protocol-Version is missing; supported are {', '.join(supported)}")
        return revision

    async def _answer(self, peer: Peer, reply: _Reply, events: Iterable[Event]) -> tuple[bytes, ProtocolError | None]:
        """Handle the messages one after the other; the last answer answers a whole batch."""
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
        if _needs_session(self._service.server(dispatcher), dispatcher, route):
            raise SessionRequired(route.method.name)
        handler = self._service.find(dispatcher, route)
        return partial(_initialize, dispatcher.revision, handler) if route.method.name == INITIALIZE else handler


async def _initialize(revision: Revision, handler: Handler, scope: RequestScope, params: object) -> Any:
    """Answer `initialize`, and declare only capabilities that need no session."""
    wire = jsonrpc.plain(await resolved(handler(scope, params)))
    return {**wire, "capabilities": _without_flags(wire["capabilities"], revision)}


def _without_flags(tree: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return capabilities of a server without the flags, which promise messages that no request asked for."""

    def kept(path: Path, node: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: kept((*path, name), value) if is_object(value) else value
            for name, value in node.items()
            if (*path, name) not in revision.flags
        }

    return kept(("server",), tree)


def _needs_session(server: Server, dispatcher: Dispatcher, route: Route) -> bool:
    """Return True if the server must remember a request: a subscription, or a log level."""
    method = route.method
    subscribes = method.kind == "request" and method.capabilities.get("client") in dispatcher.revision.flags
    return subscribes or (method.name == SET_LEVEL and not dispatcher.is_handled(route, server))
