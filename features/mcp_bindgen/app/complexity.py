"""Count the steps of validation: a schema that refers to its parts twice at each of thirty levels takes 2**30 of them.

A validator cannot be interrupted, so the steps are counted before it runs. Each pair of a schema and a value is counted
once and its number is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from mcp_bindgen.runtime.model.json_types import is_array, is_object

MOST_STEPS = 100_000
"""The maximum of steps for a value; a schema that can take more is refused as too complex."""

ANY: Final = object()
"""A value that has each member and item that a schema names, once."""

_SAME = ("not", "if", "then", "else")
_SAME_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_MAPS = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_ITEMS = ("items", "contains", "additionalItems", "unevaluatedItems")
_ITEM_LISTS = ("prefixItems", "items")


class Complexity:
    """Number of schemas that a validator without memory applies to the parts of a value.

    A schema that contains itself counts once in a place. If a reference may have several targets, all of them count.

    Args:
        schema: A JSON Schema of any dialect.
    """

    def __init__(self, schema: object) -> None:
        self._schema = schema
        self._resources: list[tuple[str, object]] = [("", schema)]
        self._anchors: dict[str, list[object]] = {}
        pending = [schema]
        for node in pending:  # grows in the loop
            if is_object(node):
                self._name(node)
            pending.extend(_children(node))

    def exceeds(self, most: int, value: object = ANY) -> bool:
        """Return whether validation takes more than `most` steps, for `value` or in general."""
        return self.steps(most, value) > most

    def steps(self, most: int, value: object = ANY) -> int:
        """Return the number of steps for `value` or in general; any number above `most` means only "more"."""
        try:
            return self._count(self._schema, value, {}, most)
        except RecursionError:
            return most + 1

    def _name(self, node: Mapping[str, object]) -> None:
        for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
            name = node.get(keyword)
            if isinstance(name, str):
                base, _, anchor = ("", "", name) if keyword.endswith("nchor") else name.partition("#")
                self._anchors.setdefault(anchor, []).append(node)
                if keyword.endswith("id"):
                    self._resources.append((base, node))

    def _count(self, schema: object, value: object, known: dict[tuple[int, int], int], most: int) -> int:
        if not is_object(schema):
            return 1
        pair = id(schema), id(value)
        if pair not in known:
            known[pair] = 1
            choices = _list(schema.get("enum"))  # a validator compares them one by one, unless all are scalars
            found = 1 + len(choices) * any(is_object(choice) or is_array(choice) for choice in choices)
            for part, below in self._below(schema, value):
                found += self._count(part, below, known, most)
                if found > most:  # the rest would not change the result
                    break
            known[pair] = found
        return known[pair]

    def _below(self, schema: Mapping[str, object], value: object) -> Iterator[tuple[object, object]]:
        """Yield the schemas that a schema applies, each with its value: the same value, then its members or items."""
        same = [target for keyword in _REFERENCES for target in self._targets(schema.get(keyword))]
        same += [schema[keyword] for keyword in _SAME if keyword in schema]
        same += [part for keyword in _SAME_LISTS for part in _list(schema.get(keyword))]
        same += [part for keyword in _SAME_MAPS for part in _map(schema.get(keyword)).values()]
        yield from ((part, value) for part in same)
        if value is ANY or is_object(value):
            yield from _members(schema, value)
        if value is ANY or is_array(value):
            items = _list(value) if is_array(value) else [ANY]
            every = [schema[keyword] for keyword in _ITEMS if is_object(schema.get(keyword))]
            yield from ((part, item) for part in every for item in items)
            for keyword in _ITEM_LISTS:
                parts = _list(schema.get(keyword))
                yield from zip(parts, [ANY] * len(parts) if value is ANY else items, strict=False)

    def _targets(self, reference: object) -> Iterable[object]:
        """Return the targets of a reference: by pointer in the whole schema or a part with an id, or by anchor."""
        if not isinstance(reference, str):
            return ()
        base, _, fragment = unquote(reference).partition("#")
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment, ())
        last = base.rpartition("/")[2]
        found = [node for name, node in self._resources if not base or name.rpartition("/")[2] == last]
        for token in fragment.split("/")[1:]:
            found = [below for node in found for below in _step(node, token.replace("~1", "/").replace("~0", "~"))]
        return found


def _members(schema: Mapping[str, object], value: object) -> Iterator[tuple[object, object]]:
    """Yield the schemas for members, each with the value of a member."""
    named = _map(schema.get("properties"))
    members = dict.fromkeys(named, ANY) if value is ANY else _map(value)
    yield from ((named[name], members[name]) for name in named.keys() & members.keys())
    below = [ANY] if value is ANY else list(members.values())
    parts = [*_map(schema.get("patternProperties")).values(), *map(schema.get, _MEMBERS)]
    yield from ((part, one) for part in parts if is_object(part) for one in below)
    if "propertyNames" in schema:
        yield from ((schema["propertyNames"], name) for name in members)


def is_larger(value: object, most: float) -> bool:
    """Return whether a JSON value has more than `most` parts: itself, and all members and items at any depth."""
    parts = [value]
    for part in parts:  # grows in the loop
        if isinstance(part, dict):
            parts += part.values()
        elif isinstance(part, list):
            parts += part
        if len(parts) > most:
            return True
    return False


def _children(node: object) -> Iterable[object]:
    return node.values() if is_object(node) else _list(node)


def _list(value: object) -> list[object]:
    return value if is_array(value) else []


def _map(value: object) -> Mapping[str, object]:
    return value if is_object(value) else {}


def _step(node: object, token: str) -> list[object]:
    if is_object(node):
        return [node[token]] if token in node else []
    index = int(token) if token.isdecimal() else -1
    return _list(node)[index : index + 1] if index >= 0 else []
