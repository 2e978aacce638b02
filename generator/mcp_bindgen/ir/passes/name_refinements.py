"""Name tagged and constrained types inside of other types."""

from __future__ import annotations

from dataclasses import replace

from .. import naming
from ..model import Array, Definition, Map, Object, Ref, Scalar, Type, Union
from .build_state import BuildState, numbered_name


def name_refinements(state: BuildState) -> BuildState:
    """Move tagged unions and constrained types out of arrays, maps and unions: `{Parent}{Property}`.

    Raises:
        BadInput: In strict mode: the new name is taken.
    """
    namer = _Namer(state)
    renamed = state.retyped(lambda name, type: namer.outer(type, name, ""))
    return replace(renamed, definitions=dict(sorted({**renamed.definitions, **namer.found}.items())))


class _Namer:
    """Makes definitions of types.

    Args:
        state: The state with the types.
    """

    def __init__(self, state: BuildState) -> None:
        self.state = state
        self.found: dict[str, Definition] = {}

    def outer(self, type: Type, parent: str, member: str) -> Type:
        """Return `type` in a place where it can be refined: a definition or a field."""
        match type:
            case Array(items, constraints):
                return Array(self.inner(items, parent, member or "Item"), constraints)
            case Map(values):
                return Map(self.inner(values, parent, member or "Value"))
            case Union(members, tag):
                return Union(tuple(self.inner(option, parent, member or "Option") for option in members), tag)
            case Object(fields, extra):
                return Object(
                    tuple(field.of(self.outer(field.type, parent, field.wire)) for field in fields),
                    None if extra is None else self.inner(extra, parent, "Extra"),
                )
            case _:
                return type

    def inner(self, type: Type, parent: str, member: str) -> Type:
        """Return `type` in a place where it cannot: a reference, if it would have to be."""
        type = self.outer(type, parent, member)
        refined = (isinstance(type, Union) and type.tag is not None) or (
            isinstance(type, Scalar | Array) and bool(type.constraints)
        )
        if not refined:
            return type
        name = self.free(naming.inline_name(parent, member), type, f"/$defs/{parent}")
        origin = self.state.definitions[parent].origin
        self.found[name] = Definition(name, type, inline=True, origin=origin)
        return Ref(name)

    def free(self, stem: str, type: Type, pointer: str) -> str:
        """Return `stem`, or with a number where another type has that name; `pointer` is the place of the type."""

        def is_taken(name: str) -> bool:
            return name in self.state.definitions or (name in self.found and self.found[name].type != type)

        if stem in self.state.definitions:
            fix = "rename one of them with a patch"
            return numbered_name(self.state.context, "an inline type", stem, is_taken, pointer, fix)
        return naming.numbered(stem, is_taken) if is_taken(stem) else stem
