"""Exact types of JSON Schemas, from the normal form that lowering uses, for declarations and sample values.

A type accepts all values of its schema, and no other ones as far as types can tell them apart: with tuples, all
constants, alternatives beside members, and conditions as cases. `limits` states the rest. Models of contracts have the
wider types of `types.py`, because Python has no classes for most of this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import (
    AnyValue,
    Array,
    Const,
    Definition,
    Field,
    Map,
    Object,
    Ref,
    Scalar,
    Tuple,
    Type,
    Union,
    flattened,
    union_of,
)
from mcp_bindgen.json_schema.pointer import tokens
from mcp_bindgen.lowering.rules import Reason, Refused
from mcp_bindgen.lowering.shapes import Alternative, Conj, Document, Located
from mcp_bindgen.runtime.model.json_types import distinct
from mcp_bindgen.spec.errors import shortened
from mcp_bindgen.spec.json import is_object

from . import names
from .model import Contract
from .shared import Shared

NEVER = Union(())
"""The type without values."""

VALUE = Ref("Value")
"""The type of the values of a schema alone."""

_MAX_STEPS = 50_000
_MAX_TUPLE = 4  # items of an array of fixed length that becomes a tuple
_MAX_LIMIT_CHARS = 80
_LENGTH = re.compile("(min|max)Items ")
_MAX_WHOLE_FLOAT = 2**53
_SAFE_INTEGERS = (1 - _MAX_WHOLE_FLOAT, _MAX_WHOLE_FLOAT - 1)  # limits that generators state for any integer


def exact_types(schema: Any) -> Protocol:
    """Return the exact types of a schema, with `VALUE` as the type of its values."""
    reader = ExactReader(names.Scope())
    reader.define(schema, VALUE.name)
    return Protocol("", "stateless", "", reader.definitions, ())


Limits: TypeAlias = Mapping[tuple[str, str], Sequence[str]]
"""Definition, and member or nothing -> what its type does not express, as texts."""


def exact_contract(contract: Contract, taken: Iterable[str] = ()) -> tuple[Contract, Limits]:
    """Return a contract whose tools have exact types, and their limits; `taken` are the names of other things."""
    others = [entry.arguments for entry in contract.all_entries if entry.kind != "tool" and entry.arguments]
    scope, roots = names.Scope(), {"": ""}
    for name in (*taken, *others):
        scope.claim(name)
    schemas = [
        tool.raw[member] for tool in contract.tools for member in ("inputSchema", "outputSchema") if member in tool.raw
    ]
    reader = ExactReader(scope, schemas)
    reader.definitions |= {name: contract.types.definitions[name] for name in others}

    def read(name: str, schema: Any) -> str:
        if name not in roots:
            roots[name] = reader.define(schema, name).name
        return roots[name]

    tools = [
        replace(
            tool,
            arguments=read(tool.arguments, tool.raw["inputSchema"]),
            output=read(tool.output, tool.raw.get("outputSchema")),
        )
        for tool in contract.tools
    ]
    types = replace(contract.types, definitions=reader.definitions)
    return replace(contract, tools=tuple(tools), types=types), reader.limits


class ExactReader:
    """Reader of schemas into definitions with exact types.

    Args:
        scope: Scope of the names of definitions.
        schemas: Schemas that may share definitions.

    Attributes:
        definitions: Name -> definition.
        limits: What the types of definitions and members do not express.
    """

    def __init__(self, scope: names.Scope, schemas: Iterable[Any] = ()) -> None:
        self.scope = scope
        self.shared = Shared(schemas, scope)
        self.definitions: dict[str, Definition] = {}
        self.limits: dict[tuple[str, str], list[str]] = {}

    def define(self, schema: Any, stem: str) -> Ref:
        """Read a schema; return the reference to the definition of its values."""
        document = Document({"allOf": [schema]} if isinstance(schema, bool) else schema, max_steps=_MAX_STEPS)
        if self.shared.whole(schema) != stem:
            return _Reader(self, document, document.root, stem).root
        if stem not in self.definitions:
            target = document.schema.get("$ref")
            _Reader(self, document, document.resolve(target, "/$ref") if target else document.root, stem, stem)
        return Ref(stem)


class _Reader:
    """Reader of one document."""

    def __init__(
        self, parent: ExactReader, document: Document, root: Located, stem: str, shared: str | None = None
    ) -> None:
        self._parent = parent
        self._document = document
        self._stem = stem
        self._names: dict[tuple[tuple[int, str], ...], str] = {}
        self._inside: set[tuple[tuple[int, str], ...]] = set()
        self._kept: list[Conj] = []  # so that ids stay unique
        self._pending: list[tuple[Conj, str]] = []
        self.root = self._named((root,), stem, shared)
        for conj, name in self._pending:  # grows in the loop
            limits: list[str] = []
            found = self._type(conj, name, limits, name)
            self._define(name, found, self._doc(conj), limits, inline=False)

    def _named(self, conj: Conj, stem: str, shared: str | None = None) -> Ref:
        """Return the reference to the definition of a place; several schemas may share its name."""
        key = _key(conj)
        if key not in self._names:
            self._names[key] = shared or self._parent.scope.claim(stem)
            self._pending.append((conj, self._names[key]))
        return Ref(self._names[key])

    def _define(self, name: str, type: Type, doc: str, limits: list[str], *, inline: bool = True) -> None:
        self._parent.definitions[name] = Definition(name, type, doc, inline)
        self._parent.limits[name, ""] = limits

    def _type(self, conj: Conj, stem: str, limits: list[str], top: str = "") -> Type:
        """Return the type of a place.

        Args:
            conj: The schemas of the place.
            stem: Base of the names of objects in it.
            limits: Texts, to which those of the place are added.
            top: Name of the definition, if the type is a definition.
        """
        key = _key(conj)
        if not top and (key in self._inside or key in self._names):
            return self._named(conj, stem)
        try:
            shape = self._document.head(conj)
        except Refused as refused:
            limits.append(self._unsaid(refused.reason))
            return AnyValue()
        stem = f"{stem}Option" if top and len(shape) > 1 else stem
        self._kept.append(conj)
        self._inside.add(key)
        found = _union([self._alternative(one, stem, limits, top if len(shape) == 1 else "") for one in shape])
        self._inside.discard(key)
        limits[:] = dict.fromkeys(limits)
        return found

    def _alternative(self, one: Alternative, stem: str, limits: list[str], top: str) -> Type:
        unsaid = [_limit(word, value) for word, value in one.limits.items() if value not in _SAFE_INTEGERS]
        unsaid += map(self._unsaid, one.reasons)
        if one.kind != "object":
            limits += unsaid
        match one.kind:
            case "values":
                return _union(Scalar("null") if value is None else Const((_whole(value),)) for value in one.values)
            case "link":
                target = self._document.at(one.target)
                assert target is not None
                path = tokens(one.target) or [""]
                shared = self._parent.shared.definition(self._document.schema, path[-1]) if len(path) == 2 else None
                if shared in self._parent.definitions:
                    return Ref(shared)
                return self._named((target,), names.inner(self._stem, path[-1]), shared)
            case "array":
                found = self._array(one, stem, limits)
                if isinstance(found, Tuple) and found.rest is None and found.least == one.limits.get("minItems", 0):
                    limits[:] = [text for text in limits if text not in unsaid or not _LENGTH.match(text)]
                return found
            case "object":
                return self._object(one, stem, [*unsaid, *self._names_of(one)], limits, top)
            case "string" | "integer" | "number" | "boolean" | "null":
                known = {word: _whole(limit) for word, limit in one.limits.items() if word not in ("format", "not")}
                return Scalar(one.kind, tuple(known.items()), one.limits.get("format"))
            case _:
                return AnyValue()

    def _array(self, one: Alternative, stem: str, limits: list[str]) -> Array:
        least, most = _whole(one.limits.get("minItems", 0)), _whole(one.limits.get("maxItems"))
        prefix = [self._type(conj, stem, limits) for conj in one.prefix]
        rest = AnyValue() if one.rest is None else self._type(one.rest, stem, limits)
        if prefix or least == most:
            prefix += [rest] * min((most or least) - len(prefix), _MAX_TUPLE)
        end = next((index for index, item in enumerate(prefix) if item == NEVER), len(prefix))
        end, further = (end, rest) if most is None else (min(end, most), rest if most > end else NEVER)
        items = _union([*prefix[:end], further])
        bounds = tuple((word, _whole(one.limits[word])) for word in ("minItems", "maxItems") if word in one.limits)
        if not prefix and further != NEVER:
            return Array(items, bounds)
        return Tuple(
            items,
            bounds,
            prefix=tuple(prefix[:end]),
            least=min(least, end),
            rest=None if further == NEVER or end < len(prefix) else further,
        )

    def _object(self, one: Alternative, stem: str, unsaid: list[str], limits: list[str], top: str) -> Type:
        extra = AnyValue(implied=True) if one.rest is None else self._type(one.rest, names.inner(stem, "extra"), unsaid)
        others = [self._type(conj, stem, unsaid) for conj in one.patterns.values()] if one.rest is not None else []
        extra = _union([extra, *others]) if others else extra
        if not one.named and extra != NEVER:
            limits += unsaid
            return Map(extra)
        name = top or self._parent.scope.claim(stem)
        fields = [self._field(name, wire, one) for wire in one.named]
        if any(field.required and field.type == NEVER for field in fields):
            return NEVER
        shown = [field for field in fields if field.type != NEVER or extra != NEVER]
        found = Object(tuple(shown), None if extra == NEVER else extra)
        if top:
            limits += unsaid
            return found
        self._define(name, found, one.description, unsaid)
        return Ref(name)

    def _field(self, name: str, wire: str, one: Alternative) -> Field:
        conj, limits = one.member(wire), list[str]()
        found = self._type(conj, names.inner(name, wire), limits)
        self._parent.limits[name, wire] = limits
        defaults = [each.schema["default"] for each in conj if is_object(each.schema) and "default" in each.schema]
        fallback = json.dumps(defaults[0]) if defaults else ""
        return Field(wire, found, wire in one.required, doc=self._doc(conj), fallback=fallback)

    def _doc(self, conj: Conj) -> str:
        words = (one.schema.get("description") for one in conj if is_object(one.schema))
        return next((text for text in words if isinstance(text, str)), "")

    def _names_of(self, one: Alternative) -> Iterator[str]:
        """Yield what the type of an object does not express about the names of members."""
        yield from (_limit("propertyNames", names.schema) for names in one.names)
        yield from (f"names {pattern}" for pattern in one.patterns)

    def _unsaid(self, reason: Reason) -> str:
        """Return the keyword of a reason, or its sentence if that is about several keywords."""
        found = self._document.at(reason.pointer) if reason.rule in ("drop-condition", "unsupported") else None
        return reason.text if found is None else _limit(tokens(reason.pointer)[-1], found.schema)


def _key(conj: Conj) -> tuple[tuple[int, str], ...]:
    return tuple((id(one.schema), one.pointer) for one in conj)


def _limit(word: str, value: Any) -> str:
    return shortened(f"{word} {json.dumps(value, ensure_ascii=False)}", _MAX_LIMIT_CHARS)


def _whole(value: Any) -> Any:
    """Return a whole number as an integer: in JSON, `2.0` equals `2`."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _MAX_WHOLE_FLOAT
    return int(value) if is_whole else value


def _union(types: Iterable[Type]) -> Type:
    """Return the union of types, with one type for all constants."""
    flat = flattened(types)
    merged = Const(tuple(distinct(value for type in flat if isinstance(type, Const) for value in type.values)))
    unique = dict.fromkeys(merged if isinstance(type, Const) else type for type in flat)
    return NEVER if not unique else AnyValue() if AnyValue() in unique else union_of(unique)
