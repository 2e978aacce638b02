"""Documents of a definition: valid ones, and documents that are one step away from a valid one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_bindgen.ir.examples import Unfit
from mcp_bindgen.ir.model import AnyValue, Array, Const, Map, Object, Ref, Scalar, Type, Union
from mcp_bindgen.spec.json import json_type_of
from mcp_bindgen.spec.toml import read_toml

from .places import KEY, Place, Places

_TEXTS = read_toml(Path(__file__).with_name("cases.toml"))
_REASONS: Mapping[str, str] = _TEXTS["reasons"]
_CONFUSED: Mapping[str, Mapping[str, Any]] = _TEXTS["confused"]

STILL = "{} Another alternative of the schema accepts the document."
"""Reason for a damaged document that is valid all the same."""

_LARGE = 2**53 + 1
_OTHER = "unknown-value"
_FREE: tuple[tuple[str, Any], ...] = (
    ("null", None),
    ("object", {"a": [1.5, None, {"__proto__": {"b": True}}]}),
    ("array", []),
    ("number", -0.5),
    ("false", False),
)


@dataclass(frozen=True)
class Case:
    """A document before it is judged.

    Attributes:
        rule: Name of the rule, a key of `reasons` in `cases.toml`.
        place: The place that it is about.
        detail: The kind of value, if the rule makes several documents in one place.
        document: The document.
        text: The document as JSON text, where its spelling matters.
        wrote: Other documents that an implementation may write for it.
    """

    rule: str
    place: Place
    document: Any
    detail: str = ""
    text: str = ""
    wrote: tuple[Any, ...] = ()

    @property
    def id(self) -> str:
        """Rule, detail, pointer, and the alternative of a union."""
        detail = f":{self.detail}" if self.detail else ""
        variant = f"@{self.place.variant}" if self.place.variant else ""
        return f"{self.rule}{detail}#{self.place.pointer}{variant}"

    @property
    def reason(self) -> str:
        """The rule in a sentence."""
        name = str(self.place.tokens[-1]) if self.place.tokens else "The document"
        return _REASONS[self.rule].format(name).replace("`The document`", "The document")


def cases(places: Places, name: str) -> Iterator[Case]:
    """Yield the documents of a definition, some of them several times.

    Raises:
        Unfit: The definition has no example.
    """
    whole = Place((), places.protocol.resolve(Ref(name)), places.example(Ref(name)))
    yield Case("minimal", whole, whole.document)
    yield Case("full", whole, places.example(Ref(name), full=True))
    for place in places.of(name):
        yield from _valid(places, place)
        yield from _damaged(places, place)
    if isinstance(whole.type, Union):
        for member in whole.type.members:
            yield from _alternative(places, member)


def _alternative(places: Places, member: Type) -> Iterator[Case]:
    """Yield examples of a member of a union that is a definition, and these without one required member each."""
    if not isinstance(member, Ref):
        return
    try:
        place = Place((), places.protocol.resolve(member), places.example(member), variant=member.name)
        yield Case("member", place, place.document)
        yield Case("member", place, places.example(member, full=True), "full")
    except Unfit:
        return
    if isinstance(place.type, Object):
        for field in place.type.fields:
            inner = Place((field.wire,), field.type, place.document, field, member.name)
            if field.required:
                yield Case("required", inner, inner.without())
            if field.required and isinstance(places.protocol.resolve(field.type), Const):
                yield Case("constant", inner, inner.with_value(_OTHER))


# --- valid documents ------------------------------------------------------------------------------------------------


def _valid(places: Places, place: Place) -> Iterator[Case]:
    if place.field is not None and not place.field.required:
        yield Case("present", place, place.document)
    if place.field is not None and place.field.wire == "_meta":
        yield Case("meta-key", place, place.with_value({**place.value, "com.example/key": {"a": [1, None]}}))
    match place.type:
        case Scalar():
            yield from _scalars(place, place.type)
        case Const(values):
            yield from (Case("value", place, place.with_value(value), str(value)) for value in values)
        case AnyValue():
            yield from (Case("value", place, place.with_value(value), detail) for detail, value in _FREE)
        case Map():
            yield Case("empty", place, place.with_value({}))
        case Array(items, limits):
            item = places.example(items)
            yield Case("empty", place, place.with_value([]))
            yield Case("several", place, place.with_value([item, item]))
            yield from _limits(place, {keyword: [item] * limit for keyword, limit in limits if isinstance(limit, int)})
        case Object(_, extra):
            yield from _members(place, None if extra is None else isinstance(extra, AnyValue))
        case Union(members):
            for member in members:
                yield from _of_member(places, place, member)
        case Ref():
            union = places.protocol.resolve(place.type)
            for member in union.members if isinstance(union, Union) else ():
                if isinstance(member, Ref):
                    yield from _example(places, place, member, member.name)


def _of_member(places: Places, place: Place, member: Type) -> Iterator[Case]:
    """Yield values for a place that is an inline union."""
    match places.protocol.inline(member):
        case Scalar() as scalar:
            yield from _example(places, place, scalar, scalar.kind)
            yield from _scalars(place, scalar)
        case Const(values):
            yield from (Case("value", place, place.with_value(value), str(value)) for value in values)
        case Ref(name):
            yield from _example(places, place, member, name)
        case inner:
            yield from _example(places, place, member, inner.kind)


def _example(places: Places, place: Place, type: Type, detail: str) -> Iterator[Case]:
    try:
        yield Case("member", place, place.with_value(places.example(type)), detail)
    except Unfit:
        return


def _members(place: Place, is_open: bool | None) -> Iterator[Case]:
    """Yield an object with an undeclared member; `is_open` is false if such members have a type, None if forbidden."""
    holder = place.value
    if is_open is None:
        yield Case("closed", place, place.with_value({**holder, KEY: True}))
    elif is_open:
        yield Case("unknown", place, place.with_value({**holder, KEY: True}))
        yield Case("unknown", place, place.with_value({**holder, KEY: {"enabled": [None]}}), "object")


def _scalars(place: Place, type: Scalar) -> Iterator[Case]:
    limits = dict(type.constraints)
    match type.kind:
        case "boolean":
            yield from (Case("value", place, place.with_value(value), str(value).lower()) for value in (True, False))
        case "string":
            if type.format:
                yield Case("format", place, place.with_value("no valid " + type.format))
            elif not limits and not place.has_meaning:
                yield Case("empty", place, place.with_value(""))
            lengths = {word: size for word, size in limits.items() if word != "pattern" and isinstance(size, int)}
            yield from _limits(place, {word: "e" * size for word, size in lengths.items()})
        case "integer" | "number":
            if not limits:
                values: tuple[Any, ...] = (0, -1, *((1.5,) if type.kind == "number" else ()))
                yield from (Case("value", place, place.with_value(value), str(value)) for value in values)
                yield Case("large", place, place.with_value(_LARGE))
            if type.kind == "integer":
                number = int(place.value) if isinstance(place.value, int | float) else 1
                text = json.dumps(place.with_value("\0"), separators=(",", ":")).replace('"\\u0000"', f"{number}.0")
                yield Case("whole-float", place, None, text=text)
            yield from _limits(place, {word: limit for word, limit in limits.items() if word.endswith("imum")})
        case "null":
            return


def _limits(place: Place, at: dict[str, Any]) -> Iterator[Case]:
    """Yield values at limits, and values just beyond them."""
    for keyword, value in at.items():
        yield Case("limit", place, place.with_value(value), keyword)
        beyond = _beyond(value, 1 if keyword.startswith("max") else -1)
        if beyond is not None:
            yield Case("beyond", place, place.with_value(beyond), keyword)


def _beyond(value: Any, step: int) -> Any:
    """Return a value that is longer, shorter, larger or smaller by one step, or None."""
    if isinstance(value, int | float):
        return value + step
    if step > 0:
        return value + value[:1] if value else None
    return value[:-1] if value else None


# --- damaged documents ----------------------------------------------------------------------------------------------


def _damaged(places: Places, place: Place) -> Iterator[Case]:
    field = place.field
    if field is not None and field.required:
        yield Case("required", place, place.without())
    kinds = _kinds(places, place.type)
    if not kinds:
        return
    if place.tokens and not places.protocol.accepts_null(place.type):
        is_optional = field is not None and not field.required
        if not is_optional:
            yield Case("null", place, place.with_value(None))
        elif len(place.tokens) == 1:  # a sample of a habit of writers, which is the same in all inner objects
            yield Case("null", place, place.with_value(None), wrote=(place.without(),))
    likely = [wrong for kind in kinds for wrong in _CONFUSED[kind].items()]
    accepted = {*kinds, *(["integer"] if "number" in kinds else [])}
    wrong = {detail: value for detail, value in likely if json_type_of(value) not in accepted}
    is_own = not isinstance(place.type, Ref)
    for detail, value in list(wrong.items())[: len(wrong) if is_own else 2]:
        yield Case("type", place, place.with_value(value), detail)
    constants = places.protocol.resolve(place.type)
    if isinstance(constants, Const):
        yield Case("constant", place, place.with_value(_OTHER))
        first = constants.values[0]
        if isinstance(first, str) and first.upper() not in constants.values:
            yield Case("constant", place, place.with_value(first.upper()), "case")


def _kinds(places: Places, type: Type) -> list[str]:
    """Return the JSON types of a type; empty for any JSON."""
    match places.protocol.resolve(type):
        case AnyValue() | Ref():
            return []
        case Scalar(kind):
            return [kind]
        case Const(values):
            return list(dict.fromkeys(map(json_type_of, values)))
        case Array():
            return ["array"]
        case Map() | Object():
            return ["object"]
        case Union(members):
            found = [_kinds(places, member) for member in members]
            return list(dict.fromkeys(kind for kinds in found for kind in kinds)) if all(found) else []
