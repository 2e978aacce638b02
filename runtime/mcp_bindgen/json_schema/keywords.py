"""The keywords of JSON Schema, draft-04 to 2020-12, and walks through schemas.

A member of `properties` has a name, whatever the name is: walks tell names from keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .pointer import join


class Kind(Enum):
    """Kind of the value of a keyword."""

    SCHEMA = "schema"
    SCHEMAS = "list of schemas"
    SCHEMA_OR_SCHEMAS = "schema, or list of schemas"
    NAMED = "map of schemas by name"
    COUNT = "number of members, items or characters"
    VALUE = "any other value without schemas"


class Place(Enum):
    """Values to which a subschema applies: the same value, its members or its items."""

    SAME = "same"
    MEMBERS = "members"
    ITEMS = "items"


@dataclass(frozen=True)
class Keyword:
    """A keyword.

    Attributes:
        kind: Kind of its value.
        place: Values to which its schemas apply; `None` if it applies none itself.
        since: First draft that defines it: 4, 6, 7, 2019 or 2020.
        is_note: Whether it changes no decision on a value, so that it may stand beside `$ref` in each draft.
    """

    kind: Kind
    place: Place | None = None
    since: int = 4
    is_note: bool = False


def _all(words: str, kind: Kind, place: Place | None = None, **more: Any) -> dict[str, Keyword]:
    return dict.fromkeys(words.split(), Keyword(kind, place, **more))


KEYWORDS: Mapping[str, Keyword] = {
    **_all("$defs", Kind.NAMED, since=2019, is_note=True),
    **_all("definitions", Kind.NAMED, is_note=True),
    **_all("allOf anyOf oneOf", Kind.SCHEMAS, Place.SAME),
    **_all("not", Kind.SCHEMA, Place.SAME),
    **_all("if then else", Kind.SCHEMA, Place.SAME, since=7),
    **_all("dependentSchemas", Kind.NAMED, Place.SAME, since=2019),
    **_all("dependencies", Kind.NAMED, Place.SAME),  # or lists of names
    **_all("properties patternProperties", Kind.NAMED, Place.MEMBERS),
    **_all("additionalProperties", Kind.SCHEMA, Place.MEMBERS),
    **_all("propertyNames", Kind.SCHEMA, Place.MEMBERS, since=6),
    **_all("unevaluatedProperties", Kind.SCHEMA, Place.MEMBERS, since=2019),
    **_all("items", Kind.SCHEMA_OR_SCHEMAS, Place.ITEMS),
    **_all("prefixItems", Kind.SCHEMAS, Place.ITEMS, since=2020),
    **_all("additionalItems", Kind.SCHEMA, Place.ITEMS),
    **_all("contains", Kind.SCHEMA, Place.ITEMS, since=6),
    **_all("unevaluatedItems", Kind.SCHEMA, Place.ITEMS, since=2019),
    **_all("contentSchema", Kind.SCHEMA, since=2019),
    **_all("id $ref type enum required pattern format uniqueItems", Kind.VALUE),
    **_all("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf", Kind.VALUE),
    **_all("minLength maxLength minItems maxItems minProperties maxProperties", Kind.COUNT),
    **_all("$schema title description default", Kind.VALUE, is_note=True),
    **_all("$id const", Kind.VALUE, since=6),
    **_all("examples", Kind.VALUE, since=6, is_note=True),
    **_all("contentEncoding contentMediaType", Kind.VALUE, since=7),
    **_all("$comment readOnly writeOnly", Kind.VALUE, since=7, is_note=True),
    **_all("$anchor $vocabulary $recursiveRef $recursiveAnchor", Kind.VALUE, since=2019),
    **_all("minContains maxContains", Kind.COUNT, since=2019),
    **_all("dependentRequired", Kind.VALUE, since=2019),
    **_all("deprecated", Kind.VALUE, since=2019, is_note=True),
    **_all("$dynamicRef $dynamicAnchor", Kind.VALUE, since=2020),
}
"""Keyword -> what the drafts say about it."""


def _of(*kinds: Kind) -> frozenset[str]:
    return frozenset(word for word, one in KEYWORDS.items() if one.kind in kinds)


NAMED = _of(Kind.NAMED)
"""Keywords with schemas by name."""

_SINGLE = _of(Kind.SCHEMA, Kind.SCHEMA_OR_SCHEMAS)
_LISTS = _of(Kind.SCHEMAS, Kind.SCHEMA_OR_SCHEMAS)

NESTING = NAMED | _SINGLE | _LISTS
"""Keywords with subschemas."""

VALUES = _of(Kind.VALUE, Kind.COUNT)
"""Keywords without subschemas."""

COUNTS = _of(Kind.COUNT)
"""Keywords that limit lengths and numbers of members and items."""

IN_PLACE = frozenset(word for word, one in KEYWORDS.items() if one.place is Place.SAME)
"""Keywords with schemas that apply to the same value."""

TESTS = frozenset({"not", "if", "contains", "propertyNames"})
"""Keywords with schemas that a value need not fit as a whole."""

APPLIED = frozenset(word for word, one in KEYWORDS.items() if one.place is not None) - TESTS
"""Keywords with schemas that a valid value, or its members or items, may have to fit."""

NOTES = frozenset(word for word, one in KEYWORDS.items() if one.is_note)
"""Keywords that may stand beside `$ref` in each draft; up to draft-07, all other ones are ignored there."""

PROSE = frozenset({"description", "title", "examples", "example", "$comment", "markdownDescription"})
"""Keywords with texts for people and models, two of them outside of all drafts."""

HINTS = (NOTES - PROSE - NAMED - {"$schema"}) | {"format", "contentEncoding", "contentMediaType", "contentSchema"}
"""Keywords that refuse no value, but say how to use it."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keywords that refer to a schema."""


def children(schema: Mapping[str, Any]) -> Iterator[tuple[str, str | int | None, Any]]:
    """Yield the direct subschemas of a schema, objects and booleans: keyword, name or index if it has one, schema."""
    if schema.keys().isdisjoint(NESTING):
        return
    for keyword, value in schema.items():
        if keyword in NAMED and is_object(value):
            yield from ((keyword, name, part) for name, part in value.items() if isinstance(part, dict | bool))
        elif keyword in _LISTS and is_array(value):
            yield from ((keyword, index, part) for index, part in enumerate(value) if isinstance(part, dict | bool))
        elif keyword in _SINGLE and isinstance(value, dict | bool):
            yield keyword, None, value


def subschemas(schema: Mapping[str, Any], pointer: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield keyword, pointer and schema of the direct subschemas of the schema at a pointer."""
    for keyword, key, part in children(schema):
        yield keyword, join(pointer, keyword) if key is None else join(pointer, keyword, key), part


def nodes(schema: object, pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all schema objects and their pointers; names of properties and constants are not entered."""
    if is_object(schema):
        yield pointer, schema
        for _, place, part in subschemas(schema, pointer):
            yield from nodes(part, place)


def edited(node: object, edit: Callable[[dict[str, Any], dict[str, Any]], object], *, names: bool = False) -> Any:
    """Return a schema with edited objects; `edit` gets the original of an object, and a copy with edited parts.

    The values of unknown keywords are edited, too, because references may lead there.
    """
    if not is_object(node):
        return [edited(child, edit) for child in node] if is_array(node) else node
    found = {
        key: value if key in VALUES and not names else edited(value, edit, names=key in NAMED and not names)
        for key, value in node.items()
    }
    if not names:
        edit(node, found)
    return found


def objects(schema: object) -> list[dict[str, Any]]:
    """Return the objects that `edited` edits, parents first; a schema may be deeply nested."""
    found: list[dict[str, Any]] = []
    pending = [schema]
    for node in pending:  # grows in the loop
        if is_object(node):
            found.append(node)
            for keyword, value in node.items():
                if keyword in NAMED and is_object(value):
                    pending.extend(value.values())
                elif keyword not in VALUES:
                    pending.append(value)
        elif is_array(node):
            pending.extend(node)
    return found
