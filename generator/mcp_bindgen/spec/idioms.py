"""Rewrite idioms of TypeScript generators such as zod with common keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from mcp_bindgen.json_schema.keywords import NESTING, PROSE, edited, objects
from mcp_bindgen.runtime.model.json_types import json_key

from .json import is_array, is_object, join, split, value_at
from .keywords import ANNOTATIONS, DIALECT, PREFIX, STRUCTURE, Schema

_NO_SCHEMA = ("$schema", "$id", "id", "$defs", "definitions")
_SAFE = 2**53 - 1
_ANY_NAME: tuple[Any, ...] = (True, {}, {"type": "string"})


def plain(schema: Schema) -> Schema:
    """Return `schema` with common keywords in place of idioms.

    - `$schema` inside of a document repeats its dialect and is removed.
    - `propertyNames` for every string has no effect; with a list of names it becomes `properties`.
    - `{"not": {}}` is `false`: as `additionalProperties` it closes an object; a member of a closed object is removed.
    - A union of single strings becomes an `enum`.
    - The bounds of safe integers in JavaScript, which zod writes for every integer, are removed.
    """
    result = {keyword: value for keyword, value in schema.items() if (keyword, value) != ("$schema", DIALECT)}
    for keyword in ("additionalProperties", "items"):
        if _is_never(result.get(keyword)):
            result[keyword] = False
    if "propertyNames" in result:
        result = _named(result)
    if is_object(result.get("properties")):
        result["properties"] = dict(_members(result, result["properties"]))
    names = _strings(result) if "anyOf" in result else None
    if names and len({*names}) == len(names):
        result = {keyword: value for keyword, value in result.items() if keyword != "anyOf"}
        result |= {"type": "string", "enum": names}
    if result.get("type") == "integer" and (result.get("minimum"), result.get("maximum")) == (-_SAFE, _SAFE):
        del result["minimum"], result["maximum"]
    return result


def _is_never(value: Any) -> bool:
    return is_object(value) and value.keys() == {"not"} and value["not"] in ({}, True)


def _members(schema: Schema, properties: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    required = schema.get("required")
    for name, member in properties.items():
        if not _is_never(member):
            yield name, member
        elif schema.get("additionalProperties") is not False or (is_array(required) and name in required):
            yield name, False


def _named(schema: Schema) -> Schema:
    rest = {keyword: value for keyword, value in schema.items() if keyword != "propertyNames"}
    rule = schema["propertyNames"]
    if rule in _ANY_NAME:
        return rest
    names, own = _strings(rule), schema.get("properties", {})
    if names is None or "patternProperties" in schema or not is_object(own):
        return schema
    others = schema.get("additionalProperties", True)
    members = {name: own.get(name, others) for name in names}
    return {**rest, "properties": members, "additionalProperties": False}


def _strings(rule: Any) -> list[str] | None:
    """Return the strings of an enumeration, or `None` for other schemas."""
    if not is_object(rule):
        return None
    if is_array(rule.get("anyOf")) and rule.keys() - PROSE == {"anyOf"}:
        lists = [_strings(member) for member in rule["anyOf"]]
        return None if None in lists else [name for names in lists for name in names or ()]
    if not rule.keys() - PROSE <= {"type", "const", "enum"} or rule.get("type", "string") != "string":
        return None
    values: Any = [rule["const"]] if "const" in rule else rule.get("enum")
    return values if is_array(values) and all(isinstance(value, str) for value in values) else None


def lifted(definitions: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Move nested `$defs` to the top level; equal definitions become one.

    References with the full path, or with only the name of the definition as in zod, are adapted.

    Returns:
        The definitions, and name -> original pointer of the moved ones.
    """
    result: dict[str, Any] = dict(definitions)
    places: dict[str, str] = {}
    known: dict[object, str] = {}
    for owner, definition in definitions.items():
        nested = definition.get("$defs") if is_object(definition) else None
        if not is_object(nested):
            continue
        names: dict[str, str] = {}
        for inner, schema in nested.items():
            form = json_key([inner, nested])
            names[inner] = known.setdefault(form, _free(owner, inner, result))
            result.setdefault(names[inner], schema)
            places.setdefault(names[inner], join("/$defs", owner, "$defs", inner))
        targets = {f"{PREFIX}{owner}/$defs/{inner}": f"{PREFIX}{name}" for inner, name in names.items()}
        targets |= {f"{PREFIX}{inner}": f"{PREFIX}{name}" for inner, name in names.items() if inner not in definitions}
        for name in {owner, *names.values()}:
            result[name] = _redirected(result[name], targets)
        del result[owner]["$defs"]
    return result, places


def placed(document: Schema, key: str, definitions: Schema, places: dict[str, str]) -> Schema:
    """Make definitions of the root, if it is a schema, and of all places inside of definitions that references name.

    Args:
        document: The document.
        key: Its member with the definitions.
        definitions: Its definitions.
        places: Name -> original pointer of definitions that were moved; grows.
    """
    root, result = document | {key: definitions}, dict(definitions)
    names = {id(schema): join(f"#/{key}", name) for name, schema in definitions.items()}
    targets, moved = dict[str, str](), dict[int, str]()
    stated = {reference for one in objects(root) if isinstance(reference := one.get("$ref"), str)}
    named = {one for one in stated if one[:1] == "#"} - {"#", *(join(f"#/{key}", name) for name in definitions)}
    for reference in [*(["#"] if has_root(document) else []), *sorted(named)]:
        pointer = unquote(reference[1:])
        schema = value_at(root, pointer) if pointer[:1] in ("", "/") else None
        if is_object(schema) and id(schema) not in names:
            words = [word for word in split(pointer) if word not in {*NESTING, *_NO_SCHEMA}]
            stem = "_".join(words) or str(document.get("title", "root"))
            name = _free("", re.sub(r"\W+", "_", stem), result)
            result[name] = {word: value for word, value in schema.items() if pointer or word not in _NO_SCHEMA}
            places[name] = pointer
            names[id(schema)] = moved[id(schema)] = join(f"#/{key}", name)
        if is_object(schema):
            targets[reference] = names[id(schema)]
    return {name: _redirected(schema, targets, moved) for name, schema in result.items()} if targets else result


def has_root(document: Schema) -> bool:
    """Return whether the root of a document restricts values itself, beside its definitions."""
    return not (STRUCTURE.keys() | {"patternProperties"}).isdisjoint(document.keys() - {"$ref", "type"})


def _free(owner: str, inner: str, taken: Mapping[str, Any]) -> str:
    stem = owner + "".join(word[:1].upper() + word[1:] for word in inner.split("_"))
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}{number}", number + 1
    return name


def _redirected(schema: Any, targets: Mapping[str, str], moved: Mapping[int, str] = MappingProxyType({})) -> Any:
    """Return a copy with other references; references also replace the parts that were `moved`, by identity.

    A part that was moved keeps its prose and annotations.
    """

    def edit(original: Schema, copy: Schema) -> None:
        reference = copy.get("$ref")
        if original is not schema and id(original) in moved:
            copy.clear()
            copy["$ref"] = moved[id(original)]
            copy.update((word, original[word]) for word in original if word in PROSE | ANNOTATIONS)
        elif isinstance(reference, str) and reference in targets:
            copy["$ref"] = targets[reference]

    return edited(schema, edit)
