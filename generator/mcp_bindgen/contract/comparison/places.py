"""Find where two JSON Schemas differ: every place, down to the keyword.

The type model carries what Python can say, and the diff of types says what that means. This finds the rest, so that no
difference goes without a word. References are followed, so moving a schema to `$defs` is no difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.diff.location import suffix
from mcp_bindgen.spec.json import is_array, is_object

from ..references import resolve

Schema = Mapping[str, Any]

WORDS = frozenset({"description", "title", "examples", "example", "$comment", "markdownDescription", "deprecated"})
"""Keywords for readers only."""

HINTS = frozenset(
    {"format", "contentEncoding", "contentMediaType", "contentSchema", "default", "readOnly", "writeOnly"}
)
"""Keywords that a validator need not heed, but that change what a value means."""

TYPED = frozenset(
    {
        *("type", "const", "enum", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "format", "default"),
    }
)
"""Keywords that the type model carries, if not in every combination."""

CONDITIONS = frozenset(
    {
        *("allOf", "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies"),
        *("patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"),
        *("prefixItems", "contains", "minContains", "maxContains", "uniqueItems", "unevaluatedItems"),
    }
)
"""Keywords that types do not carry, and that accept less than there would be without them."""

_NAMES = frozenset({"$schema", "$id", "$anchor", "$defs", "definitions"})
_LISTS = ("anyOf", "oneOf", "allOf")
_DEFAULTS: Mapping[str, Any] = {"items": True, "additionalProperties": True, "required": []}
"""What keywords mean where they are absent."""

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"const", "enum", "default"})
_ABSENT: Any = object()


@dataclass(frozen=True)
class Difference:
    """One keyword that two schemas have differently in the same place.

    Attributes:
        place: The place as the diff of types writes it: `.city`, `[]`, `{}`; empty at the top.
        keyword: The keyword.
        old: Its old value as JSON; empty where it was absent.
        new: The new one.
    """

    place: str
    keyword: str
    old: str
    new: str


def differences(old: Schema, new: Schema) -> Iterator[Difference]:
    """Return everything that is written differently in two schemas, whatever the order of their members."""
    yield from _Walk(old, new).schemas(old, new, "")


class _Walk:
    """Goes through two documents side by side; what contains itself is looked at once."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self.roots = old, new
        self.seen: set[tuple[int, int]] = set()
        self.kept: list[Any] = []  # so that no id is used twice

    def schemas(self, old: Any, new: Any, place: str) -> Iterator[Difference]:
        """Compare two schemas."""
        one, other = self.opened(old, 0), self.opened(new, 1)
        if (id(old), id(new)) in self.seen:
            return
        self.seen.add((id(old), id(new)))
        self.kept += [old, new]
        for keyword in sorted((one.keys() | other.keys()) - _NAMES):
            absent = _DEFAULTS.get(keyword, _ABSENT)
            was, now = one.get(keyword, absent), other.get(keyword, absent)
            if keyword == "properties" and is_object(was) and is_object(now):
                yield from self.properties(was, now, place)
            elif keyword in ("items", "additionalProperties", "$ref") and _are_schemas(was, now):
                step = {"items": "[]", "additionalProperties": "{}", "$ref": ""}[keyword]
                yield from self.schemas(was, now, place + step)
            elif keyword in _LISTS and is_array(was) and is_array(now):
                yield from self.members(keyword, was, now, place)
            elif keyword == "required" and is_array(was) and is_array(now):
                for name in sorted({*map(str, was)} ^ {*map(str, now)}):
                    here = place + suffix("field", name)
                    yield Difference(here, keyword, *(("true", "") if name in was else ("", "true")))
            elif self.text(keyword, was, 0) != self.text(keyword, now, 1):
                yield Difference(place, keyword, _said(was), _said(now))

    def properties(self, old: Mapping[str, Any], new: Mapping[str, Any], place: str) -> Iterator[Difference]:
        """Compare members that both sides name; those of one side are a difference each."""
        for name in [*old, *(name for name in new if name not in old)]:
            here = place + suffix("field", name)
            if name in old and name in new:
                yield from self.schemas(old[name], new[name], here)
            else:
                sides = old.get(name, _ABSENT), new.get(name, _ABSENT)
                yield Difference(here, "properties", *map(_said, sides))

    def members(self, keyword: str, old: list[Any], new: list[Any], place: str) -> Iterator[Difference]:
        """Compare lists of schemas: what is in both counts no more, and what is left goes in pairs."""
        ours = [(self.text("", member, 0), member) for member in old]
        theirs = [(self.text("", member, 1), member) for member in new]
        texts = {text for text, _ in ours} & {text for text, _ in theirs}
        gone = [member for text, member in ours if text not in texts]
        come = [member for text, member in theirs if text not in texts]
        if len(gone) == len(come):
            for was, now in zip(gone, come, strict=True):
                yield from self.schemas(was, now, place)
        else:
            yield Difference(place, keyword, _said(gone), _said(come))

    def opened(self, schema: Any, side: int) -> dict[str, Any]:
        """Return a schema with its reference followed; where both say the same keyword, the target stays apart."""
        if not is_object(schema):
            return {} if schema is True else {"not": {}}
        found, seen = dict(schema), set[str]()
        while isinstance(found.get("$ref"), str) and found["$ref"] not in seen:
            seen.add(found["$ref"])
            target = resolve(self.roots[side], found["$ref"])
            rest = {key: value for key, value in found.items() if key != "$ref"}
            if not is_object(target):
                return found
            if rest.keys() & target.keys() - WORDS - HINTS:
                return {**rest, "$ref": target}
            found = {**target, **rest}
        return found

    def text(self, keyword: str, value: Any, side: int) -> str:
        """Return a value such that equal texts mean equal values, with everything that it refers to."""
        if value is _ABSENT:
            return ""
        if keyword == "type" and isinstance(value, str):
            value = [value]
        if keyword in ("required", "enum", "type") and is_array(value):
            return json.dumps(sorted(json.dumps(one, sort_keys=True) for one in value))
        found: dict[str, str] = {}
        pending = [value]
        while pending:
            for reference in _references(pending.pop()):
                if reference not in found:
                    target = resolve(self.roots[side], reference)
                    found[reference] = _plain(target)
                    pending.append(target)
        return _plain(value) + json.dumps(found, sort_keys=True)


def _are_schemas(old: Any, new: Any) -> bool:
    """Return whether both sides can be looked into; that nothing is allowed is a difference as a whole."""
    return all(is_object(one) or one is True for one in (old, new)) and old is not new


def _references(node: Any) -> Iterator[str]:
    if is_object(node):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from _references(child)
    elif is_array(node):
        for child in node:
            yield from _references(child)


def _plain(value: Any) -> str:
    """Return JSON without descriptions, its members in order."""
    return json.dumps(_wordless(value), sort_keys=True)


def _wordless(node: Any, *, names: bool = False) -> Any:
    """Return a schema without words; `names` says that the keys are names, which may be words by chance."""
    if is_object(node):
        return {
            key: value if key in _VALUES and not names else _wordless(value, names=key in _MAPS and not names)
            for key, value in node.items()
            if names or key not in WORDS
        }
    return [_wordless(child) for child in node] if is_array(node) else node


def _said(value: Any) -> str:
    return "" if value is _ABSENT else json.dumps(value, ensure_ascii=False)
