"""Hold both revisions while they are compared, and the changes found between them."""

from __future__ import annotations

from mcp_bindgen.protocol.model import Protocol, Type

from .labels import Labels
from .location import NEW, OLD, Change, Location
from .match import Matches
from .normalize import Normalizer
from .subtyping import Subtyping


class Sides:
    """The old and the new side of a comparison.

    Args:
        old: The old revision.
        new: The new one.
        matches: The definitions that they have in common.

    Attributes:
        forms: The normal forms of the types of each side.
        accepting: Whether the types of a side accept the values of the other one.
        labels: What definitions are called in subjects.
        changes: The changes found so far.
    """

    def __init__(self, old: Protocol, new: Protocol, matches: Matches) -> None:
        self.protocols, self.matches = (old, new), matches
        self.forms = Normalizer(old, lambda name: matches.new.get(name, f"old {name}")), Normalizer(new)
        self.accepting = Subtyping(old, new), Subtyping(new, old)
        self.labels = Labels(old, new, matches)
        self.changes: list[Change] = []

    def note(
        self,
        rule: str,
        location: Location,
        words: tuple[str, str],
        types: tuple[Type | None, Type | None] = (None, None),
        parts: tuple[str, ...] = (),
    ) -> None:
        """Add a change."""
        self.changes.append(Change(rule, location, words, types, parts))

    def words(self, location: Location) -> tuple[str, str]:
        """Return the types in a place as a person would write them."""
        return self.forms[OLD].words(location.types[OLD]), self.forms[NEW].words(location.types[NEW])
