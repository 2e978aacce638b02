"""Describe one revision of the protocol as the runtime sees it: its facts, its era, and its two dispatchers."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..logs import log
from . import jsonrpc
from .errors import MethodNotFound
from .extension import Extension, added_to, definers, with_answers
from .methods import LISTEN, OTHER_ROLE, UPDATED, Method, Notification, Path, RequestMethod, Role, result_type
from .routing import Route, UserHandler, asynchronous, custom_routes


@dataclass(frozen=True, eq=False)
class Era:
    """Era of a revision: how connections begin, and how messages name their revision.

    Attributes:
        is_stateless: True if requests depend on no earlier message, so that hanging up cancels a request
            and nothing can be sent unasked.
    """

    is_stateless: bool


HANDSHAKE = Era(is_stateless=False)
"""Revisions up to 2025-11-25: the client introduces itself once (MCP, "Lifecycle"); `Connection` has the rules."""

STATELESS = Era(is_stateless=True)
"""Revisions from 2026-07-28: each request names its revision and its sender; `stateless` has the rules."""


@dataclass(frozen=True, eq=False, repr=False)
class Revision:
    """The facts of one revision; generated packages hold one, as `REVISION`.

    Facts that need the types of the revision import its modules when they are asked for.

    Attributes:
        name: Its date, or the name of a draft.
        era: Its era.
        package: The import name of its bindings.
        cancelled_name: The name of the notification that takes a request back.
        progress_name: The name of the notification about progress.
        log_name: The name of the notification with log messages.
        ping_name: The name of the request that asks whether the other side is still there.
        errors: Name -> code, of the errors that the protocol adds to JSON-RPC's.
        meta_keys: Python name -> key, of the members of `_meta` that requests, results and notifications carry.
        cache_invalidations: Notification -> methods whose cached results it invalidates.
        batches: True if there are JSON-RPC batches.
        stream_polling: True if clients take an event without data and come back to a stream that the server closed.
        unnamed_over_http: True if a message over HTTP is in this revision that belongs to no session and names none.
        trace_context: The members of `_meta` that carry the context of a trace, in the forms of the W3C.
        argument_errors_in_results: True if a tool answers arguments that do not fit with a result, and not an error.
        draft: True if unreleased: peers of a released revision of the same era speak the released one.
        missing: The definitions that a connection begins with and that its schema lacks.
    """

    name: str
    era: Era
    package: str
    cancelled_name: str = ""
    progress_name: str = ""
    log_name: str = ""
    ping_name: str = ""
    errors: Mapping[str, int] = field(default_factory=dict[str, int])
    meta_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    cache_invalidations: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    batches: bool = False
    stream_polling: bool = False
    unnamed_over_http: bool = False
    trace_context: tuple[str, ...] = ()
    argument_errors_in_results: bool = False
    draft: bool = False
    missing: tuple[str, ...] = ()

    @cached_property
    def version_key(self) -> str:
        """The key of `_meta` under which stateless requests name their revision; a draft may have none."""
        return self.meta_keys.get("protocol_version", "protocol_version of a draft without one")

    @cached_property
    def quoted_version_key(self) -> bytes:
        """The same as JSON text."""
        return f'"{self.version_key}"'.encode()

    def check_connectable(self) -> None:
        """Raise `ValueError` if the schema of the revision lacks a definition that a connection begins with."""
        if self.missing:
            raise ValueError(
                f"the bindings of {self.name} are types and stubs only: their schema has no {', '.join(self.missing)}; "
                "add these definitions to it and generate again"
            )

    @cached_property
    def types(self) -> ModuleType:
        """The module of its types."""
        return import_module(f"{self.package}.types")

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """Method name -> descriptor, for all methods."""
        found: Mapping[str, Method] = import_module(f"{self.package}.methods").METHODS
        return found

    @cached_property
    def flags(self) -> frozenset[Path]:
        """Capabilities that are `true` and not objects."""
        found: frozenset[Path] = import_module(f"{self.package}.methods").FLAGS
        return found

    @cached_property
    def subscription_filter(self) -> Any:
        """The class of the filters of subscriptions; `None` where there are no subscriptions."""
        listen = self.methods.get(LISTEN)
        return None if listen is None else listen.params.model_fields["notifications"].annotation

    @cached_property
    def resources_member(self) -> str:
        """The field of these filters that lists resources; empty if there is none."""
        updated = self._notification(UPDATED)
        return "" if updated is None or updated.filter is None else updated.filter.member

    @cached_property
    def utilities(self) -> Mapping[str, str]:
        """Method name -> utility, of the notifications that the protocol itself reacts to."""
        return {self.cancelled_name: "cancelled", self.progress_name: "progress"}

    @cached_property
    def cancelled(self) -> Notification[Any] | None:
        """The notification that takes a request back."""
        return self._notification(self.cancelled_name)

    @cached_property
    def progress(self) -> Notification[Any] | None:
        """The notification about progress."""
        return self._notification(self.progress_name)

    @cached_property
    def log(self) -> Notification[Any] | None:
        """The notification with log messages."""
        return self._notification(self.log_name)

    @cached_property
    def ping(self) -> RequestMethod[Any, Any] | None:
        """The request that asks whether the other side is still there."""
        found = self.methods.get(self.ping_name)
        return found if isinstance(found, RequestMethod) else None

    def _notification(self, name: str) -> Notification[Any] | None:
        found = self.methods.get(name)
        return found if isinstance(found, Notification) else None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Revision({self.name!r})"

    @property
    def rank(self) -> tuple[bool, str]:
        """The key that sorts revisions, the best last: drafts, then by date."""
        return not self.draft, self.name

    def request(self, name: str) -> RequestMethod[Any, Any]:
        """Return the descriptor of a request; raises `MethodNotFound` where the revision has none of that name."""
        method = self.methods.get(name)
        if method is None or method.kind != "request":
            raise MethodNotFound(name)
        return method


class KnownRevision(NamedTuple):
    """The facts of a revision that are known without an import of its bindings.

    Attributes:
        name: Its date, or the name of a draft.
        package: The import name of its bindings.
        is_stateless: True if it is of the stateless era.
        is_draft: True if it is unreleased.
    """

    name: str
    package: str
    is_stateless: bool
    is_draft: bool

    @property
    def rank(self) -> tuple[bool, str]:
        """The key that sorts revisions, the best last: drafts, then by date."""
        return not self.is_draft, self.name

    @property
    def bindings(self) -> ModuleType:
        """The package of its bindings, which is imported."""
        return import_module(self.package)


def facts_of(revision: Revision) -> KnownRevision:
    """Return the facts of a `Revision`."""
    return KnownRevision(revision.name, revision.package, revision.era.is_stateless, revision.draft)


class Dispatcher:
    """The routes of one side in one revision: from the name of a method to the handler of a user's object.

    Args:
        revision: The revision.
        role: Which side.
        routes: One for each method that the other side sends.

    Attributes:
        extensions: The extensions of the class behind these routes.
    """

    extensions: tuple[Extension, ...] = ()

    def __init__(self, revision: Revision, role: Role, *routes: Route) -> None:
        self.revision = revision
        self.role: Role = role
        self._all = routes
        self._custom: dict[str, Route] = {}
        self._extended: WeakKeyDictionary[type, Dispatcher] = WeakKeyDictionary()  # bridges make classes as they go
        self._offered: WeakKeyDictionary[type, list[str]] = WeakKeyDictionary()

    @property
    def handlers(self) -> frozenset[str]:
        """The names of the stubs."""
        return frozenset(route.handler for route in self._all)

    @cached_property
    def routes(self) -> dict[str, Route]:
        """Method name -> route, for messages."""
        return {route.method.name: route for route in self._all if route.method.carrier == "message"} | self._custom

    @cached_property
    def embedded(self) -> dict[str, Route]:
        """Method name -> route, for requests that come inside of results."""
        return {route.method.name: route for route in self._all if route.method.carrier == "embedded"}

    @cached_property
    def methods(self) -> Mapping[str, Method]:
        """Method name -> descriptor, for all methods of the revision and of the extensions."""
        return ChainMap(*(dict(one.methods) for one in self.extensions), dict(self.revision.methods))

    def extended(self, kind: type) -> Dispatcher:
        """Return the dispatcher for objects of a class, with the additions of extensions, and its own methods.

        Raises:
            TypeError: Extensions of the class do not go together.
        """
        found = self._extended.get(kind)
        if found is None:
            added = added_to(kind)
            routes = added[0].joined(kind, self.revision.methods, self._all) if added else self._all
            found = self._extended[kind] = Dispatcher(self.revision, self.role, *routes)
            found.extensions = tuple(one.extension for one in added)
            found._custom = custom_routes(kind)
        return found

    def answerable(self, method: RequestMethod[Any, Any], offers: Mapping[str, Any]) -> RequestMethod[Any, Any]:
        """Return a request of ours with the answers of those extensions that the other side declares."""
        core = self.revision.methods.get(method.name) if self.extensions else None
        if not isinstance(core, RequestMethod) or method.result is not core.result:
            return method
        return _answered(core, tuple([one for one in self.extensions if one.is_in(offers)]))

    def is_handled(self, route: Route, target: object) -> bool:
        """Return whether `target` overrides the stub of a route, or brought the route itself."""
        if route.is_custom:
            return True
        name = route.handler
        generated = next(one for one in definers(type(target), name) if one.__dict__.keys() & {"dispatcher", "adds"})
        return getattr(type(target), name) is not getattr(generated, name)

    def offered(self, target: object) -> list[str]:
        """Return the names of the methods that `target` handles, which its class decides."""
        found = self._offered.get(type(target))
        if found is None:
            routes = {**self.routes, **self.embedded}
            found = [name for name, route in routes.items() if self.is_handled(route, target)]
            self._offered[type(target)] = found
        return found

    def handler(self, route: Route, target: object) -> Callable[..., Any]:
        """Return the handler of `target` for a route, bound to it.

        Raises:
            MethodNotFound: `target` does not handle it.
        """
        if not self.is_handled(route, target):
            raise MethodNotFound(route.method.name)
        handler: Callable[..., Any] = getattr(target, route.handler)
        return handler

    def bound(self, route: Route, target: object) -> UserHandler:
        """Return the handler of `target` as a coroutine function of params and context; a `def` runs in a thread.

        Raises:
            MethodNotFound: `target` does not handle the method.
        """
        work = _shaped(route.method, asynchronous(self.handler(route, target)))
        return _negotiated(self, route.method, target, work) if self.extensions else work


def _shaped(method: Method, handler: Callable[..., Awaitable[Any]]) -> UserHandler:
    """Return a handler as a function of params and context that truncates its list, if the list has a limit."""
    truncation = method.truncation if isinstance(method, RequestMethod) else None
    if truncation is None:
        return handler if method.params is not None else lambda params, context: handler(context)

    async def truncated(params: object, context: object) -> Any:
        result, excess = truncation.applied(await handler(params, context))
        if excess:
            log.warning("%s: %d values beyond the first %d are not sent", method.name, excess, truncation.max_items)
        return result

    return truncated


def _negotiated(dispatcher: Dispatcher, method: Method, target: Any, work: UserHandler) -> UserHandler:
    """Return a handler that uses extensions only if the peer declares them.

    Raises (the handler):
        CapabilityMissing: The method or its result belongs to an extension that the peer does not declare.
    """
    by_id = {one.id: one for one in dispatcher.extensions}
    brought = {result_type(kind): one for one in dispatcher.extensions for kind in one.answering(method.name)}
    theirs = OTHER_ROLE[dispatcher.role]
    owner = by_id.get(method.extension or "") if method.declared_by in (theirs, "both") else None

    async def negotiated(params: Any, context: Any) -> Any:
        if owner is not None:
            context.require_extension(owner)
        answer = await work(params, context)
        extension = brought.get(jsonrpc.result_type_of(answer)) if brought else None
        if extension is not None:
            context.require_extension(extension)
        return answer

    checked = work if owner is None and not brought else negotiated
    return target.around(method, checked) if dispatcher.role == "server" else checked


class Dispatchers(Mapping[str, Dispatcher]):
    """Dispatchers of the revisions that a side speaks, the best revision last; each is made when it is first asked for.

    Args:
        own: Revision -> True if it is stateless, of revisions that need no conversion.
        make: Returns the dispatcher of a revision.
        more: Returns the same for all revisions; called when another revision than the own ones is asked for.
    """

    def __init__(
        self,
        own: Mapping[str, bool],
        make: Callable[[str], Dispatcher],
        more: Callable[[], Mapping[str, bool]] | None = None,
    ) -> None:
        self._own, self._make, self._more = own, make, more
        self._made: dict[str, Dispatcher] = {}

    @cached_property
    def _all(self) -> Mapping[str, bool]:
        return self._own if self._more is None else self._more()

    def __getitem__(self, name: str) -> Dispatcher:
        found = self._made.get(name)
        if found is None:
            if name not in self._own and name not in self._all:
                raise KeyError(name)
            found = self._made[name] = self._make(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def names(self, *, is_stateless: bool) -> list[str]:
        """Return all revisions of an era, the best last."""
        return [name for name, found in self._all.items() if found is is_stateless]

    def only(self, *, is_stateless: bool) -> Dispatchers:
        """Return the mapping of the revisions of one era; its `supported` has all."""
        found = Dispatchers(dict.fromkeys(self.names(is_stateless=is_stateless), is_stateless), self.__getitem__)
        found.supported = self.supported
        return found

    def best(self, *, is_stateless: bool) -> str | None:
        """Return the best revision of an era that needs no conversion, or else that needs it; None if there is none."""
        own = [name for name, found in self._own.items() if found is is_stateless]
        return next(reversed(own or self.names(is_stateless=is_stateless)), None)

    def first(self) -> Dispatcher:
        """Return the dispatcher of a new connection: of the best stateful revision, or else of the best one."""
        return self[self.best(is_stateless=False) or str(self.best(is_stateless=True))]

    def stateful(self, wanted: object) -> Dispatcher:
        """Return the dispatcher of the revision that a client wants, or else of the best stateful one."""
        if isinstance(wanted, str) and not self._own.get(wanted, True):
            return self[wanted]
        known = self.names(is_stateless=False)
        return self[wanted if isinstance(wanted, str) and wanted in known else known[-1]]

    @cached_property
    def supported(self) -> list[str]:
        """All revisions, the best first."""
        return list(self)[::-1]


_answered = cache(with_answers)
