"""Bounded HTTP requests: certificates, redirects left to the caller, limited bodies, and errors without secrets.

`endpoint` sends messages of the protocol this way, and authorization fetches its documents this way.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

import anyio
import httpx2

from mcp_bindgen.runtime.protocol.transport import Oversized

ENCODINGS = ("gzip", "deflate")
"""Content encodings that are accepted. Each packs at most about 1,000 bytes into one."""

ACCEPT_ENCODING = {"accept-encoding": ", ".join(ENCODINGS)}

_HEAD = 256  # bytes that are kept of a body that is too large
_PART = 64 * 1024  # bytes that are decoded between two turns of the event loop
_MAX_REASON = 200  # characters


@cache
def certificates() -> ssl.SSLContext:
    """Return the trusted certificates of this machine, which are loaded once."""
    return httpx2.create_ssl_context()


def shown(url: str | httpx2.URL) -> str:
    """Return a URL for messages and logs, without credentials, query and fragment."""
    try:
        parsed = httpx2.URL(url)
        return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}{parsed.path}"
    except (httpx2.InvalidURL, ValueError):
        return "a text that is not a URL"


def reason(error: Exception) -> str:
    """Return the message of an error in one line, or the name of its class; it shows no header of our request."""
    if isinstance(error, httpx2.LocalProtocolError):
        return "a header has characters that are not allowed, such as a line end"
    return " ".join(str(error).split())[:_MAX_REASON] or type(error).__name__


def media_type(response: httpx2.Response) -> str:
    """Return the media type of a response, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


@asynccontextmanager
async def send(client: httpx2.AsyncClient, request: httpx2.Request) -> AsyncGenerator[httpx2.Response]:
    """Send a request, give the response with its body unread, and close it in the end. Redirects are not followed.

    Raises:
        httpx2.HTTPError: The server cannot be reached, or the connection broke off.
    """
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        yield response
    finally:
        await response.aclose()


def content_encoding(response: httpx2.Response) -> str | None:
    """Return the encoding of a body, None if it is not packed.

    Raises:
        httpx2.DecodingError: The body is packed twice, or in an encoding that was not accepted.
    """
    names = [name.strip().lower() for name in response.headers.get_list("content-encoding", split_commas=True)]
    packed = [name for name in names if name not in ("", "identity")]
    if len(packed) > 1 or any(name not in ENCODINGS for name in packed):
        raise httpx2.DecodingError(f"the server answered in an encoding other than {' or '.join(ENCODINGS)}")
    return packed[0] if packed else None


async def read_body(response: httpx2.Response, limit: int) -> bytes | Oversized:
    """Read a body of at most `limit` bytes, unpacked; a larger one is not unpacked beyond the limit.

    Raises:
        httpx2.HTTPError: The connection broke off, or the body cannot be unpacked.
    """
    if response.is_stream_consumed:  # a hook of the client has read it
        return response.content if len(response.content) <= limit else Oversized(limit, response.content[:_HEAD])
    unpacker = None if content_encoding(response) is None else zlib.decompressobj(32 + zlib.MAX_WBITS)
    body = bytearray()
    async for part in response.aiter_raw():
        try:
            body += part if unpacker is None else unpacker.decompress(part, limit + 1 - len(body))
        except zlib.error as error:
            raise httpx2.DecodingError(f"the response cannot be unpacked: {error}") from None
        if len(body) > limit:
            return Oversized(limit, bytes(body[:_HEAD]))
    return bytes(body)


async def iterate_body(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield an unpacked body as it arrives, in parts between which the event loop runs other tasks."""
    async for chunk in response.aiter_bytes():
        yield chunk[:_PART]
        for start in range(_PART, len(chunk), _PART):
            await anyio.sleep(0)
            yield chunk[start : start + _PART]
