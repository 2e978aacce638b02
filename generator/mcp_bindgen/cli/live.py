"""Connect to live servers that the command line names, and ask them what they offer.

A server is a command in quotes that starts one, the URL of one, or `FILE.json#name`: an entry of an `mcpServers` file.
"""

from __future__ import annotations

import difflib
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import anyio
import typer

from mcp_bindgen.host.configuration import BadConfig, Entry, command_words, entry, read
from mcp_bindgen.protocol import naming
from mcp_bindgen.runtime import Options, connect
from mcp_bindgen.runtime.concurrency import leave
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import is_declared
from mcp_bindgen.runtime.protocol.errors import (
    METHOD_NOT_FOUND,
    AuthorizationError,
    CapabilityMissing,
    ConnectionClosed,
    ProtocolError,
    RequestTimeout,
    UnsupportedRevision,
)
from mcp_bindgen.runtime.protocol.methods import untyped
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.revisions import order

from . import complete
from .declared import capability_names, declaring
from .dialogue import Dialogue
from .extensions import client_class
from .output import INTERRUPTED
from .terminal import StatusLine, say, shown_lines

if TYPE_CHECKING:
    from mcp_bindgen.contract.model import Contract

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
Work: TypeAlias = Callable[[Any], Awaitable[T]]
"""What to do with a client that is connected."""

Revision = Annotated[
    str | None,
    typer.Option(metavar="R", help="The revision to speak; by default the best.", autocompletion=complete.revisions),
]
Timeout = Annotated[
    float, typer.Option(metavar="S", min=0, help="Seconds to wait for a connection, and then for each answer.")
]
Env = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="An environment variable for the server; repeatable.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail if an entry of a live server is not valid.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show what the server writes to stderr.")]

_LISTS = {
    "tools": ("tools", "tools/list"),
    "prompts": ("prompts", "prompts/list"),
    "resources": ("resources", "resources/list"),
    "resourceTemplates": ("resources", "resources/templates/list"),
}
"""What can be listed -> the capability that it needs, and the request."""


class Failed(Exception):
    """A server that was reached, and then refused, was too slow or died; the message is for people to read."""


@dataclass(frozen=True)
class Live:
    """A server and how to talk to it.

    Attributes:
        server: How it was named.
        target: How to reach it.
        timeout: Seconds to wait for each answer.
        verbose: Whether its stderr is shown.
        dialogue: Tells somebody what the server says meanwhile, and answers what it asks.
        declares: The capabilities that the client declares beside those that it has; what they promise is refused.
        extensions: The bindings of extensions that it speaks beside those that are installed.
    """

    server: str
    target: Entry
    timeout: float = 30
    verbose: bool = False
    dialogue: Dialogue | None = None
    declares: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()

    @classmethod
    def named(cls, server: str, env: Sequence[str] = (), *, timeout: float = 30, verbose: bool = False) -> Live:
        """Return the server that words on the command line name.

        Args:
            server: A command line, a URL, or `FILE.json#name`.
            env: `KEY=VALUE` settings for a server that is started.
            timeout: Seconds to wait for each answer.
            verbose: Whether its stderr is shown.

        Raises:
            BadInput: It is none of these.
        """
        return cls(server, entry_of(server, env), timeout, verbose)

    def ask(self, works: Callable[[Sequence[str]], Mapping[str, Work[T]]], revision: str | None = None) -> T:
        """Connect, and does one thing; the revision is the server's choice as long as we have it.

        Args:
            works: Revisions, the best first -> what to do in those that can do it.
            revision: The revision to begin with; by default any.

        Raises:
            BadInput: There is no such revision, or no connection.
            Failed: The server does not answer, or not with a result.
        """
        ours = revisions_of(revision, only=False)
        wanted = works(revisions_of(revision) if revision else ours)
        left = [name for name in ours if name not in wanted]
        if not self.verbose:
            logging.getLogger("mcp_bindgen").addHandler(logging.NullHandler())
        with shown_lines() if self.verbose else tempfile.TemporaryFile() as log:
            while True:
                try:
                    return _Conversation(self, log).run(wanted)
                except UnsupportedRevision as error:
                    spoken = [name for name in left if name in error.revisions]
                    if not spoken:
                        raise BadInput(f"{error}", fix=f"we have {', '.join(ours)}") from None
                wanted = works(spoken)
                left = [name for name in left if name not in spoken]


@dataclass
class _Conversation:
    """One connection to a server; its stderr goes to `log`."""

    live: Live
    log: IO[bytes]
    connected: bool = False
    timed_out: bool = False

    def run(self, works: Mapping[str, Work[T]]) -> T:
        try:
            return anyio.run(self._connected, works)
        except KeyboardInterrupt:
            leave(INTERRUPTED)  # a question that nobody answers any more blocks its thread
            raise
        except (ProtocolError, CapabilityMissing) as error:
            data = getattr(error, "data", None)
            more = f"\n{json.dumps(data, ensure_ascii=False)}" if data else ""
            raise Failed(f"{printable(str(error))}{more}") from None
        except AuthorizationError as error:
            raise BadInput(harmless(str(error))) from None
        except (ConnectionClosed, RequestTimeout) as error:
            slow = isinstance(error, RequestTimeout)
            if not self.connected and self.timed_out:
                reason = f"no answer within {self.live.timeout:g} s{self._last_words()}"
                raise BadInput(
                    f"cannot connect to {self.live.server!r}: {reason}", fix="--timeout gives it longer"
                ) from None
            reason = f"no answer within {self.live.timeout:g} s" if slow else f"{error}{self._last_words()}"
            if not self.connected:
                raise BadInput(f"cannot connect to {self.live.server!r}: {reason}") from None
            raise Failed(reason) from None

    async def _connected(self, works: Mapping[str, Work[T]]) -> T:
        dialogue = self.live.dialogue
        kinds = [declaring(client_class(revision, self.live.extensions), self.live.declares) for revision in works]
        clients: list[Any] = [kind() if dialogue is None else dialogue.client(kind) for kind in kinds]
        for client in clients:
            progress = None if dialogue is None else dialogue.on_progress
            client.options = Options(timeout=self.live.timeout, on_progress=progress)
        is_url = self.live.server.startswith(("http://", "https://"))
        entry = self.live.target
        auth = entry.login_auth(entry.login_command(None if is_url else self.live.server))
        limit = anyio.current_time() + self.live.timeout
        connection = connect(
            self.live.target, *clients, auth=auth, timeout=self.live.timeout, exactly=True, stderr=self.log
        )
        try:
            async with connection as client:  # what a server says is shown as it says it
                self.connected = True
                return await works[client.revision](client)
        finally:
            self.timed_out = anyio.current_time() >= limit

    def _last_words(self) -> str:
        """Return the last line that the server wrote to stderr, unless all lines are shown."""
        if self.live.verbose:
            return ""
        self.log.seek(0)
        lines = self.log.read().decode("utf-8", "replace").split("\n")
        return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")


def _has_bindings(revision: str, *, wanted: bool) -> bool:
    """Tell whether the bindings of a revision can be imported; says why not.

    Raises:
        BadInput: They cannot, and they are what is wanted.
    """
    try:
        import_module(f"mcp_bindgen.{naming.package(revision)}")
    except ImportError as error:
        if wanted:
            raise BadInput(str(error), fix=f"the schema is there; see: mcp-bindgen generate {revision}") from None
        say(f"warning: MCP {revision} is left out: {error}", err=True)
        return False
    return True


def revisions_of(revision: str | None, *, only: bool = True) -> list[str]:
    """Return the revisions to speak, the best first; one alone where it is named, unless others may follow.

    Raises:
        BadInput: There is no such revision, or it cannot be imported.
    """
    pins = Store().pins
    by_rank = sorted(pins, key=lambda name: (pins[name].status != "draft", order(name)), reverse=True)
    ours = [name for name in by_rank if _has_bindings(name, wanted=name == revision)]
    return [Store().pin(revision).name] if revision and only else ours


def bindings(revision: str, name: str) -> Any:
    """Return a module of the bindings of a revision."""
    return import_module(f"mcp_bindgen.{naming.package(revision)}.{name}")


# --- what a server offers -------------------------------------------------------------------------------------


def offers(
    server: str,
    revision: str | None = None,
    *,
    timeout: float = 30,
    env: Sequence[str] = (),
    verbose: bool = False,
    strict: bool = False,
    declare: str | None = None,
) -> Contract:
    """Return the contract of a live server; says on a terminal that it waits.

    Entries that are not valid are left out, and stderr says which: nobody can correct somebody else's server.

    Args:
        server: A command line, a URL, or `FILE.json#name`.
        revision: The revision to speak; by default the best that both sides have.
        timeout: Seconds to wait for each answer.
        env: `KEY=VALUE` settings for a server that is started.
        verbose: Whether its stderr is shown.
        strict: Whether an entry that is not valid ends the command.
        declare: The capabilities to declare, `NAME,NAME`.

    Raises:
        BadInput: There is no such server, no connection, or no answer that is a list.
        typer.Exit: An entry is not valid and `strict` is set, or no entry of a list is valid.
    """
    from mcp_bindgen.contract.checks import ENTRIES  # the validator takes time to load
    from mcp_bindgen.contract.document import contract_of_valid

    kinds = (bindings(name, "client").Client for name in revisions_of(None))
    live = replace(
        Live.named(server, env, timeout=timeout, verbose=verbose), declares=capability_names(declare or "", kinds)
    )
    try:
        with nullcontext() if verbose else StatusLine(f"Asking {_shown(server)} ..."):
            said, left_out = live.ask(lambda revisions: dict.fromkeys(revisions, document), revision)
    except Failed as error:
        raise BadInput(f"{server!r} does not say what it offers: {error}".replace("\n", " ")) from None
    contract = contract_of_valid(said)
    contract = replace(contract, left_out=(*left_out, *contract.left_out))
    if contract.left_out:
        count = len(contract.left_out)
        what = "1 entry of the server is" if count == 1 else f"{count} entries of the server are"
        say(f"{'error' if strict else 'warning'}: {what} not valid, and left out:", err=True)
        for one in contract.left_out:
            say(f"  {one}", err=True)
        lost = [member for member in said if member in ENTRIES and said[member] and not contract.document[member]]
        for member in lost:
            say(f"error: no entry of {member} is valid; correct the server's {member}", err=True)
        if strict or lost:
            raise typer.Exit(1)
    return contract


async def document(client: Any) -> tuple[Document, tuple[str, ...]]:
    """Return all that a server says of itself and offers, as far as it declares it, and what the client left out."""
    found: Document = {}
    if client.server_info is not None:
        found["serverInfo"] = client.server_info.model_dump()
    if client.instructions is not None:
        found["instructions"] = client.instructions
    found |= {"revision": client.revision, **await lists(client, checked=False)}
    return found, tuple(map(str, client.invalid_items))


async def lists(client: Any, *, checked: bool = True) -> Document:
    """Return the lists of what a server offers, every entry as the server said it, as far as it declares them.

    Args:
        client: The client.
        checked: Whether each entry must be valid.

    Raises:
        ProtocolError: The server refuses, or answers something that is no list.
    """
    found: Document = {}
    for member, (capability, method) in _LISTS.items():
        if is_declared(client.server_capabilities, capability):
            try:
                found[member] = [
                    item async for page in _pages(client, method, () if checked else (member,)) for item in page[member]
                ]
            except ProtocolError as error:
                if error.code != METHOD_NOT_FOUND:  # servers that have resources need not have templates
                    raise
    return found


async def _pages(client: Any, name: str, unchecked: Sequence[str] = ()) -> AsyncIterator[Document]:
    """Return the results of a paginated request as they came: types would put their members in order.

    Entries that are not valid are left out, and `client.invalid_items` says which.

    Args:
        client: The client.
        name: The request.
        unchecked: Lists whose entries are all kept.
    """
    method = bindings(client.revision, "methods").METHODS.get(name)
    if method is None:
        return

    async def page(cursor: str | None) -> Document:
        meta = client.link.metadata()
        params = ({"_meta": meta} if meta else {}) | ({} if cursor is None else {"cursor": cursor})
        wire = await client.link.request(untyped(method), jsonrpc.typed_params(method, params), client.options)
        kept = {member: wire[member] for member in unchecked if is_object(wire) and is_array(wire.get(member))}
        rest: Document = {**wire, **{key: [] for key in kept}} if kept else wire
        found: Document = client.link.peer.read_result(method, rest)[1]
        return {**found, **kept}

    async for found in client.pages(page):
        yield found


# --- how servers are named ------------------------------------------------------------------------------------


def entry_of(server: str, env: Sequence[str] = ()) -> Entry:
    """Return how to reach a server.

    Args:
        server: A command line, a URL, or `FILE.json#name`.
        env: `KEY=VALUE` settings for a server that is started.

    Raises:
        BadInput: It is none of these.
    """
    found = _entry(server)
    if found is None and server.startswith(("http://", "https://")):
        found = Entry(url=server)
    elif found is None:
        try:
            words = command_words(server)
        except ValueError as error:
            raise BadInput(str(error)) from None
        found = Entry(words[0], tuple(words[1:]))
    if found.command is None:
        if env:
            raise BadInput("--env is for servers that are started here")
        if find_spec("httpx2") is None:
            raise BadInput("HTTP is not installed", fix="run: pip install 'mcp-bindgen[http]'")
        return found
    return replace(found, env={**found.env, **dict(map(_setting, env))})


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise BadInput(f"--env {key}{equals} is not KEY=VALUE")
    return key, value


def _entry(server: str) -> Entry | None:
    """Return the entry of an `mcpServers` file that `FILE.json#name` names; `None` for other words."""
    stem, mark, name = server.partition(".json#")
    path = Path(f"{stem}.json")
    if not mark or server.startswith(("http://", "https://")) or (" " in stem and not path.is_file()):
        return None
    try:
        servers = read(path)
        if name not in servers:
            near = difflib.get_close_matches(name, servers, n=3, cutoff=0.5) or sorted(servers)
            hint = f"there is {' and '.join(near)}" if near else "it has no servers at all"
            raise BadInput(f"no server {name!r}", file=path, fix=hint)
        return entry(name, servers[name])
    except BadConfig as error:
        raise BadInput(str(error), file=path) from None


def _shown(server: str) -> str:
    """Return words that are short enough for a line."""
    return server if len(server) <= 60 else f"{server[:57]}..."
