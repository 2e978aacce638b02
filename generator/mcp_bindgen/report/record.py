"""Turn dataclasses into JSON, and into JSON Schema: members in camel case, names of severities in lower case."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum, IntEnum
from types import NoneType, UnionType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from pydantic.alias_generators import to_camel

JsonSchema = dict[str, Any]
_PLAIN: dict[Any, JsonSchema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    date: {"type": "string", "format": "date"},
    NoneType: {"type": "null"},
    Any: {},
}


def as_json(value: Any, or_null: Collection[str] = ()) -> Any:
    """Return `value` as JSON.

    Args:
        value: A dataclass, or a value of a field.
        or_null: The fields that are `null` where they are empty.
    """
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        return {to_camel(name): as_json(one) if one or name not in or_null else None for name, one in given.items()}
    if isinstance(value, IntEnum):
        return value.name.lower().replace("_", "-")
    if isinstance(value, date):
        return value.isoformat()
    return [as_json(one) for one in cast(tuple[object, ...], value)] if isinstance(value, tuple) else value


def schema_of(kind: type, or_null: Collection[str] = (), more: Mapping[str, JsonSchema] | None = None) -> JsonSchema:
    """Return the JSON Schema of a dataclass as `as_json` writes it; its docstring describes the members.

    Args:
        kind: The dataclass.
        or_null: The fields that are `null` where they are empty.
        more: Members that are added, or described otherwise.
    """
    words = dict(re.findall(r"^ +(\w+): (.+)$", kind.__doc__ or "", re.MULTILINE))
    members = dict(more or {})
    for name, hint in get_type_hints(kind).items():
        schema = _schema(hint | None if name in or_null else hint)
        described = {**schema, "description": words[name]} if name in words else schema
        members[to_camel(name)] = described | members.get(to_camel(name), {})
    return closed(**members)


def _schema(hint: Any) -> JsonSchema:
    """Return the JSON Schema of a field's type; other dataclasses stand in `$defs`."""
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if isinstance(hint, UnionType):
        return {"anyOf": [_schema(one) for one in get_args(hint)]}
    if is_dataclass(hint):
        return ref(cast(type, hint).__name__)
    return {"enum": [as_json(one) for one in hint]} if isinstance(hint, type(Enum)) else _PLAIN[hint]


def ref(name: str) -> JsonSchema:
    """Return a reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def closed(**members: JsonSchema) -> JsonSchema:
    """Return the JSON Schema of an object that has just these members."""
    required = list(members)
    return {"type": "object", "properties": members, "required": required, "additionalProperties": False}
