"""Name types that need more than a Python type expression where they stand inside of another one."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec import BadInput

from .. import naming
from ..model import Array, Definition, Map, Object, Ref, Scalar, Type, Union
from .draft import Draft


def name_refinements(draft: Draft) -> Draft:
    """Move tagged unions and constrained types out of arrays, maps and unions: `{Parent}{Property}`."""
    found: dict[str, Definition] = {}
    definitions = {
        name: replace(definition, type=_outer(definition.type, name, "", found))
        for name, definition in draft.definitions.items()
    }
    for name in found:
        if name in definitions:
            raise BadInput(
                f"an inline type would be named {name!r}, which is taken",
                pointer=f"/$defs/{name}",
                fix="rename one of them with a patch",
            )
    return replace(draft, definitions=dict(sorted({**definitions, **found}.items())))


def _outer(type: Type, parent: str, member: str, found: dict[str, Definition]) -> Type:
    """Return `type` in a place where it can be refined: a definition or a field."""
    match type:
        case Array(items, constraints):
            return Array(_inner(items, parent, member or "Item", found), constraints)
        case Map(values):
            return Map(_inner(values, parent, member or "Value", found))
        case Union(members, tag):
            return Union(tuple(_inner(option, parent, member or "Option", found) for option in members), tag)
        case Object(fields, extra):
            return Object(
                tuple(replace(field, type=_outer(field.type, parent, field.wire, found)) for field in fields),
                None if extra is None else _inner(extra, parent, "Extra", found),
            )
        case _:
            return type


def _inner(type: Type, parent: str, member: str, found: dict[str, Definition]) -> Type:
    type = _outer(type, parent, member, found)
    refined = (isinstance(type, Union) and type.tag is not None) or (
        isinstance(type, Scalar | Array) and bool(type.constraints)
    )
    if not refined:
        return type
    name = stem = naming.hoisted(parent, member)
    number = 1
    while name in found and found[name].type != type:
        number += 1
        name = f"{stem}{number}"
    found[name] = Definition(name, type, hoisted=True)
    return Ref(name)
