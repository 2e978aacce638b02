"""Lower the protocol model to Go: a type for each definition, and for each inline union and set of constants."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir import model as ir
from mcp_bindgen.ir.naming import free, unicode_words

from ..extended import extended

_SCALARS = {"string": "string", "integer": "int64", "number": "json.Number", "boolean": "bool", "null": "Null"}
_CONSTANTS: dict[type[Any], str] = {str: "string", bool: "bool", int: "int64"}
_INITIALISMS = frozenset(
    ["api", "html", "http", "id", "json", "jsonrpc", "mime", "rpc", "sdk", "ttl", "ui", "uri", "url"]
)
_DECLARED = re.compile(r"^(?:const|func|type|var) ([A-Z]\w*)", re.MULTILINE)
_TEMPLATES = Path(__file__).parent.glob("templates/*.go.jinja")
_OWN = sorted({name for path in _TEMPLATES for name in _DECLARED.findall(path.read_text("utf-8"))})
"""The names of a package that are not definitions: its templates declare them."""


class Row(NamedTuple):
    """Field of a struct, or a constant: description, and the cells of its line."""

    doc: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class GoType:
    """Declaration of a type.

    Attributes:
        name: The name.
        doc: The description.
        type: The underlying type; empty for a struct.
        fields: Fields of a struct.
        constants: The values of the type, if only these are allowed.
        limits: Tag with the limits of a type that is no struct.
        is_alias: True for another name of a type that exists.
    """

    name: str
    doc: str
    type: str = ""
    fields: tuple[Row, ...] = ()
    constants: tuple[Row, ...] = ()
    limits: str = ""
    is_alias: bool = False


@dataclass
class Package:
    """Names and types of a package.

    Attributes:
        protocol: The protocol.
        names: Definition -> name of its type.
        types: The types, each inline one after the definition that it belongs to.
        methods: Constant and method; the types of its params and results are references.
        names_of_methods: The constants of methods.
        errors: The constants of error codes.
    """

    protocol: Protocol
    names: dict[str, str] = field(default_factory=dict[str, str])
    types: list[GoType] = field(default_factory=list[GoType])
    methods: list[tuple[str, ir.Method]] = field(default_factory=list[tuple[str, ir.Method]])
    names_of_methods: list[Row] = field(default_factory=list[Row])
    errors: list[Row] = field(default_factory=list[Row])


def lower(protocol: Protocol) -> Package:
    """Return the Go view of a protocol."""
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
        package.names_of_methods.append(Row(doc(method), (name, f"= {quoted(method.name)}")))
    for error in protocol.errors:
        package.errors.append(Row(error.doc, (scope.name(f"Code_{error.name}"), f"= {error.code}")))
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
        name = free(name, self._taken)
        self._taken.add(name)
        return name


class _Writer:
    """Writer of declarations."""

    def __init__(self, package: Package, scope: _Scope) -> None:
        self._names, self._protocol, self._types, self._scope = package.names, package.protocol, package.types, scope

    def declare(self, name: str, type: ir.Type, text: str = "") -> None:
        """Add the declaration of a type, before those of the types inside of it."""
        place = len(self._types)
        match type:
            case ir.Object(fields, extra):
                scope = _Scope(("MarshalJSON", "UnmarshalJSON"))
                members = [self._field(name, scope, member) for member in fields]
                if extra is not None:
                    others = "json.RawMessage" if isinstance(extra, ir.AnyValue) else self.type(extra, f"{name}Extra")
                    words = "" if members else "The members."
                    words = "The other members." if members else words
                    tag = _tag('json:"-"', *self._limits(extra))
                    members.append(Row(words, (scope.name("Extra"), f"map[string]{others}", tag)))
                found = GoType(name, text, fields=tuple(members))
            case ir.Union(members=alternatives):
                scope = _Scope(("MarshalJSON", "UnmarshalJSON"))
                found = GoType(name, text, fields=tuple(self._alternative(name, scope, one) for one in alternatives))
            case ir.Const(values) if all(isinstance(value, str) for value in values):
                names = [self._scope.name(f"{name}_{value}") for value in values]
                rows = (Row("", (one, name, f"= {quoted(value)}")) for one, value in zip(names, values, strict=True))
                found = GoType(name, text, "string", constants=tuple(rows))
            case ir.Array() | ir.Map():
                found = GoType(name, text, self.type(type, name), limits=_tag(*self._limits(type)))
            case _:
                found = GoType(name, text, self.type(type, name), is_alias=True)
        self._types.insert(place, found)

    def type(self, type: ir.Type, place: str) -> str:
        """Return a type as an expression; `place` is the name if it needs a declaration of its own."""
        match type:
            case ir.AnyValue():
                return "json.RawMessage"
            case ir.Scalar(kind):
                return _SCALARS[kind]
            case ir.Array(items):
                return f"[]{self._item(items, place)}"
            case ir.Map(values):
                return f"map[string]{self._item(values, place)}"
            case ir.Ref(name):
                return self._names[name]
            case ir.Const(values) if not all(isinstance(value, str) for value in values):
                return "json.RawMessage"
            case _:
                name = self._scope.name(place)
                self.declare(name, type)
                return name

    def _item(self, type: ir.Type, place: str) -> str:
        return "any" if isinstance(type, ir.AnyValue) else self.type(type, f"{place}Item")

    def _field(self, owner: str, scope: _Scope, member: ir.Field) -> Row:
        name, type = scope.name(member.wire), member.type
        options = "," if member.wire[-1:] in ("-", ",") else ""
        options = options if member.required else ",omitempty"
        rest = tuple(one for one in type.members if one != ir.Scalar("null")) if isinstance(type, ir.Union) else ()
        is_nullable = member.required and isinstance(type, ir.Union) and len(rest) < len(type.members)
        if is_nullable:
            type = rest[0] if len(rest) == 1 else ir.Union(rest)
        constant = type.values[0] if isinstance(type, ir.Const) and len(type.values) == 1 else None
        text = _CONSTANTS.get(constant.__class__) or self.type(type, f"{owner}{name}")
        has_nil = isinstance(self._protocol.resolve(type), ir.AnyValue | ir.Array | ir.Map) or text == "json.RawMessage"
        text = f"*{text}" if (is_nullable or not member.required) and not has_nil else text
        tags = [f"json:{quoted(member.wire + options)}", *self._limits(type)]
        tags += [f"const:{quoted(quoted(constant))}"] if constant.__class__ in _CONSTANTS else []
        return Row(doc(member), (name, text, _tag(*tags)))

    def _alternative(self, owner: str, scope: _Scope, type: ir.Type) -> Row:
        kinds = {"integer": "Integer", "number": "Number", "boolean": "Bool", "null": "Null", "string": "String"}
        match type:
            case ir.Ref(name):
                wanted = self._names[name]
            case ir.Scalar(kind):
                wanted = kinds[kind]
            case _:
                wanted = {"Array": "List", "Map": "Object", "AnyValue": "Any"}.get(type.__class__.__name__, "Value")
        name = scope.name(wanted)
        if isinstance(type, ir.Scalar) and type.kind == "integer":  # ids may have any size
            return Row("", (name, "*json.Number", _tag('type:"integer"', *self._limits(type))))
        text = self.type(type, f"{owner}{name}")
        has_nil = isinstance(self._protocol.resolve(type), ir.AnyValue | ir.Array | ir.Map)
        return Row("", (name, text if has_nil else f"*{text}", _tag(*self._limits(type))))

    def _limits(self, type: ir.Type, *, is_inner: bool = False) -> Iterator[str]:
        """Yield tags with the constraints of a type and of scalars inside of it; arrays with any inside have a name."""
        found = self._protocol.resolve(type)
        if isinstance(type, ir.Ref) and isinstance(found, ir.Array | ir.Map):  # its own UnmarshalJSON checks it
            return
        for keyword, limit in (
            found.constraints if isinstance(found, ir.Scalar if is_inner else ir.Scalar | ir.Array) else ()
        ):
            yield f"{keyword}:{quoted(str(limit))}"
        if isinstance(found, ir.Array | ir.Map):
            yield from self._limits(found.items if isinstance(found, ir.Array) else found.values, is_inner=True)


def quoted(value: ir.Json) -> str:
    """Return a value as JSON that is Go too, where no escape is half of a character and U+FEFF is never plain."""
    return json.dumps(value, ensure_ascii=False).replace("\ufeff", r"\ufeff")


def _tag(*parts: str) -> str:
    """Return the tag of a field; a raw string of Go has no backtick."""
    text = " ".join(parts)
    return quoted(text) if "`" in text else text and f"`{text}`"


def doc(one: ir.Definition | ir.Field | ir.Method) -> str:
    """Return the description, with a note that tools read if it is deprecated."""
    since, _, instead = one.deprecated.partition(": ")
    notice = f"{instead} ({since})." if instead else f"{since}."
    return "\n\n".join(filter(None, (one.doc, f"Deprecated: {notice}" if since else "")))


def comment(text: str, indent: str = "") -> str:
    """Return the lines of a comment, paragraph by paragraph; empty without text."""
    text = re.sub("`+", "`", text).replace("''", '"')  # gofmt makes curly quotes of two
    printable = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    parts = [" ".join(part.split()) for part in re.split(r"\n\s*\n", printable)]  # indented lines are code
    wrapped = [textwrap.wrap(part, 100, break_on_hyphens=False) for part in parts if part]
    for part in wrapped[1:-1]:
        if len(part) == 1 and part[0][0].isupper() and part[0][-1].isalnum():  # gofmt makes a heading of it
            part[0] += "."
    lines = [line for part in wrapped for line in ("", *part)][1:]
    return "".join(f"{indent}// {line}".rstrip() + "\n" for line in lines)


def lines(rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Return description and line of each row; gofmt aligns the lines between descriptions."""
    groups: list[list[Row]] = []
    for row in rows:
        groups += [[]] if row.doc or not groups else []
        groups[-1].append(row)
    return ((row.doc, line) for group in groups for row, line in zip(group, _aligned(group), strict=True))


def _aligned(rows: Iterable[Row]) -> list[str]:
    cells = [[cell for cell in row.cells if cell] for row in rows]
    for column in range(max(map(len, cells), default=1) - 1):
        for has_next, run in groupby(cells, lambda row: len(row) > column + 1):  # noqa: B023 - runs at once
            group = list(run) if has_next else []
            width = max((len(row[column]) for row in group), default=0)
            for row in group:
                row[column] = row[column].ljust(width)
    return [" ".join(row) for row in cells]
