"""Find the way to a server: which transport it has, and which revision it speaks.

MCP 2026-07-28, "Versioning": Backward Compatibility, and "Streamable HTTP": Backward Compatibility.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import IO, Any, TypedDict, TypeVar, Unpack, overload

from mcp_bindgen.bridging.client import Bridges

from . import bindings
from .concurrency import background_tasks
from .entry_points import Address
from .era.lifecycle import DISCOVER
from .era.negotiation import Clients, Negotiation
from .logs import log
from .protocol.errors import ConnectionClosed, ProtocolError, RequestTimeout
from .protocol.peer import Peer
from .protocol.revision import Dispatcher, Handler
from .protocol.routing import Route
from .session.authorization import Auth
from .session.client import Client
from .session.result_cache import CacheScope, ResultCache
from .session.session import Session
from .targets import Target, address

C = TypeVar("C", bound=Client)

PATIENCE = 5.0
"""Seconds that a server has to answer the probe before it is taken for one that does not know it."""

TIMEOUT = 60.0
"""Seconds that connecting may take in all."""

_MOST_REMEMBERED = 1000


@dataclass(frozen=True)
class _Way:
    """Options of connecting.

    Attributes:
        probe: Whether to ask which revisions the server speaks.
        handshake_first: Whether to try the handshake before that.
        fallback: True to open the connection by the fallback of the address.
    """

    probe: bool = True
    handshake_first: bool = False
    fallback: bool = False


_remembered: OrderedDict[Hashable, _Way] = OrderedDict()


class NoConnection(ConnectionClosed):
    """Nothing that was tried led to a connection; the message says what that was and what came of it.

    Attributes:
        failures: What was tried, and the error.
    """

    def __init__(self, failures: list[tuple[str, Exception]]) -> None:
        super().__init__("; ".join(f"{what}: {error}" for what, error in failures))
        self.failures = failures


class ConnectOptions(TypedDict, total=False):
    """Options of `connect`, which describes them."""

    headers: Mapping[str, str] | None
    auth: Auth | None
    cache: ResultCache | None
    patience: float
    timeout: float | None
    exactly: bool
    stderr: int | IO[Any] | None


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
    patience: float = PATIENCE,
    timeout: float | None = TIMEOUT,
    exactly: bool = False,
    stderr: int | IO[Any] | None = None,
) -> AsyncGenerator[Any]:
    """Connect to a server in the best revision that both sides speak; all is closed when the block ends.

    A server is asked first which revisions it speaks. One that does not know the question gets the handshake, on the
    same connection; at a URL where there is nothing to shake hands with, HTTP+SSE is tried. What was found out is
    remembered for the next time.

    A server that speaks none of the clients' revisions is spoken to over a bridge: the client that is nearest to its
    revision goes on in its own types, and what passes is converted (`docs/bridges.md`).

    Args:
        target: A URL, a command line, its words, an entry of an `mcpServers` file, or a transport.
        clients: The client classes, or clients, one for each revision that may be spoken; by default those of all
            bindings that are installed.
        headers: HTTP headers to send with each request.
        auth: Authorizes requests to a URL: `OAuth()` logs a user in, `Bearer(token)` sends a token, and so on. While
            somebody is asked, the time limits below do not run.
        cache: Keeps results; without it, that of the client's class, if there is one.
        patience: Seconds that a server has to answer the question before it is taken for one that does not know it.
        timeout: Seconds that all of this may take; `None` for no limit. A single answer may take as long as the options
            of the client say.
        exactly: Speak the revisions of the clients, and no others over bridges.
        stderr: Where the error output of a command goes; by default to ours.

    Raises:
        UnsupportedRevision: The server speaks other revisions.
        ConnectionClosed: There is no way to the server; one error says what was tried.
        ProtocolError: The server refuses.
        AuthorizationError: It wants authorization, and there is none to be had.
        ValueError: There is nothing to connect to, or the bindings of a client are types and stubs only.
    """
    bindings.install()
    place = address(target, headers, stderr, auth)
    kinds = clients or installed()
    ours: list[Any] = [kind() if isinstance(kind, type) else kind for kind in kinds]
    for client in ours:
        client.dispatcher.revision.check_connectable()
        if cache is not None:
            client.cache = cache
    search = _Search(place, ours, patience, exactly)
    with place.pauses.move_on_after(timeout) as scope:
        async with search.connected() as client:
            place.pauses.stop(scope)
            yield client
    if scope.cancelled_caught:
        raise NoConnection([*search.failures, ("connecting", RequestTimeout(f"not done within {timeout:g} s"))])


def installed() -> list[type[Client]]:
    """Return the client classes of all bindings that are installed, and of those in the user's folder.

    What is in the user's folder and cannot be imported is left out, and our log says why: it must not stop programs
    that do without it.
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
    """Forget what was found out about servers."""
    _remembered.clear()


class _Search:
    """The way to one server.

    Args:
        place: Where it is.
        clients: Who wants to talk to it.
        patience: See `connect`.
        exactly: See `connect`.

    Attributes:
        failures: What was tried in vain, and the error.
    """

    def __init__(self, place: Address, clients: list[Client], patience: float, exactly: bool) -> None:
        self._place = place
        self._server = place.server or object()
        self._bridges = Bridges([] if exactly else clients)
        self._clients = Clients(clients, self._bridges.revisions, self._bridges.carrier)
        self._patience = patience
        self.failures: list[tuple[str, Exception]] = []
        self._elsewhere = False
        self._ended = False

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Client]:
        """Connect, and yield the client whose revision the server speaks."""
        known = _remembered.get(self._place.place)
        way: _Way | None = known or _Way(fallback=self._place.open is None, handshake_first=self._place.open is None)
        while way is not None:
            async with self._over(way) as client:
                if client is not None:
                    yield client
                    return
            way = self._further(way, known)
            known = None
        raise self._verdict()

    @asynccontextmanager
    async def _over(self, way: _Way) -> AsyncGenerator[Client | None]:
        """Try one way of connecting; yield `None` if it fails."""
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
            self._remember(way, negotiation.is_legacy, client.revision in self._clients.stateless)
            if client.cache is not None:
                stack.callback(client.cache.forget, CacheScope(None, session))
            yield self._bridges.begin(client, session, tasks)

    def _handler(self, dispatcher: Dispatcher, route: Route) -> Handler:
        handler: Handler = self._clients.client(dispatcher.revision.name).handler(dispatcher, route)
        return handler

    def _attach(self, session: Session, client: Client) -> None:
        client.attach(session, CacheScope((self._server, client.revision), session))

    def _further(self, way: _Way, known: _Way | None) -> _Way | None:
        """Return the way to try after one that failed; `None` if there is nothing more."""
        place, clients = self._place, self._clients
        self._forget()
        if known is not None and (way.fallback or self._ended) and place.open is not None:
            return _Way()
        if self._elsewhere and not way.fallback and place.fallback is not None:
            return _Way(probe=False, fallback=True)
        shook_hands = way.handshake_first or clients.prefers_handshake
        probed = way.probe and not shook_hands and bool(clients.stateless and clients.stateful)
        if self._ended and probed and place.reopens:  # some servers end when they do not understand
            return _Way(probe=False)
        return None

    def _remember(self, way: _Way, is_legacy: bool, is_stateless: bool) -> None:
        place = self._place.place
        if place is None:
            return
        if is_stateless:
            self._forget()
        elif way.fallback or is_legacy or not way.probe:
            _remembered[place] = _Way(handshake_first=True, fallback=way.fallback)
            _remembered.move_to_end(place)
            if len(_remembered) > _MOST_REMEMBERED:
                _remembered.popitem(last=False)

    def _forget(self) -> None:
        _remembered.pop(self._place.place, None)

    def _verdict(self) -> Exception:
        """Return one error that lists what was tried; a single failure that explains itself is returned as it is."""
        what, error = self.failures[-1]
        if len(self.failures) == 1 and (what != DISCOVER or not isinstance(error, ProtocolError)):
            return error
        return NoConnection(self.failures)
