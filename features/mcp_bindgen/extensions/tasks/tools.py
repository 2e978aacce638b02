"""Say which tools are tasks: `@app.tool(task="optional")`, `@task("required")` on a method, `@task(tools={...})`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from mcp_bindgen.runtime.bindings import extension_of
from mcp_bindgen.runtime.session.rounds import InputRequired

F = TypeVar("F", bound=Callable[..., Any])

Support: TypeAlias = Literal["optional", "required"]
"""Whether a tool that is a task runs in the foreground, too, for clients that do not know tasks."""

ATTRIBUTE = "__mcp_task__"
"""The attribute of a handler that says which tools of it are tasks."""


@dataclass(frozen=True, kw_only=True)
class ToolTask:
    """How a tool runs as a task.

    Attributes:
        support: Whether clients that do not know tasks are served, too (`optional`), or refused (`required`).
        ttl: Seconds that a task is kept from its creation, within the limits; `None` for what these say.
        poll: Seconds that a client should wait between two looks at a task; `None` for what the limits say.
        reruns: How often a task may run again from its beginning after the process that ran it died. With 0, such a
            task fails; with more, what its handler does must bear being done twice.
        late: Whether the handler itself says from when on it is a task, by `await background(ctx)`. What it asks the
            client before is answered in rounds, as for any other request.
    """

    support: Support = "optional"
    ttl: float | None = None
    poll: float | None = None
    reruns: int = 0
    late: bool = False


Word: TypeAlias = Support | ToolTask
"""What makes a tool a task: a word, or all that can be said."""


def tool_task(word: Word) -> ToolTask:
    """Return all that can be said for a word; raise `ValueError` if it is none."""
    if isinstance(word, ToolTask):
        return word
    if word not in get_args(Support):
        raise ValueError(f"task={word!r}: a tool is a task as 'optional', 'required' or ToolTask(...)")
    return ToolTask(support=word)


def task(word: Word = "optional", /, *, tools: Mapping[str, Word] | None = None) -> Callable[[F], F]:
    """Mark a handler as a task: the method of a tool in a contract, or with `tools` the `call_tool` of a server.

    Args:
        word: How the tool is a task; on the `call_tool` of a server, how all tools are.
        tools: For the handler of all tools of a server: those that are tasks, by name.
    """
    marks = {"": tool_task(word)} if tools is None else {name: tool_task(one) for name, one in tools.items()}

    def mark(handler: F) -> F:
        setattr(handler, ATTRIBUTE, marks)
        return handler

    return mark


def marked(handler: object, name: str = "") -> ToolTask | None:
    """Return how a tool runs as a task, by the mark of its handler; `None` where it never does.

    Args:
        handler: The handler.
        name: Which tool, where the handler is that of all tools of a server.
    """
    marks: Mapping[str, ToolTask] = getattr(handler, ATTRIBUTE, {})
    return marks.get(name)


def with_tasks(package: ModuleType) -> Any:
    """Return the generated class of servers of a revision that offers tasks; where there is none, the usual one."""
    return (extension_of(package, "tasks") or package).Server


def has_tasks(package: ModuleType) -> bool:
    """Tell whether a revision has tasks in its core, which the server of another revision with tasks can serve."""
    return "tasks/result" in import_module(f"{package.__name__}.methods").METHODS


class Deferred(InputRequired):
    """Leaves a handler that goes on as a task."""


_deferring: ContextVar[bool] = ContextVar("deferring", default=False)
"""Whether the request that is handled becomes a task where its handler says so."""


async def background(ctx: object) -> None:
    """Go on as a task from here: for the handler of a tool that is `late`.

    The client is answered with the task, whose handler runs again from its beginning, with the answers that it has got.
    There, and for clients that do not know tasks, nothing happens.

    Args:
        ctx: The context of the handler.
    """
    if _deferring.get():
        raise Deferred


async def deferred(work: Awaitable[Any]) -> Any:
    """Return what a handler returns; `None` where it goes on as a task."""
    token = _deferring.set(True)
    try:
        return await work
    except Deferred:
        return None
    except BaseExceptionGroup as group:
        if group.split(Deferred)[1] is not None:
            raise
        return None
    finally:
        _deferring.reset(token)
