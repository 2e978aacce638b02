"""Negotiate the revision of a connection: a probe first, and the handshake if the server does not know that.

MCP 2026-07-28, "Versioning": Backward Compatibility, and the section of that name in "stdio" and "Streamable HTTP".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from ..concurrency import Pauses
from ..protocol.access import lacks_scope
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
from ..protocol.options import Options
from ..protocol.revision import Dispatcher, Revision
from .handshake import HANDSHAKE
from .lifecycle import DISCOVER, INITIALIZE
from .stateless import client as stateless
from .stateless.client import UNSUPPORTED

C = TypeVar("C")

FAILURES = (ProtocolError, ConnectionClosed, RequestTimeout)
_NOT_HERE = (400, 404, 405)  # statuses of what may be a server of HTTP+SSE, or nothing


class Clients(Generic[C]):
    """The clients of which one is to be connected, at most one for each revision.

    Args:
        clients: The clients.
        others: Further revisions, for which a client is made only if the server speaks none of those above.
        make: Makes a client of one of them.

    Attributes:
        by_revision: Revision -> client.
        dispatchers: Revision -> what its client takes.
        stateless: The revisions of that era, the best first.
        stateful: The revisions of the other one, the best first.
        prefers_handshake: Whether the clients given are all of that other one.

    Raises:
        ValueError: There is none, or there are two for a revision.
    """

    def __init__(
        self, clients: Sequence[C], others: Sequence[Revision] = (), make: Callable[[Revision], C] | None = None
    ) -> None:
        ours: Sequence[Any] = clients
        self.by_revision: dict[str, Any] = {client.revision: client for client in ours}
        if not clients or len(self.by_revision) < len(clients):
            raise ValueError("connecting needs clients, one for each revision")
        self.dispatchers: dict[str, Dispatcher] = {
            client.revision: client.dispatcher.extended(type(client))
            for client in sorted(ours, key=lambda client: client.dispatcher.revision.rank)
        }
        self._others = {revision.name: revision for revision in others}
        self._make = make
        own = [dispatcher.revision for dispatcher in reversed(self.dispatchers.values())]
        best = [*own, *sorted(others, key=lambda revision: revision.rank, reverse=True)]
        self.stateless = [revision.name for revision in best if revision.era.is_stateless]
        self.stateful = [revision.name for revision in best if not revision.era.is_stateless]
        self.prefers_handshake = not any(revision.era.is_stateless for revision in own)

    def client(self, revision: str) -> Any:
        """Return the client of a revision; it is made now if nobody needed it before."""
        if revision not in self.by_revision:
            assert self._make is not None
            client: Any = self._make(self._others[revision])
            self.by_revision[revision] = client
            self.dispatchers[revision] = client.dispatcher.extended(type(client))
        return self.by_revision[revision]

    @property
    def all(self) -> str:
        """The revisions in words, the best first."""
        return " or ".join([*self.stateless, *self.stateful])


class Negotiation(Generic[C]):
    """Finds out which client a server understands, over one connection.

    Args:
        clients: The clients.
        session: The connection, running.
        attach: Makes a client speak over the connection.
        tasks: Where the probe waits for its answer.
        patience: Seconds to wait for the answer to the probe where the server may be one that knows only the handshake.

    Attributes:
        failures: What was tried in vain, and why: the method, and the error.
        elsewhere: Whether the handshake was refused as a server does that has only HTTP+SSE.
    """

    def __init__(
        self, clients: Clients[C], session: Any, attach: Callable[[C], None], tasks: TaskGroup, patience: float
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
        self._offered: list[str] = []
        self._heard = anyio.Event()
        self._answer: Any = None
        self._error: Exception | None = None

    @property
    def is_legacy(self) -> bool:
        """Whether the server was asked what only a stateless server can answer, and could not."""
        return self._asked and self._answer is None

    async def client(self, *, probe: bool = True, handshake_first: bool = False) -> C | None:
        """Return the client that the server understands, ready to be used; `None` if everything failed.

        Args:
            probe: Whether to ask what only a stateless server can answer.
            handshake_first: Whether the handshake comes before that.

        Raises:
            UnsupportedRevision: The server speaks none of the revisions.
            ProtocolError: It is a stateless server, and objects to the probe.
            AuthorizationError: There is no way to be authorized.
        """
        steps = [self._probe] if probe and self._clients.stateless else []
        if self._clients.stateful:
            handshake_first = handshake_first or self._clients.prefers_handshake
            steps = [self._shake_hands, *steps] if handshake_first else [*steps, self._shake_hands, self._hear_late]
        try:
            for step in steps:
                if step == self._probe and self._clients.prefers_handshake and not self._may_be_stateless():
                    return None
                found = await step()
                if found is not None:
                    return found
            return None
        finally:
            self._asking.cancel()

    def _may_be_stateless(self) -> bool:
        """Tell whether the handshake failed as it does at a server that knows none."""
        error = self.failures[-1][1] if self.failures else None
        if isinstance(error, ProtocolError):
            return error.code in (METHOD_NOT_FOUND, INVALID_REQUEST, INVALID_PARAMS)
        return isinstance(error, Refused) and error.status in _NOT_HERE

    def _speak(self, revision: str) -> Any:
        """Change to a revision; return its client."""
        session, client = self._session, self._clients.client(revision)
        session.peer.dispatcher = session.negotiated.dispatcher = self._clients.dispatchers[revision]
        session.meta, session.headers = {}, None
        self._attach(client)
        return client

    # --- the probe --------------------------------------------------------------------------------------------

    async def _probe(self) -> C | None:
        """Ask which revisions the server speaks; wait only so long, because old servers may not answer."""
        client = self._speak(self._clients.stateless[0])
        options, patience = client.options, None
        if self._clients.stateful:
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

    async def _ask(self, client: Any, options: Options) -> None:
        with self._asking:
            try:
                self._answer = await stateless.discover(client, self._session, options)
            except (*FAILURES, AuthorizationError) as error:
                self._error = error
            self._heard.set()

    async def _hear_late(self) -> C | None:
        """Wait once more for the answer to the probe after the handshake failed: the server may only have been slow."""
        if not self._asked or self._error is not None:
            return None
        with self._pauses.move_on_after(self._patience):
            await self._heard.wait()
        return await self._conclude() if self._heard.is_set() else None

    async def _conclude(self) -> C | None:
        """Choose a revision from the answer to the probe."""
        if self._answer is not None:
            return await self._choose(self._answer.supported_versions)
        assert self._error is not None
        error = self._error
        if isinstance(error, AuthorizationError | ServerUnavailable):
            raise error  # asking in another way would only ask for another login, or a server that stops
        if isinstance(error, ProtocolError) and lacks_scope(error):
            raise error
        revision = self._clients.dispatchers[self._clients.stateless[0]].revision
        if not isinstance(self._error, ProtocolError) or not stateless.is_modern(revision, self._error):
            if isinstance(self._error, ProtocolError) and not self._clients.stateful:
                raise UnsupportedRevision(self._clients.all) from self._error  # it does not know the question
            self.failures.append((DISCOVER, self._error))
            return None
        spoken = stateless.spoken(self._error) if self._error.code == revision.errors[UNSUPPORTED] else []
        if not spoken:
            raise self._error
        return await self._choose(spoken)

    async def _choose(self, spoken: Sequence[str]) -> C | None:
        """Choose the best of the revisions that the server speaks."""
        best = next((revision for revision in self._clients.stateless if revision in spoken), None)
        if best is not None:
            client: C = self._speak(best)
            if self._answer is not None and best == self._clients.stateless[0]:
                stateless.accept(client, self._session, self._answer)
            else:
                await stateless.introduce(client, self._session)
            return client
        best = next((revision for revision in self._clients.stateful if revision in spoken), None)
        if best is None:
            raise UnsupportedRevision(self._clients.all, *spoken)
        return await self._shake_hands(best)

    # --- the handshake ----------------------------------------------------------------------------------------

    async def _shake_hands(self, revision: str | None = None) -> C | None:
        """Offer a revision, by default the best; the server may choose another one of ours."""
        offered = revision or self._clients.stateful[0]
        if offered in self._offered or self._session.closed.is_set():
            return None
        self._offered.append(offered)
        client: C = self._speak(offered)
        try:
            answer = await HANDSHAKE.offer(client, self._session)
            chosen = answer["protocolVersion"]
            if chosen not in self._clients.stateful:
                raise UnsupportedRevision(self._clients.all, chosen)
            client = self._speak(chosen)
            await HANDSHAKE.accept(client, self._session, answer)
        except FAILURES as error:
            self.elsewhere = isinstance(error, Refused) and error.status in _NOT_HERE
            self.failures.append((INITIALIZE, error))
            spoken = [revision for revision in stateless.spoken(error) if revision not in self._offered]
            return await self._choose(spoken) if spoken else None
        return client
