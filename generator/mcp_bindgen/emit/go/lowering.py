"""Lower the protocol model to Go: a type for each definition, and for each inline union and set of constants."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import (
    AnyValue,
    Array,
    Const,
    Definition,
    Field,
    Map,
    Method,
    Object,
    Ref,
    Scalar,
    Type,
    Union,
)
from mcp_bindgen.ir.naming import numbered, unicode_words
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.pointer import join

from ..extended import extended

_SCALARS = {"string": "string", "integer": "int64", "number": "json.Number", "boolean": "bool", "null": "Null"}
_CONSTANTS = {str: "string", bool: "bool", int: "int64"}
_INITIALISMS = frozenset(("api", "html", "http", "id", "json", "mime", "rpc", "sdk", "ttl", "ui", "uri", "url"))
_OWN = ("Method", "MethodNamed", "Methods", "New", "Null", "Revision", "Stateless", "ValidationError")
"""The names of a package that are not definitions."""


@dataclass(frozen=True)
class GoField:
    """Field of a struct: a member of an object, or an alternative of a union."""

    name: str
    type: str
    tag: str
    doc: str = ""


@dataclass(frozen=True)
class GoType:
    """Declaration of a type.

    Attributes:
        name: The name.
        doc: The description.
        type: The underlying type; empty for a struct.
        fields: Fields of a struct.
        constants: Name, type and value of each constant.
        is_alias: True for another name of a type that exists.
    """

    name: str
    doc: str
    type: str = ""
    fields: tuple[GoField, ...] = ()
    constants: tuple[tuple[str, str, str], ...] = ()
    is_alias: bool = False


@dataclass
class Package:
    """Names and types of a package.

    Attributes:
        protocol: The protocol.
        names: Definition -> name of its type.
        types: The types, each inline one after the definition that it belongs to.
        methods: Constant and method; the types of its params and results are references.
        errors: Constant, code and description.
    """

    protocol: Protocol
    names: dict[str, str] = field(default_factory=dict[str, str])
    types: list[GoType] = field(default_factory=list[GoType])
    methods: list[tuple[str, Method]] = field(default_factory=list[tuple[str, Method]])
    errors: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])


def lower(protocol: Protocol) -> Package:
    """Return the Go view of a protocol; raise `BadInput` if a member cannot be in the tag of a field."""
    package = Package(extended(protocol))
    protocol, scope = package.protocol, _Scope(_OWN)
    for name in protocol.definitions:
        package.names[name] = scope.name(name)
    writer = _Writer(package, scope)
    for definition in protocol.definitions.values():
        writer.declare(package.names[definition.name], definition.type, doc(definition))
    for method in protocol.methods:
        name = scope.name(f"Method_{method.definition.removesuffix(method.kind.capitalize()) or method.kind}")
        package.methods.append((name, method))
    for error in protocol.errors:
        package.errors.append((scope.name(f"Code_{error.name}"), error.code, error.doc))
    return package


class _Scope:
    """Scope of exported names."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)

    def name(self, text: str) -> str:
        """Return a free name for a text: `requestId` -> `RequestID`."""
        vendor, _, rest = text.rpartition("/")
        words = unicode_words(rest if "." in vendor else text)
        parts = (word.upper() if word.lower() in _INITIALISMS else word[0].upper() + word[1:] for word in words)
        name = "".join(parts)
        name = name if name[:1].isupper() else f"X{name}"
        name = numbered(name, self._taken.__contains__) if name in self._taken else name
        self._taken.add(name)
        return name


class _Writer:
    """Writer of declarations."""

    def __init__(self, package: Package, scope: _Scope) -> None:
        self._names, self._protocol, self._types, self._scope = package.names, package.protocol, package.types, scope

    def declare(self, name: str, type: Type, text: str = "") -> None:
        """Add the declaration of a type, before those of the types inside of it."""
        place = len(self._types)
        match type:
            case Object(fields, extra):
                scope = _Scope(("MarshalJSON", "UnmarshalJSON"))
                members = [self._field(name, scope, member) for member in fields]
                if extra is not None:
                    others = "json.RawMessage" if isinstance(extra, AnyValue) else self.type(extra, f"{name}Extra")
                    words = "" if members else "The members."
                    words = "The other members." if members else words
                    tags = " ".join(('json:"-"', *self._limits(extra)))
                    members.append(GoField(scope.name("Extra"), f"map[string]{others}", tags, words))
                found = GoType(name, text, fields=tuple(members))
            case Union(members=alternatives):
                scope = _Scope(("MarshalJSON", "UnmarshalJSON"))
                found = GoType(name, text, fields=tuple(self._alternative(name, scope, one) for one in alternatives))
            case Const(values) if all(isinstance(value, str) for value in values):
                named = ((self._scope.name(f"{name}_{value}"), name, f"= {json.dumps(value)}") for value in values)
                found = GoType(name, text, "string", constants=tuple(named))
            case Array() | Map():
                found = GoType(name, text, self.type(type, name))
            case _:
                found = GoType(name, text, self.type(type, name), is_alias=True)
        self._types.insert(place, found)

    def type(self, type: Type, place: str) -> str:
        """Return a type as an expression; `place` is the name if it needs a declaration of its own."""
        match type:
            case AnyValue():
                return "json.RawMessage"
            case Scalar(kind):
                return _SCALARS[kind]
            case Array(items):
                return f"[]{self._item(items, place)}"
            case Map(values):
                return f"map[string]{self._item(values, place)}"
            case Ref(name):
                return self._names[name]
            case Const(values) if not all(isinstance(value, str) for value in values):
                return "json.RawMessage"
            case _:
                name = self._scope.name(place)
                self.declare(name, type)
                return name

    def _item(self, type: Type, place: str) -> str:
        return "any" if isinstance(type, AnyValue) else self.type(type, f"{place}Item")

    def _field(self, owner: str, scope: _Scope, member: Field) -> GoField:
        name, type, options = scope.name(member.wire), member.type, "" if member.required else ",omitempty"
        rest = tuple(one for one in type.members if one != Scalar("null")) if isinstance(type, Union) else ()
        is_nullable = member.required and isinstance(type, Union) and len(rest) < len(type.members)
        if is_nullable:
            type = rest[0] if len(rest) == 1 else Union(rest)
        constant = type.values[0] if isinstance(type, Const) and len(type.values) == 1 else None
        text = _CONSTANTS.get(constant.__class__) or self.type(type, f"{owner}{name}")
        has_nil = isinstance(self._protocol.resolve(type), AnyValue | Array | Map) or text == "json.RawMessage"
        text = f"*{text}" if (is_nullable or not member.required) and not has_nil else text
        if re.search(r'[",\\`\x00-\x1f]', member.wire):
            fix = "rename the member with a patch"
            raise BadInput(f"Go has no JSON tag for {member.wire!r}", pointer=join("/$defs", owner), fix=fix)
        tags = [f'json:"{member.wire}{options}"', *self._limits(type)]
        tags += [f"const:{json.dumps(json.dumps(constant))}"] if constant.__class__ in _CONSTANTS else []
        return GoField(name, text, " ".join(tags), doc(member))

    def _alternative(self, owner: str, scope: _Scope, type: Type) -> GoField:
        kinds = {"integer": "Integer", "number": "Number", "boolean": "Bool", "null": "Null", "string": "String"}
        match type:
            case Ref(name):
                wanted = self._names[name]
            case Scalar(kind):
                wanted = kinds[kind]
            case _:
                wanted = {"Array": "List", "Map": "Object", "AnyValue": "Any"}.get(type.__class__.__name__, "Value")
        name = scope.name(wanted)
        if isinstance(type, Scalar) and type.kind == "integer":  # ids may have any size
            return GoField(name, "*json.Number", 'type:"integer"')
        text = self.type(type, f"{owner}{name}")
        has_nil = isinstance(self._protocol.resolve(type), AnyValue | Array | Map)
        return GoField(name, text if has_nil else f"*{text}", " ".join(self._limits(type)))

    def _limits(self, type: Type) -> Iterator[str]:
        """Yield tags with the constraints of a type and the types inside of it, by JSON Schema keyword."""
        found = self._protocol.resolve(type)
        for keyword, limit in found.constraints if isinstance(found, Scalar | Array) else ():
            yield f"{keyword}:{json.dumps(str(limit))}"
        if isinstance(found, Array | Map):
            yield from self._limits(found.items if isinstance(found, Array) else found.values)


def doc(one: Definition | Field | Method) -> str:
    """Return the description, with a note that tools read if it is deprecated."""
    return "\n\n".join(filter(None, (one.doc, f"Deprecated: {one.deprecated}" if one.deprecated else "")))


def comment(text: str, indent: str = "") -> str:
    """Return the lines of a comment, paragraph by paragraph; empty without text."""
    parts = ["".join(char if char.isprintable() else " " for char in part) for part in re.split(r"\n\s*\n", text)]
    wrapped = [textwrap.wrap(part, 100, break_on_hyphens=False) for part in parts if part.strip()]
    lines = [line for part in wrapped for line in ("", *part)][1:]
    return "".join(f"{indent}// {line}".rstrip() + "\n" for line in lines)


def field_lines(fields: Iterable[GoField]) -> Iterator[tuple[str, str]]:
    """Yield description and line of each field; gofmt aligns the lines between descriptions."""
    groups: list[list[GoField]] = []
    for one in fields:
        groups += [[]] if one.doc or not groups else []
        groups[-1].append(one)
    for group in groups:
        rows = [(one.name, one.type, f"`{one.tag}`" if one.tag else "") for one in group]
        yield from zip((one.doc for one in group), aligned(rows), strict=True)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines whose columns gofmt leaves as they are."""
    cells = [[cell for cell in row if cell] for row in rows]
    for column in range(max(map(len, cells), default=1) - 1):
        for has_next, run in groupby(cells, lambda row: len(row) > column + 1):  # noqa: B023 - runs at once
            group = list(run) if has_next else []
            width = max((len(row[column]) for row in group), default=0)
            for row in group:
                row[column] = row[column].ljust(width)
    return [" ".join(row) for row in cells]
