"""Conformance of a schema with a profile: the check that a provider makes, as far as it is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .codecs import Json, is_array, is_object
from .profiles import Profile
from .shapes import Schema, below

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_PARTS = (
    *("items", "additionalProperties", "propertyNames", "not", "if", "then", "else", "contains"),
    *("additionalItems", "unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_CONTAINERS = frozenset({*_MAPS, *_LISTS, *_PARTS})
_LINKED = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True)
class Violation:
    """A place that a profile refuses: its pointer in the schema, and the problem."""

    pointer: str
    problem: str


def parts(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Yield the subschemas of a schema and their pointers."""
    if schema.keys().isdisjoint(_CONTAINERS):
        return
    for keyword, value in schema.items():
        if keyword in _MAPS and is_object(value):
            yield from ((below("", keyword, name), part) for name, part in value.items())
        elif keyword in _LISTS or (keyword == "items" and is_array(value)):
            yield from ((below("", keyword, index), part) for index, part in enumerate(value))
        elif keyword in _PARTS:
            yield below("", keyword), value


def nodes(schema: Json, pointer: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield all schema objects and their pointers; names of properties and constants are not entered."""
    if is_object(schema):
        yield pointer, schema
        for step, part in parts(schema):
            yield from nodes(part, pointer + step)


def is_free_of_references(schema: Json) -> bool:
    """Return whether a schema refers to nothing."""
    return all(word not in node for _, node in nodes(schema) for word in _LINKED)


def violations(schema: Json, profile: Profile, *, root: bool = True) -> Iterator[Violation]:
    """Yield the places of a schema that a profile refuses, without its limits of size."""
    if isinstance(schema, bool) and not profile.untyped:
        yield Violation("", "a boolean schema is not allowed")
    for pointer, node in nodes(schema):
        at_root = root and not pointer
        yield from (Violation(pointer, problem) for problem in _problems(node, profile, at_root))


def _problems(node: Schema, profile: Profile, root: bool) -> Iterator[str]:
    if "*" not in profile.keywords or profile.refuses:
        yield from (f"{word} is not allowed" for word in node if not profile.takes(word))
    if root:
        yield from (f"{word} is not allowed at the root" for word in sorted(node.keys() & profile.root_refuses))
        if node.get("type") != "object":
            yield "the root is no object"
    yield from (f"{word} must stand alone" for word in node.keys() & profile.alone if len(node) > 1)
    types = node.get("type")
    if types is None and not profile.untyped and node.keys().isdisjoint({"anyOf", "$ref"}):
        yield "a type is missing"
    if is_array(types) and not profile.type_arrays:
        yield "an array of types is not allowed"
    if not profile.null and "null" in (types, *(types if is_array(types) else ())):
        yield "null is not allowed"
    if "object" in (types if is_array(types) else [types]):
        yield from _object_problems(node, profile, root)
    if "array" in (types, *(types if is_array(types) else ())) and profile.array_items and "items" not in node:
        yield "items are missing"
    if not profile.item_arrays and is_array(node.get("items")):
        yield "an array of items is not allowed"
    values = node.get("enum", [node["const"]] if "const" in node else [])
    if profile.only_strings_enumerated and not all(isinstance(value, str) and value for value in values):
        yield "only non-empty strings can be enumerated"
    if profile.closed_objects and any((is_object(value) or is_array(value)) for value in values):
        yield "only scalars can be enumerated"
    if "format" in node and not profile.takes_format(str(node["format"])):
        yield f"the format {node['format']} is not allowed"
    if "pattern" in node and not profile.takes_pattern(str(node["pattern"])):
        yield "the pattern has constructs that are not allowed"
    if profile.max_min_items is not None and node.get("minItems", 0) > profile.max_min_items:
        yield f"minItems is above {profile.max_min_items}"


def _object_problems(node: Schema, profile: Profile, root: bool) -> Iterator[str]:
    names = node.get("properties", {}).keys()
    if profile.closed_objects and node.get("additionalProperties") is not False:
        yield "additionalProperties is not false"
    if profile.all_required and names != set(node.get("required", ())):
        yield "not all properties are required"
    if not profile.empty_objects and not root and not names:
        yield "an object has no properties"
    yield from (f"the name {name!r} is not allowed" for name in names if not profile.takes_member(name, root=root))


def excesses(schema: Schema, profile: Profile) -> Iterator[str]:
    """Yield the limits of size that a schema exceeds."""
    found = [node for _, node in nodes(schema)]
    values = [list(map(_text, node["enum"])) for node in found if "enum" in node]
    names = [name for node in found for word in ("properties", "$defs") for name in node.get(word, ())]
    constants = [text for texts in values for text in texts]
    constants += [_text(node["const"]) for node in found if "const" in node]
    large = [sum(map(len, texts)) for texts in values if profile.large_enum and len(texts) > profile.large_enum]
    counts: Iterable[tuple[str, Callable[[], int], int | None]] = (
        ("properties", lambda: sum(len(node.get("properties", ())) for node in found), profile.max_properties),
        ("nested levels", lambda: depth(schema), profile.max_depth),
        ("enumerated values", lambda: sum(map(len, values)), profile.max_enum_values),
        ("characters of names and constants", lambda: sum(map(len, names + constants)), profile.max_characters),
        ("characters of a large enum", lambda: max(large, default=0), profile.max_enum_characters),
    )
    for words, count, limit in counts:
        if limit is not None and (number := count()) > limit:
            yield f"{number} {words}, and at most {limit} are allowed"


def depth(schema: Json) -> int:
    """Return the number of nested objects and arrays, without following references."""
    if not is_object(schema):
        return 0
    own = int(not {"properties", "items"}.isdisjoint(schema))
    return max(own + max((depth(part) for step, part in parts(schema) if "$defs" not in step), default=0), 0)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)
