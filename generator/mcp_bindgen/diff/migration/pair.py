"""The bindings of two revisions side by side."""

from __future__ import annotations

from functools import cached_property

from mcp_bindgen.protocol.model import Field, Method, Object, Sender, Type
from mcp_bindgen.protocol.text import describe

from ..finding import Comparison
from ..match import match
from .causes import Causes
from .names import new_names
from .surface import Surface
from .views import Views


class Pair:
    """What there was, what there is, and what is which.

    Attributes:
        old: The old bindings.
        new: The new ones.
        names: Old name of a definition -> its new name, for those that still exist.
        causes: The findings that explain what differs.
        before: The types of the old revision.
        after: The types of the new one.
    """

    def __init__(self, comparison: Comparison) -> None:
        matches = match(comparison.old, comparison.new)
        self.old, self.new = Surface(comparison.old), Surface(comparison.new)
        self.names = new_names(comparison.old, comparison.new, matches)
        self.causes = Causes(comparison, matches, self.names)
        self.before, self.after = Views(comparison.old, self._renamed), Views(comparison.new)
        self._comparison = comparison

    def _renamed(self, name: str) -> str:
        """What a class is called in the new bindings; something that is no name there, if it is none any more."""
        new = self.names.get(name)
        return (self.new.class_of(new) if new is not None else None) or f"old {name}"

    @cached_property
    def _renamed_fields(self) -> dict[str, str]:
        """Subject of a member that has a new name -> its old name."""
        return {one.subject: one.old for one in self._comparison.findings if one.rule == "field-renamed"}

    def heir(self, definition: str) -> Object | None:
        """The class that takes the place of one."""
        new = self.names.get(definition)
        return self.new.object(new) if new is not None else None

    def successors(self, definition: str) -> dict[str, Field]:
        """Old wire name -> what a member is now, for those that still exist."""
        heir = self.heir(definition)
        found: dict[str, Field] = {}
        for field in heir.fields if heir is not None else ():
            subjects = self.causes.members(definition, field.wire)
            was = next((self._renamed_fields[one] for one in subjects if one in self._renamed_fields), field.wire)
            found[was] = field
        return found

    def heir_of(self, method: Method, sender: Sender | None = None, receiver: Sender | None = None) -> Method | None:
        """A method in the new revision, if there that side sends it, or takes it."""
        new = self.new.by_wire.get(method.name)
        if new is None or (sender is not None and sender not in new.senders):
            return None
        return None if receiver is not None and new.senders == (receiver,) else new

    def words(self, old: Type | None, new: Type | None) -> tuple[str, str]:
        """Two types in a few words; what stands behind a name, where both have the same."""
        words = in_words(old), in_words(new)
        if old is None or new is None or words[0] != words[1]:
            return words
        behind = in_words(self.old.protocol.resolve(old)), in_words(self.new.protocol.resolve(new))
        if behind[0] != behind[1]:
            return behind
        return f"{words[0]} of {self.old.protocol.revision}", f"{words[1]} of {self.new.protocol.revision}"

    def field_words(self, old: Field | None, new: Field) -> tuple[str, str]:
        """What two fields hold in a few words; there may be no old one."""
        words = self.words(old.type if old is not None else None, new.type)
        return (_optional(words[0], old) if old is not None else "", _optional(words[1], new))


def _optional(words: str, field: Field) -> str:
    return words if field.required else f"{words}, optional"


def in_words(type: Type | None) -> str:
    """A type in a few words."""
    return describe(type) if type is not None else "nothing"
