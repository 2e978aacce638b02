"""Random JSON values for any JSON Schema, as far as `hostile_contract.json` needs it; a validator says which fit.

It shares no code with the generator. `json_instances.py` does the same for the schemas of the protocol: they are tamer.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs

Document = dict[str, Any]
Schema = dict[str, Any]


class Values:
    """Random values for a schema.

    Args:
        schema: The schema.
        seed: Where chance begins.
        open: Whether objects get members that nobody named.
    """

    def __init__(self, schema: Schema, seed: object, *, open: bool) -> None:
        self._root = schema
        self._dice = random.Random(f"{seed}")
        self._open = open
        self._validator = jsonschema_rs.validator_for(schema, validate_formats=False)

    def valid(self, count: int, tries: int = 400) -> list[Document]:
        """Some values that the schema accepts, each another one; fewer where there are no more."""
        return self._chosen(count, tries, True, lambda: self._value(self._root, 0))

    def invalid(self, count: int, tries: int = 400) -> list[Document]:
        """Some objects that the schema refuses; fewer where there are none."""
        return self._chosen(count, tries, False, lambda: self._damaged(self._value(self._root, 0)))

    def _chosen(self, count: int, tries: int, fits: bool, make: Callable[[], Any]) -> list[Document]:
        found: dict[str, Document] = {}
        for _ in range(tries):
            value = make()
            if isinstance(value, dict) and self._validator.is_valid(value) is fits:
                found.setdefault(json.dumps(value, sort_keys=True), value)
            if len(found) == count:
                break
        return list(found.values())

    def _value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict):
            return self._anything()
        if "$ref" in schema:
            return self._value(self._resolved(schema["$ref"]), depth)
        for choices in ("enum", "examples"):
            if choices in schema and "properties" not in schema:
                return copy.deepcopy(self._dice.choice(schema[choices]))
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        for several in ("oneOf", "anyOf"):
            if several in schema:
                rest = {name: part for name, part in schema.items() if name != several}
                return self._value(_merged([rest, self._dice.choice(schema[several])]), depth)
        if "allOf" in schema:
            rest = {name: part for name, part in schema.items() if name != "allOf"}
            return self._value(_merged([rest, *schema["allOf"]]), depth)
        kinds = schema.get("type", "object" if "properties" in schema else None)
        kind = self._dice.choice(kinds) if isinstance(kinds, list) else kinds
        return getattr(self, f"_{kind}", lambda *_: self._anything())(schema, depth)

    def _resolved(self, reference: str) -> Any:
        if reference.startswith("#") and not reference.startswith("#/") and reference != "#":
            return next(part for part in _parts(self._root) if part.get("$anchor") == reference[1:])
        node: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            node = node[step.replace("~1", "/").replace("~0", "~").replace("%20", " ").replace("%25", "%")]
        return node

    def _object(self, schema: Schema, depth: int) -> Document:
        properties: dict[str, Any] = schema.get("properties", {})
        required = schema.get("required", [])
        optional = [] if depth > 3 else [name for name in properties if self._dice.random() < 0.4 and properties[name]]
        names = [name for name in {**properties, **dict.fromkeys(required)} if name in required or name in optional]
        made = {name: self._value(properties.get(name, True), depth + 1) for name in names}
        extra = schema.get("additionalProperties", True)
        wanted = self._open or (not properties and (depth > 0 or isinstance(extra, dict)))
        if wanted and extra is not False and self._dice.random() < 0.5:
            made.setdefault("x1" if self._open else "k", self._value(extra, depth + 1))
        for pattern, child in schema.get("patternProperties", {}).items():
            made[f"{pattern.strip('^$')}1"] = self._value(child, depth + 1)
        return made

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        first = schema.get("prefixItems", schema["items"] if isinstance(schema.get("items"), list) else [])
        if first:
            return [self._value(item, depth + 1) for item in first]
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        length = least if depth > 3 else self._dice.randint(least, max(least, most))
        return [self._value(schema.get("items", True), depth + 1) for _ in range(length)]

    def _string(self, schema: Schema, depth: int) -> str:
        text: str = self._dice.choice(["", "a", "ab", "abab", "Grüße 🌍", "null", "1", '"\\\n', "ab" * 40])
        least: int = schema.get("minLength", 0)
        most: int = schema.get("maxLength", 1000)
        return (text + "x" * max(0, least - len(text)))[:most]

    def _integer(self, schema: Schema, depth: int) -> int:
        low: int = schema.get("minimum", min(-1000, schema.get("maximum", 0)))
        high: int = schema.get("maximum", max(1000, low + 1000))
        step: int = schema.get("multipleOf", 1)
        large = [] if "maximum" in schema else [2**53 + 1, 10**30]
        return self._dice.choice([self._dice.randint(low, high), *large]) // step * step

    def _number(self, schema: Schema, depth: int) -> float:
        low: float = schema.get("minimum", -1000)
        high: float = min(schema.get("exclusiveMaximum", 1000), schema.get("maximum", 1000))
        return self._dice.choice([self._dice.uniform(low, high), self._dice.randint(int(low), int(high)), 1.0])

    def _boolean(self, schema: Schema, depth: int) -> bool:
        return self._dice.random() < 0.5

    def _null(self, schema: Schema, depth: int) -> None:
        return None

    def _anything(self) -> Any:
        return copy.deepcopy(
            self._dice.choice([None, True, 0, -1.5, "x", "", [], {}, [1, "a", None], {"a": {"b": [1]}}])
        )

    def _damaged(self, value: Any) -> Any:
        """A value with one thing in it changed."""
        places = list(_places(value))
        if not places or self._dice.random() < 0.2:
            return (
                {**value, self._dice.choice(["x1", "forbidden", "ghost-x"]): self._anything()}
                if isinstance(value, dict)
                else value
            )
        holder, key = self._dice.choice(places)
        if self._dice.random() < 0.4:
            del holder[key]
        else:
            holder[key] = self._anything()
        return value


def _merged(parts: list[Any]) -> Schema:
    """Return what several schemas say together, as far as this generator needs it."""
    merged: Schema = {}
    for part in parts:
        for name, child in part.items():
            if name == "properties":
                merged[name] = {**merged.get(name, {}), **child}
            elif name == "required":
                merged[name] = [*merged.get(name, []), *child]
            else:
                merged[name] = child
    return merged


def _parts(node: Any) -> Iterator[Schema]:
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from _parts(child)
    elif isinstance(node, list):
        for child in node:
            yield from _parts(child)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as a container and a key."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _places(node[key])
