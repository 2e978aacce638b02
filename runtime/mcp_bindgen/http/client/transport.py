"""Client transport for Streamable HTTP (MCP 2025-03-26 and later, "Transports": Streamable HTTP).

Each message is a POST. The response to a request is one JSON document or a stream of events. In a session, a broken
stream is resumed, and a GET stream is kept open for messages that belong to no request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.pauses import Pauses
from mcp_bindgen.runtime.protocol.access import RequestOrigin
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Lost, Outgoing, Transport
from mcp_bindgen.runtime.session.targets import Auth

from ..event_stream import MIN_RETRY
from ..headers import HeaderMirror
from .endpoint import Endpoint, open_endpoint
from .exchange import HttpExchange, Incoming

IN_FLIGHT = 100
"""Requests that are in flight at the same time; further ones wait."""

_MAX_INBOX = 16  # batches that wait to be received
_FAREWELL_SECONDS = 2.0  # for the server to end the session


class ClientTransport(Transport):
    """Client end over HTTP: a bounded queue of messages that have arrived.

    Args:
        endpoint: The endpoint of the server.

    Attributes:
        pauses: Clocks that stop while the user authorizes.
        extensions: Protocol extensions that authorization uses.
    """

    origin: RequestOrigin = RequestOrigin(network="tcp")

    def __init__(self, endpoint: Endpoint) -> None:
        self.pauses: Pauses | None = endpoint.pauses
        self.extensions: Mapping[str, Any] = endpoint.extensions
        self._inbox = asyncio.Queue[Sequence[Incoming]](_MAX_INBOX)
        self._is_open = True

    async def receive(self) -> Sequence[Incoming]:
        """Return the next messages; an empty sequence once the connection is over."""
        messages = await self._inbox.get() if self._is_open else ()
        if not messages and self._is_open:
            self._inbox.put_nowait(())  # for the next call
        return messages

    async def _deliver(self, messages: Sequence[Incoming]) -> None:
        if self._is_open:
            await self._inbox.put(messages)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ConnectionClosed("the connection is closed")

    def _close_inbox(self) -> bool:
        """End `receive`; return False if the transport was closed before."""
        was_open, self._is_open = self._is_open, False
        if was_open:
            if self._inbox.full():
                self._inbox.get_nowait()
            self._inbox.put_nowait(())
        return was_open


class HttpClientTransport(ClientTransport):
    """Client end of Streamable HTTP, made by `http`.

    Requests are concurrent. The server has a notification or response before later messages are sent.

    Args:
        endpoint: The endpoint of the server.
        tasks: Task group of the requests in flight.
        in_flight: Requests that are in flight at the same time.

    Attributes:
        mirror: Class that makes the headers of messages.
    """

    mirror: Callable[[Any], Any] | None = HeaderMirror

    def __init__(self, endpoint: Endpoint, tasks: TaskGroup, in_flight: int = IN_FLIGHT) -> None:
        super().__init__(endpoint)
        self._exchange = HttpExchange(endpoint, self._deliver)
        self._tasks = tasks
        self._slots = anyio.Semaphore(in_flight, fast_acquire=True)
        self._pending: dict[int, tuple[Outgoing, anyio.TaskHandle[None]]] = {}
        self._listening: anyio.TaskHandle[None] | None = None

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages; wait until the server has taken those that are no requests.

        The failure of a request arrives by `receive`; the failure of another message is logged.

        Raises:
            ConnectionClosed: The transport is closed.
        """
        for data in messages:
            self._check_open()
            message = data if isinstance(data, Outgoing) else Outgoing(data)
            if message.id is not None:
                task = self._tasks.create_task(self._ask(message, message.id))
                self._pending[message.id] = message, task
            elif message.cancels is not None:
                await self._cancel(message, message.cancels)
            else:
                await self._tell(message)

    async def close(self) -> None:
        """Close all connections, and end the session if there is one."""
        if not self._close_inbox():
            return
        for _, task in self._pending.values():
            task.cancel()
        self._stop_listening()
        with anyio.move_on_after(_FAREWELL_SECONDS, shield=True):
            try:
                await self._exchange.leave()
            except ConnectionClosed as error:
                log.debug("the session was not ended: %s", error)

    async def _ask(self, message: Outgoing, id_: int) -> None:
        """Send a request; deliver its response, or the reason why there is none."""
        try:
            async with self._slots:
                await self._exchange.ask(message, id_)
        except Exception as error:
            self._note_session()
            await self._deliver([Lost(id_, error)])
        finally:
            self._pending.pop(id_, None)

    async def _tell(self, message: Outgoing) -> None:
        """Send a notification or response."""
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
        """Cancel a request: close its connection, and send the cancellation where closing alone means nothing."""
        request, task = self._pending.get(id_, (message, None))
        if not request.self_contained:
            await self._tell(message)
        if task is not None:
            task.cancel()

    async def _listen(self, headers: Mapping[str, str]) -> None:
        try:
            await self._exchange.listen(headers)
        except Exception as error:
            log.debug("the server offers no stream: %s", error)

    def _note_session(self) -> None:
        """Stop listening once the server has forgotten the session; requests still await their own responses."""
        if self._exchange.is_forgotten:
            self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()


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
    """Open a Streamable HTTP transport; the first message connects to the server.

    Args:
        url: The server's endpoint, such as `http://localhost:8000/mcp`.
        headers: Headers of each request, for example for authentication.
        timeout: Seconds for a connection, and for the server to take a message that is no request. A response may take
            any time: callers limit it with an option of the request.
        limit: Largest message, in bytes; a larger one is reported as too large.
        client: HTTP client, which stays open; by default a client that is closed with the transport.
        in_flight: Requests in flight at the same time; further ones wait. A subscription counts while it lasts.
        min_retry: Least seconds before a stream is resumed.
        auth: Authorization of the requests, such as `OAuth()`.

    Raises:
        ConnectionClosed: The URL or a header is malformed.
        AuthorizationError: Requests to this URL cannot be authorized.
    """
    opening = open_endpoint(url, client, headers, timeout, limit, in_flight, min_retry, auth)
    async with opening as endpoint, background_tasks() as tasks:
        transport = HttpClientTransport(endpoint, tasks, in_flight)
        try:
            yield transport
        finally:
            await transport.close()
