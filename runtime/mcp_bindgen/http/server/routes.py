"""HTTP routes of servers beside their endpoint, on Starlette's router."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Match, Route
from starlette.types import ASGIApp

from mcp_bindgen.runtime.session.targets import WebRoute

Guard: TypeAlias = Callable[[ASGIApp, WebRoute], ASGIApp]
"""Returns the application of a route with the checks and limits of the endpoint around it."""


def routed(guard: Guard, stated: Iterable[WebRoute], taken: Collection[str], *, has_tokens: bool) -> list[Route]:
    """Return routes for a router of Starlette.

    Args:
        guard: Puts the checks and limits of the endpoint around a route.
        stated: The routes.
        taken: Paths that the application answers itself.
        has_tokens: True if tokens are verified.

    Raises:
        ValueError: A route would take the requests of one of these paths, or can get no requests because of an earlier
            route; its path is malformed; or it needs scopes although no tokens are verified.
    """
    found: list[Route] = []
    for one in stated:
        around = [Middleware(guard, one), Middleware(ExceptionMiddleware)]
        try:
            route = Route(one.path, one.function, methods=[*one.methods], middleware=around)
        except (AssertionError, ValueError) as error:
            raise ValueError(f"the route {one.path}: {error}; write paths as Starlette does") from None
        if one.scopes and not has_tokens:
            problem = "needs scopes, and tokens are not verified: pass auth=ResourceServer(...)"
            raise ValueError(f"the route {one.path} {problem}")
        for path in taken:
            if _match(route, path) is not Match.NONE:
                raise ValueError(f"the route {one.path} would take the requests of {path}; choose another path")
        for earlier in found:
            if any(_match(earlier, one.path, method) is Match.FULL for method in one.methods):
                problem = f"gets no requests: {earlier.path} takes them; define it before, or choose another path"
                raise ValueError(f"the route {one.path} {problem}")
        found.append(route)
    return found


def _match(route: Route, path: str, method: str = "GET") -> Match:
    return route.matches({"type": "http", "path": path, "method": method.upper()})[0]
