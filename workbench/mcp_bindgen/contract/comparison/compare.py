"""Compare two contracts: the impact of changes of a server on its clients.

The level of a finding is its impact on a client of the old contract with the new server. `reverse` is the impact on a
client of the new contract with the old server. Each side sends only values that its contract declares.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..model import LISTINGS, Contract, Entry
from .entries import Pair
from .verdicts import ContractComparison, ContractFinding, Level


def compare_contracts(old: Contract, new: Contract) -> ContractComparison:
    """Return the changes between two contracts, worst first; the order of entries is ignored."""
    found = [finding for member in LISTINGS for finding in _findings(member, old, new)]
    if old.instructions != new.instructions:
        found.append(
            ContractFinding("words-changed", "server", "", "instructions", "are others", Level.SAFE, Level.SAFE)
        )
    found.sort(key=lambda finding: -finding.level)
    return ContractComparison(tuple(found))


def _findings(member: str, old: Contract, new: Contract) -> Iterator[ContractFinding]:
    kind = LISTINGS[member].kind
    ours, theirs = ({item.key: item for item in contract.entries[member]} for contract in (old, new))
    gone = {name: item for name, item in ours.items() if name not in theirs}
    come = {name: item for name, item in theirs.items() if name not in ours}
    for before, after in list(_moved(gone, come)) if LISTINGS[member].key != "name" else ():
        pair = Pair((gone.pop(before), come.pop(after)))
        yield ContractFinding("uri-changed", kind, after, "", f"was {before}", Level.BREAKING, Level.BREAKING)
        yield from pair.findings()
    for name, item in gone.items():
        hint = _successor(name, item, come)
        yield ContractFinding(f"{kind}-removed", kind, name, "", "is gone", Level.BREAKING, Level.SAFE, hint)
    for name in come:
        yield ContractFinding(f"{kind}-added", kind, name, "", "is new", Level.SAFE, Level.BREAKING)
    for name, item in ours.items():
        if name in theirs:
            yield from Pair((item, theirs[name])).findings()


def _moved(gone: Mapping[str, Entry], come: Mapping[str, Entry]) -> Iterator[tuple[str, str]]:
    """Yield old URI -> new URI of entries with a common name that is unique on each side."""
    for before, item in gone.items():
        alike = [after for after, other in come.items() if other.name == item.name]
        if len(alike) == 1 and sum(other.name == item.name for other in gone.values()) == 1:
            yield before, alike[0]


def _successor(name: str, item: Entry, come: Mapping[str, Entry]) -> str:
    """Return a hint about a possible replacement of a removed entry."""
    same = [other for other, new in come.items() if _shape(new) == _shape(item) and _shape(item)]
    near = difflib.get_close_matches(name, come, n=1, cutoff=0.7)
    found: Sequence[str] = same if len(same) == 1 else near
    return f"Perhaps it is {found[0]} now." if found else ""


def _shape(item: Entry) -> Any:
    """Return the arguments of an entry."""
    schema = item.raw.get("inputSchema", {})
    return schema.get("properties") or item.raw.get("arguments")
