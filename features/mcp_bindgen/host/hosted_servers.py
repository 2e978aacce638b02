"""Start the servers of a host, keep one client for each, and start those again that died."""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from mcp_bindgen.runtime.concurrency import Pauses
from mcp_bindgen.runtime.connecting import connect
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed
from mcp_bindgen.runtime.session.authorization import Auth

from .configuration import BadConfig, Entry, entry
from .offers import NotRouted
from .stderr_tail import StderrTail

if TYPE_CHECKING:
    from mcp_bindgen.auth.client.login import Login
    from mcp_bindgen.auth.store import Store

log = logging.getLogger("mcp_bindgen")

C_co = TypeVar("C_co", covariant=True)

State: TypeAlias = Literal["starting", "ready", "failed", "disabled", "removed"]


@dataclass(frozen=True)
class Status:
    """The state of a server, now.

    Attributes:
        name: Its name in the configuration.
        state: Whether it starts, is ready, has failed or died, is not wanted, or was removed.
        error: Why it failed.
    """

    name: str
    state: State
    error: Exception | None = None


@dataclass(eq=False)
class HostedServer:
    """A server of a host.

    Attributes:
        entry: How to reach it.
        scope: Ends the connection; each has its own.
        settled: Set when the connection is ready, or has failed.
        restarted: Set when it was started again, or could not be; `None` while nobody tries.
        restarts: How often it was, since a call last succeeded.
        died: When its connection ended, or it crashed while it started; `None` before that.
        stderr: The end of what it writes there, while it runs.
    """

    entry: Entry
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    settled: anyio.Event = field(default_factory=anyio.Event)
    restarted: anyio.Event | None = None
    restarts: int = 0
    died: float | None = None
    stderr: StderrTail | None = None


class HostedServers(Generic[C_co]):
    """The servers of a host, each in a task of its own; see `Host` for the arguments."""

    def __init__(
        self,
        servers: Mapping[str, Any],
        client: Callable[[], C_co] | Sequence[Callable[[], C_co]],
        *,
        start_timeout: float | None,
        restarts: int,
        restart_pause: float,
        login: Login | None,
        store: Store | None,
        background: bool,
    ) -> None:
        self._given = dict(servers)
        self._background = background
        self._watchers: set[MemoryObjectSendStream[Status]] = set()
        self._file: Path | None = None
        self._login = login
        self._store = store
        self._makers = [client] if callable(client) else list(client)
        self._start_timeout = start_timeout
        self._restarts = restarts
        self._restart_pause = restart_pause
        self._servers: dict[str, HostedServer] = {}
        self._tasks: TaskGroup | None = None
        self._clients: dict[str, C_co] = {}
        self._failures: dict[str, Exception] = {}
        self._running: AbstractAsyncContextManager[None] | None = None

    @property
    def clients(self) -> Mapping[str, C_co]:
        """The connected clients by server name."""
        return MappingProxyType(self._clients)

    @property
    def failures(self) -> Mapping[str, Exception]:
        """The reasons why servers could not be started, or died since then."""
        return MappingProxyType(self._failures)

    # --- running ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Start all servers at once; unless they do it in the background, wait until each is ready or has failed."""
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
        self._servers = {}
        async with anyio.create_task_group() as self._tasks:
            try:
                async with anyio.create_task_group() as starting:
                    for name, value in self._given.items():
                        if self._admit(name, value):
                            tasks = self._tasks if self._background else starting
                            tasks.start_soon(self._start, name, self._servers[name])
                yield
            except Exception as error:  # the task group would wrap it in a group of exceptions
                raised = error
            finally:
                self._servers = {}
                self._tasks.cancel_scope.cancel()
        self._clients.clear()
        for watcher in self._watchers:
            watcher.close()
        if raised is not None:
            raise raised

    def _admit(self, name: str, value: Any) -> bool:
        """Take a server in; tell whether it is to be started."""
        try:
            found = entry(name, value)
        except BadConfig as error:
            self._failures[name] = error if self._file is None else BadConfig(f"{self._file}: {error}")
            log.warning("MCP %s", self._failures[name])
            self._tell(name, "failed")
            return False
        if found.disabled:
            self._tell(name, "disabled")
            return False
        self._servers[name] = HostedServer(found)
        return True

    # --- what comes and goes ----------------------------------------------------------------------------------

    async def add(self, name: str, value: Any) -> None:
        """Start one more server, in the background; `started` and `changes` tell when it is ready.

        Args:
            name: Its name; nobody else may have it.
            value: Its entry, as in `mcpServers`.

        Raises:
            BadConfig: The entry cannot be used.
            ValueError: There is a server of that name, or the host does not run.
        """
        if name in self._given:
            raise ValueError(f"there is a server {name!r} already")
        if self._tasks is None:
            raise ValueError("the host does not run")
        entry(name, value)
        self._given[name] = value
        if self._admit(name, value):
            self._tasks.start_soon(self._start, name, self._servers[name])

    async def remove(self, name: str) -> None:
        """Stop a server and forget it; calls that are under way there fail.

        Raises:
            NotRouted: There is no such server.
        """
        if name not in self._given:
            raise self._absent(name)
        del self._given[name]
        server = self._servers.pop(name, None)
        self._clients = {one: client for one, client in self._clients.items() if one != name}
        self._failures.pop(name, None)
        if server is not None:
            server.scope.cancel()
            server.settled.set()
        self._tell(name, "removed")

    def status(self, name: str) -> Status:
        """Return the state of a server.

        Raises:
            NotRouted: There is no such server.
        """
        if name not in self._given:
            raise self._absent(name)
        if name in self._clients:
            return Status(name, "ready")
        if name in self._failures:
            return Status(name, "failed", self._failures[name])
        return Status(name, "starting" if name in self._servers else "disabled")

    async def started(self) -> AsyncIterator[Status]:
        """Yield each server as soon as it is ready or has failed; end when none is starting any more."""
        left = set(self._given)
        async for status in self.changes():
            if status.name in left and status.state != "starting":
                left.discard(status.name)
                yield status
            if not left:
                return

    async def changes(self) -> AsyncIterator[Status]:
        """Yield the state of each server, and then each change of one, until the host ends."""
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

    def _tell(self, name: str, state: State) -> None:
        for watcher in self._watchers:
            watcher.send_nowait(Status(name, state, self._failures.get(name)))

    async def _start(self, name: str, server: HostedServer) -> None:
        """Start one server, and return when it is ready, has failed or was too slow."""
        tasks = self._tasks
        if self._servers.get(name) is not server:  # it was removed before it began; another one may have its name
            return
        assert tasks is not None
        self._tell(name, "starting")
        scope = server.scope = anyio.CancelScope()
        if server.settled.is_set():
            server.settled = anyio.Event()
        try:
            command = server.entry.login_command(None if self._file is None else f"{self._file}#{name}")
            auth = server.entry.login_auth(command, login=self._login, store=self._store)
            pauses = auth.authorizer(server.entry.url or "").pauses if auth is not None else Pauses()
        except AuthorizationError as error:
            self._fail(name, scope, error)
            server.settled.set()
            return
        tasks.start_soon(self._keep, name, server, auth, scope, server.settled)
        with pauses.move_on_after(self._start_timeout):
            await server.settled.wait()
        if not server.settled.is_set():
            reason = f"not ready within {self._start_timeout:g} s"
            self._fail(name, scope, TimeoutError(server.stderr.after(reason) if server.stderr is not None else reason))
            scope.cancel()

    async def _keep(
        self, name: str, server: HostedServer, auth: Auth | None, scope: anyio.CancelScope, settled: anyio.Event
    ) -> None:
        """Connect to one server and hold the connection until it ends or `scope` is cancelled."""
        with scope, StderrTail(name) as server.stderr:
            stderr = None if server.entry.command is None else server.stderr.writer
            try:
                clients: Any = [make() for make in self._makers]
                async with connect(server.entry, *clients, auth=auth, timeout=None, stderr=stderr) as client:
                    if not scope.cancel_called:
                        known = {**self._clients, name: client}
                        self._clients = {one: known[one] for one in self._given if one in known}
                        server.died = None
                        settled.set()
                        self._tell(name, "ready")
                        await client.link.closed.wait()
                        raise ConnectionClosed("the server is gone")
            except Exception as error:
                if not scope.cancel_called:
                    explained = isinstance(error, ConnectionClosed)
                    said = ConnectionClosed(server.stderr.after(error)) if explained else error
                    self._fail(name, scope, said if str(said) != str(error) else error)
        settled.set()

    def _fail(self, name: str, scope: anyio.CancelScope, error: Exception) -> None:
        """Note why a connection ended, unless that is known, or another one has taken its place."""
        server = self._servers.get(name)
        if server is None or server.scope is not scope or name in self._failures:
            return
        may_log_in = isinstance(error, AuthorizationError)  # somewhere else, and meanwhile
        crashed = self._background and isinstance(error, ConnectionClosed)  # at its first start, perhaps
        if self._clients.pop(name, None) is not None or server.restarts or may_log_in or crashed:
            server.died = anyio.current_time()
        self._failures[name] = error
        log.warning("MCP server %s: %s", name, error)
        self._tell(name, "failed")
        if self._background and not may_log_in and self._may_restart(name):
            self._begin_restart(name, server)

    def _may_restart(self, name: str) -> bool:
        server = self._servers.get(name)
        if server is None:
            return False
        return server.restarted is not None or (server.died is not None and server.restarts < self._restarts)

    def _begin_restart(self, name: str, server: HostedServer) -> anyio.Event:
        """Start a server again that has died, unless somebody did; return what is set when that is over."""
        if server.restarted is None:
            assert self._tasks is not None
            server.restarted = anyio.Event()
            self._tasks.start_soon(self._restart, name, server, server.restarted)
        return server.restarted

    async def _restart(self, name: str, server: HostedServer, restarted: anyio.Event) -> None:
        """Start a server again that has died, in a task of its own: callers may give up, and it starts all the same."""
        assert server.died is not None
        try:
            server.scope.cancel()
            await anyio.sleep_until(server.died + self._restart_pause * 2**server.restarts)
            if self._servers.get(name) is not server:  # it was removed meanwhile; another may have its name
                return
            if not isinstance(self._failures.pop(name, None), AuthorizationError):
                server.restarts += 1
            await self._start(name, server)
        finally:
            server.restarted = None
            restarted.set()
        is_there = self._servers.get(name) is server
        if self._background and is_there and name in self._failures and self._may_restart(name):
            self._begin_restart(name, server)

    async def _client(self, name: str) -> C_co:
        """Return the client of a server; one that has died is started again, after a pause.

        Raises:
            NotRouted: There is no such server.
            ConnectionClosed: It could not be started, or died too often.
            AuthorizationError: It wants a login.
        """
        server = self._servers.get(name)
        if server is not None and name not in self._clients and self._may_restart(name):
            await self._begin_restart(name, server).wait()
        elif server is not None and name not in self._clients and name not in self._failures:
            await server.settled.wait()  # it is starting
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
        return NotRouted(f"no server {server!r}; {choices(self._clients, 'there are: ', 'there are none')}")


def choices(names: Iterable[str], some: str, none: str) -> str:
    """Return the names in words: `some` before them, or `none` where there are none."""
    listed = ", ".join(names)
    return some + listed if listed else none
