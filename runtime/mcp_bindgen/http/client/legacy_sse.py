"""Client transport for HTTP with server-sent events (MCP 2024-11-05, "Transports": HTTP with SSE)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import httpx2
from anyio.abc import TaskGroup

from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed, LoginRequired, Refused
from mcp_bindgen.runtime.protocol.transport import MAX_MESSAGE, AskUser, Lost, Outgoing
from mcp_bindgen.runtime.session.targets import Auth

from ..event_stream import EventDecoder, ServerSentEvent
from .authorization import ask_at_once
from .bounded import iterate_body, media_type, reason
from .endpoint import EVENTS, JSON, Endpoint, open_endpoint
from .transport import ClientTransport

_CONNECTIONS = 2  # the stream, and one for messages


class SseClientTransport(ClientTransport):
    """Client end of HTTP with SSE, made by `sse`: events arrive on one stream, and each message is a POST.

    Args:
        response: The stream.
        events: The events in it.
        messages: The endpoint for messages.
        tasks: Task group of the reader of the stream.
    """

    def __init__(
        self, response: httpx2.Response, events: AsyncIterator[ServerSentEvent], messages: Endpoint, tasks: TaskGroup
    ) -> None:
        super().__init__(messages)
        self._response = response
        self._messages = messages
        self._reading = tasks.create_task(self._read(events))

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages one after the other; a request that the server refuses fails by `receive`."""
        for data in messages:
            self._check_open()
            message = data if isinstance(data, Outgoing) else Outgoing(data)
            try:
                with self._messages.deadline(message.ask_user or ask_at_once) as ask_user:
                    await self._messages.post(message, {"content-type": JSON}, ask_user)
            except (AuthorizationError, Refused) as error:
                is_login = isinstance(error, LoginRequired) and message.opens_stream
                if is_login or message is not data or (isinstance(error, Refused) and error.status == 404):
                    raise
                if message.id is not None:
                    await self._inbox.put([Lost(message.id, error)])
                else:
                    log.warning("a message was not taken: %s", error)

    async def close(self) -> None:
        """Close the stream, which ends the session."""
        if self._close_inbox():
            self._reading.cancel()
            with anyio.CancelScope(shield=True):
                await self._response.aclose()

    async def _read(self, events: AsyncIterator[ServerSentEvent]) -> None:
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
    ask_user: AskUser = ask_at_once,
) -> AsyncGenerator[SseClientTransport]:
    """Connect to a server that speaks HTTP with server-sent events.

    Args:
        url: The URL that opens streams, such as `http://localhost:8000/sse`.
        headers: Headers of each request, for example for authentication.
        timeout: Seconds for the connection, and for the server to take a message; a stream may be silent for ever.
        limit: Largest message, in bytes; a larger one is reported as too large.
        client: HTTP client, which stays open; by default a client that is closed with the connection.
        auth: Authorization of the requests, such as `OAuth()`.
        ask_user: Runs a login that opening the stream needs.

    Raises:
        AuthorizationError: Requests cannot be authorized.
        ConnectionClosed: The server cannot be reached, or does not speak this transport.
    """
    async with AsyncExitStack() as stack:
        opening = open_endpoint(url, client, headers, timeout, limit, _CONNECTIONS, auth=auth)
        endpoint = await stack.enter_async_context(opening)
        with endpoint.deadline(ask_user, "named no endpoint") as untimed:
            response = await stack.enter_async_context(endpoint.request("GET", {"accept": EVENTS}, ask_user=untimed))
            if response.status_code != 200 or media_type(response) != EVENTS:
                raise await endpoint.refused(response)
            events = _events(response, endpoint.decoder())
            messages = await _messages_endpoint(endpoint, response, events)
        stack.enter_context(messages.hiding_secrets())
        tasks = await stack.enter_async_context(background_tasks())
        transport = SseClientTransport(response, events, messages, tasks)
        stack.push_async_callback(transport.close)
        yield transport


async def _events(response: httpx2.Response, decoder: EventDecoder) -> AsyncIterator[ServerSentEvent]:
    async for chunk in iterate_body(response):
        for event in decoder.feed(chunk):
            yield event


async def _messages_endpoint(
    endpoint: Endpoint, response: httpx2.Response, events: AsyncIterator[ServerSentEvent]
) -> Endpoint:
    """Wait for the event that names the endpoint for messages."""
    async for type_, data in events:
        if type_ == "endpoint" and isinstance(data, bytes):
            return endpoint.join(response.url, data.decode("utf-8", "replace"))
    raise ConnectionClosed(f"{endpoint.place} closed the stream before it named its endpoint")
