"""Where a client sends its requests: one URL, and how things that go wrong there are put into words."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager

import httpx2

from ...core.errors import ConnectionClosed, Refused
from ...core.transport import Oversized

JSON = "application/json"
EVENTS = "text/event-stream"
SESSION_ID = "mcp-session-id"

_REDIRECTS = 3
_HEAD = 256
_SAID = 200  # characters of what a server says about a refusal
_LOGGERS = ("httpx2", "httpcore2.http11", "httpcore2.http2")


class Endpoint:
    """A URL that speaks Streamable HTTP.

    Args:
        url: The URL.
        client: Sends the requests.
        headers: Sent with each of them.
        timeout: Seconds to wait for a connection, and for the server to take what is sent.
        limit: The largest body that is read, in bytes.

    Attributes:
        place: The URL as it may be shown: without credentials and query.

    Raises:
        ConnectionClosed: The URL or a header is none.
    """

    def __init__(
        self, url: str, client: httpx2.AsyncClient, headers: Mapping[str, str], timeout: float, limit: int
    ) -> None:
        try:
            self.url = httpx2.URL(url)
            self._headers = {name.lower(): value for name, value in httpx2.Headers(headers).items()}
        except (httpx2.InvalidURL, ValueError) as error:
            raise ConnectionClosed(f"there is nothing to connect to: {reason(error)}") from None
        self.place = place(self.url)
        if self.url.scheme not in ("http", "https") or not self.url.host:
            raise ConnectionClosed(f"{self.place} is not the URL of a server")
        self.limit = limit
        self._client = client
        self._timeout = httpx2.Timeout(timeout)
        self._patience = httpx2.Timeout(timeout, read=None)
        self._secrets = {part.decode("ascii") for part in (self.url.userinfo, self.url.query) if part}

    @asynccontextmanager
    async def request(
        self, method: str, headers: Mapping[str, str], content: bytes | None = None, *, patient: bool = False
    ) -> AsyncGenerator[httpx2.Response]:
        """Sends a request and gives the response, of which only the head was read; in the end it is closed.

        Redirects are followed on the same origin if they change nothing but the URL.

        Args:
            method: The method of HTTP.
            headers: Sent beside those of the endpoint, names in lower case.
            content: The body.
            patient: Whether the answer may take as long as it wants.

        Raises:
            Refused: It redirects without end.
            ConnectionClosed: The server cannot be reached, or the connection broke off.
        """
        try:
            request = self._client.build_request(
                method,
                self.url,
                content=content,
                headers={**self._headers, **headers},
                timeout=self._patience if patient else self._timeout,
            )
            response = await self._send(request)
            try:
                yield response
            finally:
                await response.aclose()
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise ConnectionClosed(f"no answer from {self.place}: {reason(error)}") from None

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        for _ in range(_REDIRECTS):
            response = await self._client.send(request, stream=True, follow_redirects=False)
            further = response.next_request
            if further is None or further.url.origin != self.url.origin or further.method != request.method:
                return response
            await response.aclose()
            request = further
        raise Refused(307, f"{self.place} redirects without end")

    async def read(self, response: httpx2.Response) -> bytes | Oversized:
        """The body of a response."""
        parts: list[bytes] = []
        size = 0
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > self.limit:
                return Oversized(self.limit, b"".join(part[:_HEAD] for part in parts[:_HEAD])[:_HEAD])
        return b"".join(parts)

    def refusal(self, response: httpx2.Response, body: bytes | Oversized = b"") -> str:
        """What a response says that is not what was asked for, in one line."""
        words = f"{self.place} answered {status(response)}"
        if response.next_request is not None:
            return f"{words}: it redirects to {place(response.next_request.url)}"
        if isinstance(body, Oversized) or kind(response) not in (JSON, "text/plain"):
            return words
        said = " ".join(body[: _SAID * 8].decode("utf-8", "replace").split())[:_SAID]
        return f"{words}: {said}" if said.isprintable() and said and self._is_harmless(said) else words

    @contextmanager
    def discreet(self) -> Generator[None]:
        """While it lasts, the log of the HTTP client shows no credentials, queries and sessions."""

        def harmless(record: logging.LogRecord) -> bool:
            text = record.getMessage()
            return SESSION_ID not in text.lower() and self._is_harmless(text)

        for name in _LOGGERS:
            logging.getLogger(name).addFilter(harmless)
        try:
            yield
        finally:
            for name in _LOGGERS:
                logging.getLogger(name).removeFilter(harmless)

    def _is_harmless(self, text: str) -> bool:
        return not any(secret in text for secret in self._secrets)


def place(url: httpx2.URL) -> str:
    """A URL without credentials and query."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"


def kind(response: httpx2.Response) -> str:
    """The media type of a response, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def status(response: httpx2.Response) -> str:
    """The status of a response, in figures and words."""
    return f"{response.status_code} {response.reason_phrase}".strip()


def reason(error: Exception) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__
