"""Edit JSON values: the parts of which generated steps make their conversions.

Each part takes a value, which it may edit in place, and returns it. What is not of the kind that it expects is left as
it is: whoever reads the result says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .step import Convert, NotConvertible, Notes, Part, Remark

Test: TypeAlias = Callable[[Any], bool]


@dataclass(frozen=True)
class Ruling:
    """Say what a rule states of a place.

    Attributes:
        place: A definition and a member, or an alternative of a union there.
        reason: Why it is converted or refused.
        capability: The dotted capability, with its owner, that nobody in the target can have, if that is why.
    """

    place: str
    reason: str
    capability: str | None = None

    def lost(self, part: Part) -> Remark:
        """Return the remark that something is lost here."""
        return Remark(part, "lost", self.place, self.reason)

    def refused(self, part: Part) -> Remark:
        """Return the remark that something is refused here."""
        return Remark(part, "refused", self.place, self.reason)


@dataclass(frozen=True)
class Say:
    """The words of a function that converts: what is lost, and that something cannot be said at all."""

    ruling: Ruling
    notes: Notes

    def lost(self) -> None:
        """Note that the value arrives with less, or in other words."""
        self.notes.lost(self.ruling.place, self.ruling.reason)

    def refuse(self) -> NoReturn:
        """Refuse the payload; raises `NotConvertible`."""
        raise NotConvertible(self.ruling.place, self.ruling.reason, self.ruling.capability)


def rule(function: Callable[[Any, Say], Any], ruling: Ruling) -> Convert:
    """Let a function of `rules` convert the value."""
    return lambda value, notes: function(value, Say(ruling, notes))


def refuse(ruling: Ruling) -> Convert:
    """Refuse whatever comes here."""
    return lambda value, notes: Say(ruling, notes).refuse()


def members(
    edits: Mapping[str, Convert] | None = None,
    *,
    fill: Mapping[str, Any] | None = None,
    default: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    want: Mapping[str, Ruling] | None = None,
    only: Sequence[str] | None = None,
) -> Convert:
    """Edit the members of an object.

    Args:
        edits: Member -> what is done to it where it is there.
        fill: Member -> its value in the target, whatever the source has there: to it, the name means nothing.
        default: Member -> its value where it is not there.
        drop: Members that are left out.
        rename: Member -> its name in the target.
        want: Members without which the object is refused.
        only: Members that the target takes, where it takes no others.
    """
    filled, defaults = dict(fill or {}), dict(default or {})
    steps = tuple((edits or {}).items())

    def convert(value: Any, notes: Notes) -> Any:
        if not is_object(value):
            return value
        for name, edit in steps:
            if name in value:
                value[name] = edit(value[name], notes)
        for name in drop:
            value.pop(name, None)
        for old, new in (rename or {}).items():
            if old in value:
                value[new] = value.pop(old)
        for name, ruling in (want or {}).items():
            if name not in value:
                Say(ruling, notes).refuse()
        value.update(filled)
        for name, given in defaults.items():
            value.setdefault(name, given)
        return value if only is None else {name: value[name] for name in value if name in only}

    return convert


def items(edit: Convert) -> Convert:
    """Edit each item of an array."""

    def convert(value: Any, notes: Notes) -> Any:
        return [edit(item, notes) for item in value] if is_array(value) else value

    return convert


def values(edit: Convert) -> Convert:
    """Edit each value of an object."""

    def convert(value: Any, notes: Notes) -> Any:
        return {name: edit(item, notes) for name, item in value.items()} if is_object(value) else value

    return convert


def cases(*pairs: tuple[Test, Convert], rest: Convert | None = None) -> Convert:
    """Edit alternatives: a value that passes a test, one test after the other, or with `rest` one that passes none."""

    def convert(value: Any, notes: Notes) -> Any:
        is_known = False
        for test, edit in pairs:
            if test(value):
                value, is_known = edit(value, notes), True
        return value if is_known or rest is None else rest(value, notes)

    return convert


def keep(value: Any, notes: Notes) -> Any:
    """Leave a value as it is."""
    return value


def sequence(*edits: Convert) -> Convert:
    """Edit the same value several times."""

    def convert(value: Any, notes: Notes) -> Any:
        for edit in edits:
            value = edit(value, notes)
        return value

    return convert


def later(edit: Callable[[], Convert]) -> Convert:
    """Edit by what is not made yet: for definitions that contain themselves."""
    return lambda value, notes: edit()(value, notes)


def has(member: str, *, lacks: Sequence[str] = ()) -> Test:
    """Test whether a value is an object with a member, and not with all of some others."""

    def test(value: Any) -> bool:
        return is_object(value) and member in value and not (lacks and all(name in value for name in lacks))

    return test


def tagged(member: str, tag: object) -> Test:
    """Test whether a value is an object with a constant."""
    return lambda value: is_object(value) and value.get(member) == tag


def of_kind(kind: type) -> Test:
    """Test the kind of a JSON value: `dict`, `list`, `str`, `bool`, `int` or `float` for any number."""
    if kind in (int, float):
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    return lambda value: isinstance(value, kind)
