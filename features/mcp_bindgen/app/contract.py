"""The base of generated contracts, a class with a method for each entry, and the marks of these methods."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, ClassVar, Self, TypeVar, overload

from pydantic import BaseModel

from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.routing import asynchronous
from mcp_bindgen.runtime.session import context

from .catalog import KINDS, Catalog, Entry, Kind
from .features import Settings, tool_result
from .functions import Function, FunctionHandler
from .handlers import BoundContract, BoundHandler, HandlerSpec, key_of
from .optional_features import Completion, from_enum
from .serving import ContractServers, InProcess
from .values import MOST_STEPS, TypeForm

R = TypeVar("R", bound=BaseModel)


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
    from mcp_bindgen.runtime.similar_names import similar  # only mistakes wait for the import

    near = similar(name, (own for own in kind.__dict__ if not own.startswith("_")))
    return f"{kind.__name__} misses {name}{offer}" + (f"; did you mean it by {near[0]}?" if near else "")


class Contract(InProcess, Settings, ABC):
    """The base of a server's contract: a method for each tool, prompt and resource, in every revision.

    A generated class derives from it; subclass that class, write its methods, and `run(Yours())`.

    Attributes:
        catalog: The entries of the contract.
        revisions: The bindings of the revisions in which it is served; `None` for all that are installed.
        info: The server's `Implementation` in wire form; `None` for that in the contract.
        instructions: Advice to models on the use of the server; `None` for that in the contract.
        argument_errors: The response to a call with invalid arguments: an error of the protocol (-32602), or a result
            with `isError`, which hosts show to the model; `None` for the preference of each revision, which is a result
            from 2025-11-25 on.
        tasks: The service that runs tools as tasks; `None` for one in the memory of this process.
        hide_errors: True if callers of a failed tool read only that it failed, False if they read one line about the
            exception, `None` to hide that line from callers with a token. `ToolError` is always shown.
        hide_forbidden: True to list only entries that the token of a caller allows: see `App`.
        page_size: Maximum of entries in a page of a list: see `App`.
        validation_steps: Maximum of steps for the validation of a value; a schema that can take more is refused on
            first use.
    """

    catalog: ClassVar[Catalog]
    validation_steps: int = MOST_STEPS

    def __new__(cls, *arguments: object, **named: object) -> Self:
        """Make an object; raise `TypeError` if the class lacks methods of the contract."""
        missing: Collection[str] = cls.__abstractmethods__
        if missing:
            raise TypeError("; ".join(missing_method(cls, name) for name in sorted(missing)))
        return super().__new__(cls)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start and stop the resources that the servers share: override it, and `yield` while they serve."""
        yield

    async def complete(self, asked: Completion, ctx: Any) -> Sequence[str]:
        """Return the values that complete a typed text, the best first: the values of an `enum`, unless overridden.

        Args:
            asked: The value to complete.
            ctx: The context of the request; an override may annotate it with the contexts of its revisions.
        """
        return from_enum(self.catalog, asked)

    def served(self) -> ContractServers:
        """Return the servers for one endpoint; they share this object and its lifespan.

        Raises:
            ValueError: The methods of this class and the contract's document do not belong together.
            ImportError: There are tools or templates, and `mcp-bindgen[app]` is not installed.
        """
        contract = _bound_contract(self, self.catalog, self.validation_steps)
        if type(self).complete is not Contract.complete:
            contract.complete = asynchronous(self.complete)
        return ContractServers(contract, self, self.lifespan, type(self).__name__, type(self).__doc__)


def _bound_contract(owner: object, catalog: Catalog, validation_steps: int) -> BoundContract:
    """Return a contract whose handlers are the methods of an object.

    Raises:
        ValueError: The methods and the contract's document do not belong together.
        ImportError: There are tools or templates, and `mcp-bindgen[app]` is not installed.
    """
    bound, class_name = BoundContract(catalog, validation_steps), type(owner).__name__
    entries: dict[Kind, dict[str, Entry]] = {kind: catalog.entries(kind) for kind in KINDS}
    for name, spec in specs(type(owner)).items():
        entry = entries[spec.kind].get(spec.name)
        if entry is None:
            raise ValueError(f"{class_name}.{name}: the contract has no {spec.kind} {spec.name!r}")
        bound.bind(bound.handler(spec, entry, getattr(owner, name)))
    for kind, named in entries.items():
        for name in (name for name in named if key_of(kind, name) not in bound.handlers[kind]):
            raise ValueError(f"{class_name} has no method for the {kind} {name!r} of its contract")
    return bound


@overload
async def delegate(function: Function, arguments: BaseModel | None, ctx: context.Context) -> Any: ...


@overload
async def delegate(function: Function, arguments: BaseModel | None, ctx: context.Context, returns: type[R]) -> R: ...


async def delegate(
    function: Function, arguments: BaseModel | None, ctx: context.Context, returns: type[BaseModel] | None = None
) -> Any:
    """Answer a method of a contract with an annotated function, in the types of the contract.

    Args:
        function: The function, `def` (run in a thread) or `async def`, which may take the context.
        arguments: The typed arguments of the tool, which are passed to the function; `None` if there are none.
        ctx: The context of the request.
        returns: The model of the tool's structured content; without it the function returns content.

    Raises:
        BadFunction: The function cannot be a tool.
        InvalidArguments: The function does not take these arguments.
        InvalidResult: The return value contradicts the annotation.
    """
    handler = _bound(function)
    given: dict[str, Any] = {} if arguments is None else jsonrpc.plain(arguments)
    returned = await handler.call(handler.read(given, "arguments"), ctx)
    if returns is None or handler.spec.output is None:
        return returned
    return returns.model_validate(tool_result(handler, returned)["structuredContent"])


@cache
def _bound(function: Function) -> BoundHandler:
    found = FunctionHandler(function)
    return BoundHandler(found.tool()[0], {}, found.method(), MOST_STEPS)  # the contract's server has the schemas
