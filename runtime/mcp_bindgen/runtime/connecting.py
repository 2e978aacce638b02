"""Connections to servers: choice of the transport and of the revision.

MCP 2026-07-28, "Versioning": Backward Compatibility, and "Streamable HTTP": Backward Compatibility.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections import OrderedDict
from collections.abc import AsyncGenerator, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeVar, Unpack, overload

from . import bindings
from .concurrency import background_tasks
from .entry_points import TRANSPORTS, Address
from .logs import log
from .protocol.bridging import bridging
from .protocol.errors import ConnectionClosed, ProtocolError, RequestTimeout
from .protocol.methods import DISCOVER
from .protocol.peer import Peer
from .protocol.request_scope import Handler
from .protocol.revision import Dispatcher
from .protocol.routing import Route
from .protocol.transport import Transport
from .session.authorization import Auth
from .session.client import Client
from .session.negotiation import Clients, Negotiation
from .session.result_cache import CacheScope, ResultCache
from .session.session import Session
from .session.targets import ConnectOptions, Entry, Target, scheme_of
from .transports.stdio import stdio

C = TypeVar("C", bound=Client)

PROBE_TIMEOUT = 5.0
"""Seconds to wait for the answer to the probe; a server of the handshake may leave it unanswered."""

TIMEOUT = 60.0
"""Seconds that connecting may take in total."""

_MAX_REMEMBERED = 1000


@dataclass(frozen=True)
class _Way:
    """Way to connect.

    Attributes:
        probe: True to ask for the revisions of the server.
        handshake_first: True to try the handshake before that.
        fallback: True to open the connection by the fallback of the address, such as HTTP+SSE.
    """

    probe: bool = True
    handshake_first: bool = False
    fallback: bool = False


_PROBE, _HANDSHAKE, _FALLBACK = _Way(), _Way(probe=False), _Way(probe=False, fallback=True)

_remembered: OrderedDict[Hashable, _Way] = OrderedDict()


class NoConnection(ConnectionClosed):
    """All ways to connect failed; the message lists them.

    Attributes:
        failures: Each attempt with its error.
    """

    def __init__(self, failures: list[tuple[str, Exception]]) -> None:
        super().__init__("; ".join(f"{attempt}: {error}" for attempt, error in failures))
        self.failures = failures


@overload
def connect(target: Target, **options: Unpack[ConnectOptions]) -> AbstractAsyncContextManager[Any]: ...


@overload
def connect(
    target: Target, *clients: type[C] | C, **options: Unpack[ConnectOptions]
) -> AbstractAsyncContextManager[C]: ...


@asynccontextmanager
async def connect(
    target: Target,
    *clients: Any,
    headers: Mapping[str, str] | None = None,
    auth: Auth | None = None,
    cache: ResultCache | None = None,
    probe_timeout: float = PROBE_TIMEOUT,
    timeout: float | None = TIMEOUT,
    exactly: bool = False,
    stderr: int | IO[Any] | None = None,
) -> AsyncGenerator[Any]:
    """Connect to a server in the best revision that both sides speak; close the connection when the block ends.

    The server is asked for its revisions first (`server/discover`). A server that does not know this request gets the
    handshake on the same connection. At a URL that refuses the handshake, HTTP+SSE is tried. The way that worked is
    remembered for the next connection.

    A server that speaks no revision of the clients is reached over a bridge: the client with the nearest revision
    keeps its own types, and messages are converted (`docs/bridges.md`).

    Args:
        target: A URL, a command line, its words, an entry of an `mcpServers` file, or a transport.
        clients: The client classes, or clients, one for each revision that may be spoken; by default the classes of
            all bindings, installed ones and those in the user's folder.
        headers: HTTP headers to send with each request.
        auth: Authorizes requests to a URL: `OAuth()` logs a user in, `Bearer(token)` sends a token. The time limits
            below stop while a user is asked.
        cache: Keeps results; by default the cache of the client's class, if it has one.
        probe_timeout: Seconds to wait for the revisions of the server before the handshake is tried.
        timeout: Seconds that connecting may take in total; `None` for no limit. The options of the client limit each
            request.
        exactly: Speak the revisions of the clients only, without bridges.
        stderr: Receives the error output of a command; by default the stderr of this process.

    Raises:
        UnsupportedRevision: The server speaks other revisions.
        ConnectionClosed: The server cannot be reached; the error lists the attempts.
        ProtocolError: The server refuses.
        AuthorizationError: The server requires authorization that is not available.
        ValueError: The target cannot be used, or the bindings of a client are types and stubs only.
        ImportError: A package that the URL needs is not installed.
    """
    bindings.install()
    place = address(target, headers, stderr, auth)
    kinds = clients or installed()
    ours: list[Any] = [kind() if isinstance(kind, type) else kind for kind in kinds]
    for client in ours:
        client.dispatcher.revision.check_connectable()
        if cache is not None:
            client.cache = cache
    search = _Search(place, ours, probe_timeout, exactly)
    with place.pauses.move_on_after(timeout) as scope:
        async with search.connected() as client:
            place.pauses.stop(scope)
            yield client
    if scope.cancelled_caught:
        raise NoConnection([*search.failures, ("connecting", RequestTimeout(f"not done within {timeout:g} s"))])


def installed() -> list[type[Client]]:
    """Return the client classes of all installed bindings, and of those in the user's folder.

    Bindings in the user's folder that cannot be imported are left out and logged: most programs do without them.
    """
    home = bindings.namespace().__name__
    found = {package.__name__: package.Client for package in bindings.installed()}
    for name in (f"{home}.{name}" for name in bindings.user_packages()):
        if name not in found:
            try:
                found[name] = import_module(name).Client
            except Exception as error:  # any error of the import
                log.warning("bindings are left out: %s", error)
    return list(found.values())


def forget() -> None:
    """Forget the remembered ways to connect."""
    _remembered.clear()


class _Search:
    """Search for a way to connect to a server.

    Args:
        place: The address of the server.
        clients: The clients, one for each revision.
        patience: `probe_timeout` of `connect`.
        exactly: See `connect`.

    Attributes:
        failures: Each failed attempt with its error.
    """

    def __init__(self, place: Address, clients: list[Client], patience: float, exactly: bool) -> None:
        self._place = place
        self._server = place.server or object()
        self._clients = Clients(clients, None if exactly else bridging)
        self._patience = patience
        self.failures: list[tuple[str, Exception]] = []
        self._elsewhere = False
        self._ended = False

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Client]:
        """Connect and yield the client whose revision the server speaks."""
        known = _remembered.get(self._place.place)
        way: _Way | None = known or _Way(fallback=self._place.open is None, handshake_first=self._place.open is None)
        while way is not None:
            async with self._over(way) as client:
                if client is not None:
                    yield client
                    return
            way = self._following(way, known)
            known = None
        raise self._verdict()

    @asynccontextmanager
    async def _over(self, way: _Way) -> AsyncGenerator[Client | None]:
        """Try one way to connect; yield `None` if it fails."""
        start = self._place.fallback if way.fallback else self._place.open
        assert start is not None
        async with AsyncExitStack() as stack:
            try:
                transport = await stack.enter_async_context(start())
            except ConnectionClosed as error:
                self.failures.append(("GET" if way.fallback else "connecting", error))
                yield None
                return
            limits = next(iter(self._clients.by_revision.values())).limits
            session = Session(Peer("client", self._clients.dispatchers), transport, self._handler, limits=limits)
            tasks = await stack.enter_async_context(background_tasks())
            tasks.start_soon(session.run)
            stack.push_async_callback(session.close)
            negotiation = Negotiation(self._clients, session, partial(self._attach, session), tasks, self._patience)
            client = await negotiation.client(probe=way.probe, handshake_first=way.handshake_first)
            if client is None:
                self.failures += negotiation.failures
                self._elsewhere = negotiation.elsewhere
                self._ended = session.closed.is_set()
                yield None
                return
            self._remember(way, negotiation.is_legacy, client.dispatcher.revision.era.is_stateless)
            if client.cache is not None:
                stack.callback(client.cache.forget, CacheScope(None, session))
            yield self._clients.begin(client, session, tasks)

    def _handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        handler: Handler = self._clients.client(dispatcher.revision.name).handler(dispatcher, route)
        return handler

    def _attach(self, session: Session, client: Client) -> None:
        client.attach(session, CacheScope((self._server, client.revision), session))

    def _following(self, way: _Way, known: _Way | None) -> _Way | None:
        """Return the way to try after a failed one; `None` if there is no further way."""
        place, clients = self._place, self._clients
        self._forget()
        probed = way.probe and not (way.handshake_first or clients.prefers_handshake)
        is_outdated = known is not None and (way.fallback or self._ended)
        table = (
            (is_outdated and place.open is not None, _PROBE),
            (self._elsewhere and not way.fallback and place.fallback is not None, _FALLBACK),
            (
                self._ended and probed and place.reopens and clients.has_both_eras,
                _HANDSHAKE,
            ),  # some servers end after a probe
        )
        return next((following for applies, following in table if applies), None)

    def _remember(self, way: _Way, is_legacy: bool, is_stateless: bool) -> None:
        place = self._place.place
        if place is None:
            return
        if is_stateless:
            self._forget()
        elif way.fallback or is_legacy or not way.probe:
            _remembered[place] = _Way(handshake_first=True, fallback=way.fallback)
            _remembered.move_to_end(place)
            if len(_remembered) > _MAX_REMEMBERED:
                _remembered.popitem(last=False)

    def _forget(self) -> None:
        _remembered.pop(self._place.place, None)

    def _verdict(self) -> Exception:
        """Return an error that lists all failures, or the only failure if it explains itself."""
        attempt, error = self.failures[-1]
        if len(self.failures) == 1 and (attempt != DISCOVER or not isinstance(error, ProtocolError)):
            return error
        return NoConnection(self.failures)


# --- addresses ------------------------------------------------------------------------------------------------


def address(
    target: Target,
    headers: Mapping[str, str] | None = None,
    stderr: int | IO[Any] | None = None,
    auth: Auth | None = None,
) -> Address:
    """Return the address of a target.

    Args:
        target: The target.
        headers: HTTP headers to send to a URL, beside those of an entry.
        stderr: Receives the error output of a command.
        auth: Authorizes requests to a URL, in place of the authorization of an entry.

    Raises:
        ValueError: The target cannot be used, or it takes no headers or `auth`.
        ImportError: A package that the URL needs is not installed.
        AuthorizationError: `auth` cannot be used at this URL.
    """
    if isinstance(target, str):
        target = Entry.read({"url": target}) if scheme_of(target) else command_words(target)
    if isinstance(target, Mapping):
        if "auth" in target:
            raise ValueError('the member "auth" of an entry is for hosts; pass auth= instead')
        target = Entry.read(target)
    elif isinstance(target, Sequence):
        target = Entry(target[0], tuple(target[1:]))
    if isinstance(target, Entry) and target.url is not None:
        return _url(target, target.url, {**target.headers, **(headers or {})}, auth or target.authorization())
    if headers:
        raise ValueError("headers can only be sent to a URL")
    if auth is not None:
        raise ValueError("auth is for URLs; a command takes its credentials from the environment")
    if isinstance(target, Entry):
        return _command(target, stderr)
    return Address(lambda: target if isinstance(target, AbstractAsyncContextManager) else nullcontext(target))


def command_words(line: str) -> list[str]:
    """Return the words of a command line.

    Raises:
        ValueError: It is no command line, or it is the name of a configuration file.
    """
    if line.endswith(".json") and Path(line).is_file():
        raise ValueError(f"{line} is a file of servers; connect to one of its entries")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ValueError(f"not a command: {line}: {error}") from None
    if not words:
        raise ValueError("the command is empty")
    return words


def _url(entry: Entry, url: str, headers: Mapping[str, str], auth: Auth | None) -> Address:
    found = TRANSPORTS.find(scheme_of(url) or "").open(url, headers, auth)
    if entry.type is None or found.fallback is None:
        return found
    return replace(found, open=None) if entry.type == "sse" else replace(found, fallback=None)


def _command(entry: Entry, stderr: int | IO[Any] | None) -> Address:
    command = entry.command or ""

    def start() -> AbstractAsyncContextManager[Transport]:
        _begin_line(stderr)
        return stdio(command, *entry.args, env=entry.env, cwd=entry.cwd, stderr=stderr)

    place = (command, *entry.args, entry.cwd)
    return Address(start, place=place, server=(place, frozenset(entry.env.items())), reopens=True)


def _begin_line(stderr: int | IO[Any] | None) -> None:
    """Begin a new line in a file that an earlier run of the program has written to."""
    if stderr is not None:
        descriptor = stderr if isinstance(stderr, int) else stderr.fileno()
        if descriptor >= 0 and stat.S_ISREG(os.fstat(descriptor).st_mode) and os.lseek(descriptor, 0, os.SEEK_END) > 0:
            os.write(descriptor, b"\n")
