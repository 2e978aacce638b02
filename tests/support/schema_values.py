"""Random JSON values near any JSON Schema: most of them fit it, and the rest miss it by little; a validator says which.

It shares no code with the product. `json_instances.py` has strategies of Hypothesis for the schemas of the
protocol, which are tamer, and damage that shrinks.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

Document = dict[str, Any]
Schema = dict[str, Any]
Names = Callable[[Schema, int], Sequence[str]]

NAMES = ("a", "b", "c", "kind", "x-y", "other", "option_1", "")
_MOMENT = "2026-01-02T03:04:05Z"
_WORDS = (
    "a b ab abc A Oslo AB-1 abab null 0 1 42 1.5 1.2.3 123 é x@example.com a.b+c@example.co.uk /a /a/b owner/name a_b"
)
_FORMATS = "2026-01-02 2024-02-29 12:30 12:00:00 https://example.com/a urn:isbn:0451450523 192.0.2.1 #a1b2c3 abc-1"
_UUID = "00000000-0000-4000-8000-000000000000"
STRINGS = ("", *_WORDS.split(), *_FORMATS.split(), "a b", "Grüße 🌍", '"\\\n', "x" * 12, "x" * 300, _MOMENT, _UUID)
NUMBERS = (0, 1, -1, 2, 3, 5, -7, 7, 10, 50, 100, 999, 1000, 10**6, 2**53 + 1, 1.0, 0.5, 1.5, 2.5, -2.5)
MAX_DEPTH = 6
"""Depth below which values of recursive schemas are arbitrary; required recursion has no end."""

_KINDS = {"string": str, "number": int | float, "integer": int | float}
_LIMITS = re.compile(r"^(min|max|exclusiveM).*(Length|imum)$|^(pattern|format|multipleOf)$")


def any_names(schema: Schema, depth: int) -> Sequence[str]:
    """Return the names of members that nobody declares, for any object that is not closed."""
    return NAMES


class Values:
    """Random values for a schema and its parts.

    Args:
        schema: The root, to which references refer.
        seed: The source of choices, or where it begins.
        near: Other schemas whose constants and limits are tried.
        names: Names of members for an object whose schema does not declare them, by that schema and its depth. With
            None, objects have no members but those that are declared.
    """

    def __init__(
        self, schema: Any, seed: object, *, near: Sequence[Schema] = (), names: Names | None = any_names
    ) -> None:
        self._root, self._names = schema, names
        self._rng = seed if isinstance(seed, random.Random) else random.Random(f"{seed}")
        self._pool: list[Any] = [*STRINGS, *NUMBERS]
        for node in (part for one in (schema, *near) for part in _parts(one)):
            constants = [*(node["enum"] if isinstance(node.get("enum"), list) else ()), node.get("const")]
            self._pool += [one for one in constants if isinstance(one, str | int | float) and not isinstance(one, bool)]
            step = node.get("multipleOf", 1)
            for word, limit in node.items():
                if isinstance(limit, int | float) and isinstance(step, int | float) and not isinstance(limit, bool):
                    self._pool += [limit - step, limit, limit + step]
                    if "ength" in word and limit < 500:
                        self._pool += ["y" * max(0, int(limit) + more) for more in (-1, 0, 1)]

    def valid(self, count: int, tries: int = 400) -> list[Document]:
        """Return objects that the schema accepts, each another one; fewer where there are no more."""
        return self._chosen(count, tries, True, self.value)

    def invalid(self, count: int, tries: int = 400) -> list[Document]:
        """Return objects that the schema refuses; fewer where there are none."""
        return self._chosen(count, tries, False, lambda: self.mutant(self.value()))

    def _chosen(self, count: int, tries: int, fits: bool, make: Callable[[], Any]) -> list[Document]:
        found: dict[str, Document] = {}
        validator = jsonschema_rs.validator_for(self._root, validate_formats=False)
        for _ in range(tries):
            value = make()
            if isinstance(value, dict) and validator.is_valid(value) is fits:
                found.setdefault(json.dumps(value, sort_keys=True), value)
            if len(found) == count:
                break
        return list(found.values())

    def value(self, schema: Any | None = None, depth: int = 0) -> Any:
        """Return a value that probably fits a part of the schema; the root by default."""
        rng = self._rng
        schema = self._root if schema is None else schema
        is_stray = self._names is any_names and rng.random() < 0.02
        if not isinstance(schema, dict) or depth > MAX_DEPTH or is_stray:
            return self._any(depth)
        merged = self._merged(schema, depth)
        if "const" in merged:
            return copy.deepcopy(merged["const"])
        for choices in ("enum", "examples"):
            if merged.get(choices) and "properties" not in merged:
                return copy.deepcopy(rng.choice(merged[choices]))
        types = merged.get("type", _guessed(merged))
        type = rng.choice(types) if isinstance(types, list) and types else types
        if type in ("object", "array"):
            return self._object(merged, depth) if type == "object" else self._array(merged, depth)
        if type in _KINDS:
            return self._scalar(type, merged)
        return rng.choice([True, False]) if type == "boolean" else None if type == "null" else self._any(depth)

    def sample(self, index: int) -> Any:
        """Return a value, every fourth one a mutant."""
        value = self.value()
        return self.mutant(value) if index % 4 == 3 else value

    def mutant(self, value: Any, depth: int = 0) -> Any:
        """Return a value that differs in one place, or does not."""
        rng = self._rng
        if isinstance(value, dict) and value and rng.random() < 0.8:
            name = rng.choice(list(value))
            kind = rng.random()
            if kind < 0.25:
                return {other: one for other, one in value.items() if other != name}
            if kind < 0.4:
                return {**value, rng.choice(NAMES): self._any(depth + 1)}
            return {**value, name: None if kind < 0.5 else self.mutant(value[name], depth + 1)}
        if isinstance(value, list) and value and rng.random() < 0.8:
            index = rng.randrange(len(value))
            if rng.random() < 0.3:
                return [*value, value[index]]
            return [*value[:index], self.mutant(value[index], depth + 1), *value[index + 1 :]]
        if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.7:
            return value + rng.choice([1, -1, 0.5, 0.0])
        if isinstance(value, str) and rng.random() < 0.5:
            return rng.choice([value.upper(), value[:-1], value + "a", ""])
        return self._any(depth)

    def _merged(self, schema: Schema, depth: int) -> Schema:
        """Return a schema without references and combinators: one branch of each."""
        found = {word: value for word, value in schema.items() if word not in ("allOf", "anyOf", "oneOf", "$ref", "if")}
        parts: list[Any] = list(schema.get("allOf", ()))
        parts += [self._rng.choice(schema[word]) for word in ("anyOf", "oneOf") if schema.get(word)]
        if "if" in schema:
            parts += [schema["if"], schema.get("then", {})] if self._rng.random() < 0.5 else [schema.get("else", {})]
        if "$ref" in schema:
            parts.append(self._target(schema["$ref"]))
        for part in parts if depth < 30 else ():
            if isinstance(part, dict):
                part = self._merged(part, depth + 1)
                both = {
                    "properties": {**found.get("properties", {}), **part.get("properties", {})},
                    "required": [*found.get("required", ()), *part.get("required", ())],
                }
                found = {**found, **part, **{word: value for word, value in both.items() if value}}
        return found

    def _target(self, reference: str) -> Any:
        if not reference.startswith(("#/", "#%")) and reference != "#":
            return next(part for part in _parts(self._root) if part.get("$anchor") == reference[1:])
        node = self._root
        for token in unquote(reference).lstrip("#").split("/")[1:]:
            node = node[int(token) if isinstance(node, list) else token.replace("~1", "/").replace("~0", "~")]
        return node

    def _object(self, schema: Schema, depth: int) -> Document:
        rng = self._rng
        properties, required = schema.get("properties", {}), schema.get("required", ())
        if self._names is None:
            required = [name for name in required if name in properties]
        rate = rng.choice([0.0, 0.5, 1.0]) if depth < 2 else 0.5 if depth < 4 else 0.05
        wanted = [name for name, part in properties.items() if name in required or (part and rng.random() < rate)]
        found = {name: self.value(properties.get(name, {}), depth + 1) for name in dict.fromkeys([*wanted, *required])}
        rest = schema.get("additionalProperties", True)
        if self._names is not None and rest is not False and depth < 5:
            names = [name for name in self._names(schema, depth) if name not in properties]
            least = max(schema.get("minProperties", 0) - len(found), 0)
            for name in rng.sample(names, min(len(names), least + rng.choice([0, 0, 1, 2]))):
                found.setdefault(name, self.value(rest, depth + 1))
        for pattern, part in schema.get("patternProperties", {}).items():
            for name in (*NAMES, f"{pattern.strip('^$')}1"):
                if rng.random() < 0.3 and re.search(pattern, name):
                    found[name] = self.value(part, depth + 1)
        return found

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        items, least, most = schema.get("items", True), schema.get("minItems", 0), schema.get("maxItems", 30)
        prefix: Sequence[Any] = schema.get("prefixItems", items if isinstance(items, list) else ())
        more = [0, 1, 1, 2, self._rng.choice([3, 6]) if depth < 2 else 0] if depth < 4 else [0]
        count = max(least, len(prefix)) if prefix else least + self._rng.choice(more)
        parts = [*prefix, *[items] * count][: min(count, most, 30)]
        return [self.value(part, depth + 1) for part in parts]

    def _scalar(self, kind: str, schema: Schema) -> Any:
        """Return a scalar of the pool, mostly one that the limits of the schema allow."""
        rng = self._rng
        fitting = [one for one in self._pool if isinstance(one, _KINDS[kind])]
        limits = {word: limit for word, limit in schema.items() if _LIMITS.match(word)}
        is_valid = _validator(json.dumps({"type": kind, **limits}))
        valid = [one for one in fitting if is_valid(one)]
        chosen: Any = rng.choice(valid if valid and rng.random() < 0.95 else fitting)
        return int(chosen) if kind == "integer" and rng.random() < 0.9 else chosen

    def _any(self, depth: int) -> Any:
        rng = self._rng
        kind = rng.randrange(7 if depth < 3 else 5)
        if kind == 5:
            return [self._any(depth + 1) for _ in range(rng.randrange(3))]
        if kind == 6:
            return {rng.choice(NAMES): self._any(depth + 1) for _ in range(rng.randrange(3))}
        return [None, rng.choice([True, False]), *rng.sample(self._pool, 3)][kind]


@cache
def _validator(schema: str) -> Callable[[Any], bool]:
    with suppress(ValueError):
        return jsonschema_rs.validator_for(json.loads(schema), validate_formats=True).is_valid
    return lambda value: True  # limits of an older dialect


def _guessed(schema: Schema) -> Any:
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    kinds = ["string", "number", "integer", "boolean", "null", "array", "object"]
    return "array" if "items" in schema or "prefixItems" in schema else kinds


def _parts(node: Any) -> Iterator[Schema]:
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _parts(child)
