"""Whether a value of one type may stand where another is expected, as a type checker sees generated code."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mcp_bindgen.protocol.model import Array, Const, Free, Map, Object, Protocol, Ref, Scalar, Type, Union

from ..subtyping import Subtyping

NULL = Scalar("null")
"""The type of `None`."""

MAPPING = Object(())
"""Any mapping: what a call takes as metadata that it completes itself."""

_Pairs = frozenset[tuple[str, str]]


class Assignable(Subtyping):
    """Compares types by structure, but classes by name.

    Args:
        wide: The revision of what is expected.
        narrow: The revision of the value.
        same: Whether a class of the one is a class of the other.
    """

    def __init__(self, wide: Protocol, narrow: Protocol, same: Callable[[str, str], bool]) -> None:
        super().__init__(wide, narrow)
        self._same = same

    def covers(self, wide: Type | None, narrow: Type | None, above: _Pairs = frozenset()) -> bool:
        """Tell whether every value of `narrow` may stand where `wide` is expected; no type is `None`."""
        wide, narrow = wide or NULL, narrow or NULL
        if isinstance(wide, Ref) and isinstance(narrow, Ref):
            if (wide.name, narrow.name) in above:
                return True
            above |= {(wide.name, narrow.name)}
        expected = list(_alternatives(wide, self.wide))
        return all(
            any(self._takes(one, other, above) for one in expected) for other in _alternatives(narrow, self.narrow)
        )

    def _takes(self, wide: Type, narrow: Type, above: _Pairs) -> bool:
        match wide, narrow:
            case Ref(expected), Ref(given):
                return self._same(expected, given)
            case (Ref(), _) | (_, Ref()):
                return False
            case (Object(), _) | (_, Object()):
                return isinstance(wide, Object) and isinstance(narrow, Object | Map)
            case (Free(), Array(inner)) | (Free(), Map(inner)):
                return self.covers(wide, inner, above)
            case Map(values), Map(others):
                return self.covers(values, others, above)
            case _:
                return super().covers(wide, narrow, above)


def _alternatives(type: Type, protocol: Protocol) -> Iterator[Type]:
    """The types that a value may be of: aliases and unions resolved, classes as references."""
    match type:
        case Ref(name):
            inner = protocol.definitions[name].type
            yield from [type] if isinstance(inner, Object) else _alternatives(inner, protocol)
        case Union(members):
            for member in members:
                yield from _alternatives(member, protocol)
        case Const(values):
            yield from (NULL if value is None else Const((value,)) for value in values)
        case _:
            yield type
