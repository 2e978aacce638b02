"""Values near the limits of JSON Schemas, as candidates for differences between them.

A schema is read as alternatives, each with all schemas that apply to one value together. Candidates need not be valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, combinations, islice, product, zip_longest
from typing import Any

import jsonschema_rs

from mcp_bindgen.app.validation import is_larger, matches
from mcp_bindgen.json_schema.keywords import COUNTS, objects
from mcp_bindgen.json_schema.references import Targets
from mcp_bindgen.runtime.model.json_types import ABSENT, as_array, as_object, distinct, is_array, is_object
from mcp_bindgen.spec.json import listed

_MAX_DEPTH = 60
"""Maximum number of members and items around a value; deeper ones are left out."""

_MAX_ALTERNATIVES = 24
"""Maximum number of alternatives of a schema."""

_MAX_MEMBER_VALUES = 40
"""Maximum number of values of a member or an item."""

_MAX_COMBINED = 40
"""Maximum number of members that are combined with each other."""

_MAX_STEPS = 3000
"""Maximum number of schemas for members and items that are read."""

_MAX_PARTS = 400
"""Maximum number of JSON values in a member or an item; recursive schemas have ones that grow without limit."""

_MAX_LENGTH = 200_000
"""Maximum number of characters, items or members of a value."""

_MAX_BACKTRACKS = 10_000
"""Maximum number of steps that a pattern may take back on one text."""

_MAX_COMMON_LENGTH = 8
"""Maximum limit of one value that other values are tried with."""

_KINDS = ("object", "array", "string", "integer", "number", "boolean", "null")
_STRINGS = (
    "text",
    "",
    "a",
    "A b",
    "0",
    "x-1",
    "2025-01-01",
    "a@example.org",
    "https://example.org/a",
    "\N{EURO SIGN}\n",
)
_NUMBERS = (1, 0, -1, 0.5, 2, 1.5, 100, 2**53 - 1, 1 - 2**53)
_ANY: list[Any] = ["text", 1, None, {}, [], True, 1.5, ""]
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_RANGES = ("LITERAL", "RANGE")
_CHARACTERS = "a0-Z \n\N{EURO SIGN}"
_SAME = ("anyOf", "oneOf")

Parts = Sequence[Mapping[str, Any]]
"""Schemas that apply to one value together."""


def candidates(schema: Any, *others: Any) -> Iterator[Any]:
    """Yield candidates for values of a schema.

    Args:
        schema: A JSON Schema in 2020-12.
        others: Other schemas, for their limits and constants.
    """
    yield from _Candidates(schema, others).of([schema], 0)


class _Candidates:
    def __init__(self, schema: Any, others: Iterable[Any]) -> None:
        self._targets = Targets(schema)
        self._known: dict[tuple[int, str], list[Any]] = {}
        self._alternatives: dict[int, list[list[Mapping[str, Any]]]] = {}
        self._steps_left = _MAX_STEPS
        nodes = [node for one in (schema, *others) for node in objects(one)]
        found = [value for node in nodes for value in (*as_array(node.get("enum")), node.get("const"))]
        patterns = [node["pattern"] for node in nodes if isinstance(node.get("pattern"), str)]
        patterns += [name for node in nodes for name in as_object(node.get("patternProperties"))]
        matched = [text for pattern in dict.fromkeys(patterns) for text in texts(pattern)]
        self._names = distinct(name for node in nodes for name in as_object(node.get("properties")))
        self._strings = distinct([*matched, *(one for one in found if isinstance(one, str)), *_STRINGS])
        limits = [node[word] for node in nodes for word in _LIMITS if _is_number(node.get(word))]
        near = [
            value for limit in limits for value in (limit, limit + 1, limit - 1, limit + 0.5, limit - 0.5, limit / 2)
        ]
        self._numbers: list[Any] = distinct([*_NUMBERS[:4], *filter(_is_number, found), *near, *_NUMBERS])
        self._counts = [one for one in _counts(nodes) if one <= _MAX_COMMON_LENGTH]

    def of(self, schemas: Sequence[Any], depth: int) -> Iterator[Any]:
        """Yield candidates for a value to which all the schemas apply."""
        self._steps_left -= 1
        if depth > _MAX_DEPTH or self._steps_left < 0:
            return
        choices = product(*map(self.alternatives_of, schemas))
        alternatives = [_once(chain.from_iterable(chosen)) for chosen in islice(choices, _MAX_ALTERNATIVES)]
        if len(alternatives) > 1:  # members of several alternatives together
            alternatives.append(_once(chain.from_iterable(alternatives)))
        yield from _by_turns([self.of_parts(parts, depth) for parts in alternatives])

    def members(self, schemas: Sequence[Any], depth: int) -> list[Any]:
        """Return some candidates for a member or an item."""
        schemas = distinct(one for one in schemas if one is not True and one != {})  # else they double at each depth
        if not schemas:
            return _ANY
        key = (depth, json.dumps(schemas))
        if key not in self._known:
            found = islice(self.of(schemas, depth), _MAX_MEMBER_VALUES)
            self._known[key] = distinct(one for one in found if not is_larger(one, _MAX_PARTS))
        return self._known[key]

    def alternatives_of(self, schema: Any) -> list[list[Mapping[str, Any]]]:
        """Return the alternatives of one schema; none if it refers to itself for the same value."""
        if not is_object(schema):
            return [] if schema is False else [[]]
        if id(schema) not in self._alternatives:
            self._alternatives[id(schema)] = []
            choices = [self.alternatives_of(one) for one in as_array(schema.get("allOf"))]
            if isinstance(reference := schema.get("$ref"), str):
                choices.append(self.alternatives_of(self._targets.find(reference)))
            for word in _SAME:
                if members := as_array(schema.get(word)):
                    choices.append(list(_by_turns(map(self.alternatives_of, members)))[:_MAX_ALTERNATIVES])
            optional = [schema[word] for word in ("then", "else", "if") if word in schema]
            optional += as_object(schema.get("dependentSchemas")).values()
            choices += [[[], *self.alternatives_of(one)] for one in optional]
            found = ([schema, *chain.from_iterable(chosen)] for chosen in product(*choices))
            self._alternatives[id(schema)] = list(islice(found, _MAX_ALTERNATIVES))
        return self._alternatives[id(schema)]

    def of_parts(self, parts: Parts, depth: int) -> Iterator[Any]:
        """Yield candidates for a value to which the schemas apply, without a look at their alternatives."""
        constants = [values for part in parts for values in _constants(part)]
        if constants:
            yield from min(constants, key=len)
            return
        kinds = [kind for kind in _KINDS if all(kind in _kinds(part) for part in parts)]
        if "number" in kinds:
            kinds.remove("integer")
        found = _by_turns([self.of_kind(kind, parts, depth) for kind in kinds])
        yield from _valid(parts, ("not", "propertyNames", "contains"), found)

    def of_kind(self, kind: str, parts: Parts, depth: int) -> Iterator[Any]:
        match kind:
            case "string":
                lengths = _counts(parts, self._counts)
                long = (text[:count].ljust(count, text[-1:] or "a") for count in lengths for text in self._strings[:4])
                yield from _valid(parts, ("minLength", "maxLength", "pattern"), distinct([*self._strings, *long]))
            case "integer" | "number":
                numbers = [one for one in self._numbers if kind == "number" or one % 1 == 0]
                steps = [
                    limit * count for part in parts for limit in [part.get("multipleOf", 0)] for count in (1, 3, 0.5)
                ]
                yield from _valid(parts, _LIMITS, distinct([*numbers, *steps]))
            case "boolean":
                yield from (True, False)
            case "null":
                yield None
            case "array":
                yield from self.arrays(parts, depth)
            case _:
                yield from self.objects(parts, depth)

    def arrays(self, parts: Parts, depth: int) -> Iterator[Any]:
        no_items: list[Any] = []
        first = max((as_array(part.get("prefixItems")) for part in parts), key=len, default=no_items)
        rest = [part["items"] for part in parts if "items" in part]
        heads = [self.members([one], depth + 1)[:3] for one in first]
        sought = [part["contains"] for part in parts if "contains" in part]
        found = [value for one in sought for value in self.members([*rest, one], depth + 1)]
        values = [*found, *self.members(rest, depth + 1)]
        head = [one[0] for one in heads if one]
        weight = max((len(json.dumps(value)) for value in values), default=0)
        for count in _counts(parts, self._counts):
            if count * weight > 10 * _MAX_LENGTH:
                continue
            tail = max(0, count - len(head))
            repeated = [values[index % len(values)] for index in range(tail)] if values else []
            yield [*head, *repeated][:count]
            yield [*head, *values[:1] * tail][:count]
        yield from ([*head[:index], one, *head[index + 1 :]] for index, all_ in enumerate(heads) for one in all_)
        yield from ([*head, value] for value in values)

    def objects(self, parts: Parts, depth: int) -> Iterator[Any]:
        named = dict.fromkeys(name for part in parts for name in as_object(part.get("properties")))
        required = dict.fromkeys(name for part in parts for name in as_array(part.get("required")))
        matching = {
            text: None for part in parts for one in as_object(part.get("patternProperties")) for text in texts(one)
        }
        extra = [name for name in chain(matching, ["key"], self._strings, self._names) if name not in named]
        known = {name: self.member(name, parts, depth) for name in chain(required, named, islice(extra, 24))}
        known = {name: values for name, values in known.items() if values}
        base = {name: known[name][0] for name in required if name in known}
        whole = {name: known[name][0] for name in named if name in known}
        some = list(dict.fromkeys([*required, *named]))[:_MAX_COMBINED]
        yield base
        yield {**base, **whole}
        spare = next((known[name][0] for name in extra if name in known), ABSENT)
        room = 0 if spare is ABSENT else 10 * _MAX_LENGTH // len(json.dumps({"key": spare}))
        for count in [one for one in _counts(parts, self._counts) if one <= room]:
            yield {**base, **{f"key{index}": spare for index in range(count - len(base))}}
        yield from _by_turns(
            [
                _by_turns([[{**base, name: value} for value in values] for name, values in known.items()]),
                ({key: one for key, one in whole.items() if key != name} for name in some),
                _by_turns([self.pairs(base, known, *names) for names in combinations(some, 2)]),
            ]
        )

    def pairs(self, base: dict[str, Any], known: Mapping[str, list[Any]], one: str, other: str) -> Iterator[Any]:
        for value, beside in product(known.get(one, [])[:6], known.get(other, [])[:6]):
            yield {**base, one: value, other: beside}

    def member(self, name: str, parts: Parts, depth: int) -> list[Any]:
        """Return some candidates for a member."""
        found: list[Any] = []
        for part in parts:
            own = [part["properties"][name]] if name in as_object(part.get("properties")) else []
            own += [one for pattern, one in as_object(part.get("patternProperties")).items() if matches(pattern, name)]
            found += own or [part[word] for word in ("additionalProperties",) if word in part]
        return self.members(found, depth + 1)


@lru_cache(1000)
def texts(pattern: str) -> list[str]:
    """Return some texts that a pattern may match: with the first and the last characters, few and more of them."""
    with suppress(re.error, RecursionError, OverflowError, ValueError):
        parsed = re._parser.parse(pattern)  # type: ignore[attr-defined] # the parser of the library is no public name
        made = [
            _text(parsed, is_last, more).encode(errors="ignore").decode()
            for more in (0, 1, 2)
            for is_last in (False, True)
        ]
        return list(dict.fromkeys(one for text in made for one in (text, text[:-1], text + "0", f"{text}{text}")))
    return []


def _text(parsed: Any, is_last: bool, more: int) -> str:
    found = ""
    for code, value in parsed:
        match str(code):
            case "LITERAL":
                found += chr(value)
            case "NOT_LITERAL":
                found += "b" if value == ord("a") else "a"
            case "ANY":
                found += "a"
            case "IN":
                found += _character(value, is_last)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inner = value
                part = _text(inner, is_last, more)
                found += part * min(least + more, most, _MAX_LENGTH // max(1, len(part)))
            case "SUBPATTERN":
                found += _text(value[3], is_last, more)
            case "BRANCH":
                found += _text(value[1][-1 if is_last else 0], is_last, more)
            case _:
                pass
    return found[:_MAX_LENGTH]


def _character(choices: Any, is_last: bool) -> str:
    """Return the first or the last character of a class."""
    found = [value for code, value in choices if str(code) in _RANGES]
    ranges: list[tuple[int, ...]] = [one if isinstance(one, tuple) else (one,) for one in found]
    ends = [chr(end) for ends in ranges for end in ends]
    if str(choices[0][0]) == "NEGATE":
        ends = [one for one in _CHARACTERS if one not in ends]
    return (ends or ["0"])[-1 if is_last else 0]


def _counts(parts: Iterable[Mapping[str, Any]], common: Iterable[int] = (0, 1, 2)) -> list[int]:
    """Return the lengths at the limits of schemas and beside them, and common ones."""
    found = [int(part[word]) for part in parts for word in COUNTS if _is_number(part.get(word))]
    found += [len(part["prefixItems"]) for part in parts if is_array(part.get("prefixItems"))]
    near = {max(0, one + step) for one in found if one < _MAX_LENGTH for step in (-1, 0, 1, 2)}
    return sorted({*common, *near})


def _valid(parts: Parts, words: Sequence[str], values: Iterable[Any]) -> Iterator[Any]:
    """Yield the values that fit the given keywords of all the schemas; all if a keyword cannot be read."""
    limits = [{word: part[word] for word in words if word in part} for part in parts]
    if not any(limits):
        return iter(values)
    with suppress(ValueError, jsonschema_rs.ReferencingError):
        options = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MAX_BACKTRACKS)
        return filter(
            jsonschema_rs.validator_for({"allOf": limits}, offline=True, pattern_options=options).is_valid, values
        )
    return iter(values)


def _constants(part: Mapping[str, Any]) -> Iterator[list[Any]]:
    if "const" in part:
        yield [part["const"]]
    if is_array(part.get("enum")):
        yield part["enum"]


def _kinds(part: Mapping[str, Any]) -> Sequence[str]:
    kinds = listed(part["type"]) if "type" in part else _KINDS
    return [*kinds, "integer"] if "number" in kinds else kinds


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _once(parts: Iterable[Mapping[str, Any]]) -> Parts:
    """Return schemas once each."""
    return list({id(part): part for part in parts}.values())


def _by_turns(several: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """Yield the first value of each, then the second of each, so that a short prefix has values of all."""
    for row in zip_longest(*several, fillvalue=ABSENT):
        yield from (value for value in row if value is not ABSENT)
