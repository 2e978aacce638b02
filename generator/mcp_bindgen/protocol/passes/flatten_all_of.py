"""`allOf` says that an object is several things at once; in Python that is one class with all their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from mcp_bindgen.spec import BadInput, Schema
from mcp_bindgen.spec.document import target
from mcp_bindgen.spec.keywords import rebuild

from .draft import Draft


def flatten_all_of(draft: Draft) -> Draft:
    """Replaces every `allOf` by the intersection of its parts.

    Raises:
        BadInput: Two parts contradict each other, or the intersection cannot be written as one schema.
    """
    flat = {name: _flatten(schema, draft.schemas, f"/$defs/{name}") for name, schema in draft.schemas.items()}
    return replace(draft, schemas=flat)


def _flatten(schema: Schema, schemas: Mapping[str, Schema], pointer: str) -> Schema:
    schema = rebuild(schema, lambda child: _flatten(child, schemas, pointer))
    if "allOf" not in schema:
        return schema
    rest = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
    parts = [_resolve(part, schemas, pointer) for part in schema["allOf"]]
    prose: Schema = {keyword: rest.pop(keyword) for keyword in ("description", "title") if keyword in rest}
    merged = reduce(lambda left, right: _both(left, right, pointer), [*parts, rest] if rest else parts)
    return {**{keyword: value for keyword, value in merged.items() if keyword not in ("description", "title")}, **prose}


def _resolve(part: Schema, schemas: Mapping[str, Schema], pointer: str) -> Schema:
    while "$ref" in part:
        part = schemas[target(part["$ref"])]
    return _flatten(part, schemas, pointer)


def _both(left: Schema, right: Schema, pointer: str) -> Schema:
    """The schema that accepts what both accept."""
    if left == right or not right:
        return left
    if not left:
        return right
    result = {**left, **right}
    for keyword in left.keys() & right.keys() - {"description", "title"}:
        ours, theirs = left[keyword], right[keyword]
        if keyword == "properties":
            result[keyword] = {
                name: _both(ours[name], theirs[name], f"{pointer}/properties/{name}")
                if name in ours and name in theirs
                else {**ours, **theirs}[name]
                for name in sorted({**ours, **theirs})
            }
        elif keyword == "required":
            result[keyword] = sorted({*ours, *theirs})
        elif keyword == "additionalProperties" and False not in (ours, theirs):
            result[keyword] = _both(_schema(ours), _schema(theirs), pointer)
        elif ours != theirs:
            raise BadInput(
                f"the parts of an 'allOf' disagree about {keyword!r}: {ours!r} and {theirs!r}",
                pointer=pointer,
                fix="give both the same value with a patch",
            )
    for one, other in ((left, right), (right, left)):
        if one.get("additionalProperties") is False and set(other.get("properties", ())) - set(
            one.get("properties", ())
        ):
            raise BadInput(
                "a part of an 'allOf' is closed to the members of another", pointer=pointer, fix="open it with a patch"
            )
    return result


def _schema(value: Schema | bool) -> Schema:
    return value if isinstance(value, dict) else {}
