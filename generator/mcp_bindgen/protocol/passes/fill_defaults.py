"""Say what a constructor fills in for a field that the wire requires."""

from __future__ import annotations

from dataclasses import replace

from ..model import Const, Definition, Field, Json, Object
from .draft import Draft


def fill_defaults(draft: Draft) -> Draft:
    """Give required constants their one value, and the fields that `semantics.toml` names theirs."""
    return replace(
        draft, definitions={name: _filled(definition, draft) for name, definition in draft.definitions.items()}
    )


def _filled(definition: Definition, draft: Draft) -> Definition:
    if not isinstance(definition.type, Object):
        return definition
    stated = draft.semantics["defaults"]
    fields = tuple(
        replace(field, default=_default(field, stated.get(f"{definition.name}.{field.wire}", stated.get(field.wire))))
        for field in definition.type.fields
    )
    return replace(definition, type=replace(definition.type, fields=fields))


def _default(field: Field, stated: Json) -> Json:
    if not field.required:
        return None
    if isinstance(field.type, Const):
        if len(field.type.values) == 1:
            return field.type.values[0]
        return stated if stated in field.type.values else None
    return stated
