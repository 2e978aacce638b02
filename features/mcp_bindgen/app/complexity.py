"""Count the steps of validation: a schema that refers to its parts twice at each of thirty levels takes 2**30 of them.

A validator cannot be interrupted, so the steps are counted before it runs, with each pair of a schema and a value once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from mcp_bindgen.runtime.model.json_types import is_array, is_object

MOST_STEPS = 100_000
"""How many steps a value may take at most; a schema that can take more is too complex to be used."""

ANY: Any = object()
"""A value that has every member and item that a schema speaks of, once."""

_SAME = ("not", "if", "then", "else")
_SAME_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_MAPS = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "contains", "additionalItems", "unevaluatedItems")
_ITEM_LISTS = ("prefixItems", "items")


class Complexity:
    """Counts how many schemas are applied to how many parts of a value, as a validator does that remembers nothing.

    A schema that contains itself counts once in a place. What a reference may lead to counts, where it can be several.

    Args:
        schema: A JSON Schema of any dialect.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._resources: list[tuple[str, Any]] = [("", schema)]
        self._anchors: dict[str, list[Any]] = {}
        pending = [schema]
        while pending:
            node = pending.pop()
            if is_object(node):
                self._name(node)
                pending.extend(node.values())
            elif is_array(node):
                pending.extend(node)

    def exceeds(self, most: int, value: Any = ANY) -> bool:
        """Return whether validation takes more than `most` steps, for `value` or in general."""
        return self.steps(most, value) > most

    def steps(self, most: int, value: Any = ANY) -> int:
        """Return how many steps validation takes, for `value` or in general; of more than `most`, only that."""
        try:
            return self._count(self._schema, value, {}, most)
        except RecursionError:
            return most + 1

    def _name(self, node: Mapping[str, Any]) -> None:
        for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
            name = node.get(keyword)
            if isinstance(name, str) and keyword.endswith("nchor"):
                self._anchors.setdefault(name, []).append(node)
            elif isinstance(name, str):
                self._resources.append((name.partition("#")[0], node))
                self._anchors.setdefault(name.partition("#")[2], []).append(node)

    def _count(self, schema: Any, value: Any, known: dict[tuple[int, int], int], most: int) -> int:
        if not is_object(schema):
            return 1
        pair = id(schema), id(value)
        if pair not in known:
            known[pair] = 1
            found = 1 + _compared(schema.get("enum"))
            for part, below in self._below(schema, value):
                found += self._count(part, below, known, most)
                if found > most:  # the rest would not change the answer
                    break
            known[pair] = found
        return known[pair]

    def _below(self, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
        """Yield what a schema applies, and what to: the value itself, then its members or items."""
        for keyword in _REFERENCES:
            for target in self._targets(schema.get(keyword)):
                yield target, value
        for keyword in _SAME:
            if keyword in schema:
                yield schema[keyword], value
        for keyword in _SAME_LISTS:
            for part in _list(schema.get(keyword)):
                yield part, value
        for keyword in _SAME_MAPS:
            for part in _map(schema.get(keyword)).values():
                yield part, value
        if value is ANY or is_object(value):
            yield from self._members(schema, value)
        if value is ANY or is_array(value):
            items = _list(value) if is_array(value) else [ANY]
            for keyword in _ITEMS:
                for item in items if is_object(schema.get(keyword)) else ():
                    yield schema[keyword], item
            for keyword in _ITEM_LISTS:
                for index, part in enumerate(_list(schema.get(keyword))):
                    if value is ANY or index < len(items):
                        yield part, ANY if value is ANY else items[index]

    def _members(self, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
        named = _map(schema.get("properties"))
        members: Mapping[str, Any] = dict.fromkeys(named, ANY) if value is ANY else value
        for name in named.keys() & members.keys():
            yield named[name], members[name]
        below = [ANY] if value is ANY else list(members.values())
        parts = [*_map(schema.get("patternProperties")).values(), *(schema.get(keyword) for keyword in _MEMBERS)]
        for part in filter(is_object, parts):
            for one in below:
                yield part, one
        if "propertyNames" in schema:
            for name in members:
                yield schema["propertyNames"], name

    def _targets(self, reference: Any) -> list[Any]:
        """Return what a reference may lead to: by pointer in the whole schema or a part with an id, or by anchor."""
        if not isinstance(reference, str):
            return []
        base, _, fragment = unquote(reference).partition("#")
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment, [])
        last = base.rpartition("/")[2]
        found = [node for name, node in self._resources if not base or name.rpartition("/")[2] == last]
        for token in fragment.split("/")[1:]:
            found = [below for node in found for below in _step(node, token.replace("~1", "/").replace("~0", "~"))]
        return found


def is_larger(value: Any, most: float) -> bool:
    """Return whether a JSON value has more than `most` parts: itself, its members and items, and theirs."""
    parts = [value]  # each is followed by what is in it
    for part in parts:
        if isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, list):
            parts += part
        if len(parts) > most:
            return True
    return False


def _compared(values: Any) -> int:
    """Return how many values of an enum are compared one by one: all of them, unless each is a scalar."""
    return len(_list(values)) if any(is_object(value) or is_array(value) for value in _list(values)) else 0


def _list(value: Any) -> list[Any]:
    return value if is_array(value) else []


def _map(value: Any) -> Mapping[str, Any]:
    return value if is_object(value) else {}


def _step(node: Any, token: str) -> list[Any]:
    if is_object(node):
        return [node[token]] if token in node else []
    return [node[int(token)]] if is_array(node) and token.isdecimal() and int(token) < len(node) else []
