"""Invalid items of results: leave out single entries of lists, and report each of them.

Only clients do so, and only when a result as a whole was refused, so valid results cost nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

from ..model.base import fields_of, wire_fields
from ..model.json_types import is_array, is_object, parse_json
from ..model.validation import located
from .methods import RequestMethod, classes

_LONGEST_STEP = 60  # characters of a member's name in a pointer
_CONTENT, _STRUCTURED, _LIFETIME = "content", "structuredContent", "ttlMs"


@dataclass(frozen=True)
class InvalidItem:
    """A part of a result that a client left out, or valid, because it is not valid.

    Attributes:
        method: The method that was answered.
        pointer: Where the problem is: a JSON Pointer (RFC 6901) into the result.
        problem: The rule that is broken.
    """

    method: str
    pointer: str
    problem: str

    def __str__(self) -> str:
        return f"{self.method}: {self.pointer}: {self.problem}"


def drop_invalid(method: RequestMethod[Any, Any], wire: object) -> tuple[Any, list[InvalidItem]]:
    """Return an invalid result without the invalid entries of its lists, and a record of each entry.

    Two mistakes are valid: a negative lifetime means zero (MCP 2026-07-28, "Caching"), and structured content without
    the list of content gets an empty one.

    Args:
        method: Method of the request.
        wire: The result in wire form; it may still not be valid afterwards.
    """
    fields = _wire_fields(method.result)
    if not is_object(wire) or not fields:
        return wire, []
    found: list[InvalidItem] = []
    valid = dict(wire)
    lifetime = wire.get(_LIFETIME)
    if _LIFETIME in fields and isinstance(lifetime, int | float) and lifetime < 0:
        valid[_LIFETIME] = 0
    if _CONTENT in fields and _CONTENT not in wire and _STRUCTURED in wire:
        valid[_CONTENT] = []
        found.append(InvalidItem(method.name, f"/{_CONTENT}", "Field required"))
    for name, items in fields.items():
        entries = wire.get(name)
        if items is None or not is_array(entries):
            continue
        problems = [_problem(items, entry) for entry in entries]
        valid[name] = [entry for entry, problem in zip(entries, problems, strict=True) if problem is None]
        for position, problem in enumerate(problems):
            if problem is not None:
                found.append(InvalidItem(method.name, f"/{name}/{position}{problem[0]}", problem[1]))
    return valid, found


def _problem(items: TypeAdapter[Any], entry: object) -> tuple[str, str] | None:
    """Return the pointer and text of the first problem of an entry; `None` for a valid entry."""
    try:
        data = to_json(entry)
        parse_json(data)
    except ValueError:
        return "", "has NaN, an infinity, half of a surrogate pair or too many levels"
    try:
        items.validate_json(data)
    except ValidationError as error:
        steps, problem = next(located(error, data))
        return "".join(f"/{_escaped(step)}" for step in steps), problem
    return None


def _escaped(step: str) -> str:
    """Return a step of a pointer for display: shortened, and without control characters."""
    shown = json.dumps(step if len(step) <= _LONGEST_STEP else f"{step[:_LONGEST_STEP]}...")[1:-1]
    return shown.replace("~", "~0").replace("/", "~1")


@cache
def _wire_fields(kind: object) -> dict[str, TypeAdapter[Any] | None]:
    """Return the wire names of the members of a result; with each list of models the reader of its items."""
    return {wire: _items(fields_of(kind)[name].annotation) for wire, name in wire_fields(kind).items()}


def _items(annotation: Any) -> TypeAdapter[Any] | None:
    """Return the reader of the items, if the type is a list of models."""
    for variant in (annotation, *get_args(annotation)):
        if get_origin(variant) is list:
            kinds = list(classes(*get_args(variant)))
            if kinds and all(issubclass(kind, BaseModel) for kind in kinds):
                return TypeAdapter(*get_args(variant))
    return None
