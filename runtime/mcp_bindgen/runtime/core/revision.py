"""What one side of a connection understands in one revision: the bridge from a user's object to its bindings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

from .methods import Method
from .routing import Route

Role = Literal["client", "server"]

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
PING = "ping"
CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"
LOG = "notifications/message"
SET_LEVEL = "logging/setLevel"
CALL_TOOL = "tools/call"
LIST_TOOLS = "tools/list"
DISCOVER = "server/discover"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


@dataclass(frozen=True)
class Vocabulary:
    """The methods of one revision, as one side sees them.

    Attributes:
        revision: The revision.
        role: Which side.
        bindings: The package of its bindings.
        routes: Method name -> route, for messages that this side takes; custom methods included.
        questions: Method name -> route, for requests that reach this side inside of results.
        methods: Method name -> descriptor, for all methods of the protocol.
        flags: Capabilities that are `true` where others are objects.
        batches: Whether the revision has JSON-RPC batches.
        stateless: Whether requests speak for themselves, because there is no handshake.
    """

    revision: str
    role: Role
    bindings: str
    routes: Mapping[str, Route[Any]]
    questions: Mapping[str, Route[Any]]
    methods: Mapping[str, Method]
    flags: frozenset[str] = field(default_factory=frozenset[str])
    batches: bool = False
    stateless: bool = False


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
    methods: Mapping[str, Method] = module(bindings, "methods").METHODS
    embedded = {name: route for name, route in routes.items() if route.method.carrier == "embedded"}
    return Vocabulary(
        revision=package.REVISION,
        role=role,
        bindings=bindings,
        routes={name: route for name, route in routes.items() if name not in embedded} | custom_routes(target),
        questions=embedded,
        methods=methods,
        flags=module(bindings, "methods").FLAGS,
        batches="JSONRPCBatchRequest" in module(bindings, "types").__all__,
        stateless=INITIALIZE not in methods,
    )


def module(bindings: str, name: str) -> ModuleType:
    """A module of a package of bindings."""
    return import_module(f"{bindings}.{name}")
