"""State of a comparison: both revisions and the changes found so far."""

from __future__ import annotations

from mcp_bindgen.ir.assignability import Assignability
from mcp_bindgen.ir.model import Protocol

from .location import NEW, OLD, Change, Location
from .match import Matches
from .normalize import Normalizer
from .subjects import Subjects


class Sides:
    """Old and new side of a comparison.

    Args:
        old: The old revision.
        new: The new revision.
        matches: The matched definitions.

    Attributes:
        forms: Normalizer of each side.
        accepting: Relation of each side, as the receiver, to the other side.
        subjects: Names of definitions in subjects.
        changes: The changes found so far.
    """

    def __init__(self, old: Protocol, new: Protocol, matches: Matches) -> None:
        self.protocols, self.matches = (old, new), matches
        self.forms = Normalizer(old, lambda name: matches.new.get(name, f"old {name}")), Normalizer(new)
        self.accepting = Assignability(old, new), Assignability(new, old)
        self.subjects = Subjects(old, new, matches)
        self.changes: list[Change] = []

    def describe(self, location: Location) -> tuple[str, str]:
        """Return the types in a place as text."""
        return self.forms[OLD].describe(location.types[OLD]), self.forms[NEW].describe(location.types[NEW])
