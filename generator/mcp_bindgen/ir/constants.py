"""Read unions of constants, the form in which many generators write documented enumerations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from mcp_bindgen.runtime.model.json_types import json_key
from mcp_bindgen.spec import Schema
from mcp_bindgen.spec.json import is_array, is_json_type, is_object, json_type_of, listed
from mcp_bindgen.spec.references import target

_UNIONS = ("oneOf", "anyOf")


def values_of(schema: Any) -> list[Any] | None:
    """Return the values that a schema lists by `const`, `enum` or a union of such schemas; None if it lists none."""
    if not is_object(schema):
        return None
    if "const" in schema:
        return [schema["const"]]
    if is_array(schema.get("enum")):
        return list(schema["enum"])
    listed_by = [values_of(member) for member in _members(schema)]
    return [value for values in listed_by for value in values or ()] if listed_by and None not in listed_by else None


def is_literal(value: object) -> bool:
    """Return True for values of `Literal`; mypy and pydantic read its integers with 64 bits."""
    return abs(value) < 2**63 if isinstance(value, int) else value is None or isinstance(value, str)


def with_constants(description: str, schema: Any) -> str:
    """Return `description` with a line for each constant that a union documents, in the schema or in its items."""
    lines = list(_lines(schema)) or (list(_lines(schema.get("items"))) if is_object(schema) else [])
    return "\n\n".join([description or "One of these values:", "\n".join(lines)]) if lines else description


def _lines(schema: Any) -> Iterator[str]:
    for member in filter(is_object, _members(schema)):
        words = next((text for name in ("description", "title") if isinstance(text := member.get(name), str)), "")
        values = values_of(member)
        if values and words.strip():
            yield f"- {', '.join(f'`{_text(value)}`' for value in values)}: {' '.join(words.split())}"
        else:
            yield from _lines(member)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _members(schema: Any) -> list[Any]:
    if not is_object(schema):
        return []
    members: Any = next((schema[keyword] for keyword in _UNIONS if keyword in schema), None)
    return members if is_array(members) else []


def are_disjoint(members: Sequence[Schema | bool], definitions: Mapping[str, Schema]) -> bool:
    """Return True if no JSON value can be two of `members`: by their types, constants or required constant members."""
    resolved = [_resolved(member, definitions) for member in members]
    return all(_are_apart(one, other, definitions) for one, other in combinations(resolved, 2))


def _resolved(schema: Any, definitions: Mapping[str, Schema]) -> Any:
    seen: set[str] = set()
    while is_object(schema) and "$ref" in schema and (name := target(schema["$ref"])) not in seen:
        seen.add(name)
        schema = definitions.get(name)
    return schema


def _are_apart(one: Any, other: Any, definitions: Mapping[str, Schema]) -> bool:
    if not is_object(one) or not is_object(other):
        return False
    values = values_of(one), values_of(other)
    if values[0] is not None and values[1] is not None:
        return not {*map(_key, values[0])} & {*map(_key, values[1])}
    kinds = _kinds(one, values[0]), _kinds(other, values[1])
    if kinds[0] and kinds[1] and not kinds[0] & kinds[1]:
        return True
    if kinds != ({"object"}, {"object"}):
        return False
    required = {*one.get("required", ())} & {*other.get("required", ())}
    properties = [schema.get("properties", {}) for schema in (one, other)]
    pairs = [[_resolved(known.get(name), definitions) for known in properties] for name in required]
    return any(all(map(values_of, pair)) and _are_apart(pair[0], pair[1], {}) for pair in pairs)


def are_of(schema: Schema, kinds: Any) -> bool:
    """Return True if a schema lists values, all of them of one of the JSON types `kinds`."""
    known = {"number" if kind == "integer" else kind for kind in listed(kinds)}
    values = values_of(schema) or []
    return bool(values) and {_key(value)[0] for value in values} <= known


def _kinds(schema: Schema, values: list[Any] | None) -> set[str]:
    """Return the JSON types that a value may have; nothing where that is not known."""
    if values is not None:
        return {_key(value)[0] for value in values}
    return {"number" if kind == "integer" else kind for kind in listed(schema.get("type", []))}


def _key(value: Any) -> tuple[str, object]:
    """Return a key that only equal JSON values share: `1` and `1.0` are equal, `1` and `true` are not."""
    kind = "number" if is_json_type(value, "number") else json_type_of(value)
    return kind, json_key(value)
