"""Decide whether another session may begin."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeVar

from mcp_bindgen.runtime.logs import audit
from mcp_bindgen.runtime.session.session import Session

from .call import too_many
from .limits import HttpLimits


class Occupant(Protocol):
    """A session that is open.

    Attributes:
        principal: Who began it, if that is known.
        session: The session itself.
    """

    principal: str | None
    session: Session


S = TypeVar("S", bound=Occupant)


def is_own(session: Occupant, principal: str | None) -> bool:
    """Tell whether a session is that of who asks for it; what others ask for is logged."""
    if session.principal == principal:
        return True
    reason = "a session of somebody else"
    fields = {"reason": reason, "principal": principal}
    audit.warning("refused: %s; principal=%s", reason, principal, extra={"fields": fields})
    return False


def room_for(principal: str | None, sessions: Collection[S], limits: HttpLimits) -> S | None:
    """Return the session that has to go so that another one may begin, if any has to.

    It is the oldest one whose client never said that it is initialized: clients say so at once, so those who only take
    up room lose it first.

    Args:
        principal: Who begins one, if that is known.
        sessions: Those that are open, the oldest first.
        limits: How many there may be.

    Raises:
        HttpError: There are too many, and all are initialized.
    """
    own = [one for one in sessions if one.principal == principal] if principal is not None else []
    for held, most, reason in (
        (own, limits.sessions_of_principal, "too many sessions of this user are open"),
        (sessions, limits.sessions, "too many sessions are open"),
    ):
        if len(held) >= most:
            oldest = next((one for one in held if not one.session.ready), None)
            if oldest is None:
                raise too_many(reason)
            return oldest
    return None
