"""Several servers at once, from the `mcpServers` file that most MCP hosts read.

    async with Host.from_config("mcp.json", client=Client) as host:
        for tool in await host.tools():
            print(tool.server, tool.item.name)
        await host.call_tool("forecast", {"city": "Oslo"})

Servers may be programs to start or URLs, and clients of one revision or of several. Each server runs in a task of its
own, so one that fails takes nobody with it. One that dies is started again by the next call that needs it; calls that
were under way fail, and are never sent again.
"""

from __future__ import annotations

import difflib
import logging
import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import anyio
from anyio.abc import TaskGroup

from ..core.capabilities import is_declared
from ..core.errors import AuthorizationError, ConnectionClosed, ProtocolError, RequestTimeout, UnexpectedAnswer
from ..endpoint.authorization import Auth
from ..endpoint.client import Client
from ..tasks import Pauses
from .connect import connect
from .mcp_servers import BadConfig, Entry, entry, read
from .offers import Calls, NotRouted, Offer, Prompts, Resources, T_co, Tools
from .stored_login import entry_auth, login_command

if TYPE_CHECKING:
    from ..auth.client.login import Login
    from ..auth.store import Store

__all__ = ["BadConfig", "Host", "NotRouted", "Offer"]

log = logging.getLogger("mcp_bindgen")

C_co = TypeVar("C_co", covariant=True)
C = TypeVar("C", bound=Client)


@dataclass(eq=False)
class _Server:
    """A server of a host.

    Attributes:
        entry: How to reach it.
        scope: Ends the connection; each has its own.
        settled: Set when the connection is ready, or has failed.
        restarted: Set when it was started again, or could not be; `None` while nobody tries.
        restarts: How often it was, since a call last succeeded.
        died: When its connection ended; `None` before it was ready for the first time.
    """

    entry: Entry
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    settled: anyio.Event = field(default_factory=anyio.Event)
    restarted: anyio.Event | None = None
    restarts: int = 0
    died: float | None = None


class Host(Generic[C_co]):
    """Starts servers, keeps one client for each, and asks them as if they were one.

    Args:
        servers: Name -> entry, as in `mcpServers`: `{"command": ..., "args": [...], "env": {...}, "cwd": ...}` or
            `{"url": ..., "headers": {...}, "auth": {...}, "type": "http" or "sse"}`. In the values of `env`, `headers`
            and `auth`, `${NAME}` stands for an environment variable of ours.
        client: The generated client class, or a subclass of it; it decides which revision is spoken. Of several, one
            for each revision, every server gets the best that it understands.
        start_timeout: Seconds that servers have to start; who needs longer has failed.
        restarts: How often a server that died is started again before a call succeeds; 0 for never.
        restart_pause: Seconds between its death and the first of these starts; each further one waits twice as long.
        relist_after: Seconds after which a tool that no server offered is looked for again; sooner only after a server
            said that its lists have changed, or was started again.
        login: How users log in to servers that want it, such as `Browser()`. By default nobody is asked: earlier logins
            are used, and where there is none, the failure names the command that makes one.
        store: Keeps logins; by default where the command keeps them.

    Raises:
        BadConfig: An entry cannot be used.
    """

    def __init__(
        self,
        servers: Mapping[str, Any],
        client: Callable[[], C_co] | Sequence[Callable[[], C_co]],
        *,
        start_timeout: float | None = 30,
        restarts: int = 3,
        restart_pause: float = 0.5,
        relist_after: float = 30.0,
        login: Login | None = None,
        store: Store | None = None,
    ) -> None:
        self._entries = {name: entry(name, value) for name, value in servers.items()}
        self._file: Path | None = None
        self._login = login
        self._store = store
        self._makers = [client] if callable(client) else list(client)
        self._start_timeout = start_timeout
        self._restarts = restarts
        self._restart_pause = restart_pause
        self._relist_after = relist_after
        self._servers: dict[str, _Server] = {}
        self._tasks: TaskGroup | None = None
        self._clients: dict[str, C_co] = {}
        self._failures: dict[str, Exception] = {}
        self._owners: dict[str, list[str]] = {}
        self._listing = anyio.Lock()
        self._listed: tuple[float, object] = -math.inf, None
        self._running: AbstractAsyncContextManager[None] | None = None

    @classmethod
    def from_config(
        cls,
        path: str | os.PathLike[str],
        *,
        client: Callable[[], C] | Sequence[Callable[[], C]],
        start_timeout: float | None = 30,
        restarts: int = 3,
        restart_pause: float = 0.5,
        relist_after: float = 30.0,
        login: Login | None = None,
        store: Store | None = None,
    ) -> Host[C]:
        """Return a host for the servers of a JSON file: `{"mcpServers": {"name": {...}}}`; see `Host`.

        Raises:
            BadConfig: The file is missing, is no such JSON, or has an entry that cannot be used.
        """
        try:
            host = Host(
                read(Path(path)),
                client,
                start_timeout=start_timeout,
                restarts=restarts,
                restart_pause=restart_pause,
                relist_after=relist_after,
                login=login,
                store=store,
            )
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
        """Why servers could not be started, or died since then."""
        return MappingProxyType(self._failures)

    # --- running ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start all servers at once, and go on when each of them is ready, has failed or was too slow."""
        self._running = self._run()
        await self._running.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Stop all servers."""
        assert self._running is not None
        return await self._running.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _run(self) -> AsyncGenerator[None]:
        raised: Exception | None = None
        servers = self._servers = {name: _Server(found) for name, found in self._entries.items()}
        async with anyio.create_task_group() as self._tasks:
            async with anyio.create_task_group() as starting:
                for name in servers:
                    starting.start_soon(self._start, name)
            try:
                yield
            except Exception as error:  # the task group would wrap it in a group of exceptions
                raised = error
            finally:
                self._servers = {}
                self._tasks.cancel_scope.cancel()
        self._clients.clear()
        if raised is not None:
            raise raised

    async def _start(self, name: str) -> None:
        """Start one server, and return when it is ready, has failed or was too slow."""
        server, tasks = self._servers[name], self._tasks
        assert tasks is not None
        scope = server.scope = anyio.CancelScope()
        server.settled = anyio.Event()
        try:
            command = login_command(server.entry, None if self._file is None else f"{self._file}#{name}")
            auth = entry_auth(server.entry, command, login=self._login, store=self._store)
            pauses = auth.authorizer(server.entry.url or "").pauses if auth is not None else Pauses()
        except AuthorizationError as error:
            self._fail(name, scope, error)
            return
        tasks.start_soon(self._keep, name, server, auth, scope, server.settled)
        with pauses.move_on_after(self._start_timeout):
            await server.settled.wait()
        if not server.settled.is_set():
            self._fail(name, scope, TimeoutError(f"not ready within {self._start_timeout:g} s"))
            scope.cancel()

    async def _keep(
        self, name: str, server: _Server, auth: Auth | None, scope: anyio.CancelScope, settled: anyio.Event
    ) -> None:
        """Connect to one server and hold the connection until it ends or `scope` is cancelled."""
        with scope:
            try:
                clients: Any = [make() for make in self._makers]
                async with connect(server.entry, *clients, auth=auth, timeout=None) as client:
                    if not scope.cancel_called:
                        known = {**self._clients, name: client}
                        self._clients = {one: known[one] for one in self._entries if one in known}
                        server.died = None
                        settled.set()
                        await client.link.closed.wait()
                        self._fail(name, scope, ConnectionClosed("the server is gone"))
            except Exception as error:
                if not scope.cancel_called:
                    self._fail(name, scope, error)
        settled.set()

    def _fail(self, name: str, scope: anyio.CancelScope, error: Exception) -> None:
        """Note why a connection ended, unless that is known, or another one has taken its place."""
        server = self._servers.get(name)
        if server is None or server.scope is not scope or name in self._failures:
            return
        may_log_in = isinstance(error, AuthorizationError)  # somewhere else, and meanwhile
        if self._clients.pop(name, None) is not None or server.restarts or may_log_in:
            server.died = anyio.current_time()
        self._failures[name] = error
        log.warning("MCP server %s: %s", name, error)

    def _may_restart(self, name: str) -> bool:
        server = self._servers.get(name)
        if server is None:
            return False
        return server.restarted is not None or (server.died is not None and server.restarts < self._restarts)

    async def _restart(self, name: str, server: _Server, restarted: anyio.Event) -> None:
        """Start a server again that has died, in a task of its own: callers may give up, and it starts all the same."""
        assert server.died is not None
        try:
            server.scope.cancel()
            await anyio.sleep_until(server.died + self._restart_pause * 2**server.restarts)
            if not isinstance(self._failures.pop(name, None), AuthorizationError):
                server.restarts += 1
            await self._start(name)
        finally:
            server.restarted = None
            restarted.set()

    async def _client(self, name: str) -> C_co:
        """Return the client of a server; one that has died is started again, after a pause.

        Raises:
            NotRouted: There is no such server.
            ConnectionClosed: It could not be started, or died too often.
            AuthorizationError: It wants a login.
        """
        server = self._servers.get(name)
        if server is not None and name not in self._clients and self._may_restart(name):
            if server.restarted is None:
                assert self._tasks is not None
                server.restarted = anyio.Event()
                self._tasks.start_soon(self._restart, name, server, server.restarted)
            await server.restarted.wait()
        client = self._clients.get(name)
        if client is None:
            raise self._absent(name)
        return client

    # --- asking -----------------------------------------------------------------------------------------------

    async def tools(self: Host[Tools[T_co]]) -> list[Offer[T_co]]:
        """Return the tools of all servers, all pages; servers that cannot say are left out, and the log says why."""
        self._listed = anyio.current_time(), self._changes()
        found = await self._union("tools", lambda client: client.iter_tools())
        owners: dict[str, list[str]] = {}
        for offer in found:
            owners.setdefault(cast(Any, offer.item).name, []).append(offer.server)
        self._owners = owners
        return found

    async def prompts(self: Host[Prompts[T_co]]) -> list[Offer[T_co]]:
        """Return the prompts of all servers, like `tools`."""
        return await self._union("prompts", lambda client: client.iter_prompts())

    async def resources(self: Host[Resources[T_co]]) -> list[Offer[T_co]]:
        """Return the resources of all servers, like `tools`."""
        return await self._union("resources", lambda client: client.iter_resources())

    async def call_tool(
        self: Host[Calls[T_co]], tool: str, arguments: Mapping[str, Any] | None = None, *, server: str | None = None
    ) -> T_co:
        """Call a tool of one of the servers.

        Args:
            tool: The tool's name.
            arguments: Its arguments.
            server: Whose tool; not needed where only one server has a tool of that name. Who has which is remembered
                from the last `tools()`.

        Raises:
            NotRouted: The server or tool is not there, or several servers have one.
            ConnectionClosed: The server died meanwhile, or it cannot be started again.
            AuthorizationError: The server wants a login, or more than was granted; the message names the command.
        """
        if server is None:
            server = await self._owner(tool)
        client = await self._client(server)
        kept = self._servers[server]
        scope = kept.scope
        try:
            result = await client.call_tool(tool, None if arguments is None else dict(arguments))
        except ConnectionClosed as error:
            self._fail(server, scope, error)
            raise
        kept.restarts = 0
        return result

    async def _union(self, feature: str, each: Callable[[C_co], AsyncIterator[T_co]]) -> list[Offer[T_co]]:
        found: dict[str, list[T_co]] = {}

        async def collect(name: str) -> None:
            try:
                client = await self._client(name)
            except (ConnectionClosed, NotRouted, AuthorizationError):
                return  # the log says why
            scope = self._servers[name].scope
            try:
                if is_declared(cast(Client, client).server_capabilities, feature):
                    found[name] = [item async for item in each(client)]
            except ConnectionClosed as error:
                self._fail(name, scope, error)
            except (ProtocolError, RequestTimeout, UnexpectedAnswer, AuthorizationError) as error:
                log.warning("MCP server %s does not list its %s: %s", name, feature, error)

        async with anyio.create_task_group() as tasks:
            for name in self._servers:
                tasks.start_soon(collect, name)
        return [Offer(name, item) for name in self._entries for item in found.get(name, ())]

    async def _owner(self, tool: str) -> str:
        """Return the one server that offers `tool`; ask again if it may have come since the last time."""
        owners = self._callable(tool)
        if not owners:
            async with self._listing:
                if not self._callable(tool) and self._may_be_new():
                    await cast(Host[Tools[Any]], self).tools()
            owners = self._callable(tool)
        if not owners:
            near = difflib.get_close_matches(tool, self._owners, n=3)
            offered = near or sorted(self._owners)
            raise NotRouted(f"no server offers a tool {tool!r}; {_choices(offered, 'there are: ', 'there are none')}")
        if len(owners) > 1:
            raise NotRouted(f"several servers offer a tool {tool!r}; {_choices(owners, 'say which: ', '')}")
        return owners[0]

    def _callable(self, tool: str) -> list[str]:
        """Return the servers that offered a tool and are there, or else those that may be started again."""
        owners = self._owners.get(tool, [])
        alive = [name for name in owners if name in self._clients]
        return alive or [name for name in owners if self._may_restart(name)]

    def _may_be_new(self) -> bool:
        """Tell whether there may be tools that were not there when they were last listed."""
        when, changes = self._listed
        return anyio.current_time() - when >= self._relist_after or changes != self._changes()

    def _changes(self) -> object:
        """Return what is another value once a server has other tools."""
        return {name: (client, cast(Client, client).changes) for name, client in self._clients.items()}

    def _absent(self, server: str) -> Exception:
        failure = self._failures.get(server)
        if isinstance(failure, AuthorizationError):
            return failure
        if failure is not None:
            return ConnectionClosed(f"the server {server!r} is not there: {failure}")
        return NotRouted(f"no server {server!r}; {_choices(self._clients, 'there are: ', 'there are none')}")


def _choices(names: Iterable[str], some: str, none: str) -> str:
    listed = ", ".join(names)
    return some + listed if listed else none
