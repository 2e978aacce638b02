"""What one side of a connection understands in one revision: the bridge from a user's object to its bindings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

from .dispatcher import Route
from .methods import Method

Role = Literal["client", "server"]

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
PING = "ping"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
LOG = "notifications/message"
SET_LEVEL = "logging/setLevel"


@dataclass(frozen=True)
class Vocabulary:
    """The methods of one revision, as one side sees them.

    Attributes:
        revision: The revision.
        routes: Method name -> route, for what this side takes; custom methods included.
        methods: Method name -> descriptor, for all methods of the protocol.
        flags: Capabilities that are `true` where others are objects.
        batches: Whether the revision has JSON-RPC batches.
    """

    revision: str
    routes: Mapping[str, Route[Any]]
    methods: Mapping[str, Method]
    flags: frozenset[str] = field(default_factory=frozenset[str])
    batches: bool = False


def custom_routes(target: type) -> dict[str, Route[Any]]:
    """The routes of the handlers that a class marks with `handles`."""
    found: dict[str, Route[Any]] = {}
    for name in dir(target):
        handler = getattr(target, name, None)
        method = getattr(handler, "__mcp_method__", None)
        if method is not None and handler is not None:
            found[method.name] = Route(method, handler)
    return found


def vocabulary(target: object, bindings: str, role: Role) -> Vocabulary:
    """What `target` understands, whose generated base class is in the package `bindings`.

    It is the same for all connections, and so are the readers that are built for its routes.
    """
    kind: type = type(target)
    return _vocabulary(kind, bindings, role)


@cache
def _vocabulary(target: type, bindings: str, role: Role) -> Vocabulary:
    package = import_module(bindings)
    dispatcher = module(bindings, "dispatcher")
    routes: Mapping[str, Route[Any]] = (dispatcher.SERVER if role == "server" else dispatcher.CLIENT).routes
    return Vocabulary(
        revision=package.REVISION,
        routes={**routes, **custom_routes(target)},
        methods=module(bindings, "methods").METHODS,
        flags=module(bindings, "methods").FLAGS,
        batches="JSONRPCBatchRequest" in module(bindings, "types").__all__,
    )


def module(bindings: str, name: str) -> ModuleType:
    """A module of a package of bindings."""
    return import_module(f"{bindings}.{name}")
