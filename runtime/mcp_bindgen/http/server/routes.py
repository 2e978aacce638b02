"""HTTP routes of servers beside their endpoint, on Starlette's router."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_bindgen.runtime.session.targets import WebRoute

from .access import HttpEndpoint, check
from .call import HttpCall, within
from .errors import ClientDisconnected
from .intake import Intake
from .limits import Budgets, HttpLimits

CALL = "mcp_bindgen.call"
"""Key of the `HttpCall` in the scope of a request."""


class Application(Protocol):
    """The application that has routes: see `AsgiApp`."""

    endpoint: HttpEndpoint
    intake: Intake
    limits: HttpLimits
    requests: Budgets

    async def authenticate(self, call: HttpCall) -> None:
        """Verify the token of a request."""


def _guarded(inner: ASGIApp, owner: Application, route: WebRoute) -> ASGIApp:
    """Return the application of a route: it checks the token of a request, and applies the limits of `owner`."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        call = scope[CALL]
        if not route.is_public:
            await owner.authenticate(call)
            asked = [(route.path, None)]
            check(call.identity, owner.endpoint.needed_scopes(None, asked).union(route.scopes), asked)
            scope["user"] = call.identity
        budget = owner.requests.of(call.principal)
        budget.take()
        try:
            body = [await owner.intake.whole(call)]
            scope["state"] = {**scope.get("state", {}), "lifespan": route.state()}

            async def received() -> Message:
                return {"type": "http.request", "body": body.pop()} if body else await receive()

            async def sent(message: Message) -> None:
                call.begun = True
                try:
                    await within(owner.limits.write_timeout, send(message))  # type: ignore[arg-type]
                except TimeoutError:
                    raise ClientDisconnected from None

            await inner(scope, received, sent)
        finally:
            budget.add(-1)

    return answer


def routed(owner: Application, stated: Iterable[WebRoute], taken: Collection[str], *, has_tokens: bool) -> list[Route]:
    """Return routes for a router of Starlette.

    Args:
        owner: The application.
        stated: The routes.
        taken: Paths that the application answers itself.
        has_tokens: True if tokens are verified.

    Raises:
        ValueError: A route would take the requests of one of these paths, or can get no requests because of an earlier
            route; its path is malformed; or it needs scopes although no tokens are verified.
    """
    found: list[Route] = []
    for one in stated:
        around = [Middleware(_guarded, owner, one), Middleware(ExceptionMiddleware)]
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
