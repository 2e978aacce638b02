"""Type expressions: the types of definitions, members and params."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Discriminator, StrictBool
from pydantic import Field as Member
from pydantic.json_schema import SkipJsonSchema

from .json_form import Flag, JsonText, Limit, Maybe, NoneAsFalse, Pairs, Text

Json = str | int | float | bool | None


@dataclass(frozen=True)
class Free:
    """Any JSON value, `null` included.

    Attributes:
        kind: The tag in JSON, as in all types.
        implied: True for the members that an object leaves open without `additionalProperties`. Receivers accept
            them, but senders have no reason to send them.
    """

    kind: Literal["any"] = field(default="any", kw_only=True, repr=False)
    implied: Flag = field(default=False, compare=False, repr=False)


def _is_implied(extra: object) -> bool:
    return isinstance(extra, Free) and extra.implied


@dataclass(frozen=True)
class Scalar:
    """A JSON string, integer, number, boolean or null.

    Attributes:
        kind: The JSON type.
        constraints: JSON Schema keyword -> value.
        format: The `format` of a string.
    """

    kind: Literal["string", "integer", "number", "boolean", "null"]
    constraints: Pairs[Limit] = ()
    format: Maybe[str] = None


@dataclass(frozen=True)
class Const:
    """One of a few fixed values: a `const` has one, an `enum` has several."""

    kind: Literal["const"] = field(default="const", kw_only=True, repr=False)
    values: tuple[Json, ...]


@dataclass(frozen=True)
class Array:
    """A JSON array."""

    kind: Literal["array"] = field(default="array", kw_only=True, repr=False)
    items: Type
    constraints: Pairs[Limit] = ()


@dataclass(frozen=True)
class Map:
    """A JSON object used as a dictionary: all its members have the same type."""

    kind: Literal["map"] = field(default="map", kw_only=True, repr=False)
    values: Type


@dataclass(frozen=True)
class Ref:
    """A reference to a definition, by name."""

    kind: Literal["ref"] = field(default="ref", kw_only=True, repr=False)
    name: str


@dataclass(frozen=True)
class Union:
    """One of several types.

    Attributes:
        kind: The tag in JSON.
        members: The types.
        tag: The member whose constant tells the types apart, where the schema has one.
    """

    kind: Literal["union"] = field(default="union", kw_only=True, repr=False)
    members: tuple[Type, ...]
    tag: Maybe[str] = None


@dataclass(frozen=True)
class Object:
    """A JSON object with named members. Only a definition has this type: inline objects are hoisted.

    Attributes:
        kind: The tag in JSON.
        fields: The named members, in canonical order.
        extra: The type of every other member; `None` for an object that allows no other members, `false` in JSON.
    """

    kind: Literal["object"] = field(default="object", kw_only=True, repr=False)
    fields: tuple[Field, ...]
    extra: Annotated[Type | SkipJsonSchema[None], NoneAsFalse, Member(exclude_if=_is_implied)] = Free(implied=True)

    def field(self, wire: str) -> Field | None:
        """Return the field with the name `wire`, or None."""
        return next((member for member in self.fields if member.wire == wire), None)


Type = Annotated[Free | Scalar | Const | Array | Map | Ref | Union | Object, Discriminator("kind")]


@dataclass(frozen=True)
class Field:
    """A named member of an object.

    Attributes:
        wire: The name; `name` in JSON.
        type: The type of the value.
        required: True if the member must be present.
        stated: A value known without the schema: the value that `semantics.toml` states for
            a required member, or the meaning of an absent member of a contract. `None` if there is no such value.
        doc: The description.
        fallback: The `default` of the schema, as JSON text; empty if the schema has none. `default` in JSON.
    """

    wire: Annotated[str, Member(alias="name")]
    type: Type
    required: StrictBool
    stated: Maybe[Json] = None
    doc: Text = ""
    fallback: Annotated[JsonText, Member(alias="default")] = ""

    def of(self, type: Type) -> Field:
        """Return this field with another type."""
        return self if type is self.type else replace(self, type=type)

    @property
    def default(self) -> Json:
        """The value that a sender need not give: the only constant of a required member, or the stated value."""
        return self.constant if self.required and self.constant is not None else self.stated

    @property
    def constant(self) -> Json:
        """The only value that the member may have, if there is only one."""
        return self.type.values[0] if isinstance(self.type, Const) and len(self.type.values) == 1 else None


def parts(type: Type) -> tuple[Type, ...]:
    """Return the types directly inside of `type`; a reference has none."""
    match type:
        case Array(items=inner) | Map(values=inner):
            return (inner,)
        case Union(members):
            return members
        case Object(fields, extra):
            return (*(member.type for member in fields), *(() if extra is None else (extra,)))
        case Ref() | Free() | Scalar() | Const():
            return ()


def flattened(types: Iterable[Type]) -> list[Type]:
    """Return types with the members of unions in their place."""
    return [part for type in types for part in (type.members if isinstance(type, Union) else (type,))]


def union_of(types: Iterable[Type]) -> Type:
    """Return the union of types, each once; a single type stays as it is."""
    unique = tuple({repr(type): type for type in flattened(types)}.values())  # in Python, 1 and true are equal
    return unique[0] if len(unique) == 1 else Union(unique)


def references(type: Type) -> list[str]:
    """Return the names of the definitions to which `type` refers directly."""
    return [type.name] if isinstance(type, Ref) else [name for part in parts(type) for name in references(part)]


def map_parts(type: Type, change: Callable[[Type], Type]) -> Type:
    """Return `type` with each type directly inside of it replaced by `change(part)`."""
    match type:
        case Array(items):
            return replace(type, items=change(items))
        case Map(values):
            return Map(change(values))
        case Union(members):
            return replace(type, members=tuple(map(change, members)))
        case Object(fields, extra):
            changed = tuple(field.of(change(field.type)) for field in fields)
            return Object(changed, None if extra is None else change(extra))
        case Ref() | Free() | Scalar() | Const():
            return type


def renamed(type: Type, names: Mapping[str, str]) -> Type:
    """Return `type` with the new names of definitions, by their old names."""
    if isinstance(type, Ref):
        return Ref(names[type.name]) if type.name in names else type
    return map_parts(type, lambda part: renamed(part, names))
