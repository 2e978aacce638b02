"""Requests that belong to no session: each response is the only stream of its request.

MCP 2026-07-28, "Streamable HTTP"; MCP 2025-03-26 to 2025-11-25, "Transports": Session Management, which is optional for
servers. A handler that finishes without a notification is answered with JSON; a notification turns the response into a
stream of events. A client that disconnects cancels the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from mcp_bindgen.runtime.concurrency import first_step, resolved
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc, request_scope
from mcp_bindgen.runtime.protocol.access import InsufficientScope, RequestOrigin
from mcp_bindgen.runtime.protocol.capabilities import declared, is_declared
from mcp_bindgen.runtime.protocol.connection import Connection
from mcp_bindgen.runtime.protocol.envelope import RequestId, invalid, parse
from mcp_bindgen.runtime.protocol.errors import METHOD_NOT_FOUND, ProtocolError, SessionRequired
from mcp_bindgen.runtime.protocol.events import Event, Notified, Rejected, Requested
from mcp_bindgen.runtime.protocol.methods import INITIALIZE, SET_LEVEL, Notification, Path, RequestMethod
from mcp_bindgen.runtime.protocol.request_scope import Handler, Link, Negotiated, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.protocol.stateless import stated_version
from mcp_bindgen.runtime.session.endpoint import Endpoint, raising
from mcp_bindgen.runtime.session.execution import handle

from .access import HttpEndpoint, operations
from .call import VERSION, EventWriter, HttpCall, check_version, event, within
from .errors import HttpError, RawHeaders, refused
from .intake import Intake, begins_session
from .limits import Turn
from .mirrored_headers import mismatch


class Exchange(EventWriter, Link):
    """Link to the client of a request that belongs to no session: its response.

    Args:
        call: The request.
        connection: The state of the protocol.
        endpoint: The servers.
        write_timeout: Seconds for the client to read an event.
        keep_alive: Seconds between comments on an idle stream.

    Attributes:
        origin: Origin of the request.
    """

    def __init__(
        self, call: HttpCall, connection: Connection, endpoint: HttpEndpoint, write_timeout: float, keep_alive: float
    ) -> None:
        super().__init__(call, write_timeout, keep_alive)
        self.origin: RequestOrigin = call.origin
        self.connection: Connection = connection
        self.endpoint: request_scope.Endpoint = endpoint

    async def notify(self, method: Notification[Any], params: object, *, related: RequestId | None = None) -> None:
        """Send a notification on the stream that the response becomes.

        Raises:
            ConnectionClosed: The request is answered, or the client does not read.
        """
        await self.write(event(jsonrpc.notification(method, params)))

    async def answer(self, status: int, data: bytes, headers: RawHeaders = ()) -> None:
        """Send the answer, which ends the response. A stream has sent its headers and status before."""
        if self.has_ended:
            return
        self.has_ended = True
        if self.is_streaming:
            with suppress(TimeoutError):
                await within(self._write_timeout, self._call.write(event(data), more=False))
        else:
            await self._call.respond(status, data, headers=headers)


class StatelessRequests:
    """Requests of stateless revisions.

    Args:
        endpoint: The servers.
        keep_alive: Seconds between comments on an idle stream.
        write_timeout: Seconds for a client to read an event.

    Attributes:
        is_stateless: True for stateless revisions.
    """

    is_stateless: bool = True

    def __init__(self, endpoint: HttpEndpoint, keep_alive: float, write_timeout: float) -> None:
        self._endpoint, self._keep_alive, self._write_timeout = endpoint, keep_alive, write_timeout
        self._connection = Connection(
            "server", endpoint.dispatchers.only(is_stateless=self.is_stateless) or endpoint.dispatchers
        )

    async def post(self, call: HttpCall, body: bytes) -> None:
        """Answer the message in the body of a request. Raises `HttpError`."""
        connection = self._connection.another()
        found = next(iter(connection.read(body)), None)
        if isinstance(found, Requested):
            await self._run(call, connection, found)
        elif isinstance(found, Rejected):
            revision = connection.dispatcher.revision
            error = _header_error(revision, call, body, found.error)
            reply = found.reply if error is found.error else jsonrpc.failure(found.id if found.reply else None, error)
            await call.respond(_status(revision, error, 400), reply or jsonrpc.failure(None, error))
        elif isinstance(found, Notified):
            await self._endpoint.admit(call.identity, [found])
            exchange = Exchange(call, connection, self._endpoint, self._write_timeout, 0)
            await exchange.answer(202, b"")
            await handle(exchange, found)
        else:
            error = invalid("over HTTP a message is a request or a notification")
            await call.respond(400, jsonrpc.failure(None, error))

    async def _run(self, call: HttpCall, connection: Connection, asked: Requested) -> None:
        """Run a handler; if it has to wait, it is cancelled when the client disconnects."""
        exchange = Exchange(call, connection, self._endpoint, self._write_timeout, self._keep_alive)
        revision, method = asked.dispatcher.revision, asked.route.method
        if self._endpoint.access_policy is not None:
            try:
                await self._endpoint.admit(call.identity, [asked])
            except InsufficientScope as missing:
                await self._challenge(exchange, missing, connection.fail(asked.id, missing))
                return
            except ProtocolError as error:
                await exchange.answer(_status(revision, error, 400), connection.fail(asked.id, error))
                return
        answered, rest = first_step(handle(exchange, asked))
        if rest is not None:
            answered = await exchange.while_connected(rest)
        data, failed = answered or (b"", None)
        if isinstance(failed, InsufficientScope) and not exchange.is_streaming:
            needed = self._endpoint.needed_scopes(revision.name, operations(method, asked.params))
            await self._challenge(exchange, InsufficientScope(sorted(needed.union(failed.scopes))), data)
        elif failed is not None or data:
            await exchange.answer(200 if failed is None else _status(revision, failed, 200), data)

    async def _challenge(self, exchange: Exchange, missing: InsufficientScope, data: bytes) -> None:
        """Answer with 403, and with the scopes that the client needs."""
        policy = self._endpoint.access_policy
        await exchange.answer(403, data, () if policy is None else policy.challenge(missing))


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

    async def request(
        self, method: RequestMethod[Any, Any], params: object, *, related: RequestId | None = None
    ) -> Any:
        """Refuse: any worker could get the answer."""
        raise SessionRequired(method.name)

    async def notify(self, method: Notification[Any], params: object, *, related: RequestId | None = None) -> None:
        """Send a notification on the response; raises `SessionRequired` when it is over."""
        if self.has_ended:
            raise SessionRequired(f"{method.name} after the end of its request")
        await super().notify(method, params, related=related)


class Sessionless(StatelessRequests):
    """Requests of stateful revisions where there are no sessions: any worker can take each POST.

    The header of a message names its revision; without it, the revision that the specification names applies. The
    capabilities of the client are unknown, and no state is kept: capabilities that need state are not declared, and
    requests for them are refused.

    Args:
        endpoint: The servers.
        keep_alive: Seconds between comments on an idle stream.
        write_timeout: Seconds for a client to read an event.
        intake: Reads the messages in bodies.
    """

    is_stateless = False

    def __init__(self, endpoint: HttpEndpoint, keep_alive: float, write_timeout: float, intake: Intake) -> None:
        super().__init__(endpoint, keep_alive, write_timeout)
        self._intake = intake
        self._connection.max_batch_members = endpoint.limits.batch_members
        stateful = self._connection.dispatchers
        self._unnamed = next((name for name, one in stateful.items() if one.revision.unnamed_over_http), None)
        self._offers: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        for name, dispatcher in stateful.items():
            offers = declared(endpoint.server(dispatcher), dispatcher)
            self._offers[name] = _without_flags(offers, dispatcher.revision), offers

    async def post(self, call: HttpCall, body: bytes) -> None:
        """Answer the messages of a POST. Raises `HttpError`."""
        connection = self._connection.another()
        if not begins_session(body):
            connection.resume(self._revision(call), 1)
        else:
            check_version(call, self._endpoint.dispatchers)
        events = await self._intake.events(call, connection, body)
        await self._intake.admit(call, connection, events)
        if not any(isinstance(one, Requested | Notified | Rejected) for one in events):
            raise HttpError(400, SessionRequired("an answer"))
        reply = _Reply(call, connection, self._endpoint, self._write_timeout, self._keep_alive)
        reply.negotiated = _Unremembered(connection.dispatcher, *self._offers[connection.dispatcher.revision.name])
        if not any(isinstance(one, Requested) or (isinstance(one, Rejected) and one.reply) for one in events):
            await reply.answer(202, b"")
            await self._answer(reply, events)
            return
        answered, rest = first_step(self._answer(reply, events))
        if rest is not None:
            answered = await reply.while_connected(rest)
        data, error = answered or (b"", None)
        if isinstance(error, InsufficientScope) and not call.begun:
            raise error
        if data:
            await reply.answer(200, data)
        elif answered is not None:  # nothing in it is answered, such as a request that the same batch cancels
            await (reply.end() if call.begun else reply.answer(202, b""))

    def _revision(self, call: HttpCall) -> str:
        """Return the revision of a message; raises `HttpError` where it is not served."""
        supported = list(self._offers)
        check_version(call, supported)
        revision = call.header(VERSION) or self._unnamed
        if revision is None:
            raise refused(400, f"MCP-Protocol-Version is missing; supported are {', '.join(supported)}")
        return revision

    async def _answer(self, reply: _Reply, events: Iterable[Event]) -> tuple[bytes, ProtocolError | None]:
        """Handle the messages one after the other; the last answer answers a whole batch."""
        data, error = b"", None
        turn = Turn()
        for one in events:
            await turn.give_way()
            if isinstance(one, Rejected):
                data = one.reply or data
            elif isinstance(one, Requested | Notified):
                answered, error = await handle(reply, one)
                data = answered or data
        return data, error


def remembered(endpoint: Endpoint, dispatcher: Dispatcher, route: Route, handler: Handler) -> Handler:
    """Refuse requests that a server without sessions must remember, and declare no capability that needs a session."""
    method, revision = route.method, dispatcher.revision
    if endpoint.has_sessions or revision.era.is_stateless:
        return handler
    subscribes = method.kind == "request" and method.capabilities.get("client") in revision.flags
    if subscribes or (method.name == SET_LEVEL and not endpoint.is_handled(dispatcher, route)):
        return raising(SessionRequired(method.name))
    if method.name != INITIALIZE:
        return handler

    async def initialize(scope: RequestScope, params: object) -> Any:
        wire = jsonrpc.plain(await resolved(handler(scope, params)))
        return {**wire, "capabilities": _without_flags(wire["capabilities"], revision)}

    return initialize


def _without_flags(tree: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return capabilities of a server without the flags, which promise messages that no request asked for."""

    def kept(path: Path, node: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: kept((*path, name), value) if is_object(value) else value
            for name, value in node.items()
            if (*path, name) not in revision.flags
        }

    return kept(("server",), tree)


def _status(revision: Revision, error: ProtocolError, other: int) -> int:
    """Return the HTTP status of an error: 404 for unknown methods, 400 for the protocol's own errors."""
    if error.code == METHOD_NOT_FOUND:
        return 404
    return 400 if error.code in revision.errors.values() else other


def _header_error(revision: Revision, call: HttpCall, body: bytes, error: ProtocolError) -> ProtocolError:
    """Return the more important error: the revision in a body must equal the revision in the header."""
    header = call.header(VERSION)
    try:
        message = parse(body)
    except ProtocolError:
        return error
    if header is None:
        return mismatch(revision, "MCP-Protocol-Version is missing", error.data if is_object(error.data) else None)
    stated = stated_version(revision, message)
    return mismatch(revision, "the versions differ") if isinstance(stated, str) and header != stated else error
