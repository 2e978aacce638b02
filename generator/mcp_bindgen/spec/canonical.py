"""Canonical form of schemas: structure without prose, in one order, with one digest."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from mcp_bindgen.json_schema.keywords import NESTING, PROSE
from mcp_bindgen.runtime.model import json_types
from mcp_bindgen.runtime.model.json_types import ABSENT, same_json

from .json import is_array, is_object, join
from .keywords import ANNOTATIONS, STRUCTURE, Schema, rebuild

_ORDER = {keyword: position for position, keyword in enumerate((*STRUCTURE, *sorted(ANNOTATIONS)))}


def canonical(document: Schema) -> Schema:
    """Return `document` without prose, its definitions, properties and keywords in canonical order.

    Documents with equal structures have equal canonical forms. The order of union members is kept, because generated
    code shows it.
    """
    definitions = document["$defs"]
    return {
        "$schema": document["$schema"],
        "$defs": {name: canonical_schema(definitions[name]) for name in sorted(definitions)},
    }


def canonical_schema(schema: Schema) -> Schema:
    """Return one schema without prose, its properties and keywords in canonical order."""
    known = sorted(schema.keys() & _ORDER.keys(), key=_ORDER.__getitem__)
    others = sorted(schema.keys() - _ORDER.keys() - PROSE)
    ordered = {name: schema[name] if name in NESTING else _sorted(schema[name]) for name in (*known, *others)}
    for keyword in ("required", "enum"):
        if keyword in ordered:
            ordered[keyword] = sorted(ordered[keyword], key=_rank)
    if not ordered.get("required", True):
        del ordered["required"]
    if "properties" in ordered:
        ordered["properties"] = {name: ordered["properties"][name] for name in sorted(ordered["properties"])}
    return rebuild(ordered, lambda child, _: canonical_schema(child))


def _sorted(value: Any) -> Any:
    """Return a JSON value, such as a `default`, with sorted members."""
    if is_object(value):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if is_array(value) else value


def _rank(value: Any) -> tuple[str, Any]:
    """Return the values of an `enum`, of any types, in order."""
    return type(value).__name__, value if isinstance(value, str | int | float) else json.dumps(value)


def same(one: Any, other: Any, keyword: str) -> bool:
    """Return whether two schemas, or values of a keyword, are equal except for prose and order."""
    first, second = ({keyword: value} if not is_object(value) else value for value in (one, other))
    return same_json(canonical_schema(first), canonical_schema(second))


def dumps(document: Any) -> str:
    """Return the text of a document, as in `schema.json`."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def digest(document: Schema) -> str:
    """Return the sha256 of the canonical structure of `document`."""
    return _sha256(canonical(document))


def is_canonical(document: Any, digest: str) -> bool:
    """Return whether a JSON document is a structure with this digest, in canonical form."""
    return _sha256(document) == digest


def _sha256(document: Any) -> str:
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return sha256(compact.encode(errors="surrogatepass")).hexdigest()


def differences(ours: Any, theirs: Any) -> list[str]:
    """Return one line for each difference between two JSON documents, with pointer and values."""
    return [
        f"{join('', *path)}: "
        + ("gone" if new is ABSENT else "new" if old is ABSENT else f"{json.dumps(old)} -> {json.dumps(new)}")
        for path, old, new in json_types.differences(ours, theirs)
    ]
