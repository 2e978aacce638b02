"""The client's side of Streamable HTTP (MCP 2025-03-26 and later, "Transports": Streamable HTTP).

Every message is a POST of its own. What answers a request is one JSON document or a stream of events. Where there are
sessions, a stream that breaks off is resumed, and a stream for what the server sends unasked is kept open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import httpx2
from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.protocol.access import RequestOrigin
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Lost, Outgoing, Transport
from mcp_bindgen.runtime.session.authorization import Auth

from ..event_stream import MIN_RETRY
from .endpoint import Endpoint, open_endpoint
from .exchange import HttpExchange
from .header_mirror import HeaderMirror
from .stream_reader import Incoming

log = logging.getLogger("mcp_bindgen")

IN_FLIGHT = 100
"""Requests that are with the server at the same time; more of them wait."""

_UNREAD = 16  # batches that wait to be received
_FAREWELL = 2.0  # seconds for the server to take note that a session is over


class HttpClientTransport(Transport):
    """The client's end, made by `http`.

    Requests are concurrent. A notification or an answer is with the server before later messages are sent.

    Args:
        endpoint: Where messages go.
        tasks: Runs what waits for answers.
        in_flight: How many requests are with the server at the same time.

    Attributes:
        mirror: Makes what keeps track of the headers that are sent.
        pauses: Stops the clocks while somebody is asked for authorization.
        extensions: The extensions of the protocol that authorization uses.
    """

    origin = RequestOrigin(network="tcp")

    mirror = HeaderMirror

    def __init__(self, endpoint: Endpoint, tasks: TaskGroup, in_flight: int = IN_FLIGHT) -> None:
        self.pauses = endpoint.pauses
        self.extensions = endpoint.extensions
        self._exchange = HttpExchange(endpoint, self._deliver)
        self._tasks = tasks
        self._slots = anyio.Semaphore(in_flight, fast_acquire=True)
        self._inbox = asyncio.Queue[Sequence[Incoming]](_UNREAD)
        self._pending: dict[int, tuple[Outgoing, anyio.TaskHandle[None]]] = {}
        self._listening: anyio.TaskHandle[None] | None = None
        self._open = True

    async def receive(self) -> Sequence[Incoming]:
        """Receive the next messages; an empty sequence only when this side has closed."""
        return await self._inbox.get() if self._open else ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages; wait until the server has taken those that are no requests.

        What becomes of a request is told by `receive`. That the server does not take another message is only logged.

        Raises:
            ConnectionClosed: This side has closed.
        """
        for data in messages:
            if not self._open:
                raise ConnectionClosed("the connection is closed")
            message = data if isinstance(data, Outgoing) else Outgoing(data)
            if message.id is not None:
                task = self._tasks.create_task(self._ask(message, message.id))
                self._pending[message.id] = message, task
            elif message.cancels is not None:
                await self._cancel(message, message.cancels)
            else:
                await self._tell(message)

    async def close(self) -> None:
        """Hang up, and say goodbye if there is a session."""
        if not self._open:
            return
        self._open = False
        for _, task in self._pending.values():
            task.cancel()
        self._stop_listening()
        if self._inbox.full():
            self._inbox.get_nowait()
        self._inbox.put_nowait(())  # wakes who receives
        with anyio.move_on_after(_FAREWELL, shield=True):
            try:
                await self._exchange.leave()
            except ConnectionClosed as error:
                log.debug("the session was not ended: %s", error)

    async def _ask(self, message: Outgoing, id_: int) -> None:
        """Send a request; pass on what answers it, or else why nothing does."""
        try:
            async with self._slots:
                await self._exchange.ask(message, id_)
        except Exception as error:
            self._note_session()
            await self._deliver([Lost(id_, error)])
        finally:
            self._pending.pop(id_, None)

    async def _tell(self, message: Outgoing) -> None:
        """Send what is not answered."""
        try:
            await self._exchange.tell(message)
        except Exception as error:
            log.warning("a message was not taken: %s", error)
            self._note_session()
            return
        if message.opens_stream:
            self._stop_listening()
            self._listening = self._tasks.create_task(self._listen(message.headers))

    async def _cancel(self, message: Outgoing, id_: int) -> None:
        """Cancel a request: by hanging up, and by saying so where hanging up alone does not mean it."""
        request, task = self._pending.get(id_, (message, None))
        if not request.self_contained:
            await self._tell(message)
        if task is not None:
            task.cancel()

    async def _listen(self, headers: Mapping[str, str]) -> None:
        try:
            await self._exchange.listen(headers)
        except Exception as error:
            log.debug("there is no stream to listen to: %s", error)

    def _note_session(self) -> None:
        """Stop listening once the server has forgotten the session; requests still await their own responses."""
        if self._exchange.forgotten:
            self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()

    async def _deliver(self, messages: Sequence[Incoming]) -> None:
        if self._open:
            await self._inbox.put(messages)


@asynccontextmanager
async def http(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    limit: int = MAX_MESSAGE,
    client: httpx2.AsyncClient | None = None,
    in_flight: int = IN_FLIGHT,
    min_retry: float = MIN_RETRY,
    auth: Auth | None = None,
) -> AsyncGenerator[HttpClientTransport]:
    """Speak Streamable HTTP with a server; it is connected to when there is something to send.

    Args:
        url: The server's endpoint, such as `http://localhost:8000/mcp`.
        headers: Sent with each request, for example to authenticate.
        timeout: Seconds to wait for connections, and in all for the server to take a message that is no request. An
            answer may take as long as it wants: how long a caller waits is an option of its request.
        limit: The largest message, in bytes; of a larger one only the fact is passed on.
        client: Sends the requests, and stays open; by default one that lasts as long as the connection.
        in_flight: How many requests are with the server at the same time; more of them wait. A subscription counts for
            as long as it lasts.
        auth: Authorizes the requests, such as `OAuth()`.

    Raises:
        ConnectionClosed: The URL or a header is none.
        AuthorizationError: Nothing can be authorized at this URL.
    """
    opening = open_endpoint(url, client, headers, timeout, limit, in_flight, min_retry, auth)
    async with opening as endpoint, background_tasks() as tasks:
        transport = HttpClientTransport(endpoint, tasks, in_flight)
        try:
            yield transport
        finally:
            await transport.close()
