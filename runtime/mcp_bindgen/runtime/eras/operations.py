"""Tell what a message asks for, in either era: whose scopes its token needs (MCP, "Authorization")."""

from __future__ import annotations

from typing import Any

from ..core.access import Operation, called_on
from ..core.json_types import is_array, is_object
from ..core.methods import Method
from .lifecycle import COMPLETE, LISTEN, SUBSCRIBE


def operations(method: Method, params: Any) -> list[Operation]:
    """Return what a message asks for, given its typed params; see `operations_named`.

    What a method of an extension is called on is what its headers name.
    """
    named_by: str | None = getattr(method, "named_by", None)
    if method.extension is None or named_by is None:
        return operations_named(method.name, params)
    return [(method.name, getattr(params, named_by))]


def operations_named(method: str, params: Any) -> list[Operation]:
    """Return what a message asks for: it needs the scopes of all of these.

    Whoever listens subscribes to each resource that the request names; what is completed is what its reference names.

    Args:
        method: Its method.
        params: Its params, typed or in wire form.
    """
    if method == COMPLETE:
        return called_on(method, _member(params, "ref"))
    if method == LISTEN:
        followed = _member(_member(params, "notifications"), "resourceSubscriptions", "resource_subscriptions")
        uris = [uri for uri in followed if isinstance(uri, str)] if is_array(followed) else []
        return [(method, None), *((SUBSCRIBE, uri) for uri in dict.fromkeys(uris))]
    return called_on(method, params)


def _member(value: Any, name: str, attribute: str | None = None) -> Any:
    return value.get(name) if is_object(value) else getattr(value, attribute or name, None)
