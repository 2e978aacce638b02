"""Values to try on two schemas: such as one of them describes, with what either of them mentions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs

from mcp_bindgen.spec.json import is_array, is_object

from .references import resolve

_MOST = 60
"""How many values of one member are tried."""

_FEW = 20
"""How many values of one item are tried."""

_ANY: tuple[Any, ...] = ("text", 1, {}, None, [])

_DEEPEST = 6
_MIXED = 4
"""How many values of each of two members are tried together."""

_TEXTS = ("text", "", "a", "A", "0", "a-b", "2025-01-01", "a@example.org", "https://example.org/a")
_NUMBERS = (0, 1, -1, 2, 1.5, 10)
_KINDS = ("object", "string", "integer", "number", "boolean", "array", "null")


class Instances:
    """Makes values for the schemas of one document.

    Args:
        root: The document, whose schema says which members there are.
        other: The other document, whose limits and constants are worth a try as well.
    """

    def __init__(self, root: Any, other: Any) -> None:
        self.root = root
        self.known: dict[int, list[Any]] = {}
        self.texts, self.numbers, self.constants = list[str](_TEXTS), list[Any](_NUMBERS), list[Any]()
        for document in (root, other):
            self._harvest(document)
        self.texts = list(dict.fromkeys(self.texts))
        self.numbers = list({repr(number): number for number in self.numbers}.values())

    def _harvest(self, node: Any) -> None:
        """Notes the numbers and texts of a schema."""
        if is_object(node):
            for keyword, value in node.items():
                if keyword in ("const", "enum"):
                    self.constants += value if keyword == "enum" and is_array(value) else [value]
                elif isinstance(value, int | float) and not isinstance(value, bool):
                    self.numbers += [value, value + 1, value - 1, value + 0.5, value * 2]
                    if isinstance(value, int) and 0 <= value <= 1000 and keyword.endswith("Length"):
                        self.texts += ["x" * length for length in (value, value + 1, value - 1) if length >= 0]
                elif keyword == "pattern" and isinstance(value, str):
                    self.texts.append(value.strip("^$"))
                self._harvest(value)
        elif is_array(node):
            for child in node:
                self._harvest(child)

    def all(self) -> Iterator[Any]:
        """Values of the whole document; not each of them is valid."""
        yield from self.values(self.root, 0)

    def values(self, schema: Any, depth: int) -> Iterator[Any]:
        """Values of a schema, the simplest first."""
        if not is_object(schema) or depth > _DEEPEST:
            yield from _ANY
            return
        if "const" in schema:
            yield schema["const"]
        yield from schema.get("enum", ())
        if isinstance(schema.get("$ref"), str):
            yield from self.some(resolve(self.root, schema["$ref"]), depth + 1)
        for keyword in ("anyOf", "oneOf", "allOf"):
            yield from _by_turns(self.values(member, depth + 1) for member in schema.get(keyword, ()))
        kinds = schema.get("type", "object" if "properties" in schema else None)
        named = [kinds] if isinstance(kinds, str) else kinds or _KINDS * (not schema.keys() & {"$ref", "anyOf"})
        yield from _by_turns(self.of_kind(kind, schema, depth) for kind in named)

    def of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        """Values of one JSON type."""
        match kind:
            case "object":
                yield from self.objects(schema, depth)
            case "array":
                yield from self.arrays(schema, depth)
            case "string":
                yield from (text for text in self.constants if isinstance(text, str))
                yield from self.texts
            case "integer" | "number":
                yield from (one for one in self.constants if isinstance(one, int | float) and not isinstance(one, bool))
                yield from (one for one in self.numbers if kind == "number" or float(one).is_integer())
            case "boolean":
                yield from (True, False)
            case _:
                yield None

    def some(self, schema: Any, depth: int) -> list[Any]:
        """A few values of a schema inside of the document, those that are valid first; made once for each schema."""
        if id(schema) not in self.known:
            self.known[id(schema)] = list(_ANY)  # what a schema gets that contains itself
            values = itertools.islice(self.values(schema, depth), _MOST * 2)
            found = list({json.dumps(value, sort_keys=True): value for value in values}.values()) or [None]
            self.known[id(schema)] = self.sorted(schema, found)
        return self.known[id(schema)]

    def sorted(self, schema: Any, values: list[Any]) -> list[Any]:
        """Values of a schema, those that are valid first."""
        shared: dict[str, Any] = {key: self.root[key] for key in ("$defs", "definitions") if key in self.root}
        try:
            validator = jsonschema_rs.validator_for({**shared, **schema} if is_object(schema) else schema, offline=True)
            return sorted(values, key=lambda value: not validator.is_valid(value))
        except ValueError:  # it refers to another part of the document
            return values

    def arrays(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        """Lists of all lengths that are mentioned, with equal and with different items."""
        items = self.some(schema.get("items"), depth + 1)[:_FEW]
        limits = [value for key, value in schema.items() if key in ("minItems", "maxItems") and isinstance(value, int)]
        mentioned = [number for number in self.numbers if isinstance(number, int) and 0 <= number <= 20]
        for length in sorted({0, 1, 2, *mentioned, *(limit for limit in limits if limit <= 100)}):
            yield [items[index % len(items)] for index in range(length)]
            yield items[:1] * length
        yield from ([item] for item in items)

    def objects(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        """Objects with what is required, and then with one optional member, all of them, or some."""
        properties: Mapping[str, Any] = schema.get("properties", {})
        known = {name: self.some(child, depth + 1) for name, child in properties.items()}
        extra = schema.get("additionalProperties")
        if is_object(extra) or extra is True:
            known["key"] = self.some(extra, depth + 1)[:_FEW]
        needed = [name for name in schema.get("required", ()) if name in known]
        base = {name: known[name][0] for name in needed}
        yield base
        yield from _by_turns([{**base, name: value} for value in values] for name, values in known.items())
        whole = {name: values[0] for name, values in known.items()}
        yield whole
        for name in known:
            yield {key: value for key, value in whole.items() if key != name}
        for one, other in itertools.combinations(known, 2):
            pairs = itertools.product(known[one][:_MIXED], known[other][:_MIXED])
            yield from ({**base, one: first, other: second} for first, second in pairs)


def _by_turns(several: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """One of each, then the next of each: whoever takes only some gets of all."""
    nothing = object()
    for row in itertools.zip_longest(*several, fillvalue=nothing):
        yield from (value for value in row if value is not nothing)
