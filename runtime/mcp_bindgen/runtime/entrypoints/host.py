"""Several servers at once, from the `mcpServers` file that most MCP hosts read.

    async with Host.from_config("mcp.json", client=Client) as host:
        for tool in await host.tools():
            print(tool.server, tool.item.name)
        await host.call_tool("forecast", {"city": "Oslo"})

Servers may be programs to start or URLs, and clients of one revision or of several. Each server runs in a task of its
own, so one that fails takes nobody with it.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import anyio

from ..core.capabilities import is_declared
from ..core.errors import ConnectionClosed, ProtocolError, RequestTimeout, UnexpectedAnswer
from ..endpoint.client import Client
from .connect import connect
from .mcp_servers import BadConfig, Entry, entry, read

__all__ = ["BadConfig", "Host", "NotRouted", "Offer"]

log = logging.getLogger("mcp_bindgen")

T_co = TypeVar("T_co", covariant=True)
C_co = TypeVar("C_co", covariant=True)
C = TypeVar("C", bound=Client)


class NotRouted(LookupError):
    """A call that goes nowhere: its server or tool is not there, or several servers offer a tool of that name."""


@dataclass(frozen=True)
class Offer(Generic[T_co]):
    """Something that a server offers.

    Attributes:
        server: The server's name in the configuration.
        item: The `Tool`, `Prompt` or `Resource` of the client's revision.
    """

    server: str
    item: T_co


class _Tools(Protocol[T_co]):
    def iter_tools(self) -> AsyncIterator[T_co]: ...


class _Prompts(Protocol[T_co]):
    def iter_prompts(self) -> AsyncIterator[T_co]: ...


class _Resources(Protocol[T_co]):
    def iter_resources(self) -> AsyncIterator[T_co]: ...


class _Calls(Protocol[T_co]):
    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> T_co: ...


class Host(Generic[C_co]):
    """Starts servers, keeps one client for each, and asks them as if they were one.

    Args:
        servers: Name -> entry, as in `mcpServers`: `{"command": ..., "args": [...], "env": {...}, "cwd": ...}` or
            `{"url": ..., "headers": {...}, "type": "http" or "sse"}`. In the values of `env` and `headers`, `${NAME}`
            stands for an environment variable of ours.
        client: The generated client class, or a subclass of it; it decides which revision is spoken. Of several, one
            for each revision, every server gets the best that it understands.
        start_timeout: Seconds that servers have to start; who needs longer has failed.

    Raises:
        BadConfig: An entry cannot be used.
    """

    def __init__(
        self,
        servers: Mapping[str, Any],
        client: Callable[[], C_co] | Sequence[Callable[[], C_co]],
        *,
        start_timeout: float | None = 30,
    ) -> None:
        self._entries = {name: entry(name, value) for name, value in servers.items()}
        self._makers = [client] if callable(client) else list(client)
        self._start_timeout = start_timeout
        self._clients: dict[str, C_co] = {}
        self._failures: dict[str, Exception] = {}
        self._owners: dict[str, list[str]] = {}
        self._running: AbstractAsyncContextManager[None] | None = None

    @classmethod
    def from_config(
        cls,
        path: str | os.PathLike[str],
        *,
        client: Callable[[], C] | Sequence[Callable[[], C]],
        start_timeout: float | None = 30,
    ) -> Host[C]:
        """Return a host for the servers of a JSON file: `{"mcpServers": {"name": {...}}}`.

        Raises:
            BadConfig: The file is missing, is no such JSON, or has an entry that cannot be used.
        """
        try:
            return Host(read(Path(path)), client, start_timeout=start_timeout)
        except BadConfig as error:
            raise BadConfig(f"{os.fspath(path)}: {error}") from None

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
        scopes = {name: anyio.CancelScope() for name in self._entries}
        started = {name: anyio.Event() for name in self._entries}
        async with anyio.create_task_group() as tasks:
            for name, found in self._entries.items():
                tasks.start_soon(self._keep, name, found, scopes[name], started[name])
            with anyio.move_on_after(self._start_timeout):
                for event in started.values():
                    await event.wait()
            for name, event in started.items():
                if not event.is_set():
                    self._fail(name, TimeoutError(f"not ready within {self._start_timeout:g} s"))
                    scopes[name].cancel()
            self._clients = {name: self._clients[name] for name in self._entries if name in self._clients}
            try:
                yield
            except Exception as error:  # the task group would wrap it in a group of exceptions
                raised = error
            finally:
                for scope in scopes.values():
                    scope.cancel()
        self._clients.clear()
        if raised is not None:
            raise raised

    async def _keep(self, name: str, entry: Entry, scope: anyio.CancelScope, started: anyio.Event) -> None:
        """Start one server and hold it until it dies or `scope` is cancelled."""
        with scope:
            try:
                clients: Any = [make() for make in self._makers]
                async with connect(entry, *clients) as client:
                    if not scope.cancel_called:
                        self._clients[name] = client
                        started.set()
                        await client.link.closed.wait()
                        self._fail(name, ConnectionClosed("the server is gone"))
            except Exception as error:
                if not scope.cancel_called:
                    self._fail(name, error)
        started.set()

    def _fail(self, name: str, error: Exception) -> None:
        self._clients.pop(name, None)
        if name not in self._failures:
            self._failures[name] = error
            log.warning("MCP server %s: %s", name, error)

    # --- asking -----------------------------------------------------------------------------------------------

    async def tools(self: Host[_Tools[T_co]]) -> list[Offer[T_co]]:
        """Return the tools of all servers, all pages; servers that cannot say are left out, and the log says why."""
        found = await self._union("tools", lambda client: client.iter_tools())
        owners: dict[str, list[str]] = {}
        for offer in found:
            owners.setdefault(cast(Any, offer.item).name, []).append(offer.server)
        self._owners = owners
        return found

    async def prompts(self: Host[_Prompts[T_co]]) -> list[Offer[T_co]]:
        """Return the prompts of all servers, like `tools`."""
        return await self._union("prompts", lambda client: client.iter_prompts())

    async def resources(self: Host[_Resources[T_co]]) -> list[Offer[T_co]]:
        """Return the resources of all servers, like `tools`."""
        return await self._union("resources", lambda client: client.iter_resources())

    async def call_tool(
        self: Host[_Calls[T_co]], tool: str, arguments: Mapping[str, Any] | None = None, *, server: str | None = None
    ) -> T_co:
        """Call a tool of one of the servers.

        Args:
            tool: The tool's name.
            arguments: Its arguments.
            server: Whose tool; not needed where only one server has a tool of that name. Who has which is remembered
                from the last `tools()`.

        Raises:
            NotRouted: The server or tool is not there, or several servers have one.
            ConnectionClosed: The server died, now or before.
        """
        if server is None:
            server = await self._owner(tool)
        client = self._clients.get(server)
        if client is None:
            raise self._absent(server)
        try:
            return await client.call_tool(tool, None if arguments is None else dict(arguments))
        except ConnectionClosed as error:
            self._fail(server, error)
            raise

    async def _union(self, feature: str, each: Callable[[C_co], AsyncIterator[T_co]]) -> list[Offer[T_co]]:
        found: dict[str, list[T_co]] = {}

        async def collect(name: str, client: Any) -> None:
            try:
                found[name] = [item async for item in each(client)]
            except ConnectionClosed as error:
                self._fail(name, error)
            except (ProtocolError, RequestTimeout, UnexpectedAnswer) as error:
                log.warning("MCP server %s does not list its %s: %s", name, feature, error)

        async with anyio.create_task_group() as tasks:
            for name, client in self._clients.items():
                if is_declared(cast(Client, client).server_capabilities, feature):
                    tasks.start_soon(collect, name, client)
        return [Offer(name, item) for name in self._entries for item in found.get(name, ())]

    async def _owner(self, tool: str) -> str:
        """Return the one server that offers `tool`; ask again when it was not there the last time."""
        owners = self._alive(tool)
        if not owners:
            await cast(Host[_Tools[Any]], self).tools()
            owners = self._alive(tool)
        if not owners:
            near = difflib.get_close_matches(tool, self._owners, n=3)
            offered = near or sorted(self._owners)
            raise NotRouted(f"no server offers a tool {tool!r}; {_choices(offered, 'there are: ', 'there are none')}")
        if len(owners) > 1:
            raise NotRouted(f"several servers offer a tool {tool!r}; {_choices(owners, 'say which: ', '')}")
        return owners[0]

    def _alive(self, tool: str) -> list[str]:
        return [name for name in self._owners.get(tool, ()) if name in self._clients]

    def _absent(self, server: str) -> Exception:
        failure = self._failures.get(server)
        if failure is not None:
            return ConnectionClosed(f"the server {server!r} is not there: {failure}")
        return NotRouted(f"no server {server!r}; {_choices(self._clients, 'there are: ', 'there are none')}")


def _choices(names: Iterable[str], some: str, none: str) -> str:
    listed = ", ".join(names)
    return some + listed if listed else none
