"""Flatten `allOf`: an object that is several things at once is one class with all their fields, or a union of those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import islice, product
from typing import Any

from mcp_bindgen.json_schema.keywords import PROSE
from mcp_bindgen.spec import DiagnosticContext, Schema
from mcp_bindgen.spec.json import is_object, join, split
from mcp_bindgen.spec.keywords import STRUCTURE, rebuild, without_prose
from mcp_bindgen.spec.references import reference, target

from .build_state import BuildState, numbered_name

_MERGED = frozenset({"properties", "required", "additionalProperties"})
_KINDS = ("type", "const", "enum")
_MOST = 256
"""How many members the union may have that an `allOf` of unions makes."""


def flatten_all_of(state: BuildState) -> BuildState:
    """Replace every `allOf` by the intersection of its parts; a lone reference stays a reference.

    Raises:
        BadInput: In strict mode: two parts contradict each other, or the intersection cannot be written as one
            schema.
    """
    flat = _Flat(state.schemas, state.context)
    schemas = {name: flat.definition(name) for name in sorted(state.schemas)}
    return state.extracted(schemas, flat.found, flat.tops)


class _Flat:
    """Definitions without `allOf`, each made when it is first needed."""

    def __init__(self, schemas: Mapping[str, Schema], context: DiagnosticContext) -> None:
        self.schemas = schemas
        self.context, self.report = context, context.report
        self.made: dict[str, Schema] = {}
        self.open: list[str] = []
        self.found: dict[str, Schema] = {}
        self.tops: dict[str, str] = {}

    def definition(self, name: str) -> Schema:
        """Return the definition `name`."""
        pointer = join("/$defs", name)
        if name in self.open:
            self.report("all-of-circle", pointer, name=name)
            return {}
        if name not in self.made:
            self.open.append(name)
            self.made[name] = self.schema(self.schemas[name], pointer)
            self.open.pop()
        return self.made[name]

    def schema(self, schema: Schema, pointer: str) -> Schema:
        """Return `schema`, which stands at `pointer`."""
        own = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
        own = rebuild(own, self.schema, pointer)
        if "allOf" not in schema:
            return own
        prose = {keyword: own.pop(keyword) for keyword in PROSE if keyword in own}
        parts = [(join(pointer, "allOf", index), part) for index, part in enumerate(schema["allOf"])]
        parts = [(at, self.part(part, at)) for at, part in [*parts, (pointer, own)]]
        parts = [(at, part) for at, part in parts if _says_something(part)]
        if len(parts) == 1 and "$ref" in parts[0][1]:
            merged = parts[0][1]
        else:
            whole = [self.written_out(self.schema(part, at)) for at, part in parts]
            merged = self.distributed(whole, pointer)
        return {**{keyword: value for keyword, value in merged.items() if keyword not in PROSE}, **prose}

    def distributed(self, parts: Sequence[Schema], pointer: str) -> Schema:
        """Return the intersection of `parts`; with unions among them, the union of the intersections of their members.

        Members of a definition that were definitions themselves are definitions again: `{Definition}{Member}`.
        """
        keyword = next((union for union in ("anyOf", "oneOf") if any(union in part for part in parts)), "")
        unions = [part for part in parts if part.keys() - PROSE in ({keyword}, {keyword, "type"})]
        rest = [part for part in parts if part not in unions]
        rest += [{"type": union["type"]} for union in unions if "type" in union]
        if not unions or not (rest or unions[1:]):
            return reduce(lambda left, right: self.both(left, right, pointer), parts, Schema())
        choices = list(islice(product(*(union[keyword] for union in unions)), _MOST + 1))
        if len(choices) > _MOST:
            self.report("all-of-unions", pointer, most=_MOST)
            return reduce(lambda left, right: self.both(left, right, pointer), rest, Schema())
        made = [self.chosen([*rest, *choice], choice, pointer) for choice in choices]
        return {keyword: [schema for index, schema in enumerate(made) if schema not in made[:index]]}

    def chosen(self, parts: Sequence[Schema | bool], choice: Sequence[Schema | bool], pointer: str) -> Schema:
        """Return the intersection of `parts`, which have one member of each union, the `choice`."""
        schema = self.schema({"allOf": list(parts)}, pointer)
        names = [target(member["$ref"]) for member in choice if is_object(member) and "$ref" in member]
        owner = split(pointer)[1]
        if len(names) < len(choice) or pointer != join("/$defs", owner) or "$ref" in schema:
            return schema
        name = owner + "".join(names)
        taken = {**self.schemas, **self.found}
        if name in taken and taken[name] != schema:
            name = numbered_name(self.context, "a member", name, taken.__contains__, pointer, "rename it")
        self.found[name], self.tops[name] = schema, owner
        return {"$ref": reference(name)}

    def part(self, part: Schema | bool, pointer: str) -> Schema:
        """Return a part of an `allOf` as a schema that is not a boolean."""
        if part is False:
            self.report("part-accepts-nothing", pointer)
        return part if is_object(part) else {}

    def written_out(self, schema: Schema) -> Schema:
        """Return `schema` with references followed."""
        while "$ref" in schema:
            name = target(schema["$ref"])
            schema = self.found[name] if name in self.found else self.definition(name)
        return schema

    def both(self, left: Schema, right: Schema, pointer: str) -> Schema:
        """Return the intersection of two schemas, or a wider schema if none can be written."""
        result = {**left, **right}
        if left == right or not left or not right:
            return result
        for one, other in ((left, right), (right, left)):
            if _is_any_object(one) and other.keys() & {"$ref", "anyOf", "oneOf"} and self.is_object(other):
                return other
        if (keyword := _contradiction(left, right)) is not None:
            return self.contradicted(keyword, left, right, pointer)
        names = sorted({*left.get("properties", ()), *right.get("properties", ())})
        if names:
            result["properties"] = {
                name: self.member(name, left, right, join(pointer, "properties", name)) for name in names
            }
        if "required" in result:
            result["required"] = sorted({*left.get("required", ()), *right.get("required", ())})
        if "additionalProperties" in result:
            others = left.get("additionalProperties", True), right.get("additionalProperties", True)
            result["additionalProperties"] = self.either(*others, join(pointer, "additionalProperties"))
        return result

    def contradicted(self, keyword: str, left: Schema, right: Schema, pointer: str) -> Schema:
        """Return the lenient reading of two schemas that disagree about `keyword`."""
        words = {"keyword": keyword, "first": left.get(keyword), "second": right.get(keyword)}
        if keyword == "$ref":
            merged = self.referred(left, right, pointer)
            if keyword in left and keyword in right:
                self.report("all-of-reference", pointer, **words)
            elif keyword not in merged:
                self.report("all-of-reference-and-members", pointer)
            return merged
        if keyword in _KINDS:
            self.report("all-of-types", pointer, **words)
            return {"anyOf": [without_prose(left), without_prose(right)]}
        self.report("all-of-keyword", pointer, **words)
        return self.both(left, {name: value for name, value in right.items() if name != keyword}, pointer)

    def referred(self, left: Schema, right: Schema, pointer: str) -> Schema:
        """Return the intersection of a schema and a reference: the reference itself if the schema adds nothing."""
        ours, theirs = self.written_out(left), self.written_out(right)
        merged = self.both(ours, theirs, pointer)
        for part, whole in ((right, theirs), (left, ours)):
            if "$ref" in part and without_prose(merged) == without_prose(whole):
                return part
        return merged

    def is_object(self, schema: Schema | bool) -> bool:
        """Return whether `schema` accepts objects only."""
        if not is_object(schema):
            return False
        schema = self.written_out(schema)
        members = schema.get("anyOf") or schema.get("oneOf") or ()
        return schema.get("type") == "object" or (bool(members) and all(map(self.is_object, members)))

    def member(self, name: str, left: Schema, right: Schema, pointer: str) -> Any:
        """Return the intersection of both rules for a member; unnamed members have the rule `additionalProperties`."""
        merged: Any = True
        for part in (left, right):
            rule = part.get("properties", {}).get(name, part.get("additionalProperties", True))
            if name not in part.get("properties", ()) and rule is False:
                self.report("all-of-closed", pointer)
                rule = True
            merged = self.either(merged, rule, pointer)
        return merged

    def either(self, one: Any, other: Any, pointer: str) -> Any:
        """Return the intersection of two schemas that may be booleans."""
        if one is False or other is False:
            return False
        if one is True or other is True:
            return other if one is True else one
        return self.both(one, other, pointer)


def _is_any_object(schema: Schema) -> bool:
    kept = {keyword: value for keyword, value in schema.items() if keyword not in PROSE and value not in (True, {})}
    return kept == {"type": "object"} and schema.keys() - PROSE <= {"type", "properties", "additionalProperties"}


def _says_something(part: Schema) -> bool:
    return not part.keys() <= PROSE


def _contradiction(left: Schema, right: Schema) -> str | None:
    """Return the keyword about which two schemas disagree."""
    if ("$ref" in left) != ("$ref" in right) and _says_something(left) and _says_something(right):
        return "$ref"
    shared = (keyword for keyword in STRUCTURE if keyword in left and keyword in right and keyword not in _MERGED)
    return next((keyword for keyword in shared if left[keyword] != right[keyword]), None)
