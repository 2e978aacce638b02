"""Read JSON Schema into the types of the protocol model; no schema dict goes further than this."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mcp_bindgen.runtime.model.json_types import distinct
from mcp_bindgen.spec import Schema
from mcp_bindgen.spec.json import is_json_type, is_object, join, listed
from mcp_bindgen.spec.keywords import CONSTRAINTS, has_members
from mcp_bindgen.spec.references import target

from ..constants import are_disjoint, is_literal, with_constants
from ..losses import APPLIES, beside_union, lost, unfit
from ..model import AnyValue, Array, Const, Definition, Field, Json, Map, Object, Ref, Scalar, Type, flattened, union_of
from ..prose import plain, split_notice
from ..text import describe
from .build_state import BuildState


def read_definitions(state: BuildState) -> BuildState:
    """Fill in the definitions.

    Raises:
        BadInput: In strict mode: a schema says something that the model cannot carry.
    """
    reader = _Reader(state)
    definitions: dict[str, Definition] = {}
    for name in sorted(state.schemas):
        schema, pointer = state.schemas[name], join("/$defs", name)
        definitions[name] = Definition(
            name=name,
            type=reader.object(schema, pointer) if has_members(schema) else reader.type(schema, pointer),
            **reader.words(schema),
            inline=name in state.inline_names,
            origin=state.origins.get(name, ""),
        )
    return replace(state, definitions=definitions)


class _Reader:
    """Reads schemas into types. A type accepts all values of its schema, and more if lenient mode widens it."""

    def __init__(self, state: BuildState) -> None:
        self.report = state.context.report
        self.schemas = state.schemas
        self.named = frozenset(state.schemas)

    def words(self, schema: Any) -> dict[str, str]:
        """Return `doc`, with the descriptions of constants, and `deprecated` of a definition or member."""
        schema = schema if is_object(schema) else {}
        text, notice = split_notice(schema)
        return {"doc": plain(with_constants(text, schema), self.named), "deprecated": plain(notice, self.named)}

    def object(self, schema: Schema, pointer: str) -> Object:
        """Read a schema with members of its own."""
        self.lose(schema, ("properties", "required", "additionalProperties"), pointer)
        properties: dict[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        others = None if schema.get("additionalProperties") is False else self.others(schema, pointer)
        undeclared = AnyValue() if others is None or "additionalProperties" not in schema else others
        return Object(
            fields=tuple(
                Field(
                    wire=wire,
                    type=self.type(properties[wire], join(pointer, "properties", wire))
                    if wire in properties
                    else undeclared,
                    required=wire in required,
                    fallback=_fallback(properties.get(wire)),
                    **self.words(properties.get(wire)),
                )
                for wire in sorted({*properties, *required})
            ),
            extra=others,
        )

    def others(self, schema: Schema, pointer: str) -> Type:
        """Return the type of the members that an object does not name."""
        if "additionalProperties" not in schema:
            return AnyValue(implied=True)
        return self.type(schema["additionalProperties"], join(pointer, "additionalProperties"))

    def type(self, schema: Schema | bool, pointer: str) -> Type:
        """Read any other schema."""
        if schema is True:
            return AnyValue()
        if schema is False:
            self.report("accepts-nothing", pointer)
            return AnyValue()
        assert is_object(schema)
        if "$ref" in schema:
            return Ref(target(schema["$ref"]))
        if (wrong := beside_union(schema)) is not None:
            self.report("beside-union", pointer, **wrong)
        if "anyOf" in schema or "oneOf" in schema:
            return self.alternatives(schema, pointer)
        if "const" in schema or "enum" in schema:
            return self.const(schema, pointer)
        if "type" not in schema:
            self.lose(schema, (), pointer)
            return AnyValue()
        kinds = listed(schema["type"])
        self.lose(schema, [keyword for kind in kinds for keyword in APPLIES[kind]], pointer)
        return union_of([self.single(kind, schema, pointer) for kind in kinds])

    def lose(self, schema: Schema, read: Iterable[str], pointer: str) -> None:
        """Settle that keywords which are not `read` are lost."""
        for keyword in lost(schema, read):
            self.report("keyword-unfit", pointer, keyword=keyword)

    def alternatives(self, schema: Schema, pointer: str) -> Type:
        keyword = "anyOf" if "anyOf" in schema else "oneOf"
        members = [self.type(member, join(pointer, keyword, index)) for index, member in enumerate(schema[keyword])]
        if keyword == "oneOf" and not are_disjoint(schema[keyword], self.schemas):
            self.report("one-of-overlaps", pointer)
        return union_of(_merged(members))

    def single(self, kind: Any, schema: Schema, pointer: str) -> Type:
        constraints = {keyword: schema[keyword] for keyword in CONSTRAINTS if keyword in schema}
        constraints = {keyword: value for keyword, value in constraints.items() if keyword in APPLIES[kind]}
        for keyword, wrong in list(unfit(constraints)):
            self.report("constraint-unfit", join(pointer, keyword), **wrong)
            del constraints[keyword]
        narrowed = tuple(constraints.items())
        if kind == "array":
            return Array(self.type(schema.get("items", True), join(pointer, "items")), narrowed)
        if kind == "object":
            return Map(self.others(schema, pointer))
        return Scalar(kind, narrowed, schema.get("format") if kind == "string" else None)

    def const(self, schema: Schema, pointer: str) -> Type:
        self.lose(schema, ("const",) if "const" in schema else ("enum",), pointer)
        values = [schema["const"]] if "const" in schema else schema["enum"]
        kinds = listed(schema.get("type", []))
        plain: list[Json] = []
        others: list[Type] = []
        for value in values:
            if not is_literal(value):
                others.append(other := _type_of(value))
                self.report("constant-kind", pointer, type=describe(other))
                continue
            if kinds and not any(is_json_type(value, kind) for kind in kinds):
                self.report("constant-type", pointer, value=value)
            plain.append(value)
        return union_of([*([Const(tuple(plain))] if plain else []), *others])


def _fallback(schema: Any) -> str:
    return json.dumps(schema["default"]) if is_object(schema) and "default" in schema else ""


def _type_of(value: object) -> Type:
    """Return the type of a value that cannot be a constant."""
    if isinstance(value, list):
        return Array(AnyValue())
    return Map(AnyValue()) if is_object(value) else Scalar("integer" if isinstance(value, int) else "number")


def _merged(members: Sequence[Type]) -> list[Type]:
    """Return the members of a union with all constants in one member, where the first one was.

    Numbers and booleans stay apart: to pydantic, `1.0` is both of the constants 1 and true.
    """
    flat = flattened(members)
    values = distinct(value for part in flat if isinstance(part, Const) for value in part.values)
    if {bool, int} <= {*map(type, values)}:
        return flat
    return [Const(tuple(values)) if isinstance(part, Const) else part for part in flat]
