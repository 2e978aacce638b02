"""Resolve selectors: the method, definition, member or error code that a user names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_bindgen.ir.model import Field, Object, Protocol, Ref, Type, Union
from mcp_bindgen.spec.errors import BadInput, suggestion

from .location import Step, suffix
from .location import steps as inner

Kind = Literal["method", "definition", "member", "error"]

_STEP = re.compile(
    r"""\.(?P<field>\w+) | \["(?P<key>[^"]*)"\] | \[(?P<items>)\] | \{(?P<values>)\} | \|(?P<form>\w+)""", re.X
)
_NAME = re.compile(r"\w+")


@dataclass(frozen=True)
class Selector:
    """Method, definition, member or error code of a revision.

    Attributes:
        kind: Kind of the subject.
        name: Name of the method, definition or error.
        steps: Path from the definition to a member.
    """

    kind: Kind
    name: str
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return self.name + "".join(suffix(*step) for step in self.steps)


@dataclass(frozen=True)
class Target:
    """Place of a member.

    Attributes:
        owner: The definition of the schema that contains it.
        steps: Path from the owner.
        type: Type of the member.
        field: The member, if it is a field of an object.
    """

    owner: str
    steps: tuple[Step, ...]
    type: Type
    field: Field | None


def find(protocol: Protocol, subject: str) -> Selector | None:
    """Return the selector of a subject in a revision, or `None`."""
    if any(method.name == subject for method in protocol.methods):
        return Selector("method", subject)
    for error in protocol.errors:
        if subject in (error.name, str(error.code)):
            return Selector("error", error.name)
    if subject in protocol.definitions:
        return Selector("definition", subject)
    name = _NAME.match(subject)
    steps = parse_steps(subject[name.end() :]) if name is not None else None
    if name is None or steps is None or name[0] not in protocol.definitions:
        return None
    selector = Selector("member", name[0], steps)
    return selector if locate(protocol, selector) is not None else None


def parse_steps(text: str) -> tuple[Step, ...] | None:
    """Return the steps in a text, or `None` if it is not a path."""
    found = list(_STEP.finditer(text))
    if "".join(match[0] for match in found) != text:
        return None
    return tuple((str(match.lastgroup).replace("key", "field"), match[str(match.lastgroup)]) for match in found)


def locate(protocol: Protocol, selector: Selector) -> Target | None:
    """Return the place at the end of the path of a selector, or `None` if there is none."""
    definition = protocol.definitions.get(selector.name)
    target = Target(selector.name, (), definition.type, None) if definition is not None else None
    for step in selector.steps:
        target = _below(protocol, target, step) if target is not None else None
    return target


def _below(protocol: Protocol, target: Target, step: Step) -> Target | None:
    owner, steps, type = target.owner, target.steps, target.type
    while isinstance(type, Ref):
        if not protocol.definitions[type.name].inline:
            owner, steps = type.name, ()
        type = protocol.definitions[type.name].type
    found = next((part for known, part in inner(type) if known == step), None)
    if found is not None:
        return Target(owner, (*steps, step), found, type.field(step[1]) if isinstance(type, Object) else None)
    forms = type.members if isinstance(type, Union) and step[0] != "form" else ()
    targets = (_below(protocol, Target(owner, steps, one, None), step) for one in forms)
    return next((one for one in targets if one is not None), None)


def unknown(subject: str, protocols: Sequence[Protocol]) -> BadInput:
    """Return the error for an unknown subject, with the nearest names."""
    names = dict.fromkeys(name for protocol in protocols for name in _names(protocol, subject))
    otherwise = "name a method, a definition, a member or an error code"
    return BadInput(f"no revision has {subject!r}", fix=suggestion(subject, names, otherwise, most=3))


def _names(protocol: Protocol, subject: str) -> Iterable[str]:
    yield from (method.name for method in protocol.methods)
    yield from protocol.definitions
    yield from (str(error.code) for error in protocol.errors)
    yield from (error.name for error in protocol.errors)
    if "." in subject:
        for name, definition in protocol.definitions.items():
            if isinstance(definition.type, Object):
                yield from (name + suffix("field", field.wire) for field in definition.type.fields)
