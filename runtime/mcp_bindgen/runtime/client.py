"""The base of generated clients, and connecting them to a server."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import anyio

from . import stateful, stateless
from .calls import Caller
from .context import Context
from .dispatcher import Route
from .errors import HEADER_MISMATCH, MethodNotFound, ProtocolError, SessionLost, UnexpectedAnswer
from .handlers import Handler, bound, is_handled
from .methods import Request
from .peer import Peer
from .session import Options, Progress, Session
from .transport import Transport
from .vocabulary import CALL_TOOL, LIST_TOOLS, Vocabulary, vocabulary

if TYPE_CHECKING:
    from .http.mirror import Mirror

Params = TypeVar("Params")
Result = TypeVar("Result")
Answer = TypeVar("Answer")


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
    _introductions = 0

    def __init__(self) -> None:
        """A client that is not connected yet."""

    @classmethod
    @asynccontextmanager
    async def connect(cls, transport: Transport | AbstractAsyncContextManager[Transport]) -> AsyncGenerator[Self]:
        """A new client, connected for as long as the `async with` block lasts; see `connected`."""
        async with cls().connected(transport) as client:
            yield client

    @asynccontextmanager
    async def connected(self, transport: Transport | AbstractAsyncContextManager[Transport]) -> AsyncGenerator[Self]:
        """This client, connected: the two sides know each other when the block begins, all is closed when it ends.

        Raises:
            UnsupportedRevision: The server does not speak the revision of this client.
            ConnectionClosed: The server is gone before the handshake is over.
        """
        async with AsyncExitStack() as stack:
            if isinstance(transport, AbstractAsyncContextManager):
                transport = await stack.enter_async_context(transport)
            words = vocabulary(self, self.bindings, "client")
            session = Session(Peer("client", {self.revision: words}), transport, self._bind, self.options)
            self.link = session
            self._introducing = anyio.Lock()
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(session.run)
                    try:
                        await self._introduce(self._introductions)
                        yield self
                    finally:
                        await session.close()
                        tasks.cancel_scope.cancel()
            except BaseExceptionGroup as group:
                raise _single(group) from None

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Sends any request of the method table, or one of your own, and returns whatever answers it."""
        self.check(method)
        known = self._introductions
        try:
            answer = await self.link.request(method, params, self.options)
        except SessionLost:
            await self._introduce(known)
            answer = await self.link.request(method, params, self.options)
        except ProtocolError as error:
            if error.code != HEADER_MISMATCH or self.mirror is None or method.name != CALL_TOOL:
                raise
            await stateless.relearn(self)
            answer = await self.link.request(method, params, self.options)
        if self.mirror is not None and method.name == LIST_TOOLS:
            answer = self.mirror.learn(answer)
        return answer

    async def _introduce(self, known: int) -> None:
        """Introduces this client to the server, unless that was done again after the `known` time."""
        async with self._introducing:
            if known == self._introductions:
                words = self.link.peer.vocabulary
                await (stateless if words.stateless else stateful).introduce(self, self.link)
                self._introductions += 1

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
        return await self._bind(words, route)(self.link, None, params)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: Progress | None = None,
    ) -> Self:
        """The same client and connection with other options: `await client.with_options(timeout=5).call_tool("x")`.

        Args:
            timeout: Seconds to wait for an answer or for progress.
            total_timeout: Seconds to wait in all.
            on_progress: Called with the params of each progress notification.
        """
        view = copy.copy(self)
        view.options = Options(
            timeout if timeout is not None else self.options.timeout,
            total_timeout if total_timeout is not None else self.options.total_timeout,
            on_progress or self.options.on_progress,
        )
        return view

    def extra_capabilities(self) -> Mapping[str, Any]:
        """Capabilities to declare beside those that follow from the handlers, in wire form."""
        return {}

    def _bind(self, words: Vocabulary, route: Route[Any]) -> Handler:
        if not is_handled(route, self):
            if stateful.answers_by_default(route.method):
                return lambda link, id_, params: {}
            raise MethodNotFound(route.method.name)
        work = bound(route, self)
        return lambda link, id_, params: work(params, Context(link, id_, params))


def _single(group: BaseExceptionGroup[Any]) -> BaseException:
    """The one exception of a group, so that callers can catch what they expect; groups of several stay groups."""
    if len(group.exceptions) != 1:
        return group
    only: Any = group.exceptions[0]
    return _single(cast(Any, only)) if isinstance(only, BaseExceptionGroup) else only
