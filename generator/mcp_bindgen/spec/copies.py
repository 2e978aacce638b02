"""Replace copies of definitions in the schema of an extension with references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from mcp_bindgen.json_schema.keywords import PROSE

from . import canonical
from .json import is_object, listed
from .keywords import PREFIX, Schema, rebuild


@dataclass(frozen=True)
class Copy:
    """Copy of a core definition that differs from it; the core definition applies.

    Attributes:
        name: The definition.
        differences: One line for each difference, with a pointer into the definition.
    """

    name: str
    differences: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} differs from the core definition, which applies: {'; '.join(self.differences)}"


def differing(definitions: Mapping[str, Schema], core: Mapping[str, Schema]) -> tuple[Copy, ...]:
    """Return the definitions with the name of a core definition and a different structure."""
    found: list[Copy] = []
    for name in sorted(definitions.keys() & core.keys()):
        theirs, ours = (canonical.canonical_schema(side[name]) for side in (definitions, core))
        if theirs != ours:
            found.append(Copy(name, tuple(canonical.differences(ours, theirs))))
    return tuple(found)


def folded(own: Mapping[str, Schema], core: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the definitions `own` with references in place of inline copies of definitions of `own` or `core`.

    Copies are recognised by their structure, from the inside out. Ambiguous and very small structures stay inline.
    """
    result = dict(own)
    while (changed := _once(result, core)) != result:
        result = changed
    return result


def _once(own: Mapping[str, Schema], core: Mapping[str, Schema]) -> dict[str, Schema]:
    forms = _forms({**core, **own})

    def fold(schema: Schema, _: str = "") -> Schema:
        inner = rebuild(schema, fold)
        name = forms.get(_form(inner)) if _is_telling(inner) else None
        if name is None:
            return inner
        return {"$ref": f"{PREFIX}{name}", **{keyword: inner[keyword] for keyword in PROSE if keyword in inner}}

    return {name: rebuild(schema, fold) for name, schema in own.items()}


def _forms(definitions: Mapping[str, Schema]) -> dict[str, str | None]:
    """Return structure -> definition, or `None` for a structure of several definitions."""
    forms: dict[str, str | None] = {}
    for name, schema in definitions.items():
        if _is_telling(schema):
            form = _form(schema)
            forms[form] = None if form in forms else name
    return forms


def _form(schema: Schema) -> str:
    return json.dumps(canonical.canonical_schema(schema), separators=(",", ":"))


def _is_telling(schema: Schema) -> bool:
    """Return whether a structure is large enough to recognise: it has several members, alternatives or parts."""
    if "enum" in schema:
        return len(listed(schema["enum"])) > 1
    members = schema.get("properties")
    parts = (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ()))
    return (is_object(members) and len(members) > 1) or sum(map(_is_named, parts)) > 1


def _is_named(part: object) -> bool:
    """Return whether a part of a union is more than a plain JSON type."""
    return is_object(part) and part.keys() & {"$ref", "const", "enum", "properties", "allOf", "anyOf"} != set()
