"""Answer a method of a contract with an annotated function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, overload

from pydantic import BaseModel

from mcp_bindgen.runtime.protocol import jsonrpc

from .complexity import MOST_STEPS
from .features import tool_result
from .functions import Function, FunctionHandler
from .handlers import BoundHandler

R = TypeVar("R", bound=BaseModel)


@overload
async def delegate(function: Callable[..., Any], arguments: BaseModel | None, ctx: Any) -> Any: ...


@overload
async def delegate(function: Callable[..., Any], arguments: BaseModel | None, ctx: Any, returns: type[R]) -> R: ...


async def delegate(
    function: Callable[..., Any], arguments: BaseModel | None, ctx: Any, returns: type[BaseModel] | None = None
) -> Any:
    """Return what a function answers for a tool, in the types of a contract that follows from it.

    Args:
        function: The function, `def` (run in a thread) or `async def`, which may take the context.
        arguments: The typed arguments of the tool, which become those of the function; `None` if there are none.
        ctx: The request.
        returns: The model of the tool's structured content; without it the function returns content.

    Raises:
        BadFunction: It cannot be a tool.
        InvalidArguments: The function does not take these arguments.
        InvalidResult: It returned something else than its annotation says.
    """
    handler = _handler(function)
    given: Any = {} if arguments is None else jsonrpc.plain(arguments)
    returned = await handler.call(handler.read(given, "arguments"), ctx)
    if returns is None or handler.spec.output is None:
        return returned
    return returns.model_validate(tool_result(handler, returned)["structuredContent"])


@cache
def _handler(function: Function) -> BoundHandler:
    found = FunctionHandler(function)
    return BoundHandler(found.tool()[0], {}, found.method(), MOST_STEPS)  # the contract's server holds the schemas
