"""Routes from methods to the handlers of a user's class, and hints for handlers that are wrong."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NotRequired, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from ..model.base import optional
from .errors import InvalidParams
from .methods import Method


class WrongResult(TypeError):
    """A handler returned no result of its method, or breaks its contract.

    Args:
        reason: Description of the mistake.
        function: The handler; the error has its file and line.

    Attributes:
        told: The same for callers, with the name of the file and the line only.
    """

    def __init__(self, reason: str, function: Callable[..., Any] | None = None) -> None:
        place = "" if function is None else place_of(function)
        super().__init__(f"{reason} ({place})" if place else reason)
        self.told: str = f"{reason} ({Path(place).name})" if place else reason


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `; did you mean 'x'?` for the nearest of some names, or nothing; see `similar`."""
    from ..similar_names import similar  # only mistakes wait for the import

    near = similar(name, known, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""


def place_of(function: Callable[..., Any]) -> str:
    """Return the file and line of a function, also of a bound or wrapped one."""
    inner: Any = inspect.unwrap(function)
    inner = inner.__func__ if inspect.ismethod(inner) else inner
    code = inner.__code__ if inspect.isfunction(inner) else None
    return "unknown place" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Returns: TypeAlias = T | Awaitable[T]
"""Type of a handler: it returns the result, or an awaitable of it. So handlers may be `def` or `async def`."""


@dataclass(frozen=True, eq=False)
class Route:
    """The way of one method to its handler.

    Attributes:
        method: The method.
        handler: The name of the attribute that handles it.
        is_custom: True if the user brought the method, so that there is no stub to override.
    """

    method: Method
    handler: str
    is_custom: bool = False

    @cached_property
    def params(self) -> TypeAdapter[Any]:
        """The reader of params alone; built on first use."""
        return TypeAdapter(self.method.params)

    @cached_property
    def read_message(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Read a whole message, envelope and params in one pass, from its JSON text.

        It raises `ValidationError` for invalid messages, and returns `None` if the message needs a closer look.
        """
        return message_reader(self.method, self.method.params)

    def read(self, data: bytes | str | None) -> Any:
        """Read the typed params of a message.

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
            from ..model.validation import problems  # few params are invalid

            raise InvalidParams(self.method.name, problems(error, "params", data or b"{}")) from None


def message_reader(method: Method, params: object) -> Callable[[bytes], dict[str, Any]]:
    """Make a reader of whole messages of a method, whose params have a type, if they are not `None`."""
    fields: dict[str, Any] = {"jsonrpc": Literal["2.0"], "id": NotRequired[int | str]}
    fields["method"] = Literal[method.name]
    if params is not None:
        fields["params"] = params if method.params_required else NotRequired[params]
    return record("Message", fields).validator.validate_json


UserHandler: TypeAlias = Callable[[Any, Any], Awaitable[Any]]
"""Takes the params and the context of a message, and returns its result."""


def asynchronous(handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a handler as a coroutine function: a `def` runs in a thread."""
    if inspect.iscoroutinefunction(handler):
        return handler
    from ..threads import in_thread  # many servers have no handlers that block

    return in_thread(handler)


def check_names(kind: type, revision: str, handlers: Collection[str]) -> None:
    """Check that no method of a class was meant to be a handler and is called otherwise.

    A method counts if it has the parameters of a handler and nearly its name. Names with an underscore are skipped.

    Args:
        kind: The class.
        revision: The revision that it speaks.
        handlers: The names of the stubs that it may override.

    Raises:
        TypeError: There is one; the error names the likely handler.
    """
    for name, value in vars(kind).items():
        known = name.startswith("_") or any(hasattr(base, name) for base in kind.__bases__)
        if known or not inspect.isfunction(value) or hasattr(value, "__mcp_method__"):
            continue
        _, *taken = inspect.signature(value).parameters or [""]
        if len(taken) in (1, 2) and (taken[-1] in ("ctx", "context") or len(taken) == 2):
            suggestion = did_you_mean(name, handlers, 0.88 if taken[-1] in ("ctx", "context") else 0.92)
            if suggestion:
                problem = f"{kind.__name__}.{name} handles nothing of MCP {revision}{suggestion}"
                raise TypeError(f"{place_of(value)}: {problem} A helper's name begins with an underscore.")


def record(name: str, fields: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    """Make a reader of JSON objects that have these members and no others."""
    make: Any = TypedDict
    kind = make(name, fields)
    kind.__pydantic_config__ = {"strict": True, "extra": "forbid"}
    return TypeAdapter(kind)


def handles(method: Method) -> Callable[[F], F]:
    """Mark a handler of a method of your own: `@handles(ECHO) async def echo(self, params, ctx): ...`."""

    def mark(handler: F) -> F:
        handler.__mcp_method__ = method  # type: ignore[attr-defined]
        return handler

    return mark


def custom_routes(target: type) -> dict[str, Route]:
    """Find the handlers that a class marks with `handles`; returns method name -> route."""
    found: dict[str, Route] = {}
    for name in dir(target):
        method = optional(optional(target, name), "__mcp_method__")
        if method is not None:
            found[method.name] = Route(method, name, is_custom=True)
    return found
