"""Handlers: the marked methods of a contract's class, bound to an object and checked against the contract."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args

from mcp_bindgen.auth.resource_server.policy import rule_keys
from mcp_bindgen.extensions.apps import resource_uri, visibility
from mcp_bindgen.extensions.tasks.tools import Support, ToolTask, marked, tool_task
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.protocol.routing import place_of
from mcp_bindgen.runtime.protocol.uris import canonical
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.execution import asynchronous

from .catalog import KINDS, SCOPES, Catalog, Entry, Kind
from .context import Layer, Owner
from .errors import InvalidArguments, InvalidResult, ToolError
from .uri_template import Match, UriTemplate, filled, is_unsafe
from .validation import MAX_PROBLEMS, Validator
from .values import TypeForm, is_json, typed

if TYPE_CHECKING:
    from mcp_bindgen.extensions.skills.folder import SkillFile, Skills


F = TypeVar("F", bound=Callable[..., Any])

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


def tool(name: str, input: TypeForm = None, output: TypeForm = None) -> HandlerSpec:
    """Mark the method of a tool.

    Args:
        name: Its name in the contract.
        input: The type of its arguments; a method without one takes the context alone.
        output: The type of its structured result, if its schema is in the contract.
    """
    return HandlerSpec("tool", name, input, output)


def prompt(name: str, arguments: TypeForm = None) -> HandlerSpec:
    """Mark the method of a prompt; one without arguments takes the context alone."""
    return HandlerSpec("prompt", name, arguments)


def resource(uri: str) -> HandlerSpec:
    """Mark the method that reads a resource."""
    return HandlerSpec("resource", uri)


def template(uri_template: str, variables: TypeForm = None, *, allows_unsafe_values: bool = False) -> HandlerSpec:
    """Mark the method that reads the resources of a template.

    Args:
        uri_template: The template.
        variables: The type of the values in the URIs.
        allows_unsafe_values: True if values may be absolute paths, and have `..` segments and control characters; by
            default there is no resource at such a URI.
    """
    return HandlerSpec("template", uri_template, variables, allows_unsafe_values=allows_unsafe_values)


def spec_of(method: object) -> HandlerSpec | None:
    """Return the spec that a method is marked with, or None."""
    spec = getattr(method, "__mcp_handler__", None)
    return spec if isinstance(spec, HandlerSpec) else None


def specs(contract: type) -> dict[str, HandlerSpec]:
    """Return method name -> spec for a class and its bases; an override need not be marked again."""
    members = (member for base in reversed(contract.__mro__) for member in base.__dict__.items())
    return {name: spec for name, method in members if (spec := spec_of(method)) is not None}


def missing_method(kind: type, name: str) -> str:
    """Describe a method of a contract that a class lacks, and a method of a similar name.

    Args:
        kind: The class.
        name: The name of the abstract method.
    """
    spec = spec_of(inspect.getattr_static(kind, name))
    offer = f", for the {spec.kind} {spec.name!r}" if spec is not None else ""
    near = get_close_matches(name, [own for own in kind.__dict__ if not own.startswith("_")], n=1, cutoff=0.8)
    return f"{kind.__name__} misses {name}{offer}" + (f"; did you mean it by {near[0]}?" if near else "")


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
        input: Validates the arguments of a tool that has an input schema.
        output: Validates the structured content of a tool that has an output schema.
        layers: The apps that offer the entry, the outermost first; none for a contract.
    """

    layers: tuple[Layer, ...] = ()

    def __init__(self, spec: HandlerSpec, entry: Entry, method: Callable[..., Any], validation_steps: int) -> None:
        self.spec = spec
        self.entry = entry
        self._method = asynchronous(method)
        self._function = inspect.unwrap(method)
        execution = entry.get("execution")
        support: Any = execution.get("taskSupport") if is_object(execution) else None
        self.task: ToolTask | None = marked(method) or (tool_task(support) if support in get_args(Support) else None)
        self.is_for_model: bool = "model" in visibility(entry)
        named = [member for member in ("inputSchema", "outputSchema") if member in entry and spec.kind == "tool"]
        made = {one: Validator(entry[one], f"the {one} of {spec.name!r}", most_steps=validation_steps) for one in named}
        self.input: Validator | None = made.get("inputSchema")
        self.output: Validator | None = made.get("outputSchema")

    def read(self, arguments: Mapping[str, Any], root: str) -> Any:
        """Return arguments in the type of the handler; raise `InvalidArguments` with paths that begin at `root`."""
        if self.input is not None and (wrong := self.input.problems(arguments, root)):
            raise InvalidArguments(self.spec.name, wrong)
        return None if self.spec.input is None else typed(self.spec.input, arguments, root, self._unfit)

    def _unfit(self, problems: Sequence[dict[str, str]]) -> InvalidArguments:
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

    def at(self, texts: Sequence[str]) -> BoundHandler:
        """Return the handler of a template for one URI, whose expressions have these texts: its layers are named so."""
        layers = (layer._replace(name=filled(layer.name, texts)) for layer in self.layers)
        return self.viewed(self.spec.name, self.entry, *layers)

    @property
    def place(self) -> str:
        """File and line of the function."""
        return place_of(self._function)

    def described(self, member: str) -> Entry:
        """Return an object with one member of the entry; an empty one if the entry lacks it."""
        value = self.entry.get(member)
        return {} if value is None else {member: value}

    def invalid(self, reason: str) -> InvalidResult:
        """Return the error for a result that breaks the contract, with the line of the method."""
        return InvalidResult(f"the {self.spec.kind} {self.spec.name!r} {reason}", self._function)


def _reader(file: SkillFile) -> Callable[[Context], Awaitable[str | bytes]]:
    """Return the method that reads a file of a skill."""

    async def read(ctx: Context) -> str | bytes:
        return file.contents

    return read


def _key(kind: Kind, name: str) -> str:
    """Return the key of a handler: the canonical form of a resource's URI, else the name."""
    return canonical(name) if kind == "resource" else name


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
        listed_tools: The tools that `tools/list` has; `None` for all.
    """

    listed_tools: Collection[str] | None = None

    def __init__(self, catalog: Catalog, validation_steps: int, announces: Collection[str] = ()) -> None:
        self.catalog = catalog
        self.announces = announces
        self.handlers: dict[Kind, dict[str, BoundHandler]] = {kind: {} for kind in KINDS}
        self.resource_rules: dict[str, list[Entry]] = {}
        self.templates: list[tuple[UriTemplate, BoundHandler]] = []
        self.complete: Callable[..., Awaitable[Any]] | None = None
        self.skills: Skills | None = None
        self._validation_steps = validation_steps

    @classmethod
    def of(cls, owner: object, catalog: Catalog, validation_steps: int) -> BoundContract:
        """Return a contract whose handlers are the methods of an object.

        Raises:
            ValueError: The methods and the contract's document do not belong together.
            ImportError: There are tools or templates, and `mcp-bindgen[app]` is not installed.
        """
        bound, class_name = cls(catalog, validation_steps), type(owner).__name__
        entries: dict[Kind, dict[str, Entry]] = {kind: catalog.entries(kind) for kind in KINDS}
        for name, spec in specs(type(owner)).items():
            entry = entries[spec.kind].get(spec.name)
            if entry is None:
                raise ValueError(f"{class_name}.{name}: the contract has no {spec.kind} {spec.name!r}")
            bound.bind(bound.handler(spec, entry, getattr(owner, name)))
        for kind, named in entries.items():
            for name in (name for name in named if _key(kind, name) not in bound.handlers[kind]):
                raise ValueError(f"{class_name} has no method for the {kind} {name!r} of its contract")
        return bound

    def handler(self, spec: HandlerSpec, entry: Entry, method: Callable[..., Any]) -> BoundHandler:
        """Return a method as the handler of an entry, which `bind` and `add` take."""
        return BoundHandler(spec, entry, method, self._validation_steps)

    def find(self, kind: Kind, entry: Entry) -> BoundHandler:
        """Return the handler of an entry."""
        return self.handlers[kind][_key(kind, entry[KINDS[kind].key])]

    def bind(self, handler: BoundHandler) -> None:
        """Let a handler answer for its entry.

        Raises:
            ValueError: Two forms of one URI have resources, or the entry would make its list invalid.
        """
        spec, entry = handler.spec, handler.entry
        for member in (member for member, value in entry.items() if not is_json(value)):
            problem = f"the {member} of the {spec.kind} {spec.name!r} has NaN, an infinity or half of a surrogate pair"
            raise ValueError(f"{handler.place}: {problem}, which JSON lacks; remove it")
        handlers, key = self.handlers[spec.kind], _key(spec.kind, spec.name)
        if key in handlers and (former := handlers[key].spec.name) != spec.name:
            raise ValueError(f"{former!r} and {spec.name!r} are the same URI: remove one of the resources")
        if spec.kind == "template":
            templates = [*self.templates, (UriTemplate(spec.name), handler)]
            self.templates = sorted(templates, key=lambda pair: pair[0].specificity, reverse=True)
        handlers[key] = handler
        if SCOPES in entry and spec.kind in ("resource", "template"):
            self.resource_rules.setdefault(rule_keys(spec.name)[0], []).append(entry)

    def add(self, handler: BoundHandler) -> None:
        """Add an entry and its handler; raise `ValueError` if an entry has that name."""
        spec, entry = handler.spec, handler.entry
        former = self.handlers[spec.kind].get(_key(spec.kind, spec.name))
        if former is not None:
            fix = "" if spec.kind in ("resource", "template") else f'; rename one: @app.{spec.kind}(name="...")'
            raise ValueError(f"{handler.place}: the {spec.kind} {spec.name!r} exists already, at {former.place}{fix}")
        self.bind(handler)
        self.catalog.document.setdefault(KINDS[spec.kind].member, []).append(entry)

    def add_skills(self, folder: str | PathLike[str]) -> None:
        """Add the skills of a folder: their files are resources, of which each `SKILL.md` is listed.

        Raises:
            BadSkill: The folder has no skill, a skill that clients need not accept, or a skill at a path that is taken.
            ImportError: `mcp-bindgen[skills]` is not installed.
        """
        from mcp_bindgen.extensions.skills.folder import Skills  # other contracts do not load it

        self.skills = self.skills or Skills()
        for file in self.skills.add(folder):
            add = self.add if file.uri in self.skills.entries else self.bind
            add(self.handler(HandlerSpec("resource", file.uri), self.skills.resource(file), _reader(file)))

    def remove(self, kind: Kind, name: str) -> None:
        """Remove an entry; raise `KeyError` if there is none."""
        handler = self.handlers[kind].pop(_key(kind, name))
        for entries in self.resource_rules.values():
            entries[:] = [entry for entry in entries if entry is not handler.entry]
        self.templates = [pair for pair in self.templates if pair[1] is not handler]
        self.catalog.document[KINDS[kind].member].remove(handler.entry)

    def knows(self, uri: str, offers: Callable[[BoundHandler], bool] = lambda _: True) -> bool:
        """Return True if a URI belongs to a resource or matches a template, of those that are offered."""
        exact = self.handlers["resource"].get(canonical(uri))
        return (exact is not None and offers(exact)) or any(offers(handler) for handler, _ in self.matching(uri))

    def matching(self, uri: str) -> Iterator[tuple[BoundHandler, Match]]:
        """Yield the templates that match a URI, the most specific first; none after one that refuses a value."""
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
    shown_by = resource_uri(entry)
    if shown_by is not None:
        ui = {**entry["_meta"]["ui"], "resourceUri": prefixed("resource", shown_by, prefix)}
        entry["_meta"] = {**entry["_meta"], "ui": ui}
    return handler.viewed(name, entry, Layer(owner, name), *handler.layers)


def renamed(handler: BoundHandler, name: str) -> BoundHandler:
    """Return the handler of a tool under another name."""
    first, *rest = handler.layers
    return handler.viewed(name, {**handler.entry, "name": name}, first._replace(name=name), *rest)


class Rule(NamedTuple):
    """A rule that enables or disables entries.

    Attributes:
        is_enabled: True to enable them.
        names: Their names.
        tags: Tags, of which an entry has at least one.
        subject: The subject of a token for which the rule holds; `None` for all callers.
        issuer: The issuer of that token; `None` for tokens without an issuer, and of any if the rule disables.
    """

    is_enabled: bool
    names: Collection[str]
    tags: Collection[str]
    subject: str | None
    issuer: str | None = None

    def holds(self, name: str, tags: Collection[str], subject: str | None, issuer: str) -> bool:
        """Return True if the rule is about an entry and a caller."""
        is_meant = name in self.names or not set(tags).isdisjoint(self.tags)
        has_issuer = issuer == (self.issuer or "") or (self.issuer is None and not self.is_enabled)
        return is_meant and (self.subject is None or (self.subject == subject and has_issuer))
