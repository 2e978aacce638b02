"""Locate differences: units that are compared once, places inside of them, and changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcp_bindgen.protocol.model import Sender, Type

from .finding import Message


@dataclass
class Unit:
    """Two types that are compared once, wherever they stand.

    Attributes:
        label: The subject of what is found at its top.
        old: The old type.
        new: The new type.
        olds: The old definitions that it is, one of them or inside of them.
        news: Likewise the new ones.
        within_old: The units in which it stands where it has no definition of its own in the old revision.
        within_new: Likewise in the new one.
        sent: Who sends it in which messages, where no definition tells.
        hidden: The members at its top that do not count.
        payload: The members at its top that are placeholders, and not on the wire.
        answers: The message that it answers, where it is all that answers one.
        wire: Whether it may be on the wire at all.
    """

    label: str
    old: Type
    new: Type
    olds: set[str] = field(default_factory=set[str])
    news: set[str] = field(default_factory=set[str])
    within_old: list[Unit] = field(default_factory=list["Unit"])
    within_new: list[Unit] = field(default_factory=list["Unit"])
    sent: dict[Sender, set[Message]] | None = None
    hidden: frozenset[str] = frozenset()
    payload: frozenset[str] = frozenset()
    answers: str = ""
    wire: bool = True


@dataclass(frozen=True)
class Location:
    """A place inside of a unit.

    Attributes:
        unit: The unit.
        subject: The name of the place.
        old: The old type there, definitions followed.
        new: The new type there.
        above: The place around it.
        step: How it is reached from there: the wire name of a member, `[]`, `{}`, or nothing for a form of a union.
        wire: Whether it is on the wire.
    """

    unit: Unit
    subject: str
    old: Type
    new: Type
    above: Location | None = None
    step: tuple[str, str] = ("form", "")
    wire: bool = True

    def below(self, kind: str, name: str, old: Type, new: Type, *, wire: bool = True) -> Location:
        """Return a place one step further down."""
        return Location(self.unit, self.subject + suffix(kind, name), old, new, self, (kind, name), self.wire and wire)


@dataclass(frozen=True)
class Change:
    """Something that differs.

    Attributes:
        rule: The rule that it falls under.
        subject: What it is.
        old: What there was, in a few words.
        new: What there is.
        location: Where it is.
        old_type: The old type of just what changed: a member of an object, a form of a union, a value.
        new_type: Likewise the new one.
        parts: The rules whose impacts add up to it, where it is two changes in one.
        confused: Whether nothing rejects it, because it looks like something else.
    """

    rule: str
    subject: str
    old: str
    new: str
    location: Location
    old_type: Type | None = None
    new_type: Type | None = None
    parts: tuple[str, ...] = ()
    confused: bool = False


def suffix(kind: str, name: str) -> str:
    """Write a step as subjects have it."""
    match kind:
        case "field":
            return f".{name}" if name.isidentifier() else f'["{name}"]'
        case "items":
            return "[]"
        case "values":
            return "{}"
        case _:
            return f"|{name}" if name else ""
