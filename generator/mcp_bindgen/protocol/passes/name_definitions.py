"""Give every definition a name that a class can have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcp_bindgen.spec import BadInput, Schema
from mcp_bindgen.spec.keywords import rebuild
from mcp_bindgen.spec.pointer import join
from mcp_bindgen.spec.references import target

from .. import naming
from .draft import Draft


def name_definitions(draft: Draft) -> Draft:
    """Rename the definitions whose names no class can have, and the references to them.

    Raises:
        BadInput: In a strict reading: there is such a name.
    """
    others: dict[str, str] = {}
    for name in sorted(name for name in draft.schemas if not naming.is_definition(name)):
        error = BadInput(
            f"the definition {name!r} cannot be a name in Python bindings",
            pointer=join("/$defs", name),
            fix="rename it to letters and digits, the first one a capital letter",
        )
        taken = {*draft.schemas, *others.values()}
        other = naming.definition(name)
        others[name] = naming.numbered(other, taken.__contains__) if other in taken else other
        known = f", which is also importable as {name!r}" if naming.is_importable(name) else ""
        draft.reading.settle("definition-name", error, f"the class is {others[name]!r}{known}")
        draft.reading.moved(others[name], join("/$defs", name))
    if not others:
        return draft
    schemas = {others.get(name, name): _renamed(schema, others) for name, schema in draft.schemas.items()}
    origins = {others.get(name, name): origin for name, origin in draft.origins.items()}
    return replace(draft, schemas=schemas, origins=origins, renamed={other: name for name, other in others.items()})


def _renamed(schema: Schema, others: Mapping[str, str]) -> Schema:
    if "$ref" in schema:
        name = target(schema["$ref"])
        return {**schema, "$ref": f"#/$defs/{others.get(name, name)}"} if name in others else schema
    return rebuild(schema, lambda child, _: _renamed(child, others))
