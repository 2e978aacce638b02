"""The era in which every request speaks for itself, from 2026-07-28.

MCP 2026-07-28, "Overview": Statelessness and `_meta`, "Discovery", "Multi Round-Trip Requests".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import to_json

from ...model.json_types import is_object
from ...protocol.envelope import Envelope, invalid
from ...protocol.errors import MethodNotFound, UnsupportedVersion
from ...protocol.methods import Method, Notification
from ...protocol.revision import Connection, Dispatcher, Handler
from ...protocol.routing import Route
from ...protocol.transitions import State
from ..lifecycle import DISCOVER, INITIALIZE, LISTEN
from .client import UNSUPPORTED, introduce
from .request_meta import ParamsWithMeta, may_state_version, peek_version, stated_version
from .server import handler


class Stateless:
    """Revisions without a connection to remember anything: each request names its revision and its sender."""

    initial = State.READY
    is_stateless = True

    # --- messages ---------------------------------------------------------------------------------------------

    def peek(self, data: bytes, ours: Mapping[str, Dispatcher], current: Dispatcher) -> Dispatcher | None:
        """Guess the revision that a message names; one that names none belongs to the connection."""
        revision = next(iter(ours.values())).revision
        named = peek_version(revision, data)
        if named is not None:
            return ours.get(named)
        return None if may_state_version(revision, data) else current

    def select(
        self, envelope: Envelope, ours: Mapping[str, Dispatcher], current: Dispatcher, supported: Sequence[str]
    ) -> Dispatcher:
        """Return the revision that a message names; one that names none belongs to the connection if it can.

        Raises:
            UnsupportedVersion: It names a revision that is not served.
        """
        *_, newest = ours.values()
        named = stated_version(newest.revision, envelope.message)
        if isinstance(named, str):
            if named not in ours:
                raise UnsupportedVersion(newest.revision.errors[UNSUPPORTED], named, supported)
            return ours[named]
        if named is not None:
            return newest
        if envelope.method == INITIALIZE or envelope.method in current.routes:
            return current
        return newest if envelope.method in newest.routes else current

    def is_open(self, connection: Connection, method: str) -> bool:
        """Tell that a message may come at any time."""
        return True

    def admit(self, connection: Connection, dispatcher: Dispatcher, envelope: Envelope, in_batch: bool) -> Dispatcher:
        """Let a message in.

        Raises:
            ProtocolError: A server asks its client, which it does inside of results only.
            MethodNotFound: The message begins a handshake; the error has the revisions that need none.
        """
        if envelope.kind == "request" and dispatcher.role == "client":
            raise invalid("servers send no requests in this revision")
        if envelope.kind == "request" and envelope.method == INITIALIZE:
            raise MethodNotFound(envelope.method, {"supported": list(connection.supported)})
        return dispatcher

    def accepts(self, dispatcher: Dispatcher, params: Any) -> bool:
        """Tell whether the params of a request name the revision, as all that a client sends must."""
        return (
            dispatcher.role == "server"
            and getattr(getattr(params, "meta", None), "protocol_version", None) == dispatcher.revision.name
        )

    def complete(self, dispatcher: Dispatcher, envelope: Envelope, params: Any) -> Any:
        """Add the typed `_meta` to params that do not name it; raises `InvalidParams` where it is not valid."""
        wire = envelope.params
        known = {"_meta": wire["_meta"]} if is_object(wire) and "_meta" in wire else {}
        plain = dispatcher.routes[DISCOVER].method  # its params are nothing else
        return ParamsWithMeta(params, Route(replace(plain, name=envelope.method), "").read(to_json(known)).meta)

    def noticed(self, connection: Connection, method: Method) -> None:
        """Do nothing: no notification changes a connection that remembers nothing."""

    def can_cancel(self, method: Method, *, by_sender: bool) -> bool:
        """Tell whether a request can be taken back: by its sender, and a subscription by the server, too."""
        return by_sender or method.name == LISTEN

    # --- the two sides ----------------------------------------------------------------------------------------

    def handler(self, server: Any, dispatcher: Dispatcher, route: Route, supported: Sequence[str]) -> Handler:
        """Return what answers the messages of a route; raises `MethodNotFound` where nothing does."""
        return handler(server, dispatcher, route, supported)

    def is_followed(self, link: Any, method: Notification[Any], params: Any) -> bool:
        """Tell that it is: a `Subscription` knows what it was asked for."""
        return True

    def snapshot(self, session: Any) -> dict[str, Any] | None:
        """Return nothing: no session is remembered."""
        return None

    def restore(self, session: Any, snapshot: Mapping[str, Any], offers: Mapping[str, Any], first_id: int) -> None:
        """Do nothing: no session is remembered."""

    def update(self, session: Any, snapshot: Mapping[str, Any]) -> None:
        """Do nothing: no session is remembered."""

    async def introduce(self, client: Any, session: Any) -> None:
        """Ask the server what it offers; raise `UnsupportedRevision` where it does not speak the client's revision."""
        await introduce(client, session)

    def answers_by_default(self, method: Method) -> bool:
        """Tell whether a client takes a message that it has no handler for."""
        return method.kind == "notification"


STATELESS = Stateless()
