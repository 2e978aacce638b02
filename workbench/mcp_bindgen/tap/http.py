"""Forward HTTP requests to a server: a reverse proxy on the loopback interface.

Requests go through a transport of httpx2 and not through its client, which would decode bodies and store cookies.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterable
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import httpx2
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from mcp_bindgen.http.client.bounded import certificates, reason, shown
from mcp_bindgen.http.server.errors import HttpError
from mcp_bindgen.http.server.origin_policy import LOOPBACK, OriginPolicy
from mcp_bindgen.http.server.uvicorn_protocol import local_config

from .exchange import Request, Response, Sessions, head
from .recorder import Recorder

RawHeaders = list[tuple[bytes, bytes]]

_BAD_GATEWAY = 502
_CONNECT_SECONDS = 30.0
_CONNECTIONS = httpx2.Limits(
    max_connections=None,
    max_keepalive_connections=256,
    keepalive_expiry=4.0,  # seconds; many servers close after 5
)
_HOP_BY_HOP = frozenset(
    (b"connection", b"expect", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
"""Header fields about one connection only, which a proxy does not forward (RFC 9110, 7.6.1); we answer `Expect`."""


def _forwarded(headers: Iterable[tuple[bytes, bytes]], *left_out: bytes) -> RawHeaders:
    """Return the headers to forward, without those that `Connection` names; the length of a body stays in any case."""
    named = {
        one.strip().lower() for name, value in headers if name.lower() == b"connection" for one in value.split(b",")
    }
    dropped = _HOP_BY_HOP | (named - {b"content-length"}) | set(left_out)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


class _RequestBody(httpx2.AsyncByteStream):
    """Body of a request, which is recorded and forwarded part by part.

    Args:
        first: The first message of the client.
        receive: Returns the next ones.
        recorder: Takes the parts.
        channel: Channel of the request.

    Attributes:
        is_over: Set when the last part has arrived.
    """

    def __init__(self, first: Message, receive: Receive, recorder: Recorder, channel: Request) -> None:
        self.is_over = asyncio.Event()
        self._first, self._receive = first, receive
        self._recorder, self._channel = recorder, channel

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the parts; raise `httpx2.ReadError` if the client disconnects before the last one."""
        message = self._first
        while message["type"] == "http.request":
            part, is_last = message.get("body", b""), not message.get("more_body")
            self._recorder.record(self._channel, part)
            if is_last:
                self._recorder.end(self._channel)
                self.is_over.set()
            if part:
                yield part
            if is_last:
                return
            message = await self._receive()
        raise httpx2.ReadError("the client has disconnected")


class HttpTap:
    """Application that forwards each request to the origin of one URL.

    The target, the headers other than `Host` and the hop-by-hop headers, and the bodies are forwarded unmodified.
    Redirects, refusals and cookies are responses like others.

    Args:
        url: URL of the server; requests to its path are messages.
        recorder: Takes the bytes of both sides, just before they are forwarded.
        transport: Sends the requests; by default over the network.
    """

    def __init__(self, url: str, recorder: Recorder, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        parts = urlsplit(url)
        self._place = shown(url)
        self._host = parts.netloc.rpartition("@")[2].encode("idna" if not parts.netloc.isascii() else "ascii")
        self._recorder = recorder
        self._sessions = Sessions(recorder, parts.path or "/")
        self._policy = OriginPolicy(hosts=LOOPBACK, origins=LOOPBACK)
        self._url = httpx2.URL(url)
        self._transport = transport or httpx2.AsyncHTTPTransport(certificates(), trust_env=False, limits=_CONNECTIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers: RawHeaders = scope["headers"]
        try:
            self._policy.check(headers)
        except HttpError as error:
            await PlainTextResponse(str(error), error.status)(scope, receive, send)
            return
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        channel = self._sessions.exchange(scope["method"], target.decode("latin-1"), headers)
        body = _RequestBody(await receive(), receive, self._recorder, channel)
        forwarded = [*_forwarded(headers, b"host"), (b"host", self._host)]
        names = {name for name, _ in headers}
        if b"transfer-encoding" in names and b"content-length" not in names:
            forwarded.append((b"transfer-encoding", b"chunked"))
        watch = asyncio.ensure_future(_hang_up(body, receive, asyncio.current_task()))
        try:
            extensions = {"target": target, "timeout": {"connect": _CONNECT_SECONDS}}
            request = httpx2.Request(scope["method"], self._url, headers=forwarded, stream=body, extensions=extensions)
            await self._exchange(request, channel, send)
        except asyncio.CancelledError:
            if not watch.done():  # the tap stops
                raise
        finally:
            watch.cancel()

    async def _exchange(self, request: httpx2.Request, channel: Request, send: Send) -> None:
        """Send a request, and forward the response as it comes."""
        try:
            reply = await self._transport.handle_async_request(request)
        except httpx2.TransportError as error:
            text = f"no answer from {self._place}: {reason(error)}"
            body = Response(channel, head([], status=_BAD_GATEWAY, error=text))
            self._recorder.end(body)
            await PlainTextResponse(text, _BAD_GATEWAY)({"type": "http"}, _nothing, send)
            return
        assert isinstance(reply.stream, httpx2.AsyncByteStream)
        body = Response(channel, head(reply.headers.raw, status=reply.status_code))
        try:
            self._recorder.record(body, b"")
            headers = _forwarded(reply.headers.raw)
            await send({"type": "http.response.start", "status": reply.status_code, "headers": headers})
            async for part in reply.stream:
                self._recorder.record(body, part)
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except httpx2.TransportError:
            return  # without its end the client sees that the response broke off
        finally:
            self._recorder.end(body)
            await reply.stream.aclose()
        await send({"type": "http.response.body"})

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self._transport.aclose()


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _hang_up(body: _RequestBody, receive: Receive, task: asyncio.Task[Any] | None) -> None:
    """Cancel an exchange when its client has disconnected, so that the server learns of it."""
    await body.is_over.wait()
    while (await receive())["type"] != "http.disconnect":
        pass
    if task is not None:
        task.cancel()


class _Uvicorn(uvicorn.Server):
    """Server that ends in good order, so that the trace has its end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


async def serve(url: str, listener: socket.socket, recorder: Recorder) -> None:
    """Forward the requests to a socket until the process is told to stop (SIGINT, SIGTERM)."""
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # texts of clients belong into the trace only
    tap = HttpTap(url, recorder)
    config = local_config(tap, lifespan="off", server_header=False, date_header=False)
    try:
        await _Uvicorn(config).serve([listener])
    finally:
        await tap.aclose()
