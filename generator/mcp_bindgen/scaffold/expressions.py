"""Example values of the model's types, and Python expressions that build them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.model import Array, Const, Field, Free, Map, Object, Ref, Scalar, Type, Union
from mcp_bindgen.spec.json import is_array, is_object

_TEXT = "example"
_TIME = "2026-01-31T12:00:00Z"
_FORMATS = {
    "byte": "ZXhhbXBsZQ==",
    "date": "2026-01-31",
    "date-time": _TIME,
    "email": "ada@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "time": "12:00:00Z",
    "uri": "https://example.com/",
    "uri-template": "https://example.com/{id}",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}
"""`format` -> a text that has it."""

_GUESSES = (_TEXT, *_FORMATS.values(), "a", "A", "0", "1", "a1", "1.0.0", "12345", "ABC", "/", "")
"""What a `pattern` may be satisfied with."""

_NOTHING: Any = object()


class Unfit(Exception):
    """No value can be found that a type accepts, or a value is none of the type's."""


@dataclass(frozen=True)
class Code:
    """Python source that stands for a value, such as `params.uri`."""

    text: str


def example(protocol: Protocol, type: Type, *, full: bool = False) -> Any:
    """A small JSON value that `type` accepts: what must be there, and nothing else.

    Args:
        protocol: Where the definitions are.
        type: What it must be.
        full: Whether optional members are there, too, and arrays have an item.

    Raises:
        Unfit: There is none, or none that can be found without searching.
    """
    return _Examples(protocol, full).of(type, "", ())


def example_class(protocol: Protocol, type: Type) -> str | None:
    """The name of the class that `type` is, `None` where it is none."""
    while isinstance(type, Ref):
        if isinstance(protocol.definitions[type.name].type, Object):
            return type.name
        type = protocol.definitions[type.name].type
    return None


def fits(protocol: Protocol, type: Type, value: Any) -> bool:
    """Whether `value` is one of `type`; what a constructor fills in may be missing, and code fits everywhere."""
    if isinstance(value, Code):
        return True
    match protocol.resolve(type):
        case Free():
            return True
        case Scalar() as scalar:
            return _is_scalar(scalar, value)
        case Const(values):
            return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)
        case Array(items, constraints):
            return (
                is_array(value) and _is_long(constraints, len(value)) and all(fits(protocol, items, v) for v in value)
            )
        case Map(values):
            return is_object(value) and all(fits(protocol, values, member) for member in value.values())
        case Union(members):
            return any(fits(protocol, member, value) for member in members)
        case Object() as object:
            return is_object(value) and _is_object(protocol, object, value)
        case Ref():
            raise TypeError("a reference was followed")


def expression(protocol: Protocol, type: Type, value: Any, prefix: str = "mcp.") -> str:
    """The Python expression for `value`, where `type` is expected; not formatted.

    Args:
        protocol: Where the definitions are.
        type: What it must be.
        value: JSON, in which `Code` may stand for values.
        prefix: What stands before the names of classes.

    Raises:
        Unfit: `value` is none of the type's.
    """
    if isinstance(value, Code):
        return value.text
    if not fits(protocol, type, value):
        raise Unfit(f"{value!r} is no {type}")
    match type:
        case Ref(name):
            inner = protocol.definitions[name].type
            if example_class(protocol, type) is not None:
                return _construct(protocol, name, value, prefix)
            return expression(protocol, inner, value, prefix)
        case Array(items):
            return f"[{', '.join(expression(protocol, items, item, prefix) for item in value)}]"
        case Map(values):
            entries = (f"{name!r}: {expression(protocol, values, item, prefix)}" for name, item in value.items())
            return f"{{{', '.join(entries)}}}"
        case Union(members):
            chosen = next(member for member in members if fits(protocol, member, value))
            return expression(protocol, chosen, value, prefix)
        case Object():
            raise Unfit("an object has a name; refer to it")
        case Free() | Scalar() | Const():
            return _literal(value)


def _construct(protocol: Protocol, name: str, value: Mapping[str, Any], prefix: str) -> str:
    """A call of a class; members that it does not name have no keyword, so they are read as they come on the wire."""
    type = protocol.resolve(Ref(name))
    assert isinstance(type, Object)
    if any(type.field(wire) is None for wire in value):
        whole = {field.wire: field.default for field in type.fields if _is_filled(field, value)} | dict(value)
        return f"{prefix}{name}.model_validate({_literal(whole)})"
    given = [field for field in type.fields if field.wire in value]
    said = [field for field in given if not (_is_constant(field) and value[field.wire] == field.default)]
    said.sort(key=lambda field: list(value).index(field.wire))
    arguments = (f"{field.name}={expression(protocol, field.type, value[field.wire], prefix)}" for field in said)
    return f"{prefix}{name}({', '.join(arguments)})"


def _literal(value: Any) -> str:
    if isinstance(value, Code):
        return value.text
    if is_object(value):
        return f"{{{', '.join(f'{name!r}: {_literal(item)}' for name, item in value.items())}}}"
    if is_array(value):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


def _is_filled(field: Field, value: Mapping[str, Any]) -> bool:
    return _is_constant(field) and field.wire not in value


def _is_constant(field: Field) -> bool:
    """Whether a constructor fills the field in; any other default only says what absence means."""
    return field.required and field.default is not None


def _is_object(protocol: Protocol, type: Object, value: Mapping[str, Any]) -> bool:
    for field in type.fields:
        if field.wire in value:
            if not fits(protocol, field.type, value[field.wire]):
                return False
        elif field.required and field.default is None:
            return False
    others = [member for wire, member in value.items() if type.field(wire) is None]
    extra = type.extra
    return not others or (extra is not None and all(fits(protocol, extra, member) for member in others))


def _is_scalar(type: Scalar, value: Any) -> bool:
    limits = dict(type.constraints)
    match type.kind:
        case "string":
            return isinstance(value, str) and _is_text(limits, value)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer" | "number":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and (type.kind == "number" or value == int(value)) and _is_within(limits, value)


def _is_text(limits: Mapping[str, Any], text: str) -> bool:
    if not limits.get("minLength", 0) <= len(text) <= limits.get("maxLength", math.inf):
        return False
    try:
        return "pattern" not in limits or re.search(limits["pattern"], text) is not None
    except re.error:  # patterns are ECMA's, and not all of them are Python's
        return False


def _is_within(limits: Mapping[str, Any], number: float) -> bool:
    return bool(
        limits.get("minimum", -math.inf) <= number <= limits.get("maximum", math.inf)
        and limits.get("exclusiveMinimum", -math.inf) < number < limits.get("exclusiveMaximum", math.inf)
        and number % limits.get("multipleOf", number or 1) == 0
    )


def _is_long(constraints: tuple[tuple[str, Any], ...], length: int) -> bool:
    limits = dict(constraints)
    fits: bool = limits.get("minItems", 0) <= length <= limits.get("maxItems", math.inf)
    return fits


class _Examples:
    """Finds examples.

    Args:
        protocol: Where the definitions are.
        full: Whether to say what may be left out.
    """

    def __init__(self, protocol: Protocol, full: bool) -> None:
        self._protocol = protocol
        self._full = full

    def of(self, type: Type, name: str, inside: tuple[str, ...]) -> Any:
        """An example of `type`, for a member of that `name`, `inside` of definitions that are being made."""
        match type:
            case Free():
                return _TEXT
            case Scalar():
                return _first(type, name)
            case Const(values):
                return values[0]
            case Array(items, constraints):
                return self._items(items, dict(constraints), name, inside)
            case Map():
                return {}
            case Ref(definition) if definition in inside:
                raise Unfit(f"{definition} contains itself")
            case Ref(definition):
                return self.of(self._protocol.definitions[definition].type, name, (*inside, definition))
            case Union(members):
                return min(self._each(members, name, inside), key=_size, default=None) if members else None
            case Object(fields):
                found = {field.wire: self._field(field, inside) for field in fields}
                return {wire: value for wire, value in found.items() if value is not _NOTHING}

    def _items(self, items: Type, limits: Mapping[str, Any], name: str, inside: tuple[str, ...]) -> list[Any]:
        least: int = limits.get("minItems", 0)
        wanted = max(least, 1) if self._full and limits.get("maxItems", 1) else least
        try:
            return [self.of(items, name, inside) for _ in range(wanted)]
        except Unfit:
            if least:
                raise
            return []

    def _field(self, field: Field, inside: tuple[str, ...]) -> Any:
        if field.default is not None and field.required:
            return field.default
        if not field.required and not self._full:
            return _NOTHING
        try:
            return self.of(field.type, field.wire, inside)
        except Unfit:
            if field.required:
                raise
            return _NOTHING

    def _each(self, members: tuple[Type, ...], name: str, inside: tuple[str, ...]) -> list[Any]:
        found: list[Any] = []
        for member in members:
            try:
                found.append(self.of(member, name, inside))
            except Unfit:
                continue
        if not found:
            raise Unfit("no member of the union has an example")
        return found


def _first(type: Scalar, name: str) -> Any:
    for value in _candidates(type, name):
        if _is_scalar(type, value):
            return value
    raise Unfit(f"nothing was found for {type}")


def _candidates(type: Scalar, name: str) -> Iterator[Any]:
    limits = dict(type.constraints)
    match type.kind:
        case "string":
            yield _FORMATS.get(type.format or "", _TIME if re.search("[a-z]At$", name) else _TEXT)
            yield from _GUESSES
            yield _TEXT[: limits.get("maxLength", 0)].ljust(limits.get("minLength", 0), "e")
        case "integer" | "number":
            yield from (1, 0)
            step = limits.get("multipleOf", 1)
            for bound in (limits[key] for key in limits if key != "multipleOf"):
                near = math.floor(bound / step) * step
                yield from (bound, near, near + step, near - step, bound + 0.5, bound - 0.5)
            yield step
        case "boolean":
            yield True
        case "null":
            yield None


def _size(value: Any) -> int:
    """How much there is to read, which is least where nothing has to be said."""
    return 0 if value is None else len(json.dumps(value))
