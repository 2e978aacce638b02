"""The base of generated clients."""

from __future__ import annotations

import copy
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, Unpack, cast

import anyio
from pydantic import BaseModel

from ..era.sides import bound, checked_roots, extensions_of
from ..era.stateless import client as rounds
from ..era.stateless.subscription_client import Listening, check_filter, reaches, subscribed
from ..logs import log
from ..protocol import jsonrpc
from ..protocol.capabilities import is_offered, unmet
from ..protocol.errors import (
    INVALID_PARAMS,
    CapabilityMissing,
    MethodNotFound,
    ProtocolError,
    RequestTimeout,
    SessionLost,
    UnexpectedAnswer,
)
from ..protocol.extension import Extension, ExtensionResult
from ..protocol.invalid_items import InvalidItem
from ..protocol.methods import Method, Request
from ..protocol.options import Limits, Options, Progress
from ..protocol.revision import Dispatcher, Handler
from ..protocol.routing import Route
from ..protocol.transitions import Role
from .caller import Caller
from .context import Context
from .request_scope import RequestScope
from .result_cache import CacheScope, ResultCache
from .session import Session
from .timeouts import in_handler

if TYPE_CHECKING:
    from .targets import ConnectOptions, Target

Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer")
Filter = TypeVar("Filter", bound=BaseModel)


class HeaderMirror(Protocol):
    """A mirror that repeats parts of messages in headers, and learns from results what is wanted there."""

    def headers(self, method: Method, params: Any) -> Mapping[str, str]:
        """Return the headers of a message."""
        ...

    def learn(self, method: Method, answer: Any, report: Callable[[InvalidItem], object]) -> Any:
        """Learn from a result which headers are wanted; leave out, and report, entries whose headers are invalid."""
        ...

    def source(self, method: Method) -> str | None:
        """Return the method whose results say which headers messages of `method` need, if there is one."""
        ...


class ResultChecks(Protocol):
    """What checks results beyond the types of the protocol, such as `contract.OutputSchemas`."""

    def check(self, method: Method, params: Any, answer: Any) -> None:
        """Check what answers a request, or learn from it how to check others; raise an exception to refuse it."""
        ...


class Bridge(Protocol):
    """Make a client speak another revision than its own."""

    async def request(self, method: Request[Any, Any, Any], params: Any, options: Options, *, fresh: bool) -> Any:
        """Send a request of the client's revision and return its usual result."""
        ...

    def subscribed(self, wanted: Any) -> AbstractAsyncContextManager[Any]:
        """Subscribe to changes while the block lasts."""
        ...


class Client(Caller):
    """The base of generated clients: call what the server offers, override `on_...` for what it may ask.

    Attributes:
        dispatcher: The generated routes to its handlers.
        revision: The revision it speaks.
        options: How requests are sent; `with_options` changes it for a few calls.
        limits: How much of the server's is taken at once; those of the first client given to `connect` count.
        server_info: How the server introduced itself.
        server_capabilities: What it declared, in wire form.
        instructions: How it wants to be used, if it says so.
        mirror: What is repeated in HTTP headers, where that is done.
        cache: Keeps results for as long as the server says that they are fresh, if there is one.
        checks: Checks results beyond the types of the protocol, if anything does.
        changes: How often the server has told of changes: of its lists, or of a resource.
        extensions: The extensions among its bases; it declares them to every server.
        extension_settings: Id of an extension -> the settings that stand beside it, typed or in wire form.
    """

    dispatcher: ClassVar[Dispatcher]
    revision: ClassVar[str]
    extensions: ClassVar[tuple[Extension, ...]] = ()
    extension_settings: Mapping[str, Any] = {}
    info: Any
    options: Options = Options()
    limits: Limits = Limits()
    server_info: Any = None
    server_capabilities: Mapping[str, Any] = {}
    instructions: str | None = None
    link: Session

    mirror: HeaderMirror | None = None
    cache: ResultCache | None = None
    checks: ResultChecks | None = None
    changes: int = 0
    _fresh = False
    _bridge: Bridge | None = None

    def __init__(self) -> None:
        """Create a client that is not connected yet."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "dispatcher" in vars(cls):
            cls.revision = cls.dispatcher.revision.name
        elif hasattr(cls, "dispatcher"):
            cls.extensions = extensions_of(cls, cls.dispatcher)

    @classmethod
    def connect(cls, target: Target, **options: Unpack[ConnectOptions]) -> AbstractAsyncContextManager[Self]:
        """Make a client that is connected for as long as the `async with` block lasts; see `connected`."""
        return cls().connected(target, **options)

    def connected(self, target: Target, **options: Unpack[ConnectOptions]) -> AbstractAsyncContextManager[Self]:
        """Connect this client to a server, until the `async with` block ends.

        A server of another revision is reached over a bridge; `wire_revision` is the revision that it speaks.

        Args:
            target: A URL, a command line, its words, an entry of an `mcpServers` file, or a transport.
            options: Options of `mcp_bindgen.runtime.connect`, such as `headers`, `auth`, `timeout` and `exactly`.

        Raises:
            UnsupportedRevision: No bridge leads to a revision of the server, or it does not speak `exactly` this one.
            ConnectionClosed: The server ended before the handshake was over, or the time limit was reached.
        """
        from .. import connect

        return connect(target, self, **options)

    @property
    def wire_revision(self) -> str:
        """The revision of the connection: another one than this client's where the server does not speak that."""
        return self.link.peer.dispatcher.revision.name

    @property
    def invalid_items(self) -> tuple[InvalidItem, ...]:
        """What of results was left out because it is not valid; the rest of those results was kept."""
        return tuple(self.link.peer.invalid_items)

    def subscribed(self, wanted: Filter, *more: BaseModel) -> AbstractAsyncContextManager[Filter]:
        """Subscribe to changes while the block lasts; they reach the `on_...` handlers (stateless revisions).

        When the stream ends, be it lost or ended by the server, the client forgets cached results and listens again.

        Args:
            wanted: A `SubscriptionFilter`, or what an extension adds to one: what to hear of.
            more: What extensions add to it, in their own types.

        Returns:
            A context manager that gives what the server agreed to, in the type of `wanted`.

        Raises:
            CapabilityMissing: The server does not declare an extension that is needed.
            ProtocolError: The server has no subscriptions.
            RequestTimeout: It did not acknowledge this one in time.
        """
        check_filter(self.link.negotiated, wanted, *more)
        if self._bridge is not None:
            return self._bridge.subscribed(wanted)
        return subscribed(self, self._listening, wanted, more, self._forget)

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Send any request of the method table, or one of your own, and return whatever answers it."""
        self.check(method, params)
        if self.extensions and self._bridge is None:
            negotiated = self.link.negotiated
            method = negotiated.dispatcher.answerable(method, negotiated.declared["server"])
        if self._bridge is not None:
            answer = await self._bridge.request(method, params, self.options, fresh=self._fresh)
        elif self.cache is None or not method.is_cacheable:
            answer = await self._request(method, params)
        else:
            ask = partial(self._request, method, params)
            answer = await self.cache.through(self._scope, method, params, ask, fresh=self._fresh)
        if self.mirror is not None:
            answer = self.mirror.learn(method, answer, self.link.peer.quarantine)
        understood: Answer = rounds.understood(method, answer)
        if self.checks is not None:
            self.checks.check(method, params, understood)
        return understood

    async def _request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        known = self.link.introductions
        try:
            return await self.link.request(method, params, self.options)
        except SessionLost:
            await self._introduce(known)
        except ProtocolError as error:
            source = self.mirror.source(method) if self.mirror is not None else None
            if source is None or error.code != self.dispatcher.revision.errors["HEADER_MISMATCH"]:
                raise
            await self._relearn(self.dispatcher.revision.request(source))
        return await self.link.request(method, params, self.options)

    async def _introduce(self, known: int) -> None:
        """Introduce this client to the server, unless that was done again after the `known` time."""
        async with self._introducing:
            if known == self.link.introductions:
                await self.link.peer.dispatcher.revision.era.introduce(self, self.link)
                self.link.introductions += 1
                await self._resume()

    async def _resume(self) -> None:
        """Say again what the server has forgotten, now that this client was introduced to it anew."""

    async def _relearn(self, method: Request[Any, Any, Any]) -> None:
        """Read a list again, because what one of its entries wants to see in headers has changed."""
        client = self.with_options(fresh=True)

        def page(cursor: str | None) -> Awaitable[Any]:
            more = {} if cursor is None else {"cursor": cursor}
            return client.request(method, jsonrpc.typed_params(method, {"_meta": client.link.meta, **more}))

        async for _ in client.pages(page):
            pass

    async def call(self, method: Request[Params, Result, Any], params: Params) -> Result:
        """Send a request and return its usual result; what the server asks meanwhile, the handlers answer.

        Where an extension answers otherwise, `settle` gets the usual result.

        Raises:
            ProtocolError: The server answered with an error.
            MethodNotFound: It asked something that this client has no handler for.
            RequestTimeout: It was not done in time; the handlers' time counts for `Options.total_timeout`.
            UnexpectedAnswer: It answered with one of the method's alternatives.
        """
        total = self.options.total_timeout
        deadline = math.inf if total is None else anyio.current_time() + total
        answer = await self.request(method, params)
        if type(answer) is not method.result and isinstance(answer, (ExtensionResult, *method.alternatives)):
            with anyio.CancelScope(deadline=deadline) as scope:
                answer = await rounds.settle(self, method, params, answer)
                if isinstance(answer, ExtensionResult):
                    answer = await self.settle(method, params, answer)
            if scope.cancelled_caught:
                raise RequestTimeout(f"{method.name} was not answered in time")
        if isinstance(answer, method.alternatives):
            raise UnexpectedAnswer(method.name, answer)
        result: Any = answer
        return cast(Result, result)

    async def settle(self, method: Request[Params, Result, Any], params: Params, answer: ExtensionResult) -> Result:
        """Return the usual result of a request that an extension has answered otherwise.

        A client of an extension overrides this where there is a way from the one to the other, and calls
        `super().settle` for what is not its own.

        Raises:
            UnexpectedAnswer: There is none.
        """
        raise UnexpectedAnswer(method.name, answer)

    def server_extension(self, extension: Extension) -> Any:
        """Return the settings with which the server declares an extension, typed where their type is stated.

        Returns:
            The settings, empty where it states none; `None` where it does not declare the extension, or this client
            does not.

        Raises:
            ProtocolError: They are not valid.
        """
        return self.peer_settings(extension)

    async def answer(self, method: str, params: Any) -> Any:
        """Return the client's answer to a question embedded in a result; raise `MethodNotFound`."""
        dispatcher = self.link.peer.dispatcher
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

        What is not given stays as it is.

        Args:
            timeout: Seconds to wait for an answer or for progress; `None` for no limit.
            total_timeout: Seconds to wait in all; `None` for no limit.
            on_progress: Called with the params of each progress notification.
            fresh: Ask the server, whatever the cache knows.
        """
        view = copy.copy(self)
        view._fresh = fresh or self._fresh
        view.options = Options(
            self.options.timeout if timeout is ... else timeout,
            self.options.total_timeout if total_timeout is ... else total_timeout,
            on_progress or self.options.on_progress,
        )
        return view

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Return capabilities to declare beside those that follow from the handlers, in wire form."""
        return {}

    def attach(self, session: Session, scope: CacheScope) -> None:
        """Make this client speak over a session; `scope` says what of a cache it may see."""
        self.link = session
        self.mirror = None
        self._bridge = None
        self._scope = scope
        self._introducing = anyio.Lock()
        self._listening: dict[int, Listening] = {}

    def attach_bridged(self, link: Any, bridge: Bridge) -> None:
        """Make this client speak over a bridge to a server of another revision; `link` is the connection behind it."""
        self.attach(link, CacheScope(None, link))
        self._bridge = bridge

    def handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler for the messages of a route; raises `MethodNotFound` where there is none."""
        work = bound(dispatcher, route, self) if dispatcher.is_handled(route, self) else None
        if work is None and not dispatcher.revision.era.answers_by_default(route.method):
            raise MethodNotFound(route.method.name)
        is_news = route.method.kind == "notification"
        has_roots = "roots" in getattr(getattr(route.method, "result", None), "model_fields", {})
        has_needs = bool(route.method.needs)
        extension = route.method.extension

        def handle(scope: RequestScope, params: Any) -> Any:
            if is_news and extension is not None and not is_offered(route.method, _declared(scope)["server"]):
                log.debug("%s is ignored: the server does not declare its extension", route.method.name)
                return {}
            if (is_news and not self._concerns_handlers(route, params)) or work is None:
                return {}
            if has_needs:
                _check_received(_declared(scope), route.method, params)
            in_handler.set(scope.request_id is not None)
            answer = work(params, Context(scope, params))
            return checked_roots(answer) if has_roots else answer

        return handle

    def _concerns_handlers(self, route: Route, params: Any) -> bool:
        """Take note of a notification; return whether it concerns the handlers."""
        if route.method.capabilities.get("server") in self.dispatcher.revision.flags:
            self.changes += 1
        if self.cache is not None and self._bridge is None:
            self.cache.invalidate(self._scope.server, self.dispatcher.revision, route.method.name, params)
        return reaches(self._listening, self.link, route, params)

    def _forget(self) -> None:
        """Forget all results, because news of a change may have been missed."""
        self.changes += 1
        if self.cache is not None:
            self.cache.forget(self._scope, public=True)


def _declared(scope: RequestScope) -> Mapping[Role, Mapping[str, Any]]:
    return {"client": {}, "server": {}} if scope.negotiated is None else scope.negotiated.declared


def _check_received(declared: Mapping[Role, Mapping[str, Any]], method: Method, params: Any) -> None:
    """Raise `ProtocolError` (-32602) when a request needs what this client has not declared."""
    lacking = unmet(method, declared, params, received=True)
    if lacking is not None:
        raise ProtocolError(INVALID_PARAMS, str(CapabilityMissing(method.name, lacking)))
