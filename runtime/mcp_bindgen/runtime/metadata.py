"""What every request of a stateless revision says of itself in its `_meta` (MCP 2026-07-28, "Overview": _meta)."""

from __future__ import annotations

import re
from typing import Any

from .guards import is_object

VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

_VERSION = re.compile(rb'"io\.modelcontextprotocol/protocolVersion"\s*:\s*"([^"\\]{1,64})"')


def peek_version(data: bytes) -> str | None:
    """The revision that a message seems to be in; it may be wrong, and whoever validates the message will notice."""
    found = _VERSION.search(data)
    return found[1].decode("utf-8", "replace") if found else None


def stated_version(message: dict[str, Any]) -> Any:
    """What a message says of its revision, of whatever type; `None` when it does not speak of it."""
    params = message.get("params")
    meta = params.get("_meta") if is_object(params) else None
    return meta.get(VERSION) if is_object(meta) else None


def is_in(params: Any, revision: str) -> bool:
    """Whether typed params say that their request is in `revision`."""
    return getattr(getattr(params, "meta", None), "protocol_version", None) == revision
