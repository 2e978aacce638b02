"""The base of generated clients."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import anyio

from ..core.errors import HEADER_MISMATCH, MethodNotFound, ProtocolError, SessionLost, UnexpectedAnswer
from ..core.jsonrpc import RequestId
from ..core.methods import Request
from ..core.revision import CALL_TOOL, Vocabulary
from ..core.routing import Route
from ..eras import handshake as stateful
from ..eras.stateless import requests as stateless
from .caller import Caller
from .context import Context
from .handlers import Handler, bound, is_handled
from .result_cache import Reader, ResultCache
from .session import Options, Progress, Session
from .subscription_client import Listening, reaches, subscribed

if TYPE_CHECKING:
    from ..entrypoints.target import Target
    from ..http.client.header_mirror import Mirror

Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer")
Filter = TypeVar("Filter")


class Client(Caller):
    """The base of generated clients: call what the server offers, override `on_...` for what it may ask.

    Attributes:
        bindings: The package of the generated base class.
        revision: The revision it speaks.
        options: How requests are sent; `with_options` changes it for a few calls.
        server_info: How the server introduced itself.
        server_capabilities: What it declared, in wire form.
        instructions: How it wants to be used, if it says so.
        mirror: What is repeated in HTTP headers, where that is done.
        cache: Keeps results for as long as the server says that they are fresh, if there is one.
    """

    bindings: ClassVar[str]
    revision: ClassVar[str]
    info: Any
    options: Options = Options()
    server_info: Any = None
    server_capabilities: Mapping[str, Any] = {}
    instructions: str | None = None
    link: Session

    mirror: Mirror | None = None
    cache: ResultCache | None = None
    _fresh = False

    def __init__(self) -> None:
        """A client that is not connected yet."""

    @classmethod
    def connect(cls, target: Target, *, headers: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Self]:
        """A new client, connected for as long as the `async with` block lasts; see `connected`."""
        return cls().connected(target, headers=headers)

    def connected(
        self, target: Target, *, headers: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Self]:
        """This client, connected: the two sides know each other when the block begins, all is closed when it ends.

        Args:
            target: A URL, a command line, its words, an entry of an `mcpServers` file, or a transport.
            headers: HTTP headers to send with each request.

        Raises:
            UnsupportedRevision: The server does not speak the revision of this client; see `connect` in
                `mcp_bindgen.runtime` for clients of several.
            ConnectionClosed: The server is gone before the handshake is over.
        """
        from ..entrypoints.connect import connect

        return connect(target, self, headers=headers)

    def subscribed(self, wanted: Filter) -> AbstractAsyncContextManager[Filter]:
        """Hears of changes while the block lasts; they reach the `on_...` handlers (stateless revisions).

        When the connection is lost, the client listens again as soon as it can.

        Args:
            wanted: A `SubscriptionFilter`: what to hear of.

        Returns:
            A context manager that gives what the server agreed to.

        Raises:
            ProtocolError: The server has no subscriptions.
            RequestTimeout: It did not acknowledge this one in time.
        """
        return subscribed(self, self._listening, wanted, self._forget)

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Sends any request of the method table, or one of your own, and returns whatever answers it."""
        self.check(method)
        if self.cache is None:
            answer = await self._request(method, params)
        else:
            ask = partial(self._request, method, params)
            answer = await self.cache.through(self._reader, method, params, ask, fresh=self._fresh)
        if self.mirror is not None:
            answer = self.mirror.learn(method, answer)
        understood: Answer = stateless.understood(method, answer)
        return understood

    async def _request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        known = self.link.introductions
        try:
            return await self.link.request(method, params, self.options)
        except SessionLost:
            await self._introduce(known)
        except ProtocolError as error:
            if error.code != HEADER_MISMATCH or self.mirror is None or method.name != CALL_TOOL:
                raise
            await stateless.relearn(self)
        return await self.link.request(method, params, self.options)

    async def _introduce(self, known: int) -> None:
        """Introduces this client to the server, unless that was done again after the `known` time."""
        async with self._introducing:
            if known == self.link.introductions:
                words = self.link.peer.vocabulary
                await (stateless if words.stateless else stateful).introduce(self, self.link)
                self.link.introductions += 1

    async def call(self, method: Request[Params, Result, Any], params: Params) -> Result:
        """Sends a request and returns its usual result; what the server asks meanwhile, the handlers answer.

        Raises:
            ProtocolError: The server answered with an error.
            MethodNotFound: It asked something that this client has no handler for.
            UnexpectedAnswer: It answered with one of the method's alternatives.
        """
        answer = await self.request(method, params)
        if isinstance(answer, method.alternatives):
            answer = await stateless.settle(self, method, params, answer)
        if isinstance(answer, method.alternatives):
            raise UnexpectedAnswer(method.name, answer)
        result: Result = answer
        return result

    async def answer(self, method: str, params: Any) -> Any:
        """What this client answers to a question that came inside of a result; raises `MethodNotFound`."""
        words = self.link.peer.vocabulary
        route = words.questions.get(method)
        if route is None:
            raise MethodNotFound(method)
        return await self.handler(words, route)(self.link, None, params)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: Progress | None = None,
        fresh: bool = False,
    ) -> Self:
        """The same client and connection with other options: `await client.with_options(timeout=5).call_tool("x")`.

        Args:
            timeout: Seconds to wait for an answer or for progress.
            total_timeout: Seconds to wait in all.
            on_progress: Called with the params of each progress notification.
            fresh: Ask the server, whatever the cache knows.
        """
        view = copy.copy(self)
        view._fresh = fresh or self._fresh
        view.options = Options(
            timeout if timeout is not None else self.options.timeout,
            total_timeout if total_timeout is not None else self.options.total_timeout,
            on_progress or self.options.on_progress,
        )
        return view

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Capabilities to declare beside those that follow from the handlers, in wire form."""
        return {}

    def attach(self, session: Session, reader: Reader) -> None:
        """Makes this client speak over a session; `reader` says what of a cache it may see."""
        self.link = session
        self.mirror = None
        self._reader = reader
        self._introducing = anyio.Lock()
        self._listening: dict[int, Listening] = {}

    def handler(self, words: Vocabulary, route: Route[Any]) -> Handler:
        """What this client has to say to the messages of `route`; raises `MethodNotFound` where that is nothing."""
        work = bound(route, self) if is_handled(route, self) else None
        if work is None and not stateful.answers_by_default(route.method):
            raise MethodNotFound(route.method.name)
        heard = route.method.kind == "notification" and (words.stateless or self.cache is not None)

        def handle(link: Any, id_: RequestId | None, params: Any) -> Any:
            if (heard and not self._hear(route, params)) or work is None:
                return {}
            return work(params, Context(link, id_, params))

        return handle

    def _hear(self, route: Route[Any], params: Any) -> bool:
        """Takes note of a notification; says whether it concerns the handlers."""
        if self.cache is not None:
            self.cache.invalidate(self._reader.server, route.method.name, params)
        return reaches(self._listening, self.link, route, params)

    def _forget(self) -> None:
        """Forgets all results, because news of a change may have been missed."""
        if self.cache is not None:
            self.cache.forget(self._reader, public=True)
