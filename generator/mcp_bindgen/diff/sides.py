"""Hold both revisions while they are compared, and the changes found between them."""

from __future__ import annotations

from mcp_bindgen.protocol.model import Protocol, Type

from .labels import Labels
from .location import Change, Location
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
        olds: The normal forms of the old types.
        news: The normal forms of the new types.
        into_old: Whether old types accept the values of new ones.
        into_new: Whether new types accept the values of old ones.
        labels: What definitions are called in subjects.
        changes: The changes found so far.
    """

    def __init__(self, old: Protocol, new: Protocol, matches: Matches) -> None:
        self.old, self.new, self.matches = old, new, matches
        self.olds = Normalizer(old, lambda name: matches.new.get(name, f"old {name}"))
        self.news = Normalizer(new)
        self.into_old, self.into_new = Subtyping(old, new), Subtyping(new, old)
        self.labels = Labels(old, new, matches)
        self.changes: list[Change] = []

    def note(
        self,
        rule: str,
        location: Location,
        old: str,
        new: str,
        old_type: Type | None = None,
        new_type: Type | None = None,
    ) -> None:
        """Add a change."""
        self.changes.append(Change(rule, location.subject, old, new, location, old_type, new_type))
