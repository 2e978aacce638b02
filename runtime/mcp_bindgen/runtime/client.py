"""The base of generated clients, and connecting them to a server."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, ClassVar, Self, TypeVar, cast

import anyio

from .calls import Caller
from .capabilities import declare, merge
from .context import Context
from .dispatcher import Route
from .errors import MethodNotFound, UnsupportedRevision
from .jsonrpc import RequestId, typed_params
from .methods import Request
from .peer import Peer
from .server import bound, introduction, is_handled
from .session import Options, Progress, Session
from .transport import Transport
from .vocabulary import INITIALIZE, INITIALIZED, PING, module, vocabulary

Params = TypeVar("Params")
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
    """

    bindings: ClassVar[str]
    revision: ClassVar[str]
    info: Any
    options: Options = Options()
    server_info: Any = None
    server_capabilities: Mapping[str, Any] = {}
    instructions: str | None = None
    link: Session

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
        """This client, connected: the handshake is done when the block begins, everything is closed when it ends.

        Raises:
            UnsupportedRevision: The server answers with a revision that this client does not speak.
            ConnectionClosed: The server is gone before the handshake is over.
        """
        async with AsyncExitStack() as stack:
            if isinstance(transport, AbstractAsyncContextManager):
                transport = await stack.enter_async_context(transport)
            words = vocabulary(self, self.bindings, "client")
            session = Session(Peer("client", {self.revision: words}), transport, self._bind, self.options)
            self.link = session
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(session.run)
                    try:
                        await self._initialize(session)
                        yield self
                    finally:
                        await session.close()
                        tasks.cancel_scope.cancel()
            except BaseExceptionGroup as group:
                raise _single(group) from None

    async def request(self, method: Request[Params, Any, Answer], params: Params) -> Answer:
        """Sends any request of the method table, or one of your own, and returns whatever answers it."""
        return await self.link.request(method, params, self.options)

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

    async def _initialize(self, session: Session) -> None:
        words = session.peer.vocabulary
        offered = [name for name, route in words.routes.items() if is_handled(route, self)]
        session.declared["client"] = merge(declare("client", words, offered), self.extra_capabilities())
        types = module(self.bindings, "types")
        method: Any = words.methods[INITIALIZE]
        wire = {
            "protocolVersion": self.revision,
            "capabilities": session.declared["client"],
            "clientInfo": introduction(getattr(self, "info", None), types.Implementation).model_dump(),
        }
        answer = await session.request(method, typed_params(method, wire), self.options)
        if answer.protocol_version != self.revision:
            raise UnsupportedRevision(self.revision, answer.protocol_version)
        session.declared["server"] = self.server_capabilities = answer.capabilities.model_dump()
        session.peer_info = self.server_info = answer.server_info
        self.instructions = answer.instructions
        session.peer.negotiated()
        initialized: Any = words.methods[INITIALIZED]
        await session.notify(initialized, None)

    def _bind(self, session: Session, route: Route[Any]) -> Callable[[RequestId | None, Any], Any]:
        name = route.method.name
        if not is_handled(route, self):
            if route.method.kind == "notification" or name == PING:
                return lambda id_, params: {}
            raise MethodNotFound(name)
        handler = bound(route, self)
        if route.method.params is None:
            return lambda id_, params: handler(Context(session, id_, params))
        return lambda id_, params: handler(params, Context(session, id_, params))


def _single(group: BaseExceptionGroup[Any]) -> BaseException:
    """The one exception of a group, so that callers can catch what they expect; groups of several stay groups."""
    if len(group.exceptions) != 1:
        return group
    only: Any = group.exceptions[0]
    return _single(cast(Any, only)) if isinstance(only, BaseExceptionGroup) else only
