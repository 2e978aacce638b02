"""The client's side of HTTP with server-sent events (MCP 2024-11-05, "Transports": HTTP with SSE)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import httpx2

from ...core.authorization import Auth
from ...core.errors import ConnectionClosed, Refused
from ...core.transport import MAX_MESSAGE, Oversized
from ..event_stream import Event, EventDecoder
from ._endpoint import EVENTS, JSON, Endpoint, media_type, open_endpoint, reason, unpacked

log = logging.getLogger("mcp_bindgen")

_CONNECTIONS = 2  # the stream, and one for messages
_POST = {"content-type": JSON}


class SseClientTransport:
    """The client's end, made by `sse`: events come from a stream, and each message is a POST of its own.

    Args:
        response: The stream.
        events: The events in it.
        messages: Where messages are posted to.

    Attributes:
        pauses: Stops the clocks while somebody is asked for authorization.
        extensions: The extensions of the protocol that authorization uses.
    """

    def __init__(self, response: httpx2.Response, events: AsyncIterator[Event], messages: Endpoint) -> None:
        self.pauses = messages.pauses
        self.extensions = messages.extensions
        self._response = response
        self._events = events
        self._messages = messages
        self._reading = anyio.CancelScope()
        self._open = True

    async def receive(self) -> Sequence[bytes | Oversized]:
        """Receive the next message."""
        with anyio.CancelScope() as self._reading:
            try:
                while self._open:
                    type_, data = await anext(self._events)
                    if type_ == "message" and data:
                        return [data]
            except StopAsyncIteration:
                pass
            except (httpx2.HTTPError, httpx2.StreamError) as error:
                log.warning("the stream of the server ended: %s", reason(error))
        return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, one after the other."""
        for message in messages:
            if not self._open:
                raise ConnectionClosed("the connection is closed")
            with self._messages.deadline():
                await self._messages.post(message, _POST)

    async def close(self) -> None:
        """Close the stream, which is how the server learns of it."""
        self._open = False
        self._reading.cancel()
        with anyio.CancelScope(shield=True):
            await self._response.aclose()


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
                    raise Refused(response.status_code, endpoint.refusal(response))
                events = _events(response, endpoint.decoder())
                messages = await _messages_endpoint(endpoint, response, events)
        except TimeoutError:
            raise ConnectionClosed(f"{endpoint.place} named no endpoint within {timeout:g} seconds") from None
        transport = SseClientTransport(response, events, stack.enter_context(messages.hiding_secrets()))
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
