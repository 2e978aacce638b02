"""Era of the handshake, up to 2025-11-25 (MCP, "Lifecycle"): rules for messages."""

from __future__ import annotations

from ..model.json_types import is_object
from ..protocol.envelope import Envelope, invalid
from ..protocol.errors import NotInitialized
from ..protocol.methods import CANCELLED, INITIALIZE, PING, Method
from ..protocol.revision import Connection, Dispatcher, Era
from ..protocol.transitions import State


class Handshake(Era):
    """Revisions in which the client introduces itself once, and the connection remembers it."""

    initial = State.NEW
    is_stateless = False

    def admit(self, connection: Connection, dispatcher: Dispatcher, envelope: Envelope, in_batch: bool) -> Dispatcher:
        """Let a message in if the handshake allows it; `initialize` decides the revision.

        Raises:
            ProtocolError: It comes too early, or twice.
        """
        if envelope.kind == "notification":
            is_early = connection.role == "server" and connection.state is State.NEW
            if is_early and envelope.method != CANCELLED:
                raise NotInitialized
            return dispatcher
        if envelope.method == INITIALIZE and connection.role == "server":
            if connection.state is not State.NEW or connection.is_initializing or in_batch:
                raise invalid("initialize comes once, first and alone")
            connection.initialize_request_id = envelope.id
            wanted = envelope.params.get("protocolVersion") if is_object(envelope.params) else None
            connection.dispatcher = connection.best(self, wanted)
            return connection.dispatcher
        if connection.state is not State.READY and envelope.method != PING:
            raise NotInitialized
        return dispatcher

    def can_cancel(self, method: Method, *, by_sender: bool) -> bool:
        """Return whether a request can be taken back: by its sender, and not the handshake itself."""
        return by_sender and method.name != INITIALIZE


HANDSHAKE = Handshake()
