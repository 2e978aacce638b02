"""Messages of the stateless era, in which each request names its revision and its sender.

MCP 2026-07-28, "Overview": Statelessness and `_meta`, "Discovery", "Multi Round-Trip Requests".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from ..model.json_types import is_object
from .envelope import Envelope
from .errors import ProtocolError
from .methods import DISCOVER
from .revision import Dispatcher, Dispatchers, Revision
from .routing import Route

UNSUPPORTED = "UNSUPPORTED_PROTOCOL_VERSION"


ROUND = ("input_responses", "request_state")
"""The fields of params that carry the answers and the state of a request from one of its rounds to the next."""


def may_state_version(revision: Revision, data: bytes) -> bool:
    """Return whether a message could name its revision; if not, it need not be parsed to find out."""
    return revision.quoted_version_key in data or b"\\u" in data or b"\\/" in data  # escapes can spell any name


def stated_version(revision: Revision, message: object) -> Any:
    """Return the value with which a parsed message names its revision, of any type; `None` if it is absent."""
    params = message.get("params") if is_object(message) else None
    meta = params.get("_meta") if is_object(params) else None
    return meta.get(revision.version_key) if is_object(meta) else None


def select_revision(envelope: Envelope, ours: Dispatchers, current: Callable[[], Dispatcher]) -> Dispatcher:
    """Return the revision that a message names; without a name the connection's, if it has the method.

    Args:
        envelope: The message.
        ours: The revisions that are served.
        current: Returns the dispatcher of the connection.

    Raises:
        ProtocolError: It names a revision that is not served; the data of the error has those that are.
    """
    best = ours.best(is_stateless=True)
    if best is None:
        return current()
    newest = ours[best]
    named = stated_version(newest.revision, envelope.message)
    if named is None:
        is_foreign = envelope.method in newest.routes and envelope.method not in current().routes
        return newest if is_foreign else current()
    if not isinstance(named, str):
        return newest
    found = ours.get(named)
    if found is None or not found.revision.era.is_stateless:
        data = {"supported": ours.supported, "requested": named}
        raise ProtocolError(newest.revision.errors[UNSUPPORTED], f"Unsupported protocol version: {named}", data)
    return found


def meta_beside(dispatcher: Dispatcher, envelope: Envelope, params: Any) -> Any:
    """Return the typed `_meta` of a request whose params have no place for it.

    Raises:
        InvalidParams: It is not valid.
    """
    wire = envelope.params
    known = {"_meta": wire["_meta"]} if is_object(wire) and "_meta" in wire else {}
    plain = dispatcher.routes[DISCOVER].method  # its params are nothing else
    return Route(replace(plain, name=envelope.method), "").read(to_json(known)).meta
