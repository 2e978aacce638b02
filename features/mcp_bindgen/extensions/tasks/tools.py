"""Task options of tools: `@app.tool(task="optional")`, `@task("required")` on a method, `@task(tools={...})`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from mcp_bindgen.extension_abi import extension_of
from mcp_bindgen.runtime.model.base import optional
from mcp_bindgen.runtime.session.rounds import InputRequired

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Support: TypeAlias = Literal["optional", "required"]
"""`optional`: clients without the extension wait for the result. `required`: their calls are refused."""

ATTRIBUTE = "__mcp_task__"
"""Attribute of a handler that holds its task options."""


@dataclass(frozen=True, kw_only=True)
class ToolTask:
    """Task options of a tool.

    Attributes:
        support: Behaviour for clients without the extension.
        ttl: Seconds from creation to expiry, within the limits of the server; `None` for the server's default.
        poll: Poll interval of clients in seconds; `None` for the server's default.
        reruns: Number of additional runs after the process of a task has died. With 0 the task fails; otherwise the
            handler must tolerate that its work is done twice.
        late: True if the call becomes a task at `await background(ctx)` in the handler. Earlier questions are answered
            in rounds, as for any request.
    """

    support: Support = "optional"
    ttl: float | None = None
    poll: float | None = None
    reruns: int = 0
    late: bool = False


TaskOption: TypeAlias = Support | ToolTask
"""Short and full form of task options."""


def tool_task(option: TaskOption) -> ToolTask:
    """Return the full form of task options; raise `ValueError` for an unknown short form."""
    if isinstance(option, ToolTask):
        return option
    if option not in get_args(Support):
        raise ValueError(f"task={option!r}: use 'optional', 'required' or ToolTask(...)")
    return ToolTask(support=option)


def task(option: TaskOption = "optional", /, *, tools: Mapping[str, TaskOption] | None = None) -> Callable[[F], F]:
    """Set the task options of a handler: the method of a tool in a contract, or the `call_tool` of a server.

    Args:
        option: The task options of the tool; on `call_tool`, of all tools.
        tools: Tool name -> task options, for `call_tool`; other tools never run as tasks.
    """
    options = {"": tool_task(option)} if tools is None else {name: tool_task(one) for name, one in tools.items()}

    def mark(handler: F) -> F:
        setattr(handler, ATTRIBUTE, options)
        return handler

    return mark


def marked(handler: object, name: str = "") -> ToolTask | None:
    """Return the task options that `task` has set; `None` if the tool never runs as a task.

    Args:
        handler: The handler.
        name: The tool, if the handler serves several.
    """
    options: Mapping[str, ToolTask] = optional(handler, ATTRIBUTE) or {}
    return options.get(name)


def with_tasks(package: ModuleType) -> Any:
    """Return the generated server class of a revision with tasks; without the extension, the usual one."""
    return (extension_of(package, "tasks") or package).Server


def has_tasks(package: ModuleType) -> bool:
    """Return True if a revision has tasks in its core; the server of a revision with the extension can serve it."""
    return "tasks/result" in import_module(f"{package.__name__}.methods").METHODS


class Deferred(InputRequired):
    """Ends a handler whose call becomes a task."""


_may_defer: ContextVar[bool] = ContextVar("may_defer", default=False)
"""True while a handler may turn its call into a task."""


async def background(ctx: object) -> None:
    """Turn the call into a task, for the handler of a tool that is `late`.

    The client receives the task. The handler runs again from its beginning as a task, with the answers so far. In a
    task, and for clients without the extension, this does nothing.

    Args:
        ctx: Context of the handler.
    """
    if _may_defer.get():
        raise Deferred


async def deferred(work: Awaitable[T]) -> T | None:
    """Return the result of a handler; `None` if the handler has called `background`."""
    token = _may_defer.set(True)
    try:
        return await work
    except Deferred:
        return None
    except BaseExceptionGroup as group:
        if group.split(Deferred)[1] is not None:
            raise
        return None
    finally:
        _may_defer.reset(token)
