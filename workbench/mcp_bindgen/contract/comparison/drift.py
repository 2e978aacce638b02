"""Check a live server against its lock, in one direction or both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from mcp_bindgen.drift.callers import Callers
from mcp_bindgen.drift.changes import Change, Verdict, compare
from mcp_bindgen.drift.snapshot import Snapshot
from mcp_bindgen.lock import LockedServer

from .witness import witness


class Mode(StrEnum):
    """Direction in which two contracts must be compatible."""

    BACKWARD = "backward"
    """Callers of the locked contract work with the live server."""
    FORWARD = "forward"
    """Callers of the live contract work with a server of the locked contract."""
    FULL = "full"
    """Both."""


def check_server(
    locked: LockedServer, live: Snapshot, callers: Callers, mode: Mode = Mode.BACKWARD, *, transitive: bool = False
) -> list[Change]:
    """Return the changes of a live server and its entries, the worst first; of several on one entry, the worst.

    Args:
        locked: The server in the lock.
        live: The contract of the live server.
        callers: Profile of the callers.
        mode: Direction of the comparison.
        transitive: True to compare with the earlier contracts of the lock, too.
    """
    worst = {(one.kind, one.name): one for one in _changes(locked.current, live, callers, mode)}
    for age, snapshot in enumerate(locked.history if transitive else (), 1):
        for one in _changes(snapshot, live, callers, mode):
            key = one.kind, one.name
            is_worse = one.verdict > worst.get(key, Change(*key)).verdict
            if is_worse and not one.verdict.is_open and one.kind != "server":  # other texts were reviewed since
                worst[key] = replace(one, texts=worst.get(key, Change(*key)).texts, age=age)
    return sorted(worst.values(), key=_severity)


def _severity(one: Change) -> tuple[int, bool, int]:
    """Return the key to sort by: verdicts that close an entry, changed texts, other verdicts."""
    return 0 if one.verdict.is_open else -one.verdict, not one.texts, -one.verdict


def _changes(old: Snapshot, new: Snapshot, callers: Callers, mode: Mode) -> Iterator[Change]:
    backward = {(one.kind, one.name): one for one in compare(old, new, callers, search=witness)}
    if mode is Mode.BACKWARD:
        yield from backward.values()
        return
    forward = {(one.kind, one.name): one for one in compare(new, old, callers, search=witness)}
    for key, change in (backward | forward).items():
        nothing = Change(change.kind, change.name)
        ours, theirs = backward.get(key, nothing), forward.get(key, nothing)
        if ours.is_new:  # callers of the live contract use it
            theirs = replace(ours, facts=[replace(one, verdict=Verdict.BREAKING) for one in ours.facts])
        elif theirs.is_new:  # they do not know it
            theirs = nothing
        elif key[0] == "server":
            theirs = ours
        theirs = replace(theirs, texts=ours.texts)
        found = theirs if mode is Mode.FORWARD else max(ours, theirs, key=lambda one: one.verdict)
        if found.verdict or found.texts:
            yield found
