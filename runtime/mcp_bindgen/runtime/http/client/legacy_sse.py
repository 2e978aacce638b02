"""The client's side of HTTP with server-sent events (MCP 2024-11-05, "Transports": HTTP with SSE)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio
import httpx2

from ...core.errors import ConnectionClosed
from ...core.transport import MAX_MESSAGE, Oversized
from .endpoint import place, reason, status

log = logging.getLogger("mcp_bindgen")

_FIELDS = 64  # bytes of an event beside its data


class SseClientTransport:
    """The client's end, made by `sse`: events come from a stream, and each message is a POST of its own.

    Args:
        response: The stream.
        events: The events in it.
        post: Posts a message.
    """

    def __init__(
        self,
        response: httpx2.Response,
        events: AsyncIterator[httpx2.ServerSentEvent],
        post: Callable[..., Awaitable[httpx2.Response]],
    ) -> None:
        self._response = response
        self._events = events
        self._post = post
        self._reading = anyio.CancelScope()
        self._open = True

    async def receive(self) -> Sequence[bytes | Oversized]:
        """The next message."""
        with anyio.CancelScope() as self._reading:
            try:
                while self._open:
                    event = await anext(self._events)
                    if event.event == "message" and event.data:
                        return [event.data.encode()]
            except StopAsyncIteration:
                pass
            except (httpx2.HTTPError, httpx2.StreamError) as error:
                log.warning("the stream of the server ended: %s", reason(error))
        return ()

    async def send(self, messages: Sequence[bytes]) -> None:
        """Sends messages, one after the other."""
        for message in messages:
            if not self._open:
                raise ConnectionClosed("the connection is closed")
            try:
                answer = await self._post(content=message)
            except httpx2.HTTPError as error:
                raise ConnectionClosed(f"a message could not be sent: {reason(error)}") from None
            if not answer.is_success:
                raise ConnectionClosed(f"the server refused a message: {status(answer)}")

    async def close(self) -> None:
        """Closes the stream, which is how the server learns of it."""
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
) -> AsyncGenerator[SseClientTransport]:
    """Connects to a server over HTTP with server-sent events.

    Args:
        url: Where the server opens streams, such as `http://localhost:8000/sse`.
        headers: Sent with each request, for example to authenticate.
        timeout: Seconds to wait for the connection, and for each message to be taken; a stream may be silent for ever.
        limit: The largest message, in bytes; a larger one ends the connection.
        client: Sends the requests, and stays open; by default one that lasts as long as the connection.

    Raises:
        ConnectionClosed: The server cannot be reached, or does not speak this transport.
    """
    where = place(httpx2.URL(url))
    waiting = httpx2.Timeout(timeout, read=None)
    async with AsyncExitStack() as stack:
        if client is None:
            client = await stack.enter_async_context(httpx2.AsyncClient())
        try:
            with anyio.fail_after(timeout):
                source = await stack.enter_async_context(
                    client.sse(url, headers=headers, timeout=waiting, max_event_size=limit + _FIELDS)
                )
                if source.response.status_code != 200:
                    raise ConnectionClosed(f"{where} answered {status(source.response)}")
                source.response.encoding = "utf-8"
                events = aiter(source)
                endpoint = await _endpoint(events, source.response.url)
        except TimeoutError:
            raise ConnectionClosed(f"{where} named no endpoint within {timeout:g} seconds") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise ConnectionClosed(f"{where} cannot be connected to: {reason(error)}") from None
        _hide(str(endpoint), stack)
        more = {**(headers or {}), "content-type": "application/json"}
        post = partial(client.post, endpoint, headers=more, timeout=timeout, follow_redirects=False)
        transport = SseClientTransport(source.response, events, post)
        try:
            yield transport
        finally:
            await transport.close()


async def _endpoint(events: AsyncIterator[httpx2.ServerSentEvent], url: httpx2.URL) -> httpx2.URL:
    """Where the server wants messages; on the origin of its stream, or else it could have us write to others."""
    async for event in events:
        if event.event == "endpoint":
            endpoint = url.join(event.data)
            if endpoint.origin != url.origin:
                raise ConnectionClosed(f"{place(url)} named an endpoint of another origin: {place(endpoint)}")
            return endpoint
    raise ConnectionClosed(f"{place(url)} closed the stream before it named its endpoint")


def _hide(secret: str, stack: AsyncExitStack) -> None:
    """Keeps requests to a URL out of the log: who knows it can speak in this session."""

    def harmless(record: logging.LogRecord) -> bool:
        return secret not in record.getMessage()

    requests = logging.getLogger("httpx2")
    requests.addFilter(harmless)
    stack.callback(requests.removeFilter, harmless)
