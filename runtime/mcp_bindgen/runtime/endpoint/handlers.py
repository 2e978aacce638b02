"""What users' objects have to say to a message: finding the handler, and calling it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ..core.capabilities import declare, merge
from ..core.jsonrpc import RequestId
from ..core.revision import Vocabulary, module
from ..core.routing import Route
from .caller import Link
from .coroutines import in_thread

Handler: TypeAlias = Callable[[Link, RequestId | None, Any], Any]
"""Takes a message: the link that it came by, the id of a request, and its params. Gives the result, or an awaitable."""


def is_handled(route: Route[Any], target: object) -> bool:
    """Whether `target` overrides the stub of a route, or brought the route itself."""
    return hasattr(route.handler, "__mcp_method__") or route.handled_by(target)


def bound(route: Route[Any], target: object) -> Callable[..., Any]:
    """The handler of `route`, bound to `target`, as a function of params and context; one that blocks gets a thread."""
    handler = getattr(target, route.handler.__name__)
    handler = handler if inspect.iscoroutinefunction(handler) else in_thread(handler)

    def without_params(params: Any, context: Any) -> Any:
        return handler(context)

    return handler if route.method.params is not None else without_params


def declared(target: Any, words: Vocabulary) -> dict[str, Any]:
    """The capabilities that `target` offers, in wire form."""
    routes: Iterable[Route[Any]] = (*words.routes.values(), *words.questions.values())
    offered = [route.method.name for route in routes if is_handled(route, target)]
    more: Mapping[str, Any] = target.extra_capabilities()
    return merge(declare(words.role, words, offered), more)


def introduction(target: Any, words: Vocabulary) -> Any:
    """How `target` introduces itself, an `Implementation`; who says nothing of itself is named after us."""
    info = getattr(target, "info", None)
    return info if info is not None else module(words.bindings, "types").Implementation(name="mcp-bindgen", version="0")
