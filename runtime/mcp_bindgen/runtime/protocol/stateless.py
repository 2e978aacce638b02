"""Messages of the stateless era, in which each request names its revision and its sender.

MCP 2026-07-28, "Overview": Statelessness and `_meta`, "Discovery", "Multi Round-Trip Requests".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic_core import to_json

from ..model.json_types import is_object
from .envelope import Envelope
from .errors import ProtocolError
from .methods import DISCOVER, INITIALIZE
from .revision import Dispatcher, Revision
from .routing import Route

UNSUPPORTED = "UNSUPPORTED_PROTOCOL_VERSION"


ROUND = ("input_responses", "request_state")
"""The fields of params that carry the answers and the state of a request from one of its rounds to the next."""

Peek = Callable[[bytes], "re.Match[bytes] | None"]


def version_key(revision: Revision) -> str:
    """Return the key under which requests name their revision; a draft may have none."""
    return revision.meta_keys.get("protocol_version", "protocol_version of a draft without one")


@cache
def _version(revision: Revision) -> tuple[bytes, Peek]:
    """Return the key under which requests name their revision, and its search in bytes."""
    key = version_key(revision).encode()
    return key, re.compile(rb'"%b"\s*:\s*"([^"\\]{1,64})"' % re.escape(key)).search


def may_state_version(revision: Revision, data: bytes) -> bool:
    """Return whether a message could name its revision; if not, it need not be parsed to find out."""
    return _version(revision)[0] in data or b"\\u" in data or b"\\/" in data  # escapes can spell any name


def stated_version(revision: Revision, message: object) -> Any:
    """Return the value with which a parsed message names its revision, of any type; `None` if it is absent."""
    params = message.get("params") if is_object(message) else None
    meta = params.get("_meta") if is_object(params) else None
    return meta.get(version_key(revision)) if is_object(meta) else None


def peek_revision(data: bytes, ours: Mapping[str, Dispatcher], current: Dispatcher) -> Dispatcher | None:
    """Guess the revision that a message names; without a name it is the connection's.

    Args:
        data: The message.
        ours: The stateless revisions that are served, by name.
        current: The revision of the connection.

    Returns:
        The guess; `None` where only the whole text can tell.
    """
    revision = next(iter(ours.values())).revision
    named = _version(revision)[1](data)
    if named is not None:
        return ours.get(named[1].decode("utf-8", "replace"))
    return None if may_state_version(revision, data) else current


def select_revision(
    envelope: Envelope, ours: Mapping[str, Dispatcher], current: Dispatcher, supported: Sequence[str]
) -> Dispatcher:
    """Return the revision that a message names; without a name the connection's, if it has the method.

    Args:
        envelope: The message.
        ours: The stateless revisions that are served, by name.
        current: The revision of the connection.
        supported: Names of all revisions that are served, for errors.

    Raises:
        ProtocolError: It names a revision that is not served; the data of the error has those that are.
    """
    *_, newest = ours.values()
    named = stated_version(newest.revision, envelope.message)
    if isinstance(named, str):
        if named not in ours:
            data = {"supported": list(supported), "requested": named}
            raise ProtocolError(newest.revision.errors[UNSUPPORTED], f"Unsupported protocol version: {named}", data)
        return ours[named]
    if named is not None:
        return newest
    if envelope.method == INITIALIZE or envelope.method in current.routes:
        return current
    return newest if envelope.method in newest.routes else current


def names_revision(dispatcher: Dispatcher, params: Any) -> bool:
    """Return whether the typed params of a request name the revision, as all that a client sends must."""
    named = getattr(getattr(params, "meta", None), "protocol_version", None)
    return dispatcher.role == "server" and named == dispatcher.revision.name


def meta_beside(dispatcher: Dispatcher, envelope: Envelope, params: Any) -> Any:
    """Return the typed `_meta` of a request whose params have no place for it; `None` where the params hold it.

    Raises:
        InvalidParams: It is not valid.
    """
    if names_revision(dispatcher, params):
        return None
    wire = envelope.params
    known = {"_meta": wire["_meta"]} if is_object(wire) and "_meta" in wire else {}
    plain = dispatcher.routes[DISCOVER].method  # its params are nothing else
    return Route(replace(plain, name=envelope.method), "").read(to_json(known)).meta
