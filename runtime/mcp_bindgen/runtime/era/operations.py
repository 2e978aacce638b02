"""Tell what a message asks for, in either era: whose scopes its token needs (MCP, "Authorization")."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..model.json_types import is_object
from ..protocol.access import Operation, operation_targets
from ..protocol.errors import INVALID_PARAMS, ProtocolError
from ..protocol.methods import Method
from .lifecycle import COMPLETE, LISTEN, SUBSCRIBE

MAX_FOLLOWED_URIS = 1000
"""Resources that a client follows with one session or one subscription."""

MAX_FOLLOWED_BYTES = 256 * 1024
"""Bytes of their URIs."""


def operations(method: Method, params: Any) -> list[Operation]:
    """Return what a message asks for, given its typed params; see `operations_named`.

    A method of an extension is called on the name in its headers. A request that listens asks to subscribe to
    each resource that its filter names.

    Raises:
        ProtocolError: A filter names too many resources.
    """
    if method.name == LISTEN:
        uris = followed_by(params.notifications)
        check_followed(uris)
        subscribed = [one for uri in dict.fromkeys(uris) for one in operation_targets(SUBSCRIBE, {"uri": uri})]
        return [(method.name, None), *subscribed]
    named_by: str | None = getattr(method, "named_by", None)
    if method.extension is None or named_by is None:
        return operations_named(method.name, params)
    return [(method.name, getattr(params, named_by))]


def operations_named(method: str, params: Any) -> list[Operation]:
    """Return what a message asks for: it needs the scopes of all of these.

    A completion asks for the entry that its reference names.

    Args:
        method: Its method.
        params: Its params, typed or in wire form.
    """
    if method == COMPLETE:
        return operation_targets(method, params.get("ref") if is_object(params) else getattr(params, "ref", None))
    return operation_targets(method, params)


def followed_by(wanted: Any) -> list[str]:
    """Return the URIs of the resources that a typed filter names."""
    return getattr(wanted, "resource_subscriptions", None) or []


def check_followed(uris: Collection[str]) -> None:
    """Check how many resources a client follows, with one session or one subscription.

    Raises:
        ProtocolError: There are too many, or their URIs are too long (-32602).
    """
    if len(uris) > MAX_FOLLOWED_URIS:
        found = f"{len(uris)} resources"
    elif sum(len(uri.encode("utf-8", "surrogatepass")) for uri in uris) > MAX_FOLLOWED_BYTES:
        found = f"URIs of more than {MAX_FOLLOWED_BYTES} bytes"
    else:
        return
    advice = f"subscribe to at most {MAX_FOLLOWED_URIS} resources, with URIs of at most {MAX_FOLLOWED_BYTES} bytes"
    raise ProtocolError(INVALID_PARAMS, f"too many subscriptions: {found}; {advice}")
