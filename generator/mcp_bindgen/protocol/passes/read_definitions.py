"""Read JSON Schema into the types of the protocol model; no schema dict goes further than this."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mcp_bindgen.spec import BadInput, Schema
from mcp_bindgen.spec.document import target
from mcp_bindgen.spec.json import is_object, listed
from mcp_bindgen.spec.keywords import CONSTRAINTS
from mcp_bindgen.spec.pointer import join

from .. import naming
from ..losses import APPLIES, refuse_beside_union, refuse_empty, refuse_lost, refuse_pattern
from ..model import Array, Const, Definition, Field, Free, Map, Object, Ref, Scalar, Type, Union
from .draft import Draft

_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def read_definitions(draft: Draft) -> Draft:
    """Fill in the definitions.

    Raises:
        BadInput: A schema says something that the model cannot carry, or a name cannot be used in Python.
    """
    definitions: dict[str, Definition] = {}
    for name in sorted(draft.schemas):
        schema, pointer = draft.schemas[name], join("/$defs", name)
        if not naming.is_definition(name):
            raise BadInput(
                f"the definition {name!r} cannot be a name in Python bindings",
                pointer=pointer,
                fix="rename it to letters and digits, the first one a capital letter",
            )
        definitions[name] = Definition(
            name=name,
            type=_object(schema, name, pointer) if _has_members(schema) else _type(schema, pointer),
            doc=schema.get("description", ""),
            hoisted=name in draft.hoisted,
        )
    return replace(draft, definitions=definitions)


def _has_members(schema: Schema) -> bool:
    return bool(schema.get("properties") or schema.get("required")) or schema.get("additionalProperties") is False


def _object(schema: Schema, name: str, pointer: str) -> Object:
    refuse_beside_union(schema, pointer)
    if schema.get("type") != "object":
        raise BadInput(
            'members without "type": "object" do not say what else is accepted',
            pointer=pointer,
            fix='add "type": "object"',
        )
    refuse_lost(schema, ("properties", "required", "additionalProperties"), pointer)
    properties: dict[str, Any] = schema.get("properties", {})
    required = set(schema.get("required", ()))
    wires = sorted({*properties, *required})
    names = naming.fields(name, wires)
    extra = schema.get("additionalProperties", True)
    return Object(
        fields=tuple(
            Field(
                wire=wire,
                name=names[wire],
                type=_type(properties.get(wire, True), join(pointer, "properties", wire)),
                required=wire in required,
                doc=_doc(properties.get(wire)),
                fallback=_fallback(properties.get(wire)),
            )
            for wire in wires
        ),
        extra=None if extra is False else _type(extra, join(pointer, "additionalProperties")),
    )


def _doc(schema: Any) -> str:
    return schema.get("description", "") if is_object(schema) else ""


def _fallback(schema: Any) -> str:
    return json.dumps(schema["default"]) if is_object(schema) and "default" in schema else ""


def _type(schema: Schema | bool, pointer: str) -> Type:
    if schema is True:
        return Free()
    if schema is False:
        raise BadInput("'false' accepts nothing", pointer=pointer, fix="remove the member")
    assert is_object(schema)
    if "$ref" in schema:
        return Ref(target(schema["$ref"]))
    refuse_beside_union(schema, pointer)
    if "anyOf" in schema or "oneOf" in schema:
        return _alternatives(schema, pointer)
    if "const" in schema or "enum" in schema:
        return _const(schema, pointer)
    if "type" not in schema:
        refuse_lost(schema, (), pointer)
        return Free()
    kinds = listed(schema["type"])
    refuse_lost(schema, [keyword for kind in kinds for keyword in APPLIES[kind]], pointer)
    return _union([_single(kind, schema, pointer) for kind in kinds], pointer)


def _alternatives(schema: Schema, pointer: str) -> Type:
    keyword = "anyOf" if "anyOf" in schema else "oneOf"
    members = [_type(member, join(pointer, keyword, index)) for index, member in enumerate(schema[keyword])]
    if keyword == "oneOf" and not _disjoint(members):
        raise BadInput(
            "the members of a 'oneOf' may overlap", pointer=pointer, fix="use 'anyOf', or members of different types"
        )
    return _union(members, pointer)


def _single(kind: Any, schema: Schema, pointer: str) -> Type:
    constraints = tuple(
        (keyword, schema[keyword]) for keyword in CONSTRAINTS if keyword in schema and keyword in APPLIES[kind]
    )
    if kind == "array":
        return Array(_type(schema.get("items", True), join(pointer, "items")), constraints)
    if kind == "object":
        return Map(_type(schema.get("additionalProperties", True), join(pointer, "additionalProperties")))
    if kind == "string" and "pattern" in schema:
        refuse_pattern(schema["pattern"], join(pointer, "pattern"))
    return Scalar(kind, constraints, schema.get("format") if kind == "string" else None)


def _const(schema: Schema, pointer: str) -> Type:
    refuse_lost(schema, ("const",) if "const" in schema else ("enum",), pointer)
    values = [schema["const"]] if "const" in schema else schema["enum"]
    kinds = listed(schema.get("type", []))
    for value in values:
        if isinstance(value, list | dict | float):
            raise BadInput(
                "only strings, integers, booleans and null can be constants",
                pointer=pointer,
                fix="describe the value with 'type'",
            )
        if kinds and not any(_is(value, kind) for kind in kinds):
            raise BadInput(f"the constant {value!r} is not of its own type", pointer=pointer, fix="correct 'type'")
    refuse_empty(values, pointer)
    return Const(tuple(values))


def _is(value: object, kind: str) -> bool:
    return isinstance(value, _PYTHON.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool))


def _union(members: Sequence[Type], pointer: str) -> Type:
    refuse_empty(members, pointer)
    flat: list[Type] = []
    for member in members:
        flat.extend(member.members if isinstance(member, Union) else (member,))
    unique = tuple({repr(member): member for member in flat}.values())  # to Python, the constants 1 and true are equal
    return unique[0] if len(unique) == 1 else Union(unique)


def _disjoint(members: Sequence[Type]) -> bool:
    """Return whether no JSON value can be two of `members`, as far as their outermost types tell."""
    kinds: list[str] = []
    for member in members:
        match member:
            case Scalar(kind="integer"):
                kinds.append("number")
            case Scalar(kind):
                kinds.append(kind)
            case Array():
                kinds.append("array")
            case Map():
                kinds.append("object")
            case _:
                return False
    return len(set(kinds)) == len(kinds)
