"""Handle a stateless request over HTTP: it says all there is to know, and its response is its only stream.

MCP 2026-07-28, "Streamable HTTP". What finishes without a word is answered with JSON; a handler that has something to
say meanwhile turns the response into a stream of events. Who hangs up cancels.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from anyio import CapacityLimiter

from mcp_bindgen.runtime.concurrency import begin, within
from mcp_bindgen.runtime.era.stateless import ParamsWithMeta, separated, stated_version
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.access import AccessPolicy, InsufficientScope, Operation, operations
from mcp_bindgen.runtime.protocol.envelope import RequestId, invalid, parse
from mcp_bindgen.runtime.protocol.errors import METHOD_NOT_FOUND, ConnectionClosed, MethodNotFound, ProtocolError
from mcp_bindgen.runtime.protocol.events import Event, Notified, Rejected, Requested
from mcp_bindgen.runtime.protocol.methods import HeaderParams, Notification
from mcp_bindgen.runtime.protocol.peer import Peer
from mcp_bindgen.runtime.protocol.request_scope import Handler, Link, RequestScope
from mcp_bindgen.runtime.protocol.revision import Dispatcher, Revision
from mcp_bindgen.runtime.protocol.routing import Route
from mcp_bindgen.runtime.session.execution import execute
from mcp_bindgen.runtime.session.server import Service
from mcp_bindgen.runtime.session.subscriptions import AroundSubscription, Subscription

from ..headers import HeaderMismatch, decode
from .call import VERSION, Call, event
from .header_validation import ArgumentSchemas


class Exchange(Link):
    """The way to the client of one request: its response.

    Args:
        call: The request.
        unread: Seconds for its client to read what it is sent.
        threads_of: Finds the threads for handlers that block of a principal.
        listening: Surrounds each subscription of the endpoint.

    Attributes:
        around_subscription: The same.
        origin: Origin of the request.
        streaming: Whether the response is a stream of events.
    """

    def __init__(
        self,
        call: Call,
        unread: float,
        threads_of: Callable[[str], CapacityLimiter] | None = None,
        listening: AroundSubscription | None = None,
    ) -> None:
        self.origin = call.origin
        self.around_subscription = listening
        self._threads_of = threads_of
        self._unread = unread
        self.streaming = False
        self._call = call
        self._over = False
        self._writing = asyncio.Lock()

    def thread_limit(self) -> CapacityLimiter | None:
        """The threads for handlers that block of whoever sent it, if that is known."""
        principal = self.origin.principal
        return None if self._threads_of is None or principal is None else self._threads_of(principal)

    async def request(self, method: Any, params: Any, *, related: RequestId | None = None) -> Any:
        """Refuse: servers send no requests in this revision."""
        raise MethodNotFound(method.name)

    async def notify(self, method: Notification[Any], params: Any, *, related: RequestId | None = None) -> None:
        """Send a notification, on the stream that the response thereby becomes.

        Raises:
            ConnectionClosed: The request is answered, or its client does not read.
        """
        await self.write(event(jsonrpc.notification(method, params)))

    async def write(self, data: bytes) -> None:
        """Send a part of the stream; raise `ConnectionClosed` as `notify` does."""
        if self._over:
            raise ConnectionClosed("the request is answered")
        try:
            await within(self._unread, self._write(data))
        except (TimeoutError, OSError):
            self._over = True
            raise ConnectionClosed("the client does not read") from None

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            if not self.streaming:
                self.streaming = True
                await self._call.open_stream()
            await self._call.write(data)

    async def answer(self, status: int, data: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Send the answer, which ends the response; headers are sent unless that is a stream."""
        if self._over:
            return
        self._over = True
        if self.streaming:
            with suppress(TimeoutError):
                await within(self._unread, self._call.write(event(data), more=False))
        else:
            await self._call.respond(status, data, headers=headers)


class Exchanges:
    """Answers stateless requests.

    Args:
        service: The servers.
        keep_alive: Seconds between comments that keep a silent stream open.
        unread: Seconds for clients to read what they are sent.
        access_policy: Tells clients which scopes to come back with, where tokens are verified.
        around: Surrounds each subscription, where several workers serve them.

    Attributes:
        is_leaving: True if a subscription that begins now ends at once.
    """

    def __init__(
        self,
        service: Service,
        keep_alive: float,
        unread: float,
        access_policy: AccessPolicy | None = None,
        around: AroundSubscription | None = None,
    ) -> None:
        self._service = service
        self._access_policy = access_policy
        self._around = around
        self._subscriptions: set[Subscription] = set()
        self.is_leaving = False
        self._unread = unread
        self._keep_alive = keep_alive
        alone = {name: one for name, one in service.dispatchers.items() if one.revision.era.is_stateless}
        self._peer = Peer("server", alone or service.dispatchers, service.supported)
        self._schemas = ArgumentSchemas(service)

    def leave(self) -> None:
        """End all subscriptions in good order, also those that begin from now on."""
        self.is_leaving = True
        for subscription in self._subscriptions:
            subscription.end()

    @asynccontextmanager
    async def _listening(self, subscription: Subscription, wanted: Any) -> AsyncGenerator[None]:
        """Surround a subscription."""
        async with nullcontext() if self._around is None else self._around(subscription, wanted):
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
        found = next(iter(peer.receive(body)), None)
        if isinstance(found, Requested):
            await self._run(call, peer, found)
        elif isinstance(found, Rejected):
            revision = peer.dispatcher.revision
            error = _clearer(revision, call, body, found.error)
            reply = found.reply if error is found.error else jsonrpc.failure(found.id if found.reply else None, error)
            await call.respond(_status(revision, error, 400), reply or jsonrpc.failure(None, error))
        else:
            await self._told(call, peer, found)

    async def _told(self, call: Call, peer: Peer, found: Event | None) -> None:
        if not isinstance(found, Notified):
            error = invalid("over HTTP a message is a request or a notification")
            await call.respond(400, jsonrpc.failure(None, error))
            return
        if self._access_policy is not None:
            await self._authorize(call, found)
        exchange = Exchange(call, self._unread)
        await exchange.answer(202, b"")
        await execute(self._service.handler, peer, exchange, found)

    async def _run(self, call: Call, peer: Peer, asked: Requested) -> None:
        """Run a handler; one that has to wait is cancelled when the client hangs up."""
        exchange = Exchange(call, self._unread, self._service.threads_of, self._listening)
        revision, route = asked.dispatcher.revision, asked.route
        find = self._service.handler
        try:
            if self._access_policy is not None:
                await self._authorize(call, asked)
            _check(call, revision, route, asked.params)
            rule = getattr(route.method, "header_params", None)
            if rule is not None and not self._schemas.is_met(rule, asked.params, call.headers):
                find = partial(self._checked, call, rule)
        except InsufficientScope as missing:
            await self._step_up(exchange, missing, peer.fail(asked.id, missing))
            return
        except (HeaderMismatch, ProtocolError) as refused:
            error = refused if isinstance(refused, ProtocolError) else _mismatch(revision, str(refused))
            await exchange.answer(_status(revision, error, 400), peer.fail(asked.id, error))
            return
        answered, rest = begin(execute(find, peer, exchange, asked))
        data, error = answered if rest is None else await while_connected(call, exchange, rest, self._keep_alive)
        if isinstance(error, InsufficientScope) and not exchange.streaming:
            beside = self._service.needed_scopes(revision.name, _operations(asked))
            await self._step_up(exchange, InsufficientScope(sorted(beside.union(error.scopes))), data)
        elif error is not None or data:
            await exchange.answer(200 if error is None else _status(revision, error, 200), data)

    async def _authorize(self, call: Call, event: Requested | Notified) -> None:
        await self._service.authorize_all(call.identity, event.dispatcher.revision.name, _operations(event))

    async def _step_up(self, exchange: Exchange, missing: InsufficientScope, data: bytes) -> None:
        """Answer with 403, and with the scopes that the client should come back with."""
        headers = () if self._access_policy is None else self._access_policy.challenge(missing).headers
        await exchange.answer(403, data, headers)

    def _checked(self, call: Call, rule: HeaderParams, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return a handler that reads anew which headers are wanted, before the handler of the route runs."""
        handler = self._service.handler(dispatcher, route)

        async def checked(scope: RequestScope, params: Any) -> Any:
            try:
                await self._schemas.check(rule, dispatcher, scope.link, params, call.headers)
            except HeaderMismatch as error:
                raise _mismatch(dispatcher.revision, str(error)) from None
            answer = handler(scope, params)
            return await answer if inspect.isawaitable(answer) else answer

        return checked


async def while_connected(call: Call, exchange: Exchange, work: Any, keep_alive: float) -> Any:
    """Await work, which is cancelled when the client hangs up; send keep-alives on silent streams meanwhile."""
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        hanging_up = asyncio.ensure_future(call.hung_up())
        try:
            while not hanging_up.done():
                await asyncio.wait([hanging_up], timeout=keep_alive or None)
                if not hanging_up.done() and exchange.streaming:
                    await exchange.write(b":\n\n")
        except ConnectionClosed:
            pass
        finally:
            hanging_up.cancel()
        gone = True
        task.cancel()

    watching = asyncio.create_task(watch())
    try:
        answered = await work
        if gone:
            task.uncancel()  # it finished all the same
        return answered
    except asyncio.CancelledError:
        if not gone or task.uncancel():  # somebody else cancels this task, too
            raise
        return b"", None
    finally:
        watching.cancel()


def _operations(event: Requested | Notified) -> list[Operation]:
    params = event.params.params if isinstance(event.params, ParamsWithMeta) else event.params
    return operations(event.route.method, params)


def _check(call: Call, revision: Revision, route: Route, params: Any) -> None:
    """Check that the headers agree with the body: intermediaries may have looked at the headers alone."""
    _same(call, VERSION, revision.name)
    _same(call, b"mcp-method", route.method.name)
    named_by = getattr(route.method, "named_by", None)
    if named_by is not None:
        header = call.header(b"mcp-name")
        if header is None or decode(header) != getattr(separated(params)[0], named_by):
            raise HeaderMismatch("Mcp-Name " + ("is missing" if header is None else "differs from the body"))


def _same(call: Call, name: bytes, wanted: str) -> None:
    if call.headers.get(name) == wanted.encode():
        return
    header = call.header(name)
    if header != wanted:
        shown = name.decode().title()
        raise HeaderMismatch(f"{shown} is missing" if header is None else f"{shown} differs from the body")


def _mismatch(revision: Revision, reason: str, data: Any = None) -> ProtocolError:
    return ProtocolError(revision.errors["HEADER_MISMATCH"], f"Header mismatch: {reason}", data)


def _status(revision: Revision, error: ProtocolError, other: int) -> int:
    """Return the HTTP status of an error: 404 for unknown methods, 400 for the protocol's own errors."""
    if error.code == METHOD_NOT_FOUND:
        return 404
    return 400 if error.code in revision.errors.values() else other


def _clearer(revision: Revision, call: Call, body: bytes, error: ProtocolError) -> ProtocolError:
    """Return the more important error: what a body says of its revision must be what the header says."""
    header = call.header(VERSION)
    try:
        message = parse(body)
    except ProtocolError:
        return error
    if header is None:
        return _mismatch(revision, "MCP-Protocol-Version is missing", error.data if is_object(error.data) else None)
    stated = stated_version(revision, message)
    if isinstance(stated, str) and header != stated:
        return _mismatch(revision, "the versions differ")
    return error
