"""Random JSON values near a schema: most of them fit it, and the rest miss it by little."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

NAMES = ("a", "b", "c", "kind", "x-y", "other", "option_1", "")
_WORDS = "a b ab A null 0 1.5 é a@example.com https://example.com/a 2026-01-02 xxxxxxxxx"
STRINGS = ("", *_WORDS.split())
NUMBERS = (0, 1, 2, 3, -1, 5, 10, 1.0, 0.5, 2.5, 2**53 + 1, -7, 100)
_MOMENT = "2026-01-02T03:04:05Z"
BY_FORMAT = {
    "date": ["2026-01-02", "2024-02-29"],
    "date-time": [_MOMENT],
    "email": ["a@example.com", "a.b+c@example.co.uk"],
    "uri": ["https://example.com/", "urn:isbn:0451450523"],
    "uuid": ["00000000-0000-4000-8000-000000000000"],
    "ipv4": ["192.0.2.1"],
}
MAX_DEPTH = 6
"""Depth below which values of recursive schemas are arbitrary; required recursion has no end."""

TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")


class Instances:
    """Values for the parts of a schema.

    Args:
        schema: The root, to which references refer.
        rng: The source of choices.
    """

    def __init__(self, schema: Any, rng: random.Random) -> None:
        self._root = schema
        self._rng = rng

    def value(self, schema: Any | None = None, depth: int = 0) -> Any:
        """Return a value that probably fits a part of the schema; the root by default."""
        rng = self._rng
        schema = self._root if schema is None else schema
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return self._any(depth)
        if rng.random() < 0.02:
            return self._any(depth)
        merged = self._merged(schema, depth)
        if "const" in merged:
            return merged["const"]
        if merged.get("enum"):
            return rng.choice(merged["enum"])
        types = merged.get("type", _guessed(merged))
        return self._of(rng.choice(types) if isinstance(types, list) and types else types, merged, depth)

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
            if kind < 0.5:
                return {**value, name: None}
            return {**value, name: self.mutant(value[name], depth + 1)}
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

    def _merged(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
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
                properties = {**found.get("properties", {}), **part.get("properties", {})}
                required = [*found.get("required", ()), *part.get("required", ())]
                found = {**found, **part}
                if properties:
                    found["properties"] = properties
                if required:
                    found["required"] = required
        return found

    def _target(self, reference: str) -> Any:
        node = self._root
        for token in reference.lstrip("#").split("/")[1:]:
            node = node[int(token) if isinstance(node, list) else token.replace("~1", "/").replace("~0", "~")]
        return node

    def _of(self, type: Any, schema: dict[str, Any], depth: int) -> Any:
        rng = self._rng
        if type in ("object", "array"):
            return self._object(schema, depth) if type == "object" else self._array(schema, depth)
        if type == "string":
            return self._string(schema)
        if type in ("number", "integer"):
            bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
            near = [schema[word] for word in bounds if word in schema]
            step = schema.get("multipleOf", 1)
            known = [*NUMBERS, *near, *(one + step for one in near), *(one - step for one in near), step * 3]
            chosen: Any = rng.choice(known)
            return int(chosen) if type == "integer" and rng.random() < 0.9 else chosen
        return rng.choice([True, False]) if type == "boolean" else None if type == "null" else self._any(depth)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        rng = self._rng
        found: dict[str, Any] = {}
        often = 0.5 if depth < 4 else 0.05
        for name, part in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or rng.random() < often:
                found[name] = self.value(part, depth + 1)
        for name in schema.get("required", ()):
            if name not in found:
                found[name] = self._any(depth + 1)
        rest = schema.get("additionalProperties", True)
        if rest is not False and depth < 5:
            least = max(schema.get("minProperties", 0) - len(found), 0)
            for name in rng.sample(NAMES, min(len(NAMES), least + rng.choice([0, 0, 0, 1, 2]))):
                found.setdefault(name, self.value(rest, depth + 1) if isinstance(rest, dict) else self._any(depth + 1))
        for pattern, part in schema.get("patternProperties", {}).items():
            for name in NAMES:
                if rng.random() < 0.3 and re.search(pattern, name):
                    found[name] = self.value(part, depth + 1)
        return found

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        rng = self._rng
        prefix: Sequence[Any] = schema.get("prefixItems", ())
        least = schema.get("minItems", 0)
        count = least + rng.choice([0, 1, 1, 2] if depth < 4 else [0]) if not prefix else max(least, len(prefix))
        count = min(count, schema.get("maxItems", 30), 30)
        return [
            self.value(prefix[index] if index < len(prefix) else schema.get("items", True), depth + 1)
            for index in range(count)
        ]

    def _string(self, schema: dict[str, Any]) -> str:
        rng = self._rng
        known = [*BY_FORMAT.get(schema.get("format", ""), ()), *_matching(schema.get("pattern"))]
        if known and rng.random() < 0.8:
            return str(rng.choice(known))
        chosen: str = rng.choice(STRINGS)
        least = schema.get("minLength", 0)
        return chosen + "a" * (least - len(chosen)) if rng.random() < 0.8 else chosen

    def _any(self, depth: int) -> Any:
        rng = self._rng
        kind = rng.randrange(7 if depth < 3 else 5)
        if kind == 5:
            return [self._any(depth + 1) for _ in range(rng.randrange(3))]
        if kind == 6:
            return {rng.choice(NAMES): self._any(depth + 1) for _ in range(rng.randrange(3))}
        return [None, rng.choice([True, False]), rng.choice(NUMBERS), rng.choice(STRINGS), rng.choice(STRINGS)][kind]


_KNOWN_MATCHES = (*STRINGS, "#a1b2c3", "abc-1", "a_b", "123", "12:30", "1.2.3", "/a", "owner/name", "AB-1", _MOMENT)


@cache
def _matching(pattern: object) -> list[str]:
    with suppress(re.error):
        return [one for one in _KNOWN_MATCHES if isinstance(pattern, str) and re.search(pattern, one)]
    return []


def _guessed(schema: dict[str, Any]) -> Any:
    if "properties" in schema or "required" in schema or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else list(TYPES)
