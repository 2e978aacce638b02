"""Contract of a server at one time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from mcp_bindgen.app.catalog import KINDS, Entry, Kind

NO_INFO: Mapping[str, Any] = {}
"""`serverInfo` of a server that states none."""

Entries: TypeAlias = Mapping[Kind, Mapping[str, Entry]]
"""Kind -> name or URI -> entry as the server sends it."""


@dataclass(frozen=True)
class Snapshot:
    """Contract of a server at one time.

    Attributes:
        revision: Revision of the protocol that it was read in.
        info: `serverInfo`: name, version and title of the server.
        instructions: Instructions of the server, if any.
        entries: Kind (`tool`, `prompt`, `resource`, `template`) -> name or URI -> entry in wire form.
    """

    revision: str
    info: Mapping[str, Any]
    instructions: str | None
    entries: Entries

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Snapshot:
        """Return the snapshot of the document of a contract: `serverInfo`, `instructions`, `revision` and lists."""
        entries: dict[Kind, dict[str, Entry]] = {}
        for kind, place in KINDS.items():
            found = {entry[place.key]: entry for entry in reversed(document.get(place.member, ()))}
            entries[kind] = dict(sorted(found.items()))
        info: Mapping[str, Any] | None = document.get("serverInfo")
        return cls(document.get("revision", ""), info or NO_INFO, document.get("instructions"), entries)

    @property
    def digest(self) -> str:
        """Digest of the whole contract; the order of entries and members has no influence."""
        digests = {kind: {name: digest(one) for name, one in all_.items()} for kind, all_ in self.entries.items()}
        return digest({"serverInfo": self.info, "instructions": self.instructions, "entries": digests})


def digest(value: object) -> str:
    """Return the digest of a JSON value; the order of members has no influence, and `true` differs from 1."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"sha256:{sha256(text.encode()).hexdigest()}"
