"""Python-first servers: annotated functions are the contract.

app = App("notes")

@app.tool
def add(title: str) -> Note: ...

run(app)
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, overload

from typing_extensions import TypedDict, Unpack

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.protocol.access import Identity
from mcp_bindgen.runtime.protocol.routing import Returns, asynchronous, did_you_mean, place_of
from mcp_bindgen.runtime.session.server import Server

from .catalog import KINDS, SCOPES, Catalog, Entry, Kind
from .context import Context, Layer, Middleware, entered
from .errors import BadFunction
from .features import UPDATED, ArgumentErrors, Lifespan, Settings
from .functions import Function, FunctionHandler
from .handlers import TASK_MARK, BoundContract, BoundHandler, HandlerSpec, mounted, prefixed, renamed
from .serving import ContractServers, InProcess
from .values import MOST_STEPS, IconLike, TypeForm, icons_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mcp_bindgen.extensions.apps import AppOptions, Visibility
    from mcp_bindgen.extensions.tasks.service import Tasks
    from mcp_bindgen.extensions.tasks.tools import TaskOption
    from mcp_bindgen.runtime.session.targets import Provider, RunOptions, WebRoute

    from .optional_features import Completion
    from .overrides import OverriddenTools, Overrides
    from .rules import Condition, Rule

F = TypeVar("F", bound=Callable[..., Any])
Web = TypeVar("Web", bound="Callable[[Request], Awaitable[Response] | Response]")
Completes = TypeVar("Completes", bound=Callable[..., Returns[Sequence[str]]])
Dynamic: TypeAlias = Literal["tools", "prompts", "resources", "contents"]
"""Part of a server that can change while it runs: it declares `listChanged`, or `subscribe` for contents."""

_CHANGED: Mapping[str, str] = {**{place.member: place.changed for place in KINDS.values()}, "contents": UPDATED}
_OPTIONS = ("title", "description", "mime_type", "icons", "output_schema", "annotations", "scopes", "meta")
_MEMBERS: Mapping[str, str] = {name: SCOPES if name == "scopes" else wire_name(name) for name in _OPTIONS}
"""Option -> the member of an entry that it becomes."""


class EntryOptions(TypedDict, total=False):
    """Options of each tool, prompt, resource and app.

    Attributes:
        name: Its name; by default the function's name.
        title: Its name for display.
        description: Its description for models; by default the docstring.
        scopes: The scopes that the token of a caller needs, if the server verifies tokens.
        tags: Tags by which `App.enable` and `App.disable` select it; clients do not see them.
        icons: Its icons, each a URL, the path of an image, or the wire form: see `IconLike`.
        timeout: Seconds that a call may take, the time for questions to the user included.
    """

    name: str
    title: str | None
    description: str | None
    scopes: Sequence[str]
    tags: Collection[str]
    icons: IconLike | Iterable[IconLike]
    timeout: float | None


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
        allows_unsafe_values: True if variables of a URI template may be absolute paths, and have `..` segments and
            control characters; by default there is no resource at such a URI.
    """

    mime_type: str | None
    annotations: Mapping[str, Any] | None
    allows_unsafe_values: bool


class ToolOptions(PromptOptions, total=False):
    """Options of a tool: see `PromptOptions`.

    Attributes:
        annotations: Hints for hosts, such as `{"destructiveHint": True}`.
        ui: The URI of the app that shows its results to users: see `App.ui`. Other clients get the plain results.
        visibility: The callers: the `model`, the `app` of this server, or both, which is the default. Clients that show
            no apps do not see a tool for the app alone.
        output_schema: The JSON Schema of its structured content, in place of the return annotation's.
        task: The way it runs as a task: "optional", "required" or `ToolTask(...)`; by default it never does.
    """

    annotations: Mapping[str, Any] | None
    ui: str | None
    visibility: Sequence[Visibility]
    output_schema: Mapping[str, Any] | None
    task: TaskOption | None


if TYPE_CHECKING:

    class UiOptions(EntryOptions, AppOptions, total=False):
        """Options of an app: see `EntryOptions` and `AppOptions`."""


class App(InProcess, Settings):
    """A server of functions, in every revision: `@app.tool`, `@app.resource("note://{id}")`, `@app.prompt`.

    Functions are `def` (run in a thread) or `async def`, and may take the context, `ctx: Context`, and dependencies,
    `db: Annotated[Db, Depends(open_db)]`. Arguments and results are validated against the schemas that follow from
    their annotations.

    Args:
        name: The name of the server.
        version: Its version.
        title: Its name for display.
        instructions: Advice to models on its use.
        icons: Its icons, each a URL, the path of an image, or the wire form: see `IconLike`. They and the website are
            left out in revisions without them.
        website: The URL of its website.
        dynamic: The parts that may change while clients are connected: the lists of `tools`, `prompts` or `resources`,
            and the `contents` of resources, to which clients then can subscribe. Only these are declared to clients.
        lifespan: Starts and stops the resources of the functions: a context manager function without arguments. The
            value that it yields is `ctx.state`.
        revisions: The bindings of the revisions to serve; by default all that are installed.
        tasks: The service that runs tools as tasks: `Tasks(SqliteTaskStore("tasks.db"))`; by default in memory.
        argument_errors: The response to a call with invalid arguments: see `Contract`.
        hide_errors: True to hide the errors of tools from callers: see `Contract`.
        hide_forbidden: True to leave entries that a caller may not use out of lists and searches, False to show all
            callers the same, as for clients that share lists. By default conditions of `visible` hide entries, and
            scopes hide entries from callers without issuer, such as keys of `StaticTokens`; the client of any other
            token can ask its issuer for more scopes.
        page_size: Maximum of entries in a page of a list, which is then in the order of names; by default a list has
            one page.
        validation_steps: Maximum of steps for the validation of a value.
        tool_search: True to list two tools only, `search_tools` and `call_tool`, which find and call all other tools.
        debug: True to log coroutine functions that block the event loop; by default in Python's development mode.

    Attributes:
        document: The contract, which `contract export` writes.
        middlewares: The middleware, the outermost first; see `middleware`.

    Raises:
        ImportError: `mcp-bindgen[app]` is not installed.
        ValueError: An icon cannot be read, or `page_size` is less than 1.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0",
        title: str | None = None,
        instructions: str | None = None,
        icons: IconLike | Iterable[IconLike] = (),
        website: str | None = None,
        dynamic: Collection[Dynamic] = (),
        lifespan: Lifespan = nullcontext,
        revisions: Sequence[ModuleType] | None = None,
        tasks: Tasks | None = None,
        argument_errors: ArgumentErrors | None = None,
        hide_errors: bool | None = None,
        hide_forbidden: bool | None = None,
        page_size: int | None = None,
        validation_steps: int = MOST_STEPS,
        tool_search: bool = False,
        debug: bool = sys.flags.dev_mode,
    ) -> None:
        stated = {"title": title, "websiteUrl": website, "icons": icons_of(icons) or None}
        info = {"name": name, "version": version, **{one: value for one, value in stated.items() if value is not None}}
        advice = {} if instructions is None else {"instructions": instructions}
        empty: dict[str, Any] = {"resources" if one == "contents" else one: [] for one in dynamic}
        announces = {_CHANGED[one] for one in dynamic}
        self._contract = BoundContract(Catalog.of({"serverInfo": info, **advice, **empty}), validation_steps, announces)
        self.document: Entry = self._contract.catalog.document
        self.dynamic: frozenset[Dynamic] = frozenset(dynamic)
        self.revisions: Sequence[ModuleType] | None = revisions
        self.tasks: Tasks | None = tasks
        self.argument_errors: ArgumentErrors | None = argument_errors
        self.hide_errors: bool | None = hide_errors
        self.hide_forbidden: bool | None = hide_forbidden
        self.page_size: int | None = page_size
        if page_size is not None and page_size < 1:
            raise ValueError(f"page_size is {page_size}; a page has at least one entry")
        self._lifespan = lifespan
        self._completes: dict[tuple[str, str], Callable[[Completion, Context], Awaitable[Sequence[str]]]] = {}
        self.middlewares: list[Middleware] = []
        self._debug = debug
        self._advice: list[str] = []
        self._rules: list[Rule] = []
        self._conditions: list[Condition] = []
        self._renamed: dict[str, str] = {}
        self._parents: list[_Mount] = []
        self._parts: list[_Mount] = []
        self._routes: list[WebRoute] = []
        self._served: ContractServers | None = None
        self._running_servers: list[ContractServers] = []
        if tool_search:
            from .search import CALL, SEARCH, call_tool, search_tools  # few apps list no tools

            self._contract.listed_tools = (SEARCH, CALL)
            for function in (search_tools, call_tool):
                self.add_tool(function)

    @classmethod
    def of_module(cls, module: ModuleType, name: str = "", **options: Any) -> App:
        """Return an app with a tool for each public function of a module.

        Raises:
            BadFunction: A function cannot be a tool.
            ValueError: There is no public function.
        """
        from .loading import public_functions  # few apps are modules

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
        """Offer the return value of a function as a resource: `@app.resource("note://{id}")`; see `add_resource`.

        Raises:
            BadFunction: The URI is missing, as in `@app.resource` without parentheses.
        """
        if callable(uri):
            function: Any = uri
            fix = f'write @app.resource("app://{function.__name__}"), with {{x}} in the URI for each parameter x'
            raise BadFunction("@app.resource needs a URI", fix, place_of(uri))
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
        from mcp_bindgen.extensions import apps  # few apps of ours have one of these

        apps.check_uri(uri)
        _check_options(options, [*EntryOptions.__annotations__, *apps.AppOptions.__annotations__])
        own = {name: value for name, value in options.items() if name in EntryOptions.__annotations__}
        shown = {name: value for name, value in options.items() if name not in own}
        meta = apps.resource_meta(**cast("AppOptions", shown)) or None
        return self.resource(uri, mime_type=apps.MIME_TYPE, meta=meta, **cast(EntryOptions, own))

    def completion(self, of: str, argument: str) -> Callable[[Completes], Completes]:
        """Complete an argument of a prompt, or a variable of a URI template, with the values of a function.

        The function takes a `Completion` with the typed text and the known arguments, and returns a list of texts, the
        best first. Like a tool, it may take the context and dependencies. Arguments with a `Literal` or an enum need
        none.

        Args:
            of: The prompt's name, or the URI template.
            argument: The name of the argument or variable.

        Raises:
            BadFunction: This app has no such prompt or template so far, or it has no such argument or variable, or
                nothing fills a parameter of the function.
        """

        def mark(function: Completes) -> Completes:
            handlers = {**self._contract.handlers["template"], **self._contract.handlers["prompt"]}
            from .optional_features import Completion, arguments_of  # few apps complete values

            wrong, names, problem = of, [*handlers], f"there is no prompt or template {of!r}"
            if of in handlers:
                wrong, names = argument, arguments_of(self._contract, handlers[of])
                problem = f"{of} has no argument {argument!r}"
            if wrong not in names:
                fix = did_you_mean(wrong, names).removeprefix("; ") or "define it above this function"
                raise BadFunction(problem, fix, place_of(function))
            handler = FunctionHandler(function, debug=self._debug, given=Completion)
            self._completes[of, argument] = asynchronous(handler.completion())
            self._advice += handler.advice
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
        handler = self._handler(function, options, ToolOptions)
        method, shown_by, callers = handler.method(), options.get("ui"), options.get("visibility", ())
        if (word := options.get("task")) is not None:
            from mcp_bindgen.extensions.tasks.tools import task  # few tools run as tasks

            method = task(word)(method)
        if hasattr(method, TASK_MARK) and self._served is not None and not self._served.has_tasks:
            raise ValueError(f"{handler.name!r} is a task, but no tool was a task when the app was first served")
        meta = options.get("meta")
        if shown_by is not None or callers:
            from mcp_bindgen.extensions.apps import tool_meta  # few tools belong to an app

            meta = {**(meta or {}), **tool_meta(shown_by, callers)}
        spec, entry = handler.tool()
        if options.get("output_schema") is not None:
            spec = replace(spec, output=Any if spec.output is None else spec.output, member=None)
        self._add(handler, (spec, entry), {**options, "meta": meta}, method)

    def add_prompt(self, function: Function, **options: Unpack[PromptOptions]) -> None:
        """Offer a function as a prompt, at any time; it returns a text, or messages. See `add_tool`."""
        handler = self._handler(function, options, PromptOptions)
        self._add(handler, handler.prompt(), options)

    def add_resource(self, uri: str, function: Function, **options: Unpack[ResourceOptions]) -> None:
        """Offer the return value of a function as a resource or a URI template, at any time.

        A return value other than `str` or `bytes` is sent as JSON. The function raises `ResourceNotFound` for a URI
        without a resource. See `add_tool`.
        """
        handler = self._handler(function, options, ResourceOptions)
        self._add(handler, handler.resource(uri), options)

    def add_entry(
        self,
        kind: Kind,
        entry: Mapping[str, Any],
        answer: Callable[..., Awaitable[Any]],
        *,
        input: TypeForm = None,
        at_start: bool = False,
    ) -> None:
        """Offer an entry in wire form, verbatim, such as one that another server lists.

        Args:
            kind: The kind of the entry.
            entry: The entry, as `tools/list`, `prompts/list`, `resources/list` or `resources/templates/list` has it.
            answer: Coroutine function that answers calls, given the arguments and the context; only the context if
                `input` is `None`. It may return a whole result in the types of a revision.
            input: The type of the arguments. If a template has none, any URI that matches it is answered.
            at_start: True in a lifespan, which may add entries also if the app is not `dynamic`.

        Raises:
            ValueError: An entry has that name already, or `dynamic` lacks the list.
        """
        name = entry[KINDS[kind].key]
        spec = HandlerSpec(kind, name, input, allows_unsafe_values=input is None)  # it gets no values
        handler = self._contract.handler(spec, dict(entry), answer)
        handler.layers = (Layer(self, name),)
        self._put(handler, at_start=at_start)

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
        from .optional_features import add_skills  # few apps have skills

        add_skills(self._contract, folder)
        self._announce(KINDS["resource"].changed)

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
        self._announce(UPDATED, uri)
        for mount in self._parents:
            mount.owner.updated(prefixed("resource", uri, mount.prefix))

    def route(
        self, path: str, *, methods: Collection[str] = ("GET",), scopes: Collection[str] = (), public: bool = False
    ) -> Callable[[Web], Web]:
        """Answer HTTP requests beside the endpoint with a function: `@app.route("/hooks/paid", methods=["POST"])`.

        The function takes a `Request` of Starlette and returns a `Response`; `request.state.lifespan` is the value of
        the lifespan, and `request.user` the identity of the token. The checks of Host and Origin and the limits of the
        endpoint apply. Over stdio there are no routes.

        Args:
            path: The path, with parameters as Starlette writes them: `/orders/{id:int}`. Below `mount`, it begins with
                the prefix as its first part.
            methods: The HTTP methods.
            scopes: The scopes that the token of a request needs.
            public: True if requests need no token where `auth=` verifies tokens.

        Raises:
            ValueError: A public route states scopes, or the app is served already.
        """
        if public and scopes:
            raise ValueError(f"the route {path} is public, so requests have no scopes; remove scopes= or public=")
        if self._served is not None:
            raise ValueError(f"the route {path} is too late, clients are served; define it before")
        from mcp_bindgen.runtime.session.targets import WebRoute  # few apps have routes

        def mark(function: Web) -> Web:
            self._routes.append(WebRoute(path, function, methods, scopes, public))
            return function

        return mark

    # --- composition ------------------------------------------------------------------------------------------

    def middleware(self, function: Middleware) -> Middleware:
        """Run a function around each call of a tool, prompt, resource or completion: `@app.middleware`.

        The function takes the `Call` and `next`, which returns the result in wire form. It may return another result,
        change the arguments, or raise `ToolError`. The first middleware of an app is the outermost. The middleware of
        mounted apps is inside.
        """
        self.middlewares.append(function)
        return function

    def mount(self, app: App, prefix: str = "", *, live: bool = True, tools: Overrides | None = None) -> None:
        """Offer the entries of another app, with their middleware, state and completions.

        Tools and prompts get the prefix and `_` before their name: `books_find`. It becomes the first part of the URIs
        of resources: `note://books/1`. The lifespan of the other app runs inside of this app's lifespan.

        Args:
            app: The other app. The skills of its folders are not mounted.
            prefix: The prefix; without one, all names of both apps must differ.
            live: True to follow later changes of the other app, False for its entries of now.
            tools: Name of a tool of the other app -> its changes here: another name, texts, arguments with other
                names or defaults, or none: `{"search": {"name": "find", "arguments": {"lang": {"default": "en"}}}}`.
                See `ToolOverride`.

        Raises:
            BadOverride: A change cannot be made. A tool that the other app lacks is an error when the app starts.
            ValueError: A name is taken, an app would contain itself, or this app is served and not `dynamic`.
        """
        if self in (app, *app.contained()):
            raise ValueError("an app cannot be mounted in itself")
        changes = None
        if tools:
            from .overrides import OverriddenTools, read_overrides  # few mounted tools are changed

            changes = OverriddenTools(read_overrides(tools))
        mount = _Mount(self, app, prefix, changes)
        for kind, place in KINDS.items():
            if place.member in app.document:
                self.document.setdefault(place.member, [])
            for handler in app._contract.handlers[kind].values():
                if (seen := mount.seen(handler)) is not None:
                    self._put(seen)
        self._parts.append(mount)
        if live:
            app._parents.append(mount)

    def contained(self) -> list[App]:
        """Return the apps that are mounted in this app, directly or not."""
        return [app for app, _ in self._placed()][1:]

    def _placed(self, prefix: str = "") -> Iterator[tuple[App, str]]:
        """Yield this app and the apps that are mounted in it, with the prefixes of their HTTP routes."""
        yield self, prefix
        for _, part, name, _ in self._parts:
            yield from part._placed(f"{prefix}/{name}" if name else prefix)

    def rename_tools(self, names: Mapping[str, str]) -> None:
        """Offer tools under other names, also tools that are added later: `{"find": "search_books"}`.

        Rules about the former names hold for the new names.
        """
        self._renamed |= names
        handlers = self._contract.handlers["tool"]
        moved = [handlers[name] for name in names if name in handlers]
        for handler in moved:  # all before the first new name, as two tools may swap names
            self._remove("tool", handler.spec.name)
        for handler in moved:
            self._put(handler)

    def disable(
        self, *names: str, tags: Collection[str] = (), subject: str | None = None, issuer: str | None = None
    ) -> None:
        """Neither list nor answer entries of some names or tags, until `enable` is called.

        Of several rules for an entry the last one counts.

        Args:
            names: The names of tools and prompts, the URIs and URI templates of resources.
            tags: The tags of entries.
            subject: The subject of a token, for which alone the rule holds; by default it holds for all callers.
            issuer: The issuer of the token, because issuers may use the same subject for different users. Without it,
                `disable` holds for the subject of any issuer, and `enable` only for tokens without an issuer.

        Raises:
            ValueError: An issuer is given without a subject.
        """
        self._rule(False, names, tags, subject, issuer)

    def enable(
        self, *names: str, tags: Collection[str] = (), subject: str | None = None, issuer: str | None = None
    ) -> None:
        """List and answer entries again; see `disable`."""
        self._rule(True, names, tags, subject, issuer)

    def visible(self, test: Callable[[Identity], bool], *names: str, tags: Collection[str] = ()) -> None:
        """Hide entries from callers for whom a test fails: they are neither listed nor answered, like unknown entries.

            app.visible(lambda identity: "admin" in identity.claims.get("roles", ()), tags={"admin"})

        All tests about an entry must pass. Where no tokens are verified, as over stdio, they do not apply; over HTTP
        the app needs `auth` then. The skills of folders are no entries: all callers see them.

        Args:
            test: Returns True for the identity of a caller who may use the entries. A test that returns another value,
                or fails with an exception, hides them.
            names: The names of tools and prompts, the URIs and URI templates of resources.
            tags: The tags of entries; without names and tags, the test is about all entries of this app.

        Raises:
            ValueError: Clients are served already, and no entry needed to know its callers.
        """
        from .rules import Condition  # few apps have conditions

        for app in self._above():
            if app._served is not None and not app._served.states_scopes:
                raise ValueError("visible() comes too late: no entry depended on its callers when the app was served")
            app._contract.has_conditions = True
        named = [Condition(test, name) for name in names]
        self._conditions += [*named, *(Condition(test, tag=tag) for tag in tags)] or [Condition(test)]
        self._announce_all()

    def _above(self) -> list[App]:
        """Return this app and the apps in which it is mounted, directly or not."""
        return [self, *(app for mount in self._parents for app in mount.owner._above())]

    def _rule(
        self, is_enabled: bool, names: Collection[str], tags: Collection[str], subject: str | None, issuer: str | None
    ) -> None:
        from .rules import Rule  # few apps have rules

        if issuer is not None and subject is None:
            raise ValueError("issuer= without subject= would change the entries of all callers; give subject=, too")
        rule = Rule(is_enabled, names, tags, subject, issuer)
        self._rules = [one for one in self._rules if one[1:] != rule[1:]] + [rule]
        self._announce_all()

    def _announce_all(self) -> None:
        """Notify clients that all lists may have changed, where that was declared."""
        for app in self._above():
            for changed in {place.changed for place in KINDS.values()}:
                if app._served is not None and changed in app._served.announces:
                    app._announce(changed)

    def allows(self, name: str, tags: Collection[str], identity: Identity | None) -> bool:
        """Return True if the rules of `enable` and `disable` allow an entry to a caller; `None` without token."""
        rules = (rule for rule in reversed(self._rules) if rule.holds(self._names(name), tags, identity))
        return next((rule.is_enabled for rule in rules), True)

    def admits(self, name: str, tags: Collection[str], identity: Identity | None) -> bool:
        """Return True if all conditions of an entry hold for a caller; for an unknown caller, if there are none."""
        return all(one.holds(identity) for one in self._conditions if one.selects(self._names(name), tags))

    def _names(self, name: str) -> Collection[str]:
        """Return the names by which rules may state an entry: its name, and its former names."""
        return {name, *(former for former, new in self._renamed.items() if new == name)}

    def _handler(self, function: Function, options: EntryOptions, known: type) -> FunctionHandler:
        _check_options(options, known.__annotations__, function)
        return FunctionHandler(function, options.get("name", ""), debug=self._debug)

    def _add(
        self,
        function: FunctionHandler,
        made: tuple[HandlerSpec, Entry],
        options: Mapping[str, object],
        method: Function | None = None,
    ) -> None:
        self._advice += function.advice
        spec, entry = made
        given = {_MEMBERS[name]: value for name, value in options.items() if name in _MEMBERS}
        if given.get("icons"):
            given["icons"] = icons_of(cast("Iterable[IconLike]", given["icons"]))
        more = {name: given[name] for name in _MEMBERS.values() if given.get(name, ()) not in (None, ())}
        tags: Any = options.get("tags", ())
        timeout: Any = options.get("timeout")
        allows: Any = options.get("allows_unsafe_values", False)
        spec = replace(spec, tags=frozenset(tags), timeout=timeout, allows_unsafe_values=allows)
        handler = self._contract.handler(spec, {**entry, **more}, method or function.method())
        handler.layers = (Layer(self, spec.name),)
        self._put(handler)

    def _put(self, handler: BoundHandler, *, at_start: bool = False) -> None:
        """Add a handler to this app and to those in which it is mounted; `at_start` as a part of a lifespan."""
        spec = handler.spec
        if spec.kind == "tool" and spec.name in self._renamed:
            handler = renamed(handler, self._renamed[spec.name])
        changed = KINDS[spec.kind].changed
        if not at_start:
            self._check_dynamic(changed, spec.kind)
        depends = SCOPES in handler.entry or not handler.admits(None)
        if depends and self._served is not None and not self._served.states_scopes:
            raise ValueError(f"{spec.name!r} depends on its callers, but no entry did when the app was first served")
        with ExitStack() as stack:
            for mount in self._parents:
                if (seen := mount.seen(handler)) is not None:
                    mount.owner._put(seen, at_start=at_start)
                    stack.callback(mount.owner._remove, spec.kind, seen.spec.name, at_start=True)
            self._contract.add(handler)
            stack.pop_all()  # nothing is refused
        self._announce(changed)

    def _remove(self, kind: Kind, name: str, *, at_start: bool = False) -> None:
        if not at_start:
            self._check_dynamic(KINDS[kind].changed, kind)
        name = self._renamed.get(name, name) if kind == "tool" and name not in self._contract.handlers[kind] else name
        for mount in self._parents:
            if (own := mount.name_of(kind, name)) is not None:
                mount.owner._remove(kind, own, at_start=at_start)
        self._contract.remove(kind, name)
        self._announce(KINDS[kind].changed)

    def _announce(self, method: str, uri: str | None = None) -> None:
        for served in self._running_servers:
            served.announce(method, uri)

    def _check_dynamic(self, changed: str, what: str) -> None:
        """Raise `ValueError` if clients are served and do not expect such a change."""
        if self._served is not None and changed not in self._contract.announces:
            dynamic = next(name for name, method in _CHANGED.items() if method == changed)
            raise ValueError(f"a {what} cannot change while clients are served: App(..., dynamic={{{dynamic!r}}})")

    # --- serving ----------------------------------------------------------------------------------------------

    def served(self) -> ContractServers:
        """Return the servers for one endpoint; they share this app and its lifespan.

        Raises:
            ValueError: A tool names an app that does not exist.
        """
        for tool in self._contract.handlers["tool"].values():
            if "_meta" in tool.entry:
                self._check_shown(tool)
        if any(app._completes for app in (self, *self.contained())):
            self._contract.complete = self._complete
        self._contract.has_conditions = any(app._conditions for app in (self, *self.contained()))
        name = self.document["serverInfo"]["name"]
        doc = self.document.get("instructions") or f"Serve `{name}`."
        self._served = found = ContractServers(self._contract, self, lambda: self._running(found), name, doc)
        found.routes = [
            route._replace(path=prefix + route.path, state=partial(found.states.get, app))
            for app, prefix in self._placed()
            for route in app._routes
        ]
        for app in (self, *self.contained()):
            for line in app._advice:
                log.warning("%s", line)
            app._advice.clear()
        return found

    def _check_shown(self, tool: BoundHandler) -> None:
        from mcp_bindgen.extensions.apps import resource_uri  # few tools belong to an app

        shown_by = resource_uri(tool.entry)
        if shown_by is not None and not self._contract.knows(shown_by):
            problem = f"the tool {tool.spec.name!r} is shown by {shown_by}, which is missing"
            raise ValueError(f"{problem}: @app.ui({shown_by!r})")

    @asynccontextmanager
    async def _running(self, served: ContractServers) -> AsyncGenerator[None]:
        async with self._living(served.states):
            if self._contract.has_conditions:
                from .rules import check_used  # few apps have conditions

                handlers = [one for named in self._contract.handlers.values() for one in named.values()]
                entries = [(layer, one.spec.tags) for one in handlers for layer in one.layers]
                for app in (self, *self.contained()):
                    own = [(app._names(layer.name), tags) for layer, tags in entries if layer.owner is app]
                    check_used(app._conditions, own)
            self._running_servers.append(served)
            try:
                yield
            finally:
                self._running_servers.remove(served)

    @asynccontextmanager
    async def _living(self, states: dict[App, object]) -> AsyncGenerator[None]:
        """Run the lifespans of this app and of mounted apps."""
        async with self._lifespan() as states[self], AsyncExitStack() as stack:
            for _, part, _, changes in self._parts:
                await stack.enter_async_context(part._living(states))
                if changes is not None and "tools" not in part.dynamic:
                    changes.all_listed(part.document.get("tools", ()))
            yield

    async def _complete(self, asked: Completion, ctx: Context) -> Sequence[str]:
        from .optional_features import from_enum  # few apps complete values

        for owner, name in self._contract.handlers[asked.of][asked.name].layers:
            own = cast(App, owner)._completes.get((name, asked.argument))
            if own is not None:
                entered(ctx.server.states, owner, name, ctx.call)
                return await own(asked, ctx)
        return from_enum(self._contract.catalog, asked)


class _Mount(NamedTuple):
    """The app `part` in the app `owner`, below a prefix and with changed tools."""

    owner: App
    part: App
    prefix: str
    tools: OverriddenTools | None

    def seen(self, handler: BoundHandler) -> BoundHandler | None:
        """Return a handler of the part as the owner offers it; `None` if it is hidden."""
        seen = self.tools.view(handler) if self.tools is not None and handler.spec.kind == "tool" else handler
        return None if seen is None else mounted(seen, self.owner, self.prefix)

    def name_of(self, kind: Kind, name: str) -> str | None:
        """Return the owner's name of an entry of the part; `None` if it is hidden."""
        own = self.tools.name_of(name) if self.tools is not None and kind == "tool" else name
        return None if own is None else prefixed(kind, own, self.prefix)


def _decorator(add: Callable[[F], None]) -> Callable[[F], F]:
    """Return the decorator that adds a function."""

    def mark(function: F) -> F:
        add(function)
        return function

    return mark


def _check_options(options: Mapping[str, object], known: Iterable[str], function: Function | None = None) -> None:
    names = sorted(known)
    for name in options.keys() - set(names):
        place = "" if function is None else f"{place_of(function)}: "
        fix = did_you_mean(name, names) or f"; the options are {', '.join(names)}"
        raise TypeError(f"{place}unknown option {name!r}{fix}")


def run(*served: Server | Provider | ModuleType, **options: Unpack[RunOptions]) -> None:
    """Serve an `App`, a module or servers as the command line says, like `mcp_bindgen.runtime.run`.

    Args:
        served: An `App`, a module, an object of a contract's class, or servers, at most one for each revision. A module
            stands for the `App` in it; if it has none, each public function of the module is a tool.
        options: See `mcp_bindgen.runtime.run`.

    Raises:
        BadFunction: A function of a module cannot be a tool.
        ValueError: There is nothing to serve, or two servers for a revision.
    """
    from mcp_bindgen.runtime.serving import run  # an app behind an ASGI server does without it

    run(*(_app_of(one) if isinstance(one, ModuleType) else one for one in served), **options)


def _app_of(module: ModuleType) -> App:
    found = (value for value in module.__dict__.values() if isinstance(value, App))
    return next(found, None) or App.of_module(module)
