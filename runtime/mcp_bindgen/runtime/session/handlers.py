"""Handlers: bind the methods of a user's server or client to routes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ..logs import log
from ..protocol import jsonrpc
from ..protocol.capabilities import Side, declared, is_declared
from ..protocol.errors import MethodNotFound
from ..protocol.methods import OTHER_ROLE, Method, Request, result_type
from ..protocol.request_scope import Handle
from ..protocol.revision import Dispatcher, Revision
from ..protocol.routing import Route


def introduction(target: Side, revision: Revision) -> Any:
    """Return the `Implementation` of a side; the default names this runtime."""
    return target.info if target.info is not None else revision.types.Implementation(name="mcp-bindgen", version="0")


def empty_list(dispatcher: Dispatcher, route: Route, server: Side) -> Handle:
    """Return a handler that answers with an empty list, for a feature that a server declares without a list handler.

    Raises:
        MethodNotFound: The method lists nothing, or the server does not declare the feature.
    """
    method = route.method
    capability = method.capabilities.get("client")
    if not isinstance(method, Request) or method.items is None or capability is None:
        raise MethodNotFound(method.name)
    if not is_declared(declared(server, dispatcher), *capability[1:]):
        raise MethodNotFound(method.name)
    result, items = method.result, method.items

    async def list_nothing(params: object, context: object) -> Any:
        return result(**{items: []})

    return list_nothing


def bind_handler(dispatcher: Dispatcher, route: Route, target: object) -> Handle:
    """Return the handler of `target` as a coroutine function of params and context; a `def` runs in a thread.

    Raises:
        MethodNotFound: `target` does not handle the method.
    """
    own = dispatcher.handler(route, target)
    if not inspect.iscoroutinefunction(own):
        from ..threads import in_thread  # many servers have no handlers that block

        own = in_thread(own)
    work = _shaped(route.method, own)
    return _negotiated(dispatcher, route.method, target, work) if dispatcher.extensions else work


def _shaped(method: Method, handler: Callable[..., Awaitable[Any]]) -> Handle:
    """Return a handler as a function of params and context that truncates its list, if the list has a limit."""
    truncation = method.truncation if isinstance(method, Request) else None
    if truncation is None:
        return handler if method.params is not None else lambda params, context: handler(context)

    async def truncated(params: object, context: object) -> Any:
        result = await handler(params, context)
        excess = truncation.excess(result)
        if not excess:
            return result
        log.warning("%s: %d values beyond the first %d are not sent", method.name, excess, truncation.max_items)
        return truncation.applied(result)

    return truncated


def _negotiated(dispatcher: Dispatcher, method: Method, target: Any, work: Handle) -> Handle:
    """Return a handler that uses extensions only if the peer declares them.

    Raises (the handler):
        CapabilityMissing: The method or its result belongs to an extension that the peer does not declare.
    """
    if dispatcher.role == "server":
        work = target.around(method, work)
    by_id = {one.id: one for one in dispatcher.extensions}
    brought = {result_type(kind): one for one in dispatcher.extensions for kind in one.answering(method.name)}
    theirs = OTHER_ROLE[dispatcher.role]
    owner = by_id.get(method.extension or "") if method.declared_by in (theirs, "both") else None
    if owner is None and not brought:
        return work

    async def negotiated(params: Any, context: Any) -> Any:
        if owner is not None:
            context.require_extension(owner)
        answer = await work(params, context)
        extension = brought.get(jsonrpc.result_type_of(answer)) if brought else None
        if extension is not None:
            context.require_extension(extension)
        return answer

    return negotiated
