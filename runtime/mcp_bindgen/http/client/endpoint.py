"""Send HTTP requests to one URL, within limits, and tell what went wrong without giving away secrets."""

from __future__ import annotations

import copy
import html
import logging
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import cache
from typing import Any, Self

import anyio
import httpx2

from mcp_bindgen.runtime.concurrency import Pauses
from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, Refused
from mcp_bindgen.runtime.protocol.transport import Oversized
from mcp_bindgen.runtime.session.authorization import Attempt, Auth, Authorizer

from ..event_stream import MIN_RETRY, EventDecoder

JSON = "application/json"
EVENTS = "text/event-stream"
SESSION_ID = "mcp-session-id"

_IDLE = 4.0  # seconds that a connection is kept; many servers close it after 5, which must not happen while we send
_REDIRECTS = 3
_HEAD = 256
_SAID = 200  # characters of what a server says about a refusal
_READABLE = re.compile(r"|text/.*|application/(.+\+)?json")  # media types of what people can read; none is text
_MARKUP = re.compile(r"(?is)<(head|script|style)\b.*?(</\1>|$)|<[^>]*(>|$)")
_CREDENTIALS = re.compile(r"auth|cookie|dpop|key|secret|session|token")  # in names of headers
_UNWANTED = 64 * 1024  # bytes of a body that nobody needs, worth reading to use the connection again
_PART = 64 * 1024  # bytes of a stream that are decoded at once; packed, as few can be a thousand times as many
_DRAINING = 1.0  # seconds for that
_ENCODINGS = ("gzip", "deflate")  # which pack a thousand bytes into one at best
_PACKED = {"accept-encoding": ", ".join(_ENCODINGS)}
_LOCAL = re.compile(r"http://(?:localhost\.?|127(?:\.[0-9]+){3}|\[::1\])(?::[0-9]+)?(?:[/?#]|$)", re.IGNORECASE)
_LOGGERS = ("httpx2", "httpcore2.http11", "httpcore2.http2")


class Endpoint:
    """Send requests to a URL.

    Args:
        url: The URL.
        client: Sends the requests.
        headers: Sent with each of them.
        timeout: Seconds to wait for a connection, and for the server to take what is sent.
        limit: The largest body that is read, in bytes, after it is unpacked.
        min_retry: Seconds to wait at least before a stream is resumed.
        authorizer: Authorizes what is sent, if anything does.

    Attributes:
        place: The URL as it may be shown: without credentials and query.
        pauses: Stops the clocks while somebody is asked for authorization.
        extensions: The extensions of the protocol that authorization uses.

    Raises:
        ConnectionClosed: The URL or a header is none.
        ValueError: There are other credentials beside those that `authorizer` has.
    """

    def __init__(
        self,
        url: str,
        client: httpx2.AsyncClient,
        headers: Mapping[str, str],
        timeout: float,
        limit: int,
        min_retry: float,
        authorizer: Authorizer | None = None,
    ) -> None:
        try:
            self.url = httpx2.URL(url)
            self._headers = {name.lower(): value for name, value in httpx2.Headers(headers).items()}
        except (httpx2.InvalidURL, ValueError) as error:
            raise ConnectionClosed(f"there is nothing to connect to: {reason(error)}") from None
        self.place = _place(self.url)
        if self.url.scheme not in ("http", "https") or not self.url.host:
            raise ConnectionClosed(f"{self.place} is not the URL of a server")
        if authorizer is not None and (self.url.userinfo or "authorization" in self._headers):
            raise ValueError("credentials come from auth, or else stand in the URL or the headers, not in both places")
        self.limit = limit
        self.pauses = authorizer.pauses if authorizer is not None else Pauses()
        self.extensions: Mapping[str, Any] = authorizer.extensions if authorizer is not None else {}
        self._authorizer = authorizer
        self._client = client
        self._min_retry = min_retry
        self._seconds = timeout
        self._timeout = httpx2.Timeout(timeout)
        self._patient = httpx2.Timeout(timeout, read=None)
        self._secrets = {part.decode("ascii") for part in (self.url.userinfo, self.url.query) if part}

    def join(self, base: httpx2.URL, reference: str) -> Self:
        """Return the endpoint that a server named; who knows its path can speak in the session, so it is a secret.

        Args:
            base: Where the server named it.
            reference: What it said.

        Raises:
            ConnectionClosed: It is on another origin, where the server could have us write to others.
        """
        try:
            url = base.join(reference)
        except (httpx2.InvalidURL, ValueError):
            raise ConnectionClosed(f"{self.place} named an endpoint that is no URL") from None
        if url.origin != self.url.origin:
            raise ConnectionClosed(f"{self.place} named an endpoint of another origin: {_place(url)}")
        other = copy.copy(self)
        other.url = url
        other._secrets = {*self._secrets, url.raw_path.decode("ascii")}
        return other

    @asynccontextmanager
    async def request(
        self,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        patient: bool = True,
        may_ask: bool = True,
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request and give the response, of which only the head was read; close it in the end.

        Redirects are followed on the same origin if they change nothing but the URL. What the server refuses for want
        of authorization is sent again once there is one.

        Args:
            method: The method of HTTP.
            headers: Sent beside those of the endpoint, names in lower case.
            content: The body.
            patient: Whether the answer may take as long as it wants.
            may_ask: Whether somebody may be asked to authorize it.

        Raises:
            Refused: It redirects without end.
            AuthorizationError: It cannot be authorized.
            ConnectionClosed: The server cannot be reached, the connection broke off, or the response is packed in a way
                that nobody asked for.
        """
        timeout = self._patient if patient else self._timeout
        sent = {**_PACKED, **self._headers, **headers}
        attempt = self._authorizer.attempt(may_ask=may_ask) if self._authorizer is not None else None
        try:
            response = await self._send(method, sent, content, timeout, attempt)
            try:
                while attempt is not None and await _is_to_be_sent_again(attempt, response):
                    await response.aclose()
                    response = await self._send(method, sent, content, timeout, attempt)
                self._check_encoding(response)
                yield response
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise ConnectionClosed(f"no answer from {self.place}: {reason(error)}") from None

    async def _send(
        self,
        method: str,
        headers: Mapping[str, str],
        content: bytes | None,
        timeout: httpx2.Timeout,
        attempt: Attempt | None,
    ) -> httpx2.Response:
        url = self.url
        for _ in range(_REDIRECTS):
            shown: Mapping[str, str] = await attempt.headers(method, str(url)) if attempt is not None else {}
            request = self._client.build_request(
                method, url, content=content, headers={**headers, **shown}, timeout=timeout
            )
            response = await self._client.send(request, stream=True, follow_redirects=False)
            further = response.next_request
            if further is None or further.url.origin != self.url.origin or further.method != method:
                return response
            await response.aclose()
            url = further.url
        raise Refused(307, f"{self.place} redirects without end")

    def _check_encoding(self, response: httpx2.Response) -> None:
        """Refuse what unpacks to more than a thousand times its size, which would keep the event loop busy."""
        encodings = response.headers.get_list("content-encoding", split_commas=True)
        packed = [name for name in encodings if name.strip().lower() != "identity"]
        if len(packed) > 1 or any(name.strip().lower() not in _ENCODINGS for name in packed):
            raise ConnectionClosed(f"{self.place} answered in an encoding other than {' or '.join(_ENCODINGS)}")

    @contextmanager
    def deadline(self) -> Generator[None]:
        """Limit the time that the server has to take a message, however slowly it goes on; raise `ConnectionClosed`."""
        try:
            with self.pauses.fail_after(self._seconds):
                yield
        except TimeoutError:
            raise ConnectionClosed(f"{self.place} did not take a message within {self._seconds:g} seconds") from None

    def decoder(self) -> EventDecoder:
        """Return what decodes a stream of events."""
        return EventDecoder(self.limit, self._min_retry)

    async def post(self, content: bytes, headers: Mapping[str, str]) -> None:
        """Post what is answered by a status only.

        Of the body no more is read than is worth it: to use the connection again, or to say why the server refuses.

        Raises:
            Refused: The server says no.
            ConnectionClosed: It cannot be reached.
        """
        async with self.request("POST", headers, content, patient=False) as response:
            if not response.is_success:
                raise await self.refused(response)
            with anyio.move_on_after(_DRAINING), suppress(httpx2.StreamError):
                await _read(response.aiter_raw(), _UNWANTED)

    async def read(self, response: httpx2.Response) -> bytes | Oversized:
        """Read the body of a response."""
        return await _read(response.aiter_bytes(), self.limit)

    async def refused(self, response: httpx2.Response) -> Refused:
        """Return the error for a response that is not what was asked for, with what its body says."""
        body: bytes | Oversized = b""
        if not response.is_success:  # which may be a stream without an end
            with anyio.move_on_after(_DRAINING), suppress(httpx2.HTTPError, httpx2.StreamError):
                body = await _read(response.aiter_bytes(), _UNWANTED)
        return Refused(response.status_code, self.refusal(response, body))

    def refusal(self, response: httpx2.Response, body: bytes | Oversized = b"") -> str:
        """Describe in one line a response that is not what was asked for."""
        type_ = media_type(response)
        words = f"{self.place} answered {response.status_code} {response.reason_phrase}".strip()
        if response.next_request is not None:
            return f"{words}: it redirects to {_place(response.next_request.url)}"
        if "www-authenticate" in response.headers and response.status_code == 401 and self._authorizer is None:
            words += ", which wants a login: connect with auth=OAuth(), or another way to be authorized"
        if response.is_success and type_:
            words += f" with {type_}"
        if isinstance(body, Oversized) or _READABLE.fullmatch(type_) is None:
            return words
        text = body[: _SAID * 8].decode("utf-8", "replace")
        text = html.unescape(_MARKUP.sub(" ", text)) if type_ == "text/html" else text
        said = " ".join(text.split())[:_SAID]
        credentials = [
            value.rpartition(" ")[2] for name, value in response.request.headers.items() if _CREDENTIALS.search(name)
        ]
        is_harmless = self._is_harmless(said) and not any(value in said for value in filter(None, credentials))
        return f"{words}: {said}" if said.isprintable() and said and is_harmless else words

    @contextmanager
    def hiding_secrets(self) -> Generator[Self]:
        """Keep credentials, queries and sessions out of the log of the HTTP client."""

        def harmless(record: logging.LogRecord) -> bool:
            text = record.getMessage()
            return SESSION_ID not in text.lower() and self._is_harmless(text)

        for name in _LOGGERS:
            logging.getLogger(name).addFilter(harmless)
        try:
            yield self
        finally:
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(harmless)

    def _is_harmless(self, text: str) -> bool:
        return not any(secret in text for secret in self._secrets)


@asynccontextmanager
async def open_endpoint(
    url: str,
    client: httpx2.AsyncClient | None,
    headers: Mapping[str, str] | None,
    timeout: float,
    limit: int,
    connections: int,
    min_retry: float = MIN_RETRY,
    auth: Auth | None = None,
) -> AsyncGenerator[Endpoint]:
    """Open an endpoint; without a client of the caller's, make one that keeps so many connections."""
    authorizer = auth.authorizer(url) if auth is not None else None
    async with AsyncExitStack() as stack:
        if client is None:
            limits = httpx2.Limits(max_keepalive_connections=connections, keepalive_expiry=_IDLE)
            direct = authorizer is not None and _LOCAL.match(url) is not None  # a proxy would read the token
            opened = httpx2.AsyncClient(verify=_certificates(), limits=limits, trust_env=not direct)
            client = await stack.enter_async_context(opened)
        endpoint = Endpoint(url, client, headers or {}, timeout, limit, min_retry, authorizer)
        yield stack.enter_context(endpoint.hiding_secrets())


async def _is_to_be_sent_again(attempt: Attempt, response: httpx2.Response) -> bool:
    return await attempt.again(str(response.request.url), response.status_code, response.headers.multi_items())


@cache
def _certificates() -> ssl.SSLContext:
    """Load whom to trust, once; that takes longer than everything else that a connection needs."""
    return httpx2.create_ssl_context()


async def unpacked(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the body of a response as it comes, in parts so small that the event loop can do other work between."""
    async for chunk in response.aiter_bytes():
        yield chunk[:_PART]
        for start in range(_PART, len(chunk), _PART):
            await anyio.sleep(0)
            yield chunk[start : start + _PART]


async def _read(parts: AsyncIterator[bytes], limit: int) -> bytes | Oversized:
    """Join the parts of a body; stop where it is larger than the limit."""
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > limit:
            return Oversized(limit, bytes(body[:_HEAD]))
    return bytes(body)


def media_type(response: httpx2.Response) -> str:
    """Return the media type of a response, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def reason(error: Exception) -> str:
    """Say in one line what an error says."""
    return " ".join(str(error).split()) or type(error).__name__


def _place(url: httpx2.URL) -> str:
    """Return a URL without credentials and query."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"
