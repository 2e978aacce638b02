"""Flatten `allOf`: an object that is several things at once is one class with all their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from mcp_bindgen.spec import BadInput, Reading, Schema
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.keywords import PROSE, STRUCTURE, rebuild, without_prose
from mcp_bindgen.spec.pointer import join
from mcp_bindgen.spec.references import target

from .draft import Draft

_MERGED = frozenset({"properties", "required", "additionalProperties"})
_KINDS = ("type", "const", "enum")


def flatten_all_of(draft: Draft) -> Draft:
    """Replace every `allOf` by the intersection of its parts; one that only refers to a definition still does.

    Raises:
        BadInput: In a strict reading: two parts contradict each other, or the intersection cannot be written as one
            schema.
    """
    flat = _Flat(draft.schemas, draft.reading)
    return replace(draft, schemas={name: flat.definition(name) for name in sorted(draft.schemas)})


class _Flat:
    """Definitions without `allOf`, each made when it is first needed."""

    def __init__(self, schemas: Mapping[str, Schema], reading: Reading) -> None:
        self.schemas = schemas
        self.settle = reading.settle
        self.made: dict[str, Schema] = {}
        self.open: list[str] = []

    def definition(self, name: str) -> Schema:
        """Return the definition `name`."""
        pointer = join("/$defs", name)
        if name in self.open:
            error = BadInput(
                f"an 'allOf' below {name} has {name} itself as a part, so it would never end",
                pointer=pointer,
                fix="refer to the definition without adding to it",
            )
            self.settle("all-of-circle", error, "that part is not checked")
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
            merged = reduce(lambda left, right: self.both(left, right, pointer), whole, Schema())
        return {**{keyword: value for keyword, value in merged.items() if keyword not in PROSE}, **prose}

    def part(self, part: Schema | bool, pointer: str) -> Schema:
        """Return a part of an `allOf` as a schema that is not a boolean."""
        if part is False:
            error = BadInput("'false' accepts nothing", pointer=pointer, fix="remove it from the 'allOf'")
            self.settle("accepts-nothing", error, "that part is not checked")
        return part if is_object(part) else {}

    def written_out(self, schema: Schema) -> Schema:
        """Return `schema` with what it refers to in the place of the reference."""
        while "$ref" in schema:
            schema = self.definition(target(schema["$ref"]))
        return schema

    def both(self, left: Schema, right: Schema, pointer: str) -> Schema:
        """Return the schema that accepts what both accept; where there is none, one that accepts more."""
        result = {**left, **right}
        if left == right or not left or not right:
            return result
        if (error := _contradiction(left, right, pointer)) is not None:
            keyword, wrong = error
            return self.contradicted(keyword, wrong, left, right, pointer)
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

    def contradicted(self, keyword: str, error: BadInput, left: Schema, right: Schema, pointer: str) -> Schema:
        """Return what is read of two schemas that disagree about `keyword`."""
        if keyword == "$ref":
            self.settle("all-of-reference", error, "both hold")
            return self.referred(left, right, pointer)
        if keyword in _KINDS:
            self.settle("all-of-types", error, "what either part accepts is accepted")
            return {"anyOf": [without_prose(left), without_prose(right)]}
        self.settle("all-of-keyword", error, "the first one holds")
        return self.both(left, {name: value for name, value in right.items() if name != keyword}, pointer)

    def referred(self, left: Schema, right: Schema, pointer: str) -> Schema:
        """Return what both accept, one of which is a reference: that still, where the other adds nothing to it."""
        ours, theirs = self.written_out(left), self.written_out(right)
        merged = self.both(ours, theirs, pointer)
        for reference, whole in ((right, theirs), (left, ours)):
            if "$ref" in reference and without_prose(merged) == without_prose(whole):
                return reference
        return merged

    def member(self, name: str, left: Schema, right: Schema, pointer: str) -> Any:
        """Return what both say of the member `name`: the one that does not name it may have a rule for all others."""
        merged: Any = True
        for part in (left, right):
            rule = part.get("properties", {}).get(name, part.get("additionalProperties", True))
            if name not in part.get("properties", ()) and rule is False:
                error = BadInput(
                    "a part of an 'allOf' is closed to the members of another",
                    pointer=pointer,
                    fix="open it with a patch",
                )
                self.settle("all-of-closed", error, "the members of all parts are accepted")
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


def _says_something(part: Schema) -> bool:
    return not part.keys() <= PROSE


def _contradiction(left: Schema, right: Schema, pointer: str) -> tuple[str, BadInput] | None:
    """Return the keyword about which two schemas disagree, with the error."""
    if ("$ref" in left) != ("$ref" in right) and _says_something(left) and _says_something(right):
        return "$ref", BadInput(
            "a part of an 'allOf' adds to a reference", pointer=pointer, fix="write the definition out"
        )
    for keyword in STRUCTURE:
        if keyword in left and keyword in right and keyword not in _MERGED and left[keyword] != right[keyword]:
            message = f"the parts of an 'allOf' disagree about {keyword!r}: {left[keyword]!r} and {right[keyword]!r}"
            return keyword, BadInput(message, pointer=pointer, fix="give both the same value with a patch")
    return None
