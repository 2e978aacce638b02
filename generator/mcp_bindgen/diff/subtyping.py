"""Decide whether one type accepts every value of another, as far as their structure tells."""

from __future__ import annotations

from mcp_bindgen.protocol.model import Array, Const, Free, Map, Object, Protocol, Ref, Scalar, Type, Union

from .normalize import as_object, is_value

_Pair = tuple[str, str]


class Subtyping:
    """Compares a type of one revision with a type of another.

    Args:
        wide: The revision of the receiver.
        narrow: The revision of the sender, who sends only the members that it declares.
    """

    def __init__(self, wide: Protocol, narrow: Protocol) -> None:
        self.wide, self.narrow = wide, narrow

    def covers(self, wide: Type, narrow: Type, above: frozenset[_Pair] = frozenset()) -> bool:
        """Return whether `wide` certainly accepts every value of `narrow`; recursion counts as yes."""
        if isinstance(wide, Ref) and isinstance(narrow, Ref):
            pair = wide.name, narrow.name
            if pair in above:
                return True
            above |= {pair}
        wide, narrow = self.wide.resolve(wide), self.narrow.resolve(narrow)
        if isinstance(wide, Free):
            return True
        if isinstance(narrow, Union):
            return all(self.covers(wide, member, above) for member in narrow.members)
        if isinstance(wide, Union):
            return any(self.covers(member, narrow, above) for member in wide.members)
        match wide, narrow:
            case Scalar(), Scalar():
                fits = wide.kind == narrow.kind or (wide.kind, narrow.kind) == ("number", "integer")
                return fits and set(wide.constraints) <= set(narrow.constraints)
            case Scalar(), Const(values):
                return not wide.constraints and all(is_value(wide, value) for value in values)
            case Const(), Const():
                return {repr(value) for value in narrow.values} <= {repr(value) for value in wide.values}
            case Array(), Array():
                return set(wide.constraints) <= set(narrow.constraints) and self.covers(wide.items, narrow.items, above)
            case Object() | Map(), Object() | Map():
                return self._objects(as_object(wide), as_object(narrow), above)
            case _:
                return False

    def _objects(self, wide: Object, narrow: Object, above: frozenset[_Pair]) -> bool:
        for field in wide.fields:
            sent = narrow.field(field.wire)
            if field.required and (sent is None or not sent.required):
                return False
            if sent is not None and not self.covers(field.type, sent.type, above):
                return False
        others = [field.type for field in narrow.fields if wide.field(field.wire) is None]
        if narrow.extra is not None and narrow.extra != Free():
            others.append(narrow.extra)
        return all(wide.extra is not None and self.covers(wide.extra, type, above) for type in others)
