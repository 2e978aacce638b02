"""Rules of `rules.toml`: the impact of each kind of change on each pairing.

A change affects two pairings: old client with new server, and new client with old server. A pairing is sound if the
receiver accepts every message of the sender. A sender sends only members that its revision declares; a receiver ignores
unknown members. In messages of clients, a narrower type breaks old clients with new servers, and a wider type breaks
new clients with old servers. In messages of servers it is the opposite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_bindgen.ir.model import Sender
from mcp_bindgen.spec.toml import read_toml

from .finding import Impact, Plane

Impacts = tuple[Impact, Impact]
"""Impact on an old client with a new server, and on a new client with an old server."""

_NONE = Impact.NONE


@dataclass(frozen=True)
class Rule:
    """Kind of change.

    Attributes:
        id: Name of the rule.
        mirror: Rule for the same change with old and new exchanged.
        client: Impacts in messages of clients.
        server: Impacts in messages of servers.
        says: Predicate of the sentence with the subject; `{old}` and `{new}` are short descriptions of the two states.
        hint: Recommended action.
        plane: Place where the change is visible, if a message contains it.
    """

    id: str
    mirror: str
    client: Impacts
    server: Impacts
    says: str
    hint: str
    plane: Plane = Plane.WIRE


def _rule(id: str, table: Mapping[str, Any]) -> Rule:
    def impacts_of(side: str) -> Impacts:
        old_client, new_client = (Impact[word.upper()] for word in table.get(side, ("none", "none")))
        return old_client, new_client

    plane = Plane(table.get("plane", Plane.WIRE))
    sides = {side: impacts_of(side) for side in ("client", "server")}
    return Rule(**{"id": id, "mirror": id, **table, **sides, "plane": plane})


RULES = {id: _rule(id, table) for id, table in read_toml(Path(__file__).with_name("rules.toml")).items()}
"""Rule id -> rule."""


def impacts(rules: Iterable[str], senders: Iterable[Sender]) -> Impacts:
    """Return the worst impacts of all `rules` in the messages of `senders`."""
    both = tuple(senders)
    cells = [RULES[rule].client if sender == "client" else RULES[rule].server for rule in rules for sender in both]
    return (
        max((cell[0] for cell in cells), default=_NONE),
        max((cell[1] for cell in cells), default=_NONE),
    )
