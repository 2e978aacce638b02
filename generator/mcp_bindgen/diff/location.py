"""Units of comparison, places in them, and changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from mcp_bindgen.ir.model import Array, Map, Object, Ref, Sender, Type, Union

from .finding import Message

T = TypeVar("T")
Step = tuple[str, str]
"""Step from a place to a place inside: the kind, and the name of a member or of a variant of a union."""

OLD, NEW = SIDES = (0, 1)
"""Indices of the two revisions in pairs: the old revision comes first."""

HOW = ("removed", "added")
"""Change of a subject that only the old, or only the new, side has."""

MARKS = frozenset(".[{|")
"""First characters of steps in subjects."""


@dataclass
class Unit:
    """Two types that are compared once for all their places.

    Attributes:
        label: Subject of the unit.
        types: The old and the new type.
        names: The old and the new definitions that are or contain the unit.
        within: The units that contain it, besides those of its definitions.
        sent: Senders and messages, if no definition determines them.
        hidden: Ignored members at its top.
        payload: Members at its top that are placeholders and not on the wire.
        answers: The message of which it is the result, if it is the whole result.
        wire: True if it may be on the wire.
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
    """Place in a unit.

    Attributes:
        unit: The unit.
        subject: Name of the place.
        types: The old and the new type there.
        above: Place that contains it.
        step: Step from that place.
        wire: True if it is on the wire.
    """

    unit: Unit
    subject: str
    types: tuple[Type, Type]
    above: Location | None = None
    step: Step = ("form", "")
    wire: bool = True

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the steps from the top of the unit."""
        return (*(self.above.path if self.above is not None else ()), *filter(None, self.step[1:]))

    def below(self, kind: str, name: str, old: Type, new: Type, *, wire: bool = True) -> Location:
        """Return a place inside of this one."""
        subject = self.subject + suffix(kind, name)
        return Location(self.unit, subject, (old, new), self, (kind, name), self.wire and wire)


@dataclass(frozen=True)
class Change:
    """Difference between the revisions.

    Attributes:
        rule: Id of the rule.
        location: Its place.
        descriptions: Short descriptions of the old and the new state.
        types: The old and the new type of the changed part: a member of an object, a variant of a union, a value.
        parts: Rules with the impacts of the change, if it combines several changes.
        confused: True if another variant accepts the value, so that no side rejects it.
        in_place: Alternative change, if it is not part of a move: the object of the other side accepts the member
            without naming it.
    """

    rule: str
    location: Location
    descriptions: tuple[str, str]
    types: tuple[Type | None, Type | None] = (None, None)
    parts: tuple[str, ...] = ()
    confused: bool = False
    in_place: Change | None = None

    @property
    def subject(self) -> str:
        """Name of the changed part."""
        return self.location.subject


def around(unit: Unit, side: int) -> list[Unit]:
    """Return a unit and all units that contain it in one revision."""
    found, pending = {id(unit): unit}, [unit]
    while pending:
        new = {id(one): one for one in pending.pop().within[side] if id(one) not in found}
        found |= new
        pending += new.values()
    return list(found.values())


def suffix(kind: str, name: str) -> str:
    """Return a step as text in a subject."""
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
    """Return whether a subject is inside of a place."""
    return subject.startswith(place) and subject[len(place) :][:1] in MARKS


def root(subject: str) -> str:
    """Return the definition at the start of a subject."""
    return subject[: next((end for end, char in enumerate(subject) if char in MARKS), None)]


def only(side: int, value: T, nothing: T) -> tuple[T, T]:
    """Return a pair with a value on one side."""
    return (value, nothing) if side == OLD else (nothing, value)
