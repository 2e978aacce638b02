"""Find out which alternative of one union is which of another, and how values tell them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mcp_bindgen.protocol.model import Array, Const, Field, Map, Object, Protocol, Ref, Scalar, Type, Union

from .edits import Test


def alternatives(protocol: Protocol, type: Type) -> list[Type]:
    """Return the alternatives of a type, those of unions in it too; one that is no union is its only one."""
    resolved = protocol.resolve(type)
    if isinstance(resolved, Union):
        return list(dict.fromkeys(leaf for member in resolved.members for leaf in alternatives(protocol, member)))
    return [final(protocol, type) if isinstance(resolved, Object) else resolved]


def final(protocol: Protocol, type: Type) -> Type:
    """Follow references to references, and stop at the last one."""
    while isinstance(type, Ref) and isinstance(inner := protocol.definitions[type.name].type, Ref):
        type = inner
    return type


def label(type: Type) -> str:
    """Return the name of an alternative in paths: that of its definition, or else of its JSON kind."""
    if isinstance(type, Ref):
        return type.name
    return {"array": "[]", "object": "{}"}.get(kind(type), kind(type))


def kind(type: Type) -> str:
    """Return the JSON kind of what is no reference and no union."""
    match type:
        case Object() | Map():
            return "object"
        case Array():
            return "array"
        case Scalar(name):
            return name
        case Const((str(), *_)):
            return "string"
        case _:
            return "any"


def fits(ours: Type, theirs: Type) -> bool:
    """Tell whether a scalar or constant type takes all values of another one."""
    match ours, theirs:
        case Const(values), Const(others):
            return set(values) <= set(others)
        case Const(values), Scalar(name, ()):
            return name == "string" and all(isinstance(value, str) for value in values)
        case Scalar(name, constraints), Scalar(other, limits):
            return (name == other or (name, other) == ("integer", "number")) and set(limits) <= set(constraints)
        case _:
            return False


def is_stated(protocol: Protocol, member: Field) -> bool:
    """Tell whether a required member has a default that somebody stated: other values are possible, too."""
    return member.required and member.default is not None and len(_constants(protocol, member)) != 1


class Matching:
    """The alternatives of a type of one revision beside those of another.

    Args:
        source: The revision of what goes in.
        target: The revision of what comes out.
    """

    def __init__(self, source: Protocol, target: Protocol) -> None:
        self._source = source
        self._target = target

    def counterpart(self, one: Type, others: Sequence[Type]) -> Type | None:
        """Return the alternative of the target that `one` is: the one of its name, or else the one most like it."""
        if isinstance(one, Ref) and one in others:
            return one
        able = (other for other in others if self._is_able(one, other))
        return max(able, key=lambda other: self._likeness(one, other), default=None)

    def test(self, one: Type, rest: Iterable[Type]) -> Test:
        """Return the test that `one` passes and, of the others, as few as can be."""
        mine, others = self._source.resolve(one), [self._source.resolve(other) for other in rest]
        rivals = [other for other in others if isinstance(other, Object)]
        if not isinstance(mine, Object) or not rivals:
            return Test(kind(mine))
        for member in mine.fields:
            marks = _marks(self._source, member)
            theirs = [other for rival in rivals if (other := rival.field(member.wire)) is not None]
            is_shared = any(set(marks) & set(_marks(self._source, other)) for other in theirs)
            if member.required and len(marks) == 1 and not is_shared:
                return Test("object", member.wire, marks[0])
        for member in mine.fields:
            if member.required and not any(rival.field(member.wire) for rival in rivals):
                wanted = dict.fromkeys(other.wire for rival in rivals for other in rival.fields if other.required)
                return Test("object", member.wire, lacks=tuple(name for name in wanted if mine.field(name) is None))
        return Test("object")

    def _is_able(self, one: Type, other: Type) -> bool:
        """Tell whether a value could be meant: the same kind, no other constants, and all that is wanted."""
        mine, theirs = self._source.resolve(one), self._target.resolve(other)
        if isinstance(mine, Object) and isinstance(theirs, Object):
            return all(self._is_meant(mine.field(member.wire), member) for member in theirs.fields)
        if isinstance(mine, Array | Map) or isinstance(theirs, Array | Map):
            return type(mine) is type(theirs)
        return fits(mine, theirs)

    def _is_meant(self, mine: Field | None, theirs: Field) -> bool:
        if mine is None:
            return not theirs.required or is_stated(self._target, theirs)
        ours, others = _constants(self._source, mine), _constants(self._target, theirs)
        return not ours or not others or not set(ours).isdisjoint(others)

    def _likeness(self, one: Type, other: Type) -> int:
        mine, theirs = self._source.resolve(one), self._target.resolve(other)
        if isinstance(mine, Object) and isinstance(theirs, Object):
            return len({member.wire for member in mine.fields} & {member.wire for member in theirs.fields})
        return 0


def _constants(protocol: Protocol, member: Field) -> tuple[Any, ...]:
    """Return the values that a member may have, where they are few."""
    resolved = protocol.resolve(member.type)
    return resolved.values if isinstance(resolved, Const) else ()


def _marks(protocol: Protocol, member: Field) -> tuple[Any, ...]:
    """Return the values that tell what has the member: its constants, or the default that stands for its kind."""
    return _constants(protocol, member) or (() if member.default is None else (member.default,))
