"""Handlers: bind the methods of a user's server or client to routes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

from ..concurrency import in_thread
from ..logs import log
from ..model.json_types import is_object
from ..protocol import jsonrpc
from ..protocol.access import Access
from ..protocol.capabilities import Declaring, declared, is_declared
from ..protocol.extension import Extension, added_to
from ..protocol.methods import Method, Request, result_type
from ..protocol.request_scope import Link
from ..protocol.revision import Dispatcher, Revision
from ..protocol.routing import Route, check_names
from ..protocol.transitions import OTHER_ROLE
from .rounds import RequestStateSigner

Handle: TypeAlias = Callable[[Any, Any], Awaitable[Any]]
"""Takes params and context of a message, and returns its result."""


class Introduced(Declaring, Protocol):
    """A side that introduces itself."""

    @property
    def info(self) -> Any:
        """Its `Implementation`; `None` for that of the runtime."""
        ...


class ServerSide(Introduced, Protocol):
    """The part of a server that its era uses; see `Server`."""

    revision: ClassVar[str]
    context: ClassVar[Any]

    @property
    def instructions(self) -> str | None:
        """Advice to models."""
        ...

    @property
    def request_state_signer(self) -> RequestStateSigner:
        """Signs the state between rounds."""
        ...

    @property
    def allows(self) -> Access | None:
        """Returns whether a token permits operations; `None` without tokens."""
        ...

    @property
    def audience(self) -> list[Link]:
        """Links to the clients."""
        ...

    def agree(self, wanted: Any, ctx: Any, /) -> Any:
        """Return the part of a filter that a client gets."""
        ...

    def begin_subscription(self, link: Any, /) -> None:
        """React to a new subscription."""
        ...


def introduction(target: Introduced, revision: Revision) -> Any:
    """Return the `Implementation` of a side; the default names this runtime."""
    return target.info if target.info is not None else revision.types.Implementation(name="mcp-bindgen", version="0")


def extensions_of(kind: type, dispatcher: Dispatcher) -> tuple[Extension, ...]:
    """Return the extensions of a class of servers or clients; check them and the names of the handlers.

    Raises:
        TypeError: Two extensions collide, settings belong to none, or the name of a handler is misspelt.
    """
    if added_to(kind):
        dispatcher = dispatcher.extended(kind)
    own: Mapping[str, Any] = kind.__dict__
    if "adds" not in own:
        check_names(kind, dispatcher.revision.name, dispatcher.handlers)
    settings: Any = own.get("extension_settings")
    unknown = sorted(set(settings) - {one.id for one in dispatcher.extensions}) if is_object(settings) else []
    if unknown:
        raise TypeError(f"{kind.__name__}.extension_settings: {unknown[0]!r} is no extension of its bases")
    return dispatcher.extensions


async def checked_roots(answer: Awaitable[Any]) -> Any:
    """Return the roots of a client (MCP, "Roots").

    Raises:
        ValueError: The URI of a root does not begin with `file://`.
    """
    result = await answer
    for root in jsonrpc.plain(result).get("roots") or ():
        if not root["uri"].startswith("file://"):
            raise ValueError(f"the URI of a root must begin with file://: {root['uri']!r}")
    return result


def empty_list(dispatcher: Dispatcher, route: Route, server: Declaring) -> Callable[[], Any] | None:
    """Return a maker of empty lists for a feature that a server declares without a list handler; else `None`."""
    method = route.method
    capability = method.capabilities.get("client")
    if not isinstance(method, Request) or method.items is None or capability is None:
        return None
    if not is_declared(declared(server, dispatcher), *capability[1:]):
        return None
    return lambda: method.result(**{str(method.items): []})


def bind_handler(dispatcher: Dispatcher, route: Route, target: object) -> Handle:
    """Return the handler of `target` as a coroutine function of params and context; a `def` runs in a thread.

    Raises:
        MethodNotFound: `target` does not handle the method.
    """
    own = dispatcher.handler(route, target)
    handler: Callable[..., Awaitable[Any]] = own if inspect.iscoroutinefunction(own) else in_thread(own)
    work = _shaped(route.method, handler)
    return _negotiated(dispatcher, route.method, target, work) if dispatcher.extensions else work


def _shaped(method: Method, handler: Callable[..., Awaitable[Any]]) -> Handle:
    """Return a handler as a function of params and context that truncates its list, if the list has a limit."""
    truncation = method.truncation if isinstance(method, Request) else None
    if truncation is None:
        return handler if method.params is not None else lambda params, context: handler(context)

    async def truncated(params: object, context: object) -> Any:
        result = await handler(params, context)
        excess = truncation.excess(result)
        if not excess:
            return result
        log.warning("%s: %d values beyond the first %d are not sent", method.name, excess, truncation.max_items)
        return truncation.applied(result)

    return truncated


def _negotiated(dispatcher: Dispatcher, method: Method, target: Any, work: Handle) -> Handle:
    """Return a handler that uses extensions only if the peer declares them.

    Raises (the handler):
        CapabilityMissing: The method or its result belongs to an extension that the peer does not declare.
    """
    if dispatcher.role == "server":
        work = target.around(method, work)
    by_id = {one.id: one for one in dispatcher.extensions}
    brought = {result_type(kind): one for one in dispatcher.extensions for kind in one.answering(method.name)}
    theirs = OTHER_ROLE[dispatcher.role]
    owner = by_id.get(method.extension or "") if method.declared_by in (theirs, "both") else None
    if owner is None and not brought:
        return work

    async def negotiated(params: Any, context: Any) -> Any:
        if owner is not None:
            context.require_extension(owner)
        answer = await work(params, context)
        kind = jsonrpc.result_type_of(answer)
        if kind in brought:
            context.require_extension(brought[kind])
        return answer

    return negotiated
