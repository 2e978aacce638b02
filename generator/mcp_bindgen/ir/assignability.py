"""Decide whether one type accepts every value of another type."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.runtime.model.json_types import json_key
from mcp_bindgen.spec.json import is_json_type

from .model import AnyValue, Array, Const, Map, Object, Protocol, Ref, Scalar, Type, Union, is_implied


class Assignability:
    """Relation between the types of a receiver and the types of a sender.

    `accepts` is sound: True means that the receiver accepts every value of the sender. False means that this is not
    certain. A sender sends only the members that its types declare, also in open objects. Formats are annotations.

    Args:
        receiver: The protocol with the definitions of the receiver.
        sender: The protocol with the definitions of the sender.
    """

    def __init__(self, receiver: Protocol, sender: Protocol) -> None:
        self.receiver, self.sender = receiver, sender

    def accepts(self, wide: Type, narrow: Type, above: frozenset[tuple[str, str]] = frozenset()) -> bool:
        """Return whether `wide`, of the receiver, accepts every value of `narrow`, of the sender.

        Args:
            wide: Type of the receiver.
            narrow: Type of the sender.
            above: Pairs of definitions that contain these types, to end recursion.
        """
        if isinstance(wide, Ref) and isinstance(narrow, Ref):
            pair = wide.name, narrow.name
            if pair in above:
                return True
            above |= {pair}
        match self.receiver.resolve(wide), self.sender.resolve(narrow):
            case AnyValue(), _:
                return True
            case expected, Union(members):
                return all(self.accepts(expected, member, above) for member in members)
            case Const(values), Const(others):
                return {*map(json_key, others)} <= {*map(json_key, values)}
            case expected, Const((_, _, *_) as values):
                return all(self.accepts(expected, Const((value,)), above) for value in values)
            case Union(members), given:
                return any(self.accepts(member, given, above) for member in members)
            case Scalar() as expected, Scalar() as given:
                is_wide = expected.kind == given.kind or (expected.kind, given.kind) == ("number", "integer")
                return is_wide and _is_narrower(given, expected)
            case Scalar() as expected, Const((value,)):
                return not expected.constraints and is_json_type(value, expected.kind)
            case Array() as expected, Array() as given:
                return _is_narrower(given, expected) and self.accepts(expected.items, given.items, above)
            case (Object() | Map()) as expected, (Object() | Map()) as given:
                return self._accepts_object(as_object(expected), as_object(given), above)
            case _:
                return False

    def _accepts_object(self, wide: Object, narrow: Object, above: frozenset[tuple[str, str]]) -> bool:
        extra = None if is_implied(narrow.extra) else narrow.extra
        for field in wide.fields:
            sent = narrow.field(field.wire)
            if field.required and (sent is None or not sent.required):
                return False
            type = extra if sent is None else sent.type
            if type is not None and not self.accepts(field.type, type, above):
                return False
        others = [field.type for field in narrow.fields if wide.field(field.wire) is None]
        others += [] if extra is None else [extra]
        return all(wide.extra is not None and self.accepts(wide.extra, type, above) for type in others)


def as_object(type: Type) -> Object:
    """Return an object type; a map is an object without fields."""
    if isinstance(type, Map):
        return Object((), type.values)
    assert isinstance(type, Object)
    return type


def _is_narrower(narrow: Scalar | Array, wide: Scalar | Array) -> bool:
    """Return whether the limits of `narrow` allow no more than the limits of `wide`."""
    own = dict(narrow.constraints)
    return all(keyword in own and _is_within(keyword, own[keyword], limit) for keyword, limit in wide.constraints)


def _is_within(keyword: str, own: Any, limit: Any) -> bool:
    """Return whether a limit allows no more than another limit of the same keyword."""
    match keyword:
        case "minimum" | "exclusiveMinimum" | "minLength" | "minItems":
            return bool(own >= limit)
        case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems":
            return bool(own <= limit)
        case "multipleOf":
            return bool(own % limit == 0)
        case _:
            return bool(own == limit)
