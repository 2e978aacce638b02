"""What an expression in somebody's code is, as far as that is clear without a type checker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from mcp_bindgen.protocol.model import Array, Const, Map, Object, Protocol, Ref, Scalar, Type, Union

from .surface import Owner


@dataclass(frozen=True)
class Package:
    """A package, by its dotted name: the bindings, or one above them."""

    name: str


@dataclass(frozen=True)
class Module:
    """A module of the bindings: `types`, `errors`, `methods`, `client`, `server`, `dispatcher`."""

    name: str


@dataclass(frozen=True)
class Table:
    """The table of all methods by their names on the wire."""


@dataclass(frozen=True)
class Data:
    """A value of the protocol.

    Attributes:
        type: Its type in the old revision.
        sure: Whether it cannot be anything else.
    """

    type: Type
    sure: bool = True


NOTHING = Data(Const((None,)))
"""The value `None`."""


@dataclass(eq=False)
class Class:
    """A class: one of the bindings, or one of the user's own that is derived from them or uses them.

    Attributes:
        owner: The generated class with stubs that it is or is derived from.
        definition: The definition that it is or is derived from.
        members: What its attributes and methods are.
        bases: The user's own classes that it is derived from.
    """

    owner: Owner | None = None
    definition: str | None = None
    members: dict[str, Value | None] = field(default_factory=dict["str", "Value | None"])
    bases: tuple[Class, ...] = ()

    def member(self, name: str) -> Value | None:
        """What an attribute is, inherited ones included."""
        for one in (self, *self.bases):
            found = one.members.get(name) if one is self else one.member(name)
            if found is not None:
                return found
        return None

    def has(self, name: str) -> bool:
        """Whether the user's own code defines it."""
        return name in self.members or any(base.has(name) for base in self.bases)


@dataclass(frozen=True)
class Thing:
    """An object of a class that is no plain data."""

    of: Class
    sure: bool = True


@dataclass(frozen=True)
class Call:
    """The stub of a call, of an object."""

    owner: Owner
    name: str
    sure: bool = True


@dataclass(frozen=True)
class Function:
    """A function of the user's, or a method that is not generated, which gives `result`."""

    result: Value | None


@dataclass(frozen=True)
class Pending:
    """What becomes `value` once it is awaited, iterated asynchronously or entered."""

    value: Value | None


Value = Package | Module | Table | Data | Class | Thing | Call | Function | Pending


def unsure(value: Value | None) -> Value | None:
    """The same value, if it is that at all."""
    return replace(value, sure=False) if isinstance(value, Data | Thing | Call) else value


def is_null(type: Type) -> bool:
    """Whether a type is `None` and nothing else."""
    return type == NOTHING.type or (isinstance(type, Scalar) and type.kind == "null")


def either(values: Iterable[Value | None]) -> Value | None:
    """One of several values: `None` stands for one that is not known."""
    found = list(dict.fromkeys(values))
    known = [value for value in found if value is not None and value != NOTHING] or found[:1]
    whole = None not in found
    if len(known) == 1:
        return known[0] if whole else unsure(known[0])
    data = [value for value in known if isinstance(value, Data)]
    if len(data) < len(known):
        return None
    types = dict.fromkeys(value.type for value in data)
    type = next(iter(types)) if len(types) == 1 else Union(tuple(types))
    return Data(type, whole and all(value.sure for value in data))


def alternatives(type: Type, protocol: Protocol) -> list[Type]:
    """What a type may be, aliases looked into, `None` left out: classes stay references."""
    match type:
        case Ref(name):
            inner = protocol.definitions[name].type
            return [type] if isinstance(inner, Object) else alternatives(inner, protocol)
        case Union(members):
            return [one for member in members for one in alternatives(member, protocol)]
        case _:
            return [] if is_null(type) else [type]


def item(value: Value | None, protocol: Protocol, *, key: bool = False) -> Value | None:
    """What a list holds, or a dictionary: its values, or, for a loop, its keys."""
    if not isinstance(value, Data):
        return None
    found: list[Value | None] = []
    for type in alternatives(value.type, protocol):
        match type:
            case Array(items):
                found.append(Data(items, value.sure))
            case Map(values):
                found.append(Data(Scalar("string") if key else values, value.sure))
            case _:
                found.append(None)
    return either(found)
