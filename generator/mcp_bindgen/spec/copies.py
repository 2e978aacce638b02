"""Fold the copies of definitions that a schema of an extension carries: they become references."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from . import canonical
from .json import is_object, listed
from .keywords import PREFIX, PROSE, Schema, rebuild


@dataclass(frozen=True)
class Copy:
    """A copy of a definition of core that says something else; core's is the one that holds.

    Attributes:
        name: The definition.
        differences: One line for each place at which it differs, with a pointer into the definition.
    """

    name: str
    differences: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} is not what core says, whose definition holds: {'; '.join(self.differences)}"


def differing(definitions: Mapping[str, Schema], core: Mapping[str, Schema]) -> tuple[Copy, ...]:
    """Return the definitions that have the name of one of core's, and another structure."""
    found: list[Copy] = []
    for name in sorted(definitions.keys() & core.keys()):
        theirs, ours = (canonical.canonical_schema(side[name]) for side in (definitions, core))
        if theirs != ours:
            found.append(Copy(name, tuple(canonical.differences(ours, theirs))))
    return tuple(found)


def folded(own: Mapping[str, Schema], core: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the definitions `own` with a reference wherever one of them, or of `core`, is repeated inline.

    What is repeated is recognised by its structure, from the inside out. Structures that two definitions share, and
    those too small to be recognised, stay where they are.
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
    """Return structure -> the one definition that has it; `None` where several have it."""
    forms: dict[str, str | None] = {}
    for name, schema in definitions.items():
        if _is_telling(schema):
            form = _form(schema)
            forms[form] = None if form in forms else name
    return forms


def _form(schema: Schema) -> str:
    return json.dumps(canonical.canonical_schema(schema), separators=(",", ":"))


def _is_telling(schema: Schema) -> bool:
    """Return whether a structure is one that is not repeated by chance: several members, alternatives or parts."""
    if "enum" in schema:
        return len(listed(schema["enum"])) > 1
    members = schema.get("properties")
    parts = (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ()))
    return (is_object(members) and len(members) > 1) or sum(map(_is_named, parts)) > 1


def _is_named(part: object) -> bool:
    """Return whether a part of a union is more than one of JSON's types."""
    return is_object(part) and part.keys() & {"$ref", "const", "enum", "properties", "allOf", "anyOf"} != set()
