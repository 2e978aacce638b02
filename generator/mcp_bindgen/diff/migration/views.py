"""Types as a type checker sees them in generated code: aliases looked into, classes by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.protocol.model import Array, Const, Field, Free, Map, Object, Protocol, Ref, Scalar, Type, Union


@dataclass(frozen=True)
class Atom:
    """One alternative of a type.

    Attributes:
        kind: A JSON scalar, `any`, `literal`, `list`, `dict`, `mapping` or `class`.
        name: The name of a class, or a literal as JSON.
        inside: What a list or a dictionary holds.
        limits: What a value must fulfil besides, as JSON Schema says it.
    """

    kind: str
    name: str = ""
    inside: frozenset[Atom] = frozenset()
    limits: frozenset[tuple[str, Any]] = frozenset()


View = frozenset[Atom]
"""The alternatives of a type."""

NULL = Atom("null")
MAPPING = Atom("mapping")
"""Any mapping: what a call takes as metadata that it completes itself."""


class Views:
    """The types of one revision.

    Args:
        protocol: The revision.
        rename: Gives a class the name under which both revisions know it.
    """

    def __init__(self, protocol: Protocol, rename: Callable[[str], str] = str) -> None:
        self.protocol, self.rename = protocol, rename

    def of(self, type: Type | None, trail: frozenset[str] = frozenset()) -> View:
        """The alternatives of a type; those of nothing are `None`. `trail` are the aliases that contain it."""
        match type:
            case None:
                return frozenset({NULL})
            case Free():
                return frozenset({Atom("any")})
            case Scalar(kind, constraints):
                return frozenset({Atom(kind, limits=frozenset(constraints))})
            case Const(values):
                return frozenset(NULL if value is None else Atom("literal", json.dumps(value)) for value in values)
            case Array(items, constraints):
                return frozenset({Atom("list", inside=self.of(items, trail), limits=frozenset(constraints))})
            case Map(values):
                return frozenset({Atom("dict", inside=self.of(values, trail))})
            case Union(members):
                return frozenset(atom for member in members for atom in self.of(member, trail))
            case Ref(name):
                inner = self.protocol.definitions[name].type
                if isinstance(inner, Object) or name in trail:
                    return frozenset({Atom("class", self.rename(name))})
                return self.of(inner, trail | {name})
            case Object():
                raise TypeError("an object has a name; refer to it")

    def read(self, field: Field) -> View:
        """What reading a field gives."""
        return self.of(field.type) if field.required else self.of(field.type) | {NULL}


def fits(view: View, into: View) -> bool:
    """Whether every value of one type is a value of another."""
    return all(any(_fits(atom, other) for other in into) for atom in view)


def suits(given: View | None, was: View, now: View) -> bool:
    """Whether what was given to `was` may be given to `now`; `given` is what it is, where more is known of it."""
    return fits(was, now) or (given is not None and fits(given, now))


def _fits(atom: Atom, into: Atom) -> bool:
    if atom == into:
        return True
    if into.kind == "any":
        return atom.kind != "class" and fits(atom.inside, frozenset({into}))
    if atom.kind == "literal":
        return into.kind in _KINDS[type(json.loads(atom.name))] and not into.limits
    if into.kind == "mapping":
        return atom.kind == "dict"
    whole = atom.kind == "integer" and into.kind == "number"
    if atom.kind != into.kind and not whole:
        return False
    return atom.name == into.name and into.limits <= atom.limits and fits(atom.inside, into.inside)


_KINDS: dict[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
}
