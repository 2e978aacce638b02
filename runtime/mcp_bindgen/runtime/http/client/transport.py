"""The client's side of Streamable HTTP (MCP 2025-03-26 and later, "Transports": Streamable HTTP).

Every message is a POST of its own. What answers a request is one JSON document or a stream of events. Where there are
sessions, a stream that breaks off is resumed, and a stream for what the server has to say by itself is kept open.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache

import anyio
import httpx2
from anyio.abc import TaskGroup

from ...core.errors import ConnectionClosed, SessionLost
from ...core.transport import MAX_MESSAGE, Lost, Outgoing
from ...tasks import background_tasks
from .endpoint import Endpoint
from .exchange import Conversation
from .header_mirror import HeaderMirror
from .stream_reader import Incoming

log = logging.getLogger("mcp_bindgen")

IN_FLIGHT = 100
"""Requests that are with the server at the same time; more of them wait."""

_UNREAD = 16  # batches that wait to be received
_FAREWELL = 2.0  # seconds for the server to take note that a session is over
_IDLE = 4.0  # seconds that a connection is kept; many servers close it after 5, which must not happen while we send


@dataclass(eq=False)
class _Asked:
    """A request whose answer is awaited."""

    message: Outgoing
    id: int
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class HttpClientTransport:
    """The client's end, made by `http`.

    Requests are concurrent. A notification or an answer is with the server before later messages are sent.

    Args:
        endpoint: Where messages go.
        tasks: Runs what waits for answers.
        in_flight: How many requests are with the server at the same time.

    Attributes:
        mirror: Makes what keeps track of the headers that are sent.
    """

    mirror = HeaderMirror

    def __init__(self, endpoint: Endpoint, tasks: TaskGroup, in_flight: int = IN_FLIGHT) -> None:
        self._conversation = Conversation(endpoint, self._deliver)
        self._tasks = tasks
        self._slots = anyio.Semaphore(in_flight, fast_acquire=True)
        self._inbox, self._arrived = anyio.create_memory_object_stream[Sequence[Incoming]](_UNREAD)
        self._asked: dict[int, _Asked] = {}
        self._listening = anyio.CancelScope()
        self._open = True

    async def receive(self) -> Sequence[Incoming]:
        """The next messages; an empty sequence only when this side has closed."""
        try:
            return await self._arrived.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Sends messages; waits until the server has taken those that are no requests.

        What becomes of a request is told by `receive`. That the server does not take another message is only logged.

        Raises:
            ConnectionClosed: This side has closed.
        """
        for data in messages:
            if not self._open:
                raise ConnectionClosed("the connection is closed")
            message = data if isinstance(data, Outgoing) else Outgoing(data)
            if message.id is not None:
                asked = self._asked[message.id] = _Asked(message, message.id)
                self._tasks.start_soon(self._ask, asked)
            elif message.cancels is not None:
                await self._take_back(message, message.cancels)
            else:
                await self._tell(message)

    async def close(self) -> None:
        """Hangs up, and says goodbye if there is a session."""
        if not self._open:
            return
        self._open = False
        for asked in self._asked.values():
            asked.scope.cancel()
        self._listening.cancel()
        self._inbox.close()
        with anyio.move_on_after(_FAREWELL, shield=True):
            try:
                await self._conversation.leave()
            except ConnectionClosed as error:
                log.debug("the session was not ended: %s", error)
        self._arrived.close()

    async def _ask(self, asked: _Asked) -> None:
        """Sends a request and passes on what answers it, or else why nothing does."""
        with asked.scope:
            try:
                async with self._slots:
                    await self._conversation.ask(asked.message, asked.id)
            except Exception as error:
                self._lose(asked, error)
        if self._asked.get(asked.id) is asked:
            del self._asked[asked.id]

    async def _tell(self, message: Outgoing) -> None:
        """Sends what is not answered."""
        try:
            await self._conversation.tell(message)
        except Exception as error:
            log.warning("a message was not taken: %s", error)
            self._lose(None, error)
            return
        if message.opens_stream:
            self._listening.cancel()
            self._listening = anyio.CancelScope()
            self._tasks.start_soon(self._listen, self._listening, message.headers)

    async def _listen(self, scope: anyio.CancelScope, headers: Mapping[str, str]) -> None:
        """Hears what the server has to say by itself."""
        with scope:
            try:
                await self._conversation.listen(headers)
            except Exception as error:
                log.debug("there is no stream to listen to: %s", error)
                self._lose(None, error)

    async def _take_back(self, message: Outgoing, id_: int) -> None:
        """Cancels a request: by hanging up, and by saying so where hanging up alone does not mean it."""
        asked = self._asked.get(id_)
        if not (message if asked is None else asked.message).self_contained:
            await self._tell(message)
        if asked is not None:
            asked.scope.cancel()

    def _lose(self, asked: _Asked | None, error: Exception) -> None:
        """Tells who waits for a request that it has failed, and everybody if the session is over."""
        lost: list[Incoming] = []
        if asked is not None and self._asked.pop(asked.id, None) is not None:
            lost.append(Lost(asked.id, error))
        if isinstance(error, SessionLost) and self._conversation.forgotten:
            self._listening.cancel()
            for other in [other for other in self._asked.values() if not other.message.self_contained]:
                del self._asked[other.id]
                other.scope.cancel()
                lost.append(Lost(other.id, SessionLost(str(error))))
        if lost:
            self._tasks.start_soon(self._deliver, lost)

    async def _deliver(self, messages: Sequence[Incoming]) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody receives any longer
            try:
                self._inbox.send_nowait(messages)
            except anyio.WouldBlock:
                await self._inbox.send(messages)


@asynccontextmanager
async def http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    limit: int = MAX_MESSAGE,
    client: httpx2.AsyncClient | None = None,
    in_flight: int = IN_FLIGHT,
) -> AsyncGenerator[HttpClientTransport]:
    """Speaks Streamable HTTP with a server; it is connected to when there is something to send.

    Args:
        url: The server's endpoint, such as `http://localhost:8000/mcp`.
        headers: Sent with each request, for example to authenticate.
        timeout: Seconds to wait for connections, and for the server to take what is sent. An answer may take as long
            as it wants: how long a caller waits is an option of its request.
        limit: The largest message, in bytes; of a larger one only the fact is passed on.
        client: Sends the requests, and stays open; by default one that lasts as long as the connection.
        in_flight: How many requests are with the server at the same time; more of them wait. A subscription counts for
            as long as it lasts.

    Raises:
        ConnectionClosed: The URL or a header is none.
    """
    async with AsyncExitStack() as stack:
        if client is None:
            limits = httpx2.Limits(max_keepalive_connections=in_flight, keepalive_expiry=_IDLE)
            client = await stack.enter_async_context(httpx2.AsyncClient(verify=_certificates(), limits=limits))
        endpoint = Endpoint(url, client, headers or {}, timeout, limit)
        stack.enter_context(endpoint.discreet())
        async with background_tasks() as tasks:
            transport = HttpClientTransport(endpoint, tasks, in_flight)
            try:
                yield transport
            finally:
                await transport.close()


@cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust; reading that takes longer than everything else that a connection needs."""
    return httpx2.create_ssl_context()
