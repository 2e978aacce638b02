"""Define the states of a connection, and every transition that is legal, in one table.

A connection begins in the state that its era says: NEW where a handshake comes first, READY where every request speaks
for itself. Each `ConnectionTrigger` below leads from there to another state; a trigger outside of the table is a
mistake of the side that causes it, and raises. Messages have no transitions of their own: a request is *handled* from
the moment it is accepted until it is answered, dropped or the connection closes, and a request of ours is *pending*
until its answer comes, it is cancelled or the connection closes. Both are sets of ids in `Peer`, in any state.

    server   NEW --agreed--> NEGOTIATED --confirmed--> READY        client   NEW --agreed--> READY
             NEW --resumed--> READY
    both     READY --agreed--> READY (a client introduces itself again)      any --closed--> CLOSED
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from .methods import Role


class State(Enum):
    """The state of a connection (MCP, "Lifecycle")."""

    NEW = "nothing was agreed"
    NEGOTIATED = "initialize is answered"
    READY = "initialized, or never in need of it"
    CLOSED = "over"


class ConnectionTrigger(Enum):
    """An event that changes the state of a connection."""

    AGREED = "both sides know the revision"
    CONFIRMED = "the client has taken the answer to its handshake"
    RESUMED = "the handshake was done in another process"
    CLOSED = "either side is gone"


TRANSITIONS: Mapping[tuple[Role, State, ConnectionTrigger], State] = {
    ("server", State.NEW, ConnectionTrigger.AGREED): State.NEGOTIATED,
    ("server", State.NEW, ConnectionTrigger.RESUMED): State.READY,
    ("server", State.NEGOTIATED, ConnectionTrigger.CONFIRMED): State.READY,
    ("client", State.NEW, ConnectionTrigger.AGREED): State.READY,
    ("client", State.READY, ConnectionTrigger.AGREED): State.READY,
}
"""Role, state and trigger -> the state afterwards. `CLOSED` is legal in every state."""


def next_state(role: Role, state: State, happening: ConnectionTrigger) -> State:
    """Return the state after something has happened.

    Raises:
        ValueError: It cannot happen to that side in that state.
    """
    try:
        return State.CLOSED if happening is ConnectionTrigger.CLOSED else TRANSITIONS[role, state, happening]
    except KeyError:
        raise ValueError(f"{happening.name} is impossible for a {role} in the state {state.name}") from None
