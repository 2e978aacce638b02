"""Describe what a request may count on: its revision, and who is on the other side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from .errors import CapabilityMissing
from .methods import Path
from .revision import Dispatcher
from .transitions import Role

Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""A severity of log messages (RFC 5424)."""

LEVELS: tuple[Level, ...] = get_args(Level)
"""The severities, the mildest first."""


class Negotiated:
    """The agreement of the two sides: for a whole connection, or for a single request (stateless revisions).

    Attributes:
        dispatcher: What this side takes in the revision that is spoken.
        peer_info: How the other side introduced itself: an `Implementation`, or `None`.
        log_level: The least severe log messages that the client wants; `None` if it did not say.
        subscriptions: The `followed_key` of the resources that the client follows (stateful revisions);
            `None` for all.
        logs_by_default: Whether a client that did not say wants all of them, or none.
    """

    logs_by_default = True
    subscriptions: set[str] | None = None

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self.peer_info: Any = None
        self.log_level: str | None = None
        self.subscriptions = set()
        self._declared: dict[Role, Mapping[str, Any]] = {"client": {}, "server": {}}

    @property
    def declared(self) -> dict[Role, Mapping[str, Any]]:
        """Side -> its capabilities, in wire form."""
        return self._declared

    def lacking(self, method: str, capability: Path) -> Exception:
        """Make the error for a message that needs a capability which was not declared."""
        return CapabilityMissing(method, capability)

    def wants(self, level: str) -> bool:
        """Tell whether the client wants log messages of this severity."""
        if self.log_level is None:
            return self.logs_by_default
        return LEVELS.index(level) >= LEVELS.index(self.log_level)
