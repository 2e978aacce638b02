"""Make a definition of each inline object, named `{Parent}{Property}` with shared words once."""

from __future__ import annotations

from mcp_bindgen.spec import DiagnosticContext, Schema
from mcp_bindgen.spec.json import is_object, join
from mcp_bindgen.spec.keywords import has_members
from mcp_bindgen.spec.references import reference

from .. import naming
from .build_state import BuildState, numbered_name


def extract_inline_objects(state: BuildState) -> BuildState:
    """Move each object with members of its own out of its place and into a definition.

    Raises:
        BadInput: In strict mode: the new name is taken.
    """
    extraction = _Extraction(set(state.schemas), state.context)
    schemas = {
        name: extraction.definition(name, state.schemas[name], join("/$defs", name)) for name in sorted(state.schemas)
    }
    return state.extracted(schemas, extraction.found, extraction.tops)


class _Extraction:
    def __init__(self, taken: set[str], context: DiagnosticContext) -> None:
        self.taken, self.context = taken, context
        self.found: dict[str, Schema] = {}
        self.tops: dict[str, str] = {}
        self.stems: dict[str, str] = {}

    def definition(self, name: str, schema: Schema, here: str) -> Schema:
        """Return `schema`, which stays where it is, with everything inline below it moved out."""
        result = dict(schema)
        for keyword, member in (("items", "Item"), ("additionalProperties", "Value")):
            if is_object(schema.get(keyword)):
                result[keyword] = self.place(name, member, schema[keyword], join(here, keyword))
        if "properties" in schema:
            result["properties"] = {
                member: self.place(name, member, child, join(here, "properties", member))
                for member, child in schema["properties"].items()
            }
        return self.unions(result, name, "Option", here)

    def place(self, parent: str, member: str, schema: Schema | bool, here: str) -> Schema | bool:
        """Return the replacement of `schema`: itself, or a reference to its new definition."""
        if not is_object(schema):
            return schema
        if has_members(schema):
            return self.move(parent, member, schema, here)
        result = dict(schema)
        for keyword in ("items", "additionalProperties"):
            if keyword in schema:
                result[keyword] = self.place(parent, member, schema[keyword], join(here, keyword))
        return self.unions(result, parent, member, here)

    def unions(self, schema: Schema, parent: str, member: str, here: str) -> Schema:
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                inline = [option for option in schema[keyword] if is_object(option) and has_members(option)]
                several = len(inline) > 1
                schema[keyword] = [
                    self.place(
                        parent,
                        f"{member}{inline.index(option) + 1}" if several and option in inline else member,
                        option,
                        join(here, keyword, index),
                    )
                    for index, option in enumerate(schema[keyword])
                ]
        return schema

    def move(self, parent: str, member: str, schema: Schema, here: str) -> Schema:
        stem = self.stems.get(parent, parent)
        name = naming.inline_name(stem, member, "Object")
        if name in self.taken:
            name = f"{parent}{naming.pascal(member) or 'Value'}"
        if name in self.taken:
            fix = "rename one of them with a patch"
            name = numbered_name(self.context, "an inline object", name, self.taken.__contains__, here, fix)
        self.taken.add(name)
        self.context.moved(name, here)
        self.tops[name] = self.tops.get(parent, parent)
        if name == f"{stem}Object":
            self.stems[name] = stem
        self.found[name] = self.definition(name, schema, join("/$defs", name))
        return {"$ref": reference(name)}
