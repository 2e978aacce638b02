"""Several servers at once, from the `mcpServers` file that most MCP hosts read.

    async with Host.from_config("mcp.json", client=Client) as host:
        for tool in await host.tools():
            print(tool.server, tool.item.name)
        await host.call_tool("forecast", {"city": "Oslo"})

Servers may be programs to start or URLs, and clients of one revision or of several. Each server runs in a task of its
own, so one that fails takes nobody with it, and `failures` says why, with the end of its stderr. One that dies is
started again by the next call that needs it; calls that were under way fail, and are never sent again.

With `background=True` nobody waits for servers that start slowly, or never, and one that died comes back by itself:

    async with Host.from_config("mcp.json", client=Client, background=True) as host:
        async for status in host.started():
            print(status.name, status.state, status.error or "")
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio

from mcp_bindgen.runtime.protocol.capabilities import is_declared
from mcp_bindgen.runtime.protocol.errors import (
    AuthorizationError,
    ConnectionClosed,
    ProtocolError,
    RequestTimeout,
    UnexpectedAnswer,
)
from mcp_bindgen.runtime.session.client import Client

from .configuration import BadConfig, read
from .hosted_servers import C_co, HostedServers, Status, choices, log
from .offers import Calls, NotRouted, Offer, Prompts, Resources, T_co, Tools

if TYPE_CHECKING:
    from mcp_bindgen.auth.client.login import Login
    from mcp_bindgen.auth.store import Store

__all__ = ["BadConfig", "Host", "NotRouted", "Offer", "Status"]

C = TypeVar("C", bound=Client)


class Host(HostedServers[C_co]):
    """Starts servers, keeps one client for each, and asks them as if they were one.

    Args:
        servers: Name -> entry, as in `mcpServers`: `{"command": ..., "args": [...], "env": {...}, "cwd": ...}` or
            `{"url": ..., "headers": {...}, "auth": {...}, "type": "http" or "sse"}`. `${NAME}` stands for an
            environment variable of ours, `${NAME:-text}` for `text` where there is none, in all of them.
            `"disabled": true` leaves a server out. An entry that cannot be used is a failure of that server only.
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
        background: Do not wait for the servers: they start beside the block, and one that died, or crashed while it
            started, is started again by itself, after `restart_pause` and up to `restarts` times, and not only by the
            next call.
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
        background: bool = False,
    ) -> None:
        super().__init__(
            servers,
            client,
            start_timeout=start_timeout,
            restarts=restarts,
            restart_pause=restart_pause,
            login=login,
            store=store,
            background=background,
        )
        self._relist_after = relist_after
        self._owners: dict[str, list[str]] = {}
        self._listing = anyio.Lock()
        self._listed: tuple[float, object] = -math.inf, None

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
        background: bool = False,
    ) -> Host[C]:
        """Return a host for the servers of a JSON file: `{"mcpServers": {"name": {...}}}`; see `Host`.

        Raises:
            BadConfig: The file is missing or is no such JSON.
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
                background=background,
            )
        except BadConfig as error:
            raise BadConfig(f"{os.fspath(path)}: {error}") from None
        host._file = Path(path)
        return host

    async def remove(self, name: str) -> None:
        """Stop a server and forget it; calls that are under way there fail.

        Raises:
            NotRouted: There is no such server.
        """
        await super().remove(name)
        self._owners = {tool: [one for one in owners if one != name] for tool, owners in self._owners.items()}
        self._owners = {tool: owners for tool, owners in self._owners.items() if owners}

    # --- asking -----------------------------------------------------------------------------------------------

    async def tools(self: Host[Tools[T_co]]) -> list[Offer[T_co]]:
        """Return the tools of all servers, all pages; servers that cannot say are left out, and the log says why."""
        self._listed = anyio.current_time(), self._changes()
        found = await self._union("tools", lambda client: client.iter_tools())
        dead = {tool: [one for one in all_ if one not in self._clients] for tool, all_ in self._owners.items()}
        owners = {tool: left for tool, left in dead.items() if left}  # so that a call there says what became of it
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
                if not self._background or name in self._clients:  # there nobody waits for who is not ready
                    tasks.start_soon(collect, name)
        return [Offer(name, item) for name in self._given for item in found.get(name, ())]

    async def _owner(self, tool: str) -> str:
        """Return the one server that offers `tool`; ask again if it may have come since the last time."""
        owners = self._callable(tool)
        if not owners:
            async with self._listing:
                if not self._callable(tool) and self._may_be_new():
                    await cast(Host[Tools[Any]], self).tools()
            owners = self._callable(tool)
        if not owners and tool in self._owners:
            raise self._absent(self._owners[tool][0])
        if not owners:
            near = difflib.get_close_matches(tool, self._owners, n=3)
            offered = near or sorted(self._owners)
            raise NotRouted(f"no server offers a tool {tool!r}; {choices(offered, 'there are: ', 'there are none')}")
        if len(owners) > 1:
            raise NotRouted(f"several servers offer a tool {tool!r}; {choices(owners, 'say which: ', '')}")
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
