"""Dependencies: values that functions make for the parameters of tools, prompts and resources."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from mcp_bindgen.runtime.protocol.routing import place_of
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.threads import in_thread

from .errors import BadFunction
from .values import TypeForm


@dataclass(frozen=True)
class Depends:
    """Fills a parameter with the value of a function: `db: Annotated[Db, Depends(open_db)]`.

    The parameter is no part of the schema. The function is `def` (run in a thread) or `async def`, and may take the
    context and dependencies of its own. It is called once for a call. If it yields its value, the rest of it runs after
    the call.

    Attributes:
        function: The function.
    """

    function: Callable[..., Any]


class Injection:
    """Parameters of a function that are no arguments: contexts and dependencies.

    Args:
        function: The function.
        hints: Its annotations.

    Attributes:
        contexts: The parameters that take the context.
        dependencies: Parameter -> the dependency that fills it.

    Raises:
        BadFunction: A dependency takes a parameter that nothing fills.
    """

    def __init__(self, function: Callable[..., Any], hints: Mapping[str, TypeForm]) -> None:
        self.contexts: list[str] = [name for name, hint in hints.items() if name != "return" and is_context(hint)]
        made = {name: found for name, hint in hints.items() if (found := _depends(hint)) is not None}
        self.dependencies: dict[str, _Dependency] = {name: _Dependency(one.function) for name, one in made.items()}

    def __contains__(self, name: str) -> bool:
        return name in self.contexts or name in self.dependencies

    async def values(self, ctx: Context, known: dict[Any, Any], stack: AsyncExitStack) -> dict[str, Any]:
        """Return parameter -> value.

        Args:
            ctx: The context of the call.
            known: Function -> value, of the dependencies of this call so far.
            stack: Closes the dependencies after the call.
        """
        found: dict[str, Any] = dict.fromkeys(self.contexts, ctx)
        for name, dependency in self.dependencies.items():
            if dependency.function not in known:
                known[dependency.function] = await dependency.value(ctx, known, stack)
            found[name] = known[dependency.function]
        return found


class _Dependency:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._injection = Injection(function, get_type_hints(function, include_extras=True))
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in self._injection and parameter.default is parameter.empty:
                name_of = getattr(function, "__name__", repr(function))
                fix = f"annotate it as Context or with Depends(...), or give {name} a default"
                raise BadFunction(f"{name_of}: nothing fills the parameter {name}", fix, place_of(function))

    async def value(self, ctx: Context, known: dict[Any, Any], stack: AsyncExitStack) -> Any:
        """Return the value; the stack closes it."""
        function, given = self.function, await self._injection.values(ctx, known, stack)
        maker: Callable[..., Any] = inspect.unwrap(function)
        is_manager = maker is not function  # the function is made by contextlib
        if inspect.isasyncgenfunction(maker):
            make: Callable[..., Any] = function if is_manager else asynccontextmanager(maker)
            return await stack.enter_async_context(make(**given))
        if inspect.isgeneratorfunction(maker):
            manager: Any = (function if is_manager else contextmanager(maker))(**given)

            async def leave(*error: Any) -> Any:
                return await threaded(ctx, lambda: manager.__exit__(*error))

            value = await threaded(ctx, manager.__enter__)
            stack.push_async_exit(leave)
            return value
        if inspect.iscoroutinefunction(function):
            return await function(**given)
        return await threaded(ctx, partial(function, **given))


async def threaded(ctx: Context, work: Callable[[], Any]) -> Any:
    """Return the value of a function that runs in a thread, which counts for the sender of the request."""

    def run(ctx: Context) -> Any:
        return work()

    return await in_thread(run)(ctx)


def _depends(annotation: TypeForm) -> Depends | None:
    """Return the dependency of an annotation, or None."""
    origin: object = get_origin(annotation)
    extra = get_args(annotation)[1:] if origin is Annotated else ()
    return next((one for one in extra if isinstance(one, Depends)), None)


def is_context(annotation: TypeForm) -> bool:
    """Return True if an annotation names one class `Context` or several."""
    forms = get_args(annotation)
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and any(base.__name__ == "Context" for base in kind.__mro__):
        return True
    return bool(forms) and all(form is type(None) or is_context(form) for form in forms)
