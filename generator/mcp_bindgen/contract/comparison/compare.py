"""Compare two contracts: what a change of the server means for its clients.

A client that was written for the old contract meets the new server: that is the level of a finding. Its reverse is a
client written for the new contract that meets the old server. Each side says only what its contract declares.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..model import Contract
from .entries import Pair
from .verdicts import ContractComparison, ContractFinding, Kind, Level

_KINDS: Mapping[Kind, tuple[str, str]] = {
    "tool": ("tools", "name"),
    "prompt": ("prompts", "name"),
    "resource": ("resources", "uri"),
    "template": ("templates", "uriTemplate"),
}
"""Kind -> the attribute of a contract, and the member that identifies an entry."""


def compare_contracts(old: Contract, new: Contract) -> ContractComparison:
    """Find what changed from one contract to another, the worst first; order is no change."""
    found = [finding for kind in _KINDS for finding in _findings(kind, old, new)]
    if old.instructions != new.instructions:
        found.append(
            ContractFinding("words-changed", "server", "", "instructions", "are others", Level.SAFE, Level.SAFE)
        )
    found.sort(key=lambda finding: -finding.level)
    return ContractComparison(tuple(found))


def _findings(kind: Kind, old: Contract, new: Contract) -> Iterator[ContractFinding]:
    attribute, key = _KINDS[kind]
    ours, theirs = ({item.raw[key]: item for item in getattr(contract, attribute)} for contract in (old, new))
    gone = {name: item for name, item in ours.items() if name not in theirs}
    come = {name: item for name, item in theirs.items() if name not in ours}
    for before, after in _moved(gone, come) if key != "name" else ():
        pair = Pair(kind, after, (old, new), (gone.pop(before), come.pop(after)))
        yield ContractFinding("uri-changed", kind, after, "", f"was {before}", Level.BREAKING, Level.BREAKING)
        yield from pair.findings()
    for name, item in gone.items():
        hint = _successor(name, item, come)
        yield ContractFinding(f"{kind}-removed", kind, name, "", "is gone", Level.BREAKING, Level.SAFE, hint)
    for name in come:
        yield ContractFinding(f"{kind}-added", kind, name, "", "is new", Level.SAFE, Level.BREAKING)
    for name, item in ours.items():
        if name in theirs:
            yield from Pair(kind, name, (old, new), (item, theirs[name])).findings()


def _moved(gone: Mapping[str, Any], come: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the old and new URIs of entries with the same name, where only one entry on each side has it."""
    found: list[tuple[str, str]] = []
    for before, item in gone.items():
        alike = [after for after, other in come.items() if other.name == item.name]
        if len(alike) == 1 and sum(other.name == item.name for other in gone.values()) == 1:
            found.append((before, alike[0]))
    return found


def _successor(name: str, item: Any, come: Mapping[str, Any]) -> str:
    """Return a hint at what may have taken the place of an entry that is gone."""
    same = [other for other, new in come.items() if _shape(new) == _shape(item) and _shape(item)]
    near = difflib.get_close_matches(name, come, n=1, cutoff=0.7)
    found: Sequence[str] = same if len(same) == 1 else near
    return f"Perhaps it is {found[0]} now." if found else ""


def _shape(item: Any) -> Any:
    """Return the arguments that an entry takes; nothing where it takes none."""
    schema = item.raw.get("inputSchema", {})
    return schema.get("properties") or item.raw.get("arguments")
