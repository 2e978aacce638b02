"""Dialects of JSON Schema: translation of older ones to 2020-12."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

VALUES = frozenset({"const", "enum", "default", "examples", "required", "type"})
"""Keywords with values that are no schemas."""

NAMED = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependentRequired", "dependencies"}
)
"""Keywords with names as members, instead of keywords."""

LATEST = 2020
"""Draft of a schema without `$schema`."""

_SINCE: Mapping[str, int] = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"), 2019),
    **dict.fromkeys(("minContains", "maxContains", "$anchor", "$recursiveRef"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef", "$dynamicAnchor"), 2020),
}
"""Keyword -> first draft in which it has a meaning."""

_BESIDE_REFERENCES: Set[str] = {
    *("$ref", "$schema", "$defs", "definitions", "title", "description", "$comment", "default", "examples"),
    *("deprecated", "readOnly", "writeOnly"),
}
"""Keywords that may stand beside `$ref` in each draft: up to draft-07, all other ones are ignored there."""

_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_TUPLE = re.compile(r"/items(?=/\d)")
"""Step of a reference that leads to an item of a tuple."""


def draft(schema: object) -> int:
    """Return the draft of a schema: 4, 6, 7, 2019 or `LATEST`."""
    found = re.search(r"draft[-/]0?(\d+)", str(schema.get("$schema", ""))) if is_object(schema) else None
    return int(found[1]) if found else LATEST


def modern(schema: Any) -> Any:
    """Return a schema in 2020-12 with the same meaning, without `$schema`; the schema itself if its keywords are equal.

    Formats are assertions up to draft-07, which 2020-12 cannot express.
    """
    known = draft(schema)

    def edit(node: dict[str, Any], found: dict[str, Any]) -> None:
        ignored = {word for word, since in _SINCE.items() if since > known}
        if known < 2019 and "$ref" in node:
            ignored |= node.keys() - _BESIDE_REFERENCES
        for word in ignored & node.keys():
            del found[word]
        if is_array(found.get("items")):
            found["prefixItems"] = found.pop("items")
            if "additionalItems" in found:
                found["items"] = found["additionalItems"]  # it stays as the target of references
        for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(found.get(word), bool) and found.pop(word) and bound in found:
                found[word] = found.pop(bound)
        if known < 6 and isinstance(found.get("id"), str):
            found["$id"] = found.pop("id")
        if known < 2019 and str(found.get("$id", "")).startswith("#"):
            anchor = found.pop("$id")[1:]  # `#/properties/a` and the like are no targets
            found |= {"$anchor": anchor} if _ANCHOR.fullmatch(anchor) else {}
        if isinstance(reference := found.get("$ref"), str):
            found["$ref"] = _TUPLE.sub("/prefixItems", reference)

    found = schema if known == LATEST else edited(schema, edit)
    return schema if found == schema else {word: value for word, value in found.items() if word != "$schema"}


def edited(node: object, edit: Callable[[dict[str, Any], dict[str, Any]], None], *, names: bool = False) -> Any:
    """Return a schema with edited objects; `edit` gets the original of an object, and a copy with edited parts."""
    if not is_object(node):
        return [edited(child, edit) for child in node] if is_array(node) else node
    found = {
        key: value if key in VALUES and not names else edited(value, edit, names=key in NAMED and not names)
        for key, value in node.items()
    }
    if not names:
        edit(node, found)
    return found
