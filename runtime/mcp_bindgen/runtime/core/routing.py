"""From a method's name and the bytes of its params to a handler, and back to the bytes of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json

from .errors import InvalidParams, MethodNotFound
from .json_types import is_array, is_object
from .methods import Method, Notification, Request

if TYPE_CHECKING:
    from ..endpoint.caller import Returns

Target = TypeVar("Target")
Ctx = TypeVar("Ctx")
Params = TypeVar("Params")
Answer = TypeVar("Answer")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Route(Generic[Target]):
    """A method, and the stub of the handler that takes it."""

    method: Method
    handler: Callable[..., Any]

    @cached_property
    def params(self) -> TypeAdapter[Any]:
        """Reads the params; built on first use."""
        return TypeAdapter(self.method.params)

    def read(self, data: bytes | str | None) -> Any:
        """The typed params of a message.

        Args:
            data: Their JSON text, or `None` when the message has none.

        Raises:
            InvalidParams: They do not fit.
        """
        if self.method.params is None:
            return None
        if data is None and self.method.params_required:
            raise InvalidParams(self.method.name, [{"path": "params", "problem": "Field required"}])
        try:
            return self.params.validate_json(b"{}" if data is None else data)
        except ValidationError as error:
            raise InvalidParams(self.method.name, problems(error, "params", data or b"{}")) from None

    def handled_by(self, target: Target) -> bool:
        """Whether `target` overrides the stub."""
        return getattr(type(target), self.handler.__name__, None) is not self.handler


def request(
    method: Request[Params, Any, Answer], handler: Callable[[Target, Params, Ctx], Returns[Answer]]
) -> Route[Target]:
    """A route for a request; type checkers hold the stub against the method's types."""
    return Route(method, handler)


def notification(
    method: Notification[Params], handler: Callable[[Target, Params, Ctx], Returns[None]]
) -> Route[Target]:
    """A route for a notification; type checkers hold the stub against the method's types."""
    return Route(method, handler)


def handles(method: Method) -> Callable[[F], F]:
    """Marks a handler of a method of your own: `@handles(ECHO) async def echo(self, params, ctx): ...`."""

    def mark(handler: F) -> F:
        handler.__mcp_method__ = method  # type: ignore[attr-defined]
        return handler

    return mark


def bare_request(
    method: Request[None, Any, Answer], handler: Callable[[Target, Ctx], Returns[Answer]]
) -> Route[Target]:
    """A route for a request that has no params."""
    return Route(method, handler)


def bare_notification(method: Notification[None], handler: Callable[[Target, Ctx], Returns[None]]) -> Route[Target]:
    """A route for a notification that has no params."""
    return Route(method, handler)


class Dispatcher(Generic[Target]):
    """The methods that one side takes.

    Args:
        routes: One for each method.
    """

    def __init__(self, *routes: Route[Target]) -> None:
        self.routes: Mapping[str, Route[Target]] = {route.method.name: route for route in routes}

    def offered(self, target: Target) -> frozenset[str]:
        """The names of the methods whose stubs `target` overrides."""
        return frozenset(name for name, route in self.routes.items() if route.handled_by(target))

    async def dispatch(self, target: Target, method: str, params: bytes | str | None, ctx: object) -> Any:
        """Reads `params`, calls the handler of `target` and returns its result.

        Args:
            target: The server or client.
            method: The method's name on the wire.
            params: The JSON text of the params, or `None` when the message has none.
            ctx: What the handler gets as its context.

        Raises:
            MethodNotFound: This side has no such method, or `target` does not offer it.
            InvalidParams: The params do not fit.
        """
        route = self.routes.get(method)
        if route is None or (not route.handled_by(target) and route.method.kind == "request"):
            raise MethodNotFound(method)
        if not route.handled_by(target):
            return None
        arguments = () if route.method.params is None else (route.read(params),)
        answer = getattr(target, route.handler.__name__)(*arguments, ctx)
        return await answer if isawaitable(answer) else answer


def problems(error: ValidationError, root: str, data: bytes | str) -> list[dict[str, str]]:
    """What is wrong with a JSON text and where, fit to be sent to the other side: no values, no addresses.

    Paths lead through the document, so the names that pydantic gives to the members of a union are left out.
    """
    try:
        document = from_json(data)
    except ValueError:
        document = None
    return [
        {"path": ".".join([root, *_steps(problem, document)]), "problem": _said(problem)}
        for problem in error.errors(include_url=False, include_input=False)
    ]


def _said(problem: ErrorDetails) -> str:
    if problem["type"] == "union_tag_invalid":  # pydantic's own words repeat the value
        return "Input should have one of these as {discriminator}: {expected_tags}".format(**problem.get("ctx", {}))
    return problem["msg"]


def _steps(problem: ErrorDetails, node: Any) -> Iterator[str]:
    for position, step in enumerate(problem["loc"]):
        if _leads_on(node, step):
            node = node[step]
        elif problem["type"] != "missing" or position < len(problem["loc"]) - 1:
            continue
        yield str(step)


def _leads_on(node: Any, step: int | str) -> bool:
    if isinstance(step, str):
        return is_object(node) and step in node
    return is_array(node) and step < len(node)
