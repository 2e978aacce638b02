"""Dialects of JSON Schema: translation of older ones to 2020-12."""

from __future__ import annotations

import re
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .keywords import KEYWORDS, NOTES, edited


def draft(schema: object) -> int:
    """Return the draft of a schema: 4, 6, 7, 2019 or 2020."""
    found = re.search(r"draft[-/]0?(\d+)", str(schema.get("$schema", ""))) if is_object(schema) else None
    return int(found[1]) if found else 2020


def modern(schema: Any) -> Any:
    """Return a schema in 2020-12 with the same meaning, without `$schema`; the schema itself if its keywords are equal.

    Formats are assertions up to draft-07, which 2020-12 cannot express.
    """
    if (known := draft(schema)) >= 2020:
        return schema
    later = {word for word, one in KEYWORDS.items() if one.since > known} - NOTES

    def edit(node: dict[str, Any], found: dict[str, Any]) -> None:
        hidden = node.keys() - NOTES - {"$ref"} if known < 2019 and "$ref" in node else frozenset[str]()
        for word in node.keys() & (later | hidden):
            del found[word]
        if is_array(found.get("items")):
            found["prefixItems"] = found.pop("items")
            if "additionalItems" in found:
                found["items"] = found["additionalItems"]  # it stays as the target of references
        for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(found.get(word), bool) and found.pop(word) and bound in found:
                found[word] = found.pop(bound)
        if name := str(found.pop("id" if known < 6 else "$id", "")):
            is_anchor = re.fullmatch(r"#[A-Za-z_][-A-Za-z0-9._]*", name)
            found |= {"$anchor": name[1:]} if is_anchor else {} if name[0] == "#" else {"$id": name}
        if isinstance(reference := found.get("$ref"), str):
            found["$ref"] = re.sub(r"/items(?=/\d)", "/prefixItems", reference)

    found = edited(schema, edit)
    return schema if found == schema else {word: value for word, value in found.items() if word != "$schema"}
