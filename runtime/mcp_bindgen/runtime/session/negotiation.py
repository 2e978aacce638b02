"""Negotiation of the revision: a probe first, then the handshake if the server does not know the probe.

MCP 2026-07-28, "Versioning": Backward Compatibility, and the section of that name in "stdio" and "Streamable HTTP".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from ..concurrency import Pauses
from ..era.stateless import UNSUPPORTED
from ..model.json_types import is_array, is_object
from ..protocol import jsonrpc
from ..protocol.access import lacks_scope
from ..protocol.bridging import MISSING, Bridging, ClientBridges
from ..protocol.capabilities import declared
from ..protocol.envelope import invalid_answer
from ..protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    AuthorizationError,
    ConnectionClosed,
    ProtocolError,
    Refused,
    RequestTimeout,
    ServerUnavailable,
    UnsupportedRevision,
)
from ..protocol.limits import Options
from ..protocol.methods import (
    DISCOVER,
    INITIALIZE,
    INITIALIZED,
    Notification,
    untyped,
)
from ..protocol.revision import Dispatcher, Revision
from .handlers import Introduced, introduction
from .session import Session

VERSION_HEADER = "MCP-Protocol-Version"


class ClientSide(Introduced, Protocol):
    """The part of a client that the negotiation reads and sets; see `Client`."""

    options: Options
    server_info: Any
    server_capabilities: Mapping[str, Any]
    instructions: str | None
    mirror: Any

    revision: ClassVar[str]
    dispatcher: ClassVar[Dispatcher]


async def introduce(client: ClientSide, session: Session) -> None:
    """Introduce a client to its server, in the way of the era of its revision.

    Raises:
        UnsupportedRevision: The server does not speak the client's revision.
    """
    stateless = session.peer.dispatcher.revision.era.is_stateless
    await (_introduce_stateless if stateless else _shake_hands)(client, session)


# --- the handshake --------------------------------------------------------------------------------------------


async def _shake_hands(client: ClientSide, session: Session) -> None:
    answer = await offer_handshake(client, session)
    if answer["protocolVersion"] != client.revision:
        raise UnsupportedRevision(client.revision, answer["protocolVersion"])
    await accept_handshake(client, session, answer)


async def offer_handshake(client: ClientSide, session: Session) -> dict[str, Any]:
    """Send `initialize` and return the result in wire form; it may be in another revision.

    Raises:
        ProtocolError: The server refuses, or names no revision.
    """
    dispatcher = session.peer.dispatcher
    session.negotiated.declared["client"] = declared(client, dispatcher, session.transport.extensions)
    method = dispatcher.revision.request(INITIALIZE)
    wire = {
        "protocolVersion": dispatcher.revision.name,
        "capabilities": session.negotiated.declared["client"],
        "clientInfo": introduction(client, dispatcher.revision).model_dump(),
    }
    params = jsonrpc.typed_params(method, wire)
    answer = await session.request(untyped(method), params, client.options, begins_session=True)
    if not isinstance(answer.get("protocolVersion"), str):
        raise invalid_answer("the result of initialize names no protocolVersion")
    return answer


async def accept_handshake(client: ClientSide, session: Session, wire: dict[str, Any]) -> None:
    """Take the result of `initialize`, in the client's revision, and end the handshake.

    Raises:
        ProtocolError: The result is invalid.
    """
    revision = session.peer.dispatcher.revision
    answer = jsonrpc.typed_result(revision.request(INITIALIZE), wire)
    _accept(client, session, answer, answer.server_info)
    session.headers = lambda method, params: {VERSION_HEADER: revision.name}
    initialized = revision.methods[INITIALIZED]
    assert isinstance(initialized, Notification)
    await session.notify(initialized, None, opens_stream=True)


def _accept(client: ClientSide, session: Session, answer: Any, server_info: Any) -> None:
    """Take over the server's description of itself; from now on both sides know the revision."""
    session.negotiated.declared["server"] = client.server_capabilities = answer.capabilities.model_dump()
    session.negotiated.peer_info = client.server_info = server_info
    client.instructions = answer.instructions
    session.peer.negotiated()


# --- discovery ------------------------------------------------------------------------------------------------


async def _introduce_stateless(client: ClientSide, session: Session) -> None:
    try:
        answer = await discover(client, session)
    except ProtocolError as error:
        revision = client.dispatcher.revision
        named = spoken(error) if error.code == revision.errors[UNSUPPORTED] else []
        raise (UnsupportedRevision(revision.name, *named) if named else error) from None
    if client.revision not in answer.supported_versions:
        raise UnsupportedRevision(client.revision, *answer.supported_versions)
    accept_discovery(client, session, answer)


async def discover(client: ClientSide, session: Session, options: Options | None = None) -> Any:
    """Return the server's revisions and capabilities.

    Raises:
        ProtocolError: The server refuses, or its result is invalid.
    """
    _prepare(client, session)
    method = session.peer.dispatcher.revision.request(DISCOVER)
    params = jsonrpc.typed_params(method, {"_meta": session.meta})
    wire = await session.request(untyped(method), params, options or client.options)
    return jsonrpc.typed_result(method, wire)


def accept_discovery(client: ClientSide, session: Session, answer: Any) -> None:
    """Take the result of `discover`; from now on the client's revision is spoken."""
    _prepare(client, session)
    _accept(client, session, answer, answer.meta.server_info if answer.meta is not None else None)


def _prepare(client: ClientSide, session: Session) -> None:
    """Set the metadata and headers of the session's requests."""
    revision = session.peer.dispatcher.revision
    session.negotiated.declared["client"] = declared(client, session.peer.dispatcher, session.transport.extensions)
    session.meta = {
        **said(client, revision, session.negotiated.declared["client"]),
        **jsonrpc.filled_in(revision.request(DISCOVER).params.model_fields["meta"].annotation),
    }
    if session.transport.mirror is not None:
        client.mirror = session.transport.mirror(revision)
        session.headers = client.mirror.headers


def said(client: Introduced, revision: Revision, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's part of the `_meta` of every request."""
    values = {
        "protocol_version": revision.name,
        "client_info": introduction(client, revision).model_dump(),
        "client_capabilities": capabilities,
    }
    return {revision.meta_keys[name]: value for name, value in values.items() if name in revision.meta_keys}


def is_modern(revision: Revision, error: ProtocolError) -> bool:
    """Return whether only a stateless server sends this error (MCP 2026-07-28, "Versioning")."""
    return error.code in revision.errors.values()


def spoken(error: Exception) -> list[str]:
    """Return the revisions that a server names in an error because it does not speak ours; else nothing."""
    data = error.data if isinstance(error, ProtocolError) else None
    supported = data.get("supported") if is_object(data) else None
    return [version for version in supported if isinstance(version, str)] if is_array(supported) else []


# --- the choice -----------------------------------------------------------------------------------------------

C = TypeVar("C", bound=ClientSide)

FAILURES = (ProtocolError, ConnectionClosed, RequestTimeout)
_NOT_HERE = (400, 404, 405)  # statuses of a server that may have HTTP+SSE only


class Clients(Generic[C]):
    """Candidates for a connection: at most one client for each revision.

    Args:
        clients: The clients.
        find_bridging: Finds the conversion between revisions, for servers that speak none of theirs; None to speak
            only the revisions of the clients.

    Attributes:
        by_revision: Revision -> client.
        dispatchers: Revision -> dispatcher of its client.
        prefers_handshake: True if all given clients are stateful.

    Raises:
        ValueError: There is no client, or there are two of one revision.
    """

    def __init__(self, clients: Sequence[C], find_bridging: Callable[[], Bridging | None] | None = None) -> None:
        self.by_revision: dict[str, C] = {client.revision: client for client in clients}
        if not clients or len(self.by_revision) < len(clients):
            raise ValueError("connecting needs clients, one for each revision")
        self.dispatchers: dict[str, Dispatcher] = {
            client.revision: client.dispatcher.extended(type(client))
            for client in sorted(clients, key=lambda client: client.dispatcher.revision.rank)
        }
        self._own = [dispatcher.revision for dispatcher in reversed(self.dispatchers.values())]
        self._find_bridging = find_bridging
        self.prefers_handshake = not any(revision.era.is_stateless for revision in self._own)

    @cached_property
    def _bridges(self) -> ClientBridges[C] | None:
        bridging = self._find_bridging() if self._find_bridging is not None else None
        return None if bridging is None else bridging.clients(list(self.by_revision.values()))

    def revisions(self, *, stateless: bool) -> Iterator[str]:
        """Yield the revisions of an era, the best first; conversion is looked up after those of the clients."""
        yield from (one.name for one in self._own if one.era.is_stateless is stateless)
        others = sorted(self._bridges.revisions if self._bridges else (), key=lambda one: one.rank, reverse=True)
        yield from (one.name for one in others if one.era.is_stateless is stateless)

    def best(self, *, stateless: bool) -> str | None:
        """Return the best revision of an era, or None."""
        return next(self.revisions(stateless=stateless), None)

    @property
    def has_both_eras(self) -> bool:
        """True if there are revisions of both eras."""
        return self.best(stateless=True) is not None and self.best(stateless=False) is not None

    def client(self, revision: str) -> C:
        """Return the client of a revision; a client that needs conversion is made on first use."""
        if revision not in self.by_revision:
            assert self._bridges is not None
            found = next(one for one in self._bridges.revisions if one.name == revision)
            client = self.by_revision[revision] = self._bridges.wire_client(found)
            self.dispatchers[revision] = client.dispatcher.extended(type(client))
        return self.by_revision[revision]

    def begin(self, client: C, session: Session, tasks: TaskGroup) -> C:
        """Return the client that the user talks to, given the one that is connected."""
        is_own = client.dispatcher.revision in self._own
        return client if is_own or self._bridges is None else self._bridges.begin(client, session, tasks)

    def unsupported(self, *theirs: str) -> UnsupportedRevision:
        """Return the error for a server that speaks none of the revisions."""
        ours = " or ".join([*self.revisions(stateless=True), *self.revisions(stateless=False)])
        is_missing = self._find_bridging is not None and self._bridges is None
        return UnsupportedRevision(f"{ours} ({MISSING})" if is_missing else ours, *theirs)


class Negotiation(Generic[C]):
    """Negotiation with one server, over one connection.

    Args:
        clients: The clients.
        session: The connection, running.
        attach: Connects a client to the session.
        tasks: Group of the task that waits for the response to the probe.
        patience: Seconds to wait for this response if the server may know the handshake only.

    Attributes:
        failures: Methods that failed, with their errors.
        elsewhere: True if the handshake failed as it does at a server that has HTTP+SSE only.
    """

    def __init__(
        self, clients: Clients[C], session: Session, attach: Callable[[C], None], tasks: TaskGroup, patience: float
    ) -> None:
        self.failures: list[tuple[str, Exception]] = []
        self.elsewhere = False
        self._clients = clients
        self._session = session
        self._attach = attach
        self._tasks = tasks
        self._patience = patience
        self._pauses = session.transport.pauses or Pauses()
        self._asking = anyio.CancelScope()
        self._asked = False
        self._probed = ""
        self._offered: list[str] = []
        self._heard = anyio.Event()
        self._answer: Any = None
        self._error: Exception | None = None

    @property
    def is_legacy(self) -> bool:
        """True if the server did not answer the probe."""
        return self._asked and self._answer is None

    async def client(self, *, probe: bool = True, handshake_first: bool = False) -> C | None:
        """Return the connected client of a revision that the server speaks; `None` if everything failed.

        Args:
            probe: Send the probe, which only stateless servers answer.
            handshake_first: Try the handshake before the probe.

        Raises:
            UnsupportedRevision: The server speaks none of the revisions.
            ProtocolError: A stateless server refuses the probe.
            AuthorizationError: Authorization failed.
        """
        steps = [self._probe] if probe else []
        if self._clients.prefers_handshake or self._clients.best(stateless=False):
            handshake_first = handshake_first or self._clients.prefers_handshake
            steps = [self._shake_hands, *steps] if handshake_first else [*steps, self._shake_hands, self._hear_late]
        try:
            for step in steps:
                if step == self._probe and not self._may_probe():
                    return None
                found = await step()
                if found is not None:
                    return found
            return None
        finally:
            self._asking.cancel()

    def _may_probe(self) -> bool:
        """Return False if the handshake came first, and did not fail as it does at a stateless server."""
        if not self._clients.prefers_handshake:
            return True
        return self._may_be_stateless() and self._clients.best(stateless=True) is not None

    def _may_be_stateless(self) -> bool:
        """Return whether the handshake failed as it does at a stateless server."""
        error = self.failures[-1][1] if self.failures else None
        if isinstance(error, ProtocolError):
            return error.code in (METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS)
        return isinstance(error, Refused) and error.status in _NOT_HERE

    def _speak(self, revision: str) -> C:
        """Switch to a revision; return its client."""
        session, client = self._session, self._clients.client(revision)
        session.peer.dispatcher = session.negotiated.dispatcher = self._clients.dispatchers[revision]
        session.meta, session.headers = {}, None
        self._attach(client)
        return client

    # --- the probe --------------------------------------------------------------------------------------------

    async def _probe(self) -> C | None:
        """Send the probe; the wait is limited, because old servers may not answer."""
        self._probed = str(self._clients.best(stateless=True))
        client = self._speak(self._probed)
        options, patience = client.options, None
        if self._clients.best(stateless=False):
            self._patience = min(self._patience, options.timeout or self._patience)
            options, patience = Options(timeout=None), self._patience
        self._asked = True
        self._tasks.start_soon(self._ask, client, options)
        with self._pauses.move_on_after(patience):
            await self._heard.wait()
        if self._heard.is_set():
            return await self._conclude()
        self.failures.append((DISCOVER, RequestTimeout(f"no answer within {patience:g} s")))
        return None

    async def _ask(self, client: C, options: Options) -> None:
        with self._asking:
            try:
                self._answer = await discover(client, self._session, options)
            except (*FAILURES, AuthorizationError) as error:
                self._error = error
            self._heard.set()

    async def _hear_late(self) -> C | None:
        """Wait again for the response to the probe after the handshake failed: the server may be slow."""
        if not self._asked or self._error is not None:
            return None
        with self._pauses.move_on_after(self._patience):
            await self._heard.wait()
        return await self._conclude() if self._heard.is_set() else None

    async def _conclude(self) -> C | None:
        """Choose a revision from the response to the probe."""
        if self._answer is not None:
            return await self._choose(self._answer.supported_versions)
        assert self._error is not None
        error = self._error
        if isinstance(error, AuthorizationError | ServerUnavailable):
            raise error  # another attempt would only ask for another login, or meet a server that stops
        if isinstance(error, ProtocolError) and lacks_scope(error):
            raise error
        revision = self._clients.dispatchers[self._probed].revision
        if not isinstance(self._error, ProtocolError) or not is_modern(revision, self._error):
            if isinstance(self._error, ProtocolError) and not self._clients.best(stateless=False):
                raise self._clients.unsupported() from self._error  # it does not know the probe
            self.failures.append((DISCOVER, self._error))
            return None
        named = spoken(self._error) if self._error.code == revision.errors[UNSUPPORTED] else []
        if not named:
            raise self._error
        return await self._choose(named)

    async def _choose(self, named: Sequence[str]) -> C | None:
        """Choose the best of the revisions that the server names."""
        best = next((revision for revision in self._clients.revisions(stateless=True) if revision in named), None)
        if best is not None:
            client = self._speak(best)
            if self._answer is not None and best == self._probed:
                accept_discovery(client, self._session, self._answer)
            else:
                await _introduce_stateless(client, self._session)
            return client
        best = next((revision for revision in self._clients.revisions(stateless=False) if revision in named), None)
        if best is None:
            raise self._clients.unsupported(*named)
        return await self._shake_hands(best)

    # --- the handshake ----------------------------------------------------------------------------------------

    async def _shake_hands(self, revision: str | None = None) -> C | None:
        """Offer a revision, by default the best; the server may choose another of ours."""
        offered = revision or str(self._clients.best(stateless=False))
        if offered in self._offered or self._session.closed.is_set():
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
        except FAILURES as error:
            self.elsewhere = isinstance(error, Refused) and error.status in _NOT_HERE
            self.failures.append((INITIALIZE, error))
            named = [revision for revision in spoken(error) if revision not in self._offered]
            return await self._choose(named) if named else None
        return client
