"""Targets of connections, the options of `connect` and `run`, and the transports that packages bring."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypedDict, runtime_checkable

from ..entry_points import EntryPoints, HasSchemes
from ..protocol.revision import KnownRevision, Revision
from ..protocol.transport import Transport

if TYPE_CHECKING:
    from .server import Server


class Auth(Protocol):
    """Source of authorization for servers; the type of `connect(auth=...)`."""

    def authorizer(self, url: str) -> Any:
        """Return the authorizer of requests to a URL, the same one each time; the transport states its type."""


Opener: TypeAlias = Callable[[], AbstractAsyncContextManager[Transport]]


@dataclass(frozen=True)
class Address:
    """Address of a server.

    Attributes:
        open: Opens a connection; `None` where only `fallback` applies.
        fallback: Opens a connection for a server that refuses the handshake over the first one, if there is such a way.
        place: Identifies the program, to remember how to connect to it; `None` to remember nothing.
        server: Identifies the server and its offers, for caches.
        reopens: True if a connection can be opened again after the server has ended it.
        name: Name of the server for errors; empty if the caller names it.
    """

    open: Opener | None
    fallback: Opener | None = None
    place: Hashable | None = None
    server: Hashable | None = None
    reopens: bool = False
    name: str = ""


class CacheScope(NamedTuple):
    """Scope of cached results.

    Attributes:
        server: Key of the server and of the spoken revision.
        connection: Key of the connection; private results belong to one connection.
    """

    server: Hashable
    connection: Hashable


class Cache(Protocol):
    """Cache of results, such as `host.ResultCache`; see there."""

    async def through(
        self, scope: CacheScope, method: Any, params: Any, ask: Callable[[], Awaitable[Any]], *, fresh: bool = False
    ) -> Any:
        """Return the cached answer to a request, or else the server's answer."""

    def invalidate(self, server: Hashable, revision: Revision, notification: str, params: object = None) -> None:
        """Forget the results that a notification of a server invalidates."""

    def forget(self, scope: CacheScope, *, public: bool = False) -> None:
        """Forget the private results of a connection, and on request all results of its server."""


Stderr: TypeAlias = int | IO[Any] | None
"""Receiver of the error output of a command; `None` for the stderr of this process."""


@runtime_checkable
class HasAddress(Protocol):
    """Description of a server, such as `host.Entry`."""

    def address(self, headers: Mapping[str, str], stderr: Stderr, auth: Auth | None) -> Address:
        """Return the address of the server; see `address` of this module."""
        ...


Target: TypeAlias = str | Sequence[str] | Address | HasAddress | Transport | AbstractAsyncContextManager[Transport]
"""A URL, a command line, its words, an address or an object that has one, or a transport, open or unopened."""


class ConnectOptions(TypedDict, total=False):
    """Options of `connect`, which describes them."""

    headers: Mapping[str, str] | None
    auth: Auth | None
    cache: Cache | None
    probe_timeout: float
    timeout: float | None
    exactly: bool
    stderr: Stderr


class WebRoute(NamedTuple):
    """HTTP route of a provider beside its endpoint.

    Attributes:
        path: The path, with parameters as Starlette writes them: `/orders/{id:int}`.
        function: Answers a request, both of Starlette.
        methods: The HTTP methods.
        scopes: The scopes that the token of a request needs.
        is_public: True if requests need no token.
        state: Returns the value of the provider's lifespan.
    """

    path: str
    function: Callable[..., Any]
    methods: Collection[str]
    scopes: Collection[str]
    is_public: bool
    state: Callable[[], object] = lambda: None


class Served(Protocol):
    """Servers for one endpoint, at most one for each revision, which are made when they are needed."""

    @property
    def routes(self) -> Sequence[WebRoute]:
        """HTTP routes beside the endpoint."""
        ...

    def served(self) -> Served:
        """Return this object."""
        ...

    def revisions(self) -> Sequence[KnownRevision]:
        """Return the revisions of the servers, the best last, without an import of bindings."""
        ...

    def server(self, revision: str) -> Server:
        """Return the server of a revision, the same one for each call."""
        ...

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Return the context in which the servers serve; the endpoint enters it once."""
        ...


class Provider(Protocol):
    """Provider of servers, such as an `App`."""

    def served(self) -> Served:
        """Return servers for one endpoint, with a lifespan of their own."""
        ...


class RunOptions(TypedDict, total=False):
    """Options of `run`, which describes them."""

    auth: Any
    revisions: Sequence[str] | None
    allowed_hosts: Collection[str] | None
    allowed_origins: Collection[str] | None
    log_format: str | None
    log_level: str | None


class TransportEntry(HasSchemes, Protocol):
    """Object of an entry point `mcp_bindgen.transports`.

    Its module imports the standard library and the kernel only, and its methods import the rest.
    """

    def open(self, url: str, headers: Mapping[str, str], auth: Auth | None) -> Address:
        """Return the address for a URL of one of the schemes, for `connect`.

        Raises:
            ImportError: A package is not installed; the message names it.
            ValueError: The URL, the headers or `auth` cannot be used.
        """
        ...

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of `run` that choose and configure this transport."""

    def serve(
        self, servers: Sequence[Server | Provider], chosen: Namespace, options: RunOptions
    ) -> Callable[[], object] | None:
        """Return a function that serves until the process is stopped; `None` if no option chose this transport.

        Args:
            servers: The servers, at most one for each revision.
            chosen: The parsed command line.
            options: The arguments of `run`.

        Raises:
            ValueError: The options cannot be used, or a package is not installed.
        """


TRANSPORTS: EntryPoints[TransportEntry] = EntryPoints("mcp_bindgen.transports", "transport")
