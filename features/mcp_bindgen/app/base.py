"""The base of generated contracts: a class with a method for each entry, and the servers that answer with it."""

from __future__ import annotations

from abc import ABC
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, Self, TypeAlias

from mcp_bindgen.extensions.tasks.service import Tasks
from mcp_bindgen.extensions.tasks.tools import has_tasks, with_tasks
from mcp_bindgen.runtime.bindings import extension_of
from mcp_bindgen.runtime.session.server import Server

from .catalog import Catalog
from .completions import Completion, Completions, from_enum
from .complexity import MOST_STEPS
from .extensions import AppsFeature, SkillsFeature
from .features import ArgumentErrors, Feature, Prompts, Resources, Subscriptions, Tools
from .handlers import BoundContract, asynchronous, missing_method
from .scopes import Scoped

Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]

_FEATURES: tuple[type[Feature], ...] = (
    Tools,
    Prompts,
    Resources,
    Subscriptions,
    Completions,
    Scoped,
    AppsFeature,
    SkillsFeature,
)


class Contract(ABC):
    """The base of a server's contract: a method for each tool, prompt and resource, in every revision.

    A generated class says which; subclass that one, write its methods, and `run(*Yours().servers())`.

    Attributes:
        catalog: What the contract says.
        revisions: The bindings of the revisions that it is served in.
        info: How the server introduces itself, an `Implementation` in wire form; `None` for what the contract says.
        instructions: How a model should use the server; `None` for what the contract says.
        argument_errors: What becomes of a call whose arguments do not fit: an error of the protocol (-32602), or a
            result with `isError`, which hosts show to the model; `None` for what each revision prefers, which is a
            result from 2025-11-25 on.
        tasks: Where tools run as tasks, and what holds these; `None` for memory, in this process.
        hide_errors: Whether callers of a tool that fails read only that; else they read one line about the exception.
            `None` hides it from those who come with a token. `ToolError` is always shown.
        validation_steps: How many steps the validation of a value may take at most: a schema that can take more is
            refused when it is first used.
    """

    catalog: ClassVar[Catalog]
    revisions: ClassVar[tuple[ModuleType, ...]]
    info: Mapping[str, Any] | None = None
    instructions: str | None = None
    argument_errors: ArgumentErrors | None = None
    tasks: Tasks | None = None
    hide_errors: bool | None = None
    validation_steps: int = MOST_STEPS

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        """Make an object; raise `TypeError` if the class does not have all methods of the contract."""
        missing: Collection[str] = cls.__abstractmethods__
        if missing:
            raise TypeError("; ".join(missing_method(cls, name) for name in sorted(missing)))
        return super().__new__(cls)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Start and stop what the servers share: override it, and `yield` while they serve."""
        yield

    async def complete(self, asked: Completion, ctx: Any) -> Sequence[str]:
        """Return the values that complete what is typed, the best first: those of an `enum`, unless overridden.

        Args:
            asked: What is typed.
            ctx: The request, a `Context`; an override may say of which revisions.
        """
        return from_enum(self.catalog, asked)

    def servers(self) -> list[Server]:
        """Return a server for each revision; they share this object and its lifespan.

        Raises:
            ValueError: The methods of this class and the contract's document do not belong together.
            ImportError: There are tools or templates, and `mcp-bindgen[app]` is not installed.
        """
        contract = BoundContract.of(self, self.catalog, self.validation_steps)
        if type(self).complete is not Contract.complete:
            contract.complete = asynchronous(self.complete)
        document = self.catalog.document
        info = self.info or document.get("serverInfo") or {"name": type(self).__name__, "version": "0"}
        instructions = document.get("instructions") if self.instructions is None else self.instructions
        kind = type(self)
        options = {
            "argument_errors": self.argument_errors,
            "hide_errors": self.hide_errors,
            "instructions": instructions,
            "lifespan": self.lifespan,
            "tasks": self.tasks,
        }
        return servers_of(contract, kind.__name__, kind.__doc__, self.revisions, info, options)


def servers_of(
    contract: BoundContract,
    name: str,
    doc: str | None,
    revisions: Sequence[ModuleType],
    info: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[Server]:
    """Return a server for each revision of a contract; where tools are tasks, but those that have tasks in their core.

    Those are served by that of the revision with the extension, which runs the same tasks for both.

    Args:
        contract: The contract and its handlers.
        name: The name of the servers' classes.
        doc: What `--help` says of them.
        revisions: The bindings of the revisions.
        info: How the servers introduce themselves, an `Implementation` in wire form.
        options: Attributes of the servers.
    """
    features = tuple(feature for feature in _FEATURES if feature.is_in(contract))
    shared = {"contract": contract, "revisions": revisions, "announces": contract.announces, **options}
    shared["lifespan"] = _shared(options["lifespan"])
    tasks = shared.pop("tasks")
    if tasks is None and any(handler.task for handler in contract.handlers["tool"].values()):
        tasks = Tasks()
    shared["own_tasks"] = tasks
    servers: list[Server] = []
    bases = {package: package.Server if tasks is None else with_tasks(package) for package in revisions}
    offered = any(base is not package.Server for package, base in bases.items())
    for package, base in bases.items():
        if offered and has_tasks(package):
            continue
        shared["has_tasks"] = base is not package.Server
        shared["has_tasks_elsewhere"] = offered and base is package.Server
        server: Server = _server_class(name, doc, package, base, features)()
        vars(server).update(shared, package=package, info=package.types.Implementation.model_validate(info))
        servers.append(server)
    return servers


@cache
def _server_class(
    name: str, doc: str | None, package: ModuleType, base: type[Server], features: tuple[type[Feature], ...]
) -> type[Any]:
    """Return the class of a server: its capabilities follow from the features among its bases."""
    found = {feature: extension_of(package, feature.extension) for feature in features if feature.extension}
    own = [feature for feature in features if found.get(feature, package) is not None]
    extended = [extension.Server for extension in found.values() if extension is not None]
    return type(name, (*own, *extended, base), {"__doc__": doc})


def _shared(lifespan: Lifespan) -> Lifespan:
    """Return a lifespan for several servers: the first to start enters it."""
    entered = False

    @asynccontextmanager
    async def enter() -> AsyncGenerator[None]:
        nonlocal entered
        first, entered = not entered, True
        try:
            async with lifespan() if first else nullcontext():
                yield
        finally:
            entered = not first and entered

    return enter
