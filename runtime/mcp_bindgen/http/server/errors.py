"""Errors that become HTTP responses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from mcp_bindgen.runtime.protocol import observation
from mcp_bindgen.runtime.protocol.errors import (
    INVALID_REQUEST,
    ProtocolError,
    ServerUnavailable,
    StoreUnavailable,
    TooManyRequests,
)

NOT_STORED = "sessions cannot be stored or read at the moment"
STOPPING = "the server is stopping"
RETRY_SOON = (b"retry-after", b"1")
"""Header of refusals that may be over in a moment."""


RawHeaders: TypeAlias = Iterable[tuple[bytes, bytes]]
"""HTTP headers as ASGI has them, names in lower case."""


class StoreFull(StoreUnavailable):
    """A principal has reached its limit in a store; the message names the limit."""


class ClientDisconnected(Exception):
    """The client has disconnected."""


class HttpError(Exception):
    """Refusal of a request; it becomes the response.

    Args:
        status: The HTTP status.
        reason: The body: text, or the error of a JSON-RPC response without an id.
        headers: Headers of the response.
    """

    def __init__(self, status: int, reason: str | ProtocolError, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(str(reason))
        self.status: int = status
        self.reason: str | ProtocolError = reason
        self.headers: tuple[tuple[bytes, bytes], ...] = headers


def refused(status: int, reason: str) -> HttpError:
    """Return the error for a malformed request."""
    return HttpError(status, ProtocolError(INVALID_REQUEST, reason))


def unavailable(reason: str) -> HttpError:
    """Return the error for a server that cannot serve any client at the moment."""
    error = ServerUnavailable(reason)
    return HttpError(503, error, (b"retry-after", b"%d" % error.retry_after))


def too_many(reason: str) -> HttpError:
    """Return the error for a request above a limit: it was not begun, and the client may try again."""
    observation.refused(reason)
    return HttpError(429, TooManyRequests(reason), RETRY_SOON)


def not_stored(error: StoreUnavailable) -> HttpError:
    """Return the error for a store that is full or unavailable."""
    return too_many(str(error)) if isinstance(error, StoreFull) else unavailable(NOT_STORED)
