"""Servers of annotated functions: the functions are the contract.

app = App("notes")

@app.tool
def add(title: str) -> Note: ...

run(app)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar, overload

from typing_extensions import Unpack

from mcp_bindgen.extensions.apps.metadata import (
    MIME_TYPE,
    AppOptions,
    Visibility,
    check_uri,
    resource_meta,
    resource_uri,
    tool_meta,
)
from mcp_bindgen.extensions.tasks.service import Tasks
from mcp_bindgen.extensions.tasks.tools import TaskOption, tool_task
from mcp_bindgen.runtime import bindings as packages
from mcp_bindgen.runtime.protocol.routing import Returns
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.server import Server

from .base import servers_of
from .catalog import KINDS, SCOPES, Catalog, Entry, Kind
from .change_notifications import News
from .completions import Completion, from_enum
from .complexity import MOST_STEPS
from .features import UPDATED, ArgumentErrors
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
_WIRE = {"scopes": SCOPES, "meta": "_meta", "mime_type": "mimeType"}


class App:
    """A server of functions, in every revision: `@app.tool`, `@app.resource("note://{id}")`, `@app.prompt`.

    Functions are `def` (run in a thread) or `async def`, and may take a parameter `ctx: Context`. Arguments and results
    are held against the schemas that follow from their annotations.

    Args:
        name: What the server is called.
        version: Its version.
        title: What people read, instead of the name.
        instructions: How a model should use the server.
        dynamic: What may change while clients are there: the lists of `tools`, `prompts` or `resources`, and the
            `contents` of resources, which clients then can subscribe to. Only that is declared to clients.
        lifespan: Starts and stops what the functions need: a context manager function without arguments.
        revisions: The bindings of the revisions to serve; by default all that are installed.
        tasks: Where tools run as tasks: `Tasks(SqliteTaskStore("tasks.db"))`; by default in memory.
        argument_errors: What becomes of a call whose arguments do not fit: see `Contract`.
        hide_errors: Whether callers of a tool that fails are kept from reading why: see `Contract`.
        validation_steps: How many steps the validation of a value may take at most.

    Attributes:
        document: The contract: what `contract export` writes.

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
        lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
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
        self.argument_errors = argument_errors
        self.hide_errors = hide_errors
        self._lifespan = lifespan
        self._completes: dict[tuple[str, str], Callable[..., Any]] = {}
        self._news = News()

    @classmethod
    def of_module(cls, module: ModuleType, name: str = "", **options: Any) -> App:
        """Return an app with a tool for each public function of a module.

        Raises:
            BadFunction: One of them cannot be a tool.
            ValueError: There is none.
        """
        own = module.__name__.rpartition(".")[2]
        app = cls(name or (Path(module.__file__ or own).stem if own == "__main__" else own), **options)
        functions = public_functions(module)
        if not functions:
            raise ValueError(f"the module {module.__name__!r} has no public function; write one, or list it in __all__")
        for wire, function in functions:
            app.add_tool(function, name=wire)
        return app

    # --- what it offers ---------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str = "",
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        scopes: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        ui: str | None = None,
        visibility: Sequence[Visibility] = (),
        task: TaskOption | None = None,
    ) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Offer a function as a tool: `@app.tool`, or `@app.tool(name=...)`; see `add_tool` for the options."""
        mark: Callable[[F], F] = _adding(self.add_tool, options)
        return mark if function is None else mark(function)

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self,
        /,
        *,
        name: str = "",
        title: str | None = None,
        description: str | None = None,
        scopes: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]: ...

    def prompt(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Offer a function as a prompt: `@app.prompt`, or `@app.prompt(name=...)`; see `add_prompt` for the options."""
        mark: Callable[[F], F] = _adding(self.add_prompt, options)
        return mark if function is None else mark(function)

    def resource(
        self,
        uri: str,
        *,
        name: str = "",
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        scopes: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Offer what a function returns as a resource: `@app.resource("note://{id}")`; see `add_resource`."""
        options = {"name": name, "title": title, "description": description, "mime_type": mime_type, "meta": meta}
        return _adding(partial(self.add_resource, uri), {**options, "annotations": annotations, "scopes": scopes})

    def ui(
        self,
        uri: str,
        *,
        name: str = "",
        title: str | None = None,
        description: str | None = None,
        scopes: Sequence[str] = (),
        **options: Unpack[AppOptions],
    ) -> Callable[[F], F]:
        """Offer the HTML that a function returns as an app: `@app.ui("ui://notes/board")` (MCP Apps).

        Clients show it in a frame beside the results of the tools that name it with `ui=...`. It reaches nothing but
        what it asks for here, and calls those tools that their `visibility` lets it call.

        Args:
            uri: Its URI, which begins with `ui://`.
            name: What the resource is called; by default like the function.
            title: What people read, instead of the name.
            description: What it shows; by default the docstring.
            scopes: What the token of a caller must allow, where there is authorization.
            options: The origins that it talks to and loads from, and more: see `AppOptions`.

        Raises:
            ValueError: `uri` begins otherwise, or something is no origin.
        """
        check_uri(uri)
        about = {"name": name, "title": title, "description": description, "mime_type": MIME_TYPE, "scopes": scopes}
        return _adding(partial(self.add_resource, uri), {**about, "meta": resource_meta(**options) or None})

    def completion(self, of: str, argument: str) -> Callable[[Completes], Completes]:
        """Complete an argument of a prompt, or a variable of a URI template, with what a function returns.

        The function takes a `Completion`, which says what is typed and what else is known, and returns a list of texts,
        the best first. Arguments with a `Literal` or an enum need none.

        Args:
            of: The prompt's name, or the URI template.
            argument: The name of the argument or variable.
        """

        def mark(function: Completes) -> Completes:
            self._completes[of, argument] = asynchronous(function)
            return function

        return mark

    def add_tool(
        self,
        function: Function,
        *,
        name: str = "",
        title: str | None = None,
        description: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        scopes: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
        ui: str | None = None,
        visibility: Sequence[Visibility] = (),
        task: TaskOption | None = None,
    ) -> None:
        """Offer a function as a tool, at any time; clients are told.

        Args:
            function: The function.
            name: What the tool is called; by default like the function.
            title: What people read, instead of the name.
            description: What models read; by default the docstring.
            annotations: Hints for hosts, such as `{"destructiveHint": True}`.
            scopes: What the token of a caller must allow, where there is authorization.
            meta: The `_meta` of the entry.
            ui: The URI of the app that shows its results to people: see `ui`. Clients that show none get them as ever.
            visibility: Who may call it: the `model`, the `app` of this server, or both, which is what holds if it is
                left out. Clients that show no apps do not see a tool that is for the app alone.
            task: How it runs as a task, if it does: "optional", "required" or `ToolTask(...)`.

        Raises:
            BadFunction: Its signature cannot be put as a tool; the error names file, line and what to do.
            ValueError: There is such a tool already, tools are not among what is `dynamic`, or `ui` is no such URI.
        """
        handler = FunctionHandler(function, name)
        if ui is not None or visibility:
            meta = {**(meta or {}), **tool_meta(ui, visibility)}
        how = None if task is None else tool_task(task)
        if how is not None and self._news.servers and not any(vars(one).get("has_tasks") for one in self._news.servers):
            raise ValueError(f"{handler.name!r} is a task, and nothing was when the app was served first")
        more = _entry(title=title, description=description, annotations=annotations, scopes=scopes, meta=meta)
        self._add(handler, handler.tool(), more)
        self._contract.handlers["tool"][handler.name].task = how

    def add_prompt(
        self,
        function: Function,
        *,
        name: str = "",
        title: str | None = None,
        description: str | None = None,
        scopes: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Offer a function as a prompt, at any time; it returns a text, or messages. See `add_tool`."""
        handler = FunctionHandler(function, name)
        self._add(handler, handler.prompt(), _entry(title=title, description=description, scopes=scopes, meta=meta))

    def add_resource(
        self,
        uri: str,
        function: Function,
        *,
        name: str = "",
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        scopes: Sequence[str] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Offer what a function returns as a resource, or as those of a URI template, at any time. See `add_tool`.

        A function that returns neither `str` nor `bytes` gives JSON. It raises `ResourceNotFound` for a URI of nothing.
        """
        handler = FunctionHandler(function, name)
        said = {"title": title, "description": description, "mime_type": mime_type, "annotations": annotations}
        self._add(handler, handler.resource(uri), _entry(**said, scopes=scopes, meta=meta))

    def add_skills(self, folder: str | PathLike[str]) -> None:
        """Offer the skills of a folder: each folder in it with a `SKILL.md`, or itself if it has one (Agent Skills).

        Clients of the skills extension list and verify them; to others their files are resources. They are read now:
        what changes afterwards is served when the process starts anew. Symbolic links and hidden files are left out.

        Raises:
            BadSkill: There is none, or one that clients need not take, or one of a path that is taken; the error names
                the file and what to do.
            ValueError: Resources are not among what is `dynamic`.
            ImportError: `mcp-bindgen[skills]` is not installed.
        """
        self._may(KINDS["resource"].changed, "resource")
        self._contract.add_skills(folder)
        self._news.add(KINDS["resource"].changed)

    def remove_tool(self, name: str) -> None:
        """Offer a tool no longer; raise `KeyError` if there is none."""
        self._remove("tool", name)

    def remove_prompt(self, name: str) -> None:
        """Offer a prompt no longer; raise `KeyError` if there is none."""
        self._remove("prompt", name)

    def remove_resource(self, uri: str) -> None:
        """Offer a resource, or those of a URI template, no longer; raise `KeyError` if there is none."""
        self._remove("template" if uri in self._contract.handlers["template"] else "resource", uri)

    def updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource, or to one above it, that its contents are others now.

        Raises:
            ValueError: `contents` are not among what is `dynamic`.
        """
        self._may(UPDATED, "contents")
        self._news.add(UPDATED, uri)

    def _add(self, handler: FunctionHandler, made: tuple[HandlerSpec, Entry], more: Entry) -> None:
        spec, entry = made
        changed = KINDS[spec.kind].changed
        self._may(changed, spec.kind)
        if SCOPES in more and any(type(one).required_scopes is Server.required_scopes for one in self._news.servers):
            raise ValueError(f"{spec.name!r} needs scopes, and nothing did when the app was served first")
        self._contract.add(spec, {**entry, **more}, handler.method())
        self._news.add(changed)

    def _remove(self, kind: Kind, name: str) -> None:
        self._may(KINDS[kind].changed, kind)
        self._contract.remove(kind, name)
        self._news.add(KINDS[kind].changed)

    def _may(self, changed: str, what: str) -> None:
        """Raise `ValueError` if clients are served and do not expect such a change."""
        if self._news.servers and changed not in self._contract.announces:
            dynamic = next(name for name, method in _CHANGED.items() if method == changed)
            raise ValueError(f"a {what} cannot change while clients are served: App(..., dynamic={{{dynamic!r}}})")

    # --- serving ----------------------------------------------------------------------------------------------

    def servers(self) -> list[Server]:
        """Return a server for each revision; they share this app and its lifespan.

        Raises:
            ValueError: A tool names an app that there is not.
        """
        for name, tool in self._contract.handlers["tool"].items():
            shown_by = resource_uri(tool.entry)
            if shown_by is not None and not self._contract.knows(shown_by):
                raise ValueError(f"the tool {name!r} is shown by {shown_by}, which is not there: @app.ui({shown_by!r})")
        if self._completes:
            self._contract.complete = self._complete
        revisions = packages.installed() if self.revisions is None else self.revisions
        info, instructions = self.document["serverInfo"], self.document.get("instructions")
        options = {
            "argument_errors": self.argument_errors,
            "hide_errors": self.hide_errors,
            "instructions": instructions,
            "lifespan": self._running,
            "tasks": self.tasks,
        }
        about = instructions or f"Serve `{info['name']}`."
        servers = servers_of(self._contract, info["name"], about, revisions, info, options)
        self._news.servers += servers
        return servers

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        async with self._news.telling(), self._lifespan():
            yield

    async def _complete(self, asked: Completion, ctx: Context) -> Sequence[str]:
        own = self._completes.get((asked.name, asked.argument))
        if own is None:
            return from_enum(self._contract.catalog, asked)
        values: Sequence[str] = await own(asked)
        return values


def _adding(add: Callable[..., None], options: dict[str, Any]) -> Callable[[F], F]:
    """Return the decorator that adds a function with some options."""

    def mark(function: F) -> F:
        add(function, **options)
        return function

    return mark


def _entry(**members: Any) -> Entry:
    """Return the members of an entry that are said, under their names on the wire."""
    return {_WIRE.get(name, name): value for name, value in members.items() if value is not None and value != ()}
