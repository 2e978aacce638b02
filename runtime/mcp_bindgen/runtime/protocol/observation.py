"""Observation: one observer sees requests, connections and refusals. Without an observer it costs one comparison."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from .errors import ProtocolError
from .events import Notified, Requested
from .methods import RequestMethod, Role
from .revision import Revision


class Observed(Protocol):
    """Observe a message that is handled, or a request of ours; an exception that leaves it counts as its error.

    Attributes:
        meta: Members to add to the `_meta` of a request of ours.
    """

    meta: Mapping[str, Any]

    def answered(self, answer: object) -> None:
        """Observe the result."""

    def finished(self, error: ProtocolError | None) -> None:
        """Observe the end of the handling of a message, and the error that answers it."""


class Observer(Protocol):
    """Observer of requests, connections and refusals; called in the task and the context variables of the event."""

    def handling(self, role: Role, link: Any, event: Requested | Notified) -> AbstractContextManager[Observed]:
        """See a message being handled.

        Args:
            role: Which side handles it.
            link: The way to the other side.
            event: The message.
        """
        ...

    def asking(
        self, role: Role, link: Any, revision: Revision, method: RequestMethod[Any, Any], params: object
    ) -> AbstractContextManager[Observed]:
        """See a request of ours, from when it is made to its answer.

        Args:
            role: Which side asks.
            link: The way to the other side.
            revision: The revision that is spoken.
            method: The method.
            params: Its params.
        """
        ...

    def connected(self, role: Role, link: Any) -> AbstractContextManager[None]:
        """See a connection, or a session, while it lasts."""
        ...

    def refused(self, reason: str) -> None:
        """Observe a refusal because of a limit; the reason is one of few and names no client."""


current: Observer | None = None
"""The observer; `observe` sets it."""


def observe(observer: Observer | None) -> None:
    """Set the observer, in place of the previous one; `None` for no observer."""
    global current
    current = observer


def connected(role: Role, link: Any) -> AbstractContextManager[None]:
    """Let the observer, if there is one, see a connection while a block lasts."""
    return nullcontext() if current is None else current.connected(role, link)


def refused(reason: str) -> None:
    """Let the observer, if there is one, see a refusal."""
    if current is not None:
        current.refused(reason)
