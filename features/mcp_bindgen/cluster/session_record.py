"""Know a session that other workers serve at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic_core import from_json

from mcp_bindgen.http.server.session_registry import OpenSession
from mcp_bindgen.runtime.model.json_types import is_array
from mcp_bindgen.runtime.session.handshake_server import update


@dataclass(eq=False)
class SharedSession(OpenSession):
    """A session that this worker takes part in.

    Attributes:
        version: The version of the record that this worker knows.
        base: That record.
        confirmed: Whether its client has said that it is initialized.
        left: Whether it goes on, or has ended, without this worker.
    """

    version: int = 0
    base: Mapping[str, Any] = field(default_factory=dict[str, Any])
    confirmed: bool = False
    left: bool = False
    saving: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))

    def record(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return what other workers need; members that a newer program has written stay."""
        ready = self.confirmed or self.session.ready
        memory = {**self.base.get("memory", {}), **known}
        return {**self.base, "principal": self.principal, "memory": memory, "ready": ready}

    def adopt(self, record: Mapping[str, Any]) -> None:
        """Take over what another worker has written."""
        if record["ready"] and self.snapshot() is not None and not self.session.ready:
            self.session.peer.confirmed()
        self.confirmed = self.confirmed or bool(record["ready"])
        update(self.session, record["memory"])

    def take_over(self, version: int, stored: bytes) -> None:
        """Take over a record that other workers have written; what has changed here meanwhile counts as well.

        Args:
            version: Its version.
            stored: The record; empty before there is one.
        """
        known = self.snapshot()
        theirs: dict[str, Any] = from_json(stored) if stored else dict(self.base)
        if stored and known is not None:
            ours = self.record(known)["memory"]
            self.adopt({**theirs, "memory": merged(self.base.get("memory", {}), ours, theirs["memory"])})
        self.version, self.base, self.saved = version, theirs, stored


def merged(base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the changes of both: what only one has changed is as that one says, else as we say.

    Of a list, whose order means nothing, what either has added is in it, and what either has removed is not.

    Args:
        base: The record that both began with.
        ours: What we made of it.
        theirs: What others made of it.
    """
    found = dict(theirs)
    for name, value in ours.items():
        before = base.get(name)
        if value == before:
            continue
        other = theirs.get(name)
        if is_array(value) and is_array(other):
            known = before if is_array(before) else []
            added = [item for item in value if item not in known and item not in other]
            value = [item for item in other if item in value or item not in known] + added
        found[name] = value
    return found
