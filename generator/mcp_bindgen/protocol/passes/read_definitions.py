"""From JSON Schema to the types of the protocol model; no schema dict goes further than this."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcp_bindgen.spec import BadInput, Schema
from mcp_bindgen.spec.document import target
from mcp_bindgen.spec.json import is_object, listed
from mcp_bindgen.spec.keywords import CONSTRAINTS
from mcp_bindgen.spec.pointer import join

from .. import naming
from ..model import Array, Const, Definition, Field, Free, Map, Object, Ref, Scalar, Type, Union
from .draft import Draft

_APPLIES = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("minItems", "maxItems"),
}
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def read_definitions(draft: Draft) -> Draft:
    """Fills in the definitions.

    Raises:
        BadInput: A schema says something that the model cannot carry, or two members share a Python name.
    """
    definitions: dict[str, Definition] = {}
    for name in sorted(draft.schemas):
        schema = draft.schemas[name]
        if not name.isidentifier() or name.startswith("_"):
            raise BadInput(
                f"the definition {name!r} cannot be a name in Python",
                pointer=join("/$defs", name),
                fix="rename it to letters and digits",
            )
        definitions[name] = Definition(
            name=name,
            type=_object(schema, name) if _has_members(schema) else _type(schema, join("/$defs", name)),
            doc=schema.get("description", ""),
            hoisted=name in draft.hoisted,
        )
    return replace(draft, definitions=definitions)


def _has_members(schema: Schema) -> bool:
    return bool(schema.get("properties") or schema.get("required")) or schema.get("additionalProperties") is False


def _object(schema: Schema, name: str) -> Object:
    pointer = join("/$defs", name)
    if schema.get("type") != "object":
        raise BadInput(
            'members without "type": "object" do not say what else is accepted',
            pointer=pointer,
            fix='add "type": "object"',
        )
    properties: dict[str, Any] = schema.get("properties", {})
    required = set(schema.get("required", ()))
    wires = [*properties, *sorted(required - set(properties))]
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
            )
            for wire in wires
        ),
        extra=None if extra is False else _type(extra, join(pointer, "additionalProperties")),
    )


def _doc(schema: Any) -> str:
    return schema.get("description", "") if is_object(schema) else ""


def _type(schema: Schema | bool, pointer: str) -> Type:
    if schema is True:
        return Free()
    if schema is False:
        raise BadInput("'false' accepts nothing", pointer=pointer, fix="remove the member")
    assert is_object(schema)
    if "$ref" in schema:
        return Ref(target(schema["$ref"]))
    if "const" in schema or "enum" in schema:
        return _const(schema, pointer)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            if ("type" in schema and schema["type"] != "object") or schema.get("properties"):
                raise BadInput(
                    f"{keyword!r} beside other keywords is not supported",
                    pointer=pointer,
                    fix="move them into its members",
                )
            members = tuple(
                _type(member, join(pointer, keyword, index)) for index, member in enumerate(schema[keyword])
            )
            if keyword == "oneOf" and not _disjoint(members):
                raise BadInput(
                    "the members of a 'oneOf' may overlap",
                    pointer=pointer,
                    fix="use 'anyOf', or members of different types",
                )
            return _union(members)
    kinds = schema.get("type")
    if kinds is None:
        _refuse_lost(schema, [], pointer)
        return Free()
    kinds = listed(kinds)
    _refuse_lost(schema, kinds, pointer)
    return _union(tuple(_single(kind, schema, pointer) for kind in kinds))


def _single(kind: Any, schema: Schema, pointer: str) -> Type:
    constraints = tuple(
        (keyword, schema[keyword]) for keyword in CONSTRAINTS if keyword in schema and keyword in _APPLIES.get(kind, ())
    )
    if kind == "array":
        return Array(_type(schema.get("items", True), join(pointer, "items")), constraints)
    if kind == "object":
        return Map(_type(schema.get("additionalProperties", True), join(pointer, "additionalProperties")))
    return Scalar(kind, constraints, schema.get("format") if kind == "string" else None)


def _refuse_lost(schema: Schema, kinds: list[Any], pointer: str) -> None:
    """A constraint for a type that is not named would be lost."""
    allowed = {keyword for kind in kinds for keyword in _APPLIES.get(kind, ())}
    for keyword in CONSTRAINTS:
        if keyword in schema and keyword not in allowed:
            raise BadInput(
                f"{keyword!r} does not fit the type", pointer=pointer, fix="name the type that it constrains"
            )


def _const(schema: Schema, pointer: str) -> Type:
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
    return Const(tuple(values))


def _is(value: object, kind: str) -> bool:
    return isinstance(value, _PYTHON.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool))


def _union(members: tuple[Type, ...]) -> Type:
    flat: list[Type] = []
    for member in members:
        flat.extend(member.members if isinstance(member, Union) else (member,))
    unique = tuple(dict.fromkeys(flat))
    return unique[0] if len(unique) == 1 else Union(unique)


def _disjoint(members: tuple[Type, ...]) -> bool:
    """Whether no JSON value can be two of `members`, as far as their outermost types tell."""
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
