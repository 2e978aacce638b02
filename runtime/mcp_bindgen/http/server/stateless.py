"""Stateless requests over HTTP (MCP 2026-07-28, "Streamable HTTP"): each response is the only stream of its request.

A handler that finishes without a notification is answered with JSON; a notification turns the response into a stream
of events. A client that disconnects cancels the request.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from anyio import CapacityLimiter

from mcp_bindgen.runtime.concurrency import begin, resolved
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import InsufficientScope, RequestOrigin
from mcp_bindgen.runtime.protocol.envelope import RequestId, invalid, parse
from mcp_bindgen.runtime.protocol.errors import METHOD_NOT_FOUND, ProtocolError
from mcp_bindgen.runtime.protocol.events import Notified, Rejected, Requested
from mcp_bindgen.runtime.protocol.methods import HeaderParams, Notification, Request
from mcp_bindgen.runtime.protocol.peer import Peer
from mcp_bindgen.runtime.protocol.request_scope import Handler, Link, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.protocol.stateless import stated_version
from mcp_bindgen.runtime.session.context import Caller
from mcp_bindgen.runtime.session.execution import execute
from mcp_bindgen.runtime.session.subscriptions import AroundSubscription, Subscription

from ..headers import ANNOTATION, PREFIX, HeaderMismatch, check_params, decode
from .access import GuardedService, operations
from .call import VERSION, Call, EventWriter, event, within
from .errors import RawHeaders

_VAIN_SECONDS = 1.0  # for which a list is not read again after it was read in vain
_PLAIN = re.compile(rb"(?!=\?)[!-~]+")
_PARAM = PREFIX.lower().encode()


class Exchange(EventWriter, Link):
    """Link to the client of one request: its response.

    Args:
        call: The request.
        service: The servers.
        write_timeout: Seconds for the client to read an event.
        keep_alive: Seconds between comments on an idle stream.

    Attributes:
        origin: Origin of the request.
    """

    def __init__(self, call: Call, service: GuardedService, write_timeout: float, keep_alive: float) -> None:
        super().__init__(call, write_timeout, keep_alive)
        self.origin: RequestOrigin = call.origin
        self.access = service.access
        self._service = service

    def thread_limit(self) -> CapacityLimiter | None:
        """Return the limit of threads for blocking handlers of the sender, if known."""
        principal = self.origin.principal
        return None if principal is None else self._service.threads_of(principal)

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


@dataclass(eq=False, repr=False)
class StatelessRequests:
    """Requests of stateless revisions.

    Args:
        service: The servers.
        keep_alive: Seconds between comments on an idle stream.
        write_timeout: Seconds for a client to read an event.
        around: Context of each subscription, where several workers serve subscriptions.

    Attributes:
        is_leaving: True if a subscription that begins now ends at once.
    """

    service: GuardedService
    keep_alive: float
    write_timeout: float
    around: AroundSubscription | None
    is_leaving: bool = False

    def __post_init__(self) -> None:
        self._subscriptions: set[Subscription] = set()
        dispatchers, supported = self.service.dispatchers, self.service.supported
        stateless = {name: one for name, one in dispatchers.items() if one.revision.era.is_stateless}
        self._peer = Peer("server", stateless or dispatchers, supported)
        self._schemas = ArgumentSchemas(self.service)

    def leave(self) -> None:
        """End all subscriptions in good order, including subscriptions that begin later."""
        self.is_leaving = True
        for subscription in self._subscriptions:
            subscription.end()

    @asynccontextmanager
    async def _listening(self, subscription: Subscription, wanted: object) -> AsyncGenerator[None]:
        """Run a subscription with its filter."""
        async with nullcontext() if self.around is None else self.around(subscription, wanted):
            self._subscriptions.add(subscription)
            try:
                if self.is_leaving:
                    subscription.end()
                yield
            finally:
                self._subscriptions.discard(subscription)

    async def post(self, call: Call, body: bytes) -> None:
        """Answer one message."""
        peer = self._peer.another()
        found = next(iter(peer.read(body)), None)
        if isinstance(found, Requested):
            await self._run(call, peer, found)
        elif isinstance(found, Rejected):
            revision = peer.dispatcher.revision
            error = _header_error(revision, call, body, found.error)
            reply = found.reply if error is found.error else jsonrpc.failure(found.id if found.reply else None, error)
            await call.respond(_status(revision, error, 400), reply or jsonrpc.failure(None, error))
        elif isinstance(found, Notified):
            await self._authorize(call, found)
            exchange = Exchange(call, self.service, self.write_timeout, 0)
            await exchange.answer(202, b"")
            await execute(self.service.handler, peer, exchange, found)
        else:
            error = invalid("over HTTP a message is a request or a notification")
            await call.respond(400, jsonrpc.failure(None, error))

    async def _run(self, call: Call, peer: Peer, asked: Requested) -> None:
        """Run a handler; if it has to wait, it is cancelled when the client disconnects."""
        exchange = Exchange(call, self.service, self.write_timeout, self.keep_alive)
        exchange.around_subscription = self._listening
        revision, method = asked.dispatcher.revision, asked.route.method
        find = self.service.handler
        try:
            if self.service.access_policy is not None:
                await self._authorize(call, asked)
            if isinstance(method, Request):
                _check_headers(call, revision, method, asked.params)
                rule = method.header_params
                if rule is not None and not self._schemas.is_met(rule, asked.params, call.headers):
                    find = partial(self._checked, call, rule)
        except InsufficientScope as missing:
            await self._challenge(exchange, missing, peer.fail(asked.id, missing))
            return
        except (HeaderMismatch, ProtocolError) as refused:
            error = refused if isinstance(refused, ProtocolError) else _mismatch(revision, str(refused))
            await exchange.answer(_status(revision, error, 400), peer.fail(asked.id, error))
            return
        answered, rest = begin(execute(find, peer, exchange, asked))
        if rest is not None:
            answered = await exchange.while_connected(rest)
        data, failed = answered or (b"", None)
        if isinstance(failed, InsufficientScope) and not exchange.is_streaming:
            needed = self.service.needed_scopes(revision.name, operations(method, asked.params))
            await self._challenge(exchange, InsufficientScope(sorted(needed.union(failed.scopes))), data)
        elif failed is not None or data:
            await exchange.answer(200 if failed is None else _status(revision, failed, 200), data)

    async def _authorize(self, call: Call, event: Requested | Notified) -> None:
        if self.service.access_policy is not None:
            asked = operations(event.route.method, event.params)
            await self.service.authorize_all(call.identity, event.dispatcher.revision.name, asked)

    async def _challenge(self, exchange: Exchange, missing: InsufficientScope, data: bytes) -> None:
        """Answer with 403, and with the scopes that the client needs."""
        policy = self.service.access_policy
        await exchange.answer(403, data, () if policy is None else policy.challenge(missing))

    def _checked(self, call: Call, rule: HeaderParams, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return a handler that reads the wanted headers again before the handler of the route runs."""
        handler = self.service.handler(dispatcher, route)

        async def checked(scope: RequestScope, params: Any) -> Any:
            try:
                schema = await self._schemas.read(rule, dispatcher, scope, params)
                if schema is not None:
                    check_params(schema, getattr(params, rule.arguments), call.headers)
            except HeaderMismatch as error:
                raise _mismatch(dispatcher.revision, str(error)) from None
            return await resolved(handler(scope, params))

        return checked


class ArgumentSchemas:
    """JSON Schemas of tools that repeat arguments in headers.

    MCP 2026-07-28, "Streamable HTTP": Custom Headers from Tool Parameters.

    The server's own list has the schemas. It is read at the first call, and again when a call does not match it or
    names a tool that is not in it. If that was in vain, because the list is the same or lacks the tool, it is not read
    again for a second, except for a client that may get another list, or after a broadcast.

    Args:
        service: The servers.
    """

    def __init__(self, service: GuardedService) -> None:
        self._service = service
        self._known: dict[HeaderParams, dict[str, Any]] = {}
        self._unlisted: set[HeaderParams] = set()
        self._read_in_vain: tuple[object, ...] = ()  # the facts that decided about the list
        self._read_at = 0.0

    def is_met(self, rule: HeaderParams, params: object, headers: Mapping[bytes, bytes]) -> bool:
        """Return True if the headers of a call are known to match its arguments; if not, `read` the schemas."""
        if rule in self._unlisted:
            return True
        known, name = self._known.get(rule, {}), getattr(params, rule.name)
        if name not in known:
            return False
        if known[name] is None:
            return _PARAM not in b"\n".join(headers)  # also false inside of a name
        try:
            check_params(known[name], getattr(params, rule.arguments), headers)
        except (HeaderMismatch, ValueError):
            return False
        return True

    async def read(self, rule: HeaderParams, dispatcher: Dispatcher, scope: RequestScope, params: Any) -> Any:
        """Read the schemas again if they may differ; return the schema for a call, `None` if it asks for no headers.

        Args:
            rule: The fields with the arguments and their schema.
            dispatcher: The revision of the call.
            scope: The scope of the call.
            params: The params of the call.
        """
        meta, broadcasts = scope.meta or params.meta, self._service.server(dispatcher).broadcast_count
        view = rule, dispatcher, broadcasts, scope.origin.principal, _of_the_client(dispatcher, meta)
        name = getattr(params, rule.name)
        if self._read_in_vain != view or monotonic() > self._read_at + _VAIN_SECONDS:
            before, known = self._known.get(rule), await self._listed(rule, dispatcher, scope.link, meta)
            is_in_vain = known == before or name not in known
            self._read_in_vain, self._read_at = view if is_in_vain else (), monotonic()
            self._known[rule] = known
        return self._known[rule].get(name)

    async def _listed(self, rule: HeaderParams, dispatcher: Dispatcher, link: Link, meta: object) -> dict[str, Any]:
        """Return name -> JSON Schema, None for a schema that asks for no headers."""
        route = dispatcher.routes[rule.listed_by]
        found: dict[str, Any] = {}
        if not self._service.is_handled(dispatcher, route):
            self._unlisted.add(rule)
            return found
        handler = self._service.handler(dispatcher, route)
        wire: dict[str, Any] = {"_meta": _of_the_client(dispatcher, meta)}
        items, name, schema = map(wire_name, (rule.items, rule.name, rule.schema))
        asked: list[dict[str, Any]] = []

        async def page(cursor: str | None) -> dict[str, Any]:
            asked.append(wire if cursor is None else {**wire, "cursor": cursor})
            text: bytes = await handler(RequestScope.of(link), jsonrpc.typed_params(route.method, asked[-1]))
            asked.clear()
            read: dict[str, Any] = parse(text)
            asks = ANNOTATION.encode() in text
            found.update({item[name]: item[schema] if asks else None for item in read[items]})
            return read

        try:
            async for _ in Caller(link).pages(page):
                pass
        except ProtocolError as error:
            if asked:  # the handler has failed
                raise
            log.error("%s is not read to its end: %s", rule.listed_by, error)
        return found


def _of_the_client(dispatcher: Dispatcher, meta: object) -> dict[str, Any]:
    """Return the `_meta` of a request without the members that concern this request only."""
    of_the_call = ("progressToken", "traceparent", "tracestate", dispatcher.revision.meta_keys.get("log_level"))
    return {key: value for key, value in jsonrpc.plain(meta).items() if key not in of_the_call}


def _check_headers(call: Call, revision: Revision, method: Request[Any, Any], params: object) -> None:
    """Check that the headers agree with the body: intermediaries may have read the headers alone."""
    headers = call.headers
    for header, wanted in ((VERSION, revision.name), (b"mcp-method", method.name)):
        if headers.get(header) != wanted.encode() and (found := call.header(header)) != wanted:
            shown = header.decode().title()
            raise HeaderMismatch(f"{shown} is missing" if found is None else f"{shown} differs from the body")
    if method.named_by is not None:
        name, sent = getattr(params, method.named_by), headers.get(b"mcp-name")
        if sent is None:
            raise HeaderMismatch("Mcp-Name is missing")
        if not (sent == name.encode() and _PLAIN.fullmatch(sent)) and decode(sent.decode("latin-1")) != name:
            raise HeaderMismatch("Mcp-Name differs from the body")


def _mismatch(revision: Revision, reason: str, data: object = None) -> ProtocolError:
    return ProtocolError(revision.errors["HEADER_MISMATCH"], f"Header mismatch: {reason}", data)


def _status(revision: Revision, error: ProtocolError, other: int) -> int:
    """Return the HTTP status of an error: 404 for unknown methods, 400 for the protocol's own errors."""
    if error.code == METHOD_NOT_FOUND:
        return 404
    return 400 if error.code in revision.errors.values() else other


def _header_error(revision: Revision, call: Call, body: bytes, error: ProtocolError) -> ProtocolError:
    """Return the more important error: the revision in a body must equal the revision in the header."""
    header = call.header(VERSION)
    try:
        message = parse(body)
    except ProtocolError:
        return error
    if header is None:
        return _mismatch(revision, "MCP-Protocol-Version is missing", error.data if is_object(error.data) else None)
    stated = stated_version(revision, message)
    return _mismatch(revision, "the versions differ") if isinstance(stated, str) and header != stated else error
