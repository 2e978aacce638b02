"""Python-first servers: annotated functions are the contract.

app = App("notes")

@app.tool
def add(title: str) -> Note: ...

run(app)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, cast, overload

import anyio
from typing_extensions import TypedDict, Unpack

from mcp_bindgen.extensions.apps import (
    MIME_TYPE,
    AppOptions,
    Visibility,
    check_uri,
    resource_meta,
    resource_uri,
    tool_meta,
)
from mcp_bindgen.extensions.tasks.service import Tasks
from mcp_bindgen.extensions.tasks.tools import TaskOption, marked
from mcp_bindgen.extensions.tasks.tools import task as as_task
from mcp_bindgen.runtime import bindings as packages
from mcp_bindgen.runtime import serving
from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.entry_points import RunOptions
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import SessionRequired
from mcp_bindgen.runtime.protocol.routing import Returns
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.server import Server

from .catalog import KINDS, SCOPES, Catalog, Entry, Kind
from .complexity import MOST_STEPS
from .contract import servers_of
from .features import UPDATED, ArgumentErrors, Completion, Feature, Lifespan, from_enum
from .functions import Function, FunctionHandler, public_functions
from .handlers import BoundContract, HandlerSpec, asynchronous

F = TypeVar("F", bound=Callable[..., Any])
Completes: TypeAlias = Callable[[Completion], Returns[Sequence[str]]]
Dynamic: TypeAlias = Literal["tools", "prompts", "resources", "contents"]

_CHANGED: Mapping[Dynamic, str] = {
    "tools": KINDS["tool"].changed,
    "prompts": KINDS["prompt"].changed,
    "resources": KINDS["resource"].changed,
    "contents": UPDATED,
}
_MEMBERS: Mapping[str, str] = {
    "title": "title",
    "description": "description",
    "mime_type": "mimeType",
    "annotations": "annotations",
    "scopes": SCOPES,
    "meta": "_meta",
}
"""Option -> the member of an entry that it becomes."""

_NOTIFY_SECONDS = 10.0  # that clients have to take one notification


class EntryOptions(TypedDict, total=False):
    """Options of each tool, prompt, resource and app.

    Attributes:
        name: Its name; by default that of the function.
        title: Its name for display.
        description: Its description for models; by default the docstring.
        scopes: The scopes that the token of a caller needs, if the server verifies tokens.
    """

    name: str
    title: str | None
    description: str | None
    scopes: Sequence[str]


class PromptOptions(EntryOptions, total=False):
    """Options of a prompt: see `EntryOptions`.

    Attributes:
        meta: The `_meta` of the entry.
    """

    meta: Mapping[str, Any] | None


class ResourceOptions(PromptOptions, total=False):
    """Options of a resource: see `PromptOptions`.

    Attributes:
        mime_type: Its MIME type.
        annotations: Hints for hosts, such as `{"priority": 1}`.
    """

    mime_type: str | None
    annotations: Mapping[str, Any] | None


class ToolOptions(PromptOptions, total=False):
    """Options of a tool: see `PromptOptions`.

    Attributes:
        annotations: Hints for hosts, such as `{"destructiveHint": True}`.
        ui: The URI of the app that shows its results to users: see `App.ui`. Other clients get the plain results.
        visibility: The callers: the `model`, the `app` of this server, or both, which is the default. Clients that show
            no apps do not see a tool for the app alone.
        task: The way it runs as a task: "optional", "required" or `ToolTask(...)`; by default it never does.
    """

    annotations: Mapping[str, Any] | None
    ui: str | None
    visibility: Sequence[Visibility]
    task: TaskOption | None


class UiOptions(EntryOptions, AppOptions, total=False):
    """Options of an app: see `EntryOptions` and `AppOptions`."""


class App:
    """A server of functions, in every revision: `@app.tool`, `@app.resource("note://{id}")`, `@app.prompt`.

    Functions are `def` (run in a thread) or `async def`, and may take a parameter `ctx: Context`. Arguments and results
    are validated against the schemas that follow from their annotations.

    Args:
        name: The name of the server.
        version: Its version.
        title: Its name for display.
        instructions: Advice to models on its use.
        dynamic: The parts that may change while clients are connected: the lists of `tools`, `prompts` or `resources`,
            and the `contents` of resources, to which clients then can subscribe. Only these are declared to clients.
        lifespan: Starts and stops the resources of the functions: a context manager function without arguments.
        revisions: The bindings of the revisions to serve; by default all that are installed.
        tasks: The service that runs tools as tasks: `Tasks(SqliteTaskStore("tasks.db"))`; by default in memory.
        argument_errors: The response to a call with invalid arguments: see `Contract`.
        hide_errors: True to hide the errors of tools from callers: see `Contract`.
        validation_steps: Maximum of steps for the validation of a value.

    Attributes:
        document: The contract, which `contract export` writes.

    Raises:
        ImportError: `mcp-bindgen[app]` is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        instructions: str | None = None,
        dynamic: Collection[Dynamic] = (),
        lifespan: Lifespan = nullcontext,
        revisions: Sequence[ModuleType] | None = None,
        tasks: Tasks | None = None,
        argument_errors: ArgumentErrors | None = None,
        hide_errors: bool | None = None,
        validation_steps: int = MOST_STEPS,
    ) -> None:
        info = {"name": name, "version": version, **({} if title is None else {"title": title})}
        said = {} if instructions is None else {"instructions": instructions}
        empty: dict[str, Any] = {"resources" if one == "contents" else one: [] for one in dynamic}
        announces = {_CHANGED[one] for one in dynamic}
        self._contract = BoundContract(Catalog.of({"serverInfo": info, **said, **empty}), validation_steps, announces)
        self.document = self._contract.catalog.document
        self.dynamic = frozenset(dynamic)
        self.revisions, self.tasks = revisions, tasks
        self.argument_errors: ArgumentErrors | None = argument_errors
        self.hide_errors = hide_errors
        self._lifespan = lifespan
        self._completes: dict[tuple[str, str], Callable[[Completion], Awaitable[Sequence[str]]]] = {}
        self._notifier = _ChangeNotifier()

    @classmethod
    def of_module(cls, module: ModuleType, name: str = "", **options: Any) -> App:
        """Return an app with a tool for each public function of a module.

        Raises:
            BadFunction: A function cannot be a tool.
            ValueError: There is no public function.
        """
        own = module.__name__.rpartition(".")[2]
        app = cls(name or (Path(module.__file__ or own).stem if own == "__main__" else own), **options)
        functions = public_functions(module)
        if not functions:
            raise ValueError(f"the module {module.__name__!r} has no public function; write one, or list it in __all__")
        for wire, function in functions:
            app.add_tool(function, name=wire)
        return app

    # --- entries ----------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Unpack[ToolOptions]) -> F | Callable[[F], F]:
        """Offer a function as a tool: `@app.tool`, or `@app.tool(name=...)`; see `add_tool` for the options."""
        mark: Callable[[F], F] = _decorator(partial(self.add_tool, **options))
        return mark if function is None else mark(function)

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(self, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...

    def prompt(self, function: F | None = None, /, **options: Unpack[PromptOptions]) -> F | Callable[[F], F]:
        """Offer a function as a prompt: `@app.prompt`, or `@app.prompt(name=...)`; see `add_prompt` for the options."""
        mark: Callable[[F], F] = _decorator(partial(self.add_prompt, **options))
        return mark if function is None else mark(function)

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Offer the return value of a function as a resource: `@app.resource("note://{id}")`; see `add_resource`."""
        return _decorator(partial(self.add_resource, uri, **options))

    def ui(self, uri: str, **options: Unpack[UiOptions]) -> Callable[[F], F]:
        """Offer the HTML that a function returns as an app: `@app.ui("ui://notes/board")` (MCP Apps).

        Clients show it in a frame beside the results of the tools that name it with `ui=...`. It reaches only the
        origins in its options, and calls only the tools whose `visibility` allows it.

        Args:
            uri: Its URI, which begins with `ui://`.
            options: Its name and description, the origins that it connects to and loads from, and more.

        Raises:
            ValueError: `uri` begins otherwise, or an origin is invalid.
        """
        check_uri(uri)
        _check_options(options, UiOptions)
        own = {name: value for name, value in options.items() if name in EntryOptions.__annotations__}
        shown = {name: value for name, value in options.items() if name not in own}
        meta = resource_meta(**cast(AppOptions, shown)) or None
        return self.resource(uri, mime_type=MIME_TYPE, meta=meta, **cast(EntryOptions, own))

    def completion(self, of: str, argument: str) -> Callable[[Completes], Completes]:
        """Complete an argument of a prompt, or a variable of a URI template, with the values of a function.

        The function takes a `Completion` with the typed text and the known arguments, and returns a list of texts, the
        best first. Arguments with a `Literal` or an enum need none.

        Args:
            of: The prompt's name, or the URI template.
            argument: The name of the argument or variable.
        """

        def mark(function: Completes) -> Completes:
            self._completes[of, argument] = asynchronous(function)
            return function

        return mark

    def add_tool(self, function: Function, **options: Unpack[ToolOptions]) -> None:
        """Offer a function as a tool, at any time; clients are notified.

        Args:
            function: The function.
            options: See `ToolOptions`.

        Raises:
            BadFunction: Its signature cannot be a tool's; the error names file, line and a fix.
            ValueError: A tool has that name already, `dynamic` lacks tools, or `ui` is no URI of an app.
            TypeError: An option is unknown.
        """
        _check_options(options, ToolOptions)
        handler = FunctionHandler(function, options.get("name", ""))
        method, shown_by, callers = handler.method(), options.get("ui"), options.get("visibility", ())
        if (word := options.get("task")) is not None:
            method = as_task(word)(method)
        served = self._notifier.servers
        if marked(method) is not None and served and not any(server.has_tasks for server in served):
            raise ValueError(f"{handler.name!r} is a task, but no tool was a task when the app was first served")
        meta = options.get("meta")
        if shown_by is not None or callers:
            meta = {**(meta or {}), **tool_meta(shown_by, callers)}
        self._add(handler.tool(), {**options, "meta": meta}, method)

    def add_prompt(self, function: Function, **options: Unpack[PromptOptions]) -> None:
        """Offer a function as a prompt, at any time; it returns a text, or messages. See `add_tool`."""
        _check_options(options, PromptOptions)
        handler = FunctionHandler(function, options.get("name", ""))
        self._add(handler.prompt(), options, handler.method())

    def add_resource(self, uri: str, function: Function, **options: Unpack[ResourceOptions]) -> None:
        """Offer the return value of a function as a resource, or as those of a URI template, at any time.

        A return value other than `str` or `bytes` is sent as JSON. The function raises `ResourceNotFound` for a URI
        without a resource. See `add_tool`.
        """
        _check_options(options, ResourceOptions)
        handler = FunctionHandler(function, options.get("name", ""))
        self._add(handler.resource(uri), options, handler.method())

    def add_skills(self, folder: str | PathLike[str]) -> None:
        """Offer the skills of a folder: each folder in it with a `SKILL.md`, or itself if it has one (Agent Skills).

        Clients of the skills extension list and verify them; for other clients their files are resources. They are read
        now: later changes are served after a restart. Symbolic links and hidden files are left out.

        Raises:
            BadSkill: The folder has no skill, a skill that clients need not accept, or a skill at a path that is taken;
                the error names the file and a fix.
            ValueError: `dynamic` lacks resources.
            ImportError: `mcp-bindgen[skills]` is not installed.
        """
        self._check_dynamic(KINDS["resource"].changed, "resource")
        self._contract.add_skills(folder)
        self._notifier.add(KINDS["resource"].changed)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; raise `KeyError` if there is none."""
        self._remove("tool", name)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; raise `KeyError` if there is none."""
        self._remove("prompt", name)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a URI template; raise `KeyError` if there is none."""
        self._remove("template" if uri in self._contract.handlers["template"] else "resource", uri)

    def updated(self, uri: str) -> None:
        """Notify the clients that subscribed to a resource, or to one above it, that its contents changed.

        Raises:
            ValueError: `dynamic` lacks `contents`.
        """
        self._check_dynamic(UPDATED, "contents")
        self._notifier.add(UPDATED, uri)

    def _add(self, made: tuple[HandlerSpec, Entry], options: Mapping[str, object], method: Function) -> None:
        spec, entry = made
        changed = KINDS[spec.kind].changed
        self._check_dynamic(changed, spec.kind)
        given = {_MEMBERS[name]: value for name, value in options.items() if name in _MEMBERS}
        more = {name: given[name] for name in _MEMBERS.values() if given.get(name, ()) not in (None, ())}
        served = self._notifier.servers
        if SCOPES in more and any(type(one).required_scopes is Server.required_scopes for one in served):
            raise ValueError(f"{spec.name!r} needs scopes, but no entry did when the app was first served")
        self._contract.add(spec, {**entry, **more}, method)
        self._notifier.add(changed)

    def _remove(self, kind: Kind, name: str) -> None:
        self._check_dynamic(KINDS[kind].changed, kind)
        self._contract.remove(kind, name)
        self._notifier.add(KINDS[kind].changed)

    def _check_dynamic(self, changed: str, what: str) -> None:
        """Raise `ValueError` if clients are served and do not expect such a change."""
        if self._notifier.servers and changed not in self._contract.announces:
            dynamic = next(name for name, method in _CHANGED.items() if method == changed)
            raise ValueError(f"a {what} cannot change while clients are served: App(..., dynamic={{{dynamic!r}}})")

    # --- serving ----------------------------------------------------------------------------------------------

    def servers(self) -> list[Server]:
        """Return a server for each revision; they share this app and its lifespan.

        Raises:
            ValueError: A tool names an app that does not exist.
        """
        for name, tool in self._contract.handlers["tool"].items():
            shown_by = resource_uri(tool.entry)
            if shown_by is not None and not self._contract.knows(shown_by):
                raise ValueError(f"the tool {name!r} is shown by {shown_by}, which is missing: @app.ui({shown_by!r})")
        if self._completes:
            self._contract.complete = self._complete
        revisions = packages.installed() if self.revisions is None else self.revisions
        info, instructions = self.document["serverInfo"], self.document.get("instructions")
        name, doc = info["name"], instructions or f"Serve `{info['name']}`."
        servers = servers_of(self._contract, self, revisions, self._running, name, doc, info, instructions)
        self._notifier.servers += servers
        return [*servers]

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        async with self._notifier.running(), self._lifespan():
            yield

    async def _complete(self, asked: Completion, ctx: Context) -> Sequence[str]:
        own = self._completes.get((asked.name, asked.argument))
        return from_enum(self._contract.catalog, asked) if own is None else await own(asked)


class _ChangeNotifier:
    """Sends notifications of changes, which may come from any thread; equal ones that wait are sent once.

    Attributes:
        servers: The servers whose clients are notified.
    """

    def __init__(self) -> None:
        self.servers: list[Feature] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[tuple[str, str | None], None] = {}
        self._arrived = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Send notifications while a block runs."""
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._send_all)
                yield
        finally:
            self._loop = None

    def add(self, method: str, uri: str | None = None) -> None:
        """Send a notification soon; while no client is served, do nothing."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._add, method, uri)

    def _add(self, method: str, uri: str | None) -> None:
        self._waiting[method, uri] = None
        self._arrived.set()

    async def _send_all(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                name, uri = next(iter(self._waiting))
                del self._waiting[name, uri]
                for server in self.servers:
                    await self._send(server, name, uri)

    async def _send(self, server: Server, name: str, uri: str | None) -> None:
        """Notify the clients of a server; an error ends neither the app nor later notifications."""

        async def tell(client: Context) -> None:
            agreed = client.negotiated
            method = None if agreed is None else agreed.dispatcher.revision.methods.get(name)
            if method is not None:
                params = jsonrpc.typed_params(method, {} if uri is None else {"uri": uri})
                await client.notify(cast(Any, method), params)

        try:
            with anyio.move_on_after(_NOTIFY_SECONDS):
                await server.broadcast(tell)
        except SessionRequired:
            log.debug("%s is not sent: clients are served without sessions", name)
        except Exception:
            log.exception("%s could not be sent", name)


def _decorator(add: Callable[[F], None]) -> Callable[[F], F]:
    """Return the decorator that adds a function."""

    def mark(function: F) -> F:
        add(function)
        return function

    return mark


def _check_options(options: Mapping[str, object], known: type) -> None:
    for name in options.keys() - known.__annotations__.keys():
        raise TypeError(f"unknown option {name!r}; use {', '.join(sorted(known.__annotations__))}")


def run(*served: Server | serving.Served | ModuleType, **options: Unpack[RunOptions]) -> None:
    """Serve an `App`, a module or servers as the command line says, like `mcp_bindgen.runtime.run`.

    Args:
        served: An `App`, a module, an object of a contract's class, or servers, at most one for each revision. A module
            stands for the `App` in it; if it has none, each public function of the module is a tool.
        options: See `mcp_bindgen.runtime.run`.

    Raises:
        BadFunction: A function of a module cannot be a tool.
        ValueError: There is nothing to serve, or two servers for a revision.
    """
    serving.run(*(_app_of(one) if isinstance(one, ModuleType) else one for one in served), **options)


def _app_of(module: ModuleType) -> App:
    found = (value for value in module.__dict__.values() if isinstance(value, App))
    return next(found, None) or App.of_module(module)
