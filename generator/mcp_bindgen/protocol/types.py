"""Type expressions: what a definition, a member or the params of a method hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Json = str | int | float | bool | None


@dataclass(frozen=True)
class Free:
    """Any JSON value, `null` included.

    Attributes:
        implied: True if the schema leaves it out: members that an object does not name, without
            `additionalProperties`. Receivers accept them, but senders have no reason to send them.
    """

    implied: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class Scalar:
    """A JSON string, integer, number, boolean or null, narrowed by `constraints` (JSON Schema keyword -> value)."""

    kind: Literal["string", "integer", "number", "boolean", "null"]
    constraints: tuple[tuple[str, Any], ...] = ()
    format: str | None = None


@dataclass(frozen=True)
class Const:
    """One of a few fixed values: a `const` has one, an `enum` has several."""

    values: tuple[Json, ...]


@dataclass(frozen=True)
class Array:
    """A JSON array."""

    items: Type
    constraints: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Map:
    """A JSON object that is used as a dictionary: no member has a name of its own."""

    values: Type


@dataclass(frozen=True)
class Ref:
    """A definition, by name."""

    name: str


@dataclass(frozen=True)
class Union:
    """One of several types. `tag` is the member that tells them apart, where the schema has one."""

    members: tuple[Type, ...]
    tag: str | None = None


@dataclass(frozen=True)
class Object:
    """A JSON object with members of its own. Only a definition is one: inline objects are hoisted.

    Attributes:
        fields: The members that the schema names, in canonical order.
        extra: The type of every other member; `None` when there may be none.
    """

    fields: tuple[Field, ...]
    extra: Type | None = Free(implied=True)

    def field(self, wire: str) -> Field | None:
        """Return the field with the wire name `wire`, if there is one."""
        return next((member for member in self.fields if member.wire == wire), None)


Type = Free | Scalar | Const | Array | Map | Ref | Union | Object


@dataclass(frozen=True)
class Field:
    """A named member of an object.

    Attributes:
        wire: Its name in JSON.
        name: Its name in Python.
        type: What it holds.
        required: Whether it must be there.
        default: What a constructor fills in where it is required; else what it reads as where it is absent.
        doc: What it means.
        fallback: What the schema says that its absence means, as JSON; empty where it says nothing.
    """

    wire: str
    name: str
    type: Type
    required: bool
    default: Json = None
    doc: str = ""
    fallback: str = ""


def parts(type: Type) -> Iterator[Type]:
    """Return the types directly inside of `type`; a reference has none."""
    match type:
        case Array(items=inner) | Map(values=inner):
            yield inner
        case Union(members):
            yield from members
        case Object(fields, extra):
            yield from (member.type for member in fields)
            yield from () if extra is None else (extra,)
        case Ref() | Free() | Scalar() | Const():
            return


def references(type: Type) -> Iterator[str]:
    """Return the definitions that `type` names directly."""
    if isinstance(type, Ref):
        yield type.name
    for part in parts(type):
        yield from references(part)


def map_parts(type: Type, change: Callable[[Type], Type]) -> Type:
    """Return `type` with `change(part)` in the place of each type directly inside of it."""
    match type:
        case Array(items):
            return replace(type, items=change(items))
        case Map(values):
            return Map(change(values))
        case Union(members):
            return replace(type, members=tuple(map(change, members)))
        case Object(fields, extra):
            changed = tuple(replace(field, type=change(field.type)) for field in fields)
            return Object(changed, None if extra is None else change(extra))
        case Ref() | Free() | Scalar() | Const():
            return type
