"""Flatten `allOf`: an object that is several things at once is one class with all their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from mcp_bindgen.spec import BadInput, Schema
from mcp_bindgen.spec.document import target
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.keywords import PROSE, STRUCTURE, rebuild
from mcp_bindgen.spec.pointer import join

from .draft import Draft

_MERGED = frozenset({"properties", "required", "additionalProperties"})


def flatten_all_of(draft: Draft) -> Draft:
    """Replace every `allOf` by the intersection of its parts; one that only refers to a definition still does.

    Raises:
        BadInput: Two parts contradict each other, or the intersection cannot be written as one schema.
    """
    flat = _Flat(draft.schemas)
    return replace(draft, schemas={name: flat.definition(name) for name in draft.schemas})


class _Flat:
    """Definitions without `allOf`, each made when it is first needed."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self.schemas = schemas
        self.made: dict[str, Schema] = {}
        self.open: list[str] = []

    def definition(self, name: str) -> Schema:
        """Return the definition `name`."""
        pointer = join("/$defs", name)
        if name in self.open:
            raise BadInput(
                f"an 'allOf' below {name} has {name} itself as a part, so it would never end",
                pointer=pointer,
                fix="refer to the definition without adding to it",
            )
        if name not in self.made:
            self.open.append(name)
            self.made[name] = self.schema(self.schemas[name], pointer)
            self.open.pop()
        return self.made[name]

    def schema(self, schema: Schema, pointer: str) -> Schema:
        """Return `schema`, which stands at or below `pointer`."""
        own = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
        own = rebuild(own, lambda child: self.schema(child, pointer))
        if "allOf" not in schema:
            return own
        prose = {keyword: own.pop(keyword) for keyword in PROSE if keyword in own}
        parts = [_schema(part, pointer) for part in (*schema["allOf"], own)]
        parts = [part for part in parts if _says_something(part)]
        if len(parts) == 1 and "$ref" in parts[0]:
            merged = parts[0]
        else:
            whole = [self.part(part, pointer) for part in parts]
            merged = reduce(lambda left, right: _both(left, right, pointer), whole, Schema())
        return {**{keyword: value for keyword, value in merged.items() if keyword not in PROSE}, **prose}

    def part(self, part: Schema, pointer: str) -> Schema:
        """Return a part to be merged with others: a reference is replaced by what it refers to."""
        part = self.schema(part, pointer)
        while "$ref" in part:
            part = self.definition(target(part["$ref"]))
        return part


def _says_something(part: Schema) -> bool:
    return not part.keys() <= PROSE


def _both(left: Schema, right: Schema, pointer: str) -> Schema:
    """Return the schema that accepts what both accept."""
    result = {**left, **right}
    if left == right or not left or not right:
        return result
    _refuse_contradiction(left, right, pointer)
    names = sorted({*left.get("properties", ()), *right.get("properties", ())})
    if names:
        result["properties"] = {name: _member(name, left, right, join(pointer, "properties", name)) for name in names}
    if "required" in result:
        result["required"] = sorted({*left.get("required", ()), *right.get("required", ())})
    if "additionalProperties" in result:
        others = left.get("additionalProperties", True), right.get("additionalProperties", True)
        result["additionalProperties"] = _either(*others, join(pointer, "additionalProperties"))
    return result


def _refuse_contradiction(left: Schema, right: Schema, pointer: str) -> None:
    if ("$ref" in left) != ("$ref" in right) and _says_something(left) and _says_something(right):
        raise BadInput("a part of an 'allOf' adds to a reference", pointer=pointer, fix="write the definition out")
    for keyword in STRUCTURE:
        if keyword in left and keyword in right and keyword not in _MERGED and left[keyword] != right[keyword]:
            raise BadInput(
                f"the parts of an 'allOf' disagree about {keyword!r}: {left[keyword]!r} and {right[keyword]!r}",
                pointer=pointer,
                fix="give both the same value with a patch",
            )


def _member(name: str, left: Schema, right: Schema, pointer: str) -> Any:
    """Return what both say of the member `name`: the one that does not name it may have a rule for all others."""
    for part in (left, right):
        if name not in part.get("properties", ()) and part.get("additionalProperties") is False:
            raise BadInput(
                "a part of an 'allOf' is closed to the members of another", pointer=pointer, fix="open it with a patch"
            )
    one, other = (
        part.get("properties", {}).get(name, part.get("additionalProperties", True)) for part in (left, right)
    )
    return _either(one, other, pointer)


def _either(one: Any, other: Any, pointer: str) -> Any:
    """Return the intersection of two schemas that may be booleans."""
    if one is False or other is False:
        return False
    if one is True or other is True:
        return other if one is True else one
    return _both(one, other, pointer)


def _schema(part: Schema | bool, pointer: str) -> Schema:
    if part is False:
        raise BadInput("'false' accepts nothing", pointer=pointer, fix="remove it from the 'allOf'")
    return part if is_object(part) else {}
