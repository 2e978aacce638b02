"""Mistakes that the signature of a function does not show: forgotten `await`, blocking calls, missing descriptions."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Collection, Coroutine, Generator, Iterator
from functools import partial, reduce
from time import monotonic
from typing import Any, TypeVar

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.routing import place_of
from mcp_bindgen.runtime.session.context import Context

T = TypeVar("T")

BLOCKING_SECONDS = 0.1
"""Seconds without `await` after which debug mode reports a coroutine function."""

_COROUTINES = frozenset(name for name in dir(Context) if inspect.iscoroutinefunction(getattr(Context, name)))


_BLOCKING = ("time.sleep", "subprocess.", "requests.", "urllib.request.", "posix.system", "nt.system", "builtins.input")
"""Beginnings of the full names of functions that block their thread."""


def _nodes(function: Callable[..., Any]) -> Iterator[ast.AST]:
    """Yield the nodes of a function's source without those of inner functions; none if there is no source."""
    try:
        nodes: list[ast.AST] = [*ast.parse(textwrap.dedent(inspect.getsource(function))).body]
    except (OSError, TypeError, SyntaxError):
        return
    own = len(nodes)
    while nodes:
        node = nodes.pop()
        yield node
        if own > 0 or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
        own -= 1


def _member(module: object, name: str) -> object:
    """Return a member of a module; objects of the author are not touched."""
    return vars(module).get(name) if isinstance(module, types.ModuleType) else None


def blocking(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the calls in a coroutine function that are known to block the event loop, such as `time.sleep`."""
    for node in _nodes(function) if inspect.iscoroutinefunction(function) else ():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            first, *rest = name.split(".")
            known = inspect.getclosurevars(inspect.unwrap(function))
            called: Any = reduce(_member, rest, {**known.builtins, **known.globals, **known.nonlocals}.get(first))
            if f"{getattr(called, '__module__', '')}.{getattr(called, '__name__', '')}".startswith(_BLOCKING):
                yield name


def unawaited(function: Callable[..., Any], contexts: Collection[str]) -> Iterator[str]:
    """Yield the calls of the context's coroutine functions, such as `ctx.info`, whose result nothing awaits.

    Args:
        function: The function.
        contexts: The parameters that take the context.
    """
    is_plain = not inspect.iscoroutinefunction(function)
    for node in _nodes(function):
        call = node.value if isinstance(node, ast.Expr | ast.Assign | ast.Return) else None
        target = call.func if isinstance(call, ast.Call) and (is_plain or isinstance(node, ast.Expr)) else None
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            continue
        if target.value.id in contexts and target.attr in _COROUTINES:
            yield f"{target.value.id}.{target.attr}"


@types.coroutine
def watched(work: Coroutine[Any, Any, T], function: Callable[..., Any]) -> Generator[Any, Any, T]:
    """Await a function, and log its place if it blocks the event loop."""
    step: Callable[[], Any] = partial(work.send, None)
    while True:
        begun = monotonic()
        try:
            trap = step()
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            if (took := monotonic() - begun) > BLOCKING_SECONDS:
                said = "%s: %s blocked the event loop for %.1f s; write def (it runs in a thread), or await the call"
                log.warning(said, place_of(function), function.__name__, took)
        try:
            step = partial(work.send, (yield trap))
        except BaseException as error:  # cancellation is delivered to the function like any other error
            step = partial(work.throw, error)
