"""Find all differences between two JSON Schemas, by place and keyword, with the rules of `diff` that describe them.

References are followed: moving a schema to `$defs` is not a difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.diff.location import suffix
from mcp_bindgen.diff.moves import akin
from mcp_bindgen.diff.scalars import scalar_differences
from mcp_bindgen.drift.inclusion import same_schema
from mcp_bindgen.ir.model import Scalar
from mcp_bindgen.json_schema.dialects import modern
from mcp_bindgen.json_schema.keywords import REFERENCES, VALUES
from mcp_bindgen.json_schema.references import Targets
from mcp_bindgen.runtime.model.json_types import ABSENT, json_key
from mcp_bindgen.spec.json import JSON_TYPES, is_array, is_object, listed
from mcp_bindgen.spec.keywords import CONSTRAINTS

Schema = Mapping[str, Any]

CHOICES = frozenset({"enum", "const"})
"""Keywords that list values, which imply the type."""

_NAMES = frozenset({"$id", "$anchor", "$dynamicAnchor", "$defs", "definitions", "additionalItems"})
_UNIONS = ("anyOf", "oneOf")
_DEFAULTS: Mapping[str, Any] = {"items": True, "additionalProperties": True}
"""Keyword -> meaning if absent."""


@dataclass(frozen=True)
class Difference:
    """Difference between two schemas.

    Attributes:
        place: Place as in `diff`: `.city`, `[]`, `{}`; empty at the top.
        keyword: The keyword.
        old: Old value as JSON or short description; empty if absent.
        new: New value in the same form.
        rule: Rule of `diff` that describes it, if one does.
    """

    place: str
    keyword: str
    old: str
    new: str
    rule: str = ""


def differences(old: Schema, new: Schema) -> Iterator[Difference]:
    """Yield the differences between two schemas, independent of the order of members and of the dialect."""
    old, new = ({key: one for key, one in modern(side).items() if key != "$schema"} for side in (old, new))
    yield from _Walk(old, new).schemas(old, new, "")


class _Walk:
    """Parallel walk through two documents; recursive schemas are visited once."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self.targets = Targets(old), Targets(new)
        self.seen: set[tuple[int, int]] = set()
        self.kept: list[Any] = []  # keeps ids of objects unique

    def schemas(self, old: Any, new: Any, place: str) -> Iterator[Difference]:
        """Compare two schemas."""
        if (id(old), id(new)) in self.seen:
            return
        self.seen.add((id(old), id(new)))
        self.kept += [old, new]
        one, other = self.opened(old, 0), self.opened(new, 1)
        if not CHOICES & (one.keys() | other.keys()):
            rule = self.type_rule(one, other)
            if rule is not None:
                yield Difference(place, "type", described(one), described(other), rule)
            if rule in ("", "type-changed"):
                return  # the other keywords are not comparable
        ruled = {"required"} if CHOICES & one.keys() and CHOICES & other.keys() else {"type", "required"}
        for keyword in sorted((one.keys() | other.keys()) - _NAMES - ruled | {"properties"}):
            absent = _DEFAULTS.get(keyword, ABSENT)
            was, now = one.get(keyword, absent), other.get(keyword, absent)
            if keyword == "properties":
                yield from self.members(one, other, place)
            elif keyword in ("items", "additionalProperties", "$ref") and _are_schemas(was, now):
                step = {"items": "[]", "additionalProperties": "{}", "$ref": ""}[keyword]
                yield from self.schemas(was, now, place + step)
            elif keyword in (*_UNIONS, "allOf") and is_array(was) and is_array(now):
                yield from self.alternatives(keyword, was, now, place)
            elif keyword in VALUES and keyword != "$ref":
                if _value(keyword, was) != _value(keyword, now):
                    yield from _ruled(place, keyword, was, now)
            elif not self.same(was, now):
                yield from _ruled(place, keyword, was, now)

    def members(self, old: Schema, new: Schema, place: str) -> Iterator[Difference]:
        """Compare the members of objects; a member of one side only may have a new name on the other side."""
        ours, theirs = old.get("properties", {}), new.get("properties", {})
        needed = [set(map(str, listed(side.get("required", [])))) for side in (old, new)]
        renamed = self.renamed(
            {name: ours[name] for name in ours if name not in theirs},
            {name: theirs[name] for name in theirs if name not in ours},
        )
        for name in dict.fromkeys([*ours, *theirs, *sorted(needed[0] | needed[1])]):
            here, was = place + suffix("field", name), renamed.get(name, name)
            if name in renamed.values():
                continue
            if name in renamed:
                yield Difference(here, "properties", was, name, "field-renamed")
            if (was in ours) == (name in theirs):
                if (was in needed[0]) != (name in needed[1]):
                    rule = "field-became-required" if name in needed[1] else "field-became-optional"
                    yield Difference(here, "required", "", "", rule)
                yield from self.schemas(ours.get(was, True), theirs.get(name, True), here)
                continue
            is_gone = name in ours
            open_side = (new if is_gone else old).get("additionalProperties", False)
            word = "required" if name in needed[not is_gone] else "optional"
            rule = f"field-removed-{word}" if is_gone else f"field-added-{word}"
            if open_side is not False:
                rule = "field-opened" if is_gone else "field-closed"
            sides = (ours[name], open_side) if is_gone else (open_side, theirs[name])
            was_said, now_said = map(described, sides)
            yield Difference(here, "properties", was_said, now_said, rule)

    def renamed(self, gone: Schema, come: Schema) -> dict[str, str]:
        """Return new name -> old name of members with akin names and the same schema, if the pair is unique."""
        close = [
            (new, old)
            for new, schema in come.items()
            for old, other in gone.items()
            if akin(old, new) and self.same(other, schema)
        ]
        return {new: old for new, old in close if sum(new == pair[0] or old == pair[1] for pair in close) == 1}

    def alternatives(self, keyword: str, old: list[Any], new: list[Any], place: str) -> Iterator[Difference]:
        """Compare lists of schemas: remove common schemas, and pair the remaining ones."""
        gone = [was for was in old if not any(self.same(was, now) for now in new)]
        come = [now for now in new if not any(self.same(was, now) for was in old)]
        if len(gone) == len(come):
            for was, now in zip(gone, come, strict=True):
                yield from self.schemas(was, now, place)
        else:
            yield Difference(place, keyword, _json(gone), _json(come))

    def type_rule(self, old: Schema, new: Schema) -> str | None:
        """Return the rule for a change of JSON types, `""` for other forms of a type, or `None` for no change."""
        unions = [any(keyword in side for keyword in _UNIONS) for side in (old, new)]
        one, other = (frozenset(map(str, listed(side.get("type", JSON_TYPES)))) for side in (old, new))
        if any(unions):
            return None if all(unions) else ""
        one, other = (side | {"integer"} if "number" in side else side for side in (one, other))
        if one == other:
            return None
        if one ^ other == frozenset({"null"}):
            return "became-nullable" if "null" in other else "became-non-nullable"
        if one ^ other == frozenset({"number"}) and "integer" in one & other:
            return "integer-to-number" if "number" in other else "number-to-integer"
        return "type-narrowed" if other < one else "type-widened" if one < other else "type-changed"

    def opened(self, schema: Any, side: int) -> dict[str, Any]:
        """Return a schema merged with the target of its reference; the target stays apart if keywords conflict."""
        if not is_object(schema):
            return {} if schema is True else {"not": {}}
        found, seen = dict(schema), set[str]()
        while (keyword := _referring(found)) is not None and found[keyword] not in seen:
            seen.add(found[keyword])
            target = self.targets[side].find(found[keyword])
            rest = {key: value for key, value in found.items() if key != keyword}
            if isinstance(target, bool):
                target = self.opened(target, side)
            if not is_object(target):
                return found
            found = {**target, **rest}
        return found

    def same(self, old: object, new: object) -> bool:
        """Return whether two schemas are equal but for prose and the names of definitions."""
        return same_schema(old, new, self.targets)


def described(schema: Any) -> str:
    """Return a schema in a few words: `array of string`, `"a" or "b"`, `any JSON`."""
    if not is_object(schema):
        return "nothing" if schema is False else "any JSON"
    if CHOICES & schema.keys():
        return " or ".join(map(_json, [schema["const"]] if "const" in schema else schema["enum"]))
    if isinstance(reference := schema.get("$ref"), str):
        return reference.rpartition("/")[2]
    for keyword in _UNIONS:
        if is_array(members := schema.get(keyword)):
            return " or ".join(dict.fromkeys(map(described, members)))
    texts = [
        f"array of {described(schema['items'])}" if kind == "array" and "items" in schema else str(kind)
        for kind in listed(schema.get("type", []))
    ]
    return " or ".join(texts) or "any JSON"


def _ruled(place: str, keyword: str, old: Any, new: Any) -> Iterator[Difference]:
    """Yield a difference between the values of a keyword, with its rule; lists of values differ by value."""
    was, now = _json(old), _json(new)
    if keyword == "default":
        yield Difference(place, keyword, was or "nothing", now or "nothing", "default-changed")
    elif keyword == "format" or keyword in CONSTRAINTS:
        sides = (_limited(keyword, one) for one in (old, new))
        for rule, (before, after) in scalar_differences(*sides):
            yield Difference(place, keyword, before, after, rule)
    elif keyword == "enum" and is_array(old) and is_array(new):
        ours, theirs = ({json_key(one): _json(one) for one in values} for values in (old, new))
        yield from (
            Difference(place, keyword, ours[one], "", "enum-value-removed") for one in ours if one not in theirs
        )
        yield from (
            Difference(place, keyword, "", theirs[one], "enum-value-added") for one in theirs if one not in ours
        )
    elif keyword == "const" and was and now:
        yield Difference(place, keyword, was, now, "const-changed")
    elif keyword == "additionalProperties" and (old is False or new is False):
        rule = "additional-properties-closed" if new is False else "additional-properties-opened"
        yield Difference(place, keyword, was, now, rule)
    else:
        yield Difference(place, keyword, was, now)


def _value(keyword: str, value: Any) -> object:
    """Return what equal values of a keyword share; the order of types and constants does not count."""
    return frozenset(map(json_key, value)) if keyword in ("enum", "type") and is_array(value) else json_key(value)


def _limited(keyword: str, value: Any) -> Scalar:
    """Return a scalar with one limit or format, if it is stated."""
    if value is ABSENT:
        return Scalar("number")
    return Scalar("number", (), value) if keyword == "format" else Scalar("number", ((keyword, value),))


def _are_schemas(old: Any, new: Any) -> bool:
    """Return whether both sides are comparable by keyword; a schema that allows nothing is not."""
    return all(is_object(one) or one is True for one in (old, new)) and old is not new


def _referring(schema: Schema) -> str | None:
    """Return the keyword of the reference of a schema, if it has one."""
    return next((keyword for keyword in REFERENCES if isinstance(schema.get(keyword), str)), None)


def _json(value: Any) -> str:
    return "" if value is ABSENT else json.dumps(value, ensure_ascii=False, sort_keys=True)
