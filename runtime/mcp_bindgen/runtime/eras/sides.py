"""Introduce a user's server or client, and call its handlers, in both eras."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..core import jsonrpc
from ..core.capabilities import declared, is_declared
from ..core.logs import log
from ..core.methods import Request
from ..core.revision import Dispatcher, Revision
from ..core.routing import Route
from ..tasks import in_thread


def introduction(target: Any, revision: Revision) -> Any:
    """Return how `target` introduces itself, an `Implementation`; by default it is named after this runtime."""
    info = getattr(target, "info", None)
    return info if info is not None else revision.types.Implementation(name="mcp-bindgen", version="0")


def extensions(session: Any) -> Mapping[str, Any]:
    """Return the extensions of the protocol that the transport of a client's session uses."""
    found: Mapping[str, Any] = getattr(session.transport, "extensions", {})
    return found


async def checked_roots(answer: Awaitable[Any]) -> Any:
    """Return what a client answers, unless it names a root that is no file (MCP, "Roots").

    Raises:
        ValueError: The URI of a root does not begin with `file://`.
    """
    result = await answer
    for root in jsonrpc.plain(result).get("roots") or ():
        if not root["uri"].startswith("file://"):
            raise ValueError(f"the URI of a root must begin with file://: {root['uri']!r}")
    return result


def empty_list(dispatcher: Dispatcher, route: Route, server: Any) -> Callable[[], Any] | None:
    """Return what makes the empty list of a feature that a server declares without listing it; else `None`."""
    method = route.method
    capability = method.capabilities.get("client")
    if not isinstance(method, Request) or method.items is None or capability is None:
        return None
    if not is_declared(declared(server, dispatcher), *capability[1:]):
        return None
    return lambda: method.result(**{str(method.items): []})


def bound(dispatcher: Dispatcher, route: Route, target: object) -> Callable[..., Awaitable[Any]]:
    """Return the handler of `target` as a coroutine function of params and context; one that blocks gets a thread.

    Raises:
        MethodNotFound: `target` does not handle the method.
    """
    own = dispatcher.handler(route, target)
    handler: Callable[..., Awaitable[Any]] = own if inspect.iscoroutinefunction(own) else in_thread(own)

    truncation: Any = getattr(route.method, "truncation", None)

    def without_params(params: Any, context: Any) -> Awaitable[Any]:
        return handler(context)

    async def truncated(params: Any, context: Any) -> Any:
        result = await handler(params, context)
        excess = truncation.excess(result)
        if not excess:
            return result
        log.warning("%s: %d values beyond the first %d are not sent", route.method.name, excess, truncation.most)
        return truncation.applied(result)

    if truncation is not None:
        return truncated
    return handler if route.method.params is not None else without_params
