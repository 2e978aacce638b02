"""The base of generated clients, their subscriptions (MCP 2026-07-28, "Subscriptions") and their introduction.

A client introduces itself by the handshake (MCP, "Lifecycle") or `server/discover`.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from types import EllipsisType
from typing import Any, Protocol, Self, TypeAlias, TypeVar, Unpack, cast

import anyio
from pydantic import BaseModel

from ..concurrency import background_tasks
from ..logs import log
from ..model.base import Model, fields_of, optional
from ..model.json_types import is_array, is_object
from ..protocol import errors, jsonrpc, methods
from ..protocol.capabilities import Side, declared, is_offered, unmet
from ..protocol.envelope import invalid_answer, own_id
from ..protocol.errors import AuthorizationError, ConnectionClosed, MethodNotFound, ProtocolError
from ..protocol.extension import ExtensionResult
from ..protocol.invalid_items import InvalidItem
from ..protocol.limits import Limits, Options, Progress
from ..protocol.methods import Method, Notification, RequestMethod, untyped
from ..protocol.request_scope import Answer, Handler, Negotiated, RequestScope
from ..protocol.revision import Dispatcher, Revision
from ..protocol.routing import Route
from .context import Caller, Context
from .execution import introduction
from .rounds import settle_rounds, understood
from .session import Session, in_handler
from .targets import Cache, CacheScope, ConnectOptions, Target

VERSION_HEADER = "MCP-Protocol-Version"


class HeaderMirror(Protocol):
    """Mirror that copies parts of messages into headers, as results of the server ask for."""

    def headers(self, method: Method, params: object) -> Mapping[str, str]:
        """Return the headers of a message."""
        ...

    def learn(self, method: Method, answer: object, report: Callable[[InvalidItem], object]) -> Any:
        """Learn from a result which headers are needed; leave out, and report, entries whose headers are invalid."""

    def source(self, method: Method) -> str | None:
        """Return the method whose results name the headers of messages of `method`, if there is one."""


Params = TypeVar("Params")
Result = TypeVar("Result")
Filter = TypeVar("Filter", bound=BaseModel)


class ResultChecks(Protocol):
    """Checks of results beyond the types of the protocol, such as `app.OutputSchemas`."""

    def check(self, method: Method, params: object, answer: object) -> None:
        """Check the result of a request, or learn from it how to check later results; raise to refuse it."""


class RequestGuard(Protocol):
    """Guard of all requests of a client, such as `lock.Guard`."""

    async def request(self, client: Any, method: Method, params: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the answer that `send` gets, or a part of it; raise to refuse the request or its answer."""

    def check_server(self, revision: str, info: Any, instructions: str | None) -> None:
        """Compare an introduction of the server, which comes with each handshake and discovery; raise to refuse it."""


class Bridge(Protocol):
    """Conversion between a client and a server of another revision."""

    async def request(self, method: RequestMethod[Any, Any], params: object, options: Options, *, fresh: bool) -> Any:
        """Send a request of the client's revision and return its usual result."""

    def subscribed(self, wanted: Any) -> AbstractAsyncContextManager[Any]:
        """Subscribe to changes while the block lasts."""
        ...


class Client(Caller, Side):
    """Base of generated clients: call the server's methods, override `on_...` to handle the server's messages.

    Attributes:
        limits: Limits of the connection, for messages of the server; the first client given to `connect` decides.
        options: Options of requests; `with_options` changes them for a few calls.
        server_info: Introduction of the server, an `Implementation`.
        server_capabilities: Capabilities of the server, in wire form.
        instructions: Advice of the server to models.
        mirror: Copies parts of messages into HTTP headers; `None` if unused.
        cache: Cache of results; `None` for none.
        checks: Checks of results; `None` for none.
        guard: Guard of requests and their answers; `None` for none.
    """

    limits: Limits = Limits()
    options: Options = Options()
    server_info: Any = None
    server_capabilities: Mapping[str, Any] = {}
    instructions: str | None = None
    mirror: HeaderMirror | None = None
    link: Session
    negotiated: Negotiated | None

    cache: Cache | None = None
    checks: ResultChecks | None = None
    guard: RequestGuard | None = None
    _fresh = False
    _bridge: Bridge | None = None

    def __init__(self) -> None:
        """Create a client that is not connected yet."""

    @classmethod
    def connect(cls, target: Target, **options: Unpack[ConnectOptions]) -> AbstractAsyncContextManager[Self]:
        """Make a client that is connected for as long as the `async with` block lasts; see `connected`."""
        return cls().connected(target, **options)

    def connected(self, target: Target, **options: Unpack[ConnectOptions]) -> AbstractAsyncContextManager[Self]:
        """Connect this client to a server, until the `async with` block ends.

        A server of another revision is reached over a bridge; `wire_revision` is the revision that it speaks.

        Args:
            target: A URL, a command line, its words, an `Address` or an object that has one, or a transport.
            options: Options of `mcp_bindgen.runtime.connect`, such as `headers`, `auth`, `timeout` and `exactly`.

        Raises:
            UnsupportedRevision: No bridge leads to a revision of the server, or it does not speak `exactly` this one.
            ConnectionClosed: The server ended before the handshake was over, or the time limit was reached.
        """
        from .. import connect

        return connect(target, self, **options)

    @property
    def wire_revision(self) -> str:
        """Revision of the connection; differs from the client's if a bridge converts."""
        return self.link.connection.dispatcher.revision.name

    @property
    def invalid_items(self) -> tuple[InvalidItem, ...]:
        """Invalid parts of results that were left out; the rest of these results was kept."""
        return tuple(self.link.connection.invalid_items)

    @property
    def changes(self) -> int:
        """Number of changes that the server has announced on this connection, of its lists or of a resource."""
        return self.link.connection.changes

    def subscribed(self, wanted: Filter, *more: BaseModel) -> AbstractAsyncContextManager[Filter]:
        """Subscribe to changes while a block lasts; the `on_...` handlers get them (stateless revisions).

        When the stream is lost or ended by the server, the client forgets cached results and listens again.

        Args:
            wanted: A `SubscriptionFilter`, or the part of an extension of it.
            more: Parts of extensions, in their own types.

        Returns:
            A context manager that yields the filter of the server's acknowledgement, in the type of `wanted`.

        Raises:
            CapabilityMissing: The server does not declare a needed extension.
            ProtocolError: The server has no subscriptions.
            RequestTimeout: The server did not acknowledge the subscription in time.
        """
        _check_filter(self.link.negotiated, wanted, *more)
        if self._bridge is not None:
            return self._bridge.subscribed(wanted)
        return self._subscribed(wanted, more)

    @asynccontextmanager
    async def _subscribed(self, wanted: Filter, more: Sequence[BaseModel]) -> AsyncGenerator[Filter]:
        self.link.connection.dispatcher.revision.request(methods.LISTEN)  # stateful revisions have none
        wire = {name: value for one in (wanted, *more) for name, value in jsonrpc.plain(one).items()}
        listening = Listening()
        async with background_tasks() as tasks:
            tasks.start_soon(self._listen, listening, wire)
            with anyio.move_on_after(self.options.timeout):
                await listening.settled.wait()
            if listening.error is not None:
                raise listening.error
            if listening.agreed is None:
                raise errors.RequestTimeout(f"{methods.LISTEN} was not acknowledged in time")
            agreed = listening.agreed
            yield agreed if isinstance(agreed, type(wanted)) else type(wanted).model_validate(jsonrpc.plain(agreed))

    async def _listen(self, listening: Listening, wanted: dict[str, Any]) -> None:
        """Listen until the connection is closed or the server refuses for good; open another stream when one ends."""
        session, revision = self.link, self.link.connection.dispatcher.revision
        method = revision.request(methods.LISTEN)
        final = {errors.METHOD_NOT_FOUND, errors.INVALID_PARAMS, *revision.errors.values()}

        def opened(id_: int) -> None:
            listening.id = id_
            self._listening[id_] = listening

        while True:
            params = jsonrpc.typed_params(method, {"notifications": wanted, "_meta": dict(session.meta)})
            try:
                await session.request(method, params, Options(timeout=None), opened=opened)
                error: Exception = ConnectionClosed("the server ended the subscription")
            except (ConnectionClosed, ProtocolError, AuthorizationError) as reason:
                if isinstance(reason, AuthorizationError) and (listening.agreed is None or not reason.is_temporary):
                    raise
                error = reason
            finally:
                self._listening.pop(listening.id, None)
            if listening.agreed is None:
                listening.error = error
                listening.settled.set()
                return
            self.link.connection.changes += 1  # notifications of changes may be lost
            if self.cache is not None:
                self.cache.forget(self._scope, public=True)
            if session.closed.is_set():
                log.info("%s", error)
                return
            if isinstance(error, ProtocolError) and error.code in final:
                log.warning("the server tells of no changes any more: %s", error)
                return
            log.info("%s; listening again", error)
            await anyio.sleep(listening.pause())

    async def request(self, method: RequestMethod[Params, Any, Answer], params: Params) -> Answer:
        """Send any request of the method table, or one of your own, and return its result, of whatever type."""
        send: Send = self._send
        for step in reversed(self._STEPS):
            send = step(self, method, send)
        answer: Answer = await send(method, params)
        return answer

    def _send(self, method: RequestMethod[Any, Any], params: object) -> Awaitable[Any]:
        if self._bridge is not None:
            return self._bridge.request(method, params, self.options, fresh=self._fresh)
        return self.link.request(method, params, self.options)

    def _recovered(self, method: RequestMethod[Any, Any], send: Send) -> Send:
        """Send the request again after an error that can be mended."""
        if self._bridge is not None:  # its own client tries
            return send

        async def recovered(method: RequestMethod[Any, Any], params: object) -> Any:
            known = self.link.introductions
            try:
                return await send(method, params)
            except (errors.SessionLost, ProtocolError) as error:
                await self._recover(method, error, known)
                return await send(method, params)

        return recovered

    def _guarded(self, method: RequestMethod[Any, Any], send: Send) -> Send:
        """Let the guard see the request and its answer; the client behind a bridge has the same guard."""
        guard = self.guard
        if guard is None or self._bridge is not None:
            return send
        return lambda method, params: guard.request(self, method, params, partial(send, method, params))

    def _checked(self, method: RequestMethod[Any, Any], send: Send) -> Send:
        """Check that the server declares what the request needs, and that its result is one of the method."""

        async def checked(method: RequestMethod[Any, Any], params: object) -> Any:
            self.check(method, params)
            answer = await send(method, params)
            if self._bridge is None:
                self._note(method, params)
                if method.name == methods.DISCOVER and isinstance(answer, BaseModel):
                    _compare(self, optional(optional(answer, "meta"), "server_info"), optional(answer, "instructions"))
            if self.mirror is not None:
                answer = self.mirror.learn(method, answer, self.link.connection.record_invalid)
            answer = understood(method, answer)
            if self.checks is not None:
                self.checks.check(method, params, answer)
            return answer

        return checked

    def _extended(self, method: RequestMethod[Any, Any], send: Send) -> Send:
        """Accept the results by which declared extensions may answer."""
        if not self.extensions or method.extension is not None or self._bridge is not None:
            return send
        agreed = self.link.negotiated
        return lambda method, params: send(agreed.dispatcher.answerable(method, agreed.declared["server"]), params)

    def _cached(self, method: RequestMethod[Any, Any], send: Send) -> Send:
        """Return a result that is cached."""
        cache = self.cache
        if cache is None or self._bridge is not None or not method.is_cacheable:
            return send
        through = partial(cache.through, self._scope, fresh=self._fresh)
        return lambda method, params: through(method, params, partial(send, method, params))

    _STEPS = (_recovered, _guarded, _checked, _extended, _cached)
    """Work around each request, the outermost first; a step with nothing to do returns what follows it."""

    async def _recover(self, method: RequestMethod[Any, Any], error: Exception, known: int) -> None:
        """Do what a request needs to succeed after an error; raise the error if nothing helps.

        If the server has forgotten the session, introduce this client again, unless it was introduced since
        introduction `known`.
        """
        if isinstance(error, ProtocolError):
            source = self.mirror.source(method) if self.mirror is not None else None
            if source is None or error.code != self.dispatcher.revision.errors["HEADER_MISMATCH"]:
                raise error
            await self.relearn(self.dispatcher.revision.request(source))
            return
        async with self._introducing:
            if known == self.link.introductions:
                await _shake_hands(self, self.link)  # only revisions with a handshake have sessions
                self.link.introductions += 1
                self.link.connection.changes += 1  # it may be another server, or an updated one
                for lost, params in list(self.link.lasting.values()):
                    with suppress(ProtocolError):
                        await self.link.request(lost, params, self.options)

    def _note(self, method: RequestMethod[Any, Any], params: Any) -> None:
        """Note a request that the server has answered, if its effect ends with the session."""
        if method.name == methods.UNSUBSCRIBE:
            self.link.lasting.pop(params.uri, None)
        elif method.name in (methods.SUBSCRIBE, methods.SET_LEVEL):
            self.link.lasting[params.uri if method.name == methods.SUBSCRIBE else methods.SET_LEVEL] = method, params

    async def relearn(self, method: RequestMethod[Any, Any]) -> None:
        """Read all pages of a list again; its entries may ask for other headers now."""
        client = self.with_options(fresh=True)

        def page(cursor: str | None) -> Awaitable[Any]:
            more = {} if cursor is None else {"cursor": cursor}
            return client.request(method, jsonrpc.typed_params(method, {"_meta": client.link.meta, **more}))

        async for _ in client.pages(page):
            pass

    async def call(self, method: RequestMethod[Params, Result, Any], params: Params) -> Result:
        """Send a request and return its usual result; the handlers answer questions of the server meanwhile.

        If an extension answers with a result of its own, `settle` gets the usual result.

        Raises:
            ProtocolError: The server answered with an error.
            MethodNotFound: The client has no handler for a question.
            RequestTimeout: The time is up; the handlers' time counts for `Options.total_timeout`.
            UnexpectedAnswer: The result is one of the method's alternatives.
        """
        total = self.options.total_timeout
        deadline = math.inf if total is None else anyio.current_time() + total
        answer = await self.request(method, params)
        if type(answer) is not method.result and isinstance(answer, (ExtensionResult, *method.alternatives)):
            with anyio.CancelScope(deadline=deadline) as scope:
                if isinstance(answer, method.alternatives):
                    answer = await self.settle_questions(method, params, answer)
                if isinstance(answer, ExtensionResult):
                    answer = await self.settle(method, params, answer)
            if scope.cancelled_caught:
                raise errors.RequestTimeout(f"{method.name} was not answered in time")
        if isinstance(answer, method.alternatives):
            raise errors.UnexpectedAnswer(method.name, answer)
        result: Any = answer
        return cast(Result, result)

    async def settle_questions(self, method: RequestMethod[Any, Any], params: Any, first: Any) -> Any:
        """Answer the server's questions with the handlers until the server returns a result.

        Raises:
            MethodNotFound: The client has no handler for a question.
            UnexpectedAnswer: The server does not stop asking.
        """
        return await settle_rounds(method, params, first, self.answer_all, partial(self.request, method))

    async def answer_all(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the typed answers of the handlers to questions, by key; raise `MethodNotFound`."""
        found: dict[str, Any] = {}
        for key, question in questions.items():
            answer = await self.answer(question.method, question.params)
            asked = self.dispatcher.revision.request(question.method)
            found[key] = answer if isinstance(answer, Model) else jsonrpc.typed_result(asked, answer)
        return found

    async def settle(
        self, method: RequestMethod[Params, Result, Any], params: Params, answer: ExtensionResult
    ) -> Result:
        """Return the usual result of a request, given the result of an extension.

        A client of an extension overrides this if the extension has a way to the usual result, and calls
        `super().settle` for results of other extensions.

        Raises:
            UnexpectedAnswer: No extension has a way to it.
        """
        raise errors.UnexpectedAnswer(method.name, answer)

    async def answer(self, method: str, params: object) -> Any:
        """Return the client's answer to a question embedded in a result; raise `MethodNotFound`."""
        dispatcher = self.link.connection.dispatcher
        route = dispatcher.embedded.get(method)
        if route is None:
            raise MethodNotFound(method)
        return await self.handler(dispatcher, route)(RequestScope.of(self.link), params)

    def with_options(
        self,
        *,
        timeout: float | EllipsisType | None = ...,
        total_timeout: float | EllipsisType | None = ...,
        on_progress: Progress | None = None,
        fresh: bool = False,
    ) -> Self:
        """Return this client with other options: `await client.with_options(timeout=5).call_tool("x")`.

        Options that are not given stay as they are.

        Args:
            timeout: Seconds to wait for an answer or for progress; `None` for no limit.
            total_timeout: Seconds to wait in all; `None` for no limit.
            on_progress: Called with the params of each progress notification.
            fresh: Ask the server, whatever is cached.
        """
        view = copy.copy(self)
        view._fresh = fresh or self._fresh
        view.options = Options(
            self.options.timeout if timeout is ... else timeout,
            self.options.total_timeout if total_timeout is ... else total_timeout,
            on_progress or self.options.on_progress,
        )
        return view

    def attach(self, session: Session, scope: CacheScope) -> None:
        """Connect this client to a session; `scope` selects the results of a cache that it may see."""
        self.link, self.negotiated = session, session.negotiated
        self.mirror = None
        self._bridge = None
        self._scope = scope
        self._introducing = anyio.Lock()
        self._listening: dict[int, Listening] = {}

    def attach_bridged(self, bridge: Bridge) -> None:
        """Connect this client to a bridge."""
        link = cast(Session, bridge)  # it has the attributes of its session
        self.attach(link, CacheScope(None, link))
        self._bridge = bridge

    def handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler of a route; raises `MethodNotFound` if there is none."""
        work = dispatcher.bound(route, self) if dispatcher.is_handled(route, self) else None
        if work is None and route.method.kind == "request" and route.method.name != methods.PING:
            raise MethodNotFound(route.method.name)
        is_news = route.method.kind == "notification"
        has_roots = isinstance(route.method, RequestMethod) and "roots" in fields_of(route.method.result)
        needs, extension = route.method.needs, route.method.extension

        def handle(scope: RequestScope, params: object) -> Any:
            declared = self.link.negotiated.declared
            if is_news and extension is not None and not is_offered(route.method, declared["server"]):
                log.debug("%s is ignored: the server does not declare its extension", route.method.name)
                return {}
            if (is_news and not self._concerns_handlers(route, params)) or work is None:
                return {}
            if needs and (missing := unmet(route.method, declared, params, received=True)) is not None:
                raise ProtocolError(errors.INVALID_PARAMS, str(errors.CapabilityMissing(route.method.name, missing)))
            in_handler.set(scope.request_id is not None)
            answer = work(params, Context(scope, params))
            return _checked_roots(answer) if has_roots else answer

        return handle

    def _concerns_handlers(self, route: Route, params: Any) -> bool:
        """React to a notification; return whether it concerns the handlers."""
        if route.method.capabilities.get("server") in self.dispatcher.revision.flags:
            self.link.connection.changes += 1
        if self.cache is not None and self._bridge is None:
            self.cache.invalidate(self._scope.server, self.dispatcher.revision, route.method.name, params)
        id_ = own_id(optional(optional(params, "meta"), "subscription_id"))
        if not id_:
            return True
        if route.method.name == methods.ACKNOWLEDGED and id_ in self.link.connection.pending and id_ in self._listening:
            return self._listening[id_].acknowledge(params.notifications)
        return id_ in self.link.connection.pending  # else the subscription is over


Send: TypeAlias = Callable[[RequestMethod[Any, Any], Any], Awaitable[Any]]
"""Sends a request with its params, and returns its result."""


async def _checked_roots(answer: Awaitable[Any]) -> Any:
    """Return the roots of a client (MCP, "Roots").

    Raises:
        ValueError: The URI of a root does not begin with `file://`.
    """
    result = await answer
    for root in jsonrpc.plain(result).get("roots") or ():
        if not root["uri"].startswith("file://"):
            raise ValueError(f"the URI of a root must begin with file://: {root['uri']!r}")
    return result


# --- subscriptions --------------------------------------------------------------------------------------------

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.25, 30.0  # seconds before listening again
_STABLE_SECONDS = 1.0  # after which the pauses begin with the shortest again


class Listening:
    """A subscription of ours, which outlives its stream, however that ends.

    Attributes:
        id: Id of the request that listens.
        agreed: Filter of the acknowledgement; `None` before it.
        error: Why the server did not agree.
        settled: Set when either is known.
    """

    id: int = 0
    agreed: Any = None
    error: Exception | None = None
    _losses = 0
    _since = math.inf

    def __init__(self) -> None:
        self.settled: anyio.Event = anyio.Event()

    def acknowledge(self, agreed: Any) -> bool:
        """Take the acknowledgement of the server; return whether it is the first."""
        self._since = anyio.current_time()
        first = self.agreed is None
        if first:
            self.agreed = agreed
            self.settled.set()
        elif agreed != self.agreed:
            log.warning("the server agrees to another subscription than before: %r", agreed)
        return first

    def pause(self) -> float:
        """Return the seconds to wait before listening again: exponential backoff with jitter."""
        if anyio.current_time() - self._since > _STABLE_SECONDS:
            self._losses = 0
        self._since = math.inf
        pause = min(_LONGEST_PAUSE, _SHORTEST_PAUSE * 2.0 ** min(self._losses, 16))
        self._losses += 1
        return pause * random.uniform(0.5, 1)  # noqa: S311


def _check_filter(agreed: Negotiated, *wanted: BaseModel) -> None:
    """Raise `CapabilityMissing` when parts of a filter are of an extension that the server does not declare."""
    kind = agreed.dispatcher.revision.subscription_filter
    if kind is None or not agreed.dispatcher.extensions:
        return
    members = {name for one in wanted for name in jsonrpc.plain(one)}
    for extension in agreed.dispatcher.extensions:
        if not extension.is_in(agreed.declared["server"]) and members & {*extension.members(kind.__name__).values()}:
            raise errors.CapabilityMissing(methods.LISTEN, ("server", "extensions", extension.id))


# --- the handshake --------------------------------------------------------------------------------------------


async def _shake_hands(client: Client, session: Session) -> None:
    answer = await offer_handshake(client, session)
    if answer["protocolVersion"] != client.revision:
        raise errors.UnsupportedRevision(client.revision, answer["protocolVersion"])
    await accept_handshake(client, session, answer)


async def offer_handshake(client: Client, session: Session) -> dict[str, Any]:
    """Send `initialize` and return the result in wire form; it may be in another revision.

    Raises:
        ProtocolError: The server refuses, or names no revision.
    """
    dispatcher, revision = session.connection.dispatcher, session.connection.dispatcher.revision
    offers = session.negotiated.declared["client"] = declared(client, dispatcher, session.transport.extensions)
    info, method = introduction(client, revision).model_dump(), revision.request(methods.INITIALIZE)
    wire = {"protocolVersion": revision.name, "capabilities": offers, "clientInfo": info}
    params = jsonrpc.typed_params(method, wire)
    answer = await session.request(untyped(method), params, client.options)
    if not isinstance(answer.get("protocolVersion"), str):
        raise invalid_answer("the result of initialize names no protocolVersion")
    return answer


async def accept_handshake(client: Client, session: Session, wire: dict[str, Any]) -> None:
    """Take the result of `initialize`, in the client's revision, and end the handshake.

    Raises:
        ProtocolError: The result is invalid.
    """
    revision = session.connection.dispatcher.revision
    answer = jsonrpc.typed_result(revision.request(methods.INITIALIZE), wire)
    _accept(client, session, answer, answer.server_info)
    session.headers = lambda method, params: {VERSION_HEADER: revision.name}
    initialized = revision.methods[methods.INITIALIZED]
    assert isinstance(initialized, Notification)
    await session.notify(initialized, None)


def _accept(client: Client, session: Session, answer: Any, server_info: Any) -> None:
    """Take over the server's description of itself; from now on both sides know the revision."""
    session.negotiated.declared["server"] = client.server_capabilities = answer.capabilities.model_dump()
    session.negotiated.peer_info = client.server_info = server_info
    client.instructions = answer.instructions
    _compare(client, server_info, answer.instructions)
    session.connection.negotiated()


def _compare(client: Client, server_info: Any, instructions: str | None) -> None:
    """Let the guard of a client compare an introduction of the server."""
    if client.guard is not None:
        client.guard.check_server(client.wire_revision, server_info, instructions)


# --- discovery ------------------------------------------------------------------------------------------------


async def discover(client: Client, session: Session, options: Options | None = None) -> Any:
    """Return the server's revisions and capabilities.

    Raises:
        ProtocolError: The server refuses, or its result is invalid.
    """
    _prepare(client, session)
    method = session.connection.dispatcher.revision.request(methods.DISCOVER)
    params = jsonrpc.typed_params(method, {"_meta": session.meta})
    wire = await session.request(untyped(method), params, options or client.options)
    return jsonrpc.typed_result(method, wire)


def accept_discovery(client: Client, session: Session, answer: Any) -> None:
    """Take the result of `discover`; from now on the client's revision is spoken."""
    _prepare(client, session)
    _accept(client, session, answer, answer.meta.server_info if answer.meta is not None else None)


def _prepare(client: Client, session: Session) -> None:
    """Set the metadata and headers of the session's requests."""
    revision = session.connection.dispatcher.revision
    session.negotiated.declared["client"] = declared(
        client, session.connection.dispatcher, session.transport.extensions
    )
    filled_in = jsonrpc.filled_in(revision.request(methods.DISCOVER).params.model_fields["meta"].annotation)
    session.meta = {**client_meta(client, revision, session.negotiated.declared["client"]), **filled_in}
    if session.transport.mirror is not None:
        mirror: HeaderMirror = session.transport.mirror(revision)
        client.mirror, session.headers = mirror, mirror.headers


def client_meta(client: Side, revision: Revision, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's part of the `_meta` of every request."""
    info = introduction(client, revision).model_dump()
    values = {"protocol_version": revision.name, "client_info": info, "client_capabilities": capabilities}
    return {revision.meta_keys[name]: value for name, value in values.items() if name in revision.meta_keys}


def supported_in(error: Exception) -> list[str]:
    """Return the revisions that a server names in an error because it does not speak ours; else nothing."""
    data = error.data if isinstance(error, ProtocolError) else None
    supported = data.get("supported") if is_object(data) else None
    return [version for version in supported if isinstance(version, str)] if is_array(supported) else []
