"""Handlers: the marked methods of a contract's class, bound to an object and checked against the contract."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.routing import asynchronous, place_of
from mcp_bindgen.runtime.session.context import Context

from .catalog import KINDS, SCOPES, Catalog, Entry, Kind
from .context import Layer, Owner
from .errors import InvalidArguments, InvalidResult, ToolError
from .values import TypeForm, is_json

if TYPE_CHECKING:
    from mcp_bindgen.extensions.skills.folder import Skills
    from mcp_bindgen.extensions.tasks.tools import ToolTask

    from .uri_template import Match, UriTemplate
    from .validation import Validator

F = TypeVar("F", bound=Callable[..., Any])

TASK_MARK = "__mcp_task__"
"""The attribute of a method that runs as a task: see `mcp_bindgen.extensions.tasks.task`."""

UNSAFE = "an absolute path, a .. segment or a control character in a variable"


@dataclass(frozen=True, eq=False)
class HandlerSpec:
    """The purpose of a method; call the spec to mark the method with it.

    Attributes:
        kind: The kind of the entry that the method handles.
        name: The name on the wire; the URI of a resource, the URI template of a template.
        input: The type of the arguments; `None` for a method that takes the context alone.
        output: The type of a tool's structured result; `None` for a tool without one.
        member: The member of the structured content that contains the result, if the result is no object itself.
        tags: The tags by which an `App` enables and disables the entry.
        timeout: Seconds that a call may take; `None` for no limit.
        allows_unsafe_values: True if variables of a template may be absolute paths, and have `..` segments and control
            characters.
    """

    kind: Kind
    name: str
    input: TypeForm = None
    output: TypeForm = None
    member: str | None = None
    tags: frozenset[str] = frozenset()
    timeout: float | None = None
    allows_unsafe_values: bool = False

    def __call__(self, method: F) -> F:
        """Mark a method."""
        method.__mcp_handler__ = self  # type: ignore[attr-defined]
        return method


class BoundHandler:
    """A handler with its entry in the contract.

    Args:
        spec: The mark of the method.
        entry: The entry.
        method: The bound method.
        validation_steps: Maximum of steps for the validation of a value.

    Attributes:
        task: The way a tool runs as a task; `None` if it never does. The mark of the method counts, else the member
            `execution.taskSupport` of the entry (MCP 2025-11-25, "Tools").
        is_for_model: True unless a tool is for apps alone.
        layers: The apps that offer the entry, the outermost first; none for a contract.
    """

    layers: tuple[Layer, ...] = ()

    def __init__(self, spec: HandlerSpec, entry: Entry, method: Callable[..., Any], validation_steps: int) -> None:
        self.spec = spec
        self.entry = entry
        self._method = asynchronous(method)
        self._function = inspect.unwrap(method)
        self.task: ToolTask | None = _task(method, entry)
        self.is_for_model: bool = "_meta" not in entry or _is_for_model(entry)
        self._schemas = entry if spec.kind == "tool" else {}  # of the first name, which errors about schemas state
        self._validation_steps = validation_steps
        for member in ("inputSchema", "outputSchema"):
            if member in self._schemas:
                require("serving the tools of a contract", "jsonschema_rs", extra="app")

    @cached_property
    def input(self) -> Validator | None:
        """Validates the arguments of a tool that has an input schema."""
        return self._validator("inputSchema")

    @cached_property
    def output(self) -> Validator | None:
        """Validates the structured content of a tool that has an output schema."""
        return self._validator("outputSchema")

    def _validator(self, member: str) -> Validator | None:
        if member not in self._schemas:
            return None
        from .validation import Validator  # the first call of a tool needs it

        place = f"the {member} of {self._schemas['name']!r}"
        return Validator(self._schemas[member], place, most_steps=self._validation_steps)

    def read(self, arguments: Mapping[str, Any], root: str) -> Any:
        """Return arguments in the type of the handler; raise `InvalidArguments` with paths that begin at `root`."""
        if self.input is not None and (wrong := self.input.problems(arguments, root)):
            raise InvalidArguments(self.spec.name, wrong)
        if self.spec.input is None:
            return None
        from .validation import typed  # the first call needs it

        return typed(self.spec.input, arguments, root, self._unfit)

    def _unfit(self, problems: Sequence[dict[str, str]]) -> InvalidArguments:
        from .validation import MAX_PROBLEMS  # only if arguments are refused

        return InvalidArguments(self.spec.name, problems[:MAX_PROBLEMS])

    def call(self, arguments: object, ctx: Context) -> Awaitable[Any]:
        """Call the method with typed arguments."""
        work = self._method(ctx) if self.spec.input is None else self._method(arguments, ctx)
        return work if self.spec.timeout is None else self._limited(work, self.spec.timeout)

    async def _limited(self, work: Awaitable[Any], seconds: float) -> Any:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await work
        except TimeoutError:
            if not limit.expired():
                raise
            raise ToolError(f"{self.spec.name} took longer than {seconds:g} s") from None

    def viewed(self, name: str, entry: Entry, *layers: Layer) -> BoundHandler:
        """Return the handler under another name, with another entry, offered by these apps."""
        view = copy(self)
        view.spec, view.entry, view.layers = replace(self.spec, name=name), entry, layers
        return view

    def is_enabled(self, identity: Identity | None) -> bool:
        """Return True if all apps that offer the entry have it enabled for a caller; `None` without token."""
        return all(owner.allows(name, self.spec.tags, identity) for owner, name in self.layers)

    def admits(self, identity: Identity | None) -> bool:
        """Return True if all conditions of the entry hold for a caller; for an unknown caller, if there are none."""
        return all(owner.admits(name, self.spec.tags, identity) for owner, name in self.layers)

    def at(self, texts: Sequence[str]) -> BoundHandler:
        """Return the handler of a template for one URI, whose expressions have these texts: its layers are named so."""
        from .uri_template import filled  # few contracts have templates

        layers = (layer._replace(name=filled(layer.name, texts)) for layer in self.layers)
        return self.viewed(self.spec.name, self.entry, *layers)

    @property
    def place(self) -> str:
        """File and line of the function."""
        return place_of(self._function)

    def invalid(self, reason: str) -> InvalidResult:
        """Return the error for a result that breaks the contract, with the line of the method."""
        return InvalidResult(f"the {self.spec.kind} {self.spec.name!r} {reason}", self._function)


def _task(method: Callable[..., Any], entry: Entry) -> ToolTask | None:
    """Return the way a tool runs as a task: as its method is marked, else as its entry states."""
    execution = entry.get("execution")
    support: Any = execution.get("taskSupport") if is_object(execution) else ""
    if not support and not hasattr(method, TASK_MARK):
        return None
    from mcp_bindgen.extensions.tasks.tools import Support, marked, tool_task  # few tools run as tasks

    return marked(method) or (tool_task(support) if support and support in get_args(Support) else None)


def _is_for_model(entry: Entry) -> bool:
    from mcp_bindgen.extensions.apps import visibility  # few tools have metadata

    return "model" in visibility(entry)


def key_of(kind: Kind, name: str) -> str:
    """Return the key of a handler: the canonical form of a resource's URI, else the name."""
    if kind != "resource":
        return name
    from mcp_bindgen.runtime.protocol.uris import canonical  # few contracts have resources

    return canonical(name)


class BoundContract:
    """A contract with its handlers.

    Args:
        catalog: The entries.
        validation_steps: Maximum of steps for the validation of a value.
        announces: See below.

    Attributes:
        handlers: Kind -> wire name -> handler; the keys of resources are canonical URIs.
        resource_rules: Key of `rule_keys` -> the entries of resources and templates that state scopes.
        templates: The URI templates and their handlers, the most specific first.
        complete: Completes values that no `enum` lists; `None` if the contract has no such method.
        skills: The skills whose files are resources; `None` if there are none.
        announces: The notifications about changes that its servers may send.
        listed_tools: The tools that `tools/list` has; none for all.
        has_conditions: True if entries have conditions for their callers.
    """

    listed_tools: Collection[str] = ()
    has_conditions: bool = False

    def __init__(self, catalog: Catalog, validation_steps: int, announces: Collection[str] = ()) -> None:
        self.catalog = catalog
        self.announces = announces
        self.handlers: dict[Kind, dict[str, BoundHandler]] = {kind: {} for kind in KINDS}
        self.resource_rules: dict[str, list[Entry]] = {}
        self.templates: list[tuple[UriTemplate, BoundHandler]] = []
        self.complete: Callable[..., Awaitable[Any]] | None = None
        self.skills: Skills | None = None
        self._validation_steps = validation_steps

    def handler(self, spec: HandlerSpec, entry: Entry, method: Callable[..., Any]) -> BoundHandler:
        """Return a method as the handler of an entry, which `bind` and `add` take."""
        return BoundHandler(spec, entry, method, self._validation_steps)

    def find(self, kind: Kind, entry: Entry) -> BoundHandler:
        """Return the handler of an entry."""
        return self.handlers[kind][key_of(kind, entry[KINDS[kind].key])]

    def bind(self, handler: BoundHandler) -> None:
        """Let a handler answer for its entry.

        Raises:
            ValueError: Two forms of one URI have resources, or the entry would make its list invalid.
        """
        spec, entry = handler.spec, handler.entry
        for member in (member for member, value in entry.items() if not is_json(value)):
            problem = f"the {member} of the {spec.kind} {spec.name!r} has NaN, an infinity or half of a surrogate pair"
            raise ValueError(f"{handler.place}: {problem}, which JSON lacks; remove it")
        handlers, key = self.handlers[spec.kind], key_of(spec.kind, spec.name)
        if key in handlers and (former := handlers[key].spec.name) != spec.name:
            raise ValueError(f"{former!r} and {spec.name!r} are the same URI: remove one of the resources")
        if spec.kind == "template":
            from .uri_template import UriTemplate  # few contracts have templates

            templates = [*self.templates, (UriTemplate(spec.name), handler)]
            self.templates = sorted(templates, key=lambda pair: pair[0].specificity, reverse=True)
        handlers[key] = handler
        if SCOPES in entry and spec.kind in ("resource", "template"):
            from mcp_bindgen.auth.resource_server.policy import rule_keys  # few entries state scopes

            self.resource_rules.setdefault(rule_keys(spec.name)[0], []).append(entry)

    def add(self, handler: BoundHandler) -> None:
        """Add an entry and its handler; raise `ValueError` if an entry has that name."""
        spec, entry = handler.spec, handler.entry
        former = self.handlers[spec.kind].get(key_of(spec.kind, spec.name))
        if former is not None:
            fix = "" if spec.kind in ("resource", "template") else f'; rename one: @app.{spec.kind}(name="...")'
            raise ValueError(f"{handler.place}: the {spec.kind} {spec.name!r} exists already, at {former.place}{fix}")
        self.bind(handler)
        self.catalog.document.setdefault(KINDS[spec.kind].member, []).append(entry)

    def remove(self, kind: Kind, name: str) -> None:
        """Remove an entry; raise `KeyError` if there is none."""
        handler = self.handlers[kind].pop(key_of(kind, name))
        for entries in self.resource_rules.values():
            entries[:] = [entry for entry in entries if entry is not handler.entry]
        self.templates = [pair for pair in self.templates if pair[1] is not handler]
        self.catalog.document[KINDS[kind].member].remove(handler.entry)

    def knows(self, uri: str, offers: Callable[[BoundHandler], bool] = lambda _: True) -> bool:
        """Return True if a URI belongs to a resource or matches a template, of those that are offered."""
        exact = self.handlers["resource"].get(key_of("resource", uri))
        return (exact is not None and offers(exact)) or any(offers(handler) for handler, _ in self.matching(uri))

    def matching(self, uri: str) -> Iterator[tuple[BoundHandler, Match]]:
        """Yield the templates that match a URI, the most specific first; none after one that refuses a value."""
        from .uri_template import is_unsafe  # few contracts have templates

        for template, handler in self.templates:
            found = template.find(uri)
            if found is None:
                continue
            if not handler.spec.allows_unsafe_values and is_unsafe(found.values):
                log.info("a URI for %s has %s; allows_unsafe_values=True allows it", template.text, UNSAFE)
                return
            yield handler, found


def prefixed(kind: Kind, name: str, prefix: str) -> str:
    """Return the name of an entry below a prefix: `books_find` for a tool, `note://books/1` for a resource."""
    if not prefix:
        return name
    if kind in ("tool", "prompt"):
        return f"{prefix}_{name}"
    scheme, _, rest = name.partition(":")
    return f"{scheme}://{prefix}/{rest[2:]}" if rest.startswith("//") else f"{scheme}:{prefix}/{rest}"


def mounted(handler: BoundHandler, owner: Owner, prefix: str) -> BoundHandler:
    """Return the handler of an entry that an app offers below a prefix; names in its entry change likewise."""
    kind = handler.spec.kind
    name = prefixed(kind, handler.spec.name, prefix)
    entry: Entry = {**handler.entry, KINDS[kind].key: name}
    if "_meta" not in entry:
        return handler.viewed(name, entry, Layer(owner, name), *handler.layers)
    from mcp_bindgen.extensions.apps import resource_uri  # few tools have metadata

    shown_by = resource_uri(entry)
    if shown_by is not None:
        ui = {**entry["_meta"]["ui"], "resourceUri": prefixed("resource", shown_by, prefix)}
        entry["_meta"] = {**entry["_meta"], "ui": ui}
    return handler.viewed(name, entry, Layer(owner, name), *handler.layers)


def renamed(handler: BoundHandler, name: str) -> BoundHandler:
    """Return the handler of a tool under another name."""
    first, *rest = handler.layers
    return handler.viewed(name, {**handler.entry, "name": name}, first._replace(name=name), *rest)
