"""State of a session with which another process, or a later one, resumes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_bindgen.runtime.protocol.capabilities import declared
from mcp_bindgen.runtime.protocol.transitions import State
from mcp_bindgen.runtime.session.service import Service
from mcp_bindgen.runtime.session.session import Session


def snapshot(session: Session) -> dict[str, Any] | None:
    """Return the state with which another process can resume a session, as JSON; `None` before the handshake."""
    agreed = session.negotiated
    if session.peer.state not in (State.NEGOTIATED, State.READY) or agreed.dispatcher.revision.era.is_stateless:
        return None
    return {
        "revision": agreed.dispatcher.revision.name,
        "clientInfo": agreed.peer_info.model_dump(),
        "capabilities": agreed.declared["client"],
        "logLevel": agreed.log_level,
        "subscriptions": sorted(agreed.subscriptions or ()),
    }


def restore(service: Service, session: Session, snapshot: Mapping[str, Any], first_id: int) -> None:
    """Resume a session of another process.

    Args:
        service: The servers.
        session: A new session.
        snapshot: The result of `snapshot`.
        first_id: First id of the server's own requests; late responses to the former process are ignored.

    Raises:
        KeyError: The revision of the session is not served.
    """
    dispatcher = service.dispatchers[snapshot["revision"]]
    session.peer.resume(snapshot["revision"], first_id)
    agreed = session.negotiated
    agreed.dispatcher = session.peer.dispatcher
    agreed.peer_info = agreed.dispatcher.revision.types.Implementation.model_validate(snapshot["clientInfo"])
    agreed.declared["client"] = snapshot["capabilities"]
    agreed.declared["server"] = declared(service.server(dispatcher), dispatcher)
    update(session, snapshot)


def update(session: Session, snapshot: Mapping[str, Any]) -> None:
    """Take over the log level and the subscriptions that another process has received meanwhile."""
    session.negotiated.log_level = snapshot["logLevel"]
    session.negotiated.subscriptions = set(snapshot.get("subscriptions", ()))  # records of older versions have none
