"""What every request of a stateless revision says of itself in its `_meta` (MCP 2026-07-28, "Overview": _meta)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...core.json_types import is_object

VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

_KEY = VERSION.encode()
_VERSION = re.compile(rb'"io\.modelcontextprotocol/protocolVersion"\s*:\s*"([^"\\]{1,64})"')


@dataclass(frozen=True, slots=True)
class Apart:
    """The params of a method of one's own, which have no place for the `_meta` of a stateless request.

    Attributes:
        params: The typed params.
        meta: The typed `_meta`.
    """

    params: Any
    meta: Any


def apart(params: Any) -> tuple[Any, Any]:
    """The params of a stateless request as its handler wants them, and its typed `_meta`."""
    return (params.params if isinstance(params, Apart) else params), params.meta


def peek_version(data: bytes) -> str | None:
    """The revision that a message seems to be in; it may be wrong, and whoever validates the message will notice."""
    found = _VERSION.search(data)
    return found[1].decode("utf-8", "replace") if found else None


def may_state_version(data: bytes) -> bool:
    """Whether a message could say something of its revision; if not, nobody needs to parse it to find out."""
    return _KEY in data or b"\\u" in data or b"\\/" in data  # escapes can spell any name


def stated_version(message: dict[str, Any]) -> Any:
    """What a message says of its revision, of whatever type; `None` when it does not speak of it."""
    params = message.get("params")
    meta = params.get("_meta") if is_object(params) else None
    return meta.get(VERSION) if is_object(meta) else None


def is_in(params: Any, revision: str) -> bool:
    """Whether typed params say that their request is in `revision`."""
    return getattr(getattr(params, "meta", None), "protocol_version", None) == revision
