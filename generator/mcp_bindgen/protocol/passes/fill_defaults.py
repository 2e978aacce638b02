"""Say what a constructor fills in for a field that the wire requires."""

from __future__ import annotations

from dataclasses import replace

from ..model import Const, Definition, Field, Json, Object
from .draft import Draft


def fill_defaults(draft: Draft) -> Draft:
    """Give required constants their one value, and the fields that `semantics.toml` names theirs.

    What core states of fields without their definition holds for a definition of an extension only where the field is
    one of core's `Result`.
    """
    return replace(
        draft, definitions={name: _filled(definition, draft) for name, definition in draft.definitions.items()}
    )


def _filled(definition: Definition, draft: Draft) -> Definition:
    if not isinstance(definition.type, Object):
        return definition
    stated = draft.facts_about(definition)["defaults"]
    if definition.origin:
        stated = {**_inherited(definition.type, draft), **stated}
    fields = tuple(
        replace(field, default=_default(field, stated.get(f"{definition.name}.{field.wire}", stated.get(field.wire))))
        for field in definition.type.fields
    )
    return replace(definition, type=replace(definition.type, fields=fields))


def _inherited(type: Object, draft: Draft) -> dict[str, Json]:
    """Return what core states of the fields of its `Result` that `type` has too."""
    base = draft.definitions.get("Result")
    fields = base.type.fields if base is not None and isinstance(base.type, Object) else ()
    stated = draft.semantics["defaults"]
    same = [field.wire for field in fields if (own := type.field(field.wire)) is not None and own.type == field.type]
    return {wire: stated[wire] for wire in same if wire in stated}


def _default(field: Field, stated: Json) -> Json:
    if not field.required:
        return None
    if isinstance(field.type, Const):
        if len(field.type.values) == 1:
            return field.type.values[0]
        return stated if stated in field.type.values else None
    return stated
