"""The client's side of HTTP with server-sent events (MCP 2024-11-05, "Transports": HTTP with SSE)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import httpx2
from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.protocol.access import RequestOrigin
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed, Refused
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, Lost, Outgoing, Transport
from mcp_bindgen.runtime.session.authorization import Auth

from ..event_stream import Event, EventDecoder
from .endpoint import EVENTS, JSON, Endpoint, media_type, open_endpoint, reason, unpacked
from .stream_reader import Incoming

log = logging.getLogger("mcp_bindgen")

_UNREAD = 16  # messages that wait to be received
_CONNECTIONS = 2  # the stream, and one for messages
_POST = {"content-type": JSON}


class SseClientTransport(Transport):
    """The client's end, made by `sse`: events come from a stream, and each message is a POST of its own.

    Args:
        response: The stream.
        events: The events in it.
        messages: Where messages are posted to.
        tasks: Reads the stream.

    Attributes:
        pauses: Stops the clocks while somebody is asked for authorization.
        extensions: The extensions of the protocol that authorization uses.
    """

    origin = RequestOrigin(network="tcp")

    def __init__(
        self, response: httpx2.Response, events: AsyncIterator[Event], messages: Endpoint, tasks: TaskGroup
    ) -> None:
        self.pauses = messages.pauses
        self.extensions = messages.extensions
        self._response = response
        self._messages = messages
        self._inbox = asyncio.Queue[Sequence[Incoming]](_UNREAD)
        self._open = True
        self._reading = tasks.create_task(self._read(events))

    async def receive(self) -> Sequence[Incoming]:
        """Receive the next message; an empty sequence when the stream is over."""
        messages = await self._inbox.get() if self._open else ()
        if not messages and self._open:
            self._inbox.put_nowait(())  # it stays over
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, one after the other; that a request is not authorized, its own caller is told."""
        for message in messages:
            if not self._open:
                raise ConnectionClosed("the connection is closed")
            try:
                with self._messages.deadline():
                    await self._messages.post(message, _POST)
            except (AuthorizationError, Refused) as error:
                if isinstance(error, Refused) and error.status not in (401, 403):
                    raise
                id_ = message.id if isinstance(message, Outgoing) else None
                if id_ is None:
                    raise ConnectionClosed(str(error)) from None
                await self._inbox.put([Lost(id_, error)])

    async def close(self) -> None:
        """Close the stream, which is how the server learns of it."""
        if not self._open:
            return
        self._open = False
        self._reading.cancel()
        if self._inbox.full():
            self._inbox.get_nowait()
        self._inbox.put_nowait(())  # wakes who receives
        with anyio.CancelScope(shield=True):
            await self._response.aclose()

    async def _read(self, events: AsyncIterator[Event]) -> None:
        try:
            async for type_, data in events:
                if type_ == "message" and data:
                    await self._inbox.put([data])
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            log.warning("the stream of the server ended: %s", reason(error))
        await self._inbox.put(())


@asynccontextmanager
async def sse(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    limit: int = MAX_MESSAGE,
    client: httpx2.AsyncClient | None = None,
    auth: Auth | None = None,
) -> AsyncGenerator[SseClientTransport]:
    """Connect to a server over HTTP with server-sent events.

    Args:
        url: Where the server opens streams, such as `http://localhost:8000/sse`.
        headers: Sent with each request, for example to authenticate.
        timeout: Seconds to wait for the connection, and for each message to be taken; a stream may be silent for ever.
        limit: The largest message, in bytes; of a larger one only the fact is passed on.
        client: Sends the requests, and stays open; by default one that lasts as long as the connection.
        auth: Authorizes the requests, such as `OAuth()`.

    Raises:
        AuthorizationError: There is no way to be authorized.
        ConnectionClosed: The server cannot be reached, or does not speak this transport.
    """
    async with AsyncExitStack() as stack:
        opening = open_endpoint(url, client, headers, timeout, limit, _CONNECTIONS, auth=auth)
        endpoint = await stack.enter_async_context(opening)
        try:
            with endpoint.pauses.fail_after(timeout):
                response = await stack.enter_async_context(endpoint.request("GET", {"accept": EVENTS}))
                if response.status_code != 200 or media_type(response) != EVENTS:
                    raise await endpoint.refused(response)
                events = _events(response, endpoint.decoder())
                messages = await _messages_endpoint(endpoint, response, events)
        except TimeoutError:
            raise ConnectionClosed(f"{endpoint.place} named no endpoint within {timeout:g} seconds") from None
        stack.enter_context(messages.hiding_secrets())
        tasks = await stack.enter_async_context(background_tasks())
        transport = SseClientTransport(response, events, messages, tasks)
        try:
            yield transport
        finally:
            await transport.close()


async def _events(response: httpx2.Response, decoder: EventDecoder) -> AsyncIterator[Event]:
    async for chunk in unpacked(response):
        for event in decoder.feed(chunk):
            yield event


async def _messages_endpoint(endpoint: Endpoint, response: httpx2.Response, events: AsyncIterator[Event]) -> Endpoint:
    """Wait for the event that says where the server wants messages."""
    async for type_, data in events:
        if type_ == "endpoint" and isinstance(data, bytes):
            return endpoint.join(response.url, data.decode("utf-8", "replace"))
    raise ConnectionClosed(f"{endpoint.place} closed the stream before it named its endpoint")
