"""Era of the handshake, up to 2025-11-25 (MCP, "Lifecycle"): rules for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model.json_types import is_object
from ..protocol.envelope import Envelope, invalid
from ..protocol.errors import (
    NotInitialized,
)
from ..protocol.methods import CANCELLED, INITIALIZE, PING, Method
from ..protocol.revision import Connection, Dispatcher
from ..protocol.transitions import State


class Handshake:
    """Revisions in which the client introduces itself once, and the connection remembers it."""

    initial = State.NEW
    is_stateless = False

    # --- messages ---------------------------------------------------------------------------------------------

    def peek(self, data: bytes, ours: Mapping[str, Dispatcher], current: Dispatcher) -> Dispatcher | None:
        """Return the revision of the connection: messages do not name theirs."""
        return current

    def select(
        self, envelope: Envelope, ours: Mapping[str, Dispatcher], current: Dispatcher, supported: Sequence[str]
    ) -> Dispatcher:
        """Return the revision of the connection."""
        return current

    def is_open(self, connection: Connection, method: str) -> bool:
        """Return whether the handshake is over, and this is no second one."""
        return connection.state is State.READY and method != INITIALIZE

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

    def accepts(self, dispatcher: Dispatcher, params: Any) -> bool:
        """Return True: requests repeat nothing, because the connection remembers the handshake."""
        return True

    def complete(self, dispatcher: Dispatcher, envelope: Envelope, params: Any) -> Any:
        """Return the params as they are."""
        return params

    def can_cancel(self, method: Method, *, by_sender: bool) -> bool:
        """Return whether a request can be taken back: by its sender, and not the handshake itself."""
        return by_sender and method.name != INITIALIZE


HANDSHAKE = Handshake()
