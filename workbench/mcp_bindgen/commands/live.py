"""Connections to live servers, and their lists of tools, prompts and resources."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, TypeAlias, TypeVar

import anyio
import typer

from mcp_bindgen.cli import options
from mcp_bindgen.cli.output import INTERRUPTED
from mcp_bindgen.cli.terminal import StatusLine, say, shown_lines
from mcp_bindgen.emit.python import naming
from mcp_bindgen.host.watch import Watch
from mcp_bindgen.runtime import Options, connect
from mcp_bindgen.runtime.concurrency import end_process
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol import errors, jsonrpc
from mcp_bindgen.runtime.protocol.capabilities import is_declared
from mcp_bindgen.runtime.protocol.methods import untyped
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.errors import printable, shortened
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.revisions import order

from .client_classes import capability_names, client_class, declaring
from .dialogue import Answering
from .servers import Named, headers_of, named, public

if TYPE_CHECKING:
    from mcp_bindgen.contract.model import Contract
    from mcp_bindgen.tap import TracedMessage

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
Work: TypeAlias = Callable[[Any], Awaitable[T]]
"""Work to do with a connected client."""

_LISTS = {
    "tools": ("tools", "tools/list"),
    "prompts": ("prompts", "prompts/list"),
    "resources": ("resources", "resources/list"),
    "resourceTemplates": ("resources", "resources/templates/list"),
}
"""List -> the capability that it needs, and its request."""


JUNK = "a line on stdout is no message; write it to stderr"


class Failed(Exception):
    """A server that was reached, and then refused, was too slow or died; the message is for people to read."""


@dataclass(frozen=True)
class Connection:
    """Options for a connection to a live server.

    Attributes:
        revision: Revision to speak; by default the best one that both sides have.
        timeout: Seconds to wait for each answer.
        env: `KEY=VALUE` settings for a server that is started.
        verbose: True to show the stderr of the server.
        strict: True to fail on an invalid entry, instead of leaving it out with a warning.
        header: `NAME=VALUE` headers for a server at a URL.
        bearer_env: Environment variable with a token for a server at a URL.

    Raises:
        BadInput: `header` or `bearer_env` is invalid.
    """

    revision: options.Revision = None
    timeout: options.Timeout = 30
    env: options.Env = None
    verbose: options.Verbose = False
    strict: options.Strict = False
    header: options.Header = None
    bearer_env: options.BearerEnv = None

    def __post_init__(self) -> None:
        _ = self.headers  # invalid credentials are an error also where a command only reads the file of a contract

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers for a server at a URL."""
        return headers_of(self.header or (), self.bearer_env)


@dataclass(frozen=True)
class Live:
    """A server and how to talk to it.

    Attributes:
        server: The words that name it.
        target: The server that they name.
        connection: Options for the connection.
        dialogue: Makes the client that answers the server's questions.
        declares: Capabilities that the client declares beside its own; requests that need them are refused.
        extensions: Import names of bindings of extensions beside the installed ones.
        doing: The request, for errors.
        on_trace: Called with each message and its violations of the schema.
    """

    server: str
    target: Named
    connection: Connection
    dialogue: Answering = field(default_factory=Answering)
    declares: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    doing: str = ""
    on_trace: Callable[[TracedMessage], None] | None = None

    @classmethod
    def named(cls, server: str, connection: Connection) -> Live:
        """Return the server that words name.

        Raises:
            BadInput: The words name no server, or a setting for a program is invalid.
        """
        return cls(server, named(server, connection.env or (), connection.headers), connection)

    def ask(self, works: Callable[[Sequence[str]], Mapping[str, Work[T]]]) -> T:
        """Connect and do one thing; the server chooses among our revisions, unless one is named.

        Args:
            works: Function from revisions, the best first, to the work in each revision that can do it.

        Raises:
            BadInput: There is no such revision, or no connection.
            Failed: The server does not answer, or not with a result.
        """
        revision = self.connection.revision
        ours = revisions_of(revision, only=False)
        wanted = works(revisions_of(revision) if revision else ours)
        left = [name for name in ours if name not in wanted]
        logging.getLogger("mcp_bindgen").addHandler(logging.NullHandler())  # commands report what matters to them
        with shown_lines() if self.connection.verbose else tempfile.TemporaryFile() as log:
            while True:
                try:
                    return _Conversation(self, log).run(wanted)
                except errors.UnsupportedRevision as error:
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

    def __post_init__(self) -> None:
        name = self.live.target.name
        on_message = None
        if self.live.on_trace is not None:
            from mcp_bindgen.tap import Trace  # needs the validator, which takes time to load

            on_message = Trace(self.live.on_trace).record
        self.watch = Watch(
            name,
            on_message,
            on_junk=lambda line: say(f"warning: server {name!r}: {JUNK}: {line}", err=True),
            on_open=self._clear,
        )

    def run(self, works: Mapping[str, Work[T]]) -> T:
        try:
            return anyio.run(self._connected, works)
        except KeyboardInterrupt:
            end_process(INTERRUPTED)  # an open question blocks its thread
            raise
        except (errors.ProtocolError, errors.CapabilityMissing) as error:
            data = getattr(error, "data", None)
            more = f"\n{json.dumps(data, ensure_ascii=False)}" if data else ""
            raise Failed(f"{printable(str(error))}{more}") from None
        except errors.AuthorizationError as error:
            raise BadInput(harmless(str(error))) from None
        except (errors.ConnectionClosed, errors.RequestTimeout) as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> BadInput | Failed:
        """Return the error of a server that cannot be reached, or that ended or was silent during a request."""
        is_slow = isinstance(error, errors.RequestTimeout) or (not self.connected and self.timed_out)
        reason = f"no answer within {self.live.connection.timeout:g} s" if is_slow else str(error)
        fix = "--timeout gives it longer" if is_slow else None
        explained = self.watch.explained(reason, self._stderr())
        if not self.connected:
            return BadInput(f"cannot connect to {public(self.live.server)!r}: {explained}", fix=fix)
        doing = f", {self.live.doing}" if self.live.doing else ""
        return Failed(f"server {self.live.target.name!r}{doing}: {explained}" + (f"; {fix}" if fix else ""))

    async def _connected(self, works: Mapping[str, Work[T]]) -> T:
        dialogue = self.live.dialogue
        kinds = [declaring(client_class(revision, self.live.extensions), self.live.declares) for revision in works]
        clients: list[Any] = [dialogue.client(kind) for kind in kinds]
        for client in clients:
            client.options = Options(timeout=self.live.connection.timeout, on_progress=dialogue.on_progress)
        entry = self.live.target.entry
        auth = entry.login_auth(self.live.target.login_command(self.live.server))
        limit = anyio.current_time() + self.live.connection.timeout
        command = entry.command is not None
        place = self.watch.address(entry.address({}, self.log.fileno() if command else None, auth))
        try:
            async with connect(place, *clients, timeout=self.live.connection.timeout, exactly=True) as client:
                self.connected = True
                return await works[client.revision](client)
        finally:
            self.timed_out = anyio.current_time() >= limit

    def _clear(self) -> None:
        """Forget the stderr of an earlier attempt to connect, unless it is shown."""
        if not self.live.connection.verbose:
            self.log.seek(0)
            self.log.truncate()

    def _stderr(self) -> str:
        """Return the stderr of the server, unless it is shown."""
        if self.live.connection.verbose:
            return ""
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")


def _has_bindings(revision: str, *, wanted: bool) -> bool:
    """Return whether the bindings of a revision can be imported; warn if not.

    Raises:
        BadInput: The import failed, and `wanted` is true.
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
    """Return the revisions to speak, the best first; only the named one if `only` is true.

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


# --- lists of a server ----------------------------------------------------------------------------------------


def offers(server: str, connection: Connection = Connection(), declare: str | None = None) -> Contract:
    """Return the contract of a live server, with a status line on a terminal.

    Invalid entries are left out with a warning, because a client cannot correct its server.

    Args:
        server: The words that name it.
        connection: Options for the connection.
        declare: Client capabilities to declare, `NAME,NAME`.

    Raises:
        BadInput: There is no such server, no connection, or no answer that is a list.
        typer.Exit: An entry is not valid and `strict` is set, or no entry of a list is valid.
    """
    from mcp_bindgen.contract.document import contract_of_valid  # the validator takes time to load
    from mcp_bindgen.contract.model import LISTINGS

    kinds = (bindings(name, "client").Client for name in revisions_of(None))
    live = replace(Live.named(server, connection), declares=capability_names(declare or "", kinds))
    try:
        with nullcontext() if connection.verbose else StatusLine(f"Asking {shown(public(server))} ..."):
            answers, left_out = live.ask(lambda revisions: dict.fromkeys(revisions, document))
    except Failed as error:
        raise BadInput(
            f"{public(server)!r} does not list its tools, prompts and resources: {error}".replace("\n", " ")
        ) from None
    contract = contract_of_valid(answers)
    contract = replace(contract, left_out=(*left_out, *contract.left_out))
    if contract.left_out:
        count = len(contract.left_out)
        what = "1 entry of the server is" if count == 1 else f"{count} entries of the server are"
        say(f"{'error' if connection.strict else 'warning'}: {what} not valid, and left out:", err=True)
        for one in contract.left_out:
            say(f"  {one}", err=True)
        lost = [one for one in answers if one in LISTINGS and answers[one] and not contract.document[one]]
        for member in lost:
            say(f"error: no entry of {member} is valid; correct the server's {member}", err=True)
        if connection.strict or lost:
            raise typer.Exit(1)
    return contract


async def document(client: Any) -> tuple[Document, tuple[str, ...]]:
    """Return server info, instructions and lists of a server, and the items that the client left out."""
    found: Document = {}
    if client.server_info is not None:
        found["serverInfo"] = client.server_info.model_dump()
    if client.instructions is not None:
        found["instructions"] = client.instructions
    found |= {"revision": client.revision, **await lists(client, checked=False)}
    return found, tuple(map(str, client.invalid_items))


async def lists(client: Any, *, checked: bool = True) -> Document:
    """Return the lists that a server declares, every entry as the server sent it.

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
            except errors.ProtocolError as error:
                if error.code != errors.METHOD_NOT_FOUND:  # servers that have resources need not have templates
                    raise
    return found


async def _pages(client: Any, name: str, unchecked: Sequence[str] = ()) -> AsyncIterator[Document]:
    """Return the results of a paginated request as they came: types would put their members in order.

    Entries that are not valid are left out, and `client.invalid_items` says which.

    Args:
        client: The client.
        name: The request.
        unchecked: Lists whose invalid entries remain.
    """
    method = bindings(client.revision, "methods").METHODS.get(name)
    if method is None:
        return

    async def page(cursor: str | None) -> Document:
        meta = client.link.meta
        params = ({"_meta": meta} if meta else {}) | ({} if cursor is None else {"cursor": cursor})
        wire = await client.link.request(untyped(method), jsonrpc.typed_params(method, params), client.options)
        kept = {member: wire[member] for member in unchecked if is_object(wire) and is_array(wire.get(member))}
        rest: Document = {**wire, **{key: [] for key in kept}} if kept else wire
        found: Document = client.link.connection.read_result(method, rest)[1]
        return {**found, **kept}

    async for found in client.pages(page):
        yield found


def shown(server: str) -> str:
    """Return words that are short enough for a line."""
    return shortened(server, 60)


def say_message(message: TracedMessage) -> None:
    """Write a message of a connection to stderr, with its violations."""
    for line in message.lines():
        say(line, err=True)
