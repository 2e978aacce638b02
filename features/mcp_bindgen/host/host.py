"""Several servers at once, from the `mcpServers` file that most MCP hosts read.

    async with Host.from_config("mcp.json", client=Client) as host:
        for tool in await host.tools():
            print(tool.server, tool.item.name)
        await host.call_tool("forecast", {"city": "Oslo"})

Servers are programs to start or URLs, and clients are of one revision or of several. Each server runs in a task of its
own: a failed server stops no other, and `failures` has the reason with the end of its stderr. A server that died is
restarted by the next call that needs it. Calls in flight fail then; they are never sent again.

With `background=True` the block does not wait for slow servers, and no call is needed to restart a server that died:

    async with Host.from_config("mcp.json", client=Client, background=True) as host:
        async for status in host.started():
            print(status.name, status.state, status.error or "")
"""

from __future__ import annotations

import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack, cast

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

import mcp_bindgen.lock as locks  # its classes need the validator, and load when they are used
from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.connecting import ConnectTimeout, connect
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.runtime.protocol import errors
from mcp_bindgen.runtime.protocol.capabilities import is_declared
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed, ProtocolError, RequestTimeout
from mcp_bindgen.runtime.session.client import Client
from mcp_bindgen.runtime.session.targets import Auth
from mcp_bindgen.runtime.similar_names import similar

from .configuration import BadConfig, Entry, entry, read
from .watch import StderrTail, Watch

if TYPE_CHECKING:
    from mcp_bindgen.app.overrides import OverriddenTools
    from mcp_bindgen.auth.client.login import Login
    from mcp_bindgen.auth.store import Store
    from mcp_bindgen.drift import Change
    from mcp_bindgen.lowering import Lowered, Profile

C = TypeVar("C", bound=Client)
C_co = TypeVar("C_co", covariant=True)
T_co = TypeVar("T_co", covariant=True)

_EXPLAIN_SECONDS = 1.0  # that a failed call waits for the exit code of its server
_MAX_CHOICES = 5

State: TypeAlias = Literal["starting", "ready", "failed", "disabled", "removed"]


class NotRouted(LookupError):
    """A call without a target: its server or tool does not exist, or several servers offer a tool of that name."""


@dataclass(frozen=True)
class Offer(Generic[T_co]):
    """Tool, prompt or resource of a server.

    Attributes:
        server: The server's name in the configuration.
        item: The `Tool`, `Prompt` or `Resource` of the client's revision.
    """

    server: str
    item: T_co


class Tools(Protocol[T_co]):
    """A client that can list tools."""

    def iter_tools(self) -> AsyncIterator[T_co]:
        """Return the tools of all pages."""
        ...


class Prompts(Protocol[T_co]):
    """A client that can list prompts."""

    def iter_prompts(self) -> AsyncIterator[T_co]:
        """Return the prompts of all pages."""
        ...


class Resources(Protocol[T_co]):
    """A client that can list resources."""

    def iter_resources(self) -> AsyncIterator[T_co]:
        """Return the resources of all pages."""
        ...


class Calls(Protocol[T_co]):
    """A client that can call tools."""

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> T_co:
        """Call a tool."""
        ...


@dataclass(frozen=True)
class Status:
    """Current state of a server.

    Attributes:
        name: Its name in the configuration.
        state: `starting` (also again), `ready`, `failed` (also if it died), `disabled` or `removed`.
        error: The reason of the last failure, until the server is ready; it names the exit code and the end of stderr.
    """

    name: str
    state: State
    error: Exception | None = None


class HostOptions(TypedDict, total=False):
    """Options of `Host`, which describes them."""

    start_timeout: float | None
    restarts: int
    restart_pause: float
    relist_after: float
    login: Login | None
    store: Store | None
    background: bool
    lock: str | os.PathLike[str] | locks.Lock | None


@dataclass(eq=False)
class _Server:
    """A server of a host.

    Attributes:
        entry: Its entry.
        scope: Ends its connection; each connection has its own.
        settled: Set when the connection is ready, or has failed.
        is_starting: True until then.
        restarted: Set when a restart has ended; `None` while there is none.
        restarts: Number of restarts since a call last succeeded.
        died: Time at which its connection ended, or at which it crashed during its start; `None` before that.
        watch: Watch over its connection.
        stderr: The end of its stderr, while it runs.
        guard: Compares it with the lock; `None` without a lock.
        tools: Its changed tools; `None` if its entry changes none.
    """

    entry: Entry
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    settled: anyio.Event = field(default_factory=anyio.Event)
    is_starting: bool = True
    restarted: anyio.Event | None = None
    restarts: int = 0
    died: float | None = None
    watch: Watch = field(default_factory=lambda: Watch(""))
    stderr: StderrTail | None = None
    guard: locks.Guard | None = None
    tools: OverriddenTools | None = None

    def explained(self, error: object) -> str:
        """Return an error with the exit of the process and the end of its stderr."""
        return self.watch.explained(error, "" if self.stderr is None else self.stderr.text())


class Host(AsyncContextManagerMixin, Generic[C_co]):
    """A set of servers, with a connected client for each, that can be asked as if they were one server.

    Args:
        servers: Name -> entry, as in `mcpServers`: `{"command": ..., "args": [...], "env": {...}, "cwd": ...}` or
            `{"url": ..., "headers": {...}, "auth": {...}, "type": "http" or "sse"}`. `${NAME}` stands for an
            environment variable, `${NAME:-text}` for one with a default, in all members. `"disabled": true` leaves a
            server out, and `"tools"` changes its tools. An `App` is a server of this process. An invalid entry is a
            failure of that server only.
        client: The generated client class, or a subclass of it; it decides the revision. Of several classes, one for
            each revision, each server gets the newest that it understands.
        start_timeout: Seconds that a server has to start before it counts as failed.
        restarts: Restarts of a server that died, before a call succeeds again; 0 for none.
        restart_pause: Seconds between its death and the first restart; each further pause is twice as long.
        relist_after: Seconds after which an unknown tool is looked for again; sooner only after a server announced
            changed lists, or was restarted.
        login: Lets users log in to servers that want it, such as `Browser()`. By default no user is asked: stored
            logins are used, and without one the failure names the command that logs in.
        store: Keeps logins; by default the store of the command.
        background: Do not wait for servers to start, and restart a server that died or crashed during its start
            without waiting for a call, after `restart_pause` and up to `restarts` times.
        lock: The lock file of `mcp-bindgen lock`. Only tools, prompts and resources that agree with it are listed and
            called; calls of others raise `mcp_bindgen.lock.NotAsLocked`. A server that the lock does not have, or whose
            name or instructions changed, fails.

    Attributes:
        clients: The connected clients by server name.
        failures: The reasons why servers could not be started, or died since then, until they are ready again.
        drift: The differences from the lock by server name.

    Raises:
        BadLock: The lock cannot be read.
    """

    def __init__(
        self,
        servers: Mapping[str, object],
        client: Callable[[], C_co] | Sequence[Callable[[], C_co]],
        *,
        start_timeout: float | None = 30,
        restarts: int = 3,
        restart_pause: float = 0.5,
        relist_after: float = 30.0,
        login: Login | None = None,
        store: Store | None = None,
        background: bool = False,
        lock: str | os.PathLike[str] | locks.Lock | None = None,
    ) -> None:
        self._given = dict(servers)
        self._makers = [client] if callable(client) else list(client)
        self._start_timeout, self._restarts, self._restart_pause = start_timeout, restarts, restart_pause
        self._relist_after, self._login, self._store, self._background = relist_after, login, store, background
        self._lock = locks.Lock.read(lock) if isinstance(lock, str | os.PathLike) else lock
        self._file: Path | None = None
        self._watchers: set[MemoryObjectSendStream[Status]] = set()
        self._servers: dict[str, _Server] = {}
        self._clients: dict[str, C_co] = {}
        self._failures: dict[str, Exception] = {}
        self._tasks: TaskGroup | None = None
        self._tools: dict[str, frozenset[str]] = {}
        self._offers: list[Offer[Any]] = []
        self._functions: dict[str, tuple[str, Lowered]] = {}
        self._listing = anyio.Lock()
        self._listed: tuple[float, object] = -math.inf, None

    @classmethod
    def from_config(
        cls,
        path: str | os.PathLike[str],
        *,
        client: Callable[[], C] | Sequence[Callable[[], C]],
        **options: Unpack[HostOptions],
    ) -> Host[C]:
        """Return a host for the servers of a JSON file: `{"mcpServers": {"name": {...}}}`; see `Host`.

        Raises:
            BadConfig: The file is missing or has no such JSON.
        """
        try:
            host = Host(read(Path(path)), client, **options)
        except BadConfig as error:
            raise BadConfig(f"{os.fspath(path)}: {error}") from None
        host._file = Path(path)
        return host

    @property
    def clients(self) -> Mapping[str, C_co]:
        """The connected clients by server name."""
        return MappingProxyType(self._clients)

    @property
    def failures(self) -> Mapping[str, Exception]:
        """The reasons why servers could not be started, or died since then."""
        return MappingProxyType(self._failures)

    @property
    def drift(self) -> Mapping[str, Sequence[Change]]:
        """The differences from the lock that were found so far, by server name."""
        return {name: server.guard.drift for name, server in self._servers.items() if server.guard is not None}

    # --- running ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        """Start all servers at once, and stop them at the end; wait for the start unless in the background."""
        self._failures.clear()
        try:
            async with background_tasks() as self._tasks:
                try:
                    async with anyio.create_task_group() as starting:
                        for name, value in self._given.items():
                            if self._admit(name, value):
                                tasks = self._tasks if self._background else starting
                                tasks.start_soon(self._start, name, self._servers[name])
                    yield self
                finally:
                    self._servers = {}
        finally:
            self._tasks, self._clients = None, {}
            for watcher in self._watchers:
                watcher.close()

    def _admit(self, name: str, value: object) -> bool:
        """Take in a server; return whether it is to be started."""
        try:
            found = entry(name, value, self._file)
        except BadConfig as error:
            self._failures[name] = error if self._file is None else BadConfig(f"{self._file}: {error}")
            log.warning("MCP %s", self._failures[name])
            self._notify(name, "failed")
            return False
        if found.disabled:
            self._notify(name, "disabled")
            return False
        self._servers[name] = server = _Server(found)
        if found.tools:
            from mcp_bindgen.app.overrides import OverriddenTools  # few entries change tools

            server.tools = OverriddenTools(found.tools)
        return True

    async def add(self, name: str, value: object) -> None:
        """Start another server in the background; `started` and `changes` tell when it is ready.

        Args:
            name: Its name, which no other server has.
            value: Its entry, as in `mcpServers`.

        Raises:
            BadConfig: The entry cannot be used.
            ValueError: There is a server of that name, or the host does not run.
        """
        if name in self._given:
            raise ValueError(f"there is a server {name!r} already")
        if self._tasks is None:
            raise ValueError("the host does not run")
        entry(name, value, self._file)
        self._given[name] = value
        if self._admit(name, value):
            self._tasks.start_soon(self._start, name, self._servers[name])

    async def remove(self, name: str) -> None:
        """Stop a server and forget it; its calls in flight fail.

        Raises:
            NotRouted: There is no such server.
        """
        if name not in self._given:
            raise self._absent(name)
        del self._given[name]
        server = self._servers.pop(name, None)
        self._clients = {other: client for other, client in self._clients.items() if other != name}
        self._failures.pop(name, None)
        self._tools.pop(name, None)
        if server is not None:
            server.scope.cancel()
            server.settled.set()
        self._notify(name, "removed")

    def status(self, name: str) -> Status:
        """Return the state of a server.

        Raises:
            NotRouted: There is no such server.
        """
        if name not in self._given:
            raise self._absent(name)
        if name in self._clients:
            return Status(name, "ready")
        failure = self._failures.get(name)
        if name in self._servers and self._servers[name].is_starting:
            return Status(name, "starting", failure)
        return Status(name, "disabled" if failure is None else "failed", failure)

    async def started(self) -> AsyncIterator[Status]:
        """Yield each server once it is ready or has failed; end when no server is starting any more."""
        left = set(self._given)
        async for status in self.changes():
            if status.name in left and status.state != "starting":
                left.discard(status.name)
                yield status
            if not left:
                return

    async def changes(self) -> AsyncIterator[Status]:
        """Yield the state of each server, and then each change of a state, until the host ends."""
        sender, receiver = anyio.create_memory_object_stream[Status](math.inf)
        self._watchers.add(sender)
        try:
            for name in self._given:
                sender.send_nowait(self.status(name))
            async with receiver:
                async for status in receiver:
                    yield status
        finally:
            self._watchers.discard(sender)
            sender.close()

    def _notify(self, name: str, state: State) -> None:
        for watcher in self._watchers:
            watcher.send_nowait(Status(name, state, self._failures.get(name)))

    # --- connections ------------------------------------------------------------------------------------------

    async def _start(self, name: str, server: _Server) -> None:
        """Start a server; return when it is ready, has failed or was too slow."""
        if self._servers.get(name) is not server:  # it was removed before its start; another server may have its name
            return
        assert self._tasks is not None
        self._notify(name, "starting")
        server.is_starting = True
        scope = server.scope = anyio.CancelScope()
        if server.settled.is_set():
            server.settled = anyio.Event()
        try:
            command = server.entry.login_command(None if self._file is None else f"{self._file}#{name}")
            auth = server.entry.login_auth(command, login=self._login, store=self._store)
        except AuthorizationError as error:
            self._fail(name, scope, error)
            server.settled.set()
            return
        self._tasks.start_soon(self._keep, name, server, auth, scope, server.settled)
        await server.settled.wait()

    async def _keep(
        self, name: str, server: _Server, auth: Auth | None, scope: anyio.CancelScope, settled: anyio.Event
    ) -> None:
        """Connect to a server and hold the connection until it ends or `scope` is cancelled."""
        server.watch = Watch(name)
        with scope, StderrTail(name) as server.stderr:
            stderr = None if server.entry.command is None else server.stderr.writer
            try:
                guard = server.guard = None if self._lock is None else locks.Guard(self._lock, name)
                made: list[Any] = [make() for make in self._makers]
                clients = made if guard is None else list(map(guard.attach, made))
                place = server.watch.address(server.entry.address({}, stderr, auth))
                async with connect(place, *clients, timeout=self._start_timeout) as client:
                    if not scope.cancel_called:
                        known = {**self._clients, name: client}
                        self._clients = {other: known[other] for other in self._given if other in known}
                        server.died, server.is_starting = None, False
                        self._failures.pop(name, None)
                        settled.set()
                        self._notify(name, "ready")
                        await client.link.closed.wait()
                        raise ConnectionClosed("the server closed the connection")
            except ConnectTimeout:
                late = f"not ready within {self._start_timeout:g} s"
                self._fail(name, scope, TimeoutError(server.explained(late)))
            except Exception as error:
                if not scope.cancel_called:
                    explained = server.explained(error) if isinstance(error, ConnectionClosed) else str(error)
                    self._fail(name, scope, error if explained == str(error) else ConnectionClosed(explained))
        settled.set()

    def _fail(self, name: str, scope: anyio.CancelScope, error: Exception) -> None:
        """Note why a connection ended, unless the reason is known or another connection has taken its place."""
        server = self._servers.get(name)
        if server is None or server.scope is not scope or not (server.is_starting or name in self._clients):
            return
        server.is_starting = False
        may_log_in = isinstance(error, AuthorizationError)  # the user may log in with the command meanwhile
        crashed = self._background and isinstance(error, ConnectionClosed)  # at its first start, perhaps
        if self._clients.pop(name, None) is not None or server.restarts or may_log_in or crashed:
            server.died = anyio.current_time()
        self._failures[name] = error
        log.warning("MCP server %s: %s", name, error)
        self._notify(name, "failed")
        if self._background and not may_log_in and self._may_restart(name):
            self._begin_restart(name, server)

    def _may_restart(self, name: str) -> bool:
        server = self._servers.get(name)
        if server is None:
            return False
        return server.restarted is not None or (server.died is not None and server.restarts < self._restarts)

    def _begin_restart(self, name: str, server: _Server) -> anyio.Event:
        """Restart a server that has died, unless that is under way; return the event that is set at the end."""
        if server.restarted is None:
            assert self._tasks is not None
            server.restarted = anyio.Event()
            self._tasks.start_soon(self._restart, name, server, server.restarted)
        return server.restarted

    async def _restart(self, name: str, server: _Server, restarted: anyio.Event) -> None:
        """Restart a server that has died, in a task of its own, which a cancelled caller does not stop."""
        assert server.died is not None
        try:
            server.scope.cancel()
            await anyio.sleep_until(server.died + self._restart_pause * 2**server.restarts)
            if self._servers.get(name) is not server:  # it was removed; another server may have its name
                return
            if not isinstance(self._failures.get(name), AuthorizationError):
                server.restarts += 1
            await self._start(name, server)
        finally:
            server.restarted = None
            restarted.set()
        is_present = self._servers.get(name) is server
        if self._background and is_present and name not in self._clients and self._may_restart(name):
            self._begin_restart(name, server)

    async def _client(self, name: str) -> C_co:
        """Return the client of a server; restart a server that has died.

        Raises:
            NotRouted: There is no such server.
            ConnectionClosed: It could not be started, or died too often.
            AuthorizationError: It wants a login.
        """
        server = self._servers.get(name)
        if server is not None and name not in self._clients and self._may_restart(name):
            await self._begin_restart(name, server).wait()
        elif server is not None and server.is_starting:
            await server.settled.wait()
        client = self._clients.get(name)
        if client is None:
            raise self._absent(name)
        return client

    def _absent(self, server: str) -> Exception:
        failure = self._failures.get(server)
        if isinstance(failure, AuthorizationError):
            return failure
        if failure is not None:
            return ConnectionClosed(f"the server {server!r} is not there: {failure}")
        if server in self._given:
            return NotRouted(f"the server {server!r} is not there: it is disabled")
        return NotRouted(f"no server {server!r}; {_near(server, self._given)}")

    # --- requests ---------------------------------------------------------------------------------------------

    async def tools(self: Host[Tools[T_co]]) -> list[Offer[T_co]]:
        """Return the tools of all servers, all pages; a server that cannot list them is left out and logged."""
        listed = anyio.current_time(), self._changed()
        found = await self._union("tools", lambda client: client.iter_tools())
        for name, items in found.items():  # servers that are away keep their tools: a call there gets the reason
            guard, changes = self._servers[name].guard, self._servers[name].tools
            items = found[name] = items if changes is None else _changed(changes, name, items)
            drifted = (entry for kind, entry in (() if guard is None else guard.changes) if kind == "tool")
            self._tools[name] = frozenset((*drifted, *(cast(Any, item).name for item in items)))
        self._offers, self._listed = _offers(found), listed  # a caller that gives up leaves the listing to the next
        return _offers(found)

    async def search(self: Host[Tools[T_co]], words: str, *, limit: int = 10) -> list[Offer[T_co]]:
        """Return the tools that fit words, the best first: for models that cannot read hundreds of tools.

        Args:
            words: Words of names, descriptions and arguments.
            limit: The largest number of results.
        """
        from mcp_bindgen.app.search import search

        offers = cast(list[Offer[T_co]], self._offers) if not self._may_be_new() else await self.tools()
        tools = [cast(Model, offer.item).model_dump() for offer in offers]
        return [offers[index] for index in search(words, tools, limit)]

    async def prompts(self: Host[Prompts[T_co]]) -> list[Offer[T_co]]:
        """Return the prompts of all servers, like `tools`."""
        return _offers(await self._union("prompts", lambda client: client.iter_prompts()))

    async def resources(self: Host[Resources[T_co]]) -> list[Offer[T_co]]:
        """Return the resources of all servers, like `tools`."""
        return _offers(await self._union("resources", lambda client: client.iter_resources()))

    async def call_tool(
        self: Host[Calls[T_co]], tool: str, arguments: Mapping[str, Any] | None = None, *, server: str | None = None
    ) -> T_co:
        """Call a tool of one of the servers.

        Args:
            tool: The tool's name.
            arguments: Its arguments.
            server: The server; needed only if several servers have a tool of that name, as of the last `tools()`.

        Raises:
            NotRouted: The server or tool does not exist, or several servers have the tool.
            ConnectionClosed: The server died, or cannot be restarted; with its exit code and the end of its stderr.
            RequestTimeout: No answer came in time.
            ProtocolError: The server refuses the call.
            AuthorizationError: The server wants a login, or more scopes; the message names the command.
            NotAsLocked: The lock does not have the tool, or has it in another form.
        """
        if server is None:
            server = await self._owner(tool)
        client = await self._client(server)
        kept = self._servers[server]
        scope = kept.scope
        where, begun = f"server {server!r}, tool {tool!r}", anyio.current_time()
        if kept.tools is not None:
            if not kept.tools.knows(tool):
                await cast(Host[Tools[Any]], self).tools()
            tool, arguments = kept.tools.called(tool, arguments)
        try:
            result = await client.call_tool(tool, None if arguments is None else dict(arguments))
        except ConnectionClosed as error:
            with anyio.move_on_after(_EXPLAIN_SECONDS):
                await kept.watch.ended.wait()
            explained, seconds = kept.explained(error), anyio.current_time() - begun
            self._fail(server, scope, ConnectionClosed(explained))
            raise ConnectionClosed(f"{where}, after {seconds:.1f} s: {explained}") from None
        except RequestTimeout:
            options, seconds = cast(Client, client).options, anyio.current_time() - begun
            limit = next((one for one in (options.total_timeout, options.timeout) if one and one <= seconds), seconds)
            raise RequestTimeout(f"{where}: no answer within {limit:g} s") from None
        except ProtocolError as error:
            error.args = (f"{where}: {error}",)
            raise
        kept.restarts = 0
        return result

    async def functions(
        self: Host[Tools[T_co]], profile: Profile | str, *, only: Callable[[Offer[T_co]], bool] = lambda _: True
    ) -> list[Lowered]:
        """Return the tools of all servers as functions for a model provider: name, description and schema.

        `dispatch` calls them. A tool without a lowered form is left out and logged.

        Args:
            profile: The profile of the provider, its name, or the path of its file; see `mcp_bindgen.lowering`.
            only: Says which tools take part.

        Raises:
            BadProfile: There is no such profile.
            RequestTooLarge: A request cannot hold that many tools.
        """
        from mcp_bindgen.lowering import lower, require_budgets

        found: dict[str, tuple[str, Lowered]] = {}
        for offer in filter(only, await self.tools()):
            lowered = lower(cast(Any, offer.item), profile, server=offer.server)
            if lowered.schema is None:
                reason = lowered.reasons[-1].text
                log.warning("MCP server %s: %s is no function: %s", offer.server, lowered.tool, reason)
            else:
                found[lowered.name] = offer.server, lowered
        functions = [lowered for _, lowered in found.values()]
        require_budgets(functions, profile)
        self._functions = found
        return functions

    async def dispatch(self: Host[Calls[T_co]], name: str, arguments: Mapping[str, Any]) -> T_co:
        """Call the tool behind a function of the last `functions`.

        Args:
            name: The name of the function.
            arguments: The arguments that the model wrote.

        Raises:
            NotRouted: There is no such function.
            InvalidArguments: The tool does not accept them; the model can read the message and try again.
            ConnectionClosed, AuthorizationError: See `call_tool`.
        """
        if name not in self._functions:
            raise NotRouted(f"no function {name!r}; {_near(name, self._functions, 'call functions() first')}")
        server, lowered = self._functions[name]
        return await self.call_tool(lowered.tool, lowered.decode(arguments), server=server)

    async def _union(self, feature: str, each: Callable[[C_co], AsyncIterator[T_co]]) -> dict[str, list[T_co]]:
        """Return the entries of each server that could list them."""
        found: dict[str, list[T_co]] = {}

        async def collect(name: str) -> None:
            try:
                client = await self._client(name)
            except (ConnectionClosed, NotRouted, AuthorizationError):
                return  # logged before
            scope = self._servers[name].scope
            try:
                has_list = is_declared(cast(Client, client).server_capabilities, feature)
                found[name] = [item async for item in each(client)] if has_list else []
            except ConnectionClosed as error:
                self._fail(name, scope, error)
            except (ProtocolError, RequestTimeout, errors.UnexpectedAnswer, AuthorizationError) as error:
                log.warning("MCP server %s does not list its %s: %s", name, feature, error)

        async with anyio.create_task_group() as tasks:
            for name in self._servers:
                if not self._background or name in self._clients:  # in the background, only ready servers count
                    tasks.start_soon(collect, name)
        return {name: found[name] for name in self._given if name in found}

    async def _owner(self, tool: str) -> str:
        """Return the one server that offers a tool; list tools again if it may be new."""
        owners = self._owners(tool)
        if len(owners) != 1 or owners[0] not in self._tools:
            async with self._listing:
                if owners == self._owners(tool) and self._may_be_new():
                    await cast(Host[Tools[Any]], self).tools()
            owners = self._owners(tool)
        guards = [server.guard for server in self._servers.values() if server.guard is not None]
        for refusal in (one.refusal("tool", tool) for one in guards) if not owners else ():
            if refusal is not None:
                raise refusal
        if not owners:
            known = {name for names in self._tools.values() for name in names}
            raise NotRouted(f"no server offers a tool {tool!r}; {_near(tool, known)}")
        if len(owners) > 1:
            raise NotRouted(f"several servers offer a tool {tool!r}; {_choices(owners, 'say which: ', '')}")
        return owners[0]

    def _owners(self, tool: str) -> list[str]:
        """Return the servers that offer a tool, also those that are away: no other server gets their calls.

        A server offers the tools of its last list, before that those of the lock.
        """
        locked: Mapping[str, locks.LockedServer] = {} if self._lock is None else self._lock.servers
        unread = {name: one.current.entries["tool"] for name, one in locked.items()}
        return [name for name in self._servers if tool in self._tools.get(name, unread.get(name, ()))]

    def _may_be_new(self) -> bool:
        """Return whether there may be tools that were unknown when tools were last listed."""
        when, changed = self._listed
        return anyio.current_time() - when >= self._relist_after or changed != self._changed()

    def _changed(self) -> object:
        """Return a value that differs once a server has other tools."""
        return {name: (client, cast(Client, client).changes) for name, client in self._clients.items()}


def _changed(changes: OverriddenTools, server: str, tools: list[Any]) -> list[Any]:
    """Return the tools of a server under its overrides; none, with a warning, if these do not fit."""
    from mcp_bindgen.app.overrides import BadOverride

    try:
        first: Any = tools[0]
        return [first.model_validate(one) for one in changes.all_listed([one.model_dump() for one in tools])]
    except BadOverride as error:
        log.warning('MCP server %s: its tools are left out: "tools": %s', server, error)
        return []


def _offers(found: Mapping[str, Sequence[T_co]]) -> list[Offer[T_co]]:
    return [Offer(name, item) for name, items in found.items() for item in items]


def _near(name: str, names: Iterable[str], none: str = "there are none") -> str:
    """Return advice for an unknown name: the nearest names, or else some of them."""
    known = sorted(names)
    near = similar(name, known, 3)
    return f"did you mean {' or '.join(near)}?" if near else _choices(known, "there are: ", none)


def _choices(names: Iterable[str], some: str, none: str) -> str:
    """Return `some` and the first names, or `none` if there are no names."""
    listed = list(names)
    more = [f"and {len(listed) - _MAX_CHOICES} more"] if len(listed) > _MAX_CHOICES else []
    return some + ", ".join([*listed[:_MAX_CHOICES], *more]) if listed else none
