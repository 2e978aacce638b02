"""Random JSON values for any JSON Schema: most are valid, the others nearly; a validator tells them apart.

The module reads schemas directly and shares no code with the product, so its values can test the product. Choices
come from a seed, or from Hypothesis, which then shrinks the values with the profile `deep`.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import unquote

import jsonschema_rs
from hypothesis import settings
from hypothesis import strategies as st

Document = dict[str, Any]
Schema = dict[str, Any]
Names = Callable[[Schema, int], Sequence[str]]

# --- JSON without a schema ------------------------------------------------------------------------------------

_BIG = 2**53 + 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(["", "1", "null", "🌍", "é"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1000, 1000) | st.sampled_from([0, 1, -1, _BIG, -_BIG, 2**64, 10**30]),
    st.floats(-1e6, 1e6, allow_nan=False).map(float) | st.sampled_from([0.0, 1.0, -0.5, 1e300, 5e-324, 0.1]),
    TEXT,
)
_FLAT = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(TEXT, SCALARS, max_size=3)
JSON = _FLAT | st.lists(_FLAT, max_size=2) | st.dictionaries(TEXT, _FLAT, max_size=2)
"""Any JSON, three levels deep; `st.recursive`, whose depth is unbounded, is several times slower."""

# --- JSON for a schema ----------------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "kind", "x-y", "other", "option_1", "")
_MOMENT = "2026-01-02T03:04:05Z"
_WORDS = (
    "a b ab abc A Oslo AB-1 abab null 0 1 42 1.5 1.2.3 123 é x@example.com a.b+c@example.co.uk /a /a/b owner/name a_b"
)
_FORMATS = "2026-01-02 2024-02-29 12:30 12:00:00 https://example.com/a urn:isbn:0451450523 192.0.2.1 #a1b2c3 abc-1"
TEMPTING = ("meta", "next_cursor", "is_error", "x")
"""Python names of fields, which a model might wrongly accept."""

_UUID = "00000000-0000-4000-8000-000000000000"
STRINGS = ("", *_WORDS.split(), *_FORMATS.split(), "a b", "Grüße 🌍", '"\\\n', "x" * 12, "x" * 300, _MOMENT, _UUID)
NUMBERS = (0, 1, -1, 2, 3, 5, -7, 7, 10, 50, 100, 999, 1000, 10**6, 2**53 + 1, 1.0, 0.5, 1.5, 2.5, -2.5)
_EXTREMES = (-_BIG, 2**64, 10**30, 1e300, 5e-324, 0.1)
_CHARACTERS = (range(0x20, 0x7F), range(0x20), range(0x7F, 0x3000), range(0x3000, 0xD800), range(0xE000, 0x110000))

MAX_DEPTH = 6
"""Depth below which values of recursive schemas are arbitrary, because required recursion never ends."""

_KINDS = {"string": str, "number": int | float, "integer": int | float}
_LIMITS = re.compile(r"^(min|max|exclusiveM).*(Length|imum)$|^(pattern|format|multipleOf)$")


def any_names(schema: Schema, depth: int) -> Sequence[str]:
    """Return undeclared member names for any open object."""
    return NAMES


def map_names(schema: Schema, depth: int) -> Sequence[str]:
    """Return names for the entries of maps only; other objects get only the members that their schema declares."""
    rest = schema.get("additionalProperties", True)
    is_map = not schema.get("properties") or (isinstance(rest, dict) and bool(rest))
    return ("key", "a/b", "x1") if is_map else ()


def odd_names(*names: str) -> Names:
    """Return a function that adds these names and odd names to any open object."""
    return lambda schema, depth: (*names, *STRINGS)


class Instances:
    """Random values for a schema and its parts.

    Args:
        schema: The root schema, the target of references.
        seed: A source of random choices, or its seed. Strategies do not use it.
        near: Other schemas; their constants and limits are also tried.
        names: Function from a schema and its depth to undeclared member names for an object. With None, objects have
            only declared members.
        is_strict: True if all values must be valid, with any text for a format and any integer without limits. This
            works for schemas without keywords such as `not`, `if` and `contains`, like the schemas of the protocol.
    """

    def __init__(
        self,
        schema: Any,
        seed: object = 0,
        *,
        near: Sequence[Schema] = (),
        names: Names | None = any_names,
        is_strict: bool = False,
    ) -> None:
        self._root, self._names, self._is_strict = schema, names, is_strict
        self._rng = seed if isinstance(seed, random.Random) else random.Random(f"{seed}")
        self._pool: list[Any] = [*STRINGS, *NUMBERS, *(_EXTREMES if is_strict else ())]
        for node in (part for one in (schema, *near) for part in _parts(one)):
            constants = [*(node["enum"] if isinstance(node.get("enum"), list) else ()), node.get("const")]
            self._pool += [one for one in constants if isinstance(one, str | int | float) and not isinstance(one, bool)]
            step = node.get("multipleOf", 1)
            for word, limit in node.items():
                if isinstance(limit, int | float) and isinstance(step, int | float) and not isinstance(limit, bool):
                    self._pool += [limit - step, limit, limit + step]
                    if "ength" in word and limit < 500:
                        self._pool += ["y" * max(0, int(limit) + more) for more in (-1, 0, 1)]
        self._validators: dict[str | None, Any] = {}
        self._candidates_of: dict[str, tuple[Callable[[Any], bool], list[Any], list[Any]]] = {}

    def reseed(self, seed: object) -> None:
        """Begin the random choices of another seed."""
        self._rng = random.Random(f"{seed}")

    # --- values -----------------------------------------------------------------------------------------------

    def valid(self, count: int, tries: int = 400, definition: str | None = None) -> list[Document]:
        """Return distinct objects that the schema, or a definition of it, accepts; fewer if no more are found."""
        return self._chosen(count, tries, definition, True)

    def invalid(self, count: int, tries: int = 400, definition: str | None = None) -> list[Document]:
        """Return objects that the schema, or a definition of it, rejects; fewer if no more are found."""
        return self._chosen(count, tries, definition, False)

    def _chosen(self, count: int, tries: int, definition: str | None, fits: bool) -> list[Document]:
        found: dict[str, Document] = {}
        is_valid = self.validator(definition).is_valid
        schema = None if definition is None else _reference(definition)
        for _ in range(tries):
            value = self.value(schema) if fits else self.mutant(self.value(schema))
            if isinstance(value, dict) and is_valid(value) is fits:
                found.setdefault(json.dumps(value, sort_keys=True), value)
            if len(found) == count:
                break
        return list(found.values())

    def validator(self, definition: str | None = None) -> Any:
        """Return a validator of the schema, or of a definition of it; formats are not validated."""
        if definition not in self._validators:
            root = self._root if definition is None else {**self._root, **_reference(definition)}
            self._validators[definition] = jsonschema_rs.validator_for(root, validate_formats=False)
        return self._validators[definition]

    def sample(self, index: int) -> Any:
        """Return a value; every fourth value is a mutant."""
        value = self.value()
        return self.mutant(value) if index % 4 == 3 else value

    def of(self, definition: str) -> Any:
        """Return a value for a definition of the root."""
        return self.value(_reference(definition))

    def strategy(self, schema: Any | None = None) -> st.SearchStrategy[Any]:
        """Return a Hypothesis strategy for values of a part of the schema, by default the root."""

        def drawn(rng: random.Random) -> Any:
            self._rng = rng
            return self.value(schema)

        return _dice().map(drawn)

    def strategy_of(self, definition: str) -> st.SearchStrategy[Any]:
        """Return a Hypothesis strategy for values of a definition of the root."""
        return self.strategy(_reference(definition))

    def value(self, schema: Any | None = None, depth: int = 0) -> Any:
        """Return a probably valid value for a part of the schema, by default the root."""
        rng = self._rng
        schema = self._root if schema is None else schema
        is_stray = not self._is_strict and self._names is any_names and self._happens(2)
        if not isinstance(schema, dict) or (depth > MAX_DEPTH and not self._is_strict) or is_stray:
            return self._any(depth)
        merged = self._merged(schema, depth)
        if "const" in merged:
            return self._spelled(merged["const"])
        for choices in ("enum", "examples"):
            if merged.get(choices) and "properties" not in merged:
                return self._spelled(rng.choice(merged[choices]))
        types = merged.get("type", _guessed(merged))
        type = rng.choice(types) if isinstance(types, list) and types else types
        if type == "null" or (merged.get("nullable") and self._happens(15)):
            return None
        if type in ("object", "array"):
            return self._object(merged, depth) if type == "object" else self._array(merged, depth)
        if type in _KINDS:
            return self._scalar(type, merged)
        return rng.choice([True, False]) if type == "boolean" else self._any(depth)

    def _spelled(self, constant: Any) -> Any:
        """Return a copy of a constant, with an integer sometimes as a float."""
        is_integer = isinstance(constant, int) and not isinstance(constant, bool) and abs(constant) < _BIG
        if is_integer and not self._is_strict and self._happens(20):
            return float(constant)
        return copy.deepcopy(constant)

    def _happens(self, percent: int) -> bool:
        """Return True with a probability in percent; Hypothesis shrinks it to False."""
        return self._rng.randrange(100) >= 100 - percent

    def _merged(self, schema: Schema, depth: int) -> Schema:
        """Return a schema without references and combinators, with one branch of each combinator."""
        found = {word: value for word, value in schema.items() if word not in ("allOf", "anyOf", "oneOf", "$ref", "if")}
        parts: list[Any] = list(schema.get("allOf", ()))
        parts += [self._rng.choice(schema[word]) for word in ("anyOf", "oneOf") if schema.get(word)]
        if "if" in schema:
            parts += [schema["if"], schema.get("then", {})] if self._happens(50) else [schema.get("else", {})]
        if "$ref" in schema:
            parts.append(self._target(schema["$ref"]))
        for part in parts if depth < 30 else ():
            if isinstance(part, dict):
                part = self._merged(part, depth + 1)
                properties = dict(found.get("properties", {}))
                for name, child in part.get("properties", {}).items():
                    before = properties.get(name)
                    properties[name] = {"allOf": [before, child]} if before and before != child else child
                both = {
                    "properties": properties,
                    "required": [*found.get("required", ()), *part.get("required", ())],
                }
                found = {**found, **part, **{word: value for word, value in both.items() if value}}
        return found

    def _target(self, reference: str) -> Any:
        if not reference.startswith(("#/", "#%")) and reference != "#":
            return next(
                part for part in _parts(self._root) if reference in (part.get("$id"), f"#{part.get('$anchor')}")
            )
        node = self._root
        for token in unquote(reference).lstrip("#").split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            node = node[int(key)] if isinstance(node, list) else node.get(key, True) if isinstance(node, dict) else True
        return node

    def _object(self, schema: Schema, depth: int) -> Document:
        rng = self._rng
        properties, required = schema.get("properties", {}), schema.get("required", ())
        if self._names is None:
            required = [name for name in required if name in properties]
        percent = rng.choice([0, 50, 100]) if depth < 2 else 50 if depth < 4 else 5
        wanted = [name for name, part in properties.items() if name in required or (part and self._happens(percent))]
        found = {name: self.value(properties.get(name, {}), depth + 1) for name in dict.fromkeys([*wanted, *required])}
        rest = schema.get("additionalProperties", True)
        if self._names is not None and rest is not False and depth < 5:
            names = [name for name in self._names(schema, depth) if name not in properties]
            least = max(schema.get("minProperties", 0) - len(found), 0)
            for _ in range(min(len(names), least + rng.choice([0, 0, 1, 2]))):
                found.setdefault(names.pop(rng.randrange(len(names))), self.value(rest, depth + 1))
        for pattern, part in schema.get("patternProperties", {}).items():
            for name in (*NAMES, f"{pattern.strip('^$')}1"):
                if self._happens(30) and re.search(pattern, name):
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
        """Return a scalar from the pool or a random one, usually within the limits of the schema."""
        rng = self._rng
        is_valid, fitting, valid = self._candidates(kind, schema)
        if self._is_strict and self._happens(40):
            drawn: Any = self._text() if kind == "string" else rng.randint(-1000, 1000)
            drawn = rng.randint(-(10**9), 10**9) / 1000 if kind == "number" and self._happens(50) else drawn
            if is_valid(drawn):
                return drawn
        chosen = rng.choice(valid if valid and (self._is_strict or not self._happens(5)) else fitting)
        return int(chosen) if kind == "integer" and (self._is_strict or not self._happens(10)) else chosen

    def _candidates(self, kind: str, schema: Schema) -> tuple[Callable[[Any], bool], list[Any], list[Any]]:
        """Return a validator of scalars, the scalars of the pool with this type, and the valid ones among them."""
        limits = {word: limit for word, limit in schema.items() if _LIMITS.match(word)}
        if self._is_strict:
            limits.pop("format", None)
        key = json.dumps({"type": kind, **limits})
        if key not in self._candidates_of:
            is_valid = _validator(key)
            fitting = [one for one in self._pool if isinstance(one, _KINDS[kind])]
            if self._is_strict:
                fitting += ["x" * limits.get("minLength", 0)] if kind == "string" else []
            self._candidates_of[key] = (is_valid, fitting, [one for one in fitting if is_valid(one)])
        return self._candidates_of[key]

    def _text(self) -> str:
        """Return a short text of arbitrary characters."""
        rng = self._rng
        return "".join(chr(rng.choice(rng.choice(_CHARACTERS))) for _ in range(rng.randrange(9)))

    def _any(self, depth: int) -> Any:
        rng = self._rng
        kind = rng.randrange(7 if depth < 3 else 5)
        if kind == 5:
            return [self._any(depth + 1) for _ in range(rng.randrange(3))]
        if kind == 6:
            return {rng.choice(NAMES): self._any(depth + 1) for _ in range(rng.randrange(3))}
        if kind == 4:
            return self._text()
        return [None, rng.choice([True, False]), rng.choice(self._pool), rng.choice(self._pool)][kind]

    # --- damage -----------------------------------------------------------------------------------------------

    def mutant(self, value: Any, *, allows_infinite: bool = False) -> Any:
        """Return a copy of a value with a change in one place; the change may have no effect.

        Args:
            value: Any JSON.
            allows_infinite: True if a number may become infinite or NaN, which are not valid JSON.
        """
        root: list[Any] = [copy.deepcopy(value)]
        holder, key = self._rng.choice(list(_places(root)))
        if holder is not root and self._happens(15):
            del holder[key]
        else:
            infinite = [float("nan"), float("inf")] if allows_infinite else []
            plain: list[Any] = [None, str(holder[key]), False, True, 0, 0.5, _BIG, [], {}, *infinite]
            others = [self._near(holder[key]), self._any(2), self._rng.choice(plain)]
            holder[key] = self._rng.choice(others)
        return root[0]

    def _near(self, value: Any) -> Any:
        """Return a similar value."""
        rng = self._rng
        if isinstance(value, dict):
            return {**value, rng.choice((*NAMES, *TEMPTING, "jsonrpc")): self._any(2)}
        if isinstance(value, list):
            return [*value, copy.deepcopy(rng.choice(value)) if value else None]
        if isinstance(value, str):
            return rng.choice([value.upper(), value[:-1], value + "a", ""])
        if isinstance(value, bool) or value is None:
            return not value
        return value + rng.choice([1, -1, 0.5, 0.0])


def damaged(instances: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for mutants of values, including numbers that are not valid JSON."""

    def mutant(value: Any, rng: random.Random) -> Any:
        return Instances({}, rng).mutant(value, allows_infinite=True)

    return st.builds(mutant, instances, _dice())


def _dice() -> st.SearchStrategy[random.Random]:
    """Return a strategy for sources of random choices.

    Hypothesis chooses the seed only. With the profile `deep` it makes each choice, which takes ten times as long, and
    can then shrink the values.
    """
    return st.randoms(use_true_random=settings.get_current_profile_name() != "deep")


def of_definitions(definitions: Mapping[str, Schema], seed: object = 0, *, names: Names | None = None) -> Instances:
    """Return a generator of valid values for definitions of the protocol, with odd members in open objects."""
    return Instances({"$defs": dict(definitions)}, seed, names=names or odd_names(*TEMPTING), is_strict=True)


def _reference(definition: str) -> Schema:
    return {"$ref": f"#/$defs/{definition}"}


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


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a document as a container and a key."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in entries:
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)
