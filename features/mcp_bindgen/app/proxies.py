"""Proxies: apps with the entries of another server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Unpack

from pydantic.alias_generators import to_snake

from mcp_bindgen.runtime import connect
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import is_declared
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.runtime.session.targets import ConnectOptions, Target

from .app import App
from .catalog import KINDS, Entry, Kind
from .context import Context
from .contract import Contract
from .overrides import BadOverride, HasOverrides, Overrides
from .values import TypeForm


async def _call(arguments: dict[str, Any], ctx: Context) -> Any:
    return await ctx.state.call_tool(ctx.call.name, arguments)


async def _get(arguments: dict[str, str], ctx: Context) -> Any:
    return await ctx.state.get_prompt(ctx.call.name, arguments)


async def _read(ctx: Context) -> Any:
    return await ctx.state.read_resource(ctx.call.name)


_FORWARDED: Mapping[Kind, tuple[TypeForm, Callable[..., Awaitable[Any]]]] = {
    "tool": (dict[str, Any], _call),
    "prompt": (dict[str, str], _get),
    "resource": (None, _read),
    "template": (None, _read),
}
"""Kind -> the type of the arguments, and the function that answers calls with the client, the state of the proxy."""


class _Proxy(App):
    def __init__(self, target: Target, name: str, options: ConnectOptions) -> None:
        super().__init__(name, lifespan=self._connected)
        self.document.update({place.member: [] for place in KINDS.values()})
        self._target, self._options = target, options
        self._connections = 0

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        check_shared(self._target)
        async with connect(self._target, **self._options) as client:
            self._connections += 1
            try:
                await self._fill(client)
                yield client
            finally:
                self._connections -= 1
                if not self._connections:
                    for kind, handlers in self._contract.handlers.items():
                        for name in [handler.spec.name for handler in handlers.values()]:
                            self._remove(kind, name, at_start=True)

    async def _fill(self, client: Any) -> None:
        declared = client.link.negotiated.declared["server"]
        for kind, place in KINDS.items():
            if not is_declared(declared, place.capability):
                continue
            input, answer = _FORWARDED[kind]
            of_another_connection = {handler.spec.name for handler in self._contract.handlers[kind].values()}
            with self._leaving_out(f"the rest of {place.member}"):
                async for item in getattr(client, f"iter_{to_snake(place.member)}")():
                    entry: Entry = jsonrpc.plain(item)
                    name = entry[place.key]
                    with self._leaving_out(f"the {kind} {name!r}"):
                        if "\ufffd" in name:  # the server knows another name
                            raise ValueError("its name has half of a character; correct the name in the server")
                        if name not in of_another_connection:
                            self.add_entry(kind, entry, answer, input=input, at_start=True)

    @contextmanager
    def _leaving_out(self, part: str) -> Generator[None]:
        """Log an error of the server's lists, or about an entry that cannot be offered; a bad override stays one."""
        try:
            yield
        except BadOverride:
            raise
        except (ProtocolError, ValueError) as error:
            log.warning("%s: %s is left out: %s", self.document["serverInfo"]["name"], part, error)


def check_shared(target: object) -> None:
    """Check that a server of this process may have callers that share its connections.

    Raises:
        ValueError: It depends on the tokens of its callers, which a connection in this process does not have.
    """
    if isinstance(target, App | Contract) and target.served().states_scopes:
        raise ValueError("the app needs the tokens of its callers, and would not get them; mount or serve it itself")


def proxy(
    target: Target, name: str = "proxy", *, tools: Overrides | None = None, **options: Unpack[ConnectOptions]
) -> App:
    """Return an app with the tools, prompts and resources of another server, of any revision.

    Serve it, or mount it in another app. Its lifespan connects to the server and reads the lists. All callers share the
    connection, so the server cannot ask a user, and a tool that asks fails. Log messages, progress, completions and
    later changes of the lists are not passed on.

    Args:
        target: A URL, a command line, its words, an entry of an `mcpServers` file or an app.
        name: The name of the app.
        tools: Name of a tool of the server -> its changes, as for `App.mount`; by default those in the entry of a file.
        options: Options of `mcp_bindgen.runtime.connect`, such as `headers` and `auth`.

    Raises:
        BadOverride: A change is malformed. One that does not fit the tools of the server is an error at the start.
    """
    found = _Proxy(target, name, options)
    changes = target.tools if tools is None and isinstance(target, HasOverrides) else tools
    if not changes:
        return found
    changed = App(name)
    changed.mount(found, tools=changes)
    return changed
