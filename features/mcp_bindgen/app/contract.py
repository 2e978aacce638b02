"""The base of generated contracts, a class with a method for each entry, and the servers that answer with it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from types import ModuleType
from typing import IO, Any, ClassVar, Protocol, Self, cast

import anyio

from mcp_bindgen.extension_abi import extension_of
from mcp_bindgen.extensions.tasks.service import Tasks
from mcp_bindgen.extensions.tasks.tools import has_tasks, with_tasks
from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import SessionRequired
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session import context
from mcp_bindgen.runtime.session.endpoint import lifespans, serve
from mcp_bindgen.runtime.session.execution import asynchronous
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.targets import Address, Auth
from mcp_bindgen.runtime.transports.memory import pair

from .catalog import Catalog
from .context import Context
from .features import ArgumentErrors, Completion, Feature, Lifespan, features_of, from_enum
from .handlers import BoundContract, missing_method
from .validation import MOST_STEPS


class InProcess:
    """Provider of servers that is also a target of clients: `Client.connect(app)`, `Host({"notes": app}, Client)`.

    Each connection has servers and a lifespan of its own.
    """

    @abstractmethod
    def servers(self) -> list[Server]:
        """Return a server for each revision."""

    def address(self, headers: Mapping[str, str], stderr: int | IO[Any] | None, auth: Auth | None) -> Address:
        """Return the address of servers in this process; raise `ValueError` for headers or `auth`, which need a URL."""
        if headers or auth is not None:
            raise ValueError("headers and auth are for URLs; a server of this process has no HTTP requests")
        return Address(self._connection)

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Transport]:
        servers = self.servers()
        ours, theirs = pair()
        async with lifespans(servers), background_tasks() as tasks:
            tasks.start_soon(serve, theirs, *servers)
            yield ours


class Contract(InProcess, ABC):
    """The base of a server's contract: a method for each tool, prompt and resource, in every revision.

    A generated class derives from it; subclass that class, write its methods, and `run(*Yours().servers())`.

    Attributes:
        catalog: The entries of the contract.
        revisions: The bindings of the revisions in which it is served.
        info: The server's `Implementation` in wire form; `None` for that in the contract.
        instructions: Advice to models on the use of the server; `None` for that in the contract.
        argument_errors: The response to a call with invalid arguments: an error of the protocol (-32602), or a result
            with `isError`, which hosts show to the model; `None` for the preference of each revision, which is a result
            from 2025-11-25 on.
        tasks: The service that runs tools as tasks; `None` for one in the memory of this process.
        hide_errors: True if callers of a failed tool read only that it failed, False if they read one line about the
            exception, `None` to hide that line from callers with a token. `ToolError` is always shown.
        validation_steps: Maximum of steps for the validation of a value; a schema that can take more is refused on
            first use.
    """

    catalog: ClassVar[Catalog]
    revisions: ClassVar[tuple[ModuleType, ...]]
    info: Mapping[str, Any] | None = None
    instructions: str | None = None
    argument_errors: ArgumentErrors | None = None
    tasks: Tasks | None = None
    hide_errors: bool | None = None
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

    def servers(self) -> list[Server]:
        """Return a server for each revision; they share this object and its lifespan.

        Raises:
            ValueError: The methods of this class and the contract's document do not belong together.
            ImportError: There are tools or templates, and `mcp-bindgen[app]` is not installed.
        """
        contract = BoundContract.of(self, self.catalog, self.validation_steps)
        if type(self).complete is not Contract.complete:
            contract.complete = asynchronous(self.complete)
        document, kind = self.catalog.document, type(self)
        info = self.info or document.get("serverInfo") or {"name": kind.__name__, "version": "0"}
        instructions = document.get("instructions") if self.instructions is None else self.instructions
        name, doc = kind.__name__, kind.__doc__
        return [*servers_of(contract, self, self.revisions, self.lifespan, name, doc, info, instructions)]


class Settings(Protocol):
    """The settings of a contract's servers; see `Contract`."""

    argument_errors: ArgumentErrors | None
    hide_errors: bool | None
    tasks: Tasks | None


def servers_of(
    contract: BoundContract,
    settings: Settings,
    revisions: Sequence[ModuleType],
    lifespan: Lifespan,
    name: str,
    doc: str | None,
    info: Mapping[str, Any],
    instructions: str | None,
) -> list[Feature]:
    """Return a server for each revision of a contract.

    If tools are tasks, there is none for revisions with tasks in their core: the server of the revision with the
    extension serves these, and runs the same tasks for both.

    Args:
        contract: The contract and its handlers.
        settings: The settings of the servers.
        revisions: The bindings of the revisions.
        lifespan: Starts and stops the resources that the servers share; the first server to start enters it.
        name: The name of the servers' classes.
        doc: The description of the servers in `--help`.
        info: The servers' `Implementation` in wire form.
        instructions: Advice to models on the use of the servers.
    """
    tasks = settings.tasks
    if tasks is None and any(handler.task for handler in contract.handlers["tool"].values()):
        tasks = Tasks()
    features, shared, servers = features_of(contract), _shared(lifespan), list[Feature]()
    bases = {package: package.Server if tasks is None else with_tasks(package) for package in revisions}
    is_offered = any(base is not package.Server for package, base in bases.items())
    for package, base in bases.items():
        if is_offered and has_tasks(package):
            continue
        server: Feature = _server_class(name, doc, package, base, features)()
        server.contract, server.package, server.revisions = contract, package, revisions
        server.info, server.instructions = package.types.Implementation.model_validate(info), instructions
        server.announces, server.shared_lifespan, server.own_tasks = contract.announces, shared, tasks
        server.argument_errors, server.hide_errors = settings.argument_errors, settings.hide_errors
        server.has_tasks = base is not package.Server
        server.has_tasks_elsewhere = is_offered and not server.has_tasks
        servers.append(server)
    return servers


@cache
def _server_class(
    name: str, doc: str | None, package: ModuleType, base: type[Server], features: tuple[type[Feature], ...]
) -> type[Any]:
    """Return the class of a server, whose capabilities follow from the features among its bases.

    It is made at run time, because only then are the bindings of the revision and the entries of the contract known.
    """
    found = {feature: extension_of(package, feature.extension) for feature in features if feature.extension}
    own = [feature for feature in features if found.get(feature, package) is not None]
    extended = [extension.Server for extension in found.values() if extension is not None]
    kind: type[Any] = type(name, (*own, Feature, *extended, base), {"__doc__": doc})
    kind.context = type("Context", (Context, kind.context), {"__doc__": Context.__doc__})
    return kind


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


_NOTIFY_SECONDS = 10.0  # that clients have to take one notification


class ChangeNotifier:
    """Sends notifications of changes, which may come from any thread; equal ones that wait are sent once.

    Attributes:
        servers: The servers whose clients are notified.
    """

    def __init__(self) -> None:
        self.servers: Sequence[Server] = ()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[tuple[str, str | None], None] = {}

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

        async def tell(client: context.Context) -> None:
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
