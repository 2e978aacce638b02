"""Handlers: the methods of a contract's class, marked with what they are, bound to an object and checked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ..tasks import in_thread
from ._types import typed
from ._validation import MOST, Validator
from .catalog import Catalog, Entry
from .errors import InvalidArguments, InvalidResult
from .uri_template import UriTemplate

F = TypeVar("F", bound=Callable[..., Any])

Kind = Literal["tool", "prompt", "resource", "template"]


@dataclass(frozen=True, eq=False)
class HandlerSpec:
    """A mark that says what a method handles; call it to mark the method.

    Attributes:
        kind: What the method is for.
        name: The name on the wire; the URI of a resource, the URI template of a template.
        input: The type of the arguments; `None` for a method that takes the context alone.
        output: The type of a tool's structured result; `None` for a tool without one.
    """

    kind: Kind
    name: str
    input: Any = None
    output: Any = None

    def __call__(self, method: F) -> F:
        """Mark a method."""
        method.__mcp_handler__ = self  # type: ignore[attr-defined]
        return method


def tool(name: str, input: Any = None, output: Any = None) -> HandlerSpec:
    """Mark the method of a tool.

    Args:
        name: Its name in the contract.
        input: The type of its arguments; a method without one takes the context alone.
        output: The type of its structured result, if its schema is in the contract.
    """
    return HandlerSpec("tool", name, input, output)


def prompt(name: str, arguments: Any = None) -> HandlerSpec:
    """Mark the method of a prompt; one without arguments takes the context alone."""
    return HandlerSpec("prompt", name, arguments)


def resource(uri: str) -> HandlerSpec:
    """Mark the method that reads a resource."""
    return HandlerSpec("resource", uri)


def template(uri_template: str, variables: Any = None) -> HandlerSpec:
    """Mark the method that reads the resources of a template; `variables` is the type of what is in their URIs."""
    return HandlerSpec("template", uri_template, variables)


def specs(contract: type) -> dict[str, HandlerSpec]:
    """Return method name -> spec for a class and its bases; an override need not be marked again."""
    return {
        name: spec
        for base in reversed(contract.__mro__)
        for name, method in vars(base).items()
        if isinstance(spec := getattr(method, "__mcp_handler__", None), HandlerSpec)
    }


def asynchronous(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a method as one that does not block: a plain function runs in a thread."""
    return method if inspect.iscoroutinefunction(method) else in_thread(method)


class BoundHandler:
    """A handler with its entry in the contract.

    Args:
        spec: What the method is marked with.
        entry: What the contract says of it.
        method: The bound method.
        validation_steps: How many steps the validation of a value may take at most.

    Attributes:
        input: Validates the arguments of a tool that has an input schema.
        output: Validates the structured content of a tool that has an output schema.
    """

    def __init__(self, spec: HandlerSpec, entry: Entry, method: Callable[..., Any], validation_steps: int) -> None:
        self.spec = spec
        self.entry = entry
        self._method = asynchronous(method)
        schemas = entry if spec.kind == "tool" else {}
        self.input, self.output = (
            Validator(schemas[member], f"the {member} of {spec.name!r}", most_steps=validation_steps)
            if member in schemas
            else None
            for member in ("inputSchema", "outputSchema")
        )

    def read(self, arguments: Any, root: str) -> Any:
        """Return arguments in the type of the handler; raise `InvalidArguments` with paths that begin at `root`."""
        wrong = self.input.problems(arguments, root) if self.input is not None else []
        if wrong:
            raise InvalidArguments(self.spec.name, wrong)
        if self.spec.input is None:
            return None
        return typed(self.spec.input, arguments, root, lambda found: InvalidArguments(self.spec.name, found[:MOST]))

    async def call(self, arguments: Any, ctx: Any) -> Any:
        """Call the method with typed arguments."""
        return await (self._method(ctx) if self.spec.input is None else self._method(arguments, ctx))

    def described(self, member: str) -> Entry:
        """Return one member of the entry as an object, which is empty if the contract does not have it."""
        value = self.entry.get(member)
        return {} if value is None else {member: value}

    def invalid(self, reason: str) -> InvalidResult:
        """Return the error for a result that is not what the contract says."""
        return InvalidResult(f"the {self.spec.kind} {self.spec.name!r} {reason}")


class BoundContract:
    """A contract with its handlers.

    Args:
        owner: The object whose methods are the handlers.
        catalog: What the contract says.
        complete: Completes values that no `enum` lists, if there is such a method.
        validation_steps: How many steps the validation of a value may take at most.

    Attributes:
        handlers: Kind -> wire name -> handler.
        templates: The URI templates and their handlers, the most specific first.

    Raises:
        ValueError: The methods and the contract's document do not belong together.
        ImportError: There are tools or templates, and `mcp-bindgen[contract]` is not installed.
    """

    def __init__(
        self, owner: object, catalog: Catalog, complete: Callable[..., Any] | None, validation_steps: int
    ) -> None:
        self.catalog = catalog
        self.complete = None if complete is None else asynchronous(complete)
        entries: dict[Kind, dict[str, Entry]] = {
            "tool": catalog.tools,
            "prompt": catalog.prompts,
            "resource": catalog.resources,
            "template": catalog.templates,
        }
        self.handlers: dict[Kind, dict[str, BoundHandler]] = {kind: {} for kind in entries}
        class_name = type(owner).__name__
        for name, spec in specs(type(owner)).items():
            entry = entries[spec.kind].get(spec.name)
            if entry is None:
                raise ValueError(f"{class_name}.{name}: the contract has no {spec.kind} {spec.name!r}")
            self.handlers[spec.kind][spec.name] = BoundHandler(spec, entry, getattr(owner, name), validation_steps)
        for kind, named in entries.items():
            for name in named.keys() - self.handlers[kind].keys():
                raise ValueError(f"{class_name} has no method for the {kind} {name!r} of its contract")
        pairs = [(UriTemplate(text), handler) for text, handler in self.handlers["template"].items()]
        self.templates = sorted(pairs, key=lambda pair: pair[0].specificity, reverse=True)
