"""Match the alternatives of two unions, and find tests that tell values of them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mcp_bindgen.ir.assignability import Assignability
from mcp_bindgen.ir.model import Array, Const, Field, Map, Object, Protocol, Ref, Scalar, Type, Union
from mcp_bindgen.runtime.model.json_types import json_key
from mcp_bindgen.spec.json import json_type_of

from .edits import Test


def alternatives(protocol: Protocol, type: Type) -> list[Type]:
    """Return the alternatives of a type, with nested unions flattened; other types are their only alternative."""
    resolved = protocol.resolve(type)
    if isinstance(resolved, Union):
        return list(dict.fromkeys(leaf for member in resolved.members for leaf in alternatives(protocol, member)))
    return [final(protocol, type) if isinstance(resolved, Object) else resolved]


def final(protocol: Protocol, type: Type) -> Type:
    """Return the last reference in a chain of references."""
    while isinstance(type, Ref) and isinstance(inner := protocol.definitions[type.name].type, Ref):
        type = inner
    return type


def label(type: Type) -> str:
    """Return the name of an alternative in paths: the name of its definition, or its JSON type."""
    if isinstance(type, Ref):
        return type.name
    return {"array": "[]", "object": "{}"}.get(kind(type), kind(type))


def kind(type: Type) -> str:
    """Return the JSON type of a type that is neither a reference nor a union."""
    match type:
        case Object() | Map():
            return "object"
        case Array():
            return "array"
        case Scalar(name):
            return name
        case Const((value, *_)):
            return json_type_of(value)
        case _:
            return "any"


def is_stated(protocol: Protocol, member: Field) -> bool:
    """Return True if a required member has a stated value, so that it may have other values, too."""
    return member.required and member.filled is not None and len(_constants(protocol, member)) != 1


class Matching:
    """Matching of the alternatives of a type in two revisions.

    Args:
        source: The revision of the messages.
        target: The revision that they are converted to.
    """

    def __init__(self, source: Protocol, target: Protocol) -> None:
        self._source = source
        self._target = target
        self._relation = Assignability(target, source)

    def counterpart(self, one: Type, others: Sequence[Type]) -> Type | None:
        """Return the target's alternative for `one`: by name, else the most similar."""
        if isinstance(one, Ref) and one in others:
            return one
        able = (other for other in others if self._is_able(one, other))
        return max(able, key=lambda other: self._likeness(one, other), default=None)

    def test(self, one: Type, rest: Iterable[Type]) -> Test:
        """Return a test that `one` passes and as few as possible of the `rest`."""
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
        """Return True if values may correspond: same JSON type, compatible constants, required members."""
        mine, theirs = self._source.resolve(one), self._target.resolve(other)
        if isinstance(mine, Object) and isinstance(theirs, Object):
            return all(self._is_meant(mine.field(member.wire), member) for member in theirs.fields)
        if isinstance(mine, Array | Map) or isinstance(theirs, Array | Map):
            return type(mine) is type(theirs)
        return self._relation.accepts(theirs, mine)

    def _is_meant(self, mine: Field | None, theirs: Field) -> bool:
        if mine is None:
            return not theirs.required or is_stated(self._target, theirs)
        ours, others = _constants(self._source, mine), _constants(self._target, theirs)
        return not ours or not others or not {*map(json_key, ours)}.isdisjoint(map(json_key, others))

    def _likeness(self, one: Type, other: Type) -> int:
        mine, theirs = self._source.resolve(one), self._target.resolve(other)
        if isinstance(mine, Object) and isinstance(theirs, Object):
            return len({member.wire for member in mine.fields} & {member.wire for member in theirs.fields})
        return 0


def _constants(protocol: Protocol, member: Field) -> tuple[Any, ...]:
    """Return the constants of a member."""
    resolved = protocol.resolve(member.type)
    return resolved.values if isinstance(resolved, Const) else ()


def _marks(protocol: Protocol, member: Field) -> tuple[Any, ...]:
    """Return the values of a member that identify its object: its constants, or its stated value."""
    return _constants(protocol, member) or (() if member.default is None else (member.default,))
