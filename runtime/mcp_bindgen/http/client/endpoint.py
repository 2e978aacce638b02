"""HTTP requests to one URL of a server, with authorization, time limits and errors without secrets."""

from __future__ import annotations

import copy
import html
import logging
import math
import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from http.cookiejar import Cookie, CookieJar
from typing import Any, Self

import anyio
import httpx2

from mcp_bindgen.runtime.protocol.errors import ConnectionClosed, Refused
from mcp_bindgen.runtime.protocol.transport import AskUser, LogIn, Oversized
from mcp_bindgen.runtime.session.targets import Auth

from ..event_stream import MIN_RETRY, EventDecoder
from .authorization import Authorizer
from .bounded import ACCEPT_ENCODING, certificates, content_encoding, media_type, read_body, reason, send, shown

JSON = "application/json"
EVENTS = "text/event-stream"
SESSION_ID = "mcp-session-id"

_IDLE_SECONDS = 4.0  # that a connection is kept; many servers close it after 5, which must not happen while we send
_MAX_REDIRECTS = 3
_MAX_COOKIE_BYTES, _MAX_COOKIES = 4096, 50
_MAX_REASON = 200  # characters of the body of a refusal
_READABLE = re.compile(r"|text/.*|application/(.+\+)?json")  # media types of readable text; no type counts as text
_MARKUP = re.compile(r"(?is)<(head|script|style)\b.*?(</\1>|$)|<[^>]*(>|$)")
_CREDENTIALS = re.compile(r"auth|cookie|dpop|key|secret|session|token")  # in names of headers
_MAX_DRAINED = 64 * 1024  # bytes of an unused body that are read so that the connection can be used again
_DRAIN_SECONDS = 1.0
_LOCAL = re.compile(r"http://(?:localhost\.?|127(?:\.[0-9]+){3}|\[::1\])(?::[0-9]+)?(?:[/?#]|$)", re.IGNORECASE)
_SECRET_HEADERS = (SESSION_ID, "b'location'")  # as the log of the HTTP client writes them
_LOGGERS = ("httpx2", "httpcore2.http11", "httpcore2.http2")


class Endpoint:
    """Sender of requests to one URL.

    Args:
        url: The URL.
        client: The HTTP client.
        headers: Headers of each request.
        timeout: Seconds for a connection, and for the server to take a message.
        limit: Largest body, in unpacked bytes.
        min_retry: Least seconds before a stream is resumed.
        authorizer: Source of authorization headers; None for none.

    Attributes:
        place: The URL without credentials and query.
        extensions: Protocol extensions that authorization uses.

    Raises:
        ConnectionClosed: The URL or a header is malformed.
        ValueError: There are credentials beside `authorizer`.
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
            self.url: httpx2.URL = httpx2.URL(url)
            self._headers = {name.lower(): value for name, value in httpx2.Headers(headers).items()}
        except (httpx2.InvalidURL, ValueError):  # its text may have a part of a secret
            raise ConnectionClosed("the URL or a header is malformed") from None
        self.place: str = shown(self.url)
        if self.url.scheme not in ("http", "https") or not self.url.host:
            raise ConnectionClosed(f"{self.place} is not the URL of a server")
        if authorizer is not None and (self.url.userinfo or "authorization" in self._headers):
            raise ValueError("credentials come from auth, or else stand in the URL or the headers, not in both places")
        self.limit = limit
        self.extensions: Mapping[str, Any] = authorizer.extensions if authorizer is not None else {}
        self._authorizer = authorizer
        self._client = client
        self._min_retry = min_retry
        self._timeout = timeout
        self._secrets = {part.decode("ascii") for part in (self.url.userinfo, self.url.query) if part}

    def join(self, base: httpx2.URL, reference: str) -> Self:
        """Return the endpoint that a server named. Its path authorizes messages of the session, so it is a secret.

        Args:
            base: The URL of the response with the reference.
            reference: The reference.

        Raises:
            ConnectionClosed: The endpoint has another origin, so the server could redirect messages there.
        """
        try:
            url = base.join(reference)
        except (httpx2.InvalidURL, ValueError):
            raise ConnectionClosed(f"{self.place} named an endpoint that is no URL") from None
        if url.origin != self.url.origin:
            raise ConnectionClosed(f"{self.place} named an endpoint of another origin: {shown(url)}")
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
        ask_user: AskUser | None,
        is_patient: bool = True,
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request and give the response with its body unread; close it in the end.

        A redirect is followed if it has the same origin and method. A request that is refused for want of
        authorization is sent again once it is authorized.

        Args:
            method: The HTTP method.
            headers: Further headers, names in lower case.
            content: The body.
            ask_user: Runs a login that the request needs; `None` if it is not worth one.
            is_patient: True if the response may take any time.

        Raises:
            Refused: There are too many redirects.
            AuthorizationError: The request cannot be authorized.
            ConnectionClosed: The server cannot be reached, the connection broke off, or the response is packed in an
                encoding that was not accepted.
        """
        timeout = httpx2.Timeout(self._timeout, read=None) if is_patient else httpx2.Timeout(self._timeout)
        common = {**ACCEPT_ENCODING, **self._headers, **headers}
        attempt = self._authorizer.attempt(ask_user) if self._authorizer is not None else None
        url, redirects = self.url, 0
        try:
            while True:
                proof: Mapping[str, str] = await attempt.headers(method, str(url)) if attempt is not None else {}
                sent = {**common, **proof}
                request = self._client.build_request(method, url, content=content, headers=sent, timeout=timeout)
                async with send(self._client, request) as response:
                    next_ = response.next_request
                    if next_ is not None and next_.url.origin == self.url.origin and next_.method == method:
                        url, redirects = next_.url, redirects + 1
                        if redirects > _MAX_REDIRECTS:
                            raise Refused(307, f"{self.place} redirects without end")
                        continue
                    tried = str(url), response.status_code, response.headers.multi_items()
                    if attempt is not None and await attempt.again(*tried):
                        url, redirects = self.url, 0
                        continue
                    content_encoding(response)
                    yield response
                    return
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise ConnectionClosed(f"no answer from {self.place}: {reason(error)}") from None

    @contextmanager
    def deadline(self, ask_user: AskUser, failure: str = "did not take a message") -> Generator[AskUser]:
        """Limit the time of a block; raise `ConnectionClosed` after it. Yield what runs logins without this limit."""
        with anyio.move_on_after(self._timeout) as scope:

            async def ask_untimed(log_in: LogIn) -> bool:
                left, scope.deadline = scope.deadline - anyio.current_time(), math.inf
                try:
                    return await ask_user(log_in)
                finally:
                    scope.deadline = anyio.current_time() + left

            yield ask_untimed
        if scope.cancelled_caught:
            raise ConnectionClosed(f"{self.place} {failure} within {self._timeout:g} seconds")

    def decoder(self) -> EventDecoder:
        """Return a decoder for a stream of events."""
        return EventDecoder(self.limit, self._min_retry)

    async def post(self, content: bytes, headers: Mapping[str, str], ask_user: AskUser) -> None:
        """Post a message that is answered by a status only.

        A little of the body is read, to use the connection again or to report the reason of a refusal.

        Raises:
            Refused: The server refuses the message.
            ConnectionClosed: The server cannot be reached.
        """
        async with self.request("POST", headers, content, ask_user=ask_user, is_patient=False) as response:
            if not response.is_success:
                raise await self.refused(response)
            with anyio.move_on_after(_DRAIN_SECONDS):
                await read_body(response, _MAX_DRAINED)

    async def refused(self, response: httpx2.Response) -> Refused:
        """Return the error for a response that was not expected, with the text of its body."""
        body: bytes | Oversized = b""
        if not response.is_success:  # a success may be an endless stream
            with anyio.move_on_after(_DRAIN_SECONDS), suppress(httpx2.HTTPError, httpx2.StreamError):
                body = await read_body(response, _MAX_DRAINED)
        return Refused(response.status_code, self.refusal(response, body))

    def refusal(self, response: httpx2.Response, body: bytes | Oversized = b"") -> str:
        """Describe in one line a response that was not expected."""
        type_ = media_type(response)
        words = f"{self.place} answered {response.status_code} {response.reason_phrase}".strip()
        if response.next_request is not None:
            return f"{words}: it redirects to {shown(response.next_request.url)}"
        if "www-authenticate" in response.headers and response.status_code == 401 and self._authorizer is None:
            sends = any(map(_CREDENTIALS.search, self._headers)) or self.url.userinfo
            wants = "which wants a token: connect with auth=OAuth(), or pass an API key as auth=Bearer(key)"
            words += ", which refuses these credentials" if sends else f", {wants}"
        if response.is_success and type_:
            words += f" with {type_}"
        if isinstance(body, Oversized) or _READABLE.fullmatch(type_) is None:
            return words
        text = body[: _MAX_REASON * 8].decode("utf-8", "replace")
        text = " ".join((html.unescape(_MARKUP.sub(" ", text)) if type_ == "text/html" else text).split())
        sent = response.request.headers.items()
        credentials = [value.rpartition(" ")[2] for name, value in sent if _CREDENTIALS.search(name)]
        # shorter parameters, such as flags, occur in other texts by accident
        credentials += [one for one in (self.url.password, *self.url.params.values()) if len(one) > 7]
        is_harmless = self._is_harmless(text) and not any(value in text for value in filter(None, credentials))
        return f"{words}: {text[:_MAX_REASON]}" if text.isprintable() and text and is_harmless else words

    @contextmanager
    def hiding_secrets(self) -> Generator[Self]:
        """Keep credentials, queries and session ids out of the log of the HTTP client."""

        def is_harmless(record: logging.LogRecord) -> bool:
            text = record.getMessage()
            urls = [one for one in record.args or () if isinstance(one, httpx2.URL)]
            if any(one.query and one.origin == self.url.origin for one in urls):  # the server redirected the request
                return False
            return not any(name in text.lower() for name in _SECRET_HEADERS) and self._is_harmless(text)

        for name in _LOGGERS:
            logging.getLogger(name).addFilter(is_harmless)
        try:
            yield self
        finally:
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(is_harmless)

    def _is_harmless(self, text: str) -> bool:
        return not any(secret in text for secret in self._secrets)


class _Cookies(CookieJar):
    """Cookies of a server, such as those of a load balancer, up to the limits that RFC 6265 (6.1) names."""

    def set_cookie(self, cookie: Cookie) -> None:
        """Keep a cookie, unless it is too long or there are too many."""
        if len(cookie.name) + len(cookie.value or "") <= _MAX_COOKIE_BYTES:
            super().set_cookie(cookie)
            if len(self) > _MAX_COOKIES:
                self.clear(cookie.domain, cookie.path, cookie.name)


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
    """Open an endpoint; without a client of the caller, make a client that keeps `connections` connections."""
    authorizer = auth.authorizer(url) if auth is not None else None
    async with AsyncExitStack() as stack:
        if client is None:
            limits = httpx2.Limits(max_keepalive_connections=connections, keepalive_expiry=_IDLE_SECONDS)
            is_direct = authorizer is not None and _LOCAL.match(url) is not None  # a proxy would read the token
            try:
                opened = httpx2.AsyncClient(
                    verify=certificates(), limits=limits, trust_env=not is_direct, cookies=_Cookies()
                )
            except (ImportError, httpx2.InvalidURL, ValueError) as error:
                raise ConnectionClosed(f"the proxy of the environment cannot be used: {reason(error)}") from None
            client = await stack.enter_async_context(opened)
        endpoint = Endpoint(url, client, headers or {}, timeout, limit, min_retry, authorizer)
        yield stack.enter_context(endpoint.hiding_secrets())
