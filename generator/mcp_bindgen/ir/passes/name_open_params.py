"""Name params that may be any object, so that they are a class as all other params are."""

from __future__ import annotations

from dataclasses import replace

from .. import naming
from ..model import AnyValue, Definition, Map, Object, Ref, Type
from .build_state import BuildState, numbered_name
from .collect_methods import method_of

_MEMBER = "params"


def name_open_params(state: BuildState) -> BuildState:
    """Make a definition, `{Message}Params`, of params that name no member: `{}`, or `{"type": "object"}`.

    Raises:
        BadInput: In strict mode: the new name is taken.
    """
    found: dict[str, Definition] = {}
    taken = set(state.definitions)
    for name, definition in state.definitions.items():
        field = definition.type.field(_MEMBER) if isinstance(definition.type, Object) else None
        extra = _values(state.resolve(field.type)) if field is not None else None
        if field is None or extra is None or method_of(definition) is None:
            continue
        assert isinstance(definition.type, Object)
        named = naming.inline_name(name, _MEMBER)
        if named in taken:
            pointer, fix = f"/$defs/{name}/properties/{_MEMBER}", f"refer to {named!r} there, or rename it with a patch"
            named = numbered_name(state.context, "the type of its params", named, taken.__contains__, pointer, fix)
        taken.add(named)
        fields = tuple(replace(one, type=Ref(named)) if one is field else one for one in definition.type.fields)
        found[name] = replace(definition, type=replace(definition.type, fields=fields))
        found[named] = Definition(named, Object((), extra), field.doc, inline=True, origin=definition.origin)
    return replace(state, definitions=dict(sorted({**state.definitions, **found}.items())))


def _values(type: Type) -> Type | None:
    """Return the type of any member of a type that names none; `None` for other types."""
    match type:
        case AnyValue():
            return type
        case Map(values):
            return values
        case _:
            return None
