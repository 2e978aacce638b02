"""Connections to servers: choice of the transport and of the revision.

A probe comes first, then the handshake if the server does not know the probe (MCP 2026-07-28, "Versioning and
Compatibility", "stdio" and "Streamable HTTP": Backward Compatibility).
"""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, Unpack, overload

import anyio
from anyio.abc import TaskGroup

from . import bindings
from .concurrency import background_tasks
from .protocol import errors
from .protocol.access import lacks_scope
from .protocol.bridging import BRIDGING, MISSING, Bridging, ClientBridges
from .protocol.connection import Connection
from .protocol.errors import AuthorizationError, ConnectionClosed, LoginRequired, ProtocolError, RequestTimeout
from .protocol.limits import Options
from .protocol.methods import DISCOVER, INITIALIZE
from .protocol.request_scope import Endpoint, Handler
from .protocol.revision import Dispatcher, Dispatchers, Revision
from .protocol.routing import Route
from .protocol.stateless import UNSUPPORTED
from .protocol.transport import LogIn
from .session.client import Client, accept_discovery, accept_handshake, discover, offer_handshake, supported_in
from .session.session import Session
from .session.targets import TRANSPORTS, Address, Auth, Cache, CacheScope, ConnectOptions, HasAddress, Stderr, Target
from .transports.stdio import stdio

C = TypeVar("C", bound=Client)
Failures: TypeAlias = "list[tuple[str, Exception]]"
"""Attempts that failed, with their errors."""

PROBE_TIMEOUT = 20.0
"""Seconds to wait for the response to the probe, which a server of the handshake may leave unanswered.

A program, or a server that runs on demand, may have to start first.
"""

TIMEOUT = 60.0
"""Seconds that connecting may take in total."""

_MAX_REMEMBERED = 1000
_MAX_LOGINS = 3  # for one connection
_FAILURES = (ProtocolError, ConnectionClosed, RequestTimeout)
_NOT_KNOWN = (errors.METHOD_NOT_FOUND, errors.INVALID_REQUEST, errors.INVALID_PARAMS)  # of servers without a handshake
_NOT_HERE = (400, 404, 405)  # statuses of a server that may have HTTP+SSE only
_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)


class NoConnection(ConnectionClosed):
    """All ways to connect failed; the message lists the attempts, unless all failed for the same reason.

    Args:
        failures: Each attempt with its error.
        server: Name of the server; may be empty.

    Attributes:
        failures: Each attempt with its error.
    """

    def __init__(self, failures: Failures, server: str) -> None:
        one, *others = {str(error) for _, error in failures}
        reason = "; ".join(f"{attempt}: {error}" for attempt, error in failures) if others else one
        super().__init__(f"cannot connect to {server!r}: {reason}" if server else reason)
        self.failures = failures


class ConnectTimeout(NoConnection):
    """Connecting took too long."""


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
    cache: Cache | None = None,
    probe_timeout: float = PROBE_TIMEOUT,
    timeout: float | None = TIMEOUT,
    exactly: bool = False,
    stderr: Stderr = None,
) -> AsyncGenerator[Any]:
    """Connect to a server in the best revision that both sides speak; close the connection when the block ends.

    The server is asked for its revisions first (`server/discover`). A server that does not know this request gets the
    handshake on the same connection. At a URL that refuses the handshake, HTTP+SSE is tried. The way that worked is
    remembered for the next connection.

    A server that speaks no revision of the clients is reached over a bridge: the client with the nearest revision
    keeps its own types, and messages are converted (`docs/explanation/bridges.md`).

    Args:
        target: A URL, a command line, its words, an `Address` or an object that has one, or a transport.
        clients: The client classes, or clients, one for each revision that may be spoken; by default the classes of
            all bindings, installed ones and those in the user's folder.
        headers: HTTP headers to send with each request.
        auth: Authorizes requests to a URL: `OAuth()` logs a user in, `Bearer(token)` sends a token. The time limits
            below do not count logins.
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
    place = address(target, headers, stderr, auth)
    ours: list[Client] = [kind() if isinstance(kind, type) else kind for kind in clients or installed()]
    for one in ours:
        one.dispatcher.revision.check_connectable()
        if cache is not None:
            one.cache = cache
    candidates = _Clients(ours, None if exactly else BRIDGING.only)
    failures: Failures = []
    way = _remembered.get(place.place, "probe" if place.open else "known fallback")
    left, logins = math.inf if timeout is None else timeout, 0
    while way:
        attempt, begun = _Attempt(place, candidates, way, probe_timeout, failures), anyio.current_time()
        with anyio.CancelScope(deadline=begun + left) as scope:
            async with attempt.connected() as client:
                if client is not None:
                    scope.deadline = math.inf
                    yield client
                    return
        if scope.cancelled_caught:
            failures.append(("connecting", RequestTimeout(f"not connected within {timeout:g} s")))
            raise ConnectTimeout(failures, place.name)
        left -= anyio.current_time() - begun
        if attempt.login is None:
            _remembered.pop(place.place, None)
            way = attempt.following()
        elif logins == _MAX_LOGINS or not await attempt.login.log_in():
            raise attempt.login
        else:
            logins += 1
    step, error = failures[-1]
    if len(failures) == 1 and (step != DISCOVER or not isinstance(error, ProtocolError)):
        raise error  # the only failure explains itself
    raise NoConnection(failures, place.name)


def installed() -> list[type[Client]]:
    """Return the client classes of all installed bindings, and of those in the user's folder that can be imported."""
    if (bridging := BRIDGING.only()) is not None:
        bridging.install()
    return [*bindings.imported((one.package for one in bindings.known().values()), "Client")]


# --- addresses ------------------------------------------------------------------------------------------------


def address(
    target: Target, headers: Mapping[str, str] | None = None, stderr: Stderr = None, auth: Auth | None = None
) -> Address:
    """Return the address of a target.

    Args:
        target: The target.
        headers: HTTP headers to send to a URL.
        stderr: Receives the error output of a command.
        auth: Authorizes requests to a URL.

    Raises:
        ValueError: The target cannot be used, or it takes no headers or `auth`.
        ImportError: A package that the URL needs is not installed.
        AuthorizationError: `auth` cannot be used at this URL.
    """
    if isinstance(target, str) and (scheme := scheme_of(target)) is not None:
        return TRANSPORTS.find(scheme).open(target, headers or {}, auth)
    if isinstance(target, HasAddress):
        return target.address(headers or {}, stderr, auth)
    if headers:
        raise ValueError("headers can only be sent to a URL")
    if auth is not None:
        raise ValueError("auth is for URLs; a command takes its credentials from the environment")
    if isinstance(target, Address):
        return target
    if isinstance(target, str | Sequence):
        command, *arguments = command_words(target) if isinstance(target, str) else target
        name = shlex.join([command, *_shown(arguments)])
        return replace(command_address(command, arguments, stderr=stderr), name=name)
    if isinstance(target, Mapping):
        raise ValueError("a mapping is no target: pass a URL, a command line, its words or a transport")
    return Address(lambda: target if isinstance(target, AbstractAsyncContextManager) else nullcontext(target))


def scheme_of(target: str) -> str | None:
    """Return the scheme of a URL in lower case; `None` for other text, such as a command line."""
    found = _URL.match(target)
    return None if found is None else found[1].lower()


def command_words(line: str) -> list[str]:
    """Return the words of a command line.

    Raises:
        ValueError: It is no command line, or it is the name of a configuration file.
    """
    if line.endswith(".json") and Path(line).is_file():
        raise ValueError(f"{line} is a file of servers; connect to one of its entries")
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    lexer.escape = "" if sys.platform == "win32" else "\\"  # on Windows a backslash separates folders
    try:
        words = list(lexer)
    except ValueError as error:
        raise ValueError(f"not a command: {' '.join(_shown(line.split()))}: {error}") from None
    if not words:
        raise ValueError("the command is empty")
    key, equals, _ = words[0].partition("=")
    if equals and key.isidentifier():
        raise ValueError(f"{key} is a variable, not a program; begin the command with env {key}=...")
    return words


def _shown(words: Iterable[str]) -> Iterator[str]:
    """Return the first words of a command; options, settings and URLs may hold secrets."""
    return takewhile(lambda word: not (word.startswith("-") or "=" in word or "://" in word), words)


def command_address(
    command: str,
    arguments: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stderr: Stderr = None,
) -> Address:
    """Return the address of a program to start; the arguments are those of `stdio`."""
    start = partial(stdio, command, *arguments, env=env, cwd=cwd, stderr=stderr)
    place = (command, *arguments, cwd)
    return Address(start, place=place, server=(place, frozenset((env or {}).items())), reopens=True)


# --- ways to connect --------------------------------------------------------------------------------------------


async def ask_later(log_in: LogIn) -> bool:
    """Raise `LoginRequired`, for `connect`, which logs in after it has left its time limit. It is an `AskUser`."""
    raise LoginRequired(log_in)


_remembered: OrderedDict[Hashable, str] = OrderedDict()  # name of the way that worked


def forget() -> None:
    """Forget the remembered ways to connect."""
    _remembered.clear()


class _Clients(Endpoint):
    """Candidates for a connection: at most one client for each revision.

    Args:
        clients: The clients.
        find_bridging: Finds the conversion between revisions, for servers that speak none of theirs; None to speak
            only the revisions of the clients.

    Attributes:
        limits: Limits of the connection.
        dispatchers: Dispatchers of the given clients.
        prefers_handshake: True if all given clients are stateful.

    Raises:
        ValueError: There is no client, or there are two of one revision.
    """

    def __init__(self, clients: Sequence[Client], find_bridging: Callable[[], Bridging | None] | None) -> None:
        self._by_revision = {client.revision: client for client in clients}
        if not clients or len(self._by_revision) < len(clients):
            raise ValueError("connecting needs clients, one for each revision")
        self.limits, self.options = clients[0].limits, Options()
        ranked = sorted(clients, key=lambda client: client.dispatcher.revision.rank)
        eras = {client.revision: client.dispatcher.revision.era.is_stateless for client in ranked}
        self.dispatchers = Dispatchers(eras, self.dispatcher)
        self._own = [client.dispatcher.revision for client in reversed(ranked)]
        self._find_bridging = find_bridging
        self.prefers_handshake = not any(revision.era.is_stateless for revision in self._own)

    @cached_property
    def _bridges(self) -> ClientBridges[Client] | None:
        bridging = self._find_bridging() if self._find_bridging is not None else None
        return None if bridging is None else bridging.clients(list(self._by_revision.values()))

    @cached_property
    def _foreign(self) -> list[Revision]:
        return sorted(self._bridges.revisions if self._bridges else (), key=lambda one: one.rank, reverse=True)

    def revisions(self, *, stateless: bool) -> Iterator[str]:
        """Yield the revisions of an era, the best first; conversion is looked up after those of the clients."""
        yield from (one.name for one in self._own if one.era.is_stateless is stateless)
        yield from (one.name for one in self._foreign if one.era.is_stateless is stateless)

    def best(self, *, stateless: bool) -> str | None:
        """Return the best revision of an era, or None."""
        return next(self.revisions(stateless=stateless), None)

    def client(self, revision: str) -> Client:
        """Return the client of a revision; a client that needs conversion is made on first use."""
        if revision not in self._by_revision:
            assert self._bridges is not None
            client = self._bridges.wire_client(next(one for one in self._foreign if one.name == revision))
            self._by_revision[revision] = client
        return self._by_revision[revision]

    def dispatcher(self, revision: str) -> Dispatcher:
        """Return the dispatcher of the client of a revision."""
        client = self.client(revision)
        return client.dispatcher.extended(type(client))

    def handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        """Return the handler of a route; raises `MethodNotFound` if there is none."""
        return self.client(dispatcher.revision.name).handler(dispatcher, route)

    def begin(self, client: Client, session: Session, tasks: TaskGroup) -> Client:
        """Return the client that the user talks to, given the one that is connected."""
        is_own = client.dispatcher.revision in self._own
        return client if is_own or self._bridges is None else self._bridges.begin(client, session, tasks)

    def unsupported(self, *theirs: str) -> errors.UnsupportedRevision:
        """Return the error for a server that speaks none of the revisions."""
        ours = " or ".join([*self.revisions(stateless=True), *self.revisions(stateless=False)])
        is_missing = self._find_bridging is not None and self._bridges is None
        return errors.UnsupportedRevision(f"{ours} ({MISSING})" if is_missing else ours, *theirs)


class _Attempt:
    """Attempt to connect to a server in one way: one connection, and the negotiation of the revision over it.

    Args:
        place: The address of the server.
        clients: The clients.
        way: The name of the way to connect.
        probe_timeout: Seconds to wait for the response to the probe if the server may know the handshake only.
        failures: Gets the methods that fail, with their errors.

    Attributes:
        login: The error with the login that this way needs first; `None` if it needs none.
    """

    login: LoginRequired | None = None
    _session: Session
    _tasks: TaskGroup

    def __init__(self, place: Address, clients: _Clients, way: str, probe_timeout: float, failures: Failures) -> None:
        self._place, self._clients, self._way, self._failures = place, clients, way, failures
        self._server: Hashable = place.server or object()
        self._probe_timeout = probe_timeout
        self._outcome: Literal["failed", "elsewhere", "ended"] = "failed"
        self._probed = ""
        self._probing: anyio.TaskHandle[None] | None = None
        self._answer: Any = None  # the response to the probe, or its error
        self._offered: list[str] = []

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Client | None]:
        """Open a connection and negotiate the revision; yield the client of the user, or `None` if that fails.

        Raises:
            UnsupportedRevision: The server speaks none of the revisions.
            ProtocolError: A stateless server refuses the probe.
            AuthorizationError: Authorization failed.
        """
        async with AsyncExitStack() as stack:
            client = None
            try:
                client = await self._negotiated(stack)
            except LoginRequired as error:
                self.login = error
            yield client

    async def _negotiated(self, stack: AsyncExitStack) -> Client | None:
        clients, way = self._clients, _WAYS[self._way]
        start = self._place.fallback if way.is_fallback else self._place.open
        assert start is not None
        try:
            transport = await stack.enter_async_context(start())
        except ConnectionClosed as error:
            self._failures.append(("GET" if way.is_fallback else "connecting", error))
            return None
        session = self._session = Session(Connection("client", clients.dispatchers), transport, clients)
        session.ask_user = ask_later
        self._tasks = await stack.enter_async_context(background_tasks())
        self._tasks.start_soon(session.run)
        stack.push_async_callback(session.close)
        client: Client | None = None
        for step in _HANDSHAKE_FIRST if clients.prefers_handshake and self._way == "probe" else way.steps:
            if client is None:
                client = await step(self)
        session.ask_user = None
        if client is None:
            self._outcome = "ended" if session.closed.is_set() else self._outcome
            return None
        if self._probing is not None:
            self._probing.cancel()
        self._remember(client.dispatcher.revision.era.is_stateless)
        if client.cache is not None:
            stack.callback(client.cache.forget, CacheScope(None, session))
        return clients.begin(client, session, self._tasks)

    def following(self) -> str:
        """Return the name of the way to try after this one has failed; empty for no further way."""
        place, clients = self._place, self._clients
        reopens = place.reopens and not clients.prefers_handshake and clients.best(stateless=False) is not None
        possible = {"probe": place.open, "fallback": place.fallback, "handshake": reopens}
        name: str = getattr(_WAYS[self._way], self._outcome)
        return name if possible.get(name) else ""

    def _remember(self, is_stateless: bool) -> None:
        place, way = self._place.place, self._way
        if is_stateless:
            _remembered.pop(place, None)
        elif place is not None and (way != "probe" or self._is_legacy):
            _remembered[place] = "known fallback" if _WAYS[way].is_fallback else "known"
            _remembered.move_to_end(place)
            if len(_remembered) > _MAX_REMEMBERED:
                _remembered.popitem(last=False)

    @property
    def _is_legacy(self) -> bool:
        """True if the server did not answer the probe."""
        return bool(self._probed) and (self._answer is None or isinstance(self._answer, Exception))

    def _speak(self, revision: str) -> Client:
        """Switch to a revision; return its client."""
        session, client = self._session, self._clients.client(revision)
        session.connection.dispatcher = session.negotiated.dispatcher = self._clients.dispatcher(revision)
        session.meta, session.headers = {}, None
        client.attach(session, CacheScope((self._server, revision), session))
        return client

    # --- the probe --------------------------------------------------------------------------------------------

    async def probe(self) -> Client | None:
        """Send the probe; the wait is limited, because old servers may not answer.

        Clients that prefer the handshake probe only a server that refused the handshake like a stateless server.
        """
        error = self._failures[-1][1] if self._failures else None
        is_unknown = isinstance(error, ProtocolError) and error.code in _NOT_KNOWN
        may_be_stateless = is_unknown or self._outcome == "elsewhere"
        if self._clients.prefers_handshake and not (may_be_stateless and self._clients.best(stateless=True)):
            return None
        self._probed = str(self._clients.best(stateless=True))
        client = self._speak(self._probed)
        options, timeout = client.options, None
        if self._clients.best(stateless=False):
            self._probe_timeout = min(self._probe_timeout, options.timeout or self._probe_timeout)
            options, timeout = Options(timeout=None), self._probe_timeout
        self._probing = self._tasks.create_task(self._ask(client, options))
        if not await self._has_heard(timeout):
            self._failures.append((DISCOVER, RequestTimeout(f"no answer within {timeout:g} s")))
            return None
        return await self._conclude()

    async def _has_heard(self, seconds: float | None) -> bool:
        """Wait for the response to the probe; return True if it came."""
        assert self._probing is not None
        with anyio.move_on_after(seconds):
            await self._probing.wait()
        return self._answer is not None

    async def _ask(self, client: Client, options: Options) -> None:
        try:
            self._answer = await discover(client, self._session, options)
        except (*_FAILURES, AuthorizationError) as error:
            self._answer = error

    async def hear_late(self) -> Client | None:
        """Wait again for the response to the probe after the handshake failed: the server may be slow."""
        may_come = self._probed and not isinstance(self._answer, Exception)
        return await self._conclude() if may_come and await self._has_heard(self._probe_timeout) else None

    async def _conclude(self) -> Client | None:
        """Choose a revision from the response to the probe."""
        error, revision = self._answer, self._clients.dispatcher(self._probed).revision
        if not isinstance(error, Exception):
            return await self._choose(error.supported_versions)
        if isinstance(error, AuthorizationError | errors.ServerUnavailable):
            raise error  # another attempt would only ask for another login, or meet a server that stops
        if isinstance(error, ProtocolError):
            if lacks_scope(error):
                raise error
            if error.code in revision.errors.values():  # only a stateless server sends such an error
                named = supported_in(error) if error.code == revision.errors[UNSUPPORTED] else []
                if not named:
                    raise error
                return await self._choose(named)
            if not self._clients.best(stateless=False):
                raise self._clients.unsupported() from error  # it does not know the probe
        self._failures.append((DISCOVER, error))
        return None

    async def _choose(self, named: Sequence[str]) -> Client | None:
        """Choose the best of the revisions that the server names."""
        best = next((revision for revision in self._clients.revisions(stateless=True) if revision in named), None)
        if best is not None:
            client = self._speak(best)
            if best != self._probed or self._is_legacy:
                self._answer = await discover(client, self._session)
            accept_discovery(client, self._session, self._answer)
            return client
        best = next((revision for revision in self._clients.revisions(stateless=False) if revision in named), None)
        if best is None:
            raise self._clients.unsupported(*named)
        return await self.shake_hands(best)

    # --- the handshake ----------------------------------------------------------------------------------------

    async def shake_hands(self, revision: str | None = None) -> Client | None:
        """Offer a revision, by default the best; the server may choose another of ours."""
        offered = revision or self._clients.best(stateless=False)
        if offered is None or offered in self._offered or self._session.closed.is_set():
            return None
        self._offered.append(offered)
        client = self._speak(offered)
        try:
            answer = await offer_handshake(client, self._session)
            chosen = answer["protocolVersion"]
            if chosen not in self._clients.revisions(stateless=False):
                raise self._clients.unsupported(chosen)
            client = self._speak(chosen)
            await accept_handshake(client, self._session, answer)
        except _FAILURES as error:
            is_elsewhere = isinstance(error, errors.Refused) and error.status in _NOT_HERE
            self._outcome = "elsewhere" if is_elsewhere else "failed"
            self._failures.append((INITIALIZE, error))
            named = [revision for revision in supported_in(error) if revision not in self._offered]
            return await self._choose(named) if named else None
        return client


class _Way(NamedTuple):
    """Way to connect, with the names of the ways to try after it has failed, if the address allows them.

    After a login, a way is repeated.

    Attributes:
        steps: Negotiation over one connection; the first step that finds a client is the last one.
        is_fallback: True if the connection is opened by the fallback of the address, such as HTTP+SSE.
        ended: Next way if the server has ended the connection.
        elsewhere: Next way if the handshake failed as it does at a server that has HTTP+SSE or no sessions only.
        failed: Next way after any other failure.
    """

    steps: Sequence[Callable[[_Attempt], Awaitable[Client | None]]]
    is_fallback: bool = False
    ended: str = ""
    elsewhere: str = ""
    failed: str = ""


_HANDSHAKE, _HANDSHAKE_FIRST = (_Attempt.shake_hands,), (_Attempt.shake_hands, _Attempt.probe)
_PROBE = (_Attempt.probe, _Attempt.shake_hands, _Attempt.hear_late)

_WAYS = {
    "probe": _Way(_PROBE, ended="handshake", elsewhere="fallback"),
    "handshake": _Way(_HANDSHAKE),
    "fallback": _Way(_HANDSHAKE, is_fallback=True),
    # remembered, and outdated if they fail
    "known": _Way(_HANDSHAKE_FIRST, ended="probe", elsewhere="fallback"),
    "known fallback": _Way(_HANDSHAKE_FIRST, is_fallback=True, ended="probe", elsewhere="probe", failed="probe"),
}
