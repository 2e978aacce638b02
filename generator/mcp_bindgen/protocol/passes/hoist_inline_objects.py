"""Hoist inline objects: they get a name of their own, `{Parent}{Property}`."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec import BadInput, Schema
from mcp_bindgen.spec.json import is_object

from .. import naming
from .draft import Draft


def hoist_inline_objects(draft: Draft) -> Draft:
    """Move each object with members of its own out of its place and into a definition.

    Raises:
        BadInput: The new name is taken.
    """
    hoist = _Hoist(set(draft.schemas))
    schemas = {name: hoist.definition(name, schema) for name, schema in draft.schemas.items()}
    return replace(draft, schemas={**schemas, **hoist.found}, hoisted=frozenset(hoist.found))


class _Hoist:
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.found: dict[str, Schema] = {}

    def definition(self, name: str, schema: Schema) -> Schema:
        """Return `schema`, which stays where it is, with everything inline below it moved out."""
        result = dict(schema)
        for keyword, member in (("items", "Item"), ("additionalProperties", "Value")):
            if is_object(schema.get(keyword)):
                result[keyword] = self.place(name, member, schema[keyword])
        if "properties" in schema:
            result["properties"] = {
                member: self.place(name, member, child) for member, child in schema["properties"].items()
            }
        return self.unions(result, name, "Option")

    def place(self, parent: str, member: str, schema: Schema | bool) -> Schema | bool:
        """Return what takes the place of `schema`: itself, or a reference to where it was moved."""
        if not is_object(schema):
            return schema
        if _has_members(schema):
            return self.move(naming.hoisted(parent, member), schema)
        result = dict(schema)
        for keyword in ("items", "additionalProperties"):
            if keyword in schema:
                result[keyword] = self.place(parent, member, schema[keyword])
        return self.unions(result, parent, member)

    def unions(self, schema: Schema, parent: str, member: str) -> Schema:
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                inline = [option for option in schema[keyword] if is_object(option) and _has_members(option)]
                several = len(inline) > 1
                schema[keyword] = [
                    self.place(
                        parent,
                        f"{member}{inline.index(option) + 1}" if several and option in inline else member,
                        option,
                    )
                    for option in schema[keyword]
                ]
        return schema

    def move(self, name: str, schema: Schema) -> Schema:
        if name in self.taken:
            raise BadInput(
                f"an inline object would be named {name!r}, which is taken",
                pointer=f"/$defs/{name}",
                fix="rename one of them with a patch",
            )
        self.taken.add(name)
        self.found[name] = self.definition(name, schema)
        return {"$ref": f"#/$defs/{name}"}


def _has_members(schema: Schema) -> bool:
    """Return whether a schema has members of its own; otherwise it is a plain dictionary and needs no class."""
    return bool(schema.get("properties")) or schema.get("additionalProperties") is False or bool(schema.get("required"))
