"""Locate differences: units that are compared once, places inside of them, and changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from mcp_bindgen.protocol.model import Array, Map, Object, Ref, Sender, Type, Union

from .finding import Message

T = TypeVar("T")
Step = tuple[str, str]
"""How a place is reached from the one above: the kind of step, and the name of a member or of a form of a union."""

OLD, NEW = SIDES = (0, 1)
"""The two revisions: whatever comes in pairs has the old one first."""

HOW = ("removed", "added")
"""What happened to what only that side has."""

MARKS = frozenset(".[{|")
"""What a step begins with in subjects."""


@dataclass
class Unit:
    """Two types that are compared once, wherever they stand.

    Attributes:
        label: The subject of what is found at its top.
        types: The old and the new type.
        names: The old and the new definitions that it is, one of them or inside of them.
        within: The units in which it stands where it has no definition of its own in the old, or the new, revision.
        sent: Who sends it in which messages, where no definition tells.
        hidden: The members at its top that do not count.
        payload: The members at its top that are placeholders, and not on the wire.
        answers: The message that it answers, where it is all that answers one.
        wire: Whether it may be on the wire at all.
    """

    label: str
    types: tuple[Type, Type]
    names: tuple[set[str], set[str]] = field(default_factory=lambda: (set[str](), set[str]()))
    within: tuple[list[Unit], list[Unit]] = field(default_factory=lambda: (list["Unit"](), list["Unit"]()))
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
        types: The old and the new type there.
        above: The place around it.
        step: How it is reached from there.
        wire: Whether it is on the wire.
    """

    unit: Unit
    subject: str
    types: tuple[Type, Type]
    above: Location | None = None
    step: Step = ("form", "")
    wire: bool = True

    def below(self, kind: str, name: str, old: Type, new: Type, *, wire: bool = True) -> Location:
        """Return a place one step further down."""
        subject = self.subject + suffix(kind, name)
        return Location(self.unit, subject, (old, new), self, (kind, name), self.wire and wire)


@dataclass(frozen=True)
class Change:
    """Something that differs.

    Attributes:
        rule: The rule that it falls under.
        location: Where it is.
        words: What there was and what there is, in a few words.
        types: The old and the new type of just what changed: a member of an object, a form of a union, a value.
        parts: The rules whose impacts add up to it, where it is two changes in one.
        confused: Whether nothing rejects it, because it looks like something else.
        in_place: What it is unless it is part of a move: a member that only one side names, while the object of the
            other side takes it all the same.
    """

    rule: str
    location: Location
    words: tuple[str, str]
    types: tuple[Type | None, Type | None] = (None, None)
    parts: tuple[str, ...] = ()
    confused: bool = False
    in_place: Change | None = None

    @property
    def subject(self) -> str:
        """What it is."""
        return self.location.subject


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


def steps(type: Type) -> Iterator[tuple[Step, Type]]:
    """Return the types directly inside of `type`, with the steps to them; a reference has none."""
    match type:
        case Object(fields, extra):
            yield from ((("field", field.wire), field.type) for field in fields)
            yield from () if extra is None else [(("values", ""), extra)]
        case Array(items):
            yield ("items", ""), items
        case Map(values):
            yield ("values", ""), values
        case Union(members):
            yield from ((("form", one.name if isinstance(one, Ref) else ""), one) for one in members)
        case _:
            return


def is_inside(subject: str, place: str) -> bool:
    """Return whether a subject is something inside of a place."""
    return subject.startswith(place) and subject[len(place) :][:1] in MARKS


def root(subject: str) -> str:
    """Return the definition that a subject begins with."""
    return subject[: next((end for end, char in enumerate(subject) if char in MARKS), None)]


def only(side: int, value: T, nothing: T) -> tuple[T, T]:
    """Return a pair of which just one side has a value."""
    return (value, nothing) if side == OLD else (nothing, value)
