"""Read what every request of a stateless revision says of itself in its `_meta` (MCP 2026-07-28, "Overview": _meta)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...model.json_types import is_object
from ...protocol.negotiated import Negotiated
from ...protocol.revision import Dispatcher, Revision
from ...protocol.transitions import Role

ROUND = ("input_responses", "request_state")
"""The fields of params that carry the answers and the state of a request from one of its rounds to the next."""

Peek = Callable[[bytes], "re.Match[bytes] | None"]


@dataclass(frozen=True, slots=True)
class ParamsWithMeta:
    """The params of a method of one's own, which have no place for the `_meta` of a stateless request.

    Attributes:
        params: The typed params.
        meta: The typed `_meta`.
    """

    params: Any
    meta: Any


def separated(params: Any) -> tuple[Any, Any]:
    """Return the params of a stateless request as its handler wants them, and its typed `_meta`."""
    return (params.params if isinstance(params, ParamsWithMeta) else params), params.meta


def version_key(revision: Revision) -> str:
    """Return the key under which requests name their revision; a draft may have none, and nobody uses this one."""
    return revision.meta_keys.get("protocol_version", "protocol_version of a draft without one")


@cache
def _version(revision: Revision) -> tuple[bytes, Peek]:
    """Return the key under which requests name their revision, and what finds it in their bytes."""
    key = version_key(revision).encode()
    return key, re.compile(rb'"%b"\s*:\s*"([^"\\]{1,64})"' % re.escape(key)).search


def peek_version(revision: Revision, data: bytes) -> str | None:
    """Guess the revision that a message is in; a wrong guess is found when the message is validated."""
    found = _version(revision)[1](data)
    return found[1].decode("utf-8", "replace") if found else None


def may_state_version(revision: Revision, data: bytes) -> bool:
    """Tell whether a message could name its revision; if not, nobody needs to parse it to find out."""
    return _version(revision)[0] in data or b"\\u" in data or b"\\/" in data  # escapes can spell any name


def stated_version(revision: Revision, message: object) -> Any:
    """Return what a parsed message says of its revision, of whatever type; `None` when it says nothing."""
    params = message.get("params") if is_object(message) else None
    meta = params.get("_meta") if is_object(params) else None
    return meta.get(version_key(revision)) if is_object(meta) else None


class RequestNegotiated(Negotiated):
    """The metadata of one request: what it may count on, as it says itself in its `_meta`.

    Args:
        dispatcher: What the server takes in the revision of the request.
        offers: What the server declares.
        meta: The request's `_meta`, typed.
    """

    logs_by_default = False

    def __init__(self, dispatcher: Dispatcher, offers: dict[str, Any], meta: Any) -> None:
        self.dispatcher = dispatcher
        self.peer_info = getattr(meta, "client_info", None)
        self.log_level = getattr(meta, "log_level", None)  # not where logging is an extension
        self._offers = offers
        self._meta = meta

    @property
    def declared(self) -> dict[Role, Any]:
        """Side -> its capabilities, in wire form."""
        return {"client": self._meta.client_capabilities.model_dump(), "server": self._offers}
