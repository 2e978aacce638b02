"""Introduce a user's server or client, and call its handlers, in both eras."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ..concurrency import in_thread
from ..logs import log
from ..model.json_types import is_object
from ..protocol import jsonrpc
from ..protocol.capabilities import declared, is_declared
from ..protocol.composition import added_to
from ..protocol.extension import Extension
from ..protocol.methods import Request, result_type
from ..protocol.revision import Dispatcher, Revision
from ..protocol.routing import Route, check_names


def introduction(target: Any, revision: Revision) -> Any:
    """Return how `target` introduces itself, an `Implementation`; by default it is named after this runtime."""
    info = getattr(target, "info", None)
    return info if info is not None else revision.types.Implementation(name="mcp-bindgen", version="0")


Handle: TypeAlias = Callable[[Any, Any], Awaitable[Any]]
"""Takes params and context of a message, and returns its result."""


def extensions_of(kind: type, dispatcher: Dispatcher) -> tuple[Extension, ...]:
    """Return the extensions of a class of servers or clients, which must go together; check the names of its handlers.

    Raises:
        TypeError: Two of them take the same, settings are of none of them, or a handler is not called as it should be.
    """
    if added_to(kind):
        dispatcher = dispatcher.extended(kind)
    if "adds" not in vars(kind):
        check_names(kind, dispatcher.revision.name, dispatcher.handlers)
    settings: Any = vars(kind).get("extension_settings")
    unknown = sorted(set(settings) - {one.id for one in dispatcher.extensions}) if is_object(settings) else []
    if unknown:
        raise TypeError(f"{kind.__name__}.extension_settings: {unknown[0]!r} is no extension of its bases")
    return dispatcher.extensions


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
    if dispatcher.extensions:
        return _negotiated(dispatcher, route, target, handler)
    return _shaped(route, handler)


def _shaped(route: Route, handler: Callable[..., Awaitable[Any]]) -> Handle:
    """Return a handler as a function of params and context, whose lists are not longer than they may be."""

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


def _negotiated(dispatcher: Dispatcher, route: Route, target: Any, handler: Callable[..., Awaitable[Any]]) -> Handle:
    """Return a handler that uses extensions only where the other side declares them, and in which theirs have a part.

    Raises (the handler):
        CapabilityMissing: The method, or what answers it, is of an extension that the other side does not declare.
    """
    method = route.method
    work = _shaped(route, handler)
    if dispatcher.role == "server":
        work = target.around(method, work)
    by_id = {one.id: one for one in dispatcher.extensions}
    brought = {result_type(kind): one for one in dispatcher.extensions for kind in one.answering(method.name)}
    theirs = "client" if dispatcher.role == "server" else "server"
    owner = by_id.get(method.extension or "") if method.declared_by in (theirs, "both") else None
    if owner is None and not brought:
        return work

    async def negotiated(params: Any, context: Any) -> Any:
        if owner is not None:
            context.require_extension(owner)
        answer = await work(params, context)
        kind = answer.get("resultType") if is_object(answer) else getattr(answer, "result_type", None)
        if kind in brought:
            context.require_extension(brought[kind])
        return answer

    return negotiated
