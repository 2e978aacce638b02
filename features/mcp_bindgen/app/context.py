"""Context of the functions of an `App`, and the middleware around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias

from typing_extensions import TypeVar

from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.session import context

State = TypeVar("State", default=Any)


class Context(context.Context, Generic[State]):
    """Context of a request; also sends requests and notifications to its sender.

    Attributes:
        state: The value that the lifespan of the app yielded; `Context[Database]` is the context with its type.
        call: The call of the entry that the function handles.
        server: The server that answers the request.
    """

    state: State
    call: Any
    server: Any


@dataclass(frozen=True)
class Call:
    """A call of an entry.

    Attributes:
        kind: The kind of the entry, or `completion` for a completion of one of its arguments.
        name: The name of the tool or prompt, the URI that is read, or the name or URI template that is completed. A URI
            has one spelling, however the client spells it: that of the entry, with the values in canonical form.
        arguments: The arguments in wire form. `next` accepts a call with other arguments for tools and prompts.
        ctx: The context of the request.
    """

    kind: Literal["tool", "prompt", "resource", "completion"]
    name: str
    arguments: Mapping[str, Any]
    ctx: Context

    @property
    def round(self) -> int:
        """Number of the run of the function for this call, from 1.

        A function that asks a stateless client ends with `InputRequired`, a `BaseException`, and runs again after the
        answer. Clients may invent or repeat a later round, so a limit counts each that no earlier round has asked for.
        """
        return self.ctx.round

    def with_arguments(self, **arguments: Any) -> Call:
        """Return the call with some arguments replaced."""
        return replace(self, arguments={**self.arguments, **arguments})


Result: TypeAlias = dict[str, Any]
"""A result in wire form, such as `{"content": [...]}` of a tool."""

Next: TypeAlias = Callable[[Call], Awaitable[Result]]
"""The rest of the chain: the next middleware, or the function of the tool, prompt or resource."""

Middleware: TypeAlias = Callable[[Call, Next], Awaitable[Result]]
"""Returns the result of a call, usually the result of `next`. Errors of functions pass as exceptions."""


class Owner(Protocol):
    """An app, as the handlers of its entries know it."""

    @property
    def middlewares(self) -> Sequence[Middleware]:
        """Its middleware, the outermost first."""
        ...

    def allows(self, name: str, tags: Collection[str], identity: Identity | None) -> bool:
        """Return True if an entry is enabled for a caller; `None` without token."""
        ...

    def admits(self, name: str, tags: Collection[str], identity: Identity | None) -> bool:
        """Return True if all conditions of an entry hold for a caller; for an unknown caller, if there are none."""
        ...


class Layer(NamedTuple):
    """An app that offers an entry; an entry of a mounted app has a layer for each of the two apps.

    Attributes:
        owner: The app.
        name: The name of the entry in the app; a URI or URI template of a resource.
    """

    owner: Owner
    name: str


def entered(states: Mapping[Any, Any], owner: Owner, name: str, call: Call) -> Call:
    """Return a call as an app sees it, by the name of its entry, and tell its context."""
    seen = call if call.name == name else replace(call, name=name)
    call.ctx.state, call.ctx.call = states.get(owner), seen
    return seen


async def through(layers: Sequence[Layer], states: Mapping[Any, Any], call: Call, work: Next) -> Any:
    """Return the result of a call through the middleware of its layers.

    Args:
        layers: The apps that offer the entry, the outermost first.
        states: App -> the value of its lifespan.
        call: The call.
        work: Answers the call in wire form.
    """

    async def enter(inner: Next, owner: Owner, name: str, call: Call) -> Any:
        return await inner(entered(states, owner, name, call))

    step = work
    for owner, name in reversed(layers):
        step = partial(enter, step, owner, name)
        for middleware in reversed(owner.middlewares):
            step = partial(enter, partial(_around, middleware, step), owner, name)
    return await step(call)


async def _around(middleware: Middleware, inner: Next, call: Call) -> Result:
    ctx, state = call.ctx, call.ctx.state

    async def restoring(changed: Call) -> Result:
        try:
            return await inner(changed)
        finally:
            ctx.state, ctx.call = state, call

    return await middleware(call, restoring)
